"""Small problems: the very optimum, honest certificates, callbacks, limits, paths."""

import numpy as np
import pytest

from exclusivity.objective.objective import ERMProblem, dual_bound
from exclusivity.solvers import solve_alm, solve_newton, solve_path
from exclusivity.solvers.base import Status


def problem(n_rows=90, n_features=6, *, seed=0, dtype=float, **settings):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = np.where(X[:, 0] + rng.normal(size=n_rows) > 0.2, 1.0, -1.0)
    weights = rng.integers(1, 4, size=n_rows).astype(float)
    return ERMProblem.build(X.astype(dtype), y, weights=weights, **{"cost": 0.5} | settings)


@pytest.mark.parametrize("shape", [(90, 6), (30, 45)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_the_optimum(shape, fit_intercept):
    small = problem(*shape, fit_intercept=fit_intercept, n_members=3)
    result = solve_newton(small, tol=1e-9)
    assert result.converged
    assert result.objective == pytest.approx(solve_alm(small, tol=1e-9).objective, rel=1e-8)
    bound = dual_bound(small, result.dual)
    assert result.objective * (1 - result.gap) <= bound * (1 + 1e-12) <= result.objective * (1 + 1e-9)


def test_only_the_last_point_is_certified_and_it_is_the_very_optimum():
    result = solve_newton(problem(), tol=0.1)
    assert result.gap < 1e-12
    assert np.all(result.history.bound[:-1] == 0)
    large = solve_newton(problem(60_000, 9), tol=0.1)
    assert 1e-12 < large.gap <= 0.1


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_the_limit_of_iterations_holds(max_iter):
    result = solve_newton(problem(), tol=1e-12, max_iter=max_iter)
    assert result.n_iter <= max_iter
    assert result.status is (Status.CERTIFIED if result.converged else Status.MAX_ITER)
    assert 0 <= result.gap <= 1


def test_steps_are_told_and_go_down():
    seen = []
    watched = solve_newton(problem(), tol=1e-9, callback=lambda state: seen.append(state.record))
    alone = solve_newton(problem(), tol=1e-9)
    assert np.array_equal(watched.weights, alone.weights), "watching changes nothing"
    assert len(seen) == alone.n_iter == len(alone.history)
    assert np.all(np.diff(alone.history.objective) <= 0)
    assert alone.history.bound[-1] > 0


def test_paths_are_those_of_single_costs():
    costs = [0.01, 0.1, 1.0, 10.0]
    for cost, result in zip(costs, solve_path(problem(), costs, tol=1e-9), strict=True):
        assert result.converged
        assert result.objective == pytest.approx(
            solve_newton(problem(cost=cost), tol=1e-9).objective, rel=1e-10
        )


def test_numbers_beyond_reason_are_handed_on():
    """Features of 1e120: no matrix to factorise, and the certificate stays honest."""
    huge = problem()
    huge = ERMProblem.build(1e120 * huge.design.X, huge.labels, cost=0.5)
    result = solve_newton(huge, tol=1e-4)
    assert np.isfinite(result.objective)
    assert 0 <= result.gap <= 1
