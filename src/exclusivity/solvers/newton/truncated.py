"""Truncated Newton: rows and features both too many for a factorisation, so only products with X are used.

    f(w, b) = 1/2 |w|^2 + sum_i theta_i(m_i),   m = 1 - y (X w + b)

with a rounded loss theta (``rounding``). With a_i = theta_i'(m_i) and h_i = theta_i''(m_i) > 0 on few rows
only, the Newton step solves

    (I + X^T H_c X) dw = X^T (y a) - w ,     H_c = H - H 1 1^T H / (1^T H 1) ,

by conjugate gradients with a diagonal preconditioner and to one digit only: the next step mends the rest.
The intercept needs no ridge and no gradient of its own: it is put at its optimum, sum y a = 0, before every
step, which also makes a feasible for the dual. Products with X and X^T of all rows are needed once per step;
all else runs over the rows with curvature, or over vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from exclusivity.problem import (
    UNIT,
    ERMProblem,
    dual_bound_with_pull,
    member_costs,
    objective_of_shortfall,
    repair_dual,
)
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.solvers.newton.rounding import RoundedLoss, rounded_loss, shifted_loss
from exclusivity.solvers.newton.run import Certificate, Guess, Point, Run

PATIENCE = 300.0
"""Passes, 20 to 60 as a rule, after which an interior point is the better bet."""

_MAX_STEPS = 250
_CG_TOL = 0.1
_CG_MAX_ITER = 100
_MAX_LENGTHS = 12
_MAX_INTERCEPTS = 100
# Sharpen the loss once the gradient is to blame for no more than this share of the gap.
_SETTLED = 0.2
# Shortfalls that may be so many times farther off than new ones are made anew.
_STALE = 8.0
# For how many steps the shape of a preconditioner is kept.
_KEPT = 4


@dataclass(frozen=True, eq=False)
class TruncatedIterate:
    """A point, the slopes there and what they prove, how far the loss was rounded, and around what.

    ``has_moved``: it is not the start any more, seen with a sharper loss.
    """

    point: Point
    alpha: Floats
    objective: float
    error: float
    bound: float
    gradient_norm: float
    width: float
    passes: float
    centre: Floats | None
    has_moved: bool


def drive_truncated(
    run: Run,
    reduced: ERMProblem,
    start: Point,
    alpha: Floats | None = None,
    *,
    width: float | None = None,
    spent: float = 0.0,
    most_passes: float = np.inf,
    is_shifted: bool = False,
) -> None:
    """Newton steps by products alone until the run is over, no step helps or the passes are used up.

    ``spent`` are those of earlier runs; ``is_shifted``: see ``truncated_iterates``.
    """
    before, method = run.passes, "shifted" if is_shifted else "truncated"
    for iterate in truncated_iterates(reduced, start, alpha, width, is_shifted=is_shifted):
        run.passes, passes = before + iterate.passes, spent + iterate.passes
        run.state = Guess(
            iterate.point, width=iterate.width, dual=iterate.centre, method=method, spent=passes
        )
        run.take(
            iterate.point,
            Certificate(
                iterate.objective, iterate.error, iterate.bound, partial(repair_dual, reduced, iterate.alpha)
            ),
            residual=iterate.gradient_norm,
            mu=iterate.width,
            is_start=not iterate.has_moved,
        )
        if run.is_over or passes > most_passes:
            return


def truncated_iterates(
    problem: ERMProblem,
    start: Point,
    alpha: Floats | None = None,
    width: float | None = None,
    *,
    is_shifted: bool = False,
) -> Iterator[TruncatedIterate]:
    """Iterates of a reduced problem; the caller stops. Ends by itself when no step helps any more.

    A dual vector ``alpha`` that goes with the start is of use for p = 1, and for any loss that ``is_shifted``
    (see ``rounding``); ``width`` is that of the rounding.
    """
    if is_shifted:
        loss = shifted_loss(problem, alpha, width)
    else:
        loss = rounded_loss(problem.loss, member_costs(problem), alpha, width)
    walk = _Walk(problem, start, loss)
    for _ in range(_MAX_STEPS):
        yield walk.iterate()
        if not walk.advance():
            return


class _Walk:
    def __init__(self, problem: ERMProblem, start: Point, loss: RoundedLoss) -> None:
        self.problem, self.loss = problem, loss
        self.y, self.costs = problem.labels, member_costs(problem)
        self.weights, self.intercept = start.weights, start.intercept
        self.passes, self._has_moved, self.shortfall, self.error = 0.0, False, self.y, 0.0
        self._measure()
        self._mean_squares, self._n_directions = np.empty(0), 0
        self._evaluate()

    def _evaluate(self) -> None:
        """The intercept at its best, slopes, weighted_sums and the bound they prove."""
        if self.problem.fit_intercept:
            shift = balancing_shift(self.loss, self.shortfall, self.y)
            self.intercept += shift
            self.shortfall = self.shortfall - shift * self.y
            self.error += 2 * UNIT * (abs(self.intercept) + abs(shift))
        self.alpha = self.loss.slope(self.shortfall)
        self.dual_weights = self.problem.design.transposed_times(self.y * self.alpha)
        self.passes += 0.5
        self.gradient = self.weights - self.dual_weights
        self.objective, self.lost = objective_of_shortfall(
            self.problem, self.weights[:, None], self.shortfall[:, None], self.error
        )
        self.bound = dual_bound_with_pull(self.problem, self.alpha, self.dual_weights)

    def _measure(self) -> None:
        """Shortfalls from scratch."""
        self.shortfall = 1 - self.y * (self.problem.design.times(self.weights) + self.intercept)
        self.error = self._rounding(self.weights, self.intercept)
        self.passes += 0.5

    def _rounding(self, weights: Floats, intercept: float) -> float:
        """How far the scores of such weights may be off."""
        return float(self.problem.design.row_scale.score_error(weights, intercept))

    def _carry(self, dw: Floats, db: float, change: Floats) -> None:
        """Shortfalls after a step, and how far they may be off; from scratch where that is too far.

        What is carried on has the errors of the step's own scores, and those of adding it to weights,
        intercept and shortfalls.
        """
        self.weights = self.weights + dw
        self.intercept += db
        self.shortfall = self.shortfall + change
        largest = float(np.abs(self.shortfall).max())
        self.error += self._rounding(dw, db) + 4 * UNIT * (abs(self.intercept) + largest)
        # Adding to n weights rounds as a product with them does, n times less.
        n_terms = max(self.problem.design.row_scale.n_terms, 1)
        self.error += self._rounding(self.weights, self.intercept) / n_terms
        if self.error > _STALE * self._rounding(self.weights, self.intercept):
            self._measure()

    def iterate(self) -> TruncatedIterate:
        return TruncatedIterate(
            point=Point(self.weights, self.intercept),
            alpha=self.alpha,
            objective=self.objective,
            error=self.lost,
            bound=self.bound,
            gradient_norm=float(np.linalg.norm(self.gradient)),
            width=self.loss.width,
            passes=self.passes,
            centre=self.loss.dual,
            has_moved=self._has_moved,
        )

    def advance(self) -> bool:
        """Sharpen the loss where the gradient is settled, else one Newton step; False when nothing helps."""
        error = float(self.gradient @ self.gradient) / 2
        room = min(max(self.objective - self.bound, 0.0), self.loss.distance(self.alpha))
        is_settled = error <= _SETTLED * room
        if is_settled or not self._step():
            if not self.loss.sharpen(self.shortfall):
                return is_settled and self._step()
            self._evaluate()
        return True

    def _step(self) -> bool:
        dw, db = self._direction()
        change = -self.y * (self.problem.design.times(dw) + db)
        self.passes += 0.5
        length = self._length(dw, change)
        if length == 0:
            return False
        self._carry(length * dw, length * db, length * change)
        self._has_moved = True
        self._evaluate()
        return True

    def _direction(self) -> tuple[Floats, float]:
        """The Newton step to one digit."""
        curvatures = self.loss.curvature(self.shortfall)
        active = np.flatnonzero(curvatures)
        rows, h = self.problem.design.X[active], curvatures[active]
        total = float(h.sum())
        centre = self.problem.fit_intercept and total > 0
        mean = rows.T @ h / total if centre else np.zeros_like(self.weights)

        def curved(vector: Floats) -> Floats:
            image = rows @ vector
            image -= mean @ vector
            image *= h
            return np.asarray(vector + rows.T @ image - (image.sum() * mean if centre else 0.0))

        dw, n_products = conjugate_gradients(curved, -self.gradient, self._preconditioner(rows, h))
        self.passes += n_products * len(active) / len(self.y)
        return dw, -float(mean @ dw)

    def _preconditioner(self, rows: Matrix, h: Floats) -> Floats | None:
        """1 + diag(X^T H X), its shape kept for a few steps: it only steers the conjugate gradients.

        None with more features than rows: most features are then in few rows, and the diagonal says nothing
        (20,000 x 10^6: 125 passes without it, 210 with it; 200,000 x 50,000: 172 and 92).
        """
        if rows.shape[1] > len(self.y) or len(h) == 0:
            return None
        total = float(h.sum())
        if self._n_directions % _KEPT == 0:
            wide = rows.astype(float, copy=False)
            squares = wide.multiply(wide) if sparse.issparse(wide) else wide**2
            self._mean_squares = np.asarray(squares.T @ (h / total))
        self._n_directions += 1
        return np.asarray(1 + total * self._mean_squares)

    def _length(self, dw: Floats, change: Floats) -> float:
        """Where the slope along the step is about zero, at most 1; 0 if the step does not lead down."""
        along, squares = float(self.weights @ dw), float(dw @ dw)

        def slope(t: float) -> float:
            return along + t * squares + float(self.loss.slope(self.shortfall + t * change) @ change)

        low, high, at_low, at_high = 0.0, 1.0, slope(0.0), slope(1.0)
        if not (at_low < 0 and np.isfinite(at_high)):
            return 0.0
        # Conjugate gradients make it zero up to rounding where no row crosses a corner: either sign will do.
        goal = _CG_TOL * at_low
        if at_high <= -goal:
            return 1.0
        for _ in range(_MAX_LENGTHS):
            middle = low + (high - low) * float(np.clip(at_low / (at_low - at_high), 0.1, 0.9))
            here = slope(middle)
            low, high, at_low, at_high = (
                (low, middle, at_low, here) if here > 0 else (middle, high, here, at_high)
            )
            if goal <= here <= 0:
                break
        return low if low > 0 else high


def conjugate_gradients(
    apply: Callable[[Floats], Floats], right: Floats, diagonal: Floats | None
) -> tuple[Floats, int]:
    """A solution of apply(x) = right to a relative residual of 0.1, and how many products it took."""
    residual, solution = right.copy(), np.zeros_like(right)
    scaled = residual if diagonal is None else residual / diagonal
    direction, rho = scaled.copy(), float(residual @ scaled)
    goal = _CG_TOL**2 * rho
    for count in range(_CG_MAX_ITER):
        if not rho > goal:
            return solution, count
        image = apply(direction)
        curvature = float(direction @ image)
        if not 0 < curvature < np.inf:  # rounding has eaten the curvature: what has been found so far must do
            return solution, count + 1
        length = rho / curvature
        solution += length * direction
        residual -= length * image
        scaled = residual if diagonal is None else residual / diagonal
        rho, old = float(residual @ scaled), rho
        direction *= rho / old
        direction += scaled
    return solution, _CG_MAX_ITER


def balancing_shift(loss: RoundedLoss, shortfall: Floats, y: Floats) -> float:
    """The change t of the intercept with sum_i y_i slope_i(m_i - y_i t) = 0, by safeguarded Newton steps.

    The sum falls as t grows, from the slopes of the positive rows alone to those of the negative ones.
    """
    low, high, t = -np.inf, np.inf, 0.0
    best, least, reach = 0.0, np.inf, 1.0
    for _ in range(_MAX_INTERCEPTS):
        moved = shortfall - t * y
        slopes = loss.slope(moved)
        imbalance, alpha_sum = float(y @ slopes), float(slopes.sum())
        if abs(imbalance) < least:
            best, least = t, abs(imbalance)
        if abs(imbalance) <= 1e-15 * alpha_sum or not np.isfinite(imbalance):
            break
        low, high = (t, high) if imbalance > 0 else (low, t)
        is_bracketed = np.isfinite(low) and np.isfinite(high)
        curvature = float(loss.curvature(moved).sum())
        step = imbalance / curvature if curvature > 0 else np.inf
        if not (abs(step) <= reach and low < t + step < high):
            step = (low + high) / 2 - t if is_bracketed else float(np.copysign(reach, imbalance))
        if t + step in (low, high):
            break
        t += step
        # Inside a bracket steps have to halve, or Newton's method may go to and fro; outside they may grow.
        reach = abs(step) / 2 if is_bracketed else 4 * reach
    return best
