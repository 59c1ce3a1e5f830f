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
questions over the blocks: ``arrive`` at a point and linearise there, and ``turn`` to the predictor and to the
corrector. Where an answer has a way to go, ``arrive`` gives all sums at once, and the turn to the predictor
also the corrector's right-hand side, which is a straight line in mu; of rows in memory each sum is computed
when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats, Ints
from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.penalties import Penalty
from exclusivity.solvers.newton.barrier import (
    FIRST_SLACK,
    Barrier,
    BarrierSums,
    RowState,
    arrive,
    correct,
    dual_sums,
    linearise,
    longest_step,
    rough_loss,
    turn,
)
from exclusivity.solvers.newton.linear import (
    DENSE_LIMIT,
    DualSystem,
    NewtonSystem,
    dense_product,
    ridged_system,
)
from exclusivity.solvers.newton.run import (
    Certificate,
    Guess,
    LossSums,
    Point,
    Run,
    bound_from_sums,
    certificate_of,
    dual_weights_of,
    objective_from_sums,
    repaired_weights,
)
from exclusivity.solvers.newton.source import ProblemRows

_MAX_ITER = 200
_BACK_OFF = 0.995
_STIFF = 1e100
# A gap that is about so many times the tolerance is not worth a proof.
_FAR = 10.0


def drive_interior(run: Run, rows: ProblemRows, guess: Guess) -> None:
    """Interior-point iterates, the near ones certified, until the run is over or rounding allows no step."""
    penalty, start, before = rows.objective.penalty, guess.point.inside(rows.objective.penalty), run.passes
    passes, slacks = rows.passes, guess.slacks or (None, ())
    data = RowsSide(rows, start, slacks[0])
    method = InteriorPoint(data, penalty, rows.objective.fit_intercept, start, slacks[1])
    n_steps, complementarity, is_proven, is_start_proven = 0, 0.0, True, True

    def take(point: Point, **record: Any) -> None:
        """Let the run take the point with its certificate; weights that should be zero are."""
        if not penalty.is_smooth:
            point = with_exact_zeros(point, data.dual_weights(), penalty)
        certificate = data.certify(point)
        run.passes = before + rows.passes - passes
        run.take(point, certificate, **record)

    for n_steps, (point, complementarity) in enumerate(method.iterates()):
        is_start = n_steps == 0
        run.passes = before + rows.passes - passes
        is_proven = not _passes_by(run, data, penalty, point, complementarity, is_start=is_start)
        is_start_proven = is_proven if is_start else is_start_proven
        if is_proven:
            take(point, mu=complementarity, is_start=is_start)
        if run.is_over:
            break
    if not is_proven and n_steps > 0:  # the last one is all there is
        take(method.point, mu=complementarity, amends=True)
    if not is_start_proven and not run.is_over:  # and may be worse than where it began
        take(start, is_start=True)
    if rows.problem is not None:
        of_rows = data.local_state.barrier.values
        run.state = Guess(method.point, method="interior", slacks=(of_rows, method.penalty_slacks))


def _passes_by(
    run: Run, data: RowsSide, penalty: Penalty, point: Point, complementarity: float, *, is_start: bool
) -> bool:
    """Whether the point is too far from the optimum for a proof; a step is reported to the run then."""
    if not penalty.is_smooth or not run.may_go_on:
        return False
    objective = penalty.value(point.weights) + data.rough_loss()
    # At points that satisfy all equations the complementarity is the gap.
    if not complementarity > _FAR * run.tol * objective:
        return False
    if not is_start:
        run.pass_by(point, objective, mu=complementarity)
    return True


def with_exact_zeros(point: Point, dual_weights: Floats, penalty: Penalty) -> Point:
    """The point with the weights that u = X^T (y alpha) calls zero, or puts at a bound, exactly there.

    At the optimum w attains the penalty's conjugate at u; an interior point only comes close to that.
    """
    return Point(penalty.settled(point.weights, dual_weights), point.intercept)


class InteriorPoint:
    """The iterates, ever closer to the optimum.

    Parameters
    ----------
    data : RowsSide
        The data rows.
    penalty : Penalty
    fit_intercept : bool
    start : Point
        Where the rows' side is, and within the bounds.
    slacks : sequence of ndarrays or None
        Multipliers and slacks of the penalty's rows, to continue from; those of the data are its own.
    """

    def __init__(
        self,
        data: RowsSide,
        penalty: Penalty,
        fit_intercept: bool,
        start: Point,
        slacks: Sequence[Floats] | None = None,
    ) -> None:
        self.data, self.fit_intercept = data, fit_intercept
        self.own: list[FeatureRows] = []
        if not penalty.is_smooth:
            kinks = FeatureRows.of_kinks(penalty, start.weights)
            walls = FeatureRows.of_walls(penalty, start.weights, data.total_cost)
            self.own = [rows for rows in (kinks, walls) if rows is not None]
        for rows, values in zip(self.own, slacks or (), strict=False):
            rows.barrier.values = values
        # A weight between equal bounds stays where it is: in the system it is as good as infinitely stiff.
        is_given = np.equal(penalty.lower, penalty.upper)
        self._ridge = np.where(is_given, _STIFF, np.ones(data.n_features))
        self.barriers = [data, *(rows.barrier for rows in self.own)]
        # Row i is led to c_i mu, so that a row of weight 2 behaves like two rows in every iterate.
        self.total_cost = 2 * data.total_cost + sum(rows.barrier.total_cost for rows in self.own)

    def iterates(self) -> Iterator[tuple[Point, float]]:
        """Points and total complementarity."""
        for _ in range(_MAX_ITER):
            yield self.point, self.mu * self.total_cost
            if not self.step():
                return

    @property
    def point(self) -> Point:
        """The last one."""
        return self.data.point

    @property
    def penalty_slacks(self) -> tuple[Floats, ...]:
        """Multipliers and slacks of the penalty's rows."""
        return tuple(rows.barrier.values for rows in self.own)

    @property
    def mu(self) -> float:
        """The mean product of a multiplier and its slack, per unit of cost."""
        return sum(barrier.complementarity for barrier in self.barriers) / self.total_cost

    def _system(self) -> NewtonSystem:
        ridge = self._ridge
        for rows in self.own:
            ridge = ridge + rows.ridge()
        return self.data.system(ridge, self.fit_intercept)

    def _turn(self, system: NewtonSystem, sigma_mu: float, correct: bool) -> tuple[Floats, float]:
        """Directions of all variables for one right-hand side."""
        right, total = self.data.right_side(sigma_mu, correct)
        for rows in self.own:
            right += rows.folded(rows.barrier.D * rows.barrier.right_side(sigma_mu, correct))
        right -= self._residual_w
        dw, db = self.data.turn(system, right, total - self._residual_b, correct)
        for rows in self.own:
            rows.barrier.turn(rows.barrier.D * rows.gains(dw))
        return dw, db

    def step(self) -> bool:
        """One predictor-corrector step; False when none is possible any more."""
        point, mu = self.point, self.mu
        if not 0 < mu < inf:
            return False
        dual_weights, balance = self.data.linearise()
        for rows in self.own:
            rows.barrier.linearise(rows.gains(point.weights))
            dual_weights += rows.folded(rows.barrier.alpha)
        self._residual_w, self._residual_b = point.weights - dual_weights, -balance
        try:
            system = self._system()
        except linalg.LinAlgError:  # numbers too large for the matrix: the points so far are all there is
            return False
        self._turn(system, 0.0, correct=False)
        length = min(1.0, *(barrier.longest_step() for barrier in self.barriers))
        after = sum(barrier.complementarity_after(length) for barrier in self.barriers) / self.total_cost
        dw, db = self._turn(system, mu * (after / mu) ** 3, correct=True)
        # Never quite to the boundary, not even with a full step: from there no step is possible any more.
        length = min(1.0, *(_BACK_OFF * barrier.longest_step() for barrier in self.barriers))
        if not (isfinite(length) and length > 1e-14 and isfinite(db + float(dw.sum()))):
            return False
        for barrier in self.barriers:
            barrier.move(length)
        return True


class RowsSide:
    """The data rows of an interior point, on the smaller side of the system.

    Parameters
    ----------
    rows : ProblemRows
    start : Point
    slacks : ndarray or None
        Multipliers and slacks of rows in memory, to continue from.
    linear : pair of ndarray and float
        The linear term (a_w, a_b).
    """

    def __init__(
        self,
        rows: ProblemRows,
        start: Point,
        slacks: Floats | None = None,
        linear: tuple[Floats | float, float] = (0.0, 0.0),
    ) -> None:
        self._rows, self.point, self._linear = rows, start, linear
        self.n_features = M = rows.n_features
        self._at_once, self._kernel = rows.problem is None, None
        self._has_rows_side = False
        if rows.problem is not None:
            # With a penalty most weights end at zero. The rows' side then loses rank where D has no bound,
            # that is, where the loss has a corner; the features' side does not.
            has_penalty = not rows.objective.penalty.is_smooth
            loses_rank = has_penalty and rows.objective.loss.has_corner and M <= DENSE_LIMIT
            self._has_rows_side = rows.n_rows < M and not loses_rank
            if self._has_rows_side and not has_penalty:
                self._kernel = dense_product(rows.problem.design.X, np.ones(M))
        self._step: Point = start
        self._states: Any = None
        self._sigma_mu: float | None = None
        self._dual: LossSums | None = None
        self._arrive(0.0)
        self.total_cost = self._here.total_cost
        if slacks is not None:
            self.local_state.barrier.values = slacks
            self._here.complementarity = self.local_state.barrier.complementarity

    def _ask(self, question: Any, *arguments: Any, reads: float = 1) -> Any:
        sums, self._states = self._rows.advance(question, self._states, *arguments, reads=reads)
        return sums

    def _arrive(self, length: float) -> None:
        self._here: BarrierSums = self._ask(arrive, self.point, length, self._at_once)
        self._dual = None

    @property
    def local_state(self) -> RowState:
        """That of rows in memory."""
        state: RowState = self._states
        return state

    @property
    def complementarity(self) -> float:
        """The sum alpha . s + z . xi at the current point."""
        return self._here.complementarity

    def rough_loss(self) -> float:
        """The loss at the current point, whatever its rounding."""
        if self._here.loss is None:
            self._here.loss = self._ask(rough_loss, reads=0)
        return float(self._here.loss)

    def linearise(self) -> tuple[Floats, float]:
        """X^T (y alpha) and y . alpha, minus what is linear for sure; residuals and D are noted."""
        sums = self._here
        if sums.dual_weights is None:
            sums = self._ask(linearise, not self._has_rows_side, reads=2 + (not self._has_rows_side))
        self._linearised = sums
        assert sums.dual_weights is not None  # noqa: S101 -- linearising gives it
        return sums.dual_weights[:-1] - self._linear[0], float(sums.dual_weights[-1]) - self._linear[1]

    def system(self, ridge: Floats, fit_intercept: bool) -> NewtonSystem:
        """The factorised system with the row weights D."""
        gram = self._linearised.gram
        if gram is not None:
            return ridged_system(gram, ridge, fit_intercept)
        assert self._rows.problem is not None  # noqa: S101 -- only then there is a rows' side
        D = self.local_state.barrier.D
        return DualSystem(self._rows.problem.design.X, ridge, D, fit_intercept, self._kernel)

    def right_side(self, sigma_mu: float, is_corrector: bool) -> tuple[Floats, float]:
        """X^T (y D v) and y . D v for the v of ``Barrier.right_side``."""
        if not is_corrector:
            line = self._linearised.right_sides
        elif self._turned.right_sides is not None:
            line = self._turned.right_sides[:1] + sigma_mu * self._turned.right_sides[1]
            self._sigma_mu = sigma_mu
        else:
            line = self._ask(correct, sigma_mu).right_sides
        assert line is not None  # noqa: S101 -- linearising gives it
        return line[0, :-1], float(line[0, -1])

    def turn(
        self, system: NewtonSystem, right: Floats, total: float, is_corrector: bool
    ) -> tuple[Floats, float]:
        """(dw, db), with the directions of all row variables noted."""
        change: Point | Floats
        if isinstance(system, DualSystem):
            dw, db, change = system.solve_with_multipliers(right, total)
            self._step = Point(dw, db)
        else:
            dw, db = system.solve(right, total)
            self._step = change = Point(dw, db)
        sigma_mu, self._sigma_mu = self._sigma_mu, None
        self._turned: BarrierSums = self._ask(turn, change, sigma_mu, not is_corrector, self._at_once)
        return dw, db

    def longest_step(self) -> float:
        """How far all row variables stay non-negative."""
        return self._turned.longest

    def complementarity_after(self, length: float) -> float:
        """What the complementarity would be after a step of ``length``."""
        sums = self._turned
        return self.complementarity + length * (sums.slope + length * sums.curvature)

    def move(self, length: float) -> None:
        """Take the step, the point's own included."""
        self.point = self.point.moved(self._step, length)
        self._arrive(length)

    def _dual_sums(self) -> LossSums:
        """The loss at the current point, and the sums of the dual vector there."""
        if self._dual is None:
            self._dual = self._ask(dual_sums)
        assert self._dual is not None  # noqa: S101 -- it has been asked for
        return self._dual

    def dual_weights(self) -> Floats:
        """X^T (y alpha) of the dual vector at the current point, made feasible."""
        if self._rows.problem is None:
            return repaired_weights(self._dual_sums(), self._rows.objective)
        self._rows.passes += 1
        return dual_weights_of(self._rows.problem, self.local_state.barrier.alpha)

    def certify(self, point: Point) -> Certificate:
        """What a point and the dual vector at the current one prove, by vectors or by sums."""
        rows = self._rows
        if rows.problem is not None:
            rows.passes += 2
            return certificate_of(rows.problem, point, self.local_state.barrier.alpha)
        sums = self._dual_sums()
        bound, _ = bound_from_sums(sums, rows.objective, rows.row_scale)
        if point is not self.point:  # weights have been set to zero
            sums = rows.evaluate(point, rows.objective.loss, curvature=False)
        return Certificate(*objective_from_sums(point, sums, rows.objective, rows.row_scale), bound)


class Walls:
    """The multipliers and slacks of constraints gain >= end: what ``Barrier`` is at an infinite cost.

    ``values`` has alpha and s. ``costs`` only say how much of the complementarity each wall gets, and
    ``rooms`` how far away the wall opposite is.
    """

    def __init__(self, costs: Floats, ends: Floats, gain: Floats, rooms: Floats) -> None:
        self.costs, self._ends, self.total_cost = costs, ends, float(costs.sum())
        slack = np.maximum(gain - ends, np.minimum(FIRST_SLACK, rooms / 4))
        self.values = np.stack([costs / 2, slack])
        self.steps = np.zeros_like(self.values)

    @property
    def alpha(self) -> Floats:
        """The multipliers."""
        return np.asarray(self.values[0])

    @property
    def complementarity(self) -> float:
        """The sum alpha . s, zero at the optimum."""
        return float(self.values[0] @ self.values[1])

    def linearise(self, gain: Floats) -> None:
        """Residuals and the row weights D at the current point."""
        alpha, s = self.values
        self._residual_s = gain - self._ends - s
        self.D = alpha / s

    def right_side(self, sigma_mu: float, correct: bool) -> Floats:
        """The v that leads to alpha s = c sigma_mu; ``correct`` adds the predictor's second order."""
        self._tau = sigma_mu * self.costs - self.values[0] * self.values[1]
        if correct:
            self._tau -= self.steps[0] * self.steps[1]
        self._v = self._tau / self.values[0] - self._residual_s
        return np.asarray(self._v)

    def turn(self, change: Floats) -> None:
        """The directions of both for D times a change of the gains."""
        alpha, s = self.values
        d_alpha = self.D * self._v - change
        self.steps = np.stack([d_alpha, (self._tau - s * d_alpha) / alpha])

    def longest_step(self) -> float:
        """How far both stay non-negative."""
        return longest_step(self.values, self.steps)

    def complementarity_after(self, length: float) -> float:
        """What :attr:`complementarity` would be after a step of ``length``."""
        alpha, s = self.values + length * self.steps
        return float(alpha @ s)

    def move(self, length: float) -> None:
        """Take the step; arrays handed out before stay as they are."""
        self.values = self.values + length * self.steps


class FeatureRows:
    """Rows +-e_j with the variables that belong to them: the two sides of every kink, or the walls.

    Parameters
    ----------
    columns, signs : ndarrays
        The j and the sign of each row.
    barrier : Barrier or Walls
    """

    def __init__(self, columns: Ints, signs: Floats, n_features: int, barrier: Barrier | Walls) -> None:
        self._columns, self._signs, self._n_features = columns, signs, n_features
        self.barrier = barrier

    @classmethod
    def of_kinks(cls, penalty: Penalty, weights: Floats) -> FeatureRows | None:
        """First w_j <= xi, then -w_j <= xi; None without kinks."""
        kinks = np.broadcast_to(np.asarray(penalty.kinks, dtype=float), len(weights))
        chosen = np.flatnonzero(kinks)
        if len(chosen) == 0:
            return None
        columns, signs = np.tile(chosen, 2), np.repeat([-1.0, 1.0], len(chosen))
        gain = signs * weights[columns]
        # Neither side of a kink is the likelier one.
        barrier = Barrier(kinks[columns], PowerHinge(1), 0.0, gain, share=0.5)
        return cls(columns, signs, len(weights), barrier)

    @classmethod
    def of_walls(cls, penalty: Penalty, weights: Floats, cost: float) -> FeatureRows | None:
        """Every finite bound of a weight that has room between its bounds; ``cost`` is that of all rows."""
        lower, upper = (
            np.broadcast_to(np.asarray(bound, dtype=float), len(weights))
            for bound in (penalty.lower, penalty.upper)
        )
        below, above = (np.flatnonzero(np.isfinite(bound) & (lower < upper)) for bound in (lower, upper))
        columns, signs = np.append(below, above), np.repeat([1.0, -1.0], [len(below), len(above)])
        if len(columns) == 0:
            return None
        ends = np.append(lower[below], -upper[above])
        rooms = (upper - lower)[columns]
        barrier = Walls(np.full(len(columns), cost / len(columns)), ends, signs * weights[columns], rooms)
        return cls(columns, signs, len(weights), barrier)

    def gains(self, weights: Floats) -> Floats:
        """+-w_j."""
        return np.asarray(self._signs * weights[self._columns])

    def folded(self, values: Floats) -> Floats:
        """Their sum over the rows of each feature, with signs."""
        return np.bincount(self._columns, self._signs * values, self._n_features).astype(float, copy=False)

    def ridge(self) -> Floats:
        """The sum of D over the rows of each feature."""
        return np.bincount(self._columns, self.barrier.D, self._n_features).astype(float, copy=False)
