"""The walk in planes by compiled loops, for losses whose slope is a ramp; without them ``walk`` is there.

Where the compiled walk says it is close, objective and bound are evaluated from scratch by the functions that
prove all results: what it says about itself proves nothing.
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
from exclusivity.solvers.newton.walk import has_few_rows

# So many steps, at most, before anybody is told: what is proven of a point costs a pass.
_MOST_STEPS = 50
# The share of the tolerance to aim at: rounding and the balance of the classes take the rest; and so much
# less where they take more.
_AIM, _CLOSER = 0.9, 0.25
# Walks side by side may take so many bytes beside half of the memory of the rows.
_SPARE_BYTES = 1 << 27
# How far the hinge is rounded at a cold start, in units of the mean of c_i |x_i|^2: what a row does to its
# own score. Chosen on functions of Python packages: a fifth of the passes less at C = 0.1 than from 10 on.
_COLD_WIDTH, _LEAST_COLD_WIDTH, _MOST_COLD_WIDTH = 10.0, 0.5, 10.0
# Around the best dual vector the loss of those who go on need not be as sharp (tried: 1 to 16).
_WIDER = 4.0


def can_walk_compiled(problem: ERMProblem) -> bool:
    """Whether there is a compiled walk for such rows (CSR) and such a loss."""
    has_loops = is_mostly_zero(problem.design.X) and has_compiled_loops(problem.design.X)
    return has_loops and problem.penalty.is_smooth and problem.loss.conjugate_stiffness is not None


def most_together(problem: ERMProblem) -> int:
    """How many walks over the same rows may go on at once.

    Each has vectors of rows and features, and copies of up to a third of the rows, in doubles.
    """
    assert compiled is not None  # noqa: S101 -- ``can_walk_compiled`` says so
    X = problem.design.X
    of_vectors, of_copies = 8 * (11 * X.shape[0] + 8 * X.shape[1]), 12 * X.nnz // 3
    allowed = (X.data.nbytes + X.indices.nbytes) // 2 + _SPARE_BYTES
    return int(np.clip(allowed // (of_vectors + of_copies), 1, compiled.MOST_WALKS))


class Traveller:
    """A run that a compiled walk takes on.

    The parameters are those of ``drive_truncated``.

    Attributes
    ----------
    run : Run
    reduced : ERMProblem
    best : Guess
        Where the walk has come closest, for other methods to go on from.
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
        self.best = Guess(start, width=width, dual=alpha, method="truncated", has_walked=True)
        self.walk, self.aim = CompiledWalk(reduced, start, alpha, width), _AIM * run.tol
        self._before, self._spent, self._n_proofs = run.passes, spent, 0
        self._seemed_close = False

    def take(self, certificate: Certificate) -> bool:
        """The run takes where the walk is now, and what that proves; whether it should go on."""
        run, walk, gap = self.run, self.walk, self.run.gap
        self._n_proofs += 1  # each takes a pass
        passes = walk.passes + self._n_proofs
        spent = self._spent + passes
        run.passes, run.state = self._before + passes, (here := walk.guess(spent))
        run.take(walk.point, certificate, residual=walk.norm, mu=walk.width)
        self.best = replace(here if run.gap < gap else self.best, spent=spent, has_walked=True)
        self.aim *= _CLOSER if walk.is_close else 1.0
        # A walk that seemed close looks first: where nothing has moved, it has had no chance yet.
        comes_closer = run.gap < gap / 2 or walk.seems_close or (walk.is_close and self._seemed_close)
        self._seemed_close = walk.seems_close
        return not run.is_over and comes_closer and spent <= self._most_passes


def drive_compiled(travellers: Sequence[Traveller], is_cancelled: Callable[[], bool] = bool) -> None:
    """Steps, each until its run is over, some of them do not halve the gap or the passes are used up.

    All are over the same rows. They share products with these, and none depends on the others. Where
    ``is_cancelled`` says so they stop where they are: the callbacks of their runs have to end these then.
    """
    going = list(travellers)
    while going:
        go_on_together([each.walk for each in going], [each.aim for each in going], is_cancelled)
        going = [each for each, proof in zip(going, _proofs(going), strict=True) if each.take(proof)]


def _proofs(travellers: Sequence[Traveller]) -> Iterator[Certificate]:
    """What is proven of each, by the same sums as alone: the products of all of them are made together."""
    reduced, points = [each.reduced for each in travellers], [each.walk.point for each in travellers]
    duals = [repair_dual(each.reduced, each.walk.dual) for each in travellers]
    signed = [problem.labels * dual for problem, dual in zip(reduced, duals, strict=True)]
    scores = _for_each(reduced[0].design.times, [point.weights for point in points])
    pulls = _for_each(reduced[0].design.transposed_times, signed)
    return map(certificate_of, reduced, points, duals, zip(scores, pulls, strict=True))


def _for_each(product: Callable[[Floats], Floats], vectors: Sequence[Floats]) -> list[Floats]:
    """The product with each of the vectors."""
    if len(vectors) == 1:
        return [product(vectors[0])]
    return list(np.ascontiguousarray(product(np.column_stack(vectors)).T))


class CompiledWalk:
    """Where the compiled walk is.

    Attributes
    ----------
    point : Point
    dual : ndarray of shape (n_rows,)
        The best dual vector so far.
    width, norm, passes : float
        Of the rounding, of the gradient, and over the rows so far.
    is_close, seems_close : bool
        Whether the walk itself says that it has reached its goal, or that it has as far as it can see: where
        that is not so, it looks at all rows first.
    """

    def __init__(
        self, problem: ERMProblem, start: Point, alpha: Floats | None = None, width: float | None = None
    ) -> None:
        assert compiled is not None  # noqa: S101 -- ``can_walk_compiled`` says so
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
        """Take over where the walk has come to."""
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


def go_on_together(
    walks: Sequence[CompiledWalk], goals: Sequence[float], is_cancelled: Callable[[], bool]
) -> None:
    """Walks over the same rows go on, each to about its gap or for some steps, unless they come to little."""
    assert compiled is not None  # noqa: S101 -- there is a walk
    handles = tuple(walk.handle for walk in walks)
    places = compiled.go_on(handles, tuple(goals), _MOST_STEPS, is_cancelled)
    for walk, (ending, intercept, width, _, _, norm, passes) in zip(walks, places, strict=True):
        walk.arrive(ending, intercept, width, norm, passes)
