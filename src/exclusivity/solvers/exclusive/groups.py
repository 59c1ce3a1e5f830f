"""Feature groups and partitions: checks, and the partition that a search starts from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers.exclusive.settings import Partition


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
