"""Weights between bounds: sign and box constraints as a penalty on one member.

For one feature, with [lo, hi] instead of the whole line, the supremum in

    g*(u) = max {u w - 1/2 w^2 - l |w| : lo <= w <= hi}

is attained at w = clip(soft(u, l), lo, hi), as the function is concave and has one variable. For lo = 0,
hi = inf that is 1/2 max(0, u - l)^2; for finite bounds g* is linear beyond them, as Huber's function is.
All members have the same bounds, so that averaging over their permutations keeps them: the equivalence
theorem (``Objective.reduced``) holds as it stands.

g is 1-strongly convex whatever the bounds, hence g*(u + d) <= g*(u) + w . d + 1/2 |d|^2: with it a conjugate
is rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, sqrt

import numpy as np

from exclusivity.problem.arrays import Floats, Ints
from exclusivity.problem.design import gamma
from exclusivity.problem.penalty import Penalty


@dataclass(frozen=True, eq=False)
class Bounds:
    """Between which every member's weights have to be, feature by feature.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_features,)
        Infinite where there is no bound; equal where a weight is given. Zero need not be between them.

    Examples
    --------
    >>> import numpy as np
    >>> Bounds(np.array([0.0, -1.0]), np.array([np.inf, 1.0])).clip(np.array([-2.0, 0.5]))
    array([0. , 0.5])
    """

    lower: Floats
    upper: Floats

    def __post_init__(self) -> None:
        if self.lower.ndim != 1 or self.lower.shape != self.upper.shape:
            raise ValueError(
                f"bounds are two vectors of one length; got {self.lower.shape}, {self.upper.shape}."
            )
        # Not a number is in no order either.
        is_interval = (self.lower <= self.upper) & (self.lower < np.inf) & (self.upper > -np.inf)
        if not np.all(is_interval):
            first = int(np.argmin(is_interval))
            raise ValueError(
                f"a lower bound must not be above the upper one, nor be infinite on the wrong side; feature "
                f"{first} has [{self.lower[first]:g}, {self.upper[first]:g}]."
            )

    @property
    def contain_zero(self) -> bool:
        """Whether every weight may be zero."""
        return bool(np.all((self.lower <= 0) & (self.upper >= 0)))

    def clip(self, weights: Floats) -> Floats:
        """The nearest weights within the bounds."""
        return np.clip(weights, self.lower, self.upper)

    def of_columns(self, columns: Ints) -> Bounds:
        """The bounds of these columns alone."""
        return Bounds(self.lower[columns], self.upper[columns])


@dataclass(frozen=True, eq=False)
class BoundedPenalty(Penalty):
    """g(w) = 1/2 |w|^2 + sum_j l_j |w_j| for lower <= w <= upper, else infinite.

    Parameters
    ----------
    kinks : float or ndarray of shape (n_features,)
        The l_j.
    lower, upper : ndarray of shape (n_features,)
    """

    kinks: float | Floats
    lower: Floats
    upper: Floats
    is_smooth = False

    def value(self, weights: Floats) -> float:
        """See ``Penalty``: a point outside loses every comparison."""
        if np.any(weights < self.lower) or np.any(weights > self.upper):
            return np.inf
        return float(weights @ weights) / 2 + float(np.sum(self.kinks * np.abs(weights)))

    def prox(self, point: Floats, step: float) -> Floats:
        """See ``Penalty``: that of the whole line, clipped."""
        return self.inside(_soft(point, step * np.asarray(self.kinks)) / (1 + step))

    def attained(self, dual_weights: Floats) -> Floats:
        """See ``Penalty``: clip(soft(u, l), lo, hi)."""
        return self.inside(_soft(dual_weights, np.asarray(self.kinks)))

    def inside(self, weights: Floats) -> Floats:
        """See ``Penalty``."""
        return np.clip(weights, self.lower, self.upper)

    def largest_conjugate(self, dual_weights: Floats, reach: float, reaches: Floats) -> float:
        """See ``Penalty``: by the quadratic bound above."""
        goal = self.attained(dual_weights)
        size, kinks = np.abs(goal), np.asarray(self.kinks)
        gains, prices = dual_weights * goal, (size / 2 + kinks) * size
        length = sqrt(size @ size)
        by_rows, by_columns = length * reach + reach * reach / 2, float((size + reaches / 2) @ reaches)
        # One of the two may be beyond the range of numbers, or not a number: the other holds.
        raised = by_columns if by_columns <= by_rows or isnan(by_rows) else by_rows
        lost = gamma(len(goal) + 6) * float(np.abs(gains).sum() + prices.sum() + raised)
        return float(gains.sum() - prices.sum()) + raised + lost


def _soft(values: Floats, threshold: Floats) -> Floats:
    return np.asarray(np.copysign(np.maximum(np.abs(values) - threshold, 0.0), values))
