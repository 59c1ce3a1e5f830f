"""Tables with text, dates and missing values: what the user says about columns, and what was found."""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from exclusivity.cli import output
from exclusivity.cli.data import Source, column
from exclusivity.cli.files import FileError, UsageError
from exclusivity.cli.models import Loaded
from exclusivity.cli.options import CURVES

if TYPE_CHECKING:
    from exclusivity.io._cells import ColumnRule
    from exclusivity.io._reading import Content
    from exclusivity.tables import ColumnTable, TableColumn, TableEncoder

DECIMALS = {"comma": ",", "point": "."}
_MOST_LINES = 60
# More texts than this share of a column's cells are a loss that its owner should know of.
_MANY_LOST = 0.1
# A category with more levels than this, and more than a level for every other row, cannot generalise.
_MANY_LEVELS = 100


@dataclass(frozen=True)
class Found:
    """What was found in a column of training rows: how it is written, and texts taken for missing values."""

    rule: ColumnRule | None = None
    remark: str = ""
    n_lost: int = 0

    @property
    def note(self) -> str:
        """All that is peculiar about the column, or ""."""
        from exclusivity.io._cells import counted

        lost = f"{counted(self.n_lost, 'text')} taken for missing values" if self.n_lost else ""
        return ", ".join(filter(None, [self.remark, lost]))


def columns_in(text: str) -> list[str]:
    """Return columns with commas between them; a type for argparse.

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
    """Add what a user can say about the columns of a table."""
    group = parser.add_argument_group(
        "tables",
        "Where a column holds words, dates or missing values, what columns hold is found out and reported: "
        "numbers (also with a decimal comma or per cent signs), categories, dates (2024-12-31).",
    )
    wanted = "columns with commas between them, by name or number"
    for option, what in (
        ("--categorical", f"{wanted}, that are categories though they hold numbers"),
        ("--numeric", f"{wanted}, that are numbers; texts among them are taken for missing values"),
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
    """Add --decimal, for rows that a model is used on."""
    group.add_argument(
        "--decimal",
        choices=list(DECIMALS),
        help="what stands before decimals in all columns of numbers of a table (default: in each column what "
        "stood there in training)",
    )


def asked_for_by(args: argparse.Namespace) -> str | None:
    """Return the first option that needs a table that is read column by column; None where there is none."""
    asked = {option: getattr(args, option) for option in ("categorical", "numeric", *CURVES)}
    asked["decimal comma"] = args.decimal == "comma"
    return next((f"--{option}" for option, value in asked.items() if value), None)


def settings_of(args: argparse.Namespace, source: Source, columns: Any) -> dict[str, Any]:
    """Return the settings of a reader that the options give; refuse them where a file is no table."""
    option = asked_for_by(args)
    if option is not None and not source.format.has_columns:
        raise UsageError(
            f"{option} is for tables (CSV, TSV, Parquet), and {source.title} is read as "
            f"{source.format.name}; leave {option} out, or write the rows as a table."
        )
    if option is None:
        return {"decimal": decimal_of(args.decimal, source)}
    check_options(args)
    kinds = _wanted_kinds(args, columns, source.title)
    return {"mixed": True, "kinds": kinds, "decimal": decimal_of(args.decimal, source)}


def decimal_of(option: str | None, source: Source) -> str:
    """Return the decimal sign that --decimal says; refuse it where a file has no text."""
    if option is not None and not source.format.is_text:
        raise UsageError(f"--decimal is for text, but {source.title} is read as {source.format.name}.")
    return "" if option is None else DECIMALS[option]


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that a table has no use for."""
    asked = asked_for_by(args)
    where = "in a table with words, dates or missing values" if asked is None else f"with {asked}"
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


def _wanted_kinds(args: argparse.Namespace, columns: Any, title: str) -> dict[str | int, str]:
    """Return what the user says features hold, by name or number of the column in the file."""
    named = range(columns) if isinstance(columns, int) else columns or []

    def title_of(text: str) -> str | int:
        found = column(text, columns, title)
        return named[found] if isinstance(found, int) else found

    apart = {title_of(text) for text in [*args.ignore, *([] if args.target is None else [args.target])]}
    found: dict[str | int, str] = {}
    for option, kind in (("categorical", "category"), ("numeric", "number")):
        for text in getattr(args, option):
            name = title_of(text)
            if name in apart:
                raise UsageError(f"{name!r} is no feature: it is the target, or left out.")
            if found.setdefault(name, kind) != kind:
                raise UsageError(f"{text!r} is named by --categorical and by --numeric; choose one.")
    return found


def column_table(content: Content) -> ColumnTable:
    """Return columns as the encoder of tables takes them."""
    from exclusivity.tables import ColumnTable, column_of_arrow

    return ColumnTable([each if hasattr(each, "dtype") else column_of_arrow(each) for each in content.data])


def found_in(content: Content, kinds: Any, source: Source) -> list[Found]:
    """Return what was found in the columns of training rows, with a warning where many texts were lost."""
    from exclusivity.tables import kind_of

    if not content.rules:  # typed columns
        for name, data in zip(content.titles, column_table(content).columns, strict=True):
            check_typed(kinds.get(name), kind_of(data), name, source.title)
        return [Found()] * len(content.data)
    return [Found(*each) for each in zip(content.rules, content.remarks, content.n_lost, strict=True)]


def check_typed(wanted: str | None, kind: str, name: object, title: str) -> None:
    """Refuse to take texts for numbers where a file says that they are texts."""
    if wanted == "number" and kind != "number":
        raise FileError(
            f"{title}, column {name!r}: it holds texts or dates by its type, and --numeric is for "
            "files of text; write the column as numbers, or leave it out with --drop."
        )


def said_to_be_categories(titles: list[Any], kinds: Any) -> list[int] | None:
    """Return the places of the columns that are categories by decree, whatever they look like."""
    return [place for place, name in enumerate(titles) if kinds.get(name) == "category"] or None


def warn_of_losses(titles: list[Any], found: list[Found], n_rows: int) -> None:
    """Say where many texts were taken for missing values."""
    for name, read in zip(titles, found, strict=True):
        if read.n_lost > _MANY_LOST * n_rows:
            warnings.warn(
                f"column {name!r}: {read.n_lost} of {n_rows} cells are no numbers and are taken for missing "
                "values (--numeric).",
                UserWarning,
                stacklevel=2,
            )


def rules_of(loaded: Loaded) -> dict[str | int, ColumnRule]:
    """Return how a model reads its columns; numbers alone where it has no encoder."""
    from exclusivity.io._cells import ColumnRule

    encoder = encoder_of(loaded)
    names: list[Any] = list(loaded.names or range(loaded.n_features))
    if encoder is None:
        return dict.fromkeys(names, ColumnRule("number", ".", required=True))
    columns = zip(names, encoder.columns_, strict=True)
    return {name: ColumnRule(known.kind, known.notation or "") for name, known in columns}


def tell_of_rows(content: Content, table: ColumnTable, encoder: TableEncoder, source: Source) -> None:
    """Say what a model makes of texts among numbers, and of levels that training did not have."""
    from exclusivity.io._cells import counted

    n_lost = content.n_lost or [0] * len(table.columns)
    for name, known, values, lost in zip(
        content.titles, encoder.columns_, table.columns, n_lost, strict=True
    ):
        if known.kind == "category":
            _tell_new_levels(known, name, values, source)
        elif lost:
            print(
                f"erm: column {name!r} of {source.title}: {counted(lost, 'text')} taken for missing values, "
                "as in training (--numeric)",
                file=sys.stderr,
            )


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
        if learned.width and levels > _MANY_LEVELS and 2 * levels > n_rows - learned.n_missing:
            warnings.warn(
                f"column {title!r} has {levels} distinct values in {n_rows} rows and cannot generalise. "
                "Numbers or dates that are written in an unusual way? --drop "
                f"{shlex.quote(str(title))} leaves it out.",
                UserWarning,
                stacklevel=2,
            )


def remember(encoder: TableEncoder, found: list[Found]) -> None:
    """Let a fitted encoder know how the numbers of its columns were written."""
    encoder.columns_ = [
        replace(known, notation=(read.rule.notation or None) if read.rule else None)
        for known, read in zip(encoder.columns_, found, strict=True)
    ]


def encoder_of(loaded: Loaded) -> TableEncoder | None:
    """Return the encoder of a model that takes tables."""
    from exclusivity.tables import TableEncoder

    steps = getattr(loaded.model, "steps", [])
    return steps[0][1] if steps and isinstance(steps[0][1], TableEncoder) else None


def document(encoder: TableEncoder, titles: list[Any], notes: list[str]) -> list[dict[str, Any]]:
    """Return what was found, column by column, for JSON."""
    return [
        {
            "column": title,
            "kind": column.kind,
            "levels": column.n_levels,
            "gaps": column.n_missing,
            "features": column.width,
            "note": "; ".join(filter(None, [note, column.left_out and f"left out: {column.left_out}"])),
        }
        for title, column, note in zip(titles, encoder.columns_, notes, strict=True)
    ]


def columns_of(loaded: Loaded) -> list[dict[str, Any]] | None:
    """Return what a model knows about the columns of tables; None where it takes numbers alone."""
    encoder = encoder_of(loaded)
    if encoder is None:
        return None
    rules = rules_of(loaded)
    return document(encoder, list(rules), [rule.note for rule in rules.values()])


def print_columns(found: list[dict[str, Any]] | None) -> None:
    """Print what the columns of a table hold; of many columns the first, and all that have a note."""
    if found is None:
        return
    print()
    lines = [
        [
            str(row["column"]),
            row["kind"],
            "" if row["levels"] is None else str(row["levels"]),
            str(row["gaps"] or ""),
            row["note"],
        ]
        for place, row in enumerate(found)
        if place < _MOST_LINES or row["note"]
    ]
    output.print_table(["column", "holds", "levels", "missing", "note"], lines, ends_with_words=True)
