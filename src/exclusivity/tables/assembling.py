"""Entries of encoded columns, put together as one array or one sparse matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.tables.codes import Code, Entry

_LARGE = 1 << 26
"""A dense table of less than this many bytes is not worth being sparse: dense arithmetic is quicker."""

_BLOCK_ROWS = 1 << 12

Entries = Callable[[slice], Sequence[Iterable[Entry]]]
"""From a block of rows to the entries of every code."""


def sparse_is_better(codes: Sequence[Code], n_rows: int, itemsize: int) -> bool:
    """Whether the table is large, and a sparse matrix takes less memory."""
    width, slots = sum(code.width for code in codes), sum(code.slots for code in codes)
    dense = itemsize * width
    return n_rows * dense >= _LARGE and slots * (itemsize + 4) < dense


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Rows a few thousand at a time: entries are still in the processor's cache when they are written."""
    return (slice(start, min(start + _BLOCK_ROWS, n_rows)) for start in range(0, n_rows, _BLOCK_ROWS))


def assemble_dense(codes: Sequence[Code], entries: Entries, n_rows: int, dtype: DTypeLike) -> Floats:
    """One array, block after block of rows."""
    out = np.zeros((n_rows, sum(code.width for code in codes)), dtype=dtype)
    for block in row_blocks(n_rows):
        part, start = out[block], 0
        rows = np.arange(len(part))
        for code, found in zip(codes, entries(block), strict=True):
            for place, values in found:
                if isinstance(place, int):
                    part[:, start + place] = values
                else:  # where a slot is empty its value is zero, wherever it points to
                    part[rows, start + place] += values
            start += code.width
    return out


def assemble_sparse(codes: Sequence[Code], entries: Entries, n_rows: int, dtype: DTypeLike) -> Matrix:
    """A CSR matrix; memory is taken once, as every row has the same number of slots."""
    slots, width = sum(code.slots for code in codes), sum(code.width for code in codes)
    index = np.int32 if n_rows * slots < np.iinfo(np.int32).max else np.int64
    indices, values = np.empty((n_rows, slots), dtype=index), np.empty((n_rows, slots), dtype=dtype)
    by_slot = np.empty((slots, _BLOCK_ROWS), dtype=index), np.empty((slots, _BLOCK_ROWS), dtype=dtype)
    for block in row_blocks(n_rows):
        start = slot = 0
        places, entered = (part[:, : block.stop - block.start] for part in by_slot)
        for code, found in zip(codes, entries(block), strict=True):
            for place, entry in found:
                places[slot], entered[slot] = start + place, entry
                slot += 1
            start += code.width
        indices[block], values[block] = places.T, entered.T
    indptr = np.arange(0, n_rows * slots + 1, slots, dtype=index)
    rows = sparse.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(n_rows, width))
    rows.eliminate_zeros()
    return rows
