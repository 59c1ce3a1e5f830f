"""The best intercept for given scores, a convex problem in one variable, and the dual vector there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from exclusivity.problem.arrays import Floats
from exclusivity.problem.erm import ERMProblem, member_costs

_MAX_DOUBLINGS = 60


def best_intercept(problem: ERMProblem, scores: Floats) -> float:
    """argmin_b sum_i s_i phi(1 - y_i (scores_i + b)); the midpoint where p = 1 leaves an interval.

    Where the loss vanishes, row i stops to count at b = y_i - scores_i, so the minimiser lies between the
    smallest and the largest of these breakpoints; else not far from there.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    scores : ndarray of shape (n_rows,)
        The x_i . w of one member, without an intercept.
    """
    breakpoints = problem.labels - scores
    low, high = float(breakpoints.min()), float(breakpoints.max())
    if low == high and problem.loss.vanishes:
        return low
    if problem.loss.is_hinge:
        return _hinge_midpoint(breakpoints, problem.labels, problem.weights)

    def slope(b: float) -> float:
        slopes = problem.loss.slope(1 - problem.labels * (scores + b))
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
    """An interval around [low, high] at whose ends the increasing slope has different signs, if any."""
    reach = max(1.0, high - low)
    for _ in range(_MAX_DOUBLINGS):
        if slope(low) <= 0 <= slope(high):
            break
        low, high, reach = low - reach * (slope(low) > 0), high + reach * (slope(high) < 0), 2 * reach
    return low, high


def _hinge_midpoint(breakpoints: Floats, labels: Floats, weights: Floats) -> float:
    """The middle of the minimisers for p = 1.

    The slope is a step function: it starts at -(weight of the positive rows), rises by s_i at every
    breakpoint, and passes zero at one of them or along the stretch between two.
    """
    order = np.argsort(breakpoints)
    ends = breakpoints[order]
    slopes = np.cumsum(weights[order]) - weights[labels > 0].sum()
    tolerance = 1e-12 * weights.sum()
    first = int(np.argmax(slopes >= -tolerance))
    # The slope is flat at zero up to the next breakpoint, or jumps over zero at this one.
    last = first + 1 if abs(slopes[first]) <= tolerance and first + 1 < len(ends) else first
    return float((ends[first] + ends[last]) / 2)


def dual_from_scores(problem: ERMProblem, mean_scores: Floats) -> Floats:
    """The dual vector that belongs to the mean member's scores x_i . w (any intercept); smooth losses.

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
    shortfall = 1 - problem.labels * (mean_scores + intercept)
    return member_costs(problem) * problem.loss.slope(shortfall)
