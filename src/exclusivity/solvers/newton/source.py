"""Rows as the Newton solver sees them: only through sums over blocks of rows.

A source answers a few questions about the loss of a linear model; where the rows live is its own business.
``BlockSource`` reads a dense or CSR matrix in memory, block by block, each block once per question.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from exclusivity.problem import CurvedLoss, ERMProblem, RowScale, member_costs
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.solvers.newton.curvature import ActiveGram, bordered_gram

# From sums of v and of y v to sums over the rows with y = 1 and with y = -1.
_HALVES: Floats = np.array([[0.5, 0.5], [0.5, -0.5]])


@dataclass(frozen=True, eq=False)
class Point:
    """Weights and intercept of one linear model, or a step between two."""

    weights: Floats
    intercept: float

    def moved(self, step: Point, length: float) -> Point:
        """The point plus ``length`` times ``step``."""
        return Point(self.weights + length * step.weights, self.intercept + length * step.intercept)


@dataclass(frozen=True, eq=False)
class LossSums:
    """Sums over rows at one point, alpha_i = c_i phi'(m_i) being the dual vector it suggests.

    ``pulls`` (2 x M), ``masses`` and ``conjugates`` (2 each) hold sums of v_i and of y_i v_i for
    v_i = alpha_i x_i, alpha_i and the loss's conjugate: half their sum belongs to the positive class, half
    their difference to the negative one. Repairing the dual vector needs them apart. ``cost`` is the sum of
    the costs of the rows whose loss this is, and ``n_terms`` the longest chain of additions behind any sum:
    what rounding errors depend on.
    """

    loss: float
    smoothed: float
    pulls: Floats
    masses: Floats
    conjugates: Floats
    curvature: Floats | None
    cost: float
    n_terms: float

    def __add__(self, other: LossSums) -> LossSums:
        """The sums over both sets of rows."""
        has_curvature = self.curvature is not None and other.curvature is not None
        return LossSums(
            self.loss + other.loss,
            self.smoothed + other.smoothed,
            self.pulls + other.pulls,
            self.masses + other.masses,
            self.conjugates + other.conjugates,
            self.curvature + other.curvature if has_curvature else None,  # type: ignore[operator]
            self.cost + other.cost,
            max(self.n_terms, other.n_terms) + 1,
        )

    def times(self, factor: float) -> LossSums:
        """The sums with all costs multiplied by ``factor``."""
        return LossSums(
            factor * self.loss,
            factor * self.smoothed,
            factor * self.pulls,
            factor * self.masses,
            factor * self.conjugates,
            None if self.curvature is None else factor * self.curvature,
            factor * self.cost,
            self.n_terms + 1,
        )

    @property
    def pull(self) -> Point:
        """sum_i y_i alpha_i (x_i, 1): minus the gradient of the smoothed loss."""
        return Point(self.pulls[1], float(self.masses[1]))

    def by_class(self) -> tuple[Floats, Floats, Floats]:
        """``pulls``, ``masses`` and ``conjugates`` of the positive and of the negative class."""
        return _HALVES @ self.pulls, _HALVES @ self.masses, _HALVES @ self.conjugates


class RowSource(Protocol):
    """What the solver may ask. Each call is one pass over the rows."""

    n_rows: int
    n_features: int
    passes: float

    @property
    def row_scale(self) -> RowScale:
        """What rounding errors of products with the rows depend on."""

    def evaluate(self, point: Point, loss: CurvedLoss, *, curvature: bool) -> LossSums:
        """All sums at ``point``; with ``curvature`` the (M+1) x (M+1) matrix of second derivatives."""

    def slopes(self, point: Point, step: Point, loss: CurvedLoss, lengths: Floats) -> Floats:
        """d/dt of the smoothed loss at point + t step, for every t in ``lengths``."""

    def curvature_rows(self, point: Point, loss: CurvedLoss) -> tuple[Matrix, Floats]:
        """The rows with positive curvature and their c_i phi''(m_i), for products instead of a matrix."""

    def dual_vector(self, point: Point, loss: CurvedLoss, factors: Floats) -> Floats:
        """c_i phi'(m_i) of all rows, the classes scaled by ``factors``; empty where vectors are too long."""


class BlockSource:
    """A matrix in memory.

    Parameters
    ----------
    problem : ERMProblem
        Gives rows, labels and the costs c_i = s_i C / kappa.
    curvature : ndarray of shape (n_features + 1, n_features + 1) or None
        The matrix of second derivatives of all rows, p = 2, if it is known.
    """

    def __init__(self, problem: ERMProblem, curvature: Floats | None = None) -> None:
        self.loss, self.design = problem.loss, problem.design
        self.n_rows, self.n_features = problem.design.n_rows, problem.design.n_features
        self.labels, self.costs = problem.labels, member_costs(problem)
        self.passes = 0.0
        self._gram: ActiveGram | None = None
        self._curvature = curvature

    @property
    def row_scale(self) -> RowScale:
        """See ``RowSource``."""
        return self.design.row_scale

    def evaluate(self, point: Point, loss: CurvedLoss, *, curvature: bool) -> LossSums:
        """See ``RowSource``: scores, slopes and curvature of a block while it is in cache."""
        self.passes += 1
        by_active_rows = curvature and self.loss.active_curvature is not None
        active = np.empty(self.n_rows, dtype=bool) if by_active_rows else None
        parts = (
            self._block_sums(rows, block, point, loss, curvature and not by_active_rows, active)
            for rows, block in self.design.blocks(1)
        )
        total = next(parts)
        for part in parts:
            total += part
        if active is None:
            return total
        if self._gram is None:
            assert self.loss.active_curvature is not None  # noqa: S101 -- that is why
            self._gram = ActiveGram(self.design, self.loss.active_curvature * self.costs, self._curvature)
        return dataclasses.replace(total, curvature=self._gram.at(active))

    def _block_sums(
        self,
        rows: slice,
        block: Matrix,
        point: Point,
        loss: CurvedLoss,
        curvature: bool,
        active: NDArray[np.bool_] | None,
    ) -> LossSums:
        y, cost = self.labels[rows], self.costs[rows]
        shortfall = block @ point.weights
        shortfall += point.intercept
        shortfall *= y
        np.subtract(1.0, shortfall, out=shortfall)
        if active is not None:
            np.greater(shortfall, 0, out=active[rows])
        value, slope, bend = loss.parts(shortfall, curvature=curvature)
        alpha = cost * slope
        signed = y * alpha
        is_exact = loss.width == 0
        exact = value if is_exact else self.loss.value(shortfall)
        # At alpha = c phi'(m) of the true loss its conjugate is c (phi'(m) m - phi(m)).
        conjugate = slope * shortfall - value if is_exact else self.loss.conjugate(alpha, cost) / cost
        return LossSums(
            loss=float(cost @ exact),
            smoothed=float(cost @ value),
            # Two products with one vector each are twice as fast as one product with two.
            pulls=np.array([block.T @ alpha, block.T @ signed]),
            masses=np.array([alpha.sum(), signed.sum()]),
            conjugates=np.array([cost @ conjugate, (y * cost) @ conjugate]),
            curvature=None if bend is None else bordered_gram(block, cost * bend),
            cost=float(cost.sum()),
            n_terms=float(len(y)),
        )

    def slopes(self, point: Point, step: Point, loss: CurvedLoss, lengths: Floats) -> Floats:
        """See ``RowSource``: one product for the point and the step together."""
        self.passes += 1
        total = np.zeros(len(lengths))
        pair = np.stack([point.weights, step.weights], axis=1)
        for rows, block in self.design.blocks(2 + len(lengths)):
            y = self.labels[rows, None]
            products = block @ pair + [point.intercept, step.intercept]
            shortfall, change = 1 - y * products[:, :1], -y * products[:, 1:]
            slope = loss.parts(shortfall + change * lengths, curvature=False)[1]
            total += (self.costs[rows] * change[:, 0]) @ slope
        return total

    def curvature_rows(self, point: Point, loss: CurvedLoss) -> tuple[Matrix, Floats]:
        """See ``RowSource``."""
        self.passes += 1
        shortfall = 1 - self.labels * (self.design.times(point.weights) + point.intercept)
        bend = loss.parts(shortfall)[2]
        assert bend is not None  # noqa: S101 -- asked for
        weights = self.costs * bend
        active = np.flatnonzero(weights)
        return self.design.X[active], weights[active]

    def dual_vector(self, point: Point, loss: CurvedLoss, factors: Floats) -> Floats:
        """See ``RowSource``."""
        shortfall = 1 - self.labels * (self.design.times(point.weights) + point.intercept)
        alpha = self.costs * loss.parts(shortfall, curvature=False)[1]
        return np.asarray(alpha * np.where(self.labels > 0, factors[0], factors[1]))
