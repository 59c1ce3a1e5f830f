"""The full K-member problem of `math.md` section 1, handed to an interior-point conic solver.

An oracle that shares no code with the package: it knows nothing of the reduction to one SVM, of the
proximal maps or of the dual. Meant for small problems (a few dozen rows), gamma <= 1 and p in
{1, 1.5, 2, 3}; its objective is good for at least 8 digits.
"""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

# Clarabel's defaults are 1e-8, and 5e-5 for what it calls "almost solved". Here 1e-9 is aimed at and
# 1e-7 accepted (rounding can stop it earlier when p is 1.5 or 3); in practice the objective is good to 1e-9.
_TOLERANCES = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
_TOLERANCES |= {f"reduced_{name}": 1e-7 for name in _TOLERANCES}


def solve_conic(X, y, K, C, p, gamma, beta, weights=None, fit_intercept=True, bounds=None):
    """The optimum of F over all (W, b).

    Parameters
    ----------
    X : ndarray of shape (N, M)
    y : ndarray of shape (N,)
        -1 or +1.
    K, C, p, gamma, beta : numbers
        Members, cost of the loss (lambda), power ("logistic" for that loss), exclusivity in [0, 1], sparsity.
    weights : ndarray of shape (N,), optional
        Sample weights, 1 if not given.
    fit_intercept : bool
    bounds : pair of ndarrays of shape (M,), optional
        Between which the weights of every member have to be.

    Returns
    -------
    (objective, W, b) : float, ndarray of shape (M, K), ndarray of shape (K,)
        `objective` is F at (W, b), summed up from its definition, so it is never below the optimum.
    """
    W, b, _ = _solve(X, y, K, C, p, gamma, beta, weights, fit_intercept, bounds)
    if bounds is not None:
        W = np.clip(W, bounds[0][:, None], bounds[1][:, None])
    return objective_by_loops(X, y, W, b, C, p, gamma, beta, weights), W, b


def conic_multipliers(X, y, K, C, p, gamma, beta, weights=None, fit_intercept=True):
    """The N x K multipliers of xi_ik >= 1 - y_i (x_i . w_k + b_k) at the optimum."""
    return _solve(X, y, K, C, p, gamma, beta, weights, fit_intercept)[2]


def objective_by_loops(X, y, W, b, C, p, gamma, beta, weights=None):
    """F(W, b), one term after the other, the exclusivity as a sum over unordered pairs of members."""
    (M, K), s, value = W.shape, np.ones(len(y)) if weights is None else weights, 0.0
    for j in range(M):
        for k in range(K):
            value += W[j, k] ** 2 / 2 + beta * abs(W[j, k])
            for other in range(k):
                value += gamma * abs(W[j, k]) * abs(W[j, other])
    for i in range(len(y)):
        for k in range(K):
            score = y[i] * (X[i] @ W[:, k] + b[k])
            value += C * s[i] * (np.logaddexp(0, -score) if p == "logistic" else max(0.0, 1 - score) ** p)
    return float(value)


def _solve(X, y, K, C, p, gamma, beta, weights, fit_intercept, bounds=None):
    (N, M), s = X.shape, np.ones(len(y)) if weights is None else weights
    W, b, xi = cp.Variable((M, K)), cp.Variable((1, K)), cp.Variable((N, K), nonneg=True)
    row_sums = cp.sum(cp.abs(W), axis=1)
    penalty = (
        gamma / 2 * cp.sum_squares(row_sums) + (1 - gamma) / 2 * cp.sum_squares(W) + beta * cp.sum(row_sums)
    )
    shortfall = 1 - cp.multiply(y[:, None], X @ W + np.ones((N, 1)) @ b)
    hinge = xi >= shortfall
    if p == "logistic":
        loss, rows = cp.sum(cp.logistic(shortfall - 1), axis=1), [xi == 0]
    else:
        loss, rows = cp.sum(xi if p == 1 else cp.power(xi, p), axis=1), [hinge]
    for sign, ends in zip((1, -1), bounds or (), strict=False):
        finite = np.flatnonzero(np.isfinite(ends))
        rows.append(sign * W[finite] >= sign * ends[finite, None])
    problem = cp.Problem(cp.Minimize(penalty + C * (s @ loss)), rows if fit_intercept else [*rows, b == 0])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # "almost solved": 1e-7
        problem.solve(solver=cp.CLARABEL, **_TOLERANCES)
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE), problem.status
    return W.value, b.value.ravel() if fit_intercept else np.zeros(K), hinge.dual_value
