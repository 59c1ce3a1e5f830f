"""The rows of X, dense or CSR, touched only block by block, and how far products with them may be off.

Let u = 2^-53. A sum of n products, added in any order, is off by at most gamma_n sum |products| with
gamma_n = n u / (1 - n u). With the longest row r = max_i |x_i| (or feature by feature, whichever
is less) this gives

* scores:  |error of x_i . w + b|  <=  delta = gamma_(M+1) r |w| + T u, and as much for t_i - y (x_i . w + b),
  |t_i| <= T, but for a part relative to itself. The loss of the true shortfalls is at most that of all
  shortfalls raised by delta; where only the sum L = sum_i c_i max(0, m_i)^p is known, Minkowski's inequality
  gives

      sum_i c_i max(0, m_i + delta)^p  <=  (L^(1/p) + delta (sum_i c_i)^(1/p))^p ;

* dual weights:  the vector X^T (y alpha) is off by at most gamma_n r sum_i alpha_i, n rows being added up;
* balance:  what was computed as sum_i y_i alpha_i = 0 is off by tau <= gamma_n sum_i alpha_i. With a free
  intercept the bound holds for sum y alpha = 0 only: taking tau from rows of the heavier
  class makes it so, costs tau, and lengthens X^T (y alpha) by at most r tau.

The first and the last two grow with r: features far from zero cost digits. Sums of numbers of one sign
(losses, squares, conjugates) are off by their share gamma_n alone.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.kernels import compiled

UNIT = 2.0**-53
"""The relative error of one rounding."""

LONG_UNIT = float(np.finfo(np.longdouble).eps) / 2
"""The same in numpy's longest floats: 2^-64 on most machines, and 2^-53 where there are none."""

_RUN = 4096
_ALL = slice(None)

# A block of rows, with all the columns worked on at once, stays in cache: one MiB (the best of 2^14 to 2^18).
_BLOCK_NUMBERS = 1 << 17
_MIN_BLOCK_ROWS = 64
# Numbers in one call of a sparse product: some hundredths of a second, with many columns a few tenths.
_CALL_NUMBERS = 1 << 24
# And where they have to be made floats first: eight MiB of them.
_WIDENED_NUMBERS = 1 << 20

# Sums over rows lose the square of this, or half of all digits from ten times as much.
_FAR = 1e3
_SAMPLE_ROWS = 256
FEW_NUMBERS = 1 << 20
"""Up to so many numbers in X a second copy of it, dense or in longer floats, costs little."""

# Centred rows are dense: beyond that, sparse ones are centred where each stored number makes at most so many.
_MOST_GROWTH = 4
# As many numbers as fit into a cache.
_CACHED_NUMBERS = 1 << 17


def gamma(n_roundings: float, unit: float = UNIT) -> float:
    """Return the relative error after so many roundings of ``unit`` in a row; infinite where nothing is left.

    Parameters
    ----------
    n_roundings : float
        How many roundings.
    unit : float
        The relative error of one.

    Examples
    --------
    >>> gamma(2**43) == 2**-10 / (1 - 2**-10)
    True
    """
    share = n_roundings * unit
    return share / (1 - share) if share < 1 else np.inf


def run_terms(n_terms: int) -> int:
    """Return the longest chain of additions in :func:`weighted_total`."""
    return min(n_terms, _RUN) + n_terms // _RUN


def weighted_total(weights: Floats, values: Floats) -> float:
    """Compute sum_i s_i sum_k v_ik in runs: a single chain of a million additions could lose six digits.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        The s_i.
    values : ndarray of shape (n, k) or (n,)
        The v_ik.
    """
    # s^T V 1 as two products: several times faster than a sum along the short axis.
    if len(weights) <= _RUN:
        return float((weights @ values).sum())
    starts = range(0, len(weights), _RUN)
    return float(sum((weights[at : at + _RUN] @ values[at : at + _RUN]).sum() for at in starts))


@dataclass(frozen=True, eq=False)
class RowScale:
    """The lengths of rows and columns on which rounding errors of products depend.

    Parameters
    ----------
    length : float
        The longest row r = max_i |x_i|, or more.
    columns : ndarray of shape (n_features,)
        The largest |x_ij| of every feature: where features differ in their scales, sum_j |w_j| max_i |x_ij|
        is far below r |w|.
    n_terms : int
        So many numbers are in a row, at most.
    offset : float
        The length of what was subtracted from every row, if anything was: with it the intercept loses digits.
    target : float
        The largest |t_i|, or 1.
    """

    length: float
    columns: Floats
    n_terms: int
    offset: float = 0.0
    target: float = 1.0

    def __add__(self, other: RowScale) -> RowScale:
        """Return the scale of both sets of rows."""
        return RowScale(
            max(self.length, other.length),
            np.maximum(self.columns, other.columns),
            max(self.n_terms, other.n_terms),
            max(self.offset, other.offset),
            max(self.target, other.target),
        )

    def score_error(self, weights: Floats, intercepts: Floats | float) -> Floats:
        """Bound by delta how far the scores x_i . w_k + b_k may be off: one number per column of weights."""
        squares = weights @ weights if weights.ndim == 1 else np.einsum("jk,jk->k", weights, weights)
        norms = np.sqrt(squares)
        # One of the two may be beyond the range of numbers, or infinity times zero.
        reach = np.fmin(self.length * norms, self.columns @ np.abs(weights))
        error = gamma(self.n_terms + 2) * reach + UNIT * self.target * (norms > 0)
        moved = 2 * UNIT * (self.offset * norms + np.abs(intercepts)) if self.offset > 0 else 0.0
        return np.asarray(error + moved)


class DesignMatrix:
    """The N x M matrix of samples behind a few products that never copy it as a whole.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        In float32, float64, integers or booleans, and so it stays in memory; every block is widened when it
        is used, so that all sums are float64 sums.
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
        self._holds_floats = X.dtype in (np.float32, np.float64)
        if X.ndim != 2 or not (self._holds_floats or X.dtype.kind in "biu"):
            raise TypeError(
                f"X must be a matrix of float32, float64, integers or booleans; got {X.ndim}-d {X.dtype}."
            )
        self.X, self.offset = X, offset
        self.n_rows, self.n_features = X.shape

    @property
    def density(self) -> float:
        """The share of numbers that are stored; 1 for a dense matrix."""
        if not self.is_sparse:
            return 1.0
        return float(self.X.nnz / max(self.n_rows * self.n_features, 1))

    @cached_property
    def _cuts(self) -> SparseCuts:
        return SparseCuts(self.X)

    @cached_property
    def _summary(self) -> RowSummary:
        return summarise(self.X)

    @cached_property
    def n_numbers(self) -> int:
        """The number of stored numbers."""
        return int(self.X.nnz if self.is_sparse else self.X.size)

    def rows(self, chosen: slice | NDArray[Any]) -> Matrix:
        """Return some of the rows, in floats: X itself may hold integers or booleans, which overflow."""
        some = self.X[chosen]
        return some if self._holds_floats else some.astype(float)

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
        if self.is_sparse and self.n_rows * self.n_features > max(FEW_NUMBERS, _MOST_GROWTH * self.X.nnz):
            return None
        X = self.X.toarray() if self.is_sparse else self.X
        return DesignMatrix(np.subtract(X, centre, dtype=float), centre)

    def _far_centre(self) -> Floats:
        """Estimate the mean of every feature far from zero from some of the rows; zero for the others."""
        some = self.rows(slice(None, None, max(self.n_rows // _SAMPLE_ROWS, 1)))
        if self.is_sparse:
            # A feature that is zero in one of the rows varies by as much as it is away from zero.
            if not np.any(np.bincount(some.indices, minlength=1) == some.shape[0]):
                return np.zeros(self.n_features)
            some = some.toarray()
        spread = (some.max(axis=0) - some.min(axis=0)) / 2
        # A feature that never changes is only far from zero if it is so for the others.
        spread = np.where(spread > 0, spread, spread.max())
        mean = some.mean(axis=0, dtype=float)
        return np.where((np.abs(mean) > _FAR * spread) & (spread > 0), mean, 0.0)

    @cached_property
    def row_scale(self) -> RowScale:
        """The scale on which rounding errors of products with these rows depend; one pass, found once."""
        moved = 0.0 if self.offset is None else float(np.linalg.norm(self.offset))
        if self.is_sparse:
            columns, n_terms = self._summary.largest, int(np.diff(self.X.indptr).max(initial=0))
            longest = float(np.sqrt(self.squared_lengths.max(initial=0.0)))
        else:
            columns, n_terms = self._largest_of_columns(), self.n_features
            with np.errstate(over="ignore"):  # infinitely long is long enough
                longest = float(np.linalg.norm(columns))
        return RowScale(longest * (1 + gamma(n_terms + 2)), columns, n_terms, moved)

    @cached_property
    def squared_lengths(self) -> Floats:
        """|x_i|^2 of every row; one pass, found once."""
        if self.is_sparse:
            return self._summary.row_squares
        return np.concatenate([np.einsum("ij,ij->i", X, X, dtype=float) for _, X in self.blocks(0)])

    @property
    def mean_squares(self) -> Floats:
        """The mean of x_ij^2 over the rows, for every feature of a CSR matrix."""
        return np.asarray(self._summary.feature_squares / self.n_rows)

    def _largest_of_columns(self) -> Floats:
        """Compute max_i |x_ij|; rows side by side, as numpy is slow on short ones."""
        largest = np.zeros(self.n_features)
        for _, block in self.blocks(1):
            whole = len(block) - len(block) % _MIN_BLOCK_ROWS
            for part, width in ((block[:whole], _MIN_BLOCK_ROWS), (block[whole:], 1)):
                size = np.abs(part).reshape(-1, width * self.n_features).max(axis=0, initial=0.0)
                np.maximum(largest, size.reshape(width, -1).max(axis=0), out=largest)
        return largest

    def transposed_terms(self, n_columns: int = 1) -> int:
        """Return the longest chain of additions behind a number of :meth:`transposed_times`."""
        if self.is_sparse:
            return int(self.n_rows)
        step = self._block_rows(n_columns)
        return int(min(step, self.n_rows) + self.n_rows // step)

    def blocks(self, n_columns: int) -> Iterator[tuple[slice, Matrix]]:
        """Yield consecutive row slices with their rows, sized for ``n_columns`` columns beside X's own."""
        if self.is_sparse:
            yield from ((view.rows, view.X) for view in self._sparse_blocks(n_columns))
            return
        for rows in self.row_slices(n_columns):
            yield rows, self.rows(rows)

    def row_slices(self, n_columns: int) -> Iterator[slice]:
        """Yield the same slices without their rows."""
        if self.is_sparse:
            yield from (view.rows for view in self._sparse_blocks(n_columns))
            return
        step = self._block_rows(n_columns)
        for start in range(0, self.n_rows, step):
            yield slice(start, min(start + step, self.n_rows))

    def _views(self, n_columns: int) -> Iterable[View]:
        """Yield rows of a CSR matrix in pieces: compiled code has to end soon enough for Ctrl-C.

        They are not much smaller than vectors of features. Up to 15 columns are cut, so rounded, as one is.
        """
        most, eights = _CALL_NUMBERS if self._holds_floats else _WIDENED_NUMBERS, max(n_columns // 8, 1)
        return self._cuts.into(self.n_numbers * eights // max(most, 4 * self.n_features * eights) + 1)

    def taken(self, rows: Ints) -> DesignMatrix:
        """Copy some rows, as floats if they are few; rounding does no more to them than to all."""
        is_small = len(rows) * self.n_numbers <= FEW_NUMBERS * self.n_rows
        some = DesignMatrix(self.rows(rows) if is_small else self.X[rows], self.offset)
        vars(some)["row_scale"] = self.row_scale
        return some

    def _block_rows(self, n_columns: int) -> int:
        return max(_MIN_BLOCK_ROWS, _BLOCK_NUMBERS // max(n_columns + int(self.n_features), 1))

    def _sparse_blocks(self, n_columns: int) -> Iterable[View]:
        n_numbers = self.n_numbers + self.n_rows * n_columns
        n_views = min(n_numbers // _BLOCK_NUMBERS, -(-self.n_rows // _MIN_BLOCK_ROWS))
        return self._cuts.into(max(n_views, 1), n_columns)

    def times(self, weights: Floats) -> Floats:
        """Compute X @ weights for an M x K matrix, or for a vector."""
        if self.is_sparse:
            products = [view.X @ weights for view in self._views(_n_columns(weights))]
            return products[0] if len(products) == 1 else np.concatenate(products)
        n_columns = _n_columns(weights)
        if self.n_rows <= self._block_rows(n_columns):
            return np.asarray(self.rows(slice(None)) @ weights)
        product = np.empty((self.n_rows, *weights.shape[1:]))
        for rows, block in self.blocks(n_columns):
            product[rows] = block @ weights
        return product

    def absolute_times(self, weights: Floats) -> Floats:
        """Compute |X| @ weights for an M x K matrix, without a second X in memory."""
        product = np.empty((self.n_rows, weights.shape[1]))
        for rows, block in self.blocks(weights.shape[1] + (0 if self.is_sparse else self.n_features)):
            product[rows] = abs(block) @ weights
        return product

    def transposed_times(self, values: Floats) -> Floats:
        """Compute X.T @ values for an N x K matrix, or for a vector."""
        n_columns = _n_columns(values)
        if self.is_sparse:  # one after the other: all of them at once would be as many vectors
            products = (view.transposed @ values[view.rows] for view in self._views(n_columns))
            return reduce(operator.iadd, products)
        if self.n_rows <= self._block_rows(n_columns):
            return np.asarray(self.rows(slice(None)).T @ values)
        product = np.zeros((self.n_features, *values.shape[1:]))
        for rows, block in self.blocks(n_columns):
            product += block.T @ values[rows]
        return product

    def mean(self, weights: Floats) -> Floats:
        """Compute the weighted mean row."""
        return np.asarray(self.transposed_times(weights) / weights.sum())

    def column_scatter(self, weights: Floats, mean: Floats) -> Floats:
        """Compute sum_i s_i (x_ij - mean_j)^2 for every feature j: the diagonal of :meth:`gram`."""
        scatter = np.zeros(self.n_features)
        if self.is_sparse:
            for view in self._views(1):
                scatter += view.squares() @ weights[view.rows]
            return np.asarray(np.maximum(scatter - weights.sum() * mean**2, 0.0))
        for rows, block in self.blocks(0):
            scatter += weights[rows] @ (block - mean) ** 2
        return scatter

    def gram(self, weights: Floats, mean: Floats) -> Floats:
        """Compute sum_i s_i (x_i - mean)(x_i - mean)^T, M x M; ``mean`` is the weighted mean, or zero."""
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
        """Compute (X - mean)(X - mean)^T, N x N, by blocks of columns: no centred copy of X is made."""
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


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """N rows of a binary problem.

    Parameters
    ----------
    design : DesignMatrix
        Their features.
    labels : ndarray of shape (N,)
        -1 or +1.
    weights : ndarray of shape (N,)
        Sample weights s_i > 0. Leave rows of weight 0 out: they have no dual variable.
    targets : ndarray of shape (N,) or None
        The t_i in the shortfall m_i = t_i - y_i f(x_i); None where all are 1, as in classification. With them
        a loss of a residual is a margin loss on two rows: |r - f| beyond e has the rows (y, t) = (1, r - e)
        and (-1, -r - e).
    """

    design: DesignMatrix
    labels: Floats
    weights: Floats
    targets: Floats | None = None

    def __post_init__(self) -> None:
        n_rows = self.design.n_rows
        if self.labels.shape != (n_rows,) or self.weights.shape != (n_rows,):
            raise ValueError(
                f"X has {n_rows} rows, but labels have shape {self.labels.shape} "
                f"and weights {self.weights.shape}."
            )
        if not np.all(np.abs(self.labels) == 1):
            raise ValueError("labels must be -1 or +1.")
        if not np.all(np.isfinite(self.weights) & (self.weights > 0)):
            raise ValueError("weights must be positive and finite; leave rows of weight 0 out.")
        if self.targets is not None and not (
            self.targets.shape == (n_rows,) and np.all(np.isfinite(self.targets))
        ):
            raise ValueError("targets must be finite numbers, one for each row.")

    def goal(self, rows: slice | NDArray[Any] = _ALL) -> Floats | float:
        """Return the targets of these rows: one number where all are the same."""
        return 1.0 if self.targets is None else np.asarray(self.targets[rows])

    def shortfall(self, scores: Floats, rows: slice | NDArray[Any] = _ALL) -> Floats:
        """Compute t_i - y_i f_i of these rows, from their scores: one column or several."""
        goal, y = self.goal(rows), self.labels[rows]
        if scores.ndim == 2:
            goal, y = np.reshape(goal, (-1, 1)), y[:, None]
        return np.asarray(goal - y * scores)

    @property
    def row_scale(self) -> RowScale:
        """The scale on which rounding errors of products with these rows depend."""
        scale = self.design.row_scale
        return scale if self.targets is None else replace(scale, target=self._largest_target)

    @cached_property
    def _largest_target(self) -> float:
        return float(np.abs(self.targets).max(initial=1.0)) if self.targets is not None else 1.0

    @cached_property
    def least_weight(self) -> float:
        """The smallest of the weights; infinite without rows."""
        return float(self.weights.min(initial=np.inf))


@dataclass(frozen=True, eq=False)
class RowList:
    """Single rows, for the few cases where some of them are sent; they add up to more rows."""

    X: Matrix
    labels: NDArray[Any]
    weights: Floats

    def __add__(self, other: RowList) -> RowList:
        """Concatenate both, in order."""
        return RowList.combined([self, other])

    @staticmethod
    def combined(lists: Sequence[RowList]) -> RowList:
        """Concatenate all of them, in order."""
        parts: list[Matrix] = [part.X for part in lists]
        return RowList(
            sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts),
            np.concatenate([part.labels for part in lists]),
            np.concatenate([part.weights for part in lists]),
        )

    def take(self, chosen: NDArray[Any]) -> RowList:
        """Return the chosen rows."""
        return RowList(self.X[chosen], self.labels[chosen], self.weights[chosen])


def aligned(X: Matrix) -> Matrix:
    """Return the same numbers, aligned in memory: products then take their usual way.

    An array that came from another process may begin anywhere in memory, and NumPy then multiplies it by
    other routines, which round differently: results would depend on which worker did what.
    """
    return X if sparse.issparse(X) or X.flags.carray else np.require(X, requirements=["C", "A", "W"])


def _n_columns(values: Floats) -> int:
    return 1 if values.ndim == 1 else values.shape[1]


# ---------------------------------------------------------------- CSR matrices


def check_sparse(X: Matrix) -> None:
    """Raise where the index arrays of a sparse matrix point outside of it; anything else passes.

    Neither scipy nor scikit-learn look before they convert, cut or multiply, and read or write memory that is
    not theirs. One pass over the indices.

    Examples
    --------
    >>> from scipy import sparse
    >>> rows = sparse.csr_array(np.eye(2))
    >>> check_sparse(rows)
    >>> rows.indices[1] = 7
    >>> check_sparse(rows)
    Traceback (most recent call last):
    ...
    ValueError: X is a malformed sparse matrix: its csr indices point outside of its shape (2, 2), ...
    """
    if not sparse.issparse(X) or X.ndim != 2:
        return
    is_sound = True
    if X.format == "coo":
        is_sound = all(
            len(places) == len(X.data) and _are_below(places, size)
            for places, size in zip((X.row, X.col), X.shape, strict=True)
        )
    elif X.format in ("csr", "csc", "bsr"):
        n_lines, n_places = X.shape[::-1] if X.format == "csc" else X.shape
        if X.format == "bsr":
            n_lines, n_places = n_lines // X.blocksize[0], n_places // X.blocksize[1]
        starts = X.indptr
        is_sound = (
            starts.dtype.kind == "i"
            and len(starts) == n_lines + 1
            and starts[0] == 0
            and starts[-1] <= min(len(X.indices), len(X.data))
            and bool(np.all(starts[:-1] <= starts[1:]))
            and _are_below(X.indices[: starts[-1]], n_places)
        )
    if not is_sound:
        raise ValueError(
            f"X is a malformed sparse matrix: its {X.format} indices point outside of its shape {X.shape}, "
            "or its index pointers fall. Build it anew from its parts with their true shape."
        )


def _are_below(places: Ints, size: int) -> bool:
    """Return whether all places are from 0 to size - 1."""
    if places.dtype.kind not in "iu":
        return False
    unsigned = places.view(places.dtype.str.replace("i", "u"))  # a negative one is huge
    return len(places) == 0 or int(unsigned.max()) < size


class View(NamedTuple):
    """Some rows of a CSR matrix, and the same transposed, without a copy."""

    rows: slice
    X: Matrix
    transposed: Matrix

    def squares(self) -> Matrix:
        """Return the same rows, transposed, with every number squared."""
        X = self.X
        return type(X)((np.square(X.data, dtype=float), X.indices, X.indptr), shape=X.shape).T


class SparseCuts:
    """The pieces of one CSR matrix.

    They are kept: scipy takes as long to make a view of a few thousand numbers as to multiply by it. Those of
    integers or booleans are floats, and made anew.

    Parameters
    ----------
    X : CSR matrix
    """

    def __init__(self, X: Matrix) -> None:
        self._X = X
        self._known: dict[tuple[int, int], list[View]] = {}

    def into(self, n_views: int, per_row: int = 0) -> Iterable[View]:
        """Cut into ``n_views`` pieces of as many stored numbers; a row counts as ``per_row`` more."""
        if (n_views, per_row) in self._known:
            return self._known[n_views, per_row]
        ends = [0, self._X.shape[0]]
        if n_views > 1:
            sizes = self._X.indptr + per_row * np.arange(ends[1] + 1)
            inner = np.searchsorted(sizes, np.linspace(0, sizes[-1], n_views + 1)[1:-1])
            ends = np.unique([0, *inner.tolist(), ends[1]]).tolist()
        views = (self._view(*pair) for pair in pairwise(ends))
        if self._X.dtype.kind != "f":
            return views
        self._known[n_views, per_row] = list(views)
        return self._known[n_views, per_row]

    def _view(self, start: int, stop: int) -> View:
        X, ends = self._X, self._X.indptr[start : stop + 1]
        if stop - start == X.shape[0] and X.dtype.kind == "f":
            return View(slice(start, stop), X, X.T)
        inside = slice(int(ends[0]), int(ends[-1]))
        data = X.data[inside] if X.dtype.kind == "f" else X.data[inside].astype(float)
        parts, shape = (data, X.indices[inside], ends - ends[0]), (stop - start, X.shape[1])
        turned = _sharing(type(X[:0].T), parts, shape[::-1])
        return View(slice(start, stop), _sharing(type(X), parts, shape), turned)


def _sharing(kind: type, parts: tuple[Matrix, ...], shape: tuple[int, int]) -> Matrix:
    """Make a sparse matrix of these arrays themselves: scipy copies parts of much larger ones."""
    made = kind(shape, dtype=parts[0].dtype)
    made.data, made.indices, made.indptr = parts
    return made


class RowSummary(NamedTuple):
    """The lengths and sums that one pass over a CSR matrix finds.

    ``largest`` and ``feature_squares`` are max_i |x_ij| and sum_i x_ij^2 of every feature, ``row_squares``
    |x_i|^2 of every row; infinite where they are beyond all numbers.
    """

    largest: Floats
    row_squares: Floats
    feature_squares: Floats


def summarise(X: Matrix) -> RowSummary:
    """Summarise a CSR matrix: some numbers at a time, where there is no compiled loop for them."""
    found = RowSummary(np.zeros(X.shape[1]), np.zeros(X.shape[0]), np.zeros(X.shape[1]))
    if has_compiled_loops(X):
        assert compiled is not None  # noqa: S101 -- that is what it says
        compiled.summarise_rows(X.data, X.indices, X.indptr, *found)
        return found
    for start in range(0, X.nnz, _CACHED_NUMBERS):
        some = slice(start, min(start + _CACHED_NUMBERS, X.nnz))  # there may be room for more
        size = np.abs(X.data[some].astype(float, copy=False))
        np.maximum.at(found.largest, X.indices[some], size)
        with np.errstate(over="ignore"):  # infinitely long is long enough
            np.add.at(found.feature_squares, X.indices[some], size * size)
    step = max(1, _CACHED_NUMBERS * X.shape[0] // max(X.nnz, 1))
    for start in range(0, X.shape[0], step):
        ends = X.indptr[start : start + step + 1]
        filled = np.flatnonzero(np.diff(ends))  # a sum over no numbers would be one over others
        if len(filled) > 0:
            with np.errstate(over="ignore"):
                some_squares = np.square(X.data[ends[0] : ends[-1]], dtype=float)
                found.row_squares[start + filled] = np.add.reduceat(some_squares, ends[filled] - ends[0])
    return found


def has_compiled_loops(X: Matrix) -> bool:
    """Return whether compiled loops take such a CSR matrix: floats, and indices of one kind.

    Parameters
    ----------
    X : CSR matrix
        Of any numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> has_compiled_loops(sparse.csr_array(np.eye(2, dtype=int)))
    False
    """
    return (
        compiled is not None
        and X.shape[0] > 0
        and X.dtype in (np.float32, np.float64)
        and X.indices.dtype == X.indptr.dtype
        and X.indices.dtype in (np.int32, np.int64)
        and all(part.flags.c_contiguous and part.flags.aligned for part in (X.data, X.indices, X.indptr))
        and len(X.data) == len(X.indices) == X.indptr[-1]
    )
