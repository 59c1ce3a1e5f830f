"""The contract between solvers and rows, wherever these are: reduce a question over blocks of rows.

Solvers ask questions about all rows at once. A question is answered for one block of rows at
a time, the answers add up, and that is all a source has to arrange: in a loop, in processes, on a cluster. A
question may leave something with a block (the multipliers of its rows, say) that a later one needs again.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from threading import Condition
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Floats, Matrix
from exclusivity.rows.design import DesignMatrix, RowScale


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows in memory.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Of float32 or float64; for ``RobustAdditiveClassifier`` any table.
    codes : ndarray of int, shape (n_rows,)
        The number of each row's class.
    weights : ndarray of shape (n_rows,)
        Sample weights above 0; class weights are not part of them.
    """

    X: Matrix
    codes: NDArray[np.int32]
    weights: Floats


class Request(Protocol):
    """A question about one block of rows."""

    def answer(self, block: Any, state: Any) -> tuple[Any, Any]:
        """Return what adds up over the blocks, and the block's state for later questions, if any."""


@dataclass(frozen=True, eq=False)
class Question:
    """A request to all blocks, with the states that an earlier one left with them."""

    request: Request
    states: Any = None
    keeps_state: bool = False


@dataclass(frozen=True, eq=False)
class Answer:
    """The total over all blocks, and what to give back for their states."""

    total: Any
    states: Any


class RowSource(ABC):
    """A source of rows.

    Attributes
    ----------
    n_rows, n_features : int
    row_scale : RowScale
        What rounding errors of products with the rows depend on: certificates of linear models need to know.
    """

    n_rows: int
    n_features: int
    row_scale: RowScale

    @abstractmethod
    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions in one pass over the rows."""

    def abandon(self, error: BaseException) -> None:  # noqa: B027 -- nothing to do, as a rule
        """Give up a pass that is under way in another thread; by default it just ends by itself."""

    def total(self, request: Request) -> Any:
        """Return the total of one question without a state."""
        return self.ask([Question(request)])[0].total


class LocalBlocks(RowSource):
    """A source of rows in this process that gives its blocks again in every pass.

    Subclasses say how many rows and features there are, and what the blocks are: always the same ones.
    """

    _n_blocks: int | None = None

    @abstractmethod
    def blocks(self) -> Iterator[RowBlock]:
        """Yield all blocks, in the same order every time."""

    @cached_property
    def row_scale(self) -> RowScale:  # type: ignore[override]
        """See ``RowSource``: one pass, found once."""
        return reduce(operator.add, (DesignMatrix(block.X).row_scale for block in self.blocks()))

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Put all questions to one block after the other."""
        totals: list[Any] = [None] * len(questions)
        states: list[list[Any]] = [[] for _ in questions]
        expected, n_blocks = self._n_blocks, 0
        for at, block in enumerate(self.blocks()):
            n_blocks = at + 1
            if expected is not None and n_blocks > expected:
                break
            for number, question in enumerate(questions):
                before = None if question.states is None else question.states[at]
                part, state = question.request.answer(block, before)
                totals[number] = part if at == 0 else totals[number] + part
                states[number].append(state)
        if expected is not None and n_blocks != expected:
            raise RuntimeError(
                f"blocks() yields more or fewer blocks than before ({expected}); give the same in every pass."
            )
        self._n_blocks = n_blocks
        return [
            Answer(total, kept if question.keeps_state else None)
            for total, kept, question in zip(totals, states, questions, strict=True)
        ]


class SharedPasses:
    """Several solvers, each in its thread, that look at the rows together.

    A pass over the rows starts when everybody who has not left has a question.

    Parameters
    ----------
    rows : RowSource
    n_solvers : int
    """

    def __init__(self, rows: RowSource, n_solvers: int) -> None:
        self.rows, self.n_solvers, self._n_present = rows, n_solvers, n_solvers
        self._questions: dict[int, Question] = {}
        self._answers: dict[int, Answer] = {}
        self._error: BaseException | None = None
        self._is_held = False
        self._changed = Condition()

    def ask(self, place: int, question: Question) -> Answer:
        """Wait for the others, then for the answer."""
        with self._changed:
            self._questions[place] = question
            while place not in self._answers:
                if self._error is not None:
                    raise self._error
                if len(self._questions) == self._n_present and not self._is_held:
                    self._hold()
                else:
                    self._changed.wait()
            return self._answers.pop(place)

    def leave(self) -> None:
        """Leave: passes no longer wait for this solver."""
        with self._changed:
            self._n_present -= 1
            self._changed.notify_all()

    def stop(self, error: BaseException) -> None:
        """Answer no request any more, and give up the pass that is under way."""
        with self._changed:
            self._error = error
            self._changed.notify_all()
        self.rows.abandon(error)

    def _hold(self) -> None:
        places = sorted(self._questions)
        questions = [self._questions[place] for place in places]
        self._is_held = True
        self._changed.release()  # during the pass: others may leave, or stop it
        try:
            answers = self.rows.ask(questions)
        except BaseException as error:
            self._changed.acquire()
            self._error = error
            raise
        else:
            self._changed.acquire()
            self._answers.update(zip(places, answers, strict=True))
        finally:
            self._is_held = False
            self._questions.clear()
            self._changed.notify_all()
