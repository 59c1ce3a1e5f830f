"""Codes: how the columns of a table become the columns of a matrix.

A code is plain data: the range and knots of numbers, the texts of categories. It has a ``width``, the number
of its output columns, and ``slots``: how many of these differ from zero in one row, at most. ``ready`` reads
a whole column and refuses cells that it cannot hold; ``entries`` gives for some of its rows, slot by slot,
the output column (one for all rows, or one for each), counted from ``start``, and the value there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.tables.cells import (
    Column,
    ColumnTable,
    DictionaryColumn,
    Values,
    as_dates,
    as_levels,
    as_numbers,
    missing,
)

Entry = tuple[Ints | int, Floats | Bools]
Ready = Values | ColumnTable

MOST_RARE = 1000
"""Rare categories that are known by name; others, rarer still, count as never seen."""

MISSING = "(missing)"
RARE = "(rare)"
MONTHS = tuple(str(month) for month in range(1, 13))
WEEKDAYS = tuple(str(day) for day in range(1, 8))
"""Monday is 1, as in ISO 8601."""
PARTS = ("year", "month", "weekday", "hour")

_ALIASES = (("1", "True"), ("0", "False"), ("True", "1"), ("False", "0"))
# Standardised values that differ by less are one value: a curve needs room to climb.
_CLOSEST_KNOTS = 1e-9
# Up to so many comparisons of all values are quicker than a search for each.
_FEW_KNOTS = 16


@dataclass(frozen=True, eq=False, slots=True)
class NumberCode:
    """A number: itself, standardised, and hat functions of it.

    Values outside of the range of the training rows, ``low`` to ``high``, count as its nearest end. ``fill``,
    the median, stands in for missing values, and ``knots`` are those of the hats (none: empty), both
    standardised by ``mean`` and ``scale``. ``has_gaps``: the last output column indicates missing values.
    """

    low: float
    high: float
    mean: float
    scale: float
    fill: float
    knots: Floats
    has_gaps: bool

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 1 + len(self.knots) + self.has_gaps

    @property
    def slots(self) -> int:
        """Number of entries of a row."""
        return 1 + 2 * (len(self.knots) > 0) + self.has_gaps

    def names(self, column: str) -> list[str]:
        """Return the names of the output columns."""
        indicator = [f"{column}={MISSING}"] if self.has_gaps else []
        return [column, *(f"{column}_spline{j}" for j in range(len(self.knots))), *indicator]

    def standardised(self, numbers: Floats) -> Floats:
        """Return numbers as the hats see them; missing values stay NaN."""
        # Not (x - mean) / scale: a difference of large numbers may leave the range of floating point.
        found: Floats = np.maximum(numbers, self.low, dtype=np.float64)
        np.minimum(found, self.high, out=found)
        found /= self.scale
        found -= self.mean / self.scale
        return found

    def ready(self, column: Column) -> Ready:
        """Return numbers, NaN where missing."""
        return as_numbers(column)

    def entries(self, rows: Any, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of some rows."""
        numbers = self.standardised(rows)
        is_missing = np.isnan(numbers)
        numbers[is_missing] = self.fill
        yield start, numbers
        if len(self.knots):
            first, upper = hats(numbers, self.knots)
            yield first + (start + 1), 1.0 - upper
            yield first + (start + 2), upper
        if self.has_gaps:
            yield start + self.width - 1, is_missing


@dataclass(frozen=True, eq=False)
class LevelCode:
    """A category: an output column for each of ``levels``, one for all of ``rare``; zeros for unseen ones.

    ``has_gaps``: the last output column indicates missing values.
    """

    levels: tuple[str, ...]
    rare: tuple[str, ...]
    has_gaps: bool
    slots = 1

    @property
    def width(self) -> int:
        """Number of output columns."""
        return len(self.levels) + bool(self.rare) + self.has_gaps

    def names(self, column: str) -> list[str]:
        """Return the names of the output columns."""
        more = ([RARE] if self.rare else []) + ([MISSING] if self.has_gaps else [])
        return [f"{column}={level}" for level in (*self.levels, *more)]

    @cached_property
    def places(self) -> dict[str, int]:
        """The output column of every text that has one.

        Where the training rows had either True or 1, but not both, each of them counts as the other, and so
        do False and 0: booleans become numbers on their way through an array of numbers.
        """
        own = dict.fromkeys(self.rare, len(self.levels))
        own |= {level: place for place, level in enumerate(self.levels)}
        return {text: own[level] for text, level in _ALIASES if level in own} | own

    def places_of(self, levels: Sequence[str]) -> Ints:
        """Return the output column of every category, -1 for unseen ones; last, that of missing values."""
        found = [*(self.places.get(level, -1) for level in levels), self.width - 1 if self.has_gaps else -1]
        return np.array(found, dtype=np.min_scalar_type(-self.width))

    def ready(self, column: Column) -> Ready:
        """Return numbers of output columns, -1 for none."""
        codes, levels = as_levels(column)
        return self.places_of(levels)[codes]

    def entries(self, rows: Any, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of some rows."""
        yield np.maximum(rows, 0, dtype=np.int32) + start, rows >= 0


@dataclass(frozen=True, eq=False, slots=True)
class DateCode:
    """A date: the codes of its year, month, weekday and hour, as far as these differ, by their names.

    ``has_gaps``: the last output column indicates missing values.
    """

    parts: tuple[tuple[str, NumberCode | LevelCode], ...]
    has_gaps: bool

    @property
    def width(self) -> int:
        """Number of output columns."""
        return sum(code.width for _, code in self.parts) + self.has_gaps

    @property
    def slots(self) -> int:
        """Number of entries of a row."""
        return sum(code.slots for _, code in self.parts) + self.has_gaps

    def names(self, column: str) -> list[str]:
        """Return the names of the output columns."""
        found = [name for part, code in self.parts for name in code.names(f"{column}.{part}")]
        return [*found, *([f"{column}={MISSING}"] if self.has_gaps else [])]

    def ready(self, column: Column) -> Ready:
        """Return the parts, each of them ready, and which rows are missing."""
        moments = as_dates(column)
        known = date_parts(moments)
        parts: list[Any] = [code.ready(known[part]) for part, code in self.parts]
        return ColumnTable([*parts, np.isnat(moments)])

    def entries(self, rows: Any, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of some rows."""
        *parts, is_missing = rows.columns
        for (_, code), values in zip(self.parts, parts, strict=True):
            yield from code.entries(values, start)
            start += code.width
        if self.has_gaps:
            yield start, is_missing


@dataclass(frozen=True, eq=False)
class GapCode:
    """A column that tells nothing but whether there is a value."""

    width = slots = 1
    has_gaps = True

    def names(self, column: str) -> list[str]:
        """Return the name of the output column."""
        return [f"{column}={MISSING}"]

    def ready(self, column: Column) -> Ready:
        """Return which rows are missing."""
        return missing(column)

    def entries(self, rows: Any, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of some rows."""
        yield start, rows


Code = NumberCode | LevelCode | DateCode | GapCode


def date_parts(moments: Values) -> dict[str, Column]:
    """Return year, month (1 to 12), weekday (Monday is 1) and hours since midnight.

    Examples
    --------
    >>> parts = date_parts(np.array(["2024-02-29T18:30"], dtype="datetime64[us]"))
    >>> {name: float(as_numbers(part)[0]) for name, part in parts.items()}
    {'year': 2024.0, 'month': 2.0, 'weekday': 4.0, 'hour': 18.5}
    """
    days = moments.astype("datetime64[D]")
    is_missing = np.isnat(days)
    known = days[~is_missing]
    calendar, codes = days, np.arange(len(days))
    # Months are divisions with leap years, and slow: of every day once, where there are fewer days than rows.
    if len(known) and int((known.max() - known.min()).astype(np.int64)) < len(days):
        calendar = np.arange(known.min(), known.max() + np.timedelta64(1, "D"))
        codes = (days - calendar[0]).astype(np.int64)
    codes = np.where(is_missing, -1, codes)
    months = calendar.astype("datetime64[M]").astype(np.int64)
    cells = {
        "year": months // 12 + 1970.0,
        "month": months % 12 + 1.0,
        "weekday": (calendar.astype(np.int64) + 3) % 7 + 1.0,  # 1970 began with a Thursday
    }
    parts: dict[str, Column] = {name: DictionaryColumn(codes, part) for name, part in cells.items()}
    return parts | {"hour": (moments - days) / np.timedelta64(1, "h")}


def place_knots(values: Floats, n_knots: int) -> Floats:
    """Return where a curve through standardised values may bend; empty where it is a straight line.

    Knots are quantiles. A value that more than its share of the rows have (a zero, as a rule) gets a knot of
    its own, and the quantiles are those of the other values: ties take no knots away. Of up to ``n_knots``
    distinct values each is a knot.

    Examples
    --------
    >>> place_knots(np.r_[np.zeros(90), np.arange(1.0, 11.0)], 4)
    array([ 0. ,  1. ,  5.5, 10. ])
    """
    knots, counts = np.unique(values, return_counts=True)
    if len(knots) > n_knots:
        ends, is_heavy = knots[[0, -1]], counts * (n_knots - 1) > len(values)
        heavy = knots[is_heavy]
        light = np.repeat(knots[~is_heavy], counts[~is_heavy])
        shares = np.linspace(0, 1, max(2, n_knots - len(heavy)))
        knots = np.unique(np.concatenate([heavy, np.quantile(light, shares), ends]))
    knots = knots[np.r_[True, np.diff(knots) > _CLOSEST_KNOTS]]
    return knots if len(knots) > 2 else np.empty(0)


def hats(values: Floats, knots: Floats) -> tuple[Ints, Floats]:
    """Return the lower of the two hat functions that are not zero at each value, and the value of the upper.

    Hat number j is 1 at knot j, 0 at every other knot, and linear between them; outside of the knots all stay
    as they are at the nearest one. The two hats add up to 1.

    Examples
    --------
    >>> hats(np.array([0.25, 7.0]), np.array([0.0, 1.0, 2.0]))
    (array([0, 1]), array([0.25, 1.  ]))
    """
    inner = knots[1:-1]
    if len(inner) <= _FEW_KNOTS:
        count = np.zeros(len(values), dtype=np.int8)
        for knot in inner:
            count += (values >= knot).view(np.int8)
        first = count.astype(np.intp)
    else:
        first = np.searchsorted(inner, values, side="right")
    upper = values - knots[first]
    upper /= (knots[1:] - knots[:-1])[first]
    np.maximum(upper, 0.0, out=upper)
    return first, np.minimum(upper, 1.0, out=upper)
