"""The picture of the README: three promises, each measured.

    python scripts/readme_picture.py [docs/images/overview.png]

1. Testing error on half of sonar (ten splits) of an ERM of 30 members, beside one SVM of the same cost C and
   one of cost C / 30 by LIBSVM: the ERM lies on the latter.
2. Training time against the number of members (20,000 x 50): ERM to a certified gap of 1e-4, and bagged
   ``LinearSVC`` as scikit-learn users would do it.
3. Accuracy on breast cancer with k of 30 features broken in every row: one SVM, the vote of nine members that
   share no feature (classes weigh the same), and what its certificate proves for any values whatsoever.
"""

from __future__ import annotations

import sys
from statistics import median
from time import process_time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import ShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from exclusivity import ERMClassifier
from exclusivity.io import load_dataset
from exclusivity.robustness import certified_accuracy_curve, certify, corruption_curve

plt.switch_backend("Agg")
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def equivalence(axes: Any) -> None:
    """ERM of 30 members and SVMs against the cost."""
    data = load_dataset("sonar")
    costs = np.geomspace(0.05, 50, 10)
    models = {
        "SVM at C": lambda cost: SVC(kernel="linear", C=cost),
        "SVM at C/30": lambda cost: SVC(kernel="linear", C=cost / 30),
        "ERM, 30 members": lambda cost: ERMClassifier(30, C=cost, p=1, tol=1e-6),
    }
    splits = list(ShuffleSplit(10, test_size=0.5, random_state=0).split(data.data))
    for (name, make), style in zip(models.items(), ("--", "-", "o"), strict=True):
        errors = [
            100
            - 100
            * np.mean(
                [
                    make(cost).fit(data.data[a], data.target[a]).score(data.data[b], data.target[b])
                    for a, b in splits
                ]
            )
            for cost in costs
        ]
        axes.semilogx(costs, errors, style, label=name, color=ORANGE if name == "ERM, 30 members" else GREY)
    axes.set(title="30 members at C = one SVM at C/30", xlabel="cost C", ylabel="testing error on sonar, %")
    axes.legend(frameon=False)


def price_of_members(axes: Any) -> None:
    """Training time against the number of members."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 50))
    y = X @ rng.standard_normal(50) + 4 * rng.standard_normal(20_000) > 0
    members = [1, 3, 10, 30, 100]
    models = {
        "bagged LinearSVC": (lambda k: BaggingClassifier(LinearSVC(C=0.1, dual=False), k), members[:-1]),
        "ERM, certified": (lambda k: ERMClassifier(k, C=0.1 * k), members),
    }
    for (name, (make, sizes)), color in zip(models.items(), (GREY, ORANGE), strict=True):
        times = []
        for size in sizes:
            runs = []
            for _ in range(3):
                started = process_time()
                make(size).fit(X, y)
                runs.append(process_time() - started)
            times.append(median(runs))
        axes.loglog(sizes, times, "o-", label=name, color=color)
    axes.set(
        title="Any number of members at the price of one", xlabel="members", ylabel="training, CPU seconds"
    )
    axes.legend(frameon=False)


def broken_features(axes: Any) -> None:
    """Accuracy against the number of broken features."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    svm = make_pipeline(StandardScaler(), LinearSVC(C=0.1)).fit(X, y)
    voters = ERMClassifier(
        9, C=0.1, exclusivity=np.inf, voting="hard", class_weight="balanced", random_state=0
    )
    vote = make_pipeline(StandardScaler(), voters).fit(X, y)
    ks = list(range(5))
    for name, model, color in (("one SVM", svm, GREY), ("vote of 9", vote, ORANGE)):
        curve = corruption_curve(
            model, X_test, y_test, ks=ks, kinds=["outliers"], reference=X, random_state=0
        )
        axes.plot(ks, 100 * curve.mean[0], "o-", color=color, label=name)
    proven = certified_accuracy_curve(certify(vote, X_test), y_test, vote.predict(X_test), max_radius=4)
    axes.plot(ks, 100 * np.asarray(proven), "s--", color=BLUE, label="vote of 9, proven for any values")
    axes.set(
        title="Votes that survive broken features",
        xlabel="features broken in every row",
        ylabel="accuracy, %",
        ylim=(0, 102),
    )
    axes.set_xticks(ks)
    axes.legend(frameon=False, loc="lower left")


def main(picture: str = "docs/images/overview.png") -> None:
    """Draw the three panels side by side."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for panel, draw in zip(axes, (equivalence, price_of_members, broken_features), strict=True):
        draw(panel)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
