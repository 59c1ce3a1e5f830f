"""CSV files, in pieces of whole lines: each column is parsed by pyarrow and read by its rule."""

from __future__ import annotations

import csv
import math
import os
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import chain, islice
from typing import Any

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
    read_column,
)
from exclusivity.io._reading import (
    DELIMITERS,
    MAX_COLUMNS,
    Columns,
    DataFileError,
    Reading,
    Table,
    excerpt,
    import_extra,
    listed,
    whole_numbers,
)
from exclusivity.io._text import Piece, TextFile, is_packed, opened_text

_SAMPLE_PIECES = 2
_SAMPLES, _SAMPLE_BYTES = 20, 1 << 16  # from all over a large file
_QUOTES = (
    "found a quote that is not closed in its line, or one inside the text of a field; expected a field "
    'without quotes, or "..." around all of it with the quotes inside doubled.'
)


def csv_header(source: Any, reading: Reading, usual: str = ",") -> tuple[list[str] | int, str]:
    """Return the names of the columns of a CSV file, or their number, and what separates its fields."""
    with opened_text(source, None) as text:
        piece = next(iter(text), None)
        if piece is None:
            return [], usual
        fields, delimiter = _first_line(text, piece, reading, usual)
        return (fields if reading.header else len(fields)), delimiter


def _first_line(text: TextFile, piece: Piece, reading: Reading, usual: str) -> tuple[list[str], str]:
    """Return the fields of the first line and the delimiter: that of the caller, the usual or only other."""
    line = piece.text.partition(b"\n")[0].decode("utf-8")
    found = [sign for sign in DELIMITERS if sign in line]
    delimiter = reading.delimiter or (found[0] if usual not in found and len(found) == 1 else usual)
    if line.count(delimiter) >= MAX_COLUMNS:
        cause = f"the line has more than {MAX_COLUMNS} fields; expected a table."
        raise text.error(cause, int(piece.lines[0]))
    try:
        (fields,) = csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        raise text.error(_QUOTES, int(piece.lines[0])) from None
    return [name.strip(" \t") for name in fields], delimiter


def _columns(text: TextFile, fields: list[str], line: int, reading: Reading) -> Columns:
    """Return the columns that the first line tells."""
    if not reading.header:
        return Columns.of(range(len(fields)), reading, text.name, line)
    if all(map(is_number, fields)):
        cause = f"the first line, {listed(fields)}, holds numbers; expected the names of the columns."
        raise DataFileError(text.name, line, None, cause, ("header",))
    columns = Columns.of(fields, reading, text.name, line)
    if nameless := [place for place in columns.used if not fields[place]]:
        cause = "the column has no name; it may hold row numbers, as pandas writes them."
        raise DataFileError(text.name, line, nameless[0], cause, ("ignore",))
    columns.refuse_equal(line)
    return columns


def read_csv(source: Any, reading: Reading, usual: str = ",") -> Table:
    """Read a CSV file."""
    with opened_text(source, reading.max_bytes, reading.report) as text:
        pieces = iter(text)
        start = list(islice(pieces, _SAMPLE_PIECES))
        if not start:
            raise text.error("the file ends without a single line; expected a table.")
        rows = _Rows(text, start[0], reading, usual)
        if reading.header:
            start[0] = Piece(start[0].text.partition(b"\n")[2], start[0].lines[1:])
        start = [piece for piece in start if piece.text]
        if start and reading.rules is None:
            rows.detect([rows.parse(piece) for piece in start] + rows.samples(source), chain(start, pieces))
        for piece in chain(start, pieces):
            rows.add(piece)
        if not rows.lines:
            raise text.error("the file ends after the header; expected rows.")
        return rows.table()


class _Rows:
    """The rows of a CSV file, piece by piece, as the rules of its columns read them."""

    def __init__(self, text: TextFile, first: Piece, reading: Reading, usual: str) -> None:
        self._text, self._reading = text, reading
        fields, self._delimiter = _first_line(text, first, reading, usual)
        self._columns = _columns(text, fields, int(first.lines[0]), reading)
        self._rules = list((reading.rules or {}).values())
        self._remarks = [""] * len(self._rules)
        self._stated = reading.decimal if reading.rules is not None else ""
        self._n_lost = Counter[int]()
        self._numbers = array("d")
        self._chunks: dict[int, list[Any]] = defaultdict(list)
        self.lines: list[Any] = []

    def parse(self, piece: Piece) -> dict[int, Any]:
        """Return the texts of some rows by column, without blanks around them."""
        arrow, reader = import_extra("pyarrow"), import_extra("pyarrow.csv")
        content = _quoted(self._text, piece, self._delimiter) if b'"' in piece.text else piece.text
        names = list(map(str, range(len(self._columns.all))))
        used = [names[place] for place in self._columns.used]
        ragged: list[Any] = []

        def refuse(row: Any) -> str:
            ragged.append(row)
            return "error"

        try:
            table = reader.read_csv(
                arrow.BufferReader(content),
                reader.ReadOptions(use_threads=False, column_names=names, block_size=len(content) + 1),
                reader.ParseOptions(delimiter=self._delimiter, invalid_row_handler=refuse),
                reader.ConvertOptions(
                    check_utf8=False,  # all of the text has been checked
                    include_columns=used,
                    column_types=dict.fromkeys(used, arrow.string()),
                    strings_can_be_null=False,
                ),
            )
        except arrow.ArrowInvalid as error:
            line, cause = piece.lines[0], f"pyarrow cannot read the text ({error!s:.200})."
            if ragged:
                line, found = piece.lines[ragged[0].number - 1], ragged[0].actual_columns
                cause = f"the row has {found} fields; expected {len(names)}, as in the first line."
                if found > len(names) and self._delimiter == ",":
                    cause += " A comma inside a number or a text needs quotes around the field."
            raise self._text.error(cause, int(line)) from None
        if table.num_rows != len(piece.lines):
            raise DataFileError(self._text.name, None, None, _QUOTES)
        trim = import_extra("pyarrow.compute").ascii_trim
        return {int(name): trim(table.column(name).combine_chunks(), " \t") for name in used}

    def samples(self, source: Any) -> list[Any]:
        """Return rows from all over a large file; what is wrong with them is reported when they are read."""
        size = os.path.getsize(source) if isinstance(source, str) and os.path.isfile(source) else 0
        found: list[Any] = []
        if size < _SAMPLES * _SAMPLE_BYTES or is_packed(source):
            return found
        for start in range(size // _SAMPLES, size, size // _SAMPLES):
            with open(source, "rb") as stream, suppress(DataFileError):
                stream.seek(start)
                stream.readline(_SAMPLE_BYTES)  # the rest of a line
                lines = BytesIO(stream.read(_SAMPLE_BYTES).rpartition(b"\n")[0])
                found += [self.parse(piece) for piece in TextFile(lines, source, None)]
        return found

    def detect(self, samples: Sequence[Any], pieces: Iterable[Piece]) -> None:
        """Find the rules of the columns in some rows; an error names the first line of its text."""
        columns, reading = self._columns, self._reading
        found = [TextColumn.of([cells[place] for cells in samples]) for place in columns.features]
        is_clean = not reading.kinds and reading.decimal != ","
        if is_clean and all(_plain_numbers(column.texts, may_lack=False) is not None for column in found):
            self._rules, self._remarks = [ColumnRule("number", ".")] * len(found), [""] * len(found)
            return
        texts, said = [column.counts() for column in found], list(map(reading.kinds.get, columns.titles))
        open_texts = [list(each) for each, kind in zip(texts, said, strict=True) if kind != "category"]
        decimal = reading.decimal or decimal_of_file(open_texts, self._delimiter)
        for place, each, kind in zip(columns.features, texts, said, strict=True):
            try:
                rule, remark = detect_rule(each, kind, decimal)
            except ColumnError as error:
                rows = ((self.parse(piece)[place].index(error.text).as_py(), piece.lines) for piece in pieces)
                line = next((int(lines[row]) for row, lines in rows if row >= 0), None)
                title = columns.all[place]
                raise DataFileError(self._text.name, line, title, error.cause, error.ways) from None
            self._rules.append(rule)
            self._remarks.append(remark)

    def add(self, piece: Piece) -> None:
        """Read some rows: numbers at once, which take less memory than texts, others when all are there."""
        self.lines.append(piece.lines)
        texts = self.parse(piece)
        rules = zip(self._columns.features, self._rules, strict=True)
        numbers = [(place, rule) for place, rule in rules if rule.kind == "number"]
        block = np.empty((len(piece.lines), len(numbers)))
        for j, (place, rule) in enumerate(numbers):
            block[:, j] = self._read(place, rule, [texts.pop(place)], [piece.lines])
        self._numbers.frombytes(block.tobytes())
        for place, column in texts.items():
            self._chunks[place].append(column.dictionary_encode())

    def _read(self, place: int, rule: ColumnRule, chunks: list[Any], lines: list[Any]) -> Any:
        """Return a column, or some rows of it; an error names the line."""
        if rule.is_plain and self._stated != ",":
            values = _plain_numbers(chunks[0], may_lack=not rule.required)
            if values is not None:
                return values
        column = TextColumn.of(chunks)
        try:
            values, n_lost = read_column(column, rule, self._stated)
        except ColumnError as error:
            line, ways = _line(lines, column.row_of(error.text)), error.ways
            if not ways and self._reading.rules is None:
                ways = ("numeric", "categorical", "ignore")[rule.kind == "date" :]
            raise DataFileError(self._text.name, line, self._columns.all[place], error.cause, ways) from None
        self._n_lost[place] += n_lost
        return values

    def table(self) -> Table:
        """Return all rows."""
        columns = self._columns
        target = None if columns.target is None else self._labels(TextColumn.of(self._chunks[columns.target]))
        X: Any = np.frombuffer(self._numbers).reshape(sum(map(len, self.lines)), -1)
        if not all(rule.kind == "number" for rule in self._rules):
            numbers = iter(X.T)
            X = [
                next(numbers)
                if rule.kind == "number"
                else self._read(place, rule, self._chunks.pop(place), self.lines)
                for place, rule in zip(columns.features, self._rules, strict=True)
            ]
        n_lost = [self._n_lost[place] for place in columns.features]
        return columns.table(X, target, rules=self._rules, remarks=self._remarks, n_lost=n_lost)

    def _labels(self, column: TextColumn) -> NDArray[Any]:
        """Return the target: all numbers, or all text.

        What is only almost a number (infinity, 1_000, the digits of other scripts) is neither.
        """
        texts, title = column.texts.to_pylist(), self._columns.all[self._columns.target or 0]
        is_missing = np.array([text in MISSING for text in texts])[column.codes]
        self._columns.check_classes(is_missing, lambda row: _line(self.lines, row))
        values = list(map(_number_or_text, texts))
        is_text = isinstance(values[0], str)
        for text, value in zip(texts, values, strict=True):
            cause = ""
            if isinstance(value, float) and not (is_number(text) and math.isfinite(value)):
                cause = f"found {excerpt(text)}; expected a finite decimal number, or a class in words."
            elif isinstance(value, str) != is_text:
                cause = (
                    f"found {excerpt(text)}, but the rows before have {'text' if is_text else 'numbers'}; "
                )
                cause += "expected only numbers or only text in the target."
            if cause:
                raise DataFileError(self._text.name, _line(self.lines, column.row_of(text)), title, cause)
        return whole_numbers(np.array(values, dtype=object if is_text else np.float64)[column.codes])


def _number_or_text(text: str) -> float | str:
    with suppress(ValueError):
        return float(text)
    return text


def _line(lines: Sequence[Any], row: int) -> int:
    """Return the line of a row, by the lines of all rows piece by piece."""
    return int(np.concatenate(lines)[row])


def _quoted(text: TextFile, piece: Piece, delimiter: str) -> bytes:
    """Return a piece with quotes as pyarrow reads them; refuse those that do not enclose a field."""
    blank, end = (b" " if delimiter == "\t" else b" \t"), re.escape(delimiter.encode())
    field = rb'"(?:[^"]++|"")*+"'
    quoted = rb'(?:[%b]*+%b[%b]*+|[^"%b]*+)' % (blank, field, blank, end)
    is_row = re.compile(rb"%b(?:%b%b)*+" % (quoted, end, quoted))
    for line, number in zip(piece.text.splitlines(), piece.lines, strict=True):
        if b'"' in line and is_row.fullmatch(line) is None:
            raise text.error(_QUOTES, int(number))
    if re.search(rb'[%b]"|"[%b]' % (blank, blank), piece.text) is None:
        return piece.text
    # Blanks around quotes do not count, but pyarrow knows quotes beside a delimiter only.
    around = re.compile(rb"(?:(?<=%b)|^)[%b]*+(%b)[%b]*+(?=%b|$)" % (end, blank, field, blank, end), re.M)
    return around.sub(rb"\1", piece.text)


def _plain_numbers(texts: Any, *, may_lack: bool = True) -> NDArray[np.float64] | None:
    """Return texts as numbers, NaN where missing; None where one is not finite, or no number."""
    arrow, compute = import_extra("pyarrow"), import_extra("pyarrow.compute")
    try:
        numbers = texts.cast(arrow.float64())
    except arrow.ArrowInvalid:
        if not may_lack:
            return None
        known = compute.if_else(compute.is_in(texts, arrow.array(MISSING)), None, texts)
        return _plain_numbers(known, may_lack=False)
    values = as_array(numbers.fill_null(math.nan))
    return values if np.isfinite(values).sum() + numbers.null_count == len(values) else None
