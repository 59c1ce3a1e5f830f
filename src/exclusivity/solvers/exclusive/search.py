"""Partitions of the feature groups: what a search takes and gives, and the search itself.

It moves one group at a time, from several starts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.problem import ERMProblem
from exclusivity.solvers.base import History, SolverResult, Status, check_positive
from exclusivity.solvers.exclusive.surrogate import PartitionSums, RidgeSurrogate, sharing_rows
from exclusivity.solvers.exclusive.votes import Ballot, CountedBallot, held_out_values

Partition = Ints
"""The member that owns each feature group; -1 where nobody does."""


@dataclass(frozen=True)
class ExclusiveOptions:
    """The settings of the exclusive solver.

    Parameters
    ----------
    change : float
        For finite exclusivity: a member within the tolerance of its optimum still moves where that lowers the
        objective by more than this share. The run ends with a sweep in which no member moves. At ``inf`` one
        sweep is exact.
    restarts : int
        How many partitions the search starts from; the best one found is kept. 0 means no search: the given
        partition (or a balanced one, dealt out by the strength of the features) is used as it is.
    radius : int
        The search counts the rows whose vote survives up to this many broken features.
    voting : {"hard", "runoff"} or None
        The vote that it counts for; None: the one of the classifier, or "hard".
    partition : sequence of int or None
        Where the search starts: the member of every feature group, in the order of the group codes, or -1 for
        a group that is free.
    """

    change: float = 1e-4
    restarts: int = 2
    radius: int = 3
    voting: str | None = None
    partition: Sequence[int] | Partition | None = None

    def __post_init__(self) -> None:
        check_positive("change", self.change)
        for name in ("restarts", "radius"):
            value: Any = getattr(self, name)
            if not isinstance(value, Integral) or value < 0:
                raise ValueError(f"solver option {name} must be an integer >= 0; got {value!r}.")
        if self.voting not in (None, "hard", "runoff"):
            raise ValueError(f"solver option voting must be 'hard', 'runoff' or None; got {self.voting!r}.")


@dataclass(frozen=True, eq=False)
class ExclusiveResult(SolverResult):
    """The end of an exclusive run, for one of the problems that were solved together.

    ``objective`` is F of this problem alone; ``history`` shows the objective of all of them together, which
    is what the run minimises. ``gap`` is NaN: above exclusivity = 1 nothing bounds the distance to the best
    F. ``converged`` says that every member is within the tolerance of ITS optimum, given the partition (at
    ``inf``) or the other members (finite exclusivity), and that the stopping rule was met.

    Attributes
    ----------
    partition : ndarray of shape (n_groups,)
        The member that owns each feature group (at finite exclusivity: that weighs it most), -1 if nobody.
    """

    partition: Partition

    @classmethod
    def at_end(
        cls,
        weights: Floats,
        intercepts: Floats,
        objective: float,
        status: Status,
        history: History,
        partition: Partition,
        state: object = None,
    ) -> ExclusiveResult:
        """The result of one problem of a run that ended with ``status``."""
        return cls(
            weights=weights,
            intercepts=intercepts,
            objective=float(objective),
            gap=np.nan,
            dual=np.empty(0),
            converged=status is Status.RULE,
            n_iter=len(history),
            status=status,
            history=history,
            partition=partition,
            state=state,
        )


def check_groups(groups: Ints | None, n_features: int) -> Ints:
    """One group code per column, 0 to G - 1, every one of them in use; ``None``: each column its own."""
    if groups is None:
        return np.arange(n_features)
    codes = np.asarray(groups)
    if codes.shape != (n_features,):
        raise ValueError(f"groups needs one code per feature ({n_features}); got shape {codes.shape}.")
    if not np.issubdtype(codes.dtype, np.integer):
        raise TypeError(f"groups must hold integer codes; got {codes.dtype}.")
    if not np.array_equal(np.unique(codes), np.arange(codes.max() + 1)):
        raise ValueError(
            "group codes must be 0, 1, ..., G - 1 without gaps; number them with np.unique(labels, "
            "return_inverse=True)[1]."
        )
    return codes.astype(np.intp, copy=False)


def check_partition(partition: Sequence[int] | Partition, n_groups: int, n_members: int) -> Partition:
    """The partition as an array: one member from 0 to K - 1, or -1, for every group."""
    owners = np.asarray(partition)
    if owners.shape != (n_groups,):
        raise ValueError(
            f"partition needs one member for each of the {n_groups} feature groups; got shape {owners.shape}."
        )
    if not np.issubdtype(owners.dtype, np.integer) or owners.min() < -1 or owners.max() >= n_members:
        raise ValueError(
            f"partition must hold members 0 to {n_members - 1}, or -1 for a group without one; "
            f"got {owners.min()} to {owners.max()} ({owners.dtype})."
        )
    return owners.astype(np.intp)


def deal(strength: Floats, n_members: int, order: Partition | None = None) -> Partition:
    """Deal groups out from the strongest to the weakest, to and fro: sizes differ by one at most.

    Examples
    --------
    >>> deal(np.array([9.0, 8.0, 7.0, 6.0]), 2)
    array([0, 1, 1, 0])
    """
    ranked = np.argsort(-strength, kind="stable") if order is None else order
    n_members = min(n_members, len(ranked))
    position = np.arange(len(ranked)) % (2 * n_members)
    owners = np.empty(len(ranked), dtype=np.intp)
    owners[ranked] = np.minimum(position, 2 * n_members - 1 - position)
    return owners


def renumbered(owners: Partition) -> Partition:
    """The same partition with members numbered in the order of their first groups.

    Examples
    --------
    >>> renumbered(np.array([2, 0, 2, 1]))
    array([0, 1, 0, 2])
    """
    members, first = np.unique(owners, return_index=True)
    numbers = np.empty(members.max() + 1, dtype=np.intp)
    numbers[members[np.argsort(first)]] = np.arange(len(members))
    return numbers[owners]


def feed(owners: Partition, n_members: int, strength: Floats) -> Partition:
    """The same partition with free groups given away, so that nobody starves while groups suffice.

    Free groups go, from the strongest on, to the member with the fewest; members that are still empty take
    the weakest group of the richest member.
    """
    owners = owners.copy()
    sizes = np.bincount(owners[owners >= 0], minlength=n_members)
    free = np.flatnonzero(owners < 0)
    for group in free[np.argsort(-strength[free], kind="stable")]:
        owners[group] = sizes.argmin()
        sizes[owners[group]] += 1
    while sizes.min() == 0 and sizes.max() > 1:
        rich, poor = sizes.argmax(), sizes.argmin()
        held = np.flatnonzero(owners == rich)
        owners[held[strength[held].argmin()]] = poor
        sizes[rich] -= 1
        sizes[poor] += 1
    return owners


MAX_COLUMNS = 2048
"""Beyond this many columns there is no Gram matrix: groups are dealt out by strength."""

# Sweeps over the groups: until no move helps, but three are nearly as good, and enough where there are many.
_MAX_SWEEPS = 5
_MIN_SWEEPS = 2
_MAX_TRIALS = 600
# The last ones, by votes as they are counted.
_COUNTED_SWEEPS = 2
# A move, or a restart, must gain this share of the objective: less is rounding, which must not decide.
_LEAST_GAIN = 1e-6
# How many random partitions a result must not lose to, and how many standard errors are no chance.
_RANDOM_RIVALS = 2
_CHANCE = 2.0


def find_partition(
    problems: Sequence[ERMProblem],
    groups: Ints,
    options: ExclusiveOptions,
    rng: np.random.Generator,
    start: Partition | None,
) -> Partition:
    """The best partition found, for rows in memory; see ``search_partition``."""

    def make_sums(with_grams: bool) -> PartitionSums:
        return PartitionSums.in_memory(sharing_rows(problems), with_grams)

    return search_partition(make_sums, groups, problems[0].n_members, options, rng, start)


def search_partition(
    make_sums: Callable[[bool], PartitionSums],
    groups: Ints,
    n_members: int,
    options: ExclusiveOptions,
    rng: np.random.Generator,
    start: Partition | None,
) -> Partition:
    """The best partition found: the owner of every group.

    The first search starts from ``start`` (its free groups given away, nobody left empty), or from the groups
    dealt out by strength; the others from random partitions of equal sizes. ``make_sums`` is told whether
    there will be a search, which needs whole Gram matrices.
    """
    if start is not None and options.restarts == 0:
        return start
    K, n_groups = n_members, int(groups.max()) + 1
    searches = options.restarts > 0 and n_groups > K and len(groups) <= MAX_COLUMNS
    sums = make_sums(searches)
    strength = sums.strength(groups)
    first = deal(strength, K) if start is None else feed(start, K, strength)
    if not searches:
        return first
    surrogates = sums.surrogates(rng, left_out=options.voting == "runoff")
    best, best_value = first, np.inf
    for restart in range(options.restarts):
        owners = first if restart == 0 else deal(strength, K, rng.permutation(n_groups))
        search = _LocalSearch(surrogates, groups, owners, K, options)
        value = search.run(rng)
        if value < best_value - _LEAST_GAIN * abs(value):
            best, best_value = search.owners, value
    if options.voting == "runoff" and all(len(rows.label_means) > 1 for rows in surrogates):
        last = _LocalSearch(surrogates, groups, best, K, options, CountedBallot)
        last.run(rng, _COUNTED_SWEEPS)
        best = last.owners
    return renumbered(_never_worse_than_random(best, surrogates, groups, K, options, rng))


def _never_worse_than_random(
    owners: Partition,
    surrogates: Sequence[RidgeSurrogate],
    groups: Ints,
    n_members: int,
    options: ExclusiveOptions,
    rng: np.random.Generator,
) -> Partition:
    """The partition found, or the best of a few random ones if that does better on rows left out.

    Better by more than chance: of two partitions that are worth the same one always seems to win.
    """
    drawn = [rng.permutation(np.arange(len(owners)) % n_members) for _ in range(_RANDOM_RIVALS)]
    partitions, voting = [owners, *drawn], options.voting or "hard"
    values, errors = held_out_values(surrogates, groups, partitions, options.radius, voting)
    best = int(np.argmax(values))
    if values[best] - values[0] <= _CHANCE * errors[best] + _LEAST_GAIN * abs(values[0]):
        return owners
    warnings.warn(
        f"The search for a partition of {len(owners)} features or groups among {n_members} members found "
        "none that beats random groups on rows left out (certified accuracy, summed over r: "
        f"{values[0]:.3f} against {values[best]:.3f}); random groups are used. Fewer members have more "
        "features each.",
        UserWarning,
        stacklevel=2,
    )
    return drawn[best - 1]


class _LocalSearch:
    """Moves of single groups to the member where they help most, until none helps."""

    def __init__(
        self,
        surrogates: Sequence[RidgeSurrogate],
        groups: Ints,
        owners: Partition,
        n_members: int,
        options: ExclusiveOptions,
        kind: type[Ballot] = Ballot,
    ) -> None:
        self.groups, self.owners = groups, owners.copy()
        columns = [self._columns(k) for k in range(n_members)]
        self.ballots = [
            kind(surrogate, columns, options.radius, options.voting or "hard") for surrogate in surrogates
        ]

    def _columns(self, member: int) -> Ints:
        """The columns of a member, in order."""
        return np.flatnonzero(self.owners[self.groups] == member)

    def run(self, rng: np.random.Generator, most_sweeps: int = _MAX_SWEEPS) -> float:
        """Sweep over the groups in random order; the value reached."""
        value = sum(ballot.value for ballot in self.ballots)
        for _ in range(min(most_sweeps, max(_MIN_SWEEPS, _MAX_TRIALS // len(self.owners)))):
            before = value
            for group in rng.permutation(len(self.owners)):
                value = self._improve(int(group), value)
            if value == before:
                break
        return value

    def _improve(self, group: int, value: float) -> float:
        """Move one group to its best member, unless it would leave an empty one; the value after."""
        source = int(self.owners[group])
        if np.count_nonzero(self.owners == source) == 1:
            return value
        moved = np.flatnonzero(self.groups == group)
        values = sum(ballot.values_after(moved, source) for ballot in self.ballots)
        values = np.asarray(values)
        values[source] = value
        least = _LEAST_GAIN * abs(value)
        receiver = int(np.argmax(values <= values.min() + least))  # the first of equals
        if value - values[receiver] <= least:
            return value
        self.owners[group] = receiver
        for ballot in self.ballots:
            for member in (source, receiver):
                ballot.change(member, self._columns(member))
        return float(values[receiver])
