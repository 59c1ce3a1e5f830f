"""Read a table whatever its format: CSV and Parquet become DataFrames, LIBSVM a CSR matrix, .npy an array."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._cells import ColumnRule
from exclusivity.io._formats import FORMATS, Format, format_of
from exclusivity.io._reading import Reading
from exclusivity.io._text import DEFAULT_MAX_BYTES, Readable


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a data file.

    Attributes
    ----------
    data : DataFrame, ndarray or scipy.sparse.csr_matrix
        The features: a pandas DataFrame of a CSV or Parquet file (float64 and
        text with missing values, dates), a float64 array of a .npy file, a CSR matrix of a LIBSVM file.
    target : ndarray or None
        The classes: integers where all are whole numbers, else float64 or text. None where no target was
        asked for.
    rules : dict
        How the columns of a CSV file were read; hand them to ``read_table`` to read other files alike.
    remarks : dict
        What is unusual about how columns are written.
    n_lost : dict
        The number of texts that were read as missing values, for columns with some.
    """

    data: Any
    target: NDArray[Any] | None
    rules: dict[str | int, ColumnRule] = field(default_factory=dict)
    remarks: dict[str | int, str] = field(default_factory=dict)
    n_lost: dict[str | int, int] = field(default_factory=dict)


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
    rules: Mapping[str | int, ColumnRule] | None = None,
    n_features: int | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
    report: Callable[[int], None] | None = None,
) -> Table:
    r"""Read a table from a CSV, Parquet, LIBSVM or .npy file.

    What the columns of a CSV file hold is told from a sample of its rows: numbers, also with a decimal comma,
    thousands or per cent signs; dates (2024-12-31); else text. Numbers mixed with text, numbers that can be
    read in two ways, and cells that are not what the sample showed are errors that say what to do. Empty
    cells and the texts NA, N/A, NaN, null, None and ? are missing values.

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
    rules : dict, optional
        How to read each column of a CSV file, in this order, as ``Table.rules`` has it; other columns are
        left out. Every cell is then read by the rule of its column and by nothing else.
    n_features : int, optional
        The number of features of a LIBSVM file; by default the largest index.
    max_bytes : int or None, default 4 GiB
        The largest size of the (decompressed) text or of the table; None for no limit. A compressed file may
        also not unpack to more than 100 times its size (or 16 MiB), unless this is None.
    report : callable, optional
        Called with the number of bytes of text that have been read.

    Returns
    -------
    Table
        ``data``, ``target``, ``rules``, ``remarks`` and ``n_lost``.

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
    >>> table.data["mass"].tolist(), table.target.tolist(), table.remarks
    ([80.5, nan], ['ill', 'well'], {'mass': 'decimal comma'})
    >>> read_table(io.BytesIO(b"mass;age\n75;30\n"), format="csv", rules=table.rules).data.to_numpy()
    array([[30., 75.]])
    """
    chosen = _format(source, format)
    kinds: dict[str | int, str] = {
        **dict.fromkeys(numeric, "number"),
        **dict.fromkeys(categorical, "category"),
    }
    left_out: Any = ignore if isinstance(ignore, str) else tuple(ignore)
    reading = Reading(
        target, left_out, n_features, delimiter, header, max_bytes, decimal, kinds, rules, tell=report
    )
    content = chosen.read(os.fspath(source) if isinstance(source, os.PathLike) else source, reading)
    found = dict(zip(content.titles, content.rules, strict=False))
    remarks = {name: remark for name, remark in zip(found, content.remarks, strict=False) if remark}
    if not chosen.has_columns:
        return Table(content.data, content.target)
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "reading CSV and Parquet files needs pandas; install it with: pip install 'exclusivity[cli]'"
        ) from error
    data = content.data
    if isinstance(data, list):
        data = dict(zip(content.titles, map(_for_pandas, data), strict=True))
    n_lost = {name: count for name, count in zip(content.titles, content.n_lost, strict=False) if count}
    return Table(pandas.DataFrame(data, columns=content.titles), content.target, found, remarks, n_lost)


def _for_pandas(column: Any) -> Any:
    """Return texts as Python strings, equal ones once in memory; other columns as they are."""
    if isinstance(column, np.ndarray):
        return column
    if not hasattr(column, "dictionary"):  # a typed column of a Parquet file
        return column.to_pandas()
    words = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    return words[column.indices.fill_null(len(words) - 1).to_numpy()]


def _format(source: Any, name: str | None) -> Format:
    if name is not None and name not in FORMATS:
        raise ValueError(f"format must be one of {tuple(FORMATS)}, or None; got {name!r}.")
    if isinstance(source, (str, os.PathLike)):
        return format_of(source) if name is None else FORMATS[name]
    if name is None or not FORMATS[name].is_text:
        raise ValueError(f"an open file has no name to tell its format from; pass format; got {name!r}.")
    return FORMATS[name]
