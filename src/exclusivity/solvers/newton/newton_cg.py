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

Over sparse rows a system is as dear as it is short-lived. Where there is a compiled kernel for rows and loss
(``subspace``), its steps lead to the best point of a two-dimensional subspace instead, for one product with X
and one with X^T each. In each case rows far off are left out for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.objective import relative_gap
from exclusivity.objective.problem import (
    ERMProblem,
    dual_bound_with_pull,
    member_costs,
    objective_of_shortfall,
    repair_dual,
)
from exclusivity.rows.design import UNIT, DesignMatrix, weighted_total
from exclusivity.solvers.newton.linear import ProductSystem
from exclusivity.solvers.newton.model import model_step
from exclusivity.solvers.newton.rounding import Balanced, RoundedLoss, balanced, rounded_loss, shifted_loss
from exclusivity.solvers.newton.run import Certificate, Guess, Point, Run, Step, objective_of
from exclusivity.solvers.newton.subspace import drive_subspace, has_few_rows, has_kernel

PATIENCE = 300.0
"""Passes, 20 to 60 as a rule, after which an interior point is the better bet."""

_MAX_STEPS = 250
# Where another method waits, a run whose gap does not halve for the first share of its passes hands over;
# once these are used up, for the second one.
_STALLED, _STALLED_LATE = 1 / 2, 1 / 10
# Where the gap but for rounding is this share of the tolerance, rounding alone keeps it from being proven.
_BEYOND = 1e-3
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
# For how many Newton steps the shape of a preconditioner is kept.
_KEPT = 4
# Rows are worth a copy where they are at most this share of all; a smaller one where X is large, as there are
# copies of copies, and all of them have to stay below half of X.
_FEW, _FEW_OF_LARGE, _FEW_IN_SYSTEM = 0.7, 1 / 4, 0.5
_LARGE = 1 << 24
# Below so many rows a step takes as long on some of them as on all.
_MANY_ROWS = 500
# Shortfalls may change by so many times what the last step did to them, root mean square (tried: 0.5 to 3).
_REACH = 2.0
# Rows that are left out are looked at again when the gap has come down to this share, or to the tolerance.
_LOOK = 0.1
# A run on the active rows goes on where those that matter now are at least this share of them.
_SAME = 0.7
# At most so many steps before that.
_MOST_STEPS = 20
# A run on the active rows may change shortfalls by so many times the distance of the rows that were left out.
_LEASH = 1.0
# Of what a run on the active rows has changed, the next one may change this share.
_LEFT = 0.3


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
    tried_kernel: bool = False,
) -> None:
    """Newton steps by products alone until the run is over, no step helps or the passes are used up.

    ``spent`` are those of earlier runs; ``is_shifted``: see ``truncated_iterates``; ``tried_kernel``: a
    compiled kernel has been there.
    """
    if reduced.design.is_sparse and not is_shifted and not tried_kernel and has_kernel(reduced):
        limits = {"spent": spent, "most_passes": most_passes}
        guess = drive_subspace(run, reduced, start, alpha, width=width, **limits)
        if run.is_over or guess.spent > most_passes:
            return
        start, alpha, width, spent = guess.point, guess.dual, guess.width, guess.spent
    before, method = run.passes, "shifted" if is_shifted else "truncated"
    halved, halved_at = run.gap, spent
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
        if run.gap <= halved / 2:
            halved, halved_at = run.gap, passes
        if most_passes < PATIENCE:
            share = _STALLED if passes <= most_passes else _STALLED_LATE
            is_slow = passes > halved_at + share * most_passes
        else:
            is_slow = passes > most_passes or (most_passes < np.inf and passes > halved_at + PATIENCE)
        if run.is_over or is_slow:
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
    state = NewtonCG(problem, start, loss)
    for _ in range(_MAX_STEPS):
        yield _proven(state)
        if state.gap <= _BEYOND * tol or not state.advance(tol):
            return


def _proven(state: NewtonCG) -> TruncatedIterate:
    """Return the iterate and what can be proven there: rounding is taken into account here."""
    problem = state.problem
    objective, lost = objective_of_shortfall(
        problem, state.weights[:, None], state.shortfall[:, None], state.error
    )
    return TruncatedIterate(
        point=Point(state.weights, state.intercept),
        alpha=state.alpha,
        dual_weights=state.dual_weights,
        objective=objective,
        error=lost,
        bound=dual_bound_with_pull(problem, state.alpha, state.dual_weights),
        gradient_norm=float(np.linalg.norm(state.gradient)),
        width=state.loss.width,
        passes=state.passes,
        centre=state.loss.dual,
        has_moved=state.has_moved,
    )


class NewtonCG:
    """Where Newton's method has come to.

    Attributes
    ----------
    weights, intercept
        The point.
    shortfall, error
        1 - y (X w + b) there, and how far that may be off.
    alpha, dual_weights, gradient
        The slopes of the rounded loss, X^T (y alpha), and w less that.
    objective, bound
        About f(w, b) and D(alpha): rounding is left to those who prove something with it.
    passes : float
        So far; a product with X or with X^T is half of one.
    """

    def __init__(self, problem: ERMProblem, start: Point, loss: RoundedLoss) -> None:
        self.problem, self.loss = problem, loss
        self.y = problem.labels
        self.weights, self.intercept = start.inside(problem.penalty).weights, start.intercept
        self.passes, self.has_moved, self.shortfall, self.error = 0.0, False, self.y, 0.0
        self._measure()
        self._has_few_rows = has_few_rows(problem)
        width = problem.design.n_features / problem.design.n_rows
        self._residuals = _RESIDUALS_OF_WIDE if width > _WIDE else _RESIDUALS
        self._change, self._reach, self._entered, self._leash = np.inf, _REACH, self.shortfall, np.inf
        self._mean_squares, self._n_directions = np.empty(0), 0
        self._part: tuple[NewtonCG, Ints] | None = None  # the last run on active rows, while it leads here
        self._evaluate()

    def _evaluate(self) -> None:
        """The intercept at its best, slopes, weighted sums, and about where objective and bound are."""
        if self.problem.fit_intercept:
            here = balanced(self.loss, self.shortfall, self.y)
            self.intercept += here.shift
            self.error += 2 * UNIT * (abs(self.intercept) + abs(here.shift))
        else:
            here = Balanced(0.0, self.shortfall, *self.loss.derivatives(self.shortfall))
        self.shortfall, self.alpha, self._here = here.shortfall, here.slopes, here
        self.dual_weights = self.problem.design.transposed_times(self.y * self.alpha)
        self.passes += 0.5
        self.gradient = self.weights - self.dual_weights
        self.objective = self.problem.penalty.value(self.weights) + self._total_loss()
        self._excess = self._cost_of_gradient()
        if self.loss.is_exact and self.problem.penalty.is_smooth:  # Fenchel's equality in every row
            self.bound = self.objective - self._excess
        else:
            self.bound = dual_value(self.problem, self.alpha, self.dual_weights)
        self._part = None

    def _total_loss(self) -> float:
        """About the sum of the losses."""
        degree = self.problem.loss.degree
        if self.loss.is_exact and degree is not None:  # Euler: phi'(m) m = q phi(m)
            return float(self.alpha @ self.shortfall) / degree
        return self.problem.cost * weighted_total(
            self.problem.weights, self.problem.loss.value(self.shortfall)
        )

    def _measure(self) -> None:
        """Shortfalls from scratch."""
        self.shortfall = 1 - self.y * self.intercept
        self.error = self._fresh = self._rounding(self.weights, self.intercept)
        if self.weights.any():
            self.shortfall -= self.y * self.problem.design.times(self.weights)
            self.passes += 0.5

    def _rounding(self, weights: Floats, intercept: float) -> float:
        """How far the scores of such weights may be off."""
        return float(self.problem.design.row_scale.score_error(weights, intercept))

    @property
    def gap(self) -> float:
        """About the relative duality gap."""
        return relative_gap(self.objective, self.bound)

    def advance(self, tol: float) -> bool:
        """Some steps; False when nothing helps any more."""
        return self._approach(max(tol, _LOOK * self.gap), 1)

    def _approach(self, goal: float, most: int) -> bool:
        """At most so many moves, until the gap is small enough; False where none helps."""
        before = self.weights
        for _ in range(most):
            if not self._move(goal):
                return self.weights is not before
            if self.gap <= goal or rms(self.shortfall - self._entered) > self._leash:
                return True
        return True

    def _move(self, goal: float) -> bool:
        """One step on all rows, or several on those that matter; False where none helps.

        Rows far on the right side of the margin have neither loss nor slope. While they are left out, bounds
        hold for all rows, their dual variables being zero; objectives do when the others agree.
        """
        rows = self._nearby()
        if rows is not None:
            part, rows = self._part_with(rows)
            if part._approach(max(goal, _LOOK * self.gap), _MOST_STEPS):
                self._adopt(part, rows)
                return True
        return self._advance()

    def _nearby(self) -> Ints | None:
        """The rows that have a slope or may get one soon; None where they are most of the rows."""
        is_part = np.isfinite(self._leash)
        if not np.isfinite(self._change) or len(self.y) < _MANY_ROWS or is_part:
            return None
        rows = np.flatnonzero(self.loss.slope(self.shortfall + self._reach * self._change))
        return rows if 0 < len(rows) <= self._most_copied() else None

    def _most_copied(self) -> float:
        """So many rows are worth a copy."""
        return (_FEW if self.problem.design.n_numbers <= _LARGE else _FEW_OF_LARGE) * len(self.y)

    def _part_with(self, rows: Ints) -> tuple[NewtonCG, Ints]:
        """Return the run on these rows: the last one of this kind where it has them all and not many more."""
        if self._part is not None:
            part, known = self._part
            is_known = np.zeros(len(self.y), dtype=bool)
            is_known[known] = True
            if len(rows) >= _SAME * len(known) and is_known[rows].all():
                part.passes, part._entered = 0.0, part.shortfall
                part._leash = _LEASH * self._reach * self._change
                return part, known
        return self._restricted(rows), rows

    def _restricted(self, rows: Ints) -> NewtonCG:
        """Return the same run on some rows; as long as the others have no loss it is that on all rows."""
        part, whole = copy(self), self.problem
        part.problem = whole.changed(
            design=whole.design.taken(rows), labels=whole.labels[rows], weights=whole.weights[rows]
        )
        part.loss, part.passes, part._part = self.loss.restricted(rows), 0.0, None
        part.y, part.alpha, part.shortfall = self.y[rows], self.alpha[rows], self.shortfall[rows]
        part._here = Balanced(0.0, part.shortfall, part.alpha, self._here.curvatures[rows])
        part._entered, part._leash = part.shortfall, _LEASH * self._reach * self._change
        return part

    def _adopt(self, part: NewtonCG, rows: Ints) -> None:
        """Go where the run on the active rows has led; what is known there holds if the others agree."""
        self.passes += part.passes * len(rows) / len(self.y)
        self.loss = self.loss.extended(part.loss, rows)
        self.weights, self.intercept, before = part.weights, part.intercept, self.shortfall
        self.has_moved = True
        self._measure()
        self._change = _LEFT * rms(self.shortfall - before)
        others = self.shortfall + self.error
        others[rows] = -np.inf
        self.shortfall[rows], self.error = part.shortfall, max(self.error, part.error)
        if np.any(self.problem.loss.value(others)):
            self._reach *= 2
            self._evaluate()
            return
        self.alpha, curvatures = np.zeros_like(self.alpha), np.zeros_like(self.alpha)
        self.alpha[rows], curvatures[rows] = part.alpha, part._here.curvatures
        self._here = Balanced(0.0, self.shortfall, self.alpha, curvatures)
        self.dual_weights, self.gradient = part.dual_weights, part.gradient
        self.objective, self.bound, self._excess = part.objective, part.bound, part._excess
        self._part = part, rows

    def _advance(self) -> bool:
        """Sharpen the loss where the gradient is settled, else one step; False when nothing helps."""
        room = min(max(self.objective - self.bound, 0.0), self.loss.distance(self.alpha))
        is_settled = self._excess <= _SETTLED * room
        if is_settled or not self._newton_step():
            if not self.loss.sharpen(self.shortfall):
                return is_settled and self._newton_step()
            self._evaluate()
        return True

    def _cost_of_gradient(self) -> float:
        """What the gap owes to weights that do not go with the slopes: |gradient|^2 / 2 without kinks."""
        if self.problem.penalty.is_smooth:
            return float(self.gradient @ self.gradient) / 2
        return self.problem.penalty.excess(self.weights, self.dual_weights)

    def _newton_step(self) -> bool:
        step = self._newton_direction()
        dw = step.change.weights
        scores = self.problem.design.times(dw)
        self.passes += 0.5
        db = self._best_shift(scores)
        step, change = step.with_intercept(self.intercept, db), -self.y * (scores + db)
        length = self._length(dw, change)
        if length == 0:
            return False
        self._note_change(length * change)
        point = step.part(Point(self.weights, self.intercept), length, self.problem.penalty)
        self._carry(point, length * change, self._rounding(length * dw, length * db))
        self._evaluate()
        return True

    def _carry(self, point: Point, change: Floats, error: float) -> None:
        """Shortfalls at a new point, and how far they may be off; from scratch where that is too far.

        What is carried on has the errors of the step's own scores, and those of adding it to weights,
        intercept and shortfalls.
        """
        self.weights, self.intercept, self.has_moved = point.weights, point.intercept, True
        self.shortfall = self.shortfall + change
        largest = float(np.abs(self.shortfall).max())
        # Adding to n weights rounds as a product with them does, n times less.
        scale, length = self.problem.design.row_scale, float(np.linalg.norm(self.weights))
        # ``_fresh`` may be that of weights up to _STALE times as small.
        of_weights = np.fmin(UNIT * scale.length * length, (1 + _STALE) * self._fresh / max(scale.n_terms, 1))
        self.error += error + 4 * UNIT * (abs(self.intercept) + largest) + float(of_weights)
        if not self.error <= _STALE * self._fresh:  # or not a number
            self._fresh = self._rounding(self.weights, self.intercept)
            if not self.error <= _STALE * self._fresh:
                self._measure()

    def _note_change(self, change: Floats) -> None:
        """How far a typical row moves: as in this step, or half as far as it was before."""
        typical = rms(change)
        self._change = typical if np.isinf(self._change) else max(typical, self._change / 2)

    def _newton_direction(self) -> Step:
        """The Newton step, roughly."""
        h = self._here.curvatures
        active, rows = np.flatnonzero(h), self.problem.design
        if len(active) <= min(_FEW_IN_SYSTEM * len(h), self._most_copied()):
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
        return step

    def _best_shift(self, scores: Floats) -> float:
        """The change of the intercept that goes with such a change of the scores."""
        h = self._here.curvatures
        total = float(h.sum()) if self.problem.fit_intercept else 0.0
        return -float(h @ scores) / total if total > 0 else 0.0

    def _preconditioner(self, rows: DesignMatrix, h: Floats) -> Floats | None:
        """1 + diag(X^T H X), its shape kept for some steps: it only steers."""
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


def rms(values: Floats) -> float:
    """The root of the mean square."""
    return float(np.sqrt(values @ values / len(values)))


def dual_value(problem: ERMProblem, alpha: Floats, dual_weights: Floats) -> float:
    """Return about D(alpha) of a feasible vector, X^T (y alpha) being known."""
    conjugate = 0.0
    if not problem.loss.is_hinge:
        conjugate = float(problem.loss.conjugate(alpha, member_costs(problem)).sum())
    if problem.penalty.is_smooth:
        paid = float(dual_weights @ dual_weights) / 2
    else:
        paid = problem.penalty.largest_conjugate(dual_weights, 0.0, np.zeros_like(dual_weights))
    return float(alpha.sum()) - paid - conjugate
