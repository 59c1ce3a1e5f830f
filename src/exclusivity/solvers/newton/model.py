"""Newton steps for penalties with kinks and bounds: the least point of a model with the penalty as it is.

Around a point (w, b) the ridge and the loss have the gradient r and the second derivatives A; the rest of the
penalty, l |v| within [lo, hi], is no harder to minimise exactly than to approximate:

    q(v, c) = r . d + 1/2 d^T A d + sum_j l_j |v_j|,   d = (v - w, c - b),   lo <= v <= hi .

On the side of zero where each weight is (or, from zero, where the slope leads) l |v| is linear and q is a
parabola in a box. Weights at the end of their interval that the slope pushes outward stay; Newton's step of
the others is cut off at the ends of their intervals, and shortened where that spoils it (projected Newton):
a few systems of the size of the free weights, and not one look at the rows.

q(v) < q(w) makes v - w a direction of descent, as q and the objective have the same slopes at w.
"""

from __future__ import annotations

from math import inf

import numpy as np

from exclusivity.objective.objective import Penalty
from exclusivity.solvers.newton.run import NewtonSystem
from exclusivity.solvers.newton.sums import Point, Step

_MAX_ROUNDS = 60
_ARMIJO = 1e-4
_LENGTHS = tuple(2.0**-power for power in range(30))
# The rounds end where the next one promises so little of what all have gained.
_EXACT = 1e-12


def model_step(
    system: NewtonSystem,
    penalty: Penalty,
    point: Point,
    gradient: Point,
    share: float = _EXACT,
    most_systems: float = inf,
) -> Step:
    """Find the step to the least point of the model around ``point``, which is within the bounds.

    ``gradient`` is that of ridge and loss, to which the system belongs. A system that is solved roughly needs
    no more than a rough minimum, up to a ``share`` of what can be gained. After ``most_systems`` the step
    leads to the best point so far.
    """
    kinks, lower, upper = (
        np.broadcast_to(np.asarray(part, dtype=float), len(point.weights))
        for part in (penalty.kinks, penalty.lower, penalty.upper)
    )

    def evaluate(at: Point) -> tuple[float, Point]:
        """Compute the model less what it is at the point, and the gradient of its parabola."""
        dw, db = at.weights - point.weights, at.intercept - point.intercept
        product, product_b = system.times(dw, db)
        parabola = (gradient.weights + product / 2) @ dw + (gradient.intercept + product_b / 2) * db
        change = kinks @ (np.abs(at.weights) - np.abs(point.weights))
        return float(parabola + change), Point(gradient.weights + product, gradient.intercept + product_b)

    at, value, slope, n_systems = point, 0.0, gradient, 0
    for _ in range(_MAX_ROUNDS):
        w = at.weights
        # From zero a weight goes where the slope is steeper than its kink, if anywhere.
        side = np.where(w != 0, np.sign(w), -np.sign(slope.weights) * (np.abs(slope.weights) > kinks))
        slopes, has_kink = slope.weights + kinks * side, kinks > 0
        low = np.where(has_kink & (side >= 0), np.maximum(lower, 0.0), lower)
        high = np.where(has_kink & (side <= 0), np.minimum(upper, 0.0), upper)
        free = ~(((w <= low) & (slopes >= 0)) | ((w >= high) & (slopes <= 0)))
        moves = False
        while not moves and n_systems < most_systems:
            # The step of the free weights and the intercept, and twice what it gains if nothing is cut off.
            n_systems += 1
            dw = np.zeros(len(w))
            dw[free], db = system.restricted(free).solve(-slopes[free], -slope.intercept)
            promised = -float(slopes @ dw + slope.intercept * db)
            if not promised > share * abs(value):
                break
            for length in _LENGTHS:
                end = Point(np.clip(w + length * dw, low, high), at.intercept + length * db)
                gain = float(slopes @ (end.weights - w)) + slope.intercept * length * db
                there, slope_there = evaluate(end)
                if there <= value + _ARMIJO * gain:
                    break
            moves = there < value
            # Weights at an end that the step would push beyond it are what may keep it from leading down.
            is_blocked = free & (((w <= low) & (dw < 0)) | ((w >= high) & (dw > 0)))
            if not moves and not is_blocked.any():
                break
            free &= ~is_blocked
        if not moves:
            break
        at, value, slope = end, there, slope_there
    change = Point(at.weights - point.weights, at.intercept - point.intercept)
    steepness = gradient.weights @ change.weights + gradient.intercept * change.intercept
    steepness += np.sum(kinks * (np.abs(at.weights) - np.abs(point.weights)))
    return Step(at, change, float(steepness), n_systems)
