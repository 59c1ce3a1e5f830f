"""exclusivity = inf on distributed rows: a partition from Gram matrices, then all members in the same passes.

The search for a partition needs, for each set of rows that problems share, the weighted mean, the Gram matrix
and the correlations with the labels (two rounds of sums), and at most a thousand rows of each class on which
soft votes are compared. Then every member is an SVM on its own columns; all members and classes look at the
rows together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.classifier.radius import Ints
from exclusivity.dask.rounds import Rows
from exclusivity.problem import ExclusivityRegulariser
from exclusivity.problem.arrays import Floats
from exclusivity.solvers.base import Callback, Recorder, SolverResult, Status
from exclusivity.solvers.blockwise import RowBlock, RowList, Settings, Target, solve_targets
from exclusivity.solvers.exclusive.groups import check_partition
from exclusivity.solvers.exclusive.search import MAX_COLUMNS, search_partition
from exclusivity.solvers.exclusive.settings import ExclusiveOptions, ExclusiveResult
from exclusivity.solvers.exclusive.solver import record_members
from exclusivity.solvers.exclusive.surrogate import MAX_ROWS, RidgeSums, RidgeSurrogate, sample_classes

_SEED = 20160328


@dataclass(frozen=True, eq=False)
class Moments:
    """For every target, X^T s with sum s behind it, and X^T (s y) with sum s y: (targets, 2, M + 1)."""

    targets: list[Target]

    def answer(self, block: RowBlock, state: Any) -> tuple[Floats, None]:
        """See ``Request``."""
        sums = []
        for target in self.targets:
            problem = target.rows_of(block)
            both = np.stack([problem.weights, problem.weights * problem.labels], axis=1)
            sums.append(np.vstack([problem.design.transposed_times(both), both.sum(axis=0)]).T)
        return np.array(sums), None


@dataclass(frozen=True, eq=False)
class Scatter:
    """For every target, the Gram matrix of its rows around their mean; or, ``as_diagonal``, its diagonal."""

    targets: list[Target]
    means: Floats
    as_diagonal: bool

    def answer(self, block: RowBlock, state: Any) -> tuple[Floats, None]:
        """See ``Request``."""
        pairs = zip(self.targets, self.means, strict=True)
        return np.array([self._scatter(target, mean, block) for target, mean in pairs]), None

    def _scatter(self, target: Target, mean: Floats, block: RowBlock) -> Floats:
        problem = target.rows_of(block)
        design, weights = problem.design, problem.weights
        if not self.as_diagonal:
            return design.gram(weights, mean)
        if not design.is_sparse:
            return design.column_scatter(weights, mean)
        # Right once it is summed over all blocks, whose mean this is.
        squares = design.X.power(2, dtype=float).T @ weights
        return np.asarray(squares - weights.sum() * mean**2)


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
        if keep.all():
            return self
        rows = RowList(self.rows.X[keep], self.rows.labels[keep], self.rows.weights[keep])
        return RowPool(rows, self.numbers[keep])


@dataclass(frozen=True)
class DrawPool:
    """Asks every block for its ``RowPool``."""

    def answer(self, block: RowBlock, state: Any) -> tuple[RowPool, None]:
        """See ``Request``."""
        n_rows = block.X.shape[0]
        # Blocks of different first rows draw different numbers, however often a block is made anew.
        head = np.frombuffer(np.asarray(block.weights[:8]).tobytes(), dtype=np.uint32)
        numbers = np.random.default_rng([_SEED, n_rows, *head]).random(n_rows)
        return RowPool(RowList(block.X, block.codes, block.weights), numbers).cut(), None


class PartitionSums:
    """Means, Gram matrices and correlations with the labels of all targets, from two rounds.

    Parameters
    ----------
    rows : Rows
    targets : list of Target
    with_grams : bool
        Whether whole Gram matrices are wanted; else their diagonals.
    """

    def __init__(self, rows: Rows, targets: list[Target], with_grams: bool) -> None:
        self._rows, self._targets = rows, targets
        # One-vs-rest problems share all rows; pairs of classes have rows of their own.
        distinct = targets if targets[0].contrast.negative is not None else targets[:1]
        moments = rows.total(Moments(targets))
        self._means = moments[: len(distinct), 0, :-1] / moments[: len(distinct), 0, -1:]
        self._scatter = rows.total(Scatter(list(distinct), self._means, as_diagonal=not with_grams))
        self._diagonals = np.array([np.diagonal(part) if with_grams else part for part in self._scatter])
        self._totals = moments[: len(distinct), 0, -1].tolist()
        # The mean labels, X^T s (y - mean) and s . (y - mean)^2 of every target.
        self._label_means = moments[:, 1, -1] / moments[:, 0, -1]
        self._covariances = moments[:, 1, :-1] - self._label_means[:, None] * moments[:, 0, :-1]
        self._label_scatter = moments[:, 0, -1] * (1 - self._label_means**2)

    def strength(self, groups: Ints) -> Floats:
        """The squared correlations with the labels, added up over a group's columns and all targets."""
        shares = np.divide(
            self._covariances**2,
            self._diagonals * self._label_scatter[:, None],
            out=np.zeros_like(self._covariances),
            where=self._diagonals > 0,
        )
        return np.bincount(groups, weights=shares.sum(axis=0)).astype(float)

    def surrogates(self, rng: np.random.Generator) -> list[RidgeSurrogate]:
        """Least-squares stand-ins for the members, one for each set of rows."""
        pool: RowPool = self._rows.total(DrawPool())
        everyone = list(range(len(self._targets)))
        parts = [everyone] if len(self._means) == 1 else [[place] for place in everyone]
        return [
            _surrogate(
                RidgeSums(
                    self._means[at],
                    self._scatter[at],
                    self._label_means[part],
                    self._covariances[part].T,
                    self._totals[at],
                ),
                [self._targets[place] for place in part],
                pool.rows,
                rng,
            )
            for at, part in enumerate(parts)
        ]


def distributed_partition(
    rows: Rows,
    targets: list[Target],
    groups: Ints,
    options: ExclusiveOptions,
    rng: np.random.Generator,
    start: Ints | None,
) -> Ints:
    """The owner of every group, by the search that is used in memory."""
    K, n_groups = targets[0].objective.n_members, int(groups.max()) + 1
    given = start if options.partition is None else options.partition
    if given is not None:
        given = check_partition(given, n_groups, K)
        if options.restarts == 0:
            return given
    searches = options.restarts > 0 and n_groups > K and len(groups) <= MAX_COLUMNS
    sums = PartitionSums(rows, targets, with_grams=searches)
    return search_partition(
        sums.strength(groups), lambda: sums.surrogates(rng), groups, K, options, rng, given
    )


def _surrogate(
    sums: RidgeSums, targets: Sequence[Target], pool: RowList, rng: np.random.Generator
) -> RidgeSurrogate:
    first = targets[0].contrast
    inside = np.ones(len(pool.labels), dtype=bool)
    if first.negative is not None:
        inside = (pool.labels == first.positive) | (pool.labels == first.negative)
    codes = pool.labels[inside].astype(np.intp)
    truth = codes if len(targets) > 1 else (codes == first.positive).astype(np.intp)
    chosen = np.flatnonzero(inside)[sample_classes(truth, rng)]
    codes = pool.labels[chosen].astype(np.intp)
    truth = codes if len(targets) > 1 else (codes == first.positive).astype(np.intp)
    return RidgeSurrogate.from_sums(
        sums, targets[0].objective.cost, pool.X[chosen], truth, pool.weights[chosen]
    )


def solve_partition(
    rows: Rows,
    targets: list[Target],
    owners: Ints,
    groups: Ints,
    settings: Settings,
    callback: Callback | None,
) -> list[ExclusiveResult]:
    """Every member's SVM on its own columns, in every class."""
    K = targets[0].objective.n_members
    columns = [np.flatnonzero(owners[groups] == k) for k in range(K)]
    fed = [k for k in range(K) if len(columns[k]) > 0]
    members = [_member(target, columns[k]) for k in fed for target in targets]
    nothing = [None] * len(members)
    fits = solve_targets(rows, members, settings, nothing, nothing)
    masses: Floats = rows.total(Moments(targets))[:, 0, -1]
    state = _Members(targets, len(groups), masses)
    recorder = Recorder(callback)
    status = Status.RULE if all(fit.converged for fit in fits) else Status.MAX_ITER
    for place, k in enumerate(fed):
        state.put(k, columns[k], fits[place * len(targets) : (place + 1) * len(targets)])
        if record_members(recorder, float(state.own.sum()), state.weights, state.intercepts):
            status = Status.CALLBACK
            break
    history = recorder.history()
    return [
        ExclusiveResult.at_end(
            state.weights[number], state.intercepts[number], state.own[number].sum(), status, history, owners
        )
        for number in range(len(targets))
    ]


class _Members:
    """Weights, intercepts and objectives of all members in all problems; zero until a member is put in."""

    def __init__(self, targets: list[Target], n_features: int, masses: Floats) -> None:
        K = targets[0].objective.n_members
        self.weights = np.zeros((len(targets), n_features, K))
        self.intercepts = np.zeros((len(targets), K))
        self.own = np.repeat(targets[0].objective.cost * masses[:, None], K, axis=1)

    def put(self, k: int, columns: NDArray[np.intp], fits: Sequence[SolverResult]) -> None:
        """A member with its fits; one that uses no feature at all stays zero, and abstains."""
        if not any(np.any(fit.weights) for fit in fits):
            return
        for number, fit in enumerate(fits):
            if fit.objective < self.own[number, k]:
                self.weights[number, columns, k] = fit.weights[:, 0]
                self.intercepts[number, k] = fit.intercepts[0]
                self.own[number, k] = fit.objective


def _member(target: Target, columns: NDArray[np.intp]) -> Target:
    """The SVM of one member on its columns."""
    alone = dataclasses.replace(
        target.objective,
        n_members=1,
        regulariser=ExclusivityRegulariser(0.0, target.objective.regulariser.sparsity),
    )
    return dataclasses.replace(target, objective=alone, columns=columns)
