"""What members on different features cost when nothing is broken, and what they give when something is.

    python benchmarks/price_of_robustness.py [splits]

Half of every set trains, the other half tests. C is chosen for each method by 3-fold cross-validation among
the same values; classes have equal weight, or a constant vote would look robust. Means over the splits of
balanced accuracy in percent: of one SVM and of the vote with nothing broken; of both with two features of
every row moved by 20 standard deviations; and what is certified for ANY two broken features.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.datasets import load_dataset
from exclusivity.robustness import certified_accuracy, certify, corrupt

SETS = ["breast cancer", "ionosphere", "sonar", "splice", "german", "heart", "diabetes"]
COSTS = [0.01, 0.1, 1.0]
BROKEN = 2


def rows_of(name):
    """X and y."""
    if name == "breast cancer":
        return load_breast_cancer(return_X_y=True)
    table = load_dataset(name)
    return table.data, table.target


def tuned(model, X, y):
    """The model with the C that cross-validates best."""
    pipeline = make_pipeline(StandardScaler(), model)
    grid = {f"{type(model).__name__.lower()}__C": COSTS}
    return GridSearchCV(pipeline, grid, cv=3, scoring="balanced_accuracy").fit(X, y).best_estimator_


def measure(name, n_members, splits):
    """One row of the table."""
    X, y = rows_of(name)
    shuffle = StratifiedShuffleSplit(splits, test_size=0.5, random_state=0)
    found = []
    for train, test in shuffle.split(X, y):
        broken = corrupt(X[test], BROKEN, reference=X[train], random_state=0)
        svm = tuned(LinearSVC(class_weight="balanced"), X[train], y[train])
        voters = ERMClassifier(
            n_members, exclusivity=np.inf, voting="hard", class_weight="balanced", random_state=0
        )
        vote = tuned(voters, X[train], y[train])
        safe = certified_accuracy(
            certify(vote, X[test]), y[test], vote.predict(X[test]), BROKEN, balanced=True
        )
        scores = [
            balanced_accuracy_score(y[test], model.predict(rows))
            for rows in (X[test], broken)
            for model in (svm, vote)
        ]
        found.append([*scores, safe])
    return 100 * np.mean(found, axis=0)


def main(splits=3):
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| set | features | K | SVM | vote | SVM, 2 broken | vote, 2 broken | certified at 2 |")
    print("|---|---|---|---|---|---|---|---|")
    for name in SETS:
        n_features = rows_of(name)[0].shape[1]
        for n_members in (5, 9):
            if n_members <= n_features:
                values = measure(name, n_members, splits)
                print(
                    f"| {name} | {n_features} | {n_members} | "
                    + " | ".join(f"{v:.1f}" for v in values)
                    + " |"
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
