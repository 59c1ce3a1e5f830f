"""Read CSV files: strictly, with bounded memory, and with errors that say where and why."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from exclusivity.datasets.csv_fields import (
    Columns,
    FieldError,
    Splitter,
    check_ignore,
    check_target,
    columns_of,
    decoded,
    excerpt,
    is_number,
    listed,
)
from exclusivity.datasets.csv_rows import CsvRows
from exclusivity.datasets.errors import DataFileError
from exclusivity.datasets.file_format import Reading, TextFormat
from exclusivity.datasets.libsvm import whole_from_one
from exclusivity.datasets.libsvm_lines import (
    DEFAULT_MAX_BYTES,
    LineBlocks,
    Readable,
    opened_lines,
    plain_suffix,
    text_error,
    title_of,
)
from exclusivity.datasets.table import TableData

DELIMITERS = (",", "\t", ";", "|")

MAX_COLUMNS = 1 << 20
"""A million columns. What has more is more likely no table at all."""


def read_csv(
    source: str | os.PathLike[str] | Readable,
    *,
    target: str | int | None = None,
    ignore: Sequence[str | int] = (),
    delimiter: str | None = None,
    header: bool = True,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> TableData:
    r"""Read a table of numbers from a CSV file.

    The first line names the columns. Every other line has as many fields, and every field of a feature is a
    finite decimal number; blanks around fields and blank lines do not count. Fields may stand in double
    quotes, but not contain the end of a line. The text is UTF-8. Everything else is an error, never a guess.

    Parameters
    ----------
    source : path or open binary file
        A path ending in ``.gz`` or ``.bz2`` is decompressed. An open file is read as it is, from where
        it stands to its end, and left open.
    target : str or int, optional
        The column that holds the target: its name, or its number from 0 (from the end where negative). It may
        hold text instead of numbers, in all rows alike. By default all columns are features.
    ignore : sequence of str or int, default ()
        Columns to leave out, named like the target. They may hold anything.
    delimiter : {",", "\t", ";", "|"}, optional
        By default a tab where the file's name ends in ``.tsv``, else a comma.
    header : bool, default True
        Whether the first line holds names.
    max_bytes : int or None, default 4 GiB
        The largest size of the decompressed text; None for no limit. A compressed file may also not unpack to
        more than 100 times its size (or 16 MiB), unless this is None. Reading takes about as much memory as
        the text, and at most about four times as much (columns of single digits).

    Returns
    -------
    TableData
        ``data``, ``target`` and ``feature_names``.

    Raises
    ------
    DataFileError
        Where the content is wrong, with file, line, column and cause. Lines longer than 64 MiB and more than
        2^20 columns are refused.
    OSError
        Where the file cannot be opened or read.

    Examples
    --------
    >>> import io
    >>> from exclusivity.datasets import read_csv
    >>> table = read_csv(io.BytesIO(b"age,mass,state\n61,80.5,ill\n18,60,well\n"), target="state")
    >>> table.data
    array([[61. , 80.5],
           [18. , 60. ]])
    >>> table.target, table.feature_names
    (array(['ill', 'well'], dtype=object), ('age', 'mass'))
    >>> read_csv(io.BytesIO(b"age,mass\n61,80.5\n18,n/a\n"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    exclusivity.datasets.errors.NotANumberError: <stream>, line 3, column 2 ('mass'): found 'n/a'; ...
    """
    reader = _Reader(target, ignore, delimiter, header)
    if max_bytes is not None:
        max_bytes = whole_from_one("max_bytes", max_bytes)
    return reader.read(source, max_bytes)


class CsvFormat(TextFormat):
    """Text with commas, or another delimiter, between its fields."""

    name, suffixes, delimiter = "csv", (".csv",), ","
    has_header = True

    def columns(self, source: str | Readable, reading: Reading) -> list[str] | int:
        """What the first line says."""
        line = self.first_line(source)
        if not line:
            return []
        splitter = Splitter((reading.delimiter or self.delimiter).encode())
        try:
            decoded(line)
            fields = splitter.fields(line, MAX_COLUMNS)
        except FieldError as fault:
            raise DataFileError(title_of(source), None, None, fault.cause) from None
        return [field.decode("utf-8", "replace") for field in fields] if reading.header else len(fields)

    def read(self, source: str | Readable, reading: Reading) -> TableData:
        """See ``read_csv``."""
        return read_csv(
            source,
            target=reading.target,
            ignore=reading.ignore,
            delimiter=reading.delimiter or self.delimiter,
            header=reading.header,
            max_bytes=reading.max_bytes,
        )


class TsvFormat(CsvFormat):
    """The same with tabs."""

    name, suffixes, delimiter = "tsv", (".tsv",), "\t"


class _Reader:
    """The settings of a call, checked, and what they mean for a file."""

    def __init__(
        self, target: str | int | None, ignore: Sequence[str | int], delimiter: str | None, header: bool
    ) -> None:
        check_target(target)
        check_ignore(ignore)
        if delimiter is not None and delimiter not in DELIMITERS:
            raise ValueError(f"delimiter must be one of {DELIMITERS}, or None; got {delimiter!r}.")
        for name, column in (("target", target), *(("ignore", column) for column in ignore)):
            if isinstance(column, str) and not header:
                raise ValueError(
                    f"{name} is the name {column!r}, but header=False means that columns have no names; "
                    "pass the column's number."
                )
        self._ignore = ignore
        self._target, self._delimiter, self._header = target, delimiter, header

    def read(self, source: str | os.PathLike[str] | Readable, max_bytes: int | None) -> TableData:
        """The table in a file."""
        name = title_of(source)
        delimiter = self._delimiter or ("\t" if plain_suffix(Path(name)) == ".tsv" else ",")
        row = f"fields with {delimiter!r} between them"
        with opened_lines(source, max_bytes, text_error, row) as blocks:
            return self._table(blocks, Splitter(delimiter.encode()))

    def _table(self, blocks: LineBlocks, splitter: Splitter) -> TableData:
        name, content = blocks.name, iter(blocks)
        first, lines = first_lines(content)
        if not lines:
            raise text_error(name, blocks.line, "the file ends without a single line; expected a table.")
        try:
            columns = self._columns(lines[0].removesuffix(b"\r"), splitter)
        except FieldError as fault:
            raise DataFileError(name, first, None, fault.cause) from None
        rows = CsvRows(name, columns, splitter)
        rows.add_block(first + self._header, lines[self._header :])
        for first, lines in content:
            rows.add_block(first, lines)
        data = rows.data()
        if not len(data):
            raise text_error(name, blocks.line, "the file ends after the header; expected rows of numbers.")
        target = None
        if rows.target is not None and columns.target is not None:
            rows.target.check(name, columns.title(columns.target))
            target = rows.target.values()
        return TableData(data, target, columns.feature_names)

    def _columns(self, line: bytes, splitter: Splitter) -> Columns:
        """What the first line says."""
        decoded(line)
        if line.count(splitter.delimiter) >= MAX_COLUMNS:
            raise FieldError(f"the line has more than {MAX_COLUMNS} fields; expected a table.")
        fields = splitter.fields(line, MAX_COLUMNS)
        names = _names(fields) if self._header else None
        columns = columns_of(names, len(fields), self._target, self._ignore)
        check_names(columns)
        return columns


def first_lines(blocks: Iterator[tuple[int, list[bytes]]]) -> tuple[int, list[bytes]]:
    """The first block with something in it, from its first line that is not blank."""
    for first, lines in blocks:
        if first == 1:
            lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)  # spreadsheets write one
        for skipped, line in enumerate(lines):
            if line.strip(b" \r"):
                return first + skipped, lines[skipped:]
    return 0, []


def _names(fields: list[bytes]) -> tuple[str, ...]:
    """The names of the columns, which are not all numbers."""
    names = tuple(field.decode("utf-8") for field in fields)
    if all(map(is_number, fields)):
        raise FieldError(
            f"the first line, {listed(names)}, holds numbers; expected the names of the columns "
            "(pass header=False where a file has none)."
        )
    return names


def check_names(columns: Columns) -> None:
    """Refuse names that are empty, unless nobody asks for the column, and names that occur twice."""
    places: dict[str, int] = {}
    for place, name in enumerate(columns.names or ()):
        if not name and place in columns.ignored:
            continue
        if not name:
            raise FieldError(
                f"column {place + 1} has no name; expected one (row numbers, as pandas writes them: leave "
                f"them out with ignore=[{place}], or write the file without them)."
            )
        if name in places:
            raise FieldError(
                f"columns {places[name] + 1} and {place + 1} are both called {excerpt(name)}; "
                "expected different names."
            )
        places[name] = place
