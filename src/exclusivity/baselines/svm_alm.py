"""SVM-ALM: one primal SVM by augmented Lagrangian steps (Nie, Huang, Wang and Huang, ICML 2014).

    min  1/2 |w|^2 + C sum_i s_i max(0, y_i e_i)^p    subject to    e = y - X w - b,

where y_i e_i = 1 - y_i (x_i . w + b) because y_i^2 = 1. With the multiplier u and a constant penalty mu,

    (w, b):  ridge regression of y - e - u/mu on X, ridge 1/mu, b free (the data are centred);
    e:       proximal map of the loss at  y - X w - b - u/mu,  closed for p = 1 and p = 2;
    u:       u + mu (X w + b - y + e).

Sample weights multiply the loss and the augmented terms, sum_i s_i (mu/2 v_i^2 + u_i v_i): then they cancel
in the e step, and weight 2 equals a repeated row in every iterate.

The steps minimise over two blocks in turn, so every constant mu > 0 converges. (A mu that grows without
bound, as is common in the ALM literature, may freeze the iterates before the optimum.)

A run ends on its duality gap. Residuals, the usual measure, are recorded but not compared with a tolerance:
how much a residual of 1e-4 is worth depends on the scale of X and on the loss at the optimum.
"""

from __future__ import annotations

import numpy as np

from exclusivity.problem import ERMProblem, dual_bound, objective_of_shortfall
from exclusivity.problem.arrays import Floats
from exclusivity.solvers import (
    Incumbent,
    IterationRecord,
    Recorder,
    RidgeSystem,
    SolverResult,
    Status,
    ridge_system,
)


def make_system(problem: ERMProblem, mu: float) -> RidgeSystem:
    """The factorised (w, b) step; it serves every problem on the same rows and weights."""
    return ridge_system(problem.design, problem.weights, ridge=1 / mu, fit_intercept=problem.fit_intercept)


def solve_svm_alm(
    problem: ERMProblem, mu: float, *, tol: float, max_iter: int, system: RidgeSystem | None = None
) -> SolverResult:
    """Iterate until the relative duality gap of the best iterate is at most ``tol``.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), p=1)
    >>> result = solve_svm_alm(problem, mu=0.3, tol=1e-8, max_iter=1000)
    >>> result.converged, result.weights.round(6), round(result.objective, 6)
    (True, array([[1.]]), 0.5)
    """
    system = system or make_system(problem, mu)
    y, s = problem.labels, problem.weights
    e, u = np.zeros_like(y), np.zeros_like(y)
    weights = prior = np.zeros((problem.design.n_features, 1))
    incumbent, recorder = Incumbent(), Recorder(None)
    for iteration in range(1, max_iter + 1):
        weights, intercepts = system.solve(prior, (y - e - u / mu)[:, None], weights)
        scores = problem.scores(weights, intercepts)
        before, e = e, y * problem.loss.prox(y * (y - scores[:, 0] - u / mu), problem.cost / mu)
        violation = scores[:, 0] - y + e
        u = u + mu * violation
        alpha = -s * y * u  # in its box by construction of the proximal map
        incumbent.raise_bound(dual_bound(problem, alpha), alpha)
        off = problem.design.row_scale.score_error(weights, intercepts)
        objective, error = objective_of_shortfall(problem, weights, 1 - y[:, None] * scores, off)
        incumbent.offer(objective, weights, intercepts, error)
        record = IterationRecord(
            iteration=iteration,
            objective=objective,
            error=error,
            bound=incumbent.bound,
            primal_residual=_norm(violation, s),
            dual_residual=mu * _norm(e - before, s),
            mu=mu,
        )
        recorder.keep(record)
        if incumbent.gap <= tol:
            return incumbent.result(tol, Status.CERTIFIED, recorder.history())
    return incumbent.result(tol, Status.MAX_ITER, recorder.history())


def _norm(values: Floats, weights: Floats) -> float:
    return float(np.sqrt(weights @ values**2))
