"""Small problems with the squared hinge: whole Newton steps on rows in cache, certified at the end.

With z_i = y_i (x_i, 1), v = (w, b) and the active rows A = {i : z_i . v < 1} the objective around v is a
parabola, whose lowest point solves

    (diag(1, ..., 1, 0) + sum_A h_i z_i z_i^T) v  =  sum_A h_i z_i ,    h_i = c_i phi''.

Where its active rows are those it came from, it is the optimum. A dozen calls of numpy make a step, and one
certificate a run: a fifth of what blocks of rows, shortened steps and a certificate of every iterate take.
Those are for runs that are not over by then.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import lapack

from exclusivity._typing import Bools, Floats
from exclusivity.objective.problem import ERMProblem, member_costs, repair_dual
from exclusivity.solvers.newton.run import (
    Certificate,
    Guess,
    LossSums,
    Point,
    Run,
    bound_from_sums,
    objective_from_sums,
)

# Multiplications in a matrix of second derivatives and its factor, a millisecond's; beyond, it pays to read
# only the rows that come and go.
_MOST_PRODUCTS, _MOST_ROWS = 1 << 22, 5000
_MAX_STEPS = 30


def is_small(reduced: ERMProblem) -> bool:
    """Whether whole steps are worth a try: the squared hinge, few dense rows, few features."""
    design, loss = reduced.design, reduced.loss
    return (
        loss.active_curvature is not None
        and loss.vanishes
        and loss.is_smooth
        and reduced.penalty.is_smooth
        and not design.is_sparse
        and design.n_rows <= _MOST_ROWS
        and max(design.n_rows, design.n_features) * (design.n_features + 1) ** 2 <= _MOST_PRODUCTS
    )


def drive_small(
    run: Run, reduced: ERMProblem, curvature: Floats | None = None, active: Bools | None = None
) -> Bools:
    """Whole Newton steps while they help, then a certificate of where they led; the active rows there.

    ``curvature`` is the matrix of second derivatives of all rows, if it is known, for the step from zero.
    ``active`` are the rows to begin with instead, those of another cost. The run is told of every step, and
    there are no more of them than it allows.
    """
    rows = _SmallRows(reduced)
    v, objective, residual = np.zeros(rows.n_weights), np.inf, np.inf
    if active is None:
        active = np.ones(reduced.design.n_rows, dtype=bool)
    for number in range(min(_MAX_STEPS, run.max_iter)):
        there = rows.lowest(active, curvature if number == 0 else None)
        if there is None:  # nothing to factorise
            break
        missed = rows.shortfall(there)
        value, gradient = rows.parts(there, missed)
        if not value < objective:  # a step too far, or no digits left to gain
            break
        if number > 0 and run.pass_by(rows.point(v), objective, residual=residual):
            break
        v, objective, residual = there, value, float(np.linalg.norm(gradient))
        before, active = active, missed > 0
        run.passes += 1
        if (before == active).all():
            break
    rows.certify(run, rows.point(v))
    return active


class _SmallRows:
    """The rows z_i = y_i (x_i, 1), without the 1 where there is no intercept."""

    def __init__(self, reduced: ERMProblem) -> None:
        self._reduced, self._n_features = reduced, reduced.design.n_features
        self.n_weights = self._n_features + reduced.fit_intercept
        self._Z = np.empty((reduced.design.n_rows, self.n_weights))
        self._Z[:, self._n_features :] = reduced.labels[:, None]
        self._signed = self._Z[:, : self._n_features]
        np.multiply(reduced.design.X, reduced.labels[:, None], out=self._signed)
        self._costs = member_costs(reduced)
        self._curvatures = (reduced.loss.active_curvature or 0.0) * self._costs

    def lowest(self, active: Bools, curvature: Floats | None) -> Floats | None:
        """The lowest point of the parabola of these rows; None where it has none, or too few digits."""
        rows = self._Z[active]
        scaled = rows * self._curvatures[active, None]
        n = self.n_weights
        system = scaled.T @ rows if curvature is None else curvature[:n, :n].copy()
        system.reshape(-1)[:: n + 1][: self._n_features] += 1.0
        # LAPACK itself, factor and solution at once: scipy's wrapping would take as long as the work.
        _, solution, info = lapack.dposv(system, scaled.sum(axis=0), lower=1)
        return solution if info == 0 else None

    def shortfall(self, v: Floats) -> Floats:
        """1 - z_i . v, good enough to go on from."""
        return np.asarray(1.0 - self._Z @ v)

    def parts(self, v: Floats, missed: Floats) -> tuple[float, Floats]:
        """f(w, b) and its gradient, good enough to compare."""
        w, positive = v[: self._n_features], np.maximum(missed, 0.0)
        alpha = self._curvatures * positive
        gradient = -(alpha @ self._Z)
        gradient[: self._n_features] += w
        return float(w @ w + alpha @ positive) / 2, gradient

    def point(self, v: Floats) -> Point:
        """Weights and intercept."""
        return Point(v[: self._n_features], float(v[-1]) if self._reduced.fit_intercept else 0.0)

    def certify(self, run: Run, point: Point) -> None:
        """Let the run take the point, with the objective and the dual vector that it suggests."""
        problem, scale = self._reduced, self._reduced.design.row_scale
        sums, alpha = self._sums(point)
        bound, _ = bound_from_sums(sums, problem.objective, scale)
        objective = objective_from_sums(point, sums, problem.objective, scale)
        run.passes += 1
        run.state = Guess(point, width=0.0, method="semismooth")
        gradient = point.weights - sums.weighted_sums[1]
        run.take(
            point,
            Certificate(*objective, bound, partial(repair_dual, problem, alpha)),
            amends=run.is_over,  # somebody ended it there
            residual=float(np.hypot(np.linalg.norm(gradient), problem.fit_intercept * sums.alpha_sums[1])),
        )

    def _sums(self, point: Point) -> tuple[LossSums, Floats]:
        """The sums over rows that prove something, and the dual vector behind them.

        Unlike in :meth:`shortfall` the intercept is added last: it may be large, and costs no digits then.
        """
        loss, labels, costs = self._reduced.loss, self._reduced.labels, self._costs
        missed = 1 - (self._signed @ point.weights + labels * point.intercept)
        parts = loss.parts(missed, curvature=False, conjugate=True)
        assert parts.conjugate is not None  # noqa: S101 -- asked for
        alpha, paid = costs * parts.slope, costs * parts.conjugate
        signed, total = labels * alpha, float(costs @ parts.value)
        return LossSums(
            loss=total,
            smoothed=total,
            weighted_sums=np.array([signed @ self._signed, alpha @ self._signed]),
            alpha_sums=np.array([alpha.sum(), signed.sum()]),
            conjugates=np.array([paid.sum(), labels @ paid]),
            curvature=None,
            cost=float(costs.sum()),
            n_terms=float(len(labels)),
        ), alpha
