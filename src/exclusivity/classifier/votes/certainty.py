"""Which votes stand in every arithmetic: those that no rounding error can turn.

A score sum_j x_j w_j + b is rounded differently in another batch (BLAS sums in another order there), for
sparse rows, with other threads or on another machine. Whatever the order, with or without fused products, a
sum of n products of numbers with unit roundoff u lies within gamma_(n+1) of the true one, where
gamma_m = m u / (1 - m u) is relative to

    a = sum_j |x_j w_j| + |b|        (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).

So two computed values of one score differ by at most 2 gamma_(n+1) a, plus what underflow takes: the *slack*
(n + 8) eps a + n tiny, eps = 2 u. The 7 above n + 1 pay for a itself being computed, and for values that
reach the members a few roundings apart (a scaler that divides dense rows and multiplies sparse ones). A
member's vote is certain if no change of its scores by their slacks turns it; every other vote counts as
undecided, as if it could be for any class. Zero terms add nothing: a column of weight zero is in no slack,
and a score of nothing but zeros is zero everywhere.
"""

from __future__ import annotations

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
from exclusivity.classifier.votes.decisions import finite, first_of_pairs, member_votes, pair_tallies
from exclusivity.classifier.votes.reach import UNDECIDED
from exclusivity.rows.design import DesignMatrix

_SPARE_ROUNDINGS = 8


def score_slack(X: Matrix, weights: Floats, intercepts: Floats, precision: object = np.float64) -> Floats:
    """How far two computed values of each score can be apart, (n_samples, n_scores).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    weights : ndarray of shape (n_scores, n_features)
    intercepts : ndarray of shape (n_scores,)
    precision : dtype
        The narrowest numbers in which the sums are computed.

    Examples
    --------
    >>> score_slack(np.array([[1e16, 1.0], [0.0, 0.0]]), np.array([[1.0, -1.0]]), np.zeros(1))
    array([[22.20446049],
           [ 0.        ]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = DesignMatrix(X).absolute_times(np.abs(weights.T).astype(float)) + np.abs(intercepts)
        return _slack(sizes, weights.shape[1], precision)


def rough_slack(X: Matrix, weights: Floats, intercepts: Floats) -> Floats:
    """No less than :func:`score_slack`, for the price of each row's largest value.

    |x| . |w| <= max |x| |w|_1: enough for most rows; one wild value in a row asks for the finer one.
    """
    if sparse.issparse(X):  # where |X| costs no more than that
        return score_slack(X, weights, intercepts)
    largest = np.maximum(X.max(axis=1).astype(float), -X.min(axis=1).astype(float))
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.abs(weights).sum(axis=1, dtype=float)
        return _slack(np.outer(largest, lengths) + np.abs(intercepts), weights.shape[1])


def _slack(sizes: Floats, n_terms: int, precision: Any = np.float64) -> Floats:
    limits = np.finfo(precision)
    slack = (n_terms + _SPARE_ROUNDINGS) * float(limits.eps) * sizes + n_terms * float(limits.tiny)
    return np.asarray(np.where(sizes == 0, 0.0, slack))


def certain_votes(scores: Floats, slack: Floats, n_classes: int, multi_class: str) -> Ints:
    """The votes of :func:`member_votes`, ``UNDECIDED`` where rounding might turn them.

    Parameters
    ----------
    scores, slack : ndarray of shape (n_samples, n_problems, n_members)
    n_classes : int
    multi_class : {"ovr", "ovo"}

    Examples
    --------
    >>> scores = np.array([[[2.0, 1e-17, -1.0]]])
    >>> certain_votes(scores, np.full_like(scores, 1e-15), 2, "ovr")
    array([[ 1, -2,  0]])
    """
    votes = member_votes(scores, n_classes, multi_class)
    scores = finite(scores)
    is_exact = (slack == 0).all(axis=1)
    is_certain: Bools
    if n_classes == 2:
        is_certain = np.abs(scores[:, 0]) > slack[:, 0]
    elif multi_class == "ovr":
        is_certain = np.all(_is_ahead(scores, slack, votes), axis=1)
    else:
        is_certain = np.all(_wins_pairs(scores, slack, votes, n_classes), axis=1)
    return np.where(is_certain | is_exact, votes, UNDECIDED)


def _is_ahead(values: Floats, slack: Floats, votes: Ints) -> Bools:
    """Whether the value of the vote stays above that of each class; True for its own class."""
    own = votes[:, None, :]
    with np.errstate(invalid="ignore"):  # inf - inf: nothing is certain
        least, most = np.take_along_axis(values - slack, own, axis=1), values + slack
    is_own = np.arange(values.shape[1])[:, None] == own
    return np.asarray((least > most) | is_own)


def _wins_pairs(scores: Floats, slack: Floats, votes: Ints, n_classes: int) -> Bools:
    """The same for one-vs-one: more pairs won than doubtful ones could give, or as many and more margin."""
    is_clear = (np.abs(scores) > slack) | (slack == 0)
    wins, margins = pair_tallies(scores, n_classes)
    doubtful, loose = np.zeros_like(wins), np.zeros_like(wins)
    # The sum of n_classes - 1 margins rounds, too.
    spread = slack + n_classes * np.finfo(float).eps * np.abs(scores)
    for i, pairs in first_of_pairs(n_classes):
        for total, parts in ((doubtful, ~is_clear[:, pairs]), (loose, spread[:, pairs])):
            total[:, i] += parts.sum(axis=1)
            total[:, i + 1 :] += parts
    own_wins = np.take_along_axis(wins, votes[:, None, :], axis=1)
    decides = (wins == own_wins) & is_clear.all(axis=1, keepdims=True)
    return np.where(decides, _is_ahead(margins, loose, votes), _is_ahead(wins, doubtful, votes))


def linear_weights(member: BaseEstimator) -> Floats:
    """Return ``coef_`` as a matrix of one row per score, without rows where a member has none.

    That of an SVC with a linear kernel is sparse where it was fitted to sparse rows.
    """
    weights: Any = getattr(member, "coef_", np.empty((0, 0)))
    return np.atleast_2d(np.asarray(weights.toarray() if sparse.issparse(weights) else weights))


class DoubtOf:
    """Stands in for a member of any kind: its "prediction" is whether rounding might turn the member's.

    Known for members that add up weighted columns: they have ``coef_``, ``intercept_`` and a
    ``decision_function`` with one score per row, or one per class. Others are taken at their word.
    """

    def __init__(self, member: BaseEstimator) -> None:
        self._member = member

    def predict(self, X: Matrix) -> Bools:
        """One answer per row."""
        member = self._member
        if isinstance(member, Pipeline):
            return DoubtOf(member[-1]).predict(member[:-1].transform(X) if len(member) > 1 else X)
        weights = linear_weights(member)
        if not weights.size or not hasattr(member, "decision_function"):
            return np.zeros(X.shape[0], dtype=bool)
        scores = np.asarray(member.decision_function(X), dtype=float)
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        scores = scores[:, None] if scores.ndim == 1 else scores
        if scores.shape[1] != len(weights):  # votes of pairs, and the like
            return np.zeros(X.shape[0], dtype=bool)
        precision = np.result_type(weights.dtype, np.float32)
        slack = score_slack(X, weights, np.asarray(member.intercept_), precision)
        n_classes = max(scores.shape[1], 2)
        return np.asarray(certain_votes(scores[..., None], slack[..., None], n_classes, "ovr")[:, 0] < 0)
