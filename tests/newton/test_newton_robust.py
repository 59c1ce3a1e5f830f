"""Solver "newton" never lies and never breaks: nasty data, symmetries, repeats, stops and warm starts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from exclusivity.objective.losses import Logistic, PowerHinge, SmoothHinge
from exclusivity.objective.objective import ERMProblem, dual_bound, member_costs, repair_dual
from exclusivity.solvers import NewtonOptions, Start, Status, factorised, solve_newton
from exclusivity.solvers.factorised import robust_cholesky
from newton.newton_cases import assert_honest, blobs, build, plain_objective, radius, regimes_for

POWERS = [1, 1.5, 2, 3]


def assert_sound(problem, result, known=np.inf, rounding=1e-12):
    """Finite, feasible, honest, and consistent with itself."""
    assert np.all(np.isfinite(result.weights))
    assert np.all(np.isfinite(result.intercepts))
    assert problem.fit_intercept or not np.any(result.intercepts)
    value = plain_objective(problem, result.weights[:, 0], result.intercepts[0])
    assert result.objective == pytest.approx(value, rel=100 * rounding)
    assert_honest(result, known, rounding)
    assert result.converged == (result.status is Status.CERTIFIED)
    assert_feasible(problem, result.dual)
    # D has |u|^2/2 in it, u = X^T (y alpha): a sum whose rounding matters as long as it is not small.
    u = problem.design.transposed_times(problem.labels * result.dual)
    noise = 1e-15 * np.abs(problem.design.X).max() * result.dual.sum() * np.linalg.norm(u)
    bound = dual_bound(problem, result.dual)
    scale = problem.n_members * problem.kappa
    # Each bound is rounded down by what its own sums may have lost.
    assert bound == pytest.approx(
        result.history.bound[-1], abs=1000 * (rounding * result.objective + noise * scale)
    )


def assert_feasible(problem, alpha):
    """In its box, and sum y alpha = 0, as far as a sum of floats can be zero."""
    assert np.all(alpha >= 0)
    if problem.loss.p == 1:
        assert np.all(alpha <= member_costs(problem))
    if problem.fit_intercept:
        assert abs(problem.labels @ alpha) <= 1e-10 * max(alpha.sum(), 1e-300)
    np.testing.assert_allclose(repair_dual(problem, alpha), alpha, rtol=1e-10, atol=0)


# ---------------------------------------------------------------- nasty data


def nasty_cases():
    """X, y and settings by name."""
    X, y = blobs(60, 5, seed=11)
    rng = np.random.default_rng(0)
    wide, wide_y = blobs(12, 25, seed=12)
    few, few_y = blobs(4, 30, seed=13)
    rare = rng.normal(size=(1001, 3)) + np.append(0.5, np.zeros(1000))[:, None]
    two = np.array([1.0, -1.0])
    return {
        "separable": (X, np.where(X[:, 0] > 0.1, 1.0, -1.0), {"cost": 1e4}),
        "ill-conditioned": (X @ np.vander(np.linspace(0.5, 1, 5)) ** 4, y, {"cost": 100.0}),
        "imbalanced 1:1000": (rare, np.append(1.0, -np.ones(1000)), {}),
        "tiny": (X * 1e-8, y, {}),
        "huge": (X * 1e8, y, {}),
        "mixed scales": (X * 10.0 ** np.linspace(-6, 6, 5), y, {}),
        "mixed scales N<M": (wide * 10.0 ** np.linspace(-6, 6, 25), wide_y, {}),
        "tiny cost": (X, y, {"cost": 1e-12}),
        "huge cost": (X, y, {"cost": 1e9}),
        "duplicated rows": (np.repeat(X[:7], 9, axis=0), np.repeat(y[:7], 9), {}),
        "contradicting rows": (np.repeat(X[:9], 2, axis=0), np.tile(two, 9), {}),
        "duplicated rows N<M": (np.repeat(few, 4, axis=0), np.repeat(few_y, 4), {"cost": 1e3}),
        "duplicated columns": (np.repeat(X[:, :2], 4, axis=1), y, {}),
        "constant column": (np.column_stack([X, np.full(60, 7.0), np.zeros(60)]), y, {}),
        "all zero": (np.zeros((9, 3)), np.array([1.0, -1, -1, -1, 1, -1, -1, 1, -1]), {}),
        "N=2": (np.array([[1.0, 2.0], [0.5, -1.0]]), two, {}),
        "N=2 equal rows": (np.ones((2, 3)), two, {}),
        "M=1": (X[:, :1], y, {}),
        "one row per class M=40": (rng.normal(size=(2, 40)), two, {"cost": 10.0}),
        "far from the origin": (X + 1e4, y, {}),
    }


NASTY = nasty_cases()
# Margins are differences of numbers of the size |x| |w|: for these that costs digits, of F as of D.
NOISY = {"mixed scales": 1e-11, "mixed scales N<M": 1e-11, "far from the origin": 1e-10, "huge": 1e-11}


# Every pair of two of p, beta and intercept, in half as many problems as all triples.
HALF = [
    pytest.param(p, beta, fit_intercept, id=f"{p}-{beta}-{'b' if fit_intercept else 'no b'}")
    for number, p in enumerate(POWERS)
    for beta, fit_intercept in (((0.0, True), (0.5, False)), ((0.0, False), (0.5, True)))[number % 2]
]


@pytest.mark.parametrize(("p", "beta", "fit_intercept"), HALF)
@pytest.mark.parametrize("name", NASTY)
def test_nasty_data(name, p, beta, fit_intercept):
    X, y, extra = NASTY[name]
    problem = build(X, y, p=p, sparsity=beta, fit_intercept=fit_intercept, **extra)
    results = {
        regime: solve_newton(problem, tol=1e-8, options=NewtonOptions(regime))
        for regime in regimes_for(problem)
    }
    best = min(result.objective for result in results.values())
    for regime, result in results.items():
        assert_sound(problem, result, best, NOISY.get(name, 1e-12))
        # Conjugate gradients may give up on such data, honestly; nothing else may. Features of 1e8 with a
        # penalty are at the limit, |u_j| > l being decided by the 9th digit of u = X^T (y alpha).
        limit = 1e-6 if (name, beta) == ("huge", 0.5) else 1e-8
        assert result.gap <= limit or regime == "iterative", (regime, result.gap)
        assert result.n_iter <= 300 or regime == "iterative"


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_hard_margins_of_more_features_than_rows(p, seed):
    # All rows end on the margin, their weights in the Newton system without bound: one in ten of these once
    # ended at a gap of 1, some because a full step had landed on the boundary, some by lost digits.
    X, y = blobs(12, 25, seed=seed)
    for scale in (1.0, 100.0, 1e4):
        for cost in (1e3, 1e6, 1e9):
            problem = build(X * scale, y, p=p, cost=cost)
            result = solve_newton(problem, tol=1e-8, options=NewtonOptions("interior"))
            assert result.converged, (scale, cost, result.gap)
            assert result.n_iter <= 100
            assert_sound(problem, result, rounding=1e-11)


@pytest.mark.parametrize("scale", [1e100, 1e200, 1e-100, 1e-200])
@pytest.mark.parametrize("p", POWERS)
def test_scales_beyond_reason_neither_warn_nor_break(p, scale):
    # At 1e100 the products of 16 digits do not leave one of X^T (y alpha) = w = 1e-100: no certificate beyond
    # 0 <= min F is possible, and that one must be given. At 1e-100 the features do not exist.
    X, y = blobs(20, 3, seed=1)
    for beta in (0.0, 0.5):
        problem = build(X * scale, y, p=p, sparsity=beta)
        for regime in regimes_for(problem):
            result = solve_newton(problem, tol=1e-6, max_iter=60, options=NewtonOptions(regime))
            assert np.all(np.isfinite(result.weights))
            assert np.isfinite(result.objective)
            assert 0 <= result.gap <= 1
            assert result.converged or (scale > 1 and result.status is Status.MAX_ITER)
            assert_feasible(problem, result.dual)
            assert np.all(result.history.bound >= 0)


def test_float32_beyond_the_squares_of_float32():
    X, y = blobs(60, 4, seed=1)
    X32 = (X * 1e25).astype(np.float32)
    for p in POWERS:
        result = solve_newton(build(X32, y, p=p), tol=1e-6, max_iter=50)
        assert np.isfinite(result.objective)


@pytest.mark.parametrize("p", POWERS)
def test_no_row_is_active_after_a_step(p):
    # From far inside the wrong side one Newton step with a large cost overshoots into "no row counts"; and a
    # start where no row counts has no curvature at all: only the ridge pulls back.
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1.0, 1, -1, -1])
    problem = build(X, y, p=p, cost=10.0)
    expected = solve_newton(problem, tol=1e-9)
    for w, b in ((100.0, 0.0), (-100.0, 3.0)):
        for regime in regimes_for(problem):
            start = Start(np.array([[w]]), np.array([b]))
            result = solve_newton(problem, tol=1e-8, start=start, options=NewtonOptions(regime))
            assert_sound(problem, result, expected.objective)
            assert result.converged or regime == "iterative"
            assert result.objective == pytest.approx(expected.objective, rel=max(2e-8, 2 * result.gap))


def random_problem(seed):
    """Any shape, scale, knob; a fifth of them with repeated rows or columns, constants, zeros."""
    rng = np.random.default_rng(seed)
    N, M = int(rng.integers(2, 40)), int(rng.integers(1, 30))
    X = rng.normal(size=(N, M)) * 10.0 ** rng.choice([0, 0, 0, -2, 2, 4]) + rng.choice([0, 0, 3, 100])
    if rng.random() < 0.2:
        X = X[rng.integers(0, N, size=N)]
    if rng.random() < 0.2:
        X = X[:, rng.integers(0, M, size=M)]
    if rng.random() < 0.2:
        X[:, rng.integers(M)] = rng.choice([0.0, 5.0])
    if rng.random() < 0.2:
        X[rng.random(X.shape) < 0.7] = 0
    y = np.where(rng.random(N) < rng.choice([0.1, 0.5]), 1.0, -1.0)
    y[:2] = 1, -1
    return build(
        sparse.csr_matrix(X) if rng.random() < 0.3 else X,
        y,
        n_members=int(rng.choice([1, 7])),
        cost=float(10 ** rng.uniform(-4, 4)),
        p=float(rng.choice([1, 1, 1.2, 1.5, 1.9, 2, 2, 2.1, 3, 6])),
        exclusivity=float(rng.choice([0, 0.5, 1])),
        sparsity=float(rng.choice([0, 0, 0.5, 5])),
        weights=rng.uniform(0.01, 10, size=N) if rng.random() < 0.4 else None,
        fit_intercept=bool(rng.random() < 0.7),
    )


@settings(deadline=None, max_examples=120, derandomize=True)
@given(st.integers(0, 10_000))
def test_random_problems_converge_honestly_and_repeat_bit_for_bit(seed):
    problem = random_problem(seed)
    tol = 1e-9 if problem.loss.p >= 2 else 1e-7
    result = solve_newton(problem, tol=tol)
    rounding = 1e-15 * max(1e3, np.abs(problem.design.X).max() * np.abs(result.weights).sum() * 100)
    assert result.converged, result.gap
    assert_sound(problem, result, rounding=rounding)
    again = solve_newton(problem, tol=tol)
    np.testing.assert_array_equal(again.weights, result.weights)
    np.testing.assert_array_equal(again.dual, result.dual)
    assert again.history.records == result.history.records


# ---------------------------------------------------------------- repeats and symmetries


def trace(problem, **settings):
    """The weights and intercepts of every recorded iterate, and the result."""
    seen = []

    def watch(state):
        seen.append((state.weights[:, 0].copy(), float(state.intercepts[0]), state.record))

    return seen, solve_newton(problem, callback=watch, **settings)


@pytest.mark.parametrize("shape", [(40, 5), (12, 60)])
@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("p", POWERS)
def test_weight_2_is_a_repeated_row_in_every_iterate(p, beta, shape):
    X, y = blobs(*shape, seed=21)
    weights = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted = build(X, y, p=p, sparsity=beta, weights=weights)
    problem = build(X[repeated], y[repeated], p=p, sparsity=beta)
    for regime in regimes_for(problem):
        if regime == "iterative" and shape[0] < shape[1]:
            continue  # conjugate gradients amplify rounding until two runs no longer compare
        # Not to the very end: there the systems get so bad that they do so, too.
        options = {"tol": 1e-5, "options": NewtonOptions(regime)}
        (one, _), (two, _) = trace(weighted, **options), trace(problem, **options)
        if regime == "iterative" and p == 1:  # rows cross corners by rounding and part the two in the end
            one, two = one[:7], two[:7]
        assert len(one) == len(two)
        rel = 1e-9 if regime != "iterative" else 1e-6
        for (w, b, record), (w2, b2, record2) in zip(one, two, strict=True):
            np.testing.assert_allclose(w, w2, rtol=0, atol=rel * max(np.linalg.norm(w), 1e-3))
            assert b == pytest.approx(b2, rel=rel, abs=rel)
            assert record.objective == pytest.approx(record2.objective, rel=rel)
            assert record.bound == pytest.approx(record2.bound, rel=rel, abs=rel * record.objective)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_symmetries(p, beta):
    X, y = blobs(50, 6, seed=22)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=50)
    rng = np.random.default_rng(2)
    rows, columns = rng.permutation(50), rng.permutation(6)

    def solve(X, y, weights):
        return solve_newton(build(X, y, p=p, sparsity=beta, weights=weights, cost=0.5), tol=1e-9)

    base = solve(X, y, weights)
    w, b = base.weights[:, 0], base.intercepts[0]
    # The same steps in another order of summation: 1e-7 leaves room for what the last systems amplify.
    near = {"rtol": 0, "atol": 1e-7 * np.linalg.norm(w)}

    permuted = solve(X[rows], y[rows], weights[rows])
    np.testing.assert_allclose(permuted.weights[:, 0], w, **near)
    assert permuted.intercepts[0] == pytest.approx(b, abs=1e-6)
    np.testing.assert_allclose(permuted.dual, base.dual[rows], atol=1e-5 * base.dual.max())

    turned = solve(np.ascontiguousarray(X[:, columns]), y, weights)
    np.testing.assert_allclose(turned.weights[:, 0], w[columns], **near)

    flipped = solve(X, -y, weights)
    np.testing.assert_allclose(flipped.weights[:, 0], -w, **near)
    assert flipped.intercepts[0] == pytest.approx(-b, abs=1e-6)

    mirrored = solve(-X, y, weights)
    np.testing.assert_allclose(mirrored.weights[:, 0], -w, **near)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("shape", [(60, 4), (8, 20)])
def test_a_shift_of_the_features_changes_the_intercept_only(p, beta, shape):
    X, y = blobs(*shape, seed=23)
    problem, moved = (build(data, y, p=p, sparsity=beta) for data in (X, X + 100))
    base, shifted = solve_newton(problem, tol=1e-9), solve_newton(moved, tol=1e-9)
    assert base.converged
    assert shifted.converged
    assert shifted.objective == pytest.approx(base.objective, rel=3e-9)
    w = shifted.weights[:, 0]
    # The two certificates leave each w a ball around the one optimum.
    assert np.linalg.norm(w - base.weights[:, 0]) <= radius(problem, base, shifted)
    # And (w, b + 100 sum w) is as good for the old features as (w, b) is for the new ones.
    value = plain_objective(problem, w, shifted.intercepts[0] + 100 * w.sum())
    assert value == pytest.approx(shifted.objective, rel=1e-10)


# ---------------------------------------------------------------- steps


@pytest.mark.parametrize("regime", ["semismooth", "iterative"])
@pytest.mark.parametrize("p", [1.1, 1.5, 2, 3])
@pytest.mark.parametrize(
    "name", ["separable", "mixed scales", "huge cost", "imbalanced 1:1000", "duplicated rows"]
)
def test_no_step_raises_the_smoothed_objective(name, p, regime):
    X, y, extra = NASTY[name]
    problem = build(X, y, p=p, **extra)
    seen, _ = trace(problem, tol=1e-9, options=NewtonOptions(regime))
    # Records of the interior point that takes over when the steps stall have no gradient norm.
    seen = [entry for entry in seen if entry[2].primal_residual > 0]
    c = member_costs(problem)

    def smoothed(w, b, width):
        loss = PowerHinge(p).rounded(width if p < 2 else 0.0)
        return w @ w / 2 + c @ loss.parts(1 - y * (X @ w + b), curvature=False)[0]

    assert len(seen) >= 2
    for (w0, b0, _), (w1, b1, record) in pairwise(seen):
        before, after = smoothed(w0, b0, record.mu), smoothed(w1, b1, record.mu)
        assert after <= before * (1 + 1e-12)
    if p >= 2:
        objectives = [record.objective for _, _, record in seen]
        assert np.all(np.diff(objectives) <= 1e-12 * objectives[0])


def test_p_2_needs_few_steps_and_one_pass_each():
    X, y = blobs(5000, 10, seed=3)
    result = solve_newton(build(X, y, p=2), tol=1e-10)
    assert result.converged
    assert result.n_iter <= 9
    assert result.history.passes[-1] <= result.n_iter + 2


@pytest.mark.parametrize("p", [1.1, 1.5])
def test_sharpening_the_corner_ends_by_itself(p):
    X, y = blobs(80, 4, seed=9)
    problem = build(X, y, p=p)
    result = solve_newton(problem, tol=0.0, options=NewtonOptions("iterative"))
    assert_sound(problem, result)
    assert result.gap <= 1e-9
    assert not result.converged or result.gap == 0
    # Records of the interior point that goes on from there have no gradient norm.
    widths = [record.mu for record in result.history.records if record.primal_residual > 0]
    assert widths[-1] < widths[0]
    assert np.all(np.diff(widths) <= 0)


# ---------------------------------------------------------------- starts and stops


def as_start(result, *, dual=True):
    return Start(result.weights, result.intercepts, result.dual if dual else None)


@pytest.mark.parametrize(
    ("p", "dual"), [(1, True), (1.5, True), (1.5, False), (2, True), (2, False), (3, False)]
)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_warm_start_from_the_solution_is_done_at_once(p, dual, beta):
    X, y = blobs(60, 5, seed=31)
    problem = build(X, y, p=p, sparsity=beta, n_members=4)
    tol = 1e-6
    # Without its dual vector a start proves itself by the slopes of its losses: they need an exact w.
    cold = solve_newton(problem, tol=tol if dual else 1e-13)
    assert cold.n_iter > 2
    warm = solve_newton(problem, tol=tol, start=as_start(cold, dual=dual))
    assert warm.n_iter <= 2
    assert warm.converged
    assert_sound(problem, warm, cold.objective)


def test_warm_start_of_p_1_without_its_dual_vector_still_converges():
    X, y = blobs(60, 5, seed=31)
    problem = build(X, y, p=1)
    cold = solve_newton(problem, tol=1e-8)
    for start in (as_start(cold, dual=False), Start(cold.weights, cold.intercepts, np.zeros(7))):
        warm = solve_newton(problem, tol=1e-8, start=start)
        assert warm.converged
        assert warm.objective == pytest.approx(cold.objective, rel=1e-8)


def test_start_with_an_intercept_for_a_problem_without_one():
    # An intercept that the problem does not have would make F smaller than its minimum: a lie.
    X, y = blobs(60, 3, seed=32, offset=3.0)
    free, none = build(X, y, p=2), build(X, y, p=2, fit_intercept=False)
    start = as_start(solve_newton(free, tol=1e-10))
    assert abs(start.intercepts[0]) > 0.1
    result = solve_newton(none, tol=1e-10, start=start)
    expected = solve_newton(none, tol=1e-10)
    assert_sound(none, result, expected.objective)
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)


def test_start_with_different_members_in_float32_takes_their_mean():
    X, y = blobs(60, 3, seed=33)
    problem = build(X, y, p=2, n_members=2, exclusivity=0.5)
    w = solve_newton(problem, tol=1e-10).weights[:, :1]
    spread = np.array([[1.5, 0.5]])
    start = Start((w * spread).astype(np.float32), np.zeros(2, dtype=np.float32))
    seen, _ = trace(problem, tol=0.99, start=start)  # good enough where it is
    np.testing.assert_allclose(seen[0][0], w[:, 0], rtol=1e-6)
    _, result = trace(problem, tol=1e-10, start=start)
    assert result.weights.dtype == np.float64
    assert_sound(problem, result)


@pytest.mark.parametrize("regime", ["interior", "semismooth", "iterative"])
def test_a_bad_start_does_no_harm(regime):
    X, y = blobs(60, 3, seed=34)
    problem = build(X, y, p=1.5)
    expected = solve_newton(problem, tol=1e-9)
    start = Start(np.full((3, 1), -1e4), np.array([1e5]), np.full(60, -7.0))
    result = solve_newton(problem, tol=1e-8, start=start, options=NewtonOptions(regime))
    assert result.converged
    assert_sound(problem, result, expected.objective, 1e-11)


@pytest.mark.parametrize("p", POWERS)
def test_the_callback_stops_the_run(p):
    X, y = blobs(60, 5, seed=35)
    problem = build(X, y, p=p, n_members=3)
    best = solve_newton(problem, tol=1e-9).objective
    calls = []

    def stop_at_two(state):
        calls.append(state)
        return state.record.iteration == 2

    result = solve_newton(problem, tol=1e-12, callback=stop_at_two)
    assert result.status is Status.CALLBACK
    assert result.n_iter == len(calls) == 2
    assert not result.converged
    assert_sound(problem, result, best)
    # What is proven of the last point afterwards is in the history alone.
    assert [state.record for state in calls][:-1] == list(result.history.records)[:-1]
    assert calls[-1].record.objective == pytest.approx(result.history.objective[-1], rel=1e-12)
    assert calls[0].weights.shape == (5, 3)
    assert 0 <= calls[0].seconds <= calls[1].seconds
    # A start that is good enough is not iterated on, and a callback may stop at the start as well.
    stopped = solve_newton(problem, tol=0.0, start=as_start(result), callback=lambda _: True)
    assert (stopped.status, stopped.n_iter) == (Status.CALLBACK, 1)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("max_iter", [1, 3])
def test_the_iteration_limit_is_kept_and_the_gap_is_honest(p, max_iter):
    X, y = blobs(60, 5, seed=36)
    problem = build(X, y, p=p, cost=50.0)
    best = solve_newton(problem, tol=1e-9).objective
    for regime in regimes_for(problem):
        result = solve_newton(problem, tol=1e-13, max_iter=max_iter, options=NewtonOptions(regime))
        assert result.status is Status.MAX_ITER
        assert result.n_iter == max_iter
        assert not result.converged
        assert result.gap > 1e-13
        assert_sound(problem, result, best)


# ---------------------------------------------------------------- members and memory


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_a_hundred_members_at_the_price_of_one(p, beta):
    X, y = blobs(60, 5, seed=41)
    one = solve_newton(build(X, y, p=p, cost=0.5, sparsity=beta), tol=1e-8)
    # kappa = 100, and 50 / 100 is exact: not one bit may differ.
    many = solve_newton(build(X, y, p=p, cost=50.0, n_members=100, sparsity=100 * beta), tol=1e-8)
    assert many.weights.shape == (5, 100)
    assert many.intercepts.shape == (100,)
    assert many.weights.strides[1] == 0
    assert many.intercepts.strides == (0,)
    np.testing.assert_array_equal(many.weights, np.repeat(one.weights, 100, axis=1))
    np.testing.assert_array_equal(many.dual, one.dual)
    assert many.n_iter == one.n_iter
    assert many.objective == pytest.approx(1e4 * one.objective, rel=1e-13)
    # gamma = 0.5: kappa = 1 + 99/2
    mixed = build(X, y, p=p, cost=0.5 * 50.5, n_members=100, exclusivity=0.5, sparsity=50.5 * beta)
    result = solve_newton(mixed, tol=1e-8)
    np.testing.assert_allclose(result.weights[:, 7], one.weights[:, 0], rtol=1e-9, atol=1e-12)
    assert result.objective == pytest.approx(100 * 50.5 * one.objective, rel=1e-10)


@pytest.mark.parametrize("shape", [(60, 5), (10, 20)])
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_float32_and_either_order_are_the_same_numbers(p, beta, shape):
    X, y = blobs(*shape, seed=42)
    X32 = X.astype(np.float32)
    problem = build(X32.astype(float), y, p=p, sparsity=beta)
    for regime in regimes_for(problem):
        # Steps that are exact to one digit part ways where numbers round differently: what such runs agree
        # in is what their gaps prove, |w - w*|^2 / 2 <= gap * objective. The others take the same steps.
        is_rough = regime == "iterative"
        options = {"tol": 1e-11 if is_rough else 1e-6, "options": NewtonOptions(regime)}
        base = solve_newton(problem, **options)
        size = np.linalg.norm(base.weights)
        near = 2 * np.sqrt(2 * 1e-11 * base.objective) if is_rough else 1e-9 * size
        for data in (
            X32,
            np.asfortranarray(X32),
            np.asfortranarray(X32.astype(float)),
            sparse.csr_matrix(X32),
        ):
            result = solve_newton(build(data, y, p=p, sparsity=beta), **options)
            assert result.converged
            assert result.weights.dtype == np.float64
            np.testing.assert_allclose(result.weights, base.weights, rtol=0, atol=near)
            assert result.objective == pytest.approx(base.objective, rel=1e-9)


def test_inputs_are_left_alone():
    X, y = blobs(60, 5, seed=43)
    weights = np.random.default_rng(0).uniform(1, 2, size=60)
    X0, y0, weights0 = X.copy(), y.copy(), weights.copy()
    for array in (X, y, weights):
        array.setflags(write=False)
    for p in POWERS:
        problem = build(X, y, p=p, weights=weights)
        for regime in regimes_for(problem):
            result = solve_newton(problem, tol=1e-6, options=NewtonOptions(regime))
            solve_newton(problem, tol=1e-8, start=as_start(result), options=NewtonOptions(regime))
    for array, copy in ((X, X0), (y, y0), (weights, weights0)):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("shape", [(150, 10), (50, 100)])
def test_features_far_from_zero_are_no_obstacle_for_p_1(shape):
    X, y = blobs(*shape, seed=3)
    near = solve_newton(build(X, y, p=1, cost=0.2), tol=1e-9)
    far = solve_newton(build(X + 1e6, y, p=1, cost=0.2), tol=1e-6)
    assert far.converged
    assert far.objective == pytest.approx(near.objective, rel=2e-6)


@pytest.mark.parametrize("cost", [1.0, 1e4, 1e6])
def test_a_band_whose_optimum_is_worse_than_its_start_is_widened_there(cost):
    # Rows outside of a band count as linear: at large costs their pull may lead millions away.
    rng = np.random.default_rng(3)
    y = np.where(rng.random(40_000) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(40_000, 1)) + 0.3 * rng.normal(size=(2, 1))[(y > 0).astype(int)]
    result = solve_newton(ERMProblem.build(X, y, p=1, cost=cost))
    assert result.converged
    assert result.history.passes[-1] < 30
    assert result.n_iter < 10


@pytest.mark.parametrize("tol", [1e-4, 1e-11])
@pytest.mark.parametrize("loss", [PowerHinge(2), SmoothHinge(), Logistic()], ids=str)
@pytest.mark.parametrize("shape", [(200, 160), (100, 300)], ids=str)
def test_kinks_that_many_weights_cross_need_few_systems(monkeypatch, shape, loss, tol):
    n_systems = 0

    def counted(*args):
        nonlocal n_systems
        n_systems += 1
        return robust_cholesky(*args)

    monkeypatch.setattr(factorised, "robust_cholesky", counted)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(shape[0]) < 0.5, 1.0, -1.0)
    X = rng.normal(size=shape) + 0.3 * y[:, None] * (rng.random(shape[1]) < 0.1)
    result = solve_newton(ERMProblem.build(X, y, loss=loss, cost=10.0, sparsity=0.3), tol=tol)
    assert result.converged
    assert n_systems <= 100
