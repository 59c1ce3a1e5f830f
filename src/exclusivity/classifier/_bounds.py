"""Bounds of weights as users give them: signs or intervals, for all columns, for each, or by name.

A score is monotone in a column where the column's weight has a sign. With two classes the score is that of
``classes_[1]``. With more there is a score for every class, and what raises one lowers another: signs make no
sense then. Intervals of weights do, for each class against the rest; for pairs of classes only where they do
not depend on which of the two comes first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from exclusivity._errors import ParameterError, hint_at_name
from exclusivity._typing import Floats
from exclusivity.objective.objective import Bounds
from exclusivity.solvers.dispatch import SOLVERS, resolve_solver

_FORMS = (
    "coef_bounds must be a pair (lower, upper) of numbers, of arrays with one number per column, of dicts "
    "from column names to numbers, or None for no bound; or one dict from column names to pairs of numbers"
)


def check_bounded(params: Mapping[str, Any]) -> None:
    """Raise where bounds are given that nothing else of the parameters allows."""
    name = "coef_bounds" if params["coef_bounds"] is not None else "monotonic_cst"
    exclusivity, solver = params["exclusivity"], params["solver"]
    if 1 < exclusivity < np.inf:
        raise ParameterError(
            name,
            f"{name} and exclusivity={exclusivity!r}: between 1 and infinity members take features from each "
            "other by penalties that know no bounds. Use exclusivity=np.inf for members on features of their "
            "own, or at most 1.",
        )
    if not SOLVERS[resolve_solver(solver, exclusivity)].takes_bounds:
        raise ParameterError(
            name,
            f"{name} and solver={solver!r}: its steps move all members at once and know no bounds of their "
            "weights; use solver='newton' or 'auto'.",
        )


def bounds_of(estimator: Any, n_features: int, dtype: DTypeLike, n_problems: int) -> Bounds | None:
    """Return the bounds of every column in each of so many binary problems; None where there are none.

    A model of float32 rows has float32 weights: its bounds are the nearest such numbers inside.
    """
    names = getattr(estimator, "feature_names_in_", None)
    lower, upper = _intervals(estimator.coef_bounds, n_features, names)
    signs = _signs(estimator.monotonic_cst, n_features, names)
    if n_problems > 1:
        _check_classes(signs, lower, upper, n_problems, estimator.multi_class)
    lower = np.where(signs > 0, np.maximum(lower, 0.0), lower)
    upper = np.where(signs < 0, np.minimum(upper, 0.0), upper)
    if np.dtype(dtype) == np.float32:
        lower, upper = _float32_inside(lower, np.inf), _float32_inside(upper, -np.inf)
    # Not a number is in no order either.
    is_empty = ~((lower <= upper) & (lower < np.inf) & (upper > -np.inf))
    if np.any(is_empty):
        at = int(np.argmax(is_empty))
        raise ParameterError(
            "coef_bounds",
            f"coef_bounds and monotonic_cst leave no {np.dtype(dtype)} weight for {_title(at, names)}: "
            f"[{lower[at]!s}, {upper[at]!s}]. A lower bound must not be above the upper one, nor the sign's.",
        )
    bounds = Bounds(lower, upper)
    if np.isinf(estimator.exclusivity) and not bounds.contain_zero:
        at = int(np.argmax((lower > 0) | (upper < 0)))
        raise ParameterError(
            "coef_bounds",
            f"exclusivity={estimator.exclusivity!r} gives every feature to one member, and all others zero "
            f"weight; the bounds of {_title(at, names)}, [{lower[at]!s}, {upper[at]!s}], keep it from zero.",
        )
    return bounds if np.any(np.isfinite(lower) | np.isfinite(upper)) else None


def _intervals(given: Any, n_features: int, names: NDArray[Any] | None) -> list[Floats]:
    """Return the lower and the upper end of every column."""
    if isinstance(given, Mapping):
        pairs = {name: _pair(pair) for name, pair in given.items()}
        given = tuple({name: pair[end] for name, pair in pairs.items()} for end in (0, 1))
    ends = zip((None, None) if given is None else _pair(given), (-np.inf, np.inf), strict=True)
    return [_per_column(end, default, n_features, names, "coef_bounds") for end, default in ends]


def _pair(given: Any) -> tuple[Any, Any]:
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__") or len(given) != 2:
        raise ParameterError("coef_bounds", f"{_FORMS}; got {given!r}.")
    lower, upper = given
    return lower, upper


def _signs(given: Any, n_features: int, names: NDArray[Any] | None) -> Floats:
    signs = _per_column(given, 0.0, n_features, names, "monotonic_cst")
    if not np.all(np.isin(signs, (-1, 0, 1))):
        raise ParameterError(
            "monotonic_cst",
            "monotonic_cst must have 1 (the score rises with the column), -1 (it falls) or 0 (either) for "
            f"each column; got {given!r}.",
        )
    return signs


def _per_column(
    given: Any, default: float, n_features: int, names: NDArray[Any] | None, parameter: str
) -> Floats:
    """Return one number per column, from a number, an array, or a dict by name with a default for others."""
    if given is None:
        return np.full(n_features, default)
    if isinstance(given, Mapping):
        return _by_name(given, default, n_features, names, parameter)
    try:
        values = np.array(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise ParameterError(parameter, f"{parameter} must hold numbers; got {given!r}.") from error
    if values.ndim == 0 and parameter == "coef_bounds":
        values = np.full(n_features, float(values))
    if values.shape != (n_features,):
        raise ParameterError(
            parameter,
            f"{parameter} must have one number per column, shape ({n_features},); got shape {values.shape}.",
        )
    return values


def _by_name(
    given: Mapping[Any, Any], default: float, n_features: int, names: NDArray[Any] | None, parameter: str
) -> Floats:
    if names is None:
        raise ParameterError(
            parameter,
            f"{parameter} names columns, but X has no column names; fit on a DataFrame with string columns, "
            "or give one number per column. Behind a TableEncoder give monotonic_cst to the encoder.",
        )
    if parameter == "monotonic_cst":
        _refuse_encoded([name for name, sign in given.items() if sign], names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ParameterError(
            parameter,
            f"{parameter} names {unknown[0]!r}, which is no column of X; {hint_at_name(unknown[0], names)}",
        )
    values = np.full(n_features, default)
    for name, value in given.items():
        if value is None:
            continue
        try:
            values[names == name] = float(value)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                parameter, f"{parameter} must hold numbers; {name!r} has {value!r}."
            ) from error
    return values


def _refuse_encoded(columns: list[Any], names: NDArray[Any]) -> None:
    """Raise where a column has become several features: a sign of one says nothing about their sum."""
    for column in columns:
        # As a TableEncoder calls them: parts of a curve, levels, a missing value, parts of a date.
        ending = r"(_spline\d+|_ramp\d+|=.*|\.(year|month|weekday|hour)(_spline\d+|=.*)?)"
        made = re.compile(re.escape(str(column)) + ending, re.DOTALL)
        found = [name for name in names if made.fullmatch(str(name))]
        if found:
            raise ParameterError(
                "monotonic_cst",
                f"monotonic_cst names {column!r}, which a TableEncoder makes several features of (such as "
                f"{found[0]!r}): the sign of one weight does not make the score monotone in the column. Give "
                "monotonic_cst to the TableEncoder; or name the encoded features one by one.",
            )


def _check_classes(signs: Floats, lower: Floats, upper: Floats, n_problems: int, multi_class: str) -> None:
    if np.any(signs):
        raise ParameterError(
            "monotonic_cst",
            "monotonic_cst says which way a score goes, and with more than two classes there is one for "
            "each: what raises one lowers another. Fit the class that matters against the rest (y == label), "
            "or bound the weights of all classes with coef_bounds.",
        )
    if multi_class == "ovo" and not np.array_equal(lower, -upper):
        raise ParameterError(
            "coef_bounds",
            f"multi_class='ovo' sets {n_problems} pairs of classes against each other, either way round: its "
            "coef_bounds must be symmetric, upper = -lower. Use multi_class='ovr', where they hold for each "
            "class against the rest.",
        )


def _float32_inside(ends: Floats, inward: float) -> Floats:
    """Round to the nearest float32 numbers that are not further outside, seen from ``inward``."""
    with np.errstate(over="ignore"):
        rounded = ends.astype(np.float32)
    is_outside = rounded < ends if inward > 0 else rounded > ends
    return np.where(is_outside, np.nextafter(rounded, np.float32(inward)), rounded).astype(float)


def _title(at: int, names: NDArray[Any] | None) -> str:
    return f"column {at}" if names is None else f"column {names[at]!r}"
