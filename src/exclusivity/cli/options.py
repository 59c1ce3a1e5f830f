"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from exclusivity.cli.data import DELIMITERS, FORMATS

SOLVERS = ("auto", "newton", "alm", "paper", "exclusive")

_SAME_NAME = ("loss", "p", "exclusivity", "sparsity", "voting", "solver", "tol", "max_iter", "multi_class")
PARAMETERS = {
    "n_estimators": "members",
    "C": "cost",
    "random_state": "seed",
    "n_jobs": "jobs",
    **{name: name for name in _SAME_NAME},
}
"""Parameters of a classifier and the arguments that hold their values."""

OPTIONS = {
    **{name: "--" + argument.replace("_", "-") for name, argument in PARAMETERS.items()},
    "feature_groups": "--groups",
    "coef_bounds": "--bounds",
    "monotonic_cst": "--monotonic",
    "class_weight": "--class-weight",
    "Cs": "--costs",
    "cv": "--folds",
    "fit_intercept": "--no-intercept",
}
"""Parameters of classifiers and the options that set them."""

CURVES = ("additive", "interactions")
"""Options for which columns have to be encoded, whatever they hold."""


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


def add_model(parser: argparse.ArgumentParser) -> None:
    """Declare MODEL."""
    parser.add_argument("model", metavar="MODEL", help="model file that 'erm fit' wrote")


def add_data(
    parser: argparse.ArgumentParser, target_help: str, *, several: bool = False
) -> argparse._ArgumentGroup:
    """Declare DATA, or ``several`` of them, and how to read it; return the group of the latter."""
    help_text = "CSV, TSV, Parquet, .npy or LIBSVM; - is stdin"
    parser.add_argument("data", metavar="DATA", nargs="+" if several else None, help=help_text)
    group = parser.add_argument_group("reading data")
    add_reading(group, target_help)
    return group


def add_reading(group: argparse._ArgumentGroup, target_help: str) -> None:
    """Declare how to read a data file."""
    group.add_argument("--target", metavar="COL", help=target_help)
    group.add_argument(
        "--ignore", metavar="COL", action="append", default=[], help="a column to leave out (may be repeated)"
    )
    group.add_argument("--format", choices=FORMATS, help="format of the data (default: by the file's name)")
    group.add_argument(
        "--delimiter",
        choices=list(DELIMITERS),
        type=delimiter,
        help="between the fields of a CSV file; also as ',', ';', '\\t' or '|' (default: by the first line)",
    )
    group.add_argument(
        "--no-header", action="store_true", help="the first line of a CSV file holds data, not names"
    )


def add_reporting(parser: argparse.ArgumentParser) -> None:
    """Declare --json and --quiet."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")


def add_training(parser: argparse.ArgumentParser) -> None:
    """Declare the model and how it is trained, apart from its cost."""
    group = parser.add_argument_group("the model")
    group.add_argument("--members", type=int, default=10, metavar="K", help="members (default: 10)")
    group.add_argument(
        "--exclusivity",
        type=float,
        default=1.0,
        metavar="G",
        help="1: equal members (default); inf: no shared features",
    )
    group.add_argument(
        "--voting",
        choices=["soft", "hard", "runoff"],
        metavar="RULE",
        default="soft",
        help="soft (default); hard, runoff: votes, see erm certify",
    )
    group.add_argument(
        "--loss",
        default="hinge",
        help="hinge (default), smooth_hinge or logistic, which gives probabilities",
    )
    group.add_argument(
        "--p", type=float, default=2.0, help="power of the hinge: 1 hinge, 2 squared hinge (default: 2)"
    )
    group.add_argument(
        "--sparsity", type=float, default=0.0, metavar="B", help="l1 penalty: zero weights (default: 0)"
    )
    group.add_argument(
        "--class-weight",
        choices=["balanced", "none"],
        metavar="W",
        help="balanced: every class weighs the same; none: every row (default; for votes: balanced)",
    )
    group.add_argument(
        "--multi-class",
        choices=["ovr", "ovo"],
        default="ovr",
        help="three or more classes: one-vs-rest (default) or one-vs-one",
    )
    group.add_argument(
        "--groups",
        metavar="FILE",
        help="features that go to one member together, for --exclusivity above 1: lines 'feature,group', "
        "or one group per line in the order of the columns",
    )
    signs, intervals = "COLUMN=SIGN,...", "COLUMN=LOWER:UPPER,..."
    group.add_argument(
        "--monotonic",
        type=per_column(signs, int),
        metavar=signs,
        help="columns with which the score of the second class must rise (1) or fall (-1); two classes",
    )
    group.add_argument(
        "--bounds",
        type=per_column(intervals, interval),
        metavar=intervals,
        help="bounds of the weights of columns, scaled as --scale says; either end may be left out",
    )
    group.add_argument("--no-intercept", action="store_true", help="members without an intercept")
    group.add_argument(
        "--scale",
        choices=["minmax", "standard", "none"],
        help="minmax: features to [-1, 1]; standard: mean 0 and deviation 1. Stored in the model. Sparse "
        "data are divided and not shifted (default: standard, and none for LIBSVM files)",
    )
    _add_solving(parser.add_argument_group("the solver"))


def _add_solving(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--solver", choices=SOLVERS, default="auto", help="method (default: auto)")
    group.add_argument(
        "--tol",
        type=float,
        default=1e-4,
        metavar="T",
        help="relative duality gap to stop at (default: 1e-4)",
    )
    group.add_argument("--max-iter", type=int, metavar="N", help="most iterations (default: the method's)")
    group.add_argument(
        "--seed", type=at_least(0), default=0, metavar="S", help="seed of random choices (default: 0)"
    )
    group.add_argument(
        "--jobs", type=int, metavar="J", help="threads (default: 1); results do not depend on it"
    )
