"""Which costs are worth a look: where the optimum leaves zero, in units of the data."""

from __future__ import annotations

import numpy as np

from exclusivity.problem.arrays import Floats
from exclusivity.problem.erm import ERMProblem

_DECADES_BELOW, _DECADES_ABOVE = 0.5, 4.0


def natural_cost(problem: ERMProblem) -> float:
    """The cost C at which scores reach the size of the margin.

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
    """``n_costs`` values of C from a third to 10,000 times the natural cost, evenly on a log scale.

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
    told_apart = [problem for problem in problems if abs(problem.labels.sum()) < len(problem.labels)]
    if not told_apart:
        raise ValueError("all rows of positive weight are of one class: no cost is better than another.")
    least = min(natural_cost(problem) for problem in told_apart)
    return np.asarray(least * np.logspace(-_DECADES_BELOW, _DECADES_ABOVE, n_costs))
