"""An adversary that chooses which features to break, and how: exhaustive when few, greedy beyond."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from math import comb

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.classifier._validation import check_number, group_codes
from exclusivity.voting._changes import group_supports
from exclusivity.voting.preferences import pair_tallies

# Numbers in one temporary array of attacked rows: 32 MB.
_BLOCK_NUMBERS = 1 << 22
# How far beyond its boundary a member is pushed: other columns of the same member cannot move it back.
_PUSH = 100.0


@dataclass(frozen=True, eq=False)
class Attack:
    """Rows after an attack.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The attacked rows.
    features : ndarray of bool, shape (n_samples, n_groups)
        The features (groups) that were changed in each row.
    changed : ndarray of bool, shape (n_samples,)
        Whether the prediction is another one now.
    tied : ndarray of bool, shape (n_samples,)
        Whether another class could win a tie: it has at least as many votes as the former prediction, or
        could win the run-off. False for classifiers that count no votes.
    """

    X: Floats
    features: Bools
    changed: Bools
    tied: Bools

    @property
    def succeeded(self) -> Bools:
        """Changed or tied: what a certificate rules out up to its radius."""
        return self.changed | self.tied


def attack(
    estimator: BaseEstimator,
    X: Matrix,
    n_features: int,
    *,
    feature_groups: object = None,
    reference: object = None,
    size: float = 1000.0,
    max_sets: float = 500,
) -> Attack:
    """Try to change predictions by changing ``n_features`` features of every row.

    Members of an ERMClassifier are linear and their weights are used to choose values; any other classifier
    is only asked, at values far above and below what the columns have.

    Parameters
    ----------
    estimator : fitted classifier
        With ``predict``; votes (``component_predict``), ``decision_function`` or ``predict_proba`` guide the
        search.
    X : array-like of shape (n_samples, n_features)
        The rows to attack.
    n_features : int
        How many features (groups) may be changed.
    feature_groups : sequence of labels, callable or None, default=None
        Columns that count as one; by default those of the estimator, if it has any.
    reference : array-like, default=None
        The rows that tell how much columns vary; None: X.
    size : float, default=1000.0
        How many standard deviations a value is moved where weights are not known.
    max_sets : int or inf, default=500
        Every set of features is tried with every combination of moves where that means at most so many tries
        per row and class; elsewhere the best move is taken, then the best next one. For two classes and
        disjoint supports that finds a smallest change.

    Returns
    -------
    result : Attack

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.svm import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> float(attack(LinearSVC().fit(X, y), X, 1).changed.mean())  # one feature turns one SVM anywhere
    1.0
    """
    check_is_fitted(estimator)
    rows = check_array(X, dtype=np.float64, input_name="X")
    if feature_groups is None and hasattr(estimator, "groups_"):
        groups: Ints = estimator.groups_
    else:
        groups = group_codes(feature_groups, rows.shape[1], None)
    n_groups = int(groups.max()) + 1
    check_number({"n_features": n_features}, "n_features", least=0, integer=True)
    if n_features > n_groups:
        raise ValueError(
            f"n_features={n_features}, but there are only {n_groups} features (groups) to change."
        )
    base = rows if reference is None else check_array(reference, dtype=np.float64, input_name="reference")
    adversary = _Adversary(estimator, groups, size * base.std(axis=0), max_sets)
    n_moves = max(2 * n_groups, int(adversary.supports.sum()))
    step = max(1, _BLOCK_NUMBERS // (n_moves * rows.shape[1]))
    starts = range(0, len(rows), step)
    blocks = [adversary.run(rows[start : start + step], int(n_features)) for start in starts]
    X_new, touched = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    before = estimator.predict(rows)
    tied = adversary.tied(X_new, np.searchsorted(estimator.classes_, before))
    return Attack(X_new, touched, estimator.predict(X_new) != before, tied)


class _Adversary:
    """Moves the rows of any classifier; ``far`` is how far a column is moved where weights are not known."""

    def __init__(self, estimator: BaseEstimator, groups: Ints, far: Floats, max_sets: float) -> None:
        self.estimator, self.far, self.max_sets = estimator, far, max_sets
        has_votes = hasattr(estimator, "component_predict")
        self.counts_votes = has_votes and getattr(estimator, "voting", "hard") != "soft"
        self.columns_of = groups == np.arange(int(groups.max()) + 1)[:, None]
        # Equal members are asked once: what turns one of them turns all.
        self.supports = np.zeros((0, len(self.columns_of)), dtype=bool)
        if self.counts_votes:
            self.ensemble = replace(estimator._voting_ensemble(), groups=groups)
            self.supports = group_supports(self.ensemble.supports, groups)
        self.n_classes = len(estimator.classes_)

    def run(self, X: Floats, budget: int) -> tuple[Floats, Bools]:
        """Return attacked rows and the groups that were changed, for the most promising target class."""
        winners = np.searchsorted(self.estimator.classes_, self.estimator.predict(X))
        best, touched = X.copy(), np.zeros((len(X), len(self.columns_of)), dtype=bool)
        least = self.lead(X, winners)
        for shift in range(1, self.n_classes):
            targets = (winners + shift) % self.n_classes
            groups, steps = self._moves(X, targets)
            counts = np.bincount(groups, minlength=1)
            n_movable = int(np.count_nonzero(counts))
            n_moved = min(budget, n_movable)
            if comb(n_movable, n_moved) * int(counts.max(initial=1)) ** n_moved <= self.max_sets:
                tried, changed = self._exhaustive(X, winners, targets, groups, steps, n_moved)
            else:
                tried, changed = self._greedy(X, winners, targets, budget)
            lead = self.lead(tried, winners)
            better = lead < least
            best[better], touched[better], least[better] = tried[better], changed[better], lead[better]
        return best, touched

    def tied(self, X: Floats, winners: Ints) -> Bools:
        """Return whether another class could win as well, if the right ties were broken for it."""
        if not self.counts_votes:
            return np.zeros(len(X), dtype=bool)
        changes = self._min_changes(X)
        changes[np.arange(len(X)), winners] = 1
        return np.asarray((changes == 0).any(axis=1))

    def lead(self, X: Floats, winners: Ints, targets: Ints | None = None) -> Floats:
        """Return how far the winner is ahead of the target, or of the best other class: votes, or scores."""
        scores, rows = self._scores(X, winners), np.arange(len(X))
        own = scores[rows, winners]
        if targets is not None:
            return np.asarray(own - scores[rows, targets])
        scores[rows, winners] = -np.inf
        return np.asarray(own - scores.max(axis=1))

    def _scores(self, X: Floats, winners: Ints) -> Floats:
        """Return one score per class: minus the changes it needs to win where votes count, then votes."""
        if self.counts_votes:
            votes = self._votes(X)[:, self.supports.any(axis=1)]
            counts = np.stack([(votes == c).sum(axis=1) for c in range(self.n_classes)], axis=1)
            standing: Floats = counts / (4.0 * max(votes.shape[1], 1)) - self._min_changes(X)
            standing[np.arange(len(X)), winners] = 0.0
            return standing
        for method in ("decision_function", "predict_proba"):
            if hasattr(self.estimator, method):
                scores = np.asarray(getattr(self.estimator, method)(X), dtype=float)
                return np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores.copy()
        return np.asarray(
            np.asarray(self.estimator.predict(X))[:, None] == self.estimator.classes_, dtype=float
        )

    def _min_changes(self, X: Floats) -> Ints:
        return np.concatenate(list(self.ensemble.min_changes(X)))

    def _votes(self, X: Floats) -> Ints:
        labels = self.estimator.component_predict(X)[:, : len(self.supports)]
        return np.asarray(np.searchsorted(self.estimator.classes_, labels), dtype=np.intp)

    def _moves(self, X: Floats, targets: Ints) -> tuple[Ints, Floats]:
        """Return groups and steps: move m changes the columns of group ``groups[m]`` by ``steps[:, m]``."""
        if self.counts_votes and hasattr(self.estimator, "components_"):
            return self._linear_moves(X, targets)
        groups = np.repeat(np.arange(len(self.columns_of)), 2)  # all columns of a group up, or down
        signs = np.tile([1.0, -1.0], len(self.columns_of))[:, None]
        steps = signs * self.columns_of[groups] * self.far
        return groups, np.broadcast_to(steps, (len(X), *steps.shape))

    def _linear_moves(self, X: Floats, targets: Ints) -> tuple[Ints, Floats]:
        """Return moves of linear members: for every member and every group that it uses, towards the target.

        Member k that votes v and shall vote c is moved along the difference d of the gradients of its scores
        of c and v on the columns of the group, far enough for the group alone to turn it.
        """
        slopes, offsets = class_slopes(self.estimator, len(self.supports))
        pairs, votes = np.argwhere(self.supports.T), self._votes(X)
        steps = np.zeros((len(X), len(pairs), X.shape[1]))
        for number, (group, member) in enumerate(pairs):
            vote = votes[:, member]
            slope = slopes[targets, member] - slopes[vote, member]
            behind = np.einsum("ij,ij->i", X, slope) + offsets[targets, member] - offsets[vote, member]
            direction = slope * self.columns_of[group]
            length = np.einsum("ij,ij->i", direction, direction)[:, None]
            push = _PUSH * (1 + np.abs(behind))[:, None] * direction
            steps[:, number] = np.divide(push, length, out=np.zeros_like(direction), where=length > 0)
        return pairs[:, 0], steps

    def _exhaustive(
        self, X: Floats, winners: Ints, targets: Ints, groups: Ints, steps: Floats, n_moved: int
    ) -> tuple[Floats, Bools]:
        best, touched = X.copy(), np.zeros((len(X), len(self.columns_of)), dtype=bool)
        least = self.lead(X, winners, targets)
        by_group = [np.flatnonzero(groups == g) for g in np.unique(groups)]
        for chosen in combinations(by_group, n_moved):
            for together in map(list, product(*chosen)):
                tried = X + steps[:, together].sum(axis=1)
                lead = self.lead(tried, winners, targets)
                better = lead < least
                best[better], least[better] = tried[better], lead[better]
                touched[better] = np.isin(np.arange(len(self.columns_of)), groups[together])
        return best, touched

    def _greedy(self, X: Floats, winners: Ints, targets: Ints, budget: int) -> tuple[Floats, Bools]:
        X, touched = X.copy(), np.zeros((len(X), len(self.columns_of)), dtype=bool)
        rows = np.arange(len(X))
        for _ in range(budget):
            groups, steps = self._moves(X, targets)
            if not len(groups):
                break
            tried = X[:, None] + steps
            lead = self.lead(
                tried.reshape(-1, X.shape[1]),
                *(np.repeat(codes, tried.shape[1]) for codes in (winners, targets)),
            ).reshape(tried.shape[:2])
            lead[touched[:, groups]] = np.inf
            best = lead.argmin(axis=1)
            helps = lead[rows, best] < self.lead(X, winners, targets)
            X[helps] = tried[rows, best][helps]
            touched[rows[helps], groups[best[helps]]] = True
        return X, touched


def class_slopes(estimator: BaseEstimator, n_members: int) -> tuple[Floats, Floats]:
    """Return gradients (n_classes, n_members, n_columns) and offsets of the first members' scores."""
    offsets = estimator.component_intercepts_[:, :n_members, None]
    scores = np.concatenate([estimator.components_[:, :n_members], offsets], axis=2, dtype=float)
    n_classes = len(estimator.classes_)
    if n_classes == 2:
        scores = np.concatenate([-scores, scores])
    elif estimator.multi_class_ == "ovo":
        scores = pair_tallies(scores.transpose(2, 0, 1), n_classes)[1].transpose(1, 2, 0)
    return scores[..., :-1], scores[..., -1]
