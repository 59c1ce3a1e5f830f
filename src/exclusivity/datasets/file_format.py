"""What a format of data files is: how files are read, and how they are cut into parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exclusivity.datasets.csv_fields import Columns, FieldError, columns_of
from exclusivity.datasets.errors import DataFileError, refuse_pipe
from exclusivity.datasets.libsvm_lines import (
    DEFAULT_MAX_BYTES,
    Readable,
    is_packed,
    numbered_lines,
    text_error,
    title_of,
)
from exclusivity.datasets.table import TableData
from exclusivity.datasets.text_span import TextSpan, text_spans


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

    def unlimited(self, path: str) -> Reading:
        """The same for the owner of a file: no limit, unless it is compressed and so may be a trap.

        Parameters
        ----------
        path : str
            The file.
        """
        return self if is_packed(Path(path)) else replace(self, max_bytes=None)

    def columns(self, source: str | Readable, names: tuple[str, ...]) -> Columns:
        """Which columns of a file are the target and the features.

        Parameters
        ----------
        source : str or open file
            The file, for the error that names it.
        names : tuple of str
            All columns.
        """
        try:
            return columns_of(names, len(names), self.target, self.ignore)
        except FieldError as fault:
            raise DataFileError(title_of(source), None, None, fault.cause) from None


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
        Of bytes, rows or whatever the format counts; None: all of the file.
    memory : int
        What its numbers take in memory; 0 where only reading tells.
    """

    path: str
    n_bytes: int
    span: tuple[int, int] | None = None
    memory: int = 0


class Format(ABC):
    """A format of files that are read by their names; ``TextFormat`` is for text.

    Attributes
    ----------
    name : str
        What users call it.
    suffixes : tuple of str
        Ends of the names of such files, in small letters with a dot; "" is a name without a dot.
    is_sparse : bool, default False
        Whether labels stand in front of rows and features have numbers: tables have CSR data and no columns.
    row : str, default ""
        What a row looks like, for somebody whose file turns out to be something else in its first line.

    Examples
    --------
    >>> from exclusivity.datasets import format_of
    >>> format_of("heart.parquet").name
    'parquet'
    """

    name: str
    suffixes: tuple[str, ...]
    is_sparse = False
    has_header = False
    delimiter = ""
    row = ""

    @abstractmethod
    def columns(self, source: str, reading: Reading) -> list[str] | int | None:
        """The names of the columns, their number where they have no names, None where there are none.

        Parameters
        ----------
        source : str
            The path; a ``TextFormat`` also takes a file open for reading bytes.
        reading : Reading
            How to read it; only what does not name columns counts here.
        """

    @abstractmethod
    def read(self, source: str, reading: Reading) -> TableData:
        """The table, or a ``DataFileError``.

        Parameters
        ----------
        source : str
            The path; a ``TextFormat`` also takes a file open for reading bytes.
        reading : Reading
            What to take from it.
        """

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        """One file in parts that take about ``block_bytes`` of memory each, or a little more.

        What cannot be cut is one part. So is a damaged file: whoever reads it says what is wrong with it.

        Parameters
        ----------
        path : str
            The file.
        reading : Reading
            How it will be read, with ``n_features`` where that is known.
        block_bytes : int
            The memory to aim at.
        """
        refuse_pipe(path)  # parts are read in several passes
        return [FilePart(path, Path(path).stat().st_size)]

    def read_part(self, part: FilePart, reading: Reading) -> TableData | None:
        """The table of one part; None where it has no rows.

        Parameters
        ----------
        part : FilePart
            One of ``parts``.
        reading : Reading
            What to take from it.
        """
        return self.read(part.path, reading)


class TextFormat(Format):
    """A format of text in lines, one for each row: also compressed, from open files, and in spans of lines.

    Attributes
    ----------
    has_header : bool, default False
        Whether the first line is not a row (unless ``Reading.header`` is False); every span begins with it.
    delimiter : str, default ""
        The usual one between fields; empty where ``Reading.delimiter`` means nothing.

    Examples
    --------
    >>> import io
    >>> from exclusivity.datasets import TextFormat, format_of
    >>> isinstance(format_of("heart.csv.gz"), TextFormat)
    True
    >>> format_of("heart.csv").first_line(io.BytesIO(b"age,mass"))
    b'age,mass'
    """

    def lines(self, source: str | Readable, max_bytes: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The lines that are not blank, with their numbers from 1 and without their ends.

        Parameters
        ----------
        source : str or open file
            A path ending in ``.gz`` or ``.bz2`` is decompressed.
        max_bytes : int or None
            As in ``Reading``.
        """
        return numbered_lines(source, max_bytes)

    def first_line(self, source: str | Readable) -> bytes:
        """The first line that is not blank; nothing where all are.

        Parameters
        ----------
        source : str or open file
            As for ``lines``.
        """
        return next(self.lines(source), (0, b""))[1]

    def error(self, source: str | Readable, line: int, cause: str) -> DataFileError:
        """What to raise where a line is wrong.

        Parameters
        ----------
        source : str or open file
            As for ``lines``.
        line : int
            Its number.
        cause : str
            What was found and what is expected.
        """
        return text_error(title_of(source), line, cause)

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        """Spans of lines; compressed text is one part.

        Parameters
        ----------
        path : str
            The file.
        reading : Reading
            How it will be read.
        block_bytes : int
            The memory to aim at.
        """
        # Numbers of few digits grow when they are read.
        spans = [] if is_packed(Path(path)) else text_spans(path, max(1, block_bytes // 2))
        if len(spans) < 2:
            return super().parts(path, reading, block_bytes)
        return [FilePart(path, b - a, (a, b)) for a, b in spans]

    def read_part(self, part: FilePart, reading: Reading) -> TableData | None:
        """The table of a span; its errors count lines as the whole file does.

        Parameters
        ----------
        part : FilePart
            One of ``parts``.
        reading : Reading
            What to take from it.
        """
        if part.span is None:
            return self.read(part.path, reading)
        with TextSpan(part.path, *part.span, header=self.has_header and reading.header) as span:
            if span.is_blank():
                return None
            source: Any = span
            try:
                return self.read(source, reading)
            except DataFileError as error:
                if error.line is None:
                    raise
                raise error.after(span.lines_before()) from None
