"""The rows of X, dense or CSR, touched only block by block."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.problem.precision import RowScale, gamma

# A block of rows, with all the columns worked on at once, stays in cache: one MiB (the best of 2^14 to 2^18).
_BLOCK_NUMBERS = 1 << 17
_MIN_BLOCK_ROWS = 64
# Products of numbers in one call of a sparse product: some hundredths of a second.
_CALL_NUMBERS = 1 << 24

# Sums over rows lose the square of this, or half of all digits from ten times as much.
_FAR = 1e3
_SAMPLE_ROWS = 256
# Centred rows are dense: sparse ones are centred where that makes so many numbers at most, in all or of each.
_FEW_NUMBERS = 1 << 20
_MOST_GROWTH = 4


class DesignMatrix:
    """The N x M matrix of samples behind a few products that never copy it as a whole.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        In float32 or float64. float32 stays as it is in memory; every block is widened when it is used, so
        that all sums are float64 sums.
    offset : ndarray of shape (n_features,) or None
        What has been subtracted from every row, if anything has; see :attr:`centred`.

    Examples
    --------
    >>> import numpy as np
    >>> DesignMatrix(np.eye(3)).times(np.array([[1.0], [2.0], [3.0]])).ravel()
    array([1., 2., 3.])
    """

    def __init__(self, X: Matrix, offset: Floats | None = None) -> None:
        self.is_sparse = sparse.issparse(X)
        if self.is_sparse and X.format != "csr":
            raise TypeError(f"sparse X must be CSR (X.tocsr()); got format {X.format!r}.")
        if X.dtype not in (np.float32, np.float64) or X.ndim != 2:
            raise TypeError(f"X must be a float32 or float64 matrix; got {X.ndim}-d {X.dtype}.")
        self.X, self.offset = X, offset
        self.n_rows, self.n_features = X.shape

    @property
    def density(self) -> float:
        """The share of numbers that are stored; 1 for a dense matrix."""
        if not self.is_sparse:
            return 1.0
        return float(self.X.nnz / max(self.n_rows * self.n_features, 1))

    @property
    def n_numbers(self) -> int:
        """How many numbers are stored."""
        return int(self.X.nnz if self.is_sparse else self.X.size)

    @property
    def centred(self) -> DesignMatrix:
        """The rows around their centre where features are far from zero, else these rows themselves."""
        # Not cached itself: an object that holds itself keeps its rows until the collector comes by.
        return self if self._centred is None else self._centred

    @cached_property
    def _centred(self) -> DesignMatrix | None:
        """The rows around their centre; None where features are not far from zero.

        Of a feature that is a thousand times farther from zero than it varies, squares keep ten digits and
        products of such features fewer: what a free intercept could take over costs the digits of the rest.
        """
        centre = self._far_centre()
        if self.offset is not None or not np.any(centre):
            return None
        if self.is_sparse and self.n_rows * self.n_features > max(_FEW_NUMBERS, _MOST_GROWTH * self.X.nnz):
            return None
        X = self.X.toarray() if self.is_sparse else self.X
        return DesignMatrix(np.subtract(X, centre, dtype=float), centre)

    def _far_centre(self) -> Floats:
        """The mean of every feature far from zero, as some of the rows tell it; zero for the others."""
        some = self.X[:: max(self.n_rows // _SAMPLE_ROWS, 1)]
        some = some.toarray() if self.is_sparse else some
        spread = (some.max(axis=0) - some.min(axis=0)) / 2
        # A feature that never changes is only far from zero if it is so for the others.
        spread = np.where(spread > 0, spread, spread.max())
        mean = some.mean(axis=0, dtype=float)
        return np.where((np.abs(mean) > _FAR * spread) & (spread > 0), mean, 0.0)

    @cached_property
    def row_scale(self) -> RowScale:
        """What rounding errors of products with these rows depend on; one pass, found once."""
        moved = 0.0 if self.offset is None else float(np.linalg.norm(self.offset))
        if self.is_sparse:
            columns = np.zeros(self.n_features)
            np.maximum.at(columns, self.X.indices, np.abs(self.X.data).astype(float, copy=False))
            n_terms = int(np.diff(self.X.indptr).max(initial=0))
            return RowScale(_longest_sparse_row(self.X) * (1 + gamma(n_terms + 2)), columns, n_terms, moved)
        columns = self._largest_of_columns()
        length = float(np.linalg.norm(columns)) * (1 + gamma(self.n_features + 2))
        return RowScale(length, columns, self.n_features, moved)

    def _largest_of_columns(self) -> Floats:
        """max_i |x_ij|; rows side by side, as numpy is slow on short ones."""
        largest = np.zeros(self.n_features)
        for _, block in self.blocks(1):
            whole = len(block) - len(block) % _MIN_BLOCK_ROWS
            for part, width in ((block[:whole], _MIN_BLOCK_ROWS), (block[whole:], 1)):
                size = np.abs(part).reshape(-1, width * self.n_features).max(axis=0, initial=0.0)
                np.maximum(largest, size.reshape(width, -1).max(axis=0), out=largest)
        return largest

    def pull_terms(self, n_columns: int = 1) -> int:
        """The longest chain of additions behind a number of :meth:`transposed_times`."""
        if self.is_sparse:
            return int(self.n_rows)
        step = self._block_rows(n_columns)
        return int(min(step, self.n_rows) + self.n_rows // step)

    def blocks(self, n_columns: int) -> Iterator[tuple[slice, Matrix]]:
        """Consecutive row slices with their rows, sized for work on ``n_columns`` columns beside X's own."""
        for rows in self.row_slices(n_columns):
            yield rows, self.X[rows]

    def row_slices(self, n_columns: int) -> Iterator[slice]:
        """The same slices without their rows."""
        step = self._block_rows(n_columns)
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

    def _block_rows(self, n_columns: int) -> int:
        width = n_columns if self.is_sparse else n_columns + self.n_features
        return max(_MIN_BLOCK_ROWS, _BLOCK_NUMBERS // max(width, 1))

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


def _longest_sparse_row(X: Matrix) -> float:
    """max_i |x_i| of a CSR matrix, some rows of it at a time."""
    largest = 0.0
    step = max(_MIN_BLOCK_ROWS, _BLOCK_NUMBERS * X.shape[0] // max(X.nnz, 1))
    for start in range(0, X.shape[0], step):
        ends = X.indptr[start : start + step + 1]
        firsts = (ends[:-1] - ends[0])[np.diff(ends) > 0]  # a sum over no numbers would be one over others
        if len(firsts) > 0:
            squares = np.square(X.data[ends[0] : ends[-1]], dtype=float)
            largest = max(largest, float(np.add.reduceat(squares, firsts).max()))
    return float(np.sqrt(largest))


def _n_columns(values: Floats) -> int:
    return 1 if values.ndim == 1 else values.shape[1]
