"""What a margin loss gives, whoever writes it: the contract between losses and solvers.

A loss is a convex, non-decreasing function phi >= 0 of the shortfall m = 1 - y f(x), with phi(m) -> 0 as
m -> -infinity. Everything else (the reduction of K members to one, its dual and the certificate) follows from
that. Solvers look at the declared properties alone, and say before they start if they cannot use a loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import sqrt
from typing import NamedTuple, Protocol

import numpy as np

from exclusivity.problem.arrays import Floats


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
        """How far the rounding of a corner reaches; 0 where nothing is rounded."""

    def parts(self, shortfall: Floats, *, curvature: bool = True) -> LossParts:
        """Value, slope and, if wanted, curvature, element by element."""


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
        """phi(m), element by element."""

    @abstractmethod
    def slope(self, shortfall: Floats) -> Floats:
        """phi'(m); at a kink the left derivative."""

    @abstractmethod
    def curvature(self, shortfall: Floats) -> Floats:
        """phi''(m); where it jumps, one of its values."""

    @abstractmethod
    def conjugate(self, alpha: Floats, cost: Floats) -> Floats:
        """sup_m alpha m - cost phi(m) for cost > 0; infinite outside the domain of alpha."""

    @abstractmethod
    def prox(self, point: Floats, step: float) -> Floats:
        """argmin_m  step phi(m) + (m - point)^2 / 2."""

    def parts(self, shortfall: Floats, *, curvature: bool = True, conjugate: bool = False) -> LossParts:
        """Value, slope and, if wanted, curvature and conjugate: what they have in common is computed once.

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
        """A loss just below this one, nearer to it for smaller widths, with a finite curvature everywhere.

        Its slopes must be slopes of this loss too, if at other shortfalls, so that they are dual variables.
        """
        if self.has_corner:
            raise NotImplementedError(f"{type(self).__name__} has a corner and does not say how to round it.")
        return self

    def scaled_conjugate(self, total: float, factor: float) -> float:
        """At least the sum of conjugates at ``factor`` (at most 1) times alpha; ``total`` is that at alpha.

        The conjugate is convex and zero at zero, hence at most ``factor`` times as large.
        """
        return factor * total

    def raised_total(self, total: float, cost: float, error: float) -> float:
        """The most that sum_i c_i phi(m_i) can be where ``total`` was computed from shortfalls so far off.

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
