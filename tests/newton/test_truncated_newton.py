"""Newton steps by products alone: the rounded losses, the intercept, conjugate gradients, the whole path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from benchmarks.workloads import text_rows
from exclusivity.objective.losses import Logistic, PowerHinge
from exclusivity.objective.objective import ERMProblem, dual_bound, member_costs
from exclusivity.solvers import Start, newton_cg, solve_newton
from exclusivity.solvers.newton import NewtonOptions, RowFacts, choose_regime
from exclusivity.solvers.newton_cg import (
    NewtonCG,
    ProximalHinge,
    RoundedCorner,
    balanced,
    conjugate_gradients,
    rounded_loss,
)
from exclusivity.solvers.sums import Point

ITERATIVE = NewtonOptions("iterative")


def rows(n=60, m=8, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    y = np.where(X[:, 0] + noise * rng.normal(size=n) + 0.2 > 0, 1.0, -1.0)
    y[:2] = 1, -1
    return X, y


def regime_of(problem):
    return choose_regime(problem.objective, RowFacts.of(problem), "auto")


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=8),
    st.sampled_from([1, 1.3, 1.7, 2, 3]),
    st.floats(0.1, 10),
)
def test_slopes_are_dual_feasible_and_curvatures_are_their_derivatives(shortfalls, p, cost):
    m = np.array(shortfalls)
    loss = rounded_loss(PowerHinge(p), np.full(len(m), cost), None)
    slope, bend = loss.derivatives(m)
    np.testing.assert_array_equal(loss.slope(m), slope)
    assert np.all(slope >= 0)
    assert np.all(bend >= 0)
    if p == 1:
        assert np.all(slope <= cost)
    step = 1e-6
    numeric = (loss.slope(m + step) - loss.slope(m - step)) / (2 * step)
    smooth = np.abs(np.subtract.outer(m, [0.0, 1.0, 2.0])).min(axis=1) > 1e-5  # away from every corner
    np.testing.assert_allclose(bend[smooth], numeric[smooth], rtol=1e-4, atol=1e-4 * cost)


def test_the_proximal_hinge_maximises_its_definition():
    costs = np.array([1.0, 2.0, 0.5])
    loss = ProximalHinge(costs, np.array([0.3, 1.0, 0.0]))
    m = np.array([0.1, -0.4, 5.0])
    grid = np.linspace(0, 1, 200_001)[:, None] * costs
    sharpness = 2.0  # with a dual vector to start from
    value = grid * m - (grid - [0.3, 1.0, 0.0]) ** 2 / (2 * costs * sharpness)
    best = np.take_along_axis(grid, value.argmax(axis=0)[None], axis=0)[0]
    np.testing.assert_allclose(loss.slope(m), best, atol=2e-5)


def test_sharpening_follows_the_slope_and_ends_for_an_exact_loss():
    m, costs = np.array([0.2, -0.1]), np.ones(2)
    hinge = ProximalHinge(costs, None)
    first = hinge.slope(m)
    assert hinge.sharpen(m)
    assert hinge.slope(np.zeros(2)) == pytest.approx(first)  # the new centre
    assert not RoundedCorner(costs, PowerHinge(2)).sharpen(m)
    rounded = RoundedCorner(costs, PowerHinge(1.5))
    steps = 0
    while rounded.sharpen(m):
        steps += 1
    assert 13 <= steps <= 14  # from width 1 to 1e-13, by tenths
    np.testing.assert_allclose(rounded.slope(m), [1.5 * np.sqrt(0.2), 0], rtol=1e-12)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 1.5, 2, 3]), st.floats(-40, 40))
@example(6228, 1.5, -39.0)  # Newton's method once went to and fro here
def test_the_shift_balances_the_classes(seed, p, offset):
    rng = np.random.default_rng(seed)
    y = np.append([1.0, -1.0], rng.choice([-1.0, 1.0], size=10))
    m, costs = rng.normal(size=12) * 3 + offset * y, rng.uniform(0.1, 5, size=12)
    loss = rounded_loss(PowerHinge(p), costs, None)
    shift, moved, slopes, curvatures = balanced(loss, m, y)
    assert_allclose(moved, m - shift * y)
    assert_allclose((slopes, curvatures), loss.derivatives(m - shift * y))
    assert abs(y @ slopes) <= 1e-12 * slopes.sum() + 1e-12 * costs.min()


@pytest.mark.parametrize("accuracy", [0.1, 0.5])
@pytest.mark.parametrize("with_diagonal", [True, False])
def test_conjugate_gradients_reach_their_tolerance(with_diagonal, accuracy):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 12))
    matrix = np.eye(12) + A.T @ A
    right = rng.normal(size=12)
    diagonal = np.diagonal(matrix).copy() if with_diagonal else None
    solution, n_products = conjugate_gradients(lambda v: matrix @ v, right, diagonal, accuracy)
    scale = np.ones(12) if diagonal is None else diagonal
    residual = right - matrix @ solution
    assert residual @ (residual / scale) <= 1.01 * accuracy**2 * (right @ (right / scale))
    assert 0 < n_products < 12
    assert right @ solution > 0  # a way down


def test_conjugate_gradients_stop_where_numbers_end():
    with np.errstate(all="ignore"):
        solution, count = conjugate_gradients(lambda v: np.full(2, np.inf), np.ones(2), None, 0.1)
    assert count == 1
    assert not solution.any()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
@pytest.mark.parametrize("shape", [(60, 8), (12, 40)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_every_bound_on_the_way_is_below_the_optimum(p, shape, fit_intercept, kind):
    X, y = rows(*shape)
    X = kind(X)
    problem = ERMProblem.build(X, y, cost=0.7, p=p, fit_intercept=fit_intercept)
    optimum = solve_newton(problem, tol=1e-10).objective
    previous_passes, loss = 0.0, rounded_loss(problem.loss, member_costs(problem))
    state = NewtonCG(problem, Point(np.zeros(shape[1]), 0.0), loss)
    for _ in range(40):
        certificate = state.certificate()
        weights, intercepts = state.weights[:, None], np.array([state.intercept])
        assert certificate.objective == pytest.approx(problem.value(weights, intercepts), rel=1e-9)
        assert certificate.bound <= optimum * (1 + 1e-9)
        # What is claimed without a product is no more than what the repaired vector proves.
        assert certificate.bound <= dual_bound(problem, state.alpha) + 1e-9 * optimum
        assert state.passes > previous_passes
        previous_passes = state.passes
        if not state.advance():
            break


@pytest.mark.usefixtures("without_kernel")
@pytest.mark.parametrize("p", [1, 1.2, 2, 2.5])
def test_it_reaches_the_optimum_of_sparse_rows_with_weights(p):
    rng = np.random.default_rng(3)
    X = sparse.random(300, 80, density=0.1, random_state=3, format="csr")
    y = np.where(X @ rng.normal(size=80) + 0.1 * rng.normal(size=300) > 0, 1.0, -1.0)
    problem = ERMProblem.build(X, y, cost=3.0, p=p, weights=rng.uniform(0.5, 2, size=300))
    found = solve_newton(problem, tol=1e-7, options=ITERATIVE)
    exact = solve_newton(problem, tol=1e-10)
    assert found.converged
    assert found.objective == pytest.approx(exact.objective, rel=1e-7)


@pytest.mark.parametrize("p", [1, 2])
def test_a_warm_start_is_quicker(p):
    X, y = rows(400, 30)
    cold = solve_newton(ERMProblem.build(X, y, cost=1.0, p=p), tol=1e-6, options=ITERATIVE)
    problem = ERMProblem.build(X, y, cost=1.05, p=p)
    start = Start.after(cold, 1.05)
    warm = solve_newton(problem, tol=1e-6, options=ITERATIVE, start=start)
    again = solve_newton(problem, tol=1e-6, options=ITERATIVE)
    assert warm.converged
    assert warm.history.passes[-1] < again.history.passes[-1]
    assert np.all(warm.dual <= member_costs(problem)) or p == 2


def test_sparse_rows_take_the_products_early():
    X = sparse.random(500, 450, density=0.05, random_state=0, format="csr")
    y = np.where(np.arange(500) % 2 == 0, 1.0, -1.0)
    assert regime_of(ERMProblem.build(X, y)) == "iterative"
    assert regime_of(ERMProblem.build(X.toarray(), y)) == "semismooth"
    full = sparse.csr_matrix(np.ones((500, 450)))
    assert regime_of(ERMProblem.build(full, y)) == "semismooth"
    assert regime_of(ERMProblem.build(X, y, sparsity=1.0)) == "semismooth"
    assert regime_of(ERMProblem.build(X, y, sparsity=1.0, p=1)) == "interior"
    assert regime_of(ERMProblem.build(X, y, sparsity=1.0, loss=Logistic())) == "iterative"
    assert ERMProblem.build(sparse.csr_matrix((0, 3)), np.empty(0)).design.density == 0


@pytest.mark.parametrize("p", [1, 2])
def test_the_interior_point_takes_over_where_products_stall(p, monkeypatch):
    monkeypatch.setattr(newton_cg, "_MAX_STEPS", 2)
    X, y = rows(80, 12)
    problem = ERMProblem.build(X, y, cost=2.0, p=p)
    result = solve_newton(problem, tol=1e-9, options=ITERATIVE)
    assert result.converged
    assert result.n_iter > 2


@pytest.mark.usefixtures("without_kernel")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", [PowerHinge(1), PowerHinge(2), PowerHinge(3), Logistic()])
def test_wide_text_is_solved_without_the_kernel(loss, fit_intercept):
    X, y = text_rows(1500, 3000, 30)
    problem = ERMProblem.build(X, y, loss=loss, cost=1.0, fit_intercept=fit_intercept)
    result = solve_newton(problem, tol=1e-6, options=ITERATIVE)
    assert result.converged
    assert result.gap >= 1 - dual_bound(problem, result.dual) / result.objective - 1e-9


@pytest.mark.usefixtures("without_kernel")
def test_a_gap_that_only_rounding_leaves_ends_the_run(monkeypatch):
    problem = ERMProblem.build(*text_rows(300, 1500, 30), p=2, cost=1.0)
    steps, evaluate = [], newton_cg.NewtonCG._evaluate
    monkeypatch.setattr(newton_cg.NewtonCG, "_evaluate", lambda self: steps.append(1) or evaluate(self))
    result = solve_newton(problem, tol=1e-14, options=ITERATIVE)  # beyond what floats can prove
    assert not result.converged
    assert result.gap < 1e-9
    assert len(steps) < 300
