"""Problems that need no solver: all rows are of one class, or there are none."""

from __future__ import annotations

import numpy as np

from exclusivity.problem import ERMProblem
from exclusivity.solvers.base import History, IterationRecord, SolverResult, Status


def constant_result(problem: ERMProblem) -> SolverResult | None:
    """The optimum where one class has all the rows; None where a solver is needed.

    A free intercept at the margin, b = y, leaves no loss and no weights: F = 0, which nothing can be below.

    Examples
    --------
    >>> problem = ERMProblem.build(np.array([[1.0], [2.0]]), np.array([-1.0, -1.0]), n_members=3)
    >>> constant_result(problem).intercepts
    array([-1., -1., -1.])
    """
    labels = problem.labels
    is_solved = problem.fit_intercept and abs(labels.sum()) == len(labels)
    if len(labels) > 0 and not is_solved:
        return None
    side = float(labels[0]) if len(labels) > 0 else 0.0
    return SolverResult(
        weights=np.zeros((problem.design.n_features, problem.n_members)),
        intercepts=np.full(problem.n_members, side),
        objective=0.0,
        gap=0.0,
        dual=np.zeros(len(labels)),
        converged=True,
        n_iter=1,
        status=Status.CERTIFIED,
        history=History((IterationRecord(1, 0.0, 0.0, 0.0, 0.0, 0.0),)),
    )
