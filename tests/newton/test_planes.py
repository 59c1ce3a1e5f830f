"""Steps in planes: the best point of a plane, blends of dual vectors, and walks made of both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from benchmarks.workloads import text_rows
from exclusivity.objective.losses import Logistic, PowerHinge
from exclusivity.objective.problem import ERMProblem, dual_bound, dual_bound_with_pull
from exclusivity.solvers import solve_newton
from exclusivity.solvers.newton import NewtonOptions, walk as walk_module
from exclusivity.solvers.newton.blend import DualBlend, dual_value
from exclusivity.solvers.newton.plane import Direction, Plane
from exclusivity.solvers.newton.rounding import Balanced, rounded_loss

ITERATIVE = NewtonOptions("iterative")
LOSSES = [PowerHinge(1), PowerHinge(1.5), PowerHinge(2), PowerHinge(3), Logistic()]


def text_like():
    """1,500 x 3,000, 30 words per row."""
    return text_rows(1500, 3000, 30)


def plane_problem(seed, loss, n=40, n_directions=2, *, fit_intercept=True):
    """A rounded loss, shortfalls, lines, the quadratic part of q, and the plane itself."""
    rng = np.random.default_rng(seed)
    rounded = rounded_loss(loss, rng.uniform(0.1, 2, size=n), None)
    m, y, lines = (
        rng.normal(size=n) + 0.5,
        rng.choice([-1.0, 1.0], size=n),
        rng.normal(size=(n_directions, n)),
    )
    weights, directions = rng.normal(size=6), rng.normal(size=(n_directions, 6))
    pairs = zip(directions, lines, strict=True)
    plane = Plane(
        weights,
        [Direction(d, z, float(np.linalg.norm(d)), 1e-15) for d, z in pairs],
        y if fit_intercept else None,
    )
    if fit_intercept:
        directions, lines = np.vstack([directions, np.zeros(6)]), np.vstack([lines, -y])
    return rounded, m, lines, directions @ weights, directions @ directions.T, plane


def gradient_at(rounded, m, lines, slopes, gram, t):
    return slopes + gram @ t + lines @ rounded.slope(m + t @ lines)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(LOSSES), st.integers(1, 2), st.booleans())
def test_the_point_of_a_plane_is_nearly_its_best(seed, loss, n_directions, fit_intercept):
    rounded, m, lines, slopes, gram, plane = plane_problem(
        seed, loss, n_directions=n_directions, fit_intercept=fit_intercept
    )
    found = plane.best(rounded, Balanced(0.0, m, *rounded.derivatives(m)))
    if found is None:
        start = gradient_at(rounded, m, lines, slopes, gram, np.zeros(len(lines)))
        assert np.abs(start).max() < 1e-6
        return
    nodes, shares = np.polynomial.legendre.leggauss(30)

    def excess(t):  # an integral of the gradient along the way: losses are known by their slopes here
        at = [gradient_at(rounded, m, lines, slopes, gram, s * t) @ t for s in (nodes + 1) / 2]
        return shares @ at / 2

    best = minimize(
        excess,
        found,
        jac=lambda t: gradient_at(rounded, m, lines, slopes, gram, t),
        options={"gtol": 1e-7},
    )
    assert excess(found) <= 0.97 * excess(best.x)  # both are negative


def test_the_step_to_a_point_is_the_sum_of_its_parts():
    rng = np.random.default_rng(1)
    X, w, y = rng.normal(size=(20, 6)), rng.normal(size=6), rng.choice([-1.0, 1.0], size=20)
    d = rng.normal(size=(2, 6))
    parts = [Direction(each, -y * (X @ each), float(np.linalg.norm(each)), 1e-15) for each in d]
    step = Plane(w, parts, y).step(np.array([0.5, -2.0, 7.0]), 1.0)  # the last is the intercept's
    assert_allclose(step.weights, 0.5 * d[0] - 2 * d[1])
    assert_allclose(step.shortfall, -y * (X @ step.weights), atol=1e-12)
    assert step.length == pytest.approx(np.linalg.norm(step.weights))
    assert step.error >= 2.5e-15


def test_nothing_is_found_where_the_plane_is_flat():
    rounded, m, _, _, _, plane = plane_problem(0, PowerHinge(2))
    plane._slopes[:] = 0
    far = Balanced(0.0, m - 1e3, *rounded.derivatives(m - 1e3))
    assert plane.best(rounded, far) is None


def dual_pair(problem, rng):
    """A balanced dual vector in its box and X^T (y alpha)."""
    y, most = problem.labels, problem.cost * min(problem.loss.largest_slope, 3.0)
    alpha = rng.uniform(0, most, size=len(y))
    above, below = alpha[y > 0].sum(), alpha[y < 0].sum()
    alpha[y > 0] *= min(below / above, 1.0)
    alpha[y < 0] *= min(above / below, 1.0)
    return alpha, problem.design.transposed_times(y * alpha)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([1, 2]), st.floats(0.01, 10))
def test_a_blend_is_the_best_of_its_segment_and_proves_it(seed, p, cost):
    rng = np.random.default_rng(seed)
    X = sparse.random(30, 12, density=0.4, random_state=rng, format="csr")
    problem = ERMProblem.build(X, np.where(np.arange(30) % 3 == 0, 1.0, -1.0), p=p, cost=cost)
    (one, u), (two, v) = (dual_pair(problem, rng) for _ in range(2))
    blend = DualBlend(problem)
    blend.take(one, u, dual_value(problem, one, u))
    blend.take(two, v, dual_value(problem, two, v))
    shares = np.linspace(0, 1, 101)
    values = [dual_value(problem, one + s * (two - one), u + s * (v - u)) for s in shares]
    size = np.abs(values).max()
    assert blend.value >= max(values) - 1e-9 * size
    assert blend.value == pytest.approx(dual_value(problem, blend.alpha, blend.dual_weights), abs=1e-9 * size)
    proven = dual_bound_with_pull(problem, blend.alpha, blend.dual_weights, blend.lost)
    assert proven <= dual_bound(problem, blend.alpha) + 1e-12 * size
    assert proven >= blend.value - 1e-9 * size


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10_000))
def test_a_small_blend_of_a_huge_vector_has_the_errors_of_that(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 8), rng.integers(1, 4)
    X, y, cost = rng.normal(size=(n, m)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0), 10 ** rng.uniform(4, 10)
    problem = ERMProblem.build(X, y, p=2, cost=cost, fit_intercept=False)
    blend = DualBlend(problem)
    for alpha in (2 * cost * rng.uniform(0.5, 1, size=n), rng.uniform(0, 1, size=n)):
        u = problem.design.transposed_times(y * alpha)
        blend.take(alpha, u, dual_value(problem, alpha, u))
    proven = dual_bound_with_pull(problem, blend.alpha, blend.dual_weights, blend.lost)
    alpha = blend.alpha.astype(np.longdouble)
    u = X.astype(np.longdouble).T @ (y * alpha)
    exact = alpha.sum() - u @ u / 2 - (alpha * alpha).sum() / (4 * np.longdouble(cost))
    assert proven <= exact + 1e-15 * abs(exact)


def test_parts_of_a_step_that_nearly_cancel_are_no_trouble():
    d = np.array([3.0, 1.0, 2.0])
    parts = [Direction(a * d, a * np.ones(2), a * float(np.linalg.norm(d)), 1e-15) for a in (1.0, 3.0)]
    step = Plane(np.zeros(3), parts, None).step(np.array([1.0, -1 / 3]), 1.0)
    assert step.length == pytest.approx(0, abs=1e-15)
    assert step.error >= 2e-15


def test_without_a_parabola_the_last_vector_counts():
    problem = ERMProblem.build(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]), loss=Logistic())
    blend = DualBlend(problem)
    for alpha in (np.full(4, 0.5), np.full(4, 0.2)):
        blend.take(alpha, problem.labels * alpha, dual_value(problem, alpha, problem.labels * alpha))
        assert blend.alpha is alpha
        assert blend.lost == 0


@pytest.fixture(autouse=True)
def small_is_large(without_compiled_walk, monkeypatch):
    """Steps in planes are for large X as a rule, and compiled for most losses."""
    monkeypatch.setattr(walk_module, "_MANY_NUMBERS", 0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", [PowerHinge(1), PowerHinge(2), PowerHinge(3), Logistic()])
def test_planes_and_newton_steps_end_in_the_same_place(loss, fit_intercept, monkeypatch):
    X, y = text_like()
    problem = ERMProblem.build(X, y, loss=loss, cost=1.0, fit_intercept=fit_intercept)
    by_planes = solve_newton(problem, tol=1e-6, options=ITERATIVE)
    monkeypatch.setattr(walk_module, "_SPARSE", 0.0)
    by_newton = solve_newton(problem, tol=1e-6, options=ITERATIVE)
    assert by_planes.converged
    assert by_newton.converged
    assert by_planes.objective == pytest.approx(by_newton.objective, rel=1e-6)
    assert by_planes.gap >= 1 - dual_bound(problem, by_planes.dual) / by_planes.objective - 1e-9


@pytest.mark.parametrize("p", [1, 2])
def test_planes_take_fewer_passes_over_text(p, monkeypatch):
    X, y = text_like()
    problem = ERMProblem.build(X, y, p=p, cost=1.0)
    by_planes = solve_newton(problem, options=ITERATIVE)
    monkeypatch.setattr(walk_module, "_SPARSE", 0.0)
    by_newton = solve_newton(problem, options=ITERATIVE)
    assert by_planes.history.passes[-1] < by_newton.history.passes[-1]


def test_slow_planes_make_room_for_newton_steps(monkeypatch):
    X, y = text_like()
    problem, steps = ERMProblem.build(X, y, p=1, cost=1e4), []
    step = walk_module.Walk._newton_step
    monkeypatch.setattr(walk_module.Walk, "_newton_step", lambda self: steps.append(1) or step(self))
    assert solve_newton(problem, options=ITERATIVE).converged
    assert steps


def test_a_gap_that_only_rounding_leaves_ends_the_walk(monkeypatch):
    X, y = text_like()
    problem = ERMProblem.build(X, y, p=2, cost=1.0)
    steps = []
    evaluate = walk_module.Walk._evaluate
    monkeypatch.setattr(walk_module.Walk, "_evaluate", lambda self: steps.append(1) or evaluate(self))
    result = solve_newton(problem, tol=1e-14, options=ITERATIVE)  # beyond what floats can prove
    assert not result.converged
    assert result.gap < 1e-9
    assert len(steps) < 300
