"""Many costs of the same problem, p >= 2: what one cost teaches about the next.

A chain over a sample of the rows gives every cost its start and its Newton system; the steps over all rows
are taken for all costs together. Other problems share nothing but the start: each cost begins at the last
optimum and its dual vector, scaled to the cost (``solvers.path``).

All sums over rows are linear in the cost, so one pass at unit cost serves every cost; and products with k
columns are far cheaper than k products with one column. Each point has a Newton system of its own, made from
the curvature of a sample: steps cost nothing but the next evaluation. Points that such steps do not bring
home are left to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats, Matrix
from exclusivity.objective.problem import ERMProblem
from exclusivity.solvers.base import SolverResult, check_convex
from exclusivity.solvers.newton.factorised import DENSE_LIMIT, PrimalSystem, primal_system
from exclusivity.solvers.newton.run import Guess, MemoryRows, NewtonSystem, Run
from exclusivity.solvers.newton.solver import (
    DEFAULT_MAX_ITER,
    SAMPLE_TOL,
    NewtonOptions,
    RowFacts,
    choose_regime,
    continue_run,
    sample_rows,
)
from exclusivity.solvers.newton.sums import (
    Certificate,
    LossSums,
    Point,
    bound_from_sums,
    evaluate,
    objective_from_sums,
)

# So many costs that share a Hessian are worth one of all rows.
_LARGE_GROUP = 6
# A borrowed system is kept while every step with it divides the gradient by three (as in ``semismooth``).
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
    check_convex(problem.objective, "newton")
    regime = choose_regime(problem.objective, RowFacts.of(problem), (options or NewtonOptions()).regime)
    problem = problem.centred()
    problems = [problem.changed(cost=float(cost)) for cost in costs]
    n_rows, n_features, loss = problem.design.n_rows, problem.design.n_features, problem.loss
    limit, offset = max_iter or DEFAULT_MAX_ITER, problem.design.offset
    runs = [Run(one.objective, tol, limit, None, offset) for one in problems]
    # As in ``solve_newton``: points beyond the range of numbers lose every comparison.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # Batches take conjugates from differences of sums: those of homogeneous losses do not cancel.
        is_shared = loss.degree is not None and not loss.has_corner and problem.penalty.is_smooth
        is_shared &= problem.targets is None
        if regime != "semismooth" or not is_shared or n_features > min(DENSE_LIMIT, n_rows):
            return None
        try:
            _solve_together(runs, problems)
        except linalg.LinAlgError:  # numbers too large for the matrices of all rows: one at a time
            return None
    return [run.result() for run in runs]


def _solve_together(runs: Sequence[Run], problems: Sequence[ERMProblem]) -> None:
    """The features' side; losses without a corner."""
    reduced = [problem.reduced() for problem in problems]
    sample = sample_rows(reduced[0])
    rough = HessianChain(reduced[0] if sample is None else sample.problem)
    columns = [PathColumn(one, run, *rough.next(one)) for one, run in zip(reduced, runs, strict=True)]
    rows = BatchSource(reduced[0])
    if sample is not None:
        unit = MemoryRows(reduced[0].changed(cost=1.0))
        for group in rough.groups():
            if len(group) >= _LARGE_GROUP:
                _spread([columns[j] for j in group], unit, rows)
    drive_batch([column for column in columns if not column.run.is_over], rows)
    for column in columns:
        if not column.run.is_over:
            continue_run(column.run, MemoryRows(column.reduced), "semismooth", Guess(column.run.best))


def _spread(group: Sequence[PathColumn], unit: MemoryRows, rows: BatchSource) -> None:
    """Solve the largest cost of a group with the curvature of all rows, and start the others from there.

    Points of the group are close together: one Newton step of each, from the sums of the one, is most of
    the way.
    """
    leader = group[-1]
    curvature = unit.reduce(evaluate, leader.point, leader.reduced.loss, True)
    for column in group:
        column.system = scaled_system(curvature, column.reduced)
    leader.step_from(leader.point, curvature)
    [(point, sums)] = drive_batch([leader], rows)
    for column in group[:-1]:
        column.point = point
        if certify(column, sums):  # else the leader's point will do for this cost too
            column.step_from(point, sums)


@dataclass(eq=False)
class PathColumn:
    """One cost of a path: its problem, its run, where it is, and the system it steps with."""

    reduced: ERMProblem
    run: Run
    point: Point
    system: NewtonSystem
    objective: float = np.inf
    gradient_norm: float = np.inf

    def gradient(self, point: Point, sums: LossSums) -> Point:
        """Of the objective at ``point``, whose sums (at this column's cost) are given."""
        descent = sums.negative_gradient
        has_intercept = self.reduced.fit_intercept
        return Point(point.weights - descent.weights, -descent.intercept if has_intercept else 0.0)

    def step_from(self, point: Point, unit_sums: LossSums) -> None:
        """Move to where a Newton step leads from ``point``, whose sums at unit cost are given."""
        gradient = self.gradient(point, unit_sums.times(self.reduced.cost))
        dw, db = self.system.solve(-gradient.weights, -gradient.intercept)
        self.point = point.moved(Point(dw, db), 1.0)


class BatchSource:
    """The rows of a problem, seen at unit cost and by many points at once; for losses without a corner.

    Parameters
    ----------
    problem : ERMProblem
        Gives rows, labels, weights and the loss; its cost does not matter.
    """

    def __init__(self, problem: ERMProblem) -> None:
        self._design, self._loss = problem.design, problem.loss
        self._labels, self._weights = problem.labels, problem.weights
        self._all_ones = bool(np.all(problem.weights == 1))

    def sums(self, points: Sequence[Point]) -> list[LossSums]:
        """The sums of every point, without curvature: one pass."""
        weights = np.stack([point.weights for point in points])
        intercepts = np.array([[point.intercept] for point in points])
        (k, M), loss = weights.shape, self._loss
        # Of alpha (first k) and of y alpha (last k): weighted_sums, alpha_sums, sums of alpha m, and losses.
        weighted_sums, (alpha_sums, products, losses) = np.zeros((2 * k, M)), np.zeros((3, 2 * k))
        for rows, block in self._design.blocks(2 * k):
            y = self._labels[rows]
            both = np.empty((2 * k, len(y)))  # a point's numbers lie together, which BLAS likes
            shortfall = self._shortfall(block, y, weights, intercepts)
            both[:k] = loss.slope(shortfall)
            if not self._all_ones:
                both[:k] *= self._weights[rows]
            np.multiply(y, both[:k], out=both[k:])
            weighted_sums += both @ block
            alpha_sums += both @ np.ones(len(y))
            products[:k] += np.einsum("ij,ij->i", both[:k], shortfall)
            products[k:] += np.einsum("ij,ij->i", both[k:], shortfall)
            if loss.degree is None:
                values = loss.value(shortfall) * self._weights[rows]
                losses += np.append(values.sum(axis=1), values @ y)
        if loss.degree is not None:  # m phi'(m) = degree phi(m)
            losses = products / loss.degree
        return [
            LossSums(
                loss=float(losses[j]),
                smoothed=float(losses[j]),
                weighted_sums=weighted_sums[[j, j + k]],
                alpha_sums=alpha_sums[[j, j + k]],
                conjugates=(products - losses)[[j, j + k]],  # at the loss's own slope
                curvature=None,
                cost=float(self._weights.sum()),
                n_terms=self._design.transposed_terms(2 * k),
                gains=alpha_sums[[j, j + k]],
            )
            for j in range(k)
        ]

    def _shortfall(self, block: Matrix, y: Floats, weights: Floats, intercepts: Floats) -> Floats:
        """1 - y f, one row per point."""
        scores = (block @ weights.T).T if self._design.is_sparse else weights @ block.T
        scores += intercepts
        scores *= y
        np.subtract(1.0, scores, out=scores)
        return np.asarray(scores)


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
        self._source = MemoryRows(problem.changed(cost=1.0))
        self._loss = problem.loss
        self._hessian_of_cost: list[int] = []
        self._n_hessians = 0
        self._renew(Point(np.zeros(self._source.n_features), 0.0))

    def _renew(self, point: Point) -> None:
        self._point = self._anchor = point
        self._sums = self._curvature = self._source.reduce(evaluate, point, self._loss, True)
        self._n_hessians += 1

    def next(self, reduced: ERMProblem) -> tuple[Point, NewtonSystem]:
        """A start for the next cost, which should be the next larger one."""
        rough = Run(reduced.objective, SAMPLE_TOL, _MAX_ROUGH_STEPS, None)
        column = PathColumn(reduced, rough, self._point, scaled_system(self._curvature, reduced))
        for _ in range(_MAX_ROUGH_STEPS):
            certify(column, self._sums)
            if rough.is_over:
                break
            column.step_from(self._point, self._sums)
            self._move(column.point)
            column.system = scaled_system(self._curvature, reduced)
        if rough.gap > SAMPLE_TOL:  # full steps went astray
            self._renew(rough.best)
        self._hessian_of_cost.append(self._n_hessians)
        return self._point, column.system

    def _move(self, point: Point) -> None:
        moved = np.linalg.norm(point.weights - self._anchor.weights)
        if moved > _REACH * np.linalg.norm(point.weights):
            self._renew(point)
        else:
            self._point, self._sums = point, self._source.reduce(evaluate, point, self._loss, False)

    def groups(self) -> list[list[int]]:
        """The numbers of the costs that share a Hessian."""
        numbers = sorted(set(self._hessian_of_cost))
        return [[j for j, mine in enumerate(self._hessian_of_cost) if mine == number] for number in numbers]


def scaled_system(unit_sums: LossSums, reduced: ERMProblem) -> PrimalSystem:
    """The Newton system at the cost of ``reduced`` from sums at unit cost, curvature included."""
    return primal_system(unit_sums.times(reduced.cost), reduced.fit_intercept)


def drive_batch(columns: Sequence[PathColumn], rows: BatchSource) -> list[tuple[Point, LossSums]]:
    """Newton steps of all columns together until each is certified or its borrowed system fails it.

    Returns every column's last point with its sums at unit cost.
    """
    last: dict[int, tuple[Point, LossSums]] = {}
    moving = list(range(len(columns)))
    for _ in range(_MAX_STEPS):
        if not moving:
            break
        points = [columns[j].point for j in moving]
        sums = rows.sums(points)
        last.update(zip(moving, zip(points, sums, strict=True), strict=True))
        run_on = []
        for j in moving:
            columns[j].run.passes += 1
            if certify(columns[j], last[j][1]):
                columns[j].step_from(*last[j])
                run_on.append(j)
        moving = run_on
    return [last[j] for j in range(len(columns))]


def certify(column: PathColumn, unit_sums: LossSums) -> bool:
    """Certify the column's point; whether another step with its system is worth its while."""
    reduced, run, point = column.reduced, column.run, column.point
    sums = unit_sums.times(reduced.cost)
    scale = reduced.row_scale
    bound, _ = bound_from_sums(sums, reduced.objective, scale)
    objective = objective_from_sums(point, sums, reduced.objective, scale)
    gradient = column.gradient(point, sums)
    norm = float(np.hypot(np.linalg.norm(gradient.weights), gradient.intercept))
    is_start = not np.isfinite(column.gradient_norm)
    run.take(point, Certificate(*objective, bound), residual=norm, is_start=is_start)
    helped = objective[0] < column.objective and norm <= _GOOD_RATE * column.gradient_norm
    column.objective, column.gradient_norm = objective[0], norm
    return helped and not run.is_over
