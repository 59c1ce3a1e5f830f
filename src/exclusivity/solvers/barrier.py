"""The rows of one block in the interior-point methods: multipliers, slacks and working sets.

``interior`` says what is solved, and sums these functions over the blocks of rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import NamedTuple

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.losses import MarginLoss
from exclusivity.rows.design import RowList
from exclusivity.solvers.sums import BlockOfRows, LossSums, Point, bordered_gram

# Where constraints begin.
_FIRST_SLACK = 0.5

# So much of the slope is the first multiplier of a row. Most rows end without one: the hinge takes a tenth
# fewer steps (58 sets, costs of 1e-3 to 1e4) than from a half.
_FIRST_SHARE = 0.2

# ---------------------------------------------------------------- sums over the rows of a block


class RowState(NamedTuple):
    """The state of a block between two questions: multipliers and slacks, and y (x . w + b)."""

    barrier: Barrier
    gains: Floats


@dataclass(frozen=True, eq=False)
class BarrierSums:
    """Sums over rows that a step needs; empty for what was not asked for.

    ``slope`` and ``curvature`` make the complementarity after a step of length t a parabola in t.
    ``right_sides`` holds X^T (y (alpha + D v)) and y . (alpha + D v) for sigma_mu = 0 and, from the
    predictor, in a second row how they change with sigma_mu.
    """

    total_cost: float = 0.0
    complementarity: float = 0.0
    slope: float = 0.0
    curvature: float = 0.0
    longest: float = np.inf
    loss: float = 0.0
    gram: Floats | None = None
    right_sides: Floats = dataclasses.field(default_factory=partial(np.zeros, 0))

    def __add__(self, other: BarrierSums) -> BarrierSums:
        """Return the sums over both sets of rows, and the shorter of the two longest steps."""
        return BarrierSums(
            self.total_cost + other.total_cost,
            self.complementarity + other.complementarity,
            self.slope + other.slope,
            self.curvature + other.curvature,
            min(self.longest, other.longest),
            self.loss + other.loss,
            None if self.gram is None or other.gram is None else self.gram + other.gram,
            self.right_sides + other.right_sides,
        )


def linearise(
    block: BlockOfRows, state: RowState | None, point: Point, length: float, wants_gram: bool
) -> tuple[BarrierSums, RowState]:
    """Move by ``length`` to ``point`` (at the first time: begin there), and linearise."""
    gains, goal = block.gains(point), block.problem.rows.goal()
    if state is None:
        barrier = Barrier(block.costs, block.problem.loss, goal, gains, share=_FIRST_SHARE)
    else:
        barrier = copy(state.barrier)
        barrier.move(length)
    barrier.linearise(gains)
    right_side = barrier.alpha + barrier.D * barrier.right_side(0.0, correct=False)
    sums = BarrierSums(
        total_cost=float(barrier.costs.sum()),
        complementarity=barrier.complementarity,
        loss=float(block.costs @ block.problem.loss.value(goal - gains)),
        gram=bordered_gram(block.problem.design.X, barrier.D) if wants_gram else None,
        right_sides=block.folded(right_side)[None],
    )
    return sums, RowState(barrier, gains)


def gram(block: BlockOfRows, state: RowState) -> tuple[Floats, RowState]:
    """Compute sum_i D_i z_i z_i^T."""
    return bordered_gram(block.problem.design.X, state.barrier.D), state


def predict(block: BlockOfRows, state: RowState, change: Point | Floats) -> tuple[BarrierSums, RowState]:
    """Find the predictor's directions, and the right-hand side of the corrector.

    ``change`` is that of the point, or the multipliers g of a system of the rows' side.
    """
    barrier = copy(state.barrier)
    barrier.solve(_change_of_rows(block, barrier, change))
    slope, curvature = barrier.complementarity_growth()
    second, fold = copy(barrier), block.folded
    at_zero = fold(second.alpha + second.D * second.right_side(0.0, correct=True))
    sums = BarrierSums(
        longest=barrier.longest_step(),
        slope=slope,
        curvature=curvature,
        right_sides=np.array([at_zero, fold(second.D * second.right_side_slope())]),
    )
    return sums, RowState(barrier, state.gains)


def correct(
    block: BlockOfRows, state: RowState, change: Point | Floats, sigma_mu: float
) -> tuple[BarrierSums, RowState]:
    """Find the corrector's directions; ``change`` as for the predictor."""
    barrier = copy(state.barrier)
    barrier.right_side(sigma_mu, correct=True)
    barrier.solve(_change_of_rows(block, barrier, change))
    return BarrierSums(longest=barrier.longest_step()), RowState(barrier, state.gains)


def _change_of_rows(block: BlockOfRows, barrier: Barrier, change: Point | Floats) -> Floats:
    if isinstance(change, Point):
        return np.asarray(barrier.D * block.gains(change))
    return block.problem.labels * change


def dual_sums(block: BlockOfRows, state: RowState) -> tuple[LossSums, RowState]:
    """Compute the loss at the current point, and the sums of the dual vector that the barrier holds."""
    rows, y, cost, loss = block.problem.rows, block.problem.labels, block.costs, block.problem.loss
    value = float(cost @ loss.value(rows.goal() - state.gains))
    alpha = np.clip(state.barrier.alpha, 0.0, cost * loss.largest_slope)
    conjugate = loss.conjugate(alpha, cost)
    sums = LossSums.of_dual(rows.design.rows(slice(None)), y, alpha, rows.targets)
    return dataclasses.replace(
        sums,
        loss=value,
        smoothed=value,
        conjugates=np.array([conjugate.sum(), y @ conjugate]),
        cost=float(cost.sum()),
    ), state


# ---------------------------------------------------------------- multipliers and slacks


class _Slacks:
    """Multipliers, then their slacks, as the rows of one array, and directions of all of them.

    With few rows numpy's time is that of its calls: ``values`` and ``steps`` have all numbers of every row.
    """

    values: Floats
    steps: Floats

    @property
    def alpha(self) -> Floats:
        """The multipliers of the first constraint; the dual vector."""
        return np.asarray(self.values[0])

    @property
    def complementarity(self) -> float:
        """The sum of all multipliers times their slacks, zero at the optimum."""
        return _complementarity(self.values)

    def longest_step(self) -> float:
        """Return how far all values stay non-negative."""
        if self.values.size == 0:
            return np.inf
        fastest = float((self.steps / self.values).min())  # the share that a full step takes away
        return np.inf if fastest >= 0 else -1 / fastest

    def complementarity_after(self, length: float) -> float:
        """Return what :attr:`complementarity` would be after a step of ``length``."""
        return _complementarity(self.values + length * self.steps)

    def complementarity_growth(self) -> tuple[float, float]:
        """Return its first and second order in the length of the step."""
        values, steps, half = self.values, self.steps, len(self.values) // 2
        slope = np.vdot(values[:half], steps[half:]) + np.vdot(steps[:half], values[half:])
        return float(slope), _complementarity(steps)

    def move(self, length: float) -> None:
        """Take the step; arrays handed out before stay as they are."""
        self.values = self.values + length * self.steps


def _complementarity(values: Floats) -> float:
    half = len(values) // 2
    return float(np.vdot(values[:half], values[half:]))


class Barrier(_Slacks):
    """The multipliers and slacks of a set of rows. ``gain`` is y (x . w + o b) throughout.

    ``values`` has the four numbers of every row, alpha, z, s and xi.
    """

    def __init__(
        self,
        costs: Floats,
        loss: MarginLoss,
        target: Floats | float,
        gain: Floats,
        *,
        share: float,
    ) -> None:
        self.costs, self.loss, self.target = costs, loss, target
        shortfall = target - gain
        xi = np.maximum(shortfall, 0.0) + _FIRST_SLACK
        slope = self._slope(xi)
        alpha = share * slope
        self.values = np.stack([alpha, slope - alpha, xi - shortfall, xi])
        self.steps = np.zeros_like(self.values)

    @property
    def total_cost(self) -> float:
        """Of both kinds of multipliers together."""
        return 2 * float(self.costs.sum())

    def _slope(self, xi: Floats) -> Floats:
        return self.costs if self.loss.is_hinge else np.asarray(self.costs * self.loss.slope(xi))

    def linearise(self, gain: Floats) -> None:
        """Compute residuals and the row weights D at the current point."""
        alpha, z, s, xi = self.values
        self._residual_xi = self._slope(xi) - alpha - z
        if self.loss.is_hinge:  # q = z / xi
            self._shares = 1 / self.values[:2]
        else:
            q = z / xi + self.costs * self.loss.curvature(xi)
            self._shares = np.stack([1 / alpha, 1 / (xi * q)])
        # s / alpha and 1 / q.
        self._ratios = ratios = self.values[2:] * self._shares
        self.D = 1 / (ratios[0] + ratios[1])
        # What v has of both residuals, the second being xi + gain - k - s.
        self._rest = self._residual_xi * ratios[1] + (self.target - gain) + (s - xi)

    def right_side(self, sigma_mu: float, correct: bool) -> Floats:
        """Compute the v for alpha s = z xi = c sigma_mu; ``correct`` adds the predictor's second order."""
        # What (alpha, s) and (z, xi) lack, then what s and xi have to move for it.
        moves = sigma_mu * self.costs - self.values[:2] * self.values[2:]
        if correct:
            moves -= self.steps[:2] * self.steps[2:]
        moves *= self._shares
        self._moves = moves
        self._v = moves[0] - moves[1] + self._rest
        return np.asarray(self._v)

    def right_side_slope(self) -> Floats:
        """Compute how v changes with sigma_mu: within one iteration it is a straight line."""
        return np.asarray(self.costs * (self._shares[0] - self._shares[1]))

    def solve(self, change: Floats) -> None:
        """Compute the directions of all row variables for D times a change of the gains.

        dalpha, and what it leaves of alpha + z to the other side, take s / alpha and 1 / q of themselves from
        the moves of s and xi.
        """
        self.steps = steps = np.empty_like(self.values)
        np.subtract(self.D * self._v, change, out=steps[0])
        np.subtract(self._residual_xi, steps[0], out=steps[1])
        np.subtract(self._moves, self._ratios * steps[:2], out=steps[2:])
        if not self.loss.is_hinge:  # z also takes what the slope of the loss gains
            steps[1] = self._moves[1] / self._ratios[1] - self.values[1] * steps[3] / self.values[3]


class Walls(_Slacks):
    """The multipliers and slacks of constraints gain >= end: what ``Barrier`` is at an infinite cost.

    ``values`` has alpha and s. ``costs`` only say how much of the complementarity each wall gets, and
    ``rooms`` how far away the wall opposite is.
    """

    def __init__(self, costs: Floats, ends: Floats, gain: Floats, rooms: Floats) -> None:
        self.costs, self._ends, self.total_cost = costs, ends, float(costs.sum())
        slack = np.maximum(gain - ends, np.minimum(_FIRST_SLACK, rooms / 4))
        self.values = np.stack([costs / 2, slack])
        self.steps = np.zeros_like(self.values)

    def linearise(self, gain: Floats) -> None:
        """Compute residuals and the row weights D at the current point."""
        alpha, s = self.values
        self._residual_s = gain - self._ends - s
        self.D = alpha / s

    def right_side(self, sigma_mu: float, correct: bool) -> Floats:
        """Compute the v for alpha s = c sigma_mu; ``correct`` adds the predictor's second order."""
        self._tau = sigma_mu * self.costs - self.values[0] * self.values[1]
        if correct:
            self._tau -= self.steps[0] * self.steps[1]
        self._v = self._tau / self.values[0] - self._residual_s
        return np.asarray(self._v)

    def solve(self, change: Floats) -> None:
        """Compute the directions of both for D times a change of the gains."""
        alpha, s = self.values
        d_alpha = self.D * self._v - change
        self.steps = np.stack([d_alpha, (self._tau - s * d_alpha) / alpha])


# ---------------------------------------------------------------- working sets


@dataclass(frozen=True, eq=False)
class WorkingSet:
    """The rows near the margin of a point, at most ``most`` of them, and sums over the others.

    Parameters
    ----------
    sums : LossSums
        Of the rows outside alone; their loss, too.
    rows : RowList
        The rows inside, with labels -1 and 1 and their sample weights.
    targets : ndarray or None
        Theirs.
    shortfall : ndarray
        Their m_i.
    places : ndarray of int
        Their numbers in their block.
    most : int
    cost : float
        C / kappa, by which sample weights become costs.
    is_cut : bool
        Whether rows were left outside only because they were too many.
    """

    sums: LossSums
    rows: RowList
    targets: Floats | None
    shortfall: Floats
    places: Ints
    most: int
    cost: float
    is_cut: bool = False

    def __add__(self, other: WorkingSet) -> WorkingSet:
        """Return the working set of both sets of rows."""
        return WorkingSet.combined([self, other])

    @staticmethod
    def combined(parts: Sequence[WorkingSet]) -> WorkingSet:
        """Return the working set of all sets of rows."""
        targets = [part.targets for part in parts if part.targets is not None]
        return WorkingSet(
            reduce(add, [part.sums for part in parts]),
            RowList.combined([part.rows for part in parts]),
            np.concatenate(targets) if targets else None,
            np.concatenate([part.shortfall for part in parts]),
            np.concatenate([part.places for part in parts]),
            parts[0].most,
            parts[0].cost,
            any(part.is_cut for part in parts),
        ).cut()

    def cut(self) -> WorkingSet:
        """Keep the ``most`` rows nearest to the margin; the order of the rows stays."""
        if len(self.shortfall) <= self.most:
            return self
        order = np.argsort(np.abs(self.shortfall), kind="stable")
        keep, drop = np.sort(order[: self.most]), np.sort(order[self.most :])
        rows, m, goal = self.rows, self.shortfall, self.targets
        alpha = np.where(m[drop] > 0, self.cost * rows.weights[drop], 0.0)
        dropped = LossSums.of_dual(
            rows.X[drop], rows.labels[drop], alpha, None if goal is None else goal[drop]
        )
        return WorkingSet(
            self.sums + dropped,
            rows.take(keep),
            None if goal is None else goal[keep],
            m[keep],
            self.places[keep],
            self.most,
            self.cost,
            is_cut=True,
        )

    def can_balance(self, fit_intercept: bool) -> bool:
        """Return whether the rows inside can make up for those outside in sum y alpha = 0.

        If they cannot, the problem inside has no optimum: its intercept runs away.
        """
        signed = self.cost * self.rows.labels * self.rows.weights
        needed = -float(self.sums.alpha_sums[1])
        return not fit_intercept or bool(np.minimum(signed, 0).sum() < needed < np.maximum(signed, 0).sum())


def near_margin(block: BlockOfRows, point: Point, width: float, most: int) -> WorkingSet:
    """Find the working set around the margin of a point."""
    labelled, costs = block.problem.rows, block.costs
    sums = LossSums.of_nothing(block.problem.design.n_features)
    inside, shortfalls = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    for rows, X in block.problem.design.blocks(1):
        m = labelled.shortfall(X @ point.weights + point.intercept, rows)
        near = np.flatnonzero(np.abs(m) <= width)
        alpha = np.where(m > 0, costs[rows], 0.0)
        alpha[near] = 0.0
        goal = None if labelled.targets is None else labelled.targets[rows]
        sums += LossSums.of_dual(X, labelled.labels[rows], alpha, goal)
        inside.append(rows.start + near)
        shortfalls.append(m[near])
    chosen, m = np.concatenate(inside), np.concatenate(shortfalls)
    cost, goal = block.problem.cost / block.problem.kappa, labelled.targets
    near_rows = RowList(block.problem.design.rows(chosen), labelled.labels[chosen], labelled.weights[chosen])
    goal = None if goal is None else goal[chosen]
    return WorkingSet(sums, near_rows, goal, m, chosen, most, cost).cut()


def dual_of(
    block: BlockOfRows, point: Point, width: float, most: int, alpha: Floats, factors: Floats
) -> Floats:
    """Write down the dual vector of all rows: of a working set around ``point``, with ``alpha`` inside."""
    inside = near_margin(block, point, width, most).places
    whole = np.where(block.shortfall(point) > 0, block.costs, 0.0)
    whole[inside] = alpha
    return np.asarray(whole * np.where(block.problem.labels > 0, factors[0], factors[1]))
