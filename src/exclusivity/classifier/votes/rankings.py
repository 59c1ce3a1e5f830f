"""Members of any kind that rank classes by their scores, and the run-off that they decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.classifier.votes.ballots import RankedBallots
from exclusivity.classifier.votes.certainty import DoubtOf, linear_weights, score_slack
from exclusivity.classifier.votes.decisions import finite, squashed, top_two
from exclusivity.classifier.votes.reach import UNDECIDED


@dataclass(frozen=True, eq=False)
class Rankings:
    """What every member thinks of every class.

    Attributes
    ----------
    votes : ndarray of int, shape (n_samples, n_members)
        The class that each member predicts.
    scores : ndarray of shape (n_samples, n_classes, n_members)
        Finite; of two classes the member prefers the one with the higher score, of equals the first.
    slack : ndarray of shape (n_samples, n_classes, n_members)
        How far rounding may move the scores.
    doubts : ndarray of bool, shape (n_samples, n_members)
        Whether rounding might turn the vote.
    """

    votes: Ints
    scores: Floats
    slack: Floats
    doubts: Any

    @classmethod
    def of(cls, members: Sequence[BaseEstimator], rows: Sequence[Matrix], n_classes: int) -> Rankings:
        """From members that predict class numbers, each with the rows as it sees them."""
        pairs = list(zip(members, rows, strict=True))
        votes = [np.asarray(member.predict(X), dtype=np.intp) for member, X in pairs]
        ranked = [member_scores(member, X, n_classes) for member, X in pairs]
        scores, slack = (np.stack(parts, axis=2) for parts in zip(*ranked, strict=True))
        doubts = [DoubtOf(member).predict(X) for member, X in pairs]
        return cls(np.stack(votes, axis=1), finite(scores), slack, np.stack(doubts, axis=1))

    def ballots(self) -> RankedBallots:
        """What is certain of it."""
        votes = np.where(self.doubts, UNDECIDED, self.votes)
        return RankedBallots(votes, self.scores, self.slack)

    def winners(self) -> Ints:
        """The class numbers that win the run-offs.

        Ties, in both rounds, go to the class that members score higher: on average, each member's scores
        counted from its mean and divided by their spread.
        """
        n_classes = self.scores.shape[1]
        liking = squashed(_standardised(self.scores).mean(axis=2))
        votes = np.stack([(self.votes == c).sum(axis=1) for c in range(n_classes)], axis=1)
        finalists = top_two(votes + liking)
        first, second = (
            np.take_along_axis(self.scores, finalists[:, [i], None], axis=1)[:, 0] for i in (0, 1)
        )
        for_first = (first >= second).sum(axis=1)
        lead = 2 * for_first - self.votes.shape[1]
        liked = np.take_along_axis(liking, finalists, axis=1)
        ahead = lead + (liked[:, 0] - liked[:, 1]) / 2
        return np.asarray(np.where(ahead >= 0, finalists[:, 0], finalists[:, 1]))


def _standardised(scores: Floats) -> Floats:
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = np.abs(centred).max(axis=1, keepdims=True)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0))


def member_scores(member: BaseEstimator, X: Matrix, n_classes: int) -> tuple[Floats, Floats]:
    """A member's score of every class, and its rounding error where the member is linear, else zero.

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
    slack = _linear_slack(member, X, own)
    if len(known) == 2 and own.shape[1] == 1:
        own, slack = np.hstack([-own, own]), np.hstack([slack, slack])
    scores, slacks = np.full((len(own), n_classes), -np.inf), np.zeros((len(own), n_classes))
    scores[:, known], slacks[:, known] = own, slack
    return scores, slacks


def _own_scores(member: BaseEstimator, X: Matrix, n_known: int) -> Floats:
    """(n_samples, n_known), or one column for two classes."""
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


def _linear_slack(member: BaseEstimator, X: Matrix, scores: Floats) -> Floats:
    weights = linear_weights(member)
    if weights.shape[0] != scores.shape[1] or not hasattr(member, "decision_function"):
        return np.zeros_like(scores)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    precision = np.result_type(weights.dtype, np.float32)
    return score_slack(X, weights, np.asarray(member.intercept_), precision)
