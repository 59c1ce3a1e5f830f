"""Readers of data files, one class for each format: CSV and Parquet by pyarrow, LIBSVM, and .npy.

A format reads a file in two ways: as finite numbers (``read``), or column by column as it is written
(``read_columns``), for tables that also hold text, dates and missing values. Large files are cut into parts
that can be read alone.
"""

from __future__ import annotations

import csv
import math
import os
import re
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._cells import MISSING, excerpt, is_number, label, remedy
from exclusivity.io._errors import DataFileError, MissingClassError, NotANumberError, refuse_pipe
from exclusivity.io._text import (
    DEFAULT_MAX_BYTES,
    Piece,
    Readable,
    TextFile,
    TextSpan,
    is_packed,
    opened_text,
    plain_suffix,
    text_spans,
    title_of,
)

if TYPE_CHECKING:
    from scipy import sparse

DELIMITERS = (",", "\t", ";", "|")

MAX_COLUMNS = 1 << 16
"""65,536 columns, for each of which pyarrow takes some memory. Wider rows are better sparse (LIBSVM)."""

LIBSVM_ROW = "'label index:value ...'"
_LISTED = 20
_MOST_INDEX = 2**31 - 1  # scikit-learn reads indices of 32 bits
_BATCH_VALUES = 1 << 22
_MAGIC = b"PAR1"
_KINDS = "integers, floating point numbers or booleans"
_FINITE = "expected a finite decimal number."
_QUOTES = (
    "found a quote that is not closed in its line, or one inside the text of a field; expected a field "
    'without quotes, or "..." around all of it with the quotes inside doubled.'
)


@dataclass(frozen=True, eq=False)
class TableData:
    """Numbers of a file.

    Attributes
    ----------
    data : ndarray of shape (n_rows, n_features), float64
        The features; a ``scipy.sparse.csr_matrix`` where the file was in LIBSVM format.
    target : ndarray of shape (n_rows,), or None
        The target column: float64 where it holds numbers, else text (dtype object). None where no target
        was asked for.
    feature_names : tuple of str, or None
        The names of the columns of ``data`` where the file has them.
    """

    data: NDArray[np.float64] | sparse.csr_matrix
    target: NDArray[Any] | None
    feature_names: tuple[str, ...] | None

    @property
    def labels(self) -> NDArray[Any] | None:
        """The target as classes: whole numbers as such, text and other numbers as they are."""
        return labels_of(self.target)


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns as a file has them.

    Attributes
    ----------
    columns : list of ndarray or of pyarrow columns
        The features: bytes of text (CSV), or what a typed column holds (Parquet).
    target : ndarray or None
        As in ``TableData``.
    names : tuple of str or None
        Names of the features.
    lines : ndarray of int or None
        The line of every row in what was read of a text file, counted from 1.
    delimiter : str
        What stands between fields of text.
    """

    columns: list[Any]
    target: NDArray[Any] | None
    names: tuple[str, ...] | None
    lines: NDArray[np.int64] | None = None
    delimiter: str = ""

    @property
    def labels(self) -> NDArray[Any] | None:
        """The target as classes; see ``TableData``."""
        return labels_of(self.target)


def labels_of(target: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return whole numbers as integers, text and other numbers as they are."""
    if target is None or target.dtype.kind != "f" or first_measured(target) is not None:
        return target
    return np.asarray(target.astype(np.int64))


def first_measured(target: NDArray[Any]) -> float | None:
    """Return the first number of a target that is not whole, or too large to be exact; None without one."""
    is_class = (target == np.rint(target)) & (np.abs(target) < 2**53)
    return None if is_class.all() else float(target[int(np.argmin(is_class))])


@dataclass(frozen=True)
class Reading:
    """What to take from a file, and how.

    Attributes
    ----------
    target : str or int or None
        The column of the labels, by name or by number from 0 (from the end where negative).
    ignore : tuple of str or int
        Columns to leave out.
    n_features : int or None
        The number of features where it is known before; files without columns are read to that width.
    delimiter : str or None
        Between the fields of text; None: what the format says.
    header : bool
        Whether text has a line with names.
    max_bytes : int or None
        The largest size of the text or of the table; None for no limit.
    """

    target: str | int | None = None
    ignore: tuple[str | int, ...] = ()
    n_features: int | None = None
    delimiter: str | None = None
    header: bool = True
    max_bytes: int | None = DEFAULT_MAX_BYTES

    def __post_init__(self) -> None:
        """Refuse settings that are none."""
        ignored: Any = self.ignore
        if isinstance(ignored, (str, bytes)):
            raise TypeError(f"ignore must be a sequence of columns' names or numbers; got {ignored!r}.")
        target = [] if self.target is None else [("target", self.target)]
        for name, column in [*target, *(("ignore", column) for column in self.ignore)]:
            if not isinstance(column, (str, int)) or isinstance(column, bool):
                raise TypeError(f"{name} must be a column's name or number, or None; got {column!r}.")
            if isinstance(column, str) and not self.header:
                raise ValueError(
                    f"{name} is the name {column!r}, but header=False means that columns have no names; "
                    "pass the column's number."
                )
        if self.delimiter is not None and self.delimiter not in DELIMITERS:
            raise ValueError(f"delimiter must be one of {DELIMITERS}, or None; got {self.delimiter!r}.")
        for name, value in (("max_bytes", self.max_bytes), ("n_features", self.n_features)):
            if value is not None and (not isinstance(value, (int, np.integer)) or value < 1):
                raise ValueError(f"{name} must be a whole number from 1, or None; got {value!r}.")

    def unlimited(self, path: str) -> Reading:
        """Return the same for the owner of a file: no limit, unless it is compressed and so may be a trap."""
        return self if is_packed(path) else replace(self, max_bytes=None)


@dataclass(frozen=True)
class Columns:
    """The columns of a file.

    Attributes
    ----------
    names : tuple of str, or None
        None for a file without a header.
    count : int
        How many there are.
    target : int or None
        Which of them is the target, counted from 0.
    features : tuple of int
        Which of them are features.
    file : str
        What errors call the file.
    delimiter : str
        What stands between fields of text.

    Examples
    --------
    >>> columns = Columns.of(("id", "age", "ill"), 3, Reading("ill", ("id",)), "heart.csv")
    >>> columns.features, columns.title(1)
    ((1,), "2 ('age')")
    """

    names: tuple[str, ...] | None
    count: int
    target: int | None
    features: tuple[int, ...]
    file: str
    delimiter: str = ""

    @classmethod
    def of(
        cls,
        names: tuple[str, ...] | None,
        count: int,
        reading: Reading,
        file: str,
        line: int | None = None,
    ) -> Columns:
        """Return the columns of a file; an error names a column that is not there."""

        def place_of(column: str | int, role: str) -> int:
            if isinstance(column, int) and -count <= column < count:
                return column % count
            if not isinstance(column, int) and names is not None and column in names:
                return names.index(column)
            cause = f"there is no column {column} {role} among {count} columns."
            if not isinstance(column, int):
                cause = f"there is no column {excerpt(column)} {role}; there are {listed(names or ())}."
            raise DataFileError(file, line, None, cause)

        target = None if reading.target is None else place_of(reading.target, "for the target")
        ignored = {place_of(column, "to ignore") for column in reading.ignore}
        features = tuple(place for place in range(count) if place != target and place not in ignored)
        if target in ignored:
            cause = "the target is among the columns to ignore; expected another column."
        elif not features and ignored:
            cause = f"none of the {count} columns is left for features; expected at least one."
        elif not features:
            cause = "the target is the only column; expected features as well."
        else:
            return cls(names, count, target, features, file)
        raise DataFileError(file, line, None, cause)

    def title(self, column: int) -> str:
        """Return what errors call a column: its number from 1, and its name."""
        return f"{column + 1}" if self.names is None else f"{column + 1} ({excerpt(self.names[column])})"

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features."""
        return None if self.names is None else tuple(self.names[place] for place in self.features)


def listed(names: Sequence[str]) -> str:
    """Return names of columns in a row, the first twenty of them."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(excerpt, names[:_LISTED])) + more


@dataclass(frozen=True)
class FilePart:
    """A file, or a part of it that can be read alone.

    Attributes
    ----------
    path : str
        The file.
    n_bytes : int
        About what has to be read.
    span : (start, stop) or None
        Of bytes, rows or row groups, as the format counts; None: all of the file.
    memory : int
        What its numbers take in memory; 0 where only reading tells.
    """

    path: str
    n_bytes: int
    span: tuple[int, int] | None = None
    memory: int = 0


class Format(ABC):
    """A format of files.

    Attributes
    ----------
    name : str
        What users call it.
    suffixes : tuple of str
        Ends of the names of such files; "" is a name without a dot.
    is_text : bool
        Whether it is read from the first byte to the last, and so also from a stream.
    is_sparse : bool
        Whether labels stand in front of rows and features have numbers: CSR data and no columns.
    has_header : bool
        Whether the first line may hold names.
    has_columns : bool
        Whether a file may hold columns of text and dates.
    delimiter : str
        The usual one between fields; "" where there is none.
    row : str
        What a row looks like, for somebody whose file turns out to be something else in its first line.
    """

    name: str
    suffixes: tuple[str, ...]
    is_text = is_sparse = has_header = has_columns = False
    delimiter = row = ""

    @abstractmethod
    def columns(self, source: Any, reading: Reading) -> list[str] | int | None:
        """Return the names of the columns, their number where they have no names, None where there are none.

        Parameters
        ----------
        source : str or open file
            An open file only where the format is text.
        reading : Reading
            How to read it; only what does not name columns counts here.
        """

    @abstractmethod
    def read(self, source: Any, reading: Reading, span: tuple[int, int] | None = None) -> TableData:
        """Return the finite numbers of a file, or raise a ``DataFileError``."""

    def read_columns(self, source: Any, reading: Reading, span: tuple[int, int] | None = None) -> RawTable:
        """Return the columns of a file as it has them, or raise a ``DataFileError``."""
        raise DataFileError(title_of(source), None, None, f"a {self.name} file holds numbers only.")

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        """Cut one file into parts that take about ``block_bytes`` of memory each.

        What cannot be cut is one part. So is a damaged file: whoever reads it says what is wrong with it.
        """
        refuse_pipe(path)  # parts are read in several passes
        return [FilePart(path, Path(path).stat().st_size)]

    def read_part(self, part: FilePart, reading: Reading, *, columns: bool = False) -> Any:
        """Return what ``read`` (or ``read_columns``) says of one part; None where it has no rows."""
        return (self.read_columns if columns else self.read)(part.path, reading, part.span)


class _TextFormat(Format):
    """Text in lines, one for each row; a part is a span of bytes."""

    is_text = True

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        # Numbers of few digits grow when they are read.
        spans = [] if is_packed(path) else text_spans(path, max(1, block_bytes // 2))
        if len(spans) < 2:
            return super().parts(path, reading, block_bytes)
        return [FilePart(path, b - a, (a, b)) for a, b in spans]

    def read_part(self, part: FilePart, reading: Reading, *, columns: bool = False) -> Any:
        if part.span is None:
            return super().read_part(part, reading, columns=columns)
        with TextSpan(part.path, *part.span, header=self.has_header and reading.header) as span:
            if span.is_blank():
                return None
            try:
                return (self.read_columns if columns else self.read)(span, reading)
            except DataFileError as error:
                raise error if error.line is None else error.after(span.lines_before()) from None


class CsvFormat(_TextFormat):
    """Text with commas, or another delimiter, between its fields."""

    name, suffixes, delimiter = "csv", (".csv",), ","
    has_header = has_columns = True

    def columns(self, source: str | Readable, reading: Reading) -> list[str] | int:
        with opened_text(source, None) as text:
            piece = next(iter(text), None)
            if piece is None:
                return []
            fields = _fields(text, piece, self.delimiter_of(piece, reading))
            return fields if reading.header else len(fields)

    def delimiter_of(self, piece: Piece | None, reading: Reading) -> str:
        """Return what the caller says, else the usual delimiter or the only other one in the first line."""
        line = b"" if piece is None else piece.text.partition(b"\n")[0]
        found = [character for character in DELIMITERS if character.encode() in line]
        if reading.delimiter is not None or self.delimiter in found or len(found) != 1:
            return reading.delimiter or self.delimiter
        return found[0]

    def find_delimiter(self, source: str | Readable, reading: Reading) -> str:
        """Return the delimiter of a file."""
        with opened_text(source, None) as text:
            return self.delimiter_of(next(iter(text), None), reading)

    def read(
        self, source: str | Readable, reading: Reading, span: tuple[int, int] | None = None
    ) -> TableData:
        values, target = array("d"), _Target()
        columns: Any = None
        for columns, lines, fields in self._batches(source, reading):
            values.frombytes(_numbers(fields, lines, columns).tobytes())
            target.add(fields, lines, columns)
        X = np.frombuffer(values).reshape(-1, len(columns.features))
        return TableData(X, target.values(columns), columns.feature_names)

    def read_columns(
        self, source: str | Readable, reading: Reading, span: tuple[int, int] | None = None
    ) -> RawTable:
        parts: list[list[NDArray[np.bytes_]]] = []
        numbers, target = [], _Target()
        columns: Any = None
        for columns, lines, fields in self._batches(source, reading):
            parts = parts or [[] for _ in columns.features]
            for cells, place in zip(parts, columns.features, strict=True):
                cells.append(np.array(_trimmed(fields[place]), dtype=np.bytes_))
            target.add(fields, lines, columns)
            numbers.append(np.asarray(lines))
        found = []
        while parts:  # the pieces of a column go as soon as it is whole
            found.append(np.concatenate(parts.pop(0)))
        labels, places = target.values(columns), np.concatenate(numbers)
        return RawTable(found, labels, columns.feature_names, places, columns.delimiter)

    def _batches(
        self, source: str | Readable, reading: Reading
    ) -> Iterator[tuple[Columns, Sequence[int], dict[int, Any]]]:
        """Yield the columns of the file, the lines of some rows, and the fields of these rows by column."""
        delimiter, columns, n_rows = "", None, 0
        with opened_text(source, reading.max_bytes) as text:
            for piece in text:
                if columns is None:
                    delimiter = self.delimiter_of(piece, reading)
                    columns = replace(self._columns(text, piece, delimiter, reading), delimiter=delimiter)
                    if reading.header:
                        piece = Piece(piece.text.partition(b"\n")[2], piece.lines[1:])  # noqa: PLW2901
                if piece.text:
                    n_rows += len(piece.lines)
                    lines: Any = piece.lines
                    yield columns, lines, _parsed(text, piece, columns)
            if columns is None:
                raise text.error("the file ends without a single line; expected a table.")
            if not n_rows:
                raise text.error("the file ends after the header; expected rows.")

    def _columns(self, text: TextFile, piece: Piece, delimiter: str, reading: Reading) -> Columns:
        fields, line = _fields(text, piece, delimiter), int(piece.lines[0])
        if not reading.header:
            return Columns.of(None, len(fields), reading, text.name, line)
        if all(is_number(field.encode()) for field in fields):
            raise text.error(
                f"the first line, {listed(fields)}, holds numbers; expected the names of the columns "
                "(pass header=False where a file has none).",
                line,
            )
        columns = Columns.of(tuple(fields), len(fields), reading, text.name, line)
        _check_names(columns, text, line)
        return columns


class TsvFormat(CsvFormat):
    """The same with tabs."""

    name, suffixes, delimiter = "tsv", (".tsv",), "\t"


def _fields(text: TextFile, piece: Piece, delimiter: str) -> list[str]:
    """Return the fields of the first line of a piece."""
    line = piece.text.partition(b"\n")[0].decode("utf-8")
    if line.count(delimiter) >= MAX_COLUMNS:
        cause = f"the line has more than {MAX_COLUMNS} fields; expected a table."
        raise text.error(cause, int(piece.lines[0]))
    try:
        (fields,) = csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        raise text.error(_QUOTES, int(piece.lines[0])) from None
    return [field.strip(" \t") for field in fields]


def _check_names(columns: Columns, text: TextFile, line: int) -> None:
    """Refuse names that are empty, unless nobody asks for the column, and names that occur twice."""
    places: dict[str, int] = {}
    for place, name in enumerate(columns.names or ()):
        if not name and place not in columns.features and place != columns.target:
            continue
        if not name:
            raise text.error(
                f"column {place + 1} has no name; expected one (row numbers, as pandas writes them: leave "
                f"them out with ignore=[{place}], or write the file without them).",
                line,
            )
        if name in places:
            raise text.error(
                f"columns {places[name] + 1} and {place + 1} are both called {excerpt(name)}; "
                "expected different names.",
                line,
            )
        places[name] = place


def import_pyarrow(module: str = "") -> Any:
    """Return pyarrow, or one of its modules; the error says how to get it."""
    try:
        return import_module(f"pyarrow{module}")
    except ImportError as error:
        raise ImportError(
            "reading CSV and Parquet files needs pyarrow; install it with: pip install 'exclusivity[cli]'"
        ) from error


def _parsed(text: TextFile, piece: Piece, columns: Columns) -> dict[int, Any]:
    """Return the fields of the rows of a piece as arrow arrays, by the number of the column."""
    arrow, reader = import_pyarrow(), import_pyarrow(".csv")
    delimiter = columns.delimiter
    content = _quoted(text, piece, delimiter) if b'"' in piece.text else piece.text
    places = [*columns.features, *([] if columns.target is None else [columns.target])]
    refused: list[Any] = []

    def refuse(row: Any) -> str:
        refused.append(row)
        return "error"

    try:
        table = reader.read_csv(
            arrow.BufferReader(content),
            reader.ReadOptions(
                use_threads=False,
                column_names=[str(place) for place in range(columns.count)],
                block_size=len(content) + 1,
            ),
            reader.ParseOptions(delimiter=delimiter, invalid_row_handler=refuse),
            reader.ConvertOptions(
                check_utf8=False,  # all of the text has been checked
                include_columns=[str(place) for place in places],
                column_types={str(place): arrow.string() for place in places},
                strings_can_be_null=False,
            ),
        )
    except arrow.ArrowInvalid as error:
        if not refused:
            raise text.error(f"pyarrow cannot read the text ({error!s:.200}).", int(piece.lines[0])) from None
        row = refused[0]
        found = f"more than {columns.count}" if row.actual_columns > columns.count else row.actual_columns
        comma = " A comma inside a number or a text needs quotes around the field." * (
            row.actual_columns > columns.count and delimiter == ","
        )
        cause = f"the row has {found} fields; expected {columns.count}, as in the first line.{comma}"
        raise text.error(cause, int(piece.lines[min(row.number, len(piece.lines)) - 1])) from None
    if table.num_rows != len(piece.lines):
        raise DataFileError(text.name, None, None, _QUOTES)
    return {place: table.column(str(place)).combine_chunks() for place in places}


def _quoted(text: TextFile, piece: Piece, delimiter: str) -> bytes:
    """Return a piece with quotes as pyarrow reads them; refuse those that do not enclose a field."""
    blank, end = (b" " if delimiter == "\t" else b" \t"), re.escape(delimiter.encode())
    field = rb'(?:[%b]*+"(?:[^"]++|"")*+"[%b]*+|[^"%b]*+)' % (blank, blank, end)
    is_row = re.compile(rb"%b(?:%b%b)*+" % (field, end, field))
    for line, number in zip(piece.text.splitlines(), piece.lines, strict=True):
        if b'"' in line and is_row.fullmatch(line) is None:
            raise text.error(_QUOTES, int(number))
    if re.search(rb'[%b]"|"[%b]' % (blank, blank), piece.text) is None:
        return piece.text
    # Blanks around quotes do not count, but pyarrow knows quotes beside a delimiter only.
    around = re.compile(
        rb'(?:(?<=%b)|^)([%b]*+)("(?:[^"]++|"")*+")([%b]*+)(?=%b|$)' % (end, blank, blank, end), re.M
    )
    return around.sub(rb"\2", piece.text)


def _trimmed(column: Any) -> list[bytes]:
    """Return fields without the blanks around them."""
    trimmed = import_pyarrow(".compute").ascii_trim(column, " \t")
    cells: list[bytes] = trimmed.cast(import_pyarrow().binary()).to_pylist()
    return cells


def plain_numbers(column: Any) -> NDArray[np.float64] | None:
    """Return an arrow array of texts as numbers; None where one is none, or not finite."""
    arrow = import_pyarrow()
    try:
        values = _as_array(column.cast(arrow.float64()), np.float64)
    except arrow.ArrowInvalid:
        trimmed = import_pyarrow(".compute").ascii_trim(column, " \t")
        return None if trimmed.equals(column) else plain_numbers(trimmed)
    return values if np.isfinite(values).all() else None


def _as_array(column: Any, kind: Any) -> NDArray[Any]:
    """Return an arrow array without nulls as it lies in memory; ``to_numpy`` would import pandas."""
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def _numbers(fields: dict[int, Any], lines: Sequence[int], columns: Columns) -> NDArray[np.float64]:
    """Return the features of some rows; an error names the first cell that is no finite number."""
    block = np.empty((len(lines), len(columns.features)))
    wrong = {}
    for j, place in enumerate(columns.features):
        values = plain_numbers(fields[place])
        if values is None:
            cells = _trimmed(fields[place])
            values = np.array([float(cell) if is_number(cell) else np.nan for cell in cells])
            if not np.isfinite(values).all():
                wrong[place] = int(np.argmin(np.isfinite(values))), cells
        block[:, j] = values
    if not wrong:
        return block
    row = min(row for row, _ in wrong.values())
    place, *others = [place for place, (found, _) in wrong.items() if found == row]
    cell = wrong[place][1][row].decode("utf-8")
    cause = f"found {excerpt(cell)}; {_FINITE}{remedy(cell)}"
    if not cell:
        cause = f"the value is missing; {_FINITE} Fill it in, or leave the row out."
    if others:
        titles = [str(j + 1) if columns.names is None else columns.names[j] for j in others]
        cause += f" The same line has no numbers in {listed(titles)} either."
    raise NotANumberError(columns.file, int(lines[row]), columns.title(place), cause)


class _Target:
    """The entries of a target column: all numbers, or all text."""

    def __init__(self) -> None:
        self._parts: list[NDArray[Any]] = []
        self._known: dict[str, float | str] = {}
        self._kind: type | None = None
        self._missing: list[int] = []
        self._n_missing = self._n_rows = 0

    def add(self, fields: dict[int, Any], lines: Sequence[int], columns: Columns) -> None:
        """Add the entries of some rows."""
        if columns.target is None:
            return
        encoded = import_pyarrow(".compute").ascii_trim(fields[columns.target], " \t").dictionary_encode()
        texts, codes = encoded.dictionary.to_pylist(), _as_array(encoded.indices, np.int32)
        is_missing = np.array([text in MISSING for text in texts], dtype=bool)[codes]
        self._n_rows += len(codes)
        if is_missing.any():
            places = np.flatnonzero(is_missing)
            self._n_missing += len(places)
            self._missing += [int(lines[row]) for row in places[:10].tolist()]
        values = np.empty(len(texts), dtype=object)
        for code in dict.fromkeys(codes[~is_missing].tolist()):  # in the order of the rows
            try:
                values[code] = self._value(texts[code])
            except ValueError as error:
                line = int(lines[int(np.argmax(codes == code))])
                raise DataFileError(columns.file, line, columns.title(columns.target), str(error)) from None
        entries = values[codes[~is_missing]]
        self._parts.append(entries if self._kind is str else entries.astype(np.float64))

    def _value(self, text: str) -> float | str:
        value = self._known.setdefault(text, label(text)) if text not in self._known else self._known[text]
        self._kind = self._kind or type(value)
        if not isinstance(value, self._kind):
            before = "text" if self._kind is str else "numbers"
            raise ValueError(
                f"found {excerpt(text)}, but the rows before have {before}; expected only numbers or only "
                "text in the target."
            )
        return value

    def values(self, columns: Columns) -> NDArray[Any] | None:
        """Return the column; refuse one with missing values."""
        if columns.target is None:
            return None
        if self._missing:
            title = columns.title(columns.target)
            raise MissingClassError(columns.file, title, self._missing, self._n_missing, self._n_rows)
        return np.concatenate(self._parts)


class LibsvmFormat(_TextFormat):
    """The files of the LIBSVM site, whose names end in what sets are for, or in what was done to them."""

    name = "libsvm"
    suffixes = (
        *("", ".svm", ".libsvm", ".svmlight", ".txt", ".t", ".tr", ".val", ".train", ".test"),
        *(".scale", ".numer", ".numer_scale"),
    )
    is_sparse = True
    row = LIBSVM_ROW

    def columns(self, source: str | Readable, reading: Reading) -> None:
        """Return None: features have numbers."""

    def read(
        self, source: str | Readable, reading: Reading, span: tuple[int, int] | None = None
    ) -> TableData:
        if reading.target is not None:
            raise ValueError(
                f"target={reading.target!r}, but {Path(title_of(source)).name} is read as a LIBSVM file, "
                "which has its target in front of every row; leave target out, or say what the file is with "
                "format."
            )
        X, y = read_libsvm(source, n_features=reading.n_features, max_bytes=reading.max_bytes)
        return TableData(X, y, None)


def read_libsvm(
    source: str | os.PathLike[str] | Readable,
    *,
    n_features: int | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> tuple[sparse.csr_matrix, NDArray[np.float64]]:
    """Read a LIBSVM (svmlight) file: rows and labels, all of them finite; query numbers are left out.

    Parameters
    ----------
    source : path or open binary file
    n_features : int, optional
        The number of columns; by default the largest index. A larger index in the file is an error.
    max_bytes : int or None, default 4 GiB
        The largest size of the text.
    """
    from scipy import sparse  # noqa: PLC0415 -- `erm --help` knows formats, and should not wait for it
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415

    with opened_text(source, max_bytes) as text:
        lines = _LibsvmLines(text)
        try:
            X, y = load_svmlight_file(lines, zero_based=False)
        except DataFileError:
            raise
        except (ValueError, OverflowError, IndexError) as error:
            if not lines.rows:
                raise _no_rows(text) from None
            raise text.error(
                _why_no_row(lines.content, n_features) or f"{error}.", lines.line_of(-1)
            ) from None
        if not lines.rows:
            raise _no_rows(text)
    width = X.shape[1] if n_features is None else n_features
    entries = np.isfinite(X.data) & (X.indices < width)
    wrong = [int(np.searchsorted(X.indptr, np.argmin(entries), "right")) - 1] if not entries.all() else []
    wrong += [int(np.argmin(np.isfinite(y)))] if not np.isfinite(y).all() else []
    if wrong:
        row = min(wrong)
        tokens = [f"{j + 1}:{v:g}" for j, v in zip(X[[row]].indices.tolist(), X[[row]].data, strict=True)]
        cause = _why_no_row(" ".join([f"{y[row]:g}", *tokens]).encode(), n_features)
        raise DataFileError(title_of(source), lines.line_of(row), None, cause)
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width)), y


def _no_rows(text: TextFile) -> DataFileError:
    return text.error(f"the file ends without a single row; expected {LIBSVM_ROW}.")


class _LibsvmLines:
    """The rows of a text, one by one, for scikit-learn; and which line the last one was."""

    def __init__(self, text: TextFile) -> None:
        self._text, self.content = text, b""
        self.rows = 0
        self._lines: list[Any] = []

    def read(self, size: int = -1, /) -> NoReturn:
        """Not called: that it is there tells scikit-learn that this is a file."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._text:
            contents, lines = piece.text.splitlines(), piece.lines
            if b"#" in piece.text:
                contents = [line.partition(b"#")[0] for line in contents]
                lines = np.asarray(lines)[[bool(line.strip()) for line in contents]]
                contents = [line for line in contents if line.strip()]
            self._lines.append(lines)
            for self.content in contents:
                self.rows += 1
                if b"_" in self.content:  # which Python takes for a part of a number
                    raise ValueError(f"found '_'; expected {LIBSVM_ROW}")
                yield self.content

    def line_of(self, row: int) -> int:
        """Return the line of a row; -1 is the last one that was handed out."""
        row = self.rows - 1 if row < 0 else row
        return int(np.concatenate([np.asarray(lines) for lines in self._lines])[row])


def _why_no_row(line: bytes, n_features: int | None = None) -> str:  # noqa: PLR0911 -- one for each rule
    """Return what is wrong with a line; nothing where that is not known."""
    tokens = line.decode("utf-8").split()
    if ":" in tokens[0]:
        return f"found {excerpt(tokens[0])} where the label should be; expected {LIBSVM_ROW}."
    if not _is_finite(tokens[0]):
        return f"the label is {excerpt(tokens[0])}; expected a finite decimal number."
    previous = 0
    for place, token in enumerate(tokens[1:]):
        index, colon, value = token.partition(":")
        if place == 0 and index == "qid" and value.isdecimal():
            continue
        if not colon:
            return f"found {excerpt(token)}; expected index:value."
        if not (index.isascii() and index.isdecimal() and 0 < int(index[:20]) <= _MOST_INDEX):
            return (
                f"the index in {excerpt(token)} is {excerpt(index)}; expected a whole number from 1 to "
                f"{_MOST_INDEX}."
            )
        if int(index) <= previous:
            return f"index {index} follows index {previous}; expected strictly increasing indices."
        if n_features is not None and int(index) > n_features:
            return f"index {index} is too large; expected at most n_features={n_features}."
        if not _is_finite(value):
            return f"the value of index {index} is {excerpt(value)}; expected a finite decimal number."
        previous = int(index)
    return ""


def _is_finite(text: str) -> bool:
    return is_number(text.encode()) and math.isfinite(float(text))


class NpyFormat(Format):
    """Arrays as ``numpy.save`` writes them; a part is a range of rows."""

    name, suffixes = "npy", (".npy",)

    def columns(self, source: str, reading: Reading) -> int:
        return int(self._opened(source).shape[1])

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        n_rows, n_columns = self._opened(path).shape
        size = Path(path).stat().st_size
        n_parts = max(1, math.ceil(8 * n_rows * n_columns / block_bytes))
        cuts = [n_rows * number // n_parts for number in range(n_parts + 1)]
        return [
            FilePart(path, size * (b - a) // n_rows, (a, b), 8 * (b - a) * n_columns)
            for a, b in pairwise(cuts)
            if b > a
        ]

    def read(self, source: str, reading: Reading, span: tuple[int, int] | None = None) -> TableData:
        array = self._opened(source)
        if isinstance(reading.target, str):
            raise ValueError(
                f"target={reading.target!r}, but a .npy file has no names; give a column's number."
            )
        start, stop = (0, len(array)) if span is None else span
        columns = Columns.of(None, array.shape[1], reading, source)
        _check_size(source, stop - start, array.shape[1], 0, reading)
        X = np.empty((stop - start, len(columns.features)))
        y = None if columns.target is None else np.empty(stop - start)
        step = max(1, _BATCH_VALUES // columns.count)
        for first in range(start, stop, step):
            rows = np.asarray(array[first : min(first + step, stop)], dtype=np.float64)
            block = X[first - start : first - start + len(rows)]
            block[:] = rows[:, columns.features]
            _check_finite(block, columns.features, first, columns)
            if y is not None:
                labels = rows[:, columns.target or 0]
                y[first - start : first - start + len(rows)] = labels
                given = np.where(np.isnan(labels), 0.0, labels)[:, None]
                _check_finite(given, [columns.target or 0], first, columns)
        if y is not None and np.isnan(y).any():
            missing = (start + 1 + np.flatnonzero(np.isnan(y))).tolist()
            title = columns.title(columns.target or 0)
            raise MissingClassError(source, title, missing, len(missing), stop - start, "row")
        return TableData(X, y, None)

    @staticmethod
    def _opened(path: str) -> Any:
        """Return the array as it lies on disk, after all that can be checked without reading it."""
        refuse_pipe(path)
        with open(path, "rb"):  # for the system's own words on what cannot be opened
            pass
        try:
            array: Any = np.lib.format.open_memmap(path, mode="r")
            n_bytes, size = array.offset + array.nbytes, Path(path).stat().st_size
        except Exception as error:  # NumPy parses the header as Python, and anything may come of that
            reason = " ".join(str(error).split())[:200]
            cause = f"the file is damaged, or not a .npy file ({reason})."
            raise DataFileError(path, None, None, cause) from error
        cause = ""
        if array.dtype.kind not in "biuf":
            kind = str(array.dtype)[:100]
            cause = f"the array is of type {kind}; expected integers, floating point numbers or booleans."
        elif array.ndim != 2 or not array.size:
            cause = f"the array has the shape {str(array.shape)[:100]}; expected rows and columns."
        elif n_bytes != size:
            cause = f"the file has {size} bytes; expected {n_bytes}, as it says itself."
        if cause:
            raise DataFileError(path, None, None, cause)
        return array


def _check_size(file: str, n_rows: int, n_columns: int, said: int, reading: Reading) -> None:
    size = max(8 * n_rows * n_columns, said)
    if reading.max_bytes is not None and size > reading.max_bytes:
        cause = (
            f"the table of {n_rows} rows and {n_columns} columns takes {size} bytes, more than "
            f"max_bytes={reading.max_bytes}; if you trust the file, pass a larger max_bytes, or None for no "
            "limit."
        )
        raise DataFileError(file, None, None, cause)


def _check_finite(
    values: NDArray[np.float64], places: Sequence[int], first: int, columns: Columns, missing: Any = None
) -> None:
    """Refuse a missing or infinite number; rows are counted from 1."""
    finite = np.isfinite(values)
    if finite.all():
        return
    row, column = (int(place) for place in np.unravel_index(int(np.argmin(finite)), finite.shape))
    cause = f"the value in row {first + row + 1} is {values[row, column]}; expected a finite number."
    if missing is not None and missing[row]:
        cause = f"the value in row {first + row + 1} is missing; expected one in every row."
    raise NotANumberError(columns.file, None, columns.title(places[column]), cause)


class ParquetFormat(Format):
    """Parquet; a part is a few neighbouring row groups."""

    name, suffixes = "parquet", (".parquet", ".pq")
    has_columns = True

    def columns(self, source: str, reading: Reading) -> list[str]:
        refuse_pipe(source)
        with open(source, "rb"):  # for the system's own words on what cannot be opened
            pass
        try:
            with _ParquetFile(source, reading) as file:
                return list(file.names)
        except DataFileError:
            return []

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        try:
            with _ParquetFile(path, reading) as file:
                counts = file.rows_of_groups()
        except DataFileError:
            return super().parts(path, reading, block_bytes)
        size, total = Path(path).stat().st_size, max(1, sum(counts))
        width = 8 * (reading.n_features or 1)
        groups = [(a, b, sum(counts[a:b])) for a, b in _grouped(counts, max(1, block_bytes // width))]
        return [FilePart(path, size * n_rows // total, (a, b), n_rows * width) for a, b, n_rows in groups]

    def read(self, source: str, reading: Reading, span: tuple[int, int] | None = None) -> TableData:
        with _ParquetFile(source, reading, span) as file:
            file.check_size()
            file.check_numbers()
            X = np.empty((file.n_rows, len(file.columns.features)))
            labels, start = [], 0
            for batch in file.batches(max(1, min(1 << 16, _BATCH_VALUES // file.columns.count))):
                block = X[start : start + batch.num_rows]
                for j, place in enumerate(file.columns.features):
                    column = batch.column(file.names[place])
                    block[:, j] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
                    missing = np.asarray(column.is_null()) if column.null_count else None
                    _check_finite(block[:, [j]], [place], start, file.columns, missing)
                labels.append(file.target_of(batch, start))
                start += batch.num_rows
            file.check_count(start)
            return TableData(X, file.target(labels), file.columns.feature_names)

    def read_columns(self, source: str, reading: Reading, span: tuple[int, int] | None = None) -> RawTable:
        with _ParquetFile(source, reading, span) as file:
            file.check_size()
            batches = list(file.batches(1 << 16))
            file.check_count(sum(batch.num_rows for batch in batches))
            table = import_pyarrow().Table.from_batches(batches)
            labels = file.target([file.target_of(table, 0)])
            columns = [table.column(file.names[place]) for place in file.columns.features]
            return RawTable(columns, labels, file.columns.feature_names)


def _grouped(counts: list[int], most: int) -> list[tuple[int, int]]:
    """Return row groups together as long as they have at most ``most`` rows; empty ones disappear."""
    groups: list[tuple[int, int]] = []
    n_rows = most + 1
    for place, count in enumerate(counts):
        if count == 0:
            continue
        if n_rows + count > most or groups[-1][1] != place:
            groups.append((place, place + 1))
            n_rows = count
        else:
            groups[-1] = (groups[-1][0], place + 1)
            n_rows += count
    return groups


class _ParquetFile:
    """An open Parquet file, or some of its row groups; whatever pyarrow does not like about it is damage."""

    def __init__(self, path: str, reading: Reading, span: tuple[int, int] | None = None) -> None:
        self._path, self._reading, self._span = path, reading, span
        self._arrow, self._parquet = import_pyarrow(), import_pyarrow(".parquet")
        self._file: Any = None
        self.missing: list[int] = []

    def __enter__(self) -> _ParquetFile:
        self._check_magic()
        try:
            # A text that a file repeats stays one text in memory: as a plain column it may fill all of it.
            with self._parquet.ParquetFile(self._path, pre_buffer=False) as file:
                self.schema = file.schema_arrow
            texts = [field.name for field in self.schema if self._is_text(field.type)]
            self._file = self._parquet.ParquetFile(self._path, read_dictionary=texts, pre_buffer=False)
            self.names = tuple(self.schema.names)
            self.columns = self._columns()
            groups = (
                self.rows_of_groups() if self._span is None else self.rows_of_groups()[slice(*self._span)]
            )
            self.n_rows = int(self._file.metadata.num_rows) if self._span is None else sum(groups)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if self._file is not None:
            self._file.close()
        self._arrow.default_memory_pool().release_unused()  # a hundred megabytes that it would keep for later
        if isinstance(error, DataFileError):
            return
        if isinstance(error, (self._arrow.ArrowException, OSError, ValueError, OverflowError)):
            # Names and texts of the file may be part of the message, and of any length.
            reason = " ".join(str(error).split())[:200]
            self._refuse(
                f"the file is damaged, or not a Parquet file that pyarrow can read ({reason}).", error
            )

    def _refuse(self, cause: str, error: BaseException | None = None) -> NoReturn:
        raise DataFileError(self._path, None, None, cause) from error

    def _check_magic(self) -> None:
        refuse_pipe(self._path)
        with open(self._path, "rb") as stream:
            start = stream.read(len(_MAGIC))
            stream.seek(-min(len(start), len(_MAGIC)), os.SEEK_END)
            end = stream.read()
        if not start:
            self._refuse("the file is empty; expected a Parquet file.")
        if start != _MAGIC or end != _MAGIC:
            found = end if start == _MAGIC else start
            where = "ends" if start == _MAGIC else "starts"
            self._refuse(f"the file {where} with {found!r}; a Parquet file starts and ends with {_MAGIC!r}.")

    def _columns(self) -> Columns:
        if not self.names:
            self._refuse("the table has 0 columns; expected something in it.")
        if len(self.names) > MAX_COLUMNS:
            self._refuse(f"the table has {len(self.names)} columns; expected at most {MAX_COLUMNS}.")
        name, times = Counter(self.names).most_common(1)[0]
        if times > 1:
            self._refuse(f"{times} columns are called {excerpt(name)}; expected different names.")
        return Columns.of(self.names, len(self.names), self._reading, self._path)

    def rows_of_groups(self) -> list[int]:
        """Return how many rows every row group has, as the file says."""
        metadata = self._file.metadata
        return [int(metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups)]

    def _groups(self) -> list[int]:
        return list(range(self._file.metadata.num_row_groups) if self._span is None else range(*self._span))

    def batches(self, n_rows: int) -> Iterator[Any]:
        """Yield the features and the target in batches."""
        columns = self.columns
        read = [*columns.features, *([] if columns.target is None else [columns.target])]
        names = [self.names[place] for place in sorted(read)]
        for batch in self._file.iter_batches(
            batch_size=n_rows, row_groups=self._groups(), columns=names, use_threads=False
        ):
            batch.validate(full=True)  # a damaged page may refer to texts that are not there
            yield batch

    def check_size(self) -> None:
        """Refuse a table that is empty, or larger than allowed by what the file says itself."""
        n_columns, metadata = self.columns.count, self._file.metadata
        if self.n_rows < 1:
            cause = f"the table has {self.n_rows} rows and {n_columns} columns; expected something in it."
            self._refuse(cause)
        said = sum(int(metadata.row_group(group).total_byte_size) for group in self._groups())
        _check_size(self._path, self.n_rows, n_columns, said, self._reading)

    def check_count(self, n_rows: int) -> None:
        """Refuse a file that holds less or more rows than it says."""
        if n_rows != self.n_rows:
            self._refuse(f"the file holds {n_rows} rows; expected {self.n_rows}, as it says itself.")

    def check_numbers(self) -> None:
        """Refuse features that are no numbers by their type, and the index of a pandas DataFrame."""
        types = self._arrow.types
        try:
            index = (self.schema.pandas_metadata or {}).get("index_columns", [])
        except (ValueError, AttributeError):  # no JSON, or not what pandas writes
            index = []
        for place in self.columns.features:
            kind = self.schema.types[place]
            if self.names[place] in index:
                cause = "the column is the index of a pandas DataFrame; write the file with index=False."
            elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                cause = f"the column is of type {str(kind)[:200]}; expected {_KINDS}."
            else:
                continue
            raise NotANumberError(self._path, None, self.columns.title(place), cause)

    def _is_text(self, kind: Any) -> bool:
        types = self._arrow.types
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind))

    def target_of(self, batch: Any, start: int) -> NDArray[Any] | None:
        """Return the entries of the target in a batch; missing ones are remembered for ``target``."""
        if self.columns.target is None:
            return None
        column, title = batch.column(self.names[self.columns.target]), self.columns.title(self.columns.target)
        if isinstance(column, self._arrow.ChunkedArray):
            column = column.combine_chunks()
        missing = np.asarray(column.is_null(nan_is_null=True))
        if self._is_text(column.type):
            encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
            words = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
            values: NDArray[Any] = words[np.asarray(encoded.indices.fill_null(len(words) - 1))]
            texts = [place for place, word in enumerate(words) if word is None or word in MISSING]
            missing = missing | np.isin(np.asarray(encoded.indices.fill_null(len(words) - 1)), texts)
        else:
            values = np.asarray(column.to_numpy(zero_copy_only=False))
            if values.dtype.kind not in "iufbO" or not self._is_number(column.type):
                cause = f"the column is of type {str(column.type)[:200]}; expected {_KINDS} or text."
                raise DataFileError(self._path, None, title, cause)
            values = values.astype(np.float64)
            if np.isinf(values).any():
                _check_finite(
                    np.where(missing, 0.0, values)[:, None], [self.columns.target], start, self.columns
                )
        self.missing += (start + 1 + np.flatnonzero(missing)).tolist()
        return values

    def _is_number(self, kind: Any) -> bool:
        types = self._arrow.types
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def target(self, parts: Iterable[NDArray[Any] | None]) -> NDArray[Any] | None:
        """Return the target; refuse one with missing values."""
        if self.missing:
            title = self.columns.title(self.columns.target or 0)
            raise MissingClassError(self._path, title, self.missing, len(self.missing), self.n_rows, "row")
        found = [part for part in parts if part is not None]
        return np.concatenate(found) if found else None


FORMATS: dict[str, Format] = {
    found.name: found for found in (LibsvmFormat(), CsvFormat(), TsvFormat(), ParquetFormat(), NpyFormat())
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


def line_in_file(part: FilePart, reading: Reading, raw: RawTable, row: int) -> int | None:
    """Return the line in which a row of a part stands; None where files have no lines.

    What is before the part is read to count its lines: for messages, not for every row.
    """
    if raw.lines is None:
        return None
    line = int(raw.lines[row])
    if part.span is None:
        return line
    with TextSpan(part.path, *part.span, header=reading.header) as span:
        return line + span.lines_before()
