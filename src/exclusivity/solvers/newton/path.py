"""Many costs of the same problem: what one cost teaches about the next.

============================  ==========================================================================
regime                        what is shared
============================  ==========================================================================
"semismooth", p = 2, small    the rows that the first step takes for active (``small``)
"semismooth" with p >= 2      a chain over a sample of the rows gives every cost its start and its Newton
                              system; the steps over all rows are taken for all costs together (``batch``)
"interior", p = 1, many rows  the start is extrapolated, and its error at the last cost tells how narrow
                              the band around the margin may be (``chain``)
others                        each cost starts at the last optimum and its dual vector, scaled to the cost
============================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from exclusivity.objective.problem import ERMProblem
from exclusivity.solvers.base import SolverResult, check_convex
from exclusivity.solvers.newton.batch import (
    BatchSource,
    HessianChain,
    PathColumn,
    certify,
    drive_batch,
    scaled_system,
)
from exclusivity.solvers.newton.chain import BandChain
from exclusivity.solvers.newton.linear import DENSE_LIMIT
from exclusivity.solvers.newton.run import Guess, Run
from exclusivity.solvers.newton.small import drive_small, is_small
from exclusivity.solvers.newton.solver import (
    DEFAULT_MAX_ITER,
    MANY_ROWS,
    NewtonOptions,
    RowFacts,
    choose_regime,
    continue_run,
    sample_rows,
    sampled_guess,
)
from exclusivity.solvers.newton.source import BlockSource

# So many costs that share a Hessian are worth one of all rows.
_LARGE_GROUP = 6


def solve_newton_path(
    problem: ERMProblem,
    costs: Sequence[float],
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    options: NewtonOptions | None = None,
) -> list[SolverResult] | None:
    """Solve ``problem`` for every cost, ascending, each to a relative duality gap of ``tol``.

    None where costs have nothing more to share than where each begins. The results have no dual vectors
    (``dual`` is empty): their gaps are proven all the same.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]))
    >>> [round(result.objective, 3) for result in solve_newton_path(problem, [0.5, 1.0], tol=1e-9)]
    [0.333, 0.4]
    """
    check_convex(problem.objective, "newton")
    regime = choose_regime(problem.objective, RowFacts.of(problem), (options or NewtonOptions()).regime)
    problem = problem.centred()
    problems = [problem.changed(cost=float(cost)) for cost in costs]
    n_rows, n_features, loss = problem.design.n_rows, problem.design.n_features, problem.loss
    limit, offset = max_iter or DEFAULT_MAX_ITER, problem.design.offset
    runs = [Run(one.objective, tol, limit, None, offset) for one in problems]
    # As in ``solve_newton``: points beyond the range of numbers lose every comparison.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # Batches take conjugates from differences of sums: those of homogeneous losses do not cancel.
        is_shared = loss.degree is not None and not loss.has_corner and problem.penalty.is_smooth
        if regime == "semismooth" and is_small(problem):
            _solve_small(runs, problems)
        elif regime == "semismooth" and is_shared and n_features <= min(DENSE_LIMIT, n_rows):
            try:
                _solve_together(runs, problems)
            except linalg.LinAlgError:  # numbers too large for the matrices of all rows: one at a time
                return None
        elif regime == "interior" and loss.is_hinge and n_rows > MANY_ROWS:
            _solve_bands(runs, problems)
        else:
            return None
    return [run.result() for run in runs]


def _solve_small(runs: Sequence[Run], problems: Sequence[ERMProblem]) -> None:
    """Few rows, p = 2: every cost begins with the active rows of the last."""
    active = None
    for run, problem in zip(runs, problems, strict=True):
        reduced = problem.reduced()
        active = drive_small(run, reduced, active=active)
        if not run.is_over:
            continue_run(run, reduced, "semismooth", Guess(run.best))


def _solve_bands(runs: Sequence[Run], problems: Sequence[ERMProblem]) -> None:
    """Many rows, p = 1."""
    chain = BandChain(problems[0])
    for run, problem in zip(runs, problems, strict=True):
        reduced = problem.reduced()
        if not chain.solve(run, reduced):
            continue_run(run, reduced, "interior", sampled_guess(run, reduced, "interior"))
            chain.remember(run, reduced)


def _solve_together(runs: Sequence[Run], problems: Sequence[ERMProblem]) -> None:
    """The features' side; losses without a corner."""
    reduced = [problem.reduced() for problem in problems]
    sample = sample_rows(reduced[0])
    rough = HessianChain(reduced[0] if sample is None else sample)
    columns = [PathColumn(one, run, *rough.next(one)) for one, run in zip(reduced, runs, strict=True)]
    rows = BatchSource(reduced[0])
    if sample is not None:
        unit = BlockSource(reduced[0].changed(cost=1.0))
        for group in rough.groups():
            if len(group) >= _LARGE_GROUP:
                _spread([columns[j] for j in group], unit, rows)
    drive_batch([column for column in columns if not column.run.is_over], rows)
    for column in columns:
        if not column.run.is_over:
            continue_run(column.run, column.reduced, "semismooth", Guess(column.run.best))


def _spread(group: Sequence[PathColumn], unit: BlockSource, rows: BatchSource) -> None:
    """Solve the largest cost of a group with the curvature of all rows, and start the others from there.

    Points of the group are close together: one Newton step of each, from the sums of the one, is most of
    the way.
    """
    leader = group[-1]
    curvature = unit.evaluate(leader.point, leader.reduced.loss, curvature=True)
    for column in group:
        column.system = scaled_system(curvature, column.reduced)
    leader.step_from(leader.point, curvature)
    [(point, sums)] = drive_batch([leader], rows)
    for column in group[:-1]:
        column.point = point
        if certify(column, sums):  # else the leader's point will do for this cost too
            column.step_from(point, sums)
