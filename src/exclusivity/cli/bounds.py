"""--monotonic and --bounds: rules about the weights of single columns, by name or by number."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from exclusivity.cli.errors import UsageError

Value = TypeVar("Value")


def _per_column(what: str, parse: Callable[[str], Value]) -> Callable[[str], dict[str, Value]]:
    """A type for argparse: COLUMN=VALUE with commas between them; ``parse`` raises what is no value."""

    def parsed(text: str) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for part in text.split(","):
            name, _, value = (each.strip() for each in part.rpartition("="))
            if name in found:
                raise argparse.ArgumentTypeError(f"{name!r} is there twice; one rule for each column")
            try:
                found[name] = parse(value)
            except ValueError:
                raise argparse.ArgumentTypeError(f"expected {what}; got {part!r}") from None
        return found

    return parsed


def _sign(text: str) -> int:
    sign = int(text)
    if sign not in (-1, 0, 1):
        raise ValueError
    return sign


def _interval(text: str) -> tuple[float, float]:
    """Two ends, either of which may be left out.

    Examples
    --------
    >>> _interval("-0.5:"), _interval("0:1")
    ((-0.5, inf), (0.0, 1.0))
    """
    lower, colon, upper = text.partition(":")
    ends = float(lower or -math.inf), float(upper or math.inf)
    if not colon or not ends[0] <= ends[1]:  # nor where an end is not a number
        raise ValueError
    return ends


def add_bounds(group: argparse._ArgumentGroup) -> None:
    """--monotonic and --bounds."""
    group.add_argument(
        "--monotonic",
        type=_per_column("COLUMN=1 (the score rises with it) or COLUMN=-1 (it falls)", _sign),
        metavar="COLUMN=SIGN,...",
        help="columns with which the score of the second class must rise (1) or fall (-1); two classes",
    )
    group.add_argument(
        "--bounds",
        type=_per_column("COLUMN=LOWER:UPPER, either of which may be left out", _interval),
        metavar="COLUMN=LOWER:UPPER,...",
        help="between which the weights of columns must be, scaled as --scale says",
    )


def bounded(args: argparse.Namespace, names: tuple[str, ...] | None, n_features: int) -> dict[str, Any]:
    """Both as parameters of a classifier, one number for each column."""
    found: dict[str, Any] = {"monotonic_cst": None, "coef_bounds": None}
    if args.monotonic is not None:
        found["monotonic_cst"] = _spread(args.monotonic, 0, names, n_features)
    if args.bounds is not None:
        pairs = _spread(args.bounds, (-math.inf, math.inf), names, n_features)
        found["coef_bounds"] = [lower for lower, _ in pairs], [upper for _, upper in pairs]
    return found


def _spread(
    given: Mapping[str, Value], default: Value, names: tuple[str, ...] | None, n_features: int
) -> list[Value]:
    """One value per column; columns are named, or numbered from 0 where there are no names."""
    known = [str(number) for number in range(n_features)] if names is None else list(names)
    unknown = [name for name in given if name not in known]
    if unknown:
        what = f"the {n_features} columns have numbers from 0" if names is None else f"one of {known[:20]}"
        raise UsageError(f"there is no feature {unknown[0]!r}; expected {what}.")
    return [given.get(name, default) for name in known]
