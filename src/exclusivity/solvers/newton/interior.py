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
D = 1 / (s / alpha + 1 / q), leaves the system of ``linear`` in (dw, db), and

    dalpha = D (v - y df),   df = X dw + o db .

10 to 25 iterations reach a relative gap of 1e-8, whatever the scales in X: each is one factorisation.

The variables that belong to single rows (``barrier``) stay with their block of rows. A step reduces three
questions over the blocks: ``linearise`` at a point, ``predict`` and ``correct``. The
right-hand side of the corrector is a straight line in mu, so that the predictor can answer for it. The Gram
matrix of the rows comes with the first question, but of rows in memory only when a step is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats
from exclusivity.objective.objective import Penalty
from exclusivity.solvers.newton.barrier import (
    BarrierSums,
    FeatureRows,
    RowState,
    correct,
    dual_sums,
    gram,
    linearise,
    penalty_rows,
    predict,
)
from exclusivity.solvers.newton.factorised import DENSE_LIMIT, DualSystem, ridged_system
from exclusivity.solvers.newton.run import Guess, NewtonSystem, ProblemRows, Run
from exclusivity.solvers.newton.sums import (
    Certificate,
    LossSums,
    Point,
    bound_from_sums,
    certificate_of,
    dense_product,
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
