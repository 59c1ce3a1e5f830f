"""Measure what things take: members, rows, paths, searches, bounds, integers, encoding a table.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.cost members rows path   # some parts; all without a name

Processor time, medians of interleaved repeats; ratios within one run are what to compare. ``--quick`` takes
smaller rows and fewer repeats. Memory is that of a process of its own (Linux).
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from benchmarks.measure import interleaved, peak_bytes, timed
from benchmarks.tables import duration, markdown
from benchmarks.workloads import data_rows, overlapping_rows
from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.tables import TableEncoder

Records = list[dict[str, Any]]


def fresh(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the function gives in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def members(quick: bool, repeats: int) -> Records:
    """Compare 100 members with one, 200,000 x 28, to a certified 1e-6."""
    X, y = overlapping_rows(50_000 if quick else 200_000, 28)
    found = []
    for p in (1, 2):
        models = {f"K = {K}": ERMClassifier(K, C=0.2 * K, p=p, tol=1e-6) for K in (1, 100)}
        times = interleaved({name: partial(model.fit, X, y) for name, model in models.items()}, repeats)
        ratio = times["K = 100"] / times["K = 1"]
        found.append({"p": p} | {name: duration(t) for name, t in times.items()} | {"ratio": f"{ratio:.2f}"})
    return found


def rows(quick: bool, repeats: int) -> Records:
    """Measure time against rows, 28 features, to a certified 1e-6: the log-log slope."""
    sizes = [100_000, 200_000, 400_000] if quick else [100_000, 400_000, 1_000_000, 4_000_000]
    times: dict[int, list[float]] = {1: [], 2: []}
    for size in sizes:
        X, y = overlapping_rows(size, 28)
        actions = {str(p): partial(ERMClassifier(1, C=0.2, p=p, tol=1e-6).fit, X, y) for p in times}
        for p, seconds in interleaved(actions, repeats).items():
            times[int(p)].append(seconds)
    return [
        {"p": p}
        | {f"{size:,}": duration(t) for size, t in zip(sizes, taken, strict=True)}
        | {"log-log slope": f"{np.polyfit(np.log(sizes), np.log(taken), 1)[0]:.2f}"}
        for p, taken in times.items()
    ]


def path(quick: bool, repeats: int) -> Records:
    """Compare a path of 30 values of C with five cold fits over the same range, on 100,000 x 50."""
    X, y = overlapping_rows(30_000 if quick else 100_000, 50)
    found = []
    for grid in (erm_path(X, y, Cs=30, n_estimators=1).Cs, np.logspace(-5, 2, 30)):
        for p, tol in ((1, 1e-4), (1, 1e-6), (2, 1e-4), (2, 1e-6)):

            def cold(values: Any, p: int = p, tol: float = tol) -> None:
                for C in values:
                    ERMClassifier(1, C=C, p=p, tol=tol).fit(X, y)

            few = grid[np.linspace(0, 29, 5).round().astype(int)]
            path_of = partial(erm_path, X, y, Cs=grid, n_estimators=1, p=p, tol=tol)
            times = interleaved({"path": path_of, "five fits": partial(cold, few)}, repeats)
            row = {"p": p, "tol": f"{tol:.0e}", "C": f"{grid[0]:.0e} to {grid[-1]:.0e}"}
            row |= {name: duration(t) for name, t in times.items()}
            row |= {"ratio": f"{times['path'] / times['five fits']:.2f}"}
            found.append(row | {"all 30 fits": duration(timed(partial(cold, grid))[2])})
    return found


def search(_quick: bool, repeats: int) -> Records:
    """Search for C among ten values with five folds, on 500 x 20."""
    X, y = overlapping_rows(500, 20)
    costs, found = np.logspace(-3, 1.5, 10), []
    for p in (2, 1):
        rival = LinearSVC(loss={1: "hinge", 2: "squared_hinge"}[p], dual=p == 1, max_iter=100_000)
        models = {
            "GridSearchCV(ERMClassifier)": GridSearchCV(ERMClassifier(1, p=p), {"C": costs}, cv=5),
            "GridSearchCV(LinearSVC)": GridSearchCV(rival, {"C": costs}, cv=5),
            "ERMClassifierCV": ERMClassifierCV(1, p=p, Cs=costs, cv=5),
        }
        times = interleaved({name: partial(model.fit, X, y) for name, model in models.items()}, repeats)
        base = times["GridSearchCV(LinearSVC)"]
        found.append({"p": p} | {name: f"{duration(t)} (x {t / base:.2f})" for name, t in times.items()})
    return found


def bounds(quick: bool, repeats: int) -> Records:
    """Compare fits with signs and boxes with free ones, to a certified 1e-6.

    "signs": every second weight at least 0, the others at most 0; "boxes": within half of the largest one.
    """
    found = []
    for name in ("small" if quick else "500,000 x 50", "ijcnn1"):
        X, y = data_rows("ijcnn1") if name == "ijcnn1" else overlapping_rows(20_000 if quick else 500_000, 50)
        for title, loss in {"p = 1": {"p": 1}, "p = 2": {"p": 2}, "logistic": {"loss": "logistic"}}.items():
            largest = np.abs(ERMClassifier(1, C=1.0, tol=1e-3, **loss).fit(X, y).coef_).max()
            kinds: dict[str, dict[str, Any]] = {
                "free": {},
                "signs": {"monotonic_cst": np.where(np.arange(X.shape[1]) % 2 == 0, 1, -1)},
                "boxes": {"coef_bounds": (-largest / 2, largest / 2)},
            }
            models = {kind: ERMClassifier(1, C=1.0, tol=1e-6, **loss, **kinds[kind]) for kind in kinds}
            times = interleaved({kind: partial(model.fit, X, y) for kind, model in models.items()}, repeats)
            ratios = {kind: f"{times[kind] / times['free']:.1f}" for kind in ("signs", "boxes")}
            found.append({"rows": name, "loss": title, "free": duration(times["free"])} | ratios)
    return found


def integers(quick: bool, _repeats: int) -> Records:
    """Measure the peak of fits on integers, rows included, beside the same numbers in float64, in MB."""
    shapes = ((100_000, 100), (10_000, 1_000), (1_000, 10_000), (5_000, 2_000), (100_000, 1_000))
    cases = [("int8", shape) for shape in shapes]
    cases += [("bool", (100_000, 1_000)), ("int8 CSR", (100_000, 20_000))]
    found = []
    for kind, shape in cases[: 2 if quick else None]:
        for p in (2, 1):
            (size, peak), (_, floats) = (
                fresh(_peak, kind, shape, p, t) for t in (kind.split()[0], "float64")
            )
            row = {"rows": f"{shape[0]:,} x {shape[1]:,} {kind}", "p": p, "data": f"{size:.0f}"}
            row |= {"peak of fit": f"{peak:.0f}", "aim": f"{2 * size + 50:.0f}", "float64": f"{floats:.0f}"}
            found.append(row)
    return found


def _peak(kind: str, shape: tuple[int, int], p: int, dtype: str) -> tuple[float, float]:
    """Return the megabytes of the rows, and of the rows and the peak of a fit."""
    rng = np.random.default_rng(0)
    if "CSR" in kind:
        indices = np.sort(rng.integers(shape[1], size=(shape[0], 100), dtype=np.int32), axis=1)
        data = rng.integers(1, 4, size=indices.size, dtype=np.int8).astype(dtype, copy=False)
        indptr = np.arange(0, indices.size + 1, 100, dtype=np.int32)
        X: Any = sparse.csr_array((data, indices.ravel(), indptr), shape=shape)
        n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        X = rng.integers(0, 2 if kind == "bool" else 4, size=shape, dtype=np.int8).astype(dtype, copy=False)
        n_bytes = X.nbytes
    first = min(shape[1], 50)
    scores = X[:, :first] @ rng.standard_normal(first)
    y = scores + scores.std() * rng.standard_normal(shape[0]) > np.median(scores)
    ERMClassifier(1, p=p).fit(X[:200], np.arange(200) % 2)  # imports and first calls are not part of it
    ctypes.CDLL(None).malloc_trim(0)  # what was freed but kept would hide as much of what the fit takes
    before = peak_bytes(reset=True)
    ERMClassifier(1, C=1, p=p).fit(X, y)
    return n_bytes / 1e6, (peak_bytes() - before + n_bytes) / 1e6


def encoding(quick: bool, repeats: int) -> Records:
    """Encode a table of 30 mixed columns beside reading it: seconds, and memory in units of the table."""
    ways = (("linear", "float64"), ("spline", "float64"), ("spline", "float32"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        _write_table(file, 50_000 if quick else 1_000_000)
        return [fresh(_encode, file, *way, repeats) for way in ways]


def _write_table(file: Path, n_rows: int) -> None:
    """Write 18 numbers, two of them with missing values, 10 categories of 3 to 1000 levels, and two dates."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"n{j}": rng.normal(size=n_rows).round(4) for j in range(18)}
    columns |= {f"n{j}": np.where(rng.random(n_rows) < 0.1, np.nan, columns[f"n{j}"]) for j in range(2)}
    for j, n_levels in enumerate(np.geomspace(3, 1000, 10).astype(int)):
        columns[f"c{j}"] = np.char.add("level", rng.integers(0, n_levels, n_rows).astype(str))
    for j in range(2):
        columns[f"d{j}"] = (np.datetime64("2015-01-01") + rng.integers(0, 3000, n_rows)).astype(str)
    pd.DataFrame(columns).to_csv(file, index=False)


def _encode(file: Path, numeric: str, dtype: str, repeats: int) -> dict[str, Any]:
    read = partial(pd.read_csv, file, parse_dates=["d0", "d1"])
    encoder = TableEncoder(numeric, dtype=np.dtype(dtype))
    table = read()
    size, before = table.memory_usage(deep=True).sum(), peak_bytes(reset=True)
    encoder.fit_transform(table)
    peak = peak_bytes()
    times = interleaved({"reading": read, "encoding": partial(encoder.fit_transform, table)}, repeats)
    row: dict[str, Any] = {"numbers": numeric, "type": dtype} | {
        name: duration(t) for name, t in times.items()
    }
    memory = {
        "table and encoding": f"{(size + peak - before) / size:.1f}",
        "whole process": f"{peak / size:.1f}",
    }
    return row | {"times reading": f"{times['encoding'] / times['reading']:.1f}"} | memory


PARTS = {each.__name__: each for each in (members, rows, path, search, bounds, integers, encoding)}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, help="default: 5; 3 with --quick")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    for name in args.parts or PARTS:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}; choose from {', '.join(PARTS)}")
        print(f"{name}: {(PARTS[name].__doc__ or '').splitlines()[0]}\n", flush=True)
        try:
            found = PARTS[name](args.quick, args.repeats or (3 if args.quick else 5))
        except OSError as error:  # a data set that is not at hand
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        print(markdown(pd.DataFrame(found)), "\n", flush=True)


if __name__ == "__main__":
    main()
