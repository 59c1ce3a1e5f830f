"""How many features may take any value before a majority vote can change: the certificate of hard voting.

A wrong feature value reaches only the members that use the feature. Let w be the winning class and c any
other. A change of the features in a set J can at best make every member that uses one of them vote for c:
a member that voted w closes the lead votes(w) - votes(c) by 2, one that voted neither w nor c by 1. So
r features close it by at most the r largest values, over features j, of

    gain_j = 2 #{k in S_j : k votes w} + #{k in S_j : k votes neither w nor c},   S_j = members using j,

and the decision stands if the lead is strictly greater, for every c. A tie counts as a change, so the rule
that breaks ties does not matter. A feature whose members all use another feature as well adds nothing
to that other one, so it is left out; with disjoint supports this counts members instead of features.

A member whose vote is undecided (see ``certainty``) counts as one that votes for c already: the lead is
smaller by one, and no feature can make that worse. So whatever such members say where the row is predicted,
w wins there, and stays.
"""

from __future__ import annotations

import numpy as np

from exclusivity.problem.arrays import Bools, Floats, Ints

UNDECIDED = -2
"""The vote of a member that might be for any class: its scores lie within their rounding errors."""

# Numbers in one temporary array of a block of rows: 16 MB.
_BLOCK_NUMBERS = 1 << 22
# Comparing more sets of members than this pair by pair costs more than the tighter bound is worth.
_MOST_COMPARED = 4096


def grouped(supports: Bools, groups: Ints) -> Bools:
    """Supports per group of columns: a member uses a group if it uses one of its columns.

    Examples
    --------
    >>> grouped(np.array([[True, False, False], [False, False, True]]), np.array([0, 0, 1]))
    array([[ True, False],
           [False,  True]])
    """
    merged = np.zeros((len(supports), int(groups.max()) + 1), dtype=bool)
    members, columns = np.nonzero(supports)
    merged[members, groups[columns]] = True
    return merged


def certified_radius(votes: Ints, supports: Bools, n_classes: int) -> Ints:
    """The largest number of features that may take any value while the majority provably stays.

    Parameters
    ----------
    votes : ndarray of int, shape (n_samples, n_members)
        The class that each member votes for, 0 to ``n_classes - 1``; -1 for a member that gives no vote
        here but might after a change; ``UNDECIDED`` for one that may vote for any class already.
    supports : ndarray of bool, shape (n_members, n_features)
        Which member uses which feature (or group of columns) in any of its scores. Members that use none
        abstain: a constant vote would only fake robustness.
    n_classes : int

    Returns
    -------
    radius : ndarray of int, shape (n_samples,)
        -1 where the vote is a tie already, or might be. Exact for two classes and disjoint supports, a proven
        lower bound otherwise.

    Examples
    --------
    Five members on a feature each: a 4 to 1 majority survives one feature, a 3 to 2 majority none.

    >>> certified_radius(np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]]), np.eye(5, dtype=bool), 2)
    array([1, 0])
    """
    votes, supports = np.asarray(votes), np.asarray(supports, dtype=bool)
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
    has_features = supports.any(axis=1)
    votes, reach = votes[:, has_features], largest_reaches(supports[has_features])
    radius = np.full(len(votes), -1, dtype=np.intp)
    step = max(1, _BLOCK_NUMBERS // max(reach.shape[1], n_classes, 1))
    for start in range(0, len(votes), step):
        rows = slice(start, start + step)
        radius[rows] = _radius_of_block(votes[rows], reach, n_classes)
    return radius


def largest_reaches(supports: Bools) -> Floats:
    """The distinct sets of members that one feature reaches, without those that lie in another one.

    Returns
    -------
    reach : ndarray of float32, shape (n_members, n_sets)
        Zeros and ones, ready for products.
    """
    if not supports.size:
        return np.zeros((len(supports), 0), dtype=np.float32)
    reach = np.unique(supports, axis=1).astype(np.float32)
    if reach.shape[1] <= _MOST_COMPARED:
        common = reach.T @ reach
        is_inside = common == np.diag(common)[:, None]
        np.fill_diagonal(is_inside, False)
        reach = reach[:, ~is_inside.any(axis=1)]
    return np.asarray(reach)


def _radius_of_block(votes: Ints, reach: Floats, n_classes: int) -> Ints:
    totals = np.stack([(votes == c).sum(axis=1) for c in range(n_classes)], axis=1)
    winner = totals.argmax(axis=1)
    undecided = votes == UNDECIDED
    most = totals.max(axis=1) - undecided.sum(axis=1)  # undecided votes count for c, whatever c is
    # gain_j = #S_j + #{k in S_j : k votes w} - #{k in S_j : k votes c}: only the last term depends on c.
    fixed = reach.sum(axis=0) + (votes == winner[:, None]).astype(np.float32) @ reach
    if undecided.any():
        fixed -= undecided.astype(np.float32) @ reach
    radius = np.full(len(votes), reach.shape[1], dtype=np.intp)
    for c in range(n_classes):
        lead = most - totals[:, c]
        rows = np.flatnonzero(winner != c)
        if rows.size:
            gains = fixed[rows] - (votes[rows] == c).astype(np.float32) @ reach
            radius[rows] = np.minimum(radius[rows], survived(gains, lead[rows]))
    return radius


def survived(gains: Floats, lead: Ints) -> Ints:
    """The number of largest gains whose sum stays below the lead; -1 for no lead."""
    # Gains are whole numbers, so more of them than the lead cannot stay below it: no need to sort the rest.
    # (Those that are zero come last, behind gains that sum up to twice the winner's votes.)
    n_needed = min(gains.shape[1], int(lead.max(initial=0)))
    descending = -gains
    if 4 * n_needed < gains.shape[1]:
        descending = np.partition(descending, n_needed, axis=1)[:, :n_needed]
    descending.sort(axis=1)
    closed = np.cumsum(-descending[:, :n_needed], axis=1)
    survived = (closed < lead[:, None]).sum(axis=1)
    return np.where(lead > 0, survived, -1)
