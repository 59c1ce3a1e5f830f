"""Rows of Dask collections as a source of rows for solvers.

Collections are cut into blocks. A worker checks a block, describes it (``BlockFacts``), and encodes its
labels as class numbers. A pass over the rows is one graph: every request goes to all blocks, and their
answers are added along a tree, eight neighbours at a time, so that only the total travels to the client.
Blocks that one worker holds share a task; a task adds those parts of the tree that it has as a whole, so that
the order of the additions is always that of the tree: results repeat bit for bit, whichever worker has which
block and whichever worker dies.

A block may be made more than once: in every pass, or after the loss of a worker. A fingerprint shows whether
it was the same again: without that sums of different rows would be mixed, and no iteration would ever end.
"""

from __future__ import annotations

import operator
import pickle
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from dask.array import Array
from dask.array.optimization import optimize
from dask.base import tokenize
from dask.core import flatten
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from dask.sizeof import sizeof
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from dask import is_dask_collection
from exclusivity._typing import Floats
from exclusivity.classifier._validation import (
    NO_WEIGHT,
    check_scale,
    check_weights,
    require_labels,
    table_advice,
)
from exclusivity.dask._engine import Engine
from exclusivity.rows.design import DesignMatrix, RowList, RowScale, aligned
from exclusivity.rows.source import Answer, Question, Request, RowBlock, RowSource
from exclusivity.rows.sparse_rows import check_sparse
from exclusivity.solvers.newton.barrier import Barrier, BarrierSums, WorkingSet
from exclusivity.solvers.newton.sums import LossSums
from exclusivity.tables._columns import ColumnTable, column_of

FAN_IN = 8
"""The number of partial sums that one task adds."""

MAX_CLASSES = 10_000
"""More labels than this are no classes: they would also have to travel."""

# Every so many rows are checked byte by byte; all of them would take as long as a pass.
_CHECKED_STEP = 64
# Requests up to so many bytes, all copies counted, travel with the tasks; larger ones are a task's result.
_SMALL = 1 << 20
# Blocks that fill more than this share of the workers' memory are read anew in every pass.
_MEMORY_SHARE = 0.4

Collection = Any
"""A collection of Dask: an array or a DataFrame; of labels and weights an array or a series."""

Nodes = dict[tuple[int, int], list[Any]]
"""Sums at (level, number) of the tree, one for each request; blocks are on level 0."""


def distributed_rows(
    engine: Engine,
    X: Collection,
    y: Collection,
    sample_weight: Collection | None,
    persist: bool | str,
    *,
    as_tables: bool = False,
) -> tuple[Rows, NDArray[Any], Floats]:
    """Check, describe and encode all blocks: the rows, the classes, and the sums of their sample weights.

    With ``persist`` the workers keep them; without, every pass makes them anew from the collections. Rows are
    matrices, or with ``as_tables`` columns of any types.
    """
    blocks = [
        delayed(checked_block)(*parts, as_tables)
        for parts in zip(*joint_blocks(X, y, sample_weight), strict=True)
    ]
    is_dense = isinstance(getattr(X, "_meta", None), np.ndarray)  # else only the blocks know their size
    n_bytes = float(getattr(X, "nbytes", np.nan)) if is_dense else np.nan
    keep = persist if isinstance(persist, bool) else fits(n_bytes, engine)
    if keep:
        blocks = engine.persist(blocks)
    facts: BlockFacts = Rows(engine, blocks, 0, 0).ask([Question(_Describe())])[0].total
    if facts.n_rows == 0:
        if any(found.n_rows > 0 for found in facts.fingerprints):
            raise ValueError(NO_WEIGHT)
        raise ValueError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
    keep = keep or (keep is None and fits(facts.n_bytes, engine))
    groups = engine.placement(blocks) if keep else None
    blocks = [
        delayed(encoded_block)(block, facts.labels, number, expected)
        for number, (block, expected) in enumerate(zip(blocks, facts.fingerprints, strict=True))
    ]
    if keep:
        blocks = engine.persist(blocks)
    rows = Rows(engine, blocks, facts.n_rows, facts.n_features, groups, facts.row_scale, facts.dtype)
    return rows, facts.labels, facts.totals


class _Describe:
    """Request the ``BlockFacts`` of a block."""

    def answer(self, block: LabelledBlock, state: object) -> tuple[BlockFacts, None]:
        """See ``Request``."""
        labels = np.unique(block.y)
        if len(labels) > MAX_CLASSES:
            raise ValueError(
                f"a block of y has {len(labels)} different labels; at most {MAX_CLASSES} classes."
            )
        codes = np.searchsorted(labels, block.y)
        totals = np.bincount(codes, weights=block.weights, minlength=len(labels)).astype(float)
        (n_rows, n_features), X, dtype = block.X.shape, block.X, np.dtype(np.float64)
        if isinstance(X, ColumnTable):  # nobody computes products with it
            n_bytes, scale = int(sizeof(X.columns)), RowScale(0.0, np.zeros(n_features), n_features)
        else:
            n_bytes = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
            dtype, scale = X.dtype, DesignMatrix(X).row_scale
            check_scale(scale)
        facts = (n_rows, (block.fingerprint,), n_bytes, n_features, dtype, labels, totals, scale)
        return BlockFacts(*facts), None


def fits(n_bytes: float, engine: Engine) -> bool | None:
    """Return whether so many bytes of rows may stay with the workers; None if their number is unknown."""
    return None if np.isnan(n_bytes) else bool(n_bytes <= _MEMORY_SHARE * engine.memory)


# The rows as a source


@dataclass(frozen=True, eq=False)
class States:
    """States that a pass left with the workers for one of its requests: a place in each group's answers."""

    answers: list[Any]
    place: int


class Rows(RowSource):
    """Blocks of rows on the workers: delayed ``RowBlock``s, and the numbers that ``RowSource`` asks for.

    ``groups`` are numbers of blocks of one worker, which share a task; None: every block has its own. Without
    a ``row_scale`` nothing can be certified. ``dtype`` is that of the fitted weights.
    """

    def __init__(
        self,
        engine: Engine,
        blocks: list[Any],
        n_rows: int,
        n_features: int,
        groups: list[list[int]] | None = None,
        row_scale: RowScale | None = None,
        dtype: Any = np.float64,
    ) -> None:
        self.engine, self.n_rows, self.n_features, self.dtype = engine, n_rows, n_features, dtype
        unknown = RowScale(np.inf, np.full(n_features, np.inf), n_features)
        self.row_scale = unknown if row_scale is None else row_scale
        self.are_kept = groups is not None
        self.groups = [[number] for number in range(len(blocks))] if groups is None else groups
        self.n_blocks = len(blocks)
        self._keys = [block.key for block in blocks]
        self._graph = dict(HighLevelGraph.merge(*[block.dask for block in blocks]))

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions in one pass."""
        name, graph = uuid4().hex, dict[str, Any]()
        sent: Any = pickle.dumps([question.request for question in questions])
        if len(sent) * len(self.groups) > _SMALL:
            graph[f"request-{name}"] = (bytes, sent)
            sent = f"request-{name}"
        keeps = any(question.keeps_state for question in questions)
        states: list[States | None] = [question.states for question in questions]
        places = [None if state is None else state.place for state in states]
        parts, kept = [], []
        for at, numbers in enumerate(self.groups):
            blocks = [self._keys[number] for number in numbers]
            before = [None if state is None else state.answers[at].key for state in states]
            task: Any = (_answers, sent, blocks, before, places)
            if keeps:
                kept.append(f"answers-{name}-{at}")
                graph[kept[-1]], task = task, kept[-1]
            parts.append(f"part-{name}-{at}")
            graph[parts[-1]] = (_part, task, numbers, self.n_blocks)
        level = 0
        while len(parts) > 1:
            level += 1
            neighbours = [parts[at : at + FAN_IN] for at in range(0, len(parts), FAN_IN)]
            parts = [f"sum-{name}-{level}-{place}" for place in range(len(neighbours))]
            graph |= {
                part: (_joined, children, self.n_blocks)
                for part, children in zip(parts, neighbours, strict=True)
            }
        known = [answers.dask for state in states if state is not None for answers in state.answers]
        whole = {**self._graph, **HighLevelGraph.merge(*known), **graph}
        values = [Delayed(key, whole) for key in (*parts, *kept)]
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


def _answers(
    sent: bytes, blocks: list[RowBlock], before: list[Any], places: list[int | None]
) -> list[list[tuple[Any, Any]]]:
    """Answer block by block; ``before`` has the answers of earlier passes, each state at its place."""
    requests: list[Request] = pickle.loads(sent)  # noqa: S301 -- the client's own
    return [
        [
            request.answer(block, None if place is None else answers[at][place][1])
            for request, answers, place in zip(requests, before, places, strict=True)
        ]
        for at, block in enumerate(blocks)
    ]


def _part(answers: list[list[tuple[Any, Any]]], numbers: list[int], n_blocks: int) -> Nodes:
    pairs = zip(numbers, answers, strict=True)
    return collapse({(0, number): [total for total, _ in of_block] for number, of_block in pairs}, n_blocks)


def _joined(parts: list[Nodes], n_blocks: int) -> Nodes:
    return collapse({place: sums for part in parts for place, sums in part.items()}, n_blocks)


def collapse(nodes: Nodes, n_blocks: int) -> Nodes:
    """Add up all siblings that are complete."""
    level, size = 0, n_blocks
    while size > 1:
        for parent in sorted({place // FAN_IN for at, place in nodes if at == level}):
            children = [(level, place) for place in range(parent * FAN_IN, min((parent + 1) * FAN_IN, size))]
            if all(child in nodes for child in children):
                summands = zip(*(nodes.pop(child) for child in children), strict=True)
                nodes[level + 1, parent] = [_sum(values) for values in summands]
        level, size = level + 1, -(-size // FAN_IN)
    return nodes


def _sum(parts: Sequence[Any]) -> Any:
    """Add parts of an answer; lists of rows are concatenated at once, which is one copy."""
    combined: Callable[[Sequence[Any]], Any] | None = getattr(parts[0], "combined", None)
    return reduce(operator.add, parts) if combined is None else combined(parts)


# Blocks on a worker


class Fingerprint(NamedTuple):
    """The number of rows of a block, and a checksum that other rows would hardly have."""

    n_rows: int
    checksum: int


@dataclass(frozen=True, eq=False)
class LabelledBlock:
    """Rows of positive weight with their labels, and the fingerprint of all rows, those of weight 0 too."""

    X: Any
    y: NDArray[Any]
    weights: Floats
    fingerprint: Fingerprint


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """The facts that the client needs of a block, or of several; they add up.

    ``n_rows`` are of positive weight; ``fingerprints`` has one for each block, in their order.
    """

    n_rows: int
    fingerprints: tuple[Fingerprint, ...]
    n_bytes: int
    n_features: int
    dtype: Any
    labels: NDArray[Any]
    totals: Floats
    row_scale: RowScale

    def __add__(self, other: BlockFacts) -> BlockFacts:
        """Add the facts of two blocks."""
        if self.n_features != other.n_features:
            raise ValueError(
                f"the blocks of X differ in their number of columns: {self.n_features} and "
                f"{other.n_features}."
            )
        if len(self.labels) == 0 or len(other.labels) == 0:  # an empty block's types mean nothing
            full = other if len(self.labels) == 0 else self
            labels, totals, dtype = full.labels, full.totals, full.dtype
        else:
            kinds = [_kind_of(self.labels), _kind_of(other.labels)]
            if kinds[0] != kinds[1]:
                raise ValueError(
                    f"labels differ between partitions: some hold {kinds[0]} such as {self.labels[0]!r}, "
                    f"others {kinds[1]} such as {other.labels[0]!r}; convert y to one type."
                )
            both = np.concatenate([self.labels, other.labels])
            labels, codes = np.unique(both, return_inverse=True)
            totals = np.bincount(codes, weights=np.append(self.totals, other.totals)).astype(float)
            dtype = np.promote_types(self.dtype, other.dtype)
        return BlockFacts(
            self.n_rows + other.n_rows,
            self.fingerprints + other.fingerprints,
            self.n_bytes + other.n_bytes,
            self.n_features,
            dtype,
            labels,
            totals,
            self.row_scale + other.row_scale,
        )


def checked_block(X: Any, y: NDArray[Any], weights: NDArray[Any], as_table: bool = False) -> LabelledBlock:
    """Check the rows of a block as the classifier in memory does; leave out rows of weight 0."""
    if as_table:
        X = ColumnTable([column_of(X, place) for place in range(X.shape[1])])
    else:
        if sparse.issparse(X):
            check_sparse(X)
        with table_advice("ERMClassifier"):
            X = check_array(
                X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=0, input_name="X"
            )
    n_rows = X.shape[0]
    y = column_or_1d(y, warn=True)
    require_labels(y, " of a block")
    if len(y) != n_rows:
        raise ValueError(f"a block of X has {n_rows} rows and its block of y {len(y)}; chunk them alike.")
    weights = check_weights(weights, n_rows)
    fingerprint = Fingerprint(n_rows, _checksum(X, y, weights))
    if n_rows == 0:
        return LabelledBlock(X, y, weights, fingerprint)
    if y.dtype.kind in "fc":
        check_array(y, ensure_2d=False, dtype=None, estimator="ERMClassifier", input_name="y")
    check_classification_targets(y)
    if not np.all(weights):
        keep = np.flatnonzero(weights)
        X, y, weights = X[keep], y[keep], weights[keep]
    return LabelledBlock(X, y, weights, fingerprint)


def encoded_block(
    block: LabelledBlock, classes: NDArray[Any], number: int, expected: Fingerprint
) -> RowBlock:
    """Return the block with class numbers for labels, or raise if it has other rows than expected."""
    if block.fingerprint != expected:
        before, now = expected.n_rows, block.fingerprint.n_rows
        what = "other values" if now == before else f"{now} rows instead of {before}"
        raise RuntimeError(
            f"block {number} of the rows changed while they were fitted: computed again it had {what}. Its "
            "source gives something else each time, such as random numbers without a seed, or a file that is "
            "being written. Seed the source, wait until it is at rest, or keep the rows with the workers: "
            "X, y = dask.persist(X, y) before the fit."
        )
    codes = np.searchsorted(classes, block.y).astype(np.int32)
    X = block.X if isinstance(block.X, ColumnTable) else aligned(block.X)
    return RowBlock(X, codes, block.weights)


def _checksum(X: Any, y: NDArray[Any], weights: Floats) -> int:
    """Sum up all labels, and of the numbers the sum of their bits and some rows."""
    if isinstance(X, ColumnTable):
        return zlib.crc32(tokenize(X.columns, y, weights).encode())
    parts = [X.data, X.indices, X.indptr, weights] if sparse.issparse(X) else [X, weights]
    text = "\0".join(map(str, y)).encode() if y.dtype.kind == "O" else y.tobytes()
    found = [zlib.crc32(text)]
    for part in parts:
        sum_of_bits = int(part.view(f"u{part.itemsize}").sum(dtype=np.uint64))
        found += [sum_of_bits, zlib.crc32(part[::_CHECKED_STEP].tobytes())]
    return zlib.crc32(repr(found).encode())


def _kind_of(labels: NDArray[Any]) -> str:
    if labels.dtype.kind in "US" or all(isinstance(label, (str, bytes)) for label in labels):
        return "text"
    return "numbers" if labels.dtype.kind in "biuf" else "objects"


# Collections


def row_blocks(X: Collection) -> list[Any]:
    """List the blocks of an array or a DataFrame, every one with all columns."""
    return list(np.ravel(_table(X).to_delayed()))


def joint_blocks(
    X: Collection, y: Collection, sample_weight: Collection | None
) -> tuple[list[Any], list[Any], list[Any]]:
    """List the blocks of rows, labels and weights (None each where there are none), cut alike.

    What they have in common is made once: columns of one array, or rows and labels from one file, would
    otherwise be read twice in every pass, because optimising a graph merges steps that are not shared.
    """
    table = _table(X)
    columns = [(y, "y")] if sample_weight is None else [(y, "y"), (sample_weight, "sample_weight")]
    parts = [table, *(_column(values, X, name) for values, name in columns)]
    if all(isinstance(part, Array) for part in parts):
        blocks = _jointly_optimised(parts)
    else:
        blocks = [list(np.ravel(part.to_delayed())) for part in parts]
    for (_, name), found in zip(columns, blocks[1:], strict=True):
        if len(found) != len(blocks[0]):
            raise ValueError(
                f"X has {len(blocks[0])} blocks of rows and {name} has {len(found)}, of unknown sizes; "
                "repartition them alike, or call compute_chunk_sizes() on the arrays."
            )
    return blocks[0], blocks[1], blocks[2] if len(blocks) > 2 else [None] * len(blocks[0])


def _jointly_optimised(arrays: list[Array]) -> list[list[Any]]:
    keys = [list(flatten(array.__dask_keys__())) for array in arrays]
    merged = HighLevelGraph.merge(*(array.__dask_graph__() for array in arrays))
    name = f"joint-{tokenize(keys)}"
    graph = HighLevelGraph.from_collections(name, optimize(merged, list(chain(*keys))), dependencies=())
    return [[Delayed(key, graph, layer=name) for key in part] for part in keys]


def _table(X: Collection) -> Collection:
    if isinstance(X, Array):
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional; got {X.ndim} dimensions.")
        return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    if is_frame(X):
        return X
    raise TypeError(
        f"X must be a Dask array or DataFrame; got {type(X).__name__}. For rows in memory use "
        "exclusivity.ERMClassifier, or make a Dask array of them with dask.array.from_array."
    )


def _column(values: Collection, X: Collection, name: str) -> Collection:
    """Return one value per row (labels, weights), cut like ``X`` where that is known."""
    if not is_dask_collection(values):
        raise TypeError(
            f"{name} must be a Dask array or Series, chunked like X; got {type(values).__name__}. Make one "
            "with dask.array.from_array(values, chunks=X.chunks[0])."
        )
    if isinstance(values, Array):
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"{name} must have one value per row; got {values.ndim} dimensions.")
        if isinstance(X, Array) and not np.isnan([*values.chunks[0], *X.chunks[0]]).any():
            if values.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows and {name} {values.shape[0]}.")
            values = values.rechunk((X.chunks[0],))
    return values


def is_frame(X: Collection) -> bool:
    """Return whether this is a Dask DataFrame, without importing what that needs."""
    return is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "columns")


def column_names(X: Collection) -> NDArray[Any] | None:
    """Return the names of a DataFrame's columns, if all of them are text; None for arrays."""
    if not is_frame(X):
        return None
    names = np.asarray(X.columns, dtype=object)
    are_text = [isinstance(name, str) for name in names]
    if any(are_text) and not all(are_text):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{sorted({type(name).__name__ for name in names})} as feature name / column name types. "
            "Convert the names to strings: X.columns = X.columns.astype(str)."
        )
    return names if all(are_text) else None


def _bytes_of(value: object) -> int:
    """Count the bytes of everything that an object holds.

    Dask would count the shell only, some fifty bytes for a block of a hundred megabytes, and neither spill in
    time nor compute where the data are.
    """
    return int(sum(sizeof(part) for part in vars(value).values()))


for _kind in (
    Barrier,
    BarrierSums,
    BlockFacts,
    ColumnTable,
    LabelledBlock,
    LossSums,
    RowBlock,
    RowList,
    WorkingSet,
):
    sizeof.register(_kind, _bytes_of)
