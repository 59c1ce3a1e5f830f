"""How one input column becomes output columns. Each code is data: numbers, and texts of levels.

A code has a ``width``, its number of output columns, and ``slots``: of so many of them a row has a value that
may differ from zero. ``entries`` gives, slot by slot, which output column that is and what stands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from exclusivity.problem.arrays import Floats, Ints
from exclusivity.tables.frames import Values
from exclusivity.tables.knots import hats, place_knots
from exclusivity.tables.values import as_dates, as_levels, as_numbers, missing

Entry = tuple[Ints | int, Floats | float]
"""Of every row an output column, by its number within the code, and the value there."""

MOST_RARE = 1000
"""So many rare levels are known by name; others, rarer still, are taken for levels never seen."""

GAP = "(missing)"
RARE = "(rare)"


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

    def entries(self, values: Values) -> Iterator[Entry]:
        """The entries of some rows."""


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
        return np.clip(numbers, self.low, self.high) / self.scale - self.mean / self.scale

    def entries(self, values: Values) -> Iterator[Entry]:
        """The entries of some rows."""
        numbers = self.standardised(as_numbers(values))
        gaps = np.isnan(numbers)
        numbers[gaps] = self.fill
        yield 0, numbers
        if len(self.knots):
            first, upper = hats(numbers, self.knots)
            yield first + 1, 1.0 - upper
            yield first + 2, upper
        if self.has_gaps:
            yield self.width - 1, gaps.astype(np.float64)


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
        """Number of entries of a row."""
        return 1 + self.has_gaps

    def names(self, column: str) -> list[str]:
        """Names of the output columns."""
        more = ([RARE] if self.rare else []) + ([GAP] if self.has_gaps else [])
        return [f"{column}={level}" for level in (*self.levels, *more)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return dict.fromkeys(self.rare, len(self.levels)) | {
            level: place for place, level in enumerate(self.levels)
        }

    def entries(self, values: Values) -> Iterator[Entry]:
        """The entries of some rows."""
        yield from self.coded_entries(*as_levels(values))

    def coded_entries(self, codes: Ints, levels: list[str]) -> Iterator[Entry]:
        """The entries of rows whose levels are numbered; -1 is a gap."""
        places = np.array([self._places.get(level, -1) for level in levels] + [-1], dtype=np.intp)[codes]
        yield np.maximum(places, 0), (places >= 0).astype(np.float64)
        if self.has_gaps:
            yield self.width - 1, (codes < 0).astype(np.float64)


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

    def entries(self, values: Values) -> Iterator[Entry]:
        """The entries of some rows."""
        moments = as_dates(values)
        start, known = 0, date_parts(moments)
        for part, code in self.parts:
            for place, entry in code.entries(known[part]):
                yield start + place, entry
            start += code.width
        if self.has_gaps:
            yield self.width - 1, np.isnat(moments).astype(np.float64)


MONTHS = tuple(str(month) for month in range(1, 13))
WEEKDAYS = tuple(str(day) for day in range(1, 8))
"""Monday is 1, as in ISO 8601."""
PARTS = ("year", "month", "weekday", "hour")


def date_parts(moments: Values) -> dict[str, Floats]:
    """Year, month (1 to 12), day of the week (Monday is 1) and hours since midnight; NaN for NaT.

    Examples
    --------
    >>> parts = date_parts(np.array(["2024-02-29T18:30"], dtype="datetime64[us]"))
    >>> {name: float(part[0]) for name, part in parts.items()}
    {'year': 2024.0, 'month': 2.0, 'weekday': 4.0, 'hour': 18.5}
    """
    days = moments.astype("datetime64[D]")
    months = moments.astype("datetime64[M]").astype(np.int64)
    found = {
        "year": moments.astype("datetime64[Y]").astype(np.int64) + 1970.0,
        "month": months % 12 + 1.0,
        "weekday": (days.astype(np.int64) + 3) % 7 + 1.0,  # the first of January 1970 was a Thursday
        "hour": (moments - days) / np.timedelta64(1, "h"),
    }
    gaps = np.isnat(moments)
    return {name: np.where(gaps, np.nan, part) for name, part in found.items()}


def learn_number(numbers: Floats, n_knots: int, *, tells_gaps: bool = True) -> NumberCode | None:
    """The code of a column of numbers, NaN for gaps; None where they are all the same.

    Infinite values say nothing about scale and are left out here.
    """
    known = numbers[np.isfinite(numbers)]
    if not len(known) or known.min() == known.max():
        return None
    size = np.abs(known).max()
    parts = known / size  # squares of these stay within the range of floating point
    mean, scale = float(size * parts.mean()), float(size * parts.std())
    low, high = float(known.min()), float(known.max())
    if not scale > 0 or not np.isfinite((high / scale, low / scale, mean / scale)).all():
        return None
    has_gaps = tells_gaps and bool(np.isnan(numbers).any())
    code = NumberCode(low, high, mean, scale, 0.0, np.empty(0), has_gaps)
    standardised = code.standardised(known)
    knots = place_knots(standardised, n_knots) if n_knots else np.empty(0)
    return NumberCode(low, high, mean, scale, float(np.median(standardised)), knots, has_gaps)


def learn_levels(codes: Ints, levels: list[str], min_frequency: int, max_levels: int) -> LevelCode | None:
    """The code of a category; None where no level tells rows apart."""
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    ranked = sorted(range(len(levels)), key=lambda place: (-counts[place], levels[place]))
    kept = [place for place in ranked[:max_levels] if counts[place] >= min_frequency]
    others = ranked[len(kept) : len(kept) + MOST_RARE]  # ranked by frequency, so that those kept come first
    rare = sorted(levels[place] for place in others)
    if not kept or (len(kept) == 1 and not rare):
        return None
    return LevelCode(tuple(sorted(levels[place] for place in kept)), tuple(rare), bool((codes < 0).any()))


def learn_date(moments: Values, n_knots: int) -> DateCode | None:
    """The code of a column of dates; None where all their parts are the same."""
    parts: list[tuple[str, NumberCode | LevelCode]] = []
    for part, numbers in date_parts(moments).items():
        known = numbers[~np.isnan(numbers)]
        if len(np.unique(known)) < 2:
            continue
        if part in ("month", "weekday"):
            seen = Counter(known.tolist())
            every = MONTHS if part == "month" else WEEKDAYS
            parts.append((part, LevelCode(tuple(name for name in every if float(name) in seen), (), False)))
        else:
            code = learn_number(numbers, n_knots, tells_gaps=False)
            parts += [] if code is None else [(part, code)]
    return DateCode(tuple(parts), bool(np.isnat(moments).any())) if parts else None


@dataclass(frozen=True, eq=False)
class GapCode:
    """A column that tells nothing but whether there is a value."""

    width: int = 1
    slots: int = 1

    def names(self, column: str) -> list[str]:
        """Names of the output columns."""
        return [f"{column}={GAP}"]

    def entries(self, values: Values) -> Iterator[Entry]:
        """The entries of some rows."""
        yield 0, missing(values).astype(np.float64)
