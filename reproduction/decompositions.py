"""Compute the three decompositions of an ensemble's error that the paper's introduction cites.

Error-ambiguity (E = Ebar - Abar), bias-variance-covariance, and Breiman's bound by strength and correlation.
All of them say that an ensemble gains from members whose errors differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.diversity import label_codes, prediction_matrix, truth_vector
from reproduction.data import Floats


class ErrorAmbiguity(NamedTuple):
    """Hold the terms of E = Ebar - Abar.

    Attributes
    ----------
    error : float
        E, mean squared error of the ensemble.
    mean_error : float
        Ebar, (weighted) mean over the members of their mean squared errors.
    mean_ambiguity : float
        Abar, (weighted) mean squared distance of the members from the ensemble: their diversity.
    """

    error: float
    mean_error: float
    mean_ambiguity: float


def error_ambiguity(
    outputs: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None
) -> ErrorAmbiguity:
    """Decompose the squared error of an averaging ensemble into mean error and ambiguity.

    Parameters
    ----------
    outputs : array-like of shape (n_samples, n_members)
        Real outputs of the members, for example margins.
    targets : array-like of shape (n_samples,)
        Real targets; -1 and +1 for margins.
    weights : array-like of shape (n_members,), default=None
        Weights of the members in the ensemble, not negative; scaled to sum to one. None: all equal.

    Returns
    -------
    decomposition : ErrorAmbiguity
        Each of its terms is computed on its own; error = mean_error - mean_ambiguity is an identity.

    References
    ----------
    A. Krogh, J. Vedelsby, "Neural network ensembles, cross validation, and active learning", NIPS 1995.

    Examples
    --------
    >>> error_ambiguity([[1.0, 3.0], [0.0, -2.0]], [1.0, -1.0])
    ErrorAmbiguity(error=0.5, mean_error=1.5, mean_ambiguity=1.0)
    """
    values, wanted = np.asarray(outputs, dtype=float), np.asarray(targets, dtype=float)
    given = np.ones(values.shape[1]) if weights is None else np.asarray(weights, dtype=float)
    shares = given / given.sum()
    # Relative to a member that counts: then equal members have no ambiguity, not even one of rounding.
    reference = values[:, shares.argmax()]
    combined = reference + (values - reference[:, None]) @ shares
    return ErrorAmbiguity(
        error=float(np.mean((combined - wanted) ** 2)),
        mean_error=float(np.mean((values - wanted[:, None]) ** 2, axis=0) @ shares),
        mean_ambiguity=float(np.mean((values - combined[:, None]) ** 2, axis=0) @ shares),
    )


class BiasVarianceCovariance(NamedTuple):
    """Hold the terms of error = squared_bias + variance / L + (1 - 1/L) covariance.

    Attributes
    ----------
    error : float
        Mean squared error of the averaging ensemble over trials and samples.
    squared_bias : float
        Square of the members' mean bias, averaged over samples.
    variance : float
        Variance over trials, averaged over members and samples.
    covariance : float
        Covariance over trials, averaged over pairs of different members and samples. The only term that
        diversity can make negative.
    n_members : int
        L.
    """

    error: float
    squared_bias: float
    variance: float
    covariance: float
    n_members: int


def bias_variance_covariance(outputs: ArrayLike, targets: ArrayLike) -> BiasVarianceCovariance:
    """Decompose the error of an averaging ensemble over trials into bias, variance and covariance.

    Parameters
    ----------
    outputs : array-like of shape (n_trials, n_samples, n_members)
        Real outputs of the members on the same samples, for every trial (a fresh training set).
    targets : array-like of shape (n_samples,)
        Real targets.

    Returns
    -------
    decomposition : BiasVarianceCovariance
        Each of its terms is computed on its own, with moments over the trials given (divided by n_trials):
        error = squared_bias + variance / L + (1 - 1/L) covariance is an identity.

    References
    ----------
    N. Ueda, R. Nakano, "Generalization error of ensemble estimators", ICNN 1996.

    Examples
    --------
    >>> bias_variance_covariance([[[1.0, -1.0]], [[-1.0, 3.0]]], [0.0])
    BiasVarianceCovariance(error=0.5, squared_bias=0.25, variance=2.5, covariance=-2.0, n_members=2)
    """
    values, wanted = np.asarray(outputs, dtype=float), np.asarray(targets, dtype=float)
    n_trials, n_samples, n_members = values.shape
    expected = values.mean(axis=0)
    centred = (values - expected).reshape(-1, n_members)
    covariances = centred.T @ centred / (n_trials * n_samples)
    return BiasVarianceCovariance(
        error=float(np.mean((values.mean(axis=2) - wanted) ** 2)),
        squared_bias=float(np.mean((expected.mean(axis=1) - wanted) ** 2)),
        variance=float(np.diag(covariances).mean()),
        covariance=float(covariances[~np.eye(n_members, dtype=bool)].mean()),
        n_members=n_members,
    )


class StrengthCorrelation(NamedTuple):
    """Hold the terms of Breiman's bound on the error of a vote.

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
    """Return the raw margins of the members' votes (Breiman, Definition 2.2).

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
    """Compute strength, mean correlation and the bound PE* <= rho (1 - s^2) / s^2 (Breiman, Theorem 2.3).

    Parameters
    ----------
    margins : array-like of shape (n_samples, n_members)
        Raw margins in [-1, 1]: :func:`raw_margins` of votes, or y times bounded real outputs.

    Returns
    -------
    result : StrengthCorrelation
        Over the samples given, the bound holds exactly and not only in expectation.

    Notes
    -----
    rho = var(margin) / (mean standard deviation of the raw margins)^2, in [0, 1]; as in Breiman's
    definition, the two members that are compared may be the same one. It is 0/0 exactly if no raw margin
    varies over the samples; then it is 1, the value of equal members and the one with the largest bound.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001, section 2.2.

    Examples
    --------
    >>> strength_correlation([[1, 1], [1, 1], [1, -1], [1, 1]])
    StrengthCorrelation(error=0.0, strength=0.75, correlation=1.0, bound=0.7777777777777778)
    """
    raw = np.asarray(margins, dtype=float)
    if not np.all(np.abs(raw) <= 1):  # NaN fails too
        raise ValueError(
            "margins must lie in [-1, 1], else the bound does not hold; divide them by a number at least as "
            "large as the largest absolute value, the same for all."
        )
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
