"""Read the cells of a column: as numbers, as dates, or as levels of a category.

How a cell is read depends on what its column held in training and on the cell itself: never on other cells,
nor on what holds the column (a list, an array, a frame of pandas or polars, an Arrow table). Arrays of one
type are read at once, with the same result as cell by cell.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from exclusivity.problem.arrays import Bools, Floats, Ints
from exclusivity.tables.frames import Column, Numbered, Values, as_array, maker_of

DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?\Z")
"""A date as ISO 8601 writes it, with or without the time of day."""

LONGEST_LEVEL = 200
"""Texts are told apart by so many characters."""

_MOMENT = "datetime64[us]"
# The type of a cell says what its column is; the first few that are no gaps decide whether to look further.
_FEW = 50
_MOST_DIGITS = 10**4000  # Python refuses to write more than 4300


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


def is_table(X: object) -> bool:
    """Tell whether columns may differ in type: frames, Arrow tables, and rows of objects, text or dates.

    Examples
    --------
    >>> is_table(np.zeros((2, 2))), is_table([[0.5, 1]]), is_table([["red", 1.5]])
    (False, False, True)
    """
    if maker_of(X) is not None:
        return True
    if hasattr(X, "tocsr"):
        return False
    if isinstance(X, (list, tuple)):
        return not all(map(_is_number, as_array(X).ravel().tolist()))
    return np.asarray(X).dtype.kind in "OUSMmb"


def is_gap(value: object) -> bool:
    """Tell whether a cell is missing: None, NaN, NaT, the NA of pandas, or an empty text."""
    if isinstance(value, (str, bytes)):
        return not value or value.isspace()
    if isinstance(value, Decimal):  # some of its NaN may not be compared
        return value.is_nan()
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 -- NaN and NaT
    except TypeError:  # pandas' NA, which is neither equal nor unequal
        return True
    except ValueError:  # an array is no missing value, whatever it is
        return False


def kind_of(values: Column) -> str:
    """Return what a column holds: "number", "date" or "category".

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


def _all_fit(cells: list[Any], fits: Callable[[Any], bool]) -> bool:
    """Whether all cells that are not missing fit, and there are some; equal cells are looked at once."""
    with suppress(TypeError):  # of a list, say, which fits nothing
        cells = [cell for _, cell in {(type(cell), cell) for cell in cells}]
    found = [fits(cell) for cell in cells if not is_gap(cell)]
    return bool(found) and all(found)


def _is_number(cell: object) -> bool:
    kinds = (Real, Decimal, dt.timedelta, np.timedelta64)
    return isinstance(cell, kinds) and not isinstance(cell, (bool, np.bool_))


def _is_date(cell: object) -> bool:
    if isinstance(cell, str):
        return DATE.match(cell) is not None
    return isinstance(cell, (dt.date, np.datetime64))


def as_numbers(values: Column) -> Floats:
    """Return a column as float64, NaN where missing: texts as what they spell, durations in seconds."""
    if isinstance(values, Numbered):
        values = values.occurring()
        return values.spread(as_numbers(values.cells), np.nan)
    if values.dtype.kind in "fiub":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "m":
        return np.asarray(_seconds(values))
    if values.dtype.kind == "M":
        if not np.isnat(values).all():
            raise CellError("it held numbers in fit, and here it holds dates")
        return np.full(len(values), np.nan)
    return np.fromiter(map(_number, values.tolist()), dtype=np.float64, count=len(values))


def _number(cell: Any) -> float:
    if isinstance(cell, float):
        return cell
    if is_gap(cell):
        return np.nan
    if isinstance(cell, (dt.timedelta, np.timedelta64)):
        return float(_seconds(_duration(cell)))
    try:
        if not isinstance(cell, (np.complexfloating, np.ndarray)):  # which float takes with a warning
            return float(cell)
    except OverflowError:  # an integer of hundreds of digits
        return np.inf if cell > 0 else -np.inf
    except (TypeError, ValueError):
        pass
    raise CellError(
        f"it held numbers in fit, and here a cell holds {_shown(cell)}; give a number, or nothing for a "
        "missing value"
    )


def _seconds(durations: Any) -> Any:
    """Durations in seconds, the same whatever unit they are stored in; NaN for NaT."""
    whole = durations.astype("m8[s]")
    # Without the whole seconds the rest is a small number, and its division is rounded once.
    return whole.astype(np.int64) + (durations - whole) / np.timedelta64(1, "s")


def _duration(cell: Any) -> np.timedelta64:
    if hasattr(cell, "to_timedelta64"):  # that of pandas, which knows nanoseconds
        return cell.to_timedelta64()  # type: ignore[no-any-return]
    return np.timedelta64(cell)


def as_dates(values: Column) -> Values:
    """Return a column as moments to the microsecond, NaT where missing."""
    if isinstance(values, Numbered):
        values = values.occurring()
        return values.spread(as_dates(values.cells), np.datetime64("NaT", "us"))
    if values.dtype.kind == "M":
        return values.astype(_MOMENT, copy=False)
    if values.dtype.kind not in "OUS":
        is_missing = missing(values)
        if not is_missing.all():
            raise CellError("it held dates in fit, and here it holds numbers", int(np.argmin(is_missing)))
        return np.full(len(values), np.datetime64("NaT", "us"))
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
    """Return a column as numbers of its levels, -1 where missing, and the levels: texts, each of them once.

    The level of a cell is its text, see :func:`text_of`, and depends on nothing else.

    Examples
    --------
    >>> as_levels(np.array(["b", None, "a", "b"], dtype=object))
    (array([ 0, -1,  1,  0]), ['b', 'a'])
    >>> as_levels(np.array([3.0, np.nan, 3.5]))
    (array([ 0, -1,  1]), ['3', '3.5'])
    """
    if isinstance(values, Numbered):
        values = values.occurring()
        codes, levels = as_levels(values.cells)
        if np.array_equal(codes, np.arange(len(codes))):  # they are numbered already
            return values.places, levels
        return np.append(codes, -1)[values.places], levels
    if values.dtype.kind in "iufbMm":
        distinct, places = np.unique(values, return_inverse=True)
        # Dates one by one: what tolist makes of them depends on their precision.
        cells: list[Any] = list(distinct) if distinct.dtype.kind in "Mm" else distinct.tolist()
        return _numbered(cells, places.ravel())
    cells = values.tolist()
    try:
        keys = _keys(cells)
        first = dict(zip(keys, cells, strict=True))
    except TypeError:  # a list, say, which text_of refuses
        keys = [text_of(cell) for cell in cells]
        first = dict(zip(keys, cells, strict=True))
    place = {key: number for number, key in enumerate(first)}
    places = np.fromiter(map(place.__getitem__, keys), dtype=np.intp, count=len(keys))
    return _numbered(list(first.values()), places)


def _keys(cells: list[Any]) -> list[Any]:
    """Keys of cells; those of equal keys have the same text."""
    kinds = set(map(type, cells)) - {str, type(None)}
    if any(issubclass(kind, (dt.datetime, dt.time)) for kind in kinds):
        return [text_of(cell) for cell in cells]  # noon in London equals one o'clock in Paris
    return cells if len(kinds) < 2 else list(zip(map(type, cells), cells, strict=True))  # True equals 1


def as_texts(values: Column) -> Values:
    """Return a column as the texts of its levels, None where missing."""
    codes, levels = as_levels(values)
    return np.array([*levels, None], dtype=object)[codes]


def _numbered(cells: list[Any], places: Ints) -> tuple[Ints, list[str]]:
    """Different cells of the same text are one level."""
    numbers: dict[str, int] = {}
    texts = map(text_of, cells)
    codes = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
    return np.asarray(codes, dtype=np.intp)[places], list(numbers)


def text_of(cell: Any) -> str | None:
    """Return a value as the name of a level; None where it is missing.

    Numbers that are equal have one name whatever their type: 3, 3.0 and Decimal("3.00") are "3", which the
    text "3" is, too. Booleans are "True" and "False", dates and durations are written to the microsecond.

    Examples
    --------
    >>> [text_of(cell) for cell in ("1", 1, np.float32(1), Decimal("1.0"), True, np.True_, 0.5, "")]
    ['1', '1', '1', '1', 'True', 'True', '0.5', None]
    """
    if is_gap(cell):
        return None
    if isinstance(cell, str):
        text = str.__str__(cell)  # of a member of an Enum, too, its value
    elif isinstance(cell, bytes):
        text = cell.decode(errors="backslashreplace")
    elif isinstance(cell, (bool, np.bool_, dt.time)):
        text = str(cell)
    elif isinstance(cell, (dt.timedelta, np.timedelta64)):  # the latter is an integer to numpy
        text = str(_duration(cell).astype("m8[us]").item())
    elif isinstance(cell, (Real, Decimal)):
        text = _numeral(cell)
    elif isinstance(cell, (dt.date, np.datetime64)):
        text = str(_moment(cell))
    else:
        raise CellError(f"a cell holds {_shown(cell)}; expected a number, a text, a date, or nothing")
    text = text[:LONGEST_LEVEL]
    return None if text.isspace() else text


def _numeral(number: Any) -> str:
    """A number as text; a whole one without a point."""
    try:
        is_whole = isinstance(number, Integral) or number == number.to_integral_value()
    except AttributeError:  # not a Decimal
        number = float(number)
        is_whole = number.is_integer()
    if not is_whole or (isinstance(number, Decimal) and number.is_infinite()):
        return str(float(number))
    if abs(number) >= _MOST_DIGITS:
        raise CellError("a cell holds a number of more than 4000 digits; expected a category")
    return str(int(number))


def missing(values: Column) -> Bools:
    """Tell which cells of a column are missing."""
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
