"""Scalers from sums over blocks of rows: what scikit-learn's would learn from all rows at once."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from exclusivity._typing import Floats, Matrix

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Number of rows, means, and sums of squared deviations from them: for ``StandardScaler``."""

    n_rows: int
    means: Floats
    scatter: Floats

    @classmethod
    def of(cls, X: Matrix) -> ColumnMoments:
        """The moments of a block, which has rows."""
        learned = StandardScaler(with_mean=not sparse.issparse(X))
        for start in range(0, X.shape[0], _BATCH_ROWS):  # it would make copies of the whole block
            learned.partial_fit(X[start : start + _BATCH_ROWS])
        return cls(X.shape[0], learned.mean_, learned.var_ * X.shape[0])

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        """The moments of both: m = m1 + (n2 / n) d and S = S1 + S2 + (n1 n2 / n) d^2 with d = m2 - m1."""
        n_rows, apart = self.n_rows + other.n_rows, other.means - self.means
        return ColumnMoments(
            n_rows,
            self.means + apart * (other.n_rows / n_rows),
            self.scatter + other.scatter + apart**2 * (self.n_rows * other.n_rows / n_rows),
        )

    def widened(self, n_features: int) -> ColumnMoments:
        """Return the same with more columns, whose entries are all zero."""
        return ColumnMoments(self.n_rows, _padded(self.means, n_features), _padded(self.scatter, n_features))

    def scaler(self, *, is_sparse: bool) -> StandardScaler:
        """Return the fitted scaler; for sparse rows one that keeps zeros."""
        n, variance = self.n_rows, self.scatter / self.n_rows
        # A deviation within the rounding errors of n sums is none: scikit-learn's own rule.
        eps = np.finfo(float).eps
        is_constant = variance <= n * eps * variance + (n * self.means * eps) ** 2
        learned = StandardScaler(with_mean=not is_sparse)
        learned.mean_, learned.var_ = self.means, variance
        learned.scale_ = np.where(is_constant, 1.0, np.sqrt(variance))
        learned.n_samples_seen_, learned.n_features_in_ = np.int64(n), len(self.means)
        return learned


@dataclass(frozen=True, eq=False)
class ColumnRanges:
    """Number of rows, lowest and highest entries: for ``MinMaxScaler`` and ``MaxAbsScaler``."""

    n_rows: int
    low: Floats
    high: Floats

    @classmethod
    def of(cls, X: Matrix) -> ColumnRanges:
        """The ranges of a block, which has rows."""
        if not sparse.issparse(X):
            return cls(X.shape[0], X.min(axis=0), X.max(axis=0))
        return cls(X.shape[0], X.min(axis=0).toarray()[0], X.max(axis=0).toarray()[0])

    def __add__(self, other: ColumnRanges) -> ColumnRanges:
        """The ranges of both."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return ColumnRanges(self.n_rows + other.n_rows, low, high)

    def widened(self, n_features: int) -> ColumnRanges:
        """Return the same with more columns, whose entries are all zero."""
        return ColumnRanges(self.n_rows, _padded(self.low, n_features), _padded(self.high, n_features))

    def scaler(self, *, is_sparse: bool) -> BaseEstimator:
        """Return the fitted scaler; for sparse rows one that keeps zeros."""
        # Two rows with the same extremes teach a scaler the same.
        learned = MaxAbsScaler() if is_sparse else MinMaxScaler((-1, 1))
        learned.fit(np.stack([self.low, self.high]))
        learned.n_samples_seen_ = self.n_rows
        return learned


ColumnSums = ColumnMoments | ColumnRanges


def column_sums(X: Matrix, scale: str) -> ColumnSums | None:
    """Return what the scaler of that name (standard, minmax, none) has to know; None without rows."""
    if scale == "none" or X.shape[0] == 0:
        return None
    return ColumnMoments.of(X) if scale == "standard" else ColumnRanges.of(X)


def scaled(scaler: BaseEstimator, X: Matrix) -> Matrix:
    """Return the rows as the scaler makes them, in their own memory."""
    if scaler is None or X.shape[0] == 0:
        return X
    in_place = copy(scaler).set_params(copy=False)
    if sparse.issparse(X):
        return in_place.transform(X)
    for start in range(0, X.shape[0], _BATCH_ROWS):
        X[start : start + _BATCH_ROWS] = in_place.transform(X[start : start + _BATCH_ROWS])
    return X


def _padded(values: NDArray[Any], n_features: int) -> NDArray[Any]:
    return np.append(values, np.zeros(n_features - len(values)))
