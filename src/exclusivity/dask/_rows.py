"""Rows of Dask collections as a source of rows for solvers.

Collections are cut into blocks. A worker checks a block, describes it (``BlockFacts``), and encodes its
labels as class numbers. A pass over the rows is one graph: every request goes to all blocks, and their
answers are added along a tree, eight neighbours at a time, so that only the total is sent to the client.
Blocks that one worker holds share a task; a task adds those parts of the tree that it has as a whole, so that
the order of the additions is always that of the tree: results repeat bit for bit, whichever worker has which
block and whichever worker dies.

A block may be made more than once: in every pass, or after the loss of a worker. A fingerprint shows whether
it was the same again: without that sums of different rows would be mixed, and no iteration would ever end.

A cluster that has lost all its workers, or whose scheduler is frozen, lets a computation wait indefinitely.
Dask's own time-outs notice broken connections only. Here the client waits for a bounded time and then reports
what is wrong. Nothing that runs on the client's loop is ever cancelled, by a time limit or by Ctrl-C:
``Future.result`` with a timeout cancels the transfer of the result, and a transfer that is cancelled before
it has begun stays with the client as the one that all later transfers wait for. Here the thread stops
waiting, and the future is released.
"""

from __future__ import annotations

import asyncio
import operator
import pickle
import zlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future as LocalFuture, wait
from dataclasses import dataclass
from functools import reduce
from math import isfinite
from time import monotonic
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from dask.sizeof import sizeof
from dask.utils import parse_timedelta
from distributed import Client, Future, futures_of
from distributed.scheduler import KilledWorker, NoValidWorkerError
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

import dask
from exclusivity._typing import Floats
from exclusivity.classifier._validation import (
    NO_WEIGHT,
    check_scale,
    check_weights,
    require_labels,
    table_advice,
)
from exclusivity.rows.design import DesignMatrix, RowList, RowScale, aligned, check_sparse
from exclusivity.rows.source import Answer, Question, Request, RowBlock, RowSource
from exclusivity.solvers.barrier import Barrier, BarrierSums, WorkingSet
from exclusivity.solvers.sums import LossSums
from exclusivity.tables._columns import ColumnTable, column_of

FAN_IN = 8
"""The number of partial sums that one task adds."""

MAX_CLASSES = 10_000
"""More labels than this are no classes: they would also have to be sent."""

# Every so many rows are checked byte by byte; all of them would take as long as a pass.
_CHECKED_STEP = 64
# Requests up to so many bytes, all copies counted, are sent with the tasks; larger ones are a task's result.
_SMALL = 1 << 20
# Blocks that fill more than this share of the workers' memory are read anew in every pass.
_MEMORY_SHARE = 0.4

PATIENCE = 30.0
"""Seconds without any worker after which a fit gives up."""

SILENCE = 120.0
"""Seconds without an answer of the scheduler; when it sees the first graph it has our libraries to import."""

_PATIENCE_KEY, _SILENCE_KEY = "exclusivity.worker-patience", "exclusivity.scheduler-patience"
_LOOK_EVERY = 2.0
_REPEAT = "repeat the fit."

Nodes = dict[tuple[int, int], list[Any]]
"""Sums at (level, number) of the tree, one for each request; blocks are on level 0."""


def distributed_rows(
    parts: Iterable[tuple[Any, Any, Any]], n_bytes: float, persist: bool | str, *, as_tables: bool = False
) -> tuple[Rows, NDArray[Any], Floats]:
    """Check, describe and encode all blocks: the rows, the classes, and the sums of their sample weights.

    ``parts`` are rows, labels and weights of each block, delayed, and ``n_bytes`` the size of all rows, if it
    is known. With ``persist`` the workers keep them; without, every pass makes them anew. Rows are matrices,
    or with ``as_tables`` columns of any types.
    """
    engine = Engine.current()
    blocks = [delayed(checked_block)(*part, as_tables) for part in parts]
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
        if isinstance(X, ColumnTable):  # it takes part in no products
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


# The cluster


class Engine:
    """Compute delayed values.

    Parameters
    ----------
    client : distributed.Client or None
        None: Dask's default scheduler in this process.
    """

    def __init__(self, client: Client | None) -> None:
        self._client: Any = client
        self._patience, self._silence = _seconds(_PATIENCE_KEY, PATIENCE), _seconds(_SILENCE_KEY, SILENCE)
        self._end: LocalFuture[None] = LocalFuture()

    @classmethod
    def current(cls) -> Engine:
        """Use the client that is in use now, if there is one."""
        try:
            return cls(Client.current())
        except ValueError:
            return cls(None)

    @property
    def memory(self) -> float:
        """Return the bytes that all workers may use in total; infinite where unknown."""
        if self._client is None:
            return float("inf")
        workers = self._ask(self._identity())["workers"].values()
        limits = [float(worker["memory_limit"] or 0) for worker in workers]
        return sum(limits) if limits and all(limits) else float("inf")

    def placement(self, values: Sequence[Any]) -> list[list[int]]:
        """Group persisted values by worker, in one list of their numbers for each thread there.

        Values in unknown places have lists of their own.
        """
        known = futures_of(list(values)) if self._client is not None else []
        if self._client is None or not known:
            return [[number] for number in range(len(values))]
        owners = self._ask(self._client.scheduler.who_has(keys=[future.key for future in known]))
        threads = self._ask(self._client.scheduler.ncores())
        of_worker: dict[str, list[int]] = {}
        for number, value in enumerate(values):
            of_worker.setdefault(min(owners.get(value.key) or [value.key]), []).append(number)
        shares = [np.array_split(numbers, threads.get(name, 1)) for name, numbers in of_worker.items()]
        return sorted(share.tolist() for parts in shares for share in parts if len(share) > 0)

    def persist(self, values: Sequence[Any]) -> list[Any]:
        """Compute values that stay with the workers, who can make them again from their lineage."""
        if self._client is None or not values:
            return list(dask.persist(*values))
        return list(self._client.persist(list(values)))

    def abandon(self, error: BaseException) -> None:
        """End every computation with this error; what runs in this process ends when it is done."""
        if not self._end.done():
            self._end.set_exception(error)

    def compute(self, value: Any) -> Any:
        """Return the result of one delayed value, or an error in bounded time."""
        if self._client is None:
            return dask.compute(value)[0]
        known = futures_of(value)
        is_persisted = len(known) == 1 and known[0].key == value.key
        future = known[0] if is_persisted else self._client.compute(value)
        try:
            return self._result(future)
        finally:
            future.release()  # whoever gives up leaves no work behind

    def _result(self, future: Future) -> Any:
        """Transfer a result; errors of the cluster say what to do."""
        transfer = self._begin(future.client.gather(future, asynchronous=True))
        self._wait(transfer)
        try:
            return transfer.result()
        except NoValidWorkerError:
            raise RuntimeError(_no_workers("has no workers any more")) from None
        except KilledWorker as error:
            raise RuntimeError(
                "the workers of the Dask cluster died again and again in the same task, most likely for want "
                f"of memory: use smaller chunks, fewer threads per worker, or a larger memory limit. {error}"
            ) from error
        except (OSError, CancelledError) as error:
            if future.status == "error":  # the task's own
                raise
            raise RuntimeError(
                f"the Dask scheduler is gone or has dropped the computation ({error}); start the cluster, or "
                f"connect the client, again and {_REPEAT}"
            ) from error

    def _wait(self, transfer: LocalFuture[Any]) -> None:
        """Wait while the scheduler answers and has workers; a RuntimeError otherwise."""
        asked, last_sign = self._begin(self._identity()), monotonic()
        while not wait([transfer, self._end], _LOOK_EVERY, FIRST_COMPLETED).done:
            seconds = monotonic() - last_sign
            if asked.done():
                if _has_workers(asked):
                    last_sign = monotonic()
                elif seconds > self._patience:
                    raise RuntimeError(_no_workers(f"has had no workers for {self._patience:.0f} seconds"))
                asked = self._begin(self._identity())
            elif seconds > self._silence:
                raise RuntimeError(_silent(self._silence))
        if self._end.done():
            self._end.result()

    def _identity(self) -> Coroutine[Any, Any, Any]:
        """Ask the scheduler who it is and who its workers are."""
        identity: Coroutine[Any, Any, Any] = self._client.scheduler.identity(n_workers=-1)
        return identity

    def _ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        """Return the scheduler's answer, in bounded time."""
        asked = self._begin(question)
        if not wait([asked], self._silence).done:
            raise RuntimeError(_silent(self._silence))
        return asked.result()

    def _begin(self, coroutine: Coroutine[Any, Any, Any]) -> LocalFuture[Any]:
        """Let it run on the client's loop, whether or not a caller waits for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)


def _has_workers(answer: LocalFuture[Any]) -> bool:
    try:
        workers = answer.result()["workers"].values()
    except (OSError, RuntimeError, ValueError):
        return False
    # One that is paused has run out of memory, and takes no tasks.
    return any(worker.get("status") != "paused" for worker in workers)


def _seconds(key: str, default: float) -> float:
    """Read a Dask setting that is a time."""
    given = dask.config.get(key, default)
    try:
        seconds = float(parse_timedelta(given))
    except (AttributeError, KeyError, TypeError, ValueError):
        seconds = np.nan
    if not (isfinite(seconds) and seconds > 0):
        raise ValueError(
            f"the Dask setting {key} must be a positive time such as 30 or '2 minutes'; got {given!r}."
        )
    return seconds


def _silent(seconds: float) -> str:
    return (
        f"the Dask scheduler has not answered for {seconds:.0f} seconds: it is frozen, overloaded or cut "
        f"off. Look after it, or wait longer with dask.config.set({{'{_SILENCE_KEY}': '5 minutes'}}); then "
        f"{_REPEAT}"
    )


def _no_workers(what: str) -> str:
    return (
        f"the Dask cluster {what}: they were killed, ran out of memory or lost their connection. Start "
        f"workers (with more memory, or use smaller chunks) and {_REPEAT}"
    )


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
