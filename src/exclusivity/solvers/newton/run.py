"""Where methods start, the rows as they see them, and the record of a run.

Methods see rows only through questions that are reduced over blocks of rows. A question is a function of the
rows of one block (``BlockOfRows``), and what it returns adds up over the blocks. ``ProblemRows`` puts it to
all rows of a problem: ``MemoryRows``, here, to a matrix in memory, which is one block; ``TargetRows`` of
``solvers.blocks`` to any ``RowSource``. Whatever is kept with a block between two questions (the multipliers
of its rows, say) is a state that the first one returns and the next one takes. Questions are in ``sums`` and,
of the interior point and of shrinking, in ``barrier``.

Inside a run is the reduced SVM, outside the ERM of K members.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any, Protocol

import numpy as np

from exclusivity._typing import Bools, Floats
from exclusivity.objective.objective import Objective, relative_gap
from exclusivity.objective.problem import ERMProblem
from exclusivity.rows.design import RowScale
from exclusivity.solvers.base import Callback, Incumbent, IterationRecord, Recorder, SolverResult, Status
from exclusivity.solvers.newton.sums import BlockOfRows, Certificate, Point

Question = Callable[..., Any]
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
    def reduce(self, question: Question, *arguments: Any) -> Any:
        """Sum ``question(block, *arguments)`` over the blocks: one pass."""

    @abstractmethod
    def advance(self, question: Question, states: Any, *arguments: Any, reads: float = 1) -> tuple[Any, Any]:
        """Sum ``question(block, state, *arguments)``, which also returns a new state for each block.

        ``states`` is None at first, and then what the last call returned. Of rows in memory the question
        ``reads`` all rows so often.
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

    def reduce(self, question: Question, *arguments: Any) -> Any:
        """See ``ProblemRows``."""
        self.passes += 1
        return question(self._block, *arguments)

    def advance(self, question: Question, states: Any, *arguments: Any, reads: float = 1) -> tuple[Any, Any]:
        """See ``ProblemRows``: the state of the one block."""
        self.passes += reads
        sums, state = question(self._block, states, *arguments)
        return sums, state


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
