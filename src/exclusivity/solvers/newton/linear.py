"""The linear system of every Newton step, solved on its smaller side.

    [ E + X^T D X    X^T D 1 ] [dw]   [r_w]
    [ 1^T D X        1^T D 1 ] [db] = [r_b]

E is diagonal and positive, D >= 0 holds one number per row. Without an intercept the last row and column go.

* M <= N: form the matrix, Cholesky.
* M > N: with g = D (X dw + 1 db) the same system reads dw = E^(-1) (r_w - X^T g), 1^T g = r_b and
  (D^(-1) + X E^(-1) X^T) g = X E^(-1) r_w + 1 db, an N x N Cholesky over the rows with D > 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from math import isfinite
from typing import Protocol

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import lapack

from exclusivity._typing import Bools, Floats, Matrix
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers.newton.sparse_grams import is_mostly_zero, sparse_gram, sparse_product

# Relative to the trace; enough to factorise what rounding has made indefinite, too little to turn a step.
_JITTER = 1e-15
_MAX_JITTERS = 8
DENSE_LIMIT = 4096
"""The largest side of a system that is factorised: a second's work, and what Ctrl-C may have to wait for."""

_CG_MAX_ITER = 100
_FEW_NUMBERS = 1 << 17  # a MiB
CHUNK_NUMBERS = 1 << 20
"""Rows are copied so many numbers at a time."""


class NewtonSystem(Protocol):
    """A factorised system."""

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """(dw, db)."""

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """The matrix times (dw, db)."""

    def restricted(self, free: Bools) -> NewtonSystem:
        """The system in which all other weights stay; its vectors have the free ones only."""


def robust_cholesky(matrix: Floats, scale: Floats | float = 1.0) -> Floats:
    """The lower Cholesky factor of a positive semi-definite matrix, with a growing ridge while it fails.

    Rows and columns are multiplied by ``scale`` before. Above the diagonal is what was there then.
    """
    jitter = 0.0
    for attempt in range(_MAX_JITTERS):
        scaled = matrix * np.reshape(scale, (-1, 1))
        scaled *= scale
        trace = float(scaled.trace())
        if jitter:
            scaled.flat[:: len(matrix) + 1] += jitter
        # LAPACK itself: with few rows a step takes as long as scipy's wrapping of it. The transpose of what
        # is symmetric is in its order, so that it works in the one copy that there is.
        factor, info = lapack.dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            if isfinite(factor.diagonal().sum()):  # not every LAPACK minds what is not a number
                return np.asarray(factor)
            break
        jitter = _JITTER * max(trace, np.finfo(float).tiny) * 100.0**attempt
    raise linalg.LinAlgError("the Newton matrix is not finite or far from positive definite")


def cholesky_solve(factor: Floats, right: Floats) -> Floats:
    """The solution of L L^T x = right."""
    if len(right) == 0:  # nothing is free, which LAPACK does not take
        return right
    return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


class PrimalSystem:
    """The (M+1) x (M+1) matrix itself; its last row and column are left out without an intercept."""

    def __init__(self, matrix: Floats, has_intercept: bool) -> None:
        self._has_intercept = has_intercept
        size = len(matrix) if has_intercept else len(matrix) - 1
        matrix = matrix[:size, :size]
        if has_intercept and matrix[-1, -1] <= 0:  # no row is active: the intercept stays where it is
            matrix = matrix.copy()
            matrix[-1, -1] = 1.0
        self._matrix = matrix
        # Scaling to a unit diagonal keeps features of very different sizes from drowning each other.
        self._scale = 1 / np.sqrt(matrix.diagonal())
        self._factor = robust_cholesky(matrix, self._scale)

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """(dw, db)."""
        right = np.empty(len(self._scale))
        right[: len(r_w)], right[len(r_w) :] = r_w, r_b
        solution = self._scale * cholesky_solve(self._factor, self._scale * right)
        return (solution[:-1], float(solution[-1])) if self._has_intercept else (solution, 0.0)

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        product = self._matrix @ (np.append(dw, db) if self._has_intercept else dw)
        return (product[:-1], float(product[-1])) if self._has_intercept else (product, 0.0)

    def restricted(self, free: Bools) -> PrimalSystem:
        """See ``NewtonSystem``."""
        kept = np.append(np.flatnonzero(free), len(free))  # without an intercept the last one is cut off
        matrix = self._matrix if self._has_intercept else np.pad(self._matrix, (0, 1))
        return PrimalSystem(matrix[np.ix_(kept, kept)], self._has_intercept)

    def updated(self, steps: Sequence[tuple[Floats, Floats, float]]) -> PrimalSystem:
        """The system after BFGS updates, each a step s, the change t of the gradient along it, and s . t."""
        matrix, size = self._matrix, len(self._matrix)
        for step, change, curvature in steps:
            image = matrix @ step[:size]
            matrix = matrix - np.outer(image, image) / float(step[:size] @ image)
            matrix += np.outer(change[:size], change[:size]) / curvature
        return PrimalSystem(matrix if self._has_intercept else np.pad(matrix, (0, 1)), self._has_intercept)


class LearningSystem:
    """A system that is nearly right, and what the steps with it have shown since: the BFGS update.

    Of every step s and the change t of the gradient along it only these two vectors are kept. The matrix B
    behind the solutions is then that of the system, changed as little as B s = t for the last steps asks for.
    """

    def __init__(self, system: NewtonSystem) -> None:
        self._system = system
        self._steps: list[tuple[Floats, Floats, float]] = []
        self._updated: PrimalSystem | None = None

    def learn(self, step: Floats, change: Floats) -> None:
        """Take in a step of weights and intercept, and how the gradient changed along it."""
        curvature = float(step @ change)
        if curvature > 0:
            self._steps.append((step, change, curvature))
            self._updated = None

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """(dw, db)."""
        right, shares = np.append(r_w, r_b), []
        for step, change, curvature in reversed(self._steps):
            shares.append(float(step @ right) / curvature)
            right -= shares[-1] * change
        dw, db = self._system.solve(right[:-1], float(right[-1]))
        solution = np.append(dw, db)
        for (step, change, curvature), share in zip(self._steps, reversed(shares), strict=True):
            solution += (share - float(change @ solution) / curvature) * step
        return solution[:-1], float(solution[-1])

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        return self._matrix().times(dw, db)

    def restricted(self, free: Bools) -> PrimalSystem:
        """See ``NewtonSystem``."""
        return self._matrix().restricted(free)

    def _matrix(self) -> PrimalSystem:
        """B itself, of the features' side, for those who need more of it than solutions."""
        if self._updated is None:
            assert isinstance(self._system, PrimalSystem)  # noqa: S101 -- kinks and bounds keep no others
            self._updated = self._system.updated(self._steps)
        return self._updated


class DualSystem:
    """The N x N side, for more features than rows. ``kernel`` may hold X E^(-1) X^T if it is known."""

    def __init__(
        self, X: Matrix, ridge: Floats, weights: Floats, has_intercept: bool, kernel: Floats | None = None
    ) -> None:
        active = np.flatnonzero(weights)
        rows = X[active] if len(active) < X.shape[0] else X
        self._design = DesignMatrix(rows)
        self._n_rows, self._active, self._weights = X.shape[0], active, weights[active]
        self._ridge, self._has_intercept = ridge, has_intercept
        kernel = dense_product(rows, ridge) if kernel is None else kernel[np.ix_(active, active)]
        self._ones = np.empty(0)
        if len(active) == 0:
            return
        kernel.flat[:: len(active) + 1] += 1 / self._weights  # it is our own
        self._scale = 1 / np.sqrt(kernel.diagonal())
        self._factor = robust_cholesky(kernel, self._scale)
        self._ones = self._apply(np.ones(len(active)))

    def _apply(self, right: Floats) -> Floats:
        return np.asarray(self._scale * cholesky_solve(self._factor, self._scale * right))

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """(dw, db)."""
        return self.solve_with_multipliers(r_w, r_b)[:2]

    def solve_with_multipliers(self, r_w: Floats, r_b: float) -> tuple[Floats, float, Floats]:
        """(dw, db) and g = D (X dw + 1 db) of all rows.

        Near the optimum of an interior-point method D grows without bound: D times X dw + 1 db would leave
        little but rounding, and so would dw without one step of iterative refinement.
        """
        multipliers = np.zeros(self._n_rows)
        if len(self._active) == 0:  # no row is active: only the ridge is left
            return r_w / self._ridge, 0.0, multipliers
        times, folded = self._design.times, self._design.transposed_times
        g, db = self._row_side(times(r_w / self._ridge), r_b)
        dw = (r_w - folded(g)) / self._ridge
        dg, change = self._row_side(times(dw) + db - g / self._weights, r_b - float(g.sum()))
        multipliers[self._active] = g + dg
        return dw - folded(dg) / self._ridge, db + change, multipliers

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        g = self._weights * (self._design.times(dw) + db)
        folded = self._design.transposed_times(g)
        return self._ridge * dw + folded, float(g.sum()) if self._has_intercept else 0.0

    def restricted(self, free: Bools) -> DualSystem:
        """See ``NewtonSystem``."""
        X = self._design.X[:, free]
        return DualSystem(X, self._ridge[free], self._weights, self._has_intercept)

    def _row_side(self, right: Floats, total: float) -> tuple[Floats, float]:
        """Solve for g and db: (D^(-1) + X E^(-1) X^T) g = right + 1 db with sum g = total, or db = 0."""
        g = self._apply(right)
        if not self._has_intercept:
            return g, 0.0
        db = float((total - g.sum()) / self._ones.sum())
        return g + db * self._ones, db


class ProductSystem:
    """I + X^T H_c X in the weights alone, H_c = H - H 1 1^T H / (1^T H 1), solved roughly and by products.

    Parameters
    ----------
    rows : DesignMatrix
    curvatures : ndarray of shape (n_rows,)
        The diagonal of H.
    has_intercept : bool
        Whether an intercept follows the weights: scores are centred then; else H_c = H.
    diagonal : ndarray of shape (n_features,) or None
        The preconditioner.
    rest : float
        The relative residual that will do.
    """

    def __init__(
        self,
        rows: DesignMatrix,
        curvatures: Floats,
        has_intercept: bool,
        diagonal: Floats | None,
        rest: float,
    ) -> None:
        self._rows, self._curvatures, self._diagonal, self._rest = rows, curvatures, diagonal, rest
        self._free: Bools | None = None
        self._total = float(curvatures.sum()) if has_intercept else 0.0
        # In a list, as restricted systems count with the whole one.
        self._count = [0]

    @property
    def n_products(self) -> int:
        """How many products it took so far."""
        return self._count[0]

    def _centred(self, scores: Floats) -> Floats:
        """Scores less their mean, which an intercept takes over; in place."""
        if self._total > 0:
            scores -= float(self._curvatures @ scores) / self._total
        return scores

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        solution, n_products = conjugate_gradients(self._apply, r_w, self._diagonal, self._rest)
        self._count[0] += n_products
        return solution, r_b

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        return self._apply(dw), db

    def restricted(self, free: Bools) -> ProductSystem:
        """See ``NewtonSystem``; of the whole system only."""
        part = copy(self)
        part._free, part._diagonal = free, None if self._diagonal is None else self._diagonal[free]
        return part

    def _apply(self, vector: Floats) -> Floats:
        whole = vector
        if self._free is not None:
            whole = np.zeros(len(self._free))
            whole[self._free] = vector
        image = self._centred(self._rows.times(whole))
        image *= self._curvatures
        product = self._rows.transposed_times(image)
        product += whole
        return np.asarray(product if self._free is None else product[self._free])


def conjugate_gradients(
    apply: Callable[[Floats], Floats], right: Floats, diagonal: Floats | None, rest: float
) -> tuple[Floats, int]:
    """A solution of apply(x) = right to this relative residual, and how many products it took."""
    residual, solution = right.copy(), np.zeros_like(right)
    scaled = residual if diagonal is None else residual / diagonal
    direction, rho = scaled.copy(), float(residual @ scaled)
    goal = rest**2 * rho
    for count in range(_CG_MAX_ITER):
        if not rho > goal:
            return solution, count
        image = apply(direction)
        curvature = float(direction @ image)
        if not 0 < curvature < np.inf:  # rounding has eaten the curvature: what has been found so far must do
            return solution, count + 1
        length = rho / curvature
        solution += length * direction
        residual -= length * image
        scaled = residual if diagonal is None else residual / diagonal
        rho, old = float(residual @ scaled), rho
        direction *= rho / old
        direction += scaled
    return solution, _CG_MAX_ITER


def dense_product(X: Matrix, ridge: Floats) -> Floats:
    """X diag(1/ridge) X^T as a dense matrix."""
    if sparse.issparse(X):
        return sparse_product(X, ridge)
    total = np.zeros((X.shape[0], X.shape[0]))
    step = max(CHUNK_NUMBERS // max(X.shape[0], 1), 1)
    for start in range(0, X.shape[1], step):  # neither floats of all of X nor a scaled copy
        columns = slice(start, start + step)
        wide = X[:, columns].astype(float, copy=False)
        total += (wide / ridge[columns]) @ wide.T
    return total


def ridged_system(gram: Floats, ridge: Floats, fit_intercept: bool) -> PrimalSystem:
    """The system of a bordered Gram matrix (contiguous), to which the ridge is added in place."""
    gram.reshape(-1)[:: len(gram) + 1][: len(ridge)] += ridge
    return PrimalSystem(gram, fit_intercept)


def bordered_gram(X: Matrix, weights: Floats) -> Floats:
    """sum_i h_i (x_i, 1)(x_i, 1)^T over the rows with h_i > 0."""
    if sparse.issparse(X) and is_mostly_zero(X):
        return sparse_gram(X, weights)
    step = max(CHUNK_NUMBERS // (X.shape[1] + 1), 1)
    if len(weights) <= step:
        return _bordered_gram(X, weights)
    total = np.zeros((X.shape[1] + 1, X.shape[1] + 1))
    for start in range(0, len(weights), step):  # neither a scaled copy of X nor one long call
        chunk = slice(start, start + step)
        total += _bordered_gram(X[chunk], weights[chunk])
    return total


def _bordered_gram(X: Matrix, weights: Floats) -> Floats:
    active = np.flatnonzero(weights)
    rows = X[active] if len(active) < len(weights) else X
    h = weights[active]
    M = X.shape[1]
    gram = np.empty((M + 1, M + 1))
    roots = np.sqrt(h)[:, None]
    scaled = (rows.toarray() if sparse.issparse(rows) else rows) * roots
    np.matmul(scaled.T, scaled, out=gram[:M, :M])
    gram[:M, M] = gram[M, :M] = scaled.T @ roots[:, 0]
    gram[M, M] = h.sum()
    return gram


class RowProducts:
    """What is asked of rows z_i = y_i (x_i, 1): z_i . (w, b), sum_i a_i z_i, and sum_i h_i z_i z_i^T."""

    def __init__(self, design: DesignMatrix, labels: Floats) -> None:
        self._design, self._labels, X = design, labels, design.X
        is_small = not self._design.is_sparse and X.size <= _FEW_NUMBERS  # a copy saves calls of numpy
        self._Z = None
        if is_small:
            self._Z = np.empty((X.shape[0], X.shape[1] + 1))
            self._Z[:, -1] = labels
            self._signed = self._Z[:, :-1]
            np.multiply(X, labels[:, None], out=self._signed)

    def gains(self, weights: Floats, intercept: float) -> Floats:
        """z_i . (w, b), the intercept added last."""
        if self._Z is not None:
            gains = self._signed @ weights
            gains += self._labels * intercept
            return np.asarray(gains)
        return np.asarray(self._labels * (self._design.times(weights) + intercept))

    def folded(self, values: Floats) -> Floats:
        """sum_i a_i z_i."""
        if self._Z is not None:
            return np.asarray(values @ self._Z)
        return np.append(self._design.transposed_times(self._labels * values), self._labels @ values)

    def gram(self, weights: Floats) -> Floats:
        """sum_i h_i z_i z_i^T."""
        if self._Z is not None:
            roots = self._Z * np.sqrt(weights)[:, None]
            return np.asarray(roots.T @ roots)  # numpy knows it is symmetric: half the work
        return bordered_gram(self._design.X, weights)
