"""Which member gets which feature group: drawn, learned, or as the user says."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from exclusivity.problem import ERMProblem
from exclusivity.problem.arrays import Floats, Ints, Matrix
from exclusivity.solvers.exclusive import ExclusiveOptions, find_partition

# The ridge of the members' linear stand-ins, on columns of variance 1.
_COST = 0.1
_SEED_LIMIT = np.iinfo(np.int32).max


def dealt(n_groups: int, n_members: int, rng: np.random.RandomState) -> Ints:
    """A random owner for every group; sizes differ by one at most."""
    if n_groups < n_members:
        warnings.warn(
            f"{n_members} members compete for {n_groups} features or groups: only {n_groups} of them exist. "
            f"Set n_estimators to {n_groups} or less.",
            UserWarning,
            stacklevel=4,
        )
    owners = np.arange(n_groups) % n_members
    return np.asarray(rng.permutation(owners))


def learned(
    X: Matrix, codes: Ints, weights: Floats, groups: Ints, n_members: int, rng: np.random.RandomState
) -> Ints:
    """The partition that ``ERMClassifier(exclusivity=np.inf)`` would choose, on standardised columns.

    Linear members stand in for the members, each class counts the same, and a gap is filled with the mean.
    """
    if int(groups.max()) < n_members:
        return dealt(int(groups.max()) + 1, n_members, rng)
    rows = weights > 0
    X, codes, weights = _standardised(X[rows], weights[rows]), codes[rows], weights[rows]
    classes, codes = np.unique(codes, return_inverse=True)
    balanced = weights / np.bincount(codes, weights=weights)[codes] * len(codes) / len(classes)
    labels = [np.where(codes == code, 1.0, -1.0) for code in range(len(classes))]
    if len(classes) == 2:
        labels = labels[1:]
    first = ERMProblem.build(
        X, labels[0], n_members=n_members, cost=_COST, weights=balanced, exclusivity=np.inf
    )
    problems = [first.changed(labels=column) for column in labels]
    generator = np.random.default_rng(int(rng.randint(_SEED_LIMIT)))
    return find_partition(problems, groups, ExclusiveOptions(), generator, None)


def _standardised(X: Matrix, weights: Floats) -> Matrix:
    scaled = StandardScaler(with_mean=not sparse.issparse(X)).fit_transform(X, sample_weight=weights)
    values = scaled.data if sparse.issparse(scaled) else scaled
    values[np.isnan(values)] = 0.0
    return scaled.astype(float)


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
