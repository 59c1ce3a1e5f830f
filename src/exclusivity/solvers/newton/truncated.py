"""Truncated Newton: rows and features both too many for a factorisation, so only products with X are used.

    f(w, b) = 1/2 |w|^2 + sum_i theta_i(m_i),   m = 1 - y (X w + b)

with a rounded loss theta (``rounding``). With a_i = theta_i'(m_i) and h_i = theta_i''(m_i) > 0 on few rows
only, the Newton step solves

    (I + X^T H_c X) dw = X^T (y a) - w ,     H_c = H - H 1 1^T H / (1^T H 1) ,

by conjugate gradients with a diagonal preconditioner, and roughly: the next step mends the rest.
With kinks or bounds of the penalty these are steps of the weights that are free (``model``).
The intercept needs no ridge and no gradient of its own: it is put at its optimum, sum y a = 0, before every
step, which also makes a feasible for the dual. Products with X and X^T of all rows are needed once per step;
all else runs over the rows with curvature, or over vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np

from exclusivity.problem import (
    UNIT,
    DesignMatrix,
    ERMProblem,
    dual_bound_with_pull,
    member_costs,
    objective_of_shortfall,
    relative_gap,
    repair_dual,
)
from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers.newton.linear import ProductSystem
from exclusivity.solvers.newton.model import model_step
from exclusivity.solvers.newton.rounding import RoundedLoss, balancing_shift, rounded_loss, shifted_loss
from exclusivity.solvers.newton.run import Certificate, Guess, Point, Run, Step, objective_of

PATIENCE = 300.0
"""Passes, 20 to 60 as a rule, after which an interior point is the better bet."""

_MAX_STEPS = 250
_MAX_LENGTHS = 12
# Residuals of Newton systems while the gap is above the third number, and below. Passes over real text, other
# than the benchmark's, against 0.1 throughout: 0.64 for p = 2, 0.8 for p = 1 and logistic loss; no better are
# 0.3, or as the last step went. Active rows change less with far more features than rows, the last number.
_RESIDUALS, _RESIDUALS_OF_WIDE, _NEAR, _WIDE = (0.5, 0.2), (0.1, 0.1), 0.05, 20
# A step ends where the slope has come down to this share, the search for one among kinks where the gain has.
_ROUGHLY = 0.1
# Sharpen the loss once the gradient is to blame for no more than this share of the gap.
_SETTLED = 0.2
# Shortfalls that may be so many times farther off than new ones are made anew.
_STALE = 8.0
# For how many steps the shape of a preconditioner is kept.
_KEPT = 4
# Rows are worth a copy where they are at most this share of all; a smaller one where X is large, as there are
# copies of copies for conjugate gradients, and all of it has to stay below half of X.
_FEW, _FEW_OF_LARGE = 0.5, 1 / 3
_LARGE = 1 << 24
# Below so many rows a step takes as long on some of them as on all.
_MANY_ROWS = 500
# Shortfalls may change by so many times what the last step did to them, root mean square (tried: 0.5 to 3).
_REACH = 1.0
# Rows that are left out are looked at again when the gap has come down to this share, or to the tolerance.
_LOOK = 0.1
_MAX_PART_STEPS = 20


@dataclass(frozen=True, eq=False)
class TruncatedIterate:
    """A point, the slopes there and what they prove, how far the loss was rounded, and around what.

    ``has_moved``: it is not the start any more, seen with a sharper loss.
    """

    point: Point
    alpha: Floats
    dual_weights: Floats
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
    for iterate in truncated_iterates(reduced, start, alpha, width, is_shifted=is_shifted, tol=run.tol):
        run.passes, passes = before + iterate.passes, spent + iterate.passes
        run.state = Guess(
            iterate.point, width=iterate.width, dual=iterate.centre, method=method, spent=passes
        )
        dual = partial(repair_dual, reduced, iterate.alpha)
        point, certificate = iterate.point, Certificate(iterate.objective, iterate.error, iterate.bound, dual)
        if not reduced.penalty.is_smooth and run.would_end(certificate):
            point, certificate = _settled(run, reduced, iterate, certificate)
        run.take(
            point,
            certificate,
            residual=iterate.gradient_norm,
            mu=iterate.width,
            is_start=not iterate.has_moved,
        )
        if run.is_over or passes > most_passes:
            return


def _settled(
    run: Run, reduced: ERMProblem, iterate: TruncatedIterate, certificate: Certificate
) -> tuple[Point, Certificate]:
    """The last iterate with exact zeros and bounds, unless they cost it its certificate: one pass.

    Steps that were shortened come close to these, and no closer.
    """
    point = Point(
        reduced.penalty.settled(iterate.point.weights, iterate.dual_weights), iterate.point.intercept
    )
    objective = objective_of(reduced, point, reduced.design.times(point.weights) + point.intercept)
    run.passes += 0.5
    settled = Certificate(*objective, certificate.bound, certificate.dual)
    return (point, settled) if run.would_end(settled) else (iterate.point, certificate)


def truncated_iterates(
    problem: ERMProblem,
    start: Point,
    alpha: Floats | None = None,
    width: float | None = None,
    *,
    is_shifted: bool = False,
    tol: float = 0.0,
) -> Iterator[TruncatedIterate]:
    """Iterates of a reduced problem; the caller stops. Ends by itself when no step helps any more.

    A dual vector ``alpha`` that goes with the start is of use for p = 1, and for any loss that ``is_shifted``
    (see ``rounding``); ``width`` is that of the rounding, and ``tol`` the gap at which the caller will stop.
    """
    if is_shifted:
        loss = shifted_loss(problem, alpha, width)
    else:
        loss = rounded_loss(problem.loss, member_costs(problem), alpha, width)
    walk = _Walk(problem, start, loss)
    for _ in range(_MAX_STEPS):
        yield walk.iterate()
        if not walk.advance(tol):
            return


class _Walk:
    def __init__(self, problem: ERMProblem, start: Point, loss: RoundedLoss) -> None:
        self.problem, self.loss = problem, loss
        self.y = problem.labels
        self.weights, self.intercept = start.inside(problem.penalty).weights, start.intercept
        self.passes, self._has_moved, self.shortfall, self.error = 0.0, False, self.y, 0.0
        self._measure()
        self._mean_squares, self._n_directions = np.empty(0), 0
        width = problem.design.n_features / problem.design.n_rows
        self._has_few_rows, self._residuals = width > 1, _RESIDUALS_OF_WIDE if width > _WIDE else _RESIDUALS
        self._change, self._reach = np.inf, _REACH
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
        self.shortfall = 1 - self.y * self.intercept
        self.error = self._rounding(self.weights, self.intercept)
        if self.weights.any():
            self.shortfall -= self.y * self.problem.design.times(self.weights)
            self.passes += 0.5

    def _rounding(self, weights: Floats, intercept: float) -> float:
        """How far the scores of such weights may be off."""
        return float(self.problem.design.row_scale.score_error(weights, intercept))

    def _carry(self, step: Step, length: float, change: Floats) -> None:
        """Shortfalls after a step, and how far they may be off; from scratch where that is too far.

        What is carried on has the errors of the step's own scores, and those of adding it to weights,
        intercept and shortfalls.
        """
        point = step.part(Point(self.weights, self.intercept), length, self.problem.penalty)
        self.weights, self.intercept = point.weights, point.intercept
        self.shortfall = self.shortfall + length * change
        largest = float(np.abs(self.shortfall).max())
        of_step = self._rounding(length * step.change.weights, length * step.change.intercept)
        self.error += of_step + 4 * UNIT * (abs(self.intercept) + largest)
        # Adding to n weights rounds as a product with them does, n times less.
        n_terms = max(self.problem.design.row_scale.n_terms, 1)
        self.error += self._rounding(self.weights, self.intercept) / n_terms
        if self.error > _STALE * self._rounding(self.weights, self.intercept):
            self._measure()

    def iterate(self) -> TruncatedIterate:
        return TruncatedIterate(
            point=Point(self.weights, self.intercept),
            alpha=self.alpha,
            dual_weights=self.dual_weights,
            objective=self.objective,
            error=self.lost,
            bound=self.bound,
            gradient_norm=float(np.linalg.norm(self.gradient)),
            width=self.loss.width,
            passes=self.passes,
            centre=self.loss.dual,
            has_moved=self._has_moved,
        )

    @property
    def gap(self) -> float:
        """The relative duality gap."""
        return relative_gap(self.objective + self.lost, self.bound)

    def advance(self, tol: float) -> bool:
        """One step on all rows, or several on those that matter; False when nothing helps any more.

        Rows far on the right side of the margin have neither loss nor slope. While they are left out, bounds
        hold for all rows, their dual variables being zero; objectives do when the others agree.
        """
        rows = self._nearby()
        if rows is None:
            return self._advance()
        part = self._restricted(rows)
        goal = max(tol, _LOOK * self.gap)
        for _ in range(_MAX_PART_STEPS):
            if not part._advance() or part.gap <= goal:
                break
        if part.weights is self.weights:
            return self._advance()
        self._adopt(part, rows)
        return True

    def _nearby(self) -> Ints | None:
        """The rows that have a slope or may get one soon; None where they are most of the rows."""
        if not np.isfinite(self._change) or len(self.y) < _MANY_ROWS:
            return None
        rows = np.flatnonzero(self.loss.slope(self.shortfall + self._reach * self._change))
        return rows if 0 < len(rows) <= self._most_copied() else None

    def _most_copied(self) -> float:
        """So many rows are worth a copy."""
        return (_FEW if self.problem.design.n_numbers <= _LARGE else _FEW_OF_LARGE) * len(self.y)

    def _restricted(self, rows: Ints) -> _Walk:
        """The same walk on some of the rows; as long as the others have no loss it is that on all rows."""
        part, whole = copy(self), self.problem
        part.problem = whole.changed(
            design=whole.design.taken(rows), labels=whole.labels[rows], weights=whole.weights[rows]
        )
        part.loss, part.passes = self.loss.restricted(rows), 0.0
        part.y, part.alpha, part.shortfall = self.y[rows], self.alpha[rows], self.shortfall[rows]
        return part

    def _adopt(self, part: _Walk, rows: Ints) -> None:
        """Go where the walk on some of the rows has led; what is known there holds if the others agree."""
        self.passes += part.passes * len(rows) / len(self.y)
        self.loss = self.loss.extended(part.loss, rows)
        self.weights, self.intercept, before = part.weights, part.intercept, self.shortfall
        self._has_moved = True
        self._measure()
        self._note_change(self.shortfall - before)
        others = self.shortfall + self.error
        others[rows] = -np.inf
        self.shortfall[rows], self.error = part.shortfall, max(self.error, part.error)
        if np.any(self.problem.loss.value(others)):
            self._reach *= 2
            self._evaluate()
            return
        self.alpha = np.zeros_like(self.alpha)
        self.alpha[rows] = part.alpha
        self.dual_weights, self.gradient = part.dual_weights, part.gradient
        self.objective, self.lost, self.bound = part.objective, part.lost, part.bound

    def _advance(self) -> bool:
        """Sharpen the loss where the gradient is settled, else one Newton step; False when nothing helps."""
        error = self._excess()
        room = min(max(self.objective - self.bound, 0.0), self.loss.distance(self.alpha))
        is_settled = error <= _SETTLED * room
        if is_settled or not self._step():
            if not self.loss.sharpen(self.shortfall):
                return is_settled and self._step()
            self._evaluate()
        return True

    def _excess(self) -> float:
        """What the gap owes to weights that do not go with the slopes: |gradient|^2 / 2 without kinks."""
        if self.problem.penalty.is_smooth:
            return float(self.gradient @ self.gradient) / 2
        return self.problem.penalty.excess(self.weights, self.dual_weights)

    def _step(self) -> bool:
        step = self._direction()
        dw, db = step.change.weights, step.change.intercept
        change = -self.y * (self.problem.design.times(dw) + db)
        self.passes += 0.5
        length = self._length(dw, change)
        if length == 0:
            return False
        self._note_change(length * change)
        self._carry(step, length, change)
        self._has_moved = True
        self._evaluate()
        return True

    def _note_change(self, change: Floats) -> None:
        """How far a typical row moves: as in this step, or half as far as it was before."""
        typical = float(np.sqrt(change @ change / len(change)))
        self._change = typical if np.isinf(self._change) else max(typical, self._change / 2)

    def _direction(self) -> Step:
        """The Newton step, roughly."""
        h = self.loss.derivatives(self.shortfall)[1]
        active, rows = np.flatnonzero(h), self.problem.design
        if len(active) <= self._most_copied():
            rows, h = rows.taken(active), h[active]
        diagonal, rest = self._preconditioner(rows, h), self._residuals[int(self.gap <= _NEAR)]
        system = ProductSystem(rows, h, self.problem.fit_intercept, diagonal, rest)
        point, penalty = Point(self.weights, self.intercept), self.problem.penalty
        if penalty.is_smooth:
            dw, _ = system.solve(-self.gradient, 0.0)
            step = Step(point.moved(Point(dw, 0.0), 1.0), Point(dw, 0.0), float(self.gradient @ dw))
        else:
            step = model_step(system, penalty, point, Point(self.gradient, 0.0), _ROUGHLY)
        self.passes += system.n_products * rows.n_rows / len(self.y)
        return step.with_intercept(self.intercept, system.intercept_change(step.change.weights))

    def _preconditioner(self, rows: DesignMatrix, h: Floats) -> Floats | None:
        """1 + diag(X^T H X), its shape kept for a few steps: it only steers the conjugate gradients.

        None with more features than rows: most features are then in few rows, and the diagonal says nothing
        (20,000 x 10^6: 125 passes without it, 210 with it; 200,000 x 50,000: 172 and 92).
        """
        total = float(h.sum())
        if self._has_few_rows or total == 0:
            return None
        if self._n_directions % _KEPT == 0:
            self._mean_squares = rows.column_scatter(h / total, np.zeros_like(self.weights))
        self._n_directions += 1
        return np.asarray(1 + total * self._mean_squares)

    def _length(self, dw: Floats, change: Floats) -> float:
        """Where the slope along the step is about zero, at most 1; 0 if the step does not lead down."""
        along, squares, penalty = float(self.weights @ dw), float(dw @ dw), self.problem.penalty

        def slope(t: float) -> float:
            of_loss = float(self.loss.slope(self.shortfall + t * change) @ change)
            if penalty.is_smooth:
                return along + t * squares + of_loss
            return float(penalty.slopes(self.weights, dw, np.array([t]))[0]) + of_loss

        low, high, at_low, at_high = 0.0, 1.0, slope(0.0), slope(1.0)
        if not (at_low < 0 and np.isfinite(at_high)):
            return 0.0
        # Conjugate gradients make it zero up to rounding where no row crosses a corner: either sign will do.
        goal = _ROUGHLY * at_low
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
