"""From paths of iterates over distributed rows to certified points of a run."""

from __future__ import annotations

import numpy as np

from exclusivity.problem import Objective
from exclusivity.problem.arrays import Floats
from exclusivity.solvers.blockwise.bands import Band, Pilot
from exclusivity.solvers.blockwise.source import BlockwiseSource
from exclusivity.solvers.newton.drive import INNER_SHARE, zeroed
from exclusivity.solvers.newton.interior import InteriorPoint
from exclusivity.solvers.newton.run import Run, bound_from_sums, objective_from_sums
from exclusivity.solvers.newton.screening import WIDEN
from exclusivity.solvers.newton.semismooth import Guess
from exclusivity.solvers.newton.source import LossSums, Point

_MOST_BANDS = 10


def drive_bands(
    run: Run, reduced: Objective, source: BlockwiseSource, pilot: Pilot, most_bytes: int
) -> Point:
    """P = 1, many rows: bands around the margin, each of bounded size, until the gap is closed.

    Returns the best point. Ends early where bounded bands cannot do it (too many rows on the margin itself,
    say, or too many features).
    """
    point, most = pilot.point, most_bytes // (8 * source.n_features)
    if not pilot.is_enough(most):
        return point
    walk = _BandWalk(run, reduced, source)
    sums = walk.certify(point, None, is_start=True)
    centre, width = walk.approach(pilot, point, sums, most)
    has_moved = False
    for _ in range(_MOST_BANDS):
        if run.is_over:
            break
        band = source.band(centre, max(width, pilot.reach(centre, most)[0]), most)
        gap, objective, is_second = run.gap, run.best_objective, has_moved
        if band.can_balance(reduced.fit_intercept):
            point, dual = walk.solve(band, centre, pilot.total_cost)
            sums = walk.certify(point, dual)
            if run.best_objective < objective:
                centre, has_moved = point, True
        if len(band.shortfall) == source.n_rows or (band.is_cut and run.gap > gap / 2):
            break
        if band.is_cut:
            centre, width = walk.approach(pilot, point, sums, most)
        elif is_second or not has_moved:  # a second band of the same width usually does it
            width *= WIDEN
    return run.best


class _BandWalk:
    """What is done with every band."""

    def __init__(self, run: Run, reduced: Objective, source: BlockwiseSource) -> None:
        self._run, self._reduced, self._source = run, reduced, source
        self._before = run.passes - source.passes

    def approach(self, pilot: Pilot, point: Point, sums: LossSums, most: int) -> tuple[Point, float]:
        """Newton steps until the rows that may change sides are few enough for one band; its width."""
        if self._reduced.regulariser.has_l1:
            return point, pilot.width()
        point, width = pilot.improved(point, sums)
        while width > pilot.reach(point, most)[1] and not self._run.is_over:
            better, narrower = pilot.improved(point, self.certify(point, None))
            if narrower > width / 2:
                break
            point, width = better, narrower
        return point, width

    def solve(self, band: Band, start: Point, total_cost: float) -> tuple[Point, LossSums]:
        """The optimum that a band suggests, and the sums of its dual vector."""
        run, reduced = self._run, self._reduced
        goal = INNER_SHARE * run.tol * min(run.best_objective, total_cost)
        point, dual = band.solve(reduced, start, goal)
        if reduced.regulariser.has_l1:
            l1 = reduced.regulariser.sparsity
            _, factors = bound_from_sums(dual, reduced, self._source.row_scale)
            point = _with_exact_zeros(point, dual, factors, l1)
        return point, dual

    def certify(self, point: Point, dual: LossSums | None, *, is_start: bool = False) -> LossSums:
        """One pass for the objective, and the sums of alpha = c [m > 0], which is a dual vector too."""
        sums = self._source.band(point, 0.0, 0).sums
        self._run.passes = self._before + self._source.passes
        reduced, scale = self._reduced, self._source.row_scale
        bound, _ = bound_from_sums(sums if dual is None else dual, reduced, scale)
        objective = objective_from_sums(point, sums, reduced, scale)
        self._run.state = Guess(point)
        self._run.take(point, objective, bound, lambda: np.empty(0), is_start=is_start)
        return sums


def drive_barrier(run: Run, reduced: Objective, source: BlockwiseSource, start: Point) -> None:
    """The interior-point path, each iterate certified from sums."""
    l1, before = reduced.regulariser.sparsity, run.passes - source.passes
    data = source.barrier(start)
    is_start = True
    for point, complementarity in InteriorPoint(data, l1, reduced.fit_intercept, start).path():
        sums = data.dual
        bound, factors = bound_from_sums(sums, reduced, source.row_scale)
        if reduced.regulariser.has_l1:
            point = _with_exact_zeros(point, sums, factors, l1)  # noqa: PLW2901 -- the certified one
            sums = source.evaluate(point, reduced.loss, curvature=False)
        run.passes = before + source.passes
        objective = objective_from_sums(point, sums, reduced, source.row_scale)
        run.take(point, objective, bound, lambda: np.empty(0), mu=complementarity, is_start=is_start)
        is_start = False
        if run.is_over:
            return


def _with_exact_zeros(point: Point, sums: LossSums, factors: Floats, l1: float | Floats) -> Point:
    """The point without the weights that the dual vector behind ``sums`` calls zero."""
    return zeroed(point, (factors * [1.0, -1.0]) @ sums.by_class()[0], l1)
