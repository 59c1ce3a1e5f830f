"""Exact certificates of an additive score: what it can become when cells of a row change.

For the sign s of a score f the damage of column j is d_j = s (F_j - worst reachable value) >= 0, where F_j is
the contribution of its cell. Whatever r groups of columns contain, the score keeps its sign if and only if
s f exceeds the sum of the r largest damages of groups. The radius of a row is the largest such r.

Scores are sums of floating point numbers. Every score that is computed from cells, broken or not, is within
``slack`` of its exact value; a certificate asks for a margin of four times that, so that rounding cannot
change a certified label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.additive.objective import Reach, contributions, smooth_ends

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Score:
    """An additive score: f(x) = b + the values of the points that the cells of x show.

    Attributes
    ----------
    points : ndarray of shape (n_points,)
        The values of the points of all columns.
    b : float
        The intercept.
    starts : ndarray of int
        Where the points of each column begin.
    """

    points: Floats
    b: float
    starts: Ints

    @property
    def slack(self) -> float:
        """A bound of the rounding error of a score."""
        largest = np.maximum.reduceat(np.abs(self.points), self.starts[:-1])
        return float((len(largest) + 4) * _UNIT * (abs(self.b) + 2 * largest.sum()))

    def contributions(self, left: Ints, weight: Floats) -> Floats:
        """Return what each cell adds to the score."""
        return contributions(self.points, left, weight)

    def decide(self, left: Ints, weight: Floats) -> Floats:
        """Return the scores of rows."""
        return np.asarray(self.contributions(left, weight).sum(axis=1) + self.b)

    def damages(self, left: Ints, weight: Floats, reach: Reach, sign: Ints) -> tuple[Floats, Floats]:
        """Return the scores, seen from the sides ``sign``, and the damage that each column can do to them."""
        contribution = self.contributions(left, weight)
        reached = reach.of_cells(left, weight)
        low, high = (side * smooth_ends(side * self.points, reach, 0.0).value for side in (1, -1))
        worst = np.where(sign[:, None] > 0, low[reached], high[reached])
        damage = np.maximum(sign[:, None] * (contribution - worst), 0.0)
        return np.asarray(sign * (contribution.sum(axis=1) + self.b)), np.asarray(damage)

    def worst_points(self, left: Ints, weight: Floats, reach: Reach, sign: Ints) -> Ints:
        """Return the point that does most damage to each cell; where none is reached, any point."""
        reached = reach.of_cells(left, weight)
        low, high = (
            reach.start + np.argmax(smooth_ends(side * self.points, reach, 0.0).distribution, axis=1)
            for side in (1, -1)
        )
        return np.asarray(np.where(sign[:, None] > 0, low[reached], high[reached]))


def breakable_groups(reach: Reach, starts: Ints) -> int:
    """Return how many groups have a column of which a cell can change."""
    has_slice = (reach.stop > reach.start)[reach.of_point[:-1]]
    can_change = np.logical_or.reduceat(has_slice, starts[:-1])
    return len(np.unique(reach.group[can_change]))


def certified_radius(margin: Floats, damage: Floats, slack: float, most: int) -> Ints:
    """Return how many groups may break before a margin can be lost; -1 where there is none."""
    total = np.cumsum(-np.sort(-damage, axis=1), axis=1)
    survives = total < (margin - 4 * slack)[:, None]
    radius = np.minimum(survives.sum(axis=1), most)
    return np.asarray(np.where(margin > 4 * slack, radius, -1))


def survives(margin: Floats, damage: Floats, slack: float) -> Bools:
    """Return whether a margin stays positive when all these columns break at once."""
    return np.asarray(damage.sum(axis=1) < margin - 4 * slack)
