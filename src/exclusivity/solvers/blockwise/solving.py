"""One Newton solver per binary problem, all of them on the same passes over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from exclusivity.objective.objective import Objective
from exclusivity.rows.source import RowSource, SharedPasses
from exclusivity.solvers.base import Callback, SolverResult, Start
from exclusivity.solvers.blockwise.bands import BAND_BYTES, Pilot, drive_bounded_bands
from exclusivity.solvers.blockwise.barrier import BlockwiseBarrier
from exclusivity.solvers.blockwise.questions import BlockwiseSource, Sample, Target, draw_sample
from exclusivity.solvers.newton import (
    DEFAULT_MAX_ITER,
    Certificate,
    Guess,
    Point,
    Regime,
    RowFacts,
    Run,
    choose_regime,
    drive_interior,
    drive_semismooth,
    guess_of_sample,
    methods_of,
    objective_from_sums,
)


@dataclass(frozen=True)
class Settings:
    """How to solve: the relative duality gap to reach, the most iterations, and the method."""

    tol: float = 1e-4
    max_iter: int | None = None
    regime: Regime = "auto"


def solve_targets(
    rows: RowSource,
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
    meeting = SharedPasses(rows, len(targets))

    def solve(place: int) -> SolverResult:
        try:
            return _solve(meeting, place, targets[place], settings, starts[place], watchers[place], sample)
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
    meeting: SharedPasses,
    place: int,
    target: Target,
    settings: Settings,
    start: Start | None,
    callback: Callback | None,
    sample: Sample | None,
) -> SolverResult:
    run = Run(target.objective, settings.tol, settings.max_iter or DEFAULT_MAX_ITER, callback)
    reduced = target.objective.reduced()
    target = replace(target, objective=reduced)
    source = BlockwiseSource(meeting, place, target)
    rows = RowFacts(source.n_rows, source.n_features, has_vectors=False)
    regime = choose_regime(reduced, rows, settings.regime)
    small = None if sample is None else sample.problem_of(target)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        guess = Guess(Point(np.zeros(source.n_features), 0.0))
        if start is not None:
            guess = _certify_start(run, reduced, source, start)
        elif small is not None:
            guess, _ = guess_of_sample(small, regime)
        for method in methods_of(reduced, rows, regime):
            if method == "semismooth":
                drive_semismooth(run, reduced, source, guess)
            elif method == "interior":
                inside = guess.point.inside(reduced.penalty)
                drive_interior(run, reduced, BlockwiseBarrier(source, inside), inside)
            elif sample is not None and small is not None:
                pilot = Pilot(small, guess.point, sample.fraction)
                drive_bounded_bands(run, reduced, source, pilot, BAND_BYTES // meeting.n_solvers)
            if run.is_over:
                break
            guess = Guess(run.best) if run.has_point else guess
    return run.result()


def _certify_start(run: Run, reduced: Objective, source: BlockwiseSource, start: Start) -> Guess:
    """The mean member of an earlier result, or where its method was: one pass."""
    point = Point(start.weights.mean(axis=1), float(start.intercepts.mean()))
    sums = source.evaluate(point, reduced.loss, curvature=False)
    objective = objective_from_sums(point, sums, reduced, source.row_scale)
    run.take(point, Certificate(*objective, bound=0.0), is_start=True)
    if start.resumes(Guess, run.scale * objective[0], start.gap):  # its dual vector is not known: no gap
        going_on: Guess = start.state
        return going_on
    return Guess(point)
