"""Who owns which feature group before anything is learned: drawn, or as the user says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from exclusivity._typing import Ints
from exclusivity.classifier.parameters import ErmParameters
from exclusivity.solvers import ExclusiveOptions


def dealt(n_groups: int, n_members: int, rng: np.random.RandomState) -> Ints:
    """A random owner for every group; sizes differ by one at most."""
    return np.asarray(rng.permutation(np.arange(n_groups) % n_members))


def given(labels: ArrayLike, groups: Ints, n_members: int) -> Ints:
    """The owner of every group from one label per column or group; members in the order of their labels."""
    if np.ndim(labels) != 1:
        raise ValueError(
            "partition must be 'random', 'learned', or a sequence with the label of one member for each "
            f"column (or feature group); got {labels!r}."
        )
    owners = np.unique(np.asarray(labels), return_inverse=True)[1]
    n_groups = int(groups.max()) + 1
    if len(owners) not in (len(groups), n_groups):
        raise ValueError(
            f"partition must have one label for each of the {len(groups)} columns, or of the {n_groups} "
            f"feature groups; got {len(owners)}."
        )
    if len(owners) != n_groups:
        by_group = np.empty(n_groups, dtype=np.intp)
        by_group[groups] = owners
        if np.any(by_group[groups] != owners):
            raise ValueError(
                "partition gives columns of one feature group to different members; give every group "
                "one member."
            )
        owners = by_group
    if int(owners.max()) + 1 != n_members:
        raise ValueError(
            f"partition names {int(owners.max()) + 1} members, and n_estimators is {n_members}; set "
            f"n_estimators={int(owners.max()) + 1}."
        )
    return np.asarray(owners, dtype=np.intp)


def with_partition(
    options: ExclusiveOptions, estimator: ErmParameters, groups: Ints, seed: int
) -> ExclusiveOptions:
    """The options of the exclusive solver with a partition that is used as it is: drawn, or given."""
    n_members = estimator.n_estimators
    if isinstance(estimator.partition, str):
        owners = dealt(int(groups.max()) + 1, n_members, check_random_state(seed))
    else:
        owners = given(estimator.partition, groups, n_members)
    return replace(options, restarts=0, partition=owners)
