"""The parameters of an ensemble, written out once for all estimators that have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from inspect import cleandoc, signature
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

ClassWeight = Mapping[Any, float] | str | None
RandomState = int | np.random.RandomState | None
Class = TypeVar("Class", bound=type)

MINIMISED = (
    *("n_estimators", "C", "loss", "p", "exclusivity", "sparsity"),
    *("coef_bounds", "monotonic_cst", "fit_intercept", "multi_class"),
)
"""The parameters that say what is minimised on given rows; the others say how."""


@dataclass(repr=False, eq=False, match_args=False)
class EnsembleParameters(BaseEstimator):
    """The parameters of ``ERMClassifier``, which describes them, and of the estimators like it."""

    n_estimators: int = 10
    _: KW_ONLY
    C: float = 2.0
    loss: str = "hinge"
    p: float = 2
    exclusivity: float = 1.0
    sparsity: float = 0.0
    coef_bounds: Any = None
    monotonic_cst: Any = None
    voting: str = "soft"
    feature_groups: object = None
    partition: ArrayLike = "learned"
    solver: str = "auto"
    solver_options: dict[str, Any] | None = None
    tol: float = 1e-4
    max_iter: int | None = None
    fit_intercept: bool = True
    class_weight: ClassWeight = None
    multi_class: str = "ovr"
    warm_start: bool = False
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0


def shared_parameters(estimator: BaseEstimator, kind: type[BaseEstimator]) -> dict[str, Any]:
    """Return the parameters of an estimator that another kind of estimator has, too."""
    names = kind._get_param_names()
    return {name: value for name, value in estimator.get_params(deep=False).items() if name in names}


def describe_parameters_like(source: type) -> Callable[[Class], Class]:
    """Complete the section "Parameters" of a class by the entries of ``source`` that it does not have."""

    def complete(kind: Class) -> Class:
        if kind.__doc__ and source.__doc__:  # python -OO leaves docstrings out
            head, own, tail = _parameter_section(kind.__doc__)
            entries = _parameter_section(source.__doc__)[1] | own
            kind.__doc__ = head + "\n".join(entries[name] for name in signature(kind).parameters) + tail
        return kind

    return complete


def _parameter_section(docstring: str) -> tuple[str, dict[str, str], str]:
    """Split a docstring into what precedes the entries of its parameters, these by name, and the rest."""
    head, title, rest = cleandoc(docstring).partition("Parameters\n----------\n")
    body, blank, tail = rest.partition("\n\n")
    entries = re.split(r"\n(?=\S)", body)
    return head + title, {entry.split(" :")[0]: entry for entry in entries}, blank + tail
