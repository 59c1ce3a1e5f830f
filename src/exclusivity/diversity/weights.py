"""Measures from weight vectors: angles, and the exclusivity of the paper."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.diversity.pairs import pair_values
from exclusivity.problem import exclusivity, relaxed_exclusivity
from exclusivity.problem.arrays import Floats


def pairwise_angle(weights: ArrayLike) -> Floats:
    """The angle between the lines along two weight vectors, arccos |cos(u, v)|.

    Parameters
    ----------
    weights : array-like of shape (n_members, n_features)
        One weight vector per member.

    Returns
    -------
    angle : ndarray of shape (n_members, n_members)
        In radians, between 0 (parallel or opposite) and pi/2 (orthogonal); symmetric, 0 on the diagonal.

    Notes
    -----
    A zero vector has no direction, and no limit exists: it depends on how the vector shrinks. By
    definition here it is orthogonal to every other vector (their inner product and their exclusivity are
    zero), and two zero vectors are equal members, so their angle is 0.

    Examples
    --------
    >>> pairwise_angle([[1, 0], [2, 2], [0, -3]]).round(3)
    array([[0.   , 0.785, 1.571],
           [0.785, 0.   , 0.785],
           [1.571, 0.785, 0.   ]])
    """
    units = _unit_rows(weight_matrix(weights))
    angles = np.zeros((len(units), len(units)))
    for i, unit in enumerate(units[:-1]):
        apart = np.linalg.norm(units[i + 1 :] - unit, axis=1)
        along = np.linalg.norm(units[i + 1 :] + unit, axis=1)
        # tan(angle / 2) = |u - v| / |u + v|: exact for equal vectors, where arccos loses half the digits.
        # The smaller over the larger is the angle of the lines, whatever the signs.
        angles[i, i + 1 :] = 2 * np.arctan2(np.minimum(apart, along), np.maximum(apart, along))
    return angles + angles.T


def mutual_angular(weights: ArrayLike, g: float = 1.0) -> float:
    """Mutual angular measure: the mean of the angles of all pairs minus ``g`` times their variance.

    Large if the vectors point in different directions (mean) and do so evenly (variance).

    Parameters
    ----------
    weights : array-like of shape (n_members, n_features)
        One weight vector per member.
    g : float, default=1.0
        Weight of the variance, not negative.

    Returns
    -------
    measure : float
        At most pi/2, reached by orthogonal vectors; 0 for parallel ones; not below -g pi^2 / 16. For zero
        vectors see :func:`pairwise_angle`.

    References
    ----------
    P. Xie, Y. Deng, E. Xing, "Diversifying restricted Boltzmann machine for document modeling", KDD 2015.

    Examples
    --------
    >>> round(mutual_angular([[1, 0], [2, 2], [0, -3]], g=0), 3)
    1.047
    >>> round(mutual_angular([[1, 0], [2, 2], [0, -3]]), 3)
    0.91
    """
    if not (np.isfinite(g) and g >= 0):
        raise ValueError(f"g must be finite and not negative; got {g!r}.")
    angles = pair_values(pairwise_angle(weights))
    return float(angles.mean() - g * angles.var())


def pairwise_exclusivity(weights: ArrayLike) -> Floats:
    """|u . v|_0: the number of features that both members use (Definition 1 of the paper).

    Parameters
    ----------
    weights : array-like of shape (n_members, n_features)
        One weight vector per member.

    Returns
    -------
    exclusivity : ndarray of shape (n_members, n_members)
        Whole numbers from 0 (nothing shared) to n_features; symmetric, |u|_0 on the diagonal.

    Examples
    --------
    >>> pairwise_exclusivity([[1, 0, 2], [3, 4, 0]])
    array([[2., 1.],
           [1., 2.]])
    """
    return _of_all_pairs(exclusivity, weight_matrix(weights))


def pairwise_relaxed_exclusivity(weights: ArrayLike) -> Floats:
    """|u . v|_1 = sum_i |u_i| |v_i| (Definition 2 of the paper).

    Parameters
    ----------
    weights : array-like of shape (n_members, n_features)
        One weight vector per member.

    Returns
    -------
    relaxed_exclusivity : ndarray of shape (n_members, n_members)
        Not negative, 0 where nothing is shared; symmetric, |u|_2^2 on the diagonal. Scales with the
        vectors: halving all weights quarters it.

    Examples
    --------
    >>> pairwise_relaxed_exclusivity([[1, 0, -2], [3, 4, 1]])
    array([[ 5.,  5.],
           [ 5., 26.]])
    """
    return _of_all_pairs(relaxed_exclusivity, weight_matrix(weights))


def weight_matrix(weights: ArrayLike) -> Floats:
    """The weight vectors as a finite float64 matrix of at least two members (rows)."""
    matrix = np.asarray(weights, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 1:
        raise ValueError(
            "weights must have one row per member and one column per feature, at least two members and one "
            f"feature; got shape {matrix.shape}."
        )
    if not np.all(np.isfinite(matrix)):
        raise ValueError("weights contain NaN or infinity.")
    return matrix


def _of_all_pairs(measure: Callable[[Floats, Floats], float], weights: Floats) -> Floats:
    values = np.zeros((len(weights), len(weights)))
    for i, j in combinations_with_replacement(range(len(weights)), 2):
        values[i, j] = values[j, i] = measure(weights[i], weights[j])
    return values


def _unit_rows(matrix: Floats) -> Floats:
    """Rows of length one; zero rows stay zero. Scaled first, so that no square over- or underflows."""
    scaled = matrix / _positive(np.abs(matrix).max(axis=1, keepdims=True))
    return np.asarray(scaled / _positive(np.linalg.norm(scaled, axis=1, keepdims=True)))


def _positive(lengths: Floats) -> Floats:
    return np.where(lengths > 0, lengths, 1.0)
