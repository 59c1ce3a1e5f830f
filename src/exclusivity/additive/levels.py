"""Columns as levels: knots of a piecewise linear function, categories, and a level for missing values.

A fitted column turns any cell into a convex combination of its points: two neighbouring knots for a number
(constant beyond the first and the last knot), one point for a category or a missing value. Whatever a cell
contains, the value of a column function therefore lies between the smallest and the largest value of the
column's points, and both are attained. That is what certificates rest on.

The last point of a column is that of a missing cell. Where the training rows had missing values it is a
level, a parameter of its own; otherwise its value is the mean over the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from exclusivity.problem.arrays import Bools, Floats, Ints
from exclusivity.tables.cells import (
    CellError,
    Column,
    as_dates,
    as_levels,
    as_numbers,
    column_of,
    kind_of,
)

MAX_CATEGORIES = 254
MISSING, RARE = "(missing)", "(rare)"
_EPOCH = np.datetime64(0, "us")


@dataclass(frozen=True, eq=False)
class ColumnLevels:
    """The levels of one column.

    Attributes
    ----------
    name : str
        The name of the column, or "x" and its number.
    kind : {"number", "date", "category"}
        What it holds. Dates are microseconds since 1970.
    knots : ndarray
        The knots of a number or date, in increasing order.
    categories : tuple of str
        The categories with a level of their own.
    rare : tuple of str
        Categories that share one level, the last before the missing one. Unseen categories share it, too.
    has_missing : bool
        Whether missing values have a level of their own.
    mean : ndarray
        The mean of the training rows over the levels, for a missing cell where there is no such level.
    notation : str or None
        How its numbers were written, where ``erm`` read them from text (as of ``TableEncoder``).
    """

    name: str
    kind: str
    knots: Floats
    categories: tuple[str, ...]
    rare: tuple[str, ...]
    has_missing: bool
    mean: Floats
    notation: str | None = None

    @property
    def n_levels(self) -> int:
        """The number of parameters."""
        return len(self.knots) + len(self.categories) + bool(self.rare) + self.has_missing

    @property
    def n_points(self) -> int:
        """The number of points: the levels, and the point of a missing cell."""
        return self.n_levels + (not self.has_missing)

    def labels(self) -> list[str | float]:
        """Return what stands for each point: the value of a knot, a category, or a word in brackets."""
        rare = [RARE] if self.rare else []
        return [*self.knots.tolist(), *self.categories, *rare, MISSING]

    def encode(self, column: Column) -> tuple[Ints, Floats]:
        """Return the left point of every cell, and the weight of the point to its right."""
        if self.kind == "category":
            return self._encode_categories(column), np.zeros(len(column))
        numbers = _numbers(column, self.kind)
        n_knots = len(self.knots)
        left = np.full(len(numbers), self.n_points - 1)
        weight = np.zeros(len(numbers))
        known = ~np.isnan(numbers)
        if n_knots and known.any():
            x = np.clip(numbers[known], self.knots[0], self.knots[-1])
            at = np.searchsorted(self.knots, x, side="right") - 1
            right = np.minimum(at + 1, n_knots - 1)
            # Halves, because the difference of two large numbers may overflow.
            width = self.knots[right] / 2 - self.knots[at] / 2
            with np.errstate(invalid="ignore", divide="ignore"):
                share = np.where(width > 0, (x / 2 - self.knots[at] / 2) / width, 0.0)
            left[known], weight[known] = at, np.clip(share, 0.0, 1.0)
        return left, weight

    def _encode_categories(self, column: Column) -> Ints:
        codes, texts = as_levels(column)
        other = len(self.categories) if self.rare else self.n_points - 1
        known = {text: place for place, text in enumerate(self.categories)}
        places = [known.get(text, other) for text in texts]
        return np.array([*places, self.n_points - 1])[codes]

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
    read = as_numbers if kind == "number" else as_dates
    found: Any
    try:
        found = read(column)
    except CellError:  # a word among numbers: it says as little as a missing value
        found = np.concatenate([_one_cell(column[place : place + 1], kind) for place in range(len(column))])
    if kind == "number":
        return np.asarray(found, dtype=np.float64)
    numbers: Floats = (found - _EPOCH).astype(np.float64)
    numbers[np.isnat(found)] = np.nan
    return numbers


def _one_cell(cell: Column, kind: str) -> Any:
    try:
        return as_numbers(cell) if kind == "number" else as_dates(cell)
    except CellError:
        return np.array([np.nan if kind == "number" else np.datetime64("NaT", "us")])


def learn_levels(
    name: str,
    column: Column,
    weight: Floats,
    n_knots: int,
    min_frequency: float,
    *,
    is_category: bool,
    extra: Sequence[float] = (),
) -> ColumnLevels:
    """Choose the levels of a column of training rows; ``extra`` are values that must be knots."""
    kind = "category" if is_category else kind_of(column)
    if kind == "category":
        levels = _learn_categories(name, column, weight, min_frequency)
    else:
        numbers = _numbers(column, kind)
        known = np.isfinite(numbers) & (weight > 0)
        knots = _weighted_quantiles(numbers[known], weight[known], n_knots)
        knots = np.union1d(knots, extra)
        has_missing = bool((np.isnan(numbers) & (weight > 0)).any())
        levels = ColumnLevels(name, kind, knots, (), (), has_missing, np.empty(0))
    if levels.n_levels == 0:  # no row has a value, and none is missing
        levels = replace(levels, has_missing=True)
    left, share = levels.encode(column)
    total = np.bincount(left, weight * (1 - share), levels.n_points + 1)
    total += np.bincount(left + 1, weight * share, levels.n_points + 1)
    mean = total[: levels.n_levels]
    return replace(levels, mean=mean / max(mean.sum(), np.finfo(float).tiny))


def _learn_categories(name: str, column: Column, weight: Floats, min_frequency: float) -> ColumnLevels:
    codes, texts = as_levels(column)
    counts = np.bincount(codes[codes >= 0], weight[codes >= 0], len(texts))
    order = sorted(np.flatnonzero(counts > 0).tolist(), key=lambda place: (-counts[place], texts[place]))
    kept = [place for place in order[:MAX_CATEGORIES] if counts[place] >= min_frequency]
    rare = tuple(sorted(texts[place] for place in set(order) - set(kept)))
    has_missing = bool((weight[codes < 0] > 0).any())
    categories = tuple(sorted(texts[place] for place in kept))
    return ColumnLevels(name, "category", np.empty(0), categories, rare, has_missing, np.empty(0))


def _weighted_quantiles(values: Floats, weight: Floats, count: int) -> Floats:
    """Return at most ``count`` distinct values at equal steps of the total weight, both ends included."""
    distinct, places = np.unique(values, return_inverse=True)
    if len(distinct) <= count:
        return distinct
    share = np.cumsum(np.bincount(places, weight))
    wanted = np.linspace(0, share[-1], count)
    at = np.searchsorted(share, wanted * (1 - 1e-12), side="left")
    return np.unique(distinct[np.r_[0, at[1:-1], len(distinct) - 1]])


class Levels:
    """All columns of a table as one vector of points.

    Parameters
    ----------
    columns : sequence of ColumnLevels

    Attributes
    ----------
    starts : ndarray of int of shape (n_columns + 1,)
        Where the points of each column begin, and where the last ones end.
    expand : scipy.sparse matrix of shape (n_points, n_levels)
        The values of all points from those of the levels.
    joined : ndarray of bool of shape (n_levels - 1,)
        Whether a level and the next one are neighbouring knots.
    """

    def __init__(self, columns: Sequence[ColumnLevels]) -> None:
        self.columns = list(columns)
        self.starts = np.cumsum([0, *(column.n_points for column in columns)])
        blocks = []
        for column in columns:
            rows = [np.eye(column.n_levels)] + [column.mean[None]] * (not column.has_missing)
            blocks.append(np.vstack(rows))
        self.expand = sparse.block_diag(blocks, format="csr")
        self.level_starts = np.cumsum([0, *(column.n_levels for column in columns)])
        joined = np.zeros(self.level_starts[-1], dtype=bool)
        for column, start in zip(columns, self.level_starts, strict=False):
            joined[start : start + max(0, len(column.knots) - 1)] = True
        self.joined: Bools = joined[:-1]

    def encode(self, X: Any) -> tuple[Ints, Floats]:
        """Return the left point of every cell, and the weight of the point to its right."""
        n_rows = X.shape[0]
        left = np.empty((n_rows, len(self.columns)), dtype=np.int32)
        weight = np.empty((n_rows, len(self.columns)))
        for place, column in enumerate(self.columns):
            at, weight[:, place] = column.encode(column_of(X, place))
            left[:, place] = at + self.starts[place]
        return left, weight
