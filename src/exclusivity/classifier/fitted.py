"""What a fit leaves behind: the members, stored once when all are equal, and all else a model file holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from exclusivity._typing import (
    Bools,
    Floats,
    Ints,
    Matrix,
)
from exclusivity.classifier.parameters import ErmParameters
from exclusivity.classifier.refitting import replace_fitted, snapshot
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers import ExclusiveResult, History, SolverResult, Start
from exclusivity.voting.preferences import score_slack

# Solvers treat members alike, but a matrix product may round its columns differently.
_EQUAL_TOL = 1e-10


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The members of every binary problem.

    Attributes
    ----------
    weights : ndarray of shape (n_problems, n_stored, n_features)
        n_stored is ``n_members``, or 1 when all members are equal.
    intercepts : ndarray of shape (n_problems, n_stored)
    n_members : int
    """

    weights: Floats
    intercepts: Floats
    n_members: int

    def __post_init__(self) -> None:
        # Means are summed in the order of memory: one order, so that a loaded model gives the same bits.
        for name in ("weights", "intercepts"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    @classmethod
    def from_members(cls, members: Sequence[tuple[Floats, Floats]], dtype: DTypeLike) -> Self:
        """From one (weights of shape (n_features, n_members), intercepts) pair per binary problem."""
        n_members = len(members[0][1])
        if all(weights.strides[1] == 0 for weights, _ in members):  # a view of one member, repeated
            members = [(weights[:, :1], intercepts[:1]) for weights, intercepts in members]
        weights = np.stack([pair[0].T for pair in members])
        intercepts = np.stack([pair[1] for pair in members])
        if intercepts.shape[1] == 1:
            return cls(weights.astype(dtype, copy=False), intercepts.astype(dtype, copy=False), n_members)
        mean_weights = weights.mean(axis=1, keepdims=True)
        mean_intercepts = intercepts.mean(axis=1, keepdims=True)
        if _is_close(weights, mean_weights) and _is_close(intercepts, mean_intercepts):
            weights, intercepts = mean_weights, mean_intercepts
        return cls(weights.astype(dtype), intercepts.astype(dtype), n_members)

    @property
    def members_are_equal(self) -> bool:
        """Whether the ensemble is one model, repeated."""
        return bool(self.intercepts.shape[1] == 1)

    @property
    def copies(self) -> int:
        """How many members each stored one stands for."""
        return int(self.n_members // self.intercepts.shape[1])

    @property
    def all_weights(self) -> Floats:
        """(n_problems, n_members, n_features), read-only."""
        return _read_only(self.spread(self.weights, 1))

    @property
    def all_intercepts(self) -> Floats:
        """(n_problems, n_members), read-only."""
        return _read_only(self.spread(self.intercepts, 1))

    @property
    def supports(self) -> Bools:
        """Which stored member uses which column, in any of its problems, (n_stored, n_features).

        A vote among several classes depends on all scores of the member.
        """
        return np.asarray((self.weights != 0).any(axis=0))

    @property
    def n_voters(self) -> int:
        """How many members use features."""
        return int(self.supports.any(axis=1).sum()) * self.copies

    def spread(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Values of the stored members, along an axis, as those of all members: a view that costs nothing."""
        if self.copies == 1:
            return values
        shape = list(values.shape)
        shape[axis] *= self.copies
        return np.broadcast_to(values, shape)

    def voters(self) -> Self:
        """The members that use features; all of them if none does.

        A member without features says the same about every row: its vote would only hide how few others
        there are.
        """
        uses_features = (self.weights != 0).any(axis=(0, 2))
        if self.members_are_equal or uses_features.all() or not uses_features.any():
            return self
        weights, intercepts = self.weights[:, uses_features], self.intercepts[:, uses_features]
        return type(self)(weights, intercepts, weights.shape[1])

    def mean(self) -> Self:
        """The averaged model as an ensemble of one."""
        if self.members_are_equal:
            return type(self)(self.weights, self.intercepts, 1)
        weights, intercepts = (a.mean(axis=1, keepdims=True) for a in (self.weights, self.intercepts))
        return type(self)(weights, intercepts, 1)

    @property
    def coef(self) -> Matrix:
        """Weights of the averaged model, (n_problems, n_features), read-only."""
        return _read_only(self.mean().weights[:, 0])

    @property
    def intercept(self) -> Floats:
        """Intercepts of the averaged model, (n_problems,), read-only."""
        return _read_only(self.mean().intercepts[:, 0])

    def scores(self, X: Matrix) -> Floats:
        """Margins of the stored members, (n_samples, n_problems, n_stored).

        In float64 whatever the types of X and the weights: float32 would overflow or cancel too early.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # a broken feature may have any finite value
            flat = DesignMatrix(X).times(self.weights.reshape(-1, self.weights.shape[2]).T.astype(float))
            return flat.reshape(-1, *self.intercepts.shape) + self.intercepts

    def slack(self, X: Matrix, measure: Callable[..., Floats] = score_slack) -> Floats:
        """How far the same margins may be apart in another batch or arithmetic; the shape of ``scores``."""
        n_problems, n_stored, n_features = self.weights.shape
        flat = measure(X, self.weights.reshape(-1, n_features), self.intercepts.ravel())
        return flat.reshape(-1, n_problems, n_stored)

    def rounded(self, scores: Floats) -> Floats:
        """Scores in the precision of the weights."""
        with np.errstate(over="ignore"):  # beyond float32 an infinity has the right sign
            return scores.astype(self.intercepts.dtype, copy=False)


def _read_only(values: Floats) -> Floats:
    view = values.view()
    view.flags.writeable = False
    return view


def _is_close(values: Floats, mean: Floats) -> bool:
    return bool(np.abs(values - mean).max() <= _EQUAL_TOL * np.abs(mean).max())


Estimator = TypeVar("Estimator")

TEST, TRAINING_TOO = "test", "training and test"
# What labels that a user gives cannot tell: whether somebody looked at the rows before.
TRAINING_IF = f"{TRAINING_TOO} if the partition does not depend on the rows"
"""What a certificate covers: values of the row to be predicted, or of training rows as well."""

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
    history : sequence of History
    n_features : int
    feature_names : ndarray of shape (n_features,), object, or None
    groups : ndarray of shape (n_features,), intp
        Numbers of the feature groups.
    partition : ndarray of shape (n_groups,), intp, or None
        The member that owns each group, where members compete for features.
    certificate_scope : {"test", "training and test", TRAINING_IF}

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
    history: Sequence[History]
    n_features: int
    feature_names: NDArray[Any] | None
    groups: Ints
    partition: Ints | None
    certificate_scope: str = "test"

    @classmethod
    def of_results(
        cls,
        results: Sequence[SolverResult],
        groups: Ints,
        voting: VotingState,
        width: dict[str, Any],
        scope: str = "test",
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
            certificate_scope=scope,
        )

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """The state of a fitted classifier."""
        check_is_fitted(estimator)
        estimator = snapshot(estimator)
        values: dict[str, Any] = {
            field: getattr(estimator, name, None) if field in _OPTIONAL else getattr(estimator, name)
            for field, name in _attributes(cls).items()
        }
        return cls(**values)

    def restore(self, estimator: Estimator) -> Estimator:
        """Make a classifier the fitted one of this state, whatever it was fitted to before."""
        replace_fitted(estimator, self.attributes() | {"_starts": []})
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


def scope_of(partition: ArrayLike) -> str:
    """What a certificate covers for members on such a partition.

    A partition that no row has a say in leaves each member to its own columns, in training too.
    """
    if not isinstance(partition, str):
        return TRAINING_IF
    return TEST if partition == "learned" else TRAINING_TOO
