"""Truncated Newton: rows and features both too many for a factorisation, so only products with X are used.

    f(w, b) = 1/2 |w|^2 + sum_i theta_i(m_i),   m = 1 - y (X w + b)

with a rounded loss theta (``rounding``). With a_i = theta_i'(m_i) and h_i = theta_i''(m_i) > 0 on few rows
only, the Newton step solves

    (I + X^T H_c X) dw = X^T (y a) - w ,     H_c = H - H 1 1^T H / (1^T H 1) ,

by conjugate gradients with a diagonal preconditioner, and roughly: the next step mends the rest.
With kinks or bounds of the penalty these are steps of the weights that are free (``model``).
The intercept needs no ridge and no gradient of its own: it is put at its optimum, sum y a = 0, before every
step, which also makes a feasible for the dual. Products with X and X^T of all rows are needed once per step;
all else runs over the rows with curvature, or over vectors.

On large sparse rows a system is as dear as it is short-lived: there steps lead to the best point of a plane
(``plane``) instead, for one product with X and one with X^T each, until they come to little. Over text they
take half of the passes. For losses whose slope is a ramp, compiled loops take these steps (``compiled``)
where there are any, over small rows too: vectors cost little there. In each case rows far off are left
out for a while (``walk``), and bounds come from blends of the slopes met (``blend``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.problem import (
    ERMProblem,
    dual_bound_with_pull,
    member_costs,
    objective_of_shortfall,
    repair_dual,
)
from exclusivity.solvers.newton.compiled import Traveller, can_walk_compiled, drive_compiled
from exclusivity.solvers.newton.rounding import rounded_loss, shifted_loss
from exclusivity.solvers.newton.run import Certificate, Guess, Point, Run, objective_of
from exclusivity.solvers.newton.walk import Walk

PATIENCE = 300.0
"""Passes, 20 to 60 as a rule, after which an interior point is the better bet."""

_MAX_STEPS = 250
# Where the gap but for rounding is this share of the tolerance, rounding alone keeps it from being proven.
_BEYOND = 1e-3


@dataclass(frozen=True, eq=False)
class TruncatedIterate:
    """A point, the slopes there and what they prove, how far the loss was rounded, and around what.

    ``has_moved``: it is not the start any more, seen with a sharper loss.
    """

    point: Point
    alpha: Floats
    dual_weights: Floats
    objective: float
    error: float
    bound: float
    gradient_norm: float
    width: float
    passes: float
    centre: Floats | None
    has_moved: bool


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
    has_walked: bool = False,
) -> None:
    """Newton steps by products alone until the run is over, no step helps or the passes are used up.

    ``spent`` are those of earlier runs; ``is_shifted``: see ``truncated_iterates``; ``has_walked``: a
    compiled walk has been there.
    """
    if reduced.design.is_sparse and not is_shifted and not has_walked and can_walk_compiled(reduced):
        limits = {"spent": spent, "most_passes": most_passes}
        drive_compiled([traveller := Traveller(run, reduced, start, alpha, width=width, **limits)])
        guess = traveller.best
        if run.is_over or guess.spent > most_passes:
            return
        start, alpha, width, spent = guess.point, guess.dual, guess.width, guess.spent
    before, method = run.passes, "shifted" if is_shifted else "truncated"
    for iterate in truncated_iterates(reduced, start, alpha, width, is_shifted=is_shifted, tol=run.tol):
        run.passes, passes = before + iterate.passes, spent + iterate.passes
        run.state = Guess(
            iterate.point, width=iterate.width, dual=iterate.centre, method=method, spent=passes
        )
        dual = partial(repair_dual, reduced, iterate.alpha)
        point, certificate = iterate.point, Certificate(iterate.objective, iterate.error, iterate.bound, dual)
        if not reduced.penalty.is_smooth and run.would_end(certificate):
            point, certificate = _settled(run, reduced, iterate, certificate)
        run.take(
            point,
            certificate,
            residual=iterate.gradient_norm,
            mu=iterate.width,
            is_start=not iterate.has_moved,
        )
        if run.is_over or passes > most_passes:
            return


def _settled(
    run: Run, reduced: ERMProblem, iterate: TruncatedIterate, certificate: Certificate
) -> tuple[Point, Certificate]:
    """The last iterate with exact zeros and bounds, unless they cost it its certificate: one pass.

    Steps that were shortened come close to these, and no closer.
    """
    point = Point(
        reduced.penalty.settled(iterate.point.weights, iterate.dual_weights), iterate.point.intercept
    )
    objective = objective_of(reduced, point, reduced.design.times(point.weights) + point.intercept)
    run.passes += 0.5
    settled = Certificate(*objective, certificate.bound, certificate.dual)
    return (point, settled) if run.would_end(settled) else (iterate.point, certificate)


def truncated_iterates(
    problem: ERMProblem,
    start: Point,
    alpha: Floats | None = None,
    width: float | None = None,
    *,
    is_shifted: bool = False,
    tol: float = 0.0,
) -> Iterator[TruncatedIterate]:
    """Iterates of a reduced problem; the caller stops. Ends by itself when no step helps any more.

    A dual vector ``alpha`` that goes with the start is of use for p = 1, and for any loss that ``is_shifted``
    (see ``rounding``); ``width`` is that of the rounding, and ``tol`` the gap at which the caller will stop.
    """
    if is_shifted:
        loss = shifted_loss(problem, alpha, width)
    else:
        loss = rounded_loss(problem.loss, member_costs(problem), alpha, width)
    walk = Walk(problem, start, loss)
    for _ in range(_MAX_STEPS):
        yield _proven(walk)
        if walk.gap <= _BEYOND * tol or not walk.advance(tol):
            return


def _proven(walk: Walk) -> TruncatedIterate:
    """Where the walk is, and what can be proven there: rounding is taken into account here."""
    problem, blend = walk.problem, walk.blend
    objective, lost = objective_of_shortfall(
        problem, walk.weights[:, None], walk.shortfall[:, None], walk.error
    )
    return TruncatedIterate(
        point=Point(walk.weights, walk.intercept),
        alpha=blend.alpha,
        dual_weights=walk.dual_weights,
        objective=objective,
        error=lost,
        bound=dual_bound_with_pull(problem, blend.alpha, blend.dual_weights, blend.lost),
        gradient_norm=float(np.linalg.norm(walk.gradient)),
        width=walk.loss.width,
        passes=walk.passes,
        centre=walk.loss.dual,
        has_moved=walk.has_moved,
    )
