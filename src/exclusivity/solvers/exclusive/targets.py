"""exclusivity = inf on rows that are reached block by block.

The search for a partition needs two rounds of sums and at most a thousand rows of each class on which soft
votes are compared. Then every member is an SVM on its own columns; all members and classes look at the rows
together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.penalties import ExclusivityRegulariser
from exclusivity.rows.design import RowList
from exclusivity.rows.source import RowBlock, RowSource
from exclusivity.solvers.base import SAMPLE_SEED, Callback, Recorder, Status
from exclusivity.solvers.blocks import Settings, Target, solve_targets
from exclusivity.solvers.exclusive.members import JointState, on_own_columns
from exclusivity.solvers.exclusive.search import (
    ExclusiveOptions,
    ExclusiveResult,
    Partition,
    check_groups,
    check_partition,
    search_partition,
)
from exclusivity.solvers.exclusive.solver import record_members
from exclusivity.solvers.exclusive.surrogate import (
    MAX_ROWS,
    Means,
    Part,
    PartitionSums,
    first_sums,
    second_sums,
)


def solve_exclusive_targets(
    rows: RowSource,
    targets: Sequence[Target],
    *,
    groups: Ints | None = None,
    tol: float = 1e-4,
    options: ExclusiveOptions | None = None,
    random_state: int | np.random.Generator | None = None,
    start: Partition | None = None,
    callback: Callback | None = None,
) -> list[ExclusiveResult]:
    """``solve_exclusive`` at exclusivity = inf, for rows that are reached block by block.

    Parameters
    ----------
    rows : RowSource
    targets : sequence of Target
        One for two classes; more of them are either each class against the rest, in the order of the class
        numbers, or pairs of classes. They share their objective.
    groups : ndarray of shape (n_features,), optional
        One integer group code per column, 0 to G - 1; by default each column is a group of its own.
    tol : float
        Relative duality gap of every member's own SVM.
    options : ExclusiveOptions, optional
    random_state : int, Generator or None
        Of the search for a partition.
    start : ndarray of shape (n_groups,), optional
        A partition to start the search from; ``options.partition`` goes before it.
    callback : callable, optional
        Called with every member. Its state's weights are (M, K) for one target and (P, M, K) for several.

    Returns
    -------
    list of ExclusiveResult
        One per target.
    """
    options, objective = options or ExclusiveOptions(), targets[0].objective
    if not np.isinf(objective.regulariser.exclusivity):
        raise ValueError(
            "rows that are reached block by block need exclusivity = np.inf for members on different "
            f"features; got {objective.regulariser.exclusivity:g}."
        )
    codes = check_groups(groups, rows.n_features)
    given = start if options.partition is None else options.partition
    if given is not None:
        given = check_partition(given, int(codes.max()) + 1, objective.n_members)
    sums = BlockwiseSums(rows, targets)
    rng = np.random.default_rng(random_state)
    owners = search_partition(sums.partition_sums, codes, objective.n_members, options, rng, given)
    return _solve_members(rows, targets, sums.totals, owners, codes, tol, callback)


class BlockwiseSums:
    """The sums of targets over all blocks.

    Attributes
    ----------
    totals : ndarray of shape (n_targets,)
        The sum of weights of each target's rows.
    """

    def __init__(self, rows: RowSource, targets: Sequence[Target]) -> None:
        self._rows = rows
        # One-vs-rest problems share all rows; pairs of classes have rows of their own.
        has_pairs = targets[0].contrast.negative is not None
        self._parts = [[target] for target in targets] if has_pairs else [list(targets)]
        first = rows.total(FirstSums(self._parts))
        pairs = zip(first, self._parts, strict=True)
        self._means = [Means.of(sums, len(part)) for sums, part in pairs]
        self.totals = np.concatenate([[m.total] * len(m.labels) for m in self._means])

    def partition_sums(self, with_grams: bool) -> PartitionSums:
        """What the search needs; one more round."""
        second = self._rows.total(SecondSums(self._parts, self._means, with_grams))
        pairs = zip(self._means, second, strict=True)
        return PartitionSums([means.with_scatter(sums) for means, sums in pairs], self._pool)

    def _pool(self) -> list[Part]:
        drawn: RowList = self._rows.total(DrawPool()).rows
        return _on_block(self._parts, RowBlock(drawn.X, drawn.labels, drawn.weights))


def _on_block(parts: Sequence[Sequence[Target]], block: RowBlock) -> list[Part]:
    return [[target.rows_of(block) for target in part] for part in parts]


@dataclass(frozen=True, eq=False)
class FirstSums:
    """Asks for ``first_sums`` of every part."""

    parts: list[list[Target]]

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, None]:
        """See ``Request``."""
        return np.array([first_sums(part) for part in _on_block(self.parts, block)]), None


@dataclass(frozen=True, eq=False)
class SecondSums:
    """Asks for ``second_sums`` of every part."""

    parts: list[list[Target]]
    means: list[Means]
    with_grams: bool

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, None]:
        """See ``Request``."""
        pairs = zip(_on_block(self.parts, block), self.means, strict=True)
        return np.array([second_sums(part, means, self.with_grams) for part, means in pairs]), None


@dataclass(frozen=True, eq=False)
class RowPool:
    """At most ``MAX_ROWS`` rows of every class, those with the lowest random numbers."""

    rows: RowList
    numbers: Floats

    def __add__(self, other: RowPool) -> RowPool:
        """The same of both."""
        return RowPool(self.rows + other.rows, np.append(self.numbers, other.numbers)).cut()

    def cut(self) -> RowPool:
        """Without the rows that are too many; the order of the others stays."""
        order = np.argsort(self.numbers, kind="stable")
        keep = np.zeros(len(order), dtype=bool)
        for code in np.unique(self.rows.labels):
            keep[order[self.rows.labels[order] == code][:MAX_ROWS]] = True
        return self if keep.all() else RowPool(self.rows.take(keep), self.numbers[keep])


@dataclass(frozen=True)
class DrawPool:
    """Asks every block for its ``RowPool``."""

    def answer(self, block: RowBlock, state: object) -> tuple[RowPool, None]:
        """See ``Request``."""
        n_rows = block.X.shape[0]
        # Blocks of different first rows draw different numbers, however often a block is made anew.
        head = np.frombuffer(np.asarray(block.weights[:8]).tobytes(), dtype=np.uint32)
        numbers = np.random.default_rng([SAMPLE_SEED, n_rows, *head]).random(n_rows)
        return RowPool(RowList(block.X, block.codes, block.weights), numbers).cut(), None


def _solve_members(
    rows: RowSource,
    targets: Sequence[Target],
    totals: Floats,
    owners: Partition,
    groups: Ints,
    tol: float,
    callback: Callback | None,
) -> list[ExclusiveResult]:
    """Every member's SVM on its own columns, in every class."""
    K = targets[0].objective.n_members
    columns = [np.flatnonzero(owners[groups] == k) for k in range(K)]
    fed = [k for k in range(K) if len(columns[k]) > 0]
    members = [_member(target, columns[k]) for k in fed for target in targets]
    fits = solve_targets(rows, members, Settings(tol))
    state = JointState([target.objective for target in targets], totals, groups)
    recorder, status = Recorder(callback), Status.RULE
    for place, k in enumerate(fed):
        own = fits[place * len(targets) : (place + 1) * len(targets)]
        visit = state.replace(k, [on_own_columns(fit, columns[k], len(groups)) for fit in own], tol, 0.0)
        if not visit.certified:
            status = Status.MAX_ITER
        if record_members(recorder, state.objective, state.weights, state.intercepts):
            status = Status.CALLBACK
            break
    history = recorder.history()
    return [
        ExclusiveResult.at_end(
            state.weights[number], state.intercepts[number], state.own[number].sum(), status, history, owners
        )
        for number in range(len(targets))
    ]


def _member(target: Target, columns: Ints) -> Target:
    """The SVM of one member on its columns."""
    bounds = target.objective.bounds
    alone = dataclasses.replace(
        target.objective,
        n_members=1,
        bounds=None if bounds is None else bounds.of_columns(columns),
        regulariser=ExclusivityRegulariser(0.0, target.objective.regulariser.sparsity),
    )
    return dataclasses.replace(target, objective=alone, columns=columns)
