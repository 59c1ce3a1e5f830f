"""Data files of the command line, in any format: regular files, and what can be read only once.

Standard input, named pipes, ``/dev/fd/N`` and other devices are opened once. Text is read as it comes; what
is not read from its first byte to its last (Parquet, .npy, compressed text) is copied to a temporary file.
"""

from __future__ import annotations

import argparse
import difflib
import io
import re
import stat
import sys
import threading
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exclusivity._text import printable
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from exclusivity.io._formats import Format, RawTable, Reading, TableData

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
FORMATS = ("libsvm", "csv", "tsv", "parquet", "npy")
_COPY = 1 << 20
_LISTED = 8
_SPREADSHEETS = {".xls", ".xlsx", ".xlsm", ".xlsb", ".ods", ".numbers"}
_LONGEST_LINE = 1 << 26  # what is longer is no text
_PATIENCE = 1.0
"""Seconds to open a pipe before somebody has to be told what is being waited for."""


def reads_once(path: str) -> bool:
    """Return whether a path is a pipe or a device, which does not begin anew when it is opened again."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _open_once(path: str) -> Any:
    """Open a pipe or a device; wait for a writer as other programs do, but say so."""
    waiting = f"erm: waiting for a writer of {printable(path)}"
    teller = threading.Timer(_PATIENCE, print, [waiting], {"file": sys.stderr, "flush": True})
    teller.daemon = True
    teller.start()
    try:
        return open(path, "rb")
    finally:
        teller.cancel()


class NumbersError(FileError):
    """A table of numbers was asked for, and a cell has none."""


class Source:
    """One data file, by name, through a pipe or on standard input.

    Parameters
    ----------
    path : str
        ``-`` is standard input. What is no regular file is opened here, and once.
    kind : str or None
        The name of a format; None: the name of the file says it.
    delimiter : str or None
        One of ``DELIMITERS``; None: what the format says, or the only one that the first line has.
    header : bool
        Whether a CSV file has a line with names.
    """

    def __init__(self, path: str, kind: str | None, delimiter: str | None, header: bool) -> None:
        self.is_stdin = path == "-"
        self.title = "standard input" if self.is_stdin else printable(path)
        self.path = path
        self.format = self._format(kind)
        if not self.is_stdin and Path(path).is_dir():
            raise FileError(in_folder(path))
        is_unknown = delimiter is not None and not self.format.delimiter
        if is_unknown or not (header or self.format.has_header):
            option = "--delimiter" if is_unknown else "--no-header"
            raise UsageError(f"{option} is for CSV files, but {self.title} is read as {self.format.name}.")
        self._header = header
        self._delimiter = None if delimiter is None else DELIMITERS[delimiter]
        self._head = b""
        self._kept: Any = None
        self._stream: Any = None
        self._is_copy = False
        if self.is_stdin or reads_once(path):
            self._open_stream()

    def _open_stream(self) -> None:
        """Open what can be read only once, and copy it where its format is not read in one go."""
        import weakref

        from exclusivity.io._text import is_packed

        if self.is_stdin:
            self._stream = sys.stdin.buffer
        else:
            with file_errors(self.path):
                self._stream = _open_once(self.path)
            weakref.finalize(self, self._stream.close)
        if not self.format.is_text or (not self.is_stdin and is_packed(self.path)):
            with file_errors(self.path):
                copy = self._copied("" if self.is_stdin else "".join(Path(self.path).suffixes))
            self.path, self._stream, self._is_copy = copy.name, None, True

    @classmethod
    def of(cls, path: str, args: argparse.Namespace) -> Source:
        """The file, read as the options say."""
        return cls(path, args.format, args.delimiter, not args.no_header)

    def _format(self, kind: str | None) -> Format:
        from exclusivity.io import _formats as formats

        if kind is not None:
            return formats.FORMATS[kind]
        names = ", ".join(FORMATS)
        if self.is_stdin:
            raise UsageError(
                f"standard input has no name to tell its format from; add --format, one of {names}."
            )
        try:
            return formats.format_of(self.path)
        except ValueError:
            with file_errors(self.path):  # a wrong name is the better news
                Path(self.path).stat()
            if Path(self.path).suffix.lower() in _SPREADSHEETS:
                advice = "is a spreadsheet; save the sheet as CSV (UTF-8), and give that file."
                raise FileError(f"{self.path} {advice}") from None
            raise FileError(
                f"the name {self.path} does not tell its format; add --format, one of {names}."
            ) from None

    @property
    def delimiter(self) -> str | None:
        """What stands between the fields of text."""
        return self._delimiter or self.format.delimiter or None

    def reading(
        self,
        target: str | int | None = None,
        ignore: tuple[str | int, ...] = (),
        n_features: int | None = None,
    ) -> Reading:
        """What to take from the file, whose owner asks for it."""
        from exclusivity.io._formats import Reading

        settings = Reading(target, ignore, n_features, self._delimiter, self._header)
        return settings.unlimited(self.path)

    def columns(self) -> list[str] | int | None:
        """The names of the columns, their number where they have no names, None where there are none.

        A file that is wrong already here gives an empty list: reading it will say what is wrong.
        """
        from exclusivity.io._errors import DataFileError

        if self.format.is_sparse:
            return None
        with file_errors(self.path):
            if self._stream is None and Path(self.path).is_file() and not Path(self.path).stat().st_size:
                raise FileError(f"{self.title} is empty; check how it was written, or give another file.")
            try:
                self._find_delimiter()
                return self.format.columns(self._beginning(), self.reading())
            except (DataFileError, ImportError):
                return []

    def _find_delimiter(self) -> None:
        """A first line without the usual delimiter would be a table of one column, which nobody means."""
        from exclusivity.io._formats import CsvFormat

        if self._delimiter is not None or not isinstance(self.format, CsvFormat):
            return
        found = self.format.find_delimiter(self._beginning(), self.reading())
        if found != self.format.delimiter:
            self._delimiter = found
            print(f"erm: {self.title} has {found!r} between its fields", file=sys.stderr)

    def _beginning(self) -> Any:
        """The path, or an open file with the first line of a stream, which is kept for its reader."""
        if self._stream is None:
            return self.path
        while not self._head.removeprefix(BOM_UTF8).strip():
            if not (line := self._stream.readline(_LONGEST_LINE)):
                break
            self._head += line
        return io.BytesIO(self._head)

    def read(self, reading: Reading, progress: Progress) -> TableData:
        """The table, or an error that says what to do."""
        from exclusivity.io._errors import DataFileError, NotANumberError

        progress.tell(f"reading {self.title}")
        try:
            with file_errors(self.path), self._opened(reading, progress) as source:
                table = self.format.read(source, reading)
        except DataFileError as error:
            may_hold_text = self.format.has_columns and isinstance(error, NotANumberError)
            kind = NumbersError if may_hold_text else FileError
            raise kind(self.in_our_words(str(error))) from error
        except EOFError as error:
            raise FileError(f"{self.title}: the compressed file ends too early; get a fresh copy.") from error
        progress.clear()
        return table

    def read_raw(self, reading: Reading, progress: Progress) -> RawTable:
        """The columns as they stand in the file, numbers or not; see ``read``."""
        from exclusivity.io._errors import DataFileError

        progress.tell(f"reading {self.title}")
        try:
            with file_errors(self.path), self._opened(reading, progress) as source:
                return self.format.read_columns(source, reading)
        except DataFileError as error:
            raise FileError(self.in_our_words(str(error))) from error
        except EOFError as error:
            raise FileError(f"{self.title}: the compressed file ends too early; get a fresh copy.") from error
        finally:
            progress.clear()

    def in_our_words(self, message: str) -> str:
        """What a reader says, for somebody who has options and no arguments."""
        if self._is_copy:
            message = message.replace(self.path, self.title)
        message = message.replace("(pass header=False where a file has none)", "(or pass --no-header)")
        message = message.replace(", or pass max_bytes=None for no limit", "")
        message = re.sub(r"ignore=\[(\d+)\]", r"--ignore \1", message)
        if ", column " in message and "expected a finite decimal number" in message:
            message += " (Columns that are no features: --ignore for each; for the classes: --target.)"
        if self.format.row and ", line 1:" in message:  # all of it is something else, as a rule
            kind = self.format.name.upper()
            message += f" The file is read as {kind}, {self.format.row}; other formats: --format."
        return message

    @contextmanager
    def _opened(self, reading: Reading, progress: Progress) -> Iterator[Any]:
        """What to hand to a reader. Compressed files go by name: the reader guards against traps."""
        if not self.format.is_text or reading.max_bytes is not None:
            yield self.path
        elif self._stream is not None:
            stream = self._stream if self._kept is None else _Twice(self._stream, self._kept)
            yield _Counted(stream, self.title, None, progress, self._head)
        else:
            with open(self.path, "rb") as stream:
                yield _Counted(stream, self.path, Path(self.path).stat().st_size, progress)

    def keep(self) -> None:
        """Let a stream be read a second time, by who may have to begin anew."""
        if self._stream is not None:
            self._kept = self._temporary()

    def _copied(self, suffix: str) -> Any:
        """The stream as a file, for formats that are not read from their first byte to their last."""
        copy = self._temporary(suffix)
        while block := self._stream.read(_COPY):
            copy.write(block)
        copy.flush()
        return copy

    def _temporary(self, suffix: str = "") -> Any:
        """A file that is closed, and so removed, when the source goes; Python warns of those that just go."""
        import tempfile
        import weakref

        file = tempfile.NamedTemporaryFile(suffix=suffix)  # noqa: SIM115 -- closed when the source goes
        weakref.finalize(self, file.close)
        return file


class _Twice:
    """A stream that can be read a second time: what was read before is kept beside it."""

    def __init__(self, stream: Any, kept: Any) -> None:
        self._stream, self._kept = stream, kept
        kept.seek(0)

    def read(self, size: int, /) -> bytes:
        if block := self._kept.read(size):
            return bytes(block)
        block = self._stream.read(size)
        self._kept.write(block)
        return bytes(block)


class _Counted:
    """An open file that tells how much of it has been read."""

    def __init__(
        self, stream: Any, name: str, size: int | None, progress: Progress, head: bytes = b""
    ) -> None:
        self.name = name
        self._stream, self._size, self._progress, self._head = stream, size, progress, head
        self._count = 0

    def read(self, size: int, /) -> bytes:
        if self._head:
            block, self._head = self._head[:size], self._head[size:]
        else:
            block = self._stream.read(size)
        self._count += len(block)
        done = f"{self._count / 1e6:.0f} MB"
        share = f"{self._count / self._size:.0%} of {self._size / 1e6:.0f} MB" if self._size else done
        self._progress.tell(f"reading {self.name}: {share}")
        return bytes(block)


def column(text: str, columns: list[str] | int, title: str) -> str | int:
    """A column as the user writes it: its name, or its number from 0 where no column has that name."""
    names = columns if isinstance(columns, list) else []
    count = len(columns) if isinstance(columns, list) else columns
    if text in names or columns == []:  # a damaged file: reading it says what is wrong
        return text
    try:
        place = int(text)
    except ValueError:
        near = difflib.get_close_matches(text, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {listed(names)}." if names else ""
        hint = hint or f"there are no names; give a number from 0 to {count - 1}."
        raise FileError(f"{title} has no column {text!r}; {hint}{_about_first_line(names)}") from None
    if not -count <= place < count:
        raise FileError(f"{title} has no column {place}; its {count} columns are 0 to {count - 1}.")
    return place


def _about_first_line(names: list[str]) -> str:
    """What may be wrong with names that are none."""
    from exclusivity.io._cells import is_number

    others = [key for key, character in DELIMITERS.items() if any(character in name for name in names)]
    if len(names) < 3 and others:
        return f" (Other fields? --delimiter {others[0]}.)"
    if len(names) == 1 or 2 * names.count("") >= len(names) > 0:
        return " (Names are read from the first line: delete what stands above them, such as a title.)"
    n_numbers = sum(is_number(name.encode()) for name in names)
    return " (Is the first line data? --no-header.)" if 2 * n_numbers >= max(1, len(names)) else ""


def in_folder(path: str) -> str:
    """The error for a folder as data, with a file in it that could have been meant."""
    from exclusivity.io._formats import format_of

    for entry in sorted(Path(path).iterdir()):
        ending = "".join(entry.suffixes)
        if ending and entry.is_file():
            try:
                format_of(entry)
            except ValueError:
                continue
            return (
                f"{path} is a folder; give one of its files, such as {entry}, or with 'erm fit --dask' a "
                f"pattern in quotes for all of them, such as '{Path(path, '*' + ending)}'."
            )
    return f"{path} is a folder, without a data file in it; give the name of a file."


def listed(names: list[str]) -> str:
    """Names in a row; of many the first and the last, where targets tend to be.

    Examples
    --------
    >>> listed(["age", "mass"]), listed([f"f{j}" for j in range(12)])
    ("'age', 'mass'", "'f0', 'f1', 'f2', 'f3', ... (4 more) ..., 'f8', 'f9', 'f10', 'f11'")
    """
    shown = [repr(name) for name in names]
    if len(shown) > _LISTED:
        half = _LISTED // 2
        shown = [*shown[:half], f"... ({len(shown) - _LISTED} more) ...", *shown[-half:]]
    return ", ".join(shown)
