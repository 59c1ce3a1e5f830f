"""Small problems for the tests of PSVM and DRM, and the DRM by slow and independent means."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize_scalar


def small_problem(n_rows=24, n_features=5, seed=0, offset=1.0, noise=1.0):
    """Overlapping classes that do not sit around the origin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) + offset * rng.normal(size=n_features)
    y = np.where(X[:, 0] - X[:, 0].mean() + noise * rng.normal(size=n_rows) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    return X, y


def drm_by_loops(X, y, W, nu, mu):
    """The objective by its definition: rho by a search in one variable, pairs one after the other."""
    N, T, value = len(y), W.shape[1], 0.0
    for t in range(T):
        margins = y * (X @ W[:, t])

        def loss(rho, m=margins):
            return -nu * rho + sum(max(0.0, rho - m[i]) ** 2 for i in range(N)) / N

        low, high = margins.min() - 1, margins.max() + nu * N
        value += minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-11}).fun
        for other in range(t):
            value += mu * np.sum((W[:, t] + W[:, other]) ** 2)
    return value


def drm_with_cones(X, y, T, nu, mu):
    """The minimum of the relaxed problem as an interior-point solver finds it."""
    N, M = X.shape
    W, rho, xi = cp.Variable((M, T)), cp.Variable((1, T)), cp.Variable((N, T), nonneg=True)
    pairs = [cp.sum_squares(W[:, t] + W[:, other]) for t in range(T) for other in range(t)]
    constraints = [cp.multiply(y[:, None], X @ W) >= np.ones((N, 1)) @ rho - xi]
    constraints += [cp.norm(W[:, t]) <= 1 for t in range(T)]
    value = -nu * cp.sum(rho) + cp.sum_squares(xi) / N + mu * sum(pairs)
    problem = cp.Problem(cp.Minimize(value), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value
