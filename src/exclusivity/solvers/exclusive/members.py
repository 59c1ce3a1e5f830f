"""One member, given what the others use: an SVM on some columns, with an l1 penalty for each.

For member k and column j of group g, with A_gk the l1 mass of member k on the columns of g (in all classes)
and a_g = sum of A_gk' over the other members k', everything in F that depends on member k is

    sum_j [1/2 w_j^2 + (beta + gamma a_g(j)) |w_j|]  +  C sum_i s_i max(0, m_i)^p ,

because gamma/2 (|w| + a)^2 + (1 - gamma)/2 w^2 = 1/2 w^2 + gamma a |w| + const: convex, and exactly what
``solve_newton`` solves. At gamma = inf the penalty is beta on the member's own columns, its only ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity.problem import DesignMatrix, ERMProblem, ExclusivityRegulariser, dual_bound
from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers.base import SolverResult
from exclusivity.solvers.constant import constant_result
from exclusivity.solvers.newton import solve_newton

# A column outside may pull this much more than its penalty before it is let in: rounding, not a violation.
_SLACK = 1e-7


@dataclass(frozen=True, eq=False)
class Member:
    """Weights on all columns, the intercept, and a lower bound on what any version of the member costs.

    ``certified`` says whether these weights came within the tolerance of the bound.
    """

    weights: Floats
    intercept: float
    bound: float
    certified: bool


def fit_on_columns(problem: ERMProblem, columns: Ints, tol: float) -> Member:
    """The SVM on these columns alone, each penalised by beta."""
    sparsity = problem.regulariser.sparsity
    single = _on_columns(problem, columns, np.broadcast_to(sparsity, problem.design.n_features))
    result = constant_result(single) or solve_newton(single, tol=tol)
    return _spread(problem, columns, result, result.objective * (1 - result.gap))


def fit_against(problem: ERMProblem, penalties: Floats, current: Floats, tol: float) -> Member:
    """The SVM on all columns with one penalty for each, solved on the few that matter.

    Start from the columns in use and those that nobody else uses. Where a column outside pulls harder than
    its penalty, |x_j . (y alpha)| > l_j, it comes in and the SVM is solved again; without such a column the
    solution is the one on all columns, and its dual vector proves it: the bound is that of all columns.
    """
    inside = (penalties <= penalties.min()) | (current != 0)
    while True:
        columns = np.flatnonzero(inside)
        single = _on_columns(problem, columns, penalties)
        result = constant_result(single) or solve_newton(single, tol=tol)
        pull = np.abs(problem.design.transposed_times(problem.labels * result.dual))
        entering = ~inside & (pull > penalties * (1 + _SLACK))
        if not entering.any():
            whole = _on_columns(problem, np.arange(len(penalties)), penalties)
            return _spread(problem, columns, result, dual_bound(whole, result.dual))
        inside |= entering


def _on_columns(problem: ERMProblem, columns: Ints, penalties: Floats) -> ERMProblem:
    """The SVM of one member on these columns."""
    chosen, is_whole = penalties[columns], len(columns) == problem.design.n_features
    return problem.changed(
        design=problem.design if is_whole else DesignMatrix(problem.design.X[:, columns]),
        n_members=1,
        regulariser=ExclusivityRegulariser(0.0, chosen if chosen.any() else 0.0),
    )


def _spread(problem: ERMProblem, columns: Ints, result: SolverResult, bound: float) -> Member:
    weights = np.zeros(problem.design.n_features)
    weights[columns] = result.weights[:, 0]
    return Member(weights, float(result.intercepts[0]), bound, result.converged)
