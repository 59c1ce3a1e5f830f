"""Options of the commands as data, and the parameters of classifiers that they set.

An argument is a tuple of its names, metavar, type (or choices, or None for a switch) and help, and perhaps a
dict with more for ``add_argument``. A tuple of a title and a description begins a group of arguments.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from textwrap import fill
from typing import Any

from exclusivity.cli.files import UsageError
from exclusivity.io.tables import FORMATS

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
DECIMALS = {"comma": ",", "point": "."}
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
    "categorical": "--categorical",
    "categorical_features": "--categorical",
    "columns": "--columns",
}
"""Parameters of classifiers and their methods, and the options that set them."""


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
        message = f"{text!r} is no threat: {known}, or an interval LOW:HIGH; of one column: COLUMN=THREAT"
        raise argparse.ArgumentTypeError(message) from None


MODEL = ("model", "MODEL", str, "model file that 'erm fit' wrote")
DATA = ("data", "DATA", str, "CSV, TSV, Parquet, .npy or LIBSVM; - is stdin")
_SIGNS = "what stands before decimals in all columns of a table (default: by column, as in training)"
ROWS = (
    MODEL,
    DATA,
    ("--decimal", None, tuple(DECIMALS), _SIGNS),
    (
        "--strict",
        None,
        None,
        "refuse absent columns, and texts among numbers or dates (default: missing values)",
    ),
)
"""A model, and rows for it."""

REPORTING = (
    ("--json", None, None, "print one JSON document instead of text"),
    ("-q --quiet", None, None, "no progress on standard error"),
)


def reading(target_help: str, title: str = "reading data") -> tuple[Any, ...]:
    """Return the group of arguments about how to read a data file."""
    repeated: dict[str, Any] = {"action": "extend", "default": []}
    by_name = {"choices": list(DELIMITERS)}
    between = "between the fields of a CSV file; also as ',', ';', '\\t' or '|' (default: by the first line)"
    return (
        (title, None),
        ("--ignore --drop", "COL,...", columns, "columns to leave out (may be repeated)", repeated),
        ("--delimiter", None, delimiter, between, by_name),
        ("--target", "COL", str, target_help),
        ("--format", None, tuple(FORMATS), "format of the data (default: by the file's name)"),
        ("--no-header", None, None, "the first line of a CSV file holds data, not names"),
    )


_CAN = "what they can contain: any (default), increase, decrease, missing, LOW:HIGH; for all or each"
ROBUST_TRAINING = (
    ("predictions that survive broken columns", None),
    ("--max-broken", "R", at_least(0), "a curve per column, trained so that any R may break"),
    ("--threats", "COL=THREAT,...", threats, _CAN),
    ("--trusted", "COL,...", columns, "columns that never break"),
)
"""The model that is trained against broken columns."""

_NONE: dict[str, Any] = {"default": []}
_SCALES = "features to [-1, 1]; mean 0 and deviation 1 (default); or as they are (default for LIBSVM)"
TRAINING = (
    ("the model", None),
    ("--members", "K", int, "members (default: 10)"),
    ("--exclusivity", "G", float, "1: equal members (default); inf: no shared features"),
    ("--voting", "RULE", ("soft", "hard", "runoff"), "soft (default); votes: hard, runoff"),
    ("--loss", "LOSS", str, "hinge (default), smooth_hinge or logistic, which gives probabilities"),
    ("--p", "P", float, "power of the hinge: 1 hinge, 2 squared hinge (default: 2)"),
    ("--sparsity", "B", float, "l1 penalty: zero weights (default: 0)"),
    ("--class-weight", "W", ("balanced", "none"), "balanced (default for votes) or none"),
    ("--multi-class", None, ("ovr", "ovo"), "three or more classes: one-vs-rest (default) or one-vs-one"),
    ("--groups", "FILE", str, "columns that belong together: lines 'feature,group', or a group per line"),
    (
        *("--monotonic", "COLUMN=SIGN,...", per_column("COLUMN=SIGN,...", int)),
        "the score must rise (1) or fall (-1) with these columns",
    ),
    (
        *("--bounds", "COLUMN=LOWER:UPPER,...", per_column("COLUMN=LOWER:UPPER,...", interval)),
        "bounds of the weights of scaled columns; an end may be empty",
    ),
    ("--no-intercept", None, None, "members without an intercept"),
    ("--scale", None, ("minmax", "standard", "none"), _SCALES),
    ("the solver", None),
    ("--solver", None, SOLVERS, "method (default: auto)"),
    ("--tol", "T", float, "relative duality gap to stop at (default: 1e-4; with --max-broken 1e-2)"),
    ("--max-iter", "N", int, "most iterations (default: the method's)"),
    ("--jobs", "J", int, "threads (default: 1); results do not depend on it"),
    ("--seed", "S", at_least(0), "seed of random choices (default: 0)", {"default": 0}),
    (
        "tables",
        "Where a column holds words, dates or missing values, what columns hold is found out and reported: "
        "numbers (also with a decimal comma or per cent signs), categories, dates (2024-12-31).",
    ),
    ("--linear", None, None, "a straight line of every number (default where all columns are numbers)"),
    ("--additive", None, None, "a curve of every number (default of other tables)"),
    ("--categorical", "COL,...", columns, "columns that are categories though they hold numbers", _NONE),
    ("--numeric", "COL,...", columns, "columns that are numbers; texts in them are missing values", _NONE),
    ("--decimal", None, tuple(DECIMALS), "what stands before decimals (default: what cells show)"),
    ("--drop-missing-target", None, None, "leave out rows without a class, and report how many"),
)
"""The model and how it is trained, apart from its cost."""


def add(
    parser: argparse.ArgumentParser, arguments: Sequence[tuple[Any, ...]], common: Sequence[str] | None = None
) -> None:
    """Declare arguments; the help shows all of them, or the ``common`` ones."""
    group: Any = parser
    for names, *rest in arguments:
        if len(rest) == 1:
            text = fill(rest[0], 76) if rest[0] and common is None else None
            group = parser.add_argument_group(names, text)
            continue
        metavar, kind, text, *more = rest
        settings = {"choices" if isinstance(kind, tuple) else "type": kind, "metavar": metavar}
        settings = (settings if kind else {"action": "store_true"}) | (more[0] if more else {})
        action = group.add_argument(*names.split(), help=text, **settings)
        if common is not None and action.dest not in common:
            action.help = argparse.SUPPRESS


def refuse(args: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raise an error about the first of these arguments that is given."""
    for name in names:
        value = getattr(args, name, None)
        if not (value is None or value is False or value == []):
            raise UsageError(f"--{name.replace('_', '-')} {why}")
