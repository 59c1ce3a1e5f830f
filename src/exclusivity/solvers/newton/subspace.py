"""The subspace method over sparse rows, by the compiled kernel, for losses whose slope is a ramp.

Every step leads to the best point of the subspace of gradient and last step (``planes.c`` has the method);
without the kernel there is Newton-CG. The kernel's own estimates are not trusted: where it says that it is
close, objective and bound are recomputed by the functions that prove all results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from exclusivity._typing import Floats
from exclusivity.kernels import compiled
from exclusivity.objective.problem import ERMProblem, member_costs, repair_dual
from exclusivity.rows.sparse_rows import has_compiled_loops
from exclusivity.solvers.newton.rounding import rounded_loss
from exclusivity.solvers.newton.run import Certificate, Guess, Point, Run, certificate_of
from exclusivity.solvers.newton.sparse_grams import is_mostly_zero

# So many steps, at most, between two certificates: each costs a pass.
_MOST_STEPS = 50
# So many passes may go by before the gap has halved. Over a few rows in play many steps take one pass.
_PATIENCE = 30.0
# The share of the tolerance to aim at: rounding and the balance of the classes take the rest; and so much
# less where they take more.
_AIM, _CLOSER = 0.9, 0.25
# Solvers of a batch may take so many bytes beside half of the memory of the rows.
_SPARE_BYTES = 1 << 27
# How far the hinge is rounded at a cold start, in units of the mean of c_i |x_i|^2: what a row does to its
# own score. Chosen on functions of Python packages: a fifth of the passes less at C = 0.1 than from 10 on.
_COLD_WIDTH, _LEAST_COLD_WIDTH, _MOST_COLD_WIDTH = 10.0, 0.5, 10.0
# Around the best dual vector the loss of those who go on need not be as sharp (tried: 1 to 16).
_WIDER = 4.0

# So many features per row, at most, for a diagonal preconditioner: with more, most features are in few rows
# and the diagonal says nothing (20,000 x 10^6: 125 passes without, 210 with it; 200,000 x 50,000: 172, 92).
_TELLING, _TELLING_OF_HINGE = 4, 1


def has_kernel(problem: ERMProblem) -> bool:
    """Return whether the kernel is there and takes such rows (CSR) and such a loss."""
    has_loops = is_mostly_zero(problem.design.X) and has_compiled_loops(problem.design.X)
    return has_loops and problem.penalty.is_smooth and problem.loss.conjugate_stiffness is not None


def has_few_rows(problem: ERMProblem) -> bool:
    """Whether features are so many that a diagonal preconditioner says nothing."""
    telling = _TELLING_OF_HINGE if problem.loss.is_hinge else _TELLING
    return bool(problem.design.n_features > telling * problem.design.n_rows)


def largest_batch(problem: ERMProblem) -> int:
    """Return how many problems over the same rows may be solved in a batch.

    Each has vectors of rows and features, and copies of up to a third of the rows, in doubles.
    """
    assert compiled is not None  # noqa: S101 -- ``has_kernel`` says so
    X = problem.design.X
    of_vectors, of_copies = 8 * (11 * X.shape[0] + 8 * X.shape[1]), 12 * X.nnz // 3
    allowed = (X.data.nbytes + X.indices.nbytes) // 2 + _SPARE_BYTES
    return int(np.clip(allowed // (of_vectors + of_copies), 1, compiled.MOST_WALKS))


class SubspaceRun:
    """A run by the kernel.

    The parameters are those of ``drive_truncated``.

    Attributes
    ----------
    run : Run
    reduced : ERMProblem
    best : Guess
        The best iterate so far, for other methods to go on from.
    """

    def __init__(
        self,
        run: Run,
        reduced: ERMProblem,
        start: Point,
        alpha: Floats | None = None,
        *,
        width: float | None = None,
        spent: float = 0.0,
        most_passes: float = np.inf,
    ) -> None:
        self.run, self.reduced, self._most_passes = run, reduced, most_passes
        self.best = Guess(start, width=width, dual=alpha, method="truncated", tried_kernel=True)
        self.solver, self.aim = SubspaceSolver(reduced, start, alpha, width), _AIM * run.tol
        self._before, self._spent, self._n_proofs = run.passes, spent, 0
        self._seemed_close, self._gone = False, 0.0
        self._halved, self._halved_at = np.inf, 0.0

    def take(self, certificate: Certificate) -> bool:
        """Let the run take the iterate with its certificate; return whether it should go on."""
        run, solver, gap = self.run, self.solver, self.run.gap
        self._n_proofs += 1  # each takes a pass
        passes = solver.passes + self._n_proofs
        spent = self._spent + passes
        run.passes, run.state = self._before + passes, (here := solver.guess(spent))
        run.take(solver.point, certificate, residual=solver.norm, mu=solver.width)
        self.best = replace(here if run.gap < gap else self.best, spent=spent, tried_kernel=True)
        self.aim *= _CLOSER if solver.is_close else 1.0
        if run.gap <= self._halved / 2:
            self._halved, self._halved_at = run.gap, passes
        # A run that seemed close looks first: where nothing has moved, it has had no chance yet.
        seems_close = solver.seems_close or (solver.is_close and self._seemed_close)
        has_gone_on, self._gone = solver.passes > self._gone, solver.passes
        comes_closer = run.gap < gap / 2 or seems_close
        comes_closer |= has_gone_on and passes <= self._halved_at + _PATIENCE
        self._seemed_close = solver.seems_close
        return not run.is_over and comes_closer and spent <= self._most_passes


def drive_subspace(runs: Sequence[SubspaceRun], is_cancelled: Callable[[], bool] = bool) -> None:
    """Steps, each until its run is over, some of them do not halve the gap or the passes are used up.

    All are over the same rows. They share products with these, and none depends on the others. Where
    ``is_cancelled`` says so they stop where they are: the callbacks of their runs have to end these then.
    """
    going = list(runs)
    while going:
        advance_batch([each.solver for each in going], [each.aim for each in going], is_cancelled)
        going = [each for each, proof in zip(going, _proofs(going), strict=True) if each.take(proof)]


def _proofs(runs: Sequence[SubspaceRun]) -> Iterator[Certificate]:
    """Yield the certificate of each, by the same sums as alone; products of all are made in a batch."""
    reduced, points = [each.reduced for each in runs], [each.solver.point for each in runs]
    duals = [repair_dual(each.reduced, each.solver.dual) for each in runs]
    signed = [problem.labels * dual for problem, dual in zip(reduced, duals, strict=True)]
    scores = _for_each(reduced[0].design.times, [point.weights for point in points])
    pulls = _for_each(reduced[0].design.transposed_times, signed)
    return map(certificate_of, reduced, points, duals, zip(scores, pulls, strict=True))


def _for_each(product: Callable[[Floats], Floats], vectors: Sequence[Floats]) -> list[Floats]:
    """The product with each of the vectors."""
    if len(vectors) == 1:
        return [product(vectors[0])]
    return list(np.ascontiguousarray(product(np.column_stack(vectors)).T))


class SubspaceSolver:
    """The kernel's state.

    Attributes
    ----------
    point : Point
    dual : ndarray of shape (n_rows,)
        The best dual vector so far.
    width, norm, passes : float
        Of the rounding, of the gradient, and over the rows so far.
    is_close, seems_close : bool
        Whether the kernel says that it has reached its goal, or that it has as far as it can see: where
        that is not so, it looks at all rows first.
    """

    def __init__(
        self, problem: ERMProblem, start: Point, alpha: Floats | None = None, width: float | None = None
    ) -> None:
        assert compiled is not None  # noqa: S101 -- ``has_kernel`` says so
        self._kernel, self._costs, X = compiled, member_costs(problem), problem.design.X
        if problem.loss.is_hinge and alpha is None and width is None:
            width = _cold_width(problem)
        rounded, loss = rounded_loss(problem.loss, self._costs, alpha, width), problem.loss
        centre = np.zeros_like(self._costs) if rounded.dual is None else rounded.dual / self._costs
        self.point, self.width = start, rounded.width
        self.is_close = self.seems_close = False
        self.dual = np.empty(0)
        self.norm = self.passes = 0.0
        self.handle = compiled.start_walk(
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

    def arrive(self, ending: int, intercept: float, width: float, norm: float, passes: float) -> None:
        """Take over the kernel's iterate."""
        weights = np.empty(len(self.point.weights))
        slopes, dual = np.empty_like(self._costs), np.empty_like(self._costs)
        self._kernel.write_walk(self.handle, weights, slopes, dual)
        self.dual = dual * self._costs
        self.point, self.width, self.norm, self.passes = Point(weights, intercept), width, norm, passes
        self.is_close = bool(ending == self._kernel.IS_CLOSE)
        self.seems_close = bool(ending == self._kernel.SEEMS_CLOSE)

    def guess(self, spent: float) -> Guess:
        """Where to go on from, by this method or another."""
        width = None if self.width == 0 else _WIDER * self.width
        return Guess(self.point, width=width, dual=self.dual, method="truncated", spent=spent)


def _cold_width(problem: ERMProblem) -> float:
    reach = float(member_costs(problem) @ problem.design.squared_lengths) / problem.design.n_rows
    # A cost of nothing times an infinite length says nothing.
    return float(np.clip(_COLD_WIDTH * np.nan_to_num(reach), _LEAST_COLD_WIDTH, _MOST_COLD_WIDTH))


def advance_batch(
    solvers: Sequence[SubspaceSolver], goals: Sequence[float], is_cancelled: Callable[[], bool]
) -> None:
    """Advance solvers over the same rows, each to about its gap or for some steps."""
    assert compiled is not None  # noqa: S101 -- there is a solver
    handles = tuple(solver.handle for solver in solvers)
    places = compiled.go_on(handles, tuple(goals), _MOST_STEPS, is_cancelled)
    for solver, (ending, intercept, width, _, _, norm, passes) in zip(solvers, places, strict=True):
        solver.arrive(ending, intercept, width, norm, passes)
