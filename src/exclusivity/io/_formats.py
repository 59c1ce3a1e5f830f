"""Readers of data files: CSV and Parquet by pyarrow, LIBSVM by scikit-learn, and .npy by numpy.

There is one reader for each format. Training data and rows for a model go the same way: the rules of columns
(``ColumnRule``) are found in the file, or given. Large files are cut into parts that can be read alone.
"""

from __future__ import annotations

import csv
import math
import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._cells import (
    MISSING,
    ColumnError,
    ColumnRule,
    TextColumn,
    as_array,
    decimal_of_file,
    detect_rule,
    is_number,
    label,
    read_column,
)
from exclusivity.io._errors import DataFileError, NotANumberError, excerpt, refuse_pipe
from exclusivity.io._text import (
    DEFAULT_MAX_BYTES,
    Piece,
    TextFile,
    TextSpan,
    is_packed,
    opened_text,
    plain_suffix,
    text_spans,
    title_of,
)

DELIMITERS = (",", "\t", ";", "|")

MAX_COLUMNS = 1 << 16
"""65,536 columns, for each of which pyarrow takes some memory. Wider rows are better sparse (LIBSVM)."""

LIBSVM_ROW = "'label index:value ...'"
_SHOWN = 5
_SAMPLE_PIECES = 2
_SAMPLES, _SAMPLE_BYTES = 20, 1 << 16  # from all over a large file
_LISTED = 20
_MOST_INDEX = 2**31 - 1  # scikit-learn reads indices of 32 bits
_BATCH_VALUES = 1 << 22
_MAGIC = b"PAR1"
_KINDS = "integers, floating point numbers or booleans"
_QUOTES = (
    "found a quote that is not closed in its line, or one inside the text of a field; expected a field "
    'without quotes, or "..." around all of it with the quotes inside doubled.'
)

Span = tuple[int, int] | None
"""A part of a file in bytes, rows or row groups, as its format counts; None for all of it."""


@dataclass(frozen=True)
class Reading:
    """What to take from a file, and how; most as in ``read_table``.

    ``kinds`` says what columns hold ("number" or "category"), by name, or by number from 0 without names.
    ``mixed`` asks for columns one by one though all of them may be plain numbers; with rules it says that
    these were found in training rows, and options could change them. ``tell`` is called with the number of
    bytes of text that have been read.
    """

    target: str | int | None = None
    ignore: tuple[str | int, ...] = ()
    n_features: int | None = None
    delimiter: str | None = None
    header: bool = True
    max_bytes: int | None = DEFAULT_MAX_BYTES
    decimal: str = ""
    kinds: Mapping[str | int, str] = field(default_factory=dict)
    rules: Mapping[str | int, ColumnRule] | None = None
    mixed: bool = False
    tell: Callable[[int], None] | None = None

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

    @property
    def wants_columns(self) -> bool:
        """Whether columns are wanted one by one: a model or a user says so."""
        if self.rules is not None:
            return not all(rule.required for rule in self.rules.values())
        return self.mixed or bool(self.kinds) or self.decimal == ","

    def unlimited(self, path: str) -> Reading:
        """Return the same for the owner of a file: no limit, unless it is compressed and so may be a trap."""
        return self if is_packed(path) else replace(self, max_bytes=None)


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a file.

    ``data`` is an array of plain numbers without missing values, a CSR matrix (LIBSVM), or a list of columns
    as numpy or pyarrow arrays. ``target`` holds the classes. The features have ``names`` where the file has
    them, and ``places`` in it. Of a CSV file there are the rules by which the features were read, what is
    peculiar about each (or ""), how many of its texts were taken for missing values, the columns that are
    neither features, target nor ignored, and the lines of the rows, piece by piece.
    """

    data: Any
    target: NDArray[Any] | None
    names: tuple[str, ...] | None = None
    places: tuple[int, ...] = ()
    rules: tuple[ColumnRule, ...] = ()
    remarks: tuple[str, ...] = ()
    n_lost: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()
    lines: tuple[Any, ...] = ()

    @property
    def titles(self) -> list[str | int]:
        """The features as users call them: by name, or by number in the file."""
        return list(self.names or self.places)


@dataclass(frozen=True)
class _Columns:
    """The columns of a file: their names, and which of them are the target and the features."""

    names: tuple[str, ...] | None
    target: int | None
    features: tuple[int, ...]
    file: str
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, names: tuple[str, ...] | None, count: int, reading: Reading, file: str, line: int | None = None
    ) -> _Columns:
        """Choose columns; an error names one that is not there."""
        titles: Sequence[str | int] = names or range(count)

        def refuse(cause: str) -> NoReturn:
            raise DataFileError(file, line, None, cause)

        def place_of(column: str | int, role: str) -> int:
            known = range(-count, count) if isinstance(column, int) else titles
            if column not in known:
                among = (
                    f"among {count} columns" if isinstance(column, int) else f"; there are {listed(titles)}"
                )
                shown = column if isinstance(column, int) else excerpt(column)
                refuse(f"there is no column {shown} {role} {among}.".replace(" ;", ";"))
            return column % count if isinstance(column, int) else titles.index(column)

        target = None if reading.target is None else place_of(reading.target, "for the target")
        ignored = {place_of(column, "to ignore") for column in reading.ignore}
        features = tuple(place for place in range(count) if place != target and place not in ignored)
        if target in ignored:
            refuse("the target is among the columns to ignore; expected another column.")
        if not features:
            refuse(f"none of the {count} columns is left for features; expected at least one.")
        rules = features if reading.rules is None else reading.rules
        if names is not None and all(isinstance(name, str) for name in rules):
            left_out = tuple(names[place] for place in features if names[place] not in rules)
            features = tuple(place_of(name, "that is a feature") for name in rules)
            return cls(names, target, features, file, left_out)
        if len(features) != len(rules):
            refuse(f"the file has {len(features)} features; expected {len(rules)}.")
        if unknown := [name for name in reading.kinds if name not in [titles[place] for place in features]]:
            raise ValueError(f"{unknown[0]!r} is named in numeric or categorical, and is no feature.")
        return cls(names, target, features, file)

    def title(self, place: int) -> str | int:
        """Return the name of a column, or its number from 0."""
        return place if self.names is None else self.names[place]

    @property
    def titles(self) -> list[str | int]:
        """The features."""
        return [self.title(place) for place in self.features]

    @property
    def titles_of_target(self) -> list[str | int]:
        """The target, where there is one."""
        return [] if self.target is None else [self.title(self.target)]

    @property
    def used(self) -> list[int]:
        """Features and target."""
        return [*self.features, *([] if self.target is None else [self.target])]

    def content(self, data: Any, target: NDArray[Any] | None, **facts: Any) -> Content:
        """Return what was read of these columns."""
        names = None if self.names is None else tuple(self.names[place] for place in self.features)
        return Content(data, target, names, self.features, left_out=self.left_out, **facts)


def _missing_classes(
    file: str, column: str | int, places: Sequence[int], n_missing: int, n_rows: int, unit: str
) -> DataFileError:
    """Return the error about rows without a class: the first few of their lines or rows, and how many."""
    shown, several = [int(place) for place in places[:_SHOWN]], n_missing > 1
    cause = (
        f"{n_missing} of {n_rows} rows {'have' if several else 'has'} no class ({unit}{'s' * several} "
        f"{', '.join(map(str, shown))}{', ...' if n_missing > len(shown) else ''}); a cell that is empty "
        "or says NA, NaN, null, None or ? is a missing value. Leave such rows out, or give them a class."
    )
    return DataFileError(file, shown[0] if unit == "line" else None, column, cause)


def listed(names: Sequence[str | int]) -> str:
    """Return names of columns in a row, the first twenty of them."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(excerpt(str(name)) for name in names[:_LISTED]) + more


def _classes(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as integers, text and other numbers as they are."""
    if values.dtype.kind != "f" or not ((values == np.rint(values)) & (np.abs(values) < 2**53)).all():
        return values
    return np.asarray(values.astype(np.int64))


def import_pyarrow(module: str = "") -> Any:
    """Return pyarrow, or one of its modules; the error says how to get it."""
    try:
        return import_module(f"pyarrow{module}")
    except ImportError as error:
        raise ImportError(
            "reading CSV and Parquet files needs pyarrow; install it with: pip install 'exclusivity[cli]'"
        ) from error


def _delimiter_of(piece: Piece, reading: Reading, usual: str) -> str:
    """Return what the caller says, else the usual delimiter or the only other one in the first line."""
    line = piece.text.partition(b"\n")[0]
    found = [character for character in DELIMITERS if character.encode() in line]
    return reading.delimiter or (found[0] if usual not in found and len(found) == 1 else usual)


def csv_header(source: Any, reading: Reading, usual: str = ",") -> tuple[list[str] | int, str]:
    """Return the names of the columns of a CSV file, or their number, and what separates its fields."""
    with opened_text(source, None) as text:
        piece = next(iter(text), None)
        if piece is None:
            return [], usual
        delimiter = _delimiter_of(piece, reading, usual)
        fields = _fields(text, piece, delimiter)
        return (fields if reading.header else len(fields)), delimiter


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
    return [name.strip(" \t") for name in fields]


def _csv_columns(text: TextFile, piece: Piece, delimiter: str, reading: Reading) -> tuple[_Columns, int]:
    """Return the columns that the first line tells, and how many there are."""
    fields, line = _fields(text, piece, delimiter), int(piece.lines[0])
    if not reading.header:
        return _Columns.of(None, len(fields), reading, text.name, line), len(fields)
    if all(map(is_number, fields)):
        raise text.error(
            f"the first line, {listed(fields)}, holds numbers; expected the names of the columns "
            "(pass header=False where a file has none).",
            line,
        )
    columns, counts = _Columns.of(tuple(fields), len(fields), reading, text.name, line), Counter(fields)
    for place in columns.used:
        name = fields[place]
        if not name:
            raise text.error(
                f"column {place + 1} has no name; expected one (row numbers, as pandas writes them: leave "
                f"them out with ignore=[{place}], or write the file without them).",
                line,
            )
        if counts[name] > 1:
            first, second = [other + 1 for other, each in enumerate(fields) if each == name][:2]
            cause = f"columns {first} and {second} are both called {excerpt(name)}; expected different names."
            raise text.error(cause, line)
    return columns, len(fields)


def _count_fields(line: bytes, delimiter: bytes) -> int:
    """Count the fields of a line, in time and memory that quotes do not change."""
    count, is_open = 1, False
    for start in range(0, len(line), 1 << 16):
        letters = np.frombuffer(line[start : start + (1 << 16)], dtype=np.uint8)
        is_quoted = np.logical_xor.accumulate(letters == ord('"')) ^ is_open
        count += int(np.count_nonzero((letters == ord(delimiter)) & ~is_quoted))
        is_open = bool(is_quoted[-1])
    return count


def read_csv(source: Any, reading: Reading, usual: str = ",") -> Content | None:
    """Read a CSV file; None where a span of one has no rows."""
    with opened_text(source, reading.max_bytes, reading.tell) as text:
        pieces = iter(text)
        start = list(islice(pieces, _SAMPLE_PIECES))
        if not start and not isinstance(source, TextSpan):
            raise text.error("the file ends without a single line; expected a table.")
        if not start:
            return None
        rows = _CsvRows(text, start[0], reading, usual)
        if reading.header:
            start[0] = Piece(start[0].text.partition(b"\n")[2], start[0].lines[1:])
        start = [piece for piece in start if piece.text]
        if start and reading.rules is None:
            samples = [rows.parse(piece) for piece in start] + rows.samples(source)
            try:
                rows.detect(samples)
            except ColumnError as error:
                raise rows.located(error, chain(start, pieces)) from None
        for piece in chain(start, pieces):
            rows.add(piece)
        if not rows.lines and not isinstance(source, TextSpan):
            raise text.error("the file ends after the header; expected rows.")
        return rows.content() if rows.lines else None


def detect_rules(
    columns: Mapping[str | int, TextColumn], reading: Reading, delimiter: str
) -> tuple[list[ColumnRule], list[str]]:
    """Find the rules of columns, and what is peculiar about them; an error names the column."""
    if not reading.wants_columns and all(map(_is_clean, columns.values())):
        return [ColumnRule("number", ".")] * len(columns), [""] * len(columns)
    said, found = reading.kinds, []
    counts = {name: column.counts() for name, column in columns.items()}
    texts = [list(counts[name]) for name in columns if said.get(name) != "category"]
    decimal = reading.decimal or decimal_of_file(texts, delimiter)
    for name in columns:
        try:
            found.append(detect_rule(counts[name], said.get(name), decimal))
        except ColumnError as error:
            error.column = name
            raise
    return [rule for rule, _ in found], [remark for _, remark in found]


class _CsvRows:
    """The rows of a CSV file, piece by piece, as the rules of its columns read them."""

    def __init__(self, text: TextFile, first: Piece, reading: Reading, usual: str) -> None:
        self._text, self._reading = text, reading
        self._delimiter = _delimiter_of(first, reading, usual)
        self._columns, self._count = _csv_columns(text, first, self._delimiter, reading)
        self._rules = list((reading.rules or {}).values())
        self._remarks = [""] * len(self._rules)
        self._stated = reading.decimal if reading.rules is not None else ""
        self._n_lost = Counter[int]()
        self._numbers, self._has_missing = array("d"), False
        self._chunks: dict[int, list[Any]] = {}
        self.lines: list[Any] = []

    def parse(self, piece: Piece, numbers: Collection[int] = ()) -> Any:
        """Return the fields of some rows by column: texts, and ``numbers``; None where these are none."""
        arrow, reader = import_pyarrow(), import_pyarrow(".csv")
        content = _quoted(self._text, piece, self._delimiter) if b'"' in piece.text else piece.text
        used = [str(place) for place in self._columns.used]
        types = dict.fromkeys(used, arrow.string()) | {str(p): arrow.float64() for p in numbers}
        try:
            table = reader.read_csv(
                arrow.BufferReader(content),
                reader.ReadOptions(
                    use_threads=False,
                    column_names=[str(place) for place in range(self._count)],
                    block_size=len(content) + 1,
                ),
                reader.ParseOptions(delimiter=self._delimiter),
                reader.ConvertOptions(
                    check_utf8=False,  # all of the text has been checked
                    include_columns=used,
                    column_types=types,
                    null_values=MISSING,
                    strings_can_be_null=False,
                ),
            )
        except arrow.ArrowInvalid as error:
            if len(numbers):
                return None
            raise self._ragged(piece, error) from None
        if table.num_rows != len(piece.lines):
            raise DataFileError(self._text.name, None, None, _QUOTES)
        found = {place: table.column(str(place)).combine_chunks() for place in self._columns.used}
        trim = import_pyarrow(".compute").ascii_trim
        return {place: cells if place in numbers else trim(cells, " \t") for place, cells in found.items()}

    def _ragged(self, piece: Piece, error: Exception) -> DataFileError:
        """Return the error about the first row of another length."""
        sign = self._delimiter.encode()
        for line, number in zip(piece.text.splitlines(), piece.lines, strict=True):
            n_fields = _count_fields(line, sign)
            if n_fields != self._count:
                more = n_fields > self._count
                found = f"more than {self._count}" if more else n_fields
                cause = f"the row has {found} fields; expected {self._count}, as in the first line."
                if more and sign == b",":
                    cause += " A comma inside a number or a text needs quotes around the field."
                return self._text.error(cause, int(number))
        return self._text.error(f"pyarrow cannot read the text ({error!s:.200}).", int(piece.lines[0]))

    def samples(self, source: Any) -> list[Any]:
        """Return rows from all over a large file; what is wrong with them is told when they are read."""
        size = os.path.getsize(source) if isinstance(source, str) and os.path.isfile(source) else 0
        found: list[Any] = []
        if size < _SAMPLES * _SAMPLE_BYTES or is_packed(source):
            return found
        for start in range(size // _SAMPLES, size, size // _SAMPLES):
            with open(source, "rb") as stream, suppress(DataFileError):
                span = TextSpan(stream, start, start + _SAMPLE_BYTES, header=False)
                found += [self.parse(piece) for piece in TextFile(span, source, None)]
        return found

    def detect(self, samples: Sequence[Any]) -> None:
        """Find the rules of the columns in some rows."""
        texts = {
            self._columns.title(place): TextColumn.of([cells[place] for cells in samples])
            for place in self._columns.features
        }
        self._rules, self._remarks = detect_rules(texts, self._reading, self._delimiter)

    def located(self, error: ColumnError, pieces: Iterable[Piece]) -> DataFileError:
        """Return the error about a column with the first line that has its text."""
        place = self._columns.features[self._columns.titles.index(error.column)]
        for piece in pieces:
            row = self.parse(piece)[place].index(error.text).as_py()
            if row >= 0:
                line = int(piece.lines[row])
                return DataFileError(self._text.name, line, error.column, error.cause, error.ways)
        return DataFileError(self._text.name, None, error.column, error.cause, error.ways)

    def add(self, piece: Piece) -> None:
        """Read some rows."""
        self.lines.append(piece.lines)
        rules = dict(zip(self._columns.features, self._rules, strict=True))
        numbers = [place for place, rule in rules.items() if rule.kind == "number"]
        plain = {place for place in numbers if rules[place].is_plain and self._stated != ","}
        fields = self.parse(piece, plain)
        is_parsed = fields is not None
        if not is_parsed:  # a cell that is no plain number, or a row of another length
            fields = self.parse(piece)
        block = np.empty((len(piece.lines), len(numbers)))
        for j, place in enumerate(numbers):
            values = _plain_numbers(fields[place]) if place in plain else None
            if values is None or (rules[place].required and np.isnan(values).any()):
                if is_parsed and place in plain:
                    fields, is_parsed = self.parse(piece), False
                column = TextColumn.of([fields[place]])
                values = self._read(place, rules[place], column, [piece.lines])
            block[:, j] = values
        self._numbers.frombytes(block.tobytes())
        self._has_missing = self._has_missing or bool(np.isnan(block).any())
        for place in self._columns.used:
            if place not in rules or rules[place].kind != "number":
                self._chunks.setdefault(place, []).append(fields[place].dictionary_encode())

    def _read(self, place: int, rule: ColumnRule, column: TextColumn, lines: list[Any]) -> Any:
        """Return a column, or some rows of it; an error names the line."""
        try:
            values, n_lost = read_column(column, rule, self._stated)
        except ColumnError as error:
            line, ways = line_of(lines, column.row_of(error.text)), error.ways
            if not ways and (self._reading.rules is None or self._reading.mixed):
                ways = ("numeric", "categorical", "ignore")[rule.kind == "date" :]
            kind = NotANumberError if rule.required else DataFileError
            raise kind(self._text.name, line, self._columns.title(place), error.cause, ways) from None
        self._n_lost[place] += n_lost
        return values

    def content(self) -> Content:
        """Return the columns."""
        columns = self._columns
        target = None if columns.target is None else self._labels(TextColumn.of(self._chunks[columns.target]))
        X = np.frombuffer(self._numbers).reshape(sum(map(len, self.lines)), -1)
        is_plain = all(rule.kind == "number" and rule.notation in ("", ".") for rule in self._rules)
        if is_plain and not self._has_missing and not self._reading.wants_columns:
            found: Any = X
        else:
            numbers = iter(X.T)
            found = [
                next(numbers)
                if rule.kind == "number"
                else self._read(place, rule, TextColumn.of(self._chunks.pop(place)), self.lines)
                for place, rule in zip(columns.features, self._rules, strict=True)
            ]
        return columns.content(
            found,
            target,
            rules=tuple(self._rules),
            remarks=tuple(self._remarks),
            n_lost=tuple(self._n_lost[place] for place in columns.features),
            lines=tuple(self.lines),
        )

    def _labels(self, column: TextColumn) -> NDArray[Any]:
        """Return the target: all numbers, or all text."""
        texts, title = column.texts.to_pylist(), self._columns.title(self._columns.target or 0)
        is_missing = np.array([text in MISSING for text in texts])[column.codes]
        if is_missing.any():
            places = [line_of(self.lines, row) for row in np.flatnonzero(is_missing)[:_SHOWN].tolist()]
            count = int(is_missing.sum())
            raise _missing_classes(self._text.name, title, places, count, len(is_missing), "line")
        values: list[float | str] = []
        for text in texts:
            try:
                values.append(label(text))
                cause = ""
            except ValueError as error:
                cause = str(error)
            if not cause and type(values[-1]) is not type(values[0]):
                before = "text" if isinstance(values[0], str) else "numbers"
                cause = f"found {excerpt(text)}, but the rows before have {before}; expected only numbers or "
                cause += "only text in the target."
            if cause:
                line = line_of(self.lines, column.row_of(text))
                raise DataFileError(self._text.name, line, title, cause)
        kind = object if isinstance(values[0], str) else np.float64
        return _classes(np.array(values, dtype=kind)[column.codes])


def line_of(lines: Iterable[Any], row: int) -> int:
    """Return the line of a row, by the lines of all rows piece by piece."""
    for some in lines:
        if row < len(some):
            return int(some[row])
        row -= len(some)
    raise IndexError(row)


def _quoted(text: TextFile, piece: Piece, delimiter: str) -> bytes:
    """Return a piece with quotes as pyarrow reads them; refuse those that do not enclose a field."""
    blank, end = (b" " if delimiter == "\t" else b" \t"), re.escape(delimiter.encode())
    quoted = rb'(?:[%b]*+"(?:[^"]++|"")*+"[%b]*+|[^"%b]*+)' % (blank, blank, end)
    is_row = re.compile(rb"%b(?:%b%b)*+" % (quoted, end, quoted))
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


def _plain_numbers(column: Any) -> NDArray[np.float64] | None:
    """Return an arrow array as numbers, NaN where missing; None where one is not finite, or no number."""
    arrow, compute = import_pyarrow(), import_pyarrow(".compute")
    if not arrow.types.is_floating(column.type):
        try:
            known = compute.if_else(compute.is_in(column, arrow.array(MISSING)), None, column)
            column = known.cast(arrow.float64())
        except arrow.ArrowInvalid:
            return None
    values = as_array(column.fill_null(math.nan) if column.null_count else column)
    return values if np.isfinite(values).sum() + column.null_count == len(values) else None


def _is_clean(column: TextColumn) -> bool:
    """Return whether all texts are plain numbers, and none is missing."""
    values = _plain_numbers(column.texts)
    return values is not None and not np.isnan(values).any()


def read_libsvm(source: Any, reading: Reading) -> Any:
    """Read a LIBSVM (svmlight) file: finite rows and labels; query numbers are left out."""
    from scipy import sparse  # noqa: PLC0415 -- `erm --help` knows formats, and should not wait for it
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415

    if reading.target is not None:
        raise ValueError(
            f"target={reading.target!r}, but {Path(title_of(source)).name} is read as a LIBSVM file, which "
            "has its target in front of every row; leave target out, or say what the file is with format."
        )
    with opened_text(source, reading.max_bytes, reading.tell) as text:
        lines = _LibsvmLines(text)
        try:
            X, y = load_svmlight_file(lines, zero_based=False)
        except (ValueError, OverflowError, IndexError) as error:
            if isinstance(error, DataFileError) or lines.numbers:
                raise (
                    error if isinstance(error, DataFileError) else lines.error(-1, lines.last, reading)
                ) from None
        if not lines.numbers and isinstance(source, TextSpan):
            return None
        if not lines.numbers:
            raise text.error(f"the file ends without a single row; expected {LIBSVM_ROW}.")
    width = reading.n_features or X.shape[1]
    fits = np.isfinite(X.data) & (X.indices < width)
    wrong = [int(np.searchsorted(X.indptr, np.argmin(fits), "right")) - 1] if not fits.all() else []
    wrong += [int(np.argmin(np.isfinite(y)))] if not np.isfinite(y).all() else []
    if wrong:
        row = min(wrong)
        entries = zip(X[[row]].indices.tolist(), X[[row]].data.tolist(), strict=True)
        odd = [f"{j + 1}:{value:g}" for j, value in entries if j >= width or not math.isfinite(value)]
        raise lines.error(row, (odd or [f"{y[row]:g}"])[0], reading)
    return Content(sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width)), _classes(y))


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

    def error(self, row: int, found: str, reading: Reading) -> DataFileError:
        """Return the error about what was found in a row."""
        most = _MOST_INDEX if reading.n_features is None else f"n_features={reading.n_features}"
        cause = (
            f"found {excerpt(found)}; expected {LIBSVM_ROW} with finite decimal numbers, and whole indices "
        )
        return self._text.error(f"{cause}that increase from 1 to at most {most}.", self.numbers[row])


def open_npy(path: str) -> Any:
    """Return the array as it lies on disk, after all that can be checked without reading it."""
    refuse_pipe(path)
    with open(path, "rb"):  # for the system's own words on what cannot be opened
        pass
    try:
        values: Any = np.lib.format.open_memmap(path, mode="r")  # refuses pickles
        shape, kind, end = values.shape, values.dtype, values.offset + values.nbytes
    except Exception as error:  # NumPy parses the header as Python, and anything may come of that
        reason = " ".join(str(error).split())[:200]
        cause = f"the file is damaged, or not a .npy file ({reason})."
        raise DataFileError(path, None, None, cause) from error
    cause, size = "", Path(path).stat().st_size
    if kind.kind not in "biuf":
        cause = f"the array is of type {str(kind)[:100]}; expected {_KINDS}."
    elif len(shape) != 2 or 0 in shape:
        cause = f"the array has the shape {str(shape)[:100]}; expected rows and columns."
    elif end != size:
        cause = f"the file has {size} bytes; expected {end}, as it says itself."
    if cause:
        raise DataFileError(path, None, None, cause)
    return values


def read_npy(source: str, reading: Reading, span: Span = None) -> Content:
    """Read a .npy file, or some of its rows."""
    values = open_npy(source)
    if isinstance(reading.target, str):
        raise ValueError(f"target={reading.target!r}, but a .npy file has no names; give a column's number.")
    start, stop = span or (0, len(values))
    columns = _Columns.of(None, values.shape[1], reading, source)
    _check_size(source, stop - start, values.shape[1], 0, reading)
    X, y = np.empty((stop - start, len(columns.features))), np.empty(stop - start)
    step = max(1, _BATCH_VALUES // values.shape[1])
    for first in range(start, stop, step):
        rows = np.asarray(values[first : min(first + step, stop)], dtype=np.float64)
        block = slice(first - start, first - start + len(rows))
        X[block] = rows[:, columns.features]
        _check_finite(X[block], columns, first)
        y[block] = 0.0 if columns.target is None else rows[:, columns.target]
    target = None if columns.target is None else _numeric_target(y, columns, start)
    return columns.content(X, target)


def _check_size(file: str, n_rows: int, n_columns: int, said: int, reading: Reading) -> None:
    size = max(8 * n_rows * n_columns, said)
    if reading.max_bytes is not None and size > reading.max_bytes:
        cause = (
            f"the table of {n_rows} rows and {n_columns} columns takes {size} bytes, more than "
            f"max_bytes={reading.max_bytes}; if you trust the file, pass a larger max_bytes, or None for no "
            "limit."
        )
        raise DataFileError(file, None, None, cause)


def _check_finite(values: NDArray[np.float64], columns: _Columns, first: int) -> None:
    """Refuse a missing or infinite number; rows are counted from 1."""
    if not (finite := np.isfinite(values)).all():
        row, j = (int(place) for place in np.unravel_index(int(np.argmin(finite)), finite.shape))
        shown = "missing" if np.isnan(values[row, j]) else values[row, j]
        cause = f"the value in row {first + row + 1} is {shown}; expected a finite number."
        raise NotANumberError(columns.file, None, columns.titles[j], cause)


def _numeric_target(y: NDArray[np.float64], columns: _Columns, start: int) -> NDArray[Any]:
    title = columns.title(columns.target or 0)
    if np.isnan(y).any():
        places = (start + 1 + np.flatnonzero(np.isnan(y))).tolist()
        raise _missing_classes(columns.file, title, places, len(places), len(y), "row")
    if np.isinf(y).any():
        row = start + int(np.argmax(np.isinf(y))) + 1
        cause = f"the value in row {row} is infinite; expected a finite number."
        raise DataFileError(columns.file, None, title, cause)
    return _classes(y)


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """Open a Parquet file; whatever pyarrow does not like about it is damage."""
    arrow, parquet = import_pyarrow(), import_pyarrow(".parquet")
    refuse_pipe(path)
    with open(path, "rb") as stream:
        start = stream.read(len(_MAGIC))
        stream.seek(-min(len(start), len(_MAGIC)), os.SEEK_END)
        end = stream.read()
    cause = "" if start else "the file is empty; expected a Parquet file."
    if start and (start != _MAGIC or end != _MAGIC):
        found, where = (end, "ends") if start == _MAGIC else (start, "starts")
        cause = f"the file {where} with {found!r}; a Parquet file starts and ends with {_MAGIC!r}."
    if cause:
        raise DataFileError(path, None, None, cause)
    try:
        # A text that a file repeats stays one text in memory: as a plain column it may fill all of it.
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            texts = [each.name for each in file.schema_arrow if _is_text(each.type)]
        with parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
            yield file
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, DataFileError):
            raise
        # Names and texts of the file may be part of the message, and of any length.
        reason = " ".join(str(error).split())[:200]
        cause = f"the file is damaged, or not a Parquet file that pyarrow can read ({reason})."
        raise DataFileError(path, None, None, cause) from error
    finally:
        arrow.default_memory_pool().release_unused()  # a hundred megabytes that it would keep for later


def _is_text(kind: Any) -> bool:
    types = import_pyarrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_numeric(kind: Any) -> bool:
    types = import_pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def read_parquet(source: str, reading: Reading, span: Span = None) -> Content:
    """Read a Parquet file, or some of its row groups: as numbers alone, or column by column."""
    with open_parquet(source) as file:
        columns, schema, metadata = _parquet_columns(file, source, reading), file.schema_arrow, file.metadata
        groups = list(range(*(span or (0, metadata.num_row_groups))))
        n_rows = sum(int(metadata.row_group(group).num_rows) for group in groups)
        said = sum(int(metadata.row_group(group).total_byte_size) for group in groups)
        if n_rows < 1:
            cause = f"the table has {n_rows} rows and {len(schema)} columns; expected something in it."
            raise DataFileError(source, None, None, cause)
        _check_size(source, n_rows, len(schema), said, reading)
        others = [title for title in columns.titles if not _is_numeric(schema.field(title).type)]
        as_table = reading.wants_columns or (reading.rules is None and bool(others))
        if others and not as_table:
            kind = schema.field(others[0]).type
            kind = getattr(kind, "value_type", kind) if _is_text(kind) else kind
            cause = f"the column is of type {str(kind)[:200]}; expected {_KINDS}."
            raise NotANumberError(source, None, others[0], cause)
        X = None if as_table else np.empty((n_rows, len(columns.features)))
        batches, start = [], 0
        try:
            for batch in _batches(file, groups, columns, max(1, min(1 << 16, _BATCH_VALUES // len(schema)))):
                if X is not None:
                    block = X[start : start + batch.num_rows]
                    for j, title in enumerate(columns.titles):
                        block[:, j] = _typed_numbers(batch.column(title))
                    _check_finite(block, columns, start)
                batches.append(batch.select(columns.titles_of_target) if X is not None else batch)
                start += batch.num_rows
        except NotANumberError:
            if reading.rules is not None:
                raise
            return read_parquet(source, replace(reading, mixed=True), span)
        if start != n_rows:
            cause = f"the file holds {start} rows; expected {n_rows}, as it says itself."
            raise DataFileError(source, None, None, cause)
        table = import_pyarrow().Table.from_batches(batches)
        target = (
            None
            if columns.target is None
            else _typed_labels(table.column(columns.titles_of_target[0]), columns)
        )
        return columns.content(X if X is not None else _finite_columns(table, columns), target)


def _batches(file: Any, groups: list[int], columns: _Columns, n_rows: int) -> Iterator[Any]:
    names = [*columns.titles, *columns.titles_of_target]
    for batch in file.iter_batches(batch_size=n_rows, row_groups=groups, columns=names, use_threads=False):
        batch.validate(full=True)  # a damaged page may refer to texts that are not there
        yield batch


def _parquet_columns(file: Any, path: str, reading: Reading) -> _Columns:
    """Return the columns; refuse too many, names that occur twice, and the index of a DataFrame."""
    schema, cause = file.schema_arrow, ""
    name, times = Counter(schema.names).most_common(1)[0] if schema.names else ("", 0)
    if not times:
        cause = "the table has 0 columns; expected something in it."
    elif len(schema.names) > MAX_COLUMNS:
        cause = f"the table has {len(schema.names)} columns; expected at most {MAX_COLUMNS}."
    elif times > 1:
        cause = f"{times} columns are called {excerpt(name)}; expected different names."
    if cause:
        raise DataFileError(path, None, None, cause)
    columns = _Columns.of(tuple(schema.names), len(schema.names), reading, path)
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # no JSON, or not what pandas writes
        index = []
    if indices := [title for title in columns.titles if title in index]:
        cause = "the column is the index of a pandas DataFrame; write the file with index=False."
        raise DataFileError(path, None, indices[0], cause, ("ignore",))
    return columns


def _finite_columns(table: Any, columns: _Columns) -> list[Any]:
    """Return columns as they are; an infinite number is an error."""
    for title in columns.titles:
        column = table.column(title)
        if import_pyarrow().types.is_floating(column.type) and (found := np.isinf(column.to_numpy())).any():
            cause = f"the value in row {int(np.argmax(found)) + 1} is infinite; expected a number."
            raise DataFileError(columns.file, None, title, cause)
    return [table.column(title) for title in columns.titles]


def _typed_labels(column: Any, columns: _Columns) -> NDArray[Any]:
    """Return the target; refuse one with missing values."""
    title, kind = columns.titles_of_target[0], column.type
    if _is_numeric(kind):
        return _numeric_target(np.concatenate(list(map(_typed_numbers, column.chunks))), columns, 0)
    if not _is_text(kind):
        cause = f"the column is of type {str(kind)[:200]}; expected {_KINDS} or text."
        raise DataFileError(columns.file, None, title, cause)
    chunks = (
        (column if hasattr(kind, "value_type") else column.dictionary_encode()).unify_dictionaries().chunks
    )
    words = np.array([*chunks[0].dictionary.to_pylist(), None], dtype=object)
    codes = np.concatenate([as_array(chunk.indices.fill_null(len(words) - 1)) for chunk in chunks])
    is_missing = np.array([word is None or word in MISSING for word in words])[codes]
    if is_missing.any():
        places = (1 + np.flatnonzero(is_missing)).tolist()
        raise _missing_classes(columns.file, title, places, len(places), len(codes), "row")
    return np.asarray(words[codes])


def _typed_numbers(column: Any) -> NDArray[np.float64]:
    """Return an arrow array of numbers or booleans as float64, NaN where missing."""
    arrow = import_pyarrow()
    if arrow.types.is_boolean(column.type):
        column = column.cast(arrow.uint8())
    values = as_array(column.fill_null(0) if column.null_count else column).astype(np.float64)
    if column.null_count:
        values[as_array(column.is_null())] = np.nan
    return values


@dataclass(frozen=True)
class FilePart:
    """A file, or a part of it that can be read alone: its bytes, and what its numbers take in memory."""

    path: str
    n_bytes: int
    span: Span = None
    memory: int = 0


@dataclass(frozen=True)
class Format:
    """A format of files: what users call it, how their names end, and how to read them."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[..., Any]
    is_text: bool = False
    delimiter: str = ""

    @property
    def has_columns(self) -> bool:
        """Whether a file may hold columns of text and dates."""
        return self.name in ("csv", "tsv", "parquet")

    @property
    def is_sparse(self) -> bool:
        """Whether labels stand in front of rows and features have numbers: CSR data and no columns."""
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

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        """Cut a file into parts that take about ``block_bytes`` of memory each.

        What cannot be cut is one part. So is a damaged file: whoever reads it says what is wrong with it.
        """
        refuse_pipe(path)  # parts are read in several passes
        size, width = Path(path).stat().st_size, 8 * (reading.n_features or 1)
        if self.is_text:  # numbers of few digits grow when they are read
            spans = [] if is_packed(path) else text_spans(path, max(1, block_bytes // 2))
            return (
                [FilePart(path, b - a, (a, b)) for a, b in spans]
                if len(spans) > 1
                else [FilePart(path, size)]
            )
        try:
            if self.name == "npy":
                n_rows, n_columns = open_npy(path).shape
                n_parts = max(1, math.ceil(8 * n_rows * n_columns / block_bytes))
                cuts = [n_rows * number // n_parts for number in range(n_parts + 1)]
                groups, width = [(a, b, b - a) for a, b in pairwise(cuts) if b > a], 8 * n_columns
            else:
                with open_parquet(path) as file:
                    metadata = file.metadata
                    counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
                groups, n_rows = _grouped(counts, max(1, block_bytes // width)), sum(counts)
        except DataFileError:
            return [FilePart(path, size)]
        return [FilePart(path, size * n // n_rows, (a, b), n * width) for a, b, n in groups]

    def read_part(self, part: FilePart, reading: Reading, *, counts_lines: bool = False) -> Any:
        """Read one part; None where it has no rows."""
        if not self.is_text:
            return self.read(part.path, reading, part.span)
        if part.span is None:
            return self.read(part.path, reading)
        header = bool(self.delimiter) and reading.header
        with open(part.path, "rb") as stream:
            span = TextSpan(stream, *part.span, header=header, counts_lines=counts_lines)
            try:
                return self.read(span, reading)
            except DataFileError as error:
                if counts_lines or error.line is None:
                    raise
        return self.read_part(part, reading, counts_lines=True)  # for the line in the file


def _grouped(counts: list[int], most: int) -> list[tuple[int, int, int]]:
    """Return neighbouring row groups of at most ``most`` rows: first, last and rows; no empty ones."""
    groups: list[tuple[int, int, int]] = []
    for place, count in enumerate(counts):
        if count and groups and groups[-1][1] == place and groups[-1][2] + count <= most:
            groups[-1] = (groups[-1][0], place + 1, groups[-1][2] + count)
        elif count:
            groups.append((place, place + 1, count))
    return groups


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
