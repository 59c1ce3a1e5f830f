"""From a measure of every pair of members to one number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.problem.arrays import Floats


def pair_values(matrix: ArrayLike) -> Floats:
    """The L(L-1)/2 entries above the diagonal, one per unordered pair of members."""
    values = np.asarray(matrix, dtype=float)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
        raise ValueError(
            f"A pairwise measure is a square matrix of at least two members; got shape {values.shape}."
        )
    return np.asarray(values[np.triu_indices(len(values), k=1)])


def mean_over_pairs(matrix: ArrayLike) -> float:
    """The mean of a pairwise measure over the L(L-1)/2 pairs of different members.

    Parameters
    ----------
    matrix : array-like of shape (n_members, n_members)
        What one of the ``pairwise_`` functions gives; its diagonal does not count.

    Returns
    -------
    mean : float

    Examples
    --------
    >>> mean_over_pairs([[9, 1, 2], [1, 9, 6], [2, 6, 9]])
    3.0
    """
    return float(pair_values(matrix).mean())
