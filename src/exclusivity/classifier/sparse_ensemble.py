"""The fitted members with their weights in a sparse matrix, for models most of whose weights are zero."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from exclusivity.classifier.fitted import Ensemble
from exclusivity.problem.arrays import Floats, Matrix


class SparseEnsemble(Ensemble):
    """The same members: one row of ``rows`` for each binary problem and stored member.

    ``weights`` are made dense where somebody asks; scores and votes do not.

    Parameters
    ----------
    rows : csr_array of shape (n_problems * n_stored, n_features)
    intercepts : ndarray of shape (n_problems, n_stored)
    n_members : int
    """

    rows: Any

    def __init__(self, rows: object, intercepts: Floats, n_members: int) -> None:
        self.__dict__.update(rows=rows, intercepts=intercepts, n_members=n_members)

    @classmethod
    def of(cls, dense: Ensemble) -> Self:
        """The sparse form of any members."""
        n_features = dense.weights.shape[2]
        rows = sparse.csr_array(dense.weights.reshape(-1, n_features))
        return cls(rows, dense.intercepts, dense.n_members)

    @property
    def weights(self) -> Floats:
        """(n_problems, n_stored, n_features)."""
        return np.asarray(self.rows.toarray().reshape(*self.intercepts.shape, self.rows.shape[1]))

    @property
    def coef(self) -> Matrix:
        """Weights of the averaged model, (n_problems, n_features), as a CSR matrix of the caller's own."""
        return self.mean().rows.copy()

    def dense(self) -> Ensemble:
        """The same members with an array of weights."""
        return Ensemble(self.weights, self.intercepts, self.n_members)

    def voters(self) -> Self:
        """See ``Ensemble``."""
        uses_features = np.diff(self.rows.indptr).reshape(self.intercepts.shape).any(axis=0)
        if self.members_are_equal or uses_features.all() or not uses_features.any():
            return self
        chosen = np.flatnonzero(np.tile(uses_features, len(self.intercepts)))
        intercepts = self.intercepts[:, uses_features]
        return type(self)(self.rows[chosen], intercepts, intercepts.shape[1])

    def mean(self) -> Self:
        """The averaged model as an ensemble of one."""
        if self.members_are_equal:
            return type(self)(self.rows, self.intercepts, 1)
        n_problems, n_stored = self.intercepts.shape
        average = sparse.kron(sparse.eye_array(n_problems), np.full((1, n_stored), 1 / n_stored), "csr")
        rows = sparse.csr_array(average @ self.rows).astype(self.rows.dtype)
        return type(self)(rows, self.intercepts.mean(axis=1, keepdims=True), 1)

    def _margins(self, X: Matrix) -> Floats:
        product = X @ self.rows.T.astype(float)
        return np.asarray(product.toarray() if sparse.issparse(product) else product, dtype=float)
