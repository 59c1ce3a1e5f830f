"""Columns of training tables: what the user says about them, and what was found."""

from __future__ import annotations

import argparse
import shlex
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from exclusivity.cli.data import Source, counted, decimal_of
from exclusivity.cli.files import FileError, UsageError

if TYPE_CHECKING:
    from exclusivity.io import Table

# More texts than this share of a column's cells are a loss that its owner should know of.
_MANY_LOST = 0.1
# A category with more levels than this, and more than a level for every other row, cannot generalise.
_MANY_LEVELS = 100
# Among fewer rows whole numbers may well be different by chance.
_FEW_ROWS = 20


def asked_for_by(args: argparse.Namespace) -> str | None:
    """Return the first option that needs a table that is read column by column; None where there is none."""
    asked = {option: getattr(args, option) for option in ("categorical", "numeric", "additive")}
    asked["decimal comma"] = args.decimal == "comma"
    asked["max-broken"] = getattr(args, "max_broken", None) is not None
    return next((f"--{option}" for option, value in asked.items() if value), None)


def reading_settings(
    args: argparse.Namespace, source: Source, columns: Any, apart: list[Any]
) -> dict[str, Any]:
    """Return the arguments of ``read_table`` that the options give; ``apart`` are no features."""
    option = asked_for_by(args)
    if option is not None and not source.format.has_columns:
        raise UsageError(
            f"{option} is for tables (CSV, TSV, Parquet), and {source.title} is read as "
            f"{source.format.name}; leave {option} out, or write the rows as a table."
        )
    found: dict[str, Any] = {"decimal": decimal_of(args.decimal, source)}
    for kind in ("categorical", "numeric"):
        found[kind] = [source.column(text, columns) for text in getattr(args, kind)]
        if wrong := [name for name in found[kind] if name in apart]:
            raise UsageError(f"{wrong[0]!r} is no feature: it is the target, or left out.")
    if both := [name for name in found["categorical"] if name in found["numeric"]]:
        raise UsageError(f"{both[0]!r} is named by --categorical and by --numeric; choose one.")
    return found


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that the encoding of a table has no use for."""
    if getattr(args, "max_broken", None) is not None:
        return
    asked = asked_for_by(args)
    where = "in a table with words, dates or missing values" if asked is None else f"with {asked}"
    for option in ("monotonic", "bounds"):
        if getattr(args, option) is not None:
            raise UsageError(
                f"--{option} is for data of numbers alone: {where} a column becomes several features. In "
                "Python an ERMClassifier bounds encoded features one by one."
            )
    if args.groups is not None and (args.exclusivity or 1) <= 1:
        raise UsageError(
            "--groups only matters when members compete for columns; set --exclusivity inf, or leave it out."
        )
    if args.scale not in (None, "standard"):
        raise UsageError(
            f"--scale {args.scale} is for data of numbers alone: {where} numbers are standardised; leave "
            "--scale out."
        )


def is_plain(table: Table) -> bool:
    """Return whether a table holds plain numbers alone, and none is missing."""
    data = table.data
    if not hasattr(data, "iloc"):
        return True
    return (
        all(rule.kind == "number" and rule.notation in ("", ".") for rule in table.rules.values())
        and all(dtype.kind == "f" for dtype in data.dtypes)
        and not data.isna().to_numpy().any()
    )


def check_typed(table: Table, numeric: list[Any], title: str) -> None:
    """Refuse to take texts for numbers where a file says that they are texts."""
    from exclusivity.tables.cells import column_of, kind_of

    for name in numeric:
        if not table.rules and kind_of(column_of(table.data[[name]], 0)) != "number":
            raise FileError(
                f"{title}, column {name!r}: it holds texts or dates by its type, and --numeric is for "
                "files of text; write the column as numbers, or leave it out with --drop."
            )


def row_names(X: Any) -> list[int]:
    """Return the places of columns with another whole number in every row, as identifiers have."""
    import numpy as np

    n_rows, n_columns = X.shape
    if hasattr(X, "toarray"):  # one row may be a zero
        full = np.flatnonzero(np.bincount(X.indices, minlength=n_columns) >= n_rows - 1)
    else:
        full = np.flatnonzero(
            [not hasattr(X, "iloc") or X.dtypes.iloc[j].kind == "f" for j in range(n_columns)]
        )
    found = []
    for place in full.tolist() if n_rows >= _FEW_ROWS else []:
        cells = X.iloc[:, place].to_numpy() if hasattr(X, "iloc") else X[:, place]
        cells = cells.toarray().ravel() if hasattr(cells, "toarray") else cells
        start = cells[:_FEW_ROWS]  # settles nearly every column
        if all(
            len(np.unique(some)) == len(some) and (some == np.rint(some)).all() for some in (start, cells)
        ):
            found.append(place)
    return found


def warn_of_row_names(places: list[int], titles: list[Any], n_rows: int) -> None:
    """Warn of columns that may name the rows. Features of LIBSVM files have no titles, but numbers from 1."""
    for place in places:
        what, way_out = f"feature {place + 1}", "if it is one, write the file without it"
        if titles:
            what = f"column {titles[place]!r}"
            way_out = f"--ignore {shlex.quote(str(titles[place]))} leaves it out"
        _warn(
            f"{what} has another whole number in each of the {n_rows} rows, as identifiers have and few "
            f"features do; {way_out}."
        )


def warn_of_losses(table: Table) -> None:
    """Warn of columns where many texts were taken for missing values."""
    for name, lost in table.n_lost.items():
        if lost > _MANY_LOST * len(table.data):
            _warn(
                f"column {name!r}: {lost} of {len(table.data)} cells are no numbers and are taken for "
                "missing values (--numeric)."
            )


def warn_of_levels(columns: list[Any], titles: list[Any], n_rows: int) -> None:
    """Warn of categories of an encoder with nearly a level for every row, which are often something else."""
    for title, column in zip(titles, columns, strict=True):
        levels = column.n_levels or 0
        if column.width and levels > _MANY_LEVELS and 2 * levels > n_rows - column.n_gaps:
            _warn(
                f"column {title!r} has {levels} distinct values in {n_rows} rows and cannot generalise. "
                f"Numbers or dates that are written in an unusual way? --drop {shlex.quote(str(title))} "
                "leaves it out."
            )


def remember_notation(model: Any, table: Table) -> None:
    """Keep in an encoder or a robust model how the numbers of its columns were written."""
    if table.rules:
        model.columns_ = [
            replace(column, notation=rule.notation or None)
            for column, rule in zip(model.columns_, table.rules.values(), strict=True)
        ]


def describe(columns: list[Any], titles: list[Any], table: Table | None = None) -> list[dict[str, Any]]:
    """Return what is known of the columns of a model, one by one; with the table it was fitted to, more."""
    from exclusivity.io._cells import ColumnRule

    found = []
    for title, column in zip(titles, columns, strict=True):
        notes = [ColumnRule(column.kind, column.notation or "").note]
        if table is not None:
            lost = table.n_lost.get(title, 0)
            notes = [
                table.remarks.get(title, ""),
                f"{counted(lost, 'text')} taken for missing values" * (lost > 0),
            ]
        left_out = getattr(column, "left_out", "")
        found.append(
            {
                "column": title,
                "kind": column.kind,
                "levels": column.n_levels,
                "missing": getattr(column, "n_gaps", 0) or None,
                "features": getattr(column, "width", 1),
                "note": "; ".join(
                    filter(None, [", ".join(filter(None, notes)), left_out and f"left out: {left_out}"])
                ),
            }
        )
    return found


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)
