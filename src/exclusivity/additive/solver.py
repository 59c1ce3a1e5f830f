"""Minimise the robust objective: smoothed problems, solved one after the other, with a gap of the true one.

The distance between the smoothed and the true objective is proportional to eps, and the rounded moves of the
adversary give a lower bound of the true minimum at every point. So eps falls from problem to problem, by as
much as the gap has to, and each starts at the solution of the last. Where the gap is not due to rounding,
the same problem is solved more accurately. The loop ends when the best objective and the best bound are
within ``tol`` of each other, relative to the former.

A smoothed problem is solved by L-BFGS. Where rows outnumber levels its conditioning is bad and the bound
lags behind: there Newton's method needs few steps, most of them on a part of the rows. The bound loses
r'Q^-1 r / 2 by a gradient r that is not zero, which says how exactly to solve.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse.linalg import spsolve_triangular

from exclusivity._typing import Floats
from exclusivity.additive.objective import Cut, RobustObjective

_FIRST_EPS, _AIM = 0.1, 0.6  # of tol: the gap that the next smoothing should leave
_LEAST_FACTOR, _LARGEST_FACTOR = 0.1, 0.5
_LEAST_EPS = 1e-7  # of the largest level: below that rounding decides
_LEAST_SIZE = 1e-3  # of eps, where all levels are far smaller
_PATIENCE = 6  # problems without a smaller gap
_MEMORY = 20
_CUTS = 30
_ROWS_PER_LEVEL, _THINNING = 8, 8
_NEWTON_STEPS, _SAMPLE_PER_LEVEL, _FAST = 60, 24, 0.3
_DAMPING, _ARMIJO = 1e-10, 1e-4
_INEXACT = 0.05  # of tol: what the bound may lose because a smoothed problem is not solved exactly

Report = Callable[[int, float, float], None]


@dataclass(frozen=True, eq=False)
class Solution:
    """Levels and intercept of a minimiser, with its certificate."""

    h: Floats
    b: float
    objective: float
    bound: float
    """A lower bound of the minimum."""
    n_iter: int
    """The number of evaluations of a smoothed objective."""
    eps: float
    """The last smoothing."""

    @property
    def gap(self) -> float:
        """The relative duality gap."""
        return max(0.0, self.objective - self.bound) / max(self.objective, np.finfo(float).tiny)


def solve(
    problem: RobustObjective,
    tol: float,
    max_iter: int,
    start: tuple[Floats, float] | None = None,
    report: Report | None = None,
) -> Solution:
    """Minimise a robust objective over the values of all levels and the intercept.

    Parameters
    ----------
    problem : RobustObjective
    tol : float
        The relative duality gap to stop at.
    max_iter : int
        The most evaluations of smoothed objectives.
    start : tuple of ndarray and float, default=None
        Levels and intercept to begin with.
    report : callable, default=None
        Called with the number of evaluations, the objective and the gap after every smoothed problem.
    """
    n_levels = int(problem.levels.level_starts[-1])
    has_many_rows = problem.has_hessian and problem.n_rows >= _ROWS_PER_LEVEL * n_levels
    minimise = _by_newton if has_many_rows else _by_lbfgs
    eps, count, cuts = _FIRST_EPS, 0, deque[Cut](maxlen=_CUTS)
    if start is not None:
        x = np.append(*start)
        eps = _eps_of_start(problem, x, cuts)
        count = len(cuts)
    elif has_many_rows and problem.n_rows >= _THINNING * _ROWS_PER_LEVEL * n_levels:
        part = solve(problem.thinned(_THINNING), tol, max_iter)
        x, eps, count = np.append(part.h, part.b), part.eps, part.n_iter
    else:
        x = np.append(np.zeros(n_levels), problem.constant())
    bound = problem.bound(list(cuts))
    best = Solution(x[:-1].copy(), float(x[-1]), problem.value(x[:-1], float(x[-1])), bound, count, eps)
    accuracy, idle = tol, 0
    while best.gap > tol and count < max_iter and idle < _PATIENCE:
        x, smoothed, n_new = minimise(problem, x, eps, accuracy, max_iter - count, cuts)
        count += n_new
        improved = _improved(problem, best, x, eps, count, cuts)
        idle = 0 if improved.gap < 0.9 * best.gap else idle + 1
        best = improved
        if report is not None:
            report(count, best.objective, best.gap)
        if best.objective - smoothed > 0.5 * (best.objective - best.bound):
            factor = np.clip(_AIM * tol / max(best.gap, tol), _LEAST_FACTOR, _LARGEST_FACTOR)
            size = float(np.abs(x[:-1]).max(initial=0.0))
            eps = max(min(float(factor) * eps, max(size, _LEAST_SIZE * eps)), _LEAST_EPS * size)
        else:
            accuracy *= 0.1
    return best


def _by_lbfgs(
    problem: RobustObjective, x: Floats, eps: float, tol: float, most: int, cuts: deque[Cut]
) -> tuple[Floats, float, int]:
    """Solve a smoothed problem by L-BFGS; return the solution, its value and the number of evaluations."""
    (matrix, lower), count = problem.variables(), 0

    def smoothed(v: Floats, scale: float) -> tuple[float, Floats]:
        nonlocal count
        count += 1
        point = matrix @ v
        value, gradient, cut = problem.smoothed(point[:-1], point[-1], eps)
        cuts.append(cut)
        return scale * value, scale * (matrix.T @ gradient)

    options = {"maxiter": most, "maxfun": most, "maxcor": _MEMORY, "ftol": 1e-3 * min(tol, eps), "gtol": 0.0}
    # Steps in the wrong direction become zero.
    v, bounds = np.maximum(spsolve_triangular(matrix, x), lower), [(low, np.inf) for low in lower]
    for scale in (1.0, eps):  # a first step as long as the gradient may be far too long, and be given up
        found = minimize(smoothed, v, (scale,), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if found.nit or count >= most:
            break
    return matrix @ found.x, float(found.fun) / scale, count


def _by_newton(
    problem: RobustObjective, x: Floats, eps: float, tol: float, most: int, cuts: deque[Cut]
) -> tuple[Floats, float, int]:
    """Solve a smoothed problem by Newton's method; return the same as ``_by_lbfgs``.

    The second derivatives are those of a part of the rows, and serve as long as the gradient falls fast.
    """
    sample = problem.thinned(max(1, int(problem.n_rows) // (_SAMPLE_PER_LEVEL * len(x))))
    value, gradient, cut = problem.smoothed(x[:-1], x[-1], eps)
    cuts.append(cut)
    count, factor, before = 1, None, np.inf
    for _ in range(_NEWTON_STEPS):
        lost = 0.5 * float(gradient[:-1] @ problem.quadratic.solve(gradient[:-1]))
        if lost <= _INEXACT * tol * value or count >= most:
            break
        if factor is None or lost > _FAST * before:
            hessian = sample.hessian(x[:-1], x[-1], eps)
            hessian[np.diag_indices_from(hessian)] *= 1 + _DAMPING
            try:
                factor = cho_factor(hessian)
            except LinAlgError:  # no row has any curvature in the intercept
                break
        before = lost
        step = -cho_solve(factor, gradient)
        slope, t, old = float(gradient @ step), 1.0, value
        while count < most:
            tried, new, cut = problem.smoothed(x[:-1] + t * step[:-1], x[-1] + t * step[-1], eps)
            count += 1
            cuts.append(cut)
            if tried <= old + _ARMIJO * t * slope:
                x, value, gradient = x + t * step, tried, new
                break
            t *= min(0.5, max(0.1, -0.5 * slope * t / (tried - old - slope * t)))
        if value >= old:
            break
    return x, value, count


def _eps_of_start(problem: RobustObjective, x: Floats, cuts: deque[Cut]) -> float:
    """Return the smoothing at which a point has the largest bound; add its dual points to the cuts."""
    found = []
    for eps in _FIRST_EPS * 3.0 ** -np.arange(_PATIENCE):
        cuts.append(problem.smoothed(x[:-1], float(x[-1]), float(eps))[2])
        found.append((problem.bound([cuts[-1]]), float(eps)))
    return max(found)[1]


def _improved(
    problem: RobustObjective, best: Solution, x: Floats, eps: float, count: int, cuts: Iterable[Cut]
) -> Solution:
    """Return the better of a solution and a new point, with the better of both bounds."""
    h, b = x[:-1], float(x[-1])
    bound = max(best.bound, problem.bound(list(cuts)))
    found = [(best.objective, best.h, best.b)]
    found += [(problem.value(levels, b), levels, b) for levels in (h, problem.clipped(h, eps))]
    objective, levels, intercept = min(
        (each for each in found if np.isfinite(each[0])), key=lambda each: each[0], default=found[0]
    )
    return Solution(levels.copy(), intercept, objective, bound, count, eps)
