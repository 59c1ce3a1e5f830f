"""The Newton system by conjugate gradients, for rows too wide for a matrix of second derivatives."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from exclusivity.problem.arrays import Floats, Matrix

_CG_TOL = 1e-3
_CG_MAX_ITER = 500


class IterativeSystem:
    """(I + X^T D X, bordered by the intercept) solved by conjugate gradients with a diagonal preconditioner.

    The step is inexact (relative residual 1e-3): a Newton step needs no more, and the line search and the
    certificate do not depend on it.
    """

    def __init__(self, X: Matrix, weights: Floats, has_intercept: bool) -> None:
        self._X, self._weights, self._has_intercept = X, weights, has_intercept
        squares = X.multiply(X) if sparse.issparse(X) else X * X
        # Without an active row the intercept has no equation; give it a unit one, as ``PrimalSystem`` does.
        self._border = 0.0 if weights.sum() > 0 else 1.0
        self._diagonal = np.append(1.0 + squares.T @ weights, weights.sum() + self._border)

    def _apply(self, vector: Floats) -> Floats:
        image = self._weights * (self._X @ vector[:-1] + vector[-1])
        product = np.append(vector[:-1] + self._X.T @ image, image.sum() + self._border * vector[-1])
        if not self._has_intercept:
            product[-1] = vector[-1]
        return product

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """(dw, db), approximately."""
        residual = np.append(r_w, r_b if self._has_intercept else 0.0)
        solution = np.zeros_like(residual)
        scaled = residual / self._diagonal
        direction, rho = scaled, float(residual @ scaled)
        goal = _CG_TOL**2 * rho
        for _ in range(_CG_MAX_ITER):
            if rho <= goal:
                break
            image = self._apply(direction)
            bend = float(direction @ image)
            if not bend > 0:  # rounding has eaten the curvature: what has been found so far must do
                break
            length = rho / bend
            solution = solution + length * direction
            residual = residual - length * image
            scaled = residual / self._diagonal
            rho, old = float(residual @ scaled), rho
            direction = scaled + (rho / old) * direction
        return solution[:-1], float(solution[-1]) if self._has_intercept else 0.0
