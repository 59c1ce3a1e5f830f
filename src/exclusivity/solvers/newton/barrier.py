"""The rows' side of the interior point: multipliers and slacks of rows, and sums that steps ask for.

``interior`` says what is solved.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.losses import MarginLoss
from exclusivity.solvers.newton.run import LossSums, Point
from exclusivity.solvers.newton.sums import BlockOfRows

FIRST_SLACK = 0.5
"""Where constraints begin."""

# So much of the slope is the first multiplier of a row. Most rows end without one: the hinge takes a tenth
# fewer steps (58 sets, costs of 1e-3 to 1e4) than from a half.
_FIRST_SHARE = 0.2


class Barrier:
    """The multipliers and slacks of a set of rows. ``gain`` is y (x . w + o b) throughout.

    ``values`` has the four numbers of every row, alpha, z, s and xi, in one array (with few rows numpy's time
    is that of its calls), and ``steps`` their directions.
    """

    def __init__(
        self,
        costs: Floats,
        loss: MarginLoss,
        target: Floats | float,
        gain: Floats,
        *,
        share: float = _FIRST_SHARE,
    ) -> None:
        self.costs, self.loss, self.target = costs, loss, target
        shortfall = target - gain
        self.values = np.empty((4, len(costs)))
        self.steps = np.zeros_like(self.values)
        self.xi[:] = np.maximum(shortfall, 0.0) + FIRST_SLACK
        self.s[:] = self.xi - shortfall
        slope = self._slope()
        self.alpha[:] = share * slope
        self.z[:] = slope - self.alpha

    def copy(self) -> Barrier:
        """The same variables; what is done to them leaves these as they are."""
        other = Barrier.__new__(Barrier)
        vars(other).update(vars(self))
        return other

    @property
    def alpha(self) -> Floats:
        """The multipliers of xi >= k - gain; the dual vector."""
        return np.asarray(self.values[0])

    @property
    def z(self) -> Floats:
        """The multipliers of xi >= 0."""
        return np.asarray(self.values[1])

    @property
    def s(self) -> Floats:
        """The slack of xi >= k - gain."""
        return np.asarray(self.values[2])

    @property
    def xi(self) -> Floats:
        """How far the margin is missed, at least."""
        return np.asarray(self.values[3])

    def _slope(self) -> Floats:
        if self.loss.is_hinge:
            return self.costs
        return np.asarray(self.costs * self.loss.slope(self.xi))

    @property
    def total_cost(self) -> float:
        """Of both kinds of multipliers together."""
        return 2 * float(self.costs.sum())

    @property
    def complementarity(self) -> float:
        """The sum alpha . s + z . xi, zero at the optimum."""
        return _complementarity(self.values)

    def linearise(self, gain: Floats) -> None:
        """Residuals and the row weights D at the current point."""
        alpha, z, s, xi = self.values
        self._residual_xi = self._slope() - alpha - z
        if self.loss.is_hinge:  # q = z / xi
            self._shares = 1 / self.values[:2]
        else:
            q = z / xi + self.costs * self.loss.curvature(xi)
            self._shares = np.stack([1 / alpha, 1 / (xi * q)])
        # s / alpha and 1 / q.
        self._ratios = ratios = self.values[2:] * self._shares
        self.D = 1 / (ratios[0] + ratios[1])
        # What v has of both residuals, the second being xi + gain - k - s.
        self._rest = self._residual_xi * ratios[1] + (self.target - gain) + (s - xi)

    def right_side(self, sigma_mu: float, correct: bool) -> Floats:
        """The v that leads to alpha s = z xi = c sigma_mu; ``correct`` adds the predictor's second order."""
        # What (alpha, s) and (z, xi) lack, then what s and xi have to move for it.
        moves = sigma_mu * self.costs - self.values[:2] * self.values[2:]
        if correct:
            moves -= self.steps[:2] * self.steps[2:]
        moves *= self._shares
        self._moves = moves
        self._v = moves[0] - moves[1] + self._rest
        return np.asarray(self._v)

    def right_side_slope(self) -> Floats:
        """How v changes with sigma_mu: within one iteration it is a straight line."""
        return np.asarray(self.costs * (self._shares[0] - self._shares[1]))

    def turn(self, change: Floats) -> None:
        """The directions of all row variables for D times a change of the gains.

        dalpha, and what it leaves of alpha + z to the other side, take s / alpha and 1 / q of themselves from
        the moves of s and xi.
        """
        self.steps = steps = np.empty_like(self.values)
        np.subtract(self.D * self._v, change, out=steps[0])
        np.subtract(self._residual_xi, steps[0], out=steps[1])
        np.subtract(self._moves, self._ratios * steps[:2], out=steps[2:])
        if not self.loss.is_hinge:  # z also takes what the slope of the loss gains
            steps[1] = self._moves[1] / self._ratios[1] - self.values[1] * steps[3] / self.values[3]

    def longest_step(self) -> float:
        """How far all four stay non-negative."""
        return longest_step(self.values, self.steps)

    def complementarity_after(self, length: float) -> float:
        """What :attr:`complementarity` would be after a step of ``length``."""
        return _complementarity(self.values + length * self.steps)

    def complementarity_growth(self) -> tuple[float, float]:
        """Its first and second order in the length of the step."""
        values, steps = self.values, self.steps
        slope = np.vdot(values[:2], steps[2:]) + np.vdot(steps[:2], values[2:])
        return float(slope), _complementarity(steps)

    def move(self, length: float) -> None:
        """Take the step; arrays handed out before stay as they are."""
        self.values = self.values + length * self.steps


def longest_step(values: Floats, steps: Floats) -> float:
    """How far all values stay non-negative."""
    if values.size == 0:
        return np.inf
    fastest = float((steps / values).min())  # the share that a full step takes away
    return np.inf if fastest >= 0 else -1 / fastest


def _complementarity(values: Floats) -> float:
    return float(np.vdot(values[:2], values[2:]))


class RowState(NamedTuple):
    """What stays with a block between two questions: multipliers and slacks, and y (x . w + b)."""

    barrier: Barrier
    gains: Floats


@dataclass(eq=False)
class BarrierSums:
    """What a step has to know of all rows; None for what was not asked for.

    ``slope`` and ``curvature`` make the complementarity after a step of length t a parabola in t.
    ``dual_weights`` is X^T (y alpha) with y . alpha behind it. ``right_sides`` holds X^T (y D v) and y . D v
    for one sigma_mu, or for 0 and, in its second row, how they change with sigma_mu.
    """

    total_cost: float = 0.0
    complementarity: float = 0.0
    slope: float = 0.0
    curvature: float = 0.0
    longest: float = np.inf
    loss: float | None = None
    gram: Floats | None = None
    dual_weights: Floats | None = None
    right_sides: Floats | None = None

    def __add__(self, other: BarrierSums) -> BarrierSums:
        """The sums over both sets of rows, and the shorter of the two longest steps."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            mine, yours = getattr(self, field.name), getattr(other, field.name)
            if field.name == "longest":
                values[field.name] = min(mine, yours)
            else:
                values[field.name] = mine if mine is None else mine + yours
        return BarrierSums(**values)


def arrive(
    block: BlockOfRows, state: RowState | None, point: Point, length: float, at_once: bool
) -> tuple[BarrierSums, RowState]:
    """Move by ``length`` to ``point`` (at the first time: begin there); linearise, too, if all is at once."""
    gains, total_cost = block.products.gains(point.weights, point.intercept), 0.0
    if state is None:
        barrier = Barrier(block.costs, block.problem.loss, block.problem.rows.goal(), gains)
        total_cost = float(barrier.costs.sum())
    else:
        barrier = state.barrier.copy()
        barrier.move(length)
    sums, here = BarrierSums(total_cost, barrier.complementarity), RowState(barrier, gains)
    if at_once:
        more, here = linearise(block, here, wants_gram=True)
        loss = rough_loss(block, here)[0]
        sums = dataclasses.replace(
            more, total_cost=sums.total_cost, complementarity=sums.complementarity, loss=loss
        )
    return sums, here


def rough_loss(block: BlockOfRows, state: RowState) -> tuple[float, RowState]:
    """Compute the loss at the current point, whatever its rounding."""
    missed = block.problem.rows.goal() - state.gains
    return float(block.costs @ block.problem.loss.value(missed)), state


def linearise(block: BlockOfRows, state: RowState, wants_gram: bool) -> tuple[BarrierSums, RowState]:
    """Linearise at the current point, with the right-hand side for sigma_mu = 0."""
    barrier = state.barrier.copy()
    barrier.linearise(state.gains)
    sums = BarrierSums(
        gram=block.products.gram(barrier.D) if wants_gram else None,
        dual_weights=block.products.folded(barrier.alpha),
        right_sides=block.products.folded(barrier.D * barrier.right_side(0.0, correct=False))[None],
    )
    return sums, RowState(barrier, state.gains)


def turn(
    block: BlockOfRows,
    state: RowState,
    change: Point | Floats,
    sigma_mu: float | None,
    predicts: bool,
    at_once: bool,
) -> tuple[BarrierSums, RowState]:
    """Find the directions for a change of the point, or for the multipliers g of a system of the rows' side.

    ``sigma_mu`` is that of the corrector, where its right-hand side has not been asked for.
    """
    barrier = state.barrier.copy()
    if sigma_mu is not None:
        barrier.right_side(sigma_mu, correct=True)
    if isinstance(change, Point):
        barrier.turn(barrier.D * block.products.gains(change.weights, change.intercept))
    else:
        barrier.turn(block.problem.labels * change)
    sums = BarrierSums(longest=barrier.longest_step())
    if predicts:
        sums.slope, sums.curvature = barrier.complementarity_growth()
    if predicts and at_once:
        # On a copy: the corrector does it again, from the predictor's directions.
        trial = barrier.copy()
        at_zero = block.products.folded(trial.D * trial.right_side(0.0, correct=True))
        sums.right_sides = np.array([at_zero, block.products.folded(trial.D * trial.right_side_slope())])
    return sums, RowState(barrier, state.gains)


def correct(block: BlockOfRows, state: RowState, sigma_mu: float) -> tuple[BarrierSums, RowState]:
    """Compute the corrector's right-hand side."""
    barrier = state.barrier.copy()
    right = block.products.folded(barrier.D * barrier.right_side(sigma_mu, correct=True))
    return BarrierSums(right_sides=right[None]), RowState(barrier, state.gains)


def dual_sums(block: BlockOfRows, state: RowState) -> tuple[LossSums, RowState]:
    """Compute the loss at the current point, and the sums of the dual vector that the barrier holds."""
    y, cost, loss = block.problem.labels, block.costs, block.problem.loss
    goal, value = block.problem.rows.goal(), rough_loss(block, state)[0]
    alpha = np.clip(state.barrier.alpha, 0.0, cost * loss.largest_slope)
    conjugate, alpha_sums = loss.conjugate(alpha, cost), np.array([alpha.sum(), y @ alpha])
    sums = LossSums(
        loss=value,
        smoothed=value,
        weighted_sums=block.problem.design.transposed_times(np.stack([alpha, y * alpha], axis=1)).T,
        alpha_sums=alpha_sums,
        conjugates=np.array([conjugate.sum(), y @ conjugate]),
        curvature=None,
        cost=float(cost.sum()),
        n_terms=float(len(y)),
        gains=alpha_sums
        if block.problem.targets is None
        else np.array([(goal * alpha).sum(), y @ (goal * alpha)]),
    )
    return sums, state
