"""The two views of rows that the Newton solver knows, over rounds: ``RowSource`` and ``BarrierRows``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from exclusivity.problem import CurvedLoss
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.solvers.blockwise.bands import Band, NearMargin
from exclusivity.solvers.blockwise.meeting import Meeting
from exclusivity.solvers.blockwise.questions import (
    BarrierSums,
    CurvatureRows,
    Evaluate,
    Linearise,
    Slopes,
    Target,
    Turn,
)
from exclusivity.solvers.blockwise.rows import Question, Request, RowList
from exclusivity.solvers.newton.linear import NewtonSystem, ridged_system
from exclusivity.solvers.newton.source import LossSums, Point


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
        """The rows' side of the interior-point method, beginning at ``start``."""
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
    def dual(self) -> LossSums:
        """The loss at the current point, and the sums of the dual vector there: what certifies it."""
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
