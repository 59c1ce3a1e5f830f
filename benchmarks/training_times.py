"""Training times on 150 rows, as in the paper's Table 2: solver "paper" against tree ensembles.

Run ``python benchmarks/training_times.py [--repeats R]``. Uses the data sets that ship with scikit-learn, and
those of the folder EXCLUSIVITY_DATA where it is set. Times are medians of interleaved repeats, averaged over
the sets.
"""

from __future__ import annotations

import argparse
import os
from statistics import mean, median
from time import perf_counter

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.preprocessing import MinMaxScaler

from exclusivity import ERMClassifier
from exclusivity.datasets import find_data_file, read_libsvm

FILES = (
    "german.numer_scale",
    "diabetes_scale",
    "australian_scale",
    "sonar_scale",
    "splice_scale",
    "liver-disorders_scale",
    "heart_scale",
    "ionosphere_scale",
)


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """150 rows of every binary set at hand, features in [-1, 1]."""
    sets = {"breast cancer": load_breast_cancer(return_X_y=True)}
    X, y = load_digits(return_X_y=True)
    sets["digits 3/8"] = X[np.isin(y, [3, 8])], y[np.isin(y, [3, 8])]
    X, y = load_wine(return_X_y=True)
    sets["wine 1/rest"] = X, (y == 1).astype(int)
    for file in FILES:
        path = find_data_file(file)
        if path is not None:
            data = read_libsvm(path)
            sets[file] = data.data.toarray(), data.target
    rng = np.random.default_rng(0)
    small = {}
    for name, (X, y) in sets.items():
        rows = rng.permutation(len(y))[:150]
        small[name] = MinMaxScaler((-1, 1)).fit_transform(X[rows]), y[rows]
    return small


def methods() -> dict[str, ClassifierMixin]:
    made: dict[str, ClassifierMixin] = {}
    for members in (10, 30):
        for p in (1, 2):
            made[f"L{p}-ERM{members}"] = ERMClassifier(members, p=p, solver="paper")
            made[f"L{p}-ERM{members}, newton"] = ERMClassifier(members, p=p)
        made[f"AdaBoost{members}"] = AdaBoostClassifier(n_estimators=members, random_state=0)
        made[f"Bagging{members}"] = BaggingClassifier(n_estimators=members, random_state=0)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Training times on 150 rows, as in the paper's Table 2.")
    parser.add_argument(
        "--repeats", type=int, default=7, metavar="R", help="interleaved repeats (default: 7)"
    )
    args = parser.parse_args()
    sets, models = data_sets(), methods()
    times: dict[str, dict[str, list[float]]] = {name: {data: [] for data in sets} for name in models}
    for _ in range(args.repeats):
        for data, (X, y) in sets.items():
            for name, model in models.items():
                started = perf_counter()
                model.fit(X, y)
                times[name][data].append(perf_counter() - started)
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "library default")
    print(f"{len(sets)} sets of 150 rows, {args.repeats} repeats, BLAS threads: {threads}")
    means = {name: mean(median(values) for values in by_set.values()) for name, by_set in times.items()}
    for name, seconds in means.items():
        members = "10" if "10" in name else "30"
        peers = [
            f"x {seconds / means[peer + members]:.2f} of {peer}{members}" for peer in ("AdaBoost", "Bagging")
        ]
        print(f"  {name:<18} {1e3 * seconds:7.1f} ms   " + "   ".join(peers))


if __name__ == "__main__":
    main()
