"""What one SVM certifies when columns are bounded, beside a vote that needs no bounds.

    python benchmarks/bounded_columns.py

A linear score moves by at most |w_j| (high_j - x_j) or |w_j| (x_j - low_j) when column j shows anything
between low_j and high_j. So a prediction stands whatever r columns show within their bounds if the r largest
moves against it add up to less than its margin: exact for one linear model. Bounds are those of the training
rows, and test rows are cut off at them, as a sensor's range or a clipping scaler would. Half of the rows
train. Balanced certified accuracy in percent, of LinearSVC for several C, and of nine voting members for
columns without bounds.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.datasets import load_dataset
from exclusivity.robustness import certified_accuracy_curve

COSTS = (0.001, 0.01, 0.1, 1.0)
MOST = 3


def digits_three_or_eight():
    """Two of the ten digits."""
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (3, 8))
    return X[chosen], y[chosen]


def listed(name):
    """One of the paper's sets."""
    table = load_dataset(name)
    return (table.data.toarray() if hasattr(table.data, "toarray") else table.data), table.target


SETS = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits 3/8": digits_three_or_eight,
    "ionosphere": lambda: listed("ionosphere"),
    "sonar": lambda: listed("sonar"),
}


def bounded_radius(svm, rows, low, high):
    """How many columns may show anything between their bounds."""
    side = np.where(svm.decision_function(rows) > 0, 1.0, -1.0)[:, None]
    weights = side * svm.coef_[0]
    worst = np.maximum(weights * (rows - low), weights * (rows - high))
    moves = np.cumsum(-np.sort(-worst, axis=1), axis=1)
    return (moves < np.abs(svm.decision_function(rows))[:, None]).sum(axis=1)


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| set | model | r = 0 | r = 1 | r = 2 | r = 3 |\n|---|---|---|---|---|---|")
    for name, load in SETS.items():
        X, y = load()
        X = X[:, np.ptp(X, axis=0) > 0]
        X, rows, y, truth = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
        scaler = MinMaxScaler(clip=True).fit(X)
        inner = StandardScaler().fit(scaler.transform(X))
        X, rows = (inner.transform(scaler.transform(part)) for part in (X, rows))
        low, high = X.min(axis=0), X.max(axis=0)
        for cost in COSTS:
            svm = LinearSVC(C=cost, class_weight="balanced", dual="auto", random_state=0).fit(X, y)
            show(
                name, f"one SVM, C = {cost:g}", bounded_radius(svm, rows, low, high), truth, svm.predict(rows)
            )
        vote = ERMClassifier(
            9, C=0.1, exclusivity=np.inf, voting="hard", class_weight="balanced", random_state=0
        )
        vote.fit(X, y)
        show(name, "vote of nine, no bounds", vote.certify(rows), truth, vote.predict(rows))


def show(name, title, radii, truth, predicted):
    """A row of the table."""
    curve = certified_accuracy_curve(radii, truth, predicted, max_radius=MOST, balanced=True)
    print(f"| {name} | {title} | " + " | ".join(f"{100 * value:.1f}" for value in curve) + " |")


if __name__ == "__main__":
    main()
