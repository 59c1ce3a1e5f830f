"""Measure time and memory of the robust additive model, one thread.

    pip install interpret-core
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.additive [--largest 1000000] [CASE ...]

Cases: ``peer`` (100,000 x 30 mixed columns, ``max_broken=2``, gap 1e-2, against an EBM without interactions
in the same run), ``rows`` (fits of more and more rows, with the peak memory of each beside the encoded
table), ``small`` (1,000 x 30) and ``certify`` (certificates against predictions). Times are those of the
processor. Every fit has a process of its own, forked from one that has imported everything.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from exclusivity import RobustAdditiveClassifier

N_COLUMNS = 30


def mixed(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Return rows of twenty numbers, five small whole numbers and five categories, 3 % of them missing."""
    rng = np.random.default_rng(seed)
    score, columns = np.zeros(n_rows), {}
    for place in range(N_COLUMNS):
        if place < 20:
            cells: Any = rng.normal(size=n_rows)
            score += np.tanh(cells) * (1 + place % 3) / 6
        elif place < 25:
            cells = rng.integers(0, 10, n_rows).astype(float)
            score += (cells - 4.5) / 15
        else:
            codes = rng.integers(0, 8, n_rows)
            cells = np.array(list("abcdefgh"), dtype=object)[codes]
            score += (codes % 3 - 1) / 4
        cells[rng.random(n_rows) < 0.03] = np.nan if place < 25 else None
        columns[f"c{place}"] = cells
    return pd.DataFrame(columns), np.where(score + rng.logistic(size=n_rows) > 0, "yes", "no")


def apart(task: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Return what a task finds in a process of its own."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(task, args)


def memory() -> float:
    """Return the largest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def fit_robust(n_rows: int, max_broken: int = 2) -> dict[str, Any]:
    """Fit the robust model."""
    X, y = mixed(n_rows)
    before, start = memory(), process_time()
    model = RobustAdditiveClassifier(max_broken, tol=1e-2).fit(X, y)
    seconds = process_time() - start
    encoded = n_rows * N_COLUMNS * 12  # a whole number and a weight for each cell
    found = {"seconds": seconds, "gap": model.dual_gap_[0], "evaluations": model.n_iter_[0]}
    return found | {"memory / encoded table": (memory() - before) / encoded}


def fit_boosted(n_rows: int) -> dict[str, Any]:
    """Fit an EBM without interactions."""
    from interpret.glassbox import ExplainableBoostingClassifier  # noqa: PLC0415 -- of this peer alone

    X, y = mixed(n_rows)
    start = process_time()
    ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=0).fit(X, y)
    return {"seconds": process_time() - start}


def certificates(n_rows: int) -> dict[str, Any]:
    """Predict and certify rows, three times each in turn."""
    X, y = mixed(20_000)
    model = RobustAdditiveClassifier(2).fit(X, y)
    rows, _ = mixed(n_rows, 1)
    seconds = []
    for _ in range(3):
        times = [process_time()]
        for method in (model.predict, model.certify):
            method(rows)
            times.append(process_time())
        seconds.append(np.diff(times))
    predict, certify = np.median(seconds, axis=0)
    return {"predict": predict, "certify": certify, "ratio": certify / predict}


def show(name: str, found: dict[str, Any]) -> None:
    """Print one line."""
    print(name.ljust(24), "  ".join(f"{key} {value:.4g}" for key, value in found.items()), flush=True)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=[], metavar="CASE")
    parser.add_argument("--largest", type=int, default=1_000_000, help="rows of the largest fit")
    options = parser.parse_args()
    cases = options.cases or ["small", "peer", "rows", "certify"]
    if "small" in cases:
        show("1,000 x 30", apart(fit_robust, 1000))
    if "peer" in cases:
        robust = apart(fit_robust, 100_000)
        show("100,000 x 30, robust", robust)
        boosted = apart(fit_boosted, 100_000)
        show("100,000 x 30, EBM", boosted)
        show("robust / EBM", {"seconds": robust["seconds"] / boosted["seconds"]})
    if "rows" in cases:
        for n_rows in (options.largest // 16, options.largest // 4, options.largest):
            show(f"{n_rows:,} x 30", apart(fit_robust, n_rows))
    if "certify" in cases:
        show(f"{options.largest:,} rows", apart(certificates, options.largest))


if __name__ == "__main__":
    main()
