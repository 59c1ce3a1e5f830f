"""Square matrices of the rows or the features of a CSR matrix; integers and booleans are widened in chunks.

Floats of all rows at once, and their indices once more, would be many times the memory of such rows.
"""

from __future__ import annotations

import numpy as np

from exclusivity._typing import Floats, Matrix

# Up to this share a sparse product takes less time than one of dense rows, whose result has no indices:
# 10,000 x 1,000 with p = 2, all numbers stored, takes 29 s with sparse ones and 1.3 s with dense ones.
_SPARSE_SHARE = 0.1
# With indices and the copies that scipy makes, some 10 MB.
_CHUNK_NUMBERS = 1 << 18


def is_mostly_zero(X: Matrix) -> bool:
    """Whether so few numbers are stored that products should be sparse."""
    return bool(X.nnz <= _SPARSE_SHARE * X.shape[0] * X.shape[1])


def sparse_product(X: Matrix, ridge: Floats) -> Floats:
    """X diag(1/ridge) X^T as a dense matrix."""
    total = np.empty((X.shape[0], X.shape[0]))
    chunks = _chunks(X)
    for at, rows in enumerate(chunks):
        scaled = _some(X, rows).multiply(1 / ridge).tocsr()
        for others in chunks[at:]:
            total[rows, others] = (scaled @ _some(X, others).astype(float, copy=False).T).toarray()
            if others != rows:
                total[others, rows] = total[rows, others].T
    return total


def sparse_gram(X: Matrix, weights: Floats) -> Floats:
    """sum_i h_i (x_i, 1)(x_i, 1)^T over the rows with h_i > 0."""
    M = X.shape[1]
    gram = np.zeros((M + 1, M + 1))
    for chunk in _chunks(X):
        active = chunk.start + np.flatnonzero(weights[chunk])
        roots = np.sqrt(weights[active])
        rows = X[active] if len(active) < X.shape[0] else X
        scaled = rows.multiply(roots[:, None]).tocsr()
        gram[:M, :M] += (scaled.T @ scaled).toarray()
        gram[:M, M] += scaled.T @ roots
    gram[M, :M], gram[M, M] = gram[:M, M], weights.sum()
    return gram


def _chunks(X: Matrix) -> list[slice]:
    """Integers in chunks; floats as a whole, as a sum of many sparse products would take longer."""
    n_rows, step = X.shape[0], X.shape[0]
    if X.dtype.kind != "f":
        step = _CHUNK_NUMBERS * n_rows // max(X.nnz, 1)
    return [slice(start, start + max(step, 1)) for start in range(0, n_rows, max(step, 1))]


def _some(X: Matrix, rows: slice) -> Matrix:
    """These rows; all of them without a copy."""
    return X if rows.start == 0 and rows.stop >= X.shape[0] else X[rows]
