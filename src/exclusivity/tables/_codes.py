"""Codes: how the columns of a table become the columns of a matrix.

A column is read once, by ``READERS``; ``learn_code`` chooses a code from what was read of the training rows.
A code is plain data: the range and knots of numbers, the texts of categories. It has a ``width``, the number
of its output columns, and ``slots``: how many of these differ from zero in one row, at most. ``leaves`` turns
what was read into arrays of one entry per row, each with a simple code (a date has several), and ``entries``
of that gives for some rows, slot by slot, the output column (one for all rows, or one for each), counted from
``start``, and the value there. At last ``assemble_dense`` and ``assemble_sparse`` put all entries together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils import gen_batches

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.tables._columns import Column, Values, as_dates, as_levels, as_numbers

Entry = tuple[Ints | int, Floats | Bools]

MOST_VALUES = 1 << 17
"""Values of a column that its quantiles are taken from."""

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
# A dense table of less than this many bytes is not worth being sparse: dense arithmetic is quicker.
_LARGE = 1 << 26
# So many rows, encoded, stay in the processor's cache until all of their columns are written.
_BLOCK_ROWS = 1 << 12


@dataclass(frozen=True, eq=False, slots=True)
class NumberCode:
    """A number: itself, standardised, and hat functions of it, or ramps.

    Values outside of the range of the training rows, ``low`` to ``high``, count as its nearest end. ``fill``,
    the median, stands in for missing values, and ``knots`` are those of the hats (none: empty), both
    standardised by ``mean`` and ``scale``. ``has_missing``: the last output column indicates missing values.

    Ramps take the place of hats where ``is_ramp``: ramp j climbs from 0 to 1 between knots j and j + 1. Both
    span the same curves, and a sum of ramps whose weights have one sign is monotone.
    """

    low: float
    high: float
    mean: float
    scale: float
    fill: float
    knots: Floats
    has_missing: bool
    is_ramp: bool = False

    @property
    def _n_parts(self) -> int:
        return max(len(self.knots) - self.is_ramp, 0)

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 1 + self._n_parts + self.has_missing

    @property
    def slots(self) -> int:
        """Number of entries of a row."""
        return 1 + (self._n_parts if self.is_ramp else min(self._n_parts, 2)) + self.has_missing

    def names(self, column: str) -> list[str]:
        """Return the names of the output columns."""
        part = "ramp" if self.is_ramp else "spline"
        curve = (f"{column}_{part}{j}" for j in range(self._n_parts))
        return [column, *curve, *[f"{column}={MISSING}"] * self.has_missing]

    def standardised(self, numbers: Floats) -> Floats:
        """Return numbers as the hats see them; missing values stay NaN."""
        # Not (x - mean) / scale: a difference of large numbers may leave the range of floating point.
        found: Floats = np.maximum(numbers, self.low, dtype=np.float64)
        np.minimum(found, self.high, out=found)
        found /= self.scale
        found -= self.mean / self.scale
        return found

    def leaves(self, read: Floats) -> list[Leaf]:
        """Return numbers, NaN where missing."""
        return [(self, read)]

    def entries(self, rows: Any, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of some rows."""
        numbers = self.standardised(rows)
        is_missing = np.isnan(numbers)
        numbers[is_missing] = self.fill
        yield start, numbers
        if self.is_ramp:
            for part, (knot, after) in enumerate(pairwise(self.knots.tolist()), start + 1):
                yield part, np.clip((numbers - knot) / (after - knot), 0.0, 1.0)
        elif len(self.knots):
            first, upper = hats(numbers, self.knots)
            yield first + (start + 1), 1.0 - upper
            yield first + (start + 2), upper
        if self.has_missing:
            yield start + self.width - 1, is_missing


@dataclass(frozen=True, eq=False)
class LevelCode:
    """A category: an output column for each of ``levels``, one for all of ``rare``; zeros for unseen ones.

    ``has_missing``: the last output column indicates missing values.
    """

    levels: tuple[str, ...]
    rare: tuple[str, ...]
    has_missing: bool
    slots = 1

    @property
    def width(self) -> int:
        """Number of output columns."""
        return len(self.levels) + bool(self.rare) + self.has_missing

    def names(self, column: str) -> list[str]:
        """Return the names of the output columns."""
        more = [RARE] * bool(self.rare) + [MISSING] * self.has_missing
        return [f"{column}={level}" for level in (*self.levels, *more)]

    @cached_property
    def places(self) -> dict[str, int]:
        """The output column of every text that has one."""
        return places_of_texts(self.levels, self.rare)

    def leaves(self, read: tuple[Ints, Sequence[str]]) -> list[Leaf]:
        """Return numbers of output columns, -1 for unseen categories and for missing values without one."""
        codes, levels = read
        found = [self.places.get(level, -1) for level in levels]
        found.append(self.width - 1 if self.has_missing else -1)
        return [(self, np.array(found, dtype=np.min_scalar_type(-self.width))[codes])]

    def entries(self, rows: Any, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of some rows."""
        yield np.maximum(rows, 0, dtype=np.int32) + start, rows >= 0


@dataclass(frozen=True, eq=False, slots=True)
class DateCode:
    """A date: the codes of its year, month, weekday and hour, as far as these differ, by their names.

    ``has_missing``: the last output column indicates missing values.
    """

    parts: tuple[tuple[str, NumberCode | LevelCode], ...]
    has_missing: bool

    @property
    def width(self) -> int:
        """Number of output columns."""
        return sum(code.width for _, code in self.parts) + self.has_missing

    @property
    def slots(self) -> int:
        """Number of entries of a row."""
        return sum(code.slots for _, code in self.parts) + self.has_missing

    def names(self, column: str) -> list[str]:
        """Return the names of the output columns."""
        found = [name for part, code in self.parts for name in code.names(f"{column}.{part}")]
        return found + [f"{column}={MISSING}"] * self.has_missing

    def leaves(self, read: dict[str, Any]) -> list[Leaf]:
        """Return those of the parts, and which rows are missing."""
        parts = [leaf for part, code in self.parts for leaf in code.leaves(read[part])]
        return [*parts, (MissingCode(), read["missing"])] if self.has_missing else parts


@dataclass(frozen=True, eq=False)
class MissingCode:
    """A column that tells nothing but whether there is a value."""

    width = slots = 1
    has_missing = True

    def names(self, column: str) -> list[str]:
        """Return the name of the output column."""
        return [f"{column}={MISSING}"]

    def leaves(self, read: Any) -> list[Leaf]:
        """Return which rows are missing."""
        return [(self, missing_in(read))]

    def entries(self, rows: Any, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of some rows."""
        yield start, rows


def places_of_texts(levels: Sequence[str], rare: Sequence[str]) -> dict[str, int]:
    """Return the place of every text: levels are numbered, and rare ones share the next number.

    Where the training rows had either True or 1, but not both, each of them counts as the other, and so do
    False and 0: booleans become numbers on their way through an array of numbers.
    """
    own = dict.fromkeys(rare, len(levels)) | {level: place for place, level in enumerate(levels)}
    return {text: own[level] for text, level in _ALIASES if level in own} | own


Code = NumberCode | LevelCode | DateCode | MissingCode
Leaf = tuple[NumberCode | LevelCode | MissingCode, Values]


def _read_dates(column: Column) -> dict[str, Any]:
    """Return year, month, weekday and hours since midnight of dates, and which of them are missing.

    Months and weekdays are read as categories are, as codes of their texts.

    Examples
    --------
    >>> found = _read_dates(np.array(["2024-02-29T18:30"], dtype="datetime64[us]"))
    >>> found["year"], MONTHS[found["month"][0][0]], WEEKDAYS[found["weekday"][0][0]], found["hour"]
    (array([2024.]), '2', '4', array([18.5]))
    """
    moments = as_dates(column)
    is_missing, days = np.isnat(moments), moments.astype("datetime64[D]")
    months = days.astype("datetime64[M]").astype(np.int64)
    weekdays = days.astype(np.int64) + 3  # 1970 began with a Thursday
    return {
        "year": np.where(is_missing, np.nan, months // 12 + 1970.0),
        "month": (np.where(is_missing, -1, months % 12), MONTHS),
        "weekday": (np.where(is_missing, -1, weekdays % 7), WEEKDAYS),
        "hour": (moments - days) / np.timedelta64(1, "h"),
        "missing": is_missing,
    }


READERS: dict[str, Callable[[Column], Any]] = {
    "number": as_numbers,
    "category": as_levels,
    "date": _read_dates,
}
"""What reads a column, by its kind."""


def missing_in(read: Any) -> Bools:
    """Return which rows are missing in a column that was read."""
    if isinstance(read, dict):
        return np.asarray(read["missing"])
    return np.isnan(read) if isinstance(read, np.ndarray) else read[0] < 0


def learn_code(kind: str, read: Any, n_knots: int, min_frequency: int, max_levels: int) -> Code | None:
    """Choose the code of a column that was read; None where no value tells rows apart."""
    if kind == "number":
        return _learn_number(read, n_knots)
    if kind == "category":
        return _learn_levels(read[0], read[1], min_frequency, max_levels)
    return _learn_date(read, n_knots)


def _learn_number(numbers: Floats, n_knots: int) -> NumberCode | None:
    # Infinite ones say nothing about scale, and count neither as missing nor as known.
    is_finite = np.isfinite(numbers)
    known = numbers if is_finite.all() else numbers[is_finite]
    if not len(known):
        return None
    low, high = float(known.min()), float(known.max())
    # Squares of large numbers would leave the range of floating point.
    size = max(-low, high) or 1.0
    scaled = known / size
    mean = float(scaled.mean())
    scaled -= mean
    np.multiply(scaled, scaled, out=scaled)
    mean, scale = size * mean, size * float(np.sqrt(scaled.mean()))
    if low == high or not scale > 0 or not np.isfinite((high / scale, low / scale, mean / scale)).all():
        return None
    has_missing = len(known) < len(numbers) and bool(np.isnan(numbers).any())
    code = NumberCode(low, high, mean, scale, 0.0, np.empty(0), has_missing)
    is_drawn = len(known) > MOST_VALUES
    if is_drawn:
        known = known[np.random.RandomState(0).randint(len(known), size=MOST_VALUES)]
    standardised = code.standardised(known)
    standardised.sort()
    middle = standardised[(len(known) - 1) // 2 : len(known) // 2 + 1]
    code = replace(code, fill=float(middle.mean()))
    if not n_knots:
        return code
    if is_drawn:  # the ends may not be among them
        ends = code.standardised(np.array([low, high]))
        standardised = np.concatenate([ends[:1], standardised, ends[1:]])
    return replace(code, knots=place_knots(standardised, n_knots))


def _learn_levels(
    codes: Ints, levels: Sequence[str], min_frequency: int, max_levels: int
) -> LevelCode | None:
    n_missing, *counts = np.bincount(codes + 1, minlength=len(levels) + 1).tolist()
    # The most frequent first, equal ones in the order of the alphabet.
    ranked = sorted(zip(counts, levels, strict=True), key=lambda each: (-each[0], each[1]))
    kept = [level for count, level in ranked[:max_levels] if count >= min_frequency]
    rare = sorted(level for _, level in ranked[len(kept) : len(kept) + MOST_RARE])
    if not kept or (len(kept) == 1 and not rare):
        return None
    return LevelCode(tuple(sorted(kept)), tuple(rare), n_missing > 0)


def _learn_date(read: dict[str, Any], n_knots: int) -> DateCode | None:
    parts: list[tuple[str, NumberCode | LevelCode]] = []
    for part in PARTS:
        if part in ("year", "hour"):
            number = _learn_number(read[part], n_knots)
            if number is not None:
                parts.append((part, replace(number, has_missing=False)))
        else:
            codes, texts = read[part]
            if len(seen := np.unique(codes[codes >= 0])) > 1:
                parts.append((part, LevelCode(tuple(texts[each] for each in seen), (), False)))
    return DateCode(tuple(parts), bool(read["missing"].any())) if parts else None


def place_knots(values: Floats, n_knots: int) -> Floats:
    """Return where a curve through sorted, standardised values may bend; empty where it is a straight line.

    Knots are quantiles. A value that more than its share of the rows have (a zero, as a rule) gets a knot of
    its own, and the quantiles are those of the other values: ties take no knots away. Of up to ``n_knots``
    distinct values each is a knot.

    Examples
    --------
    >>> place_knots(np.r_[np.zeros(90), np.arange(1.0, 11.0)], 4)
    array([ 0. ,  1. ,  5.5, 10. ])
    """
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    knots, counts = values[starts], np.diff(starts, append=len(values))
    if len(knots) > n_knots:
        ends, is_heavy = knots[[0, -1]], counts * (n_knots - 1) > len(values)
        heavy = knots[is_heavy]
        light = np.repeat(knots[~is_heavy], counts[~is_heavy]) if len(heavy) else values
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
    place = np.interp(values, knots, np.arange(len(knots)))
    first = np.minimum(place.astype(np.intp), len(knots) - 2)
    return first, place - first


class GroupedArray(np.ndarray[Any, Any]):
    """An array that carries ``feature_groups``, one label per column, for the estimator that gets it next.

    And ``monotonic_cst``, one sign per column, where there are such rules; and ``missing``, (n_samples,
    n_groups), where rows have groups without any value. What is computed or cut from it has none of them,
    because rows and columns may then be others.
    """

    feature_groups: NDArray[Any] | None = None
    monotonic_cst: NDArray[Any] | None = None
    missing: Bools | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep them in pickles, as in the cache of a pipeline or on the way to another process."""
        return grouped, (np.asarray(self), self.feature_groups, self.monotonic_cst, self.missing)


def grouped(
    rows: Any,
    groups: NDArray[Any] | None,
    signs: NDArray[Any] | None = None,
    missing: Bools | None = None,
) -> Any:
    """Return the same rows, an array or a sparse matrix, carrying what is known of their columns.

    Examples
    --------
    >>> rows = grouped(np.zeros((3, 2)), np.array([0, 0]))
    >>> rows.feature_groups.tolist(), rows[:, 1:].feature_groups
    ([0, 0], None)
    """
    found: Any = rows.view(GroupedArray) if isinstance(rows, np.ndarray) else rows
    found.feature_groups, found.monotonic_cst, found.missing = groups, signs, missing
    return found


def sparse_is_better(codes: Sequence[Code], n_rows: int, itemsize: int) -> bool:
    """Return whether the table is large, and a sparse matrix takes less memory."""
    width, slots = sum(code.width for code in codes), sum(code.slots for code in codes)
    dense = itemsize * width
    return n_rows * dense >= _LARGE and slots * (itemsize + 4) < dense


def _entries(leaves: Sequence[Leaf], rows: slice) -> Iterator[Entry]:
    """Yield the entries of some rows of all columns."""
    start = 0
    for code, values in leaves:
        yield from code.entries(values[rows], start)
        start += code.width


def assemble_dense(leaves: Sequence[Leaf], n_rows: int, dtype: DTypeLike) -> Floats:
    """Return the output columns as an array."""
    out = np.zeros((n_rows, sum(code.width for code, _ in leaves)), dtype=dtype)
    for block in gen_batches(n_rows, _BLOCK_ROWS):
        part = out[block]
        rows = np.arange(len(part))
        for place, values in _entries(leaves, block):
            if isinstance(place, int):
                part[:, place] = values
            else:  # where a slot is empty its value is zero, wherever it points to
                part[rows, place] += values
    return out


def assemble_sparse(leaves: Sequence[Leaf], n_rows: int, dtype: DTypeLike) -> Matrix:
    """Return the output columns as a CSR matrix: the entries of each row in order, without zeros."""
    slots, width = sum(code.slots for code, _ in leaves), sum(code.width for code, _ in leaves)
    index: Any = np.int32 if max(n_rows * slots, width) < np.iinfo(np.int32).max else np.int64
    places, values = np.empty((n_rows, slots), dtype=index), np.empty((n_rows, slots), dtype=dtype)
    for block in gen_batches(n_rows, _BLOCK_ROWS):
        for slot, entry in enumerate(_entries(leaves, block)):
            places[block, slot], values[block, slot] = entry
    ends = np.arange(0, n_rows * slots + 1, slots, dtype=index)
    rows = sparse.csr_matrix((values.ravel(), places.ravel(), ends), shape=(n_rows, width))
    rows.eliminate_zeros()
    rows.has_canonical_format = True
    return rows
