"""Estimates from the rows: the best intercept for given scores, a dual vector, and costs worth trying."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from exclusivity._typing import Floats
from exclusivity.objective.objective import ERMProblem, member_costs

_MAX_DOUBLINGS = 60
_DECADES_BELOW, _DECADES_ABOVE = 0.5, 4.0


def dual_from_scores(problem: ERMProblem, mean_scores: Floats) -> Floats:
    """Compute the dual vector of the mean member's scores x_i . w (any intercept); smooth losses.

    alpha_i = c_i phi'(m_i) is the slope of the loss; with the intercept at its best for these scores,
    sum y alpha = 0 holds by optimality. Where the slope jumps (p = 1 at m_i = 0) it is not unique where it
    matters, and multipliers have to come from the solver.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    mean_scores : ndarray of shape (n_rows,)
        The x_i . w of the mean member.
    """
    intercept = best_intercept(problem, mean_scores) if problem.fit_intercept else 0.0
    shortfall = problem.rows.shortfall(mean_scores + intercept)
    return member_costs(problem) * problem.loss.slope(shortfall)


def best_intercept(problem: ERMProblem, scores: Floats) -> float:
    """Find argmin_b sum_i s_i phi(t_i - y_i (scores_i + b)); one of them where there are several.

    Where the loss vanishes, row i stops to count at b = y_i t_i - scores_i, so the minimiser lies between the
    smallest and the largest of these breakpoints; else not far from there.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    scores : ndarray of shape (n_rows,)
        The x_i . w of one member, without an intercept.
    """
    breakpoints = problem.labels * problem.rows.goal() - scores
    low, high = float(breakpoints.min()), float(breakpoints.max())

    def slope(b: float) -> float:
        slopes = problem.loss.slope(problem.rows.shortfall(scores + b))
        return float(-(problem.weights * problem.labels) @ slopes)

    if not problem.loss.vanishes:
        low, high = _widened(slope, low, high)
    if slope(low) >= 0:
        return low
    if slope(high) <= 0:
        return high
    # The slope is increasing, <= 0 at the smallest breakpoint where no negative row counts, and
    # >= 0 at the largest.
    return float(brentq(slope, low, high, xtol=1e-14 * max(1.0, abs(low), abs(high)), maxiter=1000))


def _widened(slope: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Widen [low, high] until the increasing slope has different signs at its ends, if it ever has."""
    reach = max(1.0, high - low)
    for _ in range(_MAX_DOUBLINGS):
        if slope(low) <= 0 <= slope(high):
            break
        low, high, reach = low - reach * (slope(low) > 0), high + reach * (slope(high) < 0), 2 * reach
    return low, high


def natural_cost(problem: ERMProblem) -> float:
    """Estimate the cost C at which scores reach the size of the margin.

    While C is small the optimum is proportional to it: the weights point from the mean of one class to the
    mean of the other,

        w = (C / kappa) h d,   d = mean(x | +) - mean(x | -),   h = 2 phi'(1) n_+ n_- / (n_+ + n_-)

    (n: sums of sample weights; exact for p = 2, and for balanced classes), and scores have a standard
    deviation of |w| times that of X along d. At the natural cost it is 1. Below, the model does little but
    compare class means; 10,000 times above, little is left of the regularisation.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> natural_cost(ERMProblem.build(X, y, n_members=3))
    0.75
    """
    design, weights = problem.design, problem.weights
    positive = problem.labels > 0
    totals = np.array([weights[positive].sum(), weights[~positive].sum()])
    means = [design.transposed_times(np.where(side, weights, 0.0)) for side in (positive, ~positive)]
    direction = means[0] / totals[0] - means[1] / totals[1]
    along = design.times(direction)
    total = totals.sum()
    along -= weights @ along / total
    spread = float(np.sqrt(weights @ along**2 / total))
    steepness = 2 * float(problem.loss.slope(np.ones(1))[0]) * totals[0] * totals[1] / total
    # Above exclusivity 1 members have features of their own, and the cost is every member's own.
    kappa = problem.kappa if problem.objective.is_convex else 1.0
    scale = spread if np.isfinite(spread) and spread > 0 else 1.0
    return float(kappa / (steepness * scale))


def cost_grid(problems: list[ERMProblem], n_costs: int) -> Floats:
    """Return ``n_costs`` values of C from a third to 10,000 times the natural cost, evenly on a log scale.

    Of several problems the smallest natural cost counts.

    Parameters
    ----------
    problems : list of ERMProblem
        The binary problems of one data set.
    n_costs : int
        How many values.

    Returns
    -------
    costs : ndarray of shape (n_costs,)
        In increasing order.
    """
    with_both = [problem for problem in problems if abs(problem.labels.sum()) < len(problem.labels)]
    if not with_both:
        raise ValueError("all rows of positive weight are of one class: no cost is better than another.")
    least = min(natural_cost(problem) for problem in with_both)
    return np.asarray(least * np.logspace(-_DECADES_BELOW, _DECADES_ABOVE, n_costs))
