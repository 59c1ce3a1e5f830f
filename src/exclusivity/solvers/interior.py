"""A primal-dual interior-point method: losses that vanish, any penalty, any rows.

    min over w, b, xi:   1/2 |w|^2 + a_w . w + a_b b + sum_i c_i xi_i^p
    subject to           xi_i >= k_i - y_i (x_i . w + o_i b),   xi_i >= 0

Data rows have o = 1 and their targets for k, 1 in classification. The penalty l_j |w_j| is l_j max(0, w_j) +
l_j max(0, -w_j): two more rows for every feature with l_j > 0, x = -+e_j, k = o = 0, p = 1. Bounds are walls:
w_j >= lo_j and -w_j >= -hi_j, one more row each, with a multiplier and a slack but no loss (c = inf, so that
q = inf and xi = 0 in what follows). The linear term (a_w, a_b) carries rows whose loss is linear for sure.

With multipliers alpha (first constraint, slack s) and z (second), the optimum satisfies

    w + a_w = X^T (y alpha),   a_b = sum o y alpha,   c p xi^(p-1) = alpha + z,   alpha s = 0,   z xi = 0 .

Newton's method on these equations with alpha s = z xi = c mu, mu -> 0 (Mehrotra's predictor and corrector).
Eliminating everything that belongs to one row, with q = c p (p-1) xi^(p-2) + z / xi and
D = 1 / (s / alpha + 1 / q), leaves the system of ``factorised`` in (dw, db), and

    dalpha = D (v - y df),   df = X dw + o db .

10 to 25 iterations reach a relative gap of 1e-8, whatever the scales in X: each is one factorisation.

The variables that belong to single rows (``Barrier``) stay with their block of rows. A step sums three
functions over the blocks: ``linearise`` at a point, ``predict`` and ``correct``. The right-hand side of the
corrector is a straight line in mu, so that the predictor can compute it. The Gram matrix of the rows comes
with the first one, but of rows in memory only when a step is taken.

Shrinking
---------
Of many rows only those near the margin need this method, for the hinge. A row with m = t - y f < 0 at the
optimum has alpha = 0, one with m > 0 has alpha = c and a linear loss. Given a good guess of (w, b), rows with
|m| > width are taken for what they look like: sums of them are all that is needed. The rows inside, the
working set, are solved for exactly. The dual vector found this way is feasible for ALL rows, so that its
bound, and the objective of one more pass, certify the point whether or not the guess was right; where it was
wrong the working set is made wider.

The guess is the optimum of a sample, off by about sqrt(M / n) in the margins. One Newton step for all rows,
from one pass and with the second derivatives of the sample, makes that a small part of it: a few thousand
rows of millions are enough then. Of rows that are elsewhere a working set is fetched, so that its size is
bounded; of rows in memory a large one takes longer than Newton steps that only use products, which then take
over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats, Ints
from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.objective import ERMProblem, Objective, Penalty, member_costs
from exclusivity.rows.design import DesignMatrix, LabelledRows
from exclusivity.solvers.barrier import (
    Barrier,
    BarrierSums,
    RowState,
    Walls,
    WorkingSet,
    correct,
    dual_of,
    dual_sums,
    gram,
    linearise,
    near_margin,
    predict,
)
from exclusivity.solvers.factorised import DENSE_LIMIT, DualSystem, ridged_system
from exclusivity.solvers.newton_cg import width_for_error
from exclusivity.solvers.run import Guess, MemoryRows, NewtonSystem, ProblemRows, Run
from exclusivity.solvers.sums import (
    Certificate,
    LossSums,
    Point,
    bordered_gram,
    bound_from_sums,
    certificate_of,
    dense_product,
    dual_vector,
    dual_weights_of,
    evaluate,
    objective_from_sums,
    repaired_weights,
)

_MAX_ITER = 200
_BACK_OFF = 0.995
_STIFF = 1e100
# A gap that is about so many times the tolerance is not worth a proof.
_FAR = 10.0
# The complementarity to reach in a working set, relative to the objective and the tolerance.
_INNER_SHARE = 0.1
# A working set has at least so many rows for each unknown.
_LEAST_ROWS = 5
# How much wider a working set is made that was too narrow.
_WIDEN = 3.0
# A working set is some ten times as wide as the error of most of its margins.
_ERROR_SHARE = 0.1
# Of rows in memory: two such working sets take as long as Newton-CG (500,000 x 50, 5 %).
_LARGEST_SHARE = 0.05
# Standard errors of a margin learned from n rows, in units of sqrt(M / n).
_SPREAD = 3.0
# Three standard errors of the margins after a Newton step, in units of that step's size in the margins; from
# 0.1 to 0.4 in samples of 5,000 to 75,000 rows of 28 columns.
_REST = 0.3
_MOST_SETS = 10


def drive_interior(run: Run, rows: ProblemRows, guess: Guess) -> None:
    """Take interior-point steps, certifying near iterates, until the run is over or no step is possible."""
    penalty = rows.objective.penalty
    start, before = guess.point.inside(penalty), run.passes - rows.passes
    method = InteriorPoint(rows, start, slacks=guess.slacks)
    n_steps, complementarity, is_proven, is_start_proven = 0, 0.0, True, True

    def take(point: Point, **record: Any) -> None:
        """Let the run take the point with its certificate; weights that should be zero are."""
        if not penalty.is_smooth:
            point = with_exact_zeros(point, method.dual_weights(), penalty)
        certificate = method.certify(point)
        run.passes = before + rows.passes
        run.take(point, certificate, **record)

    for n_steps, (point, complementarity) in enumerate(method.iterates()):
        run.passes, is_start = before + rows.passes, n_steps == 0
        objective = penalty.value(point.weights) + method.loss
        # At points that satisfy all equations the complementarity is the gap.
        is_far = penalty.is_smooth and run.may_go_on and complementarity > _FAR * run.tol * objective
        is_proven = not is_far
        is_start_proven = is_proven if is_start else is_start_proven
        if is_proven:
            take(point, mu=complementarity, is_start=is_start)
        elif not is_start:
            run.note(point, objective, mu=complementarity)
        if run.is_over:
            break
    if not is_proven and n_steps > 0:  # the last one is all there is
        take(method.point, mu=complementarity, amends=True)
    if not is_start_proven and not run.is_over:  # and may be worse than where it began
        take(start, is_start=True)
    if rows.problem is not None:
        run.state = Guess(method.point, method="interior", slacks=method.slacks)


def with_exact_zeros(point: Point, dual_weights: Floats, penalty: Penalty) -> Point:
    """Return the point with the weights that u = X^T (y alpha) calls zero, or puts at a bound, exactly there.

    At the optimum w attains the penalty's conjugate at u; an interior point only comes close to that.
    """
    return Point(penalty.settled(point.weights, dual_weights), point.intercept)


class InteriorPoint:
    """The current iterate: the point, and the multipliers and slacks of rows and penalty.

    Parameters
    ----------
    rows : ProblemRows
    start : Point
        Within the bounds.
    slacks : ndarray and tuple of ndarrays, or None
        Multipliers and slacks of rows in memory and of the penalty, to continue from.
    linear : pair of ndarray and float
        The linear term (a_w, a_b).
    """

    def __init__(
        self,
        rows: ProblemRows,
        start: Point,
        *,
        slacks: tuple[Floats, tuple[Floats, ...]] | None = None,
        linear: tuple[Floats | float, float] = (0.0, 0.0),
    ) -> None:
        self._rows, self.point, self._linear, penalty = rows, start, linear, rows.objective.penalty
        M = rows.n_features
        self._has_rows_side, self._kernel = False, None
        if rows.problem is not None:
            # With a penalty most weights end at zero. The rows' side then loses rank where D has no bound,
            # that is, where the loss has a corner; the features' side does not.
            loses_rank = not penalty.is_smooth and rows.objective.loss.has_corner and M <= DENSE_LIMIT
            self._has_rows_side = rows.n_rows < M and not loses_rank
            if self._has_rows_side and penalty.is_smooth:
                self._kernel = dense_product(rows.problem.design.X, np.ones(M))
        self._states: Any = None
        self._linearise(0.0)
        cost = self._here.total_cost
        self._own: list[FeatureRows] = [] if penalty.is_smooth else penalty_rows(penalty, start.weights, cost)
        if slacks is not None:
            self.state.barrier.values = slacks[0]
            self._linearise(0.0)
            for own, values in zip(self._own, slacks[1], strict=False):
                own.barrier.values = values
        # A weight between equal bounds stays where it is: in the system it is as good as infinitely stiff.
        self._ridge = np.where(np.equal(penalty.lower, penalty.upper), _STIFF, np.ones(M))
        # Row i is led to c_i mu, so that a row of weight 2 behaves like two rows in every iterate.
        self._total_cost = 2 * cost + sum(own.barrier.total_cost for own in self._own)

    def iterates(self) -> Iterator[tuple[Point, float]]:
        """Yield points and total complementarity, ever closer to the optimum."""
        for _ in range(_MAX_ITER):
            yield self.point, self.mu * self._total_cost
            if not self.step():
                return

    def step(self) -> bool:
        """Take one predictor-corrector step; False when none is possible any more."""
        here, mu = self._here, self.mu
        if not 0 < mu < inf:
            return False
        for own in self._own:
            own.barrier.linearise(own.gains(self.point.weights))
        try:
            system = self._system()
        except linalg.LinAlgError:  # numbers too large for the matrix: the points so far are all there is
            return False
        _, change = self._solve(system, here.right_sides[0], 0.0, correct=False)
        predicted: BarrierSums = self._ask(predict, change, reads=2)
        length = min(1.0, predicted.longest, *(own.barrier.longest_step() for own in self._own))
        after = here.complementarity + length * (predicted.slope + length * predicted.curvature)
        after += sum(own.barrier.complementarity_after(length) for own in self._own)
        sigma_mu = mu * (after / self._total_cost / mu) ** 3
        right = predicted.right_sides[0] + sigma_mu * predicted.right_sides[1]
        step, change = self._solve(system, right, sigma_mu, correct=True)
        longest = self._ask(correct, change, sigma_mu).longest
        # Never quite to the boundary, not even with a full step: from there no step is possible any more.
        lengths = (_BACK_OFF * own.barrier.longest_step() for own in self._own)
        length = min(1.0, _BACK_OFF * longest, *lengths)
        if not (isfinite(length) and length > 1e-14 and isfinite(step.intercept + float(step.weights.sum()))):
            return False
        for own in self._own:
            own.barrier.move(length)
        self.point = self.point.moved(step, length)
        self._linearise(length)
        return True

    @property
    def mu(self) -> float:
        """The mean product of a multiplier and its slack, per unit of cost."""
        total = self._here.complementarity + sum(own.barrier.complementarity for own in self._own)
        return total / self._total_cost

    @property
    def loss(self) -> float:
        """The loss at the current point, whatever its rounding."""
        return self._here.loss

    @property
    def state(self) -> RowState:
        """The state of rows in memory."""
        state: RowState = self._states
        return state

    @property
    def slacks(self) -> tuple[Floats, tuple[Floats, ...]]:
        """Multipliers and slacks of rows in memory and of the penalty's rows."""
        return self.state.barrier.values, tuple(own.barrier.values for own in self._own)

    def _ask(self, question: Any, *arguments: Any, reads: float = 1) -> Any:
        sums, self._states = self._rows.advance(question, self._states, *arguments, reads=reads)
        return sums

    def _linearise(self, length: float) -> None:
        wants_gram = self._rows.problem is None
        self._here: BarrierSums = self._ask(linearise, self.point, length, wants_gram, reads=3)
        self._dual: LossSums | None = None

    def _system(self) -> NewtonSystem:
        """Factorise the system with the row weights D."""
        ridge, rows = self._ridge, self._rows
        for own in self._own:
            ridge = ridge + own.ridge()
        if rows.problem is not None and self._has_rows_side:
            D = self.state.barrier.D
            return DualSystem(rows.problem.design.X, ridge, D, rows.objective.fit_intercept, self._kernel)
        gram_matrix = self._here.gram
        if gram_matrix is None:
            gram_matrix = self._ask(gram)
        return ridged_system(gram_matrix, ridge, rows.objective.fit_intercept)

    def _solve(
        self, system: NewtonSystem, right: Floats, sigma_mu: float, *, correct: bool
    ) -> tuple[Point, Point | Floats]:
        """Solve for the right-hand side of the rows: the step, and the same or multipliers of the rows.

        The whole right-hand side is X^T (y D v), less what w + a_w lacks of X^T (y alpha).
        """
        of_weights, total = (
            right[:-1] - self.point.weights - self._linear[0],
            float(right[-1]) - self._linear[1],
        )
        for own in self._own:
            right_side = own.barrier.D * own.barrier.right_side(sigma_mu, correct)
            of_weights += own.folded(own.barrier.alpha + right_side)
        if isinstance(system, DualSystem):
            dw, db, multipliers = system.solve_with_multipliers(of_weights, total)
        else:
            dw, db = system.solve(of_weights, total)
        for own in self._own:
            own.barrier.solve(own.barrier.D * own.gains(dw))
        step = Point(dw, db)
        return step, multipliers if isinstance(system, DualSystem) else step

    def _dual_sums(self) -> LossSums:
        """Return the loss at the current point, and the sums of the dual vector there."""
        if self._dual is None:
            self._dual = self._ask(dual_sums)
        assert self._dual is not None  # noqa: S101 -- it has been asked for
        return self._dual

    def dual_weights(self) -> Floats:
        """Compute X^T (y alpha) of the dual vector at the current point, made feasible."""
        if self._rows.problem is None:
            return repaired_weights(self._dual_sums(), self._rows.objective)
        self._rows.passes += 1
        return dual_weights_of(self._rows.problem, self.state.barrier.alpha)

    def certify(self, point: Point) -> Certificate:
        """Compute what a point and the dual vector at the current one prove, by vectors or by sums."""
        rows = self._rows
        if rows.problem is not None:
            rows.passes += 2
            return certificate_of(rows.problem, point, self.state.barrier.alpha)
        sums = self._dual_sums()
        bound, _ = bound_from_sums(sums, rows.objective, rows.row_scale)
        if point is not self.point:  # weights have been set to zero
            sums = rows.reduce(evaluate, point, rows.objective.loss, False)
        return Certificate(*objective_from_sums(point, sums, rows.objective, rows.row_scale), bound)


class FeatureRows:
    """Rows +-e_j with the variables that belong to them: the two sides of every kink, or the walls.

    Parameters
    ----------
    columns, signs : ndarrays
        The j and the sign of each row.
    n_features : int
    barrier : Barrier or Walls
    """

    def __init__(self, columns: Ints, signs: Floats, n_features: int, barrier: Barrier | Walls) -> None:
        self._columns, self._signs, self._n_features = columns, signs, n_features
        self.barrier = barrier

    def gains(self, weights: Floats) -> Floats:
        """Return +-w_j."""
        return np.asarray(self._signs * weights[self._columns])

    def folded(self, values: Floats) -> Floats:
        """Sum over the rows of each feature, with signs."""
        return np.bincount(self._columns, self._signs * values, self._n_features).astype(float, copy=False)

    def ridge(self) -> Floats:
        """Sum D over the rows of each feature."""
        return np.bincount(self._columns, self.barrier.D, self._n_features).astype(float, copy=False)


def penalty_rows(penalty: Penalty, weights: Floats, cost: float) -> list[FeatureRows]:
    """Return the rows of the kinks and those of the walls, as far as there are any.

    Kinks: first w_j <= xi, then -w_j <= xi. Walls: every finite bound of a weight that has room between its
    bounds; ``cost`` is that of all data rows.
    """
    found, M = [], len(weights)
    kinks, lower, upper = (
        np.broadcast_to(np.asarray(part, dtype=float), M)
        for part in (penalty.kinks, penalty.lower, penalty.upper)
    )
    chosen = np.flatnonzero(kinks)
    if len(chosen) > 0:
        columns, signs = np.tile(chosen, 2), np.repeat([-1.0, 1.0], len(chosen))
        gain = signs * weights[columns]
        # Neither side of a kink is the likelier one.
        barrier = Barrier(kinks[columns], PowerHinge(1), 0.0, gain, share=0.5)
        found.append(FeatureRows(columns, signs, M, barrier))
    below, above = (np.flatnonzero(np.isfinite(bound) & (lower < upper)) for bound in (lower, upper))
    columns, signs = np.append(below, above), np.repeat([1.0, -1.0], [len(below), len(above)])
    if len(columns) > 0:
        ends, rooms = np.append(lower[below], -upper[above]), (upper - lower)[columns]
        walls = Walls(np.full(len(columns), cost / len(columns)), ends, signs * weights[columns], rooms)
        found.append(FeatureRows(columns, signs, M, walls))
    return found


# ---------------------------------------------------------------- shrinking


def drive_shrinking(  # noqa: C901, PLR0915 -- the whole loop, in one place
    run: Run, rows: ProblemRows, sample: SampleOptimum, width: float | None = None
) -> Guess | None:
    """Solve working sets around the margin, of bounded size, until the gap is closed: the hinge, many rows.

    ``width`` is that of the next working set, where there have been some. Ends early where bounded working
    sets cannot do it (too many rows on the margin itself, say, or too many features): with a guess where it
    is Newton-CG that should go on.

    A second working set of the same width, around the margin that the first one found, usually does it. Where
    one is so narrow that its optimum is worse than where it started (at large costs nothing but the rows
    inside holds it back), the next one is made around the start again, and wider.
    """
    reduced, before = rows.objective, run.passes - rows.passes
    # Of rows in memory no more than pay, of others no more than may be fetched.
    most = int(min(rows.n_rows, rows.most_fetched))
    if rows.problem is not None:
        most = int(min(rows.n_rows, max(_LARGEST_SHARE * rows.n_rows, 2 * sample.least)))

    def certify(
        point: Point, dual: LossSums | None = None, vector: Callable[..., Floats] | None = None
    ) -> LossSums:
        """Certify a point in one pass; return the sums of alpha = c [m > 0], which is a dual vector too.

        It is the one that counts where there is no other, whose ``vector`` takes the factors of the classes.
        """
        sums: LossSums = rows.reduce(evaluate, point, reduced.loss, False)
        run.passes = before + rows.passes
        bound, factors = bound_from_sums(sums if dual is None else dual, reduced, rows.row_scale)
        certificate = Certificate(*objective_from_sums(point, sums, reduced, rows.row_scale), bound)
        if rows.problem is not None:
            vector = vector or partial(rows.reduce, dual_vector, point, reduced.loss)
            certificate = certificate._replace(dual=partial(vector, factors))
        run.take(point, certificate, is_start=not has_started)
        return sums

    def approach(point: Point, sums: LossSums) -> tuple[Point, float]:
        """Take Newton steps until few enough rows may change sides; return the point and the width."""
        if not reduced.penalty.is_smooth:
            return point, sample.width()
        point, width = sample.improved(point, sums)
        while width > sample.reach(point, most)[1] and not run.is_over:
            better, narrower = sample.improved(point, certify(point))
            if narrower > width / 2:
                break
            point, width = better, narrower
        return point, width

    def for_products(start: Point, width: float) -> Guess:
        """Return a point whose margins are off by a tenth of ``width``, as Newton-CG takes it."""
        return Guess(start, width=width_for_error(_ERROR_SHARE * width))

    if not sample.is_enough(most):
        return for_products(sample.point, sample.width() if width is None else width)
    run.state, centre, has_started = Guess(sample.point), sample.point, False
    sums, has_started = certify(centre), True
    has_moved = width is not None
    if width is None:
        centre, width = approach(centre, sums)
    for _ in range(_MOST_SETS):
        run.state = Guess(centre, width=width, method="shrinking")
        if run.is_over:
            return None
        around = centre, max(width, sample.reach(centre, most)[0]), most
        inside: WorkingSet = rows.reduce(near_margin, *around)
        if inside.is_cut and rows.problem is not None:
            return for_products(centre, width)
        gap, objective, point, is_second = run.gap, run.best_objective, centre, has_moved
        if inside.can_balance(reduced.fit_intercept):
            total_cost = float(member_costs(sample.problem).sum())
            goal = _INNER_SHARE * run.tol * min(objective, total_cost)
            point, dual, alpha = solve_inside(inside, reduced, centre, goal)
            if not reduced.penalty.is_smooth:
                point = with_exact_zeros(point, repaired_weights(dual, reduced), reduced.penalty)
            sums = certify(point, dual, partial(rows.reduce, dual_of, *around, alpha))
            if run.best_objective < objective:
                centre, has_moved = point, True
        if len(inside.shortfall) == rows.n_rows or (inside.is_cut and run.gap > gap / 2):
            return None
        if inside.is_cut:
            centre, width = approach(point, sums)
        else:
            width *= _WIDEN if is_second or not has_moved else 1.0
    return None


def solve_inside(
    inside: WorkingSet, objective: Objective, start: Point, goal: float
) -> tuple[Point, LossSums, Floats]:
    """Find the optimum with the rows outside fixed, the sums of the dual vector of ALL rows, and it inside.

    ``goal`` is the complementarity to reach.
    """
    rows, start = inside.rows, start.inside(objective.penalty)
    labelled = LabelledRows(DesignMatrix(rows.X), rows.labels, rows.weights, inside.targets)
    problem = ERMProblem(objective, labelled)
    linear = -inside.sums.weighted_sums[1], -float(inside.sums.alpha_sums[1])
    method = InteriorPoint(MemoryRows(problem), start, linear=linear)
    for _, complementarity in method.iterates():
        if complementarity <= goal:
            break
    alpha = np.clip(method.state.barrier.alpha, 0.0, member_costs(problem))
    return (
        method.point,
        inside.sums + LossSums.of_dual(rows.X, rows.labels, alpha, inside.targets),
        alpha,
    )


@dataclass(frozen=True, eq=False)
class SampleOptimum:
    """The optimum ``point`` of a sample: a ``fraction`` of the rows, weights scaled up to those of all."""

    problem: ERMProblem
    point: Point
    fraction: float

    @property
    def least(self) -> int:
        """The fewest rows of a working set: the optimum leans on as many as there are unknowns."""
        return int(_LEAST_ROWS * (self.problem.design.n_features + 1))

    def is_enough(self, most: int) -> bool:
        """Return whether the sample, and working sets of at most so many rows, suffice for the unknowns."""
        return self.problem.design.n_rows >= 4 * self.least and most >= 2 * self.least

    def improved(self, point: Point, sums: LossSums) -> tuple[Point, float]:
        """Take one Newton step for all rows; also return how far margins may still be off then.

        ``sums`` are those of alpha = c [m > 0] over all rows. Their second derivatives, costs times the
        density of the rows on the margin, come from the sample. A step without sense is not taken.
        """
        sample, descent = self.problem, sums.negative_gradient
        distance = self._distance(point)
        half = max(self.width(), nearest(distance, 4 * self.least))
        weights = np.where(distance <= half, member_costs(sample) / (2 * half), 0.0)
        gram, ridge = bordered_gram(sample.design.X, weights), np.ones(sample.design.n_features)
        try:
            system = ridged_system(gram, ridge, sample.fit_intercept)
        except linalg.LinAlgError:
            return point, self.width()
        dw, db = system.solve(descent.weights - point.weights, descent.intercept)
        size = float(np.sqrt(np.mean((sample.design.times(dw) + db) ** 2)))
        if not size <= self.width():  # nor where it is not a number
            return point, self.width()
        return point.moved(Point(dw, db), 1.0), _REST * size

    def width(self) -> float:
        """Return how far the margins of the sample's optimum may be off.

        An error in proportion to the scores, or to the margin where scores are small; but no alpha exceeds
        its cost, so small costs leave w (a sum of alphas) little room for errors.
        """
        problem, start = self.problem, self.point
        scores = problem.design.times(start.weights) + start.intercept
        spread = float(np.sqrt((problem.design.n_features + 1) / problem.design.n_rows))
        size, length = float(scores.std()), float(np.linalg.norm(start.weights))
        room = float(member_costs(problem).sum()) * (size / length) ** 2 if length > 0 else 1.0
        return _SPREAD * spread * max(min(1.0, room), size)

    def reach(self, point: Point, most: int) -> tuple[float, float]:
        """Return between which widths there are, most likely, rows enough, and not more than ``most``."""
        distance = self._distance(point)
        least, largest = (int(count * self.fraction) + 1 for count in (2 * self.least, most))
        return nearest(distance, least), nearest(distance, largest)

    def _distance(self, point: Point) -> Floats:
        scores = self.problem.design.times(point.weights) + point.intercept
        return np.abs(self.problem.rows.shortfall(scores))


def nearest(distance: Floats, count: int) -> float:
    """Return the ``count``-th smallest distance, or the largest."""
    at = min(count, len(distance)) - 1
    return float(np.partition(distance, at)[at])
