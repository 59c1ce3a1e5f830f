"""Rows as the Newton solver sees them: only through sums over blocks of rows.

A source answers a few questions about the loss of a linear model; where the rows live is its own business.
``BlockSource`` reads a dense or CSR matrix in memory, block by block, each block once per question.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Floats, Matrix
from exclusivity.objective.losses import CurvedLoss, LossParts
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.design import DesignMatrix, RowScale
from exclusivity.solvers.newton.linear import CHUNK_NUMBERS, bordered_gram
from exclusivity.solvers.newton.run import LossSums, Point

# Below this share of what it once was, a diagonal entry has lost too many digits to subtractions.
_LEAST_SHARE = 1e-6


# Multiplications that are over before it is known which rows came and went.
_SMALL_PRODUCT = 1 << 18


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
        # The dual vector of the point that was evaluated last, and which one that was.
        self._alpha, self._evaluated = np.empty(self.n_rows), Point(np.empty(0), 0.0)

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
        self._evaluated = point
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
        (value, slope, curvatures, _), exact, conjugate = self._parts(shortfall, cost, loss, curvature)
        if active is not None:
            np.greater(slope, 0, out=active[rows])
        alpha = np.multiply(cost, slope, out=self._alpha[rows])
        signed = y * alpha
        paid = cost * conjugate
        return LossSums(
            loss=float(cost @ exact),
            smoothed=float(cost @ value),
            # Two products with one vector each are twice as fast as one product with two.
            weighted_sums=np.array([block.T @ alpha, block.T @ signed]),
            alpha_sums=np.array([alpha.sum(), signed.sum()]),
            conjugates=np.array([paid.sum(), y @ paid]),
            curvature=None if curvatures is None else bordered_gram(block, cost * curvatures),
            cost=float(cost.sum()),
            n_terms=float(len(y)),
        )

    def _parts(
        self, shortfall: Floats, cost: Floats, loss: CurvedLoss, curvature: bool
    ) -> tuple[LossParts, Floats, Floats]:
        """What ``loss`` says of rows, and the true loss: its value, and its conjugate at those slopes."""
        if loss.width > 0:
            parts = loss.parts(shortfall, curvature=curvature)
            return parts, self.loss.value(shortfall), self.loss.conjugate(cost * parts.slope, cost) / cost
        parts = self.loss.parts(shortfall, curvature=curvature, conjugate=True)
        assert parts.conjugate is not None  # noqa: S101 -- asked for
        return parts, parts.value, parts.conjugate

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
        curvatures = loss.parts(shortfall)[2]
        assert curvatures is not None  # noqa: S101 -- asked for
        weights = self.costs * curvatures
        active = np.flatnonzero(weights)
        return self.design.X[active], weights[active]

    def dual_vector(self, point: Point, loss: CurvedLoss, factors: Floats) -> Floats:
        """See ``RowSource``."""
        if point is self._evaluated:
            alpha = self._alpha
        else:
            shortfall = 1 - self.labels * (self.design.times(point.weights) + point.intercept)
            alpha = self.costs * loss.parts(shortfall, curvature=False)[1]
        return np.asarray(alpha * np.where(self.labels > 0, factors[0], factors[1]))


class ActiveGram:
    """Second derivatives of the squared hinge, sum_i c_i (x_i, 1)(x_i, 1)^T over the active rows (phi' > 0).

    Newton's method changes its mind about fewer and fewer rows: only those that come or go are read, which
    takes the price of a step from M products with X to little more than that of the gradient.

    Parameters
    ----------
    design : DesignMatrix
    costs : ndarray of shape (n_rows,)
        The c_i.
    of_all : ndarray of shape (n_features + 1, n_features + 1) or None
        The sum over all rows, if it is known.
    """

    def __init__(self, design: DesignMatrix, costs: Floats, of_all: Floats | None = None) -> None:
        self._design, self._costs = design, costs
        self._is_small = design.n_rows * (design.n_features + 1) ** 2 <= _SMALL_PRODUCT
        self._forget()
        if of_all is not None:
            self._active[:] = True
            self._gram, self._peak = of_all, np.diagonal(of_all)

    def _forget(self) -> None:
        self._active = np.zeros(self._design.n_rows, dtype=bool)
        self._gram = np.zeros((self._design.n_features + 1, self._design.n_features + 1))
        self._peak = np.zeros(self._design.n_features + 1)

    def at(self, active: NDArray[np.bool_]) -> Floats:
        """The matrix for these rows, read-only: the next one starts from it."""
        if self._is_small:
            return bordered_gram(self._design.X, np.where(active, self._costs, 0.0))
        coming = np.flatnonzero(active & ~self._active)
        going = np.flatnonzero(self._active & ~active)
        n_active = int(np.count_nonzero(active))
        if len(coming) + len(going) > n_active:
            self._forget()
            coming, going = np.flatnonzero(active), going[:0]
        gram = self._gram + self._sum_over(coming)
        self._peak = np.maximum(self._peak, np.diagonal(gram))
        if len(going):
            gram -= self._sum_over(going)
            if np.any(np.diagonal(gram) < _LEAST_SHARE * self._peak):
                self._forget()
                return self.at(active)
        gram.flags.writeable = False
        self._active, self._gram = active, gram
        return gram

    def _sum_over(self, rows: NDArray[np.intp]) -> Floats:
        total = np.zeros_like(self._gram)
        step = max(CHUNK_NUMBERS // (self._design.n_features + 1), 1)
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            total += bordered_gram(self._design.X[chunk], self._costs[chunk])
        return total
