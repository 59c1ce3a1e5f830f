"""No solver may claim to be closer to the optimum than it is: math.md section 5, at every iterate.

All references here are written from the formulas of math.md sections 1 and 5. The optimum itself is known
from above: any (W, b) has F >= min F, so a lower bound above the best F known is a false bound, whatever the
accuracy of the solver that found that F. Only rounding has to be allowed for.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from conic import solve_conic
from exclusivity.objective.objective import ERMProblem, dual_bound, repair_dual
from exclusivity.solvers import PaperOptions, solve_alm, solve_newton, solve_paper

# F and D are sums of at most some thousand terms: 1e-12 of F is a hundred times their rounding.
ROUNDING = 1e-12

SETTINGS = {
    "alm": (solve_alm, {"tol": 1e-10, "max_iter": 250}),
    "paper": (solve_paper, {"max_iter": 50, "options": PaperOptions(change=0)}),
    "paper random": (
        solve_paper,
        {
            "max_iter": 60,
            "options": PaperOptions(change=0, start="random", rho=1.0, w_step="exact"),
            "random_state": 7,
        },
    ),
}


def random_case(seed):
    """A small problem of every kind: shapes on both sides of M = N, all knobs, offsets, scales."""
    rng = np.random.default_rng(seed)
    p = (1, 1.5, 2, 3)[seed % 4]
    n_rows, n_features = int(rng.integers(5, 20)), int(rng.integers(1, 24))
    X = rng.normal(size=(n_rows, n_features)) * rng.choice([0.3, 1, 3]) + rng.choice([0, 2])
    y = np.where(rng.random(n_rows) < rng.choice([0.2, 0.5]), 1.0, -1.0)
    y[:2] = 1, -1
    return {
        "X": X,
        "y": y,
        "K": int(rng.integers(1, 5)),
        "C": float(10 ** rng.uniform(-1.5, 1)),
        "p": p,
        "gamma": float(rng.choice([0, 0.3, 1, 1])),
        "beta": float(rng.choice([0, 0, 0.5, 2])),
        "weights": rng.uniform(0.1, 4, size=n_rows) if rng.random() < 0.5 else None,
        "fit_intercept": bool(rng.random() < 0.8),
    }


def objective(case, W, b):
    """F of section 1."""
    s = np.ones(len(case["y"])) if case["weights"] is None else case["weights"]
    row_sums = np.abs(W).sum(axis=1)
    shortfall = np.maximum(0, 1 - case["y"][:, None] * (case["X"] @ W + b))
    return (
        case["gamma"] / 2 * np.sum(row_sums**2)
        + (1 - case["gamma"]) / 2 * np.sum(W**2)
        + case["beta"] * np.sum(row_sums)
        + case["C"] * np.sum(s[:, None] * shortfall ** case["p"])
    )


def dual_objective(case, alpha):
    """K kappa D(alpha) of section 5, for a feasible alpha."""
    kappa = 1 + case["gamma"] * (case["K"] - 1)
    s = np.ones(len(case["y"])) if case["weights"] is None else case["weights"]
    c, p = s * case["C"] / kappa, case["p"]
    u = case["X"].T @ (case["y"] * alpha)
    soft = np.sign(u) * np.maximum(np.abs(u) - case["beta"] / kappa, 0)
    loss = 0.0 if p == 1 else np.sum(c * (p - 1) * (alpha / (p * c)) ** (p / (p - 1)))
    return case["K"] * kappa * (np.sum(alpha) - np.sum(soft**2) / 2 - loss)


def build(case):
    return ERMProblem.build(
        case["X"],
        case["y"],
        n_members=case["K"],
        cost=case["C"],
        p=case["p"],
        exclusivity=case["gamma"],
        sparsity=case["beta"],
        weights=case["weights"],
        fit_intercept=case["fit_intercept"],
    )


def best_known(case):
    """The smallest F that anybody can show: the conic solver's point, or that of an exact run of ours."""
    conic, _, _ = solve_conic(**case)
    ours = solve_newton(build(case), tol=1e-12)
    return conic, min(conic, objective(case, ours.weights, ours.intercepts))


@pytest.mark.parametrize("seed", range(20))
def test_no_iterate_is_better_than_its_gap_says(seed):
    case = random_case(seed)
    conic, best = best_known(case)
    for solve, arguments in SETTINGS.values():
        points = []
        result = solve(
            build(case),
            callback=lambda s, kept=points: kept.append((s.weights.copy(), s.intercepts.copy())),
            **arguments,
        )
        history = result.history
        assert len(history) == len(points) == result.n_iter

        # What is reported as F is F.
        true = np.array([objective(case, W, b) for W, b in points])
        np.testing.assert_allclose(history.objective, true, rtol=ROUNDING)
        # No point is below the optimum (which the conic solver knows to 1e-9).
        assert true.min() >= conic * (1 - 1e-8)

        # The excess of an iterate never exceeds its gap, absolutely and relatively.
        slack = ROUNDING * np.maximum(true, best)
        assert np.all(true - best <= history.objective - history.bound + slack)
        assert np.all((true - best) / true <= history.gap + ROUNDING * np.maximum(1, best / true))
        upper = history.objective + history.column("error")  # the gap carries the rounding errors of F
        assert np.all(upper >= true)
        np.testing.assert_allclose(history.gap, np.clip((upper - history.bound) / upper, 0, 1), atol=ROUNDING)
        # `bound` is the best one known by then.
        assert np.all(np.diff(history.bound) >= 0)

        # The result: F of exactly these weights, the bound of exactly this dual vector.
        np.testing.assert_allclose(
            result.objective, objective(case, result.weights, result.intercepts), rtol=ROUNDING
        )
        np.testing.assert_allclose(
            result.objective, build(case).value(result.weights, result.intercepts), rtol=ROUNDING
        )
        bound = dual_bound(build(case), result.dual)
        assert bound >= history.bound[-1] - slack[-1]
        lost = history.column("error").max() / result.objective
        np.testing.assert_allclose(
            result.gap, max(0, (result.objective - bound) / result.objective), atol=ROUNDING + lost
        )
        # A gap below the rounding of F cannot be told from zero.
        assert (result.objective - best) / result.objective <= result.gap + ROUNDING
        assert result.converged == (result.gap <= arguments.get("tol", 1e-4))
        check_dual(case, result.dual, bound)


def check_dual(case, dual, bound):
    """The repaired vector is feasible and proves the bound, by the formula of section 5."""
    alpha = repair_dual(build(case), dual)
    s = np.ones(len(case["y"])) if case["weights"] is None else case["weights"]
    assert np.all(alpha >= 0)
    if case["p"] == 1:
        upper = s * case["C"] / (1 + case["gamma"] * (case["K"] - 1))
        assert np.all(alpha <= upper * (1 + 1e-15))  # the order of the products may differ
    if case["fit_intercept"]:
        assert abs(case["y"] @ alpha) <= 1e-15 * len(alpha) * alpha.sum()
    value = dual_objective(case, alpha)
    np.testing.assert_allclose(bound, value, rtol=1e-11, atol=1e-11 * alpha.sum())


def test_the_last_point_of_alm_is_the_best_and_of_paper_the_last():
    case = random_case(2)
    alm = solve_alm(build(case), tol=1e-9)
    assert alm.objective == alm.history.objective.min()
    paper = solve_paper(build(case), options=PaperOptions(change=0), max_iter=5)
    assert paper.objective == paper.history.objective[-1]


@cache
def known(seed):
    return random_case(seed), best_known(random_case(seed))[1]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from([1, 2, 4, 8]), st.integers(0, 2**32 - 1), st.floats(-6, 3), st.booleans())
def test_any_vector_whatsoever_gives_a_valid_bound_after_repair(seed, noise_seed, scale, signed):
    case, best = known(seed)
    rng = np.random.default_rng(noise_seed)
    alpha = rng.lognormal(size=len(case["y"])) * case["C"] * 10**scale
    if signed:
        alpha *= rng.choice([-1.0, 1.0], size=len(alpha))
    bound = dual_bound(build(case), alpha)
    assert np.isfinite(bound)
    assert bound <= best * (1 + ROUNDING)


@pytest.mark.parametrize("p", [1, 2])
def test_without_the_repair_bounds_are_false(p):
    """Why the repair is there: fourteen negative rows around zero alone claim more than the optimum.

    u vanishes, so section 5 would give D = 14 c (alpha = c for p = 1; 2 c, less 14 c loss*, for p = 2), while
    W = 0, b = -1 has a loss of 2^p on the two positive rows only.
    """
    half = np.random.default_rng(0).normal(size=(7, 3))
    X = np.vstack([half, -half, np.ones((2, 3))])
    y = np.repeat([-1.0, 1.0], [14, 2])
    case = {
        "X": X,
        "y": y,
        "K": 2,
        "C": 1.0,
        "p": p,
        "gamma": 1.0,
        "beta": 0.0,
        "weights": None,
        "fit_intercept": True,
    }
    best = objective(case, np.zeros((3, 2)), -np.ones(2))
    alpha = np.where(y < 0, p * case["C"] / 2, 0.0)
    np.testing.assert_allclose(dual_objective(case, alpha), 2 * 14.0)
    assert dual_objective(case, alpha) > 1.5 * best
    assert dual_bound(build(case), alpha) <= 0


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_bounds_stay_honest_when_features_are_shifted(p, offset):
    """A free intercept absorbs any shift, but sums over X lose offset * 1e-16 of relative accuracy."""
    rng = np.random.default_rng(1)
    shifted = rng.normal(size=(30, 4)) + offset
    X = shifted - offset  # exact: the shifted and the unshifted problem are the same
    y = np.where(X[:, 0] + rng.normal(size=30) > 0, 1.0, -1.0)
    best = solve_alm(ERMProblem.build(X, y, n_members=2, p=p), tol=1e-11).objective
    result = solve_alm(ERMProblem.build(shifted, y, n_members=2, p=p), tol=1e-7)
    assert result.converged
    tolerance = 1e-12 + 1e-16 * offset * 30
    assert np.all(result.history.bound <= best * (1 + tolerance))
    np.testing.assert_allclose(result.objective, best, rtol=2e-7)


def test_one_class_alone_has_nothing_to_lose():
    """All labels equal: W = 0, b = y is optimal and min F = 0; nothing above that is called solved."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    for y in (np.ones(6), -np.ones(6)):
        result = solve_alm(ERMProblem.build(X, y, n_members=2), tol=1e-6, max_iter=100)
        assert result.objective <= 1e-6
        assert dual_bound(ERMProblem.build(X, y, n_members=2), result.dual) <= 0
        assert result.gap == (1 if result.objective > 0 else 0)
