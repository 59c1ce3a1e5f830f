"""Losses of a residual, as margin losses on two rows a sample with targets: against a conic solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from exclusivity.objective.estimates import best_intercept
from exclusivity.objective.losses import Logistic, PowerHinge, SmoothHinge
from exclusivity.objective.objective import Bounds, ERMProblem, dual_bound, repair_dual
from exclusivity.solvers import (
    NewtonOptions,
    Start,
    newton as solver_module,
    solve_all,
    solve_newton,
    solve_path,
)
from exclusivity.solvers.run import constant_result

TOL = 1e-8


def samples(n_samples, n_features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    r = X @ rng.normal(size=n_features) + 20.0 + rng.laplace(size=n_samples)
    return X, r, rng.uniform(0.5, 2.0, size=n_samples)


def epsilon_insensitive(X, r, epsilon, *, tau=0.5, weights=None, **settings):
    """max(0, |r - f| - epsilon)^p: two rows (y, t) = (1, r - epsilon) and (-1, -r - epsilon) a sample.

    With ``tau`` (and epsilon = 0) the pinball loss of that quantile, twice over.
    """
    n, weights = len(r), np.ones(len(r)) if weights is None else weights
    return ERMProblem.build(
        sparse.vstack([X, X], format="csr") if sparse.issparse(X) else np.concatenate([X, X]),
        np.repeat([1.0, -1.0], n),
        targets=np.concatenate([r - epsilon, -r - epsilon]),
        weights=np.concatenate([2 * tau * weights, 2 * (1 - tau) * weights]),
        **settings,
    )


def conic(X, r, epsilon, *, tau=0.5, p=1, cost=1.0, sparsity=0.0, weights=None, fit_intercept=True):
    """The optimum by an independent solver, which knows residuals and no rows."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    weights = np.ones(len(r)) if weights is None else weights
    residual = r - X @ w - (b if fit_intercept else 0.0)
    sides = [
        (cp.pos(residual - epsilon), 2 * tau * weights),
        (cp.pos(-residual - epsilon), 2 * (1 - tau) * weights),
    ]
    value = cp.sum_squares(w) / 2 + sparsity * cp.norm1(w)
    for missed, s in sides:
        value += cost * (s @ missed if p == 1 else cp.sum_squares(cp.multiply(np.sqrt(s), missed)))
    problem = cp.Problem(cp.Minimize(value))
    problem.solve(solver=cp.CLARABEL, **dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9))
    return problem.value, w.value


def check(problem, result, optimum, weights):
    assert result.gap <= TOL
    assert result.objective == pytest.approx(problem.value(result.weights, result.intercepts), rel=1e-12)
    assert result.objective == pytest.approx(optimum, rel=2e-8)
    bound = dual_bound(problem, result.dual)
    assert result.objective * (1 - TOL) * (1 - 1e-12) <= bound <= optimum * (1 + 1e-8)
    np.testing.assert_allclose(repair_dual(problem, result.dual), result.dual, rtol=1e-12, atol=1e-12)
    # The distance of two points is bounded by the gap: F is 1-strongly convex in w.
    assert np.linalg.norm(result.weights[:, 0] - weights) <= 4 * np.sqrt(TOL * optimum)


@pytest.mark.parametrize("storage", ["dense", "sparse", "float32"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"epsilon": 0.0},
        {"epsilon": 0.0, "tau": 0.9},
        {"p": 2},
        {"sparsity": 2.0},
        {"p": 2, "sparsity": 2.0},
        {"fit_intercept": False},
        {"cost": 30.0},
        {"shape": (20, 60)},
        {"shape": (20, 60), "p": 2},
    ],
    ids=str,
)
def test_residual_losses_are_certified_and_agree_with_a_conic_solver(storage, settings):
    n, m = settings.pop("shape", (80, 5)) if "shape" in settings else (80, 5)
    X, r, weights = samples(n, m)
    X = X.astype(np.float32).astype(float)
    epsilon, rest = settings.get("epsilon", 0.5), {k: v for k, v in settings.items() if k != "epsilon"}
    optimum, w = conic(X, r, epsilon, weights=weights, **rest)
    data = {"dense": X, "sparse": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[storage]
    rest = {"p": 1} | rest
    problem = epsilon_insensitive(data, r, epsilon, weights=weights, **rest)
    check(problem, solve_newton(problem, tol=TOL), optimum, w)


@pytest.mark.parametrize("p", [1, 2])
def test_many_rows_are_sampled_and_shrunk(monkeypatch, p):
    monkeypatch.setattr(solver_module, "MANY_ROWS", 500)
    X, r, _ = samples(4000, 3)
    optimum, w = conic(X, r, 0.2, p=p, cost=0.1)
    problem = epsilon_insensitive(X, r, 0.2, p=p, cost=0.1)
    check(problem, solve_newton(problem, tol=TOL), optimum, w)


@pytest.mark.parametrize("loss", [PowerHinge(1.5), SmoothHinge(), Logistic()])
def test_other_losses_have_targets_too(loss):
    X, r, _ = samples(60, 4)
    problem = epsilon_insensitive(X, r, 0.3, loss=loss)
    result = solve_newton(problem, tol=TOL)
    assert result.gap <= TOL
    assert result.objective == pytest.approx(problem.value(result.weights, result.intercepts), rel=1e-12)
    # No point nearby is better, nor is one along a feature, or another intercept.
    for j in range(5):
        for step in (1e-3, -1e-3):
            weights, intercepts = result.weights.copy(), result.intercepts + step * (j == 4)
            weights[:4, 0] += step * (np.arange(4) == j)
            assert problem.value(weights, intercepts) >= result.objective * (1 - TOL)


def test_targets_of_one_are_no_targets():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 4)), rng.choice([-1.0, 1.0], 90)
    for p in (1, 2):
        plain, same = ERMProblem.build(X, y, p=p), ERMProblem.build(X, y, p=p, targets=np.ones(90))
        one, other = solve_newton(plain, tol=1e-10), solve_newton(same, tol=1e-10)
        np.testing.assert_allclose(other.weights, one.weights, rtol=1e-9)
        assert other.objective == pytest.approx(one.objective, rel=1e-12)


def test_bounds_on_the_gap_hold_at_any_dual_vector():
    X, r, _ = samples(30, 3)
    problem, rng = epsilon_insensitive(X, r, 0.4, p=1), np.random.default_rng(1)
    optimum, _ = conic(X, r, 0.4)
    best = solve_newton(problem, tol=1e-10).dual
    for scale in (0.0, 1e-3, 0.1, 1.0):
        alpha = best + scale * rng.normal(size=60)
        assert dual_bound(problem, alpha) <= optimum * (1 + 1e-9)


def test_the_best_intercept_is_a_quantile():
    _, r, _ = samples(41, 3)
    median = epsilon_insensitive(np.zeros((41, 1)), r, 0.0, p=1)
    assert best_intercept(median, np.zeros(82)) == pytest.approx(np.median(r))
    mean = epsilon_insensitive(np.zeros((41, 1)), r, 0.0, p=2)
    assert best_intercept(mean, np.zeros(82)) == pytest.approx(r.mean())


def test_rows_of_one_sign_are_all_fitted():
    problem = ERMProblem.build(np.eye(2), np.ones(2), targets=np.array([3.0, 5.0]), p=1)
    result = constant_result(problem)
    assert result.intercepts[0] == 5
    assert problem.value(result.weights, result.intercepts) == 0


def test_paths_starts_and_bounds_know_targets():
    X, r, _ = samples(60, 3)
    problem = epsilon_insensitive(X, r, 0.2, p=2)
    costs = [0.1, 1.0]
    for cost, result in zip(costs, solve_path(problem, costs, tol=TOL), strict=True):
        optimum, _ = conic(X, r, 0.2, p=2, cost=cost)
        assert result.objective == pytest.approx(optimum, rel=2 * TOL)
    best = solve_newton(problem, tol=TOL)
    [again] = solve_all([problem], tol=TOL, starts=[Start.again(best)])
    assert again.n_iter <= 1
    bounded = epsilon_insensitive(X, r, 0.2, p=1, bounds=Bounds(np.zeros(3), np.full(3, np.inf)))
    assert solve_newton(bounded, tol=TOL).weights.min() >= 0


def test_who_takes_all_targets_for_one_says_so():
    X, r, _ = samples(20, 3)
    problem = epsilon_insensitive(X, r, 0.2, p=2)
    for solver in ("alm", "paper"):
        with pytest.raises(ValueError, match=f"solver='{solver}' takes all targets for 1"):
            solve_all([problem], solver)
    with pytest.raises(ValueError, match="regime='iterative' takes all targets for 1"):
        solve_newton(problem, options=NewtonOptions("iterative"))
    with pytest.raises(ValueError, match="targets must be finite numbers"):
        ERMProblem.build(X, np.ones(20), targets=np.full(20, np.nan))
