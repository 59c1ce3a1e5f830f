"""The rows' side of the interior-point method: multipliers and slacks, and the sums that steps need of them.

``interior`` says what is solved. Here are the variables that belong to single rows (``Barrier``), the few
questions that a step asks about all rows (``StepRows``, ``BarrierRows``), and the answers for rows in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from exclusivity._typing import Floats, Matrix
from exclusivity.objective.losses import MarginLoss
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers.newton.linear import (
    DENSE_LIMIT,
    DualSystem,
    NewtonSystem,
    bordered_gram,
    dense_product,
    ridged_system,
)
from exclusivity.solvers.newton.run import Certificate, Point, certificate_of, dual_weights_of

STEP_PASSES = 7
"""Of one step over the rows it works on."""

_FEW_NUMBERS = 1 << 17  # a MiB
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
        target: float,
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


class StepRows(Protocol):
    """What one step asks about the data rows, in this order.

    ``linearise``, ``system``, then ``right_side`` and ``turn`` for the predictor, ``longest_step`` and
    ``complementarity_after``, ``right_side`` and ``turn`` for the corrector, ``longest_step``, ``move``.
    """

    n_features: int
    total_cost: float

    @property
    def point(self) -> Point:
        """The current point."""

    @property
    def complementarity(self) -> float:
        """The sum alpha . s + z . xi at the current point."""

    def linearise(self) -> tuple[Floats, float]:
        """X^T (y alpha) and y . alpha, minus what is linear for sure; residuals and D are noted."""

    def system(self, ridge: Floats, fit_intercept: bool) -> NewtonSystem:
        """The factorised system with the row weights D."""

    def right_side(self, sigma_mu: float, correct: bool) -> tuple[Floats, float]:
        """X^T (y D v) and y . D v for the v of ``Barrier.right_side``."""

    def turn(self, system: NewtonSystem, right: Floats, total: float) -> tuple[Floats, float]:
        """(dw, db), with the directions of all row variables noted."""

    def longest_step(self) -> float:
        """How far all row variables stay non-negative."""

    def complementarity_after(self, length: float) -> float:
        """What the complementarity would be after a step of ``length``."""

    def move(self, length: float) -> None:
        """Take the step, the point's own included."""


class BarrierRows(StepRows, Protocol):
    """The same rows where iterates are certified."""

    @property
    def passes(self) -> float:
        """How often the rows have been read."""

    def dual_weights(self) -> Floats:
        """X^T (y alpha) of the dual vector at the current point, made feasible."""

    def certify(self, point: Point) -> Certificate:
        """What this point and the dual vector at the current one prove."""

    def rough_loss(self) -> float | None:
        """The loss at the current point, whatever its rounding; None where a proof costs no more."""

    def slacks(self) -> Floats | None:
        """Multipliers and slacks of the rows, for a later run to go on from, where they are at hand."""


@dataclass(frozen=True, eq=False)
class WorkingRows:
    """Rows with a loss of their own, and the linear loss of all others."""

    X: Matrix
    labels: Floats
    costs: Floats
    linear_w: Floats
    linear_b: float


class RowProducts:
    """What is asked of rows z_i = y_i (x_i, 1): z_i . (w, b), sum_i a_i z_i, and sum_i h_i z_i z_i^T."""

    def __init__(self, X: Matrix, labels: Floats) -> None:
        self._design, self._labels = DesignMatrix(X), labels
        is_small = not self._design.is_sparse and X.size <= _FEW_NUMBERS  # a copy saves calls of numpy
        self._Z = None
        if is_small:
            self._Z = np.empty((X.shape[0], X.shape[1] + 1))
            self._Z[:, -1] = labels
            self._signed = self._Z[:, :-1]
            np.multiply(X, labels[:, None], out=self._signed)

    def gains(self, weights: Floats, intercept: float) -> Floats:
        """z_i . (w, b), the intercept added last."""
        if self._Z is not None:
            gains = self._signed @ weights
            gains += self._labels * intercept
            return np.asarray(gains)
        return np.asarray(self._labels * (self._design.times(weights) + intercept))

    def folded(self, values: Floats) -> tuple[Floats, float]:
        """sum_i a_i z_i."""
        if self._Z is not None:
            return (total := values @ self._Z)[:-1], float(total[-1])
        return self._design.transposed_times(self._labels * values), float(self._labels @ values)

    def gram(self, weights: Floats) -> Floats:
        """sum_i h_i z_i z_i^T."""
        if self._Z is not None:
            roots = self._Z * np.sqrt(weights)[:, None]
            return np.asarray(roots.T @ roots)  # numpy knows it is symmetric: half the work
        return bordered_gram(self._design.X, weights)


class WorkingBarrier:
    """The interior point's side of rows in memory, on the smaller side of the system.

    Parameters
    ----------
    rows : WorkingRows
    loss : MarginLoss
    start : Point
    has_penalty : bool
        With a penalty most weights end at zero. The rows' side then loses rank where D has no bound, that is,
        where the loss has a corner; the features' side does not.
    """

    def __init__(self, rows: WorkingRows, loss: MarginLoss, start: Point, has_penalty: bool) -> None:
        self.rows, self.point = rows, start
        self.n_features = M = int(rows.X.shape[1])
        self._products = RowProducts(rows.X, rows.labels)
        self._gains = self._products.gains(start.weights, start.intercept)
        self.barrier = Barrier(rows.costs, loss, 1.0, self._gains)
        self.total_cost = float(rows.costs.sum())
        self._step = start
        loses_rank = has_penalty and loss.has_corner and M <= DENSE_LIMIT
        self._on_primal_side = rows.X.shape[0] >= M or loses_rank
        self._kernel = None
        if not self._on_primal_side and not has_penalty:
            self._kernel = dense_product(rows.X, np.ones(M))

    @property
    def complementarity(self) -> float:
        """See ``StepRows``."""
        return self.barrier.complementarity

    def linearise(self) -> tuple[Floats, float]:
        """See ``StepRows``."""
        self.barrier.linearise(self._gains)
        dual_weights, balance = self._products.folded(self.barrier.alpha)
        return dual_weights - self.rows.linear_w, balance - self.rows.linear_b

    def system(self, ridge: Floats, fit_intercept: bool) -> NewtonSystem:
        """See ``StepRows``."""
        if not self._on_primal_side:
            return DualSystem(self.rows.X, ridge, self.barrier.D, fit_intercept, self._kernel)
        return ridged_system(self._products.gram(self.barrier.D), ridge, fit_intercept)

    def right_side(self, sigma_mu: float, correct: bool) -> tuple[Floats, float]:
        """See ``StepRows``."""
        return self._products.folded(self.barrier.D * self.barrier.right_side(sigma_mu, correct))

    def turn(self, system: NewtonSystem, right: Floats, total: float) -> tuple[Floats, float]:
        """See ``StepRows``."""
        if isinstance(system, DualSystem):
            dw, db, multipliers = system.solve_with_multipliers(right, total)
            self.barrier.turn(self.rows.labels * multipliers)
        else:
            dw, db = system.solve(right, total)
            self.barrier.turn(self.barrier.D * self._products.gains(dw, db))
        self._step = Point(dw, db)
        return dw, db

    def longest_step(self) -> float:
        """See ``StepRows``."""
        return self.barrier.longest_step()

    def complementarity_after(self, length: float) -> float:
        """See ``StepRows``."""
        return self.barrier.complementarity_after(length)

    def move(self, length: float) -> None:
        """See ``StepRows``."""
        self.barrier.move(length)
        self.point = self.point.moved(self._step, length)
        self._gains = self._products.gains(self.point.weights, self.point.intercept)


class MemoryBarrier(WorkingBarrier):
    """The same for all rows of a problem, whose iterates are certified.

    Parameters
    ----------
    problem : ERMProblem
        Of one member.
    start : Point
    slacks : ndarray or None
        Multipliers and slacks of the rows, to go on from.
    """

    def __init__(self, problem: ERMProblem, start: Point, slacks: Floats | None = None) -> None:
        linear = np.zeros(problem.design.n_features)
        rows = WorkingRows(problem.design.X, problem.labels, member_costs(problem), linear, 0.0)
        super().__init__(rows, problem.loss, start, not problem.penalty.is_smooth)
        self._problem, self.passes = problem, 0.0
        if slacks is not None:
            self.barrier.values = slacks

    def move(self, length: float) -> None:
        """See ``StepRows``."""
        super().move(length)
        self.passes += STEP_PASSES

    def dual_weights(self) -> Floats:
        """See ``BarrierRows``."""
        self.passes += 1
        return dual_weights_of(self._problem, self.barrier.alpha)

    def certify(self, point: Point) -> Certificate:
        """See ``BarrierRows``: from scratch."""
        self.passes += 2
        return certificate_of(self._problem, point, self.barrier.alpha)

    def rough_loss(self) -> float | None:
        """See ``BarrierRows``."""
        return float(self.rows.costs @ self._problem.loss.value(1.0 - self._gains))

    def slacks(self) -> Floats | None:
        """See ``BarrierRows``."""
        return self.barrier.values
