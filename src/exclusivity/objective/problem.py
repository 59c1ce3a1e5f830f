"""Rows in memory, an objective on them, and a lower bound on its optimum from any dual vector.

Let c_i = s_i C / kappa and l = beta / kappa be the numbers of the reduced SVM f (see
:meth:`ERMProblem.reduced`). For every alpha in the domain of the loss's conjugate with
sum_i y_i alpha_i = 0 (only needed where the intercept is free), and u = X^T (y alpha),

    D(alpha) = sum_i t_i alpha_i - 1/2 |soft(u, l)|^2 - sum_i loss*_i(alpha_i)  <=  min f,

so that F(W, b) - K kappa D(alpha) bounds the excess of ANY (W, b) from ANY solver. The bound is only
as valid as alpha is feasible: every vector is repaired before it is used. And it is only as valid as its
sums are exact: bounds are rounded down by what rounding may have done to them (see ``rows.design``), and
objectives come with how much larger they may be, so that the gap between the two is one of exact numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from exclusivity._typing import Floats, Matrix
from exclusivity.objective.losses import MarginLoss, PowerHinge
from exclusivity.objective.objective import Bounds, ExclusivityRegulariser, Objective, Penalty
from exclusivity.rows.design import (
    FEW_NUMBERS,
    LONG_UNIT,
    DesignMatrix,
    LabelledRows,
    RowScale,
    gamma,
    run_terms,
    weighted_total,
)

_MAX_DOUBLINGS = 60
_DECADES_BELOW, _DECADES_ABOVE = 0.5, 4.0
# How much of a bound rounding has to cost before longer floats are tried.
_LEAST_LOSS = 1e-9


LEAST_COST = 1e-280
"""The smallest cost of a row. Losses, squared weights and their sums stay far from where numbers vanish."""


_OF_ROWS = frozenset(field.name for field in dataclasses.fields(LabelledRows))


@dataclass(frozen=True, eq=False)
class ERMProblem:
    """One binary ERM: what is minimised, and on which rows.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    rows : LabelledRows
        The rows it is summed over.

    See Also
    --------
    ERMProblem.build : The same from plain arrays and numbers.
    """

    objective: Objective
    rows: LabelledRows

    def __post_init__(self) -> None:
        # Above exclusivity 1 there is no one SVM behind the members, and the cost is every member's own.
        least = LEAST_COST * (self.kappa if self.objective.is_convex else 1.0)
        if not self.cost * self.rows.least_weight >= least:
            raise ValueError(
                f"C={self.cost:g} times the smallest sample weight, {self.rows.least_weight:g}, is below "
                f"{least:g}: the objective would vanish in floating point, and its gap with it. Raise C, "
                "multiply sample_weight by a constant, or set its smallest values to 0."
            )

    @classmethod
    def build(
        cls,
        X: Matrix,
        y: Floats,
        *,
        n_members: int = 1,
        cost: float = 1.0,
        p: float = 2,
        loss: MarginLoss | None = None,
        exclusivity: float = 1.0,
        sparsity: float = 0.0,
        weights: Floats | None = None,
        targets: Floats | None = None,
        fit_intercept: bool = True,
        bounds: Bounds | None = None,
    ) -> ERMProblem:
        """Build a problem from plain arrays; without a ``loss`` the power hinge of power ``p``.

        Examples
        --------
        >>> import numpy as np
        >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), n_members=3)
        >>> problem.value(np.zeros((1, 3)), np.zeros(3))
        6.0
        """
        labels = np.asarray(y, dtype=float)
        weights = np.ones(labels.shape) if weights is None else np.asarray(weights, dtype=float)
        objective = Objective(
            loss=PowerHinge(p) if loss is None else loss,
            regulariser=ExclusivityRegulariser(exclusivity, sparsity),
            cost=float(cost),
            n_members=n_members,
            fit_intercept=fit_intercept,
            bounds=bounds,
        )
        return cls(objective, LabelledRows(DesignMatrix(X), labels, weights, targets))

    @property
    def loss(self) -> MarginLoss:
        """Of the objective."""
        return self.objective.loss

    @property
    def regulariser(self) -> ExclusivityRegulariser:
        """Of the objective."""
        return self.objective.regulariser

    @property
    def penalty(self) -> Penalty:
        """Of the objective's one member."""
        return self.objective.penalty

    @property
    def cost(self) -> float:
        """C of the objective."""
        return self.objective.cost

    @property
    def n_members(self) -> int:
        """K of the objective."""
        return self.objective.n_members

    @property
    def fit_intercept(self) -> bool:
        """Of the objective."""
        return self.objective.fit_intercept

    @property
    def kappa(self) -> float:
        """1 + gamma (K - 1); K for the paper."""
        return self.objective.kappa

    @property
    def design(self) -> DesignMatrix:
        """The features of the rows."""
        return self.rows.design

    @property
    def labels(self) -> Floats:
        """Those of the rows, -1 or +1."""
        return self.rows.labels

    @property
    def weights(self) -> Floats:
        """The sample weights s_i of the rows."""
        return self.rows.weights

    @property
    def targets(self) -> Floats | None:
        """The t_i of the rows; None where all are 1."""
        return self.rows.targets

    @property
    def row_scale(self) -> RowScale:
        """The sizes on which rounding errors of products with the rows depend."""
        return self.rows.row_scale

    def scores(self, weights: Floats, intercepts: Floats) -> Floats:
        """Compute x_i . w_k + b_k, N x K."""
        return self.design.times(weights) + intercepts

    def value(self, weights: Floats, intercepts: Floats) -> float:
        """Compute F(W, b), from blocks of rows."""
        return self.regulariser.value(weights) + self.total_loss(weights, intercepts)

    def total_loss(self, weights: Floats, intercepts: Floats) -> float:
        """Compute C sum_k sum_i s_i phi(m_ik), from blocks of rows."""
        loss = 0.0
        for rows, block in self.design.blocks(weights.shape[1]):
            shortfall = self.rows.shortfall(block @ weights + intercepts, rows)
            loss += weighted_total(self.weights[rows], self.loss.value(shortfall))
        return self.cost * loss

    def reduced(self) -> ERMProblem:
        """Return the one SVM that the mean member solves, on the same rows; see :meth:`Objective.reduced`."""
        objective = self.objective.reduced()
        return self if objective is self.objective else dataclasses.replace(self, objective=objective)

    def changed(self, **parts: Any) -> ERMProblem:
        """Change parts of the problem, by their names in :class:`Objective` or :class:`LabelledRows`.

        Examples
        --------
        >>> import numpy as np
        >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]))
        >>> problem.changed(cost=3.0).cost
        3.0
        """
        of_rows = {name: part for name, part in parts.items() if name in _OF_ROWS}
        of_objective = {name: part for name, part in parts.items() if name not in _OF_ROWS}
        return ERMProblem(
            dataclasses.replace(self.objective, **of_objective) if of_objective else self.objective,
            dataclasses.replace(self.rows, **of_rows) if of_rows else self.rows,
        )

    def centred(self) -> ERMProblem:
        """Centre the rows of the same problem, where that keeps digits (see ``DesignMatrix``).

        Scores are the same with b + (centre . w) for b.
        """
        if not self.fit_intercept or self.design.centred is self.design:
            return self
        return self.changed(design=self.design.centred)


def member_costs(problem: ERMProblem) -> Floats:
    """Compute c_i = s_i C / kappa, the cost of row i in the reduced SVM.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    """
    return problem.weights * (problem.cost / problem.kappa)


def repair_dual(problem: ERMProblem, alpha: Floats) -> Floats:
    """Return the nearest easy feasible point: clip to the box, then shrink the heavier class.

    Scaling the class with the larger sum by (smaller sum) / (larger sum) keeps the box and makes
    sum y alpha = 0 up to rounding; where the alphas of one class are zero, nothing but zero is left.

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
    """Bound the rounding error of F(W, b), knowing only the sum of the losses.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    weights, intercepts : ndarrays of shape (n_features, n_members) and (n_members,)
        W and b.
    objective, loss : float
        F(W, b) as computed, and its part C sum_k sum_i s_i phi(m_ik).
    """
    error = float(np.max(problem.row_scale.score_error(weights, intercepts)))
    total = problem.cost * problem.n_members * float(problem.weights.sum())
    raised = problem.loss.raised_total(loss, total, error)
    return _rounded_up(problem, objective - loss + raised) - objective


def objective_of_shortfall(
    problem: ERMProblem, weights: Floats, shortfall: Floats, error: Floats | float
) -> tuple[float, float]:
    """Compute F(W, b), and a bound of its error: all shortfalls may be larger by theirs.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    weights : ndarray of shape (n_features, n_members)
        W.
    shortfall : ndarray of shape (n_rows, n_members)
        The t_i - y_i (x_i . w_k + b_k), as computed.
    error : float or ndarray of shape (n_members,)
        How far the scores may be off; see :meth:`RowScale.score_error`.
    """
    is_single = problem.n_members == 1
    penalty = problem.penalty.value(weights[:, 0]) if is_single else problem.regulariser.value(weights)
    objective, upper = (
        penalty + problem.cost * weighted_total(problem.weights, problem.loss.value(missed))
        for missed in (shortfall, shortfall + error)
    )
    return objective, _rounded_up(problem, upper) - objective


def _rounded_up(problem: ERMProblem, value: float) -> float:
    n_weights = problem.design.n_features * problem.n_members
    return problem.objective.rounded_up(value, run_terms(problem.design.n_rows), n_weights)


def dual_bound(problem: ERMProblem, alpha: Floats, dual_weights: Floats | None = None) -> float:
    """Compute K kappa D(alpha) for a repaired alpha: no (W, b) has an objective below this.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    alpha : ndarray of shape (n_rows,)
        Any dual vector, feasible or not.
    dual_weights : ndarray of shape (n_features,) or None
        X^T (y alpha) of a vector that has been repaired, where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), p=1)
    >>> round(dual_bound(problem, np.array([0.5, 0.5])), 12)
    0.5
    """
    problem.objective.require_convex()
    design, feasible = problem.design, repair_dual(problem, alpha) if dual_weights is None else alpha
    if dual_weights is None:
        dual_weights = design.transposed_times(problem.labels * feasible)
    below, n_terms = _lower_bound(problem, feasible), design.transposed_terms()
    here = partial(below, dual_weights=dual_weights, moved=0.0, n_terms=n_terms)
    least = _LEAST_LOSS * abs(bound := here())
    may_lose = design.n_numbers <= FEW_NUMBERS and _may_lose(problem, feasible, dual_weights) > least
    # Where the cost leaves little of the ridge, u is a small difference of huge sums: longer floats help.
    if may_lose and here(unit=0.0) - bound > least:
        signed = (problem.labels * feasible).astype(np.longdouble)
        moved = abs(float(signed.sum())) if problem.fit_intercept else 0.0
        precise = np.asarray(design.X.astype(np.longdouble).T @ signed, dtype=float)
        longer = below(dual_weights=precise, moved=moved, n_terms=design.n_rows, unit=LONG_UNIT)
        bound = max(bound, longer)
    return problem.n_members * problem.kappa * bound


def _may_lose(problem: ERMProblem, feasible: Floats, dual_weights: Floats) -> float:
    """Estimate the most that rounding may take off a bound."""
    off = 2 * gamma(problem.design.transposed_terms() + 8) * float(feasible.sum())
    length = problem.row_scale.length
    return 2 * off * (1 + length * (float(np.linalg.norm(dual_weights)) + off * length))


def dual_bound_from_weights(
    problem: ERMProblem, alpha: Floats, dual_weights: Floats, lost: float = 0.0
) -> float:
    """Compute :func:`dual_bound`, or a little less, where u = X^T (y alpha) is known: no product with X.

    Repairing takes some t from alpha, all rows together. That lengthens u, and with it soft(u, l), by at
    most t times the largest row.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    alpha : ndarray of shape (n_rows,)
        Any dual vector, nearly feasible.
    dual_weights : ndarray of shape (n_features,)
        X^T (y alpha).
    lost : float
        How much of the sum of alpha the rounding of ``dual_weights`` is worth, beyond that of one product.
    """
    feasible = np.clip(alpha, 0.0, member_costs(problem) * problem.loss.largest_slope)
    moved = float(np.abs(feasible - alpha).sum()) + lost
    if problem.fit_intercept:
        moved += abs(float((problem.labels * feasible).sum()))
    bound = _lower_bound(problem, feasible)(
        dual_weights=dual_weights, moved=moved, n_terms=problem.design.transposed_terms()
    )
    return problem.n_members * problem.kappa * bound


def _lower_bound(problem: ERMProblem, feasible: Floats) -> Callable[..., float]:
    """Return ``Objective.lower_dual`` for an alpha inside its box; it still needs X^T (y alpha)."""
    costs, alpha_sum = member_costs(problem), float(feasible.sum(dtype=np.longdouble))
    gain = alpha_sum
    if problem.targets is not None:
        gain = float((problem.targets * feasible).sum(dtype=np.longdouble))
    return partial(
        problem.objective.lower_dual,
        gain=gain,
        alpha_sum=alpha_sum,
        conjugate=float(problem.loss.conjugate(feasible, costs).sum()),
        cost=float(costs.sum()),
        scale=problem.row_scale,
    )


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
