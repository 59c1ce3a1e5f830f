"""The rows of one block, and the questions about them: sums for steps and certificates, working sets.

Each question reads the rows once, piece by piece, while a piece is in cache.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.objective.losses import CurvedLoss, LossParts
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.design import DesignMatrix, RowList
from exclusivity.solvers.newton.linear import CHUNK_NUMBERS, RowProducts, bordered_gram
from exclusivity.solvers.newton.run import LossSums, Point

# Below this share of what it once was, a diagonal entry has lost too many digits to subtractions.
_LEAST_SHARE = 1e-6
# Multiplications that are over before it is known which rows came and went.
_SMALL_PRODUCT = 1 << 18


class BlockOfRows:
    """The rows of one block, with what questions about them have in common.

    Parameters
    ----------
    problem : ERMProblem
        Of one member: gives rows, labels, targets and the costs c_i = s_i C / kappa.
    curvature : ndarray of shape (n_features + 1, n_features + 1) or None
        The matrix of second derivatives of all rows, p = 2, if it is known.
    """

    def __init__(self, problem: ERMProblem, curvature: Floats | None = None) -> None:
        self.problem, self.costs, self.curvature = problem, member_costs(problem), curvature
        # The dual vector of the point that was evaluated last, and which one that was.
        self.alpha, self.evaluated = np.empty(len(self.costs)), Point(np.empty(0), 0.0)

    @cached_property
    def active_gram(self) -> ActiveGram:
        """The second derivatives, where only rows that come and go change them."""
        stiffness = self.problem.loss.active_curvature
        assert stiffness is not None  # noqa: S101 -- asked only then
        return ActiveGram(self.problem.design, stiffness * self.costs, self.curvature)

    @cached_property
    def products(self) -> RowProducts:
        """Products with the rows z_i = y_i (x_i, 1)."""
        return RowProducts(self.problem.design, self.problem.labels)

    def shortfall(self, point: Point) -> Floats:
        """t_i - y_i (x_i . w + b)."""
        return self.problem.rows.shortfall(self.problem.design.times(point.weights) + point.intercept)


def evaluate(block: BlockOfRows, point: Point, loss: CurvedLoss, curvature: bool) -> LossSums:
    """Compute all sums at a point; see ``ProblemRows.evaluate``."""
    design, exact = block.problem.design, block.problem.loss
    by_active_rows = curvature and exact.active_curvature is not None
    active = np.empty(design.n_rows, dtype=bool) if by_active_rows else None
    total = None
    for rows, X in design.blocks(1):
        part = _sums_of_piece(block, rows, X, point, loss, curvature and not by_active_rows, active)
        total = part if total is None else total + part
    if total is None:  # no rows at all
        return LossSums.of_nothing(design.n_features, curvature)
    block.evaluated = point
    return total if active is None else dataclasses.replace(total, curvature=block.active_gram.at(active))


def _sums_of_piece(
    block: BlockOfRows,
    rows: slice,
    X: Matrix,
    point: Point,
    loss: CurvedLoss,
    curvature: bool,
    active: NDArray[np.bool_] | None,
) -> LossSums:
    """The sums over some of the rows: scores, slopes and curvature while they are in cache."""
    labelled, cost = block.problem.rows, block.costs[rows]
    y = labelled.labels[rows]
    shortfall = X @ point.weights
    shortfall += point.intercept
    shortfall *= y
    goal = labelled.goal(rows)
    np.subtract(goal, shortfall, out=shortfall)
    (value, slope, curvatures, _), exact, conjugate = _parts(block, shortfall, cost, loss, curvature)
    if active is not None:
        np.greater(slope, 0, out=active[rows])
    alpha = np.multiply(cost, slope, out=block.alpha[rows])
    signed = y * alpha
    paid = cost * conjugate
    alpha_sums = np.array([alpha.sum(), signed.sum()])
    return LossSums(
        loss=float(cost @ exact),
        smoothed=float(cost @ value),
        # Two products with one vector each are twice as fast as one product with two.
        weighted_sums=np.array([X.T @ alpha, X.T @ signed]),
        alpha_sums=alpha_sums,
        conjugates=np.array([paid.sum(), y @ paid]),
        curvature=None if curvatures is None else bordered_gram(X, cost * curvatures),
        cost=float(cost.sum()),
        n_terms=float(len(y)),
        gains=alpha_sums if labelled.targets is None else np.array([goal @ alpha, goal @ signed]),
    )


def _parts(
    block: BlockOfRows, shortfall: Floats, cost: Floats, loss: CurvedLoss, curvature: bool
) -> tuple[LossParts, Floats, Floats]:
    """What ``loss`` says of rows, and the true loss: its value, and its conjugate at those slopes."""
    exact = block.problem.loss
    if loss.width > 0:
        parts = loss.parts(shortfall, curvature=curvature)
        return parts, exact.value(shortfall), exact.conjugate(cost * parts.slope, cost) / cost
    parts = exact.parts(shortfall, curvature=curvature, conjugate=True)
    assert parts.conjugate is not None  # noqa: S101 -- asked for
    return parts, parts.value, parts.conjugate


def slopes(block: BlockOfRows, point: Point, step: Point, loss: CurvedLoss, lengths: Floats) -> Floats:
    """Compute d/dt of the smoothed loss at point + t step, for every t in ``lengths``."""
    total, labelled = np.zeros(len(lengths)), block.problem.rows
    pair = np.stack([point.weights, step.weights], axis=1)
    for rows, X in block.problem.design.blocks(2 + len(lengths)):
        y = labelled.labels[rows, None]
        products = X @ pair + [point.intercept, step.intercept]
        shortfall, change = labelled.shortfall(products[:, :1], rows), -y * products[:, 1:]
        slope = loss.parts(shortfall + change * lengths, curvature=False)[1]
        total += (block.costs[rows] * change[:, 0]) @ slope
    return total


def curvature_rows(block: BlockOfRows, point: Point, loss: CurvedLoss) -> RowList:
    """Pick the rows with positive curvature, their c_i phi''(m_i) for weights.

    Asked where all rows are fewer than the features, for products instead of a matrix.
    """
    curvatures = loss.parts(block.shortfall(point))[2]
    assert curvatures is not None  # noqa: S101 -- asked for
    weights = block.costs * curvatures
    active = np.flatnonzero(weights)
    return RowList(block.problem.design.X[active], block.problem.labels[active], weights[active])


def dual_vector(block: BlockOfRows, point: Point, loss: CurvedLoss, factors: Floats) -> Floats:
    """Compute c_i phi'(m_i), the classes scaled by ``factors``."""
    if point is block.evaluated:
        alpha = block.alpha
    else:
        alpha = block.costs * loss.parts(block.shortfall(point), curvature=False)[1]
    return np.asarray(alpha * np.where(block.problem.labels > 0, factors[0], factors[1]))


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
        """The working set of both sets of rows."""
        return WorkingSet.combined([self, other])

    @staticmethod
    def combined(parts: Sequence[WorkingSet]) -> WorkingSet:
        """The working set of all sets of rows."""
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
        """The ``most`` rows nearest to the margin; the order of the rows stays."""
        if len(self.shortfall) <= self.most:
            return self
        order = np.argsort(np.abs(self.shortfall), kind="stable")
        keep, drop = np.sort(order[: self.most]), np.sort(order[self.most :])
        rows, m, goal = self.rows, self.shortfall, self.targets
        alpha = np.where(m[drop] > 0, self.cost * rows.weights[drop], 0.0)
        dropped = sums_of_dual(rows.X[drop], rows.labels[drop], alpha, None if goal is None else goal[drop])
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
        """Whether the rows inside can make up for those outside in sum y alpha = 0.

        If they cannot, the problem inside has no optimum: its intercept runs away.
        """
        signed = self.cost * self.rows.labels * self.rows.weights
        needed = -float(self.sums.alpha_sums[1])
        return not fit_intercept or bool(np.minimum(signed, 0).sum() < needed < np.maximum(signed, 0).sum())


def near_margin(block: BlockOfRows, point: Point, width: float, most: int) -> WorkingSet:
    """Find the working set around the margin of a point."""
    labelled, costs = block.problem.rows, block.costs
    sums = LossSums.of_nothing(block.problem.design.n_features, curvature=False)
    inside, shortfalls = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    for rows, X in block.problem.design.blocks(1):
        m = labelled.shortfall(X @ point.weights + point.intercept, rows)
        near = np.flatnonzero(np.abs(m) <= width)
        alpha = np.where(m > 0, costs[rows], 0.0)
        alpha[near] = 0.0
        goal = None if labelled.targets is None else labelled.targets[rows]
        sums += sums_of_dual(X, labelled.labels[rows], alpha, goal)
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


def sums_of_dual(X: Matrix, labels: Floats, alpha: Floats, targets: Floats | None) -> LossSums:
    """Compute the sums of a dual vector of the hinge, whose conjugate is zero, without a loss."""
    signed = labels * alpha
    weighted_sums = np.array([X.T @ alpha, X.T @ signed], dtype=float)
    alpha_sums = np.array([alpha.sum(), signed.sum()])
    gains = alpha_sums if targets is None else np.array([targets @ alpha, targets @ signed])
    return LossSums(0.0, 0.0, weighted_sums, alpha_sums, np.zeros(2), None, 0.0, len(alpha), gains)
