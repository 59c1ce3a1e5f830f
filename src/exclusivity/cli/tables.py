"""Tables as they come: what columns hold, what the user says about them, and what was found."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from exclusivity.cli.data import Source, column, listed
from exclusivity.cli.errors import CommandError, FileError
from exclusivity.cli.models import Loaded

if TYPE_CHECKING:
    from exclusivity.cli.progress import Progress
    from exclusivity.datasets import RawTable, Reading
    from exclusivity.tables import ColumnTable, TableEncoder

_MOST_LINES = 60


def columns_in(text: str) -> list[str]:
    """A type for argparse: columns with commas between them.

    Examples
    --------
    >>> columns_in("age, mass")
    ['age', 'mass']
    """
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"must be columns with commas between them; got {text!r}")
    return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """What a user can say about the columns of a table."""
    group = parser.add_argument_group(
        "tables",
        "Where a column holds words, dates or gaps, what columns hold is found out and reported: numbers "
        "(also with a decimal comma or per cent signs), categories, dates (2024-12-31).",
    )
    wanted = "columns with commas between them, by name or number"
    for option, what in (
        ("--categorical", f"{wanted}, that are categories though they hold numbers"),
        ("--numeric", f"{wanted}, that are numbers; texts among them are taken for gaps"),
        ("--drop", f"{wanted}, to leave out; the same as --ignore for each"),
    ):
        group.add_argument(option, metavar="COLS", type=columns_in, default=[], help=what)
    group.add_argument(
        "--additive",
        action="store_true",
        help="members follow a curve of every number instead of a straight line",
    )


def is_asked_for(args: argparse.Namespace) -> bool:
    """Whether options need a table that is read column by column."""
    return bool(args.categorical or args.numeric or args.additive)


def refuse_with_dask(args: argparse.Namespace) -> None:
    """Blocks of rows on workers are numbers only."""
    for option in ("categorical", "numeric", "additive"):
        if getattr(args, option):
            raise CommandError(
                f"--{option} is for data in memory: with --dask all features are numbers. Leave --dask out, "
                "or encode the table before."
            )


def check_options(args: argparse.Namespace) -> None:
    """Options that a table has no use for."""
    if args.groups is not None:
        raise CommandError(
            "--groups is for data of numbers alone: in a table with words, dates or gaps every column is a "
            "group already."
        )
    if args.scale not in (None, "standard"):
        raise CommandError(
            f"--scale {args.scale} is for data of numbers alone: in a table with words, dates or gaps "
            "numbers are standardised; leave --scale out."
        )


def wanted_kinds(args: argparse.Namespace, columns: Any, title: str) -> dict[Any, str]:
    """What the user says columns hold, by name or number of the column in the file."""
    found: dict[Any, str] = {}
    for option, kind in (("categorical", "category"), ("numeric", "number")):
        for text in getattr(args, option):
            name = column(text, columns, title)
            name = columns[name] if isinstance(name, int) and isinstance(columns, list) else name
            if found.get(name, kind) != kind:
                raise CommandError(f"{text!r} is named by --categorical and by --numeric; choose one.")
            found[name] = kind
    return found


def typed(
    raw: RawTable, titles: list[Any], kinds: dict[Any, str], source: Source, *, is_training: bool
) -> tuple[ColumnTable, list[str]]:
    """The columns as numbers, texts and dates, and notes on those that were peculiar."""
    from exclusivity.tables import ColumnTable

    unknown = [name for name in kinds if name not in titles]
    if is_training and unknown:
        raise CommandError(f"{unknown[0]!r} is no feature: it is the target, or left out.")
    columns, notes = [], []
    for name, cells in zip(titles, raw.columns, strict=True):
        values, note = _values(cells, name, kinds.get(name), source, is_training=is_training)
        columns.append(values)
        notes.append(note)
    return ColumnTable(columns), notes


def _values(
    cells: Any, name: object, kind: str | None, source: Source, *, is_training: bool
) -> tuple[Any, str]:
    from exclusivity.datasets import FieldError, read_cells
    from exclusivity.tables import as_texts, column_of_arrow

    if not hasattr(cells, "dtype"):  # a typed column of a Parquet file
        values = column_of_arrow(cells)
        return (as_texts(values) if kind == "category" else values), ""
    try:
        read = read_cells(cells, kind, decimal_comma=source.delimiter != ",", is_training=is_training)
    except FieldError as fault:
        raise FileError(
            f"{source.title}, column {name!r}: {fault.cause}{_way_out(name, is_training)}"
        ) from None
    return read.values, read.note


def _way_out(name: object, is_training: bool) -> str:
    if not is_training:
        return ""
    quoted = shlex.quote(str(name))
    return (
        f" --numeric {quoted} takes what is no number for gaps, --categorical {quoted} takes all for "
        f"categories, --drop {quoted} leaves the column out."
    )


def encoder_of(loaded: Loaded) -> TableEncoder | None:
    """The encoder of a model that takes tables."""
    from exclusivity.tables import TableEncoder

    steps = getattr(loaded.model, "steps", [])
    return steps[0][1] if steps and isinstance(steps[0][1], TableEncoder) else None


def known_kinds(encoder: TableEncoder, titles: list[Any]) -> dict[Any, str]:
    """What a model expects of the columns; dates are texts that it reads itself."""
    kinds = {"number": "number", "category": "category", "date": "category"}
    return {name: kinds[column.kind] for name, column in zip(titles, encoder.columns_, strict=True)}


def read_raw(source: Source, reading: Reading, progress: Progress) -> RawTable:
    """The columns of a file, whatever they hold."""
    if source.format.name not in ("csv", "tsv", "parquet"):
        raise FileError(f"{source.title} is read as {source.format.name}, which has no words, dates or gaps.")
    return source.read_raw(reading, progress)


def document(encoder: TableEncoder, titles: list[Any], notes: list[str]) -> list[dict[str, Any]]:
    """What was found, column by column, for JSON."""
    return [
        {
            "column": title,
            "kind": column.kind,
            "levels": column.n_levels,
            "gaps": column.n_gaps,
            "features": column.width,
            "note": "; ".join(filter(None, [note, column.left_out and f"left out: {column.left_out}"])),
        }
        for title, column, note in zip(titles, encoder.columns_, notes, strict=True)
    ]


def lines_of(found: list[dict[str, Any]]) -> list[list[str]]:
    """The same as rows of a table for people; of many columns the first, and all that have a note."""
    shown = [row for place, row in enumerate(found) if place < _MOST_LINES or row["note"]]
    return [
        [
            str(row["column"]),
            row["kind"],
            "" if row["levels"] is None else str(row["levels"]),
            str(row["gaps"] or ""),
            row["note"],
        ]
        for row in shown
    ]


def left_out(found: list[dict[str, Any]]) -> str:
    """The columns that tell nothing, in one line; empty where there are none."""
    names = [str(row["column"]) for row in found if not row["features"]]
    return listed(names) if names else ""
