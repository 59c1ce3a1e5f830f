"""Factorised Newton on the primal, for smooth losses and any penalty: few passes over many rows.

    f(w, b) = 1/2 |w|^2 + sum_i c_i phi(m_i),   gradient  (w, 0) - sum_i y_i alpha_i (x_i, 1)

with the generalised Hessian diag(1, ..., 1, 0) + sum_i c_i phi''(m_i) (x_i, 1)(x_i, 1)^T, to which only
active rows contribute (semismooth Newton). For p = 2 the objective is piecewise quadratic: 3 to 8 steps reach
machine accuracy. Where the loss has a corner (1 < p < 2) it is rounded, ever less, each time the rounding
limits the gap. Kinks and bounds of the penalty are left as they are in the step (``model_step``): it ends
exactly on them.

A step that does not lower the objective is shortened: one more pass gives the slopes at many lengths. With
many rows the first steps use the Hessian of a sample, which costs nothing here and is nearly right. Of small
problems with the squared hinge only the last point is certified, once the active rows have settled.

The linear system of a step is solved on its smaller side, here and in the interior point.

    [ E + X^T D X    X^T D 1 ] [dw]   [r_w]
    [ 1^T D X        1^T D 1 ] [db] = [r_b]

E is diagonal and positive, D >= 0 holds one number per row. Without an intercept the last row and column go.

* M <= N: form the matrix, Cholesky.
* M > N: with g = D (X dw + 1 db) the same system reads dw = E^(-1) (r_w - X^T g), 1^T g = r_b and
  (D^(-1) + X E^(-1) X^T) g = X E^(-1) r_w + 1 db, an N x N Cholesky over the rows with D > 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import hypot, inf, isfinite, sqrt
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from exclusivity._typing import Bools, Floats, Matrix
from exclusivity.objective.losses import CurvedLoss
from exclusivity.objective.objective import Penalty
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers.run import Guess, NewtonSystem, ProblemRows, Run
from exclusivity.solvers.sums import (
    Certificate,
    LossSums,
    Point,
    Step,
    bound_from_sums,
    curvature_rows,
    dense_product,
    dual_vector,
    evaluate,
    objective_from_sums,
    slopes,
)

DENSE_LIMIT = 4096
"""The largest side of a system that is factorised: a second's work, and what Ctrl-C may have to wait for."""

# Relative to the trace; enough to factorise what rounding has made indefinite, too little to turn a step.
_JITTER, _MAX_JITTERS = 1e-15, 8

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
# So many multiplications in a matrix of second derivatives are over in a millisecond: up to so many steps are
# not certified then, until the gap that the gradient leaves is this share of the objective.
_SMALL_PRODUCTS, _MOST_NOTED, _EXACT = 1 << 22, 30, 1e-20
# Projected Newton steps on the model of a step end where the next promises so little of what all have gained.
_MAX_ROUNDS, _LEAST_SHARE_OF_GAIN = 60, 1e-12


@dataclass(frozen=True, eq=False)
class _Iterate:
    """A point, the sums over rows there, the (smoothed) objective and its gradient without the kinks."""

    point: Point
    sums: LossSums
    objective: float
    gradient: Point
    norm: float


def drive_factorised(  # noqa: C901, PLR0912, PLR0915 -- the whole loop, in one place
    run: Run, rows: ProblemRows, start: Guess, most_systems: float = inf, *, hands_over: bool = False
) -> None:
    """Run Newton on the primal until the run is over, no step helps or so many systems have been factorised.

    One that ``hands_over`` to another method also ends after ``_PATIENCE`` iterations that do not halve the
    gap.
    """
    penalty, exact = rows.objective.penalty, rows.objective.loss
    on_primal_side = rows.n_features <= rows.n_rows  # the smaller side of the system
    # Where only rows that come and go change the matrix, a new one is cheap.
    keeps_systems = exact.active_curvature is None and rows.n_features >= _KEPT_FROM
    keeps_systems &= penalty.is_smooth or on_primal_side
    kept = None if start.system is None else LearningSystem(start.system)
    loss = exact.rounded(start.width or _FIRST_WIDTH)

    def visit(point: Point) -> _Iterate:
        return _iterate(rows, point, loss, curvature=on_primal_side and kept is None)

    before = run.passes - rows.passes
    here = visit(start.point.inside(penalty))

    def certify(**record: Any) -> None:
        run.passes = before + rows.passes
        run.state = Guess(here.point, width=loss.width, method="factorised")
        run.take(here.point, _certificate(rows, here, loss), residual=here.norm, mu=loss.width, **record)

    last_norm, best, n_idle, is_certified = inf, inf, 0, False
    most_noted = _MOST_NOTED if _is_small(rows) else 0
    for number in range(_MAX_ITER):
        # At this point the gap is |gradient|^2 / 2 plus what the rounding costs.
        gap = here.norm * here.norm / 2
        is_certified = number >= most_noted or gap <= _EXACT * here.objective or not run.may_go_on
        if is_certified:
            certify(is_start=number == 0)
            best, n_idle = (run.gap, 0) if run.gap <= best / 2 else (best, n_idle + 1)
            if run.is_over or (hands_over and n_idle > _PATIENCE):
                return
        elif number > 0 and run.note(here.point, here.objective, residual=here.norm):
            break
        if most_systems <= 0:
            break
        if here.norm > (_FAIR_RATE if keeps_systems else _GOOD_RATE) * last_norm:
            kept = None
        last_norm = here.norm
        if loss.width > 0 and gap <= _SETTLED * run.gap * here.objective:
            if loss.width <= _LEAST_WIDTH:
                break
            loss = exact.rounded(loss.width * _WIDTH_FACTOR)
            here = visit(here.point)
        try:
            system: NewtonSystem
            if kept is not None:
                system = kept
            else:
                if on_primal_side and here.sums.curvature is None:
                    here = visit(here.point)
                system = _factorised(rows, here, loss)
                if keeps_systems:
                    system = kept = LearningSystem(system)
            step = _newton_step(system, rows, here, most_systems)
        except linalg.LinAlgError:  # numbers too large for the matrix
            break
        most_systems -= step.n_systems
        if not step.slope < 0:
            break
        # The full step if it lowers the objective enough, else a shorter one.
        length = 1.0
        there = visit(step.part(here.point, length, penalty))
        if not there.objective <= here.objective + _ARMIJO * length * step.slope:
            length = _shorter_length(rows, here.point, step.change, loss)
            there = visit(step.part(here.point, length, penalty))
        if there.objective <= here.objective + _ARMIJO * length * step.slope:
            if kept is not None:
                kept.learn(_difference(there.point, here.point), _difference(there.gradient, here.gradient))
            here = there
        elif kept is not None:  # try again with the system of this point
            last_norm = 0.0
        else:
            break
    if not is_certified:
        certify(amends=number > 0, is_start=number == 0)


def _is_small(rows: ProblemRows) -> bool:
    """Return whether steps to the very optimum take no longer than certificates on the way to it."""
    loss, n_products = rows.objective.loss, rows.n_rows * (rows.n_features + 1) ** 2
    is_quadratic = loss.active_curvature is not None and rows.objective.penalty.is_smooth
    return rows.problem is not None and is_quadratic and n_products <= _SMALL_PRODUCTS


def _iterate(rows: ProblemRows, point: Point, loss: CurvedLoss, *, curvature: bool) -> _Iterate:
    sums: LossSums = rows.reduce(evaluate, point, loss, curvature)
    penalty, descent = rows.objective.penalty, sums.negative_gradient
    slope = -descent.intercept if rows.objective.fit_intercept else 0.0
    gradient = Point(point.weights - descent.weights, slope)
    if penalty.is_smooth:
        norm = float(np.linalg.norm(gradient.weights))
    else:  # the length of a gradient that would cost as much gap
        norm = sqrt(2 * max(penalty.excess(point.weights, descent.weights), 0.0))
    objective = penalty.value(point.weights) + sums.smoothed
    return _Iterate(point, sums, objective, gradient, hypot(norm, slope))


def _certificate(rows: ProblemRows, here: _Iterate, loss: CurvedLoss) -> Certificate:
    bound, factors = bound_from_sums(here.sums, rows.objective, rows.row_scale)
    objective = objective_from_sums(here.point, here.sums, rows.objective, rows.row_scale)
    if rows.problem is None:
        return Certificate(*objective, bound)
    return Certificate(*objective, bound, partial(rows.reduce, dual_vector, here.point, loss, factors))


def _factorised(rows: ProblemRows, here: _Iterate, loss: CurvedLoss) -> NewtonSystem:
    if here.sums.curvature is not None:
        return primal_system(here.sums, rows.objective.fit_intercept)
    active = rows.reduce(curvature_rows, here.point, loss)
    return DualSystem(active.X, np.ones(rows.n_features), active.weights, rows.objective.fit_intercept)


def primal_system(sums: LossSums, fit_intercept: bool) -> PrimalSystem:
    """Return the Newton system at a point whose sums include the curvature."""
    assert sums.curvature is not None  # noqa: S101 -- the caller asked for it
    return ridged_system(sums.curvature.copy(), np.ones(len(sums.curvature) - 1), fit_intercept)


def _newton_step(system: NewtonSystem, rows: ProblemRows, here: _Iterate, most_systems: float) -> Step:
    gradient, penalty = here.gradient, rows.objective.penalty
    if not penalty.is_smooth:
        return model_step(system, penalty, here.point, gradient, most_systems=most_systems)
    change = Point(*system.solve(-gradient.weights, -gradient.intercept))
    slope = float(gradient.weights @ change.weights + gradient.intercept * change.intercept)
    return Step(here.point.moved(change, 1.0), change, slope)


def _shorter_length(rows: ProblemRows, point: Point, step: Point, loss: CurvedLoss) -> float:
    """Find where the slope along the step changes its sign, to within a secant of the best bracket."""
    of_loss = rows.reduce(slopes, point, step, loss, _LENGTHS)
    total: Floats = of_loss + rows.objective.penalty.slopes(point.weights, step.weights, _LENGTHS)
    falling = np.flatnonzero(total <= 0)
    if len(falling) == 0:
        return float(_LENGTHS[-1])
    low = falling[0]
    if low == 0:
        return float(_LENGTHS[0])
    t_low, t_high, s_low, s_high = _LENGTHS[low], _LENGTHS[low - 1], total[low], total[low - 1]
    return float(t_low + (t_high - t_low) * s_low / (s_low - s_high))


def _difference(after: Point, before: Point) -> Floats:
    return np.append(after.weights - before.weights, after.intercept - before.intercept)


# ---------------------------------------------------------------- kinks and bounds


def model_step(
    system: NewtonSystem,
    penalty: Penalty,
    point: Point,
    gradient: Point,
    share: float = _LEAST_SHARE_OF_GAIN,
    most_systems: float = inf,
) -> Step:
    """Find the step to the least point of a model with the penalty as it is, for kinks and bounds.

    Around a point (w, b) within the bounds the ridge and the loss have the gradient r and the second
    derivatives A; the rest of the penalty, l |v| within [lo, hi], is no harder to minimise exactly than to
    approximate:

        q(v, c) = r . d + 1/2 d^T A d + sum_j l_j |v_j|,   d = (v - w, c - b),   lo <= v <= hi .

    On the side of zero where each weight is (or, from zero, where the slope leads) l |v| is linear and q is a
    parabola in a box. Weights at the end of their interval that the slope pushes outward stay; Newton's step
    of the others is cut off at the ends of their intervals, and shortened where that spoils it (projected
    Newton): a few systems of the size of the free weights, and not one look at the rows. q(v) < q(w) makes
    v - w a direction of descent, as q and the objective have the same slopes at w.

    ``gradient`` is that of ridge and loss, to which the system belongs. A system that is solved roughly needs
    no more than a rough minimum, up to a ``share`` of what can be gained. After ``most_systems`` the step
    leads to the best point so far.
    """
    kinks, lower, upper = (
        np.broadcast_to(np.asarray(part, dtype=float), len(point.weights))
        for part in (penalty.kinks, penalty.lower, penalty.upper)
    )

    def model(at: Point) -> tuple[float, Point]:
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
        steep, has_kink = slope.weights + kinks * side, kinks > 0
        low = np.where(has_kink & (side >= 0), np.maximum(lower, 0.0), lower)
        high = np.where(has_kink & (side <= 0), np.minimum(upper, 0.0), upper)
        free = ~(((w <= low) & (steep >= 0)) | ((w >= high) & (steep <= 0)))
        moves = False
        while not moves and n_systems < most_systems:
            # The step of the free weights and the intercept, and twice what it gains if nothing is cut off.
            n_systems += 1
            dw = np.zeros(len(w))
            dw[free], db = system.restricted(free).solve(-steep[free], -slope.intercept)
            promised = -float(steep @ dw + slope.intercept * db)
            if not promised > share * abs(value):
                break
            for length in _LENGTHS:
                end = Point(np.clip(w + length * dw, low, high), at.intercept + length * db)
                gain = float(steep @ (end.weights - w)) + slope.intercept * length * db
                there, slope_there = model(end)
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


# ---------------------------------------------------------------- systems on their smaller side


def robust_cholesky(matrix: Floats, scale: Floats | float = 1.0) -> Floats:
    """Compute the lower Cholesky factor of a semi-definite matrix, with a growing ridge while it fails.

    Rows and columns are multiplied by ``scale`` before. Above the diagonal is what was there then.
    """
    jitter = 0.0
    for attempt in range(_MAX_JITTERS):
        scaled = matrix * np.reshape(scale, (-1, 1))
        scaled *= scale
        trace = float(scaled.trace())
        if jitter:
            scaled.flat[:: len(matrix) + 1] += jitter
        # LAPACK itself: with few rows a step takes as long as scipy's wrapping of it. The transpose of what
        # is symmetric is in its order, so that it works in the one copy that there is.
        factor, info = lapack.dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            if isfinite(factor.diagonal().sum()):  # not every LAPACK minds what is not a number
                return np.asarray(factor)
            break
        jitter = _JITTER * max(trace, np.finfo(float).tiny) * 100.0**attempt
    raise linalg.LinAlgError("the Newton matrix is not finite or far from positive definite")


def cholesky_solve(factor: Floats, right: Floats) -> Floats:
    """Solve L L^T x = right."""
    if len(right) == 0:  # nothing is free, which LAPACK does not take
        return right
    return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


class PrimalSystem:
    """The (M+1) x (M+1) matrix itself; its last row and column are left out without an intercept."""

    def __init__(self, matrix: Floats, has_intercept: bool) -> None:
        self._has_intercept = has_intercept
        size = len(matrix) if has_intercept else len(matrix) - 1
        matrix = matrix[:size, :size]
        if has_intercept and matrix[-1, -1] <= 0:  # no row is active: the intercept stays where it is
            matrix = matrix.copy()
            matrix[-1, -1] = 1.0
        self._matrix = matrix
        # Scaling to a unit diagonal keeps features of very different sizes from drowning each other.
        self._scale = 1 / np.sqrt(matrix.diagonal())
        self._factor = robust_cholesky(matrix, self._scale)

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        right = np.empty(len(self._scale))
        right[: len(r_w)], right[len(r_w) :] = r_w, r_b
        solution = self._scale * cholesky_solve(self._factor, self._scale * right)
        return (solution[:-1], float(solution[-1])) if self._has_intercept else (solution, 0.0)

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        product = self._matrix @ (np.append(dw, db) if self._has_intercept else dw)
        return (product[:-1], float(product[-1])) if self._has_intercept else (product, 0.0)

    def restricted(self, free: Bools) -> PrimalSystem:
        """See ``NewtonSystem``."""
        kept = np.append(np.flatnonzero(free), len(free))  # without an intercept the last one is cut off
        matrix = self._matrix if self._has_intercept else np.pad(self._matrix, (0, 1))
        return PrimalSystem(matrix[np.ix_(kept, kept)], self._has_intercept)

    def updated(self, steps: Sequence[tuple[Floats, Floats, float]]) -> PrimalSystem:
        """Return the system after BFGS updates: steps s, changes t of the gradient along them, and s . t."""
        matrix, size = self._matrix, len(self._matrix)
        for step, change, curvature in steps:
            image = matrix @ step[:size]
            matrix = matrix - np.outer(image, image) / float(step[:size] @ image)
            matrix += np.outer(change[:size], change[:size]) / curvature
        return PrimalSystem(matrix if self._has_intercept else np.pad(matrix, (0, 1)), self._has_intercept)


class LearningSystem:
    """A system that is nearly right, and what the steps with it have shown since: the BFGS update.

    Of every step s and the change t of the gradient along it only these two vectors are kept. The matrix B
    behind the solutions is then that of the system, changed as little as B s = t for the last steps asks for.
    """

    def __init__(self, system: NewtonSystem) -> None:
        self._system = system
        self._steps: list[tuple[Floats, Floats, float]] = []
        self._updated: PrimalSystem | None = None

    def learn(self, step: Floats, change: Floats) -> None:
        """Note a step of weights and intercept, and the change of the gradient along it."""
        curvature = float(step @ change)
        if curvature > 0:
            self._steps.append((step, change, curvature))
            self._updated = None

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        right, shares = np.append(r_w, r_b), []
        for step, change, curvature in reversed(self._steps):
            shares.append(float(step @ right) / curvature)
            right -= shares[-1] * change
        dw, db = self._system.solve(right[:-1], float(right[-1]))
        solution = np.append(dw, db)
        for (step, change, curvature), share in zip(self._steps, reversed(shares), strict=True):
            solution += (share - float(change @ solution) / curvature) * step
        return solution[:-1], float(solution[-1])

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        return self._matrix().times(dw, db)

    def restricted(self, free: Bools) -> PrimalSystem:
        """See ``NewtonSystem``."""
        return self._matrix().restricted(free)

    def _matrix(self) -> PrimalSystem:
        """Return B itself, of the features' side, for those who need more of it than solutions."""
        if self._updated is None:
            assert isinstance(self._system, PrimalSystem)  # noqa: S101 -- kinks and bounds keep no others
            self._updated = self._system.updated(self._steps)
        return self._updated


class DualSystem:
    """The N x N side, for more features than rows. ``kernel`` may hold X E^(-1) X^T if it is known."""

    def __init__(
        self, X: Matrix, ridge: Floats, weights: Floats, has_intercept: bool, kernel: Floats | None = None
    ) -> None:
        active = np.flatnonzero(weights)
        rows = X[active] if len(active) < X.shape[0] else X
        self._design = DesignMatrix(rows)
        self._n_rows, self._active, self._weights = X.shape[0], active, weights[active]
        self._ridge, self._has_intercept = ridge, has_intercept
        kernel = dense_product(rows, ridge) if kernel is None else kernel[np.ix_(active, active)]
        self._ones = np.empty(0)
        if len(active) == 0:
            return
        kernel.flat[:: len(active) + 1] += 1 / self._weights  # it is our own
        self._scale = 1 / np.sqrt(kernel.diagonal())
        self._factor = robust_cholesky(kernel, self._scale)
        self._ones = self._apply(np.ones(len(active)))

    def _apply(self, right: Floats) -> Floats:
        return np.asarray(self._scale * cholesky_solve(self._factor, self._scale * right))

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        return self.solve_with_multipliers(r_w, r_b)[:2]

    def solve_with_multipliers(self, r_w: Floats, r_b: float) -> tuple[Floats, float, Floats]:
        """Return (dw, db) and g = D (X dw + 1 db) of all rows.

        Near the optimum of an interior-point method D grows without bound: D times X dw + 1 db would leave
        little but rounding, and so would dw without one step of iterative refinement.
        """
        multipliers = np.zeros(self._n_rows)
        if len(self._active) == 0:  # no row is active: only the ridge is left
            return r_w / self._ridge, 0.0, multipliers
        times, folded = self._design.times, self._design.transposed_times
        g, db = self._row_side(times(r_w / self._ridge), r_b)
        dw = (r_w - folded(g)) / self._ridge
        dg, change = self._row_side(times(dw) + db - g / self._weights, r_b - float(g.sum()))
        multipliers[self._active] = g + dg
        return dw - folded(dg) / self._ridge, db + change, multipliers

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        g = self._weights * (self._design.times(dw) + db)
        folded = self._design.transposed_times(g)
        return self._ridge * dw + folded, float(g.sum()) if self._has_intercept else 0.0

    def restricted(self, free: Bools) -> DualSystem:
        """See ``NewtonSystem``."""
        X = self._design.X[:, free]
        return DualSystem(X, self._ridge[free], self._weights, self._has_intercept)

    def _row_side(self, right: Floats, total: float) -> tuple[Floats, float]:
        """Solve for g and db: (D^(-1) + X E^(-1) X^T) g = right + 1 db with sum g = total, or db = 0."""
        g = self._apply(right)
        if not self._has_intercept:
            return g, 0.0
        db = float((total - g.sum()) / self._ones.sum())
        return g + db * self._ones, db


def ridged_system(gram: Floats, ridge: Floats, fit_intercept: bool) -> PrimalSystem:
    """Return the system of a bordered Gram matrix (contiguous), to which the ridge is added in place."""
    gram.reshape(-1)[:: len(gram) + 1][: len(ridge)] += ridge
    return PrimalSystem(gram, fit_intercept)
