"""One Newton solver per binary problem, all of them on the same passes over the rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from exclusivity.dask.blocks import RowBlock
from exclusivity.dask.requests import RowList, Target
from exclusivity.dask.rounds import Meeting, Rows
from exclusivity.dask.sources import DaskSource
from exclusivity.problem import ERMProblem
from exclusivity.problem.arrays import Floats
from exclusivity.solvers.base import Callback, SolverResult
from exclusivity.solvers.newton.drive import drive_semismooth
from exclusivity.solvers.newton.interior import interior_points
from exclusivity.solvers.newton.run import Run, bound_from_sums
from exclusivity.solvers.newton.sample import MANY_ROWS, SAMPLE_TOL
from exclusivity.solvers.newton.semismooth import Guess, primal_system
from exclusivity.solvers.newton.smoothing import SmoothedHinge
from exclusivity.solvers.newton.solver import DEFAULT_MAX_ITER, Regime, continue_run
from exclusivity.solvers.newton.source import BlockSource, LossSums, Point

SAMPLE_BYTES = 1 << 24
"""A sample of the rows, to start from, may bring so many bytes to the client."""

_SAMPLE_FRACTION = 25
_SEED = 20160328


@dataclass(frozen=True)
class Settings:
    """How to solve."""

    tol: float
    max_iter: int | None
    regime: Regime = "auto"


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows drawn at random from every block, always the same ones."""

    fraction: float

    def answer(self, block: RowBlock, state: Any) -> tuple[RowList, None]:
        """See ``Request``."""
        n_rows = block.X.shape[0]
        rng = np.random.default_rng([_SEED, n_rows])
        chosen = np.flatnonzero(rng.random(n_rows) < self.fraction)
        return RowList(block.X[chosen], block.codes[chosen], block.weights[chosen]), None


def solve_targets(
    rows: Rows,
    targets: Sequence[Target],
    settings: Settings,
    starts: Sequence[Point | None],
    callbacks: Sequence[Callback | None],
) -> list[SolverResult]:
    """One result per target; ``targets`` hold the problems of K members, without rows."""
    sample = _sample(rows) if any(start is None for start in starts) else None
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
    start: Point | None,
    callback: Callback | None,
    sample: RowList | None,
) -> SolverResult:
    problem = target.problem
    run = Run(problem, settings.tol, settings.max_iter or DEFAULT_MAX_ITER, callback)
    reduced = problem.reduced()
    target = dataclasses.replace(target, problem=reduced)
    source = DaskSource(meeting, party, target)
    regime = choose_regime(reduced, settings.regime)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        guess = Guess(Point(np.zeros(source.n_features), 0.0)) if start is None else Guess(start)
        if start is None and sample is not None:
            guess = _sampled_guess(target, sample, regime, guess, meeting.rows.n_rows)
        point = guess.point
        if regime == "semismooth":
            drive_semismooth(run, reduced, guess, source)
            point = run.best
        if not run.is_over:
            drive_barrier(run, reduced, source, point)
    return run.result(with_dual=False)


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


def drive_barrier(run: Run, reduced: ERMProblem, source: DaskSource, start: Point) -> None:
    """The interior-point path, each iterate certified from sums."""
    p, l1, before = reduced.loss.p, reduced.regulariser.sparsity, run.passes - source.passes
    data = source.barrier(start)
    path = interior_points(data, l1=l1, fit_intercept=reduced.fit_intercept, start=start)
    for point, complementarity in path:
        sums = data.dual
        bound, factors = bound_from_sums(sums, p, reduced.fit_intercept, l1)
        loss = sums.loss
        if reduced.regulariser.has_l1:
            point = _with_exact_zeros(point, sums, factors, l1)  # noqa: PLW2901 -- the certified one
            loss = source.evaluate(point, SmoothedHinge(p), curvature=False).loss
        run.passes = before + source.passes
        objective = reduced.regulariser.value(point.weights[:, None]) + loss
        run.take(point, objective, bound, lambda: np.empty(0), mu=complementarity)
        if run.is_over:
            return


def _with_exact_zeros(point: Point, sums: LossSums, factors: Floats, l1: float | Floats) -> Point:
    """The point without the weights that its dual vector calls zero: |x_j . (y alpha)| <= l_j."""
    u = (factors * [1.0, -1.0]) @ sums.by_class()[0]
    return Point(np.where(np.abs(u) > l1, point.weights, 0.0), point.intercept)


def _sample(rows: Rows) -> RowList | None:
    if rows.n_rows <= MANY_ROWS:
        return None
    most = SAMPLE_BYTES / (8 * rows.n_features)
    n_wanted = min(max(rows.n_rows / _SAMPLE_FRACTION, MANY_ROWS), most)
    sample: RowList = rows.total(Sample(n_wanted / rows.n_rows))
    return sample


def _sampled_guess(target: Target, sample: RowList, regime: Regime, zero: Guess, n_rows: int) -> Guess:
    """The optimum of a sample, found by the solver for rows in memory, and the Newton system there."""
    block = RowBlock(sample.X, sample.labels.astype(np.int32), sample.weights)
    problem = target.rows_of(block)
    if problem.design.n_rows == 0 or abs(problem.labels.sum()) == len(problem.labels):
        return zero
    problem = dataclasses.replace(problem, weights=problem.weights * (n_rows / len(sample.weights)))
    run = Run(problem, SAMPLE_TOL, DEFAULT_MAX_ITER, None)
    continue_run(run, problem, regime, zero)
    if regime != "semismooth":
        return Guess(run.best)
    p = problem.loss.p
    loss = SmoothedHinge(p, run.last_width if p < 2 else 0.0)
    sums = BlockSource(problem).evaluate(run.best, loss, curvature=True)
    return Guess(run.best, primal_system(sums, problem.fit_intercept), run.last_width)
