"""Agreement beyond chance: kappa of two members' labels, and kappa of all members' correctness."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.diversity.labels import correctness, label_codes, prediction_matrix
from exclusivity.problem.arrays import Floats


def pairwise_kappa(predictions: ArrayLike) -> Floats:
    """Cohen's kappa of two members' predicted labels, (T1 - T2) / (1 - T2).

    T1 is the share of samples with the same label, T2 the share expected if the two labelled
    independently, each with its own frequencies.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type. True labels do not matter; computed from correctness instead, kappa
        can differ even in sign.

    Returns
    -------
    kappa : ndarray of shape (n_members, n_members)
        In [-1, 1], symmetric, 1 on the diagonal; 0 is agreement by chance.

    Notes
    -----
    0/0 exactly if both members give one and the same label to all samples (T2 = 1). They are equal, and
    equal members have kappa 1 in all other cases: the limit is 1.

    Examples
    --------
    >>> pairwise_kappa([["a", "a"], ["a", "b"], ["b", "b"], ["b", "b"]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    codes, n_labels = label_codes(prediction_matrix(predictions))
    n_samples, n_members = codes.shape
    agreed, expected = np.zeros((n_members, n_members)), np.zeros((n_members, n_members))
    for label in range(n_labels):
        chosen = (codes == label).astype(float)
        counts = chosen.sum(axis=0)
        agreed += chosen.T @ chosen
        expected += np.outer(counts, counts)
    # Numerator and denominator times N^2 are integers: no rounding decides whether one is zero.
    denominator = n_samples**2 - expected
    kappa = np.ones_like(expected)
    np.divide(n_samples * agreed - expected, denominator, out=kappa, where=denominator > 0)
    return kappa


def interrater_kappa(predictions: ArrayLike, y_true: ArrayLike) -> float:
    """Agreement of all members on which samples are easy, beyond chance (Fleiss; not pairwise).

    1 - [sum over samples of l (L - l) / L] / [N (L - 1) p (1 - p)], where l of the L members are right on a
    sample and p is their mean accuracy.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    kappa : float
        In [-1/(L-1), 1]; 0 is agreement by chance. Equals 1 - D / (2 p (1 - p)) with D the mean
        disagreement over pairs.

    Notes
    -----
    0/0 exactly if all members are right on all samples or wrong on all (p is 1 or 0). They are right on
    the same samples, and such members have kappa 1 in all other cases: the limit is 1.

    Examples
    --------
    >>> interrater_kappa([[1, 1], [1, 0], [1, 1], [0, 0]], [1, 1, 1, 1])
    0.4666666666666667
    """
    right = correctness(predictions, y_true)
    n_samples, n_members = right.shape
    n_right = right.sum(axis=1)
    total = int(n_right.sum())
    if total in (0, n_samples * n_members):
        return 1.0
    split = int((n_right * (n_members - n_right)).sum())
    # With p = total / (N L), in integers: split N L / [(L-1) total (N L - total)].
    n_votes = n_samples * n_members
    return float(1.0 - split * n_votes / ((n_members - 1) * total * (n_votes - total)))
