"""Rounds: questions go to all blocks of rows, their answers come back added up.

One round is one pass over the rows. The workers add the answers of the blocks in groups of eight, and these
again: only the total travels to the client. The order of the additions is fixed, so that results repeat bit
for bit, whichever worker does what and whichever worker dies.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from threading import Condition
from typing import Any, Protocol

from dask import delayed
from exclusivity.dask import sizes  # noqa: F401 -- workers import it with this module
from exclusivity.dask.blocks import RowBlock
from exclusivity.dask.engine import Engine

FAN_IN = 8
"""How many partial sums one task adds."""


class Request(Protocol):
    """A question about one block of rows."""

    def answer(self, block: RowBlock, state: Any) -> tuple[Any, Any]:
        """What adds up over the blocks, and the block's state for later rounds (None where there is none)."""


@dataclass(frozen=True, eq=False)
class States:
    """What a round left with the workers for one of its questions: its place in every block's answers."""

    answers: list[Any]
    place: int


@dataclass(frozen=True, eq=False)
class Question:
    """A request to all blocks, with the states that earlier rounds left on the workers."""

    request: Request
    states: States | None = None
    keeps_state: bool = False


@dataclass(frozen=True, eq=False)
class Answer:
    """The total over all blocks, and the states that now lie with the workers."""

    total: Any
    states: States | None


class Rows:
    """Blocks of rows on the workers.

    Parameters
    ----------
    engine : Engine
    blocks : list of Delayed
        Each a ``RowBlock``.
    n_rows, n_features : int
    """

    def __init__(self, engine: Engine, blocks: list[Any], n_rows: int, n_features: int) -> None:
        self.engine, self.blocks = engine, blocks
        self.n_rows, self.n_features = n_rows, n_features
        self.n_rounds = 0

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """All questions in one pass."""
        self.n_rounds += 1
        # Sent once to the scheduler and once to each worker, not once for each block.
        sent = delayed(pickle.loads)(pickle.dumps([question.request for question in questions]))
        keepers = any(question.keeps_state for question in questions)
        places = [None if q.states is None else q.states.place for q in questions]
        parts, states = [], []
        for number, block in enumerate(self.blocks):
            if keepers:
                before = [None if q.states is None else q.states.answers[number] for q in questions]
                answers = delayed(_answer_all)(sent, block, before, places)
                states.append(answers)
                answers = delayed(_sums)(answers)
            else:
                answers = delayed(_answer_sums)(sent, block)
            parts.append(answers)
        total = tree_sum(parts)
        if keepers:
            total, *states = self.engine.persist([total, *states])
        totals = self.engine.compute(total)
        return [
            Answer(value, States(states, place) if question.keeps_state else None)
            for place, (question, value) in enumerate(zip(questions, totals, strict=True))
        ]

    def total(self, request: Request) -> Any:
        """The answer to one question without a state."""
        return self.ask([Question(request)])[0].total


class Meeting:
    """Several solvers, each in its thread, that look at the rows together.

    A pass over the rows starts when everybody who has not left has a question.

    Parameters
    ----------
    rows : Rows
    n_parties : int
    """

    def __init__(self, rows: Rows, n_parties: int) -> None:
        self.rows, self._n_parties = rows, n_parties
        self._questions: dict[int, Question] = {}
        self._answers: dict[int, Answer] = {}
        self._error: BaseException | None = None
        self._changed = Condition()

    def ask(self, party: int, question: Question) -> Answer:
        """Wait for the others, then for the answer."""
        with self._changed:
            self._questions[party] = question
            while party not in self._answers:
                if self._error is not None:
                    raise self._error
                if len(self._questions) == self._n_parties:
                    self._hold()
                else:
                    self._changed.wait()
            return self._answers.pop(party)

    def leave(self) -> None:
        """One party less."""
        with self._changed:
            self._n_parties -= 1
            self._changed.notify_all()

    def stop(self, error: BaseException) -> None:
        """Nobody gets another answer."""
        # Without the lock: who holds it may be waiting for the cluster.
        self._error = error

    def _hold(self) -> None:
        parties = sorted(self._questions)
        try:
            answers = self.rows.ask([self._questions[party] for party in parties])
        except BaseException as error:
            self._error = error
            raise
        else:
            self._answers.update(zip(parties, answers, strict=True))
        finally:
            self._questions.clear()
            self._changed.notify_all()


def tree_sum(parts: list[Any]) -> Any:
    """The delayed total of lists of summands, added place by place."""
    while True:
        parts = [delayed(_added)(parts[at : at + FAN_IN]) for at in range(0, len(parts), FAN_IN)]
        if len(parts) == 1:
            return parts[0]


def _answer_all(
    requests: list[Request], block: RowBlock, before: list[Any], places: list[int | None]
) -> list[tuple[Any, Any]]:
    """All sums and states; ``before`` holds what earlier rounds answered, each state at its place there."""
    states = [
        None if place is None else answers[place][1] for answers, place in zip(before, places, strict=True)
    ]
    return [request.answer(block, state) for request, state in zip(requests, states, strict=True)]


def _answer_sums(requests: list[Request], block: RowBlock) -> list[Any]:
    return [request.answer(block, None)[0] for request in requests]


def _sums(answers: list[tuple[Any, Any]]) -> list[Any]:
    return [total for total, _ in answers]


def _added(parts: list[list[Any]]) -> list[Any]:
    add: Callable[[Any, Any], Any] = operator.add
    return [reduce(add, summands) for summands in zip(*parts, strict=True)]
