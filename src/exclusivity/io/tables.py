"""Read a table whatever its format: CSV and Parquet become DataFrames, LIBSVM a CSR matrix, .npy an array.

Text files of columns are read in ``_csv``, the others here; ``FORMATS`` lists all.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._cells import MISSING, ColumnRule
from exclusivity.io._csv import csv_header, read_csv
from exclusivity.io._reading import (
    DEFAULT_MAX_BYTES,
    MAX_COLUMNS,
    Columns,
    DataFileError,
    Reading,
    Table,
    check_finite,
    check_size,
    excerpt,
    import_extra,
    refuse_pipe,
    whole_numbers,
)
from exclusivity.io._text import TextFile, is_packed, opened_text, plain_suffix, title_of


def read_table(
    source: str | os.PathLike[str] | BinaryIO,
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

    The columns of a CSV file are inferred from a sample of its rows: numbers, also with a decimal comma,
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
        Columns that are numbers (texts among them are missing values), or text (of a CSV file).
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
    is_path = isinstance(source, (str, os.PathLike))
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {tuple(FORMATS)}, or None; got {format!r}.")
    if not is_path and (format is None or not FORMATS[format].is_text):
        raise ValueError(f"an open file has no name to tell its format from; pass format; got {format!r}.")
    chosen = FORMATS[format] if format is not None else format_of(source)  # type: ignore[arg-type]
    kinds: dict[str | int, str] = {
        **dict.fromkeys(numeric, "number"),
        **dict.fromkeys(categorical, "category"),
    }
    left_out: Any = ignore if isinstance(ignore, str) else tuple(ignore)
    reading = Reading(
        target, left_out, n_features, delimiter, header, max_bytes, decimal, kinds, rules, report=report
    )
    return chosen.read(os.fspath(source) if is_path else source, reading)  # type: ignore[arg-type]


LIBSVM_ROW = "'label index:value ...'"
_MOST_INDEX = 2**31 - 1  # scikit-learn reads indices of 32 bits


def read_libsvm(source: Any, reading: Reading) -> Any:
    """Read a LIBSVM (svmlight) file: finite rows and labels; query numbers are left out."""
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415 -- `erm --help` should not wait for it

    if reading.target is not None:
        raise ValueError(
            f"target={reading.target!r}, but {Path(title_of(source)).name} is read as a LIBSVM file, which "
            "has its target in front of every row; leave target out, or say what the file is with format."
        )

    def refusal(row: int, found: str) -> DataFileError:
        most = _MOST_INDEX if reading.n_features is None else f"n_features={reading.n_features}"
        cause = f"found {excerpt(found)}; expected {LIBSVM_ROW} with finite decimal numbers, and whole "
        return text.error(f"{cause}indices that increase from 1 to at most {most}.", lines.numbers[row])

    with opened_text(source, reading.max_bytes, reading.report) as text:
        lines = _LibsvmLines(text)
        try:
            X, y = load_svmlight_file(lines, zero_based=False)
        except DataFileError:
            raise
        except (ValueError, OverflowError, IndexError):
            if lines.numbers:
                raise refusal(-1, lines.last) from None
        if not lines.numbers:
            raise text.error(f"the file ends without a single row; expected {LIBSVM_ROW}.")
    width, is_wrong = reading.n_features or X.shape[1], ~np.isfinite(y)
    wrong = np.flatnonzero(~np.isfinite(X.data) | (X.indices >= width))
    is_wrong[np.searchsorted(X.indptr, wrong, "right") - 1] = True
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        entries = zip(X[[row]].indices.tolist(), X[[row]].data.tolist(), strict=True)
        odd = [f"{j + 1}:{value:g}" for j, value in entries if j >= width or not math.isfinite(value)]
        raise refusal(row, (odd or [f"{y[row]:g}"])[0])
    X.resize(len(y), width)
    return Table(X, whole_numbers(y))


class _LibsvmLines:
    """The rows of a text, one by one, for scikit-learn; and the numbers of their lines."""

    def __init__(self, text: TextFile) -> None:
        self._text, self.last, self.numbers = text, "", array("q")

    def read(self, size: int = -1, /) -> bytes:
        """Tell scikit-learn by its existence that this is a file; it is not called."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._text:
            for line, number in zip(piece.text.splitlines(), piece.lines, strict=True):
                content = line.partition(b"#")[0]
                if content.strip():
                    self.last = content.decode()
                    self.numbers.append(int(number))
                    if b"_" in content:  # which Python takes for a part of a number
                        raise ValueError(f"found '_'; expected {LIBSVM_ROW}")
                    yield content


def open_npy(path: str) -> Any:
    """Return the array as it lies on disk, after all that can be checked without reading it."""
    refuse_pipe(path)
    try:
        values: Any = np.lib.format.open_memmap(path, mode="r")  # refuses pickles
        end = values.offset + values.nbytes
    except Exception as error:  # NumPy parses the header as Python, and anything may come of that
        raise _damaged(path, ".npy file", error) from error
    cause, size = "", Path(path).stat().st_size
    if values.dtype.kind not in "biuf":
        cause = f"the array is of type {str(values.dtype)[:100]}; expected {KINDS}."
    elif values.ndim != 2 or 0 in values.shape:
        cause = f"the array has the shape {str(values.shape)[:100]}; expected rows and columns."
    elif end != size:
        cause = f"the file has {size} bytes; expected {end}, as it says itself."
    if cause:
        raise DataFileError(path, None, None, cause)
    return values


def read_npy(source: str, reading: Reading) -> Table:
    """Read a .npy file."""
    values = open_npy(source)
    if isinstance(reading.target, str):
        raise ValueError(f"target={reading.target!r}, but a .npy file has no names; give a column's number.")
    columns = Columns.of(range(values.shape[1]), reading, source)
    check_size(source, len(values), values.shape[1], 0, reading)
    X = np.ascontiguousarray(values[:, list(columns.features)], dtype=np.float64)
    for place, column in zip(columns.features, X.T, strict=True):
        check_finite(column, source, place)
    y = None if columns.target is None else np.asarray(values[:, columns.target], dtype=np.float64)
    return Table(X, None if y is None else columns.classes(y))


@dataclass(frozen=True)
class Format:
    """A format of files: what users call it, how their names end, and how to read them."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[..., Table]
    is_text: bool = False
    delimiter: str = ""

    @property
    def has_columns(self) -> bool:
        """True where a file may hold columns of text and dates."""
        return self.name in ("csv", "tsv", "parquet")

    @property
    def is_sparse(self) -> bool:
        """True where labels stand in front of rows and features have numbers: CSR data and no columns."""
        return self.name == "libsvm"

    def columns(self, source: str, reading: Reading) -> list[str] | int | None:
        """Return the names of the columns, their number without names, None where there are none."""
        if self.delimiter:
            return csv_header(source, reading, self.delimiter)[0]
        if self.name == "npy":
            return int(open_npy(source).shape[1])
        if self.name == "libsvm":
            return None
        with open_parquet(source) as file:
            return list(file.schema_arrow.names)


KINDS = "integers, floating point numbers or booleans"


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """Open a Parquet file; whatever pyarrow does not like about it is damage."""
    arrow, parquet = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    refuse_pipe(path)
    try:
        # A text that a file repeats stays one text in memory: as a plain column it may fill all of it.
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            texts = [each.name for each in file.schema_arrow if _is_text(each.type)]
        with parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
            yield file
    except DataFileError:
        raise
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _damaged(path, "Parquet file that pyarrow can read", error) from error
    finally:
        arrow.default_memory_pool().release_unused()  # a hundred megabytes that it would keep for later


def _damaged(path: str, what: str, error: Exception) -> DataFileError:
    """Return the error about a damaged file; names and texts in the reason may be of any length."""
    reason = " ".join(str(error).split())[:200]
    return DataFileError(path, None, None, f"the file is damaged, or not a {what} ({reason}).")


def read_parquet(source: str, reading: Reading) -> Table:
    """Read a Parquet file: as numbers alone, or column by column."""
    with open_parquet(source) as file:
        columns, metadata = _columns(file, source, reading), file.metadata
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        n_rows = sum(int(group.num_rows) for group in groups)
        if n_rows < 1:
            cause = f"the table has {n_rows} rows and {len(columns.all)} columns; expected something in it."
            raise DataFileError(source, None, None, cause)
        said = sum(int(group.total_byte_size) for group in groups)
        check_size(source, n_rows, len(columns.all), said, reading)
        target = None
        if columns.target is not None:
            target = _labels(_column(file, columns.all[columns.target], n_rows, source), columns)
        found = [_column(file, title, n_rows, source) for title in columns.titles]
        given = list((reading.rules or {}).values())
        rules = given or [ColumnRule(reading.kinds.get(title, ""), "?") for title in columns.titles]
        is_strict, n_lost = all(rule.required for rule in rules), [0] * len(found)
        is_plain = (is_strict or not (given or reading.kinds)) and all(
            _is_numeric(each.type) for each in found
        )
        for place, (title, column, rule) in enumerate(zip(columns.titles, found, rules, strict=True)):
            if _is_numeric(column.type):
                values = _numbers(column)
                check_finite(values, source, title, may_lack=not is_strict)
                is_plain = is_plain and not np.isnan(values).any()
            elif is_strict:
                kind = column.type.value_type if _is_text(column.type) else column.type
                cause = f"the column is of type {str(kind)[:200]}; expected {KINDS}."
                raise DataFileError(source, None, title, cause)
            elif _is_text(column.type) and rule.kind in ("number", "date"):
                found[place], n_lost[place] = _from_texts(column, title, rule, source)
        if not is_plain:
            return columns.table(found, target, n_lost=n_lost)
        X = np.empty((n_rows, len(found)), order="F")
        for j in range(len(found)):
            X[:, j], found[j] = _numbers(found[j]), None  # the memory of one column beside those of X
        return columns.table(X, target)


def _columns(file: Any, path: str, reading: Reading) -> Columns:
    """Return the columns; refuse too many, names that occur twice, and the index of a DataFrame."""
    names: list[str] = file.schema_arrow.names
    if not 1 <= len(names) <= MAX_COLUMNS:
        cause = f"the table has {len(names)} columns; expected 1 to {MAX_COLUMNS}."
        raise DataFileError(path, None, None, cause)
    columns = Columns.of(names, reading, path)
    columns.refuse_equal()
    try:
        index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # no JSON, or not what pandas writes
        index = []
    if indices := [title for title in columns.titles if title in index]:
        cause = "the column is the index of a pandas DataFrame; write the file with index=False."
        raise DataFileError(path, None, indices[0], cause, ("ignore",))
    return columns


def _column(file: Any, title: str, n_rows: int, path: str) -> Any:
    """Return a column."""
    column = file.read([title], use_threads=False).column(title)
    column.validate(full=True)  # a damaged page may refer to texts that are not there
    if len(column) != n_rows:
        cause = f"the file holds {len(column)} rows; expected {n_rows}, as it says itself."
        raise DataFileError(path, None, None, cause)
    return column


def _is_text(kind: Any) -> bool:
    types = import_extra("pyarrow").types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_numeric(kind: Any) -> bool:
    types = import_extra("pyarrow").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return a column of numbers or booleans as float64, NaN where missing."""
    return np.asarray(column.cast(import_extra("pyarrow").float64(), safe=False).to_numpy())


def _from_texts(column: Any, title: str, rule: ColumnRule, path: str) -> tuple[NDArray[Any], int]:
    """Return a column of texts as numbers or dates, and how many texts are none, and count as missing."""
    from exclusivity.tables import _columns as cells  # noqa: PLC0415 -- with scikit-learn, for few files

    texts = cells.column_of_arrow(column)
    values: NDArray[Any] = cells.as_numbers(texts) if rule.kind == "number" else cells.as_dates(texts)
    count, text = cells.odd_cells(texts, np.isnan(values))
    if count and "?" not in rule.notation:
        cause = f"{count} cells are no {rule.kind}, such as {text}; expected {rule.kind}s, or nothing."
        raise DataFileError(path, None, title, cause)
    return values, count


def _labels(column: Any, columns: Columns) -> NDArray[Any]:
    """Return the target; refuse one with missing values."""
    if _is_numeric(column.type):
        return columns.classes(_numbers(column))
    if not _is_text(column.type):
        cause = f"the column is of type {str(column.type)[:200]}; expected {KINDS} or text."
        raise DataFileError(columns.file, None, columns.all[columns.target or 0], cause)
    cells = column.to_pandas().astype("category").cat
    words = np.array([*cells.categories, None], dtype=object)  # the code of missing values is -1
    columns.check_classes(np.array([word is None or word in MISSING for word in words])[cells.codes])
    return np.asarray(words[cells.codes])


_LIBSVM_ENDINGS = ("", ".svm", ".libsvm", ".svmlight", ".txt", ".t", ".tr", ".val", ".train", ".test")
FORMATS: dict[str, Format] = {
    found.name: found
    for found in (
        # The LIBSVM site names files by what sets are for, and by what was done to them.
        Format("libsvm", (*_LIBSVM_ENDINGS, ".scale", ".numer", ".numer_scale"), read_libsvm, is_text=True),
        Format("csv", (".csv",), read_csv, is_text=True, delimiter=","),
        Format("tsv", (".tsv",), partial(read_csv, usual="\t"), is_text=True, delimiter="\t"),
        Format("parquet", (".parquet", ".pq"), read_parquet),
        Format("npy", (".npy",), read_npy),
    )
}


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format that the name of a file tells.

    Examples
    --------
    >>> format_of("heart.csv.gz").name, format_of("heart_scale").name
    ('csv', 'libsvm')
    """
    for found in FORMATS.values():
        if plain_suffix(path) in found.suffixes and (found.is_text or not is_packed(path)):
            return found
    endings = ", ".join(ending for found in FORMATS.values() for ending in found.suffixes if ending)
    raise ValueError(
        f"the name {Path(path).name!r} does not say what the file is: it ends in none of {endings} (for text "
        f"also with .gz or .bz2 behind that); pass format, one of {tuple(FORMATS)}."
    )
