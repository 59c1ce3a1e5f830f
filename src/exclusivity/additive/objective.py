"""The robust objective: the loss of rows after the adversary's best moves, its gradient, and a lower bound.

Column j has points v (knots, categories, the value of a missing cell) with values h_v. A cell is a convex
combination phi_ij of two neighbouring points, f(x_i) = b + sum_j phi_ij . h, and the adversary may replace
the cell by any point that the threat allows. With the damage d_ij >= 0 that the worst of these points does
to the margin of row i, summed over the columns of a group, and T_q(d) the sum of the q largest damages,

    P(h, b) = 1/2 h'Qh + sum_i sum_q c_iq loss(1 - s_i f(x_i) + T_q(d_i)) .

P is convex: f is linear, d is a maximum of linear functions, and T_q a maximum of sums of those. Both
maxima have corners, which are rounded with a width eps:

    T_q(d)     = max over 0 <= z <= 1, sum z <= q  of  z . d - eps/2 |z|^2 ,
    min_v s h_v = min over distributions u         of  u . sh + eps/2 |u|^2 .

Any feasible (z, u) are moves of the adversary, and for fixed moves the row shows psi = (1 - z) phi + z u to
an ordinary SVM. So with alpha_iq = c_iq loss'(.) and g = sum_iq s_i alpha_iq psi_iq, the dual of that SVM,

    D = sum_iq alpha_iq - sum_iq loss*_iq(alpha_iq) - 1/2 g' Q^-1 g   where   sum_iq s_i alpha_iq = 0 ,

is a lower bound of the minimum of P: the rounded maximisers give it at no extra cost. The condition on the
sum is met by scaling the dual variables of one class down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.optimize import minimize, minimize_scalar, nnls

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.kernels import compiled
from exclusivity.objective.losses import Logistic, MarginLoss, PowerHinge

if TYPE_CHECKING:
    from exclusivity.additive.levels import Levels

_BLOCK_CELLS = 1 << 19
_COMPILED_LOSSES = {(PowerHinge, 2.0): 0, (PowerHinge, 1.0): 1, (Logistic, None): 2}
_NEWTON_STEPS = 150
_LEAST_CURVATURE = 1e-6
_LARGEST_HESSIAN = 1500


@dataclass(frozen=True, eq=False)
class Rows:
    """Encoded rows of one class.

    Attributes
    ----------
    left : ndarray of int32 of shape (n_rows, n_columns)
        The point at the left of every cell.
    weight : ndarray of shape (n_rows, n_columns)
        The weight of the point to its right.
    cost : ndarray of shape (n_rows,)
        The cost C of each row times its weight.
    """

    left: Ints
    weight: Floats
    cost: Floats


@dataclass(frozen=True, eq=False)
class Reach:
    """The points that the adversary can reach from a cell, as slices of the points of its column.

    Attributes
    ----------
    start, stop : ndarray of int
        The slices; an empty one: the cell stays what it is.
    of_point : ndarray of int of shape (n_points + 1,)
        The slice that is reached from a cell with this point at its left.
    shifted : ndarray of bool of shape (n_columns,)
        Columns where a cell between two points reaches the slice of the right one.
    group : ndarray of int of shape (n_columns,)
        The group of each column, 0 to n_groups - 1. A group breaks as a whole.
    """

    start: Ints
    stop: Ints
    of_point: Ints
    shifted: Bools
    group: Ints

    def of_cells(self, left: Ints, weight: Floats) -> Ints:
        """Return the slice that each cell reaches."""
        if self.shifted.any():
            left = left + (self.shifted & (weight > 0))
        return self.of_point[left]

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.group.max(initial=-1)) + 1

    def by_group(self, damage: Floats) -> Floats:
        """Add up the damages of the columns of each group."""
        if np.array_equal(self.group, np.arange(damage.shape[1])):
            return damage
        found = np.zeros((len(damage), self.n_groups))
        for column, group in enumerate(self.group.tolist()):
            found[:, group] += damage[:, column]
        return found


class Ends(NamedTuple):
    """The worst value of every slice, and the distribution over points that attains it."""

    value: Floats
    distribution: Floats


@dataclass(frozen=True, eq=False)
class Cut:
    """A dual point: sums over each class of the dual variables, their conjugates and s alpha psi."""

    alpha: dict[int, float] = field(default_factory=dict)
    conjugate: dict[int, float] = field(default_factory=dict)
    g: dict[int, Floats] = field(default_factory=dict)


@dataclass(eq=False)
class Part:
    """Sums over the rows of one class: all that objective, gradient and bound need."""

    loss: float = 0.0
    alpha: float = 0.0
    conjugate: float = 0.0
    own: Floats = field(default_factory=lambda: np.zeros(0))
    moved: Floats = field(default_factory=lambda: np.zeros(0))


class Quadratic:
    """The penalty 1/2 h'Qh with Q = ridge I + smoothness D'D, D the differences of neighbouring knots.

    Parameters
    ----------
    joined : ndarray of bool of shape (n_levels - 1,)
        Whether a level and the next one are neighbouring knots of a column.
    ridge, smoothness : float
        Both parts of the penalty.
    """

    def __init__(self, joined: Bools, ridge: float, smoothness: float) -> None:
        edge = smoothness * np.r_[0.0, joined, 0.0]
        self._banded = np.array([-edge[:-1], ridge + edge[:-1] + edge[1:]])
        self._factor = cholesky_banded(self._banded)

    def dense(self) -> Floats:
        """Return Q."""
        off = self._banded[0, 1:]
        return np.asarray(np.diag(self._banded[1]) + np.diag(off, 1) + np.diag(off, -1))

    def times(self, h: Floats) -> Floats:
        """Return Qh."""
        product = self._banded[1] * h
        product[:-1] += self._banded[0, 1:] * h[1:]
        product[1:] += self._banded[0, 1:] * h[:-1]
        return np.asarray(product)

    def solve(self, g: Floats) -> Floats:
        """Return Q^-1 g."""
        return np.asarray(cho_solve_banded((self._factor, False), g))


def contributions(points: Floats, left: Ints, weight: Floats) -> Floats:
    """Return the values that cells show: mixtures of the points at their left and to the right of these."""
    padded = np.append(points, 0.0)
    found = padded[left]
    found += weight * (padded[left + 1] - found)
    return np.asarray(found)


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


class Variables:
    """Levels and intercept in variables that suit a quasi-Newton method.

    Steps between neighbouring knots are variables of monotone curves, so that signs are all that has to be
    kept. The intercept is scaled to a curvature of about 1, whatever the cost of the rows.

    Parameters
    ----------
    n_levels : int
        The number of levels.
    curves : list of (start, stop, sign)
        The knots of each monotone curve, and 1 where it rises, -1 where it falls.
    cost : float
        The total cost of the rows.
    """

    def __init__(self, n_levels: int, curves: Sequence[tuple[int, int, int]], cost: float) -> None:
        self.curves, self.scale = curves, 1 / max(np.sqrt(2 * cost), _LEAST_CURVATURE)
        lower = np.full(n_levels + 1, -np.inf)
        for start, stop, _ in curves:
            lower[start + 1 : stop] = 0.0
        self.bounds = [(low, np.inf) for low in lower] if len(curves) else None

    def to_levels(self, variables: Floats) -> Floats:
        """Return levels and intercept."""
        x = variables.copy()
        x[-1] *= self.scale
        for start, stop, sign in self.curves:
            x[start + 1 : stop] *= sign
            np.cumsum(x[start:stop], out=x[start:stop])
        return x

    def to_variables(self, x: Floats) -> Floats:
        """Return the variables of levels and intercept; steps in the wrong direction become zero."""
        variables = x.copy()
        variables[-1] /= self.scale
        for start, stop, sign in self.curves:
            variables[start + 1 : stop] = np.maximum(sign * np.diff(x[start:stop]), 0.0)
        return variables

    def gradient(self, gradient: Floats) -> Floats:
        """Return the gradient in the variables."""
        found = gradient.copy()
        found[-1] *= self.scale
        for start, stop, sign in self.curves:
            found[start:stop] = np.cumsum(gradient[start:stop][::-1])[::-1]
            found[start + 1 : stop] *= sign
        return found


class RobustObjective:
    """P(h, b) over the rows of two classes.

    Parameters
    ----------
    rows : dict of {-1: Rows, 1: Rows}
        The rows of each class.
    levels : Levels
        The columns.
    reach : Reach
        What the adversary can do.
    quadratic : Quadratic
        The penalty of the levels.
    loss : MarginLoss
        The loss of a margin violation.
    radii : ndarray of int
        The numbers q of broken groups that are trained against.
    monotone : sequence of int, default ()
        1 for columns whose curves must rise, -1 for those that must fall, 0 for others.
    shares : ndarray or None, default=None
        The share of the loss of each of these numbers; they add up to 1. None: equal shares.
    """

    def __init__(
        self,
        rows: Mapping[int, Rows],
        levels: Levels,
        reach: Reach,
        quadratic: Quadratic,
        loss: MarginLoss,
        radii: Ints,
        monotone: Sequence[int] = (),
        shares: Floats | None = None,
    ) -> None:
        self.rows, self.levels, self.reach, self.quadratic = rows, levels, reach, quadratic
        self.loss, self.radii = loss, np.asarray(radii)
        self.shares = np.full(len(self.radii), 1 / len(self.radii)) if shares is None else shares
        starts = levels.level_starts.tolist()
        knots = [len(column.knots) for column in levels.columns]
        self.curves = [
            (start, start + n_knots, sign)
            for start, n_knots, sign in zip(starts, knots, monotone, strict=False)
            if sign and n_knots > 1
        ]
        self._are_single = reach.n_groups == len(reach.group)
        sizes = reach.stop - reach.start
        self._inside = np.arange(max(1, int(sizes.max(initial=1)))) < sizes[:, None]
        self._places = (reach.start[:, None] + np.arange(self._inside.shape[1]))[self._inside]
        self._ends_of_slices = np.append(0, np.cumsum(sizes))

    def variables(self) -> Variables:
        """Return the variables to minimise over."""
        cost = sum(float(rows.cost.sum()) for rows in self.rows.values())
        return Variables(int(self.levels.level_starts[-1]), self.curves, cost)

    def thinned(self, step: int) -> RobustObjective:
        """Return the problem of every ``step``-th row of each class, with the same total cost."""
        rows = {}
        for sign, own in self.rows.items():
            cost = own.cost[::step] * (own.cost.sum() / own.cost[::step].sum())
            rows[sign] = Rows(np.ascontiguousarray(own.left[::step]), own.weight[::step].copy(), cost)
        settings = (self.levels, self.reach, self.quadratic, self.loss, self.radii)
        return RobustObjective(rows, *settings, shares=self.shares)

    def constant(self) -> float:
        """Return the intercept of the best constant score."""
        costs = {sign: float(rows.cost.sum()) for sign, rows in self.rows.items()}

        def total(b: float) -> float:
            losses = self.loss.value(np.array([1 + b, 1 - b]))
            return float(costs[-1] * losses[0] + costs[1] * losses[1]) / sum(costs.values())

        most = 1.0 if self.loss.vanishes else abs(np.log(costs[1]) - np.log(costs[-1])) + 1
        return float(minimize_scalar(total, bounds=(-most, most), method="bounded").x)

    def clipped(self, h: Floats, eps: float) -> Floats:
        """Return h with every column clipped at its smoothed ends, so that its worst levels tie exactly."""
        points, clipped = self.levels.expand @ h, h.copy()
        low, high = (smooth_ends(sign * points, self.reach, eps) for sign in (1, -1))
        ends = [found.value - eps / 2 * (found.distribution**2).sum(axis=1) for found in (low, high)]
        for place, column in enumerate(self.levels.columns):
            start = int(self.levels.starts[place])
            reached = self.reach.of_point[start]
            if (self.reach.start[reached], self.reach.stop[reached]) == (start, start + column.n_levels):
                own = slice(*self.levels.level_starts[place : place + 2])
                a, b = ends[0][reached], -ends[1][reached]
                clipped[own] = np.clip(h[own], min(a, b), max(a, b))
        return clipped

    def _cells(
        self, rows: Rows, block: slice, points: Floats, low: Floats, eps: float
    ) -> tuple[Floats, Floats, Floats, Ints]:
        """Return contributions, damages, the share of each cell that moves, and what it reaches.

        The points are seen from the class of the rows. A cell can stay what it is: the damage is
        max over 0 <= t <= 1 of t delta - eps/2 t^2. Where a column is a group of its own, z does that.
        """
        left, weight = rows.left[block], rows.weight[block]
        contribution = contributions(points, left, weight)
        reached = self.reach.of_cells(left, weight)
        damage = np.maximum(contribution - low[reached], 0.0)
        if eps == 0 or self._are_single:
            return contribution, damage, (damage > 0).astype(float), reached
        share = np.minimum(damage / eps, 1.0)
        return contribution, share * (damage - eps / 2 * share), share, reached

    def _blocks(self, rows: Rows) -> Iterator[slice]:
        step = max(1, _BLOCK_CELLS // max(1, rows.left.shape[1]))
        return (slice(start, start + step) for start in range(0, len(rows.cost), step))

    def value(self, h: Floats, b: float) -> float:
        """Return P(h, b), without any smoothing."""
        points = self.levels.expand @ h
        total = 0.5 * float(h @ self.quadratic.times(h))
        for sign, rows in self.rows.items():
            low = smooth_ends(sign * points, self.reach, 0.0).value
            for block in self._blocks(rows):
                contribution, damage, _, _ = self._cells(rows, block, sign * points, low, 0.0)
                worst = worst_sums(self.reach.by_group(damage), self.radii)
                violation = (1 - sign * b - contribution.sum(axis=1))[:, None] + worst
                losses = self.loss.value(violation.ravel()).reshape(violation.shape) @ self.shares
                total += float(losses @ rows.cost[block])
        return total

    def parts(self, points: Floats, b: float, sign: int, ends: Ends, eps: float) -> Part:
        """Return the sums over the rows of one class at the smoothed moves of the adversary."""
        rows, n_points, n_slices = self.rows[sign], len(points), len(self.reach.start)
        total = Part(own=np.zeros(n_points + 1), moved=np.zeros(n_slices))
        if compiled is not None:
            self._compiled_pass(compiled, rows, sign * points, sign * b, ends.value, eps, total)
            return total
        loss = self.loss.rounded(eps) if self.loss.has_corner else self.loss
        for block in self._blocks(rows):
            left, weight = rows.left[block], rows.weight[block]
            contribution, damage, share, reached = self._cells(rows, block, sign * points, ends.value, eps)
            groups = self.reach.by_group(damage)
            margin = 1 - sign * b - contribution.sum(axis=1)
            own = np.zeros_like(damage)
            moved = np.zeros_like(damage)
            for q, part in zip(self.radii.tolist(), self.shares, strict=True):
                cost = part * rows.cost[block]
                z = capped_selection(groups, q, eps)
                violation = margin + (z * groups).sum(axis=1) - eps / 2 * (z * z).sum(axis=1)
                found = loss.parts(violation, curvature=False)
                alpha = cost * found.slope
                total.loss += float(cost @ found.value)
                total.alpha += float(alpha.sum())
                total.conjugate += float(self.loss.conjugate(alpha, cost).sum())
                shares = z[:, self.reach.group] * alpha[:, None] * share
                own += alpha[:, None] - shares
                moved += shares
            total.own += np.bincount(left.ravel(), ((1 - weight) * own).ravel(), n_points + 1)
            total.own += np.bincount(left.ravel() + 1, (weight * own).ravel(), n_points + 1)
            total.moved += np.bincount(reached.ravel(), moved.ravel(), n_slices)
        return total

    def _compiled_pass(
        self,
        kernels: Any,
        rows: Rows,
        points: Floats,
        b: float,
        low: Floats,
        eps: float,
        total: Part,
        hessian: Floats | None = None,
    ) -> None:
        """Do the same as ``parts`` in one compiled loop, and add up the curvature where it is wanted."""
        totals, reach = np.zeros(3), self.reach
        kernels.additive_pass(
            rows.left.ravel(),
            rows.weight.ravel(),
            rows.cost,
            np.append(points, 0.0),
            reach.of_point.astype(np.int32),
            low,
            reach.shifted.astype(np.int32),
            reach.group.astype(np.int32),
            self.radii.astype(np.int32),
            self.shares,
            total.own,
            total.moved,
            totals,
            np.empty(0) if hessian is None else hessian.ravel(),
            b,
            eps,
            _COMPILED_LOSSES[type(self.loss), getattr(self.loss, "p", None)],
            reach.n_groups,
        )
        total.loss, total.alpha, total.conjugate = totals.tolist()

    @property
    def has_hessian(self) -> bool:
        """True where the second derivatives are at hand, and small enough to factorise."""
        size = int(self.levels.starts[-1]) + len(self.reach.start)
        return compiled is not None and not self.curves and size <= _LARGEST_HESSIAN

    def hessian(self, h: Floats, b: float, eps: float) -> Floats:
        """Return the second derivatives of the smoothed objective in (h, b)."""
        points, n_levels = self.levels.expand @ h, len(h)
        n_points, n_slices = len(points), len(self.reach.start)
        found = np.zeros((n_levels + 1, n_levels + 1))
        found[:-1, :-1] = self.quadratic.dense()
        for sign, own in self.rows.items():
            ends = smooth_ends(sign * points, self.reach, eps)
            part = Part(own=np.zeros(n_points + 1), moved=np.zeros(n_slices))
            upper = np.zeros((n_points + n_slices + 2,) * 2)
            self._compiled_pass(compiled, own, sign * points, sign * b, ends.value, eps, part, upper)
            whole = upper + np.triu(upper, 1).T
            self._add_curvature_of_ends(whole, ends, part.moved, eps)
            shape = (n_slices, n_points)  # all columns may be trusted
            moves = (ends.distribution[self._inside], self._places, self._ends_of_slices)
            shown = sparse.csr_matrix(moves, shape)
            levels = self.levels.expand
            to_levels = sparse.block_diag(
                [sparse.vstack([levels, sparse.csr_matrix((1, n_levels)), shown @ levels]), [[1.0]]],
                format="csr",
            )
            found += to_levels.T @ (to_levels.T @ whole).T
        return found

    def _add_curvature_of_ends(self, whole: Floats, ends: Ends, moved: Floats, eps: float) -> None:
        """Add the second derivatives of the smoothed worst values, weighted by what moves there."""
        for number in np.flatnonzero(moved > 0).tolist():
            used = np.flatnonzero(ends.distribution[number] > 0)
            places = self.reach.start[number] + used
            block = (np.eye(len(used)) - 1 / len(used)) * (moved[number] / eps)
            whole[np.ix_(places, places)] += block

    def _gradient_of(self, part: Part, ends: Ends, sign: int) -> Floats:
        """Return s sum alpha psi, in terms of the levels."""
        g = part.own[:-1].copy()
        g += np.bincount(self._places, (part.moved[:, None] * ends.distribution)[self._inside], len(g))
        return np.asarray(sign * (self.levels.expand.T @ g))

    def smoothed(self, h: Floats, b: float, eps: float) -> tuple[float, Floats, Cut]:
        """Return the smoothed objective, its gradient in (h, b), and the dual point there."""
        points = self.levels.expand @ h
        value, cut = 0.5 * float(h @ self.quadratic.times(h)), Cut()
        for sign in self.rows:
            ends = smooth_ends(sign * points, self.reach, eps)
            part = self.parts(points, b, sign, ends, eps)
            value += part.loss
            cut.alpha[sign], cut.conjugate[sign] = part.alpha, part.conjugate
            cut.g[sign] = self._gradient_of(part, ends, sign)
        gradient = self.quadratic.times(h) - cut.g[1] - cut.g[-1]
        return value, np.append(gradient, cut.alpha[-1] - cut.alpha[1]), cut

    def bound(self, cuts: Sequence[Cut]) -> float:
        """Return a lower bound of the minimum of P from the best convex combination of dual points.

        The dual function is concave, and the adversary's moves weighted by alpha form a convex set: a convex
        combination of dual points is one, and its value at least the combination of their values.
        """
        cuts = [cut for cut in cuts if all(np.isfinite(g).all() for g in cut.g.values())]
        if not cuts:
            return 0.0
        # The last point is best after Newton's method, whose first points may have spoilt the combination.
        last = np.arange(len(cuts)) == len(cuts) - 1
        return max(self._bound_of(cuts, shares) for shares in (last.astype(float), self._best_shares(cuts)))

    def _bound_of(self, cuts: Sequence[Cut], shares: Floats) -> float:
        """Return the dual function at a convex combination of dual points, once its classes balance."""
        alpha, conjugate, g = (
            {sign: sum(w * each[sign] for w, each in zip(shares, terms, strict=True)) for sign in (-1, 1)}
            for terms in zip(*((cut.alpha, cut.conjugate, cut.g) for cut in cuts), strict=True)
        )
        smaller = min(alpha.values())
        if smaller <= 0:
            return 0.0
        total, slope = 0.0, np.zeros(0)
        for sign in (-1, 1):
            factor = smaller / alpha[sign]
            total += smaller - self.loss.scaled_conjugate(conjugate[sign], factor)
            slope = factor * g[sign] if sign < 0 else slope + factor * g[sign]
        slope = self._with_multipliers(slope)
        return max(0.0, total - 0.5 * float(slope @ self.quadratic.solve(slope)))

    def _best_shares(self, cuts: Sequence[Cut]) -> Floats:
        """Maximise the dual function over combinations of dual points whose classes balance."""
        if len(cuts) == 1:
            return np.ones(1)
        values = np.array([sum(cut.alpha.values()) - sum(cut.conjugate.values()) for cut in cuts])
        balance = np.array([cut.alpha[1] - cut.alpha[-1] for cut in cuts])
        slopes = [self._with_multipliers(cut.g[-1] + cut.g[1]) for cut in cuts]
        gram = np.array(slopes) @ np.array([self.quadratic.solve(slope) for slope in slopes]).T
        scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
        found = minimize(
            lambda w: (float(0.5 * w @ gram @ w - values @ w) / scale, (gram @ w - values) / scale),
            np.full(len(cuts), 1 / len(cuts)),
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(cuts),
            constraints=[
                {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(len(w))},
                {"type": "eq", "fun": lambda w: balance @ w / scale, "jac": lambda _: balance / scale},
            ],
            options={"maxiter": 100, "ftol": 1e-10},
        )
        shares = np.clip(found.x, 0.0, None)
        return np.asarray(shares / shares.sum()) if shares.sum() > 0 else np.eye(len(cuts))[-1]

    def _with_multipliers(self, g: Floats) -> Floats:
        """Return g + A'lambda for the multipliers lambda >= 0 of monotone curves that make the bound largest.

        With Q = LL' the bound loses |L^-1 (g + A'lambda)|^2 / 2: a non-negative least squares problem for
        each curve. Any lambda >= 0 gives a valid bound.
        """
        g = g.copy()
        for start, stop, sign in self.curves:
            unit = np.zeros(len(g))
            steps = sign * np.diff(np.eye(stop - start), axis=0).T
            block = np.empty((stop - start, stop - start))
            for column in range(stop - start):
                unit[start + column] = 1.0
                block[:, column] = self.quadratic.solve(unit)[start:stop]
                unit[start + column] = 0.0
            root = np.linalg.cholesky(block).T
            multipliers, _ = nnls(root @ steps, -root @ g[start:stop])
            g[start:stop] += steps @ multipliers
        return g
