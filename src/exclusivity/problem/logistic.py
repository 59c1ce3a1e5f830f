"""The logistic loss log(1 + exp(-y f)) as a function of the shortfall m = 1 - y f.

With t = m - 1 and e = exp(-|t|), which never overflows,

    phi = max(t, 0) + log(1 + e),   phi' = 1 / (1 + e) for t > 0, else e / (1 + e),   phi'' = e / (1 + e)^2 .

A dual variable is alpha = c a with 0 <= a <= 1, and

    loss*(alpha) = alpha + c (a log a + (1 - a) log(1 - a)) ,

which at a = phi'(m) is c (a - |t| e / (1 + e) - log(1 + e)): no difference of large numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from exclusivity.problem.arrays import Floats
from exclusivity.problem.loss import LossParts, MarginLoss

# Newton steps double the digits once they are near; the bracket halves before.
_MAX_ROOT_STEPS = 100
_ROOT_TOL = 4e-16
# exp and log1p of a few roundings each, and products of them.
_ROUNDINGS = 64.0


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """The logistic loss, log(1 + exp(m - 1)): its slope is the probability of the wrong class.

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().slope(np.array([1.0]))
    array([0.5])
    """

    is_log_odds = True
    largest_slope = 1.0
    n_roundings = _ROUNDINGS

    def value(self, shortfall: Floats) -> Floats:
        """See ``MarginLoss``."""
        t = shortfall - 1
        return np.asarray(np.maximum(t, 0.0) + np.log1p(np.exp(-np.abs(t))))

    def slope(self, shortfall: Floats) -> Floats:
        """See ``MarginLoss``."""
        t = shortfall - 1
        e = np.exp(-np.abs(t))  # several times as fast as scipy's expit
        return np.asarray(np.where(t > 0, 1.0, e) / (1 + e))

    def curvature(self, shortfall: Floats) -> Floats:
        """See ``MarginLoss``."""
        e = np.exp(-np.abs(shortfall - 1))
        return np.asarray(e / (1 + e) ** 2)

    def parts(self, shortfall: Floats, *, curvature: bool = True, conjugate: bool = False) -> LossParts:
        """See ``MarginLoss``: one exponential and one logarithm for everything."""
        t = shortfall - 1
        size = np.abs(t)
        e = np.exp(-size)
        logarithm = np.log1p(e)
        right = 1 / (1 + e)
        wrong = e * right
        slope = np.where(t > 0, right, wrong)
        return LossParts(
            np.maximum(t, 0.0) + logarithm,
            slope,
            wrong * right if curvature else None,
            slope - size * wrong - logarithm if conjugate else None,
        )

    def conjugate(self, alpha: Floats, cost: Floats) -> Floats:
        """See ``MarginLoss``: finite for 0 <= alpha <= cost."""
        a = np.clip(alpha / cost, 0.0, 1.0)
        inside = cost * (a + xlogy(a, a) + xlogy(1 - a, 1 - a))
        return np.where((alpha >= 0) & (alpha <= cost), inside, np.inf)

    def prox(self, point: Floats, step: float) -> Floats:
        """The root of m + step phi'(m) = point, by Newton steps inside the bracket [point - step, point]."""
        high = np.array(point, dtype=float)
        low, root = high - step, high.copy()
        for count in range(_MAX_ROOT_STEPS):
            _, slope, curvature, _ = self.parts(root)
            residual = root + step * slope - point
            if np.all(np.abs(residual) <= _ROOT_TOL * (np.abs(point) + step)):
                break
            low, high = np.where(residual < 0, root, low), np.where(residual > 0, root, high)
            newton = root - residual / (1 + step * np.asarray(curvature))
            # Newton steps may go to and fro over the bend of the slope: every third one halves the bracket.
            is_newton = (newton > low) & (newton < high) & (count % 3 < 2)
            root = np.where(is_newton, newton, low + (high - low) / 2)
        return root
