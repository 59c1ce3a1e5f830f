"""Problems, references and measures that the tests of solver "newton" share."""

from __future__ import annotations

import contextlib
import warnings

import cvxpy as cp
import numpy as np

from conic import objective_by_loops, solve_conic
from exclusivity.objective.objective import ERMProblem

# F and D are sums of at most some thousand terms of about their own size: 1e-12 of F is far above rounding.
ROUNDING = 1e-12


def blobs(n_rows, n_features, seed=0, *, noise=0.7, offset=0.3):
    """Two overlapping classes, rows normal, labels by a noisy plane; both classes occur."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    margin = X @ rng.normal(size=n_features) + offset + noise * rng.normal(size=n_rows)
    y = np.where(margin > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def regimes_for(problem):
    """Every value of the option that can solve the problem, "auto" first."""
    return ["auto", "interior", "iterative"] + (["semismooth"] if problem.loss.p > 1 else [])


def oracle(
    X, y, *, n_members=1, cost=1.0, p=2, exclusivity=1.0, sparsity=0.0, weights=None, fit_intercept=True
):
    """The best (F, W, b) of independent solvers, for the arguments of ``ERMProblem.build``.

    ``solve_conic`` first of all. Clarabel fails on its second-order cones for p = 1.2 in half of the cases
    (true power cones are fine), and for p = 1 it can end 2e-8 above the optimum, where OSQP's polished QP
    solution has ten digits. F is evaluated at (W, b), so a poor solution can make a test fail but not pass.
    """
    args = (X, y, n_members, cost, p, exclusivity, sparsity, weights, fit_intercept)
    found = []
    if p != 1.2:
        with contextlib.suppress(cp.error.SolverError):
            found.append(solve_conic(*args))
    if p == 1:
        settings = {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 20_000, "polishing": True}
        found.append(_solve(*args, solver=cp.OSQP, **settings))
    if not found:
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        settings = dict.fromkeys(names, 1e-9) | {f"reduced_{name}": 1e-7 for name in names}
        found.append(_solve(*args, solver=cp.CLARABEL, **settings))
    return min(found, key=lambda solution: solution[0])


def _solve(X, y, K, C, p, gamma, beta, weights, fit_intercept, **settings):
    (N, M), s = X.shape, np.ones(len(y)) if weights is None else weights
    W, b, xi = cp.Variable((M, K)), cp.Variable((1, K)), cp.Variable((N, K), nonneg=True)
    row_sums = cp.sum(cp.abs(W), axis=1)
    penalty = gamma / 2 * cp.sum_squares(row_sums) + (1 - gamma) / 2 * cp.sum_squares(W)
    # powers >= xi^p by true power cones: powers^(1/p) 1^(1-1/p) >= |xi|. cp.power has its own since 1.7 only.
    powers = xi if p == 1 else cp.Variable((N, K))
    rows = [xi >= 1 - cp.multiply(y[:, None], X @ W + np.ones((N, 1)) @ b)]
    if p != 1:
        rows.append(cp.PowCone3D(cp.vec(powers, "F"), np.ones(N * K), cp.vec(xi, "F"), 1 / p))
    problem = cp.Problem(
        cp.Minimize(penalty + beta * cp.sum(row_sums) + C * (s @ cp.sum(powers, axis=1))),
        rows if fit_intercept else [*rows, b == 0],
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # F will tell
        warnings.filterwarnings("ignore", message="The default value of raise_error")  # OSQP to old CVXPYs
        problem.solve(**settings)
    intercepts = b.value.ravel() if fit_intercept else np.zeros(K)
    return objective_by_loops(X, y, W.value, intercepts, C, p, gamma, beta, s), W.value, intercepts


def plain_objective(problem, w, b):
    """F of K equal members (w, b) from its definition in ``math.md`` section 1, by plain numpy."""
    X = problem.design.X.astype(float)
    K, gamma, beta = problem.n_members, problem.regulariser.exclusivity, problem.regulariser.sparsity
    shortfall = np.maximum(0, 1 - problem.labels * (X @ w + b))
    penalty = (gamma / 2) * K**2 * (w @ w) + (1 - gamma) / 2 * K * (w @ w) + beta * K * np.abs(w).sum()
    return float(penalty + problem.cost * K * (problem.weights @ shortfall**problem.loss.p))


def assert_honest(result, known, rounding=ROUNDING):
    """No record and no result may promise more than the truth; ``known`` is F at some point.

    The optimum is at most ``known`` and at most the result's own objective, so a bound above either is false;
    and a bound that is not is all that it takes for ``objective - bound`` to bound the excess of an iterate.
    """
    best = min(known, result.objective)
    bounds, objectives = result.history.bound, result.history.objective
    assert np.all(bounds <= best * (1 + rounding)), (bounds / best - 1).max()
    assert np.all(np.diff(bounds) >= 0)
    # Of two points the one is better whose objective is smaller, rounding included. Where a method starts is
    # no iteration, and may yet be the best point.
    lost = float(result.history.column("error").max())
    assert result.objective <= objectives.min() + lost
    claimed = result.gap * result.objective
    assert claimed >= result.objective - best - rounding * best
    # The gap is the one of this very point, at its largest, and the best bound: not a better-looking number.
    assert abs(claimed - max(result.objective - bounds[-1], 0)) <= rounding * best + lost


def radius(problem, *results):
    """How far two certified w can be apart: f is 1-strongly convex and F = K kappa f."""
    excess = [r.gap * r.objective / (problem.n_members * problem.kappa) for r in results]
    return sum(np.sqrt(2 * max(e, 1e-15)) for e in excess)


def build(X, y, **settings):
    """``ERMProblem.build`` with the same keywords as ``oracle``."""
    return ERMProblem.build(X, y, **settings)
