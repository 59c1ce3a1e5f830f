"""Exclusivity of two vectors, Definitions 1 and 2 of the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.problem.arrays import Floats


def exclusivity(u: ArrayLike, v: ArrayLike) -> int:
    """|u . v|_0: the number of entries in which both vectors are non-zero (Definition 1).

    Zero means that the two share nothing. Note the identity |u|_0 = exclusivity(u, 1).

    Parameters
    ----------
    u, v : array-like of shape (n,)
        Two vectors.

    Examples
    --------
    >>> exclusivity([1, 0, 2], [3, 4, 0])
    1
    """
    left, right = _pair(u, v)
    # Comparing each vector with zero, and not their product: a product of tiny numbers underflows.
    return int(np.count_nonzero((left != 0) & (right != 0)))


def relaxed_exclusivity(u: ArrayLike, v: ArrayLike) -> float:
    """|u . v|_1 = sum_i |u_i| |v_i| (Definition 2).

    Note the identities |u|_1 = relaxed_exclusivity(u, 1) and |u|_2^2 = relaxed_exclusivity(u, u).

    Parameters
    ----------
    u, v : array-like of shape (n,)
        Two vectors.

    Examples
    --------
    >>> relaxed_exclusivity([1, 0, -2], [3, 4, 1])
    5.0
    """
    left, right = _pair(u, v)
    return float(np.abs(left) @ np.abs(right))


def _pair(u: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]:
    left, right = np.asarray(u, dtype=float), np.asarray(v, dtype=float)
    if left.ndim != 1 or left.shape != right.shape:
        raise ValueError(
            f"exclusivity compares two vectors of one length; got shapes {left.shape} and {right.shape}."
        )
    return left, right
