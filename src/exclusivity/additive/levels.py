"""Columns as levels: knots of a piecewise linear function, categories, and a level for missing values.

A fitted column turns any cell into a convex combination of its points: two neighbouring knots for a number
(constant beyond the first and the last knot), one point for a category or a missing value. Whatever a cell
contains, the value of a column function therefore lies between the smallest and the largest value of the
column's points, and both are attained. That is what certificates rest on.

The last point of a column is that of a missing cell. Where the training rows had missing values it is a
level, a parameter of its own; otherwise its value is the mean over the training rows.

A fitted column also keeps how the training rows were spread over its levels: enough to see later whether
new rows look different.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.rows.source import RowBlock
from exclusivity.tables._codes import places_of_texts
from exclusivity.tables._columns import (
    Column,
    ColumnTable,
    DictionaryColumn,
    as_dates,
    as_levels,
    as_numbers,
    column_of,
    kind_of,
)

MAX_CATEGORIES = 254
MISSING, RARE = "(missing)", "(rare)"
_EPOCH = np.datetime64(0, "us")
_BLOCK_CELLS = 1 << 18
_MIN_FREQUENCY, _MIN_SHARE = 10, 0.05


@dataclass(frozen=True, eq=False)
class ColumnLevels:
    """The levels of one column."""

    name: str
    """The name of the column, or "x" and its number."""
    kind: str
    """What it holds: "number", "date" (microseconds since 1970) or "category"."""
    knots: Floats
    """The knots of a number or date, in increasing order."""
    categories: tuple[str, ...]
    """The categories with a level of their own."""
    rare: tuple[str, ...]
    """Categories that share one level, the last before the missing one. Unseen categories share it, too."""
    has_missing: bool
    """Whether missing values have a level of their own."""
    shares: Floats = field(default_factory=lambda: np.empty(0))
    """The shares of the training rows on the levels, which add up to 1. A missing cell without a level of its
    own shows their mean."""
    n_rows: float = 0.0
    """The total weight of the training rows."""
    notation: str | None = None
    """How its numbers are written in a file, as in ``TableColumn``; None where unknown."""

    @property
    def n_levels(self) -> int:
        """The number of parameters."""
        return len(self.knots) + len(self.categories) + bool(self.rare) + self.has_missing

    @property
    def n_points(self) -> int:
        """The number of points: the levels, and the point of a missing cell."""
        return self.n_levels + (not self.has_missing)

    def labels(self) -> list[Any]:
        """Return the number or date of each knot, the categories, and words in brackets for other points."""
        knots = [self.value_of(point) for point in range(len(self.knots))]
        return [*knots, *self.categories, *[RARE] * bool(self.rare), MISSING]

    def encode(self, column: Column) -> tuple[Ints, Floats]:
        """Return the left point of every cell, and the weight of the point to its right."""
        nothing = self.n_points - 1
        if isinstance(column, DictionaryColumn):  # each distinct cell is read once
            column = column.without_unused()
            left, weight = self.encode(column.cells)
            return np.append(left, nothing)[column.codes], np.append(weight, 0.0)[column.codes]
        if self.kind == "category":
            codes, texts = as_levels(column)
            other = len(self.categories) if self.rare else nothing
            known = places_of_texts(self.categories, self.rare)
            left = np.array([*(known.get(text, other) for text in texts), nothing])[codes]
            return left, np.zeros(len(left))
        numbers = _numbers(column, self.kind)
        is_missing = np.isnan(numbers)
        if not len(self.knots):
            return np.full(len(numbers), nothing), np.zeros(len(numbers))
        x = np.clip(numbers, self.knots[0], self.knots[-1])
        left = np.searchsorted(self.knots, x, side="right") - 1
        half = self.knots / 2  # because the difference of two large numbers may overflow
        width = np.append(np.diff(half), np.inf)
        weight = (x / 2 - half[left]) / np.where(width > 0, width, np.inf)[left]
        if is_missing.any():
            left[is_missing], weight[is_missing] = nothing, 0.0
        return left, weight

    def is_odd(self, column: Column) -> Bools:
        """Return which cells are numbers outside the range of the training rows, or unseen categories."""
        if self.kind != "category":
            numbers = _numbers(column, self.kind)
            ends = (self.knots[0], self.knots[-1]) if len(self.knots) else (np.inf, -np.inf)
            return np.asarray((numbers < ends[0]) | (numbers > ends[1]))
        codes, texts = as_levels(column)
        known = places_of_texts(self.categories, self.rare)
        return np.array([*(text not in known for text in texts), False])[codes]

    def with_knots(self, values: Sequence[float], points: Floats) -> tuple[ColumnLevels, Floats]:
        """Return the same function with more knots: its levels, and its values ``points`` at all points.

        Parameters
        ----------
        values : sequence of float
            Where knots are wanted; beyond the ends the function is constant and needs none.
        points : ndarray of shape (n_duels, n_points)
            The values of the functions at the points.
        """
        knots = _with_inner(self.knots, values)
        if len(knots) == len(self.knots):
            return self, points
        left, weight = self.encode(knots)
        old = points[:, left]
        new = old + weight * (points[:, np.minimum(left + 1, len(self.knots) - 1)] - old)
        shares = np.append(np.zeros(len(knots)), self.shares[len(self.knots) :])
        levels = replace(self, knots=knots, shares=shares)
        return levels, np.hstack([new, points[:, len(self.knots) :]])

    def value_of(self, point: int) -> Any:
        """Return a cell that shows a point: a number, a date, a category, or None for a missing value."""
        if point < len(self.knots):
            knot = self.knots[point]
            return _EPOCH + np.timedelta64(round(knot), "us") if self.kind == "date" else float(knot)
        place = point - len(self.knots)
        if place < len(self.categories):
            return self.categories[place]
        return self.rare[0] if self.rare and place == len(self.categories) else None


def _numbers(column: Column, kind: str) -> Floats:
    """Return numbers or dates as float64, NaN where a cell is missing or holds something else."""
    if kind == "number":
        return as_numbers(column)
    moments = as_dates(column)
    numbers = (moments - _EPOCH).astype(np.float64)
    numbers[np.isnat(moments)] = np.nan
    return np.asarray(numbers)


def _with_inner(knots: Floats, values: Sequence[float]) -> Floats:
    """Return knots and those of the values that lie between the first and the last of them."""
    return np.asarray(np.union1d(knots, [x for x in values if knots.size and knots[0] < x < knots[-1]]))


def learn_levels(
    name: str,
    column: Column,
    weight: Floats,
    n_knots: int,
    *,
    is_category: bool,
    extra: Sequence[float] = (),
) -> ColumnLevels:
    """Choose the levels of a column of training rows; ``extra`` are values that must be knots.

    The shares of the rows on the levels are not known before the rows are encoded.
    """
    kind = "category" if is_category else kind_of(column)
    if kind == "category":
        levels = _learn_categories(name, column, weight)
    else:
        numbers = _numbers(column, kind)
        known = np.isfinite(numbers) & (weight > 0)
        knots = _with_inner(_weighted_quantiles(numbers[known], weight[known], n_knots), extra)
        has_missing = bool((np.isnan(numbers) & (weight > 0)).any())
        levels = ColumnLevels(name, kind, knots, (), (), has_missing)
    if levels.n_levels == 0:  # no row has a value, and none is missing
        levels = replace(levels, has_missing=True)
    return levels


def _learn_categories(name: str, column: Column, weight: Floats) -> ColumnLevels:
    """Choose categories; those of less than ten rows (or 5 %, if that is less) share a level."""
    codes, texts = as_levels(column)
    min_frequency = min(_MIN_FREQUENCY, _MIN_SHARE * float(weight.sum()))
    counts = np.bincount(codes[codes >= 0], weight[codes >= 0], len(texts))
    order = sorted(np.flatnonzero(counts > 0).tolist(), key=lambda place: (-counts[place], texts[place]))
    kept = [place for place in order[:MAX_CATEGORIES] if counts[place] >= min_frequency]
    rare = tuple(sorted(texts[place] for place in set(order) - set(kept)))
    has_missing = bool((weight[codes < 0] > 0).any())
    categories = tuple(sorted(texts[place] for place in kept))
    return ColumnLevels(name, "category", np.empty(0), categories, rare, has_missing)


def _weighted_quantiles(values: Floats, weight: Floats, count: int) -> Floats:
    """Return at most ``count`` distinct values at equal steps of the total weight, both ends included."""
    distinct, places = np.unique(values, return_inverse=True)
    if len(distinct) <= count:
        return distinct
    share = np.cumsum(np.bincount(places, weight))
    wanted = np.linspace(0, share[-1], count)
    at = np.searchsorted(share, wanted * (1 - 1e-12), side="left")
    return np.unique(distinct[np.r_[0, at[1:-1], len(distinct) - 1]])


@dataclass(frozen=True)
class Sample:
    """Request every ``step``-th row of each block: a list with its columns and weights."""

    step: int

    def answer(self, block: RowBlock, state: object) -> tuple[list[Any], None]:
        """See ``exclusivity.rows.Request``."""
        rows = slice(None, None, self.step)
        columns = [column_of(block.X, place)[rows] for place in range(block.X.shape[1])]
        return [(columns, block.weights[rows])], None


class Levels:
    """All columns of a table as one vector of points.

    Parameters
    ----------
    columns : sequence of ColumnLevels

    Attributes
    ----------
    starts : ndarray of int of shape (n_columns + 1,)
        Where the points of each column begin, and where the last ones end.
    level_starts : ndarray of int of shape (n_columns + 1,)
        The same for levels.
    """

    def __init__(self, columns: Sequence[ColumnLevels]) -> None:
        self.columns = list(columns)
        self.starts = np.cumsum([0, *(column.n_points for column in columns)])
        self.level_starts = np.cumsum([0, *(column.n_levels for column in columns)])

    def with_rows(self, weight: Floats) -> Levels:
        """Return the same levels, with the shares of training rows from their weights on all points."""
        columns = []
        for column, start in zip(self.columns, self.starts.tolist(), strict=False):
            own = weight[start : start + column.n_levels]
            shares = own / max(own.sum(), np.finfo(float).tiny)
            n_rows = float(weight[start : start + column.n_points].sum())
            columns.append(replace(column, shares=shares, n_rows=n_rows))
        return Levels(columns)

    @cached_property
    def expand(self) -> Any:
        """The values of all points from those of the levels."""
        blocks = []
        for column in self.columns:
            rows = [np.eye(column.n_levels)] + [column.shares[None]] * (not column.has_missing)
            blocks.append(np.vstack(rows))
        return sparse.block_diag(blocks, format="csr")

    @property
    def joined(self) -> Bools:
        """Whether a level and the next one are neighbouring knots of a column."""
        joined = np.zeros(self.level_starts[-1], dtype=bool)
        for column, start in zip(self.columns, self.level_starts, strict=False):
            joined[start : start + max(0, len(column.knots) - 1)] = True
        return joined[:-1]

    def encode(self, X: Any, rows: Ints | None = None) -> tuple[Ints, Floats]:
        """Return the left point of every cell of some rows, and the weight of the point to its right."""
        n_rows = X.shape[0] if rows is None else len(rows)
        left = np.empty((n_rows, len(self.columns)), dtype=np.int32)
        weight = np.empty((n_rows, len(self.columns)))
        for place, column in enumerate(self.columns):
            cells = column_of(X, place)
            at, weight[:, place] = column.encode(cells if rows is None else cells[rows])
            left[:, place] = at + self.starts[place]
        return left, weight

    def tables(self, X: Any) -> Iterator[ColumnTable]:
        """Cut a table into blocks of rows."""
        table = ColumnTable([column_of(X, place) for place in range(len(self.columns))])
        step = max(1, _BLOCK_CELLS // len(self.columns))
        return (table[start : start + step] for start in range(0, len(table), step))

    def blocks(self, X: Any) -> Iterator[tuple[Ints, Floats]]:
        """Encode a table some rows at a time."""
        return map(self.encode, self.tables(X))
