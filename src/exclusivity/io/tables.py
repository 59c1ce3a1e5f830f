"""Read a table whatever its format: CSV and Parquet become DataFrames, LIBSVM a CSR matrix, .npy an array."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._cells import ColumnError, Expected, Notation, decimal_of_file, excerpt, read_cells
from exclusivity.io._errors import DataFileError, NotANumberError
from exclusivity.io._formats import FORMATS, Format, RawTable, Reading, format_of
from exclusivity.io._text import DEFAULT_MAX_BYTES, Readable, title_of


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a data file.

    Attributes
    ----------
    data : DataFrame, ndarray or scipy.sparse.csr_matrix
        The features: a pandas DataFrame of a CSV or Parquet file (float64 and
        text with missing values), a float64 array of a .npy file, a CSR matrix of a LIBSVM file.
    target : ndarray or None
        The classes: integers where all are whole numbers, else float64 or text. None where no target was
        asked for.
    notations : dict
        How the numbers of a CSV file were written, by column, where that is unusual: "," a decimal comma,
        "'" thousands, "%" per cent signs, "?" texts that stand for missing values.
    """

    data: Any
    target: NDArray[Any] | None
    notations: dict[Any, str] = field(default_factory=dict)


def read_table(
    source: str | os.PathLike[str] | Readable,
    *,
    target: str | int | None = None,
    ignore: Sequence[str | int] = (),
    format: str | None = None,  # noqa: A002 -- what users call it, as in other readers
    delimiter: str | None = None,
    header: bool = True,
    decimal: str = "",
    numeric: Sequence[str | int] = (),
    categorical: Sequence[str | int] = (),
    n_features: int | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> Table:
    r"""Read a table from a CSV, Parquet, LIBSVM or .npy file.

    A column of a CSV file holds numbers where all of its cells are numbers or missing, also with a decimal
    comma, thousands or per cent signs, and text otherwise. Numbers mixed with text, and numbers that can be
    read in two ways, are errors that say what to do. Empty cells and the texts NA, N/A, NaN, null, None
    and ? are missing values.

    Parameters
    ----------
    source : path or open binary file
        The names of compressed text files end in ``.gz`` or ``.bz2``. An open file is text (CSV or LIBSVM).
    target : str or int, optional
        The column of the classes: its name, or its number from 0 (from the end where negative). A LIBSVM file
        has its target in front of every row.
    ignore : sequence of str or int, default ()
        Columns to leave out.
    format : {"csv", "tsv", "parquet", "libsvm", "npy"}, optional
        By default what the name says: ``.csv``, ``.tsv``, ``.parquet`` (``.pq``), ``.npy``, and LIBSVM for
        ``.svm``, ``.libsvm``, ``.svmlight``, ``.txt``, names without a dot, and the endings that the LIBSVM
        site uses.
    delimiter : {",", "\t", ";", "|"}, optional
        By default a comma (a tab for "tsv"), or the only other one that the first line has.
    header : bool, default True
        Whether the first line of a CSV file holds names.
    decimal : {",", "."}, optional
        What stands before decimals in a CSV file, where its cells leave it open (``1,038``).
    numeric, categorical : sequences of str or int, default ()
        Columns of a CSV file that are numbers (texts among them are missing values), or text.
    n_features : int, optional
        The number of features of a LIBSVM file; by default the largest index.
    max_bytes : int or None, default 4 GiB
        The largest size of the (decompressed) text or of the table; None for no limit. A compressed file may
        also not unpack to more than 100 times its size (or 16 MiB), unless this is None.

    Returns
    -------
    Table
        ``data``, ``target`` and ``notations``.

    Raises
    ------
    DataFileError
        Where the content is wrong, with file, line or row, column and cause.
    ImportError
        Where pandas or pyarrow are not installed (``pip install 'exclusivity[cli]'``), which CSV and Parquet
        files need.
    OSError
        Where the file cannot be opened or read.

    Examples
    --------
    >>> import io
    >>> from exclusivity.io import read_table
    >>> text = b"age;mass;state\n61;80,5;ill\n18;;well\n"
    >>> table = read_table(io.BytesIO(text), format="csv", target="state")
    >>> table.data["mass"].tolist(), table.target.tolist(), table.notations["mass"]
    ([80.5, nan], ['ill', 'well'], ',')
    """
    chosen = _format(source, format)
    left_out: Any = ignore if isinstance(ignore, str) else tuple(ignore)
    reading = Reading(target, left_out, n_features, delimiter, header, max_bytes)
    source = os.fspath(source) if isinstance(source, os.PathLike) else source
    if not chosen.has_columns:
        numbers = chosen.read(source, reading)
        return Table(numbers.data, numbers.labels)
    pd = _import_pandas()
    said: dict[Any, str] = {**dict.fromkeys(numeric, "number"), **dict.fromkeys(categorical, "category")}
    if not said and not decimal and isinstance(source, str) and os.path.isfile(source):
        try:  # quickly, and in less memory
            numbers = chosen.read(source, reading)
        except NotANumberError:
            pass
        else:
            return Table(pd.DataFrame(numbers.data, columns=numbers.feature_names), numbers.labels)
    raw = chosen.read_columns(source, reading)
    names: Sequence[Any] = raw.names or range(len(raw.columns))
    unknown = [name for name in said if name not in names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is named in numeric or categorical, and is no feature.")
    if not chosen.is_text:
        columns = {name: column.to_pandas() for name, column in zip(names, raw.columns, strict=True)}
        _refuse_infinite(columns, source)
        return Table(pd.DataFrame(columns), raw.labels)
    decimal = decimal or decimal_of_file(raw.columns, raw.delimiter)
    found = {
        name: _read_column(raw, place, Expected(said.get(name), decimal), source, name)
        for place, name in enumerate(names)
    }
    notations = {name: notation for name, (_, notation) in found.items() if notation not in ("", ".")}
    return Table(pd.DataFrame({name: values for name, (values, _) in found.items()}), raw.labels, notations)


def _import_pandas() -> Any:
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "reading CSV and Parquet files needs pandas; install it with: pip install 'exclusivity[cli]'"
        ) from error


def _title(name: object) -> str:
    return excerpt(name) if isinstance(name, str) else str(name)


def _refuse_infinite(columns: dict[Any, Any], source: Any) -> None:
    for name, values in columns.items():
        is_infinite = np.isinf(values) if values.dtype.kind == "f" else np.zeros(1)
        if is_infinite.any():
            cause = f"the value in row {int(np.argmax(is_infinite)) + 1} is infinite; expected a number."
            raise DataFileError(title_of(source), None, _title(name), cause)


def _format(source: Any, name: str | None) -> Format:
    if name is not None and name not in FORMATS:
        raise ValueError(f"format must be one of {tuple(FORMATS)}, or None; got {name!r}.")
    if isinstance(source, (str, os.PathLike)):
        return format_of(source) if name is None else FORMATS[name]
    if name is None or not FORMATS[name].is_text:
        raise ValueError(f"an open file has no name to tell its format from; pass format; got {name!r}.")
    return FORMATS[name]


def _read_column(
    raw: RawTable, place: int, expected: Expected, source: Any, name: object
) -> tuple[NDArray[Any], str]:
    """Return the values of a column of text, and how its numbers are written."""
    try:
        read = read_cells(raw.columns[place], expected)
    except ColumnError as error:
        line = None if error.row is None or raw.lines is None else int(raw.lines[error.row])
        ways = [f"{way}=..." for way in error.ways if way != "drop"] + ["ignore=..."] * ("drop" in error.ways)
        advice = f" Pass {' or '.join(ways)}." if ways else ""
        raise DataFileError(title_of(source), line, _title(name), error.cause + advice) from None
    raw.columns[place] = np.empty(0)  # texts that nobody needs any more
    return read.values, (read.notation or Notation()).tag
