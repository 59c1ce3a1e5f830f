"""Sums over rows: the loss after the adversary's best moves, and what its gradient and bounds need.

A cell is a convex combination phi_ij of two neighbouring points, f(x_i) = b + sum_j phi_ij . h, and the
adversary may replace the cell by any point that the threat allows. With the damage d_ij >= 0 that the worst
of these points does to the margin of row i, summed over the columns of a group, and T_q(d) the sum of the q
largest damages, a row costs sum_q c_iq loss(1 - s_i f(x_i) + T_q(d_i)). Both maxima have corners, which are
rounded with a width eps:

    T_q(d)     = max over 0 <= z <= 1, sum z <= q  of  z . d - eps/2 |z|^2 ,
    min_v s h_v = min over distributions u         of  u . sh + eps/2 |u|^2 .

Any feasible (z, u) are moves of the adversary, and for fixed moves the row shows psi = (1 - z) phi + z u to
an ordinary SVM. Gradient and dual bound are made of the sums of alpha_iq = c_iq loss'(.), of
alpha (1 - z) phi, and of alpha z by reached slice.

Rows are those of a row source (``exclusivity.rows``): requests go to its blocks, and the answers add up. A
block is encoded once, and the encoded rows are the state that it keeps; or in every pass, where there is no
room for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.additive.levels import Levels
from exclusivity.kernels import compiled
from exclusivity.objective.losses import Logistic, MarginLoss, PowerHinge
from exclusivity.rows.source import RowBlock

_BLOCK_CELLS = 1 << 19
_COMPILED_LOSSES = {(PowerHinge, 2.0): 0, (PowerHinge, 1.0): 1, (Logistic, None): 2}
_NEWTON_STEPS = 150


class Rows(NamedTuple):
    """Encoded rows of one class."""

    left: Ints
    """The point at the left of every cell, (n_rows, n_columns) of int32."""
    weight: Floats
    """The weight of the point to its right."""
    cost: Floats
    """The cost C of each row times its weight."""


@dataclass(frozen=True, eq=False)
class Encode:
    """Request the encoded rows of every class, which stay with the block; answer how many there are."""

    levels: Levels
    costs: Floats
    """The cost of a row of weight 1 of each class."""

    def rows(self, block: RowBlock) -> list[Rows]:
        """Return the rows of each class that cost anything."""
        cost, found = self.costs[block.codes] * block.weights, []
        for code in range(len(self.costs)):
            own = np.flatnonzero((block.codes == code) & (cost > 0))
            found.append(Rows(*self.levels.encode(block.X, own), cost[own]))
        return found

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, list[Rows]]:
        """Return the numbers of rows and their costs by class, and the weight on each point, one by one."""
        rows, n_points = self.rows(block), int(self.levels.starts[-1])
        found = np.zeros(2 * len(rows) + n_points + 1)
        for code, own in enumerate(rows):
            found[code], found[len(rows) + code] = len(own.cost), own.cost.sum()
            weight = own.cost[:, None] / self.costs[code]
            right = weight * own.weight
            found[-n_points - 1 :] += spread(own.left, weight - right, right, n_points)
        return found, rows


@dataclass(frozen=True, eq=False)
class Reach:
    """The points that the adversary can reach from a cell, as slices of the points of its column."""

    start: Ints
    stop: Ints
    """Where the slices begin and end; an empty one: the cell stays what it is."""
    of_point: Ints
    """The slice that is reached from a cell with this point at its left, and one behind the last point."""
    shifted: Bools
    """Columns where a cell between two points reaches the slice of the right one."""
    group: Ints
    """The group of each column, 0 to n_groups - 1. A group breaks as a whole."""

    def of_cells(self, left: Ints, weight: Floats) -> Ints:
        """Return the slice that each cell reaches."""
        if self.shifted.any():
            left = left + (self.shifted & (weight > 0))
        return self.of_point[left]

    @cached_property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.group.max(initial=-1)) + 1

    @cached_property
    def is_single(self) -> bool:
        """Whether every column is a group of its own."""
        return np.array_equal(self.group, np.arange(len(self.group)))

    def by_group(self, damage: Floats) -> Floats:
        """Add up the damages of the columns of each group."""
        return damage if self.is_single else np.asarray(damage @ np.eye(self.n_groups)[self.group])


class Ends(NamedTuple):
    """The worst value of every slice, and the distribution over points that attains it."""

    value: Floats
    distribution: Floats


def contributions(points: Floats, left: Ints, weight: Floats) -> Floats:
    """Return the values that cells show: mixtures of the points at their left and to the right of these."""
    padded = np.append(points, 0.0)
    found = padded[left]
    found += weight * (padded[left + 1] - found)
    return np.asarray(found)


def spread(left: Ints, at_left: Floats, at_right: Floats, n_points: int) -> Floats:
    """Add up what cells put on the points at their left and right, and on one behind the last point."""
    found = np.bincount(left.ravel(), at_left.ravel(), n_points + 1)
    return np.asarray(found + np.bincount(left.ravel() + 1, at_right.ravel(), n_points + 1)[: n_points + 1])


def smooth_ends(values: Floats, reach: Reach, eps: float) -> Ends:
    """Return min u . h + eps/2 |u|^2 over the distributions on every slice; inf where a slice is empty.

    The minimiser is the projection of -h/eps on the simplex. ``eps=0`` gives the smallest value itself.
    """
    sizes = reach.stop - reach.start
    width = int(sizes.max(initial=1))
    places = np.minimum(reach.start[:, None] + np.arange(width), len(values) - 1)
    inside = np.arange(width) < sizes[:, None]
    table = np.where(inside, values[places], np.inf)
    if eps == 0:
        best = np.argmin(table, axis=1)
        u = (np.arange(width) == best[:, None]) & inside
        return Ends(table[np.arange(len(best)), best], u.astype(float))
    scaled = np.sort(table, axis=1) / eps
    excess = np.cumsum(scaled, axis=1) + 1
    counts = np.arange(1, width + 1)
    with np.errstate(invalid="ignore"):  # inf - inf beyond the end of a slice
        n_used = np.maximum(1, (counts * scaled < excess).sum(axis=1))
    level = excess[np.arange(len(table)), n_used - 1] / n_used
    with np.errstate(invalid="ignore"):
        u = np.maximum(level[:, None] - table / eps, 0.0)
    u[~inside] = 0.0
    value = (u * np.where(inside, table, 0.0)).sum(axis=1) + eps / 2 * (u * u).sum(axis=1)
    return Ends(np.where(sizes > 0, value, np.inf), u)


def worst_sums(damage: Floats, radii: Ints) -> Floats:
    """Return T_q of every row for every q: the sum of the q largest damages."""
    most = min(int(radii.max(initial=0)), damage.shape[1])
    if most == 0:
        return np.zeros((len(damage), len(radii)))
    largest = -np.sort(np.partition(-damage, most - 1, axis=1)[:, :most], axis=1)
    sums = np.zeros((len(damage), most + 1))
    np.cumsum(largest, axis=1, out=sums[:, 1:])
    return sums[:, np.minimum(radii, most)]


def capped_selection(damage: Floats, q: int, eps: float) -> Floats:
    """Return the maximiser of z . d - eps/2 |z|^2 over 0 <= z <= 1 with sum z <= q, row by row.

    It is z = clip((d - tau) / eps, 0, 1), where tau >= 0 makes the sum q, or is 0 where the sum is less. The
    sum falls in tau and is piecewise linear: Newton's method inside a shrinking bracket finds tau.
    """
    n_groups = damage.shape[1]
    if q == 0:
        return np.zeros_like(damage)
    z = np.clip(damage / eps, 0.0, 1.0)
    rows = np.flatnonzero(z.sum(axis=1) > q)
    if len(rows) == 0 or q >= n_groups:
        return z
    d = damage[rows]
    largest = -np.partition(-d, q, axis=1)[:, : q + 1]
    following = largest[:, q]
    low = np.maximum(following - eps, 0.0)
    high = np.sort(largest, axis=1)[:, 1]  # the q-th largest: there the sum is less than q
    tau = 0.5 * (low + high)
    for step in range(1, _NEWTON_STEPS):  # every third step halves the bracket
        share = (d - tau[:, None]) / eps
        chosen = np.clip(share, 0.0, 1.0)
        surplus = chosen.sum(axis=1) - q
        if np.all(np.abs(surplus) <= 1e-12 * q):
            break
        low, high = np.where(surplus > 0, tau, low), np.where(surplus > 0, high, tau)
        slope = ((share > 0) & (share < 1)).sum(axis=1)
        newton = tau + surplus * eps / np.maximum(slope, 1)
        is_newton = (slope > 0) & (newton >= low) & (newton <= high) & (step % 3 > 0)
        tau = np.where(is_newton, newton, 0.5 * (low + high))
    chosen = np.clip((d - tau[:, None]) / eps, 0.0, 1.0)
    z[rows] = chosen * np.minimum(1.0, q / np.maximum(chosen.sum(axis=1), 1e-300))[:, None]  # feasible
    return z


@dataclass(frozen=True, eq=False)
class RobustSums:
    """Request the sums over the rows of two classes, -1 and 1, at one point.

    The answer has a row for each of both classes: the loss, the sum of the dual variables alpha and of their
    conjugates, alpha (1 - z) phi on every point (and one behind the last), and alpha z on every slice that
    is reached. With ``wants_curvature`` the second derivatives in (points, slices, intercept) follow, without
    those of the ends of slices. At ``eps=0`` there is the loss, and nothing else.
    """

    classes: tuple[int, int]
    """The numbers of the classes -1 and 1."""
    reach: Reach
    loss: MarginLoss
    radii: Ints
    """The numbers q of broken groups."""
    shares: Floats
    """The share of the loss of each of these numbers."""
    encode: Encode
    """How to encode rows where a block has not kept them."""
    points: Floats = field(default_factory=lambda: np.zeros(0))
    """The values of the points."""
    b: float = 0.0
    low: Floats = field(default_factory=lambda: np.zeros(0))
    """The worst value of each slice, seen from either class, (2, n_slices)."""
    eps: float = 0.0
    """The smoothing."""
    step: int = 1
    """Take every ``step``-th row of each class, with the costs of all."""
    wants_curvature: bool = False

    @property
    def sizes(self) -> list[int]:
        """The numbers of totals, points (and one more), slices, and second derivatives."""
        n_points, n_slices = len(self.points), len(self.reach.start)
        n_derivatives = (n_points + n_slices + 2) ** 2 if self.wants_curvature else 0
        return [3, n_points + 1, n_slices, n_derivatives]

    def parts(self, sums: Floats) -> list[Floats]:
        """Cut the sums of one class into totals, points, slices and second derivatives."""
        return np.split(sums, np.cumsum(self.sizes[:-1]))

    def answer(self, block: RowBlock, state: list[Rows] | None) -> tuple[Floats, None]:
        """See ``exclusivity.rows.Request``."""
        rows = self.encode.rows(block) if state is None else state
        found = np.zeros((2, sum(self.sizes)))
        for side, (sign, code) in enumerate(zip((-1, 1), self.classes, strict=True)):
            own = rows[code]
            if len(own.cost):
                add = self._add if compiled is None else partial(self._add_compiled, compiled)
                add(own, sign, self.low[side], found[side])
        return found, None

    def _add_compiled(self, kernels: Any, rows: Rows, sign: int, low: Floats, sums: Floats) -> None:
        totals, own, moved, hessian = self.parts(sums)
        kernels.additive_pass(
            rows.left.ravel(),
            rows.weight.ravel(),
            rows.cost,
            np.append(sign * self.points, 0.0),
            self.reach.of_point.astype(np.int32),
            low,
            self.reach.shifted.astype(np.int32),
            self.reach.group.astype(np.int32),
            self.radii.astype(np.int32),
            self.shares,
            own,
            moved,
            totals,
            hessian,
            sign * self.b,
            self.eps,
            _COMPILED_LOSSES[type(self.loss), getattr(self.loss, "p", None)],
            self.reach.n_groups,
            self.step,
        )

    def _add(self, rows: Rows, sign: int, low: Floats, sums: Floats) -> None:
        """Do the same without the compiled loop, but for second derivatives, some rows at a time."""
        factor = len(rows.cost) / len(rows.cost[:: self.step])
        size = self.step * max(1, _BLOCK_CELLS // max(1, rows.left.shape[1]))
        for start in range(0, len(rows.cost), size):
            some = slice(start, start + size, self.step)
            part = Rows(rows.left[some], rows.weight[some], factor * rows.cost[some])
            self._add_block(part, sign, low, *self.parts(sums)[:3])

    def _add_block(
        self, rows: Rows, sign: int, low: Floats, totals: Floats, own: Floats, moved: Floats
    ) -> None:
        # A cell can stay what it is: its damage is max over 0 <= t <= 1 of t delta - eps/2 t^2. Where a
        # column is a group of its own, z does that.
        (left, weight, cost), eps = rows, self.eps
        contribution = contributions(sign * self.points, left, weight)
        reached = self.reach.of_cells(left, weight)
        damage = np.maximum(contribution - low[reached], 0.0)
        share = (damage > 0).astype(float)
        if eps > 0 and not self.reach.is_single:
            share = np.minimum(damage / eps, 1.0)
            damage = share * (damage - eps / 2 * share)
        groups = self.reach.by_group(damage)
        margin = 1 - sign * self.b - contribution.sum(axis=1)
        if eps == 0:
            violation = margin[:, None] + worst_sums(groups, self.radii)
            losses = self.loss.value(violation.ravel()).reshape(violation.shape)
            totals[0] += cost @ losses @ self.shares
            return
        loss = self.loss.rounded(eps) if self.loss.has_corner else self.loss
        stays, moves = np.zeros_like(damage), np.zeros_like(damage)
        for q, part in zip(self.radii.tolist(), self.shares, strict=True):
            z = capped_selection(groups, q, eps)
            violation = margin + (z * groups).sum(axis=1) - eps / 2 * (z * z).sum(axis=1)
            found = loss.parts(violation, curvature=False)
            alpha = part * cost * found.slope
            totals += part * cost @ found.value, alpha.sum(), self.loss.conjugate(alpha, part * cost).sum()
            moving = z[:, self.reach.group] * alpha[:, None] * share
            stays += alpha[:, None] - moving
            moves += moving
        own += spread(left, (1 - weight) * stays, weight * stays, len(self.points))
        moved += np.bincount(reached.ravel(), moves.ravel(), len(moved))
