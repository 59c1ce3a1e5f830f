"""Losses with a slope that does not jump, for Newton steps that only use products with X.

A rounded loss answers for its slope a_i = c_i phi'(m_i), which is a dual variable of the true loss whatever
the rounding, and for its curvature. ``sharpen`` brings it closer to the true loss at the current point.

A smooth loss is rounded by a width where it has a corner (``MarginLoss.rounded``). For the hinge a shrinking
width would make the Newton systems ever worse. The augmented Lagrangian does better: around the dual vector
alpha known so far, the hinge c max(0, m) = max {a m : 0 <= a <= c} becomes

    max {a m - (a - alpha)^2 / (2 c sigma) : 0 <= a <= c},   slope  clip(alpha + c sigma m, 0, c),

whose minimiser tends to the optimum for any fixed sigma as alpha follows the slope (the proximal point
method on the dual), and the faster the larger sigma.

The same helps any loss where costs are large and nearly all rows can be fitted. The curvature c phi'' then
says nothing about the solution, whose dual variables are far below c, and Newton steps end at the next row
that becomes active. With conjugates c phi*(a / c) in the place of the box, and v = m + alpha / (c sigma),

    max_a  a m - c phi*(a / c) - (a - alpha)^2 / (2 c sigma),   slope  c phi'(q),   q = prox_(phi / sigma)(v),

has a curvature of at most c sigma, for which c sigma |x|^2 = 100 is a good start however large c is. Steps
towards a distant alpha would be wasted: it follows once |gradient|^2 / 2 is a small share of
sum_i (a_i - alpha_i)^2 / (2 c_i sigma), Rockafellar's criterion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.losses import MarginLoss
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.design import UNIT

# Tried: 0.5 to 300. On 20,000 x 10^6 at C = 2 it takes 172 passes with 2 and 102 with 10; elsewhere as many.
_COLD_WIDTH = 10.0
_WARM_WIDTH = 0.5
# A good start is worth a sharp corner, but one sharper than this makes Newton steps fail (tried: to 0.001).
_LEAST_WARM_WIDTH = 0.01
# Faster growth saves few outer rounds and costs many Newton steps and conjugate gradients (tried: 1.5 to 5).
_GROWTH = 1.5
_SHARPEST = 1e12
# c sigma |x|^2 of a loss that is shifted because it is steep (tried: 1 to 10,000; 1 to 100 do as well).
_GENTLE = 100.0
_FIRST_WIDTH = 1.0
_WIDTH_FACTOR = 0.1
_LEAST_WIDTH = 1e-13
_MAX_INTERCEPTS = 100


class RoundedLoss(ABC):
    """The loss of all rows, rounded.

    Attributes
    ----------
    width : float
        How far the rounding reaches; around a dual vector a / c runs from 0 to 1 over 1 / sigma.
    dual : ndarray or None
        The dual vector that it is made around, if it is.
    is_exact : bool
        Whether it is the loss itself.
    """

    width: float
    dual: Floats | None = None
    is_exact = False

    @abstractmethod
    def slope(self, shortfall: Floats) -> Floats:
        """Compute c_i phi'(m_i), a feasible dual vector but for the balance of the classes."""

    @abstractmethod
    def derivatives(self, shortfall: Floats) -> tuple[Floats, Floats]:
        """Compute the slope, and the curvature c_i phi''(m_i)."""

    def distance(self, slope: Floats) -> float:
        """Compute what the rounding takes off the dual at these slopes; infinite if nothing depends on it."""
        return np.inf

    @abstractmethod
    def sharpen(self, shortfall: Floats) -> bool:
        """Come closer to the true loss, knowing the minimiser of the rounded one; False if that is it."""


class _Proximal(RoundedLoss):
    """Any loss around a dual vector; without one around zero.

    ``is_close``: whether alpha has to follow the slope closely, by Rockafellar's criterion.
    """

    dual: Floats

    def __init__(self, costs: Floats, alpha: Floats | None, width: float, *, is_close: bool) -> None:
        self._costs, self._cost, self._is_close = costs, common_value(costs), is_close
        self.dual, self.width, self._sharpness = (
            np.zeros_like(costs) if alpha is None else alpha,
            width,
            1 / width,
        )

    def distance(self, slope: Floats) -> float:
        """See ``RoundedLoss``."""
        if not self._is_close:
            return np.inf
        return float(((slope - self.dual) ** 2 / self._costs).sum() / (2 * self._sharpness))

    def sharpen(self, shortfall: Floats) -> bool:
        """See ``RoundedLoss``: alpha follows the slope, sigma grows."""
        self.dual = self.slope(shortfall)
        self._sharpness = min(self._sharpness * _GROWTH, _SHARPEST)
        self.width = 1 / self._sharpness
        return True


class ProximalHinge(_Proximal):
    """p = 1 around a dual vector.

    ``width`` is by default that of a cold start, or of the solution for a neighbouring cost where there is a
    dual vector.
    """

    def __init__(
        self, costs: Floats, alpha: Floats | None, width: float | None = None, *, is_close: bool = False
    ) -> None:
        if width is None:
            width = _COLD_WIDTH if alpha is None else _WARM_WIDTH
        super().__init__(costs, alpha, width, is_close=is_close)

    def slope(self, shortfall: Floats) -> Floats:
        """See ``RoundedLoss``."""
        slope = shortfall * (self._sharpness * self._cost)
        slope += self.dual
        np.maximum(slope, 0.0, out=slope)
        return np.minimum(slope, self._cost, out=slope)

    def derivatives(self, shortfall: Floats) -> tuple[Floats, Floats]:
        """See ``RoundedLoss``: the curvature is sigma c between the two corners."""
        slope = self.slope(shortfall)
        between = slope > 0
        between &= slope < self._cost
        return slope, np.asarray(between * (self._sharpness * self._cost))


class ProximalSmooth(_Proximal):
    """A smooth loss around a dual vector, which it follows closely."""

    def __init__(self, costs: Floats, loss: MarginLoss, alpha: Floats | None, width: float) -> None:
        super().__init__(costs, alpha, width, is_close=True)
        self._loss = loss

    def _moved(self, shortfall: Floats) -> Floats:
        """Compute where the loss itself has the slope that the rounded one has here."""
        shifted = shortfall + self.dual / (self._sharpness * self._cost)
        return self._loss.prox(shifted, 1 / self._sharpness)

    def slope(self, shortfall: Floats) -> Floats:
        """See ``RoundedLoss``."""
        return np.asarray(self._cost * self._loss.slope(self._moved(shortfall)))

    def derivatives(self, shortfall: Floats) -> tuple[Floats, Floats]:
        """See ``RoundedLoss``: the reciprocals of both curvatures add up."""
        moved = self._moved(shortfall)
        curvatures = self._loss.curvature(moved)
        active = curvatures > 0
        both = self._cost / (1 / self._sharpness + 1 / np.where(active, curvatures, 1.0))
        return np.asarray(self._cost * self._loss.slope(moved)), both * active


class RoundedCorner(RoundedLoss):
    """A smooth loss; exact where it has no corner."""

    def __init__(self, costs: Floats, loss: MarginLoss, width: float | None = None) -> None:
        self._cost, self._exact = common_value(costs), loss
        self._round(width or _FIRST_WIDTH)

    def _round(self, width: float) -> None:
        self._loss = self._exact.rounded(width)
        self.width, self.is_exact = self._loss.width, self._loss.width == 0

    def slope(self, shortfall: Floats) -> Floats:
        """See ``RoundedLoss``."""
        return np.asarray(self._cost * self._loss.parts(shortfall, curvature=False)[1])

    def derivatives(self, shortfall: Floats) -> tuple[Floats, Floats]:
        """See ``RoundedLoss``."""
        stiffness = self._exact.active_curvature
        if stiffness is not None:  # no corner to round; two operations instead of six
            slope = self._cost * self._exact.slope(shortfall)
            return np.asarray(slope), np.asarray((slope > 0) * (stiffness * self._cost))
        parts = self._loss.parts(shortfall)
        assert parts.curvature is not None  # noqa: S101 -- asked for
        return np.asarray(self._cost * parts.slope), np.asarray(self._cost * parts.curvature)

    def sharpen(self, shortfall: Floats) -> bool:
        """See ``RoundedLoss``."""
        if self.width <= _LEAST_WIDTH:
            return False
        self._round(self.width * _WIDTH_FACTOR)
        return True


def common_value(values: Floats) -> Floats | float:
    """Return the one number that they all are, for quicker products; else the numbers themselves."""
    return float(values[0]) if len(values) and values.min() == values.max() else values


def rounded_loss(
    loss: MarginLoss, costs: Floats, alpha: Floats | None = None, width: float | None = None
) -> RoundedLoss:
    """Return the rounding that fits the loss; a dual vector matters for the hinge, a width for corners."""
    return ProximalHinge(costs, alpha, width) if loss.is_hinge else RoundedCorner(costs, loss, width)


def proximal_loss(
    problem: ERMProblem, alpha: Floats | None = None, width: float | None = None
) -> RoundedLoss:
    """Return the loss around a dual vector, however steep it is; by default as wide as that asks for."""
    costs = member_costs(problem)
    if width is None:  # rows may be zero, or their squares infinite
        width = float(np.clip(steepness(problem), 1 / _SHARPEST, _SHARPEST))
    if problem.loss.is_hinge:
        return ProximalHinge(costs, alpha, width, is_close=True)
    return ProximalSmooth(costs, problem.loss, alpha, width)


def steepness(problem: ERMProblem) -> float:
    """Compute the mean of c_i |x_i|^2, in hundreds.

    Above 1, Newton steps on the loss itself may come to nothing.
    """
    squares = member_costs(problem) @ problem.design.squared_lengths
    return float(squares / (_GENTLE * problem.design.n_rows))


def width_for_error(error: float) -> float:
    """Return the width for a start whose margins are off by ``error``, p = 1."""
    return float(np.clip(error, _LEAST_WARM_WIDTH, _COLD_WIDTH))


class Balanced(NamedTuple):
    """The change of the intercept that balances the classes; shortfalls, slopes and curvatures after it."""

    shift: float
    shortfall: Floats
    slopes: Floats
    curvatures: Floats


def balanced(loss: RoundedLoss, shortfall: Floats, y: Floats) -> Balanced:
    """Find the change t of the intercept with sum_i y_i slope_i(m_i - y_i t) = 0: safeguarded Newton steps.

    The sum falls as t grows, from the slopes of the positive rows alone to those of the negative ones.
    """
    low, high, t = -np.inf, np.inf, 0.0
    best, least, reach = Balanced(0.0, shortfall, *loss.derivatives(shortfall)), np.inf, 1.0
    rest = 4 * UNIT * np.sqrt(len(y))  # below that, a sum of so many numbers says nothing
    here = best
    for _ in range(_MAX_INTERCEPTS):
        imbalance, alpha_sum = float(y @ here.slopes), float(here.slopes.sum())
        if abs(imbalance) < least:
            best, least = here, abs(imbalance)
        if abs(imbalance) <= rest * alpha_sum or not np.isfinite(imbalance):
            break
        low, high = (t, high) if imbalance > 0 else (low, t)
        is_bracketed = np.isfinite(low) and np.isfinite(high)
        curvature = float(here.curvatures.sum())
        step = imbalance / curvature if curvature > 0 else np.inf
        if not (abs(step) <= reach and low < t + step < high):
            step = (low + high) / 2 - t if is_bracketed else float(np.copysign(reach, imbalance))
        if t + step in (low, high):
            break
        t += step
        # Inside a bracket steps have to halve, or Newton's method may go to and fro; outside they may grow.
        reach = abs(step) / 2 if is_bracketed else 4 * reach
        moved = shortfall - t * y
        here = Balanced(t, moved, *loss.derivatives(moved))
    return best
