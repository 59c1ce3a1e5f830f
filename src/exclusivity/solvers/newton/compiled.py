"""The walk in planes by compiled loops, for losses whose slope is a ramp; without them ``walk`` is there.

Where the compiled walk says it is close, objective and bound are evaluated from scratch by the functions that
prove all results: what it says about itself proves nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exclusivity.kernels import compiled
from exclusivity.problem import ERMProblem, has_compiled_loops, member_costs
from exclusivity.problem.arrays import Floats
from exclusivity.solvers.newton.rounding import rounded_loss
from exclusivity.solvers.newton.run import Guess, Point, Run, certificate_of
from exclusivity.solvers.newton.sparse_grams import is_mostly_zero
from exclusivity.solvers.newton.walk import has_few_rows

# So many steps, at most, before anybody is told: what is proven of a point costs a pass.
_MOST_STEPS = 50
# The share of the tolerance to aim at: rounding and the balance of the classes take the rest; and so much
# less where they take more.
_AIM, _CLOSER = 0.9, 0.25
# Around the best dual vector the loss of those who go on need not be as sharp (tried: 1 to 16).
_WIDER = 4.0


def can_walk_compiled(problem: ERMProblem) -> bool:
    """Whether there is a compiled walk for such rows (CSR) and such a loss."""
    has_loops = is_mostly_zero(problem.design.X) and has_compiled_loops(problem.design.X)
    return has_loops and problem.penalty.is_smooth and problem.loss.conjugate_stiffness is not None


def drive_compiled(
    run: Run,
    reduced: ERMProblem,
    start: Point,
    alpha: Floats | None = None,
    *,
    width: float | None = None,
    spent: float = 0.0,
    most_passes: float = np.inf,
) -> Guess:
    """Steps until the run is over, some of them do not halve the gap or the passes are used up.

    The result is where they have come closest, for other methods to go on from.

    The parameters are those of ``drive_truncated``.
    """
    walk = CompiledWalk(reduced, start, alpha, width)
    before, n_proofs, aim, best = run.passes, 0, _AIM * run.tol, Guess(start, width=width, dual=alpha)
    while True:
        gap, is_close = run.gap, walk.go_on(aim)
        n_proofs += 1  # each takes a pass
        passes = walk.passes + n_proofs
        run.passes, run.state = before + passes, (here := walk.guess(spent + passes))
        run.take(
            walk.point, certificate_of(reduced, walk.point, walk.dual), residual=walk.norm, mu=walk.width
        )
        best = here if run.gap < gap else replace(best, spent=here.spent)
        if run.is_over or not run.gap < gap / 2 or here.spent > most_passes:
            return best
        aim *= _CLOSER if is_close else 1.0


class CompiledWalk:
    """Where the compiled walk is.

    Attributes
    ----------
    point : Point
    dual : ndarray of shape (n_rows,)
        The best dual vector so far.
    width, norm, passes : float
        Of the rounding, of the gradient, and over the rows so far.
    """

    def __init__(
        self, problem: ERMProblem, start: Point, alpha: Floats | None = None, width: float | None = None
    ) -> None:
        assert compiled is not None  # noqa: S101 -- ``can_walk_compiled`` says so
        self._kernel, self._costs, X = compiled, member_costs(problem), problem.design.X
        rounded, loss = rounded_loss(problem.loss, self._costs, alpha, width), problem.loss
        centre = np.zeros_like(self._costs) if rounded.dual is None else rounded.dual / self._costs
        self.point, self.width = start, rounded.width
        self.dual = np.empty(0)
        self.norm = self.passes = 0.0
        self._walk = compiled.start_walk(
            X.data,
            X.indices,
            X.indptr,
            np.ascontiguousarray(problem.labels),
            self._costs,
            np.ascontiguousarray(start.weights, dtype=float),
            centre,
            None if has_few_rows(problem) else problem.design.mean_squares,
            start.intercept,
            loss.conjugate_stiffness,
            loss.largest_slope,
            self.width,
            problem.fit_intercept,
        )

    def go_on(self, goal: float) -> bool:
        """On, to about this gap or for some steps, unless they come to little; whether it is close now."""
        ending, intercept, self.width, _, _, self.norm, self.passes = self._kernel.go_on(
            self._walk, goal, _MOST_STEPS
        )
        weights = np.empty(len(self.point.weights))
        slopes, dual = np.empty_like(self._costs), np.empty_like(self._costs)
        self._kernel.write_walk(self._walk, weights, slopes, dual)
        self.dual = dual * self._costs
        self.point = Point(weights, intercept)
        return bool(ending == self._kernel.IS_CLOSE)

    def guess(self, spent: float) -> Guess:
        """Where to go on from, by this method or another."""
        width = None if self.width == 0 else _WIDER * self.width
        return Guess(self.point, width=width, dual=self.dual, method="truncated", spent=spent)
