"""PSVM: one primal SVM by augmented Lagrangian steps (SVM-ALM of Nie, Huang, Wang and Huang, ICML 2014).

    min  1/2 |w|^2 + C sum_i max(0, y_i e_i)^p    subject to    e = y - X w - b,

where y_i e_i = 1 - y_i (x_i . w + b) because y_i^2 = 1. With the multiplier u and a constant penalty mu,

    (w, b):  ridge regression of y - e - u/mu on X, ridge 1/mu, b free (the data are centred);
    e:       proximal map of the loss at  y - X w - b - u/mu,  closed for p = 1 and p = 2;
    u:       u + mu (X w + b - y + e).

The steps minimise over two blocks in turn, so every constant mu > 0 converges. The original schedule of mu is
not known; one that grows without bound may freeze the iterates before the optimum, as it does in the ERM
paper's Algorithm 2.

A run ends on its duality gap. With alpha = -y u, which the proximal map keeps in its box, the dual is

    D(alpha) = sum_i alpha_i - 1/2 |X^T (y alpha)|^2  [ - sum_i alpha_i^2 / (4 C)  for p = 2 ]

for sum_i y_i alpha_i = 0, which is achieved by scaling the class with the larger sum of alphas down. The code
shares nothing with the solvers of the package, so that its SVMs are an independent check of theirs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from reproduction.data import Floats

# u lies between 0 and C where e is of order 1. Measured on 150 rows of the paper's sets scaled to [-1, 1],
# C in {0.1, 1, 10}: iterations are fewest between 0.1 C and C, and 0.3 C is never far from the best.
_MU_PER_COST = 0.3


@dataclass(frozen=True, eq=False)
class PSVMResult:
    """Hold the best iterate of a run, its dual vector, and objective and bound of every iteration."""

    weights: Floats
    intercept: float
    dual: Floats
    objectives: Floats
    bounds: Floats
    gap: float


def solve_psvm(
    X: Floats, y: Floats, *, cost: float, p: int, mu: float, tol: float, max_iter: int
) -> PSVMResult:
    """Iterate until the relative duality gap of the best iterate is at most ``tol``.

    Examples
    --------
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> result = solve_psvm(X, y, cost=1.0, p=1, mu=0.3, tol=1e-8, max_iter=1000)
    >>> result.weights.round(6), round(float(result.objectives[-1]), 6)
    (array([1.]), 0.5)
    """
    mean = X.mean(axis=0)
    centred = X - mean
    factor = cho_factor(centred.T @ centred + np.eye(X.shape[1]) / mu)
    e, u = np.zeros_like(y), np.zeros_like(y)
    weights, dual = np.zeros(X.shape[1]), np.zeros_like(y)
    intercept, best, bound, gap = 0.0, np.inf, 0.0, 1.0  # alpha = 0 proves 0
    objectives: list[float] = []
    bounds: list[float] = []
    while gap > tol and len(objectives) < max_iter:
        target = y - e - u / mu
        w = cho_solve(factor, centred.T @ target)
        b = float(target.mean() - mean @ w)
        scores = X @ w + b
        e = y * _proximal(y * (y - scores - u / mu), cost / mu, p)
        u = u + mu * (scores - y + e)
        objectives.append(0.5 * float(w @ w) + cost * float((np.maximum(0, 1 - y * scores) ** p).sum()))
        alpha = _balanced(-y * u, y)
        bounds.append(_dual(X, y, alpha, cost, p))
        if objectives[-1] < best:
            weights, intercept, best = w, b, objectives[-1]
        if bounds[-1] > bound:
            dual, bound = alpha, bounds[-1]
        gap = (best - bound) / best
    return PSVMResult(weights, intercept, dual, np.array(objectives), np.array(bounds), gap)


def _proximal(z: Floats, step: float, p: int) -> Floats:
    """Minimise ``step`` max(0, v)^p + 1/2 (v - z)^2 over v."""
    if p == 2:
        return np.where(z > 0, z / (1 + 2 * step), z)
    return np.where(z > step, z - step, np.minimum(z, 0.0))


def _balanced(alpha: Floats, y: Floats) -> Floats:
    """Scale the heavier class down, so that sum y alpha = 0."""
    alpha = np.maximum(alpha, 0.0)
    above, below = float(alpha[y > 0].sum()), float(alpha[y < 0].sum())
    lighter = min(above, below)
    return alpha * np.where(y > 0, lighter / (above or 1.0), lighter / (below or 1.0))


def _dual(X: Floats, y: Floats, alpha: Floats, cost: float, p: int) -> float:
    v = X.T @ (y * alpha)
    conjugate = float(alpha @ alpha) / (4 * cost) if p == 2 else 0.0
    return float(alpha.sum() - v @ v / 2) - conjugate


class LinearBinaryClassifier(ClassifierMixin, BaseEstimator):
    """Predict by the sign of a linear function; two classes, dense rows."""

    classes_: Floats
    coef_: Floats
    intercept_: Floats

    def decision_function(self, X: Floats) -> Floats:
        """Return scores; positive means ``classes_[1]``."""
        return np.asarray(X @ self.coef_[0] + self.intercept_[0], dtype=float)

    def predict(self, X: Floats) -> Floats:
        """Return the class of every row."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])

    def _signs(self, y: Floats) -> Floats:
        """Store the two classes, and return the labels as -1 and +1."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(f"y must have two classes; got {len(self.classes_)}.")
        return np.where(codes == 1, 1.0, -1.0)


class PSVMClassifier(LinearBinaryClassifier):
    """Train one linear SVM with a free intercept by an augmented Lagrangian method.

    Parameters
    ----------
    C : float
        Weight of the loss.
    p : {1, 2}
        Power of the hinge loss.
    mu : float or None
        Constant penalty of the augmented Lagrangian; changes the path, not the solution. None means 0.3 C.
    tol : float
        Relative duality gap, (F - D) / F, at which a fit ends.
    max_iter : int
        Most iterations.

    Attributes
    ----------
    classes_, coef_, intercept_, objective_, dual_gap_, n_iter_ : ndarray
        As those of ``ERMClassifier`` for two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = PSVMClassifier(C=0.1).fit(scale(X), y)
    >>> round(clf.score(scale(X), y), 2), bool(clf.dual_gap_[0] <= 1e-4)
    (0.99, True)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        p: int = 2,
        mu: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
    ) -> None:
        self.C = C
        self.p = p
        self.mu = mu
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Floats, y: Floats) -> Self:
        """Train the SVM."""
        mu = _MU_PER_COST * self.C if self.mu is None else self.mu
        result = solve_psvm(
            X, self._signs(y), cost=self.C, p=self.p, mu=mu, tol=self.tol, max_iter=self.max_iter
        )
        self.coef_, self.intercept_ = result.weights[None], np.array([result.intercept])
        self.objective_, self.dual_gap_ = np.array([result.objectives.min()]), np.array([result.gap])
        self.n_iter_ = np.array([len(result.objectives)])
        if result.gap > self.tol:
            warnings.warn(
                f"duality gap {result.gap:.1e} after {self.n_iter_[0]} iterations, above tol={self.tol:g}. "
                "Scale the features, change mu, or raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self
