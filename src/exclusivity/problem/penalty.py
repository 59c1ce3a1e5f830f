"""What a penalty on one member's weights gives: the contract between regularisers and solvers.

By the equivalence theorem (``Objective.reduced``) solvers minimise g(w) + sum_i c_i phi(m_i) over one member.
The penalty g is a sum over features of 1/2 w^2 + l |w| on an interval [lo, hi], which may be the whole line.
Its conjugate g*(u) = sup_w u . w - g(w) is what the dual pays for u = X^T (y alpha); the w that attains it is
the member that goes with alpha.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from exclusivity.problem.arrays import Floats


class Penalty(ABC):
    """A penalty on the weights of one member.

    Attributes
    ----------
    is_smooth : bool
        Whether it is 1/2 |w|^2 and nothing else, so that Newton steps on the primal see all of it.
    kinks : float or ndarray of shape (n_features,)
        Half the jump of the slope at zero, l, for all features or for each; where it is positive weights can
        be exactly zero.
    lower, upper : float or ndarray of shape (n_features,)
        Between which weights have to be; infinite where they are free.
    """

    is_smooth: bool
    kinks: float | Floats
    lower: float | Floats = -np.inf
    upper: float | Floats = np.inf

    @abstractmethod
    def value(self, weights: Floats) -> float:
        """g(w); infinite outside the bounds."""

    @abstractmethod
    def prox(self, point: Floats, step: float) -> Floats:
        """argmin_w  step g(w) + |w - point|^2 / 2."""

    @abstractmethod
    def largest_conjugate(self, dual_weights: Floats, reach: float, reaches: Floats) -> float:
        """At least g*(u) for every u so close to ``dual_weights``: what rounding may have done to a sum.

        ``reach`` bounds the distance of the two vectors, ``reaches`` that of every feature.
        """

    @abstractmethod
    def attained(self, dual_weights: Floats) -> Floats:
        """The w that attains g*(dual_weights): a function of one feature at a time."""

    def inside(self, weights: Floats) -> Floats:
        """The nearest weights within the bounds; the same array where there are none."""
        return weights

    def settled(self, weights: Floats, dual_weights: Floats) -> Floats:
        """The weights with those that ``dual_weights`` calls zero, or puts at a bound, exactly there."""
        goal = self.attained(dual_weights)
        is_pinned = (goal == 0) | (goal == self.lower) | (goal == self.upper)
        return np.where(is_pinned, goal, self.inside(weights))

    def excess(self, weights: Floats, dual_weights: Floats) -> float:
        """g(w) + g*(u) - u . w >= 0, Fenchel's inequality: what a gap owes to w not going with u."""
        goal = self.attained(dual_weights)
        step = weights - goal
        kinks = float(np.sum(self.kinks * (np.abs(weights) - np.abs(goal))))
        return float(step @ step) / 2 + float((goal - dual_weights) @ step) + kinks

    def slopes(self, weights: Floats, step: Floats, lengths: Floats) -> Floats:
        """d/dt of g(w + t step), inside the bounds, for every t in ``lengths``."""
        slopes = weights @ step + lengths * (step @ step)
        if np.any(self.kinks):
            slopes = slopes + np.sign(weights + lengths[:, None] * step) @ (self.kinks * step)
        return np.asarray(slopes)
