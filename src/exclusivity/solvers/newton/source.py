"""Rows as methods see them: only through questions that are reduced over blocks of rows.

A question is a function of the rows of one block (``BlockOfRows``), and what it returns adds up over the
blocks. ``ProblemRows`` puts it to all rows of a problem: ``MemoryRows``, here, to a matrix in memory, which
is one block; ``TargetRows`` of ``solvers.blocks`` to any ``RowSource``. Whatever is kept with a block between
two questions (the multipliers of its rows, say) is a state that the first one returns and the next one takes.
Questions are in ``sums`` and, of the interior point, in ``barrier``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.losses import CurvedLoss
from exclusivity.objective.objective import Objective
from exclusivity.objective.problem import ERMProblem
from exclusivity.rows.design import RowScale
from exclusivity.solvers.newton.run import LossSums, Point
from exclusivity.solvers.newton.sums import BlockOfRows, dual_vector, evaluate

Question = Callable[..., Any]
"""From a ``BlockOfRows`` (and a state, if it takes one) and arguments to what adds up over the blocks."""


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
        """The sum over the blocks of ``question(block, *arguments)``: one pass."""

    @abstractmethod
    def advance(self, question: Question, states: Any, *arguments: Any, reads: float = 1) -> tuple[Any, Any]:
        """The sum of ``question(block, state, *arguments)``, which also returns a new state for each block.

        ``states`` is None at first, and then what the last call returned. Of rows in memory the question
        ``reads`` all rows so often.
        """

    def evaluate(self, point: Point, loss: CurvedLoss, *, curvature: bool) -> LossSums:
        """All sums at ``point``; with ``curvature`` the (M+1) x (M+1) matrix of second derivatives."""
        sums: LossSums = self.reduce(evaluate, point, loss, curvature)
        return sums

    def dual_vector(self, point: Point, loss: CurvedLoss, factors: Floats) -> Floats:
        """c_i phi'(m_i) of all rows, the classes scaled by ``factors``; empty where vectors are too long."""
        return np.empty(0) if self.problem is None else self.reduce(dual_vector, point, loss, factors)


class MemoryRows(ProblemRows):
    """A dense or CSR matrix in memory: one block.

    Parameters
    ----------
    problem : ERMProblem
        Of one member.
    curvature : ndarray of shape (n_features + 1, n_features + 1) or None
        The matrix of second derivatives of all rows, p = 2, if it is known.
    """

    def __init__(self, problem: ERMProblem, curvature: Floats | None = None) -> None:
        self.problem, self.objective = problem, problem.objective
        self.n_rows, self.n_features = problem.design.n_rows, problem.design.n_features
        self._curvature = curvature

    @cached_property
    def _block(self) -> BlockOfRows:
        assert self.problem is not None  # noqa: S101 -- it is in memory
        return BlockOfRows(self.problem, self._curvature)

    @property
    def row_scale(self) -> RowScale:  # type: ignore[override]
        """See ``ProblemRows``."""
        assert self.problem is not None  # noqa: S101 -- it is in memory
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
