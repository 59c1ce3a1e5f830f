"""The certificate of run-offs: how many features it takes until a class can win one.

Threats are those of ``threats``; a tie in either round counts as won by anybody. Let w win the run-off, v_c
be votes of the first round, m the number of undecided ones. For c to win,

A. either another class f meets c in the final, and w is pushed out: both leads of w, g over c and h over f,
   have to go. A change lowers g by 2 (a voter of w) or 1, h likewise, and g + h by 3 (a voter of w) or 1; an
   undecided vote lowers one of them by 1. And c has to win against f.
B. or c meets w in the final and wins there: the lead of w in their duel falls by 2 for every changed member
   that prefers w, by 1 for one that has no preference. And c has to get there, level with every third class
   d. Disjoint supports: n changes are enough for that if sum_d max(q_d, 0) <= n, q_d = v_d - v_c - m - n (see
   ``threats``). They include max(q_d, 0) voters of d, of whom p_d prefer w; so at most
   min(n - sum_d max(q_d - p_d, 0), u) changed members prefer w, where u is how many of all do. The smallest n
   that satisfies both is exact, but for members that vote for c and prefer w all the same.

With shared features the r features that lower a lead most, one by one, bound what any r of them do; every
condition has its own r, and all of them are necessary.
"""

from __future__ import annotations

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.classifier.votes.ballots import FIRST, SECOND, Ballots, Sides
from exclusivity.classifier.votes.decisions import top_two
from exclusivity.classifier.votes.reach import UNDECIDED, largest_reaches
from exclusivity.classifier.votes.threats import (
    BLOCK_NUMBERS,
    Counts,
    Tally,
    fewest,
    fewest_changes,
    fewest_of_each,
    hard_threats,
    is_disjoint,
    product,
    row_blocks,
)


def runoff_threats(ballots: Ballots, supports: Bools, n_classes: int, *, all_classes: bool = True) -> Ints:
    """The threat of every class in a run-off.

    Parameters
    ----------
    ballots : Ballots
    supports : ndarray of bool, shape (n_members, n_groups)
        Which member uses which group of columns. Members that use none abstain.
    n_classes : int
    all_classes : bool, default=True
        Whether c has to win the final of A. That makes the threats of some classes larger, never the
        smallest one: of two classes that meet one is not behind. It takes twice the time.

    Returns
    -------
    threats : ndarray of int, shape (n_samples, n_classes)
        More than the number of groups where no number of them is enough.

    Examples
    --------
    Members that rank classes 012, 012, 102, 210 and 201: class 0 leads with two votes and meets class 2,
    which three of five members like less. One feature is enough for class 2, and for class 1, which it brings
    to the final.

    >>> from exclusivity.classifier.votes.ballots import certain_ballots
    >>> rankings = np.array([[0, 1, 2], [0, 1, 2], [1, 0, 2], [2, 1, 0], [2, 0, 1]])
    >>> scores = -np.argsort(rankings, axis=1).T[None].astype(float)
    >>> ballots = certain_ballots(scores, np.zeros_like(scores), 3, "ovr")
    >>> runoff_threats(ballots, np.eye(5, dtype=bool), 3)
    array([[0, 1, 1]])
    """
    if n_classes == 2:
        return hard_threats(ballots.votes, supports, n_classes)
    fed: Bools = np.asarray(supports.any(axis=1))
    reach, n_rows = largest_reaches(supports[fed]), len(ballots.votes)
    threats, in_doubt = np.empty((n_rows, n_classes), dtype=np.intp), np.empty(n_rows, dtype=bool)
    for rows in row_blocks(n_rows, reach, n_classes):
        run_off = _RunOff(ballots.take(rows, fed), n_classes, reach, all_classes)
        threats[rows], in_doubt[rows] = run_off.threats(), run_off.in_doubt()
    doubtful = np.flatnonzero(in_doubt)
    finer = ballots.refined(doubtful) if doubtful.size else None
    if finer is not None:
        threats[doubtful] = runoff_threats(finer, supports, n_classes, all_classes=all_classes)
    return threats


class _RunOff:
    """One run-off for each of some rows, all members with features."""

    def __init__(self, ballots: Ballots, n_classes: int, reach: Floats, all_classes: bool) -> None:
        self.tally, self.n_classes, self.reach = Tally(ballots.votes, n_classes), n_classes, reach
        self.ballots, self.all_classes, self.rows = ballots, all_classes, np.arange(len(ballots.votes))
        self.winner, self.sides, self.lead = self._find_winner()

    def _find_winner(self) -> tuple[Ints, Sides, Counts]:
        """The winners, the sides of members and the leads of the winners in all their duels."""
        first, second = top_two(self.tally.totals.astype(float)).T
        sides = self.ballots.against(first)
        lead = self._leads(sides)
        lost = np.flatnonzero(-lead[self.rows, second] > 2 * self._doubts(sides)[self.rows, second])
        winner = first.copy()
        winner[lost] = second[lost]
        if lost.size:
            sides[lost] = self.ballots.take(lost, self._everybody).against(second[lost])
            lead[lost] = self._leads(sides[lost])
        return winner, sides, lead

    @property
    def _everybody(self) -> Bools:
        return np.ones(self.tally.n_members, dtype=bool)

    def _leads(self, sides: Sides) -> Counts:
        """By how many votes the rival is ahead of each class, undecided ones against it; (n_rows, c)."""
        counts = [(sides == side).sum(axis=2, dtype=self.tally.kind) for side in (FIRST, SECOND)]
        return np.asarray(counts[0] - counts[1] - self._doubts(sides))

    def _doubts(self, sides: Sides) -> Counts:
        return np.asarray((sides == UNDECIDED).sum(axis=2, dtype=self.tally.kind))

    def in_doubt(self) -> Bools:
        """Whether rounding has a say in a row."""
        doubts = self._doubts(self.sides)
        doubts[self.rows, self.winner] = 0
        return np.asarray((self.tally.undecided > 0) | doubts.any(axis=1))

    def threats(self) -> Counts:
        """Of all classes, (n_rows, n_classes)."""
        by_pairs = self._pairs_that_push_out()
        without_winner = by_pairs.min(axis=2)
        threats: Counts = np.minimum(without_winner, self._duels_with_winner())
        threats[self.rows, self.winner] = 0
        return threats

    def _pairs_that_push_out(self) -> Counts:
        """A: the fewest features for a final of c and f that c wins, (n_rows, c, f)."""
        totals, undecided = self.tally.totals, self.tally.undecided[:, None]
        opponents = self._opponents()
        leads = totals[self.rows, self.winner][:, None] - totals
        both = leads[:, :, None] + leads[:, None, opponents] - undecided[:, :, None]
        if is_disjoint(self.reach):
            single, together = _divided(leads - undecided, 2), _divided(both, 3)
        else:
            single, together = self._with_shared_features(both)
        needed = np.maximum(np.maximum(single[:, :, None], single[:, None, opponents]), together)
        if self.all_classes:
            needed = np.maximum(needed, self._finals_without_winner())
        never = self._never
        needed[:, opponents, np.arange(len(opponents))] = never
        needed[self.rows, self.winner] = never
        needed[np.broadcast_to((self.winner[:, None] == opponents)[:, None], needed.shape)] = never
        return needed

    def _opponents(self) -> Ints:
        """The f to look at: where c needs not win against f, one without votes is as good as another.

        Three of them, as one may be c and one the winner.
        """
        if self.all_classes:
            return np.arange(self.n_classes)
        voted = self.tally.voted
        without = np.setdiff1d(np.arange(min(self.n_classes, len(voted) + 3)), voted)[:3]
        return np.union1d(voted, without)

    def _finals_without_winner(self) -> Counts:
        """The fewest features for c to win a duel with f, (n_rows, c, f)."""
        leads = [
            self._leads(self.ballots.against(np.full_like(self.winner, f))) for f in range(self.n_classes)
        ]
        # A feature turns no more duel votes than it has members.
        most = max(int(self.reach.sum(axis=0).max(initial=0)), 1)
        return _divided(np.stack(leads, axis=2), 2 * most)

    @property
    def _never(self) -> int:
        """More features than there are."""
        return max(int(self.reach.shape[1]), self.tally.n_members) + 1

    def _with_shared_features(self, both: Counts) -> tuple[Ints, Ints]:
        single = self.tally.fewest_against(self.winner, self.reach)
        gains = (
            self.reach.sum(axis=0)
            + 2 * self.tally.reached(self.winner[:, None], self.reach)
            - self.tally.reached(UNDECIDED, self.reach)
        )
        return single, fewest_of_each(gains, both)

    def _duels_with_winner(self) -> Counts:
        """B: the fewest features for a final of c and the winner that c wins, (n_rows, c)."""
        if is_disjoint(self.reach):
            return self._by_members()
        step = max(1, BLOCK_NUMBERS // max(1, len(self.rows) * self.reach.shape[1]))
        blocks = (
            np.arange(start, min(start + step, self.n_classes)) for start in range(0, self.n_classes, step)
        )
        return np.concatenate([self._by_features(classes) for classes in blocks], axis=1)

    def _by_members(self) -> Counts:
        """B for disjoint supports."""
        tally, kind = self.tally, self.tally.kind
        voted = tally.voted
        leads = tally.leads()
        leads[:, voted, np.arange(len(voted))] = 0
        leads[np.broadcast_to((self.winner[:, None] == voted)[:, None], leads.shape)] = 0
        prefers = (self.sides == FIRST).astype(np.float32)
        is_vote = (tally.votes[:, :, None] == voted).astype(np.float32)
        of_voters = (prefers @ is_vote).astype(kind)
        liking, indifferent = ((self.sides == side).sum(axis=2, dtype=kind) for side in (FIRST, -1))
        return fewest_changes(leads, tally.n_members, (self.lead, liking, indifferent, of_voters))

    def _by_features(self, classes: Ints) -> Ints:
        """B for shared features: what the duel needs, and what it takes to pass the strongest third class."""
        tally, reach, rows = self.tally, self.reach, self.rows[:, None]
        sides = self.sides[:, classes]
        turned = product((2 * (sides == FIRST) + (sides == -1)).astype(np.float32), reach)
        third = self._third_classes(classes)
        gains = (
            reach.sum(axis=0)
            + product((tally.votes[:, None] == third[:, :, None]).astype(np.float32), reach)
            - product((tally.votes[:, None] == classes[:, None]).astype(np.float32), reach)
            - tally.reached(UNDECIDED, reach)[:, None]
        )
        behind = tally.totals[rows, third] - tally.totals[:, classes] - tally.undecided[:, None]
        flat = (-1, reach.shape[1])
        needed = np.maximum(
            fewest(turned.reshape(flat), self.lead[:, classes].ravel()),
            fewest(gains.reshape(flat), behind.ravel()),
        )
        return np.asarray(needed.reshape(behind.shape))

    def _third_classes(self, classes: Ints) -> Ints:
        """The class with most votes beside the winner and each of these classes, (n_rows, len(classes))."""
        others = self.tally.totals.copy()
        others[self.rows, self.winner] = -1
        best = others.argmax(axis=1)
        others[self.rows, best] = -1
        second = others.argmax(axis=1)
        return np.asarray(np.where(classes == best[:, None], second[:, None], best[:, None]))


def _divided(numbers: Counts, by: int) -> Counts:
    """Rounded up; 0 for negative numbers."""
    return np.maximum(-(-numbers // by), 0)
