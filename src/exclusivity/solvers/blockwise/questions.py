"""What Newton's method asks about rows that are reached block by block: a sample, and sums at a point.

Each block is answered for by the code for rows in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.objective.losses import CurvedLoss
from exclusivity.objective.objective import Contrast, Objective
from exclusivity.objective.problem import ERMProblem
from exclusivity.rows.design import DesignMatrix, LabelledRows
from exclusivity.rows.source import Question, Request, RowBlock, RowList, RowSource, SharedPasses, aligned
from exclusivity.solvers.base import SAMPLE_SEED
from exclusivity.solvers.newton import MANY_ROWS, BlockSource, LossSums, Point

SAMPLE_BYTES = 1 << 22
"""A sample of the rows, to start from, may bring so many bytes to the client."""

_FRACTION = 25


@dataclass(frozen=True, eq=False)
class Target:
    """One SVM on the rows: what it minimises, which classes it tells apart, on which columns (None: all)."""

    objective: Objective
    contrast: Contrast
    columns: Ints | None = None

    def rows_of(self, block: RowBlock) -> ERMProblem:
        """The problem on the rows of one block, which may be none."""
        X, codes, weights = aligned(block.X), block.codes, aligned(block.weights)
        if self.contrast.negative is not None:
            inside = np.flatnonzero((codes == self.contrast.positive) | (codes == self.contrast.negative))
            X, codes, weights = X[inside], codes[inside], weights[inside]
        design = DesignMatrix(X if self.columns is None else X[:, self.columns])
        labels = np.where(codes == self.contrast.positive, 1.0, -1.0)
        return ERMProblem(self.objective, LabelledRows(design, labels, weights))


@dataclass(frozen=True, eq=False)
class Evaluate:
    """The sums of ``RowSource.evaluate``."""

    target: Target
    point: Point
    loss: CurvedLoss
    curvature: bool

    def answer(self, block: RowBlock, state: object) -> tuple[LossSums, None]:
        """See ``Request``."""
        problem = self.target.rows_of(block)
        if problem.design.n_rows == 0:
            return no_sums(problem.design.n_features, self.curvature), None
        with np.errstate(all="ignore"):  # what overflows loses every comparison
            sums = BlockSource(problem).evaluate(self.point, self.loss, curvature=self.curvature)
        return sums, None


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
class Slopes:
    """The slopes of ``RowSource.slopes``."""

    target: Target
    point: Point
    step: Point
    loss: CurvedLoss
    lengths: Floats

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, None]:
        """See ``Request``."""
        with np.errstate(all="ignore"):
            source = BlockSource(self.target.rows_of(block))
            return source.slopes(self.point, self.step, self.loss, self.lengths), None


@dataclass(frozen=True, eq=False)
class CurvatureRows:
    """The rows of ``RowSource.curvature_rows``; asked only where all rows are fewer than the features."""

    target: Target
    point: Point
    loss: CurvedLoss

    def answer(self, block: RowBlock, state: object) -> tuple[RowList, None]:
        """See ``Request``."""
        problem = self.target.rows_of(block)
        rows, weights = BlockSource(problem).curvature_rows(self.point, self.loss)
        return RowList(rows, np.zeros(len(weights)), weights), None


def no_sums(n_features: int, curvature: bool) -> LossSums:
    """The sums over no rows."""
    size = n_features + 1
    hessian = np.zeros((size, size)) if curvature else None
    return LossSums(0.0, 0.0, np.zeros((2, n_features)), np.zeros(2), np.zeros(2), hessian, 0.0, 0)


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
class Sample:
    """A random share of all rows."""

    rows: RowList
    fraction: float

    def problem_of(self, target: Target) -> ERMProblem | None:
        """The target's problem on the sample, weights scaled up to those of all rows.

        None where the sample has one class only: there is nothing to learn from it.
        """
        rows = self.rows
        problem = target.rows_of(RowBlock(rows.X, rows.labels.astype(np.int32), rows.weights))
        if problem.design.n_rows == 0 or abs(problem.labels.sum()) == len(problem.labels):
            return None
        return problem.changed(weights=problem.weights / self.fraction)


def draw_sample(rows: RowSource) -> Sample | None:
    """At most ``SAMPLE_BYTES`` of the rows; None where they are few."""
    if rows.n_rows <= MANY_ROWS:
        return None
    most = SAMPLE_BYTES / (8 * rows.n_features)
    n_wanted = min(max(rows.n_rows / _FRACTION, MANY_ROWS), most)
    drawn: RowList = rows.total(Draw(n_wanted / rows.n_rows))
    return Sample(drawn, len(drawn.weights) / rows.n_rows)


class BlockwiseSource:
    """A ``RowSource`` whose rows are with the workers: the sums of ``BlockSource``, block by block.

    Parameters
    ----------
    meeting : Meeting
        Where questions are asked.
    place : int
        The place in that meeting.
    target : Target
        The SVM to solve.
    """

    def __init__(self, meeting: SharedPasses, place: int, target: Target) -> None:
        self._meeting, self._place, self.target = meeting, place, target
        scale, columns = meeting.rows.row_scale, target.columns
        self.n_rows = meeting.rows.n_rows
        self.row_scale = scale if columns is None else replace(scale, columns=scale.columns[columns])
        self.n_features = meeting.rows.n_features if columns is None else len(columns)
        self.passes = 0.0

    def ask(self, request: Request) -> Any:
        """The total over all blocks: one pass."""
        self.passes += 1
        return self._meeting.ask(self._place, Question(request)).total

    def evaluate(self, point: Point, loss: CurvedLoss, *, curvature: bool) -> LossSums:
        """See ``RowSource``."""
        sums: LossSums = self.ask(Evaluate(self.target, point, loss, curvature))
        return sums

    def slopes(self, point: Point, step: Point, loss: CurvedLoss, lengths: Floats) -> Floats:
        """See ``RowSource``."""
        return np.asarray(self.ask(Slopes(self.target, point, step, loss, lengths)))

    def curvature_rows(self, point: Point, loss: CurvedLoss) -> tuple[Matrix, Floats]:
        """See ``RowSource``: rows travel, but they are fewer than the features and so than a Hessian's."""
        rows: RowList = self.ask(CurvatureRows(self.target, point, loss))
        return rows.X, rows.weights

    def dual_vector(self, point: Point, loss: CurvedLoss, factors: Floats) -> Floats:
        """See ``RowSource``: none here."""
        return np.empty(0)

    def advance(self, request: Request, states: Any) -> tuple[Any, Any]:
        """The same for a request that needs states of the blocks and leaves new ones with them."""
        self.passes += 1
        answer = self._meeting.ask(self._place, Question(request, states, keeps_state=True))
        assert answer.states is not None  # noqa: S101 -- asked for
        return answer.total, answer.states
