"""Processor time of a fit with BLAS's default threads against one thread, interleaved in one process.

    python benchmarks/blas_threads.py            # on an idle machine
    python benchmarks/blas_threads.py --busy 2   # beside two processes that never rest

Users do not set OPENBLAS_NUM_THREADS; a fit should cost them no more than with one thread.
"""

from __future__ import annotations

import argparse
import multiprocessing
from statistics import median
from time import perf_counter, process_time

from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_info, threadpool_limits

from exclusivity import ERMClassifier


def _data_sets():
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", scale(X), y
    X, y = load_digits(return_X_y=True)
    yield "digits", scale(X), y
    for rows, columns in ((5000, 60), (20_000, 10), (3000, 300), (4000, 1000)):
        X, y = make_classification(rows, columns, n_informative=columns // 2, random_state=0)
        yield f"{rows} x {columns}", scale(X), y


def _fit(X, y):
    started = process_time(), perf_counter()
    ERMClassifier(30).fit(X, y)
    return process_time() - started[0], perf_counter() - started[1]


def _never_rest():
    while True:
        pass


def main():
    """Print one line per data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--busy", type=int, default=0, help="processes that never rest meanwhile")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    threads = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
    print(f"BLAS threads by default: {max(threads)}; milliseconds, median of {arguments.repeats}")
    print(f"{'':15}{'CPU default':>12}{'CPU one':>10}{'wall default':>14}{'wall one':>10}")
    rivals = [multiprocessing.Process(target=_never_rest, daemon=True) for _ in range(arguments.busy)]
    for rival in rivals:
        rival.start()
    for name, X, y in _data_sets():
        default, one = [], []
        _fit(X, y)
        for _ in range(arguments.repeats):
            default.append(_fit(X, y))
            with threadpool_limits(1, user_api="blas"):
                one.append(_fit(X, y))
        (cpu, wall), (cpu_one, wall_one) = (map(median, zip(*runs, strict=True)) for runs in (default, one))
        print(f"{name:15}{1e3 * cpu:12.0f}{1e3 * cpu_one:10.0f}{1e3 * wall:14.0f}{1e3 * wall_one:10.0f}")
    for rival in rivals:
        rival.terminate()


if __name__ == "__main__":
    main()
