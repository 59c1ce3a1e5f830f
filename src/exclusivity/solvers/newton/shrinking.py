"""Shrinking, for the hinge with many rows: only rows near the margin need the interior-point method.

A row with m = t - y f < 0 at the optimum has alpha = 0, one with m > 0 has alpha = c and a linear loss. Given
a good guess of (w, b), rows with |m| > width are taken for what they look like: sums of them are all that is
asked for. The rows inside, the working set, are solved for exactly. The dual vector found this way is
feasible for ALL rows, so that its bound, and the objective of one more pass, certify the point whether or not
the guess was right; where it was wrong the working set is made wider.

The guess is the optimum of a sample, off by about sqrt(M / n) in the margins. One Newton step for all rows,
from one pass and with the second derivatives of the sample, makes that a small part of it: a few thousand
rows of millions are enough then. Of rows that are elsewhere a working set travels, so that its size is
bounded; of rows in memory a large one costs more than Newton steps that only use products, which then take
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
from exclusivity.solvers.newton.interior import InteriorPoint, RowsSide, with_exact_zeros
from exclusivity.solvers.newton.linear import bordered_gram, ridged_system
from exclusivity.solvers.newton.newton_cg import PATIENCE, drive_truncated
from exclusivity.solvers.newton.rounding import width_for_error
from exclusivity.solvers.newton.run import (
    Certificate,
    Guess,
    LossSums,
    Point,
    Run,
    bound_from_sums,
    objective_from_sums,
    repaired_weights,
)
from exclusivity.solvers.newton.source import MemoryRows, ProblemRows
from exclusivity.solvers.newton.sums import WorkingSet, dual_of, near_margin, sums_of_dual

# The complementarity to reach in a working set, relative to the objective and the tolerance.
_INNER_SHARE = 0.1
# A working set has at least so many rows for each unknown.
_LEAST_ROWS = 5
# How much wider a working set is made that was too narrow.
_WIDEN = 3.0
# A working set is some ten times as wide as the error of most of its margins.
_ERROR_SHARE = 0.1
# Of rows in memory: two such working sets cost as much as truncated Newton (500,000 x 50, 5 %).
_LARGEST_SHARE = 0.05
# Standard errors of a margin learned from n rows, in units of sqrt(M / n).
_SPREAD = 3.0
# The second derivatives of a sample come from rows within so many widths of the margin.
_KERNEL = 1.0
# Three standard errors of the margins after a Newton step, in units of that step's size in the margins; from
# 0.1 to 0.4 in samples of 5,000 to 75,000 rows of 28 columns.
_REST = 0.3
_MOST_SETS = 10


@dataclass(frozen=True, eq=False)
class Pilot:
    """The optimum ``point`` of a sample: a ``fraction`` of the rows, weights scaled up to those of all."""

    problem: ERMProblem
    point: Point
    fraction: float

    @property
    def least(self) -> int:
        """So many rows a working set has, at least: the optimum leans on as many as there are unknowns."""
        return int(_LEAST_ROWS * (self.problem.design.n_features + 1))

    def is_enough(self, most: int) -> bool:
        """Whether the sample, and working sets of at most so many rows, can tell as many unknowns."""
        return self.problem.design.n_rows >= 4 * self.least and most >= 2 * self.least

    def improved(self, point: Point, sums: LossSums) -> tuple[Point, float]:
        """One Newton step for all rows, and how far margins may still be off then.

        ``sums`` are those of alpha = c [m > 0] over all rows. Their second derivatives, costs times the
        density of the rows on the margin, come from the sample. A step without sense is not taken.
        """
        sample, descent = self.problem, sums.negative_gradient
        distance = self._distance(point)
        half = max(_KERNEL * self.width(), nearest(distance, 4 * self.least))
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
        """How far the margins of the sample's optimum may be off.

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
        """Between which widths there are, most likely, rows enough, and not more than ``most``."""
        distance = self._distance(point)
        least, largest = (int(count * self.fraction) + 1 for count in (2 * self.least, most))
        return nearest(distance, least), nearest(distance, largest)

    def _distance(self, point: Point) -> Floats:
        scores = self.problem.design.times(point.weights) + point.intercept
        return np.abs(self.problem.rows.shortfall(scores))


def drive_shrinking(run: Run, rows: ProblemRows, pilot: Pilot, width: float | None = None) -> None:
    """The hinge, many rows: working sets around the margin, of bounded size, until the gap is closed.

    ``width`` is that of the next working set, where there have been some. Ends early where bounded working
    sets cannot do it (too many rows on the margin itself, say, or too many features).

    A second working set of the same width, around the margin that the first one found, usually does it. Where
    one is so narrow that its optimum is worse than where it started (at large costs nothing but the rows
    inside holds it back), the next one is made around the start again, and wider.
    """
    most = _most_inside(rows, pilot)
    if not pilot.is_enough(most):
        _leave_to_products(run, rows, pilot.point, pilot.width() if width is None else width)
        return
    shrinking = _Shrinking(run, rows, pilot, most)
    run.state, centre = Guess(pilot.point), pilot.point
    sums = shrinking.certify(centre, is_start=True)
    has_moved = width is not None
    if width is None:
        centre, width = shrinking.approach(centre, sums)
    for _ in range(_MOST_SETS):
        run.state = Guess(centre, width=width, method="bands")
        if run.is_over:
            return
        around = centre, max(width, pilot.reach(centre, most)[0]), most
        inside: WorkingSet = rows.reduce(near_margin, *around)
        if inside.is_cut and rows.problem is not None:
            _leave_to_products(run, rows, centre, width)
            return
        gap, objective, point, is_second = run.gap, run.best_objective, centre, has_moved
        if inside.can_balance(rows.objective.fit_intercept):
            point, sums = shrinking.solve(inside, around)
            if run.best_objective < objective:
                centre, has_moved = point, True
        if len(inside.shortfall) == rows.n_rows or (inside.is_cut and run.gap > gap / 2):
            return
        if inside.is_cut:
            centre, width = shrinking.approach(point, sums)
        else:
            width *= _WIDEN if is_second or not has_moved else 1.0


def _most_inside(rows: ProblemRows, pilot: Pilot) -> int:
    """So many rows at most; of rows in memory no more than pay, of others no more than may travel."""
    paying = rows.most_fetched if rows.problem is None else _LARGEST_SHARE * rows.n_rows
    return int(min(rows.n_rows, paying if rows.problem is None else max(paying, 2 * pilot.least)))


def _leave_to_products(run: Run, rows: ProblemRows, start: Point, width: float) -> None:
    """Truncated Newton from a point whose margins are off by a tenth of ``width``; of rows in memory."""
    if rows.problem is not None and rows.problem.targets is None:
        rounding = width_for_error(_ERROR_SHARE * width)
        drive_truncated(run, rows.problem, start, width=rounding, most_passes=PATIENCE)


def solve_inside(
    inside: WorkingSet, objective: Objective, start: Point, goal: float
) -> tuple[Point, LossSums, Floats]:
    """The optimum with the rows outside fixed, the sums of the dual vector of ALL rows, and it inside.

    ``goal`` is the complementarity to reach.
    """
    rows, start = inside.rows, start.inside(objective.penalty)
    labelled = LabelledRows(DesignMatrix(rows.X), rows.labels, rows.weights, inside.targets)
    problem = ERMProblem(objective, labelled)
    linear = -inside.sums.weighted_sums[1], -float(inside.sums.alpha_sums[1])
    data = RowsSide(MemoryRows(problem), start, linear=linear)
    method = InteriorPoint(data, objective.penalty, objective.fit_intercept, start)
    for _, complementarity in method.iterates():
        if complementarity <= goal:
            break
    alpha = np.clip(data.local_state.barrier.alpha, 0.0, member_costs(problem))
    return method.point, inside.sums + sums_of_dual(rows.X, rows.labels, alpha, inside.targets), alpha


class _Shrinking:
    """What is done with every working set."""

    def __init__(self, run: Run, rows: ProblemRows, pilot: Pilot, most: int) -> None:
        self._run, self._rows, self._pilot, self._most = run, rows, pilot, most
        self._before = run.passes - rows.passes

    def approach(self, point: Point, sums: LossSums) -> tuple[Point, float]:
        """Newton steps until the rows that may change sides are few enough for a working set; its width."""
        pilot = self._pilot
        if not self._rows.objective.penalty.is_smooth:
            return point, pilot.width()
        point, width = pilot.improved(point, sums)
        while width > pilot.reach(point, self._most)[1] and not self._run.is_over:
            better, narrower = pilot.improved(point, self.certify(point))
            if narrower > width / 2:
                break
            point, width = better, narrower
        return point, width

    def solve(self, inside: WorkingSet, around: tuple[Point, float, int]) -> tuple[Point, LossSums]:
        """Take the optimum of a working set, and return the sums of alpha = c [m > 0] there."""
        reduced, total_cost = self._rows.objective, float(member_costs(self._pilot.problem).sum())
        goal = _INNER_SHARE * self._run.tol * min(self._run.best_objective, total_cost)
        point, dual, alpha = solve_inside(inside, reduced, around[0], goal)
        if not reduced.penalty.is_smooth:
            point = with_exact_zeros(point, repaired_weights(dual, reduced), reduced.penalty)
        vector = partial(self._rows.reduce, dual_of, *around, alpha)
        return point, self.certify(point, dual, vector)

    def certify(
        self,
        point: Point,
        dual: LossSums | None = None,
        vector: Callable[..., Floats] | None = None,
        *,
        is_start: bool = False,
    ) -> LossSums:
        """One pass for the objective, and the sums of alpha = c [m > 0], which is a dual vector too.

        It is the one that counts where there is no other, whose ``vector`` takes the factors of the classes.
        """
        rows, reduced = self._rows, self._rows.objective
        sums = rows.evaluate(point, reduced.loss, curvature=False)
        self._run.passes = self._before + rows.passes
        bound, factors = bound_from_sums(sums if dual is None else dual, reduced, rows.row_scale)
        objective = objective_from_sums(point, sums, reduced, rows.row_scale)
        certificate = Certificate(*objective, bound)
        if rows.problem is not None:
            vector = vector or partial(rows.dual_vector, point, reduced.loss)
            certificate = certificate._replace(dual=partial(vector, factors))
        self._run.take(point, certificate, is_start=is_start)
        return sums


def nearest(distance: Floats, count: int) -> float:
    """The ``count``-th smallest distance, or the largest."""
    at = min(count, len(distance)) - 1
    return float(np.partition(distance, at)[at])
