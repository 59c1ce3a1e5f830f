"""One problem at many costs, by any solver."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exclusivity.objective.problem import ERMProblem
from exclusivity.solvers.base import SolverResult, Start, constant_result, parse_options
from exclusivity.solvers.dispatch import SOLVERS, resolve_solver, solve_all


def solve_path(
    problem: ERMProblem,
    costs: Sequence[float],
    solver: str = "auto",
    *,
    options: Mapping[str, Any] | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    seed: int | None = None,
) -> list[SolverResult]:
    """Solve ``problem`` for every cost; results come in the order of ``costs``, without dual vectors.

    Costs are taken in ascending order. "newton" shares work between them, or starts each at the last solution
    as "alm" does, and a solver that prescribes its own start solves each anew, with the same ``seed``.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), p=1)
    >>> [round(result.objective, 3) for result in solve_path(problem, [1.0, 0.1], tol=1e-9)]
    [0.5, 0.18]
    """
    order = np.argsort(np.asarray(costs, dtype=float), kind="stable")
    ascending = [float(costs[i]) for i in order]
    known = constant_result(problem)
    if known is not None:
        return [dataclasses.replace(known, dual=np.empty(0))] * len(ascending)
    name, solved = resolve_solver(solver), None
    shared = SOLVERS[name].solve_path
    if shared is not None:
        settings: Any = parse_options(SOLVERS[name].options, options)
        solved = shared(problem, ascending, tol=tol, max_iter=max_iter, options=settings)
    if solved is None:
        solved = _one_by_one(problem, ascending, name, options, tol, max_iter, seed)
    results: list[SolverResult] = [solved[0]] * len(solved)
    for place, result in zip(order, solved, strict=True):
        results[place] = dataclasses.replace(result, dual=np.empty(0))
    return results


def _one_by_one(
    problem: ERMProblem,
    costs: Sequence[float],
    solver: str,
    options: Mapping[str, Any] | None,
    tol: float,
    max_iter: int | None,
    seed: int | None,
) -> list[SolverResult]:
    results: list[SolverResult] = []
    for number, cost in enumerate(costs):
        is_first = number == 0 or "start" not in SOLVERS[solver].keywords
        start = None if is_first else Start.after(results[-1], cost / costs[number - 1])
        results += solve_all(
            [problem.changed(cost=cost)],
            solver,
            options=options,
            tol=tol,
            max_iter=max_iter,
            starts=[start],
            seeds=None if seed is None else [seed],
        )
    return results
