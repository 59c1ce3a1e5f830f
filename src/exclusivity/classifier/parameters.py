"""The checks of ERMClassifier's parameters: what was given, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from exclusivity.solvers import SOLVERS, resolve_solver
from exclusivity.solvers.base import parse_options

ClassWeight = Mapping[Any, float] | str | None
RandomState = int | np.random.RandomState | None


class ErmParameters(Protocol):
    """The parameters of an ensemble, as ``ERMClassifier`` and its kin have them."""

    n_estimators: int
    C: float
    p: float
    exclusivity: float
    sparsity: float
    voting: str
    feature_groups: object
    solver: str
    solver_options: dict[str, Any] | None
    tol: float
    max_iter: int | None
    fit_intercept: bool
    class_weight: ClassWeight
    multi_class: str
    warm_start: bool
    random_state: RandomState
    n_jobs: int | None
    verbose: int


MINIMISED = ("n_estimators", "C", "p", "exclusivity", "sparsity", "fit_intercept", "multi_class")
"""The parameters that say what is minimised on given rows; the others say how."""


def shared_parameters(estimator: BaseEstimator, kind: type[BaseEstimator]) -> dict[str, Any]:
    """The parameters of an estimator that another kind of estimator has, too."""
    names = kind._get_param_names()
    return {name: value for name, value in estimator.get_params(deep=False).items() if name in names}


def check_parameters(params: Mapping[str, Any]) -> None:
    """Raise a ValueError or TypeError for the first parameter that cannot be honoured."""
    check_number(params, "n_estimators", least=1, integer=True)
    _cost(params)
    check_number(params, "p", least=1)
    check_number(params, "sparsity", least=0)
    check_number(params, "tol", least=0, strict=True)
    if params["max_iter"] is not None:
        check_number(params, "max_iter", least=1, integer=True)
    if not isinstance(params["verbose"], (bool, np.bool_)):
        check_number(params, "verbose", least=0, integer=True)
    for name in ("fit_intercept", "warm_start"):
        if not isinstance(params[name], (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False; got {params[name]!r}.")
    check_choice(params, "voting", ("soft", "hard"))
    check_choice(params, "multi_class", ("ovr", "ovo"))
    _exclusivity(params)
    _solver(params)


def _cost(params: Mapping[str, Any]) -> None:
    if isinstance(params["C"], Real) and params["C"] == np.inf:
        raise ValueError(
            "C=inf asks for a hard margin, which exists only where a plane separates the classes; C must be "
            "finite. Where one does, a large C gives that margin: set C=1e6, or more, with p=1, whose "
            "solution stays the same from some C on."
        )
    check_number(params, "C", least=0, strict=True)


def _exclusivity(params: Mapping[str, Any]) -> None:
    check_number(params, "exclusivity", least=0, finite=False)
    if params["feature_groups"] is not None and params["exclusivity"] <= 1:
        raise ValueError(
            "feature_groups only matters when members compete for features, exclusivity > 1; got "
            f"exclusivity={params['exclusivity']!r}. Set exclusivity=np.inf, or leave feature_groups None."
        )


def _solver(params: Mapping[str, Any]) -> None:
    name, exclusivity, options = params["solver"], params["exclusivity"], params["solver_options"]
    check_choice(params, "solver", ("auto", *SOLVERS))
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"solver_options must be a mapping of option names to values; got {options!r}.")
    spec = SOLVERS[resolve_solver(name, exclusivity)]
    if spec.members_compete and exclusivity <= 1:
        raise ValueError(
            f"solver={name!r} needs exclusivity > 1; got {exclusivity!r}. Set exclusivity=np.inf for "
            "members on different features, or solver='auto'."
        )
    if not spec.members_compete and exclusivity > 1:
        raise ValueError(
            f"solver={name!r} needs exclusivity <= 1; got {exclusivity!r}. Above 1 the problem is not "
            "convex: use solver='exclusive' or 'auto'."
        )
    parse_options(spec.options, options)


def check_number(
    params: Mapping[str, Any],
    name: str,
    *,
    least: float,
    strict: bool = False,
    integer: bool = False,
    finite: bool = True,
) -> None:
    """Raise unless ``params[name]`` is a number (an integer) of at least, or above, ``least``."""
    value: Any = params[name]
    kind: Any = Integral if integer else Real
    word = "an integer" if integer else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {word}; got {value!r}.")
    in_range = value > least if strict else value >= least
    if not in_range or (finite and not np.isfinite(value)):
        bound = ("above" if strict else "at least") + f" {least:g}"
        raise ValueError(f"{name} must be {word} {bound}{' and finite' if finite else ''}; got {value!r}.")


def check_choice(params: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> None:
    """Raise unless ``params[name]`` is one of the allowed words."""
    if params[name] not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {params[name]!r}.")
