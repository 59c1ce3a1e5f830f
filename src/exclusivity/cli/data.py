"""Data files of the command line, in any format.

What can be read only once (standard input, named pipes, ``/dev/fd/N``) is copied to a temporary file.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import stat
import sys
import tempfile
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exclusivity._text import printable
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from exclusivity.io import DataFileError
    from exclusivity.io._formats import Format
    from exclusivity.io._reading import Content, Reading

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
FORMATS = ("libsvm", "csv", "tsv", "parquet", "npy")
_COPY = 1 << 20
_LISTED = 8
_SPREADSHEETS = {".xls", ".xlsx", ".xlsm", ".xlsb", ".ods", ".numbers"}
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


class Source:
    """One data file, by name, through a pipe or on standard input (``-``)."""

    def __init__(self, path: str, kind: str | None, delimiter: str | None, header: bool) -> None:
        self.title = "standard input" if path == "-" else printable(path)
        self.path = path
        self.format = self._format(kind)
        if path != "-" and Path(path).is_dir():
            raise FileError(in_folder(path))
        if not self.format.delimiter and (delimiter is not None or not header):
            option = "--no-header" if delimiter is None else "--delimiter"
            raise UsageError(f"{option} is for CSV files, but {self.title} is read as {self.format.name}.")
        self._header = header
        self._delimiter = None if delimiter is None else DELIMITERS[delimiter]
        if path == "-" or reads_once(path):
            with file_errors(path):
                self._copy(sys.stdin.buffer if path == "-" else _open_once(path))

    @classmethod
    def of(cls, path: str, args: argparse.Namespace) -> Source:
        """Return the file, read as the options say."""
        return cls(path, args.format, args.delimiter, not args.no_header)

    def _format(self, kind: str | None) -> Format:
        from exclusivity.io import _formats as formats

        if kind is not None:
            return formats.FORMATS[kind]
        names = ", ".join(FORMATS)
        if self.path == "-":
            raise UsageError(
                f"standard input has no name to tell its format from; add --format, one of {names}."
            )
        try:
            return formats.format_of(self.path)
        except ValueError:
            with file_errors(self.path):  # a wrong name is the better news
                Path(self.path).stat()
            advice = f"does not tell its format; add --format, one of {names}."
            if Path(self.path).suffix.lower() in _SPREADSHEETS:
                advice = "is a spreadsheet; save the sheet as CSV (UTF-8), and give that file."
            raise FileError(f"the name {self.path} {advice}") from None

    def _copy(self, stream: Any) -> None:
        """Copy what can be read only once to a file that goes with this object."""
        suffix = "" if self.path == "-" else "".join(Path(self.path).suffixes)
        copy = tempfile.NamedTemporaryFile(suffix=suffix)  # noqa: SIM115 -- closed when the source goes
        weakref.finalize(self, copy.close)
        while block := stream.read(_COPY):
            copy.write(block)
        copy.flush()
        if self.path != "-":
            stream.close()
        self.path = copy.name

    def reading(self, **settings: Any) -> Reading:
        """Return what to take from the file, whose owner asks for it."""
        from exclusivity.io._reading import Reading

        return Reading(delimiter=self._delimiter, header=self._header, **settings).unlimited(self.path)

    def columns(self) -> list[str] | int | None:
        """Return the names of the columns, their number without names, None where there are none.

        A file that is wrong already here gives an empty list: reading it will say what is wrong.
        """
        from exclusivity.io import DataFileError
        from exclusivity.io._csv import csv_header

        with file_errors(self.path):
            if not self.format.is_sparse and not Path(self.path).stat().st_size:
                raise FileError(f"{self.title} is empty; check how it was written, or give another file.")
            try:
                if not self.format.delimiter:
                    return self.format.columns(self.path, self.reading())
                found, delimiter = csv_header(self.path, self.reading(), self.format.delimiter)
            except (DataFileError, ImportError):
                return []
        if self._delimiter is None and delimiter != self.format.delimiter:
            self._delimiter = delimiter
            print(f"erm: {self.title} has {delimiter!r} between its fields", file=sys.stderr)
        return found

    def read(self, reading: Reading, progress: Progress) -> Content:
        """Return the table, or raise an error that says what to do."""
        from exclusivity.io import DataFileError

        size = Path(self.path).stat().st_size if Path(self.path).exists() else 0

        def tell(n_bytes: int) -> None:
            share = f"{min(1.0, n_bytes / size):.0%} of " if size and reading.max_bytes is None else ""
            progress.tell(f"reading {self.title}: {share}{size / 1e6:.0f} MB")

        progress.tell(f"reading {self.title}")
        try:
            with file_errors(self.path):
                content: Content = self.format.read(self.path, replace(reading, tell=tell))
        except DataFileError as error:
            raise FileError(self.in_our_words(error)) from error
        finally:
            progress.clear()
        return content

    def in_our_words(self, error: DataFileError) -> str:
        """Return what a reader says, for somebody who has options and no arguments."""
        quoted = shlex.quote(str(error.column))
        ways = {
            "decimal": "--decimal comma or --decimal point says which it is",
            "numeric": f"--numeric {quoted} takes what is no number for missing values",
            "categorical": f"--categorical {quoted} takes all for categories",
            "ignore": f"--drop {quoted} leaves the column out",
        }
        message = f"{error.place}: {error.cause}"
        message += f" {', '.join(ways[way] for way in error.ways)}." if error.ways else ""
        message = message.replace(self.path, self.title)
        message = message.replace("(pass header=False where a file has none)", "(or pass --no-header)")
        message = message.replace(", or pass max_bytes=None for no limit", "")
        message = re.sub(r"ignore=\[(\d+)\]", r"--ignore \1", message)
        if self.format.is_sparse and error.line == 1:  # all of it is something else, as a rule
            row = "'label index:value ...'"
            message += f" The file is read as LIBSVM, {row}; other formats: --format."
        return message


def column(text: str, columns: list[str] | int, title: str) -> str | int:
    """Return a column as the user writes it: its name, or its number from 0 where no column has that name."""
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
    """Return what may be wrong with names that are none."""
    from exclusivity.io._cells import is_number

    others = [key for key, character in DELIMITERS.items() if any(character in name for name in names)]
    if len(names) < 3 and others:
        return f" (Other fields? --delimiter {others[0]}.)"
    if len(names) == 1 or 2 * names.count("") >= len(names) > 0:
        return " (Names are read from the first line: delete what stands above them, such as a title.)"
    n_numbers = sum(map(is_number, names))
    return " (Is the first line data? --no-header.)" if 2 * n_numbers >= max(1, len(names)) else ""


def in_folder(path: str) -> str:
    """Return the error for a folder as data, with a file in it that could have been meant."""
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
    """Return names in a row; of many the first and the last, where targets tend to be.

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
