"""Rounds: questions go to all blocks of rows, their answers come back added up; the first one describes them.

One round is one pass over the rows. Blocks that lie together are asked by one task; what blocks answer is
added along a tree, eight neighbours at a time, and only the total travels to the client. A task adds those
parts of the tree that it has as a whole, so that the order of the additions is always that of the tree:
results repeat bit for bit, whichever worker has which block and whichever worker dies.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from uuid import uuid4

import numpy as np
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray

from exclusivity._typing import Ints
from exclusivity.classifier import NO_WEIGHT, ClassWeight, class_weights, require_two_classes
from exclusivity.dask import sizes  # noqa: F401 -- workers import it with this module
from exclusivity.dask.blocks import (
    BlockFacts,
    Collection,
    LabelledBlock,
    block_facts,
    checked_block,
    encoded_block,
    joint_blocks,
)
from exclusivity.dask.engine import Engine
from exclusivity.rows.design import RowScale, aligned
from exclusivity.rows.source import (
    Answer,
    Question,
    Request,
    RowBlock,
    RowSource,
)

FAN_IN = 8
"""How many partial sums one task adds."""

# Requests up to so many bytes, all copies together, travel with the tasks; larger ones are a task's result.
_SMALL = 1 << 20

Nodes = dict[tuple[int, int], list[Any]]
"""Sums at (level, place) of the tree, one for each question; blocks are on level 0."""


@dataclass(frozen=True, eq=False)
class States:
    """What a round left with the workers for one of its questions: its place in every group's answers."""

    answers: list[Any]
    place: int


class Rows(RowSource):
    """Blocks of rows on the workers.

    Parameters
    ----------
    engine : Engine
    blocks : list of Delayed
        Each a ``RowBlock``.
    n_rows, n_features : int
    groups : list of lists of int, or None
        Blocks that lie together and are asked by one task; None: every block by its own.
    row_scale : RowScale or None
        Where it is not known, nothing can be certified.
    """

    def __init__(
        self,
        engine: Engine,
        blocks: list[Any],
        n_rows: int,
        n_features: int,
        groups: list[list[int]] | None = None,
        row_scale: RowScale | None = None,
    ) -> None:
        self.engine, self.n_rows, self.n_features = engine, n_rows, n_features
        unknown = RowScale(np.inf, np.full(n_features, np.inf), n_features)
        self.row_scale = unknown if row_scale is None else row_scale
        self.groups = [[number] for number in range(len(blocks))] if groups is None else groups
        self.n_blocks, self.n_rounds = len(blocks), 0
        self._keys = [block.key for block in blocks]
        self._graph = dict(HighLevelGraph.merge(*[block.dask for block in blocks]))

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """All questions in one pass."""
        self.n_rounds += 1
        name = uuid4().hex
        graph: dict[str, Any] = {}
        sent: Any = pickle.dumps([question.request for question in questions])
        if len(sent) * len(self.groups) > _SMALL:
            graph[f"request-{name}"] = (bytes, sent)
            sent = f"request-{name}"
        keeps = any(question.keeps_state for question in questions)
        places = [None if question.states is None else question.states.place for question in questions]
        sums, kept = [], []
        for at, numbers in enumerate(self.groups):
            blocks = [self._keys[number] for number in numbers]
            before = [None if q.states is None else q.states.answers[at].key for q in questions]
            answers, part = f"answers-{name}-{at}", f"part-{name}-{at}"
            if keeps:
                graph[answers] = (_answers, sent, blocks, before, places)
                graph[part] = (_part, answers, numbers, self.n_blocks)
            else:
                graph[part] = (_answer_sums, sent, blocks, before, places, numbers, self.n_blocks)
            kept.append(answers)
            sums.append(part)
        total = _tree(sums, self.n_blocks, name, graph)
        return self._run(questions, total, kept if keeps else [], graph)

    def _run(
        self, questions: Sequence[Question], total: str, kept: list[str], graph: dict[str, Any]
    ) -> list[Answer]:
        known = [answers.dask for q in questions if q.states is not None for answers in q.states.answers]
        whole = {**self._graph, **HighLevelGraph.merge(*known), **graph}
        values = [Delayed(key, whole) for key in (total, *kept)]
        if kept:
            values = self.engine.persist(values)
        (totals,) = self.engine.compute(values[0]).values()
        return [
            Answer(value, States(values[1:], place) if question.keeps_state else None)
            for place, (question, value) in enumerate(zip(questions, totals, strict=True))
        ]

    def abandon(self, error: BaseException) -> None:
        """See ``RowSource``."""
        self.engine.abandon(error)


def tree_sum(parts: list[Any]) -> Any:
    """The delayed total of lists of summands, added place by place."""
    while True:
        parts = [delayed(_added)(parts[at : at + FAN_IN]) for at in range(0, len(parts), FAN_IN)]
        if len(parts) == 1:
            return parts[0]


def _tree(parts: list[str], n_blocks: int, name: str, graph: dict[str, Any]) -> str:
    """Puts tasks into the graph that add up parts; the name of the last one."""
    level = 0
    while len(parts) > 1:
        level += 1
        neighbours = [parts[at : at + FAN_IN] for at in range(0, len(parts), FAN_IN)]
        parts = [f"sum-{name}-{level}-{place}" for place in range(len(neighbours))]
        for part, children in zip(parts, neighbours, strict=True):
            graph[part] = (_joined, children, n_blocks)
    return parts[0]


def _answers(
    sent: bytes, blocks: list[RowBlock], before: list[Any], places: list[int | None]
) -> list[list[tuple[Any, Any]]]:
    """Sums and states, block by block; ``before`` has earlier rounds' answers, each state at its place."""
    requests: list[Request] = pickle.loads(sent)  # noqa: S301 -- the client's own
    return [
        [
            request.answer(block, None if place is None else answers[at][place][1])
            for request, answers, place in zip(requests, before, places, strict=True)
        ]
        for at, block in enumerate(blocks)
    ]


def _part(answers: list[list[tuple[Any, Any]]], numbers: list[int], n_blocks: int) -> Nodes:
    sums = [[total for total, _ in of_block] for of_block in answers]
    return collapse({(0, number): totals for number, totals in zip(numbers, sums, strict=True)}, n_blocks)


def _answer_sums(
    sent: bytes,
    blocks: list[RowBlock],
    before: list[Any],
    places: list[int | None],
    numbers: list[int],
    n_blocks: int,
) -> Nodes:
    return _part(_answers(sent, blocks, before, places), numbers, n_blocks)


def _joined(parts: list[Nodes], n_blocks: int) -> Nodes:
    return collapse({place: sums for part in parts for place, sums in part.items()}, n_blocks)


def collapse(nodes: Nodes, n_blocks: int) -> Nodes:
    """The same sums, with all siblings that are complete added up."""
    level, size = 0, n_blocks
    while size > 1:
        for parent in sorted({place // FAN_IN for at, place in nodes if at == level}):
            children = [(level, place) for place in range(parent * FAN_IN, min((parent + 1) * FAN_IN, size))]
            if all(child in nodes for child in children):
                nodes[level + 1, parent] = _added([nodes.pop(child) for child in children])
        level, size = level + 1, -(-size // FAN_IN)
    return nodes


def _added(parts: list[list[Any]]) -> list[Any]:
    return [_sum(summands) for summands in zip(*parts, strict=True)]


def _sum(parts: Sequence[Any]) -> Any:
    """The sum of parts of an answer; lists of rows are put together at once, which is one copy."""
    combined: Callable[[Sequence[Any]], Any] | None = getattr(parts[0], "combined", None)
    return reduce(operator.add, parts) if combined is None else combined(parts)


# Blocks that fill more than this share of the workers' memory are read anew in every pass.
_MEMORY_SHARE = 0.4


@dataclass(frozen=True, eq=False)
class DistributedSet:
    """What a fit needs: the rows, and what is known about all of them."""

    rows: Rows
    classes: NDArray[Any]
    dtype: Any
    totals: Any


def distributed_set(
    engine: Engine,
    X: Collection,
    y: NDArray[Any],
    sample_weight: Collection | None,
    class_weight: ClassWeight,
    persist: bool | str,
) -> DistributedSet:
    """Check, describe and encode all blocks.

    With ``persist`` the workers keep them; without, every pass makes them anew from the collections.
    """
    blocks = [
        delayed(checked_block)(*parts) for parts in zip(*joint_blocks(X, y, sample_weight), strict=True)
    ]
    keep = persist if isinstance(persist, bool) else fits(_known_bytes(X), engine)
    if keep:
        blocks = engine.persist(blocks)
    facts: BlockFacts = Rows(engine, blocks, 0, 0).ask([Question(Describe())])[0].total
    classes, factors = _classes(facts, class_weight)
    keep = keep or (keep is None and fits(facts.n_bytes, engine))
    groups = engine.together(blocks) if keep else None
    blocks = [
        delayed(encoded_block)(block, classes, factors, number, expected)
        for number, (block, expected) in enumerate(zip(blocks, facts.fingerprints, strict=True))
    ]
    if keep:
        blocks = engine.persist(blocks)
    rows = Rows(engine, blocks, facts.n_rows, facts.n_features, groups, facts.row_scale)
    return DistributedSet(rows, classes, facts.dtype, facts.totals * factors)


class Describe:
    """Asks a block for its ``BlockFacts``."""

    def answer(self, block: LabelledBlock, state: object) -> tuple[BlockFacts, None]:
        """See ``Request``."""
        return block_facts(block), None


@dataclass(frozen=True, eq=False)
class CountVotes:
    """How often each member of a fitted classifier votes for each class."""

    model: Any

    def answer(self, block: RowBlock, state: object) -> tuple[Ints, None]:
        """See ``Request``."""
        return self.model._vote_counts(aligned(block.X)), None


def _classes(facts: BlockFacts, class_weight: ClassWeight) -> tuple[NDArray[Any], Any]:
    if facts.n_rows == 0:
        if any(found.n_rows > 0 for found in facts.fingerprints):
            raise ValueError(NO_WEIGHT)
        raise ValueError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
    require_two_classes(facts.labels)
    return facts.labels, class_weights(class_weight, facts.labels, facts.totals)


def _known_bytes(X: Collection) -> float:
    """The size of the rows where the collection knows it; NaN where only the blocks do."""
    is_dense = isinstance(getattr(X, "_meta", None), np.ndarray)
    return float(getattr(X, "nbytes", np.nan)) if is_dense else np.nan


def fits(n_bytes: float, engine: Engine) -> bool | None:
    """Whether so many bytes of rows may stay with the workers; None if nobody knows how many they are."""
    return None if np.isnan(n_bytes) else bool(n_bytes <= _MEMORY_SHARE * engine.memory)
