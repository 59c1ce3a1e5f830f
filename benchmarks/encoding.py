"""What encoding a large table costs, beside reading it: processor time and memory, in a process for each way.

Run ``python benchmarks/encoding.py`` (``--rows N`` for another size than a million). The table has 30
columns: 18 numbers, two of them with gaps, 10 categories of 3 to 1000 levels, and two dates.

Seconds are processor time, medians of interleaved repeats. ``first`` is the first encoding of the process:
where memory is taken for the first time the system has to find it, which some machines are slow at. Memory is
the table, as ``memory_usage(deep=True)`` of pandas says, and what encoding it takes at its peak, the output
included; then that of the whole process, with Python, its libraries, and what reading left behind.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

from exclusivity.tables import TableEncoder

REPEATS = 5


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
    reading, encoding, memory = [], [], 0.0
    for repeat in range(REPEATS):
        started = process_time()
        table = pd.read_csv(path, parse_dates=["d0", "d1"])
        reading.append(process_time() - started)
        before = resident()
        started = process_time()
        rows = TableEncoder(numeric, dtype=np.dtype(dtype)).fit_transform(table)
        encoding.append(process_time() - started)
        if repeat == 0:  # later ones find memory that earlier ones have left
            size = table.memory_usage(deep=True).sum() / 1e6
            peak = resident("VmHWM")
            memory = size + peak - before
            kind = "sparse" if hasattr(rows, "tocsr") else "dense"
            width = rows.shape[1]
        del table, rows
    read, encoded = statistics.median(reading), statistics.median(encoding)
    print(
        f"| {numeric} | {dtype} | {read:.2f} s | {encoded:.2f} s, {encoded / read:.2f} times | "
        f"{encoding[0]:.2f} s | {size:.0f} MB | {memory:.0f} MB, {memory / size:.1f} times | "
        f"{peak / size:.1f} times | {width}, {kind} |"
    )


def resident(what: str = "VmRSS") -> float:
    """Memory of this process in megabytes, or its peak (VmHWM). A peak of getrusage may be the parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith(what))
    return int(found.split()[1]) * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(Path(options.one[0]), *options.one[1:])
        return
    print("| numbers | type | reading | encoding | first | table | memory | process | columns out |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        make(path, options.rows)
        for numeric, dtype in (("linear", "float64"), ("spline", "float64"), ("spline", "float32")):
            command = [sys.executable, __file__, "--one", str(path), numeric, dtype]
            subprocess.run(command, check=True)  # noqa: S603 -- this script


if __name__ == "__main__":
    main()
