"""Shrinking, for the hinge with many rows: only rows near the margin need the interior-point method.

A row with m = t - y f < 0 at the optimum has alpha = 0, one with m > 0 has alpha = c and a linear loss. Given
a good guess of (w, b), rows with |m| > width are taken for what they look like: sums of them are all that is
asked for. The rows inside, the working set, are solved for exactly. The dual vector found this way is
feasible for ALL rows, so that its bound, and the objective of one more pass, certify the point whether or not
the guess was right; where it was wrong the working set is made wider.

The guess is the optimum of a sample, off by about sqrt(M / n) in the margins. One Newton step for all rows,
from one pass and with the second derivatives of the sample, makes that a small part of it: a few thousand
rows of millions are enough then. Of rows that are elsewhere a working set is fetched, so that its size is
bounded; of rows in memory a large one takes longer than Newton steps that only use products, which then take
over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats
from exclusivity.objective.objective import Objective
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.design import DesignMatrix, LabelledRows
from exclusivity.solvers.newton.barrier import WorkingSet, dual_of, near_margin
from exclusivity.solvers.newton.factorised import ridged_system
from exclusivity.solvers.newton.interior import InteriorPoint, with_exact_zeros
from exclusivity.solvers.newton.rounding import width_for_error
from exclusivity.solvers.newton.run import Guess, MemoryRows, ProblemRows, Run
from exclusivity.solvers.newton.sums import (
    Certificate,
    LossSums,
    Point,
    bordered_gram,
    bound_from_sums,
    dual_vector,
    evaluate,
    objective_from_sums,
    repaired_weights,
)

# The complementarity to reach in a working set, relative to the objective and the tolerance.
_INNER_SHARE = 0.1
# A working set has at least so many rows for each unknown.
_LEAST_ROWS = 5
# How much wider a working set is made that was too narrow.
_WIDEN = 3.0
# A working set is some ten times as wide as the error of most of its margins.
_ERROR_SHARE = 0.1
# Of rows in memory: two such working sets take as long as Newton-CG (500,000 x 50, 5 %).
_LARGEST_SHARE = 0.05
# Standard errors of a margin learned from n rows, in units of sqrt(M / n).
_SPREAD = 3.0
# Three standard errors of the margins after a Newton step, in units of that step's size in the margins; from
# 0.1 to 0.4 in samples of 5,000 to 75,000 rows of 28 columns.
_REST = 0.3
_MOST_SETS = 10


def drive_shrinking(  # noqa: C901, PLR0915 -- the whole loop, in one place
    run: Run, rows: ProblemRows, sample: SampleOptimum, width: float | None = None
) -> Guess | None:
    """Solve working sets around the margin, of bounded size, until the gap is closed: the hinge, many rows.

    ``width`` is that of the next working set, where there have been some. Ends early where bounded working
    sets cannot do it (too many rows on the margin itself, say, or too many features): with a guess where it
    is Newton-CG that should go on.

    A second working set of the same width, around the margin that the first one found, usually does it. Where
    one is so narrow that its optimum is worse than where it started (at large costs nothing but the rows
    inside holds it back), the next one is made around the start again, and wider.
    """
    reduced, before = rows.objective, run.passes - rows.passes
    # Of rows in memory no more than pay, of others no more than may be fetched.
    most = int(min(rows.n_rows, rows.most_fetched))
    if rows.problem is not None:
        most = int(min(rows.n_rows, max(_LARGEST_SHARE * rows.n_rows, 2 * sample.least)))

    def certify(
        point: Point, dual: LossSums | None = None, vector: Callable[..., Floats] | None = None
    ) -> LossSums:
        """Certify a point in one pass; return the sums of alpha = c [m > 0], which is a dual vector too.

        It is the one that counts where there is no other, whose ``vector`` takes the factors of the classes.
        """
        sums: LossSums = rows.reduce(evaluate, point, reduced.loss, False)
        run.passes = before + rows.passes
        bound, factors = bound_from_sums(sums if dual is None else dual, reduced, rows.row_scale)
        certificate = Certificate(*objective_from_sums(point, sums, reduced, rows.row_scale), bound)
        if rows.problem is not None:
            vector = vector or partial(rows.reduce, dual_vector, point, reduced.loss)
            certificate = certificate._replace(dual=partial(vector, factors))
        run.take(point, certificate, is_start=not has_started)
        return sums

    def approach(point: Point, sums: LossSums) -> tuple[Point, float]:
        """Take Newton steps until few enough rows may change sides; return the point and the width."""
        if not reduced.penalty.is_smooth:
            return point, sample.width()
        point, width = sample.improved(point, sums)
        while width > sample.reach(point, most)[1] and not run.is_over:
            better, narrower = sample.improved(point, certify(point))
            if narrower > width / 2:
                break
            point, width = better, narrower
        return point, width

    def for_products(start: Point, width: float) -> Guess:
        """Return a point whose margins are off by a tenth of ``width``, as Newton-CG takes it."""
        return Guess(start, width=width_for_error(_ERROR_SHARE * width))

    if not sample.is_enough(most):
        return for_products(sample.point, sample.width() if width is None else width)
    run.state, centre, has_started = Guess(sample.point), sample.point, False
    sums, has_started = certify(centre), True
    has_moved = width is not None
    if width is None:
        centre, width = approach(centre, sums)
    for _ in range(_MOST_SETS):
        run.state = Guess(centre, width=width, method="shrinking")
        if run.is_over:
            return None
        around = centre, max(width, sample.reach(centre, most)[0]), most
        inside: WorkingSet = rows.reduce(near_margin, *around)
        if inside.is_cut and rows.problem is not None:
            return for_products(centre, width)
        gap, objective, point, is_second = run.gap, run.best_objective, centre, has_moved
        if inside.can_balance(reduced.fit_intercept):
            total_cost = float(member_costs(sample.problem).sum())
            goal = _INNER_SHARE * run.tol * min(objective, total_cost)
            point, dual, alpha = solve_inside(inside, reduced, centre, goal)
            if not reduced.penalty.is_smooth:
                point = with_exact_zeros(point, repaired_weights(dual, reduced), reduced.penalty)
            sums = certify(point, dual, partial(rows.reduce, dual_of, *around, alpha))
            if run.best_objective < objective:
                centre, has_moved = point, True
        if len(inside.shortfall) == rows.n_rows or (inside.is_cut and run.gap > gap / 2):
            return None
        if inside.is_cut:
            centre, width = approach(point, sums)
        else:
            width *= _WIDEN if is_second or not has_moved else 1.0
    return None


def solve_inside(
    inside: WorkingSet, objective: Objective, start: Point, goal: float
) -> tuple[Point, LossSums, Floats]:
    """Find the optimum with the rows outside fixed, the sums of the dual vector of ALL rows, and it inside.

    ``goal`` is the complementarity to reach.
    """
    rows, start = inside.rows, start.inside(objective.penalty)
    labelled = LabelledRows(DesignMatrix(rows.X), rows.labels, rows.weights, inside.targets)
    problem = ERMProblem(objective, labelled)
    linear = -inside.sums.weighted_sums[1], -float(inside.sums.alpha_sums[1])
    method = InteriorPoint(MemoryRows(problem), start, linear=linear)
    for _, complementarity in method.iterates():
        if complementarity <= goal:
            break
    alpha = np.clip(method.state.barrier.alpha, 0.0, member_costs(problem))
    return (
        method.point,
        inside.sums + LossSums.of_dual(rows.X, rows.labels, alpha, inside.targets),
        alpha,
    )


@dataclass(frozen=True, eq=False)
class SampleOptimum:
    """The optimum ``point`` of a sample: a ``fraction`` of the rows, weights scaled up to those of all."""

    problem: ERMProblem
    point: Point
    fraction: float

    @property
    def least(self) -> int:
        """The fewest rows of a working set: the optimum leans on as many as there are unknowns."""
        return int(_LEAST_ROWS * (self.problem.design.n_features + 1))

    def is_enough(self, most: int) -> bool:
        """Return whether the sample, and working sets of at most so many rows, suffice for the unknowns."""
        return self.problem.design.n_rows >= 4 * self.least and most >= 2 * self.least

    def improved(self, point: Point, sums: LossSums) -> tuple[Point, float]:
        """Take one Newton step for all rows; also return how far margins may still be off then.

        ``sums`` are those of alpha = c [m > 0] over all rows. Their second derivatives, costs times the
        density of the rows on the margin, come from the sample. A step without sense is not taken.
        """
        sample, descent = self.problem, sums.negative_gradient
        distance = self._distance(point)
        half = max(self.width(), nearest(distance, 4 * self.least))
        weights = np.where(distance <= half, member_costs(sample) / (2 * half), 0.0)
        gram, ridge = bordered_gram(sample.design.X, weights), np.ones(sample.design.n_features)
        try:
            system = ridged_system(gram, ridge, sample.fit_intercept)
        except linalg.LinAlgError:
            return point, self.width()
        dw, db = system.solve(descent.weights - point.weights, descent.intercept)
        size = float(np.sqrt(np.mean((sample.design.times(dw) + db) ** 2)))
        if not size <= self.width():  # nor where it is not a number
            return point, self.width()
        return point.moved(Point(dw, db), 1.0), _REST * size

    def width(self) -> float:
        """Return how far the margins of the sample's optimum may be off.

        An error in proportion to the scores, or to the margin where scores are small; but no alpha exceeds
        its cost, so small costs leave w (a sum of alphas) little room for errors.
        """
        problem, start = self.problem, self.point
        scores = problem.design.times(start.weights) + start.intercept
        spread = float(np.sqrt((problem.design.n_features + 1) / problem.design.n_rows))
        size, length = float(scores.std()), float(np.linalg.norm(start.weights))
        room = float(member_costs(problem).sum()) * (size / length) ** 2 if length > 0 else 1.0
        return _SPREAD * spread * max(min(1.0, room), size)

    def reach(self, point: Point, most: int) -> tuple[float, float]:
        """Return between which widths there are, most likely, rows enough, and not more than ``most``."""
        distance = self._distance(point)
        least, largest = (int(count * self.fraction) + 1 for count in (2 * self.least, most))
        return nearest(distance, least), nearest(distance, largest)

    def _distance(self, point: Point) -> Floats:
        scores = self.problem.design.times(point.weights) + point.intercept
        return np.abs(self.problem.rows.shortfall(scores))


def nearest(distance: Floats, count: int) -> float:
    """Return the ``count``-th smallest distance, or the largest."""
    at = min(count, len(distance)) - 1
    return float(np.partition(distance, at)[at])
