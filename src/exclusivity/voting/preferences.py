"""Preferences of members, as far as they are certain: votes, and whom members prefer of any two classes.

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

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.rows.design import DesignMatrix
from exclusivity.voting._scores import by_class, finite, member_votes, pair_numbers, pair_tallies

UNDECIDED = -2
"""The vote of a member that might be for any class: its scores lie within their rounding errors."""

FIRST, SECOND = 0, 1
"""The side that a member takes in a duel of two classes."""

Sides = NDArray[np.int8]
Rows = slice | Ints

_SPARE_ROUNDINGS = 8


@dataclass(frozen=True, eq=False)
class MemberPreferences:
    """The votes of all members for some rows, and in derived classes whom they prefer of two classes.

    Attributes
    ----------
    votes : ndarray of int, shape (n_samples, n_members)
        The class that each member votes for, 0 to n_classes - 1; -1 for a member that gives no vote here but
        might after a change; ``UNDECIDED`` for one that may vote for any class already.
    finer : callable or None
        ``finer(rows)`` gives the preferences of some rows with fewer undecided ones, where these are rough.
    """

    votes: Ints
    finer: Callable[[Ints], MemberPreferences] | None = field(default=None, kw_only=True)

    def against(self, rivals: Ints) -> Sides:
        """Return whom members prefer, every row's rival or each of the classes.

        The shape is (n_samples, n_classes, n_members). ``FIRST`` is the rival, ``SECOND`` the class; -1 and
        ``UNDECIDED`` as in ``votes``. What is said of the rival itself means nothing.
        """
        raise TypeError("members that only vote rank no classes")

    def take(self, rows: Rows, members: Bools) -> Self:
        """Return those of some rows and members."""
        return type(self)(self.votes[rows][:, members])


@dataclass(frozen=True, eq=False)
class PairPreferences(MemberPreferences):
    """Preferences of members that have an opinion on every pair of classes, as one-vs-one members have.

    Attributes
    ----------
    duels : ndarray of int8, shape (n_samples, n_pairs, n_members)
        For every pair, in the order of one-vs-one problems, ``FIRST`` for its first class or ``SECOND``.
    n_classes : int
    """

    duels: Sides
    n_classes: int

    def against(self, rivals: Ints) -> Sides:
        """See ``MemberPreferences``."""
        classes, rivals = np.arange(self.n_classes), rivals[:, None]
        low, high = np.minimum(classes, rivals), np.maximum(classes, rivals)
        pairs = np.where(low < high, pair_numbers(low, high, self.n_classes), 0)
        sides = np.take_along_axis(self.duels, pairs[:, :, None], axis=1)
        swapped = (classes < rivals)[:, :, None] & (sides >= 0)
        return np.where(swapped, SECOND - sides, sides).astype(np.int8)

    def take(self, rows: Rows, members: Bools) -> Self:
        """See ``MemberPreferences``."""
        return type(self)(self.votes[rows][:, members], self.duels[rows][:, :, members], self.n_classes)


@dataclass(frozen=True, eq=False)
class RankedPreferences(MemberPreferences):
    """Preferences of members that score classes, and prefer the higher score; equals go to the first class.

    Attributes
    ----------
    scores, slack : ndarray of shape (n_samples, n_classes, n_members)
        Finite scores, and how far rounding may move them.
    """

    scores: Floats
    slack: Floats

    def against(self, rivals: Ints) -> Sides:
        """See ``MemberPreferences``."""
        place = rivals[:, None, None]
        score, slack = (np.take_along_axis(part, place, axis=1) for part in (self.scores, self.slack))
        ahead, either = score - self.scores, slack + self.slack
        is_first, is_second = ahead > either, -ahead > either
        if not either.all():
            equal = np.nonzero((ahead == 0) & (either == 0))
            is_earlier = rivals[equal[0]] < equal[1]
            is_first[equal], is_second[equal] = is_earlier, ~is_earlier
        sides = (FIRST - UNDECIDED) * is_first.view(np.int8) + (SECOND - UNDECIDED) * is_second.view(np.int8)
        sides += UNDECIDED
        np.copyto(sides, -1, where=(self.votes == -1)[:, None])
        return np.asarray(sides, dtype=np.int8)

    def take(self, rows: Rows, members: Bools) -> Self:
        """See ``MemberPreferences``."""
        votes, scores, slack = self.votes[rows], self.scores[rows], self.slack[rows]
        if members.all():
            return type(self)(votes, scores, slack)
        return type(self)(votes[:, members], scores[:, :, members], slack[:, :, members])


def certain_preferences(
    scores: Floats,
    slack: Floats,
    n_classes: int,
    multi_class: str,
    finer: Callable[[Ints], MemberPreferences] | None = None,
    abstaining: Bools | None = None,
) -> MemberPreferences:
    """Return the preferences of linear members, undecided where a change by ``slack`` might turn them.

    Parameters
    ----------
    scores, slack : ndarray of shape (n_samples, n_problems, n_members)
    n_classes : int
    multi_class : {"ovr", "ovo"}
    finer : callable or None
        See ``MemberPreferences``.
    abstaining : ndarray of bool, shape (n_samples, n_members), or None
        Members that give no vote in a row; None: all vote.

    Examples
    --------
    >>> scores = np.array([[[2.0], [1.0], [1.0 + 1e-16]]])
    >>> certain_preferences(scores, np.full_like(scores, 1e-15), 3, "ovr").against(np.array([1]))[0, :, 0]
    array([ 1, -2, -2], dtype=int8)
    """
    votes = certain_votes(scores, slack, n_classes, multi_class)
    if abstaining is not None:
        votes[abstaining] = -1
    if n_classes == 2:
        return MemberPreferences(votes, finer=finer)
    scores = finite(scores)
    if multi_class == "ovr":
        return RankedPreferences(votes, scores, slack, finer=finer)
    sides = np.where(scores > 0, FIRST, SECOND).astype(np.int8)
    sides[~((np.abs(scores) > slack) | (slack == 0))] = UNDECIDED
    np.copyto(sides, -1, where=(votes == -1)[:, None])
    return PairPreferences(votes, sides, n_classes, finer=finer)


def certain_votes(scores: Floats, slack: Floats, n_classes: int, multi_class: str) -> Ints:
    """Return the votes of members, ``UNDECIDED`` where rounding might turn them.

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
    """Return whether the value of the vote stays above that of each class; True for its own class."""
    own = votes[:, None, :]
    with np.errstate(invalid="ignore"):  # inf - inf: nothing is certain
        least, most = np.take_along_axis(values - slack, own, axis=1), values + slack
    is_own = np.arange(values.shape[1])[:, None] == own
    return np.asarray((least > most) | is_own)


def _wins_pairs(scores: Floats, slack: Floats, votes: Ints, n_classes: int) -> Bools:
    """Return the same for one-vs-one: more clear wins, or as many and more margin."""
    is_clear = (np.abs(scores) > slack) | (slack == 0)
    wins, margins = pair_tallies(scores, n_classes)
    doubtful = by_class(~is_clear, n_classes).sum(axis=2)
    # The sum of n_classes - 1 margins rounds, too.
    loose = by_class(slack + n_classes * np.finfo(float).eps * np.abs(scores), n_classes).sum(axis=2)
    own_wins = np.take_along_axis(wins, votes[:, None, :], axis=1)
    decides = (wins == own_wins) & is_clear.all(axis=1, keepdims=True)
    return np.where(decides, _is_ahead(margins, loose, votes), _is_ahead(wins, doubtful, votes))


def score_slack(X: Matrix, weights: Floats, intercepts: Floats, precision: object = np.float64) -> Floats:
    """Return how far two computed values of each score can be apart, (n_samples, n_scores).

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
    """Return no less than :func:`score_slack`, in the time that it takes to find each row's largest value.

    |x| . |w| <= max |x| |w|_1: enough for most rows; one wild value in a row asks for the finer one.
    """
    if sparse.issparse(X):  # where |X| takes no longer than that
        return score_slack(X, weights, intercepts)
    largest = np.maximum(X.max(axis=1).astype(float), -X.min(axis=1).astype(float))
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.abs(weights).sum(axis=1, dtype=float)
        return _slack(np.outer(largest, lengths) + np.abs(intercepts), weights.shape[1])


def _slack(sizes: Floats, n_terms: int, precision: Any = np.float64) -> Floats:
    limits = np.finfo(precision)
    slack = (n_terms + _SPARE_ROUNDINGS) * float(limits.eps) * sizes + n_terms * float(limits.tiny)
    return np.asarray(np.where(sizes == 0, 0.0, slack))
