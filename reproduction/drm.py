"""DRM: the Diversity Regularized Machine of Yu, Li and Zhou (IJCAI 2011), from its publication.

    min  sum_t ( -nu rho_t + (1/N) sum_i xi_ti^2 )  +  mu sum_{t<t'} |w_t + w_t'|^2
    subject to   y_i x_i . w_t >= rho_t - xi_ti   and   |w_t| <= 1  (relaxed)  or  |w_t| = 1  (sphere).

For given margins m_i = y_i x_i . w the best rho and xi follow: with alpha_i = (2/N) max(0, rho - m_i), the
derivative with respect to rho vanishes where sum_i alpha_i = nu. So alpha is the projection of -(2/N) m onto
the simplex {alpha >= 0, sum alpha = nu}, and every member pays

    phi(w) = -nu rho + (N/4) |alpha|^2,     grad phi(w) = -X^T (y alpha),

a convex function with a Lipschitz gradient. The coupling is mu ((T - 2) sum_t |w_t|^2 + |sum_t w_t|^2).

The relaxed problem is convex and symmetric in its members: for T >= 3 and mu > 0 all of them are equal at the
optimum, one nu-SVM with a ridge of 2 mu (T - 1). What difference is left is of the size of sqrt(tol).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from reproduction.data import Floats
from reproduction.psvm import LinearBinaryClassifier

Bools = NDArray[np.bool_]

# Without a ridge of its own (T = 1 or mu = 0) a member gets this fraction of the mean squared feature, as a
# proximal term around where it is: the step stays defined, and the point it leads to is not biased.
_SMALLEST_RIDGE = 1e-10
_BALL_TOL = 1e-10
_MAX_BALL_STEPS = 50
_ARMIJO = 1e-4
_MAX_HALVINGS = 30
# A gap is linear in a small error where the objective is quadratic: the last steps change nothing visible.
_ROUNDING = 1e-15


def project_onto_simplex(points: Floats, total: float) -> tuple[Floats, Floats]:
    """Return the nearest point of {a >= 0, sum a = total} to every column, and the level subtracted from it.

    The projection is max(0, point - level). If the k largest entries stay positive, their sum minus total is
    k level; every other k gives less, so the level is the maximum over k.

    Examples
    --------
    >>> project_onto_simplex(np.array([0.5, 0.9, -1.0]), 1.0)[0]
    array([0.3, 0.7, 0. ])
    """
    falling = np.sort(points, axis=0)[::-1]
    sizes = np.arange(1, len(points) + 1).reshape(-1, *[1] * (points.ndim - 1))
    level = np.max((np.cumsum(falling, axis=0) - total) / sizes, axis=0)
    return np.maximum(points - level, 0.0), level


@dataclass(frozen=True, eq=False)
class DRMProblem:
    """State one binary DRM as a function of its weight vectors.

    Attributes
    ----------
    Z : ndarray of shape (n_rows, n_features)
        The rows y_i x_i.
    n_members : int
        T.
    nu, mu : float
        Weights of the margin, positive, and of the diversity, not negative.
    """

    Z: Floats
    n_members: int
    nu: float
    mu: float

    @property
    def row_length(self) -> float:
        """Return the root mean squared length of the rows; 1 if all are zero."""
        return float(np.sqrt((self.Z**2).sum() / len(self.Z))) or 1.0

    def fit(self, margins: Floats) -> tuple[Floats, Floats]:
        """Return phi for every column of margins (or for one vector), and its alpha."""
        n_rows = len(margins)
        alpha, level = project_onto_simplex(margins * (-2 / n_rows), self.nu)
        rho = -level * n_rows / 2
        return np.asarray(-self.nu * rho + n_rows / 4 * np.sum(alpha**2, axis=0)), alpha

    def coupling(self, weights: Floats) -> float:
        """Return the diversity term, mu sum_{t<t'} |w_t + w_t'|^2."""
        total = weights.sum(axis=1)
        return float(self.mu * ((self.n_members - 2) * np.sum(weights**2) + total @ total))

    def objective(self, weights: Floats) -> float:
        """Return the value at an (n_features, T) matrix of weight vectors."""
        return float(self.fit(self.Z @ weights)[0].sum() + self.coupling(weights))

    def relaxed_bound(self, alpha: Floats) -> float:
        """Return a lower bound on the relaxed minimum from any alpha in the simplex.

        T copies of the mean member are at least as good as the members: the minimum is T times that of

            phi(w) + d |w|^2,   |w| <= 1,   d = 2 mu (T - 1),

        and for v = X^T (y alpha) the dual of this one problem is

            -(N/4) |alpha|^2 - |v|^2 / (4 d)  where |v| <= 2 d,   else   -(N/4) |alpha|^2 - |v| + d.
        """
        d = 2 * self.mu * (self.n_members - 1)
        length = float(np.linalg.norm(self.Z.T @ alpha))
        paid = length**2 / (4 * d) if length < 2 * d else length - d
        return float(-self.n_members * (len(self.Z) / 4 * (alpha @ alpha) + paid))


@dataclass(frozen=True, eq=False)
class DRMResult:
    """Hold the end of a run.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_members)
    history : ndarray of shape (n_iter,)
        The objective after every sweep.
    gap : float
        Relative duality gap of ``weights``; NaN where none exists.
    residual : float
        What the tolerance was compared with.
    converged : bool
    """

    weights: Floats
    history: Floats
    gap: float
    residual: float
    converged: bool


class _Alternation:
    """Take Newton steps of one member after the other, |w_t| <= 1.

    With all others fixed and s = sum_{t' != t} w_t', member t minimises

        phi(w) + d |w|^2 + 2 mu s . w   over   |w| <= 1,      d = mu (T - 1).

    phi is piecewise quadratic. On the piece of the active rows {alpha > 0}, with the mean z of their y_i x_i
    and these centred as B, and with D = d + lam, where lam is the multiplier of the ball, stationarity reads

        (B^T B + N D I) w = (N/2) (nu z - 2 mu s),

    a ridge regression, and lam >= 0 is the root of 1/|w(lam)| = 1 (or zero inside the ball): a concave
    increasing function of lam, so that Newton's method comes to it from below after its first step.
    """

    def __init__(self, problem: DRMProblem) -> None:
        self.problem = problem
        (n_rows, n_features), n_members = problem.Z.shape, problem.n_members
        self.weights = np.zeros((n_features, n_members))
        self.margins = np.zeros((n_rows, n_members))
        self.total = np.zeros(n_features)
        self.ridge = problem.mu * (n_members - 1)
        self.least = max(self.ridge, _SMALLEST_RIDGE * problem.row_length**2 / n_features)
        self.multipliers = np.full(n_members, self.least)
        self._key: tuple[bytes, float] | None = None

    def visit(self, t: int) -> None:
        """Take one Newton step of member t, as far as it lowers the objective."""
        problem, w, margins = self.problem, self.weights[:, t].copy(), self.margins[:, t]
        linear = 2 * problem.mu * (self.total - w)
        value, alpha = problem.fit(margins)
        shift = (self.least - self.ridge) * w - linear / 2
        target, self.multipliers[t] = self._piece_minimiser(alpha > 0, shift, self.multipliers[t])
        step = target - w
        slope = step @ (linear + 2 * self.ridge * w - problem.Z.T @ alpha)
        now = float(value + self.ridge * (w @ w) + linear @ w)
        change = problem.Z @ step
        for halvings in range(_MAX_HALVINGS):
            size = 0.5**halvings
            moved = w + size * step
            then = problem.fit(margins + size * change)[0] + self.ridge * (moved @ moved) + linear @ moved
            if then <= now + _ARMIJO * size * slope + _ROUNDING * abs(now):
                self.margins[:, t] += size * change
                self.weights[:, t] = moved
                self.total += moved - w
                break

    def _piece_minimiser(self, active: Bools, shift: Floats, multiplier: float) -> tuple[Floats, float]:
        """Minimise the quadratic piece of the active rows over the ball; return the point and its D."""
        n_rows, nu = len(self.problem.Z), self.problem.nu
        for _ in range(_MAX_BALL_STEPS):
            self._factorise(active, n_rows * multiplier)
            w = cho_solve(self._factor, n_rows * (nu / 2 * self._mean + shift))
            length = float(np.linalg.norm(w))
            inside = length < 1 and multiplier <= self.least
            if inside or abs(length - 1) <= _BALL_TOL or length == 0:
                break
            # d|w|/dD = -N w.(B^T B + N D I)^-1 w / |w|: Newton's method for 1/|w| - 1 = 0.
            slope = n_rows * float(w @ cho_solve(self._factor, w))
            multiplier = max(self.least, multiplier + length**2 * (length - 1) / slope)
        return w / max(1.0, length), multiplier

    def _factorise(self, active: Bools, ridge: float) -> None:
        """Factorise B^T B + ridge I; members close to each other have the same active rows and share it."""
        key = (active.tobytes(), ridge)
        if key != self._key:
            rows = self.problem.Z[active]
            self._mean = rows.mean(axis=0)
            rows = rows - self._mean
            self._factor = cho_factor(rows.T @ rows + ridge * np.eye(rows.shape[1]))
            self._key = key

    def certificate(self) -> tuple[float, float]:
        """Return the objective, and its relative gap to the bound of the mean alpha."""
        values, alpha = self.problem.fit(self.margins)
        objective = float(values.sum() + self.problem.coupling(self.weights))
        bound = self.problem.relaxed_bound(alpha.mean(axis=1))
        # At w = 0 the objective is -T nu^2 / 4, so it is negative from the first sweep on.
        return objective, max((objective - bound) / abs(objective), 0.0)


def solve_relaxed(problem: DRMProblem, *, tol: float, max_sweeps: int) -> DRMResult:
    """Alternate from zero weights until the relative duality gap is at most ``tol``.

    Examples
    --------
    >>> Z = np.array([[1.0, 0.2], [1.0, -0.1]])
    >>> result = solve_relaxed(DRMProblem(Z, 3, nu=0.5, mu=0.1), tol=1e-8, max_sweeps=100)
    >>> result.converged, result.weights.round(3)[0]
    (True, array([0.625, 0.625, 0.625]))
    """
    state = _Alternation(problem)
    history: list[float] = []
    gap = np.inf
    while gap > tol and len(history) < max_sweeps:
        for t in range(problem.n_members):
            if not history and t:  # nobody knows D before the first visit but the neighbour
                state.multipliers[t] = state.multipliers[t - 1]
            state.visit(t)
        objective, gap = state.certificate()
        history.append(objective)
    return DRMResult(state.weights, np.array(history), gap, gap, gap <= tol)


def solve_sphere(problem: DRMProblem, *, tol: float, max_sweeps: int, random_state: int) -> DRMResult:
    """Descend from random directions with |w_t| = 1 until the gradient along the spheres is at most ``tol``.

    The problem is not convex, and its members differ where mu is large enough: equal members stop being a
    minimum once 2 mu T exceeds |X^T (y alpha)| plus the smallest curvature of phi. All members move at once:
    with w_t = v_t / |v_t| the constraint is gone, and L-BFGS leads from random v_t to a local minimum. The
    gradient (its largest entry) is measured against nu times the root mean squared length of the rows plus
    2 mu T, the sizes of its two parts. A sweep is one L-BFGS step.

    Examples
    --------
    >>> Z = np.array([[1.0, 0.2], [1.0, -0.1]])
    >>> w = solve_sphere(DRMProblem(Z, 2, nu=0.5, mu=1.0), tol=1e-6, max_sweeps=99, random_state=0).weights
    >>> np.linalg.norm(w, axis=0).round(6), bool(w[:, 0] @ w[:, 1] < 0)
    (array([1., 1.]), True)
    """
    shape = (problem.Z.shape[1], problem.n_members)
    scale = problem.nu * problem.row_length + 2 * problem.mu * problem.n_members
    weights = _unit(np.random.default_rng(random_state).standard_normal(shape))
    history: list[float] = []

    def scaled(flat: Floats) -> tuple[float, Floats]:
        directions = flat.reshape(shape)
        value, gradient = sphere_gradient(problem, _unit(directions))
        return value / scale, (gradient / np.linalg.norm(directions, axis=0) / scale).ravel()

    def record(intermediate_result: OptimizeResult) -> None:
        history.append(float(intermediate_result.fun) * scale)

    residual, moved = np.inf, True
    while moved and residual > tol and len(history) < max_sweeps:
        options = {"maxiter": max_sweeps - len(history), "gtol": tol, "ftol": 0.0}
        found = minimize(
            scaled, weights.ravel(), jac=True, method="L-BFGS-B", callback=record, options=options
        )
        # Steps along the spheres lengthen the directions, and a gradient looks smaller from further out:
        # begin anew from unit length unless it is small there too.
        weights = _unit(found.x.reshape(shape))
        value, gradient = sphere_gradient(problem, weights)
        residual = float(np.abs(gradient).max()) / scale
        moved = found.nit > 0
    return DRMResult(weights, np.array(history or [value]), np.nan, residual, residual <= tol)


def sphere_gradient(problem: DRMProblem, weights: Floats) -> tuple[float, Floats]:
    """Return the objective at unit vectors, and its gradient without the part along them."""
    values, alpha = problem.fit(problem.Z @ weights)
    gradient = 2 * problem.mu * weights.sum(axis=1)[:, None] - problem.Z.T @ alpha
    # The other part of the coupling, mu (T - 2) sum |w_t|^2, is constant here.
    along = np.sum(weights * gradient, axis=0)
    return float(values.sum() + problem.coupling(weights)), gradient - weights * along


def _unit(directions: Floats) -> Floats:
    return np.asarray(directions / np.linalg.norm(directions, axis=0))


class DRMClassifier(LinearBinaryClassifier):
    """Train an ensemble of linear nu-SVMs with diverse weight vectors, and predict with their mean.

    There is no intercept, as in the original.

    Parameters
    ----------
    n_estimators : int
        Number of members T.
    nu, mu : float
        Weights of the margins and of the diversity. These defaults bring the test errors on the paper's data
        sets close to the DRM rows of its Table 1.
    variant : {"relaxed", "sphere"}
        "relaxed" is convex, |w_t| <= 1. "sphere" is not, |w_t| = 1.
    max_sweeps : int
        Most sweeps over the members.
    tol : float
        Relative duality gap ("relaxed") or relative size of the gradient ("sphere") at which a fit ends.
    random_state : int
        For the random directions of "sphere"; the relaxed fit is deterministic.

    Attributes
    ----------
    classes_, coef_, intercept_, objective_, dual_gap_, n_iter_ : ndarray
        As those of ``ERMClassifier`` for two classes; the gap is NaN for "sphere".
    components_ : ndarray of shape (1, n_estimators, n_features)
        Weights of the members.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = DRMClassifier(n_estimators=5).fit(scale(X), y)
    >>> round(clf.score(scale(X), y), 2), clf.components_.shape
    (0.99, (1, 5, 30))
    """

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        nu: float = 0.5,
        mu: float = 0.001,
        variant: str = "relaxed",
        max_sweeps: int = 1000,
        tol: float = 1e-4,
        random_state: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.nu = nu
        self.mu = mu
        self.variant = variant
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Floats, y: Floats) -> Self:
        """Train the ensemble."""
        problem = DRMProblem(X * self._signs(y)[:, None], self.n_estimators, self.nu, self.mu)
        if self.variant == "relaxed":
            result = solve_relaxed(problem, tol=self.tol, max_sweeps=self.max_sweeps)
        elif self.variant == "sphere":
            result = solve_sphere(
                problem, tol=self.tol, max_sweeps=self.max_sweeps, random_state=self.random_state
            )
        else:
            raise ValueError(f"variant must be 'relaxed' or 'sphere'; got {self.variant!r}.")
        self.components_ = result.weights.T[None]
        self.coef_, self.intercept_ = self.components_.mean(axis=1), np.zeros(1)
        self.objective_, self.dual_gap_ = result.history[-1:], np.array([result.gap])
        self.n_iter_ = np.array([len(result.history)])
        if not result.converged:
            warnings.warn(
                f"residual {result.residual:.1e} after {self.n_iter_[0]} sweeps, above tol={self.tol:g}. "
                "Scale the features, or raise max_sweeps or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def component_decision_function(self, X: Floats) -> Floats:
        """Return the margins of every member, (n_samples, 1, n_estimators)."""
        return np.asarray((X @ self.components_[0].T)[:, None, :])
