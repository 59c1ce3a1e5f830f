"""Which columns of a data file are features and which one is the target, as the model and the user say."""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import TYPE_CHECKING, Any

from exclusivity.cli import tables
from exclusivity.cli.data import Source, column, listed
from exclusivity.cli.files import FileError, UsageError
from exclusivity.cli.models import Loaded
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from exclusivity._typing import Matrix
    from exclusivity.io._reading import Reading

_NAMED = 3  # pairs of names in a message


def rows_for(
    loaded: Loaded, path: str, args: argparse.Namespace, progress: Progress, *, wants_labels: bool | None
) -> tuple[Any, Any]:
    """Return rows that the model takes, and their labels, which are needed, not needed or welcome (None)."""
    source = Source.of(path, args)
    columns = source.columns()
    encoder = tables.encoder_of(loaded)
    if encoder is not None and not source.format.has_columns:
        raise FileError(
            f"{source.title} is read as {source.format.name}, and {loaded.title} was fitted to a table; use "
            "CSV, TSV or Parquet with the same columns (--format, where the name of the file misleads)."
        )
    decimal = getattr(args, "decimal", None)
    if encoder is None and decimal == "comma":
        raise UsageError(
            f"--decimal comma is for tables, and {loaded.title} was fitted to plain numbers; write decimals "
            "with a point."
        )
    if columns is None:
        _refuse_columns(source, args)
        content = source.read(source.reading(n_features=loaded.n_features), progress)
        _warn_if_narrow(content.data, source, loaded)
        return content.data, None if wants_labels is False else content.target
    target, ignore = _chosen(loaded, source, columns, args, wants_labels)
    if wants_labels is False:  # whatever stands there, missing values too
        target, ignore = None, ignore if target is None else (*ignore, target)
    sign = "" if encoder is None else tables.decimal_of(decimal, source)
    rules = tables.rules_of(loaded)
    content = source.read(source.reading(target=target, ignore=ignore, rules=rules, decimal=sign), progress)
    if encoder is None:
        return content.data, content.target
    table = tables.column_table(content)
    tables.tell_of_rows(content, table, encoder, source)
    return table, content.target


def _chosen(
    loaded: Loaded,
    source: Source,
    columns: list[str] | int,
    args: argparse.Namespace,
    wants_labels: bool | None,
) -> tuple[str | int | None, tuple[str | int, ...]]:
    """Return the target, and the columns to ignore."""
    target = None if args.target is None else column(args.target, columns, source.title)
    ignore = tuple(column(text, columns, source.title) for text in args.ignore)
    if isinstance(columns, list) and columns and loaded.names is not None:
        return _by_name(loaded, source, columns, target, ignore, wants_labels), ignore
    count = columns if isinstance(columns, int) else len(columns)
    if target is None and isinstance(loaded.target, int) and count - len(ignore) == loaded.n_features + 1:
        target = loaded.target
    if columns and wants_labels and target is None:
        raise FileError(_which_target(source, columns if isinstance(columns, list) else []))
    left = count - len(ignore) - (target is not None)
    if columns and left != loaded.n_features:
        raise FileError(
            f"{source.title} has {left} columns besides those chosen with --target and --ignore, but "
            f"{loaded.title} was fitted to {loaded.n_features} features, without names; say with --target "
            "and --ignore which columns are no features."
        )
    return target, ignore


def _renamed(missing: list[str], columns: list[str]) -> str:
    """Return what the missing columns may be called in the data.

    Examples
    --------
    >>> _renamed(["Age", "Mass"], ["age ", "height"])
    " Is 'age ' what the model calls 'Age'?"
    """
    folded = {name.strip().casefold(): name for name in columns}
    pairs = []
    for name in missing:
        near = difflib.get_close_matches(name.strip().casefold(), folded, n=1, cutoff=0.8)
        pairs += [f"{folded[found]!r} what the model calls {name!r}" for found in near]
    return f" Is {', and '.join(pairs[:_NAMED])}?" if pairs else ""


def _by_name(
    loaded: Loaded,
    source: Source,
    columns: list[str],
    target: str | int | None,
    ignore: tuple[str | int, ...],
    wants_labels: bool | None,
) -> str | int | None:
    """Return the target, and say which columns are left out."""
    known = set(loaded.names or ())
    missing = [name for name in loaded.names or () if name not in columns]
    if missing:
        raise FileError(
            f"{source.title} lacks {listed(missing)}, which {loaded.title} was fitted to; it has "
            f"{listed(columns)}. Use data with the same columns.{_renamed(missing, columns)}"
        )
    picked = [*ignore, *([] if target is None else [target])]
    chosen = {columns[name] if isinstance(name, int) else name for name in picked}
    if used := sorted(chosen & known):
        raise FileError(
            f"{listed(used)} is a feature of {loaded.title}: it can be neither target nor ignored."
        )
    others = [name for name in columns if name not in known and name not in chosen]
    named = [name for name in others if name]  # a nameless one holds the numbers of the rows
    if target is None and wants_labels is not False:
        if loaded.target in others:
            target = loaded.target
        elif loaded.target is None and len(named) == 1:
            target = named[0]
        elif wants_labels and isinstance(loaded.target, str):
            other = f"; say --target if it is {listed(named)}" if named else ""
            raise FileError(
                f"{source.title} has no column {loaded.target!r}, which held the classes of {loaded.title}"
                f"{other}; use data with classes ('erm predict' needs none)."
            )
        elif wants_labels and not named:
            raise FileError(
                f"{source.title} has no column besides the features of {loaded.title}, and so no classes; "
                "use data with classes ('erm predict' needs none)."
            )
        elif wants_labels:
            raise FileError(_which_target(source, named))
    if others := [name for name in others if name != target]:
        print(f"erm: ignoring {listed(others)} of {source.title}: no features of the model", file=sys.stderr)
    return target


def _refuse_columns(source: Source, args: argparse.Namespace) -> None:
    """Refuse to choose columns of a LIBSVM file, which has none."""
    for option, value in (("--target", args.target), ("--ignore", args.ignore)):
        if value:
            raise FileError(
                f"{option} chooses a column, but {source.title} is read as {source.format.name.upper()}, "
                "with labels in front of the rows; leave it out, or say what the file is with --format."
            )


def _which_target(source: Source, names: list[str]) -> str:
    candidates = f" It may be {listed(names)}." if names else ""
    return (
        f"say with --target which column of {source.title} holds the classes: its name, or its number from "
        f"0 (-1 is the last).{candidates}"
    )


def target_of(source: Source, columns: list[str] | int | None, args: argparse.Namespace) -> Reading:
    """Return what to read for a fit: there has to be a target."""
    width = getattr(args, "features", None)
    if columns is None:
        _refuse_columns(source, args)
        return source.reading(n_features=width)
    if width is not None:
        raise FileError(
            f"--features is for LIBSVM files; {source.title} is read as {source.format.name}, with a column "
            "for every feature."
        )
    if args.target is None and columns:
        raise FileError(_which_target(source, columns if isinstance(columns, list) else []))
    target = None if args.target is None else column(args.target, columns, source.title)
    ignore = tuple(column(text, columns, source.title) for text in args.ignore)
    return source.reading(target=target, ignore=ignore)


def _warn_if_narrow(X: Matrix, source: Source, loaded: Loaded) -> None:
    """Say that features are not there: they are zero in LIBSVM files, and missing in a wrong file."""
    largest = int(X.indices.max(initial=-1)) + 1
    if largest < loaded.n_features:
        print(
            f"erm: warning: the largest index in {source.title} is {largest}, and {loaded.title} has "
            f"{loaded.n_features} features; those that are not there are read as 0",
            file=sys.stderr,
        )
