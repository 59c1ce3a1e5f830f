"""The equivalence theorem (math.md section 2) with an independent conic solver, and `solve_alm` against it.

The full K-member problem, the reduced SVM and `solve_alm` have to tell the same story:
min F = K kappa min f with kappa = 1 + gamma (K - 1), and the mean member is the SVM's w.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.svm import SVC

from conic import objective_by_loops, solve_conic
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import solve_alm

K, COST = 3, 1.3

# Clarabel aims at 1e-9 and was seen to reach 3e-11 in F; `solve_alm` certifies 1e-8.
CONIC_TOL = 1e-9
ALM_TOL = 1e-8
OBJECTIVE_RTOL = 1e-7


def data(n_rows=18, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) + rng.normal(size=n_features)
    y = np.where(X[:, 0] - X[:, 0].mean() + rng.normal(size=n_rows) > 0, 1.0, -1.0)
    return X, y, rng.uniform(0.3, 3.0, size=n_rows)


def weight_tolerance(excess, objective, kappa, n_members=K):
    """How far w can be off: f is 1-strongly convex in w (b minimised out), so |w - w*|^2 / 2 <= f - f*."""
    return np.sqrt(2 * excess * objective / (n_members * kappa))


def check_equivalence(X, y, p, gamma, beta, weights, fit_intercept=True):
    kappa = 1 + gamma * (K - 1)
    full, W, _ = solve_conic(X, y, K, COST, p, gamma, beta, weights, fit_intercept)

    problem = ERMProblem.build(
        X,
        y,
        n_members=K,
        cost=COST,
        p=p,
        exclusivity=gamma,
        sparsity=beta,
        weights=weights,
        fit_intercept=fit_intercept,
    )
    svm = problem.reduced()
    assert (svm.n_members, svm.loss.p, svm.fit_intercept) == (1, p, fit_intercept)
    reduced, w, _ = solve_conic(
        X,
        y,
        1,
        svm.cost,
        p,
        svm.regulariser.exclusivity,
        svm.regulariser.sparsity,
        weights,
        fit_intercept,
    )
    # The two conic answers: equal optima, equal mean members.
    np.testing.assert_allclose(K * kappa * reduced, full, rtol=OBJECTIVE_RTOL)
    conic_error = weight_tolerance(2 * CONIC_TOL, full, kappa)
    np.testing.assert_allclose(W.mean(axis=1), w[:, 0], atol=2 * conic_error)
    if gamma < 1:  # strictly convex in every member: all of them are w, not only their mean
        np.testing.assert_allclose(W, np.repeat(w, K, axis=1), atol=1e-4)

    result = solve_alm(problem, tol=ALM_TOL)
    assert result.converged
    assert result.gap <= ALM_TOL
    np.testing.assert_allclose(result.objective, full, rtol=OBJECTIVE_RTOL)
    np.testing.assert_allclose(result.objective, K * kappa * reduced, rtol=OBJECTIVE_RTOL)
    recomputed = objective_by_loops(X, y, result.weights, result.intercepts, COST, p, gamma, beta, weights)
    np.testing.assert_allclose(result.objective, recomputed, rtol=1e-12)  # sums of a few dozen terms
    tolerance = weight_tolerance(ALM_TOL, full, kappa) + conic_error
    off = np.linalg.norm(result.weights.mean(axis=1) - w[:, 0])
    assert off <= tolerance
    if not fit_intercept:
        np.testing.assert_array_equal(result.intercepts, np.zeros(K))


# Every pair of two of p, gamma, beta and weights, in half as many problems as all of them together.
@pytest.mark.parametrize(
    ("p", "gamma", "beta", "weighted"),
    [
        pytest.param(
            p, gamma, beta, weighted, id=f"{p}-{gamma}-{beta}-{'weighted' if weighted else 'unweighted'}"
        )
        for number, (p, gamma) in enumerate(product([1, 1.5, 2, 3], [0, 0.3, 1]))
        for beta, weighted in (((0, False), (0.5, True)), ((0, True), (0.5, False)))[number % 2]
    ],
)
def test_full_problem_reduced_svm_and_alm_agree(p, gamma, beta, weighted):
    X, y, weights = data()
    check_equivalence(X, y, p, gamma, beta, weights if weighted else None)


@pytest.mark.parametrize(
    ("p", "gamma", "beta", "weighted"),
    [
        (1, 1, 0, False),
        (1, 0.3, 0.5, True),
        (1.5, 1, 0.5, True),
        (2, 0, 0, True),
        (2, 1, 0.5, False),
        (3, 1, 0, True),
    ],
)
def test_the_same_without_intercept(p, gamma, beta, weighted):
    X, y, weights = data(seed=1)
    check_equivalence(X, y, p, gamma, beta, weights if weighted else None, fit_intercept=False)


@pytest.mark.parametrize(("p", "gamma", "beta"), [(1, 1, 0), (2, 1, 0), (2, 0.3, 0.5), (1.5, 1, 0)])
def test_the_same_with_more_features_than_rows(p, gamma, beta):
    X, y, weights = data(n_rows=10, n_features=16, seed=2)
    check_equivalence(X, y, p, gamma, beta, weights)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("n_members", "shape"), [(1, (40, 5)), (2, (40, 5)), (7, (60, 3)), (3, (12, 30))])
def test_hinge_loss_equals_libsvm_at_cost_over_members(n_members, shape, weighted):
    X, y, weights = data(*shape, seed=3)
    weights = weights if weighted else np.ones(len(y))
    svc = SVC(kernel="linear", C=COST / n_members, tol=1e-10).fit(X, y, sample_weight=weights)
    w, b = svc.coef_[0], svc.intercept_[0]
    shortfall = np.maximum(0, 1 - y * (X @ w + b))
    f = w @ w / 2 + COST / n_members * (weights @ shortfall)

    problem = ERMProblem.build(X, y, n_members=n_members, cost=COST, p=1, weights=weights)
    result = solve_alm(problem, tol=1e-8)
    assert result.converged
    # libsvm keeps its kernel in float32, eps = 6e-8: seen were 1.4e-6 in F and 1.3e-6 in w.
    assert result.objective <= n_members**2 * f * (1 + 1e-8)
    np.testing.assert_allclose(result.objective, n_members**2 * f, rtol=5e-6)
    assert np.linalg.norm(result.weights.mean(axis=1) - w) <= 1e-5 * np.linalg.norm(w)


def test_unmatched_cost_is_a_different_svm():
    """The oracle has teeth: at cost C instead of C / K the weights are visibly others."""
    X, y, _ = data(40, 5, seed=3)
    result = solve_alm(ERMProblem.build(X, y, n_members=7, cost=COST, p=1), tol=1e-6)
    unmatched = SVC(kernel="linear", C=COST, tol=1e-10).fit(X, y).coef_[0]
    mean = result.weights.mean(axis=1)
    assert np.linalg.norm(mean - unmatched) > 0.1 * np.linalg.norm(unmatched)
