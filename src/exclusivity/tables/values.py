"""What stands in a column: numbers, texts or dates, and gaps."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from exclusivity.problem.arrays import Bools, Floats, Ints
from exclusivity.tables.frames import Column, Numbered, Values

DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?\Z")
"""A date as ISO 8601 writes it, with or without the time of day."""

LONGEST_LEVEL = 200
"""Texts are told apart by so many characters."""

_MOMENT = "datetime64[us]"
# The type of a cell says what its column is; the first few that are no gaps decide whether to look further.
_FEW = 50


class CellError(ValueError):
    """A cell that its column cannot hold; the encoder adds the name of the column.

    Attributes
    ----------
    row : int or None
        Where it stands, counted from 0, where that is known.
    """

    def __init__(self, cause: str, row: int | None = None) -> None:
        super().__init__(cause)
        self.row = row


def is_gap(value: object) -> bool:
    """None, NaN, NaT, the NA of pandas, or an empty text."""
    if isinstance(value, str):
        return not value or value.isspace()
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 -- NaN and NaT
    except TypeError:  # pandas' NA, which is neither equal nor unequal
        return True
    except ValueError:  # an array is no gap, whatever it is
        return False


def kind_of(values: Column) -> str:
    """What a column holds: "number", "date" or "category".

    Texts are categories, unless all of them are dates as ISO 8601 writes them. Numbers among texts are texts.

    Examples
    --------
    >>> kind_of(np.array([1, None, 2.5], dtype=object)), kind_of(np.array(["2024-02-29", None], dtype=object))
    ('number', 'date')
    """
    if isinstance(values, Numbered):
        return "category" if values.is_category else kind_of(values.occurring().cells)
    if values.dtype.kind in "iufm":
        return "number"
    if values.dtype.kind == "M":
        return "date"
    if values.dtype.kind == "b":
        return "category"
    start = [cell for cell in values[:_FEW].tolist() if not is_gap(cell)]
    for kind, fits in (("number", _is_number), ("date", _is_date)):
        if all(map(fits, start)) and _all_fit(values.tolist(), fits):
            return kind
    return "category"


def _all_fit(cells: Iterable[Any], fits: Callable[[Any], bool]) -> bool:
    """Whether all cells that are no gaps fit, and there are some; equal cells are looked at once."""
    try:
        distinct = dict.fromkeys(cells)
    except TypeError:
        distinct = dict.fromkeys(map(_hashable, cells))
    found = [fits(cell) for cell in distinct if not is_gap(cell)]
    return bool(found) and all(found)


def _hashable(cell: object) -> Any:
    if isinstance(cell, (dict, list, set, np.ndarray)):
        raise CellError(f"a cell holds {_shown(cell)}; expected a number, a text, a date, or nothing")
    return cell


def _is_number(cell: object) -> bool:
    return isinstance(cell, (Real, Decimal)) and not isinstance(cell, (bool, np.bool_))


def _is_date(cell: object) -> bool:
    if isinstance(cell, str):
        return DATE.match(cell) is not None
    return isinstance(cell, (dt.date, np.datetime64))


def as_numbers(values: Column) -> Floats:
    """A column as float64; gaps are NaN. Texts that are numbers are taken as such."""
    if isinstance(values, Numbered):
        return values.spread(as_numbers(values.cells), np.nan)
    if values.dtype.kind in "fiub":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "m":
        seconds = values / np.timedelta64(1, "s")
        return np.asarray(seconds, dtype=np.float64)
    if values.dtype.kind == "M":
        raise CellError("it held numbers in fit, and here it holds dates")
    return np.fromiter(map(_number, values.tolist()), dtype=np.float64, count=len(values))


def _number(cell: Any) -> float:
    if isinstance(cell, float):
        return cell
    if is_gap(cell):
        return np.nan
    try:
        return float(cell)
    except OverflowError:  # an integer of hundreds of digits
        return np.inf if cell > 0 else -np.inf
    except (TypeError, ValueError):
        raise CellError(
            f"it held numbers in fit, and here a cell holds {_shown(cell)}; give a number, or nothing for a "
            "gap"
        ) from None


def as_dates(values: Column) -> Values:
    """A column as moments to the microsecond; gaps are NaT."""
    if isinstance(values, Numbered):
        return values.spread(as_dates(values.cells), np.datetime64("NaT", "us"))
    if values.dtype.kind == "M":
        return values.astype(_MOMENT, copy=False)
    if values.dtype.kind not in "OUS":
        raise CellError("it held dates in fit, and here it holds numbers")
    return np.array([_moment(cell, row) for row, cell in enumerate(values.tolist())], dtype=_MOMENT)


def _moment(cell: Any, row: int | None = None) -> Any:
    if is_gap(cell):
        return np.datetime64("NaT", "us")
    try:
        if isinstance(cell, str) and DATE.match(cell):
            return np.datetime64(cell, "us")
        if isinstance(cell, dt.datetime):
            return np.datetime64(cell.replace(tzinfo=None), "us")
        if isinstance(cell, (dt.date, np.datetime64)):
            return np.array(cell, dtype=_MOMENT)[()]
    except ValueError:
        pass  # the 30th of February
    raise CellError(
        f"it held dates in fit, and here a cell holds {_shown(cell)}; write it as 2024-12-31 or 2024-12-31 "
        "23:59:00, or leave it empty",
        row,
    )


def as_levels(values: Column) -> tuple[Ints, list[str]]:
    """A column as numbers of its levels, -1 for gaps, and the levels as texts, each of them once.

    Equal values are one level, whatever their type: 3 and 3.0, say.

    Examples
    --------
    >>> as_levels(np.array(["b", None, "a", "b"], dtype=object))
    (array([ 0, -1,  1,  0]), ['b', 'a'])
    >>> as_levels(np.array([3.0, np.nan, 3.5]))
    (array([ 0, -1,  1]), ['3', '3.5'])
    """
    if isinstance(values, Numbered):
        texts = [text_of(cell) for cell in values.cells.tolist()]
        if None not in texts and len(set(texts)) == len(texts):  # they are numbered already
            return values.places, [str(text) for text in texts]
        return _numbered([*texts, None], values.places)
    if values.dtype.kind in "iufbMm":
        distinct, places = np.unique(values, return_inverse=True)
        # Dates one by one: what tolist makes of them depends on their precision.
        cells: list[Any] = list(distinct) if distinct.dtype.kind in "Mm" else distinct.tolist()
        return _numbered([text_of(cell) for cell in cells], places)
    cells = values.tolist()
    kinds = set(map(type, cells))
    if bool in kinds and kinds & {int, float}:  # True equals 1, but is another level
        cells = [text_of(cell) for cell in cells]
    try:
        place = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
    except TypeError:
        cells = [text_of(cell) for cell in cells]
        place = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
    places = np.fromiter(map(place.__getitem__, cells), dtype=np.intp, count=len(cells))
    return _numbered([text_of(cell) for cell in place], places)


def as_texts(values: Column) -> Values:
    """A column as the texts of its levels, None for gaps."""
    codes, levels = as_levels(values)
    return np.array([*levels, None], dtype=object)[codes]


def _numbered(texts: list[str | None], places: Ints) -> tuple[Ints, list[str]]:
    """Different values of the same text are one level."""
    numbers: dict[str, int] = {}
    codes = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
    return np.asarray(codes, dtype=np.intp)[places.ravel()], list(numbers)


def text_of(cell: Any) -> str | None:
    """A value as the name of a level; None for a gap.

    Whole numbers are written without a point and dates to the microsecond, whatever their type.
    """
    if is_gap(cell):
        return None
    if isinstance(cell, (str, bool, np.bool_, int, np.integer, dt.time, dt.timedelta, np.timedelta64)):
        return str(cell)[:LONGEST_LEVEL]
    if isinstance(cell, (Real, Decimal)):
        number = float(cell)
        return str(int(number) if number.is_integer() else number)
    if isinstance(cell, bytes):
        return cell.decode(errors="backslashreplace")[:LONGEST_LEVEL]
    if isinstance(cell, (dt.date, np.datetime64)):
        return str(_moment(cell))
    raise CellError(f"a cell holds {_shown(cell)}; expected a number, a text, a date, or nothing")


def missing(values: Column) -> Bools:
    """Which cells of a column are gaps."""
    if isinstance(values, Numbered):
        return values.spread(missing(values.cells), True)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    if values.dtype.kind in "iub":
        return np.zeros(len(values), dtype=bool)
    return np.fromiter(map(is_gap, values.tolist()), dtype=bool, count=len(values))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
