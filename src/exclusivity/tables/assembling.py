"""Entries of encoded columns, put together as one array or one sparse matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.tables.codes import Code, Entry

_LARGE = 1 << 26
"""A dense table of less than this many bytes is not worth being sparse: dense arithmetic is quicker."""

Entries = Callable[[int], Sequence[Entry]]
"""From the number of a code to its entries."""


def sparse_is_better(codes: Sequence[Code], n_rows: int, itemsize: int) -> bool:
    """Whether the table is large, and a sparse matrix takes less memory."""
    width, slots = sum(code.width for code in codes), sum(code.slots for code in codes)
    dense = itemsize * width
    return n_rows * dense >= _LARGE and slots * (itemsize + 4) < dense


def assemble_dense(codes: Sequence[Code], entries: Entries, n_rows: int, dtype: DTypeLike) -> Floats:
    """One array, column after column."""
    out = np.zeros((n_rows, sum(code.width for code in codes)), dtype=dtype)
    rows, start = np.arange(n_rows), 0
    for number, code in enumerate(codes):
        for place, values in entries(number):
            if isinstance(place, int):
                out[:, start + place] = values
            else:  # where a slot is empty its value is zero, wherever it points to
                out[rows, start + place] += values
        start += code.width
    return out


def assemble_sparse(codes: Sequence[Code], entries: Entries, n_rows: int, dtype: DTypeLike) -> Matrix:
    """A CSR matrix; memory is taken once, as every row has the same number of slots."""
    slots = sum(code.slots for code in codes)
    index = np.int32 if n_rows * slots < np.iinfo(np.int32).max else np.int64
    indices, values = np.empty((n_rows, slots), dtype=index), np.empty((n_rows, slots), dtype=dtype)
    start = slot = 0
    for number, code in enumerate(codes):
        for place, entry in entries(number):
            indices[:, slot] = start + place
            values[:, slot] = entry
            slot += 1
        start += code.width
    indptr = np.arange(0, n_rows * slots + 1, slots, dtype=index)
    rows = sparse.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(n_rows, start))
    rows.eliminate_zeros()
    return rows
