"""From scores of linear members to their preferences: votes, and whom they prefer of any two classes.

``scores`` has shape (n_samples, n_problems, n_members) throughout, one score per binary problem, one-vs-rest
or one-vs-one; the averaged model is one member. ``xp`` is numpy, or the namespace of ``exclusivity.io.onnx``
that writes the same operations as an ONNX graph.

Certificates need preferences as far as they are certain. A score sum_j x_j w_j + b is rounded differently in
another batch (BLAS sums in another order there), for sparse rows, with other threads or on another machine.
Whatever the order, with or without fused products, a sum of n products of numbers with unit roundoff u lies
within gamma_(n+1) of the true one, where gamma_m = m u / (1 - m u) is relative to

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
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.rows.design import DesignMatrix

UNDECIDED = -2
"""The vote of a member that might be for any class: its scores lie within their rounding errors."""

FIRST, SECOND = 0, 1
"""The side that a member takes in a duel of two classes."""

Sides = NDArray[np.int8]

_SPARE_ROUNDINGS = 8
# Beyond this a margin only tells its sign; sums of such margins stay finite.
_LARGEST_MARGIN = 1e150


@dataclass(frozen=True, eq=False)
class Election:
    """All that a voting rule needs to know of the members, for some rows."""

    votes: Any
    """The class that each member votes for, (n_samples, n_members) of int."""
    liking: Any
    """Numbers between -0.49 and 0.49, which break ties, (n_samples, n_classes): the higher one wins."""
    n_classes: int
    prefer_first: Callable[[Any, Any], Any] | None = None
    """``prefer_first(first, second)``, with class numbers of shape (n_samples,), tells whether each member
    prefers the first class to the second, (n_samples, n_members). None where members rank no classes."""
    copies: int = 1
    """How many equal members each one stands for."""
    xp: Any = np

    @property
    def counts(self) -> Any:
        """The number of votes for each class, (n_samples, n_classes)."""
        return self.copies * votes_by_class(self.votes, self.n_classes, self.xp)


def election_of_scores(
    scores: Any, n_classes: int, multi_class: str, copies: int = 1, xp: Any = np, present: Any = None
) -> Election:
    """Return what members say about more than two classes; the mean of their margins breaks ties.

    ``present``, (n_samples, n_members), is 1 for members that vote and 0 for those that abstain; None: all
    vote.
    """
    scores = finite(scores, xp)
    votes, margins = _choices(scores, n_classes, multi_class, xp)
    if present is not None:
        votes = (votes + 1) * present - 1
        margins = margins * xp.expand_dims(present, axis=1)

    def prefer_first(first: Any, second: Any) -> Any:
        if multi_class == "ovo":
            prefers = _chosen(scores, pair_numbers(first, second, n_classes), xp) > 0
        else:
            prefers = _chosen(scores, first, xp) >= _chosen(scores, second, xp)
        return prefers if present is None else prefers.astype(np.int64) * present

    return Election(votes, squash(xp.mean(margins, axis=2), xp), n_classes, prefer_first, copies, xp)


def _chosen(scores: Any, numbers: Any, xp: Any) -> Any:
    """Return the scores of one problem in each row, (n_samples, n_members)."""
    index = xp.expand_dims(xp.expand_dims(numbers, axis=1), axis=2)
    return xp.squeeze(xp.take_along_axis(scores, index, axis=1), axis=1)


def votes_by_class(votes: Any, n_classes: int, xp: Any = np) -> Any:
    """Return how many members vote for each class, (n_samples, n_classes); negative votes are none."""
    return xp.sum(xp.expand_dims(votes, axis=1) == np.arange(n_classes)[:, None], axis=2)


def member_votes(scores: Any, n_classes: int, multi_class: str, xp: Any = np) -> Any:
    """Return the number of the class that each member votes for, (n_samples, n_members).

    A margin that is infinite or NaN votes like any other: NaN like zero, infinities by their sign.
    """
    scores = finite(scores, xp)
    if n_classes == 2:
        return (xp.take(scores, 0, axis=1) > 0).astype(np.intp)
    return _choices(scores, n_classes, multi_class, xp)[0]


def _choices(scores: Any, n_classes: int, multi_class: str, xp: Any) -> tuple[Any, Any]:
    """Return the votes of members, and their margins by class, for more than two classes."""
    if multi_class == "ovr":
        return xp.argmax(scores, axis=1), scores
    wins, margins = pair_tallies(scores, n_classes, xp)
    # Margins decide among the classes with most wins.
    ranked = xp.where(wins == xp.max(wins, axis=1, keepdims=True), margins, -np.inf)
    return xp.argmax(ranked, axis=1), margins


def class_scores(scores: Any, n_classes: int, multi_class: str, xp: Any = np) -> Any:
    """Return every member's score of every class, for more than two classes.

    The shape is (n_samples, n_classes, n_members). One-vs-rest scores are that already. Of one-vs-one scores
    each class gets one vote per pair it wins plus the squashed sum of its margins in all its pairs.
    """
    if multi_class == "ovr":
        return scores
    wins, margins = pair_tallies(scores, n_classes, xp)
    return wins + squash(margins, xp)


def pair_tallies(scores: Any, n_classes: int, xp: Any = np) -> tuple[Any, Any]:
    """Return how many pairs each class wins, and the sum of its margins in all its pairs (one-vs-one)."""
    is_first = (np.arange(n_classes - 1) >= np.arange(n_classes)[:, None])[:, :, None]
    first_wins = by_class(scores > 0, n_classes, xp)
    margins = by_class(scores, n_classes, xp) * np.where(is_first, 1.0, -1.0)
    return xp.sum(first_wins == is_first, axis=2), xp.sum(margins, axis=2)


def by_class(values: Any, n_classes: int, xp: Any = np) -> Any:
    """Return values of pairs, (n_samples, n_classes, n_classes - 1, n_members): one for each rival."""
    numbers = np.empty((n_classes, n_classes), dtype=np.int64)
    for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
        numbers[i, j] = numbers[j, i] = pair
    return xp.take(values, numbers[~np.eye(n_classes, dtype=bool)].reshape(n_classes, -1), axis=1)


def pair_numbers(first: Any, second: Any, n_classes: int) -> Any:
    """Return the places of the pairs (first, second), first < second, in the order of one-vs-one problems."""
    return first * (2 * n_classes - first - 1) // 2 + second - first - 1


def finite(scores: Any, xp: Any = np) -> Any:
    """Return margins that can be added up: NaN is zero, and what is too large only keeps its sign."""
    return xp.clip(xp.where(xp.isnan(scores), 0.0, scores), -_LARGEST_MARGIN, _LARGEST_MARGIN)


def squash(scores: Any, xp: Any = np) -> Any:
    """Map increasingly into [-0.49, 0.49]: a margin that breaks ties and never outweighs a vote."""
    return 0.49 * scores / (1 + xp.abs(scores))


def top_two(scores: Any, n_classes: int, xp: Any = np) -> tuple[Any, Any]:
    """Return the two classes with the highest scores, the lower number first; of equals the first ones."""
    best = xp.argmax(scores, axis=1)
    others = xp.where(xp.expand_dims(best, axis=1) == np.arange(n_classes), -np.inf, scores)
    second = xp.argmax(others, axis=1)
    return xp.minimum(best, second), xp.maximum(best, second)


def winning_codes(scores: Floats) -> Ints:
    """Return the number of the class that the scores of ``decision_function`` choose, for every row."""
    return np.asarray(scores > 0 if scores.ndim == 1 else scores.argmax(axis=1), dtype=np.intp)


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

    def take(self, rows: slice | Ints, members: Bools) -> Self:
        """Return those of some rows and members, which are the last axis of every array."""
        chosen = slice(None) if members.all() else members
        arrays = {k: v[rows][..., chosen] for k, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, finer=None, **arrays)


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

    ``weights`` are (n_scores, n_features), and ``precision`` is the narrowest type that sums are computed in.

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
