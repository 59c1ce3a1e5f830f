"""Large costs on rows that can all be fitted: the loss around a dual vector that follows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import NewtonOptions, Start, newton as solver_module, solve_newton
from exclusivity.solvers.newton_cg import ProximalSmooth, proximal_loss, steepness

ITERATIVE, INTERIOR = NewtonOptions("iterative"), NewtonOptions("interior")


def separable(n_rows, n_features, seed=0):
    """Sparse rows of length 1 that a hyperplane divides."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.03)
    X = sparse.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True))
    scores = X @ rng.standard_normal(n_features)
    far = np.abs(scores) > 0.2
    return X[far], np.where(scores[far] > 0, 1.0, -1.0)


@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_more_features_than_rows_take_few_steps_however_large_the_cost(p, C):
    problem = ERMProblem.build(*separable(450, 700), p=p, cost=C)
    result = solve_newton(problem)
    assert result.converged
    assert result.n_iter <= 80
    exact = solve_newton(problem, tol=1e-6, options=INTERIOR)
    assert exact.converged
    assert exact.objective * (1 - 1e-6) <= result.objective <= exact.objective * (1 + 1.1e-4)


@pytest.mark.usefixtures("without_kernel")
@pytest.mark.parametrize("p", [1, 2])
def test_more_rows_than_features_get_there_where_no_matrix_fits(p, monkeypatch):
    monkeypatch.setattr(solver_module, "DENSE_LIMIT", 100)
    problem = ERMProblem.build(*separable(600, 410), p=p, cost=1e7)
    assert solve_newton(problem).converged


def test_a_run_goes_on_where_it_was():
    problem = ERMProblem.build(*separable(450, 700), p=2, cost=1e5)
    whole = solve_newton(problem)
    part = solve_newton(problem, max_iter=whole.n_iter // 2)
    assert not part.converged
    rest = solve_newton(problem, start=Start.after(part, 1.0))
    assert rest.converged
    assert part.n_iter + rest.n_iter <= whole.n_iter + 2


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(0, 5), st.floats(0.1, 10)), min_size=1, max_size=5),
    st.sampled_from([1.2, 1.5, 2, 3]),
    st.floats(0.01, 100),
)
def test_the_shifted_loss_maximises_its_definition(rows, p, width):
    m, alpha, costs = (np.array(column) for column in zip(*rows, strict=True))
    loss = ProximalSmooth(costs, PowerHinge(p), alpha, width)
    slope = loss.slope(m)
    grid = np.linspace(0, 2, 2001)[:, None] * np.maximum(slope, 1e-3)

    def value(a):
        return a * m - PowerHinge(p).conjugate(a, costs) - (a - alpha) ** 2 * width / (2 * costs)

    best = value(slope[None])[0]
    assert np.all(value(grid) <= best + 1e-9 * (1 + np.abs(best)))
    assert loss.distance(slope) == pytest.approx(((slope - alpha) ** 2 * width / (2 * costs)).sum())


@pytest.mark.parametrize("p", [1.2, 2, 3])
def test_its_curvature_is_the_derivative_of_its_slope(p):
    m = np.linspace(-2, 3, 41) + 0.013
    loss = ProximalSmooth(np.full(41, 1e3), PowerHinge(p), np.linspace(0, 20, 41), width=50.0)
    numeric = (loss.slope(m + 1e-6) - loss.slope(m - 1e-6)) / 2e-6
    np.testing.assert_allclose(loss.derivatives(m)[1], numeric, rtol=1e-4, atol=1e-5)
    assert np.all(loss.derivatives(m)[1] <= 1e3 / 50.0)


def test_steepness_is_the_mean_of_cost_times_square_in_hundreds():
    X = np.array([[3.0, 4.0], [0.0, 1.0]])
    problem = ERMProblem.build(X, np.array([1.0, -1.0]), cost=10.0, weights=np.array([1.0, 3.0]))
    assert steepness(problem) == pytest.approx((10 * 25 + 30 * 1) / 2 / 100)


@pytest.mark.parametrize("scale", [0.0, 1e200])
def test_a_width_is_a_number_whatever_the_rows(scale):
    problem = ERMProblem.build(np.array([[scale], [-scale]]), np.array([1.0, -1.0]))
    with np.errstate(over="ignore"):
        loss = proximal_loss(problem)
    assert 0 < loss.width < np.inf
    assert np.all(np.isfinite(loss.slope(np.ones(2))))
