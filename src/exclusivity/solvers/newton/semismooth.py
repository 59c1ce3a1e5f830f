"""Semismooth Newton on the primal for smooth losses and any penalty: few passes over many rows.

    f(w, b) = 1/2 |w|^2 + sum_i c_i phi(m_i),   gradient  (w, 0) - sum_i y_i alpha_i (x_i, 1)

with the generalised Hessian diag(1, ..., 1, 0) + sum_i c_i phi''(m_i) (x_i, 1)(x_i, 1)^T, to which only
active rows contribute. For p = 2 the objective is piecewise quadratic: 3 to 8 steps reach machine accuracy.
Where the loss has a corner (1 < p < 2) it is rounded, ever less, each time the rounding limits the gap.
Kinks and bounds of the penalty are left as they are in the step (``model``): it ends exactly on them.

A step that does not lower the objective is shortened: one more pass gives the slopes at many lengths. With
many rows the first steps use the Hessian of a sample, which costs nothing here and is nearly right.

Small problems with the squared hinge begin with whole steps on rows in cache, certified at the end. With
z_i = y_i (x_i, 1), v = (w, b) and the active rows A = {i : z_i . v < t_i} the objective around v is a
parabola, whose lowest point solves

    (diag(1, ..., 1, 0) + sum_A h_i z_i z_i^T) v  =  sum_A h_i t_i z_i ,    h_i = c_i phi''.

Where its active rows are those it came from, it is the optimum. A dozen calls of numpy make a step, and one
certificate a run: a fifth of what pieces of rows, shortened steps and a certificate of every iterate take.
Those are for runs that are not over by then.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from exclusivity._typing import Bools, Floats
from exclusivity.objective.problem import ERMProblem, member_costs, repair_dual
from exclusivity.solvers.newton.linear import (
    DualSystem,
    LearningSystem,
    NewtonSystem,
    PrimalSystem,
    ridged_system,
)
from exclusivity.solvers.newton.model import model_step
from exclusivity.solvers.newton.run import (
    Certificate,
    Guess,
    LossSums,
    Point,
    Run,
    Step,
    bound_from_sums,
    objective_from_sums,
)
from exclusivity.solvers.newton.source import ProblemRows
from exclusivity.solvers.newton.sums import curvature_rows, slopes

_FIRST_WIDTH = 1.0
_WIDTH_FACTOR = 0.1
_LEAST_WIDTH = 1e-13
# Sharpen the corner once the gradient is to blame for no more than this share of the gap.
_SETTLED = 0.1
_ARMIJO = 1e-4
_LENGTHS: Floats = np.ldexp(1.0, -np.arange(24))
_MAX_ITER = 300
# A system of other rows, or of an earlier point, is kept while each step divides the gradient by three, or by
# two where a new one costs more than the steps it saves, which it does from so many features on.
_GOOD_RATE, _FAIR_RATE = 1 / 3, 1 / 2
_KEPT_FROM = 32
# So many iterations that do not halve the gap are enough where another method may take over.
_PATIENCE = 30
# Whole steps: multiplications in a matrix of second derivatives and its factor, a millisecond's; beyond, it
# pays to read only the rows that come and go.
_MOST_PRODUCTS, _MOST_ROWS = 1 << 22, 5000
_MAX_WHOLE_STEPS = 30


@dataclass(frozen=True, eq=False)
class NewtonIterate:
    """A point, the sums over rows there, and how sharp the corner of the loss is."""

    point: Point
    sums: LossSums
    width: float
    gradient_norm: float


def drive_semismooth(
    run: Run, rows: ProblemRows, start: Guess, most_systems: float = inf, *, hands_over: bool = False
) -> None:
    """Newton on the primal until the run is over, no step helps or so many systems have been factorised.

    One that ``hands_over`` to another method also ends where it comes to little.
    """
    reduced, loss, before = rows.objective, rows.objective.loss, run.passes - rows.passes
    iterates = semismooth_iterates(rows, start, most_systems)
    iterate, is_start, best, n_idle = next(iterates), True, inf, 0
    while not (hands_over and n_idle > _PATIENCE):
        run.passes, run.last_width = before + rows.passes, iterate.width
        run.state = Guess(iterate.point, width=iterate.width, method="semismooth")
        bound, factors = bound_from_sums(iterate.sums, reduced, rows.row_scale)
        objective = objective_from_sums(iterate.point, iterate.sums, reduced, rows.row_scale)
        dual = partial(rows.dual_vector, iterate.point, loss.rounded(iterate.width), factors)
        certificate = Certificate(*objective, bound, dual)
        run.take(
            iterate.point,
            certificate,
            residual=iterate.gradient_norm,
            mu=iterate.width,
            is_start=is_start,
        )
        if run.is_over:
            return
        best, n_idle = (run.gap, 0) if run.gap <= best / 2 else (best, n_idle + 1)
        try:
            iterate, is_start = iterates.send(run.gap), False
        except StopIteration:
            return


def semismooth_iterates(
    rows: ProblemRows, start: Guess, most_systems: float = inf
) -> Generator[NewtonIterate, float, None]:
    """Iterates with a falling objective; the caller certifies each and stops.

    The caller sends the relative gap of the iterate back (``generator.send``), by which the width of the
    rounding is chosen. Ends by itself when no step lowers the objective any more, or after ``most_systems``.
    """
    descent = _Descent(rows, start, most_systems)
    for _ in range(_MAX_ITER):
        gap = yield descent.iterate()
        if not descent.advance(gap):
            return


class _Descent:
    def __init__(self, rows: ProblemRows, start: Guess, most_systems: float) -> None:
        self.rows, self.systems_left, reduced = rows, most_systems, rows.objective
        self.penalty, self.fit_intercept = reduced.penalty, reduced.fit_intercept
        self.last_norm = np.inf
        self.system = None if start.system is None else LearningSystem(start.system)
        # Where only rows that come and go change the matrix, a new one is cheap.
        self.keeps_systems = reduced.loss.active_curvature is None and rows.n_features >= _KEPT_FROM
        self.on_primal_side = rows.n_features <= rows.n_rows  # the smaller side of the system
        self.keeps_systems &= self.penalty.is_smooth or self.on_primal_side
        self.exact, self.loss = reduced.loss, reduced.loss.rounded(start.width or _FIRST_WIDTH)
        first = start.point.inside(self.penalty)
        self._arrive(first, self._evaluate(first))

    def _evaluate(self, point: Point) -> LossSums:
        wanted = self.on_primal_side and self.system is None
        return self.rows.evaluate(point, self.loss, curvature=wanted)

    def _objective(self, point: Point, sums: LossSums) -> float:
        return self.penalty.value(point.weights) + sums.smoothed

    def _arrive(self, point: Point, sums: LossSums) -> None:
        """Go there, and note what every step asks for."""
        self.point, self.sums = point, sums
        self.objective, self.gradient = self._objective(point, sums), self._gradient()
        self.norm = self._norm()

    def _gradient(self) -> Point:
        descent = self.sums.negative_gradient
        return Point(self.point.weights - descent.weights, -descent.intercept if self.fit_intercept else 0.0)

    def _norm(self) -> float:
        """The length of the gradient; where the penalty is not smooth, of one that would cost as much gap."""
        gradient = self.gradient
        if self.penalty.is_smooth:
            return float(np.hypot(np.linalg.norm(gradient.weights), gradient.intercept))
        weights = self.point.weights
        excess = max(self.penalty.excess(weights, weights - gradient.weights), 0.0)
        return float(np.hypot(np.sqrt(2 * excess), gradient.intercept))

    def iterate(self) -> NewtonIterate:
        return NewtonIterate(self.point, self.sums, self.loss.width, self.norm)

    def _system(self) -> NewtonSystem:
        if self.system is not None:
            return self.system
        exact = self._exact_system()
        if not self.keeps_systems:
            return exact
        self.system = LearningSystem(exact)
        return self.system

    def _exact_system(self) -> NewtonSystem:
        if self.on_primal_side:
            if self.sums.curvature is None:
                self.sums = self._evaluate(self.point)
            return primal_system(self.sums, self.fit_intercept)
        active = self.rows.reduce(curvature_rows, self.point, self.loss)
        return DualSystem(active.X, np.ones(self.rows.n_features), active.weights, self.fit_intercept)

    def advance(self, gap: float) -> bool:
        """Sharpen the corner if it limits the gap, then take one Newton step."""
        if self.systems_left <= 0:
            return False
        if self.norm > (_FAIR_RATE if self.keeps_systems else _GOOD_RATE) * self.last_norm:
            self.system = None
        self.last_norm = self.norm
        # At this point the gap is |gradient|^2 / 2 plus what the rounding costs.
        if self.loss.width > 0 and self.norm**2 / 2 <= _SETTLED * gap * self.objective:
            if self.loss.width <= _LEAST_WIDTH:
                return False
            self.loss = self.exact.rounded(self.loss.width * _WIDTH_FACTOR)
            self._arrive(self.point, self._evaluate(self.point))
        try:
            step = self._step(self._system())
        except linalg.LinAlgError:  # numbers too large for the matrix
            return False
        self.systems_left -= step.n_systems
        return step.slope < 0 and self._take(step)

    def _step(self, system: NewtonSystem) -> Step:
        gradient = self.gradient
        if not self.penalty.is_smooth:
            return model_step(system, self.penalty, self.point, gradient, most_systems=self.systems_left)
        dw, db = system.solve(-gradient.weights, -gradient.intercept)
        slope = float(gradient.weights @ dw + gradient.intercept * db)
        return Step(self.point.moved(Point(dw, db), 1.0), Point(dw, db), slope)

    def _take(self, step: Step) -> bool:
        """The full step if it lowers the objective enough, else a shorter one; False if none does."""
        for length in (1.0, None):
            if length is None:
                length = self._shorter_length(step.change)  # noqa: PLW2901 -- found by one more pass
            point = step.part(self.point, length, self.penalty)
            sums = self._evaluate(point)
            if self._objective(point, sums) <= self.objective + _ARMIJO * length * step.slope:
                before, gradient = self.point, self.gradient
                self._arrive(point, sums)
                if self.system is not None:
                    self.system.learn(_difference(point, before), _difference(self.gradient, gradient))
                return True
        if self.system is not None:  # try again with that of this point
            self.last_norm = 0.0
            return True
        return False

    def _shorter_length(self, step: Point) -> float:
        """Where the slope along the step changes its sign, to within a secant of the best bracket."""
        of_loss = self.rows.reduce(slopes, self.point, step, self.loss, _LENGTHS)
        total: Floats = of_loss + self.penalty.slopes(self.point.weights, step.weights, _LENGTHS)
        falling = np.flatnonzero(total <= 0)
        if len(falling) == 0:
            return float(_LENGTHS[-1])
        low = falling[0]
        if low == 0:
            return float(_LENGTHS[0])
        t_low, t_high, s_low, s_high = _LENGTHS[low], _LENGTHS[low - 1], total[low], total[low - 1]
        return float(t_low + (t_high - t_low) * s_low / (s_low - s_high))


def primal_system(sums: LossSums, fit_intercept: bool) -> PrimalSystem:
    """The Newton system at a point whose sums include the curvature."""
    assert sums.curvature is not None  # noqa: S101 -- the caller asked for it
    return ridged_system(sums.curvature.copy(), np.ones(len(sums.curvature) - 1), fit_intercept)


def _difference(after: Point, before: Point) -> Floats:
    return np.append(after.weights - before.weights, after.intercept - before.intercept)


def takes_whole_steps(reduced: ERMProblem) -> bool:
    """Whether whole steps are worth a try: the squared hinge, few dense rows, few features."""
    design, loss = reduced.design, reduced.loss
    return (
        loss.active_curvature is not None
        and loss.vanishes
        and loss.is_smooth
        and reduced.penalty.is_smooth
        and not design.is_sparse
        and design.n_rows <= _MOST_ROWS
        and max(design.n_rows, design.n_features) * (design.n_features + 1) ** 2 <= _MOST_PRODUCTS
    )


def drive_whole_steps(run: Run, reduced: ERMProblem, curvature: Floats | None = None) -> None:
    """Whole Newton steps while they help, then a certificate of where they led.

    ``curvature`` is the matrix of second derivatives of all rows, if it is known, for the first step, which
    takes all rows for active. Every step is reported to the run, no more of them than it allows.
    """
    rows = _SmallRows(reduced)
    v, objective, residual = np.zeros(rows.n_weights), np.inf, np.inf
    active = np.ones(reduced.design.n_rows, dtype=bool)
    for number in range(min(_MAX_WHOLE_STEPS, run.max_iter)):
        there = rows.lowest(active, curvature if number == 0 else None)
        if there is None:  # nothing to factorise
            break
        missed = rows.shortfall(there)
        value, gradient = rows.parts(there, missed)
        if not value < objective:  # a step too far, or no digits left to gain
            break
        if number > 0 and run.pass_by(rows.point(v), objective, residual=residual):
            break
        v, objective, residual = there, value, float(np.linalg.norm(gradient))
        before, active = active, missed > 0
        run.passes += 1
        if (before == active).all():
            break
    rows.certify(run, rows.point(v))


class _SmallRows:
    """The rows z_i = y_i (x_i, 1), without the 1 where there is no intercept."""

    def __init__(self, reduced: ERMProblem) -> None:
        self._reduced, self._n_features = reduced, reduced.design.n_features
        self.n_weights = self._n_features + reduced.fit_intercept
        self._Z = np.empty((reduced.design.n_rows, self.n_weights))
        self._Z[:, self._n_features :] = reduced.labels[:, None]
        self._signed = self._Z[:, : self._n_features]
        np.multiply(reduced.design.X, reduced.labels[:, None], out=self._signed)
        self._costs, self._targets = member_costs(reduced), reduced.targets
        self._curvatures = (reduced.loss.active_curvature or 0.0) * self._costs

    def lowest(self, active: Bools, curvature: Floats | None) -> Floats | None:
        """The lowest point of the parabola of these rows; None where it has none, or too few digits."""
        rows = self._Z[active]
        scaled = rows * self._curvatures[active, None]
        n = self.n_weights
        system = scaled.T @ rows if curvature is None else curvature[:n, :n].copy()
        system.reshape(-1)[:: n + 1][: self._n_features] += 1.0
        # LAPACK itself, factor and solution at once: scipy's wrapping would take as long as the work.
        right = scaled.sum(axis=0) if self._targets is None else self._targets[active] @ scaled
        _, solution, info = lapack.dposv(system, right, lower=1)
        return solution if info == 0 else None

    def shortfall(self, v: Floats) -> Floats:
        """t_i - z_i . v, good enough to continue from."""
        return np.asarray(self._reduced.rows.goal() - self._Z @ v)

    def parts(self, v: Floats, missed: Floats) -> tuple[float, Floats]:
        """f(w, b) and its gradient, good enough to compare."""
        w, positive = v[: self._n_features], np.maximum(missed, 0.0)
        alpha = self._curvatures * positive
        gradient = -(alpha @ self._Z)
        gradient[: self._n_features] += w
        return float(w @ w + alpha @ positive) / 2, gradient

    def point(self, v: Floats) -> Point:
        """Weights and intercept."""
        return Point(v[: self._n_features], float(v[-1]) if self._reduced.fit_intercept else 0.0)

    def certify(self, run: Run, point: Point) -> None:
        """Let the run take the point, with the objective and the dual vector that it suggests."""
        problem, scale = self._reduced, self._reduced.row_scale
        sums, alpha = self._sums(point)
        bound, _ = bound_from_sums(sums, problem.objective, scale)
        objective = objective_from_sums(point, sums, problem.objective, scale)
        run.passes += 1
        run.state = Guess(point, width=0.0, method="semismooth")
        gradient = point.weights - sums.weighted_sums[1]
        run.take(
            point,
            Certificate(*objective, bound, partial(repair_dual, problem, alpha)),
            amends=run.is_over,  # somebody ended it there
            residual=float(np.hypot(np.linalg.norm(gradient), problem.fit_intercept * sums.alpha_sums[1])),
        )

    def _sums(self, point: Point) -> tuple[LossSums, Floats]:
        """The sums over rows that prove something, and the dual vector behind them.

        Unlike in :meth:`shortfall` the intercept is added last: it may be large, and costs no digits then.
        """
        loss, labels, costs = self._reduced.loss, self._reduced.labels, self._costs
        goal = self._reduced.rows.goal()
        missed = goal - (self._signed @ point.weights + labels * point.intercept)
        parts = loss.parts(missed, curvature=False, conjugate=True)
        assert parts.conjugate is not None  # noqa: S101 -- asked for
        alpha, paid = costs * parts.slope, costs * parts.conjugate
        signed, total = labels * alpha, float(costs @ parts.value)
        alpha_sums = np.array([alpha.sum(), signed.sum()])
        return LossSums(
            loss=total,
            smoothed=total,
            weighted_sums=np.array([signed @ self._signed, alpha @ self._signed]),
            alpha_sums=alpha_sums,
            conjugates=np.array([paid.sum(), labels @ paid]),
            curvature=None,
            cost=float(costs.sum()),
            n_terms=float(len(labels)),
            gains=alpha_sums if self._targets is None else np.array([goal @ alpha, goal @ signed]),
        ), alpha
