"""The walk in planes by compiled loops, for losses whose slope is a ramp; without them ``walk`` is there.

Where the compiled walk says it is close, everything is evaluated from scratch by the functions that prove all
results: what it says about itself proves nothing.
"""

from __future__ import annotations

import numpy as np

from exclusivity.kernels import compiled
from exclusivity.problem import ERMProblem, has_compiled_loops, member_costs
from exclusivity.problem.arrays import Floats
from exclusivity.solvers.newton.rounding import rounded_loss
from exclusivity.solvers.newton.run import Guess, Point, Run, certificate_of

SPARSE = 0.1
"""Rows of which more is stored are not for loops over stored numbers, one by one."""

# So many steps, at most, before anybody is told: what is proven of a point costs a pass.
_MOST_STEPS = 50
# The share of the tolerance to aim at: rounding and the balance of the classes take the rest. Where they take
# more, so much less, and so often.
_AIM, _CLOSER, _MOST_TRIES = 0.9, 0.25, 3


def can_walk_compiled(problem: ERMProblem) -> bool:
    """Whether there is a compiled walk for such rows (CSR) and such a loss."""
    design = problem.design
    is_sparse = design.density <= SPARSE and has_compiled_loops(design.X)
    return is_sparse and problem.penalty.is_smooth and problem.loss.conjugate_stiffness is not None


def drive_compiled(
    run: Run,
    reduced: ERMProblem,
    start: Point,
    alpha: Floats | None = None,
    *,
    width: float | None = None,
    has_few_rows: bool = False,
    spent: float = 0.0,
    most_passes: float = np.inf,
) -> Guess:
    """Steps until the run is over, they come to little or the passes are used up; where they have led.

    ``has_few_rows``: no preconditioner. The other parameters are those of ``drive_truncated``.
    """
    walk = CompiledWalk(reduced, start, alpha, width, has_few_rows)
    before, aim, n_tries = run.passes, _AIM * run.tol, 0
    while True:
        is_close, is_slow = walk.go_on(aim)
        passes = walk.passes + 1.0  # with those of the certificate
        run.passes, run.state = before + passes, walk.guess(spent + passes)
        before += 1.0
        run.take(
            walk.point, certificate_of(reduced, walk.point, walk.dual), residual=walk.norm, mu=walk.width
        )
        n_tries += is_close
        aim *= _CLOSER if is_close else 1.0
        if run.is_over or is_slow or n_tries == _MOST_TRIES or spent + passes > most_passes:
            return walk.guess(spent + passes)


class CompiledWalk:
    """Where the compiled walk is.

    Attributes
    ----------
    point : Point
    dual, slopes : ndarray of shape (n_rows,)
        The best dual vector so far, and the slopes of the rounded loss at the point.
    width, norm, passes : float
        Of the rounding, of the gradient, and over the rows so far.
    """

    def __init__(
        self, problem: ERMProblem, start: Point, alpha: Floats | None, width: float | None, has_few_rows: bool
    ) -> None:
        assert compiled is not None  # noqa: S101 -- ``can_walk_compiled`` says so
        self._kernel, self._costs, X = compiled, member_costs(problem), problem.design.X
        rounded, loss = rounded_loss(problem.loss, self._costs, alpha, width), problem.loss
        centre = np.zeros_like(self._costs) if rounded.dual is None else rounded.dual / self._costs
        self.point, self.width = start, rounded.width
        self.dual = self.slopes = np.empty(0)
        self.norm = self.passes = 0.0
        self._walk = compiled.start_walk(
            X.data,
            X.indices,
            X.indptr,
            problem.labels,
            self._costs,
            np.ascontiguousarray(start.weights, dtype=float),
            centre,
            None if has_few_rows else problem.design.mean_squares,
            start.intercept,
            loss.conjugate_stiffness,
            loss.largest_slope,
            self.width,
            problem.fit_intercept,
        )

    def go_on(self, goal: float) -> tuple[bool, bool]:
        """On, to about this gap or for some steps; whether it is close now, and whether too slow."""
        ending, intercept, self.width, _, _, self.norm, self.passes = self._kernel.go_on(
            self._walk, goal, _MOST_STEPS
        )
        weights = np.empty(len(self.point.weights))
        self.slopes, self.dual = np.empty_like(self._costs), np.empty_like(self._costs)
        self._kernel.write_walk(self._walk, weights, self.slopes, self.dual)
        self.slopes *= self._costs
        self.dual *= self._costs
        self.point = Point(weights, intercept)
        return ending == self._kernel.IS_CLOSE, ending == self._kernel.IS_SLOW

    def guess(self, spent: float) -> Guess:
        """Where to go on from, by this method or another."""
        return Guess(self.point, width=self.width, dual=self.slopes, method="truncated", spent=spent)
