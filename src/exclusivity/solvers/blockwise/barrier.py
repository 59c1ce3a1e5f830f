"""The interior-point method's side of rows that are reached block by block, in three rounds per step."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.design import DesignMatrix
from exclusivity.rows.source import RowBlock
from exclusivity.solvers.blockwise.questions import BlockwiseSource, Target
from exclusivity.solvers.newton import (
    Barrier,
    Certificate,
    LossSums,
    NewtonSystem,
    Point,
    bordered_gram,
    bound_from_sums,
    objective_from_sums,
    repaired_weights,
    ridged_system,
)


@dataclass(frozen=True, eq=False)
class BarrierSums:
    """What an interior-point step has to know of all rows; see ``BarrierRows``.

    ``slope`` and ``curvature`` make the complementarity after a step of length t a parabola in t.
    ``dual_weights`` is X^T (y alpha) with y . alpha behind it. ``right_sides`` holds X^T (y D v) and y . D v
    for sigma_mu = 0 and, in its second row, how they change with sigma_mu.
    """

    total_cost: float = 0.0
    complementarity: float = 0.0
    slope: float = 0.0
    curvature: float = 0.0
    longest: float = np.inf
    gram: Floats | None = None
    dual_weights: Floats | None = None
    right_sides: Floats | None = None
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
    """Move by ``length`` (at the first time: begin), then linearise at ``point`` with sigma_mu = 0."""

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
            weighted = barrier.D * barrier.right_side(0.0, correct=False)
            sums = BarrierSums(
                total_cost=float(barrier.costs.sum()),
                complementarity=barrier.complementarity,
                gram=_gram(problem.design, barrier.D),
                dual_weights=_folded(problem, barrier.alpha),
                right_sides=np.array([_folded(problem, weighted)]),
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
                barrier.right_side(self.sigma_mu, correct=True)
            barrier.turn(barrier.D * _gains(problem, self.step))
            right_sides = None
            if self.sigma_mu is None:
                # On a copy: the corrector does it again, from the predictor's directions.
                trial = copy.copy(barrier)
                at_zero = trial.D * trial.right_side(0.0, correct=True)
                change = trial.D * trial.right_side_slope()
                right_sides = np.array([_folded(problem, at_zero), _folded(problem, change)])
            slope, curvature = barrier.complementarity_growth()
            sums = BarrierSums(
                complementarity=barrier.complementarity,
                slope=slope,
                curvature=curvature,
                longest=barrier.longest_step(),
                right_sides=right_sides,
            )
        return sums, barrier


class BlockwiseBarrier:
    """A ``BarrierRows`` in three rounds per step; multipliers and slacks never leave the workers.

    Linearising also gives the matrix and the predictor's right-hand side; turning to the predictor also gives
    the corrector's, which is linear in sigma_mu; turning to the corrector gives the longest step. Moving
    waits for the next round.
    """

    def __init__(self, source: BlockwiseSource, start: Point) -> None:
        self._source, self._target, self.point = source, source.target, start
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
            request = Linearise(self._target, self.point, self._length)
            self._linearised, self._states = self._source.advance(request, self._states)
            self._is_current = True
        return self._linearised

    @property
    def passes(self) -> float:
        """See ``BarrierRows``."""
        return self._source.passes - self._before

    def dual_weights(self) -> Floats:
        """See ``BarrierRows``."""
        return repaired_weights(self._dual(), self._target.objective)

    def certify(self, point: Point) -> Certificate:
        """See ``BarrierRows``: from the sums at the current point, and one more pass at another one."""
        objective, scale, sums = self._target.objective, self._source.row_scale, self._dual()
        bound, _ = bound_from_sums(sums, objective, scale)
        if not objective.penalty.is_smooth:  # weights have been set to zero
            sums = self._source.evaluate(point, objective.loss, curvature=False)
        return Certificate(*objective_from_sums(point, sums, objective, scale), bound)

    def rough_loss(self) -> float | None:
        """See ``BarrierRows``: the sums at the current point prove something as they are."""
        return None

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
        dual_weights = self._begin().dual_weights
        assert dual_weights is not None  # noqa: S101 -- linearising gives it
        return dual_weights[:-1].copy(), float(dual_weights[-1])

    def system(self, ridge: Floats, fit_intercept: bool) -> NewtonSystem:
        """See ``BarrierRows``."""
        gram = self._begin().gram
        assert gram is not None  # noqa: S101 -- linearising gives it
        return ridged_system(gram.copy(), ridge, fit_intercept)

    def right_side(self, sigma_mu: float, correct: bool) -> tuple[Floats, float]:
        """See ``BarrierRows``."""
        self._sigma_mu = sigma_mu if correct else None
        right_sides = self._sums.right_sides if correct else self._begin().right_sides
        assert right_sides is not None  # noqa: S101 -- both rounds give them
        line = right_sides[0] + sigma_mu * right_sides[1] if correct else right_sides[0]
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
        return sums.complementarity + length * (sums.slope + length * sums.curvature)

    def move(self, length: float) -> None:
        """See ``BarrierRows``."""
        self.point, self._length = self.point.moved(self._step, length), length
        self._is_current = False


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
        weighted_sums=problem.design.transposed_times(np.stack([alpha, y * alpha], axis=1)).T,
        alpha_sums=np.array([alpha.sum(), y @ alpha]),
        conjugates=np.array([conjugate.sum(), y @ conjugate]),
        curvature=None,
        cost=float(cost.sum()),
        n_terms=float(len(y)),
    )
