"""Which member gets which feature group, learned from the rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from exclusivity.classifier import dealt
from exclusivity.problem import ERMProblem
from exclusivity.problem.arrays import Floats, Ints, Matrix
from exclusivity.solvers.exclusive import ExclusiveOptions, find_partition

# The ridge of the members' linear stand-ins, on columns of variance 1.
_COST = 0.1
_SEED_LIMIT = np.iinfo(np.int32).max


def learned(
    X: Matrix,
    codes: Ints,
    weights: Floats,
    groups: Ints,
    n_members: int,
    rng: np.random.RandomState,
    voting: str = "hard",
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
    return find_partition(problems, groups, ExclusiveOptions(voting=voting), generator, None)


def _standardised(X: Matrix, weights: Floats) -> Matrix:
    scaled = StandardScaler(with_mean=not sparse.issparse(X)).fit_transform(X, sample_weight=weights)
    values = scaled.data if sparse.issparse(scaled) else scaled
    values[np.isnan(values)] = 0.0
    return scaled.astype(float)
