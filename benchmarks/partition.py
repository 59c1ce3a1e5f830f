"""Learned against random disjoint features: balanced certified accuracy, clean accuracy, and the cost.

Run ``python benchmarks/partition.py`` (``--quick`` for two sets and two splits, ``--json FILE`` to keep the
numbers; what the file holds already is not computed again). Uses the sets that ship with scikit-learn, and
those of the folder EXCLUSIVITY_DATA where it is set.

Every split: half of the rows (600 at most) train, the others test; features are standardised on the training
rows. Both systems are ``ERMClassifier(K, exclusivity=inf, voting="hard", class_weight="balanced")``, one with
its own partition, the other with random groups of equal sizes (mean of ten). Each chooses C by the same
threefold cross-validation of the balanced certified accuracy, averaged over r = 0, ..., 3; the random system
draws new groups for each fold. Certified at r: the prediction is right, and no r features can change it.
Balanced: the mean over classes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.datasets import find_data_file, read_libsvm
from exclusivity.problem import ERMProblem
from exclusivity.solvers import ExclusiveOptions
from exclusivity.solvers.exclusive import find_partition

FILES = {
    "australian": "australian_scale",
    "heart": "heart_scale",
    "german": "german.numer_scale",
    "ionosphere": "ionosphere_scale",
    "sonar": "sonar_scale",
    "splice": "splice_scale",
}
MEMBERS = (5, 9, 15)
RADII = (0, 1, 2, 3)
COSTS = (0.01, 0.1, 1.0)
MAX_TRAIN = 600

Data = tuple[np.ndarray, np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray, float, int], ERMClassifier]


def data_sets() -> dict[str, Data]:
    """Every set at hand with at least ten features, constant columns left out."""
    X, y = load_digits(return_X_y=True)
    pair = np.isin(y, [3, 8])
    sets = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits 3/8": (X[pair], y[pair]),
        "wine": load_wine(return_X_y=True),
    }
    for name, file in FILES.items():
        path = find_data_file(file)
        if path is not None:
            table = read_libsvm(path)
            sets[name] = table.data.toarray(), table.target
    sets["digits"] = X, y
    return {name: (X[:, np.ptp(X, axis=0) > 0], y) for name, (X, y) in sets.items()}


def split(data: Data, seed: int) -> tuple[Data, Data]:
    """Training and test rows, standardised by the training rows."""
    X, y = data
    size = min(len(y) // 2, MAX_TRAIN)
    X, X_test, y, y_test = train_test_split(X, y, train_size=size, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return (scaler.transform(X), y), (scaler.transform(X_test), y_test)


def learned(K: int) -> Fit:
    def fit(X: np.ndarray, y: np.ndarray, C: float, seed: int) -> ERMClassifier:
        return ensemble(K, C, seed, None).fit(X, y)

    return fit


def random_groups(K: int) -> Fit:
    def fit(X: np.ndarray, y: np.ndarray, C: float, seed: int) -> ERMClassifier:
        owners = np.random.default_rng(seed).permutation(np.arange(X.shape[1]) % K)
        return ensemble(K, C, seed, {"partition": owners, "restarts": 0}).fit(X, y)

    return fit


def ensemble(K: int, C: float, seed: int, options: dict[str, object] | None) -> ERMClassifier:
    return ERMClassifier(
        K,
        C=C,
        exclusivity=np.inf,
        voting="hard",
        class_weight="balanced",
        solver_options=options,
        random_state=seed,
    )


def measure(clf: ERMClassifier, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Clean accuracy, then balanced certified accuracy at every r, in %."""
    right, radius = clf.predict(X) == y, clf.certify(X)
    certified = [[np.mean((right & (radius >= r))[y == c]) for c in clf.classes_] for r in RADII]
    return 100 * np.array([right.mean(), *np.mean(certified, axis=1)])


def choose_cost(fit: Fit, train: Data, seed: int) -> float:
    """C of the highest balanced certified accuracy, averaged over r, in three folds."""
    X, y = train
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y))

    def value(C: float) -> float:
        parts = [
            measure(fit(X[a], y[a], C, 100 * seed + i), X[b], y[b])[1:].mean()
            for i, (a, b) in enumerate(folds)
        ]
        return float(np.mean(parts))

    return max(COSTS, key=value)


@dataclass
class Cell:
    """One set and one K: a row per split of clean accuracy and balanced certified accuracy at r = 0 to 3."""

    name: str
    K: int
    learned: list[list[float]]
    random: list[list[float]]
    svm: list[float]
    constant: float


def study(name: str, data: Data, K: int, n_splits: int, n_random: int) -> Cell:
    cell = Cell(name, K, [], [], [], 100 / len(np.unique(data[1])))
    for seed in range(n_splits):
        train, test = split(data, seed)
        C = choose_cost(learned(K), train, seed)
        cell.learned.append(measure(learned(K)(*train, C, seed), *test).tolist())
        C = choose_cost(random_groups(K), train, seed)
        rows = [measure(random_groups(K)(*train, C, 1000 * seed + i), *test) for i in range(n_random)]
        cell.random.append(np.mean(rows, axis=0).tolist())
        one = ERMClassifier(1, C=0.1, class_weight="balanced").fit(*train)
        cell.svm.append(
            100
            * float(np.mean([np.mean((one.predict(test[0]) == test[1])[test[1] == c]) for c in one.classes_]))
        )
    return cell


def table(cells: list[Cell]) -> str:
    """Markdown: learned | random, mean and standard deviation over the splits."""
    lines = [
        "| set | K | clean accuracy | r = 0 | r = 1 | r = 2 | r = 3 | constant | one SVM |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        ours, theirs = np.array(cell.learned), np.array(cell.random)
        columns = [f"{_spread(ours[:, i])} \\| {_spread(theirs[:, i])}" for i in range(5)]
        extras = f"{cell.constant:.1f} | {np.mean(cell.svm):.1f}"
        lines.append(f"| {cell.name} | {cell.K} | {' | '.join(columns)} | {extras} |")
    return "\n".join(lines)


def _spread(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ± {values.std():.1f}"


def summary(cells: list[Cell]) -> str:
    """Learned minus random, averaged over K for each set, then over the sets."""
    names = list(dict.fromkeys(cell.name for cell in cells))
    lines = [
        "| set | clean accuracy | r = 1 | r = 2 | r = 3 | mean of r = 1, 2, 3 |",
        "|---|---|---|---|---|---|",
    ]
    rows = []
    for name in names:
        gains = [np.mean(np.subtract(c.learned, c.random), axis=0) for c in cells if c.name == name]
        gain = np.mean(gains, axis=0)
        rows.append([gain[0], *gain[2:], gain[2:].mean()])
        lines.append(f"| {name} | " + " | ".join(f"{value:+.1f}" for value in rows[-1]) + " |")
    lines.append("| **mean** | " + " | ".join(f"**{value:+.1f}**" for value in np.mean(rows, axis=0)) + " |")
    lines.append("| **lowest** | " + " | ".join(f"{value:+.1f}" for value in np.min(rows, axis=0)) + " |")
    return "\n".join(lines)


def median_radii(sets: dict[str, Data], n_splits: int, n_random: int) -> str:
    """The median certified radius over all test rows at K = 25 (a wrong or tied row has none: -1)."""
    lines = ["| K = 25 | learned | random |", "|---|---|---|"]
    for name in ("digits 3/8", "digits", "ionosphere"):
        if name not in sets:
            continue
        ours, theirs = [], []
        for seed in range(n_splits):
            train, test = split(sets[name], seed)
            ours.append(_median_radius(learned(25)(*train, 0.1, seed), *test))
            theirs += [
                _median_radius(random_groups(25)(*train, 0.1, 1000 * seed + i), *test)
                for i in range(n_random)
            ]
        lines.append(f"| {name} | {np.mean(ours):.1f} | {np.mean(theirs):.1f} |")
    return "\n".join(lines)


def _median_radius(clf: ERMClassifier, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.median(np.where(clf.predict(X) == y, clf.certify(X), -1)))


def cost() -> str:
    """Seconds (and processor seconds) of the partition of 10,000 x 200 for K = 15, beside LinearSVC."""
    X, y = make_classification(10_000, 200, n_informative=60, n_redundant=40, flip_y=0.05, random_state=0)
    X = StandardScaler().fit_transform(X)
    problem = ERMProblem.build(X, 2.0 * y - 1, n_members=15, cost=0.1, exclusivity=np.inf)

    def search() -> None:
        find_partition([problem], np.arange(200), ExclusiveOptions(), np.random.default_rng(0), None)

    def svm() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(10):
                LinearSVC(C=0.1).fit(X, y)

    lines = ["| 10,000 x 200 | seconds | processor seconds |", "|---|---|---|"]
    for name, work in (("partition, K = 15", search), ("ten LinearSVC", svm)):
        times = []
        for _ in range(3):
            start, used = perf_counter(), process_time()
            work()
            times.append((perf_counter() - start, process_time() - used))
        best = min(times, key=lambda pair: pair[1])
        lines.append(f"| {name} | {best[0]:.2f} | {best[1]:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two sets, two splits, three random partitions")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sets, n_splits, n_random = data_sets(), arguments.splits, 10
    if arguments.quick:
        sets = {name: sets[name] for name in ("breast cancer", "wine")}
        n_splits, n_random = 2, 3
    file = arguments.json
    known = [Cell(**cell) for cell in json.loads(file.read_text())] if file and file.exists() else []
    done = {(cell.name, cell.K): cell for cell in known}
    for name, data in sets.items():
        for K in MEMBERS:
            if data[0].shape[1] >= 2 * K and (name, K) not in done:
                done[name, K] = study(name, data, K, n_splits, n_random)
                print(f"<!-- {name}, K = {K}: done -->", flush=True)
                if file:
                    file.write_text(json.dumps([asdict(cell) for cell in done.values()], indent=1))
    cells = [done[name, K] for name in sets for K in MEMBERS if (name, K) in done]
    print(f"\n{table(cells)}\n\nLearned minus random, in points:\n\n{summary(cells)}\n")
    print(f"{median_radii(sets, n_splits, n_random)}\n\n{cost()}")


if __name__ == "__main__":
    main()
