"""A CSR matrix in pieces that share its numbers, each cut once, and what one pass over it tells."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.kernels import compiled

# As many numbers as fit into a cache.
_FEW = 1 << 17


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
    for start in range(0, X.nnz, _FEW):
        some = slice(start, min(start + _FEW, X.nnz))  # there may be room for more
        size = np.abs(X.data[some].astype(float, copy=False))
        np.maximum.at(found.largest, X.indices[some], size)
        with np.errstate(over="ignore"):  # infinitely long is long enough
            np.add.at(found.feature_squares, X.indices[some], size * size)
    step = max(1, _FEW * X.shape[0] // max(X.nnz, 1))
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
