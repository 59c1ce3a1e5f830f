"""Newton steps for penalties with kinks and bounds: the least point of a model with the penalty as it is.

Around a point (w, b) the ridge and the loss have the gradient r and the second derivatives A; the rest of the
penalty, l |v| within [lo, hi], is no harder to minimise exactly than to approximate:

    q(v, c) = r . d + 1/2 d^T A d + sum_j l_j |v_j|,   d = (v - w, c - b),   lo <= v <= hi .

On the side of zero where each weight is (or, from zero, where the slope leads) l |v| is linear and q is a
parabola in a box. Weights at the end of their interval that the slope pushes outward stay; Newton's step of
the others is cut off at the ends of their intervals, or, where that spoils it, ends where the first weight
comes to such an end (the active-set method): a few systems of the size of the free weights, and not one look
at the rows.

q(v) < q(w) makes v - w a direction of descent, as q and the objective have the same slopes at w.
"""

from __future__ import annotations

from math import inf
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from exclusivity._typing import Bools, Floats
from exclusivity.objective.objective import Penalty
from exclusivity.solvers.newton.run import NewtonSystem
from exclusivity.solvers.newton.sums import Point, Step

_MAX_ROUNDS = 60
# A step that is cut off is taken where it keeps this share of what it would have gained.
_GOOD_SHARE = 0.3
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
    """The step to the least point of the model around ``point``, which is within the bounds.

    ``gradient`` is that of ridge and loss, to which the system belongs. A system that is solved roughly needs
    no more than a rough minimum, up to a ``share`` of what can be gained. After ``most_systems`` the step
    leads to the best point so far.
    """
    model = _Model(system, penalty, point, gradient)
    target = model.least(share, most_systems)
    change = Point(target.weights - point.weights, target.intercept - point.intercept)
    kinks = np.sum(penalty.kinks * (np.abs(target.weights) - np.abs(point.weights)))
    slope = gradient.weights @ change.weights + gradient.intercept * change.intercept + kinks
    return Step(target, change, float(slope), model.n_systems)


class _Pieces(NamedTuple):
    """The parabola around a point: its slopes, the intervals of the weights, and which of them are free."""

    slopes: Floats
    low: Floats
    high: Floats
    free: Bools


class _Model:
    def __init__(self, system: NewtonSystem, penalty: Penalty, point: Point, gradient: Point) -> None:
        self._system, self._origin, self._gradient = system, point, gradient
        self._kinks, self._lower, self._upper = (
            np.broadcast_to(np.asarray(part, dtype=float), len(point.weights))
            for part in (penalty.kinks, penalty.lower, penalty.upper)
        )
        self._at, self._value, self._slope = point, 0.0, gradient
        self.n_systems = 0

    def _evaluate(self, at: Point) -> tuple[float, Point]:
        """The model less what it is at the origin, and the gradient of its parabola."""
        origin, gradient = self._origin, self._gradient
        dw, db = at.weights - origin.weights, at.intercept - origin.intercept
        product, product_b = self._system.times(dw, db)
        parabola = (gradient.weights + product / 2) @ dw + (gradient.intercept + product_b / 2) * db
        kinks = self._kinks @ (np.abs(at.weights) - np.abs(origin.weights))
        return float(parabola + kinks), Point(gradient.weights + product, gradient.intercept + product_b)

    def _pieces(self) -> _Pieces:
        w, slope, kinks = self._at.weights, self._slope.weights, self._kinks
        # From zero a weight goes where the slope is steeper than its kink, if anywhere.
        side = np.where(w != 0, np.sign(w), -np.sign(slope) * (np.abs(slope) > kinks))
        total, has_kink = slope + kinks * side, kinks > 0
        low = np.where(has_kink & (side >= 0), np.maximum(self._lower, 0.0), self._lower)
        high = np.where(has_kink & (side <= 0), np.minimum(self._upper, 0.0), self._upper)
        stays = ((w <= low) & (total >= 0)) | ((w >= high) & (total <= 0))
        return _Pieces(total, low, high, ~stays)

    def least(self, share: float, most_systems: float) -> Point:
        """The minimiser, or what rounding and so many systems let be found of it."""
        for _ in range(_MAX_ROUNDS):
            if self.n_systems >= most_systems or not self._improve(self._pieces(), share):
                break
        return self._at

    def _improve(self, pieces: _Pieces, share: float) -> bool:
        """One Newton step of the free weights and the intercept; whether another is worth its while."""
        step, promised = self._newton(pieces, pieces.free)
        if not promised > share * abs(self._value):
            return False
        candidates = self._candidates(pieces, step, promised, is_rough=share > _EXACT)
        value, at = min(((self._evaluate(end)[0], end) for end in candidates), key=itemgetter(0))
        if not value < self._value:
            return False
        self._at = at
        self._value, self._slope = self._evaluate(at)
        return True

    def _candidates(self, pieces: _Pieces, step: Point, promised: float, is_rough: bool) -> list[Point]:
        """Where a step may end: cut off, and what else there is where most of it is cut off."""
        whole = self._cut(pieces, step, 1.0)
        if self._evaluate(whole)[0] <= self._value - _GOOD_SHARE * promised / 2:
            return [whole]
        if is_rough:  # another system costs more than shorter steps do
            return [self._shorter(pieces, step)]
        # A straight step to the first end lowers the parabola, unless it is blocked at once; that of the
        # weights inside and of the steepest one at an end never is.
        free = pieces.free & ~self._blocked(pieces, step)
        inner = (self._at.weights > pieces.low) & (self._at.weights < pieces.high)
        inner[np.argmax(np.where(pieces.free, np.abs(pieces.slopes), -1.0))] = True
        return [whole, *(self._straight(pieces, self._newton(pieces, chosen)[0]) for chosen in (free, inner))]

    def _shorter(self, pieces: _Pieces, step: Point) -> Point:
        """The longest of ever shorter steps, cut off, that lowers the model enough."""
        for length in _LENGTHS:
            end = self._cut(pieces, step, length)
            gain = (
                pieces.slopes @ (end.weights - self._at.weights)
                + self._slope.intercept * length * step.intercept
            )
            if self._evaluate(end)[0] <= self._value + _ARMIJO * gain:
                return end
        return self._at

    def _newton(self, pieces: _Pieces, free: Bools) -> tuple[Point, float]:
        """The step of these weights and the intercept, and twice what it gains if nothing is cut off."""
        self.n_systems += 1
        dw, slope_b = np.zeros(len(free)), self._slope.intercept
        dw[free], db = self._system.restricted(free).solve(-pieces.slopes[free], -slope_b)
        return Point(dw, db), -float(pieces.slopes @ dw + slope_b * db)

    def _cut(self, pieces: _Pieces, step: Point, length: float) -> Point:
        """So much of the step, every weight cut off at the end of its interval."""
        at = self._at.moved(step, length)
        return Point(np.clip(at.weights, pieces.low, pieces.high), at.intercept)

    def _blocked(self, pieces: _Pieces, step: Point) -> Bools:
        """Weights at the end of their interval that the step would push beyond it."""
        w, dw = self._at.weights, step.weights
        return ((w <= pieces.low) & (dw < 0)) | ((w >= pieces.high) & (dw > 0))

    def _straight(self, pieces: _Pieces, step: Point) -> Point:
        """The step up to where the first weight comes to the end of its interval, exactly there."""
        w, dw = self._at.weights, step.weights
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(dw > 0, (pieces.high - w) / dw, np.where(dw < 0, (pieces.low - w) / dw, np.inf))
        length = min(1.0, float(room.min(initial=1.0)))
        at = self._at.moved(step, length)
        weights = np.clip(at.weights, pieces.low, pieces.high)
        first = room <= length
        weights[first] = np.where(dw > 0, pieces.high, pieces.low)[first]
        return Point(weights, at.intercept)
