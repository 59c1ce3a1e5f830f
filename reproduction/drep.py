"""DREP: prune an ensemble to few members that are accurate together and differ (Li, Yu, Zhou, ECML 2012).

Start with the member that is most accurate on the validation rows. Then, of the n members left, look at the
ceil(rho n) that agree least with the current vote, and add the one that gives the new vote the lowest error;
stop when no candidate lowers the error.

Two members that disagree tie wherever they do; how the original decides such votes is not known. Here ties go
to the larger sum of real-valued margins, and what is then still tied to the first member chosen. Where
margins do not differ (fully grown trees are always sure of themselves), a second member cannot lower the
error, and only one would be kept: use ``patience=1`` there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from exclusivity.diversity import member_predictions
from reproduction.data import Floats

Labels = NDArray[Any]
Ints = NDArray[np.intp]


def drep_select(
    labels: Labels, y: Labels, margins: Floats | None = None, *, rho: float = 0.4, patience: int = 0
) -> Ints:
    """Choose members from their predictions; return their numbers in the order of choice.

    Parameters
    ----------
    labels : ndarray of shape (n_samples, n_members)
        Predicted labels of any type.
    y : ndarray of shape (n_samples,)
        True labels.
    margins : ndarray of shape (n_samples, n_members) or None
        How sure members are of their labels, not negative. Without them ties go to the first member chosen.
    rho : float
        The share of the members left that counts as diverse, in (0, 1]. 1 leaves diversity out of account.
    patience : int
        Additions in a row that may fail to lower the error; those at the end are taken back. 0 is the
        published rule.

    Examples
    --------
    >>> labels = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 0]])
    >>> margins = np.array([[1, 2, 2], [2, 1, 2], [2, 2, 1], [2, 2, 1]])
    >>> drep_select(labels, np.ones(4, dtype=int), margins, rho=1).tolist()
    [0, 2]
    """
    if not 0 < rho <= 1:
        raise ValueError(f"rho is a share of the members left, above 0 and at most 1; got {rho!r}.")
    margins = np.zeros(labels.shape) if margins is None else margins
    errors = np.mean(labels != y[:, None], axis=0)
    kept = [int(errors.argmin())]
    left = [member for member in range(labels.shape[1]) if member not in kept]
    lowest, n_best = errors[kept[0]], 1
    while left and len(kept) - n_best <= patience:
        agreement = np.mean(labels[:, left] == vote(labels[:, kept], margins[:, kept])[:, None], axis=0)
        diverse = [left[place] for place in np.argsort(agreement, kind="stable")[: ceil(rho * len(left))]]
        votes = [vote(labels[:, [*kept, member]], margins[:, [*kept, member]]) for member in diverse]
        errors = np.array([np.mean(predicted != y) for predicted in votes])
        chosen = int(errors.argmin())
        kept.append(diverse[chosen])
        left.remove(diverse[chosen])
        if errors[chosen] < lowest:
            lowest, n_best = errors[chosen], len(kept)
    return np.array(kept[:n_best])


def vote(labels: Labels, margins: Floats) -> Labels:
    """Return the label with most votes; among equals the largest sum of margins, then the first member's.

    Examples
    --------
    >>> vote(np.array([["a", "b"], ["a", "b"]]), np.array([[1.0, 2.0], [1.0, 1.0]])).tolist()
    ['b', 'a']
    """
    names, codes = np.unique(labels, return_inverse=True)
    codes = codes.reshape(labels.shape)
    chosen = codes[:, :, None] == np.arange(len(names))
    counts, sums = chosen.sum(axis=1), np.einsum("ikc,ik->ic", chosen, margins)
    sums = np.where(counts == counts.max(axis=1, keepdims=True), sums, -1.0)
    is_top = sums == sums.max(axis=1, keepdims=True)
    first_wins = is_top[np.arange(len(codes)), codes[:, 0]]
    return np.asarray(names[np.where(first_wins, codes[:, 0], is_top.argmax(axis=1))])


def member_margins(ensemble: Any, X: Floats) -> Floats:
    """Return by how much every member prefers its label to any other, (n_samples, n_members)."""
    if hasattr(ensemble, "component_decision_function"):
        scores = ensemble.component_decision_function(X)
        if scores.shape[1] != 1:
            raise ValueError(f"The ensemble must have two classes; got {len(ensemble.classes_)}.")
        return np.asarray(np.abs(scores[:, 0]))
    members = ensemble if isinstance(ensemble, list) else ensemble.estimators_
    columns = getattr(ensemble, "estimators_features_", [slice(None)] * len(members))
    return np.stack([_lead(member, X[:, use]) for member, use in zip(members, columns, strict=True)], axis=1)


def _lead(member: Any, X: Floats) -> Floats:
    """Return by how much the best class exceeds the second best; zeros if the member does not say."""
    for method in ("decision_function", "predict_proba"):
        if hasattr(member, method):
            scores = np.asarray(getattr(member, method)(X), dtype=float)
            if scores.ndim == 1:
                return np.asarray(np.abs(scores))
            if scores.shape[1] == 1:  # a member that saw one class only
                return np.ones(len(scores))
            best = np.partition(scores, -2, axis=1)
            return np.asarray(best[:, -1] - best[:, -2])
    return np.zeros(len(X))


@dataclass(frozen=True, eq=False)
class PrunedEnsemble:
    """Vote with some members of a fitted ensemble.

    The ensemble is an ``ERMClassifier`` or ``DRMClassifier`` of two classes, an ensemble of scikit-learn that
    :func:`exclusivity.diversity.member_predictions` takes, or a list of fitted classifiers.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X[:300], y[:300])
    >>> pruned = PrunedEnsemble.prune(forest, X[300:450], y[300:450])
    >>> 1 < len(pruned.members) < 30, bool(np.mean(pruned.predict(X[450:]) == y[450:]) > 0.9)
    (True, True)
    """

    ensemble: Any
    members: Ints

    @classmethod
    def prune(cls, ensemble: Any, X: Floats, y: Labels, *, rho: float = 0.4, patience: int = 0) -> Self:
        """Choose members by :func:`drep_select` on validation rows, better ones not used for training."""
        labels, margins = member_predictions(ensemble, X), member_margins(ensemble, X)
        return cls(ensemble, drep_select(labels, y, margins, rho=rho, patience=patience))

    def predict(self, X: Floats) -> Labels:
        """Return the label with most votes; ties are broken as in the choice of members."""
        labels, margins = member_predictions(self.ensemble, X), member_margins(self.ensemble, X)
        return vote(labels[:, self.members], margins[:, self.members])
