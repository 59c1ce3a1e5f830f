"""What the Newton solver asks about one block of rows, answered by its own code for rows in memory."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from exclusivity.problem import (
    Contrast,
    CurvedLoss,
    DesignMatrix,
    ERMProblem,
    LabelledRows,
    Objective,
    member_costs,
)
from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers.blockwise.rows import BlockRows, RowBlock, RowList, aligned
from exclusivity.solvers.newton.barrier import Barrier
from exclusivity.solvers.newton.linear import bordered_gram
from exclusivity.solvers.newton.run import LossSums, Point
from exclusivity.solvers.newton.solver import MANY_ROWS
from exclusivity.solvers.newton.source import BlockSource

SAMPLE_BYTES = 1 << 22
"""A sample of the rows, to start from, may bring so many bytes to the client."""

_FRACTION = 25
_SEED = 20160328


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

    def answer(self, block: RowBlock, state: Any) -> tuple[Floats, None]:
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


@dataclass(frozen=True, eq=False)
class BarrierSums:
    """What an interior-point step has to know of all rows; see ``BarrierRows``.

    ``slope`` and ``bend`` make the complementarity after a step of length t a parabola in t. ``pull`` is
    X^T (y alpha) with y . alpha behind it. ``aims`` holds X^T (y D v) and y . D v for sigma_mu = 0 and, in
    its second row, how they change with sigma_mu.
    """

    total_cost: float = 0.0
    complementarity: float = 0.0
    slope: float = 0.0
    bend: float = 0.0
    longest: float = np.inf
    gram: Floats | None = None
    pull: Floats | None = None
    aims: Floats | None = None
    dual: LossSums | None = None

    def __add__(self, other: BarrierSums) -> BarrierSums:
        """The sums over both sets of rows, and the shorter of the two longest steps."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            mine, yours = getattr(self, field.name), getattr(other, field.name)
            if field.name == "longest":
                values[field.name] = min(mine, yours)
            else:
                values[field.name] = mine if mine is None else mine + yours
        return BarrierSums(**values)


@dataclass(frozen=True, eq=False)
class Linearise:
    """Move by ``length`` (at the first time: begin), then linearise at ``point`` and aim at zero."""

    target: Target
    point: Point
    length: float

    def answer(self, block: RowBlock, state: Barrier | None) -> tuple[BarrierSums, Barrier]:
        """See ``Request``."""
        problem = self.target.rows_of(block)
        with np.errstate(all="ignore"):
            gains = _gains(problem, self.point)
            if state is None:
                barrier = Barrier(member_costs(problem), problem.loss, 1.0, gains)
            else:
                barrier = copy.copy(state)
                barrier.move(self.length)
            barrier.linearise(gains)
            aimed = barrier.D * barrier.aim(0.0, correct=False)
            sums = BarrierSums(
                total_cost=float(barrier.costs.sum()),
                complementarity=barrier.complementarity,
                gram=_gram(problem.design, barrier.D),
                pull=_folded(problem, barrier.alpha),
                aims=np.array([_folded(problem, aimed)]),
                dual=_dual_sums(problem, barrier, gains),
            )
        return sums, barrier


@dataclass(frozen=True, eq=False)
class Turn:
    """The directions for a change of the point; with ``sigma_mu`` those of the corrector."""

    target: Target
    step: Point
    sigma_mu: float | None

    def answer(self, block: RowBlock, state: Barrier) -> tuple[BarrierSums, Barrier]:
        """See ``Request``."""
        problem, barrier = self.target.rows_of(block), copy.copy(state)
        with np.errstate(all="ignore"):
            if self.sigma_mu is not None:
                barrier.aim(self.sigma_mu, correct=True)
            barrier.turn(barrier.D * _gains(problem, self.step))
            aims = None
            if self.sigma_mu is None:
                # Aim on a copy: the corrector aims again, from the predictor's directions.
                trial = copy.copy(barrier)
                at_zero = trial.D * trial.aim(0.0, correct=True)
                change = trial.D * trial.aim_slope()
                aims = np.array([_folded(problem, at_zero), _folded(problem, change)])
            slope, bend = barrier.complementarity_growth()
            sums = BarrierSums(
                complementarity=barrier.complementarity,
                slope=slope,
                bend=bend,
                longest=barrier.longest_step(),
                aims=aims,
            )
        return sums, barrier


def no_sums(n_features: int, curvature: bool) -> LossSums:
    """The sums over no rows."""
    size = n_features + 1
    hessian = np.zeros((size, size)) if curvature else None
    return LossSums(0.0, 0.0, np.zeros((2, n_features)), np.zeros(2), np.zeros(2), hessian, 0.0, 0)


def _gains(problem: ERMProblem, point: Point) -> Floats:
    return np.asarray(problem.labels * (problem.design.times(point.weights) + point.intercept))


def _folded(problem: ERMProblem, values: Floats) -> Floats:
    """X^T (y values) with y . values behind it."""
    signed = problem.labels * values
    return np.append(problem.design.transposed_times(signed), signed.sum())


def _gram(design: DesignMatrix, weights: Floats) -> Floats:
    gram = np.zeros((design.n_features + 1, design.n_features + 1))
    for rows, block in design.blocks(1):
        gram += bordered_gram(block, weights[rows])
    return gram


def _dual_sums(problem: ERMProblem, barrier: Barrier, gains: Floats) -> LossSums:
    """The loss at the point, and the sums of the dual vector that the barrier holds."""
    y, cost, loss = problem.labels, barrier.costs, problem.loss
    alpha = np.clip(barrier.alpha, 0.0, cost * loss.largest_slope)
    value = float(cost @ loss.value(1 - gains))
    conjugate = loss.conjugate(alpha, cost)
    return LossSums(
        loss=value,
        smoothed=value,
        pulls=problem.design.transposed_times(np.stack([alpha, y * alpha], axis=1)).T,
        masses=np.array([alpha.sum(), y @ alpha]),
        conjugates=np.array([conjugate.sum(), y @ conjugate]),
        curvature=None,
        cost=float(cost.sum()),
        n_terms=float(len(y)),
    )


@dataclass(frozen=True, eq=False)
class Draw:
    """Asks for rows drawn at random from every block, always the same ones."""

    fraction: float

    def answer(self, block: RowBlock, state: Any) -> tuple[RowList, None]:
        """See ``Request``."""
        n_rows = block.X.shape[0]
        rng = np.random.default_rng([_SEED, n_rows])
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


def draw_sample(rows: BlockRows) -> Sample | None:
    """At most ``SAMPLE_BYTES`` of the rows; None where they are few."""
    if rows.n_rows <= MANY_ROWS:
        return None
    most = SAMPLE_BYTES / (8 * rows.n_features)
    n_wanted = min(max(rows.n_rows / _FRACTION, MANY_ROWS), most)
    drawn: RowList = rows.total(Draw(n_wanted / rows.n_rows))
    return Sample(drawn, len(drawn.weights) / rows.n_rows)
