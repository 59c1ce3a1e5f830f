"""A solver run: its best point, best bound and history, and the rows of the problem that it solves.

``Run`` takes in points of the reduced SVM and answers for the ERM of K members. The Newton methods ask
``ProblemRows`` for sums over all rows, of a function of the rows of one block (see ``sums``): ``MemoryRows``
has a matrix in memory, which is one block, ``TargetRows`` any ``RowSource``. Whatever a function keeps with a
block (the multipliers of its rows, say) is a state that it returns and the next one takes.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.objective.objective import Contrast, ERMProblem, Objective, objective_error, relative_gap
from exclusivity.rows.design import DesignMatrix, LabelledRows, RowScale, aligned
from exclusivity.rows.source import Question, RowBlock, SharedPasses
from exclusivity.solvers.base import Callback, History, IterationRecord, IterationState, SolverResult, Status
from exclusivity.solvers.sums import BlockOfRows, Certificate, Point

# exp of minus this is zero.
_NO_LOSS = 800.0

WORKING_BYTES = 1 << 23
"""A working set of rows near the margin may bring so many, all problems together."""


class Incumbent:
    """The best point and the best bound so far: methods need not be monotone, their answers are."""

    def __init__(self) -> None:
        self.objective, self.error, self.bound = np.inf, 0.0, -np.inf
        self.dual = np.empty(0)

    def raise_bound(self, bound: float, dual: Floats) -> None:
        """Take in a dual vector and the bound it proves."""
        if not bound > 0:  # zero is a dual vector too, and proves 0: nothing is worse, nor lost by overflow
            bound, dual = 0.0, np.zeros_like(dual)
        if bound > self.bound:
            self.bound, self.dual = bound, dual

    def offer(self, objective: float, weights: Floats, intercepts: Floats, error: float) -> None:
        """Take in a point, whose objective may be larger by ``error``; the first one is kept in any case."""
        if objective + error < self.objective + self.error or not np.isfinite(self.objective):
            self.objective, self.error = objective, error
            self.weights, self.intercepts = weights, intercepts

    def offer_anew(self, problem: ERMProblem, weights: Floats, intercepts: Floats) -> None:
        """Take in a point that has yet to be evaluated: one pass."""
        objective = problem.value(weights, intercepts)
        loss = max(objective - problem.regulariser.value(weights), 0.0)
        self.offer(
            objective, weights, intercepts, objective_error(problem, weights, intercepts, objective, loss)
        )

    @property
    def gap(self) -> float:
        """The relative gap between the two."""
        return relative_gap(self.objective + self.error, self.bound)

    def result(self, tol: float, status: Status, history: History, state: object = None) -> SolverResult:
        """Return the end of the run."""
        return SolverResult(
            weights=self.weights,
            intercepts=self.intercepts,
            objective=self.objective,
            gap=self.gap,
            dual=self.dual,
            converged=self.gap <= tol,
            n_iter=len(history.records),
            status=status,
            history=history,
            state=state,
        )


class Recorder:
    """The records of a run, and its callback."""

    def __init__(self, callback: Callback | None) -> None:
        self._callback = callback
        self._records: list[IterationRecord] = []
        self._started = perf_counter()

    def keep(self, record: IterationRecord) -> None:
        """Keep the record without calling the callback."""
        self._records.append(record)

    def amend(self, record: IterationRecord) -> None:
        """Keep the record in place of the last."""
        self._records[-1] = record

    def add(self, record: IterationRecord, members: Callable[[], tuple[Floats, Floats]]) -> bool:
        """Keep the record; True when the callback wants to stop.

        ``members`` gives weights and intercepts, and is asked only where a callback is set.
        """
        self.keep(record)
        if self._callback is None:
            return False
        seconds = perf_counter() - self._started
        return bool(self._callback(IterationState(record, *members(), seconds)))

    def __len__(self) -> int:
        return len(self._records)

    def history(self) -> History:
        """Return all records so far."""
        return History(tuple(self._records))


class Run:
    """Takes in certified points of the reduced SVM f and answers for F = K kappa f.

    Parameters
    ----------
    objective : Objective
        Of K members.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most iterations: certified points after a step.
    callback : callable or None
    offset : ndarray of shape (n_features,) or None
        What was taken from every row; intercepts of the answer make up for it.
    """

    def __init__(
        self,
        objective: Objective,
        tol: float,
        max_iter: int,
        callback: Callback | None = None,
        offset: Floats | None = None,
    ) -> None:
        self.objective, self.tol, self.max_iter, self._offset = objective, tol, max_iter, offset
        # Whether other threads want the run to end: compiled loops ask, as signals reach the main one alone.
        self.is_cancelled: Callable[[], bool] = getattr(callback, "is_cancelled", bool)
        self.scale = objective.n_members * objective.kappa
        self.passes = 0.0
        self._incumbent, self._recorder = Incumbent(), Recorder(callback)
        self._status: Status | None = None
        # Zero is a dual vector too, and proves 0: no bound is ever worse (or, by overflow, not a number).
        self._best_bound = 0.0
        self._dual: Callable[[], Floats] | None = None
        self._start: IterationRecord | None = None
        # Where the method is (a ``Guess``), for a warm start to continue from.
        self.state: Any = None

    @property
    def gap(self) -> float:
        """Relative gap of the best point so far."""
        return self._incumbent.gap

    @property
    def has_point(self) -> bool:
        """True once there is a point."""
        return bool(np.isfinite(self.best_objective))

    @property
    def best(self) -> Point:
        """The best point so far."""
        return Point(self._incumbent.weights, float(self._incumbent.intercepts[0]))

    @property
    def best_objective(self) -> float:
        """The reduced SVM's objective there; infinite before the first point."""
        return self._incumbent.objective / self.scale

    @property
    def is_over(self) -> bool:
        """True once the run has ended."""
        return self._status is not None

    def would_end(self, certificate: Certificate) -> bool:
        """Return whether a point with this certificate is good enough."""
        objective, bound = certificate.objective + certificate.error, max(certificate.bound, self._best_bound)
        return relative_gap(objective, bound) <= self.tol

    def take(
        self,
        point: Point,
        certificate: Certificate,
        *,
        residual: float = 0.0,
        mu: float = 0.0,
        is_start: bool = False,
        amends: bool = False,
    ) -> None:
        """Record a point of the reduced SVM and what is known of it.

        Where a method starts is no iteration, unless it is good enough: an iteration takes a step. A point
        that was noted before is none either: what is known of it now ``amends`` its record.
        """
        value, error = self.scale * certificate.objective, self.scale * certificate.error
        if certificate.bound > self._best_bound:
            self._best_bound, self._dual = certificate.bound, certificate.dual
        self._incumbent.raise_bound(self.scale * self._best_bound, np.empty(0))
        self._incumbent.offer(value, point.weights, np.array([point.intercept]), error)
        record = IterationRecord(
            iteration=len(self._recorder) + (0 if amends else 1),
            objective=value,
            error=error,
            bound=self._incumbent.bound,
            primal_residual=residual,
            dual_residual=0.0,
            mu=mu,
            passes=self.passes,
        )
        if is_start and not self.gap <= self.tol:
            self._start = record
            return
        if amends:
            self._recorder.amend(record)
        asked_to_stop = not amends and self._recorder.add(record, lambda: self._members(point))
        if self.gap <= self.tol:
            self._status = Status.CERTIFIED
        elif asked_to_stop:
            self._status = Status.CALLBACK
        elif len(self._recorder) >= self.max_iter:
            self._status = Status.MAX_ITER

    def note(self, point: Point, objective: float, *, residual: float = 0.0, mu: float = 0.0) -> bool:
        """Note a point of which nothing is proven yet; True if a callback ends the run here."""
        record = IterationRecord(
            iteration=len(self._recorder) + 1,
            objective=self.scale * objective,
            bound=self.scale * self._best_bound,
            primal_residual=residual,
            dual_residual=0.0,
            mu=mu,
            passes=self.passes,
        )
        if self._recorder.add(record, lambda: self._members(point)):
            self._status = Status.CALLBACK
        return self.is_over

    @property
    def may_go_on(self) -> bool:
        """True if there may be another iteration after the next."""
        return len(self._recorder) + 1 < self.max_iter

    def _members(self, point: Point) -> tuple[Floats, Floats]:
        """Return K equal members as read-only views: any number of them takes the memory of one."""
        K, intercept = self.objective.n_members, point.intercept
        if self._offset is not None:  # of all additions only the last one rounds
            intercept = fsum([intercept, *(-self._offset * point.weights)])
        weights = np.broadcast_to(point.weights[:, None], (len(point.weights), K))
        return weights, np.broadcast_to(np.array([intercept]), K)

    def result(self, n_rows: int = 0) -> SolverResult:
        """Return the end; a run that stalled before its tolerance counts as one that ran out of iterations.

        Writing the dual vector of ``n_rows`` rows down may cost a pass; without them the result's is empty.
        """
        if len(self._recorder) == 0 and self._start is not None:  # no step was possible
            self._recorder.keep(self._start)
        status, history = self._status or Status.MAX_ITER, self._recorder.history()
        dual = np.zeros(n_rows) if n_rows == 0 or self._dual is None else self._dual()
        weights, intercepts = self._members(self.best)
        found = self._incumbent.result(self.tol, status, history, self.state)
        return dataclasses.replace(found, weights=weights, intercepts=intercepts, dual=dual)


RowFunction = Callable[..., Any]
"""From a ``BlockOfRows`` (and a state, if it takes one) and arguments to what adds up over the blocks."""


class NewtonSystem(Protocol):
    """A system of linear equations A (dw, db) = (r_w, r_b), factorised or behind products."""

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """Return (dw, db)."""

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """Return A (dw, db)."""

    def restricted(self, free: Bools) -> NewtonSystem:
        """Return the system in which all other weights stay; its vectors have the free ones only."""


@dataclass(frozen=True, eq=False)
class Guess:
    """A point to start from, and what else is known there.

    That is a Newton system that is nearly right (from a sample of the rows, say) with the width of the
    rounding, or a dual vector.

    Where a run is to go on, ``method`` says with what: "factorised", "newton-cg" or "proximal" (with the
    width and the dual vector, and the passes spent), "shrinking" (the width of the next working set), or
    "interior" (the multipliers and slacks of the rows and of the penalty). ``tried_kernel``: the kernel has
    stalled.
    """

    point: Point
    system: NewtonSystem | None = None
    width: float | None = None
    dual: Floats | None = None
    method: str | None = None
    spent: float = 0.0
    tried_kernel: bool = False
    slacks: tuple[Floats, tuple[Floats, ...]] | None = None


class ProblemRows(ABC):
    """All rows of one binary problem, wherever they are.

    Attributes
    ----------
    objective : Objective
        Of the one member that is solved for.
    problem : ERMProblem or None
        The same with its rows, where they are in memory and vectors of all rows are at hand.
    n_rows, n_features : int
    row_scale : RowScale
        What rounding errors of products with the rows depend on.
    passes : float
        How often the rows have been read.
    most_fetched : float
        So many single rows may be asked for at once.
    """

    objective: Objective
    problem: ERMProblem | None
    n_rows: int
    n_features: int
    row_scale: RowScale
    passes: float = 0.0
    most_fetched: float = np.inf

    @abstractmethod
    def reduce(self, function: RowFunction, *arguments: Any) -> Any:
        """Sum ``function(block, *arguments)`` over the blocks: one pass."""

    @abstractmethod
    def advance(self, function: RowFunction, states: Any, *arguments: Any, reads: float = 1) -> Any:
        """Sum ``function(block, state, *arguments)``, which also returns a new state for each block.

        Returns the sum and the states. ``states`` is None at first, and then what the last call returned. Of
        rows in memory the function ``reads`` all rows so often.
        """


class MemoryRows(ProblemRows):
    """A dense or CSR matrix in memory: one block.

    Parameters
    ----------
    problem : ERMProblem
        Of one member.
    curvature : ndarray of shape (n_features + 1, n_features + 1) or None
        The matrix of second derivatives of all rows, p = 2, if it is known.
    """

    problem: ERMProblem

    def __init__(self, problem: ERMProblem, curvature: Floats | None = None) -> None:
        self.problem, self.objective, self._curvature = problem, problem.objective, curvature
        self.n_rows, self.n_features = problem.design.n_rows, problem.design.n_features

    @cached_property
    def _block(self) -> BlockOfRows:
        return BlockOfRows(self.problem, self._curvature)

    @property
    def row_scale(self) -> RowScale:  # type: ignore[override]
        """See ``ProblemRows``."""
        return self.problem.row_scale

    def reduce(self, function: RowFunction, *arguments: Any) -> Any:
        """See ``ProblemRows``."""
        self.passes += 1
        return function(self._block, *arguments)

    def advance(self, function: RowFunction, states: Any, *arguments: Any, reads: float = 1) -> Any:
        """See ``ProblemRows``: the state of the one block."""
        self.passes += reads
        return function(self._block, states, *arguments)


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
    """Asks the rows of a target in every block: ``function(BlockOfRows, [state,] *arguments)``."""

    target: Target
    function: RowFunction
    arguments: tuple[Any, ...]
    has_state: bool = False

    def answer(self, block: RowBlock, state: Any) -> tuple[Any, Any]:
        """See ``Request``."""
        rows = BlockOfRows(self.target.rows_of(block))
        with np.errstate(all="ignore"):  # what overflows loses every comparison
            if self.has_state:
                sums, state = self.function(rows, state, *self.arguments)
                return sums, state
            return self.function(rows, *self.arguments), None


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

    def reduce(self, function: RowFunction, *arguments: Any) -> Any:
        """See ``ProblemRows``."""
        self.passes += 1
        request = OnTarget(self._target, function, arguments)
        return self._passes.ask(self._place, Question(request)).total

    def advance(self, function: RowFunction, states: Any, *arguments: Any, reads: float = 1) -> Any:
        """See ``ProblemRows``."""
        self.passes += 1
        request = OnTarget(self._target, function, arguments, has_state=True)
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


def constant_result(problem: ERMProblem) -> SolverResult | None:
    """Return the optimum where one class has all the rows; None where a solver is needed.

    A free intercept at the margin, b = y t, leaves no loss and no weights: F = 0, which nothing can be below.
    A loss that never vanishes has no optimum, but from some intercept on it is 0 in floating point. Where
    bounds keep weights from zero, F is what those nearest to it cost.

    Examples
    --------
    >>> problem = ERMProblem.build(np.array([[1.0], [2.0]]), np.array([-1.0, -1.0]), n_members=3)
    >>> constant_result(problem).intercepts
    array([-1., -1., -1.])
    """
    labels = problem.labels
    is_solved = problem.fit_intercept and abs(labels.sum()) == len(labels)
    if len(labels) > 0 and not is_solved:
        return None
    side = float(labels[0]) if len(labels) > 0 else 0.0
    sign = side
    if problem.targets is not None:
        side *= float(np.max(problem.targets, initial=-np.inf))
    if not problem.loss.vanishes:
        side += sign * (_NO_LOSS - 1)
    weights, least = np.zeros(problem.design.n_features), 0.0
    if problem.objective.bounds is not None:  # what the nearest weights to zero say, the intercept outweighs
        weights = problem.objective.bounds.clip(weights)
        least = problem.n_members * problem.kappa * problem.penalty.value(weights)
        side += 2 * sign * np.abs(problem.design.times(weights)).max(initial=0.0)
    return SolverResult(
        weights=np.repeat(weights[:, None], problem.n_members, axis=1),
        intercepts=np.full(problem.n_members, side),
        objective=least,
        gap=0.0,
        dual=np.zeros(len(labels)),
        converged=True,
        n_iter=1,
        status=Status.CERTIFIED,
        history=History((IterationRecord(1, least, least, 0.0, 0.0, 0.0),)),
    )
