"""Exact decompositions of the squared error of an averaging ensemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.problem.arrays import Floats


@dataclass(frozen=True)
class ErrorAmbiguity:
    """The paper's E = Ebar - Abar.

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


@dataclass(frozen=True)
class BiasVarianceCovariance:
    """error = squared_bias + variance / L + (1 - 1/L) covariance.

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


def error_ambiguity(
    outputs: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None
) -> ErrorAmbiguity:
    """Error-ambiguity decomposition of an ensemble that averages (Krogh and Vedelsby).

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
    values, wanted = _outputs(outputs, targets, n_axes=2)
    shares = _member_weights(weights, values.shape[1])
    # Relative to a member that counts: then equal members have no ambiguity, not even one of rounding.
    reference = values[:, shares.argmax()]
    combined = reference + (values - reference[:, None]) @ shares
    return ErrorAmbiguity(
        error=float(np.mean((combined - wanted) ** 2)),
        mean_error=float(np.mean((values - wanted[:, None]) ** 2, axis=0) @ shares),
        mean_ambiguity=float(np.mean((values - combined[:, None]) ** 2, axis=0) @ shares),
    )


def bias_variance_covariance(outputs: ArrayLike, targets: ArrayLike) -> BiasVarianceCovariance:
    """Bias-variance-covariance decomposition of an averaging ensemble over trials (Ueda and Nakano).

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
    >>> terms = bias_variance_covariance([[[1.0, -1.0]], [[-1.0, 3.0]]], [0.0])
    >>> terms
    BiasVarianceCovariance(error=0.5, squared_bias=0.25, variance=2.5, covariance=-2.0, n_members=2)
    """
    values, wanted = _outputs(outputs, targets, n_axes=3)
    n_trials, n_samples, n_members = values.shape
    if n_trials < 2:
        raise ValueError("Variance and covariance are over trials: give at least two, got one.")
    expected = values.mean(axis=0)
    centred = (values - expected).reshape(-1, n_members)
    covariances = centred.T @ centred / (n_trials * n_samples)
    between = covariances[~np.eye(n_members, dtype=bool)]
    return BiasVarianceCovariance(
        error=float(np.mean((values.mean(axis=2) - wanted) ** 2)),
        squared_bias=float(np.mean((expected.mean(axis=1) - wanted) ** 2)),
        variance=float(np.diag(covariances).mean()),
        covariance=float(between.mean()),
        n_members=n_members,
    )


def _outputs(outputs: ArrayLike, targets: ArrayLike, n_axes: int) -> tuple[Floats, Floats]:
    """Outputs (..., n_samples, n_members) and targets (n_samples,), checked."""
    values, wanted = np.asarray(outputs, dtype=float), np.asarray(targets, dtype=float)
    form = "(n_samples, n_members)" if n_axes == 2 else "(n_trials, n_samples, n_members)"
    if values.ndim != n_axes or values.size == 0 or values.shape[-1] < 2:
        raise ValueError(
            f"outputs must have shape {form}, with at least two members; got shape {values.shape}."
        )
    if wanted.shape != (values.shape[-2],):
        raise ValueError(
            f"targets must hold one number for each of the {values.shape[-2]} samples; "
            f"got shape {wanted.shape}."
        )
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(wanted))):
        raise ValueError("outputs and targets must not contain NaN or infinity.")
    return values, wanted


def _member_weights(weights: ArrayLike | None, n_members: int) -> Floats:
    """Not negative, one per member, scaled to sum to one."""
    if weights is None:
        return np.full(n_members, 1 / n_members)
    given = np.asarray(weights, dtype=float)
    if given.shape != (n_members,):
        raise ValueError(
            f"weights must hold one number for each of the {n_members} members; got shape {given.shape}."
        )
    if not np.all(np.isfinite(given) & (given >= 0)) or not np.any(given):
        raise ValueError(f"weights must be finite, not negative and not all zero; got {given.tolist()}.")
    return np.asarray(given / given.sum())
