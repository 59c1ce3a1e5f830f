"""What a code has to know of a column, in one look. Summaries of parts of the rows add up.

Counts, ranges, means and deviations are those of all rows. Quantiles are those of at most ``MOST_VALUES``
values, drawn by a fixed rule; where a column has no more they are exact.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from exclusivity.problem.arrays import Floats
from exclusivity.tables.codes import (
    MONTHS,
    MOST_RARE,
    WEEKDAYS,
    Code,
    DateCode,
    LevelCode,
    NumberCode,
    date_parts,
)
from exclusivity.tables.frames import Column, Values
from exclusivity.tables.knots import place_knots
from exclusivity.tables.values import as_dates, as_levels, as_numbers

MOST_VALUES = 1 << 17
"""So many values are kept for quantiles."""

MOST_LEVELS = 1 << 16
"""Where parts are added up, so many levels are counted: the most frequent ones."""


@dataclass(frozen=True)
class Rules:
    """How columns are encoded; the parameters of a :class:`TableEncoder`."""

    n_knots: int
    min_frequency: int
    max_levels: int


class Summary(Protocol):
    """What all summaries have."""

    @property
    def n_rows(self) -> int:
        """How many rows."""

    @property
    def n_gaps(self) -> int:
        """How many of them are gaps."""

    @property
    def n_levels(self) -> int | None:
        """How many levels, of a category."""

    @classmethod
    def of(cls, column: Column, part: int = 0) -> Self:
        """Look at some rows: those of a part with that number."""

    def __add__(self, other: Self, /) -> Self:
        """The summary of both parts."""

    def code(self, rules: Rules) -> Code | None:
        """How the column becomes output columns; None where it tells no rows apart."""

    def why_not(self, rules: Rules) -> str:
        """Why there is no code."""


@dataclass(frozen=True, eq=False, slots=True)
class NumberSummary:
    """Of numbers. Infinite values say nothing about scale and count as neither gaps nor values.

    Attributes
    ----------
    n_rows, n_gaps, n_known : int
        Rows, gaps, and finite values.
    low, high : float
        The range of these.
    size, mean, variance : float
        The largest absolute value, and the moments of the values divided by it: squares of large numbers
        would leave the range of floating point.
    values, keys : ndarray
        The values that are kept, and what decides which: those with the smallest keys.
    """

    n_rows: int
    n_gaps: int
    n_known: int
    low: float
    high: float
    size: float
    mean: float
    variance: float
    values: Floats
    keys: NDArray[np.uint64]
    n_levels: None = None

    @classmethod
    def of(cls, column: Column, part: int = 0) -> Self:
        """Look at some rows."""
        numbers = as_numbers(column)
        is_finite = np.isfinite(numbers)
        known = numbers if is_finite.all() else numbers[is_finite]
        n_gaps = len(numbers) - len(known) and int(np.isnan(numbers).sum())
        if not len(known):
            return cls(len(numbers), n_gaps, 0, 0.0, 0.0, 1.0, 0.0, 0.0, known, np.empty(0, dtype=np.uint64))
        low, high = float(known.min()), float(known.max())
        size = max(-low, high) or 1.0
        parts = known / size
        drawn, keys = _drawn(len(known), part)
        return cls(
            len(numbers),
            n_gaps,
            len(known),
            low,
            high,
            size,
            float(parts.mean()),
            float(parts.var()),
            known[drawn],
            keys,
        )

    def __add__(self, other: Self, /) -> Self:
        """The summary of both parts."""
        n_rows, n_gaps = self.n_rows + other.n_rows, self.n_gaps + other.n_gaps
        known = [part for part in (self, other) if part.n_known]
        if len(known) < 2:
            return replace((known or [self])[0], n_rows=n_rows, n_gaps=n_gaps)
        n_known, size = self.n_known + other.n_known, max(self.size, other.size)
        factors = np.array([part.size / size for part in known])
        shares = np.array([part.n_known / n_known for part in known])
        means = factors * [part.mean for part in known]
        mean = shares @ means
        variance = shares @ (factors**2 * [part.variance for part in known] + (means - mean) ** 2)
        values, keys = np.concatenate([p.values for p in known]), np.concatenate([p.keys for p in known])
        if len(keys) > MOST_VALUES:
            kept = np.argpartition(keys, MOST_VALUES)[:MOST_VALUES]
            values, keys = values[kept], keys[kept]
        return replace(
            self,
            n_rows=n_rows,
            n_gaps=n_gaps,
            n_known=n_known,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            size=size,
            mean=float(mean),
            variance=float(variance),
            values=values,
            keys=keys,
        )

    @property
    def names_rows(self) -> bool:
        """Whether every row has another whole number, as far as the values that are kept tell."""
        whole = self.values == np.rint(self.values)
        return bool(self.n_known == self.n_rows and whole.all() and len(set(self.values)) == len(self.values))

    def code(self, rules: Rules, *, tells_gaps: bool = True) -> NumberCode | None:
        """How the column becomes output columns; None where all values are the same."""
        low, high = self.low, self.high
        mean, scale = self.size * self.mean, self.size * float(np.sqrt(self.variance))
        if low == high or not scale > 0 or not np.isfinite((high / scale, low / scale, mean / scale)).all():
            return None
        code = NumberCode(low, high, mean, scale, 0.0, np.empty(0), tells_gaps and self.n_gaps > 0)
        standardised = code.standardised(self.values)
        fill = float(np.median(standardised))
        if not rules.n_knots:
            return replace(code, fill=fill)
        if self.n_known > len(self.values):  # the ends may not have been drawn
            standardised = np.concatenate([standardised, code.standardised(np.array([low, high]))])
        return replace(code, fill=fill, knots=place_knots(standardised, rules.n_knots))

    def why_not(self, rules: Rules) -> str:
        """Why there is no code."""
        return "all its values are the same"


@lru_cache(maxsize=4)
def _drawn(count: int, part: int) -> tuple[NDArray[np.intp] | slice, NDArray[np.uint64]]:
    """Which of so many values to keep, and their keys: as good as random, and always the same."""
    # The mixing of SplitMix64 (Steele, Lea and Flood, 2014), of the number of the part and the value.
    keys = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(part << 40)
    keys *= np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    keys ^= keys >> np.uint64(31)
    if count <= MOST_VALUES:
        return slice(None), keys
    kept = np.sort(np.argpartition(keys, MOST_VALUES)[:MOST_VALUES])
    return kept, keys[kept]


@dataclass(frozen=True, eq=False, slots=True)
class LevelSummary:
    """Of a category.

    Attributes
    ----------
    n_rows, n_gaps : int
        Rows and gaps.
    n_levels : int
        Levels; at least so many where some are not counted any more.
    counts : Counter
        Rows of each level.
    """

    n_rows: int
    n_gaps: int
    n_levels: int
    counts: Counter[str]

    @classmethod
    def of(cls, column: Column, part: int = 0) -> Self:  # noqa: ARG003 -- counts need no draw
        """Look at some rows."""
        codes, levels = as_levels(column)
        counts = np.bincount(codes + 1, minlength=len(levels) + 1).tolist()
        found = Counter({level: count for level, count in zip(levels, counts[1:], strict=True) if count})
        return cls(len(codes), counts[0], len(found), found)

    def __add__(self, other: Self, /) -> Self:
        """The summary of both parts."""
        counts = self.counts + other.counts
        n_levels = max(self.n_levels, other.n_levels, len(counts))
        if len(counts) > MOST_LEVELS:
            counts = Counter(dict(_ranked(counts)[:MOST_LEVELS]))
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            n_gaps=self.n_gaps + other.n_gaps,
            n_levels=n_levels,
            counts=counts,
        )

    def code(self, rules: Rules) -> LevelCode | None:
        """How the column becomes output columns; None where no level tells rows apart."""
        ranked = _ranked(self.counts)
        kept = [level for level, count in ranked[: rules.max_levels] if count >= rules.min_frequency]
        # Ranked by frequency, so that those kept come first.
        rare = sorted(level for level, _ in ranked[len(kept) : len(kept) + MOST_RARE])
        if not kept or (len(kept) == 1 and not rare):
            return None
        return LevelCode(tuple(sorted(kept)), tuple(rare), self.n_gaps > 0)

    def why_not(self, rules: Rules) -> str:
        """Why there is no code."""
        if self.n_levels > 1:
            return f"no level is in {rules.min_frequency} rows or more, as in a column that names rows"
        return "all its values are the same"


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Levels with their counts, the most frequent first, equal ones in the order of the alphabet."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@dataclass(frozen=True, eq=False, slots=True)
class DateSummary:
    """Of dates.

    Attributes
    ----------
    n_rows, n_gaps : int
        Rows and gaps.
    year, hour : NumberSummary
    months, weekdays : frozenset of str
        Those that occur.
    """

    n_rows: int
    n_gaps: int
    year: NumberSummary
    months: frozenset[str]
    weekdays: frozenset[str]
    hour: NumberSummary
    n_levels: None = None

    @classmethod
    def of(cls, column: Column, part: int = 0) -> Self:
        """Look at some rows."""
        moments = as_dates(column)
        known = date_parts(moments)
        return cls(
            len(moments),
            int(np.isnat(moments).sum()),
            NumberSummary.of(known["year"], part),
            _whole_numbers(known["month"]),
            _whole_numbers(known["weekday"]),
            NumberSummary.of(known["hour"], part),
        )

    def __add__(self, other: Self, /) -> Self:
        """The summary of both parts."""
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            n_gaps=self.n_gaps + other.n_gaps,
            year=self.year + other.year,
            months=self.months | other.months,
            weekdays=self.weekdays | other.weekdays,
            hour=self.hour + other.hour,
        )

    def code(self, rules: Rules) -> DateCode | None:
        """How the column becomes output columns; None where all parts are the same."""
        found = {
            "year": self.year.code(rules, tells_gaps=False),
            "month": _levels_of(self.months, MONTHS),
            "weekday": _levels_of(self.weekdays, WEEKDAYS),
            "hour": self.hour.code(rules, tells_gaps=False),
        }
        parts = tuple((part, code) for part, code in found.items() if code is not None)
        return DateCode(parts, self.n_gaps > 0) if parts else None

    def why_not(self, rules: Rules) -> str:
        """Why there is no code."""
        return "year, month, weekday and hour are the same"


def _whole_numbers(part: Values) -> frozenset[str]:
    """The small whole numbers that occur."""
    counts = np.bincount(part[~np.isnan(part)].astype(np.intp))
    return frozenset(map(str, np.flatnonzero(counts).tolist()))


def _levels_of(seen: frozenset[str], every: tuple[str, ...]) -> LevelCode | None:
    return LevelCode(tuple(name for name in every if name in seen), (), False) if len(seen) > 1 else None


SUMMARIES: dict[str, type[NumberSummary | LevelSummary | DateSummary]] = {
    "number": NumberSummary,
    "category": LevelSummary,
    "date": DateSummary,
}
"""By the kind of a column."""
