"""Columns of tables in any container, read as numbers, as dates or as categories.

How a cell is read depends on what its column held in training and on the cell itself: never on other cells,
nor on what holds the column (a list, an array, a DataFrame of pandas or polars, an Arrow table). Columns of
one type are read at once, with the same result as cell by cell. No package for tables is needed: pandas and
pyarrow are imported where such a table comes in.

A cell that its column cannot hold, such as a word among numbers, is read as a missing value; ``odd_cells``
finds such cells, for whoever reports or refuses them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Bools, Floats, Ints

LONGEST_LEVEL = 200
"""Characters by which the names of categories are distinguished."""

# 2024-02-05 or 2024/02/05, with a time or without, and behind the time perhaps the offset of a time zone.
_CLOCK = r"([T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_DATE = re.compile(rf"(\d{{4}})([-/])(\d\d)\2(\d\d)(?:{_CLOCK})?\Z")
_MOMENT = "datetime64[us]"
_NO_MOMENT = np.datetime64("NaT", "us")
_MOST_DIGITS = 10**4000  # Python refuses to write more than 4300
_FRAMES = ("pandas", "polars", "pyarrow")

Values = NDArray[Any]
"""One column of any type; missing values are NaN, NaT, None, the NA of pandas, or empty texts."""


@dataclass(frozen=True, eq=False, slots=True)
class DictionaryColumn:
    """A column of codes (-1: missing) into its distinct cells, so that each of these is read once.

    ``is_category`` tells that its container calls it a category, whatever the cells are.

    Examples
    --------
    >>> column = DictionaryColumn(np.array([1, -1, 0]), np.array(["0.5", "7"], dtype=object))
    >>> column.map(as_numbers, np.nan)
    array([7. , nan, 0.5])
    """

    codes: Ints
    cells: Values
    is_category: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> DictionaryColumn:
        """Return some rows."""
        return DictionaryColumn(self.codes[rows], self.cells, self.is_category)

    def map(self, read: Callable[[Values], Values], missing: object) -> Values:
        """Return for every row what ``read`` makes of its cell."""
        column = self.without_unused()
        found = read(column.cells)
        return np.asarray(np.append(found, np.array([missing], dtype=found.dtype))[column.codes])

    def without_unused(self) -> DictionaryColumn:
        """Return the same column without cells that no row has."""
        is_used = np.bincount(self.codes + 1, minlength=len(self.cells) + 1)[1:] > 0
        if is_used.all():
            return self
        moved = np.append(np.cumsum(is_used) - 1, -1)
        return DictionaryColumn(moved[self.codes], self.cells[is_used], self.is_category)


Column = Values | DictionaryColumn
"""A column of a table."""


class ColumnTable:
    """Columns of equal length, each of its own type: a table without a package for tables.

    Examples
    --------
    >>> table = ColumnTable([np.array([1.0, 2.0]), np.array(["red", None], dtype=object)])
    >>> table.shape, table[:1].columns[1]
    ((2, 2), array(['red'], dtype=object))
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.columns[0]), len(self.columns)

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> ColumnTable:
        """Return some rows."""
        return ColumnTable([column[rows] for column in self.columns])


def frame_package(X: object) -> str | None:
    """Return the package that a table, or a class that it inherits from, comes from; None for arrays."""
    if isinstance(X, ColumnTable):
        return "exclusivity"
    packages = (kind.__module__.partition(".")[0] for kind in type(X).__mro__)
    package = next((name for name in packages if name in _FRAMES), None)
    return package if len(getattr(X, "shape", ())) == 2 else None


def as_array(X: Any) -> Any:
    """Return rows that are no frame as an array; lists become objects, each cell as it is.

    Numpy would choose one type for all cells of lists, and how a cell is read would depend on the others.
    """
    if hasattr(X, "dtype"):
        return X
    if isinstance(X, Mapping):
        raise TypeError(
            "X is a dict; pass a table: pandas.DataFrame(X), or pandas.DataFrame([X]) for one row."
        )
    if hasattr(X, "collect") and not hasattr(X, "__array__"):
        raise TypeError(f"X is a {type(X).__name__}, whose rows are not computed yet; pass X.collect().")
    if not isinstance(X, (list, tuple)):
        return np.asarray(X)
    # Rows that are arrays as lists of scalars: as objects, their dates would become integers.
    rows = [list(row) if getattr(row, "ndim", 0) == 1 else row for row in X]
    widths = [len(row) if isinstance(row, (list, tuple)) else 0 for row in rows]
    odd = next((row for row, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        raise ValueError(
            f"Rows must have the same number of cells: row 0 has {widths[0]}, and row {odd} has "
            f"{widths[odd]}."
        )
    return np.asarray(rows, dtype=object)


def _objects(cells: list[Any]) -> Values:
    return np.fromiter(cells, dtype=object, count=len(cells))


def column_of(X: Any, place: int) -> Column:
    """Return one column of a table."""
    package = frame_package(X)
    if package == "exclusivity":
        column: Column = X.columns[place]
        return column
    if package == "pandas":
        return _pandas_column(X.iloc[:, place])
    if package == "polars":
        series = X[:, place]
        is_object = str(series.dtype) == "Object"
        return _objects(series.to_list()) if is_object else column_of_arrow(series.to_arrow())
    if package == "pyarrow":
        return column_of_arrow(X.column(place))
    return np.asarray(as_array(X)[:, place])


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a frame as texts; None for arrays."""
    names = X.column_names if hasattr(X, "column_names") else getattr(X, "columns", None)
    return None if names is None or isinstance(X, ColumnTable) else [str(name) for name in names]


def join_columns(parts: Sequence[Column]) -> Column:
    """Return one column of several parts, one below the other."""
    coded = [part for part in parts if isinstance(part, DictionaryColumn)]
    if len(coded) == len(parts):
        before = np.cumsum([0, *(len(part.cells) for part in coded)])
        codes = [np.where(part.codes < 0, -1, part.codes + n) for part, n in zip(coded, before, strict=False)]
        cells = np.concatenate([part.cells for part in coded])
        return DictionaryColumn(np.concatenate(codes), cells, any(part.is_category for part in coded))
    plain = [
        part.map(lambda cells: cells.astype(object), None) if isinstance(part, DictionaryColumn) else part
        for part in parts
    ]
    if len({part.dtype.kind for part in plain}) > 1:  # which numpy would turn into one another
        plain = [part.astype(object) for part in plain]
    return np.concatenate(plain)


def match_columns(X: Any, names: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the columns of a frame in this order, and remarks on absent and unknown ones.

    All cells of an absent column are missing, and unknown columns are ignored.
    """
    given = column_names(X) or []
    if given == list(names):
        return X, []
    if len(set(given)) < len(given):
        twice = next(name for place, name in enumerate(given) if name in given[:place])
        raise ValueError(f"X has two columns with the name {twice!r}; rename or drop one of them.")
    absent = [name for name in names if name not in given]
    if len(absent) == len(names):
        raise ValueError(f"X has none of the columns of fit, {list(names)[:20]}; it has {given[:20]}.")
    nothing = np.full(X.shape[0], None, dtype=object)
    columns = [column_of(X, given.index(name)) if name in given else nothing for name in names]
    remarks = [f"column {name!r} is absent, and all of its cells count as missing" for name in absent]
    remarks += [f"column {name!r} is unknown and ignored" for name in given if name not in set(names)]
    return ColumnTable(columns), remarks


def _pandas_column(series: Any) -> Column:
    dtype = series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return column_of_arrow(series.array.__arrow_array__())
    if hasattr(series, "cat"):
        cells = np.asarray(series.cat.categories.to_numpy())
        return DictionaryColumn(series.cat.codes.to_numpy(), cells, is_category=True)
    if getattr(dtype, "tz", None) is not None:  # the time that a clock on the wall shows
        series = series.dt.tz_localize(None)
    nullable = dtype.numpy_dtype if hasattr(dtype, "numpy_dtype") and dtype.kind in "iufb" else None
    if nullable is not None and not series.hasnans:
        return np.asarray(series.to_numpy(dtype=nullable))
    if nullable is None and not _holds_texts(series):
        return np.asarray(series.to_numpy())
    codes, cells = series.factorize()
    return DictionaryColumn(codes.astype(np.int32), np.asarray(cells.to_numpy(dtype=nullable or object)))


def _holds_texts(series: Any) -> bool:
    """Return whether cells are texts or missing; factorising other objects, True would equal 1."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind != "O":
        return False
    from pandas.api.types import infer_dtype  # noqa: PLC0415 -- whose table it is

    return bool(infer_dtype(series, skipna=True) == "string")


def column_of_arrow(column: Any) -> Column:
    """Return a column of an Arrow table; in dictionaries, what numpy has no missing values for."""
    import pyarrow as pa  # noqa: PLC0415 -- whose table it is
    import pyarrow.compute as pc  # noqa: PLC0415

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    elif pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    if not pa.types.is_dictionary(kind):
        is_whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        if not ("string" in str(kind) or pa.types.is_decimal(kind) or (is_whole and column.null_count)):
            return np.asarray(column.to_numpy())
        column = column.dictionary_encode()
    if not len(column):
        return _objects([])
    array = column.combine_chunks()
    cells, codes = array.dictionary, array.indices.cast(pa.int32()).fill_null(-1).to_numpy()
    if cells.null_count or not (pa.types.is_integer(cells.type) or pa.types.is_boolean(cells.type)):
        return DictionaryColumn(codes, _objects(cells.to_pylist()))
    return DictionaryColumn(codes, np.asarray(cells.to_numpy(zero_copy_only=False)))


def is_missing(cell: object) -> bool:
    """Return whether a cell is missing: None, NaN, NaT, the NA of pandas, or an empty text."""
    if isinstance(cell, (str, bytes)):
        return not cell or cell.isspace()
    if isinstance(cell, Decimal):  # some of its NaN may not be compared
        return cell.is_nan()
    try:
        return cell is None or bool(cell != cell)  # noqa: PLR0124 -- NaN and NaT
    except TypeError:  # pandas' NA, which is neither equal nor unequal
        return True
    except ValueError:  # an array is no missing value, whatever it holds
        return False


def missing(values: Column) -> Bools:
    """Return which cells of a column are missing."""
    if isinstance(values, DictionaryColumn):
        return values.map(missing, True)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    if values.dtype.kind in "iub":
        return np.zeros(len(values), dtype=bool)
    return np.fromiter(map(is_missing, values.tolist()), dtype=bool, count=len(values))


def kind_of(values: Column) -> str:
    """Return what a column of training rows holds: "number", "date" or "category".

    Texts are categories, unless all of them are dates such as 2024-02-29, 2024/02/29 or 2024-02-29T18:30Z.
    Numbers among texts are texts.

    Examples
    --------
    >>> kind_of(np.array([1, None, 2.5], dtype=object)), kind_of(np.array(["2024-02-29", None], dtype=object))
    ('number', 'date')
    """
    if isinstance(values, DictionaryColumn):
        return "category" if values.is_category else kind_of(values.without_unused().cells)
    by_type = {"i": "number", "u": "number", "f": "number", "m": "number", "M": "date", "b": "category"}
    if values.dtype.kind in by_type:
        return by_type[values.dtype.kind]
    cells = values.tolist()
    with suppress(TypeError):  # a list, say, which is no category
        cells = [cell for _, cell in {(type(cell), cell) for cell in cells}]
    known = [cell for cell in cells if not is_missing(cell)]
    if known and all(map(_is_number, known)):
        return "number"
    return "date" if known and all(map(_is_date, known)) else "category"


def _is_number(cell: object) -> bool:
    kinds = (Real, Decimal, dt.timedelta, np.timedelta64)
    return isinstance(cell, kinds) and not isinstance(cell, (bool, np.bool_))


def _is_date(cell: object) -> bool:
    if isinstance(cell, str):
        return _DATE.match(cell) is not None
    return isinstance(cell, (dt.date, np.datetime64))


def as_numbers(values: Column) -> Floats:
    """Return a column as float64: texts as what they spell, durations in seconds, NaN for other cells."""
    if isinstance(values, DictionaryColumn):
        return values.map(as_numbers, np.nan)
    if values.dtype.kind in "fiub":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "m":
        return np.asarray(_seconds(values))
    if values.dtype.kind == "M":
        return np.full(len(values), np.nan)
    return np.fromiter(map(_number, values.tolist()), dtype=np.float64, count=len(values))


def _number(cell: Any) -> float:
    if isinstance(cell, float):
        return cell
    if isinstance(cell, (dt.timedelta, np.timedelta64)):
        return float(_seconds(_duration(cell)))
    try:
        if not isinstance(cell, (np.complexfloating, np.ndarray)):  # which float takes with a warning
            return float(cell)
    except OverflowError:  # an integer of hundreds of digits
        return np.inf if cell > 0 else -np.inf
    except (TypeError, ValueError):
        pass
    return np.nan


def _seconds(durations: Any) -> Any:
    """Return durations in seconds, the same whatever unit they are stored in; NaN for NaT."""
    whole = durations.astype("m8[s]")
    # Without the whole seconds the rest is a small number, and its division is rounded once.
    return whole.astype(np.int64) + (durations - whole) / np.timedelta64(1, "s")


def _duration(cell: Any) -> np.timedelta64:
    if hasattr(cell, "to_timedelta64"):  # that of pandas, which knows nanoseconds
        return cell.to_timedelta64()  # type: ignore[no-any-return]
    return np.timedelta64(cell)


def as_dates(values: Column) -> Values:
    """Return a column as moments to the microsecond, by the clock on the wall; NaT for other cells."""
    if isinstance(values, DictionaryColumn):
        return values.map(as_dates, _NO_MOMENT)
    if values.dtype.kind == "M":
        return values.astype(_MOMENT, copy=False)
    if values.dtype.kind in "OUS":
        return np.array(list(map(_moment, values.tolist())), dtype=_MOMENT)
    return np.full(len(values), _NO_MOMENT)


def _moment(cell: Any) -> Any:
    if is_missing(cell):  # NaT is a date to Python
        return _NO_MOMENT
    try:
        found = _DATE.match(cell) if isinstance(cell, str) else None
        if found:
            year, _, month, day, clock = found.groups("")
            return np.datetime64(f"{year}-{month}-{day}{clock}", "us")
        if isinstance(cell, dt.datetime):
            return np.datetime64(cell.replace(tzinfo=None), "us")
        if isinstance(cell, (dt.date, np.datetime64)):
            return np.array(cell, dtype=_MOMENT)[()]
    except ValueError:  # the 30th of February
        pass
    return _NO_MOMENT


def as_levels(values: Column) -> tuple[Ints, list[str]]:
    """Return a column as codes of its categories, -1 for other cells, and the categories: distinct texts.

    Examples
    --------
    >>> as_levels(np.array(["b", None, "a", "b"], dtype=object))
    (array([ 0, -1,  1,  0]), ['b', 'a'])
    >>> as_levels(np.array([3.0, np.nan, 3.5]))
    (array([ 0, -1,  1]), ['3', '3.5'])
    """
    if isinstance(values, DictionaryColumn):
        values = values.without_unused()
        codes, levels = as_levels(values.cells)
        is_coded = np.array_equal(codes, np.arange(len(codes)))
        return (values.codes if is_coded else np.append(codes, -1)[values.codes]), levels
    if values.dtype.kind in "iufbMm":
        distinct, places = np.unique(values, return_inverse=True)
        # Dates one by one: what tolist makes of them depends on their precision.
        cells: list[Any] = list(distinct) if distinct.dtype.kind in "Mm" else distinct.tolist()
    else:
        cells, places = _factorize(values.tolist())
    numbers: dict[str, int] = {}  # different cells of the same text are one category
    texts = map(text_of, cells)
    found = [-1 if each is None else numbers.setdefault(each, len(numbers)) for each in texts]
    return np.asarray(found, dtype=np.intp)[places.ravel()], list(numbers)


def _factorize(cells: list[Any]) -> tuple[list[Any], Ints]:
    """Return cells that stand for all of the same text, and which of them every cell is."""
    kinds = set(map(type, cells)) - {str, type(None)}
    keys = cells if len(kinds) < 2 else list(zip(map(type, cells), cells, strict=True))  # True equals 1
    try:
        if any(issubclass(kind, (dt.datetime, dt.time)) for kind in kinds):
            keys = list(map(text_of, cells))  # noon in London equals one o'clock in Paris
        first = dict(zip(keys, cells, strict=True))
    except TypeError:  # a list, say, which is no category
        keys = list(map(text_of, cells))
        first = dict(zip(keys, cells, strict=True))
    place = {key: number for number, key in enumerate(first)}
    return list(first.values()), np.fromiter(map(place.__getitem__, keys), dtype=np.intp, count=len(keys))


def text_of(cell: Any) -> str | None:
    """Return the category of a cell: its text; None where it is missing, or neither number, text nor date.

    Numbers that are equal have one text whatever their type: 3, 3.0 and Decimal("3.00") are "3", which the
    text "3" is, too. Booleans are "True" and "False", dates and durations are written to the microsecond.

    Examples
    --------
    >>> [text_of(cell) for cell in ("1", 1, np.float32(1), Decimal("1.0"), True, np.True_, 0.5, "")]
    ['1', '1', '1', '1', 'True', 'True', '0.5', None]
    """
    if is_missing(cell):
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
        return None
    text = text[:LONGEST_LEVEL]
    return None if not text or text.isspace() else text


def _numeral(number: Any) -> str:
    """Return a number as text, a whole one without a point; nothing if it has more than 4000 digits."""
    if isinstance(number, Decimal):
        is_whole = number.is_finite() and number == number.to_integral_value()
    else:
        number = number if isinstance(number, Integral) else float(number)
        is_whole = isinstance(number, Integral) or number.is_integer()
    if not is_whole:
        return str(float(number))
    return str(int(number)) if abs(number) < _MOST_DIGITS else ""


def read_column(column: Column, kind: str) -> Column:
    """Return a column with its cells read: as numbers, as moments, or as codes of categories."""
    if kind == "category":
        codes, levels = as_levels(column)
        return DictionaryColumn(codes, _objects(levels))
    return as_numbers(column) if kind == "number" else as_dates(column)


def odd_cells(column: Column, is_missing: Bools) -> tuple[int, str]:
    """Return how many cells were read as missing though they hold something, and the first as text."""
    if not is_missing.any():
        return 0, ""
    rows = np.flatnonzero(is_missing & ~missing(column))
    if not len(rows):
        return 0, ""
    first = column[rows[:1]]
    cell = first.cells[first.codes[0]] if isinstance(first, DictionaryColumn) else first[0]
    try:
        text = repr(cell)
    except ValueError:  # as Python refuses to write it
        text = "a number of more than 4000 digits"
    return len(rows), text if len(text) <= 40 else f"{text[:37]}..."
