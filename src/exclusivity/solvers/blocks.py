"""Binary problems on rows that are reached block by block: one run each, on shared passes.

A ``Target`` says what one problem minimises and which classes it sets against each other. Its rows in a block
are a problem in memory, of which the methods ask the questions that they ask of rows in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.objective import Contrast, Objective
from exclusivity.objective.problem import ERMProblem
from exclusivity.rows.design import DesignMatrix, LabelledRows, RowList, aligned
from exclusivity.rows.source import Question, RowBlock, RowSource, SharedPasses
from exclusivity.solvers.base import SAMPLE_SEED, Callback, SolverResult, Start
from exclusivity.solvers.newton.run import Guess, ProblemRows, Run
from exclusivity.solvers.newton.solver import (
    DEFAULT_MAX_ITER,
    MANY_ROWS,
    Regime,
    RowFacts,
    Sample,
    choose_regime,
    continue_run,
    guess_of_sample,
)
from exclusivity.solvers.newton.sums import BlockOfRows, Certificate, Point, evaluate, objective_from_sums

SAMPLE_BYTES = 1 << 22
"""A sample of the rows, to start from, may bring so many bytes to the client."""

WORKING_BYTES = 1 << 23
"""A working set of rows near the margin may bring so many, all problems together."""

_FRACTION = 25


@dataclass(frozen=True, eq=False)
class Target:
    """One SVM on the rows of a source.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    contrast : Contrast
        Which classes are set against each other.
    columns : ndarray of int or None
        On which columns; None: all.
    class_weights : ndarray of shape (n_classes,) or None
        A factor on the weights of the rows of each class.
    """

    objective: Objective
    contrast: Contrast
    columns: Ints | None = None
    class_weights: Floats | None = None

    def rows_of(self, block: RowBlock) -> ERMProblem:
        """Return the problem on the rows of one block, which may be none."""
        X, codes, weights = aligned(block.X), block.codes, aligned(block.weights)
        if self.class_weights is not None:
            weights = weights * self.class_weights[codes]
        if self.contrast.negative is not None:
            inside = np.flatnonzero((codes == self.contrast.positive) | (codes == self.contrast.negative))
            X, codes, weights = X[inside], codes[inside], weights[inside]
        design = DesignMatrix(X if self.columns is None else X[:, self.columns])
        labels = np.where(codes == self.contrast.positive, 1.0, -1.0)
        return ERMProblem(self.objective, LabelledRows(design, labels, weights))


@dataclass(frozen=True, eq=False)
class OnTarget:
    """Asks the rows of a target in every block: ``question(BlockOfRows, [state,] *arguments)``."""

    target: Target
    question: Any
    arguments: tuple[Any, ...]
    has_state: bool = False

    def answer(self, block: RowBlock, state: Any) -> tuple[Any, Any]:
        """See ``Request``."""
        rows = BlockOfRows(self.target.rows_of(block))
        with np.errstate(all="ignore"):  # what overflows loses every comparison
            if self.has_state:
                sums, state = self.question(rows, state, *self.arguments)
                return sums, state
            return self.question(rows, *self.arguments), None


class TargetRows(ProblemRows):
    """The rows of a target in all blocks of a source.

    Parameters
    ----------
    passes : SharedPasses
        Where questions are asked.
    place : int
        The place among those who share the passes.
    target : Target
        Of one member.
    """

    def __init__(self, passes: SharedPasses, place: int, target: Target) -> None:
        self._passes, self._place, self._target = passes, place, target
        self.objective, self.problem = target.objective, None
        scale, columns = passes.rows.row_scale, target.columns
        self.n_rows = passes.rows.n_rows
        self.row_scale = scale if columns is None else replace(scale, columns=scale.columns[columns])
        self.n_features = passes.rows.n_features if columns is None else len(columns)
        self.most_fetched = WORKING_BYTES // passes.n_solvers // (8 * max(self.n_features, 1))

    def reduce(self, question: Any, *arguments: Any) -> Any:
        """See ``ProblemRows``."""
        self.passes += 1
        request = OnTarget(self._target, question, arguments)
        return self._passes.ask(self._place, Question(request)).total

    def advance(self, question: Any, states: Any, *arguments: Any, reads: float = 1) -> tuple[Any, Any]:
        """See ``ProblemRows``."""
        self.passes += 1
        request = OnTarget(self._target, question, arguments, has_state=True)
        answer = self._passes.ask(self._place, Question(request, states, keeps_state=True))
        return answer.total, answer.states


@dataclass(frozen=True, eq=False)
class TotalLoss:
    """The loss of any members, C sum_k sum_i s_i phi(m_ik), and the sum of all C s_i."""

    target: Target
    weights: Floats
    intercepts: Floats

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, None]:
        """See ``Request``."""
        problem = self.target.rows_of(block)
        with np.errstate(over="ignore"):
            loss = problem.total_loss(self.weights, self.intercepts)
        return np.array([loss, problem.cost * problem.weights.sum()]), None


@dataclass(frozen=True, eq=False)
class Draw:
    """Asks for rows drawn at random from every block, always the same ones."""

    fraction: float

    def answer(self, block: RowBlock, state: object) -> tuple[RowList, None]:
        """See ``Request``."""
        n_rows = block.X.shape[0]
        rng = np.random.default_rng([SAMPLE_SEED, n_rows])
        chosen = np.flatnonzero(rng.random(n_rows) < self.fraction)
        return RowList(block.X[chosen], block.codes[chosen], block.weights[chosen]), None


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """A random share of all rows, with the numbers of their classes for labels."""

    rows: RowList
    fraction: float

    def of_target(self, target: Target) -> Sample | None:
        """Return the target's problem on them; None where they are of one class: nothing to learn then."""
        rows = self.rows
        problem = target.rows_of(RowBlock(rows.X, rows.labels.astype(np.int32), rows.weights))
        if problem.design.n_rows == 0 or abs(problem.labels.sum()) == len(problem.labels):
            return None
        return Sample(problem.changed(weights=problem.weights / self.fraction), self.fraction)


def draw_sample(rows: RowSource) -> DrawnRows | None:
    """Draw at most ``SAMPLE_BYTES`` of the rows; None where they are few."""
    if rows.n_rows <= MANY_ROWS:
        return None
    most = SAMPLE_BYTES / (8 * rows.n_features)
    n_wanted = min(max(rows.n_rows / _FRACTION, MANY_ROWS), most)
    drawn: RowList = rows.total(Draw(n_wanted / rows.n_rows))
    return DrawnRows(drawn, len(drawn.weights) / rows.n_rows)


def solve_targets(
    rows: RowSource,
    targets: Sequence[Target],
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    regime: Regime = "auto",
    starts: Sequence[Start | None] | None = None,
    callbacks: Sequence[Callback | None] | None = None,
) -> list[SolverResult]:
    """Solve for every target, on shared passes; ``targets`` hold the objectives of K members.

    ``regime`` is that of ``NewtonOptions``; all else as for ``solve_all``.
    """
    starts = starts or [None] * len(targets)
    is_hinge = targets[0].objective.loss.is_hinge
    drawn = draw_sample(rows) if is_hinge or any(start is None for start in starts) else None
    passes = SharedPasses(rows, len(targets))

    def solve(place: int) -> SolverResult:
        target, start, callback = (
            targets[place],
            starts[place],
            None if callbacks is None else callbacks[place],
        )
        run = Run(target.objective, tol, max_iter or DEFAULT_MAX_ITER, callback)
        target = replace(target, objective=target.objective.reduced())
        rows_of = TargetRows(passes, place, target)
        facts = RowFacts(rows_of.n_rows, rows_of.n_features, has_vectors=False)
        chosen = choose_regime(rows_of.objective, facts, regime)
        sample = None if drawn is None else drawn.of_target(target)
        guess = Guess(Point(np.zeros(rows_of.n_features), 0.0))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if start is not None:
                guess = _certify_start(run, rows_of, start)
            elif sample is not None:
                guess, _ = guess_of_sample(sample.problem, chosen)
            continue_run(run, rows_of, chosen, guess, sample)
        return run.result()

    def solve_and_leave(place: int) -> SolverResult:
        try:
            return solve(place)
        finally:
            passes.leave()

    if len(targets) == 1:
        return [solve_and_leave(0)]
    with ThreadPoolExecutor(len(targets)) as pool:
        try:
            return list(pool.map(solve_and_leave, range(len(targets))))
        except BaseException as error:  # Ctrl-C too: the others end with the pass they are in
            passes.stop(error)
            raise


def _certify_start(run: Run, rows: TargetRows, start: Start) -> Guess:
    """Certify the mean member of an earlier result; return it, or where its method was: one pass."""
    point = Point(start.weights.mean(axis=1), float(start.intercepts.mean()))
    sums = rows.reduce(evaluate, point, rows.objective.loss, False)
    objective = objective_from_sums(point, sums, rows.objective, rows.row_scale)
    run.take(point, Certificate(*objective, bound=0.0), is_start=True)
    if start.resumes(Guess, run.scale * objective[0], start.gap):  # its dual vector is not known: no gap
        going_on: Guess = start.state
        return going_on
    return Guess(point)
