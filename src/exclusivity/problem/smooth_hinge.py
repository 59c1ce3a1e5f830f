"""The smooth hinge of Rennie and Srebro: quadratic inside the margin, linear on the wrong side of the plane.

In the shortfall m = 1 - y f, with a = min(max(m, 0), 1),

    phi = 0 | m^2 / 2 | m - 1/2    for    m <= 0 | 0 <= m <= 1 | m >= 1 ,    phi = a (m - a / 2),   phi' = a ,

the hinge with its corner replaced by the parabola that a Huber function has, up to where rows change sides.
As with the hinge no row pulls harder than its cost, so that far outliers count no more than rows just beyond
the plane; as with the squared hinge there is a curvature for Newton steps, and only rows inside the margin
have one. A dual variable is alpha = c a with 0 <= a <= 1, and loss*(alpha) = c a^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Floats
from exclusivity.problem.loss import LossParts, MarginLoss


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
        """Exactly: the conjugate is homogeneous of degree 2."""
        return factor * factor * total

    def prox(self, point: Floats, step: float) -> Floats:
        """See ``MarginLoss``: m (1 + step) = point inside, m + step = point beyond."""
        return np.asarray(np.where(point <= 1 + step, np.minimum(point, point / (1 + step)), point - step))
