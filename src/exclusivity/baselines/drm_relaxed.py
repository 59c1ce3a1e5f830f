"""The relaxed DRM, |w_t| <= 1, by alternating over the members; stopped by a duality gap.

With all others fixed and s = sum_{t' != t} w_t', member t minimises

    phi(w) + d |w|^2 + 2 mu s . w   over   |w| <= 1,      d = mu (T - 1).

Its dual is the quadratic programme of the publication: alpha >= 0 with 1'alpha = nu minimises
(N/4) |alpha|^2 + |X^T (y alpha) - 2 mu s|^2 / (4 D), where D = d + lam and lam is the multiplier of the ball.
Both are solved together here by Newton steps. phi is piecewise quadratic; on the piece of the active rows
A = {alpha > 0}, with the mean z of their y_i x_i and these centred as B, stationarity reads

    (B^T B + N D I) w = (N/2) (nu z - 2 mu s),

a ridge regression, and lam >= 0 is the root of 1/|w(lam)| = 1 (or zero inside the ball): a concave
increasing function of lam, so that Newton's method comes to it from below after its first step. Each visit to
a member takes one such step with a line search; the objective never rises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity.baselines.drm_problem import DRMProblem
from exclusivity.problem import DesignMatrix
from exclusivity.problem.arrays import Bools, Floats
from exclusivity.solvers import RidgeSystem, ridge_system

# Without a ridge of its own (T = 1 or mu = 0) a member gets this fraction of the mean squared feature, as a
# proximal term around where it is: the step stays defined, and the point it leads to is not biased.
_SMALLEST_RIDGE = 1e-10
_BALL_TOL = 1e-10
_MAX_BALL_STEPS = 50
_ARMIJO = 1e-4
_MAX_HALVINGS = 30
# A gap is linear in a small error where the objective is quadratic: the last steps change nothing visible.
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class DRMResult:
    """The end of a run.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_members)
    history : ndarray of shape (n_iter,)
        The objective after every sweep.
    gap : float
        Relative duality gap of ``weights``; NaN where none exists.
    converged : bool
    residual : float
        What the tolerance was compared with.
    """

    weights: Floats
    history: Floats
    gap: float
    converged: bool
    residual: float


class _Alternation:
    """The members with their margins, the multipliers D, and the last factorisation."""

    def __init__(self, problem: DRMProblem) -> None:
        self.problem = problem
        n_features, n_members = problem.design.n_features, problem.n_members
        self.weights = np.zeros((n_features, n_members))
        self.margins = np.zeros((problem.design.n_rows, n_members))
        self.total = np.zeros(n_features)
        self.ridge = problem.mu * (n_members - 1)
        self.least = max(self.ridge, _SMALLEST_RIDGE * problem.row_length() ** 2 / n_features)
        self.multipliers = np.full(n_members, self.least)
        self._system: RidgeSystem | None = None
        self._key: tuple[bytes, float] = (b"", 0.0)

    def visit(self, t: int) -> None:
        """One Newton step of member t, as far as it lowers the objective."""
        problem, w, margins = self.problem, self.weights[:, t].copy(), self.margins[:, t]
        linear = 2 * problem.mu * (self.total - w)
        value, alpha = problem.fit(margins)
        pull = (self.least - self.ridge) * w - linear / 2
        target, self.multipliers[t] = self._piece_minimiser(alpha > 0, pull, self.multipliers[t])
        step = target - w
        slope = step @ (linear + 2 * self.ridge * w - problem.design.transposed_times(alpha))
        now = float(value + self.ridge * (w @ w) + linear @ w)
        change = problem.design.times(step)
        for halvings in range(_MAX_HALVINGS):
            size = 0.5**halvings
            moved = w + size * step
            then = problem.fit(margins + size * change)[0] + self.ridge * (moved @ moved) + linear @ moved
            if then <= now + _ARMIJO * size * slope + _ROUNDING * abs(now):
                self.margins[:, t] += size * change
                self.weights[:, t] = moved
                self.total += moved - w
                break

    def _piece_minimiser(self, active: Bools, pull: Floats, multiplier: float) -> tuple[Floats, float]:
        """The best point of the ball for the quadratic piece of the active rows, and its D.

        ``pull`` stands for -mu s, with the proximal term if there is one.
        """
        n_rows, nu = self.problem.design.n_rows, self.problem.nu
        for _ in range(_MAX_BALL_STEPS):
            system = self._ridge_system(active, n_rows * multiplier)
            w = _solve(system, n_rows * (nu / 2 * system.mean + pull))
            length = float(np.linalg.norm(w))
            inside = length < 1 and multiplier <= self.least
            if inside or abs(length - 1) <= _BALL_TOL or length == 0:
                break
            # d|w|/dD = -N w.(B^T B + N D I)^-1 w / |w|: Newton's method for 1/|w| - 1 = 0.
            slope = n_rows * float(w @ _solve(system, w))
            multiplier = max(self.least, multiplier + length**2 * (length - 1) / slope)
        return w / max(1.0, length), multiplier

    def _ridge_system(self, active: Bools, ridge: float) -> RidgeSystem:
        """The factorised step; members close to each other have the same active rows and share it."""
        key = (active.tobytes(), ridge)
        if self._system is None or key != self._key:
            rows = DesignMatrix(self.problem.design.X[np.flatnonzero(active)])
            self._system = ridge_system(rows, np.ones(rows.n_rows), ridge=ridge, fit_intercept=True)
            self._key = key
        return self._system

    def certificate(self) -> tuple[float, float]:
        """The objective, and its relative gap to the bound of the mean alpha."""
        values, alpha = self.problem.fit(self.margins)
        objective = float(values.sum() + self.problem.coupling(self.weights))
        bound = self.problem.relaxed_bound(alpha.mean(axis=1))
        # At w = 0 the objective is -T nu^2 / 4, so it is negative from the first sweep on.
        return objective, max((objective - bound) / abs(objective), 0.0)


def solve_relaxed(problem: DRMProblem, *, tol: float, max_sweeps: int) -> DRMResult:
    """Alternate from zero weights until the relative duality gap is at most ``tol``.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0, 0.2], [-1.0, 0.1]]), np.array([1.0, -1.0])
    >>> problem = DRMProblem.build(X, y, n_members=3, nu=0.5, mu=0.1)
    >>> result = solve_relaxed(problem, tol=1e-8, max_sweeps=100)
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
    return DRMResult(state.weights, np.array(history), gap, gap <= tol, gap)


def _solve(system: RidgeSystem, right: Floats) -> Floats:
    """(B^T B + ridge I)^-1 right, as a regression of zeros towards right / ridge."""
    prior = right[:, None] / system.ridge
    return system.solve(prior, np.zeros((system.design.n_rows, 1)), prior)[0][:, 0]
