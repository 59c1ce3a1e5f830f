"""The DRM on spheres: a local minimum of the right function, whose members differ."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from drm_oracles import drm_by_loops, small_problem
from reproduction.drm import DRMClassifier, DRMProblem, solve_relaxed, solve_sphere, sphere_gradient

SHAPES = [(24, 5), (12, 20)]


def build(shape=(24, 5), n_members=4, nu=0.5, mu=0.3, seed=0):
    X, y = small_problem(*shape, seed=seed)
    return X, y, DRMProblem(X * y[:, None], n_members, nu, mu)


def cosines(W):
    return (W.T @ W)[np.triu_indices(W.shape[1], 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradient_is_the_derivative_along_the_spheres(shape):
    _, _, problem = build(shape)
    V = np.random.default_rng(0).normal(size=(shape[1], 4))
    unit = V / np.linalg.norm(V, axis=0)

    def value(flat):
        W = flat.reshape(V.shape)
        return problem.objective(W / np.linalg.norm(W, axis=0))

    numeric = approx_fprime(unit.ravel(), value, 1e-7).reshape(V.shape)
    found, gradient = sphere_gradient(problem, unit)
    assert found == pytest.approx(value(unit.ravel()))
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    np.testing.assert_allclose(np.sum(gradient * unit, axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_end_is_a_stationary_point_of_the_definition(shape):
    X, y, problem = build(shape)
    result = solve_sphere(problem, tol=1e-7, max_sweeps=5000, random_state=0)
    assert result.converged
    assert np.isnan(result.gap)
    np.testing.assert_allclose(np.linalg.norm(result.weights, axis=0), 1, rtol=1e-12)
    value = drm_by_loops(X, y, result.weights, problem.nu, problem.mu)
    np.testing.assert_allclose(result.history[-1], value, rtol=1e-8)
    assert np.diff(result.history).max() <= 1e-12
    rng = np.random.default_rng(1)
    for _ in range(20):  # no small step along the spheres leads down
        nearby = result.weights + 1e-3 * rng.normal(size=result.weights.shape)
        assert problem.objective(nearby / np.linalg.norm(nearby, axis=0)) >= value - 1e-9


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_members_differ_here_and_are_equal_after_relaxation(shape):
    _, _, problem = build(shape)
    sphere = solve_sphere(problem, tol=1e-5, max_sweeps=5000, random_state=0).weights
    relaxed = solve_relaxed(problem, tol=1e-10, max_sweeps=5000).weights
    assert cosines(sphere).min() < 0.5
    assert cosines(relaxed / np.linalg.norm(relaxed, axis=0)).min() > 1 - 1e-6


def test_strong_coupling_makes_two_members_opposite():
    _, _, problem = build(n_members=2, mu=100.0)
    W = solve_sphere(problem, tol=1e-8, max_sweeps=5000, random_state=0).weights
    assert cosines(W)[0] < -0.999


@pytest.mark.parametrize("n_members", [2, 3, 6])
def test_equal_members_part_where_the_second_order_condition_says(n_members):
    """Stable while 2 mu T is below the pull g of the data plus the smallest curvature along the sphere."""
    X, y, single = build(n_members=1, mu=0.0, nu=2.0)
    w = solve_sphere(single, tol=1e-10, max_sweeps=5000, random_state=0).weights[:, 0]
    Z = y[:, None] * X
    alpha = single.fit(Z @ w)[1]
    active = Z[alpha > 0] - Z[alpha > 0].mean(axis=0)
    across = np.linalg.svd(w[None, :])[2][1:]  # a basis of the tangent space
    curvatures, directions = np.linalg.eigh(2 / len(y) * across @ active.T @ active @ across.T)
    critical = (w @ Z.T @ alpha + curvatures[0]) / (2 * n_members)
    apart = np.repeat(w[:, None], n_members, axis=1)
    apart[:, 0] += 1e-3 * across.T @ directions[:, 0]
    apart[:, 1] -= 1e-3 * across.T @ directions[:, 0]
    apart /= np.linalg.norm(apart, axis=0)
    for factor in (0.9, 1.1):
        problem = DRMProblem(Z, n_members, 2.0, factor * critical)
        rise = problem.objective(apart) - problem.objective(np.repeat(w[:, None], n_members, axis=1))
        assert abs(rise) > 1e-10
        assert (rise > 0) == (factor < 1)


def test_where_relaxed_members_lie_on_the_boundary_both_variants_agree():
    _, _, problem = build(nu=5.0, mu=1e-3)
    relaxed = solve_relaxed(problem, tol=1e-10, max_sweeps=5000)
    np.testing.assert_allclose(np.linalg.norm(relaxed.weights, axis=0), 1)
    W = solve_sphere(problem, tol=1e-7, max_sweeps=5000, random_state=0).weights
    assert cosines(W).min() > 1 - 1e-5
    np.testing.assert_allclose(problem.objective(W), relaxed.history[-1], rtol=1e-6)


def test_never_below_the_relaxed_minimum():
    for mu in (0.0, 0.01, 0.1, 1.0):
        _, _, problem = build(mu=mu, seed=1)
        relaxed = solve_relaxed(problem, tol=1e-9, max_sweeps=5000).history[-1]
        for seed in range(3):
            found = solve_sphere(problem, tol=1e-5, max_sweeps=5000, random_state=seed).history[-1]
            assert found >= relaxed - 1e-8 * abs(relaxed)


def test_random_state_decides():
    _, _, problem = build()
    one, same, other = (
        solve_sphere(problem, tol=1e-4, max_sweeps=500, random_state=seed).weights for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01


def test_the_limit_of_sweeps_and_a_start_that_is_stationary():
    _, _, problem = build()
    early = solve_sphere(problem, tol=1e-12, max_sweeps=3, random_state=0)
    assert not early.converged
    assert len(early.history) == 3
    nothing = DRMProblem(np.zeros((4, 2)), n_members=1, nu=0.5, mu=0.0)
    still = solve_sphere(nothing, tol=1e-6, max_sweeps=10, random_state=0)
    assert still.converged
    assert len(still.history) == 1


def test_random_state_matters_on_the_sphere_only():
    X, y = small_problem(40, 6)
    for variant, expected in (("relaxed", True), ("sphere", False)):
        one, other = (
            DRMClassifier(3, variant=variant, mu=0.3, random_state=seed).fit(X, y) for seed in (0, 1)
        )
        assert np.array_equal(one.components_, other.components_) == expected
        assert np.isnan(one.dual_gap_[0]) == (variant == "sphere")
