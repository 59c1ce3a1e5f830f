"""The power hinge with its corner at zero rounded off, so that it has a curvature everywhere.

For 1 <= p < 2 the curvature p (p-1) m^(p-2) of max(0, m)^p blows up at 0 (p = 1: the slope jumps). On
[0, width] the loss is replaced by the parabola of the same slope at ``width``,

    phi(m) = p/2 width^(p-2) m^2            for 0 <= m <= width
    phi(m) = m^p - (1 - p/2) width^p        for m > width ,

which lies below max(0, m)^p by at most (1 - p/2) width^p. Its slope is a feasible dual variable of the true
loss, so the duality gap of the true problem can be computed from it. For p >= 2 nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Floats


@dataclass(frozen=True)
class SmoothedHinge:
    """max(0, m)^p with a parabola on [0, width]; ``width`` matters for p < 2 only."""

    p: float
    width: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether this is the power hinge itself."""
        return self.p >= 2 or self.width == 0

    def parts(self, shortfall: Floats, *, curvature: bool = True) -> tuple[Floats, Floats, Floats | None]:
        """Value, slope and, if wanted, curvature, element by element."""
        p, width = self.p, self.width
        positive = np.maximum(shortfall, 0.0)
        if p == 2:
            bend = np.where(shortfall > 0, 2.0, 0.0) if curvature else None
            return positive * positive, 2 * positive, bend
        if self.is_exact:
            bend = p * (p - 1) * positive ** (p - 2) if curvature else None
            return positive**p, p * positive ** (p - 1), bend
        stiffness = p * width ** (p - 2)
        # At ``width`` itself, where all rows of a zero start may be, the parabola's curvature is of use.
        rounded = shortfall <= width
        beyond = np.maximum(positive, width)
        value = np.where(rounded, stiffness / 2 * positive * positive, beyond**p - (1 - p / 2) * width**p)
        slope = np.where(rounded, stiffness * positive, p * beyond ** (p - 1))
        if not curvature:
            return value, slope, None
        bend = np.where(rounded, stiffness, p * (p - 1) * beyond ** (p - 2))
        return value, slope, np.where(shortfall > 0, bend, 0.0)
