"""Summaries of columns: all that a code has to know, in one pass. Summaries of blocks of rows add up.

Counts, ranges, means and deviations are those of all rows. Quantiles are those of at most ``MOST_VALUES``
values, drawn by a fixed rule; where a column has no more they are exact.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Floats
from exclusivity.tables.cells import Column, as_dates, as_levels, as_numbers
from exclusivity.tables.codes import (
    MOST_RARE,
    DateCode,
    LevelCode,
    NumberCode,
    date_parts,
    place_knots,
)

MOST_VALUES = 1 << 17
"""Values that are kept for quantiles."""

MOST_LEVELS = 1 << 16
"""Categories that are counted where blocks are added up: the most frequent ones."""


@dataclass(frozen=True)
class Rules:
    """Parameters of a :class:`TableEncoder` that codes depend on."""

    n_knots: int
    min_frequency: int
    max_levels: int


@dataclass(frozen=True, eq=False, slots=True)
class NumberSummary:
    """Of numbers. Infinite ones say nothing about scale, and count neither as missing nor as known.

    ``mean`` and ``variance`` are those of the values divided by ``size``, the largest absolute one: squares
    of large numbers would leave the range of floating point. Kept are the ``values`` of smallest ``keys``.
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

    @classmethod
    def of(cls, column: Column, part: int = 0) -> Self:
        """Summarise the rows of the block with number ``part``."""
        numbers = as_numbers(column)
        is_finite = np.isfinite(numbers)
        known = numbers if is_finite.all() else numbers[is_finite]
        n_gaps = len(numbers) - len(known) and int(np.isnan(numbers).sum())
        if not len(known):
            return cls(len(numbers), n_gaps, 0, 0.0, 0.0, 1.0, 0.0, 0.0, known, np.empty(0, dtype=np.uint64))
        low, high = float(known.min()), float(known.max())
        size = max(-low, high) or 1.0
        scaled = known / size
        mean, variance = float(scaled.mean()), float(scaled.var())
        drawn, keys = _draw(len(known), part)
        return cls(len(numbers), n_gaps, len(known), low, high, size, mean, variance, known[drawn], keys)

    def __add__(self, other: Self, /) -> Self:
        """Return the summary of both blocks."""
        n_rows, n_gaps = self.n_rows + other.n_rows, self.n_gaps + other.n_gaps
        both = [block for block in (self, other) if block.n_known]
        if len(both) < 2:
            return replace((both or [self])[0], n_rows=n_rows, n_gaps=n_gaps)
        n_known, size = self.n_known + other.n_known, max(self.size, other.size)
        factors = np.array([block.size / size for block in both])
        shares = np.array([block.n_known / n_known for block in both])
        means = factors * [block.mean for block in both]
        mean = shares @ means
        variance = shares @ (factors**2 * [block.variance for block in both] + (means - mean) ** 2)
        values, keys = (np.concatenate([getattr(b, name) for b in both]) for name in ("values", "keys"))
        if len(keys) > MOST_VALUES:
            kept = np.argpartition(keys, MOST_VALUES)[:MOST_VALUES]
            values, keys = values[kept], keys[kept]
        low, high = min(self.low, other.low), max(self.high, other.high)
        cls = type(self)
        return cls(n_rows, n_gaps, n_known, low, high, size, float(mean), float(variance), values, keys)

    @property
    def names_rows(self) -> bool:
        """True if every row has another whole number, as far as the values that are kept tell."""
        whole = self.values == np.rint(self.values)
        return bool(self.n_known == self.n_rows and whole.all() and len(set(self.values)) == len(self.values))

    def code(self, rules: Rules, *, has_indicator: bool = True) -> NumberCode | None:
        """Return how the column is encoded; None where all values are the same."""
        low, high = self.low, self.high
        mean, scale = self.size * self.mean, self.size * float(np.sqrt(self.variance))
        if low == high or not scale > 0 or not np.isfinite((high / scale, low / scale, mean / scale)).all():
            return None
        code = NumberCode(low, high, mean, scale, 0.0, np.empty(0), has_indicator and self.n_gaps > 0)
        standardised = code.standardised(self.values)
        fill = float(np.median(standardised))
        if not rules.n_knots:
            return replace(code, fill=fill)
        if self.n_known > len(self.values):  # the ends may not have been drawn
            standardised = np.concatenate([standardised, code.standardised(np.array([low, high]))])
        return replace(code, fill=fill, knots=place_knots(standardised, rules.n_knots))


@lru_cache(maxsize=4)
def _draw(count: int, part: int) -> tuple[NDArray[np.intp] | slice, NDArray[np.uint64]]:
    """Return which of so many values to keep, and their keys: as good as random, and always the same."""
    # The mixing of SplitMix64 (Steele, Lea and Flood, 2014), of the number of the block and the value.
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
    """Of a category: how many rows have each of its levels, of which ``n_levels`` were seen, at least."""

    n_rows: int
    n_gaps: int
    n_levels: int
    counts: Counter[str]

    @classmethod
    def of(cls, column: Column, part: int = 0) -> Self:  # noqa: ARG003 -- counts need no draw
        """Summarise rows."""
        codes, levels = as_levels(column)
        counts = np.bincount(codes + 1, minlength=len(levels) + 1).tolist()
        found = Counter({level: count for level, count in zip(levels, counts[1:], strict=True) if count})
        return cls(len(codes), counts[0], len(found), found)

    def __add__(self, other: Self, /) -> Self:
        """Return the summary of both blocks."""
        counts = self.counts + other.counts
        n_levels = max(self.n_levels, other.n_levels, len(counts))
        if len(counts) > MOST_LEVELS:
            counts = Counter(dict(_ranked(counts)[:MOST_LEVELS]))
        return type(self)(self.n_rows + other.n_rows, self.n_gaps + other.n_gaps, n_levels, counts)

    def code(self, rules: Rules) -> LevelCode | None:
        """Return how the column is encoded; None where no level tells rows apart."""
        ranked = _ranked(self.counts)
        kept = [level for level, count in ranked[: rules.max_levels] if count >= rules.min_frequency]
        rare = sorted(level for level, _ in ranked[len(kept) : len(kept) + MOST_RARE])
        if not kept or (len(kept) == 1 and not rare):
            return None
        return LevelCode(tuple(sorted(kept)), tuple(rare), self.n_gaps > 0)


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return levels with their counts, the most frequent first, equal ones in the order of the alphabet."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@dataclass(frozen=True, eq=False, slots=True)
class DateSummary:
    """Of dates: summaries of their parts."""

    n_rows: int
    n_gaps: int
    year: NumberSummary
    month: LevelSummary
    weekday: LevelSummary
    hour: NumberSummary

    @classmethod
    def of(cls, column: Column, part: int = 0) -> Self:
        """Summarise rows."""
        moments = as_dates(column)
        known = date_parts(moments)
        year, hour = (NumberSummary.of(known[name], part) for name in ("year", "hour"))
        month, weekday = (LevelSummary.of(known[name]) for name in ("month", "weekday"))
        return cls(len(moments), month.n_gaps, year, month, weekday, hour)

    def __add__(self, other: Self, /) -> Self:
        """Return the summary of both blocks."""
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def code(self, rules: Rules) -> DateCode | None:
        """Return how the column is encoded; None where all parts are the same."""
        found: dict[str, NumberCode | LevelCode | None] = {
            "year": self.year.code(rules, has_indicator=False),
            "month": None,
            "weekday": None,
            "hour": self.hour.code(rules, has_indicator=False),
        }
        for part in ("month", "weekday"):
            seen = sorted(getattr(self, part).counts, key=int)
            if len(seen) > 1:
                found[part] = LevelCode(tuple(seen), (), False)
        parts = tuple((part, code) for part, code in found.items() if code is not None)
        return DateCode(parts, self.n_gaps > 0) if parts else None


Summary = NumberSummary | LevelSummary | DateSummary
SUMMARIES: dict[str, type[Summary]] = {"number": NumberSummary, "category": LevelSummary, "date": DateSummary}
"""By the kind of a column."""
