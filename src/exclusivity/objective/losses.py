"""Margin losses, and the contract between losses and solvers.

A loss is a convex, non-decreasing function phi >= 0 of the shortfall m = 1 - y f(x), with phi(m) -> 0 as
m -> -infinity. Everything else (the reduction of K members to one, its dual and the certificate) follows from
that. Solvers look at the declared properties alone, and say before they start if they cannot use a loss.

Power hinge
-----------
For 1 <= p < 2 the curvature p (p-1) m^(p-2) of max(0, m)^p blows up at 0 (p = 1: the slope jumps). On
[0, width] the rounded loss is the parabola of the same slope at ``width``,

    phi(m) = p/2 width^(p-2) m^2            for 0 <= m <= width
    phi(m) = m^p - (1 - p/2) width^p        for m > width ,

which lies below max(0, m)^p by at most (1 - p/2) width^p. Its slope is a feasible dual variable of the true
loss, so the duality gap of the true problem can be computed from it. For p >= 2 nothing is changed.

Logistic loss
-------------
With t = m - 1 and e = exp(-|t|), which never overflows,

    phi = max(t, 0) + log(1 + e),   phi' = 1 / (1 + e) for t > 0, else e / (1 + e),   phi'' = e / (1 + e)^2 .

A dual variable is alpha = c a with 0 <= a <= 1, and

    loss*(alpha) = alpha + c (a log a + (1 - a) log(1 - a)) ,

which at a = phi'(m) is c (a - |t| e / (1 + e) - log(1 + e)): no difference of large numbers.

Smooth hinge
------------
The smooth hinge of Rennie and Srebro is quadratic inside the margin and linear on the wrong side of the
plane. With a = min(max(m, 0), 1),

    phi = 0 | m^2 / 2 | m - 1/2    for    m <= 0 | 0 <= m <= 1 | m >= 1 ,    phi = a (m - a / 2),   phi' = a ,

the hinge with its corner replaced by the parabola that a Huber function has, up to where rows change sides.
As with the hinge no row weighs more than its cost, so that far outliers count no more than rows just beyond
the plane; as with the squared hinge there is a curvature for Newton steps, and only rows inside the margin
have one. A dual variable is alpha = c a with 0 <= a <= 1, and loss*(alpha) = c a^2 / 2.

A new loss of the package is a class below and a line in ``LOSSES``; one of a user's own is made known with
:func:`register_loss`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import xlogy

from exclusivity._typing import Floats

# From its bracket (at most a factor 2^(1/(p-1)) wide) a bisection needs one halving per bit of the
# mantissa; Newton steps usually end it after five. The rest is for p close to 1.
_MAX_ROOT_STEPS = 100
_ROOT_TOL = 4e-16
_TINY = float(np.finfo(float).tiny)
# (y m)^(p-1), logarithms times exponents of at most 745 before numbers vanish, and a few products.
_POWER_ROUNDINGS = 800
# exp and log1p of a few roundings each, and products of them.
_LOGISTIC_ROUNDINGS = 64.0


class LossParts(NamedTuple):
    """Value, slope, curvature and conjugate of a loss, element by element; None for what was not asked for.

    The conjugate is that at alpha = phi'(m), for cost 1.
    """

    value: Floats
    slope: Floats
    curvature: Floats | None = None
    conjugate: Floats | None = None


class CurvedLoss(Protocol):
    """A loss with a slope and a curvature everywhere: a margin loss itself, or a rounded one."""

    @property
    def width(self) -> float:
        """The width of a rounded corner; 0 where nothing is rounded."""

    def parts(self, shortfall: Floats, *, curvature: bool = True) -> LossParts:
        """Compute value, slope and, if wanted, curvature, element by element."""


class MarginLoss(ABC):
    """A convex loss of the shortfall m = 1 - y f(x).

    Attributes
    ----------
    is_smooth : bool
        Whether the slope is continuous.
    has_corner : bool
        Whether the curvature is infinite somewhere, so that Newton steps need :meth:`rounded`.
    is_hinge : bool
        Whether phi(m) = max(0, m): linear away from the margin, so that solvers may leave such rows out.
    vanishes : bool
        Whether phi(m) = 0 for m <= 0, as interior points need it.
    is_log_odds : bool
        Whether the best score is log(P(+1) / P(-1)), so that probabilities follow from scores.
    largest_slope : float
        The supremum of the slope; a dual variable is at most the cost times this.
    degree : float or None
        q where phi(t m) = t^q phi(m) for t > 0.
    active_curvature : float or None
        The curvature wherever the slope is positive, if it is the same everywhere.
    conjugate_stiffness : float or None
        k where phi*(a) = k a^2 / 2 for 0 <= a <= ``largest_slope``: the slope is a ramp, a jump where k = 0.
    n_roundings : float
        So many roundings, one after the other, are as bad as the errors of one value or conjugate.
    width : float
        0: nothing is rounded here.
    """

    is_smooth: bool = True
    has_corner: bool = False
    is_hinge: bool = False
    vanishes: bool = False
    is_log_odds: bool = False
    largest_slope: float = np.inf
    degree: float | None = None
    active_curvature: float | None = None
    conjugate_stiffness: float | None = None
    n_roundings: float = 1000.0
    width: float = 0.0

    @abstractmethod
    def value(self, shortfall: Floats) -> Floats:
        """Compute phi(m), element by element."""

    @abstractmethod
    def slope(self, shortfall: Floats) -> Floats:
        """Compute phi'(m); at a kink the left derivative."""

    @abstractmethod
    def curvature(self, shortfall: Floats) -> Floats:
        """Compute phi''(m); where it jumps, one of its values."""

    @abstractmethod
    def conjugate(self, alpha: Floats, cost: Floats) -> Floats:
        """Compute sup_m alpha m - cost phi(m) for cost > 0; infinite outside the domain of alpha."""

    @abstractmethod
    def prox(self, point: Floats, step: float) -> Floats:
        """Compute argmin_m  step phi(m) + (m - point)^2 / 2."""

    def parts(self, shortfall: Floats, *, curvature: bool = True, conjugate: bool = False) -> LossParts:
        """Compute value, slope and, if wanted, curvature and conjugate; common terms are computed once.

        By Fenchel's equality the conjugate is phi'(m) m - phi(m): a loss in which these two cancel, or which
        knows it otherwise, has ``parts`` of its own.
        """
        value, slope = self.value(shortfall), self.slope(shortfall)
        return LossParts(
            value,
            slope,
            self.curvature(shortfall) if curvature else None,
            slope * shortfall - value if conjugate else None,
        )

    def rounded(self, width: float) -> CurvedLoss:
        """Return a loss just below this one, nearer for smaller widths, of finite curvature everywhere.

        Its slopes must be slopes of this loss too, if at other shortfalls, so that they are dual variables.
        """
        if self.has_corner:
            raise NotImplementedError(f"{type(self).__name__} has a corner and does not say how to round it.")
        return self

    def scaled_conjugate(self, total: float, factor: float) -> float:
        """Bound the sum of conjugates at ``factor`` (at most 1) times alpha; ``total`` is that at alpha.

        The conjugate is convex and zero at zero, hence at most ``factor`` times as large.
        """
        return factor * total

    def raised_total(self, total: float, cost: float, error: float) -> float:
        """Bound sum_i c_i phi(m_i) where ``total`` was computed from shortfalls so far off.

        ``cost`` is the sum of all c_i. By default from the largest slope, or from the active curvature a:
        then phi(m) = a/2 max(0, m - m_0)^2, and Minkowski's inequality bounds the root of the total.
        """
        if error == 0:
            return total
        if np.isfinite(self.largest_slope):
            return total + self.largest_slope * error * cost
        if self.active_curvature is not None:
            root = sqrt(total) + error * sqrt(self.active_curvature * cost / 2)
            return root * root
        raise NotImplementedError(
            f"{type(self).__name__} has neither a largest_slope nor an active_curvature and does not say how "
            "much rounding errors may raise it: give it a method raised_total(total, cost, error)."
        )


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
        """Compute max(0, m)^p, element by element."""
        positive = np.maximum(shortfall, 0.0)
        if self.p == 1:
            return positive
        if self.p == 2:
            return np.square(positive, out=positive)
        return np.power(positive, self.p, out=positive)

    def slope(self, shortfall: Floats) -> Floats:
        """Compute the slope p max(0, m)^(p-1); at the kink of p = 1 the left derivative, 0."""
        if self.p == 1:
            return (shortfall > 0).astype(float)
        if self.p == 2:
            return 2 * np.maximum(shortfall, 0.0)
        return self.p * np.power(np.maximum(shortfall, 0.0), self.p - 1)

    def curvature(self, shortfall: Floats) -> Floats:
        """Compute the curvature p (p-1) m^(p-2) for m > 0, else 0."""
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
        """Return the parabola on [0, width] where p < 2; see above."""
        return RoundedHinge(self.p, width) if self.has_corner and width > 0 else self

    def raised_total(self, total: float, cost: float, error: float) -> float:
        """Bound by Minkowski's inequality (``rows.design``); infinite beyond the range of numbers."""
        with np.errstate(over="ignore"):
            return float(np.float64(total ** (1 / self.p) + error * cost ** (1 / self.p)) ** self.p)

    def scaled_conjugate(self, total: float, factor: float) -> float:
        """Compute it exactly: the conjugate is homogeneous of degree p / (p - 1), and zero for p = 1."""
        return 0.0 if self.p == 1 else float(factor ** (self.p / (self.p - 1)) * total)

    def prox(self, point: Floats, step: float) -> Floats:
        """Compute argmin_m  step max(0, m)^p + (m - point)^2 / 2, the E step of the paper.

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
        """Find the root of m + slope m^(p-1) = point > 0 by Newton steps inside a shrinking bracket.

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
        """Compute sup_m  alpha m - cost max(0, m)^p for cost > 0; infinite outside the domain of alpha.

        p = 1: zero on [0, cost]. p > 1: cost (p-1) (alpha / (p cost))^(p/(p-1)) for alpha >= 0.
        """
        if self.p == 1:
            return np.where((alpha >= 0) & (alpha <= cost), 0.0, np.inf)
        ratio = np.maximum(alpha, 0.0) / (self.p * cost)
        with np.errstate(over="ignore"):
            inside = cost * (self.p - 1) * ratio ** (self.p / (self.p - 1))
        return np.where(alpha >= 0, inside, np.inf)


def _roundings(p: float) -> float:
    """Count the roundings of one m^p, or of its conjugate, whose exponent p / (p - 1) magnifies errors."""
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
        """Compute value, slope and, if wanted, curvature, element by element."""
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
    n_roundings = _LOGISTIC_ROUNDINGS

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
        """Find the root of m + step phi'(m) = point, by Newton steps inside [point - step, point]."""
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


@dataclass(frozen=True)
class SmoothHinge(MarginLoss):
    """The smooth hinge. scikit-learn's "modified_huber" is another: the *squared* hinge, linear from m = 2.

    References
    ----------
    J. D. M. Rennie and N. Srebro, "Loss functions for preference levels: regression with discrete ordered
    labels", 2005. S. Shalev-Shwartz and T. Zhang (2013) have a width for it; here it is 1.

    Examples
    --------
    >>> import numpy as np
    >>> SmoothHinge().value(np.array([-1.0, 0.5, 3.0]))
    array([0.   , 0.125, 2.5  ])
    """

    vanishes = True
    largest_slope = 1.0
    conjugate_stiffness = 1.0
    n_roundings = 8.0

    def value(self, shortfall: Floats) -> Floats:
        """See ``MarginLoss``."""
        return self.parts(shortfall, curvature=False)[0]

    def slope(self, shortfall: Floats) -> Floats:
        """See ``MarginLoss``."""
        return np.asarray(np.clip(shortfall, 0.0, 1.0))

    def curvature(self, shortfall: Floats) -> Floats:
        """See ``MarginLoss``: 1 inside, and at m = 1 too, where all rows are before the first step."""
        return ((shortfall > 0) & (shortfall <= 1)).astype(float)

    def parts(self, shortfall: Floats, *, curvature: bool = True, conjugate: bool = False) -> LossParts:
        """See ``MarginLoss``: the conjugate a m - a (m - a / 2) without the difference."""
        positive = np.maximum(shortfall, 0.0)
        slope = np.minimum(positive, 1.0)
        half = slope / 2
        return LossParts(
            slope * (positive - half),
            slope,
            self.curvature(shortfall) if curvature else None,
            slope * half if conjugate else None,
        )

    def conjugate(self, alpha: Floats, cost: Floats) -> Floats:
        """See ``MarginLoss``: finite for 0 <= alpha <= cost."""
        return np.where((alpha >= 0) & (alpha <= cost), alpha * (alpha / cost) / 2, np.inf)

    def scaled_conjugate(self, total: float, factor: float) -> float:
        """Compute it exactly: the conjugate is homogeneous of degree 2."""
        return factor * factor * total

    def prox(self, point: Floats, step: float) -> Floats:
        """See ``MarginLoss``: m (1 + step) = point inside, m + step = point beyond."""
        return np.asarray(np.where(point <= 1 + step, np.minimum(point, point / (1 + step)), point - step))


POWER_LOSS = "hinge"
"""The one that is made with a power p."""

LOSSES: dict[str, type[MarginLoss]] = {
    POWER_LOSS: PowerHinge,
    "logistic": Logistic,
    "smooth_hinge": SmoothHinge,
}
"""Name of a loss -> its class."""

OWN_LOSSES = frozenset(LOSSES)
"""Those that come with the package."""


def register_loss(name: str, loss: type[MarginLoss]) -> None:
    """Make a loss known by its name, to the linear classifiers.

    Model files keep the name alone: whoever loads them has to register it, too.

    Parameters
    ----------
    name : str
        What ``loss=`` will be. The losses of the package itself keep their names.
    loss : type
        A subclass of ``MarginLoss`` that can be made without arguments.
    """
    if name in OWN_LOSSES:
        raise ValueError(f"there is a loss {name!r} already; choose another name.")
    LOSSES[name] = loss
