"""The search for a partition of the feature groups: moves of one group at a time, from several starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from exclusivity.problem import ERMProblem
from exclusivity.problem.arrays import Ints
from exclusivity.solvers.exclusive.groups import deal, feed, renumbered
from exclusivity.solvers.exclusive.heldout import held_out_values
from exclusivity.solvers.exclusive.settings import ExclusiveOptions, Partition
from exclusivity.solvers.exclusive.sums import PartitionSums, sharing_rows
from exclusivity.solvers.exclusive.surrogate import RidgeSurrogate
from exclusivity.solvers.exclusive.votes import Ballot

MAX_COLUMNS = 2048
"""Beyond this many columns there is no Gram matrix: groups are dealt out by strength."""

# Sweeps over the groups: until no move helps, but three are nearly as good, and enough where there are many.
_MAX_SWEEPS = 5
_MIN_SWEEPS = 2
_MAX_TRIALS = 600
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
    surrogates = sums.surrogates(rng)
    best, best_value = first, np.inf
    for restart in range(options.restarts):
        owners = first if restart == 0 else deal(strength, K, rng.permutation(n_groups))
        search = _LocalSearch(surrogates, groups, owners, K, options.radius)
        value = search.run(rng)
        if value < best_value - _LEAST_GAIN * abs(value):
            best, best_value = search.owners, value
    return renumbered(_never_worse_than_random(best, surrogates, groups, K, options.radius, rng))


def _never_worse_than_random(
    owners: Partition,
    surrogates: Sequence[RidgeSurrogate],
    groups: Ints,
    n_members: int,
    radius: int,
    rng: np.random.Generator,
) -> Partition:
    """The partition found, or the best of a few random ones if that does better on rows left out.

    Better by more than chance: of two partitions that are worth the same one always seems to win.
    """
    drawn = [rng.permutation(np.arange(len(owners)) % n_members) for _ in range(_RANDOM_RIVALS)]
    values, errors = held_out_values(surrogates, groups, [owners, *drawn], radius)
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
        radius: int,
    ) -> None:
        self.groups, self.owners = groups, owners.copy()
        columns = [self._columns(k) for k in range(n_members)]
        self.ballots = [Ballot(surrogate, columns, radius) for surrogate in surrogates]

    def _columns(self, member: int, without: int = -1) -> Ints:
        """The columns of a member, one of its groups left out."""
        owned = self.owners == member
        if without >= 0:
            owned[without] = False
        return np.flatnonzero(owned[self.groups])

    def run(self, rng: np.random.Generator) -> float:
        """Sweep over the groups in random order; the value reached."""
        value = sum(ballot.value for ballot in self.ballots)
        for _ in range(max(_MIN_SWEEPS, min(_MAX_SWEEPS, _MAX_TRIALS // len(self.owners)))):
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
        moved, rest = np.flatnonzero(self.groups == group), self._columns(source, group)
        values = sum(ballot.values_after(moved, rest, source) for ballot in self.ballots)
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
