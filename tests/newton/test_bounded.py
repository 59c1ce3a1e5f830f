"""Solver "newton" with kinks and bounds: equal to a conic solver, honest, and never outside the bounds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from conic import solve_conic
from exclusivity.objective.losses import Logistic, PowerHinge
from exclusivity.objective.objective import Bounds, ERMProblem
from exclusivity.solvers import Start, solve_all, solve_newton, solve_path
from exclusivity.solvers.newton import NewtonOptions
from exclusivity.solvers.run import constant_result
from newton.newton_cases import assert_honest, blobs

LOSSES = {"1": PowerHinge(1), "1.5": PowerHinge(1.5), "2": PowerHinge(2), "logistic": Logistic()}


def mixed_bounds(n_features, seed):
    """Signs, boxes with and without zero in them, given weights, and no bounds."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 6, n_features)
    table = np.array([(0, np.inf), (-np.inf, 0), (-0.1, 0.2), (0.3, 0.8), (0.15, 0.15), (-np.inf, np.inf)])
    lower, upper = table[kinds].T
    return Bounds(lower.copy(), upper.copy())


def solved(problem, tol=1e-9, **settings):
    """A certified result; every iterate on the way is within the bounds."""
    bounds, seen = problem.objective.bounds, []

    def look(state):
        seen.append(state)
        if bounds is not None:
            inside = (state.weights >= bounds.lower[:, None]) & (state.weights <= bounds.upper[:, None])
            assert inside.all()

    result = solve_newton(problem, tol=tol, callback=look, **settings)
    assert seen
    assert result.converged, (result.gap, result.status)
    if bounds is not None:
        w = result.weights[:, 0]
        assert np.all((w >= bounds.lower) & (w <= bounds.upper))
    return result


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sparsity", [0.0, 0.6])
@pytest.mark.parametrize(("K", "exclusivity"), [(1, 1.0), (5, 1.0), (5, 0.3)])
@pytest.mark.parametrize("name", LOSSES)
def test_it_agrees_with_a_conic_solver(name, K, exclusivity, sparsity, seed):
    X, y = blobs(30, 5, seed)
    bounds = mixed_bounds(5, seed) if K == 1 or seed else None  # without bounds: the logistic loss with kinks
    weights = np.random.default_rng(seed).uniform(0.5, 2, 30)
    problem = ERMProblem.build(
        X,
        y,
        n_members=K,
        exclusivity=exclusivity,
        sparsity=sparsity,
        loss=LOSSES[name],
        weights=weights,
        bounds=bounds,
    )
    result = solved(problem)
    p = name if name == "logistic" else float(name)
    ends = None if bounds is None else (bounds.lower, bounds.upper)
    known, W, _ = solve_conic(X, y, K, 1.0, p, exclusivity, sparsity, weights, True, ends)
    assert result.objective == pytest.approx(known, rel=1e-8)
    assert_honest(result, known, rounding=1e-10)
    np.testing.assert_allclose(result.weights[:, 0], W.mean(axis=1), atol=2e-3)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", [(40, 6), (12, 30)])
def test_all_regimes_find_the_same_optimum(name, shape):
    X, y = blobs(*shape, 3)
    loss = LOSSES[name]
    problem = ERMProblem.build(X, y, loss=loss, sparsity=0.2, bounds=mixed_bounds(shape[1], 1), cost=2.0)
    regimes = ["auto", "iterative"] + ["semismooth"] * loss.is_smooth + ["interior"] * loss.vanishes
    found = [solved(problem, 1e-8, options=NewtonOptions(regime)) for regime in regimes]
    for other in found[1:]:
        assert other.objective == pytest.approx(found[0].objective, rel=2e-8)
        assert_honest(other, found[0].objective, rounding=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_many_rows_are_as_certain_as_all_of_them_at_once(name):
    X, y = blobs(21_000, 6, 5)
    bounds = Bounds(
        np.array([0, 0, -0.1, -np.inf, 0.3, -np.inf]), np.array([np.inf, 0.2, 0.1, 0, 0.3, np.inf])
    )
    problem = ERMProblem.build(X, y, loss=LOSSES[name], cost=0.01, sparsity=0.5, bounds=bounds)
    result = solved(problem, 1e-7)
    regime = "interior" if LOSSES[name].vanishes else "iterative"
    whole = ERMProblem.build(X, y, loss=LOSSES[name], cost=0.01, sparsity=0.5, bounds=bounds)
    other = solved(whole, 1e-7, options=NewtonOptions(regime))
    assert result.objective == pytest.approx(other.objective, rel=2e-7)
    at_bounds = [
        (r.weights[:, 0] == bounds.lower) | (r.weights[:, 0] == bounds.upper) for r in (result, other)
    ]
    np.testing.assert_array_equal(*at_bounds)
    assert at_bounds[0].any()


@pytest.mark.parametrize("name", LOSSES)
def test_bounds_that_do_not_bind_change_nothing(name):
    X, y = blobs(50, 4, 1)
    free = solved(ERMProblem.build(X, y, loss=LOSSES[name]))
    for reach in (np.inf, 1e3):
        bounds = Bounds(np.full(4, -reach), np.full(4, reach))
        bounded = solved(ERMProblem.build(X, y, loss=LOSSES[name], bounds=bounds))
        assert bounded.objective == pytest.approx(free.objective, rel=2e-9)
        np.testing.assert_allclose(bounded.weights, free.weights, atol=1e-3)


@pytest.mark.parametrize("name", LOSSES)
def test_flipped_labels_and_permuted_features(name):
    X, y = blobs(40, 5, 2)
    bounds = mixed_bounds(5, 4)
    result = solved(ERMProblem.build(X, y, loss=LOSSES[name], bounds=bounds))
    flipped = solved(ERMProblem.build(X, -y, loss=LOSSES[name], bounds=Bounds(-bounds.upper, -bounds.lower)))
    assert flipped.objective == pytest.approx(result.objective, rel=2e-9)
    np.testing.assert_allclose(flipped.weights, -result.weights, atol=1e-4)
    order = np.array([3, 1, 4, 0, 2])
    moved = ERMProblem.build(X[:, order], y, loss=LOSSES[name], bounds=bounds.of_columns(order))
    np.testing.assert_allclose(solved(moved).weights, result.weights[order], atol=1e-4)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", [(20, 3), (3, 8)])
def test_all_weights_may_be_given_and_no_intercept_be_left(name, shape):
    X, y = blobs(*shape, 1)
    weights = np.linspace(-0.5, 0.5, shape[1])
    problem = ERMProblem.build(
        X, y, loss=LOSSES[name], bounds=Bounds(weights, weights.copy()), fit_intercept=False
    )
    result = solve_newton(problem, tol=1e-9)
    np.testing.assert_array_equal(result.weights[:, 0], weights)
    assert result.objective == pytest.approx(problem.value(result.weights, result.intercepts), rel=1e-12)


def test_features_far_from_zero_keep_their_bounds():
    X, y = blobs(60, 4, 6)
    bounds = Bounds(np.array([0.0, 0.0, -0.2, -np.inf]), np.array([np.inf, 0.1, 0.2, 0.0]))
    near = solved(ERMProblem.build(X, y, bounds=bounds))
    far = solved(ERMProblem.build(X + 1e5, y, bounds=bounds), 1e-6)
    assert far.objective == pytest.approx(near.objective, rel=2e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_sparse_rows_by_products(name):
    rng = np.random.default_rng(0)
    X = sparse.random(450, 420, density=0.03, random_state=0, format="csr", data_rvs=rng.standard_normal)
    y = np.where(X @ rng.normal(size=420) > 0, 1.0, -1.0)
    bounds = Bounds(np.zeros(420), np.full(420, 0.3))
    problem = ERMProblem.build(X, y, loss=LOSSES[name], bounds=bounds)
    result = solved(problem, 1e-6)
    dense = solved(ERMProblem.build(X.toarray(), y, loss=LOSSES[name], bounds=bounds), 1e-6)
    assert result.objective == pytest.approx(dense.objective, rel=2e-6)
    # Zeros and ends are exact, whatever the method.
    same = (result.weights[:, 0] == 0) == (dense.weights[:, 0] == 0)
    assert same.mean() > 0.98
    assert 0 < np.mean(result.weights == 0) < 1


@pytest.mark.parametrize("name", LOSSES)
def test_a_path_is_bounded_at_every_cost(name):
    X, y = blobs(60, 5, 3)
    problem = ERMProblem.build(X, y, loss=LOSSES[name], bounds=mixed_bounds(5, 2), sparsity=0.1)
    costs = [0.03, 0.3, 3.0]
    for cost, result in zip(costs, solve_path(problem, costs, tol=1e-7), strict=True):
        single = solved(problem.changed(cost=cost), 1e-7)
        assert result.objective == pytest.approx(single.objective, rel=2e-7)
        np.testing.assert_array_equal(
            problem.objective.bounds.clip(result.weights[:, 0]), result.weights[:, 0]
        )


def test_a_start_outside_is_brought_inside():
    X, y = blobs(40, 3, 0)
    bounds = Bounds(np.array([0.5, -1.0, -np.inf]), np.array([1.0, 0.0, np.inf]))
    start = Start(np.full((3, 1), 7.0), np.zeros(1))
    for name, loss in LOSSES.items():
        problem = ERMProblem.build(X, y, loss=loss, bounds=bounds)
        result = solve_newton(problem, tol=1e-8, start=start)
        assert result.converged, name
        assert result.objective == pytest.approx(solved(problem, 1e-8).objective, rel=2e-8)


@pytest.mark.parametrize("name", LOSSES)
def test_one_class_leaves_the_weights_nearest_to_zero(name):
    X = np.random.default_rng(0).normal(size=(6, 2))
    bounds = Bounds(np.array([0.5, -1.0]), np.array([2.0, 3.0]))
    problem = ERMProblem.build(X, -np.ones(6), n_members=3, loss=LOSSES[name], bounds=bounds)
    result = constant_result(problem)
    np.testing.assert_array_equal(result.weights, [[0.5] * 3, [0.0] * 3])
    assert result.objective == pytest.approx(problem.value(result.weights, result.intercepts), rel=1e-12)


@pytest.mark.parametrize("solver", ["alm", "paper"])
def test_solvers_that_cannot_are_refused(solver):
    X, y = blobs(20, 2)
    problem = ERMProblem.build(X, y, bounds=Bounds(np.zeros(2), np.ones(2)))
    with pytest.raises(ValueError, match=f"solver='{solver}' knows no bounds"):
        solve_all([problem], solver)
    free = dataclasses.replace(problem.objective, bounds=None)
    assert solve_all([ERMProblem(free, problem.rows)], solver)
