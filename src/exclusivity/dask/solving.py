"""One Newton solver per binary problem, all of them on the same passes over the rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from exclusivity.dask.bands import BAND_BYTES, Pilot
from exclusivity.dask.drive import drive_bands, drive_barrier
from exclusivity.dask.requests import Target
from exclusivity.dask.rounds import Meeting, Rows
from exclusivity.dask.sampling import Sample, draw_sample
from exclusivity.dask.sources import DaskSource
from exclusivity.problem import ERMProblem
from exclusivity.solvers.base import Callback, SolverResult, Start
from exclusivity.solvers.newton.drive import drive_semismooth
from exclusivity.solvers.newton.run import Run, objective_from_sums
from exclusivity.solvers.newton.semismooth import Guess
from exclusivity.solvers.newton.smoothing import SmoothedHinge
from exclusivity.solvers.newton.solver import DEFAULT_MAX_ITER, Regime, guess_of_sample
from exclusivity.solvers.newton.source import Point


@dataclass(frozen=True)
class Settings:
    """How to solve."""

    tol: float
    max_iter: int | None
    regime: Regime = "auto"


def solve_targets(
    rows: Rows,
    targets: Sequence[Target],
    settings: Settings,
    starts: Sequence[Start | None],
    callbacks: Sequence[Callback | None],
) -> list[SolverResult]:
    """One result per target; ``targets`` hold the problems of K members, without rows."""
    p_is_one = targets[0].problem.loss.p == 1
    sample = draw_sample(rows) if p_is_one or any(start is None for start in starts) else None
    meeting = Meeting(rows, len(targets))

    def solve(party: int) -> SolverResult:
        try:
            return _solve(meeting, party, targets[party], settings, starts[party], callbacks[party], sample)
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
    problem = target.problem
    run = Run(problem, settings.tol, settings.max_iter or DEFAULT_MAX_ITER, callback)
    reduced = problem.reduced()
    target = dataclasses.replace(target, problem=reduced)
    source = DaskSource(meeting, party, target)
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
            drive_semismooth(run, reduced, guess, source)
            point = run.best
        elif reduced.loss.p == 1 and sample is not None and small is not None:
            pilot = Pilot(small, point, sample.fraction)
            point = drive_bands(run, reduced, source, pilot, BAND_BYTES // meeting.n_parties)
        if not run.is_over:
            drive_barrier(run, reduced, source, point)
    return run.result(with_dual=False)


def _certify_start(run: Run, reduced: ERMProblem, source: DaskSource, start: Start) -> Guess:
    """The mean member of an earlier result, or where its method was: one pass."""
    point = Point(start.weights.mean(axis=1), float(start.intercepts.mean()))
    sums = source.evaluate(point, SmoothedHinge(reduced.loss.p), curvature=False)
    objective = objective_from_sums(point, sums, reduced, source.row_scale)
    run.take(point, objective, 0.0, lambda: np.empty(0), is_start=True)
    if start.resumes(Guess, run.scale * objective[0], start.gap):  # its dual vector is not known: no gap
        going_on: Guess = start.state
        return going_on
    return Guess(point)


def choose_regime(problem: ERMProblem, wanted: Regime) -> Regime:
    """The regime for distributed rows, or a ValueError where the wanted one cannot do it."""
    if wanted == "iterative":
        raise ValueError(
            "regime='iterative' keeps vectors of all rows and is not for Dask collections; use 'auto'."
        )
    if wanted == "semismooth" and (problem.loss.p == 1 or problem.regulariser.has_l1):
        raise ValueError("regime='semismooth' needs p > 1 and sparsity = 0; use 'auto' or 'interior'.")
    if wanted != "auto":
        return wanted
    return "interior" if problem.loss.p == 1 or problem.regulariser.has_l1 else "semismooth"
