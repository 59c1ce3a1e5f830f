"""Tables as they come: what columns hold, what the user says about them, and what was found."""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from exclusivity.cli import output
from exclusivity.cli.data import Source, column, listed
from exclusivity.cli.files import FileError, UsageError
from exclusivity.cli.models import Loaded
from exclusivity.cli.options import CURVES

if TYPE_CHECKING:
    from exclusivity.io._cells import Cells, Expected
    from exclusivity.io._formats import RawTable
    from exclusivity.tables import ColumnTable, TableColumn, TableEncoder

DECIMALS = {"comma": ",", "point": "."}
FORMATS = ("csv", "tsv", "parquet")
"""Of files that may hold words, dates and gaps."""

_MOST_LINES = 60
# More texts than this share of a column's cells are a loss that its owner should know of.
_MANY_LOST = 0.1
# A category with more levels than this, and more than a level for every other row, cannot generalise.
_MANY_LEVELS = 100


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
        "--decimal",
        choices=list(DECIMALS),
        help="what stands before decimals, where a file leaves it open: 1,038 may be 1.038 or 1038 (default: "
        "what other cells show)",
    )
    group.add_argument(
        "--additive",
        action="store_true",
        help="a curve of every number instead of a straight line",
    )


def add_decimal(group: argparse._ArgumentGroup) -> None:
    """--decimal, for rows that a model is used on."""
    group.add_argument(
        "--decimal",
        choices=list(DECIMALS),
        help="what stands before decimals in all columns of numbers of a table (default: in each column what "
        "stood there in training)",
    )


def asked_for_by(args: argparse.Namespace) -> str | None:
    """The first option that needs a table that is read column by column; None where there is none."""
    asked = {option: getattr(args, option) for option in ("categorical", "numeric", *CURVES)}
    asked["decimal comma"] = args.decimal == "comma"
    return next((f"--{option}" for option, value in asked.items() if value), None)


def check_format(args: argparse.Namespace, source: Source) -> None:
    """Refuse options for tables where a file is none."""
    option = asked_for_by(args)
    if option is not None and source.format.name not in FORMATS:
        raise UsageError(
            f"{option} is for tables (CSV, TSV, Parquet), and {source.title} is read as "
            f"{source.format.name}; leave {option} out, or write the rows as a table."
        )


def check_options(args: argparse.Namespace) -> None:
    """Options that a table has no use for."""
    asked = asked_for_by(args)
    where = "in a table with words, dates or gaps" if asked is None else f"with {asked}"
    for option in ("monotonic", "bounds"):
        if getattr(args, option, None) is not None:
            raise UsageError(
                f"--{option} is for data of numbers alone: {where} a column becomes several features. In "
                "Python an ERMClassifier bounds encoded features one by one."
            )
    if args.groups is not None and args.exclusivity <= 1:
        raise UsageError(
            "--groups only matters when members compete for columns; set --exclusivity inf, or leave it out."
        )
    if args.scale not in (None, "standard"):
        raise UsageError(
            f"--scale {args.scale} is for data of numbers alone: {where} numbers are standardised; leave "
            "--scale out."
        )


def wanted_kinds(args: argparse.Namespace, columns: Any, title: str) -> dict[Any, str]:
    """What the user says columns hold, by name or number of the column in the file."""
    found: dict[Any, str] = {}
    for option, kind in (("categorical", "category"), ("numeric", "number")):
        for text in getattr(args, option):
            name = column(text, columns, title)
            name = columns[name] if isinstance(name, int) and isinstance(columns, list) else name
            if found.get(name, kind) != kind:
                raise UsageError(f"{text!r} is named by --categorical and by --numeric; choose one.")
            found[name] = kind
    return found


Find = Callable[[int, int], str]
"""Says in words where a cell stands, by its column and row among those that were handed over."""


def typed(
    raw: RawTable, readers: Mapping[Any, Callable[[Any], Cells]], source: Source, find: Find | None = None
) -> tuple[ColumnTable, list[Cells]]:
    """Return the columns as numbers, texts and dates, and what was peculiar about them.

    Parameters
    ----------
    raw : RawTable
    readers : dict of callables
        What reads each column, by its name or number, in the order of the table.
    source : Source
        Where they come from.
    find : callable, optional
        Where the file and the line of a cell are not those of ``source`` and ``raw.lines``.
    """
    from exclusivity.io._cells import ColumnError
    from exclusivity.tables import ColumnTable

    found = []
    for number, ((name, read), cells) in enumerate(zip(readers.items(), raw.columns, strict=True)):
        try:
            found.append(read(cells))
        except ColumnError as error:
            place = source.title
            if error.row is not None and find is not None:
                place = find(number, error.row)
            elif error.row is not None and raw.lines is not None:
                place = f"{place}, line {raw.lines[error.row]}"
            raise FileError(f"{place}, column {name!r}: {error.cause}{_ways_out(name, error.ways)}") from None
    return ColumnTable([read.values for read in found]), found


def _read_training(cells: Any, expected: Expected) -> Cells:
    """Read a column of text, or a typed one of a Parquet file, of training rows."""
    from exclusivity.io._cells import Cells, ColumnError, read_cells
    from exclusivity.tables import as_texts, column_of_arrow, kind_of

    if not hasattr(cells, "dtype"):
        values: Any = column_of_arrow(cells)
        if expected.kind == "number" and kind_of(values) != "number":
            raise ColumnError(
                "it holds texts or dates by its type, and --numeric is for files of text; write the column "
                "as numbers.",
                ways=("drop",),
            )
        return Cells(as_texts(values) if expected.kind == "category" else values)
    read = read_cells(cells, expected)
    if expected.kind is None and read.notation is None and kind_of(read.values) == "date":
        return Cells(_dates(read.values))
    return read


def _read_known(cells: Any, column: TableColumn, decimal: str) -> Cells:
    """Read a column for a model, each cell by what the model knows of the column and by nothing else."""
    from exclusivity.io._cells import Cells, Expected, Notation, read_by_notation, read_cells
    from exclusivity.tables import as_texts, column_of_arrow

    if not hasattr(cells, "dtype"):
        values: Any = column_of_arrow(cells)
        return Cells(as_texts(values) if column.kind == "category" else values)
    if column.kind == "number":
        return read_by_notation(cells, Notation.of(column.notation or ""), decimal)
    texts = read_cells(cells, Expected("category"))
    return Cells(_dates(texts.values)) if column.kind == "date" else texts


def _dates(values: Any) -> Any:
    """Texts as dates, None for gaps; an error names the row of the first that is none."""
    from exclusivity.io._cells import ColumnError, dates_among
    from exclusivity.tables import CellError, as_dates

    try:
        return as_dates(values)
    except CellError as error:
        text = values[error.row]
        hint = dates_among([text])
        form = "2024-12-31 or 2024-12-31 23:59:00" if hint is None else hint[1]
        cause = f"found {text!r}; expected a date written as {form}, or nothing."
        raise ColumnError(cause, error.row) from None


def _ways_out(name: object, ways: tuple[str, ...]) -> str:
    """The options that would make something of a column."""
    quoted = shlex.quote(str(name))
    known = {
        "decimal": "--decimal comma or --decimal point says which it is",
        "numeric": f"--numeric {quoted} takes what is no number for gaps",
        "categorical": f"--categorical {quoted} takes all for categories",
        "drop": f"--drop {quoted} leaves the column out",
    }
    return f" {', '.join(known[way] for way in ways)}." if ways else ""


def as_trained(
    raw: RawTable,
    titles: list[Any],
    kinds: dict[Any, str],
    args: Any,
    source: Source,
    find: Find | None = None,
) -> Any:
    """The columns of training rows; see ``typed``."""
    from exclusivity.io._cells import Expected, decimal_of_file

    check_wanted(kinds, titles)
    texts = [cells for cells in raw.columns if hasattr(cells, "dtype")]
    if args.decimal is not None and not texts:
        raise UsageError(f"--decimal is for text, but {source.title} is read as {source.format.name}.")
    numbers = [
        cells for name, cells in zip(titles, texts, strict=bool(texts)) if kinds.get(name) != "category"
    ]
    decimal = DECIMALS.get(args.decimal) or decimal_of_file(numbers, source.delimiter)
    readers = {name: partial(_read_training, expected=Expected(kinds.get(name), decimal)) for name in titles}
    return typed(raw, readers, source, find)


def check_wanted(kinds: dict[Any, str], titles: list[Any]) -> None:
    """Refuse words about columns that are no features."""
    unknown = [name for name in kinds if name not in titles]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is no feature: it is the target, or left out.")


def check_typed(wanted: str | None, kind: str, name: object, source: Source) -> None:
    """Refuse to take texts for numbers where a file says that they are texts."""
    if wanted == "number" and kind != "number":
        raise FileError(
            f"{source.title}, column {name!r}: it holds texts or dates by its type, and --numeric is for "
            "files of text; write the column as numbers, or leave it out with --drop."
        )


def said_to_be_categories(titles: list[Any], kinds: dict[Any, str]) -> list[int] | None:
    """Places of the columns that are categories by decree, whatever they look like."""
    return [place for place, name in enumerate(titles) if kinds.get(name) == "category"] or None


def warn_of_losses(titles: list[Any], found: list[Cells], n_rows: int) -> None:
    """Say where many texts were taken for gaps."""
    for name, read in zip(titles, found, strict=True):
        if read.n_lost > _MANY_LOST * n_rows:
            warnings.warn(
                f"column {name!r}: {read.n_lost} of {n_rows} cells are no numbers and are taken for gaps "
                "(--numeric).",
                UserWarning,
                stacklevel=2,
            )


def as_known(
    raw: RawTable,
    titles: list[Any],
    encoder: TableEncoder,
    own: list[Any],
    source: Source,
    decimal: str | None = None,
) -> Any:
    """Return the columns of rows for a model that calls its own by these names; see ``typed``.

    How a cell is read depends on the model, on ``decimal`` and on that cell alone.
    """
    from exclusivity.io._cells import counted

    if decimal is not None and not all(hasattr(cells, "dtype") for cells in raw.columns):
        raise UsageError(f"--decimal is for text, but {source.title} is read as {source.format.name}.")
    columns = dict(zip(own, encoder.columns_, strict=True))
    sign = "" if decimal is None else DECIMALS[decimal]
    readers = {name: partial(_read_known, column=columns[name], decimal=sign) for name in titles}
    table, found = typed(raw, readers, source)
    for name, read in zip(titles, found, strict=True):
        if columns[name].kind == "category":
            _tell_new_levels(columns[name], name, read.values, source)
        elif read.n_lost:
            print(
                f"erm: column {name!r} of {source.title}: {counted(read.n_lost, 'text')} taken for gaps, as "
                "in training (--numeric)",
                file=sys.stderr,
            )
    return table


def _tell_new_levels(column: TableColumn, name: object, values: Any, source: Source) -> None:
    """Say how many rows have levels that the training rows did not have: they count as none."""
    import numpy as np

    from exclusivity.io._cells import counted
    from exclusivity.tables import LevelCode, as_levels

    if not isinstance(column.code, LevelCode):
        return
    n_known = len(column.code.levels) + len(column.code.rare)
    if column.n_levels is not None and column.n_levels > n_known:
        return  # the rarest of very many are not kept
    codes, levels = as_levels(values)
    new = [place for place, level in enumerate(levels) if level not in column.code.places]
    if new:
        rows = counted(int(np.isin(codes, new).sum()), "row")
        print(
            f"erm: column {name!r} of {source.title}: {rows} with {counted(len(new), 'level')} that training "
            f"did not have, such as {levels[new[0]]!r}; they count as no level",
            file=sys.stderr,
        )


def warn_of_levels(encoder: TableEncoder, titles: list[Any], n_rows: int) -> None:
    """Say which categories have nearly a level for every row, as what is none tends to have."""
    for title, learned in zip(titles, encoder.columns_, strict=True):
        levels = learned.n_levels or 0
        if learned.width and levels > _MANY_LEVELS and 2 * levels > n_rows - learned.n_gaps:
            warnings.warn(
                f"column {title!r} has {levels} distinct values in {n_rows} rows and cannot generalise. "
                "Numbers or dates that are written in an unusual way? --drop "
                f"{shlex.quote(str(title))} leaves it out.",
                UserWarning,
                stacklevel=2,
            )


def remember(encoder: TableEncoder, found: list[Cells]) -> None:
    """Let a fitted encoder know how the numbers of its columns were written."""
    encoder.columns_ = [
        replace(column, notation=None if read.notation is None else read.notation.tag)
        for column, read in zip(encoder.columns_, found, strict=True)
    ]


def encoder_of(loaded: Loaded) -> TableEncoder | None:
    """The encoder of a model that takes tables."""
    from exclusivity.tables import TableEncoder

    steps = getattr(loaded.model, "steps", [])
    return steps[0][1] if steps and isinstance(steps[0][1], TableEncoder) else None


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


def columns_of(loaded: Loaded) -> list[dict[str, Any]] | None:
    """What a model knows about the columns of tables; None where it takes numbers alone."""
    from exclusivity.io._cells import Notation

    encoder = encoder_of(loaded)
    if encoder is None:
        return None
    notes = [Notation.of(column.notation).note if column.notation else "" for column in encoder.columns_]
    return document(encoder, list(loaded.names or range(encoder.n_features_in_)), notes)


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


def print_columns(found: list[dict[str, Any]] | None) -> None:
    """What the columns of a table hold, for people."""
    if found is not None:
        print()
        headings = ["column", "holds", "levels", "gaps", "note"]
        output.print_table(headings, lines_of(found), ends_with_words=True)


def left_out(found: list[dict[str, Any]]) -> str:
    """The columns that tell nothing, in one line; empty where there are none."""
    names = [str(row["column"]) for row in found if not row["features"]]
    return listed(names) if names else ""
