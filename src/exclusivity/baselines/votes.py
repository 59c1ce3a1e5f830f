"""The votes of an ensemble's members, how sure each member is, and the majority with its ties broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from exclusivity.classifier import class_scores, finite
from exclusivity.problem.arrays import Floats, Ints, Matrix
from exclusivity.voting.ensembles import (
    Members,
    label_codes,
    member_predictions,
    members_of,
    prediction_matrix,
)


@dataclass(frozen=True, eq=False)
class Votes:
    """What every member says about every sample.

    Attributes
    ----------
    labels : ndarray of shape (n_samples, n_members)
    margins : ndarray of shape (n_samples, n_members)
        By how much a member prefers its label to any other, not negative; they break ties.
    """

    labels: NDArray[Any]
    margins: Floats

    @classmethod
    def from_arrays(cls, labels: ArrayLike, margins: ArrayLike | None) -> Votes:
        """Checked; without margins no tie can be broken by them."""
        matrix = prediction_matrix(labels)
        sizes = np.zeros(matrix.shape) if margins is None else np.abs(np.asarray(margins, dtype=float))
        if sizes.shape != matrix.shape:
            raise ValueError(f"margins must have the shape of the labels, {matrix.shape}; got {sizes.shape}.")
        if not np.all(np.isfinite(sizes)):
            raise ValueError("margins contain NaN or infinity.")
        return cls(matrix, sizes)

    def majority(self) -> NDArray[Any]:
        """The label with most votes; among equals the largest sum of margins, then the first member's."""
        codes, n_labels = label_codes(self.labels)
        names = np.empty(n_labels, dtype=self.labels.dtype)
        names[codes.ravel()] = self.labels.ravel()
        return np.asarray(names[Tally.count(codes, self.margins, n_labels).winners()])


@dataclass(frozen=True, eq=False)
class Tally:
    """Votes and margins per label, and the label of the member that breaks the last ties."""

    votes: Ints
    margins: Floats
    first: Ints

    @classmethod
    def count(cls, codes: Ints, margins: Floats, n_labels: int) -> Tally:
        """From (n_samples, n_members) label numbers and margins."""
        chosen = codes[:, :, None] == np.arange(n_labels)
        return cls(chosen.sum(axis=1), np.einsum("ikc,ik->ic", chosen, margins), codes[:, 0])

    def plus(self, codes: Ints, margins: Floats) -> Tally:
        """The same with one member more."""
        rows = np.arange(len(codes))
        votes, sums = self.votes.copy(), self.margins.copy()
        votes[rows, codes] += 1
        sums[rows, codes] += margins
        return Tally(votes, sums, self.first)

    def winners(self) -> Ints:
        """The number of the winning label of every sample."""
        is_top = self.votes == self.votes.max(axis=1, keepdims=True)
        sums = np.where(is_top, self.margins, -1.0)
        is_top = sums == sums.max(axis=1, keepdims=True)
        return np.where(is_top[np.arange(len(sums)), self.first], self.first, is_top.argmax(axis=1))


def member_votes(ensemble: BaseEstimator, X: Matrix, members: Sequence[int] | None = None) -> Votes:
    """The votes of the members of a fitted ensemble, or of some of them in the order given.

    ``ensemble`` is anything that :func:`exclusivity.diversity.member_predictions` takes. Margins are those of
    ``decision_function`` or, failing that, of ``predict_proba``; members with neither have margin zero.
    """
    if isinstance(ensemble, Pipeline):
        head = ensemble[:-1]
        return member_votes(ensemble[-1], head.transform(X) if len(head) else X, members)
    if hasattr(ensemble, "component_decision_function"):
        chosen: Any = slice(None) if members is None else list(members)
        labels, margins = member_predictions(ensemble, X), _component_margins(ensemble, X)
        return Votes(labels[:, chosen], margins[:, chosen])
    found = members_of(ensemble)
    if members is not None:
        found = _some(found, members)
    # The same rows and columns reach a stand-in that "predicts" how sure its member is.
    sure = replace(found, estimators=[MarginOf(member) for member in found.estimators], classes=None)
    return Votes(np.stack(found.predictions(X), axis=1), np.stack(sure.predictions(X), axis=1))


class MarginOf:
    """Stands in for a member: its prediction is the margin of the member's label."""

    def __init__(self, member: BaseEstimator) -> None:
        self._member = member

    def predict(self, X: Matrix) -> Floats:
        """By how much the member prefers its label to any other; zero if it does not say."""
        for method in ("decision_function", "predict_proba"):
            if hasattr(self._member, method):
                return lead(np.asarray(getattr(self._member, method)(X), dtype=float))
        return np.zeros(X.shape[0])


def lead(scores: Floats) -> Floats:
    """By how much the best score exceeds the second best, along axis 1; |score| of binary scores.

    A broken feature may have any finite value: what overflows still adds up to something.
    """
    scores = finite(scores)
    if scores.ndim == 1:
        return np.abs(scores)
    if scores.shape[1] == 1:  # a member that saw one class only
        return np.ones_like(scores[:, 0])
    best = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(best[:, 1] - best[:, 0])


def _component_margins(ensemble: BaseEstimator, X: Matrix) -> Floats:
    scores = np.asarray(ensemble.component_decision_function(X), dtype=float)
    n_classes = len(ensemble.classes_)
    if n_classes == 2:
        return np.asarray(np.abs(scores[:, 0]))
    scheme = getattr(ensemble, "multi_class_", "ovr")
    return lead(class_scores(scores, n_classes, str(scheme)))


def _some(found: Members, members: Sequence[int]) -> Members:
    columns = None if found.columns is None else [found.columns[i] for i in members]
    return replace(found, estimators=[found.estimators[i] for i in members], columns=columns)
