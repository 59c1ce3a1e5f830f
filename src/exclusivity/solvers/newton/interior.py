"""A primal-dual interior-point method for rows in memory: any p >= 1, with or without an l1 penalty.

    min over w, b, xi:   1/2 |w|^2 + a_w . w + a_b b + sum_i c_i xi_i^p
    subject to           xi_i >= k_i - y_i (x_i . w + o_i b),   xi_i >= 0

Data rows have k = o = 1. The penalty l_j |w_j| is l_j max(0, w_j) + l_j max(0, -w_j): two more rows for every
feature with l_j > 0, x = -+e_j, k = o = 0, p = 1. The linear term (a_w, a_b) carries rows whose loss is
linear for sure.

With multipliers alpha (first constraint, slack s) and z (second), the optimum satisfies

    w + a_w = X^T (y alpha),   a_b = sum o y alpha,   c p xi^(p-1) = alpha + z,   alpha s = 0,   z xi = 0 .

Newton's method on these equations with alpha s = z xi = c mu, mu -> 0 (Mehrotra's predictor and corrector).
Eliminating everything that belongs to one row, with q = c p (p-1) xi^(p-2) + z / xi and
D = 1 / (s / alpha + 1 / q), leaves the system of ``linear`` in (dw, db), and

    dalpha = D (v - y df),   df = X dw + o db .

10 to 25 iterations reach a relative gap of 1e-8, whatever the scales in X: each is one factorisation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.solvers.newton.linear import DualSystem, NewtonSystem, PrimalSystem, dense_product
from exclusivity.solvers.newton.source import Point, bordered_gram

_MAX_ITER = 200
_BACK_OFF = 0.995
_FIRST_SLACK = 0.5
_PENALISED_PRIMAL_LIMIT = 4096


@dataclass(frozen=True, eq=False)
class WorkingRows:
    """Rows with a loss of their own, and the linear loss of all others."""

    X: Matrix
    labels: Floats
    costs: Floats
    linear_w: Floats
    linear_b: float


class Barrier:
    """The multipliers and slacks of a set of rows. ``gain`` is y (x . w + o b) throughout."""

    def __init__(self, costs: Floats, p: float, target: float, gain: Floats) -> None:
        self.costs, self.p, self.target = costs, p, target
        shortfall = target - gain
        self.xi = np.maximum(shortfall, 0.0) + _FIRST_SLACK
        self.s = self.xi - shortfall
        self.alpha = self.z = self._slope() / 2
        self.d_alpha = self.d_s = self.d_xi = self.d_z = np.zeros_like(self.xi)

    def _slope(self) -> Floats:
        return np.asarray(self.costs * self.p * self.xi ** (self.p - 1))

    @property
    def complementarity(self) -> float:
        """Alpha . s + z . xi, zero at the optimum."""
        return float(self.alpha @ self.s + self.z @ self.xi)

    def linearise(self, gain: Floats) -> None:
        """Residuals and the row weights D at the current point."""
        bend = self.costs * (self.p * (self.p - 1)) * self.xi ** (self.p - 2) if self.p > 1 else 0.0
        self._q = bend + self.z / self.xi
        self._residual_xi = self._slope() - self.alpha - self.z
        self._residual_s = self.xi + gain - self.target - self.s
        self.D = 1 / (self.s / self.alpha + 1 / self._q)

    def aim(self, sigma_mu: float, correct: bool) -> Floats:
        """The v that leads to alpha s = z xi = c sigma_mu; ``correct`` adds the predictor's second order."""
        goal = sigma_mu * self.costs
        self._tau_s, self._tau_xi = goal - self.alpha * self.s, goal - self.z * self.xi
        if correct:
            self._tau_s = self._tau_s - self.d_alpha * self.d_s
            self._tau_xi = self._tau_xi - self.d_z * self.d_xi
        inner = (self._tau_xi / self.xi - self._residual_xi) / self._q
        self._v = self._tau_s / self.alpha - inner - self._residual_s
        return np.asarray(self._v)

    def turn(self, pull: Floats) -> None:
        """The directions of all row variables for D times a change of the gains."""
        self.d_alpha = self.D * self._v - pull
        self.d_s = (self._tau_s - self.s * self.d_alpha) / self.alpha
        self.d_xi = (self.d_alpha + self._tau_xi / self.xi - self._residual_xi) / self._q
        self.d_z = (self._tau_xi - self.z * self.d_xi) / self.xi

    def longest_step(self) -> float:
        """How far all four stay non-negative."""
        pairs = ((self.alpha, self.d_alpha), (self.s, self.d_s), (self.xi, self.d_xi), (self.z, self.d_z))
        return min(_ratio(value, change) for value, change in pairs)

    def complementarity_after(self, length: float) -> float:
        """What :attr:`complementarity` would be after a step of ``length``."""
        return float(
            (self.alpha + length * self.d_alpha) @ (self.s + length * self.d_s)
            + (self.z + length * self.d_z) @ (self.xi + length * self.d_xi)
        )

    def move(self, length: float) -> None:
        """Take the step."""
        self.alpha = self.alpha + length * self.d_alpha
        self.s = self.s + length * self.d_s
        self.xi = self.xi + length * self.d_xi
        self.z = self.z + length * self.d_z


def interior_path(
    rows: WorkingRows, *, p: float, l1: float | Floats, fit_intercept: bool, start: Point
) -> Iterator[tuple[Point, Floats, float]]:
    """Points (w, b), dual vectors alpha of the rows and total complementarity, ever closer to the optimum.

    ``l1`` is one penalty for all features or one for each.

    The caller certifies each point and stops when it is good enough; the path ends by itself when rounding
    allows no further step.
    """
    state = _InteriorPoint(rows, p, l1, fit_intercept, start)
    for _ in range(_MAX_ITER):
        yield state.point, state.data.alpha, state.mu * state.total_cost
        if not state.step():
            return


class _InteriorPoint:
    def __init__(
        self, rows: WorkingRows, p: float, l1: float | Floats, fit_intercept: bool, start: Point
    ) -> None:
        self.rows, self.point, self.fit_intercept = rows, start, fit_intercept
        self.data = Barrier(rows.costs, p, 1.0, self._gains(start))
        M = rows.X.shape[1]
        penalties = np.broadcast_to(np.asarray(l1, dtype=float), M)
        self.penalised = np.flatnonzero(penalties)
        has_penalty = len(self.penalised) > 0
        # The penalty's rows: first w_j <= xi, then -w_j <= xi.
        penalty = Barrier(np.tile(penalties[self.penalised], 2), 1.0, 0.0, self._penalty_gains(start.weights))
        self.penalty = penalty if has_penalty else None
        self.barriers = [self.data] if self.penalty is None else [self.data, self.penalty]
        # Row i aims at c_i mu, so that a row of weight 2 behaves like two rows in every iterate.
        self.total_cost = 2 * sum(float(barrier.costs.sum()) for barrier in self.barriers)
        # With a penalty most weights end at zero and the rows' side loses rank; the features' side does not.
        self.on_primal_side = rows.X.shape[0] >= M or (has_penalty and M <= _PENALISED_PRIMAL_LIMIT)
        self.kernel = None
        if not self.on_primal_side and not has_penalty:
            self.kernel = dense_product(rows.X, np.ones(M))

    @property
    def mu(self) -> float:
        """The mean product of a multiplier and its slack, per unit of cost."""
        return sum(barrier.complementarity for barrier in self.barriers) / self.total_cost

    def _gains(self, point: Point) -> Floats:
        return np.asarray(self.rows.labels * (self.rows.X @ point.weights + point.intercept))

    def _penalty_gains(self, weights: Floats) -> Floats:
        chosen = weights[self.penalised]
        return np.append(-chosen, chosen)

    def _fold(self, data: Floats, penalty: Floats | None) -> Floats:
        """X^T (y data), plus the same for the penalty's rows."""
        folded: Floats = np.asarray(self.rows.X.T @ (self.rows.labels * data), dtype=float)
        if penalty is not None:
            half = len(penalty) // 2
            folded[self.penalised] += penalty[half:] - penalty[:half]
        return folded

    def _system(self) -> NewtonSystem:
        M = self.rows.X.shape[1]
        ridge = np.ones(M)
        if self.penalty is not None:
            half = len(self.penalised)
            ridge[self.penalised] += self.penalty.D[:half] + self.penalty.D[half:]
        if not self.on_primal_side:
            return DualSystem(self.rows.X, ridge, self.data.D, self.fit_intercept, self.kernel)
        matrix = bordered_gram(self.rows.X, self.data.D)
        matrix[np.arange(M), np.arange(M)] += ridge
        return PrimalSystem(matrix, self.fit_intercept)

    def _turn(self, system: NewtonSystem, sigma_mu: float, correct: bool) -> tuple[Floats, float]:
        """Directions of all variables for one right-hand side."""
        aims = [barrier.D * barrier.aim(sigma_mu, correct) for barrier in self.barriers]
        right = self._fold(aims[0], aims[1] if self.penalty else None) - self._residual_w
        total = float(self.rows.labels @ aims[0]) - self._residual_b
        if isinstance(system, DualSystem):
            dw, db, pulls = system.solve_with_pulls(right, total)
            self.data.turn(self.rows.labels * pulls)
        else:
            dw, db = system.solve(right, total)
            self.data.turn(self.data.D * self._gains(Point(dw, db)))
        if self.penalty is not None:
            self.penalty.turn(self.penalty.D * self._penalty_gains(dw))
        return dw, db

    def step(self) -> bool:
        """One predictor-corrector step; False when none is possible any more."""
        rows, point, mu = self.rows, self.point, self.mu
        if not 0 < mu < np.inf:
            return False
        self.data.linearise(self._gains(point))
        if self.penalty is not None:
            self.penalty.linearise(self._penalty_gains(point.weights))
        alphas = self._fold(self.data.alpha, self.penalty.alpha if self.penalty else None)
        self._residual_w = point.weights + rows.linear_w - alphas
        self._residual_b = rows.linear_b - float(rows.labels @ self.data.alpha)
        try:
            system = self._system()
        except linalg.LinAlgError:  # numbers too large for the matrix: the points so far are all there is
            return False
        self._turn(system, 0.0, correct=False)
        length = min(1.0, *(barrier.longest_step() for barrier in self.barriers))
        after = sum(barrier.complementarity_after(length) for barrier in self.barriers) / self.total_cost
        dw, db = self._turn(system, mu * (after / mu) ** 3, correct=True)
        # Never quite to the boundary, not even with a full step: from there no step is possible any more.
        length = min(1.0, *(_BACK_OFF * barrier.longest_step() for barrier in self.barriers))
        if not (np.isfinite(length) and length > 1e-14 and np.isfinite(db) and np.all(np.isfinite(dw))):
            return False
        self.point = point.moved(Point(dw, db), length)
        for barrier in self.barriers:
            barrier.move(length)
        return True


def _ratio(value: Floats, change: Floats) -> float:
    """The largest step that keeps value + step change >= 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotients = np.where(change < 0, -value / change, np.inf)
    return float(quotients.min()) if len(quotients) else np.inf
