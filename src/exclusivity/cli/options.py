"""Options that several commands share, and the checks of their values."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator

from exclusivity.cli.bounds import add_bounds
from exclusivity.cli.data import DELIMITERS, FORMATS

SOLVERS = ("auto", "newton", "alm", "paper", "exclusive")


def number(what: str, allowed: Callable[[float], bool], kind: type = float) -> Callable[[str], float]:
    """A type for argparse: a number for which ``allowed`` holds, described by ``what``.

    Examples
    --------
    >>> number("above 0", lambda value: value > 0)("0.5")
    0.5
    """

    def parse(text: str) -> float:
        try:
            value: float = kind(text)
        except ValueError:
            value = math.nan
        if math.isnan(value) or not allowed(value):
            noun = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {noun} {what}; got {text!r}")
        return value

    return parse


class LossNames:
    """The names of the losses, as a choice for argparse: their table is read when somebody asks for one."""

    def __iter__(self) -> Iterator[str]:
        """All names."""
        from exclusivity.problem import LOSSES

        return iter(LOSSES)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a loss."""
        return name in tuple(self)


POSITIVE = number("above 0", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = number("of at least 0", lambda value: 0 <= value < math.inf)
POWER = number("of at least 1", lambda value: 1 <= value < math.inf)
COUNT = number("of at least 1", lambda value: value >= 1, int)
FROM_ZERO = number("of at least 0", lambda value: value >= 0, int)


def positives(text: str) -> list[float]:
    """A type for argparse: positive numbers with commas between them.

    Examples
    --------
    >>> positives("0.1,1,10")
    [0.1, 1.0, 10.0]
    """
    return [POSITIVE(part) for part in text.split(",")]


def delimiter(text: str) -> str:
    r"""A type for argparse: the name of a delimiter, which may be given as itself.

    Examples
    --------
    >>> delimiter(";"), delimiter(r"\t"), delimiter("tab")
    ('semicolon', 'tab', 'tab')
    """
    names = {character: name for name, character in DELIMITERS.items()}
    return names.get(text.replace("\\t", "\t"), text)


def add_data(
    parser: argparse.ArgumentParser, target_help: str, *, several: bool = False
) -> argparse._ArgumentGroup:
    """Declare DATA, or ``several`` of them, and how to read it; return the group of the latter."""
    data_help = "data file (.csv, .tsv, .parquet, .npy, LIBSVM), - for standard input"
    if several:
        parser.add_argument("data", metavar="DATA", nargs="+", help=f"{data_help}; several with --dask")
    else:
        parser.add_argument("data", metavar="DATA", help=data_help)
    group = parser.add_argument_group("reading data")
    add_reading(group, target_help)
    return group


def add_reading(group: argparse._ArgumentGroup, target_help: str) -> None:
    """How to read a data file."""
    group.add_argument("--target", metavar="COL", help=target_help)
    group.add_argument(
        "--ignore",
        metavar="COL",
        action="append",
        default=[],
        help="a column that is no feature, such as a row's number (may be repeated)",
    )
    group.add_argument(
        "--format", choices=FORMATS, help="format of the data (default: what the name of the file says)"
    )
    group.add_argument(
        "--delimiter",
        choices=list(DELIMITERS),
        type=delimiter,
        help="between the fields of a CSV file; also as ',', ';', '\\t' or '|' (default: what the first line "
        "has)",
    )
    group.add_argument(
        "--no-header", action="store_true", help="the first line of a CSV file holds data, not names"
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL."""
    parser.add_argument("model", metavar="MODEL", help="model file that 'erm fit' wrote")


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """--quiet."""
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")


def add_training(parser: argparse.ArgumentParser) -> None:
    """What is trained, apart from its cost."""
    group = parser.add_argument_group("the model")
    group.add_argument("--members", type=COUNT, default=10, metavar="K", help="members (default: 10)")
    group.add_argument(
        "--loss",
        choices=LossNames(),
        default="hinge",
        metavar="LOSS",
        help="what a row costs that misses its margin: %(choices)s (default: hinge); logistic gives "
        "probabilities",
    )
    group.add_argument(
        "--p",
        type=POWER,
        default=2.0,
        metavar="P",
        help="power of the hinge loss: 1 hinge, 2 squared hinge (default: 2)",
    )
    group.add_argument(
        "--exclusivity",
        type=number("from 0 to inf", lambda value: value >= 0),
        default=1.0,
        metavar="G",
        help="how much members avoid each other's features. Up to 1 (the paper's value and the default) "
        "members end up equal; above 1 they differ; inf: every feature belongs to one member",
    )
    group.add_argument(
        "--sparsity", type=NOT_NEGATIVE, default=0.0, metavar="B", help="sets weights to zero (default: 0)"
    )
    add_bounds(group)
    _add_votes(group)
    _add_classes(group)
    _add_solving(parser)


def _add_votes(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--voting",
        choices=["soft", "hard", "runoff"],
        default="soft",
        help="soft averages the members' margins (default); hard counts their votes, which can be certified; "
        "so can runoff, for three or more classes: the two with most votes meet in a second round",
    )
    group.add_argument(
        "--groups",
        metavar="FILE",
        help="features that go to one member together, for --exclusivity above 1: lines 'feature,group', "
        "or one group per line in the order of the columns",
    )


def _add_classes(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--class-weight",
        choices=["balanced", "none"],
        help="balanced: all classes weigh the same, however many rows they have; none: all rows do (default: "
        "balanced for --voting hard or runoff with --exclusivity inf, otherwise none)",
    )
    group.add_argument(
        "--multi-class",
        choices=["ovr", "ovo"],
        default="ovr",
        help="three or more classes: each against the rest (default), or each against each",
    )
    group.add_argument("--no-intercept", action="store_true", help="members without an intercept")
    group.add_argument(
        "--scale",
        choices=["minmax", "standard", "none"],
        help="minmax: features to [-1, 1]; standard: mean 0 and deviation 1. Learned here, stored in the "
        "model. Sparse data (LIBSVM) are divided and not shifted (default: standard, and none for LIBSVM "
        "files)",
    )


def _add_solving(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it is trained")
    group.add_argument("--solver", choices=SOLVERS, default="auto", help="method (default: auto)")
    group.add_argument(
        "--tol",
        type=POSITIVE,
        default=1e-4,
        metavar="T",
        help="proven relative distance from the optimum to stop at (default: 1e-4)",
    )
    group.add_argument(
        "--max-iter", type=COUNT, metavar="N", help="most iterations (default: the method's own)"
    )
    group.add_argument(
        "--seed", type=FROM_ZERO, default=0, metavar="S", help="seed of random choices (default: 0)"
    )
    group.add_argument(
        "--jobs", type=COUNT, metavar="J", help="threads (default: 1); results do not depend on it"
    )
