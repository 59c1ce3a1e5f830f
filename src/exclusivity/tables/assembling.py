"""Entries of encoded columns, put together as one array or one sparse matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.tables.codes import Code, Ready

_LARGE = 1 << 26
"""A dense table of less than this many bytes is not worth being sparse: dense arithmetic is quicker."""

_BLOCK_ROWS = 1 << 12
"""So many rows, encoded, stay in the processor's cache until all of their columns are written."""

_SHARE_OF_ENTRIES = 31 / 32
"""Of the slots of a block; where more are zeros they are taken out, which takes longer than to keep a few."""


def sparse_is_better(codes: Sequence[Code], n_rows: int, itemsize: int) -> bool:
    """Whether the table is large, and a sparse matrix takes less memory."""
    width, slots = sum(code.width for code in codes), sum(code.slots for code in codes)
    dense = itemsize * width
    return n_rows * dense >= _LARGE and slots * (itemsize + 4) < dense


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Neighbouring rows, some thousands at a time."""
    return (slice(start, min(start + _BLOCK_ROWS, n_rows)) for start in range(0, n_rows, _BLOCK_ROWS))


def assemble_dense(codes: Sequence[Code], columns: Sequence[Ready], n_rows: int, dtype: DTypeLike) -> Floats:
    """One array, block after block of rows, of columns that are ready."""
    out = np.zeros((n_rows, sum(code.width for code in codes)), dtype=dtype)
    for block in row_blocks(n_rows):
        part, start = out[block], 0
        rows = np.arange(len(part))
        for code, column in zip(codes, columns, strict=True):
            for place, values in code.entries(column[block]):
                if isinstance(place, int):
                    part[:, start + place] = values
                else:  # where a slot is empty its value is zero, wherever it points to
                    part[rows, np.add(place, start, dtype=np.intp)] += values
            start += code.width
    return out


def assemble_sparse(codes: Sequence[Code], columns: Sequence[Ready], n_rows: int, dtype: DTypeLike) -> Matrix:
    """A CSR matrix of columns that are ready: the entries of each row in order, with few zeros among them."""
    slots, width = sum(code.slots for code in codes), sum(code.width for code in codes)
    index: Any = np.int32 if max(n_rows * slots, width) < np.iinfo(np.int32).max else np.int64
    # As much as there may be; where nothing is written no memory is taken.
    indices, data = np.empty(n_rows * slots, dtype=index), np.empty(n_rows * slots, dtype=dtype)
    indptr = np.zeros(n_rows + 1, dtype=index)
    starts = np.cumsum([0, *(code.width for code in codes)])[:-1].astype(index)
    starts = np.repeat(starts, [code.slots for code in codes])
    end = 0
    for block in row_blocks(n_rows):
        start, end = end, end + (block.stop - block.start) * slots
        places, values = indices[start:end].reshape(-1, slots), data[start:end].reshape(-1, slots)
        found = (code.entries(column[block]) for code, column in zip(codes, columns, strict=True))
        for slot, (place, entry) in enumerate(chain.from_iterable(found)):
            places[:, slot], values[:, slot] = place, entry
        places += starts
        indptr[block.start + 1 : block.stop + 1] = slots
        if np.count_nonzero(values) < _SHARE_OF_ENTRIES * values.size:
            kept = values != 0
            indptr[block.start + 1 : block.stop + 1] = np.count_nonzero(kept, axis=1)
            end = start + int(np.count_nonzero(kept))
            indices[start:end], data[start:end] = places[kept], values[kept]
    np.cumsum(indptr, out=indptr)
    rows = sparse.csr_matrix((data[:end], indices[:end], indptr), shape=(n_rows, width))
    rows.has_canonical_format = True  # as slots are in the order of columns; looking takes a while
    return rows
