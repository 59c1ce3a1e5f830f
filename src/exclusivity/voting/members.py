"""Members of any kind that vote: fitted classifiers that predict class numbers, each from its own columns.

A missing value is an erasure: with ``abstain`` a member whose columns are all missing in a row gives no vote.
It would say a constant, which takes 2 off a lead when one change turns it; an abstention takes 1. Where all
columns of a row are missing members vote all the same, without a certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from exclusivity._typing import (
    Bools,
    Floats,
    Ints,
    Matrix,
)
from exclusivity.voting._scores import Election, finite, squashed
from exclusivity.voting.preferences import (
    UNDECIDED,
    MemberPreferences,
    RankedPreferences,
    certain_votes,
    score_slack,
)
from exclusivity.voting.rules import RULES, VotingRule

# Scores in memory at once: 32 MB.
_BLOCK_SCORES = 1 << 22


@dataclass(frozen=True, eq=False)
class VotingMembers:
    """Members of any kind, and the rule that counts their votes.

    Attributes
    ----------
    estimators : sequence of fitted classifiers
        They predict numbers of classes.
    columns : sequence of arrays
        The columns that each of them sees: numbers, or truths.
    n_classes : int
    rule : VotingRule
    abstain : bool
        Whether members abstain where all of their columns are missing.
    """

    estimators: Sequence[Any]
    columns: Sequence[Any]
    n_classes: int
    rule: VotingRule
    abstain: bool = False

    def votes(self, X: Matrix) -> Ints:
        """Return the class number that every member votes for, (n_samples, n_members)."""
        return np.stack([np.asarray(m.predict(rows), dtype=np.intp) for m, rows in self._views(X)], axis=1)

    def winners(self, X: Matrix) -> Ints:
        """Return the class numbers that win.

        Hard: ties go to the class whose voters are surest, by the sum of their margins, then to the first
        member's, then to the first class. In a run-off they go, in both rounds, to the class that members
        score higher: on average, each member's scores counted from its mean and divided by their spread.
        """
        return np.concatenate([self._winners(rows) for rows in self._blocks(X)])

    def preferences(self, X: Matrix) -> Iterator[MemberPreferences]:
        """Yield votes, and scores of classes where the rule asks for them, block by block."""
        for rows in self._blocks(X):
            doubtful = np.stack([doubtful_votes(*view) for view in self._views(rows)], axis=1)
            votes = np.where(doubtful, UNDECIDED, self.votes(rows))
            votes[self._abstaining(rows)] = -1
            yield RankedPreferences(votes, *self._scores(rows)) if self._ranks else MemberPreferences(votes)

    @property
    def _ranks(self) -> bool:
        return self.rule.ranks_classes and self.n_classes > 2

    def _abstaining(self, X: Matrix) -> Bools:
        """Return which members have nothing but missing values, (n_samples, n_members)."""
        if not self.abstain or sparse.issparse(X) or not np.isnan(X).any():
            return np.zeros((X.shape[0], len(self.estimators)), dtype=bool)
        return np.stack([np.isnan(rows).all(axis=1) for _, rows in self._views(X)], axis=1)

    def _blocks(self, X: Matrix) -> Iterator[Matrix]:
        step = max(1, _BLOCK_SCORES // (self.n_classes * len(self.estimators)))
        return (X[start : start + step] for start in range(0, X.shape[0], step))

    def _views(self, X: Matrix) -> Iterator[tuple[Any, Matrix]]:
        """Yield members with the rows as they see them."""
        return ((m, X[:, columns]) for m, columns in zip(self.estimators, self.columns, strict=True))

    def _scores(self, X: Matrix) -> tuple[Floats, Floats]:
        """Return finite scores and their slack, (n_samples, n_classes, n_members) each."""
        found = [member_scores(*view, self.n_classes) for view in self._views(X)]
        scores, slack = (np.stack(parts, axis=2) for parts in zip(*found, strict=True))
        return finite(scores), slack

    def _winners(self, X: Matrix) -> Ints:
        votes, abstaining = self.votes(X), self._abstaining(X)
        abstaining[abstaining.all(axis=1)] = False
        votes[abstaining] = -1
        if not self._ranks:
            margins = np.stack([vote_margins(*view) for view in self._views(X)], axis=1)
            election = Election(votes, _liking_of_voters(votes, margins, self.n_classes), self.n_classes)
            rule = self.rule if self.n_classes > 2 else RULES["hard"]
            return np.asarray(rule.count(election).argmax(axis=1))
        scores, _ = self._scores(X)
        rows = np.arange(len(scores))

        def prefer_first(first: Ints, second: Ints) -> Bools:
            return np.asarray((scores[rows, first] >= scores[rows, second]) & ~abstaining)

        liking = squashed((_standardised(scores) * ~abstaining[:, None]).mean(axis=2))
        election = Election(votes, liking, self.n_classes, prefer_first)
        return np.asarray(self.rule.count(election).argmax(axis=1))


def _liking_of_voters(votes: Ints, margins: Floats, n_classes: int) -> Floats:
    """Return ranks of classes by the margins of their voters; of equals the first member's is ahead."""
    is_vote = votes[:, :, None] == np.arange(n_classes)
    sums = np.einsum("ikc,ik->ic", is_vote, margins)
    order = sums.argsort(axis=1)
    ordered = np.take_along_axis(sums, order, axis=1)
    ranks = np.empty_like(sums)
    np.put_along_axis(ranks, order, (np.diff(ordered, axis=1, prepend=ordered[:, :1]) > 0).cumsum(axis=1), 1)
    return np.asarray((2 * ranks + is_vote[:, 0]) * (0.49 / (2 * n_classes)))


def vote_margins(member: BaseEstimator, X: Matrix) -> Floats:
    """Return by how much a member's best score exceeds the second best; zero if it has no scores."""
    for method in ("decision_function", "predict_proba"):
        if hasattr(member, method):
            # A broken feature may have any finite value: what overflows still adds up to something.
            scores = finite(np.asarray(getattr(member, method)(X), dtype=float))
            if scores.ndim == 1:
                return np.asarray(np.abs(scores))
            if scores.shape[1] == 1:  # a member that saw one class only
                return np.ones_like(scores[:, 0])
            best = np.partition(scores, -2, axis=1)[:, -2:]
            return np.asarray(best[:, 1] - best[:, 0])
    return np.zeros(X.shape[0])


def doubtful_votes(member: BaseEstimator, X: Matrix) -> Bools:
    """Return whether rounding might turn a member's vote, for every row.

    Known for members that add up weighted columns: they have ``coef_``, ``intercept_`` and a
    ``decision_function`` with one score per row, or one per class. Others are taken at their word.
    """
    if isinstance(member, Pipeline):
        return doubtful_votes(member[-1], member[:-1].transform(X) if len(member) > 1 else X)
    weights = _linear_weights(member)
    if weights.size and hasattr(member, "decision_function"):
        scores = np.asarray(member.decision_function(X), dtype=float)
        scores = scores[:, None] if scores.ndim == 1 else scores
        if scores.shape[1] == len(weights):  # others have votes of pairs, and the like
            slack, n_classes = _linear_slack(member, X, weights), max(scores.shape[1], 2)
            return np.asarray(certain_votes(scores[..., None], slack[..., None], n_classes, "ovr")[:, 0] < 0)
    return np.zeros(X.shape[0], dtype=bool)


def _standardised(scores: Floats) -> Floats:
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = np.abs(centred).max(axis=1, keepdims=True)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0))


def member_scores(member: BaseEstimator, X: Matrix, n_classes: int) -> tuple[Floats, Floats]:
    """Return a member's score of every class, and its rounding error where the member is linear, else zero.

    Parameters
    ----------
    member : fitted classifier
        That predicts class numbers. Classes it has never seen rank last.
    X : rows, as the member takes them
    n_classes : int

    Returns
    -------
    scores, slack : ndarray of shape (n_samples, n_classes)
    """
    if isinstance(member, Pipeline):
        return member_scores(member[-1], member[:-1].transform(X) if len(member) > 1 else X, n_classes)
    known = np.asarray(member.classes_, dtype=np.intp)
    own = _own_scores(member, X, len(known))
    weights, slack = _linear_weights(member), np.zeros_like(own)
    if len(weights) == own.shape[1] and hasattr(member, "decision_function"):
        slack = _linear_slack(member, X, weights)
    if len(known) == 2 and own.shape[1] == 1:
        own, slack = np.hstack([-own, own]), np.hstack([slack, slack])
    scores, slacks = np.full((len(own), n_classes), -np.inf), np.zeros((len(own), n_classes))
    scores[:, known], slacks[:, known] = own, slack
    return scores, slacks


def _own_scores(member: BaseEstimator, X: Matrix, n_known: int) -> Floats:
    """Return scores of shape (n_samples, n_known), or one column for two classes."""
    for method in ("decision_function", "predict_proba"):
        if method == "decision_function" and getattr(member, "decision_function_shape", "ovr") != "ovr":
            continue
        if hasattr(member, method):
            scores = np.asarray(getattr(member, method)(X), dtype=float)
            scores = scores[:, None] if scores.ndim == 1 else scores
            if scores.shape[1] == n_known or (n_known == 2 and scores.shape[1] == 1):
                return scores
    way_out = "use voting='hard', or members that have one"
    if getattr(member, "decision_function_shape", "ovr") != "ovr":
        way_out = "set its decision_function_shape='ovr', or use voting='hard'"
    raise TypeError(
        f"A run-off needs members that rank classes, and {type(member).__name__} has neither a "
        f"decision_function nor a predict_proba with one column per class; {way_out}."
    )


def _linear_weights(member: BaseEstimator) -> Floats:
    """Return ``coef_`` as a matrix of one row per score, without rows where a member has none.

    That of an SVC with a linear kernel is sparse where it was fitted to sparse rows.
    """
    weights: Any = getattr(member, "coef_", np.empty((0, 0)))
    return np.atleast_2d(np.asarray(weights.toarray() if sparse.issparse(weights) else weights))


def _linear_slack(member: BaseEstimator, X: Matrix, weights: Floats) -> Floats:
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    return score_slack(X, weights, np.asarray(member.intercept_), np.result_type(weights.dtype, np.float32))
