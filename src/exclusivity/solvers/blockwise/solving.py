"""One Newton solver per binary problem, all of them on the same passes over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exclusivity.problem import CurvedLoss, Objective
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.solvers.base import Callback, SolverResult, Start
from exclusivity.solvers.blockwise.bands import BAND_BYTES, Band, NearMargin, Pilot, drive_bounded_bands
from exclusivity.solvers.blockwise.questions import (
    BarrierSums,
    CurvatureRows,
    Evaluate,
    Linearise,
    Sample,
    Slopes,
    Target,
    Turn,
    draw_sample,
)
from exclusivity.solvers.blockwise.rows import BlockRows, Meeting, Question, Request, RowList
from exclusivity.solvers.newton.interior import drive_interior
from exclusivity.solvers.newton.linear import NewtonSystem, ridged_system
from exclusivity.solvers.newton.run import (
    Certificate,
    Guess,
    LossSums,
    Point,
    Run,
    bound_from_sums,
    objective_from_sums,
    repaired_pull,
)
from exclusivity.solvers.newton.semismooth import drive_semismooth
from exclusivity.solvers.newton.solver import (
    DEFAULT_MAX_ITER,
    Regime,
    RowFacts,
    choose_regime,
    guess_of_sample,
    methods_of,
)


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
    target = replace(target, objective=reduced)
    source = BlockwiseSource(meeting, party, target)
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
                drive_interior(run, reduced, source.barrier(guess.point), guess.point)
            elif sample is not None and small is not None:
                pilot = Pilot(small, guess.point, sample.fraction)
                drive_bounded_bands(run, reduced, source, pilot, BAND_BYTES // meeting.n_parties)
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


class BlockwiseSource:
    """A ``RowSource`` whose rows are with the workers: the sums of ``BlockSource``, block by block.

    Parameters
    ----------
    meeting : Meeting
        Where questions are asked.
    party : int
        The place in that meeting.
    target : Target
        The SVM to solve.
    """

    def __init__(self, meeting: Meeting, party: int, target: Target) -> None:
        self._meeting, self._party, self.target = meeting, party, target
        scale, columns = meeting.rows.row_scale, target.columns
        self.n_rows = meeting.rows.n_rows
        self.row_scale = scale if columns is None else replace(scale, columns=scale.columns[columns])
        self.n_features = meeting.rows.n_features if columns is None else len(columns)
        self.passes = 0.0

    def _ask(self, request: Request) -> Any:
        self.passes += 1
        return self._meeting.ask(self._party, Question(request)).total

    def evaluate(self, point: Point, loss: CurvedLoss, *, curvature: bool) -> LossSums:
        """See ``RowSource``."""
        sums: LossSums = self._ask(Evaluate(self.target, point, loss, curvature))
        return sums

    def slopes(self, point: Point, step: Point, loss: CurvedLoss, lengths: Floats) -> Floats:
        """See ``RowSource``."""
        return np.asarray(self._ask(Slopes(self.target, point, step, loss, lengths)))

    def curvature_rows(self, point: Point, loss: CurvedLoss) -> tuple[Matrix, Floats]:
        """See ``RowSource``: rows travel, but they are fewer than the features and so than a Hessian's."""
        rows: RowList = self._ask(CurvatureRows(self.target, point, loss))
        return rows.X, rows.weights

    def dual_vector(self, point: Point, loss: CurvedLoss, factors: Floats) -> Floats:
        """See ``RowSource``: none here."""
        return np.empty(0)

    def band(self, point: Point, width: float, most: int) -> Band:
        """The rows near the margin of ``point`` and sums over the others; see ``bands``."""
        band: Band = self._ask(NearMargin(self.target, point, width, most))
        return band

    def barrier(self, start: Point) -> BlockwiseBarrier:
        """The rows' side of the interior-point method: multipliers and slacks never come here."""
        return BlockwiseBarrier(self, start)

    def advance(self, request: Request, states: Any) -> tuple[BarrierSums, Any]:
        """One round of the interior-point method: sums for the client, new states for the workers."""
        self.passes += 1
        answer = self._meeting.ask(self._party, Question(request, states, keeps_state=True))
        assert answer.states is not None  # noqa: S101 -- asked for
        return answer.total, answer.states


class BlockwiseBarrier:
    """A ``BarrierRows`` in three rounds per step; multipliers and slacks never leave the workers.

    Linearising also gives the matrix and the predictor's right-hand side; turning to the predictor also gives
    the corrector's, which is linear in sigma_mu; turning to the corrector gives the longest step. Moving
    waits for the next round.
    """

    def __init__(self, source: BlockwiseSource, start: Point) -> None:
        self._source, self._target, self._point = source, source.target, start
        self._before = source.passes
        self.n_features = source.n_features
        self._step, self._length = start, 0.0
        self._states: Any = None
        self._is_current = False
        self._sums = BarrierSums()
        self._linearised = self._begin()
        self.total_cost = self._linearised.total_cost

    def _begin(self) -> BarrierSums:
        """The sums at the current point, after the step that is still to take."""
        if not self._is_current:
            request = Linearise(self._target, self._point, self._length)
            self._linearised, self._states = self._source.advance(request, self._states)
            self._is_current = True
        return self._linearised

    @property
    def passes(self) -> float:
        """See ``BarrierRows``."""
        return self._source.passes - self._before

    def pull(self) -> Floats:
        """See ``BarrierRows``."""
        return repaired_pull(self._dual(), self._target.objective, self._source.row_scale)

    def certify(self, point: Point) -> Certificate:
        """See ``BarrierRows``: from the sums at the current point, and one more pass at another one."""
        objective, scale, sums = self._target.objective, self._source.row_scale, self._dual()
        bound, _ = bound_from_sums(sums, objective, scale)
        if not objective.penalty.is_smooth:  # weights have been set to zero
            sums = self._source.evaluate(point, objective.loss, curvature=False)
        return Certificate(*objective_from_sums(point, sums, objective, scale), bound)

    def slacks(self) -> Floats | None:
        """See ``BarrierRows``: they are with the workers."""
        return None

    def _dual(self) -> LossSums:
        """The loss at the current point, and the sums of the dual vector there."""
        dual = self._begin().dual
        assert dual is not None  # noqa: S101 -- linearising gives it
        return dual

    @property
    def complementarity(self) -> float:
        """See ``BarrierRows``."""
        return self._begin().complementarity

    def linearise(self) -> tuple[Floats, float]:
        """See ``BarrierRows``."""
        pull = self._begin().pull
        assert pull is not None  # noqa: S101 -- linearising gives it
        return pull[:-1].copy(), float(pull[-1])

    def system(self, ridge: Floats, fit_intercept: bool) -> NewtonSystem:
        """See ``BarrierRows``."""
        gram = self._begin().gram
        assert gram is not None  # noqa: S101 -- linearising gives it
        return ridged_system(gram.copy(), ridge, fit_intercept)

    def aim(self, sigma_mu: float, correct: bool) -> tuple[Floats, float]:
        """See ``BarrierRows``."""
        self._sigma_mu = sigma_mu if correct else None
        aims = self._sums.aims if correct else self._begin().aims
        assert aims is not None  # noqa: S101 -- both rounds give them
        line = aims[0] + sigma_mu * aims[1] if correct else aims[0]
        return line[:-1].copy(), float(line[-1])

    def turn(self, system: NewtonSystem, right: Floats, total: float) -> tuple[Floats, float]:
        """See ``BarrierRows``."""
        dw, db = system.solve(right, total)
        self._step = Point(dw, db)
        request = Turn(self._target, self._step, self._sigma_mu)
        self._sums, self._states = self._source.advance(request, self._states)
        return dw, db

    def longest_step(self) -> float:
        """See ``BarrierRows``."""
        return self._sums.longest

    def complementarity_after(self, length: float) -> float:
        """See ``BarrierRows``."""
        sums = self._sums
        return sums.complementarity + length * (sums.slope + length * sums.bend)

    def move(self, length: float) -> None:
        """See ``BarrierRows``."""
        self._point, self._length = self._point.moved(self._step, length), length
        self._is_current = False
