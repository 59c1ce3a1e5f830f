"""Semismooth Newton on the primal for smooth losses and any penalty: few passes over many rows.

    f(w, b) = 1/2 |w|^2 + sum_i c_i phi(m_i),   gradient  (w, 0) - sum_i y_i alpha_i (x_i, 1)

with the generalised Hessian diag(1, ..., 1, 0) + sum_i c_i phi''(m_i) (x_i, 1)(x_i, 1)^T, to which only
active rows contribute. For p = 2 the objective is piecewise quadratic: 3 to 8 steps reach machine accuracy.
Where the loss has a corner (1 < p < 2) it is rounded, ever less, each time the rounding limits the gap.
Kinks and bounds of the penalty are left as they are in the step (``model``): it ends exactly on them.

A step that does not lower the objective is shortened: one more pass gives the slopes at many lengths. With
many rows the first steps use the Hessian of a sample, which costs nothing here and is nearly right.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats
from exclusivity.objective.objective import Objective
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
from exclusivity.solvers.newton.source import RowSource

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


@dataclass(frozen=True, eq=False)
class NewtonIterate:
    """A point, the sums over rows there, and how sharp the corner of the loss is."""

    point: Point
    sums: LossSums
    width: float
    gradient_norm: float


def drive_semismooth(
    run: Run, reduced: Objective, source: RowSource, start: Guess, most_systems: float = inf
) -> None:
    """Newton on the primal until the run is over, no step helps or so many systems have been factorised."""
    loss, before = reduced.loss, run.passes
    iterates = semismooth_iterates(source, reduced, start, most_systems)
    iterate, is_start = next(iterates), True
    while True:
        run.passes, run.last_width = before + source.passes, iterate.width
        run.state = Guess(iterate.point, width=iterate.width, method="semismooth")
        bound, factors = bound_from_sums(iterate.sums, reduced, source.row_scale)
        objective = objective_from_sums(iterate.point, iterate.sums, reduced, source.row_scale)
        dual = partial(source.dual_vector, iterate.point, loss.rounded(iterate.width), factors)
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
        try:
            iterate, is_start = iterates.send(run.gap), False
        except StopIteration:
            return


def semismooth_iterates(
    source: RowSource, reduced: Objective, start: Guess, most_systems: float = inf
) -> Generator[NewtonIterate, float, None]:
    """Iterates with a falling objective; the caller certifies each and stops.

    The caller sends the relative gap of the iterate back (``generator.send``), by which the width of the
    rounding is chosen. Ends by itself when no step lowers the objective any more, or after ``most_systems``.
    """
    walk = _Walk(source, reduced, start, most_systems)
    for _ in range(_MAX_ITER):
        gap = yield walk.iterate()
        if not walk.advance(gap):
            return


class _Walk:
    def __init__(self, source: RowSource, reduced: Objective, start: Guess, most_systems: float) -> None:
        self.source, self.systems_left = source, most_systems
        self.penalty, self.fit_intercept = reduced.penalty, reduced.fit_intercept
        self.last_norm = np.inf
        self.system = None if start.system is None else LearningSystem(start.system)
        # Where only rows that come and go change the matrix, a new one is cheap.
        self.keeps_systems = reduced.loss.active_curvature is None and source.n_features >= _KEPT_FROM
        self.on_primal_side = source.n_features <= source.n_rows  # the smaller side of the system
        self.keeps_systems &= self.penalty.is_smooth or self.on_primal_side
        self.exact, self.loss = reduced.loss, reduced.loss.rounded(start.width or _FIRST_WIDTH)
        first = start.point.inside(self.penalty)
        self._arrive(first, self._evaluate(first))

    def _evaluate(self, point: Point) -> LossSums:
        wanted = self.on_primal_side and self.system is None
        return self.source.evaluate(point, self.loss, curvature=wanted)

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
        rows, weights = self.source.curvature_rows(self.point, self.loss)
        return DualSystem(rows, np.ones(self.source.n_features), weights, self.fit_intercept)

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
        of_loss = self.source.slopes(self.point, step, self.loss, _LENGTHS)
        slopes: Floats = of_loss + self.penalty.slopes(self.point.weights, step.weights, _LENGTHS)
        falling = np.flatnonzero(slopes <= 0)
        if len(falling) == 0:
            return float(_LENGTHS[-1])
        low = falling[0]
        if low == 0:
            return float(_LENGTHS[0])
        t_low, t_high, s_low, s_high = _LENGTHS[low], _LENGTHS[low - 1], slopes[low], slopes[low - 1]
        return float(t_low + (t_high - t_low) * s_low / (s_low - s_high))


def primal_system(sums: LossSums, fit_intercept: bool) -> PrimalSystem:
    """The Newton system at a point whose sums include the curvature."""
    assert sums.curvature is not None  # noqa: S101 -- the caller asked for it
    return ridged_system(sums.curvature.copy(), np.ones(len(sums.curvature) - 1), fit_intercept)


def _difference(after: Point, before: Point) -> Floats:
    return np.append(after.weights - before.weights, after.intercept - before.intercept)
