"""The power hinge loss, max(0, m)^p for p >= 1, and the same with its corner rounded off.

For 1 <= p < 2 the curvature p (p-1) m^(p-2) of max(0, m)^p blows up at 0 (p = 1: the slope jumps). On
[0, width] the rounded loss is the parabola of the same slope at ``width``,

    phi(m) = p/2 width^(p-2) m^2            for 0 <= m <= width
    phi(m) = m^p - (1 - p/2) width^p        for m > width ,

which lies below max(0, m)^p by at most (1 - p/2) width^p. Its slope is a feasible dual variable of the true
loss, so the duality gap of the true problem can be computed from it. For p >= 2 nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Floats
from exclusivity.problem.loss import CurvedLoss, LossParts, MarginLoss

# From its bracket (at most a factor 2^(1/(p-1)) wide) a bisection needs one halving per bit of the
# mantissa; Newton steps usually end it after five. The rest is for p close to 1.
_MAX_ROOT_STEPS = 100
_ROOT_TOL = 4e-16
_TINY = float(np.finfo(float).tiny)
# (y m)^(p-1), logarithms times exponents of at most 745 before numbers vanish, and a few products.
_POWER_ROUNDINGS = 800


@dataclass(frozen=True)
class PowerHinge(MarginLoss):
    """The loss max(0, m)^p of the paper, with closed forms for p = 1 and p = 2.

    Parameters
    ----------
    p : float
        The power, at least 1. ``p=1`` is the hinge, ``p=2`` the squared hinge.

    Examples
    --------
    >>> import numpy as np
    >>> PowerHinge(2).value(np.array([-1.0, 0.5]))
    array([0.  , 0.25])
    """

    p: float

    vanishes = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.p) and self.p >= 1):
            raise ValueError(f"p must be a finite number >= 1 (the loss is max(0, m)^p); got {self.p!r}.")
        vars(self).update(
            is_smooth=self.p > 1,
            has_corner=self.p < 2,
            is_hinge=self.p == 1,
            largest_slope=1.0 if self.p == 1 else np.inf,
            degree=self.p,
            active_curvature=2.0 if self.p == 2 else None,
            conjugate_stiffness={1.0: 0.0, 2.0: 0.5}.get(self.p),
            n_roundings=_roundings(self.p),
        )

    def value(self, shortfall: Floats) -> Floats:
        """max(0, m)^p, element by element."""
        positive = np.maximum(shortfall, 0.0)
        if self.p == 1:
            return positive
        if self.p == 2:
            return np.square(positive, out=positive)
        return np.power(positive, self.p, out=positive)

    def slope(self, shortfall: Floats) -> Floats:
        """The slope p max(0, m)^(p-1); at the kink of p = 1 the left derivative, 0."""
        if self.p == 1:
            return (shortfall > 0).astype(float)
        if self.p == 2:
            return 2 * np.maximum(shortfall, 0.0)
        return self.p * np.power(np.maximum(shortfall, 0.0), self.p - 1)

    def curvature(self, shortfall: Floats) -> Floats:
        """The curvature p (p-1) m^(p-2) for m > 0, else 0."""
        if self.p == 1:
            return np.zeros_like(shortfall)
        if self.p == 2:
            return np.where(shortfall > 0, 2.0, 0.0)
        curvatures = np.zeros_like(shortfall)
        np.power(shortfall, self.p - 2, out=curvatures, where=shortfall > 0)
        curvatures *= self.p * (self.p - 1)
        return curvatures

    def parts(self, shortfall: Floats, *, curvature: bool = True, conjugate: bool = False) -> LossParts:
        """See ``MarginLoss``: the maximum is taken once; the conjugate is p m^(p-1) m - m^p = (p-1) m^p."""
        p, positive = self.p, np.maximum(shortfall, 0.0)
        value = positive * positive if p == 2 else positive**p
        return LossParts(
            value,
            2 * positive if p == 2 else self.slope(shortfall),
            self.curvature(shortfall) if curvature else None,
            (p - 1) * value if conjugate else None,
        )

    def rounded(self, width: float) -> CurvedLoss:
        """The parabola on [0, width] where p < 2; see above."""
        return RoundedHinge(self.p, width) if self.has_corner and width > 0 else self

    def raised_total(self, total: float, cost: float, error: float) -> float:
        """By Minkowski's inequality, see ``precision``; infinite beyond the range of numbers."""
        with np.errstate(over="ignore"):
            return float(np.float64(total ** (1 / self.p) + error * cost ** (1 / self.p)) ** self.p)

    def scaled_conjugate(self, total: float, factor: float) -> float:
        """Exactly: the conjugate is homogeneous of degree p / (p - 1), and zero for p = 1."""
        return 0.0 if self.p == 1 else float(factor ** (self.p / (self.p - 1)) * total)

    def prox(self, point: Floats, step: float) -> Floats:
        """argmin_m  step max(0, m)^p + (m - point)^2 / 2, the E step of the paper.

        Negative points stay. For p = 1 this is Eq. (14) of the paper, for p = 2 its Eq. (15), written
        for m = y e. For other p the stationarity condition m + step p m^(p-1) = point is monotone
        in m, and the root is bracketed and bisected as its conclusion proposes.
        """
        if self.p == 1:
            return point - np.clip(point, 0.0, step)
        if self.p == 2:
            return np.where(point > 0, point / (1 + 2 * step), point)
        result = np.array(point, dtype=float)
        positive = result > 0
        result[positive] = self._positive_root(result[positive], step * self.p)
        return result

    def _positive_root(self, point: Floats, slope: float) -> Floats:
        """The root of m + slope m^(p-1) = point > 0 by Newton steps inside a shrinking bracket.

        Both terms are at most ``point`` and the larger one is at least half of it, hence the bracket.
        Where a Newton step would leave the bracket (or is not finite), the bracket is halved instead.
        """
        power = self.p - 1
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            low = np.minimum(point / 2, (point / 2 / slope) ** (1 / power))
            high = np.minimum(point, (point / slope) ** (1 / power))
            root = high.copy()
            for _ in range(_MAX_ROOT_STEPS):
                term = slope * root**power
                residual = root + term - point
                if np.all((np.abs(residual) <= _ROOT_TOL * self.p * point) | (high - low <= _TINY)):
                    break
                low = np.where(residual < 0, root, low)
                high = np.where(residual > 0, root, high)
                newton = root - residual / (1 + power * term / root)
                inside = (newton >= low) & (newton <= high)
                root = np.where(inside, newton, low + (high - low) / 2)
        return root

    def conjugate(self, alpha: Floats, cost: Floats) -> Floats:
        """sup_m  alpha m - cost max(0, m)^p for cost > 0; infinite outside the domain of alpha.

        p = 1: zero on [0, cost]. p > 1: cost (p-1) (alpha / (p cost))^(p/(p-1)) for alpha >= 0.
        """
        if self.p == 1:
            return np.where((alpha >= 0) & (alpha <= cost), 0.0, np.inf)
        ratio = np.maximum(alpha, 0.0) / (self.p * cost)
        with np.errstate(over="ignore"):
            inside = cost * (self.p - 1) * ratio ** (self.p / (self.p - 1))
        return np.where(alpha >= 0, inside, np.inf)


def _roundings(p: float) -> float:
    """Of one m^p, or of one conjugate of it, whose exponent p / (p - 1) magnifies errors."""
    if p in (1, 2):
        return 16.0
    return _POWER_ROUNDINGS + 4 * (p + p / (p - 1))


@dataclass(frozen=True)
class RoundedHinge:
    """max(0, m)^p with a parabola on [0, width], for p < 2.

    Parameters
    ----------
    p : float
        The power, 1 <= p < 2.
    width : float
        Where the parabola ends, above 0.
    """

    p: float
    width: float

    def parts(self, shortfall: Floats, *, curvature: bool = True) -> LossParts:
        """Value, slope and, if wanted, curvature, element by element."""
        p, width = self.p, self.width
        positive = np.maximum(shortfall, 0.0)
        stiffness = p * width ** (p - 2)
        # At ``width`` itself, where all rows of a zero start may be, the parabola's curvature is of use.
        inside = shortfall <= width
        beyond = np.maximum(positive, width)
        value = np.where(inside, stiffness / 2 * positive * positive, beyond**p - (1 - p / 2) * width**p)
        slope = np.where(inside, stiffness * positive, p * beyond ** (p - 1))
        if not curvature:
            return LossParts(value, slope)
        curvatures = np.where(inside, stiffness, p * (p - 1) * beyond ** (p - 2))
        return LossParts(value, slope, np.where(shortfall > 0, curvatures, 0.0))
