"""
Ten instruments, three of which fail
====================================

One SVM against a vote of members on different instruments.

The breast cancer data have thirty columns: ten quantities (radius, texture, ...), each as mean, error and
worst value. Think of ten instruments with three readings each. When one breaks, its readings lie together.
"""

# %%
# Which columns belong to one instrument: "worst radius" and "radius error" are readings of "radius".
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.robustness import (
    certified_accuracy_curve,
    certified_accuracy_scorer,
    certify,
    corruption_curve,
)

data = load_breast_cancer()
instruments = [
    name.removeprefix("mean ").removeprefix("worst ").removesuffix(" error") for name in data.feature_names
]
X, X_test, y, y_test = train_test_split(data.data, data.target, stratify=data.target, random_state=0)

# %%
# How many members, and which C, if three instruments may fail? Cross-validation says.
voters = ERMClassifier(
    exclusivity=np.inf, voting="hard", feature_groups=instruments, class_weight="balanced", random_state=0
)
search = GridSearchCV(
    make_pipeline(StandardScaler(), voters),
    {"ermclassifier__n_estimators": [7, 9], "ermclassifier__C": [0.01, 0.1, 1]},
    scoring=certified_accuracy_scorer(r=3),
).fit(X, y)
vote = search.best_estimator_
print(f"{len(set(instruments))} instruments; chosen: {search.best_params_}")
for member, columns in enumerate(vote[-1].supports_):
    print(f"  member {member}: {', '.join(sorted({instruments[j] for j in np.flatnonzero(columns)}))}")

# %%
# Break k instruments in every row, in four ways.
svm = make_pipeline(StandardScaler(), LinearSVC(C=0.1)).fit(X, y)
broken = [0, 1, 2, 3, 4]
settings = {"ks": broken, "reference": X, "feature_groups": instruments, "random_state": 0}
curves = {
    "one SVM": corruption_curve(svm, X_test, y_test, **settings),
    "exclusive vote": corruption_curve(vote, X_test, y_test, **settings),
}
print("accuracy when k instruments are broken in every row")
print(f"{'':27}" + "".join(f"{f'k={k}':>7}" for k in broken))
for number, kind in enumerate(curves["one SVM"].kinds):
    for name, curve in curves.items():
        print(f"  {kind:10}{name:15}" + "".join(f"{value:7.3f}" for value in curve.mean[number]))

# %%
# What is proven for ANY values of any k instruments, which no experiment can show.
radius, predicted = certify(vote, X_test), vote.predict(X_test)
proven = certified_accuracy_curve(radius, y_test, predicted, max_radius=broken[-1])
print(f"  {'anything':10}{'vote, proven':15}" + "".join(f"{value:7.3f}" for value in proven))

# %%
# The radius of a row says how many instruments may show anything without changing its prediction, and so how
# far to trust it.
for r, count in zip(*np.unique(radius, return_counts=True), strict=True):
    right = np.mean(predicted[radius == r] == y_test[radius == r])
    print(f"radius {r:2d}: {count:3d} rows, {right:.0%} right")

# %%
figure, (left_axes, right_axes) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, curve in curves.items():
    left_axes.plot(curve.ks, curve.mean[0], marker="o", label=f"{name}, outliers")
left_axes.plot(broken, proven, marker="s", linestyle="--", label="exclusive vote, proven for any value")
left_axes.set(xlabel="broken instruments", ylabel="test accuracy", xticks=broken, ylim=(0, 1.02))
left_axes.legend(loc="lower left")
right_axes.hist(radius, bins=np.arange(-1.5, radius.max() + 1.5), rwidth=0.9)
right_axes.set(xlabel="certified radius of the prediction", ylabel="test rows")
plt.show()
