"""Columns that name rows: another whole number in every row, found in blocks that add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exclusivity._typing import Floats, Matrix

MOST_KEPT = 4096
"""Values that are kept of each such column."""

_FIRST_ROWS = 20
# Odd, and without a pattern in its digits: multiplying by it scatters neighbours over all 64-bit numbers.
_SCATTER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class RowNames:
    """By their numbers, the columns of a block with another whole number in each row.

    Kept are the values that come first in one random, fixed order of all numbers: what two blocks have in
    common is found if it is among the first. Only repetitions that are rare among very many values are not.
    """

    kept: dict[int, Floats]

    @classmethod
    def of(cls, X: Matrix) -> RowNames | None:
        """Return those of a block; None for no rows."""
        if X.shape[0] == 0:
            return None
        full = np.arange(X.shape[1])
        if hasattr(X, "toarray"):  # one row may be a zero
            full = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) >= max(X.shape[0] - 1, 1))
        start = _dense(X[:_FIRST_ROWS][:, full])  # few rows settle nearly every column
        likely = [int(place) for place, values in zip(full, start.T, strict=True) if names_rows(values)]
        columns = {place: _dense(X[:, [place]]).ravel() for place in likely}
        return cls({place: _first(values) for place, values in columns.items() if names_rows(values)})

    def __add__(self, other: RowNames) -> RowNames:
        """Return those of both blocks."""
        shared = self.kept.keys() & other.kept.keys()
        both = {place: np.concatenate([self.kept[place], other.kept[place]]) for place in shared}
        return RowNames({place: _first(values) for place, values in both.items() if names_rows(values)})

    @property
    def columns(self) -> list[int]:
        """The numbers of the columns."""
        return sorted(self.kept)


def names_rows(values: Floats) -> bool:
    """Return whether all are whole numbers, and no two the same."""
    return bool(np.all(values == np.rint(values))) and len(np.unique(values)) == len(values)


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)


def _first(values: Floats) -> Floats:
    """Return the values that come first in a fixed random order."""
    if len(values) <= MOST_KEPT:
        return values
    with np.errstate(over="ignore"):
        scattered = (values + 0.0).view(np.uint64) * _SCATTER
        order = (scattered ^ (scattered >> np.uint64(29))) * _SCATTER
    return values[np.argpartition(order, MOST_KEPT)[:MOST_KEPT]]
