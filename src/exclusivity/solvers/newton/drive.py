"""From paths of iterates to certified points of a run."""

from __future__ import annotations

from functools import partial

import numpy as np

from exclusivity.problem import (
    ERMProblem,
    Objective,
    dual_bound,
    dual_bound_with_pull,
    dual_from_scores,
    member_costs,
    objective_of_shortfall,
    repair_dual,
)
from exclusivity.problem.arrays import Floats
from exclusivity.solvers.base import Start
from exclusivity.solvers.newton.barrier import MemoryBarrier, WorkingRows
from exclusivity.solvers.newton.interior import InteriorPoint
from exclusivity.solvers.newton.rounding import width_for_error
from exclusivity.solvers.newton.run import Run, bound_from_sums, objective_from_sums
from exclusivity.solvers.newton.screening import WIDEN, FixedRows, choose_band, first_width, solve_band
from exclusivity.solvers.newton.semismooth import Guess, semismooth_path
from exclusivity.solvers.newton.source import Point, RowSource
from exclusivity.solvers.newton.truncated import truncated_path

PATIENCE = 300.0
"""Passes of truncated Newton, 20 to 60 as a rule, after which an interior point is the better bet."""

_INTERIOR_PASSES = 7
# A band is some ten times as wide as the error of most of its margins.
_ERROR_SHARE = 0.1
INNER_SHARE = 0.1
"""The complementarity to reach in a band, relative to the objective and the tolerance."""

# Of the rows in a band: two of them cost as much as truncated Newton (500,000 x 50, 5 % in the band).
_SMALL_SHARE = 0.05


def certify_start(run: Run, reduced: ERMProblem, start: Start) -> Guess:
    """The mean member of an earlier result, or where its method was; it may be good enough already."""
    point = Point(start.weights.mean(axis=1, dtype=float), float(start.intercepts.mean()))
    dual = start.dual
    if dual is None or len(dual) != reduced.design.n_rows:
        scores = reduced.design.times(point.weights)
        run.passes += 1
        dual = dual_from_scores(reduced, scores)
    take_certified(run, reduced, point, dual, is_start=True)
    if start.resumes(Guess, run.scale * run.best_objective, run.gap):
        going_on: Guess = start.state
        return going_on
    return Guess(point, dual=repair_dual(reduced, dual))


def take_certified(
    run: Run, reduced: ERMProblem, point: Point, alpha: Floats, mu: float = 0.0, *, is_start: bool = False
) -> None:
    """Evaluate a point and a dual vector from scratch: two passes."""
    run.passes += 2
    objective = objective_of(reduced, point, reduced.design.times(point.weights) + point.intercept)
    dual = partial(repair_dual, reduced, alpha)
    run.take(point, objective, dual_bound(reduced, alpha), dual, mu=mu, is_start=is_start)


def objective_of(reduced: ERMProblem, point: Point, scores: Floats) -> tuple[float, float]:
    """The objective at a point with these scores, and how much larger it may be."""
    error = reduced.design.row_scale.score_error(point.weights, point.intercept)
    shortfall = 1 - reduced.labels * scores
    return objective_of_shortfall(reduced, point.weights[:, None], shortfall[:, None], error)


def drive_semismooth(run: Run, reduced: Objective, source: RowSource, start: Guess) -> None:
    """Newton on the primal until the run is over or no step helps."""
    loss, before = reduced.loss, run.passes
    path = semismooth_path(source, loss=loss, fit_intercept=reduced.fit_intercept, start=start)
    iterate, is_start = next(path), True
    while True:
        run.passes, run.last_width = before + source.passes, iterate.width
        run.state = Guess(iterate.point, width=iterate.width, method="semismooth")
        bound, factors = bound_from_sums(iterate.sums, reduced, source.row_scale)
        run.take(
            iterate.point,
            objective_from_sums(iterate.point, iterate.sums, reduced, source.row_scale),
            bound,
            partial(source.dual_vector, iterate.point, loss.rounded(iterate.width), factors),
            residual=iterate.gradient_norm,
            mu=iterate.width,
            is_start=is_start,
        )
        if run.is_over:
            return
        try:
            iterate, is_start = path.send(run.gap), False
        except StopIteration:
            return


def drive_screened(run: Run, reduced: ERMProblem, start: Point, width: float | None = None) -> None:
    """P = 1, many rows: bands around the margin of a start learned from a sample.

    ``width`` is that of the next band where there have been some.
    """
    scores = reduced.design.times(start.weights) + start.intercept
    run.passes += 1
    first = first_width(reduced, start, scores) if width is None else width
    drive_bands(run, reduced, start, scores, first, is_first=width is None)


def drive_bands(
    run: Run,
    reduced: ERMProblem,
    point: Point,
    scores: Floats,
    width: float,
    *,
    most: int = 100,
    fixed: FixedRows | None = None,
    is_first: bool = True,
) -> Floats | None:
    """P = 1: ever wider bands until the gap is closed or every row is inside; returns the last scores.

    None where truncated Newton took over, which needs none.

    A second band of the same width, around the margin that the first one found, usually does it. A band
    of many rows (a start that is not sure, classes of very different sizes) costs more than Newton steps that
    only use products, which cannot handle an l1 penalty though.
    """
    has_l1, fixed = reduced.regulariser.has_l1, fixed or FixedRows(reduced)
    # At zero f is the sum of all costs: a start that is worse is no measure for the accuracy to aim at.
    goal = (INNER_SHARE * run.tol) * min(
        reduced.value_at(point.weights[:, None], scores[:, None]), float(member_costs(reduced).sum())
    )
    for _ in range(most):
        shortfall = 1 - reduced.labels * scores
        inside = choose_band(reduced, shortfall, width)
        if len(inside) > _SMALL_SHARE * len(shortfall) and not has_l1:
            rounding = width_for_error(_ERROR_SHARE * width)
            drive_truncated(run, reduced, point, width=rounding, most_passes=PATIENCE)
            return None
        point, alpha, pull, lost = solve_band(reduced, shortfall, inside, point, goal, fixed)
        share = len(inside) / len(shortfall)
        if has_l1:
            point = with_exact_zeros(reduced, point, alpha)
        scores = reduced.design.times(point.weights) + point.intercept
        run.passes += 2 + _INTERIOR_PASSES * share * 20
        bound = dual_bound_with_pull(reduced, alpha, pull, lost)
        width, is_first = (width if is_first else WIDEN * width), False
        run.state = Guess(point, width=width, method="bands")
        run.take(point, objective_of(reduced, point, scores), bound, partial(repair_dual, reduced, alpha))
        if run.is_over or share == 1:
            break
    return scores


def drive_truncated(
    run: Run,
    reduced: ERMProblem,
    start: Point,
    alpha: Floats | None = None,
    *,
    width: float | None = None,
    spent: float = 0.0,
    most_passes: float = np.inf,
    is_shifted: bool = False,
) -> None:
    """Newton steps by products alone until the run is over, no step helps or the passes are used up.

    ``spent`` are those of earlier runs that this one goes on from; ``is_shifted``: see ``truncated_path``.
    """
    before, method = run.passes, "shifted" if is_shifted else "truncated"
    for iterate in truncated_path(reduced, start, alpha, width, is_shifted=is_shifted):
        run.passes, passes = before + iterate.passes, spent + iterate.passes
        run.state = Guess(
            iterate.point, width=iterate.width, dual=iterate.centre, method=method, spent=passes
        )
        run.take(
            iterate.point,
            (iterate.objective, iterate.error),
            iterate.bound,
            partial(repair_dual, reduced, iterate.alpha),
            residual=iterate.gradient_norm,
            mu=iterate.width,
            is_start=not iterate.has_moved,
        )
        if run.is_over or passes > most_passes:
            return


def drive_interior(
    run: Run, reduced: ERMProblem, start: Point, slacks: tuple[Floats, Floats | None] | None = None
) -> None:
    """The interior-point path over all rows, each iterate certified.

    ``slacks`` are the multipliers and slacks of the rows and of the penalty, where there has been a path.
    """
    design, l1 = reduced.design, reduced.regulariser.sparsity
    rows = WorkingRows(design.X, reduced.labels, member_costs(reduced), np.zeros(design.n_features), 0.0)
    data = MemoryBarrier(rows, reduced.loss, start, reduced.regulariser.has_l1)
    of_penalty = None
    if slacks is not None:
        data.barrier.values, of_penalty = slacks
    method, is_start = InteriorPoint(data, l1, reduced.fit_intercept, start, of_penalty), True
    for point, mu in method.path():
        run.passes += _INTERIOR_PASSES
        run.state = Guess(point, method="interior", slacks=(data.barrier.values, method.penalty_slacks))
        alpha, candidate = data.barrier.alpha, point
        if reduced.regulariser.has_l1:
            candidate = with_exact_zeros(reduced, point, alpha)
            run.passes += 1
        take_certified(run, reduced, candidate, alpha, mu, is_start=is_start)
        is_start = False
        if run.is_over:
            return


def with_exact_zeros(reduced: ERMProblem, point: Point, alpha: Floats) -> Point:
    """The point without the weights that its dual vector calls zero."""
    u = reduced.design.transposed_times(reduced.labels * repair_dual(reduced, alpha))
    return zeroed(point, u, reduced.regulariser.sparsity)


def zeroed(point: Point, u: Floats, l1: float | Floats) -> Point:
    """The point without the weights that u = X^T (y alpha) calls zero.

    At the optimum w = soft(u, l), so w_j = 0 wherever |u_j| <= l; an interior point only comes close to that.
    """
    return Point(np.where(np.abs(u) > l1, point.weights, 0.0), point.intercept)
