"""Peak memory of fits on integers and booleans: at most twice the data plus 50 MB is the aim.

    OPENBLAS_NUM_THREADS=1 python benchmarks/integers.py

Every line is a process of its own that makes the rows and prints the peak of its resident memory during
``fit``, the rows included and what it held before left out; beside it the same numbers in float64. Linux
only: elsewhere the peak cannot be started anew.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
from scipy import sparse

from exclusivity import ERMClassifier
from exclusivity.benchmark.memory import peak_bytes, reset_peak

CASES = [
    (kind, shape, p)
    for kind, shape in (
        ("int8", (100_000, 100)),
        ("int8", (100_000, 1_000)),
        ("bool", (100_000, 1_000)),
        ("int8", (10_000, 1_000)),
        ("int8", (1_000, 10_000)),
        ("int8", (5_000, 2_000)),
        ("int8 CSR", (100_000, 20_000)),
    )
    for p in (2, 1)
]
STORED_PER_ROW = 100
ALLOWED_MEGABYTES = 50.0


def rows(kind: str, shape: tuple[int, int], dtype: str) -> tuple[object, np.ndarray, int]:
    """Rows of small numbers that overlap in their classes, y, and how many bytes the rows take."""
    rng = np.random.default_rng(0)
    n_rows, n_features = shape
    if "CSR" in kind:
        indices = np.sort(rng.integers(n_features, size=(n_rows, STORED_PER_ROW), dtype=np.int32), axis=1)
        data = rng.integers(1, 4, size=indices.size, dtype=np.int8).astype(dtype, copy=False)
        indptr = np.arange(0, indices.size + 1, STORED_PER_ROW, dtype=np.int32)
        X = sparse.csr_array((data, indices.ravel(), indptr), shape=shape)
        n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        top = 2 if kind == "bool" else 4
        X = rng.integers(0, top, size=shape, dtype=np.int8).astype(dtype, copy=False)
        n_bytes = X.nbytes
    direction = rng.standard_normal(n_features)
    first = X[:, :1] @ direction[:1]
    scores = first + sum(X[:, [j]] @ direction[[j]] for j in range(1, min(n_features, 50)))
    scores = scores + scores.std() * rng.standard_normal(n_rows)
    return X, scores > np.median(scores), n_bytes


def measure(kind: str, shape: tuple[int, int], p: int, dtype: str) -> None:
    X, y, n_bytes = rows(kind, shape, dtype)
    ERMClassifier(1, p=p).fit(X[:200], np.arange(200) % 2)  # imports and first calls are not part of it
    # What was freed but kept by the allocator would hide as much of what the fit takes.
    ctypes.CDLL(None).malloc_trim(0)
    reset_peak()
    before = peak_bytes()
    model = ERMClassifier(1, C=1, p=p).fit(X, y)
    print(n_bytes, peak_bytes() - before + n_bytes, float(model.dual_gap_[0]))


def main() -> None:
    if len(sys.argv) > 1:
        kind, n_rows, n_features, p, dtype = sys.argv[1:]
        measure(kind, (int(n_rows), int(n_features)), int(p), dtype)
        return
    print("| rows | p | data, MB | peak of fit, MB | allowed | float64, MB |")
    print("|---|---|---|---|---|---|")
    for kind, shape, p in CASES:
        peaks = []
        for dtype in (kind.split()[0], "float64"):
            words = [kind, *map(str, shape), str(p), dtype]
            done = subprocess.run(  # noqa: S603 -- this very file
                [sys.executable, __file__, *words], capture_output=True, text=True, check=True
            )
            n_bytes, peak, _ = map(float, done.stdout.split())
            peaks.append((n_bytes / 1e6, peak / 1e6))
        (size, peak), (_, floats) = peaks
        name = f"{shape[0]:,} x {shape[1]:,} {kind}"
        print(
            f"| {name} | {p} | {size:.0f} | {peak:.0f} | {2 * size + ALLOWED_MEGABYTES:.0f} | {floats:.0f} |"
        )


if __name__ == "__main__":
    main()
