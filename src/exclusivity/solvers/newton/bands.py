"""p = 1 with many rows: only rows near the margin need the interior-point method.

A row with m = 1 - y f < 0 at the optimum has alpha = 0, one with m > 0 has alpha = c and a linear loss.
Given a good guess of (w, b), rows with |m| > width are taken for what they look like; the rest are solved
for exactly. The dual vector found this way is feasible for ALL rows, so the gap is honest whether or not the
guess was right; where it was wrong the band is made wider.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Floats
from exclusivity.objective.objective import Objective
from exclusivity.objective.problem import (
    ERMProblem,
    dual_bound_with_pull,
    member_costs,
    repair_dual,
)
from exclusivity.rows.design import DesignMatrix, gamma
from exclusivity.solvers.newton.barrier import STEP_PASSES, WorkingBarrier, WorkingRows
from exclusivity.solvers.newton.interior import InteriorPoint, with_exact_zeros
from exclusivity.solvers.newton.rounding import width_for_error
from exclusivity.solvers.newton.run import Certificate, Guess, Point, Run, dual_weights_of, objective_of
from exclusivity.solvers.newton.truncated import PATIENCE, drive_truncated

INNER_SHARE = 0.1
"""The complementarity to reach in a band, relative to the objective and the tolerance."""

# A band is some ten times as wide as the error of most of its margins.
_ERROR_SHARE = 0.1
# Of the rows in a band: two of them cost as much as truncated Newton (500,000 x 50, 5 % in the band).
_SMALL_SHARE = 0.05
# Standard errors of a margin learned from n rows, in units of sqrt(M / n).
_SPREAD = 3.0
_LARGEST_SHARE = 0.5
LEAST_ROWS = 5
"""A band has at least so many rows for each unknown."""

WIDEN = 3.0
"""How much wider a band is made that was too narrow."""

# From this share of the rows on, reading all of them in order is faster than picking those.
_MANY_CHANGES = 0.2


def drive_screened(run: Run, reduced: ERMProblem, start: Point, width: float | None = None) -> None:
    """The hinge, many rows: bands around the margin of a start learned from a sample.

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
    """The hinge: ever wider bands until the gap is closed or every row is inside; returns the best scores.

    None where truncated Newton took over, which needs none.

    A second band of the same width, around the margin that the first one found, usually does it. Where a band
    is so narrow that its optimum is worse than where it started (at large costs nothing but the rows inside
    holds it back), the next one is made around the start again, and wider. A band of many rows (a start that
    is not sure, classes of very different sizes) costs more than Newton steps that only use products.
    """
    fixed = fixed or FixedRows(reduced)
    # At zero f is the sum of all costs: a start that is worse is no measure for the accuracy to reach.
    value = reduced.value_at(point.weights[:, None], scores[:, None])
    goal = (INNER_SHARE * run.tol) * min(value, float(member_costs(reduced).sum()))
    for _ in range(most):
        shortfall = 1 - reduced.labels * scores
        inside = choose_band(reduced, shortfall, width)
        if len(inside) > _SMALL_SHARE * len(shortfall):
            rounding = width_for_error(_ERROR_SHARE * width)
            drive_truncated(run, reduced, point, width=rounding, most_passes=PATIENCE)
            return None
        found, alpha, dual_weights, lost = solve_band(reduced, shortfall, inside, point, goal, fixed)
        share = len(inside) / len(shortfall)
        if not reduced.penalty.is_smooth:
            found = with_exact_zeros(found, dual_weights_of(reduced, alpha), reduced.penalty)
        found_scores = reduced.design.times(found.weights) + found.intercept
        run.passes += 2 + STEP_PASSES * share * 20
        bound = dual_bound_with_pull(reduced, alpha, dual_weights, lost)
        objective, dual = objective_of(reduced, found, found_scores), partial(repair_dual, reduced, alpha)
        is_worse = np.isfinite(value) and not objective[0] <= value
        if not is_worse:
            point, scores, value = found, found_scores, objective[0]
        width, is_first = (width if is_first and not is_worse else WIDEN * width), False
        run.state = Guess(point, width=width, method="bands")
        run.take(found, Certificate(*objective, bound, dual))
        if run.is_over or share == 1:
            break
    return scores


def first_width(problem: ERMProblem, start: Point, scores: Floats) -> float:
    """How wide the band around the margin should be for a start learned from a tenth of the rows."""
    return learned_width(problem, start, scores, problem.design.n_rows / 10)


def learned_width(problem: ERMProblem, start: Point, scores: Floats, n_learned: float) -> float:
    """How wide the band around the margin should be for a start learned from so many rows.

    An error in proportion to the scores, or to the margin where scores are small; but no alpha exceeds its
    cost, so small costs leave w (a sum of alphas) little room for errors.
    """
    spread = float(np.sqrt((problem.design.n_features + 1) / n_learned))
    size, length = float(scores.std()), float(np.linalg.norm(start.weights))
    room = float(member_costs(problem).sum()) * (size / length) ** 2 if length > 0 else 1.0
    return _SPREAD * spread * max(min(1.0, room), size)


def choose_band(problem: ERMProblem, shortfall: Floats, width: float) -> NDArray[np.intp]:
    """The rows with |m| <= width; more where those cannot decide, all where they are too many."""
    distance = np.abs(shortfall)
    # However good the guess, the optimum leans on at least as many rows as there are unknowns.
    least = min(LEAST_ROWS * (problem.design.n_features + 1), len(shortfall) - 1)
    reach = width
    if np.count_nonzero(distance <= width) <= least:
        reach = float(np.partition(distance, least)[least])
    while np.isfinite(reach):
        inside = np.flatnonzero(distance <= reach)
        if len(inside) > _LARGEST_SHARE * len(shortfall):
            break
        if not problem.fit_intercept or _is_held(problem, shortfall, inside):
            return inside
        reach *= WIDEN
    return np.arange(len(shortfall))


def _is_held(problem: ERMProblem, shortfall: Floats, inside: NDArray[np.intp]) -> bool:
    signed = problem.labels * member_costs(problem)
    fixed = np.where(shortfall > 0, signed, 0.0)
    return can_balance(signed[inside], float(fixed[inside].sum() - fixed.sum()))


def can_balance(signed_costs: Floats, needed: float) -> bool:
    """Whether rows with these y_i c_i can make sum y alpha = ``needed``, what the fixed rows leave open.

    If they cannot, the problem inside the band has no optimum: its intercept runs away.
    """
    return bool(np.minimum(signed_costs, 0.0).sum() < needed < np.maximum(signed_costs, 0.0).sum())


class FixedRows:
    """Sums over rows at their full cost: X^T (y s) and y . s over these, s being the sample weights.

    From one cost of a path to the next few rows come and go: only they are read. Sums that are carried on
    differ from new ones by rounding alone.

    Parameters
    ----------
    problem : ERMProblem
        Gives rows, labels and weights; its cost does not matter.
    """

    def __init__(self, problem: ERMProblem) -> None:
        self._design, self._signed = problem.design, problem.labels * problem.weights
        self._chosen = np.zeros(problem.design.n_rows, dtype=bool)
        self._pull, self._total = np.zeros(problem.design.n_features), 0.0
        # Of all rows that were ever added or taken away: their weights, and how many additions that were.
        self._read, self._n_terms = 0.0, 0

    def choose(self, chosen: NDArray[np.bool_]) -> tuple[Floats, float, float]:
        """The two sums over the rows that are ``chosen``, and how much weight their rounding may be worth."""
        changed = np.flatnonzero(chosen != self._chosen)
        if len(changed) > _MANY_CHANGES * len(chosen):
            self._pull = self._design.transposed_times(np.where(chosen, self._signed, 0.0))
            self._read, self._n_terms = float(np.abs(self._signed) @ chosen), self._design.transposed_terms()
        else:
            change = np.where(chosen[changed], self._signed[changed], -self._signed[changed])
            self._pull = self._pull + DesignMatrix(self._design.X[changed]).transposed_times(change)
            self._read += float(np.abs(change).sum())
            self._n_terms += len(changed) + 1
        self._total = float(self._signed @ chosen)
        self._chosen = chosen
        return self._pull, self._total, gamma(self._n_terms) * self._read


def solve_band(
    problem: ERMProblem,
    shortfall: Floats,
    inside: NDArray[np.intp],
    start: Point,
    goal: float,
    fixed: FixedRows,
) -> tuple[Point, Floats, Floats, float]:
    """The optimum with the rows outside the band fixed: the point; alpha and X^T (y alpha) of ALL rows.

    ``goal`` is the complementarity to reach. Last comes how much of the sum of alpha rounding may be worth.
    """
    costs = member_costs(problem)
    at_cost = shortfall > 0
    at_cost[inside] = False
    dual_weights, total, lost = fixed.choose(at_cost)
    cost = problem.cost / problem.kappa
    rows = WorkingRows(
        X=problem.design.X[inside],
        labels=problem.labels[inside],
        costs=costs[inside],
        linear_w=-cost * dual_weights,
        linear_b=-cost * total,
    )
    point, inner_alpha = solve_inside(rows, problem.objective, start, goal)
    alpha = np.where(at_cost, costs, 0.0)
    alpha[inside] = inner_alpha
    dual_weights = DesignMatrix(rows.X).transposed_times(rows.labels * inner_alpha) - rows.linear_w
    lost = cost * lost + gamma(len(inside) + 4) * float(alpha.sum())
    return point, alpha, dual_weights, lost


def solve_inside(rows: WorkingRows, objective: Objective, start: Point, goal: float) -> tuple[Point, Floats]:
    """The optimum of the rows inside a band, all others being linear: the point and alpha of these rows.

    ``goal`` is the complementarity to reach.
    """
    start = start.inside(objective.penalty)
    data = WorkingBarrier(rows, objective.loss, start, not objective.penalty.is_smooth)
    method = InteriorPoint(data, objective.penalty, objective.fit_intercept, start)
    for _, complementarity in method.iterates():
        if complementarity <= goal:
            break
    return method.point, data.barrier.alpha
