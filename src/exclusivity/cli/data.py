"""Data files of the command line: LIBSVM, CSV, TSV, Parquet and .npy, from a path or from standard input."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exclusivity.cli.errors import CommandError, FileError, file_errors
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from exclusivity.datasets import TableData

FORMATS = ("libsvm", "csv", "tsv", "parquet", "npy")
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
_COPY = 1 << 20
_LISTED = 8


@dataclass(frozen=True)
class Reading:
    """What to take from a file.

    Attributes
    ----------
    target : str or int or None
        The column of the labels.
    ignore : tuple of str or int
        Columns to leave out.
    n_features : int or None
        The width to which a LIBSVM file is read; None: its largest index.
    """

    target: str | int | None = None
    ignore: tuple[str | int, ...] = ()
    n_features: int | None = None


class Source:
    """One data file, by name or on standard input.

    Parameters
    ----------
    path : str
        ``-`` is standard input.
    kind : str or None
        One of ``FORMATS``; None: the name says it.
    delimiter : str or None
        One of ``DELIMITERS``; None: what the kind says, or the only one that the first line has.
    header : bool
        Whether a CSV file has a line with names.
    """

    def __init__(self, path: str, kind: str | None, delimiter: str | None, header: bool) -> None:
        self.is_stdin = path == "-"
        self.title = "standard input" if self.is_stdin else path
        self.path = path
        self.kind = self._kind(kind)
        if not self.is_stdin and Path(path).is_dir():
            raise FileError(in_folder(path))
        if self.kind in ("libsvm", "parquet", "npy") and (delimiter is not None or not header):
            option = "--delimiter" if delimiter is not None else "--no-header"
            raise CommandError(f"{option} is for CSV files, but {self.title} is read as {self.kind}.")
        self.header = header
        self.delimiter = DELIMITERS[delimiter or ("tab" if self.kind == "tsv" else "comma")]
        self._finds_delimiter = delimiter is None
        self._head = b""
        if self.is_stdin and self.kind in ("parquet", "npy"):
            self._copy = self._copied()
            self.path = self._copy.name

    @classmethod
    def of(cls, path: str, args: argparse.Namespace) -> Source:
        """The file, read as the options say."""
        return cls(path, args.format, args.delimiter, not args.no_header)

    def _kind(self, kind: str | None) -> str:
        if kind is not None:
            return kind
        if self.is_stdin:
            raise CommandError(
                "standard input has no name to tell its format from; add --format, one of "
                f"{', '.join(FORMATS)}."
            )
        from exclusivity.datasets.read_any import format_of

        try:
            return format_of(Path(self.path))
        except ValueError:
            with file_errors(self.path):  # a wrong name is the better news
                Path(self.path).stat()
            raise FileError(
                f"the name {self.path} does not tell its format; add --format, one of {', '.join(FORMATS)}."
            ) from None

    def columns(self) -> list[str] | int | None:
        """The names of the columns, their number where they have no names, None for LIBSVM.

        A file that is wrong already here gives an empty list: reading it will say what is wrong.
        """
        if self.kind == "libsvm":
            return None
        with file_errors(self.path):
            if not self.is_stdin and Path(self.path).is_file() and not Path(self.path).stat().st_size:
                raise FileError(f"{self.title} is empty; check how it was written, or give another file.")
            if self.kind == "parquet":
                return self._parquet_names()
            if self.kind == "npy":
                return self._npy_columns()
            from exclusivity.datasets.csv_fields import FieldError, Splitter, decoded

            line = self._first_line()
            if not line.strip():
                return []
            self._find_delimiter(line)
            try:
                decoded(line)
                fields = Splitter(self.delimiter.encode()).fields(line, 1 << 20)
            except FieldError:
                return []
        return [field.decode("utf-8", "replace") for field in fields] if self.header else len(fields)

    def _find_delimiter(self, line: bytes) -> None:
        """A first line without the usual delimiter would be a table of one column, which nobody means."""
        if not self._finds_delimiter or self.delimiter.encode() in line:
            return
        found = [character for character in DELIMITERS.values() if character.encode() in line]
        if len(found) == 1:
            (self.delimiter,) = found
            print(f"erm: {self.title} has {found[0]!r} between its fields", file=sys.stderr)

    def read(self, reading: Reading, progress: Progress) -> TableData:
        """The table, or an error that says what to do."""
        from exclusivity.datasets import DataFileError

        progress.tell(f"reading {self.title}")
        try:
            with file_errors(self.path):
                table = self._read(reading, progress)
        except DataFileError as error:
            raise FileError(self.in_our_words(str(error))) from error
        except EOFError as error:
            raise FileError(f"{self.title}: the compressed file ends too early; get a fresh copy.") from error
        progress.clear()
        return table

    def in_our_words(self, message: str) -> str:
        """What a reader says, for somebody who has options and no arguments."""
        message = message.replace("(pass header=False where a file has none)", "(or pass --no-header)")
        message = message.replace(", or pass max_bytes=None for no limit", "")
        message = re.sub(r"ignore=\[(\d+)\]", r"--ignore \1", message)
        if ", column " in message and "expected a finite decimal number" in message:
            message += " (A column that is no feature: --ignore, or --target for the classes.)"
        if self.kind == "libsvm" and ", line 1:" in message:  # all of it is something else, as a rule
            message += " The file is read as LIBSVM, 'label index:value ...'; other formats: --format."
        return message

    def _read(self, reading: Reading, progress: Progress) -> TableData:
        from exclusivity.datasets import read_npy, read_parquet
        from exclusivity.datasets.read_any import read_text

        if self.kind == "parquet":
            return read_parquet(self.path, target=reading.target, ignore=reading.ignore, max_bytes=None)
        if self.kind == "npy":
            columns: Any = {"target": reading.target, "ignore": reading.ignore}  # numbers: there are no names
            return read_npy(self.path, **columns, max_bytes=None)
        with self._opened(progress) as (source, limits):
            return read_text(
                source,
                self.kind,
                target=reading.target,
                ignore=reading.ignore,
                delimiter=self.delimiter,
                header=self.header,
                n_features=reading.n_features,
                **limits,
            )

    @contextmanager
    def _opened(self, progress: Progress) -> Iterator[tuple[Any, dict[str, Any]]]:
        """What to hand to a reader. Compressed files go by name: the reader guards against traps."""
        if not self.is_stdin and self._is_packed():
            yield self.path, {}
            return
        unlimited = {"max_bytes": None}
        if self.is_stdin:
            head, self._head = self._head, b""
            yield _Counted(sys.stdin.buffer, "standard input", None, progress, head), unlimited
            return
        with open(self.path, "rb") as stream:
            yield _Counted(stream, self.path, Path(self.path).stat().st_size, progress), unlimited

    def _is_packed(self) -> bool:
        from exclusivity.datasets.libsvm_lines import is_packed

        return is_packed(Path(self.path))

    def _first_line(self) -> bytes:
        """The first line that is not blank, without its end."""
        from exclusivity.datasets.libsvm_lines import MAX_LINE_BYTES, open_text

        opened: Any = nullcontext(sys.stdin.buffer) if self.is_stdin else open_text(Path(self.path))
        with opened as stream:
            while line := stream.readline(MAX_LINE_BYTES):
                if self.is_stdin:
                    self._head += line
                if line.removeprefix(BOM_UTF8).strip():
                    break
        return bytes(line).removeprefix(BOM_UTF8).rstrip(b"\r\n")

    def _copied(self) -> Any:
        """Standard input as a file: a Parquet file begins at its end, and an array is mapped."""
        import tempfile

        copy = tempfile.NamedTemporaryFile()  # noqa: SIM115 -- goes when the source goes
        while block := sys.stdin.buffer.read(_COPY):
            copy.write(block)
        copy.flush()
        return copy

    def _npy_columns(self) -> list[str] | int:
        from exclusivity.datasets import DataFileError
        from exclusivity.datasets.npy import open_npy

        try:
            return int(open_npy(self.path).shape[1])
        except DataFileError:
            return []

    def _parquet_names(self) -> list[str]:
        with open(self.path, "rb"):  # for the system's own words on what cannot be opened
            pass
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            return []
        try:
            return [str(name) for name in parquet.read_schema(self.path).names]
        except (ArrowException, OSError, ValueError):
            return []


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
    from exclusivity.datasets.csv_fields import is_number

    others = [key for key, character in DELIMITERS.items() if any(character in name for name in names)]
    if len(names) < 3 and others:
        return f" (Other fields? --delimiter {others[0]}.)"
    n_numbers = sum(is_number(name.encode()) for name in names)
    return " (Is the first line data? --no-header.)" if 2 * n_numbers >= max(1, len(names)) else ""


def in_folder(path: str) -> str:
    """The error for a folder as data, with a file in it that could have been meant."""
    from exclusivity.datasets.read_any import format_of

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


def labels(target: Any) -> Any:
    """Labels of a table: whole numbers as such, text and other numbers as they are."""
    import numpy as np

    if target.dtype.kind == "f" and np.all(target == np.rint(target)) and np.all(np.abs(target) < 2**53):
        return target.astype(np.int64)
    return target
