"""Partitions of the feature groups: a search that moves one group at a time, from several starts.

The value of a partition is how many broken features the votes survive, row by row. With disjoint supports
one broken feature changes one vote, and with it the lead of the true class over any other by 2 at most. So a
row is right, and stays right whatever r features do, if its lead exceeds 2 r. Over r = 0, ..., R the number
of such r is

    min(max(lead + 1, 0) / 2, R + 1)        (for the odd leads that an odd number of binary votes can have),

a ramp, and its mean over the rows, each class counting the same, is the sum of the balanced certified
accuracies at r = 0, ..., R. The search maximises it with soft votes in place of votes, because a count of
votes stands still under most moves:

* two classes: y score / t, cut off at -1 and 1;
* more: half the vote itself, half softmax(2 scores / t) over the classes.

Half of a vote among many classes is the vote, because a soft vote alone hides what a member with too few
features does: on a column that is nearly always zero the scores of many classes are equal on nearly all rows.
Split evenly they would do no harm; but the vote goes to one of them, row after row, and a certificate, which
cannot know to which, has to count it for every rival of the winner. So does this: a tie is a vote for every
wrong class.

The scale t is half the spread of the member's own scores, so that neither C nor the strength of a member
changes how decided its votes are. The value is negated: smaller is better.

For a run-off let y be the true class of a row, v_c the votes of class c, and L_c = 2 u_yc - K the lead of y
over c among all K members. One broken feature changes one member. It takes y the victory only if (A) two
rivals push it out of the final, closing leads g <= h of v_y over them: a member closes each by 2 at most and
both together by 3; or if (B) a rival c beats it there, closing L_c by 2, and gets there, closing its distance
D_c to the best third class by 2. In units of 2 per member the lead of y is therefore

    min( max(h, 2 (g + h) / 3),  min_c max(L_c, D_c) ),

g and h the two smallest leads, and a row is certified at r if that exceeds 2 r. The lead in the ramp is the
mean of two: this one, with soft votes and soft duels, (score of the true class - score of the other) / t cut
off at -1 and 1; and the smallest lead in a duel, which moves that bring no class to the final still change.
Rows are scored as if left out (see ``_surrogate``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.solvers.base import SolverResult, check_positive
from exclusivity.solvers.exclusive._surrogate import (
    Columns,
    PartitionSums,
    RidgeSurrogate,
    strength_of,
    surrogates_of,
)

Partition = Ints
"""The member that owns each feature group; -1 where none does."""


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
        partition (or a balanced one, by the strength of the features) is used as it is.
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
        The member that owns each feature group (at finite exclusivity: that weighs it most), -1 if none.
    """

    partition: Partition


def check_groups(groups: Ints | None, n_features: int) -> Ints:
    """Return one group code per column, 0 to G - 1, all of them in use; ``None``: each column its own."""
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
    """Return the partition as an array: one member from 0 to K - 1, or -1, for every group."""
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


def assign_round_robin(strength: Floats, n_members: int, order: Partition | None = None) -> Partition:
    """Assign groups to members from the strongest to the weakest, to and fro: sizes differ by one at most.

    Examples
    --------
    >>> assign_round_robin(np.array([9.0, 8.0, 7.0, 6.0]), 2)
    array([0, 1, 1, 0])
    """
    ranked = np.argsort(-strength, kind="stable") if order is None else order
    n_members = min(n_members, len(ranked))
    position = np.arange(len(ranked)) % (2 * n_members)
    owners = np.empty(len(ranked), dtype=np.intp)
    owners[ranked] = np.minimum(position, 2 * n_members - 1 - position)
    return owners


def renumber(owners: Partition) -> Partition:
    """Return the same partition with members numbered in the order of their first groups.

    Examples
    --------
    >>> renumber(np.array([2, 0, 2, 1]))
    array([0, 1, 0, 2])
    """
    members, first = np.unique(owners, return_index=True)
    numbers = np.empty(members.max() + 1, dtype=np.intp)
    numbers[members[np.argsort(first)]] = np.arange(len(members))
    return numbers[owners]


def fill_members(owners: Partition, n_members: int, strength: Floats) -> Partition:
    """Return the same partition with free groups given away, and no member empty while groups suffice.

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


_SHARPNESS = 0.5
_TINY = 1e-12
# Scores that differ by less than this share of their size are equal: rounding must not decide.
_TIE = 1e-9


MAX_COLUMNS = 2048
"""Beyond this many columns there is no Gram matrix: groups are assigned by strength."""

# Sweeps over the groups: until no move helps, but three are nearly as good, and enough where there are many.
_MAX_SWEEPS = 5
_MIN_SWEEPS = 2
_MAX_TRIALS = 600
# A move, or a restart, must gain this share of the objective: less is rounding, which must not decide.
_LEAST_GAIN = 1e-6


class SoftVotes:
    """The soft votes of all members on the rows of one surrogate, and what a move would make of them.

    Parameters
    ----------
    surrogate : RidgeSurrogate
    columns : sequence of ndarray
        The columns of every member, none of them empty.
    radius : int
        R, the largest number of broken features that counts.
    voting : {"hard", "runoff"}
        How votes among several classes are counted.
    """

    def __init__(
        self, surrogate: RidgeSurrogate, columns: Sequence[Columns], radius: int, voting: str = "hard"
    ) -> None:
        self.surrogate, self.has_final = surrogate, voting == "runoff"
        # More than (K - 1) / 2 broken features no vote of K members survives.
        self.highest_lead = 2 * min(radius, (len(columns) - 1) // 2) + 1
        self.signs = np.where(surrogate.truth == 1, 1.0, -1.0)
        self.members = [surrogate.fit(own) for own in columns]
        self.votes = self._votes_of(np.stack([member.scores for member in self.members]))

    @property
    def value(self) -> float:
        """Return minus the smooth certified accuracy, summed over r."""
        return float(self._values(self.votes.sum(axis=0)[None])[0])

    def values_after(self, moved: Columns, source: int) -> Floats:
        """Return the value for each receiver of the columns ``moved``, which ``source`` gives away."""
        smaller = self._votes_of(self.surrogate.scores_without(self.members[source], moved)[None])[0]
        others = self.votes.sum(axis=0) - self.votes[source] + smaller
        joined = self._votes_of(self.surrogate.scores_with(self.members, moved))
        joined -= self.votes
        joined += others
        return self._values(joined)

    def change(self, member: int, columns: Columns) -> None:
        """Give a member these columns from now on."""
        self.members[member] = self.surrogate.fit(columns)
        self.votes[member] = self._votes_of(self.members[member].scores[None])[0]

    def _votes_of(self, centred: Floats) -> Floats:
        """Return the soft votes of centred scores (members, problems, rows).

        Two classes: (members, rows), from -1, wrong, to 1, right. More: (members, classes, rows), for a
        run-off with the duels of the true class behind them.
        """
        squares = (centred**2).mean(axis=1) @ self.surrogate.shares
        scale = (_SHARPNESS * np.sqrt(squares) + _TINY)[:, None]
        if centred.shape[1] == 1:
            votes = (centred[:, 0] + self.surrogate.label_means) * self.signs
            votes /= scale
            return np.asarray(np.clip(votes, -1.0, 1.0, out=votes))
        scores = centred + self.surrogate.label_means[:, None]
        scores -= scores.max(axis=1, keepdims=True)
        scores *= 2 / scale[:, :, None]
        cast = cast_votes(scores >= -_TIE, self.surrogate.truth)
        n_classes = scores.shape[1]
        both = np.empty((len(scores), 2 * n_classes, scores.shape[2])) if self.has_final else scores
        if self.has_final:
            duels_of_truth(scores, self.surrogate.truth, both[:, n_classes:])
        votes = np.exp(scores, out=both[:, :n_classes])
        votes *= 0.5 / votes.sum(axis=1, keepdims=True)
        votes += 0.5 * cast
        return both

    def _values(self, totals: Floats) -> Floats:
        """Return the value for each of several vote counts."""
        if totals.ndim == 2:
            lead = totals
        elif self.has_final:
            lead = np.mean(runoff_leads(totals, self.surrogate.truth), axis=0)
        else:
            lead = lead_of_truth(totals, self.surrogate.truth)
        # (lead + 1) / 2 up to the constant 1 / 2
        return np.asarray(np.clip(lead, -1.0, self.highest_lead) @ self.surrogate.row_weights / -2)


def lead_of_truth(totals: Floats, truth: Ints) -> Floats:
    """Return the votes of the true class minus its strongest rival's; totals are (..., classes, rows)."""
    rows = np.arange(len(truth))
    own = totals[..., truth, rows]
    rivals = totals.copy()
    rivals[..., truth, rows] = -np.inf
    return np.asarray(own - rivals.max(axis=-2))


def cast_votes(is_best: Bools, truth: Ints) -> Bools:
    """Return the vote of each (..., row) for one class, or for every wrong one where several are best."""
    tied = np.nonzero(is_best.sum(axis=-2, dtype=np.int32) > 1)
    wrong = np.arange(is_best.shape[-2]) != truth[tied[-1], None]
    np.moveaxis(is_best, -2, -1)[tied] = wrong
    return is_best


def duels_of_truth(scores: Floats, truth: Ints, out: Floats) -> None:
    """Write half the lead of the true class's score over every other into ``out``, cut off at -1 and 1.

    ``scores`` are (members, classes, rows), in units in which a vote is decided by a difference of 2.
    """
    own = np.take_along_axis(scores, truth[None, None, :], axis=1)
    np.subtract(own, scores, out=out)
    out *= 0.5
    np.clip(out, -1.0, 1.0, out=out)


def runoff_leads(totals: Floats, truth: Ints) -> tuple[Floats, Floats]:
    """Return the lead of the true class, and its smallest lead in a duel.

    Parameters
    ----------
    totals : ndarray of shape (..., 2 n_classes, rows)
        Votes of all classes, then leads of the true class in its duels. Overwritten.
    truth : ndarray of shape (rows,)
    """
    n_classes, rows = totals.shape[-2] // 2, np.arange(len(truth))
    own = totals[..., truth, rows]
    totals[..., truth, rows], totals[..., n_classes + truth, rows] = -np.inf, np.inf
    rivals, duels = totals[..., :n_classes, :], totals[..., n_classes:, :]
    best = rivals.max(axis=-2, keepdims=True)
    is_best = rivals == best
    second = np.where(is_best, -np.inf, rivals).max(axis=-2, keepdims=True)
    second = np.where(is_best.sum(axis=-2, keepdims=True, dtype=np.int32) > 1, best, second)
    least, next_least = own - best[..., 0, :], own - second[..., 0, :]
    pushed_out = np.maximum(next_least, (least + next_least) * (2 / 3))
    distance = np.where(is_best, second, best)
    distance -= rivals
    beaten = np.maximum(duels, distance, out=distance).min(axis=-2)
    return np.minimum(pushed_out, beaten), duels.min(axis=-2)


def find_partition(
    sums: PartitionSums,
    groups: Ints,
    options: ExclusiveOptions | None,
    rng: np.random.Generator,
) -> Partition:
    """Return the best partition found: the owner of every group.

    The first search starts from ``options.partition`` (its free groups given away, no member empty), or from
    the groups assigned by strength; the others from random partitions of equal sizes.
    """
    options, K, n_groups = options or ExclusiveOptions(), sums.n_members, int(groups.max()) + 1
    start = None if options.partition is None else check_partition(options.partition, n_groups, K)
    if start is not None and options.restarts == 0:
        return start
    searches = options.restarts > 0 and n_groups > K and len(groups) <= MAX_COLUMNS
    found = sums.ridge_sums(with_grams=searches)
    strength = strength_of(found, groups)
    first = assign_round_robin(strength, K) if start is None else fill_members(start, K, strength)
    if not searches:
        return first
    surrogates = surrogates_of(found, sums.sample(), rng, left_out=options.voting == "runoff")
    best, best_value = first, np.inf
    for restart in range(options.restarts):
        owners = first if restart == 0 else assign_round_robin(strength, K, rng.permutation(n_groups))
        search = _LocalSearch(surrogates, groups, owners, K, options)
        value = search.run(rng)
        if value < best_value - _LEAST_GAIN * abs(value):
            best, best_value = search.owners, value
    return renumber(best)


class _LocalSearch:
    """Moves of single groups to the member where they help most, until none helps."""

    def __init__(
        self,
        surrogates: Sequence[RidgeSurrogate],
        groups: Ints,
        owners: Partition,
        n_members: int,
        options: ExclusiveOptions,
    ) -> None:
        self.groups, self.owners = groups, owners.copy()
        columns = [self._columns(k) for k in range(n_members)]
        self.votes = [
            SoftVotes(surrogate, columns, options.radius, options.voting or "hard")
            for surrogate in surrogates
        ]

    def _columns(self, member: int) -> Ints:
        """Return the columns of a member, in order."""
        return np.flatnonzero(self.owners[self.groups] == member)

    def run(self, rng: np.random.Generator) -> float:
        """Sweep over the groups in random order; return the value reached."""
        value = sum(votes.value for votes in self.votes)
        for _ in range(min(_MAX_SWEEPS, max(_MIN_SWEEPS, _MAX_TRIALS // len(self.owners)))):
            before = value
            for group in rng.permutation(len(self.owners)):
                value = self._improve(int(group), value)
            if value == before:
                break
        return value

    def _improve(self, group: int, value: float) -> float:
        """Move one group to its best member, unless it would leave an empty one; return the value after."""
        source = int(self.owners[group])
        if np.count_nonzero(self.owners == source) == 1:
            return value
        moved = np.flatnonzero(self.groups == group)
        values = sum(votes.values_after(moved, source) for votes in self.votes)
        values = np.asarray(values)
        values[source] = value
        least = _LEAST_GAIN * abs(value)
        receiver = int(np.argmax(values <= values.min() + least))  # the first of equals
        if value - values[receiver] <= least:
            return value
        self.owners[group] = receiver
        for votes in self.votes:
            for member in (source, receiver):
                votes.change(member, self._columns(member))
        return float(values[receiver])
