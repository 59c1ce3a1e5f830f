"""The fitted members, stored once when they are all equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from exclusivity.classifier.certainty import score_slack
from exclusivity.problem import DesignMatrix
from exclusivity.problem.arrays import Floats, Matrix

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
        mean_weights = weights.mean(axis=1, keepdims=True)
        mean_intercepts = intercepts.mean(axis=1, keepdims=True)
        if _is_close(weights, mean_weights) and _is_close(intercepts, mean_intercepts):
            weights, intercepts = mean_weights, mean_intercepts
        return cls(weights.astype(dtype), intercepts.astype(dtype), n_members)

    @property
    def members_are_equal(self) -> bool:
        """Whether the ensemble is one model, repeated."""
        return bool(self.weights.shape[1] == 1)

    @property
    def all_weights(self) -> Floats:
        """(n_problems, n_members, n_features), read-only."""
        n_problems, _, n_features = self.weights.shape
        return np.broadcast_to(self.weights, (n_problems, self.n_members, n_features))

    @property
    def all_intercepts(self) -> Floats:
        """(n_problems, n_members), read-only."""
        return np.broadcast_to(self.intercepts, (len(self.intercepts), self.n_members))

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

    def dense(self) -> Ensemble:
        """The same members with an array of weights."""
        return self

    def scores(self, X: Matrix) -> Floats:
        """Margins of all members, (n_samples, n_problems, n_members); equal members as a read-only view.

        In float64 whatever the types of X and the weights: float32 would overflow or cancel too early.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # a broken feature may have any finite value
            scores = self._margins(X).reshape(-1, *self.intercepts.shape) + self.intercepts
        return np.broadcast_to(scores, (len(scores), len(self.intercepts), self.n_members))

    def _margins(self, X: Matrix) -> Floats:
        """X . w of all stored members, (n_samples, n_problems * n_stored)."""
        return DesignMatrix(X).times(self.weights.reshape(-1, self.weights.shape[2]).T.astype(float))

    def slack(self, X: Matrix, measure: Callable[..., Floats] = score_slack) -> Floats:
        """How far the same margins may be apart in another batch or arithmetic; the shape of ``scores``."""
        n_problems, n_stored, n_features = self.weights.shape
        flat = measure(X, self.weights.reshape(-1, n_features), self.intercepts.ravel())
        slack = flat.reshape(-1, n_problems, n_stored)
        return np.broadcast_to(slack, (len(slack), n_problems, self.n_members))

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
