"""Paths over the cost: every solution certified from scratch, and equal to that of a cold fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from exclusivity.objective.estimates import cost_grid, natural_cost
from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import Status, solve_newton, solve_path
from exclusivity.solvers.path import HessianChain, batched_sums
from exclusivity.solvers.run import MemoryRows
from exclusivity.solvers.sums import Point, evaluate


def rows(n_rows=300, n_features=6, seed=0, weights=False, **settings):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    y = np.where(X @ np.linspace(1, -1, n_features) + 0.8 * rng.standard_normal(n_rows) + 0.3 > 0, 1.0, -1.0)
    s = rng.integers(1, 4, n_rows).astype(float) if weights else None
    return ERMProblem.build(X, y, weights=s, **settings)


def assert_path(problem, costs, results, tol):
    """Each result is within tol of the optimum: its objective is right, and no cold fit is better."""
    for cost, result in zip(costs, results, strict=True):
        one = problem.changed(cost=cost)
        assert result.converged
        assert result.gap <= tol
        assert result.objective == pytest.approx(one.value(result.weights, result.intercepts), rel=1e-9)
        best = solve_newton(one, tol=1e-9).objective
        assert best * (1 - 1e-9) <= result.objective <= best * (1 + tol) / (1 - tol)
        # The bound behind the gap is a bound indeed.
        assert result.objective * (1 - result.gap) <= best * (1 + 1e-9)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_small_paths(p, fit_intercept):
    problem = rows(p=p, n_members=3, weights=True, fit_intercept=fit_intercept)
    costs = np.logspace(-3, 3, 7).tolist()
    assert_path(problem, costs, solve_path(problem, costs, tol=1e-6), 1e-6)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_many_rows(p, tol):
    problem = rows(25_000, 8, p=p)
    costs = cost_grid([problem], 8).tolist()
    assert_path(problem, costs, solve_path(problem, costs, tol=tol), tol)


@pytest.mark.parametrize("p", [1, 2])
def test_sparse_weighted_rows_with_a_penalty(p):
    dense = rows(200, 10, p=p, sparsity=2.0, exclusivity=0.5, n_members=2, weights=True)
    design = type(dense.design)(sparse.csr_matrix(dense.design.X))
    costs = [0.1, 1.0, 10.0]
    problem = dense.changed(design=design)
    assert_path(problem, costs, solve_path(problem, costs, tol=1e-5), 1e-5)


def test_many_sparse_weighted_rows():
    dense = rows(22_000, 5, p=2, weights=True)
    thin = np.where(np.abs(dense.design.X) > 0.7, dense.design.X, 0.0)
    problem = dense.changed(design=type(dense.design)(sparse.csr_matrix(thin)))
    costs = np.logspace(-5, 1, 9).tolist()
    assert_path(problem, costs, solve_path(problem, costs, tol=1e-6), 1e-6)


def test_more_features_than_rows():
    problem = rows(40, 90, p=2)
    assert_path(problem, [0.01, 1.0], solve_path(problem, [0.01, 1.0], tol=1e-6), 1e-6)


@pytest.mark.parametrize("solver", ["alm", "newton"])
def test_the_order_of_the_costs_does_not_matter(solver):
    problem = rows()
    costs = [1.0, 0.01, 10.0, 0.1]
    given = solve_path(problem, costs, solver)
    ascending = solve_path(problem, sorted(costs), solver)
    for cost, result in zip(costs, given, strict=True):
        assert result.objective == ascending[sorted(costs).index(cost)].objective


def test_warm_starts_spare_iterations_of_alm():
    problem = rows()
    costs = np.logspace(-1, 1, 8)
    path = solve_path(problem, costs.tolist(), "alm", tol=1e-6)
    cold = [solve_path(problem, [cost], "alm", tol=1e-6)[0] for cost in costs.tolist()]
    assert sum(r.n_iter for r in path) < 0.8 * sum(r.n_iter for r in cold)


def test_equal_costs_and_one_cost():
    problem = rows()
    first, second, third = solve_path(problem, [1.0, 1.0, 2.0])
    assert first.converged
    assert second.objective == pytest.approx(first.objective, rel=1e-4)
    assert third.objective > first.objective


def test_max_iter_is_obeyed_and_said():
    for p in (1, 2):
        results = solve_path(rows(p=p), [0.1, 100.0], tol=1e-14, max_iter=1)
        assert [result.n_iter for result in results] == [1, 1]
        # For p = 2 the one step, from where the smaller cost ended, may be all it takes.
        assert not results[0].converged or p == 2
        for result in results:
            assert result.converged == (result.gap <= 1e-14)
            assert result.status is (Status.CERTIFIED if result.converged else Status.MAX_ITER)


@pytest.mark.parametrize("scale", [1e-80, 1e10])
def test_extreme_scales(scale):
    problem = rows()
    extreme = problem.changed(design=type(problem.design)(problem.design.X * scale))
    for result in solve_path(extreme, [0.1, 10.0], tol=1e-3):
        assert result.gap <= 1e-3


def test_beyond_all_reason_the_gap_stays_honest():
    problem = rows()
    extreme = problem.changed(design=type(problem.design)(problem.design.X * 1e120))
    for result in solve_path(extreme, [0.1, 10.0], tol=1e-3, max_iter=20):
        assert np.isfinite(result.objective)
        assert result.converged == (result.gap <= 1e-3)


def test_batches_sum_what_single_evaluations_sum():
    for p, weights in ((2, False), (3, True)):
        problem = rows(500, 4, p=p, weights=weights, cost=1.0)
        rng = np.random.default_rng(1)
        points = [Point(rng.standard_normal(4), float(b)) for b in rng.standard_normal(5)]
        for point, sums in zip(points, batched_sums(problem, points), strict=True):
            single = MemoryRows(problem).reduce(evaluate, point, PowerHinge(p), False)
            for name in ("loss", "smoothed", "weighted_sums", "alpha_sums", "conjugates"):
                np.testing.assert_allclose(getattr(sums, name), getattr(single, name), rtol=1e-12, atol=1e-9)


def test_sums_scale_with_the_cost():
    problem = rows(p=2, cost=1.0)
    point = Point(np.ones(6), 0.5)
    exact = PowerHinge(2)
    once = MemoryRows(problem).reduce(evaluate, point, exact, True)
    seven = MemoryRows(problem.changed(cost=7.0)).reduce(evaluate, point, exact, True)
    for field in dataclasses.fields(once):
        if field.name == "n_terms":  # scaling is one more rounding
            continue
        np.testing.assert_allclose(
            getattr(once.times(7.0), field.name), getattr(seven, field.name), rtol=1e-12
        )


def test_costs_far_apart_get_hessians_of_their_own():
    chain, hessians = HessianChain(rows(p=2)), []
    for cost in (1e-4, 1e-3, 1.0, 1e3, 1e4):
        chain.next(rows(p=2, cost=cost))
        hessians.append(id(chain._curvature))
    assert len(set(hessians)) >= 3
    assert hessians[-1] == hessians[-2]


def test_natural_cost_by_hand():
    # d = 2, h = 2 * 2 * 3 * 1 / 4; the scores of d are +-2 with weights 3 and 1: standard deviation sqrt(3)
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    problem = ERMProblem.build(X, y, weights=np.array([3.0, 1.0]), n_members=5, exclusivity=0.5)
    assert natural_cost(problem) == pytest.approx(3 / (3 * np.sqrt(3)))


def test_natural_cost_is_where_scores_have_the_size_of_the_margin():
    problem = rows(4000, p=2)
    one = problem.changed(cost=natural_cost(problem) / 100)
    weights = solve_newton(one, tol=1e-10).weights[:, 0]
    assert problem.design.times(weights).std() == pytest.approx(0.01, rel=0.05)


def test_natural_cost_follows_units_weights_and_repetition():
    problem = rows(weights=True)
    cost = natural_cost(problem)
    scaled = problem.changed(design=type(problem.design)(10 * problem.design.X + 3))
    assert natural_cost(scaled) == pytest.approx(cost / 100)
    repeated = np.repeat(np.arange(problem.design.n_rows), problem.weights.astype(int))
    copies = ERMProblem.build(problem.design.X[repeated], problem.labels[repeated])
    assert natural_cost(copies) == pytest.approx(cost)


def test_natural_cost_without_a_difference():
    X, y = np.ones((4, 2)), np.array([1.0, 1.0, -1.0, -1.0])
    assert natural_cost(ERMProblem.build(X, y)) == 0.25
