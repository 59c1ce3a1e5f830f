"""How many features it takes until a class can win: the certificate of hard votes, class by class.

The *threat* of class c is a lower bound on the number of features that have to change before c can win, or
tie with the winner; it is 0 for the present winner. The smallest threat of another class, less one, is the
radius. Changed members may say anything, a tie counts as won by anybody, so the rule that breaks ties does
not matter, and a member that is undecided already (see ``certainty``) takes part on everybody's side at no
price. v_c are votes, m is the number of undecided votes.

Disjoint supports: c wins if it draws level with every class d. The best change gives n votes to c; from d it
has to take what n more votes for c leave of its lead, q_d = v_d - v_c - m - n. So n is enough if
sum_d max(q_d, 0) <= n, and nothing smaller is. Of the winner w alone it has to take (v_w - v_c - m) / 2,
rounded up; for the runner-up that is enough, so the smallest threat needs no more. With shared features c has
to close the lead of the present winner, as in ``reach``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.classifier.votes.decisions import votes_by_class
from exclusivity.classifier.votes.reach import UNDECIDED, largest_reaches, survived

Counts = NDArray[np.signedinteger[Any]]

# Numbers in one temporary array of a block of rows: 4 MB, which stay near the processor.
BLOCK_NUMBERS = 1 << 19
# Below this many members all counts, and three times a count, fit into 16 bits.
_FEW_MEMBERS = 8000


def radius_of(threats: Ints, n_groups: int, top_k: int = 1) -> Ints:
    """The largest number of features that may change before more than ``top_k`` classes can win.

    Examples
    --------
    >>> radius_of(np.array([[2, 0, 3], [0, 0, 1]]), 5)
    array([ 1, -1])
    >>> radius_of(np.array([[2, 0, 3], [0, 0, 1]]), 5, top_k=2)
    array([2, 0])
    """
    return np.minimum(np.sort(threats, axis=1)[:, top_k] - 1, n_groups)


def hard_threats(votes: Ints, supports: Bools, n_classes: int, *, all_classes: bool = True) -> Ints:
    """The threat of every class in a hard vote.

    Parameters
    ----------
    votes : ndarray of int, shape (n_samples, n_members)
        The class that each member votes for, 0 to ``n_classes - 1``; -1 for a member that gives no vote
        here but might after a change; ``UNDECIDED`` for one that may vote for any class already.
    supports : ndarray of bool, shape (n_members, n_groups)
        Which member uses which feature (or group of columns) in any of its scores. Members that use none
        abstain: a constant vote would only fake robustness.
    n_classes : int
    all_classes : bool, default=True
        Whether c has to pass all classes, and not the winner alone. That makes the threats of some classes
        larger, never the smallest one.

    Returns
    -------
    threats : ndarray of int, shape (n_samples, n_classes)
        More than the number of groups where no number of them is enough.

    Examples
    --------
    Four members for class 0 and one for class 1: two features tie them; for class 2 it takes as many.

    >>> hard_threats(np.array([[0, 0, 0, 0, 1]]), np.eye(5, dtype=bool), 3)
    array([[0, 2, 2]])
    """
    _check_votes(votes, supports, n_classes)
    fed = supports.any(axis=1)
    votes, reach = votes[:, fed], largest_reaches(supports[fed])
    threats = np.empty((len(votes), n_classes), dtype=np.intp)
    for rows in row_blocks(len(votes), reach, n_classes):
        tally = Tally(votes[rows], n_classes)
        if not is_disjoint(reach):
            threats[rows] = tally.fewest_against(tally.totals.argmax(axis=1), reach)
        elif all_classes:
            threats[rows] = fewest_changes(tally.leads(), tally.n_members)
        else:
            threats[rows] = tally.fewest_to_pass_winner()
    return threats


def _check_votes(votes: Ints, supports: Bools, n_classes: int) -> None:
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
    """Whether no feature reaches two members."""
    return bool(np.all(reach.sum(axis=0) <= 1))


def fewest_changes(
    leads: Counts, n_members: int, duel: tuple[Counts, Counts, Counts, Counts] | None = None
) -> Counts:
    """The fewest members of disjoint supports that have to change before c draws level with every d.

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
    """The votes of the first round, counted."""

    def __init__(self, votes: Ints, n_classes: int) -> None:
        self.votes, self.n_classes, self.n_members = votes, n_classes, int(votes.shape[1])
        self.kind: type[np.signedinteger[Any]] = np.int16 if self.n_members < _FEW_MEMBERS else np.int32
        counts = votes_by_class(votes, n_classes)
        self.totals: Counts = counts.astype(self.kind)
        # Classes that somebody votes for, in any row: all others stand behind in the same way.
        self.voted: Ints = np.flatnonzero(counts.any(axis=0))
        self.undecided: Counts = (votes == UNDECIDED).sum(axis=1).astype(self.kind)

    def leads(self) -> Counts:
        """v_d - v_c - m for the d that have votes, (n_rows, c, d): no other d can be ahead of a class."""
        return self.totals[:, None, self.voted] - self.totals[:, :, None] - self.undecided[:, None, None]

    def fewest_to_pass_winner(self) -> Counts:
        """For every class the fewest members that close the lead of the winner, (n_rows, n_classes)."""
        rows, winner = np.arange(len(self.votes)), self.totals.argmax(axis=1)
        behind = (self.totals[rows, winner] - self.undecided)[:, None] - self.totals
        threats: Counts = np.maximum((behind + 1) // 2, 0)
        threats[rows, winner] = 0
        return threats

    def reached(self, code: int | Ints, reach: Floats) -> Floats:
        """How many voters of a class each set of ``reach`` has, (n_rows, n_sets)."""
        return product((self.votes == code).astype(np.float32), reach)

    def fewest_against(self, rival: Ints, reach: Floats) -> Ints:
        """For every class the fewest features that may close the lead of the rival, (n_rows, n_classes)."""
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
    """How many of the largest gains reach what is needed; one more than there are where all do not."""
    return np.asarray(survived(gains, needed) + 1)


def fewest_of_each(gains: Floats, needed: Counts) -> Ints:
    """The same for many needs of every row, (n_rows, ...)."""
    closed = np.cumsum(-np.sort(-gains, axis=1), axis=1)
    found = np.empty(needed.shape, dtype=np.intp)
    for row in range(len(needed)):
        found[row] = np.searchsorted(closed[row], needed[row]) + 1
    return np.where(needed > 0, found, 0)


def row_blocks(n_rows: int, reach: Floats, n_classes: int) -> Iterator[slice]:
    """Rows to count at once."""
    numbers = n_classes * max(n_classes, reach.shape[0], reach.shape[1], 1)
    step = max(1, BLOCK_NUMBERS // numbers)
    return (slice(start, start + step) for start in range(0, n_rows, step))
