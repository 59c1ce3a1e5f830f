"""The linear system of every Newton step, solved on its smaller side.

    [ E + X^T D X    X^T D 1 ] [dw]   [r_w]
    [ 1^T D X        1^T D 1 ] [db] = [r_b]

E is diagonal and positive, D >= 0 holds one number per row. Without an intercept the last row and column go.

* M <= N: form the matrix, Cholesky.
* M > N: with g = D (X dw + 1 db) the same system reads dw = E^(-1) (r_w - X^T g), 1^T g = r_b and
  (D^(-1) + X E^(-1) X^T) g = X E^(-1) r_w + 1 db, an N x N Cholesky over the rows with D > 0.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import lapack

from exclusivity.problem.arrays import Floats, Matrix

# Relative to the trace; enough to factorise what rounding has made indefinite, too little to turn a step.
_JITTER = 1e-15
_MAX_JITTERS = 8
DENSE_LIMIT = 4096
"""The largest side of a system that is factorised: a second's work, and what Ctrl-C may have to wait for."""

CHUNK_NUMBERS = 1 << 20
"""Rows are copied so many numbers at a time."""


class NewtonSystem(Protocol):
    """A factorised system."""

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """(dw, db)."""


def robust_cholesky(matrix: Floats) -> Floats:
    """The lower Cholesky factor of a positive semi-definite matrix, with a growing ridge while it fails.

    Above the diagonal is what was there before.
    """
    jitter = 0.0
    base = _JITTER * max(float(np.trace(matrix)), np.finfo(float).tiny)
    for attempt in range(_MAX_JITTERS):
        shifted = matrix + jitter * np.eye(len(matrix)) if jitter else matrix
        # LAPACK itself: with few rows a step takes as long as scipy's wrapping of it.
        factor, info = lapack.dpotrf(shifted, lower=1, clean=0)
        if info == 0:
            if np.isfinite(np.diagonal(factor)).all():  # not every LAPACK minds what is not a number
                return np.asarray(factor)
            break
        jitter = base * 100.0**attempt
    raise linalg.LinAlgError("the Newton matrix is not finite or far from positive definite")


def cholesky_solve(factor: Floats, right: Floats) -> Floats:
    """The solution of L L^T x = right."""
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
        # Scaling to a unit diagonal keeps features of very different sizes from drowning each other.
        self._scale = 1 / np.sqrt(np.diagonal(matrix))
        self._factor = robust_cholesky(matrix * self._scale * self._scale[:, None])

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """(dw, db)."""
        right = np.append(r_w, r_b) if self._has_intercept else r_w
        solution = self._scale * cholesky_solve(self._factor, self._scale * right)
        return (solution[:-1], float(solution[-1])) if self._has_intercept else (solution, 0.0)


class DualSystem:
    """The N x N side, for more features than rows. ``kernel`` may hold X E^(-1) X^T if it is known."""

    def __init__(
        self, X: Matrix, ridge: Floats, weights: Floats, has_intercept: bool, kernel: Floats | None = None
    ) -> None:
        active = np.flatnonzero(weights)
        self._X = X[active] if len(active) < X.shape[0] else X
        self._n_rows, self._active, self._weights = X.shape[0], active, weights[active]
        self._ridge, self._has_intercept = ridge, has_intercept
        kernel = dense_product(self._X, ridge) if kernel is None else kernel[np.ix_(active, active)]
        self._ones = np.empty(0)
        if len(active) == 0:
            return
        system = kernel + np.diag(1 / self._weights)
        self._scale = 1 / np.sqrt(np.diagonal(system))
        self._factor = robust_cholesky(system * self._scale * self._scale[:, None])
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
        g, db = self._row_side(self._X @ (r_w / self._ridge), r_b)
        dw = (r_w - self._X.T @ g) / self._ridge
        dg, change = self._row_side(self._X @ dw + db - g / self._weights, r_b - float(g.sum()))
        multipliers[self._active] = g + dg
        return dw - (self._X.T @ dg) / self._ridge, db + change, multipliers

    def _row_side(self, right: Floats, total: float) -> tuple[Floats, float]:
        """Solve for g and db: (D^(-1) + X E^(-1) X^T) g = right + 1 db with sum g = total, or db = 0."""
        g = self._apply(right)
        if not self._has_intercept:
            return g, 0.0
        db = float((total - g.sum()) / self._ones.sum())
        return g + db * self._ones, db


def dense_product(X: Matrix, ridge: Floats) -> Floats:
    """X diag(1/ridge) X^T as a dense matrix."""
    if sparse.issparse(X):
        return np.asarray((X.multiply(1 / ridge) @ X.T).toarray(), dtype=float)
    wide = X.astype(float, copy=False)
    return np.asarray((wide / ridge) @ wide.T)


def ridged_system(gram: Floats, ridge: Floats, fit_intercept: bool) -> PrimalSystem:
    """The system of a bordered Gram matrix (contiguous), to which the ridge is added in place."""
    gram.reshape(-1)[:: len(gram) + 1][: len(ridge)] += ridge
    return PrimalSystem(gram, fit_intercept)


def bordered_gram(X: Matrix, weights: Floats) -> Floats:
    """sum_i h_i (x_i, 1)(x_i, 1)^T over the rows with h_i > 0."""
    step = max(CHUNK_NUMBERS // (X.shape[1] + 1), 1)
    if sparse.issparse(X) or len(weights) <= step:
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
    if sparse.issparse(rows):
        scaled = rows.multiply(roots).tocsr()
        gram[:M, :M] = (scaled.T @ scaled).toarray()
    else:
        scaled = rows * roots
        gram[:M, :M] = scaled.T @ scaled
    gram[:M, M] = gram[M, :M] = scaled.T @ roots[:, 0]
    gram[M, M] = h.sum()
    return gram
