"""Columns that name rows: another whole number in every one of them, told from blocks that add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exclusivity.problem.arrays import Floats, Matrix

MOST_KEPT = 4096
"""Values that are kept of each such column."""

_FIRST_ROWS = 20
# Odd, and without a pattern in its digits: multiplying by it scatters neighbours over all 64-bit numbers.
_SCATTER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class RowNames:
    """The columns of some rows with another whole number in each; it adds up.

    Of every column those values are kept that come first in one order of all numbers, which is random and
    fixed. What is first among the values of two blocks is so in each block that has it: a value among the
    first that both have is found. Only repetitions that are rare among very many values are not.

    Attributes
    ----------
    kept : dict of ndarray
        By the number of the column.
    """

    kept: dict[int, Floats]

    @classmethod
    def of(cls, X: Matrix) -> RowNames | None:
        """Those of a block; None for no rows."""
        if X.shape[0] == 0:
            return None
        full = _full_columns(X)
        start = _dense(X[:_FIRST_ROWS][:, full])
        likely = [place for place, values in zip(full, start.T, strict=True) if names_rows(values)]
        columns = {place: _dense(X[:, [place]]).ravel() for place in likely}
        return cls({place: _first(values) for place, values in columns.items() if names_rows(values)})

    def __add__(self, other: RowNames) -> RowNames:
        """Those of both blocks."""
        both = {}
        for place in self.kept.keys() & other.kept.keys():
            values = np.concatenate([self.kept[place], other.kept[place]])
            if len(np.unique(values)) == len(values):
                both[place] = _first(values)
        return RowNames(both)

    @property
    def columns(self) -> list[int]:
        """Their numbers."""
        return sorted(self.kept)


def names_rows(values: Floats) -> bool:
    """Whether all are whole numbers, and no two the same."""
    return all(
        bool(np.all(some == np.rint(some))) and len(np.unique(some)) == len(some)
        for some in (values[:_FIRST_ROWS], values)  # few rows settle nearly every column
    )


def _full_columns(X: Any) -> list[int]:
    """Columns that may have a number in every row: of sparse rows one may be a zero."""
    if not hasattr(X, "toarray"):
        return list(range(X.shape[1]))
    counts = np.bincount(X.indices, minlength=X.shape[1])
    found: list[int] = np.flatnonzero(counts >= max(X.shape[0] - 1, 1)).tolist()
    return found


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)


def _first(values: Floats) -> Floats:
    """The values that come first in a fixed random order."""
    if len(values) <= MOST_KEPT:
        return values
    with np.errstate(over="ignore"):
        scattered = (values + 0.0).view(np.uint64) * _SCATTER
        order = (scattered ^ (scattered >> np.uint64(29))) * _SCATTER
    return values[np.argpartition(order, MOST_KEPT)[:MOST_KEPT]]
