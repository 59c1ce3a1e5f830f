"""A lower bound on the optimum from any dual vector, and with it the duality gap.

Let c_i = s_i C / kappa and l = beta / kappa be the numbers of the reduced SVM f (see
:meth:`ERMProblem.reduced`). For every alpha in the domain of the loss's conjugate with
sum_i y_i alpha_i = 0 (only needed where the intercept is free), and u = X^T (y alpha),

    D(alpha) = sum_i alpha_i - 1/2 |soft(u, l)|^2 - sum_i loss*_i(alpha_i)  <=  min f,

so that F(W, b) - K kappa D(alpha) bounds the excess of ANY (W, b) from ANY solver. The bound is only
as honest as alpha is feasible: every vector is repaired before it is used.
"""

from __future__ import annotations

import numpy as np

from exclusivity.problem.arrays import Floats
from exclusivity.problem.erm import ERMProblem
from exclusivity.problem.intercept import best_intercept


def member_costs(problem: ERMProblem) -> Floats:
    """c_i = s_i C / kappa, the cost of row i in the reduced SVM.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    """
    return problem.weights * (problem.cost / problem.kappa)


def repair_dual(problem: ERMProblem, alpha: Floats) -> Floats:
    """The nearest easy feasible point: clip to the box, then shrink the heavier class.

    Scaling the class with the larger sum by (smaller sum) / (larger sum) keeps the box and makes
    sum y alpha = 0 up to rounding; where one class has no mass, nothing but zero is left.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    alpha : ndarray of shape (n_rows,)
        Any dual vector, feasible or not.
    """
    upper = member_costs(problem) if problem.loss.p == 1 else np.inf
    feasible = np.clip(alpha, 0.0, upper)
    if not problem.fit_intercept:
        return feasible
    positive = problem.labels > 0
    # Products with masks: several times faster than sums of selected elements, and as exact.
    above, below = float(positive.astype(float) @ feasible), float((~positive).astype(float) @ feasible)
    if above > below:
        feasible *= np.where(positive, below / above, 1.0)
    elif below > above:
        feasible *= np.where(positive, 1.0, above / below)
    return feasible


def dual_bound(problem: ERMProblem, alpha: Floats) -> float:
    """K kappa D(alpha) for a repaired alpha: no (W, b) has an objective below this.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    alpha : ndarray of shape (n_rows,)
        Any dual vector, feasible or not.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), p=1)
    >>> dual_bound(problem, np.array([0.5, 0.5]))
    0.5
    """
    problem.require_convex()
    feasible = repair_dual(problem, alpha)
    u = problem.design.transposed_times(problem.labels * feasible)
    shrunk = np.maximum(np.abs(u) - problem.regulariser.sparsity / problem.kappa, 0.0)
    conjugate = problem.loss.conjugate(feasible, member_costs(problem)).sum()
    value = feasible.sum() - shrunk @ shrunk / 2 - conjugate
    return float(problem.n_members * problem.kappa * value)


def dual_bound_with_pull(problem: ERMProblem, alpha: Floats, pull: Floats) -> float:
    """What :func:`dual_bound` gives, or a little less, where u = X^T (y alpha) is known: no product with X.

    Repairing takes some mass t from rows of alpha. That lengthens u, and with it soft(u, l), by at most t
    times the largest row; conjugates only fall.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    alpha : ndarray of shape (n_rows,)
        Any dual vector, nearly feasible.
    pull : ndarray of shape (n_features,)
        X^T (y alpha).
    """
    costs = member_costs(problem)
    feasible = np.maximum(alpha, 0.0)
    if problem.loss.p == 1:
        np.minimum(feasible, costs, out=feasible)
    moved = float(np.abs(feasible - alpha).sum())
    total = float(feasible.sum())
    if problem.fit_intercept:
        tilt = abs(float(problem.labels @ feasible))
        moved, total = moved + tilt, total - tilt
    shrunk = np.maximum(np.abs(pull) - problem.regulariser.sparsity / problem.kappa, 0.0)
    length = float(np.linalg.norm(shrunk)) + moved * problem.design.largest_row_norm
    conjugate = float(problem.loss.conjugate(feasible, costs).sum())
    return problem.n_members * problem.kappa * (total - length**2 / 2 - conjugate)


def dual_from_scores(problem: ERMProblem, mean_scores: Floats) -> Floats:
    """The dual vector that belongs to the mean member's scores x_i . w (any intercept), p > 1.

    alpha_i = c_i p max(0, m_i)^(p-1) is the derivative of the loss; with the intercept at its best
    for these scores, sum y alpha = 0 holds by optimality. For p = 1 the derivative is not unique
    where it matters (m_i = 0), and multipliers have to come from the solver.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    mean_scores : ndarray of shape (n_rows,)
        The x_i . w of the mean member.
    """
    intercept = best_intercept(problem, mean_scores) if problem.fit_intercept else 0.0
    shortfall = 1 - problem.labels * (mean_scores + intercept)
    return member_costs(problem) * problem.loss.derivative(shortfall)


def relative_gap(objective: float, bound: float) -> float:
    """(F - max(D, 0)) / F, at most 1: F is never negative, so 0 is a bound whatever D says.

    Zero when F itself is zero; infinite where F is not finite, or where nobody has computed a D.

    Parameters
    ----------
    objective : float
        F at any point.
    bound : float
        D, a lower bound on the optimum; see :func:`dual_bound`.

    Examples
    --------
    >>> relative_gap(2.0, 1.0)
    0.5
    """
    if objective == 0:
        return 0.0
    gap = (objective - bound) / objective
    return min(max(gap, 0.0), 1.0) if np.isfinite(gap) else np.inf
