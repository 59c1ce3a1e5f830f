"""The rows of X, dense or CSR, touched only block by block."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from exclusivity.problem.arrays import Floats, Matrix

# A block of rows, with all the columns worked on at once, stays in cache: one MiB (the best of 2^14 to 2^18).
_BLOCK_NUMBERS = 1 << 17
_MIN_BLOCK_ROWS = 64
# Products of numbers in one call of a sparse product: some hundredths of a second.
_CALL_NUMBERS = 1 << 24


class DesignMatrix:
    """The N x M matrix of samples behind a few products that never copy it as a whole.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        In float32 or float64. float32 stays as it is in memory; every block is widened when it is used, so
        that all sums are float64 sums.

    Examples
    --------
    >>> import numpy as np
    >>> DesignMatrix(np.eye(3)).times(np.array([[1.0], [2.0], [3.0]])).ravel()
    array([1., 2., 3.])
    """

    def __init__(self, X: Matrix) -> None:
        self.is_sparse = sparse.issparse(X)
        if self.is_sparse and X.format != "csr":
            raise TypeError(f"sparse X must be CSR (X.tocsr()); got format {X.format!r}.")
        if X.dtype not in (np.float32, np.float64) or X.ndim != 2:
            raise TypeError(f"X must be a float32 or float64 matrix; got {X.ndim}-d {X.dtype}.")
        self.X = X
        self.n_rows, self.n_features = X.shape

    @property
    def density(self) -> float:
        """The share of numbers that are stored; 1 for a dense matrix."""
        if not self.is_sparse:
            return 1.0
        return float(self.X.nnz / max(self.n_rows * self.n_features, 1))

    @cached_property
    def largest_row_norm(self) -> float:
        """max_i |x_i|, found once."""
        largest = 0.0
        for _, block in self.blocks(self.n_features if self.is_sparse else 1):
            if self.is_sparse:
                squares = np.asarray(block.power(2, dtype=float).sum(axis=1))
            else:
                squares = np.einsum("ij,ij->i", block, block, dtype=float)
            largest = max(largest, float(squares.max()))
        return float(np.sqrt(largest))

    def blocks(self, n_columns: int) -> Iterator[tuple[slice, Matrix]]:
        """Consecutive row slices with their rows, sized for work on ``n_columns`` columns beside X's own."""
        for rows in self.row_slices(n_columns):
            yield rows, self.X[rows]

    def row_slices(self, n_columns: int) -> Iterator[slice]:
        """The same slices without their rows."""
        width = n_columns if self.is_sparse else n_columns + self.n_features
        step = max(_MIN_BLOCK_ROWS, _BLOCK_NUMBERS // max(width, 1))
        for start in range(0, self.n_rows, step):
            yield slice(start, min(start + step, self.n_rows))

    def _views(self, n_columns: int) -> Iterator[tuple[slice, Matrix]]:
        """Rows of a CSR matrix without copies: one call into compiled code ends soon enough for Ctrl-C.

        The product with a transposed view writes all features, so that a view is not much smaller than that.
        """
        X, indptr = self.X, self.X.indptr
        n_views = X.nnz * n_columns // max(_CALL_NUMBERS, 4 * self.n_features * n_columns) + 1
        if n_views == 1:
            yield slice(0, self.n_rows), X
            return
        ends = np.searchsorted(indptr, np.linspace(0, X.nnz, n_views + 1)[1:-1])
        for start, stop in pairwise([0, *np.unique(ends).tolist(), self.n_rows]):
            inside = slice(int(indptr[start]), int(indptr[stop]))
            parts = X.data[inside], X.indices[inside], indptr[start : stop + 1] - indptr[start]
            yield slice(start, stop), type(X)(parts, shape=(stop - start, self.n_features))

    def times(self, weights: Floats) -> Floats:
        """X @ weights for an M x K matrix, or for a vector."""
        if self.is_sparse:
            return np.concatenate([view @ weights for _, view in self._views(_n_columns(weights))])
        product = np.empty((self.n_rows, *weights.shape[1:]))
        for rows, block in self.blocks(_n_columns(weights)):
            product[rows] = block @ weights
        return product

    def absolute_times(self, weights: Floats) -> Floats:
        """|X| @ weights for an M x K matrix, without a second X in memory."""
        product = np.empty((self.n_rows, weights.shape[1]))
        for rows, block in self.blocks(self.n_features + weights.shape[1]):
            product[rows] = abs(block) @ weights
        return product

    def transposed_times(self, values: Floats) -> Floats:
        """X.T @ values for an N x K matrix, or for a vector."""
        product = np.zeros((self.n_features, *values.shape[1:]))
        if self.is_sparse:
            for rows, view in self._views(_n_columns(values)):
                product += view.T @ values[rows]
            return product
        for rows, block in self.blocks(_n_columns(values)):
            product += block.T @ values[rows]
        return product

    def mean(self, weights: Floats) -> Floats:
        """The weighted mean row."""
        return np.asarray(self.transposed_times(weights) / weights.sum())

    def column_scatter(self, weights: Floats, mean: Floats) -> Floats:
        """sum_i s_i (x_ij - mean_j)^2 for every feature j: the diagonal of :meth:`gram`."""
        scatter = np.zeros(self.n_features)
        if self.is_sparse:
            scatter += self.X.power(2, dtype=float).T @ weights
            return np.asarray(np.maximum(scatter - weights.sum() * mean**2, 0.0))
        for rows, block in self.blocks(0):
            scatter += weights[rows] @ (block - mean) ** 2
        return scatter

    def gram(self, weights: Floats, mean: Floats) -> Floats:
        """sum_i s_i (x_i - mean)(x_i - mean)^T, M x M; ``mean`` is the weighted mean, or zero."""
        roots = np.sqrt(weights)[:, None]
        if self.is_sparse:
            scaled = self.X.multiply(roots).tocsr()
            product = (scaled.T @ scaled).toarray().astype(float, copy=False)
            return np.asarray(product - weights.sum() * np.outer(mean, mean))
        product = np.zeros((self.n_features, self.n_features))
        for rows, block in self.blocks(0):
            centred = (block - mean) * roots[rows]
            product += centred.T @ centred
        return product

    def kernel(self, mean: Floats) -> Floats:
        """(X - mean)(X - mean)^T, N x N, in blocks of columns so that no centred copy of X is made."""
        if self.is_sparse:
            wide = self.X.astype(float, copy=False)
            product = (wide @ wide.T).toarray()
            shift = self.times(mean)
            return np.asarray(product - shift[:, None] - shift + mean @ mean)
        product = np.zeros((self.n_rows, self.n_rows))
        step = max(_MIN_BLOCK_ROWS, _BLOCK_NUMBERS // self.n_rows)
        for start in range(0, self.n_features, step):
            columns = slice(start, start + step)
            centred = self.X[:, columns] - mean[columns]
            product += centred @ centred.T
        return product


def _n_columns(values: Floats) -> int:
    return 1 if values.ndim == 1 else values.shape[1]
