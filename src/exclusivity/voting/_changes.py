"""Minimal changes: how many features have to change before a class can win; tools of the voting rules.

The *minimal change* of class c is a lower bound on the number of features that have to change before c can
win, or tie with the winner; it is 0 for the present winner. The smallest one of another class, less one, is
the radius. Changed members may say anything; a tie counts as won by every class, so that the rule that breaks
ties does not matter; and a member that is undecided already (see ``preferences``) supports every class
without a change. v_c are votes, m is the number of undecided votes.

Disjoint supports: c wins a plurality if it draws level with every class d. The best change gives n votes to
c; from d it has to take what n more votes for c leave of its lead, q_d = v_d - v_c - m - n. So n is enough if
sum_d max(q_d, 0) <= n, and nothing smaller is. Of the winner w alone it has to take (v_w - v_c - m) / 2,
rounded up; for the runner-up that is enough, so the smallest minimal change needs no more.

Shared features: a change of the features in a set J can at best make every member that uses one of them vote
for c: a member that voted w closes the lead v_w - v_c by 2, one that voted neither w nor c by 1. So r
features close it by at most the r largest values, over features j, of

    gain_j = 2 #{k in S_j : k votes w} + #{k in S_j : k votes neither w nor c},   S_j = members using j,

and c stays behind if the lead is strictly greater. A feature whose members all use another feature as well
adds nothing to that other one, so it is left out; with disjoint supports this counts members instead of
features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.voting.preferences import UNDECIDED, votes_by_class

Counts = NDArray[np.signedinteger[Any]]

# Below this many members all counts, and three times a count, fit into 16 bits.
_FEW_MEMBERS = 8000
# Comparing more sets of members than this pair by pair takes more time than the tighter bound is worth.
_MOST_COMPARED = 4096


def group_supports(supports: Bools, groups: Ints) -> Bools:
    """Return supports per group of columns: a member uses a group if it uses one of its columns.

    Examples
    --------
    >>> group_supports(np.array([[True, False, False], [False, False, True]]), np.array([0, 0, 1]))
    array([[ True, False],
           [False,  True]])
    """
    merged = np.zeros((len(supports), int(groups.max()) + 1), dtype=bool)
    members, columns = np.nonzero(supports)
    merged[members, groups[columns]] = True
    return merged


def largest_reaches(supports: Bools) -> Floats:
    """Return the distinct sets of members that one feature reaches, without those that lie in another one.

    They are zeros and ones, (n_members, n_sets), of float32 and so ready for products.
    """
    if not supports.size:
        return np.zeros((len(supports), 0), dtype=np.float32)
    # Far quicker to compare than columns of truths.
    packed = np.ascontiguousarray(np.packbits(supports.T, axis=1))
    _, places = np.unique(packed.view(f"V{packed.shape[1]}"), return_index=True)
    reach = supports[:, places].astype(np.float32)
    if reach.shape[1] <= _MOST_COMPARED:
        common = reach.T @ reach
        is_inside = common == np.diag(common)[:, None]
        np.fill_diagonal(is_inside, False)
        reach = reach[:, ~is_inside.any(axis=1)]
    return np.asarray(reach)


def radius_of(changes: Ints, n_groups: int, top_k: int = 1) -> Ints:
    """Return the largest number of features that may change before more than ``top_k`` classes can win.

    Examples
    --------
    >>> radius_of(np.array([[2, 0, 3], [0, 0, 1]]), 5)
    array([ 1, -1])
    >>> radius_of(np.array([[2, 0, 3], [0, 0, 1]]), 5, top_k=2)
    array([2, 0])
    """
    return np.minimum(np.sort(changes, axis=1)[:, top_k] - 1, n_groups)


def check_votes(votes: Ints, supports: Bools, n_classes: int) -> None:
    """Raise unless votes and supports are of the same members, and votes for classes that exist."""
    if votes.ndim != 2 or supports.ndim != 2 or votes.shape[1] != len(supports):
        raise ValueError(
            "votes must have one column and supports one row per member; "
            f"got shapes {votes.shape} and {supports.shape}."
        )
    if votes.size and not (votes.min() >= UNDECIDED and votes.max() < n_classes):
        raise ValueError(
            f"votes must be class numbers from 0 to {n_classes - 1}, -1 or {UNDECIDED}; "
            f"got values from {votes.min()} to {votes.max()}."
        )


def is_disjoint(reach: Floats) -> bool:
    """Return whether no feature reaches two members."""
    return bool(np.all(reach.sum(axis=0) <= 1))


def fewest_changes(
    leads: Counts, n_members: int, duel: tuple[Counts, Counts, Counts, Counts] | None = None
) -> Counts:
    """Return the fewest members of disjoint supports that have to change before c draws level with every d.

    Parameters
    ----------
    leads : ndarray of shape (n_rows, c, d)
        v_d - v_c - m; no more than 0 for the d that do not matter, which may be left out.
    n_members : int
    duel : tuple, optional
        If c has to win a duel too: the rival's lead, how many members prefer the rival and how many have no
        preference, (n_rows, c) each, and how many voters of d prefer the rival, (n_rows, c, d).
    """
    low = np.zeros(leads.shape[:2], dtype=leads.dtype)
    high = np.full_like(low, n_members)
    for _ in range(int(n_members).bit_length() + 1):  # what is enough stays enough: bisection
        n = (low + high) // 2
        taken = np.maximum(leads - n[:, :, None], 0)
        is_enough = taken.sum(axis=2, dtype=leads.dtype) <= n
        if duel is not None:
            lead, liking, indifferent, liking_of = duel
            useless = np.maximum(taken - liking_of, 0).sum(axis=2, dtype=leads.dtype)
            turned = np.minimum(n - useless, liking)
            is_enough &= 2 * turned + np.minimum(n - turned, indifferent) >= lead
        high = np.where(is_enough, n, high)
        low = np.where(is_enough, low, np.minimum(n + 1, high))
    return high


class Tally:
    """The votes of some rows, counted."""

    def __init__(self, votes: Ints, n_classes: int) -> None:
        self.votes, self.n_classes, self.n_members = votes, n_classes, int(votes.shape[1])
        self.kind: type[np.signedinteger[Any]] = np.int16 if self.n_members < _FEW_MEMBERS else np.int32
        counts = votes_by_class(votes, n_classes)
        self.totals: Counts = counts.astype(self.kind)
        # Classes with votes in any row: all others stand behind in the same way.
        self.voted: Ints = np.flatnonzero(counts.any(axis=0))
        self.undecided: Counts = (votes == UNDECIDED).sum(axis=1).astype(self.kind)

    def leads(self) -> Counts:
        """Return v_d - v_c - m for the d with votes, (n_rows, c, d): no other d can be ahead of a class."""
        return self.totals[:, None, self.voted] - self.totals[:, :, None] - self.undecided[:, None, None]

    def fewest_to_pass_winner(self) -> Counts:
        """Return the fewest members that close the lead of the winner, (n_rows, n_classes)."""
        rows, winner = np.arange(len(self.votes)), self.totals.argmax(axis=1)
        behind = (self.totals[rows, winner] - self.undecided)[:, None] - self.totals
        changes: Counts = np.maximum((behind + 1) // 2, 0)
        changes[rows, winner] = 0
        return changes

    def reached(self, code: int | Ints, reach: Floats) -> Floats:
        """Return how many voters of a class each set of ``reach`` has, (n_rows, n_sets)."""
        return product((self.votes == code).astype(np.float32), reach)

    def fewest_against(self, rival: Ints, reach: Floats) -> Ints:
        """Return the fewest features that may close the lead of the rival, (n_rows, n_classes)."""
        rows = np.arange(len(self.votes))
        fixed = reach.sum(axis=0) + self.reached(rival[:, None], reach) - self.reached(UNDECIDED, reach)
        lead = self.totals[rows, rival] - self.undecided
        found = np.repeat(fewest(fixed, lead)[:, None], self.n_classes, axis=1)
        found[rows, rival] = 0
        for c in self.voted:
            others = np.flatnonzero(rival != c)
            gains = fixed[others] - product((self.votes[others] == c).astype(np.float32), reach)
            found[others, c] = fewest(gains, lead[others] - self.totals[others, c])
        return found


def product(votes: Floats, reach: Floats) -> Floats:
    """Return a product of small integers; some BLAS kernels raise flags of errors beside a right result."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.asarray(votes @ reach)


def fewest(gains: Floats, needed: Counts) -> Ints:
    """Return how many of the largest gains reach what is needed; one more than there are where all do not."""
    # Gains are whole numbers, so more of them than are needed cannot stay below it: no need to sort the rest.
    # (Those that are zero come last, behind gains that sum up to twice the winner's votes.)
    most = min(gains.shape[1], int(needed.max(initial=0)))
    descending = -gains
    if 4 * most < gains.shape[1]:
        descending = np.partition(descending, most, axis=1)[:, :most]
    descending.sort(axis=1)
    closed = np.cumsum(-descending[:, :most], axis=1)
    return np.where(needed > 0, (closed < needed[:, None]).sum(axis=1) + 1, 0)


def fewest_of_each(gains: Floats, needed: Counts) -> Ints:
    """Return the same for many needs of every row, (n_rows, ...)."""
    closed = np.cumsum(-np.sort(-gains, axis=1), axis=1)
    found = np.empty(needed.shape, dtype=np.intp)
    for row in range(len(needed)):
        found[row] = np.searchsorted(closed[row], needed[row]) + 1
    return np.where(needed > 0, found, 0)
