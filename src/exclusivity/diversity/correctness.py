"""Pairwise measures from correctness: who is right where.

N11, N10, N01 and N00 count the samples on which both members of a pair are right, only the first, only the
second, and neither (Kuncheva and Whitaker, "Measures of diversity in classifier ensembles", Machine
Learning 51, 2003).

Limits
------
The Q statistic and the correlation are 0/0 exactly when a member of the pair is right on all samples or on
none. They then keep the value that they have for all other pairs of the same kind: 1 where the two are
right on the same samples, -1 where exactly one of them is right on every sample, and otherwise 0, because
a constant is independent of everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.diversity.labels import correctness
from exclusivity.problem.arrays import Floats


@dataclass(frozen=True, eq=False)
class PairCounts:
    """N11, N10, N01 and N00 of every pair, as (n_members, n_members) matrices."""

    both: Floats
    first: Floats
    second: Floats
    neither: Floats
    n_samples: int

    def ratio(self, numerator: Floats, denominator: Floats) -> Floats:
        """Their quotient, and the limits of this module where the denominator is zero."""
        is_equal, is_opposite = self.first + self.second == 0, self.both + self.neither == 0
        values: Floats = is_equal.astype(float) - is_opposite.astype(float)
        np.divide(numerator, denominator, out=values, where=denominator > 0)
        return values


def pair_counts(predictions: ArrayLike, y_true: ArrayLike) -> PairCounts:
    """Count over the samples; floats hold these integers exactly."""
    right = correctness(predictions, y_true).astype(float)
    both = right.T @ right
    totals = np.diag(both)
    first, second = totals[:, None] - both, totals[None, :] - both
    return PairCounts(both, first, second, len(right) - both - first - second, len(right))


def pairwise_q_statistic(predictions: ArrayLike, y_true: ArrayLike) -> Floats:
    """Yule's Q statistic, (N11 N00 - N01 N10) / (N11 N00 + N01 N10).

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    q : ndarray of shape (n_members, n_members)
        In [-1, 1], symmetric, 1 on the diagonal. 0 for independent members, positive if they tend to be
        right on the same samples, negative if they err on different ones.

    Notes
    -----
    0/0 exactly if one of the two is right on all samples or on none. Then Q is 1 if the two are right on
    the same samples, -1 if exactly one is right on every sample (both as for all such pairs without a zero
    denominator), and else 0: a constant is independent of everything.

    Examples
    --------
    >>> y = ["a", "a", "b", "b"]
    >>> predictions = [["a", "a", "a"], ["a", "b", "a"], ["a", "b", "b"], ["b", "a", "b"]]
    >>> pairwise_q_statistic(predictions, y)
    array([[ 1., -1.,  0.],
           [-1.,  1.,  0.],
           [ 0.,  0.,  1.]])
    """
    n = pair_counts(predictions, y_true)
    same, crossed = n.both * n.neither, n.first * n.second
    return n.ratio(same - crossed, same + crossed)


def pairwise_correlation(predictions: ArrayLike, y_true: ArrayLike) -> Floats:
    """The correlation coefficient of being right.

    (N11 N00 - N01 N10) / sqrt((N11+N10) (N01+N00) (N11+N01) (N10+N00)).

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    correlation : ndarray of shape (n_members, n_members)
        In [-1, 1], symmetric, 1 on the diagonal. Has the sign of the Q statistic and is not larger in
        absolute value.

    Notes
    -----
    0/0 exactly if one of the two is right on all samples or on none. The limits are those of
    :func:`pairwise_q_statistic`, for the same reasons: 1 for equal, -1 for opposite, else 0.

    Examples
    --------
    >>> pairwise_correlation([[1, 1], [1, 0], [1, 0], [0, 0]], [1, 1, 1, 1]).round(3)
    array([[1.   , 0.333],
           [0.333, 1.   ]])
    """
    n = pair_counts(predictions, y_true)
    right = np.diag(n.both)
    spread = right * (n.n_samples - right)
    # One root of the product, and not a product of two roots: sqrt(x * x) is x to the last digit.
    return n.ratio(n.both * n.neither - n.first * n.second, np.sqrt(np.outer(spread, spread)))


def pairwise_disagreement(predictions: ArrayLike, y_true: ArrayLike) -> Floats:
    """The share of samples on which exactly one of the two is right, (N01 + N10) / N.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    disagreement : ndarray of shape (n_members, n_members)
        In [0, 1], symmetric, 0 on the diagonal. Two members that are wrong in different ways agree in
        this sense: both are wrong.

    Examples
    --------
    >>> pairwise_disagreement([[1, 1], [1, 0], [1, 0], [0, 0]], [1, 1, 1, 1])
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    n = pair_counts(predictions, y_true)
    return np.asarray((n.first + n.second) / n.n_samples)


def pairwise_double_fault(predictions: ArrayLike, y_true: ArrayLike) -> Floats:
    """The share of samples on which both are wrong, N00 / N.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    double_fault : ndarray of shape (n_members, n_members)
        In [0, 1], symmetric; the error rates of the members on the diagonal, which no entry of their row
        exceeds.

    Examples
    --------
    >>> pairwise_double_fault([[1, 1], [1, 0], [1, 0], [0, 0]], [1, 1, 1, 1])
    array([[0.25, 0.25],
           [0.25, 0.75]])
    """
    n = pair_counts(predictions, y_true)
    return np.asarray(n.neither / n.n_samples)
