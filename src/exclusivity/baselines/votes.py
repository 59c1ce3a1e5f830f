"""The votes of an ensemble's members, how sure each member is, and the majority with its ties broken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from exclusivity.classifier import finite
from exclusivity.problem.arrays import Floats, Ints, Matrix


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

    def winners(self) -> Ints:
        """The number of the winning label of every sample."""
        is_top = self.votes == self.votes.max(axis=1, keepdims=True)
        sums = np.where(is_top, self.margins, -1.0)
        is_top = sums == sums.max(axis=1, keepdims=True)
        return np.where(is_top[np.arange(len(sums)), self.first], self.first, is_top.argmax(axis=1))


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
