"""The best dual vector on the way from one to the next, at the price of a few vector operations.

The slopes at an iterate are a dual vector alpha, and u = X^T (y alpha) is known there. Between two feasible
vectors all are feasible, D is concave, and where the loss has a quadratic conjugate (or none) it is a
parabola along the way: with phi*(a) = k a^2 / 2, 0 for the hinge,

    D(alpha + t da) = D(alpha)  +  t (sum_i da_i - u . du - k sum_i alpha_i da_i / c_i)
                                -  t^2/2 (|du|^2 + k sum_i da_i^2 / c_i) .

Slopes follow the weights with a gain of the largest curvature, so that their bound is several times farther
from the optimum than the objective is. Blends of them are not: on text the gap that a blend proves is 2 to 7
times as small.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.design import UNIT

# A blend rounds every number of alpha and of u so often, at most, the larger of the two vectors counting.
_ROUNDINGS = 8


class DualBlend:
    """The best dual vector between those taken in; without a parabola the last of them.

    Parameters
    ----------
    problem : ERMProblem
        A reduced one.

    Attributes
    ----------
    alpha, dual_weights : ndarrays of shape (n_rows,) and (n_features,)
        The vector and its u.
    value : float
        About D there: rounding is left to those who prove something with it.
    lost : float
        How much of the sum of alpha the roundings of all blends are worth, beyond those of one product.
    """

    def __init__(self, problem: ERMProblem) -> None:
        loss, self._problem = problem.loss, problem
        self._stiffness: Floats | float | None = None
        if problem.penalty.is_smooth and loss.conjugate_stiffness is not None:
            self._stiffness = loss.conjugate_stiffness / member_costs(problem)
        self.alpha, self.dual_weights = np.empty(0), np.empty(0)
        self.value, self.lost = -np.inf, 0.0

    def take(self, alpha: Floats, dual_weights: Floats, value: float) -> None:
        """Go towards another dual vector, whose D is ``value``, as far as it helps."""
        if self._stiffness is not None and len(self.alpha) > 0:
            da, du = alpha - self.alpha, dual_weights - self.dual_weights
            bend = self._stiffness * da
            slope = float(da.sum()) - float(self.dual_weights @ du) - float(self.alpha @ bend)
            curvature = float(du @ du) + float(da @ bend)
            if 0 < slope < curvature < np.inf:
                self._go(slope / curvature, da, du, float(alpha.sum()))
                return
            if slope <= 0 and value <= self.value:
                return
        self.alpha, self.dual_weights, self.value, self.lost = alpha, dual_weights, value, 0.0

    def _go(self, share: float, da: Floats, du: Floats, alpha_sum: float) -> None:
        """So far along the way; in place, as vectors of all features are the dearest part of a step."""
        # What is rounded are the two vectors: a small blend of a huge one has the errors of that.
        rounded = _ROUNDINGS * UNIT * max(alpha_sum, float(self.alpha.sum()))
        self.lost = (1 - share) * self.lost + rounded
        da *= share
        du *= share
        da += self.alpha
        du += self.dual_weights
        self.alpha, self.dual_weights = da, du
        self.value = dual_value(self._problem, da, du)

    def restricted(self, problem: ERMProblem, rows: Ints) -> DualBlend:
        """The same for some of the rows, where the others have no share in it; else a new one."""
        part = DualBlend(problem)
        if len(self.alpha) > 0 and np.count_nonzero(self.alpha) == np.count_nonzero(some := self.alpha[rows]):
            part.alpha, part.dual_weights, part.value = some, self.dual_weights, self.value
            part.lost = self.lost
        return part

    def extended(self, part: DualBlend, rows: Ints) -> DualBlend:
        """What is known on some of the rows, the others having none of it."""
        whole = copy(self)
        whole.alpha = np.zeros(self._problem.design.n_rows)
        whole.alpha[rows] = part.alpha
        whole.dual_weights, whole.value, whole.lost = part.dual_weights, part.value, part.lost
        return whole


def dual_value(problem: ERMProblem, alpha: Floats, dual_weights: Floats) -> float:
    """About D(alpha) of a feasible vector, X^T (y alpha) being known."""
    conjugate = 0.0
    if not problem.loss.is_hinge:
        conjugate = float(problem.loss.conjugate(alpha, member_costs(problem)).sum())
    if problem.penalty.is_smooth:
        paid = float(dual_weights @ dual_weights) / 2
    else:
        paid = problem.penalty.largest_conjugate(dual_weights, 0.0, np.zeros_like(dual_weights))
    return float(alpha.sum()) - paid - conjugate
