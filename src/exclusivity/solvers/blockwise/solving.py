"""One Newton solver per binary problem, all of them on the same passes over the rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from exclusivity.problem import Objective
from exclusivity.problem.arrays import Floats
from exclusivity.solvers.base import Callback, SolverResult, Start
from exclusivity.solvers.blockwise.bands import BAND_BYTES, Band, Pilot
from exclusivity.solvers.blockwise.meeting import Meeting
from exclusivity.solvers.blockwise.questions import Target
from exclusivity.solvers.blockwise.rows import BlockRows
from exclusivity.solvers.blockwise.sample import Sample, draw_sample
from exclusivity.solvers.blockwise.source import BlockwiseSource
from exclusivity.solvers.newton.bands import INNER_SHARE, WIDEN
from exclusivity.solvers.newton.interior import InteriorPoint, zeroed
from exclusivity.solvers.newton.run import Guess, Run, bound_from_sums, objective_from_sums
from exclusivity.solvers.newton.semismooth import drive_semismooth
from exclusivity.solvers.newton.solver import DEFAULT_MAX_ITER, Regime, guess_of_sample, require_able
from exclusivity.solvers.newton.source import LossSums, Point

_MOST_BANDS = 10


@dataclass(frozen=True)
class Settings:
    """How to solve: the relative duality gap to reach, the most iterations, and the method."""

    tol: float = 1e-4
    max_iter: int | None = None
    regime: Regime = "auto"


def solve_targets(
    rows: BlockRows,
    targets: Sequence[Target],
    settings: Settings | None = None,
    starts: Sequence[Start | None] | None = None,
    callbacks: Sequence[Callback | None] | None = None,
) -> list[SolverResult]:
    """One result per target; ``targets`` hold the objectives of K members."""
    settings = settings or Settings()
    starts = starts or [None] * len(targets)
    watchers = callbacks or [None] * len(targets)
    is_hinge = targets[0].objective.loss.is_hinge
    sample = draw_sample(rows) if is_hinge or any(start is None for start in starts) else None
    meeting = Meeting(rows, len(targets))

    def solve(party: int) -> SolverResult:
        try:
            return _solve(meeting, party, targets[party], settings, starts[party], watchers[party], sample)
        finally:
            meeting.leave()

    if len(targets) == 1:
        return [solve(0)]
    with ThreadPoolExecutor(len(targets)) as pool:
        try:
            return list(pool.map(solve, range(len(targets))))
        except BaseException as error:  # Ctrl-C too: the others end with the pass they are in
            meeting.stop(error)
            raise


def _solve(
    meeting: Meeting,
    party: int,
    target: Target,
    settings: Settings,
    start: Start | None,
    callback: Callback | None,
    sample: Sample | None,
) -> SolverResult:
    run = Run(target.objective, settings.tol, settings.max_iter or DEFAULT_MAX_ITER, callback)
    reduced = target.objective.reduced()
    target = dataclasses.replace(target, objective=reduced)
    source = BlockwiseSource(meeting, party, target)
    regime = choose_regime(reduced, settings.regime)
    small = None if sample is None else sample.problem_of(target)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        guess = Guess(Point(np.zeros(source.n_features), 0.0))
        if start is not None:
            guess = _certify_start(run, reduced, source, start)
        elif small is not None:
            guess, _ = guess_of_sample(small, regime)
        point = guess.point
        if regime == "semismooth":
            drive_semismooth(run, reduced, source, guess)
            point = run.best
        elif reduced.loss.is_hinge and sample is not None and small is not None:
            pilot = Pilot(small, point, sample.fraction)
            point = drive_bands(run, reduced, source, pilot, BAND_BYTES // meeting.n_parties)
        if not run.is_over and reduced.loss.vanishes:
            drive_barrier(run, reduced, source, point)
    return run.result()


def _certify_start(run: Run, reduced: Objective, source: BlockwiseSource, start: Start) -> Guess:
    """The mean member of an earlier result, or where its method was: one pass."""
    point = Point(start.weights.mean(axis=1), float(start.intercepts.mean()))
    sums = source.evaluate(point, reduced.loss, curvature=False)
    objective = objective_from_sums(point, sums, reduced, source.row_scale)
    run.take(point, objective, 0.0, lambda: np.empty(0), is_start=True)
    if start.resumes(Guess, run.scale * objective[0], start.gap):  # its dual vector is not known: no gap
        going_on: Guess = start.state
        return going_on
    return Guess(point)


def choose_regime(objective: Objective, wanted: Regime) -> Regime:
    """The regime for distributed rows, or a ValueError where the wanted one cannot do it."""
    if wanted == "iterative":
        raise ValueError(
            "regime='iterative' keeps vectors of all rows and is not for Dask collections; use 'auto'."
        )
    regime = wanted
    if wanted == "auto":
        is_smooth = objective.loss.is_smooth and not objective.regulariser.has_l1
        regime = "semismooth" if is_smooth else "interior"
    require_able(objective, regime)
    return regime


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
