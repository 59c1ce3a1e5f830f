"""Entries of encoded columns, put together as one array or one sparse matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from exclusivity._typing import Floats, Matrix
from exclusivity.tables.codes import Code, Ready

_LARGE = 1 << 26
"""A dense table of less than this many bytes is not worth being sparse: dense arithmetic is quicker."""

_BLOCK_ROWS = 1 << 12
"""So many rows, encoded, stay in the processor's cache until all of their columns are written."""


class GroupedArray(np.ndarray[Any, Any]):
    """An array that carries ``feature_groups``: one label per column, for the estimator that gets it next.

    What is computed or cut from it has none, because columns may then be others.
    """

    feature_groups: NDArray[Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep groups in pickles, as in the cache of a pipeline or on the way to another process."""
        return grouped, (np.asarray(self), self.feature_groups)


def grouped(rows: Any, groups: NDArray[Any] | None) -> Any:
    """Return the same rows, an array or a sparse matrix, carrying the groups of their columns.

    Examples
    --------
    >>> rows = grouped(np.zeros((3, 2)), np.array([0, 0]))
    >>> rows.feature_groups.tolist(), rows[:, 1:].feature_groups
    ([0, 0], None)
    """
    found: Any = rows.view(GroupedArray) if isinstance(rows, np.ndarray) else rows
    found.feature_groups = groups
    return found


def sparse_is_better(codes: Sequence[Code], n_rows: int, itemsize: int) -> bool:
    """Return whether the table is large, and a sparse matrix takes less memory."""
    width, slots = sum(code.width for code in codes), sum(code.slots for code in codes)
    dense = itemsize * width
    return n_rows * dense >= _LARGE and slots * (itemsize + 4) < dense


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Yield neighbouring rows, some thousands at a time."""
    return (slice(start, min(start + _BLOCK_ROWS, n_rows)) for start in range(0, n_rows, _BLOCK_ROWS))


def assemble_dense(codes: Sequence[Code], columns: Sequence[Ready], n_rows: int, dtype: DTypeLike) -> Floats:
    """Return one array of columns that are ready."""
    out = np.zeros((n_rows, sum(code.width for code in codes)), dtype=dtype)
    for block in row_blocks(n_rows):
        part, start = out[block], 0
        rows = np.arange(len(part))
        for code, column in zip(codes, columns, strict=True):
            for place, values in code.entries(column[block], start):
                if isinstance(place, int):
                    part[:, place] = values
                else:  # where a slot is empty its value is zero, wherever it points to
                    part[rows, place] += values
            start += code.width
    return out


def assemble_sparse(codes: Sequence[Code], columns: Sequence[Ready], n_rows: int, dtype: DTypeLike) -> Matrix:
    """Return a CSR matrix of columns that are ready: the entries of each row in order, without zeros."""
    slots, width = sum(code.slots for code in codes), sum(code.width for code in codes)
    index: Any = np.int32 if max(n_rows * slots, width) < np.iinfo(np.int32).max else np.int64
    # As much as there may be; where nothing is written no memory is taken.
    indices, data = np.empty(n_rows * slots, dtype=index), np.empty(n_rows * slots, dtype=dtype)
    indptr = np.zeros(n_rows + 1, dtype=index)
    # Slot after slot, each of them contiguous; a few numbers between them, so that they share no cache lines.
    places = np.empty((slots, _BLOCK_ROWS + 8), dtype=index)
    values = np.empty((slots, _BLOCK_ROWS + 8), dtype=dtype)
    end = 0
    for block in row_blocks(n_rows):
        size, slot, start = block.stop - block.start, 0, 0
        for code, column in zip(codes, columns, strict=True):
            for place, entry in code.entries(column[block], start):
                places[slot, :size], values[slot, :size] = place, entry
                slot += 1
            start += code.width
        entries, is_entry = values[:, :size].T, values[:, :size].T != 0
        counts = np.count_nonzero(is_entry, axis=1)
        first, end = end, end + int(counts.sum())
        indices[first:end], data[first:end] = places[:, :size].T[is_entry], entries[is_entry]
        indptr[block.start + 1 : block.stop + 1] = counts
    np.cumsum(indptr, out=indptr)
    rows = sparse.csr_matrix((data[:end], indices[:end], indptr), shape=(n_rows, width))
    rows.has_canonical_format = True  # slots are in the order of columns; to check takes a while
    return rows
