"""How one input column becomes output columns. Each code is data: numbers, and texts of levels.

A code has a ``width``, its number of output columns, and ``slots``: of so many of them a row has a value that
may differ from zero. ``ready`` looks at a whole column, whatever it holds, and refuses what it cannot be;
``entries`` gives of some of its rows, slot by slot, which output column that is and what stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from exclusivity.problem.arrays import Bools, Floats, Ints
from exclusivity.tables.frames import Column, ColumnTable, Values
from exclusivity.tables.knots import hats, within
from exclusivity.tables.values import as_dates, as_levels, as_numbers, missing

Entry = tuple[Ints | int, Floats | Bools]
"""Of every row an output column, by its number within the code, and the value there."""

Ready = Values | ColumnTable
"""A column that has been looked at."""

MOST_RARE = 1000
"""So many rare levels are known by name; others, rarer still, are taken for levels never seen."""

GAP = "(missing)"
RARE = "(rare)"

_ALIASES = (("1", "True"), ("0", "False"), ("True", "1"), ("False", "0"))


class Code(Protocol):
    """What all codes have."""

    @property
    def width(self) -> int:
        """Number of output columns."""

    @property
    def slots(self) -> int:
        """Number of entries of a row."""

    def names(self, column: str) -> list[str]:
        """Names of the output columns."""

    def ready(self, column: Column) -> Ready:
        """A column in the form that ``entries`` takes rows of."""

    def entries(self, rows: Any) -> Iterator[Entry]:
        """The entries of some rows of a column that is ready."""


@dataclass(frozen=True, eq=False, slots=True)
class NumberCode:
    """A number: itself, standardised, and hat functions of it.

    Values outside of the range seen in training count as its nearest end, so that nothing is out of bounds.

    Attributes
    ----------
    low, high : float
        The range of the training rows.
    mean, scale : float
        What standardises them.
    fill : float
        What stands in for a gap: the median, standardised.
    knots : ndarray
        Of the standardised values; empty: no hats.
    has_gaps : bool
        Whether there is an output column that tells gaps.
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
        """Names of the output columns."""
        gap = [f"{column}={GAP}"] if self.has_gaps else []
        return [column, *(f"{column}_spline{j}" for j in range(len(self.knots))), *gap]

    def standardised(self, numbers: Floats) -> Floats:
        """Numbers as the hats see them; gaps stay NaN."""
        # Not (x - mean) / scale: a difference of large numbers may leave the range of floating point.
        found = within(numbers.astype(np.float64), self.low, self.high)
        found /= self.scale
        found -= self.mean / self.scale
        return found

    def ready(self, column: Column) -> Ready:
        """Numbers, NaN for gaps."""
        return as_numbers(column)

    def entries(self, rows: Values) -> Iterator[Entry]:
        """The entries of some rows."""
        numbers = self.standardised(rows)
        gaps = np.isnan(numbers)
        numbers[gaps] = self.fill
        yield 0, numbers
        if len(self.knots):
            first, upper = hats(numbers, self.knots)
            first += 1
            yield first, 1.0 - upper
            yield first + 1, upper
        if self.has_gaps:
            yield self.width - 1, gaps


@dataclass(frozen=True, eq=False)
class LevelCode:
    """A category: one output column for each level, one for all rare ones; zeros for a level never seen.

    Attributes
    ----------
    levels : tuple of str
        Those with a column of their own, in order.
    rare : tuple of str
        Those that share one.
    has_gaps : bool
        Whether there is an output column that tells gaps.
    """

    levels: tuple[str, ...]
    rare: tuple[str, ...]
    has_gaps: bool

    @property
    def width(self) -> int:
        """Number of output columns."""
        return len(self.levels) + bool(self.rare) + self.has_gaps

    @property
    def slots(self) -> int:
        """Number of entries of a row: it has one level, or a gap."""
        return 1

    def names(self, column: str) -> list[str]:
        """Names of the output columns."""
        more = ([RARE] if self.rare else []) + ([GAP] if self.has_gaps else [])
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

    def places_of(self, levels: list[str]) -> Ints:
        """The output column of every level, -1 for those never seen; at the end that of a gap."""
        gap = self.width - 1 if self.has_gaps else -1
        small = np.min_scalar_type(-self.width)
        return np.array([*(self.places.get(level, -1) for level in levels), gap], dtype=small)

    def ready(self, column: Column) -> Ready:
        """Numbers of output columns, -1 for none."""
        codes, levels = as_levels(column)
        return self.places_of(levels)[codes]

    def entries(self, rows: Values) -> Iterator[Entry]:
        """The entries of some rows."""
        yield np.maximum(rows, 0), rows >= 0


@dataclass(frozen=True, eq=False, slots=True)
class DateCode:
    """A date: its year, month, day of the week and time of day, as far as they differ.

    Attributes
    ----------
    parts : tuple of (str, code)
        The parts by name, a subset of those of ``date_parts``.
    has_gaps : bool
        Whether there is an output column that tells gaps.
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
        """Names of the output columns."""
        found = [name for part, code in self.parts for name in code.names(f"{column}.{part}")]
        return [*found, *([f"{column}={GAP}"] if self.has_gaps else [])]

    def ready(self, column: Column) -> Ready:
        """The parts, each of them ready, and which rows are gaps."""
        moments = as_dates(column)
        known = date_parts(moments, [part for part, _ in self.parts])
        parts: list[Values] = []
        for part, code in self.parts:
            if isinstance(code, LevelCode):  # small whole numbers, which need no search
                places = code.places_of([str(number) for number in range(len(MONTHS) + 1)])
                parts.append(places[np.nan_to_num(known[part], nan=-1).astype(np.intp)])
            else:
                small = np.float32 if part == "year" else np.float64  # years are whole numbers
                parts.append(known[part].astype(small, copy=False))
        return ColumnTable([*parts, np.isnat(moments)])

    def entries(self, rows: ColumnTable) -> Iterator[Entry]:
        """The entries of some rows."""
        start = 0
        *parts, gaps = map(np.asarray, rows.columns)
        for (_, code), values in zip(self.parts, parts, strict=True):
            for place, entry in code.entries(values):
                yield np.add(place, start, dtype=np.intp), entry
            start += code.width
        if self.has_gaps:
            yield self.width - 1, gaps


MONTHS = tuple(str(month) for month in range(1, 13))
WEEKDAYS = tuple(str(day) for day in range(1, 8))
"""Monday is 1, as in ISO 8601."""
PARTS = ("year", "month", "weekday", "hour")


def date_parts(moments: Values, wanted: Sequence[str] = PARTS) -> dict[str, Floats]:
    """Year, month (1 to 12), day of the week (Monday is 1) and hours since midnight; NaN for NaT.

    Examples
    --------
    >>> parts = date_parts(np.array(["2024-02-29T18:30"], dtype="datetime64[us]"))
    >>> {name: float(part[0]) for name, part in parts.items()}
    {'year': 2024.0, 'month': 2.0, 'weekday': 4.0, 'hour': 18.5}
    """
    gaps = np.isnat(moments)
    days = moments.astype("datetime64[D]")
    calendar, places = _calendar(days, gaps)
    of_days: dict[str, Callable[[], Any]] = {
        "year": lambda: calendar.astype("datetime64[Y]").astype(np.int64) + 1970.0,
        "month": lambda: calendar.astype("datetime64[M]").astype(np.int64) % 12 + 1.0,
        "weekday": lambda: (calendar.astype(np.int64) + 3) % 7 + 1.0,  # 1970 began with a Thursday
    }
    found = {name: np.append(of_days[name](), np.nan)[places] for name in wanted if name in of_days}
    if "hour" in wanted:
        found["hour"] = (moments - days) / np.timedelta64(1, "h")
        found["hour"][gaps] = np.nan
    return found


def _calendar(days: Values, gaps: Bools) -> tuple[Values, Ints]:
    """Some days, and the place of every row among them, -1 for gaps.

    All days from the first to the last where those are less than the rows: months are divisions with leap
    years, and slow.
    """
    known = days if not gaps.any() else days[~gaps]
    if len(known):
        first, last = known.min(), known.max()
        if int((last - first).astype(np.int64)) < len(days):
            places = (days - first).astype(np.int64)
            places[gaps] = -1
            return np.arange(first, last + np.timedelta64(1, "D")), places
    return days, np.where(gaps, -1, np.arange(len(days)))


@dataclass(frozen=True, eq=False)
class GapCode:
    """A column that tells nothing but whether there is a value."""

    width: int = 1
    slots: int = 1

    def names(self, column: str) -> list[str]:
        """Names of the output columns."""
        return [f"{column}={GAP}"]

    def ready(self, column: Column) -> Ready:
        """Which rows are gaps."""
        return missing(column)

    def entries(self, rows: Values) -> Iterator[Entry]:
        """The entries of some rows."""
        yield 0, rows
