"""
Ten instruments, three of which fail
====================================

One SVM against a vote of members on different instruments.
``python examples/broken_sensors.py picture.png`` writes the picture to a file instead of showing it.

The breast cancer data have thirty columns: ten quantities (radius, texture, ...), each as mean, error and
worst value. Think of ten instruments with three readings each. When one breaks, its readings lie together.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.robustness import certified_accuracy_curve, certify, choose_members, corruption_curve

BROKEN = [0, 1, 2, 3, 4]


def instrument(name: str) -> str:
    """The quantity behind a column: "worst radius" and "radius error" are readings of "radius"."""
    return name.removeprefix("mean ").removeprefix("worst ").removesuffix(" error")


def main(picture: str | None = None) -> None:
    """Train both, break instruments, print what happens, and draw it."""
    data = load_breast_cancer()
    instruments = [instrument(name) for name in data.feature_names]
    train, test, y, y_test = train_test_split(data.data, data.target, stratify=data.target, random_state=0)

    svm = make_pipeline(StandardScaler(), LinearSVC(C=0.1)).fit(train, y)
    # How many members, and which C, if three instruments may fail? Cross-validation says.
    voters = ERMClassifier(exclusivity=np.inf, feature_groups=instruments)
    choice = choose_members(
        train,
        y,
        r=3,
        estimator=make_pipeline(StandardScaler(), voters),
        n_estimators=[7, 9],
        C=[0.01, 0.1, 1],
    )
    vote = choice.estimator
    print(f"{len(set(instruments))} instruments; chosen: {choice.best_params}")
    for member, columns in enumerate(vote[-1].supports_):
        print(f"  member {member}: {', '.join(sorted({instruments[j] for j in np.flatnonzero(columns)}))}")

    settings = {"ks": BROKEN, "reference": train, "feature_groups": instruments, "random_state": 0}
    curves = {
        "one SVM": corruption_curve(svm, test, y_test, **settings),
        "exclusive vote": corruption_curve(vote, test, y_test, **settings),
    }
    print("\naccuracy when k instruments are broken in every row")
    print(f"{'':27}" + "".join(f"{f'k={k}':>7}" for k in BROKEN))
    for number, kind in enumerate(curves["one SVM"].kinds):
        for name, curve in curves.items():
            print(f"  {kind:10}{name:15}" + "".join(f"{value:7.3f}" for value in curve.mean[number]))

    radius, predicted = certify(vote, test), vote.predict(test)
    certified = certified_accuracy_curve(radius, y_test, predicted, max_radius=BROKEN[-1])
    print(f"  {'anything':10}{'vote, proven':15}" + "".join(f"{value:7.3f}" for value in certified))
    print("\nradius: how many instruments may show ANYTHING without changing the prediction of a row")
    for r, count in zip(*np.unique(radius, return_counts=True), strict=True):
        print(
            f"  {r:2d}: {count:3d} rows, {np.mean(predicted[radius == r] == y_test[radius == r]):.0%} right"
        )
    draw(curves, certified, radius, picture)


def draw(curves: dict, certified: np.ndarray, radius: np.ndarray, picture: str | None) -> None:
    """Accuracy against broken instruments, and the radius of every prediction."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, curve in curves.items():
        left.plot(curve.ks, curve.mean[0], marker="o", label=f"{name}, outliers")
    left.plot(BROKEN, certified, marker="s", linestyle="--", label="exclusive vote, proven for any value")
    left.set(xlabel="broken instruments", ylabel="test accuracy", xticks=BROKEN, ylim=(0, 1.02))
    left.legend(loc="lower left")
    right.hist(radius, bins=np.arange(-1.5, radius.max() + 1.5), rwidth=0.9)
    right.set(xlabel="certified radius of the prediction", ylabel="test rows")
    if picture is None:
        plt.show()
    else:
        figure.savefig(picture, dpi=120)
        print(f"\npicture: {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
