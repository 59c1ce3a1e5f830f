"""What encoding a large table costs, beside reading it: seconds and memory, each in a process of its own.

Run ``python benchmarks/encoding.py`` (``--rows N`` for another size than a million). The table has 30
columns: 18 numbers, two of them with gaps, 10 categories of 3 to 1000 levels, and two dates. Memory is the
peak of the whole process, reading included, over the size of the table as pandas says.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from exclusivity.tables import TableEncoder


def make(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, object] = {f"n{j}": rng.normal(size=n_rows).round(4) for j in range(18)}
    for j in range(2):
        columns[f"n{j}"] = np.where(rng.random(n_rows) < 0.1, np.nan, columns[f"n{j}"])
    for j, n_levels in enumerate(np.geomspace(3, 1000, 10).astype(int)):
        columns[f"c{j}"] = np.char.add("level", rng.integers(0, n_levels, n_rows).astype(str))
    for j in range(2):
        columns[f"d{j}"] = (np.datetime64("2015-01-01") + rng.integers(0, 3000, n_rows)).astype(str)
    pd.DataFrame(columns).to_csv(path, index=False)


def measure(path: Path, numeric: str, dtype: str) -> None:
    """In a process of its own: the peak of memory is that of this table."""
    started = perf_counter()
    table = pd.read_csv(path, parse_dates=["d0", "d1"])
    reading = perf_counter() - started
    size = table.memory_usage(deep=True).sum() / 1e6
    started = perf_counter()
    rows = TableEncoder(numeric, dtype=np.dtype(dtype)).fit_transform(table)
    encoding = perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    kind = "sparse" if hasattr(rows, "tocsr") else "dense"
    print(
        f"| {numeric} | {dtype} | {reading:.1f} s | {encoding:.1f} s | {size:.0f} MB | "
        f"{after:.0f} MB, {after / size:.1f} times | {rows.shape[1]}, {kind} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(Path(options.one[0]), *options.one[1:])
        return
    print("| numbers | type | reading | encoding | table | peak of memory | columns out |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        make(path, options.rows)
        for numeric, dtype in (("linear", "float64"), ("spline", "float64"), ("spline", "float32")):
            command = [sys.executable, __file__, "--one", str(path), numeric, dtype]
            subprocess.run(command, check=True)  # noqa: S603 -- this script


if __name__ == "__main__":
    main()
