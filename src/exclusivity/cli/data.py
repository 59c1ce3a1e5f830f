"""Data files of the command line: their columns, and rows as a model takes them.

What can be read only once (standard input, named pipes, ``/dev/fd/N``) is copied to a temporary file.
"""

from __future__ import annotations

import argparse
import shlex
import stat
import sys
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exclusivity._errors import hint_at_name
from exclusivity._text import printable
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.models import Loaded
from exclusivity.cli.options import DECIMALS, DELIMITERS, refuse
from exclusivity.cli.output import Progress
from exclusivity.io import DataFileError, read_table
from exclusivity.io._cells import ColumnRule
from exclusivity.io._csv import csv_header
from exclusivity.io._reading import Reading, listed
from exclusivity.io.tables import FORMATS, format_of

_COPY = 1 << 20
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
            raise FileError(in_folder(path))
        self.header, self._delimiter = not args.no_header, DELIMITERS.get(args.delimiter)
        self._can_drop_rows = hasattr(args, "drop_missing_target")
        if not self.format.delimiter:
            why = f"is for CSV files, but {self.title} is read as {self.format.name}."
            refuse(args, ("delimiter", "no_header"), why)
        if path == "-" or reads_once(path):
            with file_errors(path):
                self._copy(sys.stdin.buffer if path == "-" else open(path, "rb"))  # noqa: SIM115 -- _copy closes it

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
        while block := stream.read(_COPY):
            copy.write(block)
        copy.flush()
        if self.path != "-":
            stream.close()
        self.path = copy.name

    def columns(self) -> list[str] | int | None:
        """Return the names of the columns, their number without names, None where there are none.

        A file that is wrong already here gives an empty list: reading it will say what is wrong.
        """
        reading = Reading(delimiter=self._delimiter, header=self.header)
        with file_errors(self.path):
            if not self.format.is_sparse and not Path(self.path).stat().st_size:
                raise FileError(f"{self.title} is empty; check how it was written, or give another file.")
            try:
                if not self.format.delimiter:
                    return self.format.columns(self.path, reading)  # type: ignore[no-any-return]
                found, delimiter = csv_header(self.path, reading, self.format.delimiter)
            except (DataFileError, ImportError):
                return []
        if self._delimiter is None and delimiter != self.format.delimiter:
            self._delimiter = delimiter
            note(f"{self.title} has {delimiter!r} between its fields")
        return found

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

    def chosen(self, columns: Any, args: argparse.Namespace) -> tuple[str | int | None, list[str | int]]:
        """Return the columns that --target and --ignore name: by name, or by number."""
        if columns is None:
            why = f"chooses a column, but {self.title} is read as LIBSVM, with labels in front of the rows."
            refuse(args, ("target", "ignore"), f"{why} What else it may be, --format says.")
        target = None if args.target is None else self.column(args.target, columns)
        return target, [self.column(text, columns) for text in args.ignore]

    def column(self, text: str, columns: list[str] | int) -> str | int:
        """Return a column that the user gives by name, or by number from 0 if none has that name."""
        names = columns if isinstance(columns, list) else []
        count = len(columns) if isinstance(columns, list) else columns
        if text in names or columns == []:  # a damaged file: reading it says what is wrong
            return text
        try:
            place = int(text)
        except ValueError:
            hint = hint_at_name(text, names or range(count)) + _FIRST_LINE * bool(names)
            raise FileError(f"{self.title} has no column {text!r}; {hint}") from None
        if not -count <= place < count:
            raise FileError(f"{self.title} has no column {place}; its {count} columns are 0 to {count - 1}.")
        # A nameless column of row numbers can only be given by its number.
        return names[place] if names and names.count(names[place]) == 1 and names[place] else place % count

    def which_target(self, names: list[str]) -> FileError:
        """Return the error about a target that is not named."""
        candidates = f" It may be {listed(names)}." if names else ""
        return FileError(
            f"say with --target which column of {self.title} holds the classes: its name, or its number from "
            f"0 (-1 is the last).{candidates}"
        )


def in_folder(path: str) -> str:
    """Return the error for a folder as data."""
    return (
        f"{path} is a folder; give one of its files, or with 'erm fit --dask' a pattern in quotes for all of "
        f"them, such as '{Path(path, '*.csv')}'."
    )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that a model takes, their labels, and columns to hand on."""

    X: Any
    y: Any = None
    kept: Any = None


def rows_for(
    loaded: Loaded,
    path: str,
    args: argparse.Namespace,
    *,
    wants_labels: bool | None,
    keep: list[str] | None = None,
) -> Rows:
    """Return rows that a model takes; labels are needed, not needed or welcome (None)."""
    source = Source(path, args)
    columns = source.columns()
    names, is_table = columns if isinstance(columns, list) else [], loaded.columns is not None
    if is_table and source.format.is_sparse:
        raise FileError(
            f"{source.title} is read as {source.format.name}, and {loaded.title} was fitted to a table; use "
            "CSV, TSV or Parquet with the same columns (--format, where the name of the file misleads)."
        )
    if not is_table and args.decimal == "comma":
        raise UsageError(
            f"--decimal comma is for tables, and {loaded.title} was fitted to plain numbers; write decimals "
            "with a point."
        )
    if keep and columns != [] and not names:
        raise UsageError(f"--keep is for columns with names, and {source.title} has none.")
    target, ignore = source.chosen(columns, args)
    if columns is None:
        content = _libsvm_rows(loaded, source)
        return Rows(content.data, None if wants_labels is False else content.target)
    kept = [source.column(text, names) for text in keep or ()]
    rules: dict[Any, Any] = loaded.rules(strict=args.strict)
    if names and loaded.names is not None:
        _match_features(loaded, source, names, {target, *ignore}, lenient=is_table and not args.strict)
        left = [name for name in names if name not in {*loaded.names, *ignore, *kept, target}]
        if target is None and wants_labels is not False:
            target = _held_target(loaded, source, left, needed=wants_labels)
        if left := [name for name in left if name != target]:
            note(f"ignoring {listed(left)} of {source.title}: no features of the model")
        rules = {name: rule for name, rule in rules.items() if name in names}
    elif columns:
        target = _match_count(loaded, source, columns, target, ignore, needs_labels=bool(wants_labels))
    if wants_labels is False:  # whatever stands there, missing values too
        target, ignore = None, ignore if target is None else [*ignore, target]
    texts = {name: ColumnRule("category") for name in kept if name not in rules}
    content = source.read(
        target=target,
        ignore=[name for name in ignore if name not in kept],
        rules={**rules, **texts},
        decimal=decimal_of(args, source) if is_table else "",
    )
    X = _as_trained(content, loaded, source) if is_table else content.data
    kept_cells = content.data[kept] if kept else None
    return Rows(X.drop(columns=list(texts), errors="ignore") if kept else X, content.target, kept_cells)


def _libsvm_rows(loaded: Loaded, source: Source) -> Any:
    """Return a LIBSVM file, whose features that are not there are zero, and missing in a wrong file."""
    content = source.read(n_features=loaded.n_features)
    largest = int(content.data.indices.max(initial=-1)) + 1
    if largest < loaded.n_features:
        note(
            f"warning: the largest index in {source.title} is {largest}, and {loaded.title} has "
            f"{loaded.n_features} features; those that are not there are read as 0"
        )
    return content


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


def _match_count(
    loaded: Loaded, source: Source, columns: Any, target: Any, ignore: list[Any], *, needs_labels: bool
) -> Any:
    """Return the target where data or model have no names; the number of columns must fit."""
    count = columns if isinstance(columns, int) else len(columns)
    if target is None and isinstance(loaded.target, int) and count - len(ignore) == loaded.n_features + 1:
        target = loaded.target
    if needs_labels and target is None:
        raise source.which_target(columns if isinstance(columns, list) else [])
    left = count - len(ignore) - (target is not None)
    if left != loaded.n_features:
        raise FileError(
            f"{source.title} has {left} columns besides those chosen with --target and --ignore, but "
            f"{loaded.title} was fitted to {loaded.n_features} features, without names; say with --target "
            "and --ignore which columns are no features."
        )
    return target


def _match_features(
    loaded: Loaded, source: Source, columns: list[str], chosen: set[Any], *, lenient: bool
) -> None:
    """Refuse or report columns of the model that are absent; refuse those that are target or ignored."""
    known = loaded.names or []
    if absent := [name for name in known if name not in columns]:
        hint = hint_at_name(absent[0], columns)
        if not lenient or len(absent) == len(known):
            other_model = ", or fit with --max-broken or --additive" if loaded.columns is None else ""
            raise FileError(
                f"{source.title} lacks {listed(absent)}, which {loaded.title} was fitted to; {hint} Use data "
                f"with the same columns{other_model}."
            )
        cells = "all its cells" if len(absent) == 1 else "all their cells"
        hint = f" {hint}" * hint.startswith("did")
        note(f"{source.title} lacks {listed(absent)}; {cells} count as missing values.{hint}")
    if used := [name for name in known if name in chosen]:
        raise FileError(
            f"{listed(used)} is a feature of {loaded.title}: it can be neither target nor ignored."
        )


def _held_target(loaded: Loaded, source: Source, left: list[str], *, needed: bool | None) -> Any:
    """Return the column of the classes, among those that are no features."""
    named = [name for name in left if name]  # a nameless one holds the numbers of the rows
    if loaded.target in left or (loaded.target is None and len(named) == 1):
        return loaded.target or named[0]
    if not needed:
        return None
    if not isinstance(loaded.target, str):
        raise source.which_target(named)
    other = f"; say --target if it is {listed(named)}" if named else ""
    raise FileError(
        f"{source.title} has no column {loaded.target!r}, which held the classes of {loaded.title}{other}; "
        "use data with classes ('erm predict' needs none)."
    )


def _as_trained(content: Any, loaded: Loaded, source: Source) -> Any:
    """Return the columns of the model; report cells that it cannot take, which are missing values."""
    names: list[Any] = list(loaded.names or content.data.columns)
    table = content.data.reindex(columns=names)
    for name, column in zip(names, loaded.columns or (), strict=True):
        if column.kind == "category":
            _report_new_levels(column, name, table[name], source)
        if n_lost := content.n_lost.get(name):
            trained = ", as in training (--numeric)" * ("?" in (column.notation or ""))
            lost = f"{counted(n_lost, 'text')} taken for missing values{trained}"
            note(f"column {name!r} of {source.title}: {lost}")
    return table


def _report_new_levels(column: Any, name: object, cells: Any, source: Source) -> None:
    """Report rows with levels that the training rows did not have: they count as none."""
    from exclusivity.tables._columns import as_levels, column_of

    code = getattr(column, "code", column)  # of an encoder; a robust model has levels itself
    known = {*getattr(code, "levels", getattr(code, "categories", ())), *getattr(code, "rare", ())}
    if not known or (code is not column and column.n_levels > len(known)):
        return  # the rarest of very many are not kept
    codes, levels = as_levels(column_of(cells.to_frame(), 0))
    if new := [place for place, level in enumerate(levels) if level not in known]:
        rows = counted(int(np.isin(codes, new).sum()), "row")
        note(
            f"column {name!r} of {source.title}: {rows} with {counted(len(new), 'level')} that training did "
            f"not have, such as {levels[new[0]]!r}; they count as no level"
        )
