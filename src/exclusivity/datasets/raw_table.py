"""Tables of anything: the cells of CSV files as text, the columns of Parquet files as they are typed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.csv_fields import Columns, FieldError, Splitter, columns_of, decoded
from exclusivity.datasets.csv_file import MAX_COLUMNS, check_names, first_lines
from exclusivity.datasets.csv_rows import TargetColumn, row_fields
from exclusivity.datasets.errors import DataFileError, MissingClassError
from exclusivity.datasets.file_format import FilePart, Format, Reading, TextFormat
from exclusivity.datasets.libsvm_lines import LineBlocks, Readable, opened_lines, text_error, title_of
from exclusivity.datasets.parquet import import_pyarrow, missing_entries
from exclusivity.datasets.table import TableData
from exclusivity.datasets.text_span import TextSpan


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns as a file has them.

    Attributes
    ----------
    columns : list of ndarray
        The features: bytes of text (CSV), or what a typed column holds (a column of a pyarrow table).
    target : ndarray or None
        As in :class:`TableData`.
    names : tuple of str or None
        Names of the features.
    lines : ndarray of int or None
        The line of every row in what was read of a text file, counted from 1.
    """

    columns: list[Any]
    target: NDArray[Any] | None
    names: tuple[str, ...] | None
    lines: NDArray[np.int64] | None = None

    @property
    def labels(self) -> NDArray[Any] | None:
        """The target as classes; see :class:`TableData`."""
        return TableData(np.empty((0, 0)), self.target, None).labels


def read_raw_csv(source: str | Readable, reading: Reading, delimiter: str) -> RawTable:
    """The cells of a CSV file, by columns; only the target is looked at."""
    splitter = Splitter(delimiter.encode())
    row = f"fields with {delimiter!r} between them"
    with opened_lines(source, reading.max_bytes, text_error, row) as blocks:
        content = iter(blocks)
        first, lines = first_lines(content)
        if not lines:
            raise text_error(
                blocks.name, blocks.line, "the file ends without a single line; expected a table."
            )
        try:
            columns = _columns(lines[0].removesuffix(b"\r"), splitter, reading)
        except FieldError as fault:
            raise DataFileError(blocks.name, first, None, fault.cause) from None
        cells = _Cells(blocks, columns, splitter)
        cells.add(first + reading.header, lines[reading.header :])
        for start, more in content:
            cells.add(start, more)
        return cells.table()


def _columns(line: bytes, splitter: Splitter, reading: Reading) -> Columns:
    decoded(line)
    fields = splitter.fields(line, MAX_COLUMNS)
    names = tuple(field.decode("utf-8") for field in fields) if reading.header else None
    columns = columns_of(names, len(fields), reading.target, reading.ignore)
    check_names(columns)
    return columns


class _Cells:
    """Collects blocks of lines as arrays of bytes, one for each column and block."""

    def __init__(self, blocks: LineBlocks, columns: Columns, splitter: Splitter) -> None:
        self._blocks, self._columns, self._splitter = blocks, columns, splitter
        self._target = None if columns.target is None else TargetColumn()
        self._places = [place for place in range(columns.count) if place not in columns.set_apart]
        self._parts: list[list[NDArray[np.bytes_]]] = [[] for _ in self._places]
        self._lines = array("q")

    def add(self, first: int, lines: Sequence[bytes]) -> None:
        rows = []
        for position, line in enumerate(lines, first):
            if line.strip(b" \r"):
                rows.append(self._row(position, line.removesuffix(b"\r")))
                self._lines.append(position)
        if rows:
            by_column = list(zip(*rows, strict=True))
            for parts, place in zip(self._parts, self._places, strict=True):
                parts.append(np.array(by_column[place], dtype=np.bytes_))

    def _row(self, position: int, line: bytes) -> list[bytes]:
        place = None
        try:
            fields = row_fields(line, self._columns.count, self._splitter)
            if self._target is not None and self._columns.target is not None:
                place = self._columns.target
                self._target.add(fields[place], position)
        except FieldError as fault:
            place = place if fault.field is None else fault.field
            title = None if place is None else self._columns.title(place)
            raise DataFileError(self._blocks.name, position, title, fault.cause) from None
        return fields

    def table(self) -> RawTable:
        if not self._parts or not self._parts[0]:
            raise text_error(
                self._blocks.name, self._blocks.line, "the file ends after the header; expected rows."
            )
        target = None
        if self._target is not None and self._columns.target is not None:
            self._target.check(self._blocks.name, self._columns.title(self._columns.target))
            target = self._target.values()
        columns = [np.concatenate(parts) for parts in self._parts]
        return RawTable(columns, target, self._columns.feature_names, np.asarray(self._lines))


def read_raw_parquet(path: str, reading: Reading, row_groups: Sequence[int] | None = None) -> RawTable:
    """The columns of a Parquet file, or of some of its row groups, as pyarrow has them."""
    arrow, parquet = import_pyarrow()
    try:
        if row_groups is None:
            table = parquet.read_table(path, use_threads=False)
        else:
            with parquet.ParquetFile(path, pre_buffer=False) as file:
                table = file.read_row_groups(list(row_groups), use_threads=False)
        columns = columns_of(tuple(table.column_names), table.num_columns, reading.target, reading.ignore)
    except FieldError as fault:
        raise DataFileError(title_of(path), None, None, fault.cause) from None
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataFileError(
            title_of(path), None, None, f"pyarrow cannot read the file ({reason})."
        ) from error
    target = None if columns.target is None else _labels(table.column(columns.target), columns, path)
    places = [place for place in range(columns.count) if place not in columns.set_apart]
    return RawTable([table.column(place) for place in places], target, columns.feature_names)


def read_raw_part(part: FilePart, reading: Reading, file_format: Format) -> RawTable | None:
    """The columns of one part of a CSV or Parquet file; None where it has no rows."""
    if not isinstance(file_format, TextFormat):
        groups = None if part.span is None else range(*part.span)
        return read_raw_parquet(part.path, reading, groups)
    delimiter = reading.delimiter or file_format.delimiter
    if part.span is None:
        return read_raw_csv(part.path, reading, delimiter)
    with TextSpan(part.path, *part.span, header=reading.header) as span:
        if span.is_blank():
            return None
        try:
            return read_raw_csv(span, reading, delimiter)
        except DataFileError as error:
            if error.line is None:
                raise
            raise error.after(span.lines_before()) from None


def line_in_file(part: FilePart, reading: Reading, raw: RawTable, row: int) -> int | None:
    """The line in which a row of a part stands; None where files have no lines.

    What is before the part is read to count its lines: for messages, not for every row.
    """
    if raw.lines is None:
        return None
    line = int(raw.lines[row])
    if part.span is None:
        return line
    with TextSpan(part.path, *part.span, header=reading.header) as span:
        return line + span.lines_before()


def _labels(column: Any, columns: Columns, path: str) -> NDArray[Any]:
    title = columns.title(columns.target or 0)
    missing = missing_entries(column)
    if missing.any():
        rows = 1 + np.flatnonzero(missing)
        raise MissingClassError(title_of(path), title, rows.tolist(), len(rows), len(missing), "row")
    values = np.asarray(column.to_numpy())
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
        return values
    cause = f"the column is of type {column.type}; expected numbers or text."
    raise DataFileError(title_of(path), None, title, cause)
