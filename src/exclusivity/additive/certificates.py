"""Exact certificates of additive scores: what they can become when cells of a row change.

For the sign s of a score f the damage of column j is d_j = s (F_j - worst reachable value) >= 0, where F_j is
the contribution of its cell. Whatever r groups of columns contain, the score keeps its sign if and only if
s f exceeds T_r(d), the sum of the r largest damages of groups. The radius of a row is the largest such r, and
``Adversary.radii`` computes it.

Rows come encoded (``Levels.encode``), with two numbers for each cell: its ``left`` point, and the ``weight``
of the point to its right.

Several classes are decided by duels, one score for every pair of them. A class that wins all its duels is
predicted, and stays so as long as it wins them all. With f_cd in favour of d, the smallest lead of class d
lies between the minima over its rivals c of f_cd - T_r and of f_cd + T_r(gains). A class whose largest
possible lead is below the smallest possible one of another class cannot be predicted.

Scores are sums of floating point numbers. Every score that is computed from cells, broken or not, is within
``slack`` of its exact value; a certificate asks for a margin of four times that, so that rounding cannot
change a certified label.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.additive.sums import Reach, contributions, smooth_ends, worst_sums

_UNIT = 2.0**-53
_SLACKS = 4


class Duels:
    """Additive scores of all pairs of classes; positive ones favour the second class of a pair.

    Parameters
    ----------
    points : ndarray of shape (n_duels, n_points)
        The values of the points of all columns.
    intercepts : ndarray of shape (n_duels,)
        The intercepts.
    starts : ndarray of int of shape (n_columns + 1,)
        Where the points of each column begin.
    n_classes : int
        The number of classes.

    Attributes
    ----------
    pairs : list of tuple of int
        The numbers of the classes of each duel.
    slacks : ndarray of shape (n_duels,)
        Bounds of the rounding errors of scores.
    """

    def __init__(self, points: Floats, intercepts: Floats, starts: Ints, n_classes: int) -> None:
        self.points, self.intercepts, self.starts = points, intercepts, starts
        self.n_classes, self.pairs = n_classes, list(combinations(range(n_classes), 2))
        # Duel by duel: a model file must not take twice its size again to be loaded.
        largest = np.array([np.maximum.reduceat(np.abs(own), starts[:-1]).sum() for own in points])
        sizes = np.abs(intercepts) + 2 * largest + np.finfo(float).tiny
        self.slacks = (len(starts) + 3) * _UNIT * sizes

    def scores(self, left: Ints, weight: Floats) -> Iterator[tuple[tuple[int, int], Floats]]:
        """Yield the classes and the scores of each duel."""
        for pair, points, b in zip(self.pairs, self.points, self.intercepts, strict=True):
            yield pair, total(contributions(points, left, weight), b)

    def decide(self, left: Ints, weight: Floats) -> Floats:
        """Return the scores of two classes, or the smallest lead of each of several classes."""
        smallest = np.full((len(left), self.n_classes), np.inf)
        for (first, second), lead in self.scores(left, weight):
            if self.n_classes == 2:
                return lead
            np.minimum(smallest[:, first], -lead, out=smallest[:, first])
            np.minimum(smallest[:, second], lead, out=smallest[:, second])
        return smallest

    def probabilities(self, left: Ints, weight: Floats) -> Floats:
        """Return probabilities where scores are log odds: those of duels, coupled as Price et al. (1994)."""
        inverse = np.zeros((len(left), self.n_classes))
        for (first, second), score in self.scores(left, weight):
            odds = np.exp(np.clip(score, -700, 700))
            inverse[:, first] += 1 + odds
            inverse[:, second] += 1 + 1 / odds
        found = 1 / (inverse - self.n_classes + 2)
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def total(contribution: Floats, b: float) -> Floats:
    """Return the scores of rows with these contributions."""
    return np.asarray(contribution.sum(axis=1) + b)


def winners(scores: Floats) -> Ints:
    """Return the number of the predicted class of each row."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)


class Contest(NamedTuple):
    """A duel in which the predicted classes of some rows take part."""

    number: int
    """The number of the duel."""
    rows: Ints | slice
    sign: Ints
    """1 where the second class of the duel is predicted, else -1."""
    contribution: Floats
    """What each cell adds to the score, (n_rows, n_columns)."""
    margin: Floats
    """The lead of the predicted class; certificates need more than ``slack``."""
    damage: Floats
    """What each column can take from the margin."""
    slack: float
    """The rounding error that certificates allow for."""


class Adversary:
    """What broken columns can do to the duels.

    Parameters
    ----------
    duels : Duels
        The scores.
    reach : Reach
        What a broken cell can become.
    """

    def __init__(self, duels: Duels, reach: Reach) -> None:
        self.duels, self.reach = duels, reach
        # Where all cells of a column reach the same points, these need not be looked up cell by cell.
        of_column = reach.of_point[duels.starts[:-1]]
        is_same = np.array_equal(reach.of_point[:-1], np.repeat(of_column, np.diff(duels.starts)))
        self._of_column = of_column if is_same else None
        has_slice = (reach.stop > reach.start)[reach.of_point[:-1]]
        can_change = np.logical_or.reduceat(has_slice, duels.starts[:-1])
        self.n_breakable = len(np.unique(reach.group[can_change]))
        """The number of groups with a column of which a cell can change."""

    @cached_property
    def _ends(self) -> list[tuple[Floats, Floats]]:
        """The smallest and the largest value of each slice, for every duel; none are inf and -inf."""
        low, high = ([smooth_ends(s * p, self.reach, 0.0).value for p in self.duels.points] for s in (1, -1))
        return [(least, -most) for least, most in zip(low, high, strict=True)]

    def _worst(self, number: int, left: Ints, weight: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest values that cells can reach: none are inf and -inf."""
        low, high = self._ends[number]
        reached = self._of_column if self._of_column is not None else self.reach.of_cells(left, weight)
        return low[reached], high[reached]

    def contests(self, left: Ints, weight: Floats) -> Iterator[Contest]:
        """Yield each duel with the rows whose predicted class takes part in it."""
        is_only, duels = len(self.duels.pairs) == 1, self.duels
        predicted = np.empty(0) if is_only else winners(duels.decide(left, weight))
        for number, pair in enumerate(duels.pairs):
            rows = slice(None) if is_only else np.flatnonzero(np.isin(predicted, pair))
            contribution = contributions(duels.points[number], left[rows], weight[rows])
            score = total(contribution, duels.intercepts[number])
            is_second = score > 0 if is_only else predicted[rows] == pair[1]
            sign = np.where(is_second, 1, -1)
            low, high = self._worst(number, left[rows], weight[rows])
            damage = np.where(is_second[:, None], contribution - low, high - contribution)
            np.maximum(damage, 0.0, out=damage)
            slack = _SLACKS * float(duels.slacks[number])
            yield Contest(number, rows, sign, contribution, sign * score, damage, slack)

    def radii(self, left: Ints, weight: Floats) -> Ints:
        """Return how many groups may break before a predicted class can lose a duel; -1: it wins not all."""
        found = np.full(len(left), self.n_breakable)
        for contest in self.contests(left, weight):
            largest = -np.sort(-self.reach.by_group(contest.damage), axis=1)
            worst = np.cumsum(largest, axis=1, out=largest)
            lead = contest.margin - contest.slack
            radius = np.where(lead > 0, (worst < lead[:, None]).sum(axis=1), -1)
            found[contest.rows] = np.minimum(found[contest.rows], radius)
        return found

    def stands(self, left: Ints, weight: Floats, sets: Bools) -> Bools:
        """Return which predictions stay when a set of columns breaks; sets are (n_columns, n_sets)."""
        found = np.ones((len(left), sets.shape[1]), dtype=bool)
        for contest in self.contests(left, weight):
            found[contest.rows] &= contest.damage @ sets < (contest.margin - contest.slack)[:, None]
        return found

    def possible(self, left: Ints, weight: Floats, r: int) -> Bools:
        """Return which classes can be predicted when at most ``r`` groups break."""
        shape = (len(left), self.duels.n_classes)
        least, most = np.full(shape, np.inf), np.full(shape, np.inf)
        slack = 2 * _SLACKS * float(self.duels.slacks.max())
        for number, (first, second) in enumerate(self.duels.pairs):
            contribution = contributions(self.duels.points[number], left, weight)
            score = total(contribution, self.duels.intercepts[number])
            low, high = self._worst(number, left, weight)
            loss, gain = (
                worst_sums(self.reach.by_group(np.maximum(change, 0.0)), np.array([r]))[:, 0]
                for change in (contribution - low, high - contribution)
            )
            for place, smallest, largest in (
                (first, -score - gain, -score + loss),
                (second, score - loss, score + gain),
            ):
                np.minimum(least[:, place], smallest, out=least[:, place])
                np.minimum(most[:, place], largest, out=most[:, place])
        best = np.partition(least, -2, axis=1)[:, -2:]
        rivals = np.where(least == best[:, 1:], best[:, :1], best[:, 1:])
        return np.asarray(most >= rivals - slack)

    def worst_rows(self, left: Ints, weight: Floats, r: int) -> Ints:
        """Return the points that the worst ``r`` broken groups show, -1 for cells that stay.

        They attack the duel that is lost by most, or won by least, once they are broken.
        """
        target, lead = np.full(left.shape, -1), np.full(len(left), np.inf)
        for contest in self.contests(left, weight):
            groups = self.reach.by_group(contest.damage)
            order = np.argsort(-groups, axis=1, kind="stable")[:, :r]
            after = contest.margin - np.take_along_axis(groups, order, axis=1).sum(axis=1)
            is_broken = np.zeros(groups.shape, dtype=bool)
            np.put_along_axis(is_broken, order, True, axis=1)
            points = self.duels.points[contest.number]
            low, high = (
                self.reach.start + np.argmax(smooth_ends(side * points, self.reach, 0.0).distribution, axis=1)
                for side in (1, -1)
            )
            reached = self.reach.of_cells(left[contest.rows], weight[contest.rows])
            worst = np.where(contest.sign[:, None] > 0, low[reached], high[reached])
            shown = np.where(is_broken[:, self.reach.group] & (contest.damage > 0), worst, -1)
            is_worse = after < lead[contest.rows]
            target[contest.rows] = np.where(is_worse[:, None], shown, target[contest.rows])
            lead[contest.rows] = np.minimum(lead[contest.rows], after)
        return target

    def explain(self, left: Ints, weight: Floats) -> Floats:
        """Return contributions for the duel against the strongest rival.

        They are in favour of the second of two classes, or of the predicted one of several.
        """
        found, lead = np.zeros(left.shape), np.full(len(left), np.inf)
        for contest in self.contests(left, weight):
            rows = np.arange(len(left))[contest.rows]
            closer = contest.margin < lead[rows]
            sign = np.ones_like(contest.sign) if self.duels.n_classes == 2 else contest.sign
            found[rows[closer]] = (sign[:, None] * contest.contribution)[closer]
            lead[rows] = np.minimum(lead[rows], contest.margin)
        return found
