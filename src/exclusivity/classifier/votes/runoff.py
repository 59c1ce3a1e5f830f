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

from itertools import combinations

import numpy as np

from exclusivity.classifier.votes.ballots import FIRST, SECOND, Ballots, Sides
from exclusivity.classifier.votes.decisions import top_two
from exclusivity.classifier.votes.reach import UNDECIDED, largest_reaches
from exclusivity.classifier.votes.threats import (
    Counts,
    Tally,
    fewest,
    fewest_changes,
    hard_threats,
    is_disjoint,
    row_blocks,
)
from exclusivity.problem.arrays import Bools, Floats, Ints


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
        leads = totals[self.rows, self.winner][:, None] - totals
        both = leads[:, :, None] + leads[:, None, :] - undecided[:, :, None]
        if is_disjoint(self.reach):
            single, together = _divided(leads - undecided, 2), _divided(both, 3)
        else:
            single, together = self._with_shared_features(both)
        needed = np.maximum(np.maximum(single[:, :, None], single[:, None, :]), together)
        if self.all_classes:
            needed = np.maximum(needed, self._finals_without_winner())
        classes, never = np.arange(self.n_classes), self._never
        needed[:, classes, classes] = never
        needed[self.rows, self.winner] = never
        needed[self.rows, :, self.winner] = never
        return needed

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
        together = np.zeros(both.shape, dtype=np.intp)
        for c, f in combinations(range(self.n_classes), 2):
            together[:, c, f] = together[:, f, c] = fewest(gains, both[:, c, f])
        return single, together

    def _duels_with_winner(self) -> Counts:
        """B: the fewest features for a final of c and the winner that c wins, (n_rows, c)."""
        if is_disjoint(self.reach):
            return self._by_members()
        return np.stack([self._by_features(c) for c in range(self.n_classes)], axis=1)

    def _by_members(self) -> Counts:
        """B for disjoint supports."""
        tally, kind = self.tally, self.tally.kind
        classes = np.arange(self.n_classes)
        leads = tally.leads()
        leads[:, classes, classes] = 0
        leads[self.rows, :, self.winner] = 0
        prefers = (self.sides == FIRST).astype(np.float32)
        is_vote = (tally.votes[:, :, None] == classes).astype(np.float32)
        of_voters = (prefers @ is_vote).astype(kind)
        liking, indifferent = ((self.sides == side).sum(axis=2, dtype=kind) for side in (FIRST, -1))
        return fewest_changes(leads, tally.n_members, (self.lead, liking, indifferent, of_voters))

    def _by_features(self, c: int) -> Ints:
        """B for shared features: what the duel needs, and what it takes to pass the strongest third class."""
        tally, sides = self.tally, self.sides[:, c]
        turned = (2 * (sides == FIRST) + (sides == -1)).astype(np.float32) @ self.reach
        others = tally.totals.copy()
        others[:, c] = others[self.rows, self.winner] = -1
        third = others.argmax(axis=1)
        gains = (
            self.reach.sum(axis=0)
            + tally.reached(third[:, None], self.reach)
            - tally.reached(c, self.reach)
            - tally.reached(UNDECIDED, self.reach)
        )
        behind = tally.totals[self.rows, third] - tally.totals[:, c] - tally.undecided
        return np.maximum(fewest(turned, self.lead[:, c]), fewest(gains, behind))


def _divided(numbers: Counts, by: int) -> Counts:
    """Rounded up; 0 for negative numbers."""
    return np.maximum(-(-numbers // by), 0)
