"""Tables of any maker, column by column, as numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FRAMES = ("pandas", "polars", "pyarrow")
"""Packages whose tables are read column by column; none of them is needed."""

Values = NDArray[Any]
"""One column, of any type; gaps are NaN, NaT, None or the NA of pandas."""


@dataclass(frozen=True, eq=False, slots=True)
class Numbered:
    """A column whose cells are numbered, so that each distinct cell is looked at once.

    Attributes
    ----------
    places : ndarray of int
        Of every row the number of its cell; -1 is a gap.
    cells : ndarray
        The distinct cells.
    is_category : bool
        Whether its maker says that it is a category, whatever the cells are.

    Examples
    --------
    >>> column = Numbered(np.array([1, -1, 0]), np.array(["red", "blue"], dtype=object))
    >>> column.spread(np.array([5.0, 7.0]), np.nan)
    array([ 7., nan,  5.])
    """

    places: NDArray[Any]
    cells: Values
    is_category: bool = False

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> Numbered:
        """Some rows."""
        return Numbered(self.places[rows], self.cells, self.is_category)

    def spread(self, found: Values, gap: object) -> Values:
        """What was found for every cell, as a value for every row."""
        every = np.append(found, np.array([gap], dtype=found.dtype))
        return np.asarray(every[self.places])

    def occurring(self) -> Numbered:
        """The same without cells that no row has."""
        occurs = np.bincount(self.places[self.places >= 0], minlength=len(self.cells)) > 0
        if occurs.all():
            return self
        moved = np.append(np.cumsum(occurs) - 1, -1)
        return Numbered(moved[self.places], self.cells[occurs], self.is_category)


Column = Values | Numbered
"""A column of a table."""


class ColumnTable:
    """Columns of equal length, each an array of its own type: a table for those who have no DataFrames.

    Parameters
    ----------
    columns : list of ndarray or Numbered
        At least one, each of one dimension.

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
        """Rows and columns."""
        return len(self.columns[0]), len(self.columns)

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> ColumnTable:
        """Some rows."""
        return ColumnTable([column[rows] for column in self.columns])

    def take_columns(self, places: list[int]) -> ColumnTable:
        """Some columns, in this order."""
        return ColumnTable([self.columns[place] for place in places])


class Table(Protocol):
    """Rows and columns of any maker: arrays, pandas, polars, Arrow."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows and columns."""


def maker_of(X: object) -> str | None:
    """Return the package that a table, or the class that it inherits from, comes from; None for arrays."""
    if isinstance(X, ColumnTable):
        return "exclusivity"
    packages = (kind.__module__.partition(".")[0] for kind in type(X).__mro__)
    package = next((name for name in packages if name in FRAMES), None)
    return package if hasattr(X, "shape") and len(X.shape) == 2 else None


def as_array(X: Any) -> NDArray[Any]:
    """Return rows that are no frame as an array.

    Lists and tuples become an array of objects, each cell as it is: numpy would choose one type for all of
    them, and what becomes of a cell would depend on the others.

    Examples
    --------
    >>> as_array([[1.5, True], [2, False]])
    array([[1.5, True],
           [2, False]], dtype=object)
    """
    if not isinstance(X, (list, tuple)) or not X or not all(map(_is_row, X)):
        return np.asarray(X, dtype=object if isinstance(X, (list, tuple)) else None)
    width = len(X[0])
    odd = next((number for number, row in enumerate(X) if len(row) != width), None)
    if odd is not None:
        raise ValueError(
            f"Rows must have the same number of cells: row 0 has {width}, and row {odd} has {len(X[odd])}."
        )
    cells = np.fromiter(chain.from_iterable(X), dtype=object, count=len(X) * width)
    return cells.reshape(len(X), width)


def _is_row(row: object) -> bool:
    is_sequence = isinstance(row, Sequence) and not isinstance(row, (str, bytes))
    return is_sequence or getattr(row, "ndim", 0) == 1


def column_of(X: Any, place: int) -> Column:
    """Return one column of a table: an array, or numbered cells where these are quick to find."""
    maker = maker_of(X)
    if maker == "pandas":
        return _from_pandas(X.iloc[:, place])
    if maker == "polars":
        return _from_polars(X[:, place])
    if maker == "pyarrow":
        return column_of_arrow(X.column(place))
    if maker == "exclusivity":
        return X.columns[place]  # type: ignore[no-any-return]
    return np.asarray((X if hasattr(X, "dtype") else as_array(X))[:, place])


def take_rows(X: Any, numbers: NDArray[Any]) -> Any:
    """Some rows of a table, an array or a sparse matrix, in the same form."""
    maker = maker_of(X)
    if maker == "pandas":
        return X.iloc[numbers]
    if maker == "pyarrow":
        return X.take(numbers)
    return X[numbers] if hasattr(X, "shape") else as_array(X)[numbers]


def _from_pandas(series: Any) -> Column:
    dtype = series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return column_of_arrow(series.array.__arrow_array__())
    if getattr(dtype, "tz", None) is not None:  # the time that a clock on the wall shows
        return np.asarray(series.dt.tz_localize(None).to_numpy())
    if hasattr(series, "cat"):
        cells = np.asarray(series.cat.categories.to_numpy())
        return Numbered(series.cat.codes.to_numpy(), cells, is_category=True)
    if hasattr(series, "sparse"):
        series = series.sparse.to_dense()
    if hasattr(dtype, "numpy_dtype") and dtype.kind in "iufb":
        return _from_nullable(series)
    if _holds_texts(series):
        places, cells = series.factorize()
        return Numbered(places.astype(np.int32), np.asarray(cells.to_numpy(dtype=object)))
    return np.asarray(series.to_numpy())


def _from_nullable(series: Any) -> Column:
    """A column of pandas' nullable booleans or numbers."""
    is_missing = series.isna().to_numpy()
    kind: np.dtype[Any] = series.dtype.numpy_dtype
    if kind.kind != "f" and not is_missing.any():
        return np.asarray(series.to_numpy(dtype=kind))
    if kind.kind == "b":
        return _booleans(series.to_numpy(dtype=bool, na_value=False), is_missing)
    if kind.kind != "f" and not _fit_floats(series.min(), series.max()):
        return np.asarray(series.to_numpy(dtype=object, na_value=None))
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _booleans(values: Values, is_missing: Values) -> Numbered:
    return Numbered(np.where(is_missing, -1, values).astype(np.int8), np.array([False, True]))


def _fit_floats(least: Any, most: Any) -> bool:
    """Whether float64 holds every integer of a range, so that NaN can stand for a missing one.

    Least and most are None or NA where all are missing.
    """
    return not isinstance(least, (int, np.integer)) or max(-int(least), int(most)) <= 2**53


def _holds_texts(series: Any) -> bool:
    """Whether cells are texts or missing; other objects need care, as True equals 1 among them."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind != "O":
        return False
    from pandas.api.types import infer_dtype  # noqa: PLC0415 -- who has such a table has it

    return bool(infer_dtype(series, skipna=True) == "string")


def _from_polars(series: Any) -> Column:
    is_text = str(series.dtype).startswith(("String", "Categorical", "Enum"))
    if is_text or series.dtype.is_numeric() or series.dtype.is_temporal():
        return column_of_arrow(series.to_arrow())
    return _objects(series.to_list())


def column_of_arrow(column: Any) -> Column:
    """A column of an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415 -- who has such a table has it
    import pyarrow.compute as pc  # noqa: PLC0415

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    kind = str(column.type)
    if kind.startswith("timestamp") and getattr(column.type, "tz", None) is not None:
        column = pc.local_timestamp(column)
    if kind in ("string", "large_string", "string_view"):
        column = column.cast(pa.large_string()) if kind == "string_view" else column
        return _from_dictionary(column.dictionary_encode())
    if kind.startswith("dictionary") and "string" in str(column.type.value_type):
        return _from_dictionary(column.unify_dictionaries())
    if kind.startswith(("decimal", "dictionary")):
        return _objects(column.to_pylist())
    if column.null_count and pa.types.is_boolean(column.type):
        return _booleans(column.fill_null(False).to_numpy(), column.is_null().to_numpy())
    if column.null_count and pa.types.is_integer(column.type):
        ends = pc.min_max(column).as_py()
        if not _fit_floats(ends["min"], ends["max"]):
            return _objects(column.to_pylist())
    return np.asarray(column.to_numpy())


def _from_dictionary(column: Any) -> Numbered:
    """A column of Arrow's dictionaries, which are the same in all of its chunks."""
    import pyarrow as pa  # noqa: PLC0415 -- who has such a table has it

    parts = [chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy() for chunk in column.chunks]
    cells = column.chunk(0).dictionary.to_pylist() if parts else []
    places = np.concatenate(parts) if parts else np.empty(0)
    return Numbered(places.astype(np.int32), _objects(cells))


def _objects(values: list[Any]) -> Values:
    return np.fromiter(values, dtype=object, count=len(values))
