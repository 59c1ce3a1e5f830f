"""Sums over the rows of one block, and what sums over all rows prove.

Newton methods see rows through such sums only: what they ask for is a function of the rows of a block
(``BlockOfRows``), which reads them once, piece by piece, while a piece is in cache, and the results add up
over the blocks. ``run`` has the rows of whole problems.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from exclusivity._typing import Floats, Matrix
from exclusivity.objective.losses import CurvedLoss, LossParts
from exclusivity.objective.objective import (
    ERMProblem,
    Objective,
    Penalty,
    dual_bound,
    member_costs,
    objective_of_shortfall,
    repair_dual,
)
from exclusivity.rows.design import DesignMatrix, RowList, RowScale, gamma

CHUNK_NUMBERS = 1 << 20
"""Rows are copied so many numbers at a time."""

# Of sparse integers fewer: with indices and the copies that scipy makes, some 10 MB.
_CHUNK_OF_INTEGERS = 1 << 18
SPARSE_DENSITY = 0.1
"""Up to this share of stored numbers sparse products take less time than those of dense rows.

10,000 x 1,000 with p = 2, all numbers stored, takes 29 s with sparse ones and 1.3 s with dense ones.
"""

# Below this share of what it once was, a diagonal entry has lost too many digits to subtractions.
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class Point:
    """Weights and intercept of one linear model, or a step between two."""

    weights: Floats
    intercept: float

    def moved(self, step: Point, length: float) -> Point:
        """Return the point plus ``length`` times ``step``."""
        return Point(self.weights + length * step.weights, self.intercept + length * step.intercept)

    def inside(self, penalty: Penalty) -> Point:
        """Return the nearest point within the bounds of a penalty."""
        return self if penalty.is_smooth else Point(penalty.inside(self.weights), self.intercept)


class Certificate(NamedTuple):
    """A point's objective, how much larger that may be, and a lower bound on that of all points.

    ``dual`` gives the vector behind the bound, where there is one; it is only asked at the end, for the best.
    """

    objective: float
    error: float
    bound: float
    dual: Callable[[], Floats] = partial(np.empty, 0)


class Step(NamedTuple):
    """A step: its end, the way there, and at most how fast the objective begins to change along it.

    The slope is negative, or there is nothing to gain. ``n_systems`` were factorised to find the step.
    """

    target: Point
    change: Point
    slope: float
    n_systems: int = 1

    def with_intercept(self, start: float, change: float) -> Step:
        """Return the same step, which moves the intercept as well."""
        target, way = Point(self.target.weights, start + change), Point(self.change.weights, change)
        return self._replace(target=target, change=way)

    def part(self, start: Point, length: float, penalty: Penalty) -> Point:
        """Return the point so far along it: at its end exactly there, so that zeros and bounds are exact."""
        if length == 1:
            return self.target
        return start.moved(self.change, length).inside(penalty)


@dataclass(frozen=True, eq=False)
class LossSums:
    """Sums over rows at one point, alpha_i = c_i phi'(m_i) being the dual vector it suggests.

    ``weighted_sums`` (2 x M), ``alpha_sums`` and ``conjugates`` (2 each) hold sums of v_i and of y_i v_i for
    v_i = alpha_i x_i, alpha_i and the loss's conjugate: half their sum belongs to the positive class, half
    their difference to the negative one. Repairing the dual vector needs them apart. ``gains`` are the same
    of t_i alpha_i, which is alpha_i where all targets are 1. ``cost`` is the sum of the costs of the rows
    whose loss this is, and ``n_terms`` the longest chain of additions behind any sum: what rounding errors
    depend on.
    """

    loss: float
    smoothed: float
    weighted_sums: Floats
    alpha_sums: Floats
    conjugates: Floats
    curvature: Floats | None
    cost: float
    n_terms: float
    gains: Floats

    @classmethod
    def of_nothing(cls, n_features: int, curvature: bool = False) -> LossSums:
        """Return the sums over no rows."""
        hessian, none = np.zeros((n_features + 1, n_features + 1)) if curvature else None, np.zeros(2)
        return cls(0.0, 0.0, np.zeros((2, n_features)), none, none, hessian, 0.0, 0, none)

    @classmethod
    def of_dual(cls, X: Matrix, labels: Floats, alpha: Floats, targets: Floats | None) -> LossSums:
        """Compute the sums of a dual vector of the hinge, whose conjugate is zero, without a loss."""
        signed = labels * alpha
        weighted_sums = np.array([X.T @ alpha, X.T @ signed], dtype=float)
        alpha_sums = np.array([alpha.sum(), signed.sum()])
        gains = alpha_sums if targets is None else np.array([targets @ alpha, targets @ signed])
        return cls(0.0, 0.0, weighted_sums, alpha_sums, np.zeros(2), None, 0.0, len(alpha), gains)

    def __add__(self, other: LossSums) -> LossSums:
        """Return the sums over both sets of rows."""
        has_curvature = self.curvature is not None and other.curvature is not None
        return LossSums(
            self.loss + other.loss,
            self.smoothed + other.smoothed,
            self.weighted_sums + other.weighted_sums,
            self.alpha_sums + other.alpha_sums,
            self.conjugates + other.conjugates,
            self.curvature + other.curvature if has_curvature else None,  # type: ignore[operator]
            self.cost + other.cost,
            max(self.n_terms, other.n_terms) + 1,
            self.gains + other.gains,
        )

    def times(self, factor: float) -> LossSums:
        """Return the sums with all costs multiplied by ``factor``."""
        curvature = None if self.curvature is None else factor * self.curvature
        return LossSums(
            factor * self.loss,
            factor * self.smoothed,
            factor * self.weighted_sums,
            factor * self.alpha_sums,
            factor * self.conjugates,
            curvature,
            factor * self.cost,
            self.n_terms + 1,
            factor * self.gains,
        )

    @property
    def negative_gradient(self) -> Point:
        """sum_i y_i alpha_i (x_i, 1): minus the gradient of the smoothed loss."""
        return Point(self.weighted_sums[1], float(self.alpha_sums[1]))

    def by_class(self) -> tuple[tuple[Floats, Floats], tuple[float, float], tuple[float, float]]:
        """Return ``weighted_sums``, ``alpha_sums`` and ``conjugates`` of the positive and negative class."""
        both, difference = self.weighted_sums
        weighted = (both + difference) / 2, (both - difference) / 2
        return weighted, _halves(self.alpha_sums), _halves(self.conjugates)


def _halves(sums: Floats) -> tuple[float, float]:
    """Return the sums over the rows with y = 1 and with y = -1, from a sum of v and one of y v."""
    both, difference = sums.tolist()
    return (both + difference) / 2, (both - difference) / 2


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

    def gains(self, point: Point) -> Floats:
        """Compute y_i (x_i . w + b)."""
        scores = self.problem.design.times(point.weights) + point.intercept
        return np.asarray(self.problem.labels * scores)

    def folded(self, values: Floats) -> Floats:
        """Compute sum_i v_i y_i (x_i, 1)."""
        signed = self.problem.labels * values
        return np.append(self.problem.design.transposed_times(signed), signed.sum())

    def shortfall(self, point: Point) -> Floats:
        """Compute t_i - y_i (x_i . w + b)."""
        return self.problem.rows.shortfall(self.problem.design.times(point.weights) + point.intercept)


# ---------------------------------------------------------------- sums over the rows of a block


def evaluate(block: BlockOfRows, point: Point, loss: CurvedLoss, curvature: bool) -> LossSums:
    """Compute all sums at a point, with ``curvature`` the matrix of second derivatives as well."""
    labelled, design, exact = block.problem.rows, block.problem.design, block.problem.loss
    by_active_rows = curvature and exact.active_curvature is not None
    active = np.empty(design.n_rows, dtype=bool)
    total = None
    for rows, X in design.blocks(1):
        y, goal, cost = labelled.labels[rows], labelled.goal(rows), block.costs[rows]
        shortfall = X @ point.weights
        shortfall += point.intercept
        shortfall *= y
        np.subtract(goal, shortfall, out=shortfall)
        wants_curvature = curvature and not by_active_rows
        if loss.width > 0:
            parts: LossParts = loss.parts(shortfall, curvature=wants_curvature)
            value, conjugate = exact.value(shortfall), exact.conjugate(cost * parts.slope, cost) / cost
        else:
            parts = exact.parts(shortfall, curvature=wants_curvature, conjugate=True)
            assert parts.conjugate is not None  # noqa: S101 -- asked for
            value, conjugate = parts.value, parts.conjugate
        np.greater(parts.slope, 0, out=active[rows])
        alpha = np.multiply(cost, parts.slope, out=block.alpha[rows])
        signed, conjugates = y * alpha, cost * conjugate
        alpha_sums = np.array([alpha.sum(), signed.sum()])
        part = LossSums(
            loss=float(cost @ value),
            smoothed=float(cost @ parts.value),
            # Two products with one vector each are twice as fast as one product with two.
            weighted_sums=np.array([X.T @ alpha, X.T @ signed]),
            alpha_sums=alpha_sums,
            conjugates=np.array([conjugates.sum(), y @ conjugates]),
            curvature=None if parts.curvature is None else bordered_gram(X, cost * parts.curvature),
            cost=float(cost.sum()),
            n_terms=float(len(y)),
            gains=alpha_sums if labelled.targets is None else np.array([goal @ alpha, goal @ signed]),
        )
        total = part if total is None else total + part
    if total is None:  # no rows at all
        return LossSums.of_nothing(design.n_features, curvature)
    block.evaluated = point
    return dataclasses.replace(total, curvature=block.active_gram.at(active)) if by_active_rows else total


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


# ---------------------------------------------------------------- Gram matrices of rows


class ActiveGram:
    """Second derivatives of the squared hinge, sum_i c_i (x_i, 1)(x_i, 1)^T over the active rows (phi' > 0).

    From one Newton step to the next fewer and fewer rows become active or inactive: only those are read,
    which takes the work of a step from M products with X to little more than that of the gradient.

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
        self._forget()
        if of_all is not None:
            self._active[:] = True
            self._gram, self._peak = of_all, np.diagonal(of_all)

    def _forget(self) -> None:
        size = self._design.n_features + 1
        self._active = np.zeros(self._design.n_rows, dtype=bool)
        self._gram, self._peak = np.zeros((size, size)), np.zeros(size)

    def at(self, active: NDArray[np.bool_]) -> Floats:
        """Return the matrix for these rows, read-only: the next one starts from it."""
        coming = np.flatnonzero(active & ~self._active)
        going = np.flatnonzero(self._active & ~active)
        if len(coming) + len(going) > int(np.count_nonzero(active)):
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


def bordered_gram(X: Matrix, weights: Floats) -> Floats:
    """Compute sum_i h_i (x_i, 1)(x_i, 1)^T over the rows with h_i > 0."""
    chunks = list(_chunks(X))
    if len(chunks) == 1:
        return _bordered_gram(X, weights)
    total = np.zeros((X.shape[1] + 1, X.shape[1] + 1))
    for chunk in chunks:
        total += _bordered_gram(X[chunk], weights[chunk])
    return total


def _bordered_gram(X: Matrix, weights: Floats) -> Floats:
    active = np.flatnonzero(weights)
    rows = X[active] if len(active) < len(weights) else X
    h, M = weights[active], X.shape[1]
    gram, roots = np.empty((M + 1, M + 1)), np.sqrt(h)[:, None]
    if sparse.issparse(X) and X.nnz <= SPARSE_DENSITY * X.shape[0] * M:
        scaled = rows.multiply(roots).tocsr()
        gram[:M, :M] = (scaled.T @ scaled).toarray()
    else:
        scaled = (rows.toarray() if sparse.issparse(rows) else rows) * roots
        np.matmul(scaled.T, scaled, out=gram[:M, :M])
    gram[:M, M] = gram[M, :M] = scaled.T @ roots[:, 0]
    gram[M, M] = h.sum()
    return gram


def dense_product(X: Matrix, ridge: Floats) -> Floats:
    """Compute X diag(1/ridge) X^T as a dense matrix."""
    total = np.zeros((X.shape[0], X.shape[0]))
    if sparse.issparse(X):
        chunks = list(_chunks(X))
        for at, rows in enumerate(chunks):
            scaled = X[rows].multiply(1 / ridge).tocsr()
            for others in chunks[at:]:
                total[rows, others] = (scaled @ X[others].astype(float, copy=False).T).toarray()
                if others != rows:
                    total[others, rows] = total[rows, others].T
        return total
    step = max(CHUNK_NUMBERS // max(X.shape[0], 1), 1)
    for start in range(0, X.shape[1], step):  # neither floats of all of X nor a scaled copy
        columns = slice(start, start + step)
        wide = X[:, columns].astype(float, copy=False)
        total += (wide / ridge[columns]) @ wide.T
    return total


def _chunks(X: Matrix) -> Iterator[slice]:
    """Cut the rows: neither a scaled copy of X nor one long call, nor floats of all of a sparse matrix.

    Sparse floats stay whole, as a sum of many sparse products would take longer.
    """
    n_rows, step = X.shape[0], CHUNK_NUMBERS // (X.shape[1] + 1)
    if sparse.issparse(X) and X.nnz <= SPARSE_DENSITY * n_rows * X.shape[1]:
        step = n_rows
    if sparse.issparse(X) and X.dtype.kind != "f":
        step = _CHUNK_OF_INTEGERS * n_rows // max(X.nnz, 1)
    for start in range(0, n_rows, max(step, 1)):
        yield slice(start, start + max(step, 1))


# ---------------------------------------------------------------- certificates


def objective_from_sums(
    point: Point, sums: LossSums, reduced: Objective, scale: RowScale
) -> tuple[float, float]:
    """Compute the objective at ``point``, and how much larger it may be; ``scale`` is that of all rows."""
    error = float(scale.score_error(point.weights, point.intercept))
    penalty = reduced.penalty.value(point.weights)
    objective, raised = penalty + sums.loss, reduced.loss.raised_total(sums.loss, sums.cost, error)
    upper = reduced.rounded_up(penalty + raised, sums.n_terms, len(point.weights))
    return objective, upper - objective


def bound_from_sums(sums: LossSums, reduced: Objective, scale: RowScale) -> tuple[float, Floats]:
    """Compute D(alpha) of the repaired alpha behind ``sums``, rounded down, and the factors of the classes.

    Scaling a class's alpha by t scales its sums by t; what it does to its conjugates the loss knows.
    """
    weighted_sums, alpha_sums, conjugates = sums.by_class()
    factors, gains = _class_factors(alpha_sums, reduced), _halves(sums.gains)
    # The two classes' sums are differences of sums over all rows, and as exact as these.
    rounding = gamma(sums.n_terms + 4) * (alpha_sums[0] + alpha_sums[1])
    value = reduced.lower_dual(
        gain=factors[0] * gains[0] + factors[1] * gains[1],
        alpha_sum=factors[0] * alpha_sums[0] + factors[1] * alpha_sums[1],
        moved=rounding if reduced.fit_intercept else 0.0,
        dual_weights=factors[0] * weighted_sums[0] - factors[1] * weighted_sums[1],
        conjugate=sum(map(reduced.loss.scaled_conjugate, conjugates, factors)),
        cost=sums.cost,
        scale=scale,
        n_terms=sums.n_terms,
    )
    return value, np.array(factors)


def _class_factors(alpha_sums: tuple[float, float], reduced: Objective) -> list[float]:
    """Return by what the alphas of the two classes are multiplied to balance: the heavier one shrinks."""
    factors = [1.0, 1.0]
    if reduced.fit_intercept:
        heavier = int(alpha_sums[1] > alpha_sums[0])
        if alpha_sums[heavier] > 0:
            factors[heavier] = max(alpha_sums[1 - heavier], 0.0) / alpha_sums[heavier]
    return factors


def repaired_weights(sums: LossSums, reduced: Objective) -> Floats:
    """Compute X^T (y alpha) of the repaired dual vector behind ``sums``."""
    (above, below), alpha_sums, _ = sums.by_class()
    factors = _class_factors(alpha_sums, reduced)
    return factors[0] * above - factors[1] * below


def certificate_of(reduced: ERMProblem, point: Point, alpha: Floats) -> Certificate:
    """Compute what a point and a dual vector prove, evaluated from scratch: two products with all rows."""
    alpha = repair_dual(reduced, alpha)
    scores = reduced.design.times(point.weights)
    dual_weights = reduced.design.transposed_times(reduced.labels * alpha)
    objective = objective_of(reduced, point, scores + point.intercept)
    return Certificate(*objective, dual_bound(reduced, alpha, dual_weights), partial(np.asarray, alpha))


def dual_weights_of(reduced: ERMProblem, alpha: Floats) -> Floats:
    """Compute X^T (y alpha) of the repaired dual vector: one pass."""
    return reduced.design.transposed_times(reduced.labels * repair_dual(reduced, alpha))


def objective_of(reduced: ERMProblem, point: Point, scores: Floats) -> tuple[float, float]:
    """Compute the objective at a point with these scores, and how much larger it may be."""
    error = reduced.row_scale.score_error(point.weights, point.intercept)
    shortfall = reduced.rows.shortfall(scores)
    return objective_of_shortfall(reduced, point.weights[:, None], shortfall[:, None], error)
