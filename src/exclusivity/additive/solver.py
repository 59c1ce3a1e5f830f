"""Minimise the robust objective: L-BFGS on smoothed problems, with a duality gap of the true one.

The smoothing eps falls by a factor of three from problem to problem, each of which starts at the solution of
the last. The distance between the smoothed and the true objective is proportional to eps, and the rounded
moves of the adversary give a lower bound of the true minimum at every point. The loop ends when the best
objective and the best bound are within ``tol`` of each other, relative to the former.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from exclusivity.additive.objective import Cut, RobustObjective
from exclusivity.problem.arrays import Floats

_FIRST_EPS, _FACTOR = 0.3, 1 / 3
_LEAST_EPS = 1e-7  # of the largest level: below that rounding decides
_LEAST_FACTOR = 1e-3  # where all levels are far smaller than eps
_PATIENCE = 6  # problems without a smaller gap, each solved more accurately
_MEMORY = 20
_CUTS = 30


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimiser with its certificate.

    Attributes
    ----------
    h : ndarray
        The levels.
    b : float
        The intercept.
    objective, bound : float
        The objective there, and a lower bound of its minimum.
    n_iter : int
        The number of evaluations of a smoothed objective.
    """

    h: Floats
    b: float
    objective: float
    bound: float
    n_iter: int

    @property
    def gap(self) -> float:
        """The relative duality gap."""
        return max(0.0, self.objective - self.bound) / max(self.objective, np.finfo(float).tiny)


def solve(
    problem: RobustObjective,
    tol: float,
    max_iter: int,
    start: tuple[Floats, float] | None = None,
    report: Callable[[int, float, float], None] | None = None,
) -> Solution:
    """Minimise a robust objective to a relative duality gap of ``tol``."""
    n_levels = int(problem.levels.level_starts[-1])
    variables = problem.variables()
    x = np.append(np.zeros(n_levels), problem.constant()) if start is None else np.append(*start)
    best = Solution(x[:-1].copy(), float(x[-1]), problem.value(x[:-1], x[-1]), 0.0, 0)
    eps, count, idle = _FIRST_EPS, 0, 0
    cuts: deque[Cut] = deque(maxlen=_CUTS)
    if start is not None:
        eps = _eps_of_start(problem, x, cuts)
        count = len(cuts)
        best = _improved(problem, best, x, eps, count, cuts)
    v = variables.to_variables(x)
    while best.gap > tol and count < max_iter and idle < _PATIENCE:

        def smoothed(v: Floats, eps: float = eps) -> tuple[float, Floats]:
            nonlocal count
            count += 1
            point = variables.to_levels(v)
            value, gradient, cut = problem.smoothed(point[:-1], point[-1], eps)
            cuts.append(cut)
            return value, variables.gradient(gradient)

        left = max_iter - count
        accuracy = 1e-3 * min(tol, eps) * 0.01**idle
        options = {"maxiter": left, "maxfun": left, "maxcor": _MEMORY, "ftol": accuracy, "gtol": 0.0}
        v = minimize(smoothed, v, jac=True, method="L-BFGS-B", bounds=variables.bounds, options=options).x
        x = variables.to_levels(v)
        improved = _improved(problem, best, x, eps, count, cuts)
        idle = 0 if improved.gap < 0.9 * best.gap else idle + 1
        best = improved
        if report is not None:
            report(count, best.objective, best.gap)
        size = float(np.abs(x[:-1]).max(initial=0.0))
        eps = max(min(_FACTOR * eps, max(size, _LEAST_FACTOR * eps)), _LEAST_EPS * size)
    return best


def _eps_of_start(problem: RobustObjective, x: Floats, cuts: deque[Cut]) -> float:
    """Return the smoothing at which a point has the largest bound; add its dual points to the cuts."""
    found = []
    for eps in _FIRST_EPS * _FACTOR ** np.arange(_PATIENCE):
        cuts.append(problem.smoothed(x[:-1], float(x[-1]), float(eps))[2])
        found.append((problem.bound([cuts[-1]]), float(eps)))
    return max(found)[1]


def _improved(
    problem: RobustObjective, best: Solution, x: Floats, eps: float, count: int, cuts: Sequence[Cut]
) -> Solution:
    """Return the better of a solution and a new point, with the better of both bounds."""
    h, b = x[:-1], float(x[-1])
    bound = max(best.bound, problem.bound(list(cuts)))
    found = [(best.objective, best.h, best.b)]
    found += [(problem.value(levels, b), levels, b) for levels in (h, problem.clipped(h, eps))]
    objective, levels, intercept = min(
        (each for each in found if np.isfinite(each[0])), key=lambda each: each[0], default=found[0]
    )
    return Solution(levels.copy(), intercept, objective, bound, count)
