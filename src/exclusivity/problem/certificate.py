"""A lower bound on the optimum from any dual vector, and with it the duality gap.

Let c_i = s_i C / kappa and l = beta / kappa be the numbers of the reduced SVM f (see
:meth:`ERMProblem.reduced`). For every alpha in the domain of the loss's conjugate with
sum_i y_i alpha_i = 0 (only needed where the intercept is free), and u = X^T (y alpha),

    D(alpha) = sum_i alpha_i - 1/2 |soft(u, l)|^2 - sum_i loss*_i(alpha_i)  <=  min f,

so that F(W, b) - K kappa D(alpha) bounds the excess of ANY (W, b) from ANY solver. The bound is only
as honest as alpha is feasible: every vector is repaired before it is used. And it is only as honest as its
sums are exact: bounds are rounded down by what rounding may have done to them (see ``precision``), and
objectives come with how much larger they may be, so that the gap between the two is one of exact numbers.
"""

from __future__ import annotations

import numpy as np

from exclusivity.problem.arrays import Floats
from exclusivity.problem.erm import ERMProblem
from exclusivity.problem.intercept import best_intercept
from exclusivity.problem.loss import MarginLoss
from exclusivity.problem.precision import LONG_UNIT, UNIT, gamma, lower_dual, run_terms

# Numbers in X for which longer floats are tried, and how much of a bound rounding has to cost before that.
_FEW_NUMBERS = 1 << 20
_LEAST_LOSS = 1e-9


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
    feasible = np.clip(alpha, 0.0, member_costs(problem) * problem.loss.largest_slope)
    if not problem.fit_intercept:
        return feasible
    positive = problem.labels > 0
    # numpy adds in pairs, which keeps more digits than a product with masks.
    above, below = float((feasible * positive).sum()), float((feasible * ~positive).sum())
    if above > below:
        feasible *= np.where(positive, below / above, 1.0)
    elif below > above:
        feasible *= np.where(positive, 1.0, above / below)
    return feasible


def objective_error(
    problem: ERMProblem, weights: Floats, intercepts: Floats, objective: float, loss: float
) -> float:
    """How far F(W, b) may be above what was computed, knowing only the sum of the losses.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    weights, intercepts : ndarrays of shape (n_features, n_members) and (n_members,)
        W and b.
    objective, loss : float
        F(W, b) as computed, and its part C sum_k sum_i s_i phi(m_ik).
    """
    error = float(np.max(problem.design.row_scale.score_error(weights, intercepts)))
    total = problem.cost * problem.n_members * float(problem.weights.sum())
    raised = problem.loss.raised_total(loss, total, error)
    return _rounded_up(problem, objective - loss + raised) - objective


def objective_of_shortfall(
    problem: ERMProblem, weights: Floats, shortfall: Floats, error: Floats | float
) -> tuple[float, float]:
    """F(W, b), and how far it may be above that: to where all shortfalls are larger by their error.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    weights : ndarray of shape (n_features, n_members)
        W.
    shortfall : ndarray of shape (n_rows, n_members)
        1 - y_i (x_i . w_k + b_k), as computed.
    error : float or ndarray of shape (n_members,)
        How far the scores may be off; see :meth:`RowScale.score_error`.
    """
    penalty = problem.regulariser.value(weights)
    objective, upper = (
        penalty + problem.cost * problem.loss.total(missed, problem.weights)
        for missed in (shortfall, shortfall + error)
    )
    return objective, _rounded_up(problem, upper) - objective


def rounded_up(objective: float, loss: MarginLoss, n_terms: float, n_weights: int) -> float:
    """An objective plus what its own sums may have lost.

    Parameters
    ----------
    objective : float
        F, as computed.
    loss : MarginLoss
        The loss that it sums.
    n_terms, n_weights : float
        So many rows were added in a chain, and so many weights.
    """
    return objective * (1 + gamma(n_terms + n_weights + loss.n_roundings))


def _rounded_up(problem: ERMProblem, objective: float) -> float:
    n_weights = problem.design.n_features * problem.n_members
    return rounded_up(objective, problem.loss, run_terms(problem.design.n_rows), n_weights)


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
    >>> round(dual_bound(problem, np.array([0.5, 0.5])), 12)
    0.5
    """
    problem.objective.require_convex()
    feasible = repair_dual(problem, alpha)
    pull = problem.design.transposed_times(problem.labels * feasible)
    bound = _lower_bound(problem, feasible, pull, 0.0)
    # Where the cost leaves little of the ridge, u is a small difference of huge sums: longer floats help.
    if problem.design.n_numbers <= _FEW_NUMBERS:
        loose = _lower_bound(problem, feasible, pull, 0.0, unit=0.0) - bound
        if loose > _LEAST_LOSS * abs(bound):
            bound = max(bound, _precise_bound(problem, feasible))
    return bound


def _precise_bound(problem: ERMProblem, feasible: Floats) -> float:
    """The same from sums in numpy's longest floats."""
    signed = (problem.labels * feasible).astype(np.longdouble)
    moved = abs(float(signed.sum())) if problem.fit_intercept else 0.0
    pull = np.asarray(problem.design.X.astype(np.longdouble).T @ signed, dtype=float)
    return _lower_bound(problem, feasible, pull, moved, unit=LONG_UNIT)


def dual_bound_with_pull(problem: ERMProblem, alpha: Floats, pull: Floats, lost: float = 0.0) -> float:
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
    lost : float
        How much mass the rounding of ``pull`` is worth, beyond that of one product with X.
    """
    feasible = np.clip(alpha, 0.0, member_costs(problem) * problem.loss.largest_slope)
    moved = float(np.abs(feasible - alpha).sum()) + lost
    if problem.fit_intercept:
        moved += abs(float((problem.labels * feasible).sum()))
    return _lower_bound(problem, feasible, pull, moved)


def _lower_bound(
    problem: ERMProblem, feasible: Floats, pull: Floats, moved: float, unit: float = UNIT
) -> float:
    """K kappa D for sums over an alpha inside its box, from which ``moved`` may still have to be taken.

    ``unit`` is the relative error of one rounding in the sums.
    """
    value = lower_dual(
        mass=float(feasible.sum(dtype=np.longdouble)),
        moved=moved,
        pull=pull,
        conjugate=float(problem.loss.conjugate(feasible, member_costs(problem)).sum()),
        n_roundings=problem.loss.n_roundings,
        l1=problem.regulariser.sparsity / problem.kappa,
        scale=problem.design.row_scale,
        n_terms=problem.design.pull_terms() if unit == UNIT else problem.design.n_rows,
        has_intercept=problem.fit_intercept,
        unit=unit,
    )
    return problem.n_members * problem.kappa * value


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
