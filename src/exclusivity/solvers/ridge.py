"""The least-squares step that both ALM solvers share, factorised once.

    min over P (and b):   ridge/2 |P - H|_F^2  +  1/2 sum_i s_i |R_i - x_i P - b|^2

With a free b, centring removes it: for the weighted means x_ and R_, b = R_ - x_ P and P solves the same
problem on X_c = X - 1 x_^T. Which system is factorised depends on the shape only:

* M <= N:  (ridge I + X_c^T S X_c) P = ridge H + X_c^T S R,  an M x M Cholesky factor;
* M > N:   P = H + X_c^T S^(1/2) (ridge I + S^(1/2) X_c X_c^T S^(1/2))^(-1) S^(1/2) (R - X_c H),  N x N;
* either one too large for the memory cap:  conjugate gradients on the M x M system, never formed.

Nothing here depends on labels, so one system serves all iterations, members and one-vs-rest classes.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats
from exclusivity.rows.design import DesignMatrix

DEFAULT_MEMORY_CAP = 1 << 27
"""Bytes that a factor may take before conjugate gradients take over: 128 MiB, a dimension of 4096, which is
also about what a factorisation can do in the second that Ctrl-C may have to wait."""

_CG_TOL = 1e-11
_CG_MAX_ITER = 2000


class RidgeSystem:
    """The least-squares step, ready to be solved with.

    Parameters
    ----------
    design : DesignMatrix
    weights : ndarray of shape (n_rows,)
    ridge : float
    fit_intercept : bool
    kind : {"primal", "dual", "iterative"} or None
        The M x M factor, the N x N factor or conjugate gradients; None chooses by shape and memory cap.
    memory_cap : int
        The most bytes that a factor may take.
    """

    def __init__(
        self,
        design: DesignMatrix,
        weights: Floats,
        *,
        ridge: float,
        fit_intercept: bool,
        kind: Literal["primal", "dual", "iterative"] | None = None,
        memory_cap: int = DEFAULT_MEMORY_CAP,
    ) -> None:
        self.design, self.weights, self.ridge, self.fit_intercept = design, weights, ridge, fit_intercept
        self.mean = design.mean(weights) if fit_intercept else np.zeros(design.n_features)
        if kind is None:
            kind = "primal" if design.n_features <= design.n_rows else "dual"
            if 8 * min(design.n_rows, design.n_features) ** 2 > memory_cap:
                kind = "iterative"
        self.kind = kind
        if kind == "primal":
            self._factor = ShiftedFactor(design.gram(weights, self.mean), ridge)
        elif kind == "dual":
            self._roots = np.sqrt(weights)[:, None]
            self._factor = ShiftedFactor(self._roots * design.kernel(self.mean) * self._roots.T, ridge)
        else:
            self._diagonal = (ridge + design.column_scatter(weights, self.mean))[:, None]

    def solve(self, prior: Floats, targets: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Return P and b for H = ``prior`` and R = ``targets``; iterations begin at P = ``start``."""
        level = self._sums(targets) / self.weights.sum() if self.fit_intercept else np.zeros(targets.shape[1])
        if self.kind == "dual":
            missed = targets - level - (self.design.times(prior) - self.mean @ prior)
            coefficients = self._roots * self._factor.solve(self._roots * missed)
            step = self.design.transposed_times(coefficients) - np.outer(self.mean, coefficients.sum(axis=0))
            solution = prior + step
        else:
            right = self.ridge * prior + self._moment(targets)
            is_factorised = self.kind == "primal"
            solution = self._factor.solve(right) if is_factorised else self._iterate(right, start)
        return solution, level - self.mean @ solution

    def _sums(self, values: Floats) -> Floats:
        """Compute sum_i s_i values_i by blocks: a product over millions of rows keeps Ctrl-C waiting."""
        total = np.zeros(values.shape[1])
        for rows in self.design.row_slices(values.shape[1]):
            total += self.weights[rows] @ values[rows]
        return total

    def _moment(self, values: Floats) -> Floats:
        """Compute X_c^T S values by blocks."""
        moment = np.zeros((self.design.n_features, values.shape[1]))
        for rows, block in self.design.blocks(values.shape[1]):
            weighted = self.weights[rows, None] * values[rows]
            moment += block.T @ weighted
        return np.asarray(moment - np.outer(self.mean, self._sums(values)))

    def _iterate(self, right: Floats, start: Floats) -> Floats:
        """Solve by conjugate gradients, preconditioned by the diagonal, all columns at once."""
        solution = start.copy()
        residual = right - self._apply(solution)
        direction = residual / self._diagonal
        rho = _column_dots(residual, direction)
        goal = _CG_TOL**2 * _column_dots(right, right / self._diagonal)
        for _ in range(_CG_MAX_ITER):
            if np.all(rho <= goal):
                break
            image = self._apply(direction)
            step = _safe_divide(rho, _column_dots(direction, image))
            solution += step * direction
            residual -= step * image
            scaled = residual / self._diagonal
            rho, old = _column_dots(residual, scaled), rho
            direction = scaled + _safe_divide(rho, old) * direction
        return solution

    def _apply(self, direction: Floats) -> Floats:
        """Compute (ridge I + X_c^T S X_c) direction without the matrix."""
        image = self.ridge * direction
        shift = self.mean @ direction
        for rows, block in self.design.blocks(direction.shape[1]):
            weighted = self.weights[rows, None] * (block @ direction - shift)
            image += block.T @ weighted
            image -= np.outer(self.mean, weighted.sum(axis=0))
        return image


class ShiftedFactor:
    """A positive semi-definite matrix plus ``shift`` I, ready to be solved with.

    A Cholesky factor, unless rounding has eaten the shift (columns repeated at a scale of 1e8, say): then
    eigenvectors, whose eigenvalues can be held at their true lower limit.
    """

    def __init__(self, matrix: Floats, shift: float) -> None:
        shifted = matrix + shift * np.eye(len(matrix))
        self._cholesky: tuple[Floats, bool] | None = None
        try:
            self._cholesky = linalg.cho_factor(shifted, lower=True, check_finite=False)
        except linalg.LinAlgError:
            values, self._vectors = linalg.eigh(matrix, check_finite=False)
            self._values = np.maximum(values, 0.0)[:, None] + shift

    def solve(self, right: Floats) -> Floats:
        """Compute (matrix + shift I)^(-1) right."""
        if self._cholesky is not None:
            return np.asarray(linalg.cho_solve(self._cholesky, right, check_finite=False))
        return np.asarray(self._vectors @ ((self._vectors.T @ right) / self._values))


def _column_dots(left: Floats, right: Floats) -> Floats:
    return np.asarray(np.einsum("jk,jk->k", left, right))


def _safe_divide(numerator: Floats, denominator: Floats) -> Floats:
    """Divide column by column; a column that has converged exactly (0/0) stands still."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
