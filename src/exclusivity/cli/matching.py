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
    from exclusivity.io._formats import RawTable, Reading
    from exclusivity.problem.arrays import Matrix
    from exclusivity.tables import TableEncoder

_NAMED = 3  # pairs of names in a message


def rows_for(
    loaded: Loaded, path: str, args: argparse.Namespace, progress: Progress, *, wants_labels: bool | None
) -> tuple[Any, Any]:
    """Rows that the model takes, and their labels.

    Parameters
    ----------
    loaded : Loaded
    path : str
        The data.
    args : Namespace
        With the options of ``add_data``, with or without that of ``tables.add_decimal``.
    progress : Progress
    wants_labels : bool or None
        Whether labels are needed (True), not needed (False), or welcome (None).

    Returns
    -------
    X, y : rows, labels or None
    """
    source = Source.of(path, args)
    columns = source.columns()
    encoder = tables.encoder_of(loaded)
    if encoder is not None and source.format.name not in tables.FORMATS:
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
    reading = _reading(loaded, source, columns, args, wants_labels)
    if encoder is None:
        table: Any = source.read(reading, progress)
        X = _ordered(table.data, table.feature_names, loaded)
    else:
        table = source.read_raw(reading, progress)
        X = _table_rows(table, encoder, loaded, source, decimal)
    if X.shape[1] != loaded.n_features:
        raise FileError(
            f"{source.title} has {X.shape[1]} features, but {loaded.title} was fitted to "
            f"{loaded.n_features}; use data with the same features in the same order."
        )
    if columns is None:
        _warn_if_narrow(X, source, loaded)
    return X, None if wants_labels is False else table.labels


def _table_rows(
    raw: RawTable, encoder: TableEncoder, loaded: Loaded, source: Source, decimal: str | None
) -> Any:
    """The columns of a table as the encoder of a model takes them, in its order."""
    own: list[Any] = list(loaded.names or range(loaded.n_features))
    titles = list(raw.names) if loaded.names is not None and raw.names is not None else own
    if len(titles) != len(raw.columns):
        raise FileError(
            f"{source.title} has {len(raw.columns)} features, but {loaded.title} was fitted to "
            f"{loaded.n_features}; use data with the same features in the same order."
        )
    X = tables.as_known(raw, titles, encoder, own, source, decimal)
    return X.take_columns([titles.index(name) for name in own]) if titles != own else X


def _reading(
    loaded: Loaded,
    source: Source,
    columns: list[str] | int | None,
    args: argparse.Namespace,
    wants_labels: bool | None,
) -> Reading:
    if columns is None:
        _refuse_columns(source, args)
        return source.reading(n_features=loaded.n_features)
    target = None if args.target is None else column(args.target, columns, source.title)
    ignore = [column(text, columns, source.title) for text in args.ignore]
    if not columns:
        return source.reading(target, tuple(ignore))
    if isinstance(columns, list) and loaded.names is not None:
        reading = _by_name(loaded, source, columns, target, ignore, wants_labels)
    else:
        reading = _by_count(loaded, source, columns, target, ignore, wants_labels)
    if wants_labels is False and reading.target is not None:  # whatever stands there, missing values too
        return source.reading(None, (*reading.ignore, reading.target))
    return reading


def _renamed(missing: list[str], columns: list[str]) -> str:
    """What the missing columns may be called in the data.

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
    ignore: list[str | int],
    wants_labels: bool | None,
) -> Reading:
    assert loaded.names is not None  # noqa: S101 -- the caller looked
    known = set(loaded.names)
    missing = [name for name in loaded.names if name not in columns]
    if missing:
        raise FileError(
            f"{source.title} lacks {listed(missing)}, which {loaded.title} was fitted to; it has "
            f"{listed(columns)}. Use data with the same columns.{_renamed(missing, columns)}"
        )
    picked = [*ignore, *([] if target is None else [target])]
    chosen = {columns[name] if isinstance(name, int) else name for name in picked}
    used = sorted(chosen & known)
    if used:
        raise FileError(
            f"{listed(used)} is a feature of {loaded.title}: it can be neither target nor ignored."
        )
    others = [name for name in columns if name not in known and name not in chosen]
    if target is None and wants_labels is not False and loaded.target in others:
        target = loaded.target
        others.remove(str(target))
    named = [name for name in others if name]  # a nameless one holds the numbers of the rows
    if target is None and wants_labels and isinstance(loaded.target, str):
        raise FileError(
            f"{source.title} has no column {loaded.target!r}, which held the classes of {loaded.title}"
            f"{_other_target(named)}; use data with classes ('erm predict' needs none)."
        )
    if target is None and wants_labels is not False and loaded.target is None and len(named) == 1:
        target = named[0]
        others.remove(target)
    if target is None and wants_labels and not named:
        raise FileError(
            f"{source.title} has no column besides the features of {loaded.title}, and so no classes; use "
            "data with classes ('erm predict' needs none)."
        )
    if target is None and wants_labels:
        raise FileError(_which_target(source, named))
    if others:
        print(f"erm: ignoring {listed(others)} of {source.title}: no features of the model", file=sys.stderr)
    return source.reading(target, (*ignore, *others))


def _other_target(named: list[str]) -> str:
    return f"; say --target if it is {listed(named)}" if named else ""


def _by_count(
    loaded: Loaded,
    source: Source,
    columns: list[str] | int,
    target: str | int | None,
    ignore: list[str | int],
    wants_labels: bool | None,
) -> Reading:
    count = columns if isinstance(columns, int) else len(columns)
    if target is None and isinstance(loaded.target, int) and count - len(ignore) == loaded.n_features + 1:
        target = loaded.target
    left = count - len(ignore) - (target is not None)
    if wants_labels and target is None:
        raise FileError(_which_target(source, columns if isinstance(columns, list) else []))
    if left != loaded.n_features:
        raise FileError(
            f"{source.title} has {left} columns besides those chosen with --target and --ignore, but "
            f"{loaded.title} was fitted to {loaded.n_features} features, without names; say with --target "
            "and --ignore which columns are no features."
        )
    return source.reading(target, tuple(ignore))


def _refuse_columns(source: Source, args: argparse.Namespace) -> None:
    """A LIBSVM file has no columns to choose from."""
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
    """What to read for a fit: there has to be a target."""
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
    return source.reading(target, tuple(column(text, columns, source.title) for text in args.ignore))


def _warn_if_narrow(X: Matrix, source: Source, loaded: Loaded) -> None:
    """In LIBSVM files features that are not there are zero, but a wrong file looks like that too."""
    largest = int(X.indices.max(initial=-1)) + 1
    if largest < loaded.n_features:
        print(
            f"erm: warning: the largest index in {source.title} is {largest}, and {loaded.title} has "
            f"{loaded.n_features} features; those that are not there are read as 0",
            file=sys.stderr,
        )


def _ordered(data: Any, names: Any, loaded: Loaded) -> Any:
    """The columns in the order of the model."""
    if names is None or loaded.names is None or list(names) == loaded.names:
        return data
    places = {name: place for place, name in enumerate(names)}
    return data[:, [places[name] for name in loaded.names]]
