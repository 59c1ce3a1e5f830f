"""All that a fit leaves behind, as one value: what a fit gives a classifier, and a model file stores."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from exclusivity.classifier.ensemble import Ensemble
from exclusivity.classifier.parameters import ErmParameters
from exclusivity.problem.arrays import Bools, Floats, Ints
from exclusivity.solvers import ExclusiveResult, History, SolverResult, Start

Estimator = TypeVar("Estimator")

WIDTH = ("n_features_in_", "feature_names_in_")
"""What validation notes of the columns, before there is a fit."""

_OPTIONAL = ("feature_names", "partition")
_OTHER_NAMES = {
    "ensemble": "_ensemble",
    "multi_class": "_fitted_multi_class",
    "exclusivity": "_fitted_exclusivity",
    "n_features": "n_features_in_",
    "feature_names": "feature_names_in_",
}


def _attributes(kind: type[VotingState]) -> dict[str, str]:
    """The name of every field, and that of the estimator's attribute."""
    names = [field.name for field in dataclasses.fields(kind)]
    return {name: _OTHER_NAMES.get(name, f"{name}_") for name in names}


@dataclass(frozen=True, eq=False)
class VotingState:
    """What predictions need.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    ensemble : Ensemble
    multi_class : {"ovr", "ovo"}
        As it was at the time of the fit, like ``exclusivity``.
    exclusivity : float
    """

    classes: NDArray[Any]
    ensemble: Ensemble
    multi_class: str
    exclusivity: float

    def attributes(self) -> dict[str, Any]:
        """The attributes of an estimator in this state; a None is an attribute that it has not."""
        pairs = ((name, getattr(self, field)) for field, name in _attributes(type(self)).items())
        return {name: value for name, value in pairs if value is not None}


@dataclass(frozen=True, eq=False)
class FittedState(VotingState):
    """The fitted part of an ``ERMClassifier``; its parameters are ``get_params()``.

    What ``warm_start=True`` keeps of the solver, some numbers per training row, is left out: a warm start
    without it begins at the same weights.

    Attributes
    ----------
    objective, dual_gap : ndarray of shape (n_problems,), float64
    converged : ndarray of shape (n_problems,), bool
    n_iter : ndarray of shape (n_problems,), int64
    history : list of History
    n_features : int
    feature_names : ndarray of shape (n_features,), object, or None
    groups : ndarray of shape (n_features,), intp
        Numbers of the feature groups.
    partition : ndarray of shape (n_groups,), intp, or None
        The member that owns each group, where members compete for features.

    Examples
    --------
    >>> from exclusivity import ERMClassifier
    >>> model = ERMClassifier(2).fit([[0.0], [1.0]], [0, 1])
    >>> twin = FittedState.of(model).restore(ERMClassifier(2))
    >>> twin.predict([[0.1], [0.9]])
    array([0, 1])
    """

    objective: Floats
    dual_gap: Floats
    converged: Bools
    n_iter: NDArray[np.int64]
    history: list[History]
    n_features: int
    feature_names: NDArray[Any] | None
    groups: Ints
    partition: Ints | None

    @classmethod
    def of_results(
        cls, results: Sequence[SolverResult], groups: Ints, voting: VotingState, width: dict[str, Any]
    ) -> Self:
        """The state after a fit that ended with these results; ``width`` is what validation noted."""
        first = results[0]
        return cls(
            **vars(voting),
            objective=np.array([result.objective for result in results]),
            dual_gap=np.array([result.gap for result in results]),
            converged=np.array([result.converged for result in results]),
            n_iter=np.array([result.n_iter for result in results]),
            history=[result.history for result in results],
            n_features=width["n_features_in_"],
            feature_names=width.get("feature_names_in_"),
            groups=groups,
            partition=first.partition if isinstance(first, ExclusiveResult) else None,
        )

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """The state of a fitted classifier."""
        check_is_fitted(estimator)
        values: dict[str, Any] = {
            field: getattr(estimator, name, None) if field in _OPTIONAL else getattr(estimator, name)
            for field, name in _attributes(cls).items()
        }
        return cls(**values)

    def restore(self, estimator: Estimator) -> Estimator:
        """Make a classifier the fitted one of this state, whatever it was fitted to before."""
        present = self.attributes()
        for name in set(_attributes(type(self)).values()) - set(present):
            estimator.__dict__.pop(name, None)
        estimator.__dict__.update(present, _starts=[])
        return estimator


class FittedErm(ErmParameters, Protocol):
    """A classifier that may be fitted: what the next fit wants to know of the last one."""

    classes_: NDArray[Any]
    groups_: Ints
    n_features_in_: int
    _ensemble: Ensemble
    _starts: list[Start]

    @property
    def supports_(self) -> Bools:
        """Which member uses which column."""

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there was a fit."""


def width_of(estimator: BaseEstimator) -> dict[str, Any]:
    """The attributes ``WIDTH``, as far as an estimator has them."""
    return {name: vars(estimator)[name] for name in WIDTH if name in vars(estimator)}
