"""The subspace method over sparse rows, by the compiled kernel, for losses whose slope is a ramp.

Every step leads to the best point of the subspace of gradient and last step (``subspace.c`` has the method);
without the kernel there is Newton-CG. The kernel's own estimates are not trusted: where it says that it has
converged, objective and bound are recomputed by the functions that prove all results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from exclusivity._typing import Floats
from exclusivity.kernels import compiled
from exclusivity.objective.objective import ERMProblem, member_costs
from exclusivity.rows.design import has_compiled_loops
from exclusivity.solvers.newton_cg import has_few_rows, rounded_loss
from exclusivity.solvers.run import Guess, Run
from exclusivity.solvers.sums import SPARSE_DENSITY, Point, certificate_of

# So many steps, at most, between two certificates: each costs a pass.
_MOST_STEPS = 50
# So many passes may go by before the gap has halved. Over a few active rows many steps take one pass.
_PATIENCE = 30.0
# The share of the tolerance to aim at: rounding and the balance of the classes take the rest; and so much
# less where they take more.
_AIM, _CLOSER = 0.9, 0.25
# How far the hinge is rounded at a cold start, in units of the mean of c_i |x_i|^2: what a row does to its
# own score. Chosen on functions of Python packages: a fifth of the passes less at C = 0.1 than from 10 on.
_COLD_WIDTH, _LEAST_COLD_WIDTH, _MOST_COLD_WIDTH = 10.0, 0.5, 10.0
# Around the best dual vector the loss of another method need not be as sharp (tried: 1 to 16).
_WIDER = 4.0


def has_kernel(problem: ERMProblem) -> bool:
    """Return whether the kernel is there and takes such rows (CSR) and such a loss."""
    design, loss = problem.design, problem.loss
    has_loops = design.is_sparse and design.density <= SPARSE_DENSITY and has_compiled_loops(design.X)
    return has_loops and problem.penalty.is_smooth and loss.conjugate_stiffness is not None


def drive_subspace(run: Run, reduced: ERMProblem, guess: Guess, *, most_passes: float = np.inf) -> Guess:
    """Take steps until the run is over, some of them do not halve the gap or the passes are used up.

    The parameters are those of ``drive_newton_cg``. Returns the best iterate, from which others go on.
    """
    solver, aim = SubspaceSolver(reduced, guess.point, guess.dual, guess.width), _AIM * run.tol
    best = replace(guess, method="newton-cg", tried_kernel=True)
    before, n_certificates = run.passes, 0
    halved, halved_at, last_passes = np.inf, 0.0, 0.0
    while True:
        solver.advance(aim, _MOST_STEPS, run.is_cancelled)
        gap, n_certificates = run.gap, n_certificates + 1  # each takes a pass
        passes = solver.passes + n_certificates
        here = solver.guess(guess.spent + passes)
        run.passes, run.state = before + passes, here
        certificate = certificate_of(reduced, solver.point, solver.dual)
        run.take(solver.point, certificate, residual=solver.norm, mu=solver.width)
        best = replace(here if run.gap < gap else best, spent=guess.spent + passes, tried_kernel=True)
        aim *= _CLOSER if solver.has_converged else 1.0
        if run.gap <= halved / 2:
            halved, halved_at = run.gap, passes
        comes_closer = run.gap < gap / 2
        comes_closer |= solver.passes > last_passes and passes <= halved_at + _PATIENCE
        last_passes = solver.passes
        if run.is_over or not comes_closer or guess.spent + passes > most_passes:
            return best


class SubspaceSolver:
    """The kernel's state.

    Attributes
    ----------
    point : Point
    dual : ndarray of shape (n_rows,)
        The best dual vector so far.
    width, norm, passes : float
        Of the rounding, of the gradient, and over the rows so far.
    has_converged : bool
        Whether the kernel has reached its goal.
    """

    def __init__(
        self, problem: ERMProblem, start: Point, alpha: Floats | None = None, width: float | None = None
    ) -> None:
        assert compiled is not None  # noqa: S101 -- ``has_kernel`` says so
        self._kernel, self._costs, loss, X = compiled, member_costs(problem), problem.loss, problem.design.X
        if loss.is_hinge and alpha is None and width is None:
            reach = float(self._costs @ problem.design.squared_lengths) / problem.design.n_rows
            # A cost of nothing times an infinite length says nothing.
            width = float(np.clip(_COLD_WIDTH * np.nan_to_num(reach), _LEAST_COLD_WIDTH, _MOST_COLD_WIDTH))
        rounded = rounded_loss(loss, self._costs, alpha, width)
        centre = np.zeros_like(self._costs) if rounded.dual is None else rounded.dual / self._costs
        self.point, self.width, self.dual = start, rounded.width, np.empty(0)
        self.has_converged, self.norm, self.passes = False, 0.0, 0.0
        self.handle = compiled.new_solver(
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

    def advance(self, goal: float, most_steps: int, is_cancelled: Callable[[], bool] = bool) -> None:
        """Advance to about this gap or for some steps, or until ``is_cancelled`` says so."""
        ending, intercept, self.width, _, _, self.norm, self.passes = self._kernel.advance(
            self.handle, goal, most_steps, is_cancelled
        )
        weights = np.empty(len(self.point.weights))
        slopes, dual = np.empty_like(self._costs), np.empty_like(self._costs)
        self._kernel.write_iterate(self.handle, weights, slopes, dual)
        self.point, self.dual = Point(weights, intercept), dual * self._costs
        self.has_converged = bool(ending == self._kernel.CONVERGED)

    def guess(self, spent: float) -> Guess:
        """Return where to continue from, by this method or another."""
        width = None if self.width == 0 else _WIDER * self.width
        return Guess(self.point, width=width, dual=self.dual, method="newton-cg", spent=spent)
