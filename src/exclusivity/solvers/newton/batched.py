"""Problems that differ in their labels only, one-vs-rest say: kernel runs share passes over their rows.

A product of sparse rows with eight vectors takes little more than one with two. The runs go on side by side,
each over the rows that matter to it, and meet where they want products with all rows (``company.c``). What
each of them finds is what it would have found alone, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exclusivity.objective.problem import ERMProblem
from exclusivity.solvers.base import Callback, SolverResult, check_convex
from exclusivity.solvers.newton.run import Point
from exclusivity.solvers.newton.solver import (
    NewtonOptions,
    RowFacts,
    choose_regime,
    continue_run,
    methods_for,
    new_run,
    patience_for,
)
from exclusivity.solvers.newton.source import MemoryRows
from exclusivity.solvers.newton.subspace import SubspaceRun, drive_subspace, has_kernel, largest_batch


def newton_group_size(problem: ERMProblem, options: NewtonOptions) -> int:
    """How many problems that differ from this one in their labels only are solved together; 1 for none."""
    regime = choose_regime(problem.objective, RowFacts.of(problem), options.regime)
    if regime != "iterative" or not problem.design.is_sparse or problem.targets is not None:
        return 1
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # as in ``solve_newton``
        reduced = problem.centred().reduced()
        is_for_kernel = methods_for(reduced, regime)[0] == "truncated" and has_kernel(reduced)
        return largest_batch(reduced) if is_for_kernel else 1


def solve_newton_together(
    problems: Sequence[ERMProblem],
    *,
    tol: float,
    max_iter: int | None,
    options: NewtonOptions,
    callbacks: Sequence[Callback | None],
) -> list[SolverResult]:
    """What ``solve_newton`` gives for each of the problems, which ``newton_group_size`` allows together."""
    check_convex(problems[0].objective, "newton")
    regime = choose_regime(problems[0].objective, RowFacts.of(problems[0]), options.regime)
    start = Point(np.zeros(problems[0].design.n_features), 0.0)
    most_passes = patience_for(regime, RowFacts.of(problems[0]), [])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # as in ``solve_newton``
        runs = [
            SubspaceRun(*new_run(problem, tol, max_iter, callback), start, most_passes=most_passes)
            for problem, callback in zip(problems, callbacks, strict=True)
        ]
        asked = [ask for callback in callbacks if (ask := getattr(callback, "is_cancelled", None))]
        drive_subspace(runs, lambda: any(ask() for ask in asked))
        for each in runs:
            if not each.run.is_over:
                continue_run(each.run, MemoryRows(each.reduced), regime, each.best)
        return [each.run.result(each.reduced.design.n_rows) for each in runs]
