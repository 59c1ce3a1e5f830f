"""The DRM before its relaxation: |w_t| = 1, so that |w_t + w_t'|^2 = 2 + 2 cos(w_t, w_t').

The problem is not convex, and its members do differ where mu is large enough. Equal members w_t = w are
stationary where X^T (y alpha) = g w; moves of the members along the sphere that cancel in their sum then see
the curvature of phi plus g - 2 mu T. So equal members stop being a minimum once 2 mu T exceeds the pull g of
the data plus the smallest curvature; below that they are one minimum among others.

All members move together: with w_t = v_t / |v_t| the constraint is gone, and L-BFGS walks from random
directions v_t to a local minimum. The objective never rises.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from exclusivity.baselines.drm_problem import DRMProblem
from exclusivity.baselines.drm_relaxed import DRMResult
from exclusivity.problem.arrays import Floats


def solve_sphere(problem: DRMProblem, *, tol: float, max_sweeps: int, random_state: int) -> DRMResult:
    """Descend from random directions until the gradient along the spheres is at most ``tol``.

    The gradient (its largest entry) is measured against nu times the root mean squared length of the rows
    plus 2 mu T, the sizes of its two parts. A sweep is one L-BFGS step of all members.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0, 0.2], [-1.0, 0.1]]), np.array([1.0, -1.0])
    >>> problem = DRMProblem.build(X, y, n_members=2, nu=0.5, mu=1.0)
    >>> w = solve_sphere(problem, tol=1e-6, max_sweeps=100, random_state=0).weights
    >>> np.linalg.norm(w, axis=0).round(6), bool(w[:, 0] @ w[:, 1] < 0)
    (array([1., 1.]), True)
    """
    shape = (problem.design.n_features, problem.n_members)
    scale = problem.nu * problem.row_length() + 2 * problem.mu * problem.n_members
    weights = _unit(np.random.default_rng(random_state).standard_normal(shape))
    history: list[float] = []

    def scaled(flat: Floats) -> tuple[float, Floats]:
        directions = flat.reshape(shape)
        value, gradient = _value_and_gradient(problem, _unit(directions))
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
        value, gradient = _value_and_gradient(problem, weights)
        residual = float(np.abs(gradient).max()) / scale
        moved = found.nit > 0
    return DRMResult(
        weights=weights,
        history=np.array(history or [value]),
        gap=np.nan,
        converged=residual <= tol,
        residual=residual,
    )


def _value_and_gradient(problem: DRMProblem, weights: Floats) -> tuple[float, Floats]:
    """The objective at unit vectors, and its gradient without the part along them."""
    values, alpha = problem.fit(problem.design.times(weights))
    gradient = 2 * problem.mu * weights.sum(axis=1)[:, None] - problem.design.transposed_times(alpha)
    # The other part of the coupling, mu (T - 2) sum |w_t|^2, is constant here.
    along = np.sum(weights * gradient, axis=0)
    return float(values.sum() + problem.coupling(weights)), gradient - weights * along


def _unit(directions: Floats) -> Floats:
    return np.asarray(directions / np.linalg.norm(directions, axis=0))
