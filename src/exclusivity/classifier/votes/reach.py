"""Which members a feature reaches, and how many features a lead survives.

A wrong feature value reaches only the members that use the feature. Let w be the winning class and c any
other. A change of the features in a set J can at best make every member that uses one of them vote for c:
a member that voted w closes the lead votes(w) - votes(c) by 2, one that voted neither w nor c by 1. So
r features close it by at most the r largest values, over features j, of

    gain_j = 2 #{k in S_j : k votes w} + #{k in S_j : k votes neither w nor c},   S_j = members using j,

and c stays behind if the lead is strictly greater. A feature whose members all use another feature as well
adds nothing to that other one, so it is left out; with disjoint supports this counts members instead of
features.
"""

from __future__ import annotations

import numpy as np

from exclusivity._typing import Bools, Floats, Ints

UNDECIDED = -2
"""The vote of a member that might be for any class: its scores lie within their rounding errors."""

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


def largest_reaches(supports: Bools) -> Floats:
    """The distinct sets of members that one feature reaches, without those that lie in another one.

    Returns
    -------
    reach : ndarray of float32, shape (n_members, n_sets)
        Zeros and ones, ready for products.
    """
    if not supports.size:
        return np.zeros((len(supports), 0), dtype=np.float32)
    packed = np.ascontiguousarray(
        np.packbits(supports.T, axis=1)
    )  # far quicker to compare than columns of truths
    _, places = np.unique(packed.view(f"V{packed.shape[1]}"), return_index=True)
    reach = supports[:, places].astype(np.float32)
    if reach.shape[1] <= _MOST_COMPARED:
        common = reach.T @ reach
        is_inside = common == np.diag(common)[:, None]
        np.fill_diagonal(is_inside, False)
        reach = reach[:, ~is_inside.any(axis=1)]
    return np.asarray(reach)


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
