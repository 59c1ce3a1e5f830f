"""Strength and correlation of an ensemble that votes, and Breiman's bound on its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.diversity.labels import label_codes, prediction_matrix, truth_vector
from exclusivity.problem.arrays import Floats


@dataclass(frozen=True)
class StrengthCorrelation:
    """What bounds the error of a vote.

    Attributes
    ----------
    error : float
        PE*, the share of samples whose margin is negative.
    strength : float
        s, the mean margin.
    correlation : float
        rho, the mean correlation of the members' raw margins, weighted by their standard deviations.
    bound : float
        rho (1 - s^2) / s^2 >= PE*; infinite where s <= 0, since the theorem then says nothing.
    """

    error: float
    strength: float
    correlation: float
    bound: float


def raw_margins(predictions: ArrayLike, y_true: ArrayLike) -> Floats:
    """Raw margins of the members' votes (Breiman, Definition 2.2).

    +1 where a member votes for the true label, -1 where it votes for the strongest wrong label (that with
    the most votes of all members on this sample), 0 where it votes for another wrong label. Their mean over
    the members is the margin of the vote.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    margins : ndarray of shape (n_samples, n_members)
        Equally strong wrong labels: the first in sorted order counts as the strongest.

    Examples
    --------
    >>> raw_margins([["a", "b", "b", "c"]], ["a"])
    array([[ 1., -1., -1.,  0.]])
    """
    labels = prediction_matrix(predictions)
    truth = truth_vector(y_true, labels)
    codes, n_labels = label_codes(np.concatenate([labels, truth[:, None]], axis=1))
    votes, true_code = codes[:, :-1], codes[:, -1:]
    counts = np.stack([(votes == label).sum(axis=1) for label in range(n_labels)], axis=1)
    np.put_along_axis(counts, true_code, -1, axis=1)
    # Without any other label this "rival" is the true one, and subtracting it must not count.
    rival = counts.argmax(axis=1)[:, None]
    is_right = votes == true_code
    return np.asarray(is_right.astype(float) - ((votes == rival) & ~is_right))


def strength_correlation(margins: ArrayLike) -> StrengthCorrelation:
    """Strength, mean correlation and the bound PE* <= rho (1 - s^2) / s^2 (Breiman, Theorem 2.3).

    Parameters
    ----------
    margins : array-like of shape (n_samples, n_members)
        Raw margins in [-1, 1]: :func:`raw_margins` of votes, or y times bounded real outputs. Margins
        without a bound must be divided by a number at least as large as any of them.

    Returns
    -------
    result : StrengthCorrelation
        Over the samples given, the bound holds exactly and not only in expectation.

    Notes
    -----
    rho = var(margin) / (mean standard deviation of the raw margins)^2, in [0, 1]; as in Breiman's
    definition, the two members that are compared may be the same one. It is 0/0 exactly if no raw margin
    varies over the samples. Then it is 1, the value of equal members in all other cases and the one with
    the largest bound.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001, section 2.2.

    Examples
    --------
    >>> strength_correlation([[1, 1], [1, 1], [1, -1], [1, 1]])
    StrengthCorrelation(error=0.0, strength=0.75, correlation=1.0, bound=0.7777777777777778)
    """
    raw = _margins(margins)
    margin = raw.mean(axis=1)
    strength = float(margin.mean())
    squared = strength**2
    # Constant columns are found by comparison: rounding may leave them a tiny deviation.
    deviation = np.where(np.ptp(raw, axis=0) > 0, raw.std(axis=0), 0.0).mean()
    correlation = min(float((margin.std() / deviation) ** 2), 1.0) if deviation > 0 else 1.0
    return StrengthCorrelation(
        error=float(np.mean(margin < 0)),
        strength=strength,
        correlation=correlation,
        bound=correlation * (1 - squared) / squared if strength > 0 and squared > 0 else float("inf"),
    )


def _margins(margins: ArrayLike) -> Floats:
    raw = np.asarray(margins, dtype=float)
    if raw.ndim != 2 or raw.shape[0] < 1 or raw.shape[1] < 2:
        raise ValueError(
            "margins must have one row per sample and one column per member, at least one sample and two "
            f"members; got shape {raw.shape}."
        )
    if not np.all(np.abs(raw) <= 1):  # NaN fails too
        raise ValueError(
            "margins must lie in [-1, 1], else the bound does not hold; divide them by a number at least as "
            "large as the largest absolute value, the same for all."
        )
    return raw
