"""Second derivatives of the squared hinge, kept up to date from point to point.

For p = 2 the curvature is that of the active rows (m_i > 0), whatever their margins,

    H = 2 sum_{i active} c_i (x_i, 1)(x_i, 1)^T .

Newton's method changes its mind about fewer and fewer rows: only those that come or go are read, which takes
the price of a step from M products with X to little more than that of the gradient.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from exclusivity.problem import DesignMatrix
from exclusivity.problem.arrays import Floats, Matrix

# Below this share of what it once was, a diagonal entry has lost too many digits to subtractions.
_LEAST_SHARE = 1e-6
# Rows copied at a time.
_CHUNK_NUMBERS = 1 << 20


class ActiveGram:
    """sum_i c_i (x_i, 1)(x_i, 1)^T over the active rows.

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
        self._active = np.zeros(self._design.n_rows, dtype=bool)
        self._gram = np.zeros((self._design.n_features + 1, self._design.n_features + 1))
        self._peak = np.zeros(self._design.n_features + 1)

    def at(self, active: NDArray[np.bool_]) -> Floats:
        """The matrix for these rows, read-only: the next one starts from it."""
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
        step = max(_CHUNK_NUMBERS // (self._design.n_features + 1), 1)
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            total += bordered_gram(self._design.X[chunk], self._costs[chunk])
        return total


def bordered_gram(X: Matrix, weights: Floats) -> Floats:
    """sum_i h_i (x_i, 1)(x_i, 1)^T over the rows with h_i > 0."""
    step = max(_CHUNK_NUMBERS // (X.shape[1] + 1), 1)
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
