"""A path of 30 values of C against separate cold fits, on 100,000 x 50 rows of overlapping classes.

Both as a user calls them: ``erm_path(X, y, Cs=...)`` once, and ``ERMClassifier(C=...).fit(X, y)`` for five
values of C spread over the same range, to the same ``tol``. Repeats are interleaved and the median counts;
CPU time is what tells on a shared machine, wall time stands beside it. Bar: the path takes less than the
five fits.

The fits are also made for all 30 values once, so that nobody has to trust the choice of five.

Run ``OPENBLAS_NUM_THREADS=1 python benchmarks/path.py [--quick] [--repeats 5]``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from exclusivity import ERMClassifier, erm_path

N_COSTS = 30
FITS = 5


def make_rows(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes: about one row in five on the wrong side."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    direction = rng.standard_normal(n_features) / np.sqrt(n_features)
    y = (X @ direction + 0.7 * rng.standard_normal(n_rows) + 0.3 > 0).astype(int)
    return X, y


def timed(action: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, wall seconds, and what came out."""
    wall, cpu = perf_counter(), process_time()
    outcome = action()
    return process_time() - cpu, perf_counter() - wall, outcome


def compare(X: np.ndarray, y: np.ndarray, p: float, tol: float, Cs: np.ndarray, repeats: int) -> None:
    chosen = Cs[np.linspace(0, len(Cs) - 1, FITS).round().astype(int)]

    def cold(values: np.ndarray) -> float:
        gaps = [ERMClassifier(1, C=C, p=p, tol=tol).fit(X, y).dual_gap_[0] for C in values]
        return float(max(gaps))

    path_times, fit_times = [], []
    for _ in range(repeats):
        path_times.append(timed(lambda: erm_path(X, y, Cs=Cs, n_estimators=1, p=p, tol=tol))[:2])
        fit_times.append(timed(lambda: cold(chosen))[:2])
    path = erm_path(X, y, Cs=Cs, n_estimators=1, p=p, tol=tol)
    every, _, _ = timed(lambda: cold(Cs))
    (path_cpu, path_wall), (fit_cpu, fit_wall) = (
        [median(column) for column in zip(*times, strict=True)] for times in (path_times, fit_times)
    )
    print(
        f"  p={p} tol={tol:.0e} C={Cs[0]:.0e}..{Cs[-1]:.0e}: "
        f"path {path_cpu:.2f} s CPU ({path_wall:.2f} wall), "
        f"{FITS} fits {fit_cpu:.2f} s ({fit_wall:.2f}); ratio {path_cpu / fit_cpu:.2f} CPU, "
        f"{path_wall / fit_wall:.2f} wall (bar 1); {N_COSTS} fits {every:.2f} s; "
        f"largest gap of the path {path.gaps.max():.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="30,000 rows")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    n_rows = 30_000 if arguments.quick else 100_000
    X, y = make_rows(n_rows, 50)
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    print(f"{n_rows:,} x 50, {N_COSTS} values of C, {arguments.repeats} repeats, BLAS threads: {threads}")
    default = erm_path(X, y, Cs=N_COSTS, n_estimators=1).Cs
    for Cs in (default, np.logspace(-5, 2, N_COSTS)):
        for p in (1, 2):
            for tol in (1e-4, 1e-6):
                compare(X, y, p, tol, Cs, arguments.repeats)


if __name__ == "__main__":
    main()
