"""Many costs of the same problem, p >= 2: what one cost teaches about the next.

All sums over rows are linear in the cost, so one pass at unit cost serves every cost; and products with k
columns are far cheaper than k products with one column. A chain of rough Newton steps over a sample of the
rows, from one cost to the next, gives every cost its start and its Newton system; the steps over all rows are
taken for all costs together, and cost nothing but the next evaluation. Costs that such steps do not bring to
their tolerance go on alone.

Other problems share nothing but the start: each cost begins at the last optimum and its dual vector, scaled
to the cost (``solvers.dispatch``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers.base import SolverResult
from exclusivity.solvers.factorised import DENSE_LIMIT, primal_system
from exclusivity.solvers.newton import (
    DEFAULT_MAX_ITER,
    SAMPLE_TOL,
    NewtonOptions,
    RowFacts,
    choose_regime,
    continue_run,
    sample_rows,
)
from exclusivity.solvers.run import Guess, MemoryRows, NewtonSystem, Run
from exclusivity.solvers.sums import (
    Certificate,
    LossSums,
    Point,
    bound_from_sums,
    evaluate,
    objective_from_sums,
)

# A borrowed system is kept while every step with it divides the gradient by three (as in ``factorised``).
_GOOD_RATE = 1 / 3
_MAX_STEPS = 12
# A Hessian serves until the weights have moved by this share of their length.
_REACH = 0.1
_MAX_ROUGH_STEPS = 20


def solve_newton_path(
    problem: ERMProblem,
    costs: Sequence[float],
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    options: NewtonOptions | None = None,
) -> list[SolverResult] | None:
    """Solve ``problem`` for every cost, ascending, each to a relative duality gap of ``tol``.

    None where costs have nothing more to share than where each begins. The results have no dual vectors
    (``dual`` is empty): their gaps are proven all the same.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]))
    >>> [round(result.objective, 3) for result in solve_newton_path(problem, [0.5, 1.0], tol=1e-9)]
    [0.333, 0.4]
    """
    regime = choose_regime(problem.objective, RowFacts.of(problem), (options or NewtonOptions()).regime)
    n_rows, n_features, loss = problem.design.n_rows, problem.design.n_features, problem.loss
    # Batches take conjugates from differences of sums: those of homogeneous losses do not cancel.
    is_shared = loss.degree is not None and not loss.has_corner and problem.penalty.is_smooth
    is_shared &= problem.targets is None
    if regime != "semismooth" or not is_shared or n_features > min(DENSE_LIMIT, n_rows):
        return None
    problem = problem.centred()
    problems = [problem.changed(cost=float(cost)) for cost in costs]
    limit, offset = max_iter or DEFAULT_MAX_ITER, problem.design.offset
    runs = [Run(one.objective, tol, limit, None, offset) for one in problems]
    # As in ``solve_newton``: points beyond the range of numbers lose every comparison.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        reduced = [one.reduced() for one in problems]
        sample = sample_rows(reduced[0])
        try:
            chain = HessianChain(reduced[0] if sample is None else sample.problem)
            columns = [PathColumn(one, run, *chain.next(one)) for one, run in zip(reduced, runs, strict=True)]
            _drive_batch(columns)
        except linalg.LinAlgError:  # numbers too large for the matrices of all rows: one at a time
            return None
        for column in columns:
            if not column.run.is_over:
                continue_run(column.run, MemoryRows(column.reduced), "semismooth", Guess(column.run.best))
    return [run.result() for run in runs]


@dataclass(eq=False)
class PathColumn:
    """One cost of a path: its problem, its run, where it is, and the system it steps with."""

    reduced: ERMProblem
    run: Run
    point: Point
    system: NewtonSystem
    objective: float = np.inf
    gradient_norm: float = np.inf

    def gradient(self, sums: LossSums) -> Point:
        """Compute the gradient of the objective at the point, whose sums (at this cost) are given."""
        descent = sums.negative_gradient
        slope = -descent.intercept if self.reduced.fit_intercept else 0.0
        return Point(self.point.weights - descent.weights, slope)

    def certify(self, unit_sums: LossSums) -> bool:
        """Certify the point; return whether another step with this system may help."""
        reduced, sums, scale = self.reduced, unit_sums.times(self.reduced.cost), self.reduced.row_scale
        bound, _ = bound_from_sums(sums, reduced.objective, scale)
        objective = objective_from_sums(self.point, sums, reduced.objective, scale)
        gradient = self.gradient(sums)
        norm = float(np.hypot(np.linalg.norm(gradient.weights), gradient.intercept))
        is_start = not np.isfinite(self.gradient_norm)
        self.run.take(self.point, Certificate(*objective, bound), residual=norm, is_start=is_start)
        helped = objective[0] < self.objective and norm <= _GOOD_RATE * self.gradient_norm
        self.objective, self.gradient_norm = objective[0], norm
        return helped and not self.run.is_over

    def step(self, unit_sums: LossSums) -> None:
        """Move to where a Newton step leads; the sums here are at unit cost."""
        gradient = self.gradient(unit_sums.times(self.reduced.cost))
        change = Point(*self.system.solve(-gradient.weights, -gradient.intercept))
        self.point = self.point.moved(change, 1.0)


class HessianChain:
    """Newton on one cost after the other, roughly: points and Newton systems to start from.

    Sums are linear in the cost, so the gradient at the next cost is known without a look at the rows; and a
    Hessian serves until the weights have moved by a tenth of their length.

    Parameters
    ----------
    problem : ERMProblem
        With a loss without a corner; usually a sample of the rows. Its cost does not matter.
    """

    def __init__(self, problem: ERMProblem) -> None:
        self._rows, self._loss = MemoryRows(problem.changed(cost=1.0)), problem.loss
        self._renew(Point(np.zeros(self._rows.n_features), 0.0))

    def _renew(self, point: Point) -> None:
        """Go to a point, and take the Hessian there."""
        self._point = self._anchor = point
        self._sums: LossSums = self._rows.reduce(evaluate, point, self._loss, True)
        self._curvature = self._sums

    def next(self, reduced: ERMProblem) -> tuple[Point, NewtonSystem]:
        """Return a start for the next cost, which should be the next larger one."""
        rough = Run(reduced.objective, SAMPLE_TOL, _MAX_ROUGH_STEPS, None)
        column = PathColumn(reduced, rough, self._point, self._system(reduced))
        for _ in range(_MAX_ROUGH_STEPS):
            column.certify(self._sums)
            if rough.is_over:
                break
            column.step(self._sums)
            point, moved = column.point, column.point.weights - self._anchor.weights
            if np.linalg.norm(moved) > _REACH * np.linalg.norm(point.weights):
                self._renew(point)
                column.system = self._system(reduced)
            else:
                self._point, self._sums = point, self._rows.reduce(evaluate, point, self._loss, False)
        if rough.gap > SAMPLE_TOL:  # full steps did not converge
            self._renew(rough.best)
        return self._point, column.system

    def _system(self, reduced: ERMProblem) -> NewtonSystem:
        return primal_system(self._curvature.times(reduced.cost), reduced.fit_intercept)


def _drive_batch(columns: Sequence[PathColumn]) -> None:
    """Take Newton steps of all columns together until each is certified or its borrowed system fails it."""
    moving = list(columns)
    for _ in range(_MAX_STEPS):
        if not moving:
            return
        all_sums = batched_sums(moving[0].reduced, [column.point for column in moving])
        running = []
        for column, sums in zip(moving, all_sums, strict=True):
            column.run.passes += 1
            if column.certify(sums):
                column.step(sums)
                running.append(column)
        moving = running


def batched_sums(problem: ERMProblem, points: Sequence[Point]) -> list[LossSums]:
    """Compute the sums at every point, at unit cost and without curvature: one pass.

    For homogeneous losses without a corner; the cost of the problem does not matter.
    """
    design, loss, s = problem.design, problem.loss, problem.weights
    assert loss.degree is not None  # noqa: S101 -- homogeneous
    all_ones = bool(np.all(s == 1))
    weights = np.stack([point.weights for point in points])
    intercepts = np.array([[point.intercept] for point in points])
    k, M = weights.shape
    # Of alpha (first k) and of y alpha (last k): weighted_sums, alpha_sums and sums of alpha m.
    weighted_sums, (alpha_sums, products) = np.zeros((2 * k, M)), np.zeros((2, 2 * k))
    for rows, block in design.blocks(2 * k):
        y = problem.labels[rows]
        scores: Floats = (block @ weights.T).T if design.is_sparse else weights @ block.T
        shortfall = 1.0 - y * (scores + intercepts)  # one row per point
        both = np.empty((2 * k, len(y)))  # a point's numbers lie together, which BLAS likes
        both[:k] = loss.slope(shortfall)
        if not all_ones:
            both[:k] *= s[rows]
        np.multiply(y, both[:k], out=both[k:])
        weighted_sums += both @ block
        alpha_sums += both @ np.ones(len(y))
        products[:k] += np.einsum("ij,ij->i", both[:k], shortfall)
        products[k:] += np.einsum("ij,ij->i", both[k:], shortfall)
    losses = products / loss.degree  # m phi'(m) = degree phi(m)
    return [
        LossSums(
            loss=float(losses[j]),
            smoothed=float(losses[j]),
            weighted_sums=weighted_sums[[j, j + k]],
            alpha_sums=alpha_sums[[j, j + k]],
            conjugates=(products - losses)[[j, j + k]],  # at the loss's own slope
            curvature=None,
            cost=float(s.sum()),
            n_terms=design.transposed_terms(2 * k),
            gains=alpha_sums[[j, j + k]],
        )
        for j in range(k)
    ]
