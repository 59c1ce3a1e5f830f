"""Dual bounds against the optimum of the full K-member problem found by a conic solver."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from conic import conic_multipliers, solve_conic
from exclusivity.objective.estimates import best_intercept, dual_from_scores
from exclusivity.objective.objective import (
    ERMProblem,
    dual_bound,
    dual_bound_from_weights,
    member_costs,
    relative_gap,
    repair_dual,
)

N, M, K, COST = 14, 4, 3, 0.7
GRID = list(product([1, 1.5, 2, 3], [0.0, 0.3, 1.0], [0.0, 0.5], [False, True], [False, True]))
NAMES = ("p", "gamma", "beta", "weighted", "fit_intercept")


@cache
def data():
    """Two overlapping classes of unequal size, on features of unequal scale."""
    rng = np.random.default_rng(7)
    y = np.where(np.arange(N) < 5, 1.0, -1.0)
    X = (rng.normal(size=(N, M)) + 0.6 * y[:, None]) * [1.0, 2.0, 0.5, 1.0]
    return X, y, rng.uniform(0.3, 3.0, N)


def problem_for(p, gamma, beta, weighted, fit_intercept):
    X, y, weights = data()
    return ERMProblem.build(
        X,
        y,
        n_members=K,
        cost=COST,
        p=p,
        exclusivity=gamma,
        sparsity=beta,
        weights=weights if weighted else None,
        fit_intercept=fit_intercept,
    )


@cache
def optimum(p, gamma, beta, weighted, fit_intercept):
    X, y, weights = data()
    return solve_conic(X, y, K, COST, p, gamma, beta, weights if weighted else None, fit_intercept)


def dual_by_loops(problem, alpha, p):
    """K kappa D(alpha), math.md section 5, for a feasible alpha (or, wrongly, for any)."""
    X, y, K, kappa = problem.design.X, problem.labels, problem.n_members, problem.kappa
    value = 0.0
    for a, s in zip(alpha, problem.weights, strict=True):
        c = s * problem.cost / kappa
        value += a - (0.0 if p == 1 else c * (p - 1) * (a / (p * c)) ** (p / (p - 1)))
    for j in range(X.shape[1]):
        u = sum(X[i, j] * y[i] * alpha[i] for i in range(len(y)))
        value -= max(abs(u) - problem.regulariser.sparsity / kappa, 0.0) ** 2 / 2
    return K * kappa * value


# --- repair -------------------------------------------------------------------------------------------


def test_member_costs():
    problem = problem_for(2, 0.3, 0.5, True, True)
    np.testing.assert_allclose(member_costs(problem), data()[2] * COST / (1 + 0.3 * 2), rtol=1e-15)


numbers = st.one_of(st.just(0.0), st.floats(-2, 2), st.floats(-8, 8).map(lambda e: 10.0**e))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1, 1.5, 2])
@given(alpha=arrays(float, N, elements=numbers), flip=arrays(bool, N))
@settings(max_examples=60, deadline=None)
def test_repaired_vectors_are_feasible(p, fit_intercept, alpha, flip):
    X, y, weights = data()
    labels = np.where(flip, -y, y)  # all kinds of class sizes, one class empty among them
    problem = ERMProblem.build(
        X, labels, n_members=K, cost=COST, p=p, weights=weights, fit_intercept=fit_intercept
    )
    before = alpha.copy()
    repaired = repair_dual(problem, alpha)
    np.testing.assert_array_equal(alpha, before)
    assert np.all(repaired >= 0)
    if p == 1:
        assert np.all(repaired <= weights * COST / problem.kappa * (1 + 1e-15))
    assert np.isfinite(problem.loss.conjugate(repaired, member_costs(problem))).all()
    # Repair only shrinks what was inside its box.
    assert np.all(repaired <= np.maximum(alpha, 0.0))
    if fit_intercept:
        above, below = repaired[labels > 0].sum(), repaired[labels < 0].sum()
        assert abs(above - below) <= 1e-14 * (above + below) + 1e-300
    else:
        expected = np.clip(alpha, 0, weights * COST / problem.kappa) if p == 1 else np.maximum(alpha, 0.0)
        np.testing.assert_allclose(repaired, expected, rtol=1e-15)


@pytest.mark.parametrize("p", [1, 2])
def test_repair_leaves_the_lighter_class_alone(p):
    """Rows 0..4 are positive: clip to [0, c] for p = 1, then scale the positive ones by 3/4."""
    problem = problem_for(p, 0.0, 0.0, False, True)
    alpha = np.zeros(N)
    alpha[:4], alpha[5:8] = 0.2, [0.3, 0.3, -5.0]
    expected = np.zeros(N)
    expected[:4], expected[5:7] = 0.2 * (0.6 / 0.8), 0.3
    np.testing.assert_allclose(repair_dual(problem, alpha), expected, rtol=1e-14)
    # The other way round.
    heavy = alpha.copy()
    heavy[5:7] = 0.6
    expected[:4], expected[5:7] = 0.2, 0.6 * (0.8 / 1.2)
    np.testing.assert_allclose(repair_dual(problem, heavy), expected, rtol=1e-14)


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_a_class_without_mass_leaves_only_zero(p):
    problem = problem_for(p, 1.0, 0.0, True, True)
    for sign in (1, -1):
        alpha = np.where(problem.labels == sign, 0.3, -0.1)
        np.testing.assert_array_equal(repair_dual(problem, alpha), np.zeros(N))
        assert dual_bound(problem, alpha) == 0.0


@pytest.mark.parametrize("p", [1, 2])
def test_a_feasible_vector_is_kept(p):
    problem = problem_for(p, 1.0, 0.0, False, True)
    alpha = np.zeros(N)
    alpha[[0, 1, 6, 7]] = 0.125
    np.testing.assert_array_equal(repair_dual(problem, alpha), alpha)


# --- weak duality -------------------------------------------------------------------------------------


@pytest.mark.parametrize(NAMES, GRID)
def test_no_bound_exceeds_the_optimum(p, gamma, beta, weighted, fit_intercept):
    problem = problem_for(p, gamma, beta, weighted, fit_intercept)
    best = optimum(p, gamma, beta, weighted, fit_intercept)[0]
    rng = np.random.default_rng(1)
    c = member_costs(problem)
    candidates = [rng.normal(size=N) * 10.0 ** rng.uniform(-3, 2) for _ in range(20)]
    candidates += [c * rng.uniform(0, 1.5, N) for _ in range(20)]
    candidates += [c * rng.integers(0, 2, N) for _ in range(20)]
    bounds = np.array([dual_bound(problem, alpha) for alpha in candidates])
    # The oracle's objective is that of a feasible point, so that only rounding needs room.
    assert bounds.max() <= best * (1 + 1e-12)
    expected = [dual_by_loops(problem, repair_dual(problem, alpha), p) for alpha in candidates]
    np.testing.assert_allclose(bounds, expected, rtol=1e-11, atol=1e-11)
    assert bounds.max() > 0  # not merely vacuous
    quick = [dual_bound_from_weights(problem, alpha, pull_of(problem, alpha)) for alpha in candidates]
    assert np.all(quick <= bounds + 1e-12 * np.abs(bounds) + 1e-12)


@pytest.mark.parametrize(NAMES, GRID)
def test_a_feasible_vector_needs_no_repair_to_be_bounded(p, gamma, beta, weighted, fit_intercept):
    problem = problem_for(p, gamma, beta, weighted, fit_intercept)
    rng = np.random.default_rng(2)
    for _ in range(5):
        alpha = repair_dual(problem, member_costs(problem) * rng.uniform(0, 1, N))
        quick = dual_bound_from_weights(problem, alpha, pull_of(problem, alpha))
        assert quick == pytest.approx(dual_bound(problem, alpha), rel=1e-12, abs=1e-12)


def pull_of(problem, alpha):
    return problem.design.X.T @ (problem.labels * alpha)


@pytest.mark.parametrize("sense", ["sum y alpha", "box"])
def test_an_unrepaired_vector_gives_a_false_bound(sense):
    """Small X, p = 1: the optimum is close to twice the lighter class; alpha = c says the sum of both."""
    X, y, _ = data()
    gamma, beta = 1.0, 0.0
    X = 0.01 * X
    problem = ERMProblem.build(X, y, n_members=K, cost=COST, p=1, exclusivity=gamma, sparsity=beta)
    best = solve_conic(X, y, K, COST, 1, gamma, beta)[0]
    c = member_costs(problem)
    alpha = c.copy() if sense == "sum y alpha" else np.where(y > 0, 9 / 5, 1.0) * c
    if sense == "box":
        assert abs(y @ alpha) < 1e-12  # feasible but for the box
    assert dual_by_loops(problem, alpha, 1) > 1.3 * best
    assert 0.9 * best < dual_bound(problem, alpha) <= best * (1 + 1e-12)


# --- strong duality -----------------------------------------------------------------------------------


@pytest.mark.parametrize(NAMES, GRID)
def test_the_optimal_multipliers_close_the_gap(p, gamma, beta, weighted, fit_intercept):
    """alpha = mean over the members of their multipliers, divided by kappa (fact 3.10)."""
    X, _, weights = data()
    problem = problem_for(p, gamma, beta, weighted, fit_intercept)
    multipliers = conic_multipliers(
        X, problem.labels, K, COST, p, gamma, beta, weights if weighted else None, fit_intercept
    )
    best = optimum(p, gamma, beta, weighted, fit_intercept)[0]
    bound = dual_bound(problem, multipliers.mean(axis=1) / problem.kappa)
    assert bound == pytest.approx(best, rel=1e-6)
    assert relative_gap(best, bound) <= 1e-6


@pytest.mark.parametrize(NAMES, [case for case in GRID if case[0] > 1])
def test_the_scores_of_the_optimum_close_the_gap(p, gamma, beta, weighted, fit_intercept):
    problem = problem_for(p, gamma, beta, weighted, fit_intercept)
    best, W, b = optimum(p, gamma, beta, weighted, fit_intercept)
    scores = problem.design.X @ W.mean(axis=1)
    bound = dual_bound(problem, dual_from_scores(problem, scores))
    assert bound == pytest.approx(best, rel=1e-6)
    if fit_intercept:
        # "any intercept": a constant in the scores goes into the best intercept.
        shifted = dual_bound(problem, dual_from_scores(problem, scores + 3.7))
        assert shifted == pytest.approx(bound, rel=1e-9)
        assert best_intercept(problem, scores) == pytest.approx(b.mean(), abs=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1.5, 2, 3])
def test_dual_from_scores_is_the_derivative(p, fit_intercept):
    problem = problem_for(p, 0.3, 0.0, True, fit_intercept)
    scores = np.random.default_rng(2).normal(size=N)
    b = best_intercept(problem, scores) if fit_intercept else 0.0
    costs = data()[2] * COST / 1.6
    expected = [
        c * p * max(0.0, 1 - y * (f + b)) ** (p - 1)
        for c, y, f in zip(costs, problem.labels, scores, strict=True)
    ]
    alpha = dual_from_scores(problem, scores)
    np.testing.assert_allclose(alpha, expected, rtol=1e-13)
    if fit_intercept:
        assert abs(problem.labels @ alpha) <= 1e-10 * alpha.sum()


@given(scores=arrays(float, N, elements=st.floats(-3, 3)), p=st.sampled_from([1.5, 2, 3]))
@settings(max_examples=50, deadline=None)
def test_any_iterate_is_certified(scores, p):
    """F - K kappa D >= F - min F >= 0 for scores of w = 0 as well as for scores that no w has."""
    bound = dual_bound(problem := problem_for(p, 1.0, 0.0, False, True), dual_from_scores(problem, scores))
    assert bound <= optimum(p, 1.0, 0.0, False, True)[0] * (1 + 1e-12)


def test_no_bound_without_convexity():
    problem = problem_for(2, 1.5, 0.0, False, True)
    with pytest.raises(ValueError, match=r"exclusivity=1\.5 makes the problem non-convex"):
        dual_bound(problem, np.zeros(N))


# --- relative gap -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (10.0, 9.0, 0.1),
        (10.0, 0.0, 1.0),
        (10.0, -30.0, 1.0),  # 0 is a bound, too
        (10.0, 10.0, 0.0),
        (10.0, 10.0 + 1e-14, 0.0),  # rounding only
        (0.0, 0.0, 0.0),
        (0.0, -5.0, 0.0),
        (10.0, -np.inf, np.inf),
        (10.0, np.nan, np.inf),
        (np.nan, 1.0, np.inf),
        (np.inf, 1.0, np.inf),
    ],
)
def test_relative_gap(objective, bound, gap):
    assert relative_gap(objective, bound) == pytest.approx(gap, rel=1e-15, abs=0.0)
