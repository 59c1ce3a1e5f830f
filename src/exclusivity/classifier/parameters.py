"""The checks of ERMClassifier's parameters: what was given, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from exclusivity.solvers import SOLVERS, resolve_solver


def check_parameters(params: Mapping[str, Any]) -> None:
    """Raise a ValueError or TypeError for the first parameter that cannot be honoured."""
    _number(params, "n_estimators", least=1, integer=True)
    _number(params, "C", least=0, strict=True)
    _number(params, "p", least=1)
    _number(params, "sparsity", least=0)
    _number(params, "tol", least=0, strict=True)
    if params["max_iter"] is not None:
        _number(params, "max_iter", least=1, integer=True)
    if not isinstance(params["verbose"], (bool, np.bool_)):
        _number(params, "verbose", least=0, integer=True)
    for name in ("fit_intercept", "warm_start"):
        if not isinstance(params[name], (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False; got {params[name]!r}.")
    _choice(params, "voting", ("soft", "hard"))
    _choice(params, "multi_class", ("ovr", "ovo"))
    _exclusivity(params)
    _solver(params)


def _exclusivity(params: Mapping[str, Any]) -> None:
    _number(params, "exclusivity", least=0, finite=False)
    if params["exclusivity"] > 1:
        raise ValueError(
            f"exclusivity={params['exclusivity']!r} is above 1, where members compete for features; this "
            "version has no solver for that. Use a value between 0 (independent members) and 1 (the paper)."
        )
    if params["feature_groups"] is not None:
        raise ValueError(
            "feature_groups only matters when members compete for features (exclusivity > 1), which this "
            "version cannot do; leave it None."
        )


def _solver(params: Mapping[str, Any]) -> None:
    _choice(params, "solver", ("auto", *SOLVERS))
    options = params["solver_options"]
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"solver_options must be a mapping of option names to values; got {options!r}.")
    name = resolve_solver(params["solver"])
    if params["warm_start"] and not SOLVERS[name].can_start_warm:
        raise ValueError(
            f"warm_start=True cannot be honoured by solver={name!r}, which prescribes its own start; "
            "set warm_start=False or solver='auto'."
        )


def _number(
    params: Mapping[str, Any],
    name: str,
    *,
    least: float,
    strict: bool = False,
    integer: bool = False,
    finite: bool = True,
) -> None:
    value: Any = params[name]
    kind: Any = Integral if integer else Real
    word = "an integer" if integer else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {word}; got {value!r}.")
    in_range = value > least if strict else value >= least
    if not in_range or (finite and not np.isfinite(value)):
        bound = ("above" if strict else "at least") + f" {least:g}"
        raise ValueError(f"{name} must be {word} {bound}{' and finite' if finite else ''}; got {value!r}.")


def _choice(params: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> None:
    if params[name] not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {params[name]!r}.")
