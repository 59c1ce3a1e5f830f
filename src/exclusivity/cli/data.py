"""Data files of the command line, and their columns.

What can be read only once (standard input, named pipes, ``/dev/fd/N``) is copied to a temporary file.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import stat
import sys
import tempfile
import weakref
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

from exclusivity._errors import hint_at_name
from exclusivity._text import printable
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.options import DECIMALS, DELIMITERS, refuse
from exclusivity.cli.output import Progress
from exclusivity.io import DataFileError, read_table
from exclusivity.io._csv import csv_header
from exclusivity.io._reading import Reading, listed
from exclusivity.io.tables import FORMATS, format_of

_SPREADSHEETS = {".xls", ".xlsx", ".xlsm", ".xlsb", ".ods", ".numbers"}
_FIRST_LINE = (
    " (Names are read from the first line. Is it a title, or data (--no-header)? Other fields: --delimiter.)"
)


def reads_once(path: str) -> bool:
    """Return whether a path is a pipe or a device, which does not begin anew when it is opened again."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


class Source:
    """One data file, by name, through a pipe or on standard input (``-``)."""

    def __init__(self, path: str, args: argparse.Namespace) -> None:
        self.title = "standard input" if path == "-" else printable(path)
        self.path, self._progress = path, Progress(args.command, quiet=args.quiet)
        self.format = self._format(args.format)
        if path != "-" and Path(path).is_dir():
            raise FileError(
                f"{path} is a folder; give one of its files, or with 'erm fit --dask' a pattern in quotes "
                f"for all of them, such as '{Path(path, '*.csv')}'."
            )
        self.header, self._delimiter = not args.no_header, DELIMITERS.get(args.delimiter)
        self._can_drop_rows = hasattr(args, "drop_missing_target")
        if not self.format.delimiter:
            why = f"is for CSV files, but {self.title} is read as {self.format.name}."
            refuse(args, ("delimiter", "no_header"), why)
        if path == "-" or reads_once(path):
            with (
                file_errors(path),
                nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as pipe,
            ):
                self._copy(pipe)

    def _format(self, kind: str | None) -> Any:
        names = ", ".join(FORMATS)
        if kind is not None:
            return FORMATS[kind]
        if self.path == "-":
            raise UsageError(f"standard input has no name with an ending; add --format, one of {names}.")
        try:
            return format_of(self.path)
        except ValueError:
            with file_errors(self.path):  # a wrong name is the better news
                Path(self.path).stat()
            advice = f"does not show its format; add --format, one of {names}."
            if Path(self.path).suffix.lower() in _SPREADSHEETS:
                advice = "is a spreadsheet; save the sheet as CSV (UTF-8), and give that file."
            raise FileError(f"the name {self.path} {advice}") from None

    def _copy(self, stream: Any) -> None:
        """Copy what can be read only once to a file that goes with this object."""
        suffix = "" if self.path == "-" else "".join(Path(self.path).suffixes)
        copy = tempfile.NamedTemporaryFile(suffix=suffix)  # noqa: SIM115 -- closed when the source goes
        weakref.finalize(self, copy.close)
        shutil.copyfileobj(stream, copy)
        copy.flush()
        self.path = copy.name

    @cached_property
    def columns(self) -> list[Any] | None:
        """The names of the columns, their numbers where they have no names, None where there are none.

        A file that is wrong already here gives an empty list: reading it will say what is wrong.
        """
        reading = Reading(delimiter=self._delimiter, header=self.header)
        with file_errors(self.path):
            if not self.format.is_sparse and not Path(self.path).stat().st_size:
                raise FileError(f"{self.title} is empty; check how it was written, or give another file.")
            try:
                if self.format.delimiter:
                    found, delimiter = csv_header(self.path, reading, self.format.delimiter)
                else:
                    found, delimiter = self.format.columns(self.path, reading), ""
            except (DataFileError, ImportError):
                return []
        if self._delimiter is None and delimiter != self.format.delimiter:
            self._delimiter = delimiter
            note(f"{self.title} has {delimiter!r} between its fields")
        return list(range(found)) if isinstance(found, int) else found

    @property
    def names(self) -> list[str]:
        """The names of the columns, where they have names."""
        return [name for name in self.columns or () if isinstance(name, str)]

    @property
    def delimiter(self) -> str:
        """Return the sign between fields, once the columns are known."""
        return self._delimiter or self.format.delimiter

    def read(self, **settings: Any) -> Any:
        """Return the table, or raise an error that says what to do; settings are those of ``read_table``."""
        size = Path(self.path).stat().st_size if Path(self.path).exists() else 0
        if not self.path.endswith((".gz", ".bz2")):  # no limit for the owner of a file
            settings["max_bytes"] = None

        def report(n_bytes: int) -> None:
            share = f"{min(1.0, n_bytes / size):.0%} of " if size and "max_bytes" in settings else ""
            self._progress.update(f"reading {self.title}: {share}{size / 1e6:.0f} MB")

        self._progress.update(f"reading {self.title}")
        try:
            with file_errors(self.path):
                return read_table(
                    self.path,
                    format=self.format.name,
                    delimiter=self._delimiter,
                    header=self.header,
                    report=report,
                    **settings,
                )
        except DataFileError as error:
            raise FileError(self._explain(error)) from error
        finally:
            self._progress.clear()

    def _explain(self, error: Any) -> str:
        """Return the message of a reader, for a user of options."""
        quoted = shlex.quote(str(error.column))
        ways = {
            "decimal": "--decimal comma or --decimal point says which it is",
            "numeric": f"--numeric {quoted} takes other text for missing values",
            "categorical": f"--categorical {quoted} takes all for categories",
            "ignore": f"--drop {quoted} leaves the column out",
            "header": "--no-header reads it as a row",
        }
        message = f"{error.place}: {error.cause}"
        known = [ways[way] for way in error.ways if way in ways]
        message += f" {', '.join(known)}." if known else ""
        if self._can_drop_rows and " no class (" in error.cause:
            message += " --drop-missing-target leaves such rows out of the training data."
        message = message.replace(self.path, self.title)
        if self.format.is_sparse and error.line == 1:  # all of it is something else, as a rule
            row = "'label index:value ...'"
            message += f" The file is read as LIBSVM, {row}; other formats: --format."
        return message

    def chosen(self, args: argparse.Namespace) -> tuple[str | int | None, list[str | int]]:
        """Return the columns that --target and --ignore name: by name, or by number."""
        if self.columns is None:
            why = f"chooses a column, but {self.title} is read as LIBSVM, with labels in front of the rows."
            refuse(args, ("target", "ignore"), f"{why} What else it may be, --format says.")
        target = None if args.target is None else self.column(args.target)
        return target, [self.column(text) for text in args.ignore]

    def column(self, text: str) -> str | int:
        """Return a column that the user gives by name, or by number from 0 if none has that name."""
        columns = self.columns or []
        if text in columns or not columns:  # a damaged file: reading it says what is wrong
            return text
        try:
            place = int(text)
        except ValueError:
            hint = hint_at_name(text, columns) + _FIRST_LINE * bool(self.names)
            raise FileError(f"{self.title} has no column {text!r}; {hint}") from None
        count = len(columns)
        if not -count <= place < count:
            raise FileError(f"{self.title} has no column {place}; its {count} columns are 0 to {count - 1}.")
        found: str | int = columns[place]
        # A nameless column of row numbers can only be given by its number.
        return place % count if found == "" or columns.count(found) > 1 else found

    def which_target(self, names: list[str]) -> FileError:
        """Return the error about a target that is not named; it may be one of these."""
        candidates = f" It may be {listed(names)}." if names else ""
        return FileError(
            f"say with --target which column of {self.title} holds the classes: its name, or its number from "
            f"0 (-1 is the last).{candidates}"
        )


def note(message: str) -> None:
    """Print a line about the data on standard error."""
    print(f"erm: {message}", file=sys.stderr)


def counted(count: int, noun: str) -> str:
    """Return so many of something, one of them included."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def decimal_of(args: argparse.Namespace, source: Source) -> str:
    """Return the decimal sign that --decimal says; refuse it where a file has no text."""
    if not source.format.is_text:
        refuse(args, ("decimal",), f"is for text, but {source.title} is read as {source.format.name}.")
    return DECIMALS.get(args.decimal, "")
