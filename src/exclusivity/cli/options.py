"""Options of the commands, and the parameters of classifiers that they set."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
DECIMALS = {"comma": ",", "point": "."}
FORMATS = ("libsvm", "csv", "tsv", "parquet", "npy")
SOLVERS = ("auto", "newton", "alm", "paper", "exclusive")
THREATS = ("any", "trusted", "increase", "decrease", "missing")

_SHARED = {"C": "cost", "loss": "loss", "tol": "tol", "max_iter": "max_iter", "n_jobs": "jobs"}
LINEAR_ONLY = {
    "n_estimators": "members",
    **{name: name for name in ("p", "exclusivity", "sparsity", "voting", "solver", "multi_class")},
}
LINEAR = {**_SHARED, **LINEAR_ONLY, "random_state": "seed"}
ROBUST = {**_SHARED, "max_broken": "max_broken"}
"""Parameters of the classifiers and the arguments that hold their values; None: not given."""

OPTIONS = {
    **{name: "--" + argument.replace("_", "-") for name, argument in (LINEAR | ROBUST).items()},
    "feature_groups": "--groups",
    "coef_bounds": "--bounds",
    "monotonic_cst": "--monotonic",
    "class_weight": "--class-weight",
    "threats": "--threats",
    "Cs": "--costs",
    "cv": "--folds",
    "fit_intercept": "--no-intercept",
}
"""Parameters of classifiers and the options that set them."""


def at_least(least: int) -> Callable[[str], int]:
    """Return a type for argparse: a whole number of at least ``least``."""

    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError
        return value

    parse.__name__ = f"whole number >= {least}"  # which argparse puts into its message
    return parse


COUNT = at_least(1)


def numbers(text: str) -> list[float]:
    """Parse numbers with commas between them."""
    return [float(part) for part in text.split(",")]


def columns(text: str) -> list[str]:
    """Parse columns with commas between them.

    Examples
    --------
    >>> columns("age, mass")
    ['age', 'mass']
    """
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"must be columns with commas between them; got {text!r}")
    return found


def delimiter(text: str) -> str:
    """Return the name of a delimiter, which may be given as itself."""
    names = {character: name for name, character in DELIMITERS.items()}
    return names.get(text.replace("\\t", "\t"), text)


def per_column(form: str, parse: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    """Return a type for argparse: values of columns, written as ``form``."""

    def pairs(text: str) -> dict[str, Any]:
        parts = [part.rpartition("=") for part in text.split(",")]
        found = {name.strip(): parse(value) for name, _, value in parts}
        if len(found) < len(parts):  # a column is there twice
            raise ValueError
        return found

    pairs.__name__ = form
    return pairs


def interval(text: str) -> tuple[float, float]:
    """Parse two ends with a colon between them, either of which may be left out."""
    lower, upper = text.split(":")
    return float(lower or -math.inf), float(upper or math.inf)


def threats(text: str) -> Any:
    """Parse one threat for all columns, or threats by column: a word, or an interval.

    Examples
    --------
    >>> threats("missing"), threats("dose=0:5,age=trusted")
    ('missing', {'dose': (0.0, 5.0), 'age': 'trusted'})
    """
    return per_column("COLUMN=THREAT,...", _threat)(text) if "=" in text else _threat(text)


def _threat(text: str) -> Any:
    if text in THREATS:
        return text
    try:
        return interval(text)
    except ValueError:
        known = ", ".join(THREATS)
        raise argparse.ArgumentTypeError(f"{text!r} is no threat: {known}, or an interval LOW:HIGH") from None


def add(group: Any, *options: tuple[str, str | None, Any, str]) -> None:
    """Declare options: names, metavar, type (or choices, or None for a switch) and help."""
    for names, metavar, kind, text in options:
        settings = {"choices" if isinstance(kind, tuple) else "type": kind, "metavar": metavar}
        group.add_argument(*names.split(), help=text, **settings if kind else {"action": "store_true"})


def add_model(parser: argparse.ArgumentParser) -> None:
    """Declare MODEL."""
    parser.add_argument("model", metavar="MODEL", help="model file that 'erm fit' wrote")


def add_data(parser: argparse.ArgumentParser, target_help: str, *, several: bool = False) -> None:
    """Declare DATA, or ``several`` of them, and how to read it."""
    help_text = "CSV, TSV, Parquet, .npy or LIBSVM; - is stdin"
    parser.add_argument("data", metavar="DATA", nargs="+" if several else None, help=help_text)
    add_reading(parser.add_argument_group("reading data"), target_help)


def add_rows(parser: argparse.ArgumentParser, target_help: str) -> None:
    """Declare MODEL, and DATA as rows for it."""
    add_model(parser)
    add_data(parser, target_help)
    add_leniency(parser)


def add_reading(group: argparse._ArgumentGroup, target_help: str) -> None:
    """Declare how to read a data file."""
    text = "a column to leave out (may be repeated)"
    group.add_argument("--ignore", metavar="COL", action="append", default=[], help=text)
    text = "between the fields of a CSV file; also as ',', ';', '\\t' or '|' (default: by the first line)"
    group.add_argument("--delimiter", choices=list(DELIMITERS), type=delimiter, help=text)
    add(
        group,
        ("--target", "COL", str, target_help),
        ("--format", None, FORMATS, "format of the data (default: by the file's name)"),
        ("--no-header", None, None, "the first line of a CSV file holds data, not names"),
    )


def add_leniency(parser: argparse.ArgumentParser) -> None:
    """Declare how to read rows that a model is used on."""
    signs = "what stands before decimals in all columns of a table (default: by column, as in training)"
    strict = "refuse absent columns, and texts among numbers or dates (default: missing values, reported)"
    add(parser, ("--decimal", None, tuple(DECIMALS), signs), ("--strict", None, None, strict))


def add_reporting(parser: argparse.ArgumentParser) -> None:
    """Declare --json and --quiet."""
    add(parser, ("--json", None, None, "print one JSON document instead of text"))
    add(parser, ("-q --quiet", None, None, "no progress on standard error"))


def add_training(parser: argparse.ArgumentParser) -> None:
    """Declare the model and how it is trained, apart from its cost."""
    signs, bounds = "COLUMN=SIGN,...", "COLUMN=LOWER:UPPER,..."
    scales = "features to [-1, 1]; mean 0 and deviation 1 (default); or as they are (default for LIBSVM)"
    shapes = per_column(signs, int), per_column(bounds, interval)
    add(
        parser.add_argument_group("the model"),
        ("--members", "K", int, "members (default: 10)"),
        ("--exclusivity", "G", float, "1: equal members (default); inf: no shared features"),
        ("--voting", "RULE", ("soft", "hard", "runoff"), "soft (default); votes: hard, runoff"),
        ("--loss", "LOSS", str, "hinge (default), smooth_hinge or logistic, which gives probabilities"),
        ("--p", "P", float, "power of the hinge: 1 hinge, 2 squared hinge (default: 2)"),
        ("--sparsity", "B", float, "l1 penalty: zero weights (default: 0)"),
        ("--class-weight", "W", ("balanced", "none"), "balanced (default for votes) or none"),
        ("--multi-class", None, ("ovr", "ovo"), "three or more classes: one-vs-rest (default) or one-vs-one"),
        ("--groups", "FILE", str, "columns that belong together: lines 'feature,group', or a group per line"),
        ("--monotonic", signs, shapes[0], "the score must rise (1) or fall (-1) with these columns"),
        ("--bounds", bounds, shapes[1], "bounds of the weights of scaled columns; an end may be empty"),
        ("--no-intercept", None, None, "members without an intercept"),
        ("--scale", None, ("minmax", "standard", "none"), scales),
    )
    add(
        parser.add_argument_group("the solver"),
        ("--solver", None, SOLVERS, "method (default: auto)"),
        ("--tol", "T", float, "relative duality gap to stop at (default: 1e-4; with --max-broken 1e-2)"),
        ("--max-iter", "N", int, "most iterations (default: the method's)"),
        ("--jobs", "J", int, "threads (default: 1); results do not depend on it"),
        ("--seed", "S", at_least(0), "seed of random choices (default: 0)"),
    )
    parser.set_defaults(seed=0, drop=[], categorical=[], numeric=[])
    group = parser.add_argument_group(
        "tables",
        "Where a column holds words, dates or missing values, what columns hold is found out and reported: "
        "numbers (also with a decimal comma or per cent signs), categories, dates (2024-12-31).",
    )
    add(
        group,
        ("--categorical", "COL,...", columns, "columns that are categories though they hold numbers"),
        ("--numeric", "COL,...", columns, "columns that are numbers; texts among them are missing values"),
        ("--drop", "COL,...", columns, "columns to leave out; the same as --ignore for each"),
        ("--decimal", None, tuple(DECIMALS), "what stands before decimals (default: what cells show)"),
        ("--drop-missing-target", None, None, "leave out rows without a class, and report how many"),
        ("--additive", None, None, "a curve of every number instead of a straight line"),
    )


def add_robust(parser: argparse.ArgumentParser) -> None:
    """Declare the model that is trained against broken columns."""
    what = "what they can contain: any (default), increase, decrease, missing, LOW:HIGH; for all or each"
    text = "a curve per column, trained so that any R may break"
    add(
        parser.add_argument_group("predictions that survive broken columns"),
        ("--max-broken", "R", at_least(0), text),
        ("--threats", "COL=THREAT,...", threats, what),
        ("--trusted", "COL,...", columns, "columns that never break"),
    )
