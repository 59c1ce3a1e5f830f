"""What members say in a run-off: a vote each, and whom they prefer of any two classes, as far as certain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.classifier.votes.certainty import certain_votes
from exclusivity.classifier.votes.decisions import finite, pair_numbers
from exclusivity.classifier.votes.reach import UNDECIDED

FIRST, SECOND = 0, 1
"""The side that a member takes in a duel of two classes."""

Sides = NDArray[np.int8]
Rows = slice | Ints


@dataclass(frozen=True, eq=False)
class Ballots(ABC):
    """The ballots of all members for some rows.

    Attributes
    ----------
    votes : ndarray of int, shape (n_samples, n_members)
        Votes of the first round: class numbers, -1 for none, ``UNDECIDED`` where rounding might turn them.
    """

    votes: Ints

    @abstractmethod
    def against(self, rivals: Ints) -> Sides:
        """Whom members prefer, every row's rival or each of the classes, (n_samples, n_classes, n_members).

        ``FIRST`` is the rival, ``SECOND`` the class; -1 and ``UNDECIDED`` as in ``votes``. What is said of
        the rival itself means nothing.
        """

    @abstractmethod
    def take(self, rows: Rows, members: Bools) -> Self:
        """Those of some rows and members."""

    def refined(self, rows: Ints) -> Ballots | None:
        """The same of some rows with less in doubt, or None where nothing is known better."""
        return None


@dataclass(frozen=True, eq=False)
class PairBallots(Ballots):
    """Ballots of members that have an opinion on every pair of classes, as one-vs-one members have.

    Attributes
    ----------
    duels : ndarray of int8, shape (n_samples, n_pairs, n_members)
        For every pair, in the order of one-vs-one problems, ``FIRST`` for its first class or ``SECOND``.
    n_classes : int
    """

    duels: Sides
    n_classes: int

    def against(self, rivals: Ints) -> Sides:
        """See ``Ballots``."""
        classes, rivals = np.arange(self.n_classes), rivals[:, None]
        low, high = np.minimum(classes, rivals), np.maximum(classes, rivals)
        pairs = np.where(low < high, pair_numbers(low, high, self.n_classes), 0)
        sides = np.take_along_axis(self.duels, pairs[:, :, None], axis=1)
        swapped = (classes < rivals)[:, :, None] & (sides >= 0)
        return np.where(swapped, SECOND - sides, sides).astype(np.int8)

    def take(self, rows: Rows, members: Bools) -> Self:
        """See ``Ballots``."""
        return type(self)(self.votes[rows][:, members], self.duels[rows][:, :, members], self.n_classes)


@dataclass(frozen=True, eq=False)
class RankedBallots(Ballots):
    """Ballots of members that score classes, and prefer the higher score; equals go to the first class.

    Attributes
    ----------
    scores, slack : ndarray of shape (n_samples, n_classes, n_members)
        Finite scores, and how far rounding may move them.
    """

    scores: Floats
    slack: Floats

    def against(self, rivals: Ints) -> Sides:
        """See ``Ballots``."""
        place = rivals[:, None, None]
        score, slack = (np.take_along_axis(part, place, axis=1) for part in (self.scores, self.slack))
        ahead, doubt = score - self.scores, slack + self.slack
        is_first, is_second = ahead > doubt, -ahead > doubt
        if not doubt.all():
            equal = np.nonzero((ahead == 0) & (doubt == 0))
            is_earlier = rivals[equal[0]] < equal[1]
            is_first[equal], is_second[equal] = is_earlier, ~is_earlier
        sides = (FIRST - UNDECIDED) * is_first.view(np.int8) + (SECOND - UNDECIDED) * is_second.view(np.int8)
        return np.asarray(sides + UNDECIDED, dtype=np.int8)

    def take(self, rows: Rows, members: Bools) -> Self:
        """See ``Ballots``."""
        votes, scores, slack = self.votes[rows], self.scores[rows], self.slack[rows]
        if members.all():
            return type(self)(votes, scores, slack)
        return type(self)(votes[:, members], scores[:, :, members], slack[:, :, members])


@dataclass(frozen=True, eq=False)
class RoughBallots(Ballots):
    """Ballots with more in doubt than need be, and the way to better ones."""

    rough: Ballots
    finer: Callable[[Ints], Ballots]

    def against(self, rivals: Ints) -> Sides:
        """See ``Ballots``."""
        return self.rough.against(rivals)

    def take(self, rows: Rows, members: Bools) -> Any:
        """Those of some rows and members, as rough as they are."""
        return self.rough.take(rows, members)

    def refined(self, rows: Ints) -> Ballots:
        """See ``Ballots``."""
        return self.finer(rows)


def certain_ballots(scores: Floats, slack: Floats, n_classes: int, multi_class: str) -> Ballots:
    """The ballots of members by their scores, undecided where a change by ``slack`` might turn them.

    Parameters
    ----------
    scores, slack : ndarray of shape (n_samples, n_problems, n_members)
    n_classes : int
    multi_class : {"ovr", "ovo"}

    Examples
    --------
    >>> scores = np.array([[[2.0], [1.0], [1.0 + 1e-16]]])
    >>> certain_ballots(scores, np.full_like(scores, 1e-15), 3, "ovr").against(np.array([1]))[0, :, 0]
    array([ 1, -2, -2], dtype=int8)
    """
    votes = certain_votes(scores, slack, n_classes, multi_class)
    scores = finite(scores)
    if multi_class == "ovr":
        return RankedBallots(votes, scores, slack)
    sides = np.where(scores > 0, FIRST, SECOND).astype(np.int8)
    sides[~((np.abs(scores) > slack) | (slack == 0))] = UNDECIDED
    return PairBallots(votes, sides, n_classes)
