"""What an adversary may do to one group of features: single moves that are likely to turn a member."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.base import BaseEstimator

from exclusivity.problem.arrays import Bools, Floats, Ints

# How far beyond its boundary a member is pushed: other columns of the same member cannot pull it back.
_PUSH = 100.0


@dataclass(frozen=True, eq=False)
class Moves:
    """Moves for a block of rows: move m changes the columns of group ``groups[m]`` by ``steps[:, m]``."""

    groups: Ints
    steps: Floats


def linear_moves(
    estimator: BaseEstimator, X: Floats, targets: Ints, votes: Ints, columns_of: Bools, supports: Bools
) -> Moves:
    """For linear members: for every member and every group that it uses, towards the target class.

    Member k that votes v and shall vote c is moved along the difference d of the gradients of its scores of c
    and v on the columns of the group, far enough for the group alone to turn it.

    Parameters
    ----------
    estimator : ERMClassifier
    X : ndarray of shape (n_rows, n_columns)
    targets : ndarray of shape (n_rows,)
        The class that members shall vote for.
    votes : ndarray of shape (n_rows, n_members)
        The classes that they vote for.
    columns_of : ndarray of bool, shape (n_groups, n_columns)
    supports : ndarray of bool, shape (n_members, n_groups)
    """
    slopes, offsets = class_slopes(estimator, len(supports))
    pairs = np.argwhere(supports.T)
    steps = np.zeros((len(X), len(pairs), X.shape[1]))
    for number, (group, member) in enumerate(pairs):
        slope = slopes[targets, member] - slopes[votes[:, member], member]
        behind = (
            np.einsum("ij,ij->i", X, slope) + offsets[targets, member] - offsets[votes[:, member], member]
        )
        direction = slope * columns_of[group]
        length = np.einsum("ij,ij->i", direction, direction)[:, None]
        push = _PUSH * (1 + np.abs(behind))[:, None]
        steps[:, number] = np.divide(push * direction, length, out=np.zeros_like(direction), where=length > 0)
    return Moves(pairs[:, 0], steps)


def class_slopes(estimator: BaseEstimator, n_members: int) -> tuple[Floats, Floats]:
    """Gradients (n_classes, n_members, n_columns) and offsets of the first members' scores of the classes."""
    weights = np.asarray(estimator.components_[:, :n_members], dtype=float)
    offsets = np.asarray(estimator.component_intercepts_[:, :n_members], dtype=float)
    n_classes = len(estimator.classes_)
    if n_classes == 2:
        return np.concatenate([-weights, weights]), np.concatenate([-offsets, offsets])
    if estimator.multi_class_ == "ovr":
        return weights, offsets
    signs = np.zeros((n_classes, len(weights)))
    for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
        signs[i, pair], signs[j, pair] = 1.0, -1.0
    return np.tensordot(signs, weights, axes=1), signs @ offsets


def blind_moves(X: Floats, columns_of: Bools, deviations: Floats, size: float) -> Moves:
    """For any classifier: all columns of a group up, or down, by ``size`` standard deviations."""
    groups = np.repeat(np.arange(len(columns_of)), 2)
    signs = np.tile([1.0, -1.0], len(columns_of))[:, None]
    steps = signs * columns_of[groups] * (size * deviations)
    return Moves(groups, np.broadcast_to(steps, (len(X), *steps.shape)))
