"""Tables of any maker, column by column, as numpy arrays."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class ColumnTable:
    """Columns of equal length, each an array of its own type: a table for those who have no DataFrames.

    Parameters
    ----------
    columns : list of ndarray
        At least one, each of one dimension.

    Examples
    --------
    >>> table = ColumnTable([np.array([1.0, 2.0]), np.array(["red", None], dtype=object)])
    >>> table.shape, table[:1].columns[1]
    ((2, 2), array(['red'], dtype=object))
    """

    def __init__(self, columns: list[NDArray[Any]]) -> None:
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


FRAMES = ("pandas", "polars", "pyarrow")
"""Packages whose tables are read column by column; none of them is needed."""

Values = NDArray[Any]
"""One column, of any type; gaps are NaN, NaT, None or the NA of pandas."""


class Table(Protocol):
    """Rows and columns of any maker: arrays, pandas, polars, Arrow."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows and columns."""


def maker_of(X: object) -> str | None:
    """The package that a table comes from, or None for an array and the like."""
    if isinstance(X, ColumnTable):
        return "exclusivity"
    package = type(X).__module__.partition(".")[0]
    return package if package in FRAMES and hasattr(X, "shape") and len(X.shape) == 2 else None


def is_table(X: object) -> bool:
    """Whether columns may differ in type: a DataFrame, an Arrow table, or an array of Python objects or text.

    Examples
    --------
    >>> is_table(np.zeros((2, 2))), is_table(np.array([["red", 1.5]], dtype=object))
    (False, True)
    """
    if maker_of(X) is not None:
        return True
    return not hasattr(X, "tocsr") and np.asarray(X).dtype.kind in "OUSMmb"


def as_array(X: object) -> NDArray[Any]:
    """Rows that are no frame as an array; numbers beside texts stay numbers."""
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" and not hasattr(X, "dtype") else array


def column_of(X: Any, place: int) -> Values:
    """One column of a table as a one-dimensional array."""
    maker = maker_of(X)
    if maker == "pandas":
        return _from_pandas(X.iloc[:, place])
    if maker == "polars":
        return _from_polars(X[:, place])
    if maker == "pyarrow":
        return column_of_arrow(X.column(place))
    if maker == "exclusivity":
        return np.asarray(X.columns[place])
    return np.asarray(X[:, place])


def rows_between(X: Any, rows: slice) -> Any:
    """Neighbouring rows of a table or an array, in the same form and without a copy."""
    maker = maker_of(X)
    if maker == "pandas":
        return X.iloc[rows]
    return X.slice(rows.start, rows.stop - rows.start) if maker == "pyarrow" else X[rows]


def take_rows(X: Any, numbers: NDArray[Any]) -> Any:
    """Some rows of a table, an array or a sparse matrix, in the same form."""
    maker = maker_of(X)
    if maker == "pandas":
        return X.iloc[numbers]
    if maker == "pyarrow":
        return X.take(numbers)
    return X[numbers] if hasattr(X, "shape") else as_array(X)[numbers]


def _from_pandas(series: Any) -> Values:
    dtype = series.dtype
    if getattr(dtype, "tz", None) is not None:  # the time that a clock on the wall shows
        return np.asarray(series.dt.tz_localize(None).to_numpy())
    if getattr(dtype, "kind", "O") in "iufb" and not isinstance(dtype, np.dtype):
        # Nullable numbers: NaN where there is none, and the NA of pandas is no number.
        kind = "float64" if dtype.kind != "b" or series.isna().any() else "bool"
        return np.asarray(series.to_numpy(dtype=kind, na_value=np.nan) if kind != "bool" else series, kind)
    return np.asarray(series.to_numpy())


def _from_polars(series: Any) -> Values:
    if series.dtype.is_numeric() or series.dtype.is_temporal():
        return column_of_arrow(series.to_arrow())
    return _objects(series.to_list())


def column_of_arrow(column: Any) -> Values:
    """A column of an Arrow table as an array."""
    if str(column.type).startswith("timestamp") and getattr(column.type, "tz", None) is not None:
        import pyarrow.compute as pc  # noqa: PLC0415 -- who has such a table has it

        column = pc.local_timestamp(column)
    if str(column.type).startswith(("decimal", "dictionary")):
        return _objects(column.to_pylist())
    values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    return np.asarray(values)


def _objects(values: list[Any]) -> Values:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
