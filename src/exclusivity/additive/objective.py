"""The robust objective, its derivatives, and a lower bound of its minimum.

With the costs of rows after the adversary's best moves (``exclusivity.additive.sums``) and values h of the
levels of all columns,

    P(h, b) = 1/2 h'Qh + sum_i sum_q c_iq loss(1 - s_i f(x_i) + T_q(d_i)) .

P is convex: f is linear in (h, b), the damage d a maximum of linear functions, and T_q a maximum of sums of
those. For fixed moves of the adversary it is the objective of an ordinary SVM. So with alpha_iq = c_iq
loss'(.) and g = sum_iq s_i alpha_iq psi_iq, the dual of that SVM,

    D = sum_iq alpha_iq - sum_iq loss*_iq(alpha_iq) - 1/2 g' Q^-1 g   where   sum_iq s_i alpha_iq = 0 ,

is a lower bound of the minimum of P: the smoothed maximisers give it at no extra cost. The condition on the
sum is met by scaling the dual variables of one class down. Zero is a dual point, too, so that all of them may
be scaled down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.optimize import minimize, minimize_scalar, nnls

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.additive.levels import Levels
from exclusivity.additive.sums import Ends, RobustSums, smooth_ends
from exclusivity.kernels import compiled
from exclusivity.rows.source import Question, RowSource

_LEAST_CURVATURE = 1e-6
_LARGEST_HESSIAN = 1500


class Cut(NamedTuple):
    """A dual point, by class: the sums of dual variables, of their conjugates, and of s alpha psi."""

    alpha: Floats
    conjugate: Floats
    g: Floats


class Quadratic:
    """The penalty 1/2 h'Qh with Q = ridge I + smoothness D'D, D the differences of neighbouring knots.

    ``joined`` says of all levels but the last whether the next one is a neighbouring knot of their column.
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


@dataclass(frozen=True, eq=False)
class RobustObjective:
    """P(h, b) over the rows of two classes.

    Attributes
    ----------
    source : RowSource
        The rows.
    states : object
        The encoded rows that the blocks of the source keep; None where they keep none.
    sums : RobustSums
        What is asked about them: classes, adversary and loss.
    levels : Levels
        The columns.
    quadratic : Quadratic
        The penalty of the levels.
    n_rows : float
        The number of rows of both classes.
    costs : ndarray of shape (2,)
        The total cost of the rows of each class.
    monotone : sequence of int, default ()
        1 for columns whose curves must rise, -1 for those that must fall, 0 for others.
    """

    source: RowSource
    states: Any
    sums: RobustSums
    levels: Levels
    quadratic: Quadratic
    n_rows: float
    costs: Floats
    monotone: Sequence[int] = ()

    @cached_property
    def curves(self) -> list[tuple[int, int, int]]:
        """The knots of each monotone curve, and 1 where it rises, -1 where it falls."""
        return [
            (int(start), int(start) + len(column.knots), sign)
            for start, column, sign in zip(
                self.levels.level_starts, self.levels.columns, self.monotone, strict=False
            )
            if sign and len(column.knots) > 1
        ]

    @cached_property
    def _moves(self) -> tuple[Bools, Ints, Ints]:
        """Which entries of a table of all slices are points, which points, and where each slice ends."""
        reach = self.sums.reach
        sizes = reach.stop - reach.start
        inside = np.arange(max(1, int(sizes.max(initial=1)))) < sizes[:, None]
        return (
            inside,
            (reach.start[:, None] + np.arange(inside.shape[1]))[inside],
            np.append(0, np.cumsum(sizes)),
        )

    def variables(self) -> tuple[Any, Floats]:
        """Return variables v that suit a quasi-Newton method: the matrix of x = A v, and the lower ends of v.

        Steps between neighbouring knots are variables of monotone curves, so that their signs are all that
        has to be kept. The intercept is scaled to a curvature of about 1, whatever the cost of the rows.
        """
        matrix = sparse.eye_array(int(self.levels.level_starts[-1]) + 1, format="lil")
        matrix[-1, -1] = 1 / max(np.sqrt(2 * self.costs.sum()), _LEAST_CURVATURE)
        lower = np.full(matrix.shape[0], -np.inf)
        for start, stop, sign in self.curves:
            matrix[start:stop, start:stop] = np.tril(np.where(np.arange(stop - start) > 0, sign, 1))
            lower[start + 1 : stop] = 0.0
        return matrix.tocsr(), lower

    def thinned(self, step: int) -> RobustObjective:
        """Return the problem of every ``step``-th row of each class, with the same total cost."""
        return replace(self, sums=replace(self.sums, step=self.sums.step * step), n_rows=self.n_rows / step)

    def constant(self) -> float:
        """Return the intercept of the best constant score."""
        costs, loss = self.costs / self.costs.sum(), self.sums.loss
        most = 1.0 if loss.vanishes else abs(np.log(costs[1]) - np.log(costs[0])) + 1
        found = minimize_scalar(
            lambda b: float(costs @ loss.value(np.array([1 + b, 1 - b]))),
            bounds=(-most, most),
            method="bounded",
        )
        return float(found.x)

    def clipped(self, h: Floats, eps: float) -> Floats:
        """Return h with every column clipped at its smoothed ends, so that its worst levels tie exactly."""
        points, clipped, reach = self.levels.expand @ h, h.copy(), self.sums.reach
        low, high = (smooth_ends(sign * points, reach, eps) for sign in (1, -1))
        ends = [found.value - eps / 2 * (found.distribution**2).sum(axis=1) for found in (low, high)]
        for place, column in enumerate(self.levels.columns):
            start = int(self.levels.starts[place])
            reached = reach.of_point[start]
            if (reach.start[reached], reach.stop[reached]) == (start, start + column.n_levels):
                own = slice(*self.levels.level_starts[place : place + 2])
                a, b = ends[0][reached], -ends[1][reached]
                clipped[own] = np.clip(h[own], min(a, b), max(a, b))
        return clipped

    def _ask(
        self, points: Floats, b: float, eps: float, *, wants_curvature: bool = False
    ) -> list[tuple[int, Ends, list[Floats]]]:
        """Return the sign, the ends of slices and the sums of both classes."""
        ends = [smooth_ends(sign * points, self.sums.reach, eps) for sign in (-1, 1)]
        low = np.array([each.value for each in ends])
        request = replace(self.sums, points=points, b=b, low=low, eps=eps, wants_curvature=wants_curvature)
        total = self.source.ask([Question(request, self.states)])[0].total
        return list(zip((-1, 1), ends, map(request.parts, total), strict=True))

    def value(self, h: Floats, b: float) -> float:
        """Return P(h, b), without any smoothing."""
        loss = sum(float(parts[0][0]) for _, _, parts in self._ask(self.levels.expand @ h, b, 0.0))
        return 0.5 * float(h @ self.quadratic.times(h)) + loss

    def smoothed(self, h: Floats, b: float, eps: float) -> tuple[float, Floats, Cut]:
        """Return the smoothed objective, its gradient in (h, b), and the dual point there."""
        totals, g = [], []
        inside, places, _ = self._moves
        for sign, ends, (total, own, moved, _) in self._ask(self.levels.expand @ h, b, eps):
            broken = (moved[:, None] * ends.distribution)[inside]
            shown = own[:-1] + np.bincount(places, broken, len(own) - 1)
            g.append(sign * (self.levels.expand.T @ shown))
            totals.append(total)
        loss, alpha, conjugate = np.transpose(totals)
        cut = Cut(alpha, conjugate, np.array(g))
        slope = self.quadratic.times(h)
        gradient = np.append(slope - cut.g.sum(axis=0), alpha[0] - alpha[1])
        return 0.5 * float(h @ slope) + float(loss.sum()), gradient, cut

    @property
    def has_hessian(self) -> bool:
        """True where the second derivatives are at hand, and small enough to factorise."""
        size = int(self.levels.starts[-1]) + len(self.sums.reach.start)
        return compiled is not None and not self.curves and size <= _LARGEST_HESSIAN

    def hessian(self, h: Floats, b: float, eps: float) -> Floats:
        """Return the second derivatives of the smoothed objective in (h, b)."""
        n_levels, levels = len(h), self.levels.expand
        found = np.zeros((n_levels + 1, n_levels + 1))
        found[:-1, :-1] = self.quadratic.dense()
        inside, places, ends_of_slices = self._moves
        for _, ends, (_, own, moved, flat) in self._ask(levels @ h, b, eps, wants_curvature=True):
            upper = flat.reshape((len(own) + len(moved) + 1,) * 2)
            whole = upper + np.triu(upper, 1).T
            for number in np.flatnonzero(moved > 0).tolist():  # the curvature of the ends
                used = np.flatnonzero(ends.distribution[number] > 0)
                own_places = self.sums.reach.start[number] + used
                whole[np.ix_(own_places, own_places)] += (np.eye(len(used)) - 1 / len(used)) * (
                    moved[number] / eps
                )
            moves = (ends.distribution[inside], places, ends_of_slices)
            shown = sparse.csr_matrix(moves, (len(moved), len(own) - 1))  # all columns may be trusted
            to_levels = sparse.block_diag(
                [sparse.vstack([levels, sparse.csr_matrix((1, n_levels)), shown @ levels]), [[1.0]]],
                format="csr",
            )
            found += to_levels.T @ (to_levels.T @ whole).T
        return found

    def bound(self, cuts: Sequence[Cut]) -> float:
        """Return a lower bound of the minimum of P from the best convex combination of dual points.

        The dual function is concave, and the adversary's moves weighted by alpha form a convex set: a convex
        combination of dual points is one, and its value at least the combination of their values.
        """
        cuts = [cut for cut in cuts if np.isfinite(cut.g).all()]
        if not cuts:
            return 0.0
        # The last point is best after Newton's method, whose first points may have spoilt the combination.
        return max(self._bound_of(cuts[-1]), self._bound_of(self._combined(cuts)))

    def _bound_of(self, cut: Cut) -> float:
        """Return the dual function at a dual point, once its classes balance."""
        smaller = float(cut.alpha.min())
        if smaller <= 0:
            return 0.0
        factors, scaled = smaller / cut.alpha, self.sums.loss.scaled_conjugate
        conjugates = [scaled(*each) for each in zip(cut.conjugate, factors, strict=True)]
        slope = self._with_multipliers(factors @ cut.g)
        return max(0.0, 2 * smaller - sum(conjugates) - 0.5 * float(slope @ self.quadratic.solve(slope)))

    def _combined(self, cuts: Sequence[Cut]) -> Cut:
        """Return the combination of dual points, zero among them, that maximises the dual function."""
        alphas, conjugates, g = (np.array(terms) for terms in zip(*cuts, strict=True))
        values, balance = (alphas - conjugates).sum(axis=1), alphas[:, 1] - alphas[:, 0]
        slopes = [self._with_multipliers(each) for each in g.sum(axis=1)]
        gram = np.array(slopes) @ np.array([self.quadratic.solve(slope) for slope in slopes]).T
        scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
        found = minimize(
            lambda w: (float(0.5 * w @ gram @ w - values @ w) / scale, (gram @ w - values) / scale),
            np.full(len(cuts), 1 / len(cuts)),
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(cuts),
            constraints=[
                {"type": "ineq", "fun": lambda w: 1 - w.sum(), "jac": lambda w: -np.ones(len(w))},
                {"type": "eq", "fun": lambda w: balance @ w / scale, "jac": lambda _: balance / scale},
            ],
            options={"maxiter": 100, "ftol": 1e-10},
        )
        shares = np.clip(found.x, 0.0, None)
        shares = shares / max(1.0, shares.sum())
        return Cut(*(np.tensordot(shares, terms, 1) for terms in (alphas, conjugates, g)))

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
