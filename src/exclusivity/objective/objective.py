"""The objective on any rows: loss, regulariser, cost, members, and the one SVM they reduce to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.losses import MarginLoss
from exclusivity.objective.penalties import (
    BoundedPenalty,
    Bounds,
    ElasticPenalty,
    ExclusivityRegulariser,
    Penalty,
)
from exclusivity.rows.design import UNIT, RowScale, gamma


@dataclass(frozen=True, eq=False)
class Objective:
    """Eq. (5) of the paper with its three knobs, for K members (w_k, b_k) and rows (x_i, y_i, s_i).

        F(W, b) = regulariser(W) + C sum_k sum_i s_i phi(t_i - y_i (x_i . w_k + b_k))

    with the targets t_i of the rows, all 1 in classification.

    Parameters
    ----------
    loss : MarginLoss
        The loss phi of one row.
    regulariser : ExclusivityRegulariser
        Of the M x K matrix W.
    cost : float
        C, the weight of the loss (the paper's lambda).
    n_members : int
        K, the number of members (the paper's C).
    fit_intercept : bool
        Whether each member has a free intercept b_k, or b_k = 0.
    bounds : Bounds or None
        Between which the weights of every member have to be, if anywhere.

    Examples
    --------
    >>> from exclusivity.objective import PowerHinge
    >>> paper = Objective(PowerHinge(2), ExclusivityRegulariser(), cost=2.0, n_members=10)
    >>> paper.kappa, paper.reduced().cost
    (10.0, 0.2)
    """

    loss: MarginLoss
    regulariser: ExclusivityRegulariser
    cost: float = 1.0
    n_members: int = 1
    fit_intercept: bool = True
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        if self.n_members < 1:
            raise ValueError(f"n_members must be at least 1; got {self.n_members}.")
        if not (np.isfinite(self.cost) and self.cost > 0):
            raise ValueError(f"cost must be a positive finite number; got {self.cost!r}.")

    @property
    def kappa(self) -> float:
        """1 + gamma (K - 1); K for the paper."""
        return self.regulariser.kappa(self.n_members)

    @property
    def is_convex(self) -> bool:
        """True if gamma <= 1, so that a duality gap can certify the optimum."""
        return self.regulariser.exclusivity <= 1

    def reduced(self) -> Objective:
        """Return the ONE ordinary SVM that the mean member of every optimum solves, for gamma <= 1.

        F does not change when members are permuted and is convex, so averaging a solution over all
        permutations cannot raise it: K copies of the mean member (w, b) are optimal too. For equal
        members |W_j|_1 = K |w_j|, hence with kappa = 1 + gamma (K - 1)

            F = K kappa f(w, b),   f(w, b) = 1/2 |w|^2 + beta/kappa |w|_1 + C/kappa sum_i s_i phi(m_i)

        and min F = K kappa min f. For the paper, gamma = 1: an SVM of cost C / K.
        """
        self.require_convex()
        if self.n_members == 1:
            return self
        regulariser = self.regulariser
        return dataclasses.replace(
            self,
            n_members=1,
            cost=self.cost / self.kappa,
            regulariser=dataclasses.replace(regulariser, sparsity=regulariser.sparsity / self.kappa),
        )

    def require_convex(self) -> None:
        """Raise unless gamma <= 1."""
        if not self.is_convex:
            raise ValueError(
                f"exclusivity={self.regulariser.exclusivity:g} makes the problem non-convex: "
                "there is no equivalent SVM and no duality gap above exclusivity=1."
            )

    @cached_property
    def penalty(self) -> Penalty:
        """The penalty on the weights of the one member of :meth:`reduced`."""
        kinks = self.regulariser.sparsity / self.kappa
        if self.bounds is None:
            return ElasticPenalty(kinks)
        return BoundedPenalty(kinks, self.bounds.lower, self.bounds.upper)

    @cached_property
    def _loss_at_zero(self) -> float:
        return float(self.loss.value(np.zeros(1))[0])

    def lower_dual(
        self,
        *,
        gain: float,
        alpha_sum: float,
        moved: float,
        dual_weights: Floats,
        conjugate: float,
        cost: float,
        scale: RowScale,
        n_terms: float,
        unit: float = UNIT,
    ) -> float:
        """Compute D(alpha) of :meth:`reduced`, rounded down: at most that of an exactly feasible vector.

        Parameters
        ----------
        gain : float
            The sum of t_i alpha_i; that of alpha_i where all targets are 1. Rounding, and what is moved, take
            at most T = max |t_i| times as much from it as from the sum of alpha_i.
        alpha_sum : float
            The sum of alpha_i, before ``moved`` is taken from it.
        moved : float
            What has to be taken from rows to make alpha feasible.
        dual_weights : ndarray of shape (n_features,)
            X^T (y alpha) with sum y alpha = 0 up to ``moved`` and rounding.
        conjugate : float
            The sum of loss*_i(alpha_i).
        cost : float
            The sum of c_i: loss*_i >= -c_i phi(0), so that no more than 2 phi(0) of it cancels in that sum.
        scale : RowScale
        n_terms : float
            The longest chain of additions behind these sums.
        unit : float
            The relative error of one rounding in ``alpha_sum``, ``moved`` and ``dual_weights``.
        """
        lost = gamma(n_terms + 8, unit) * alpha_sum
        moved = moved + lost if self.fit_intercept else moved
        off = moved + lost
        paid = self.penalty.largest_conjugate(dual_weights, off * scale.length, off * scale.columns)
        size = abs(conjugate) + 2 * self._loss_at_zero * cost
        conjugate += gamma(n_terms + self.loss.n_roundings) * size
        if self._loss_at_zero > 0 and alpha_sum > 0:
            # Conjugates below zero rise as alpha shrinks: by t of them where a class is scaled by 1 - t.
            conjugate += 2 * moved / alpha_sum * size
        value = (gain - scale.target * (moved + lost)) - paid - conjugate
        return value - 4 * UNIT * (scale.target * alpha_sum + 2 * abs(paid) + size)

    def rounded_up(self, value: float, n_terms: float, n_weights: int) -> float:
        """Return a value of the objective plus what its sums over rows and weights may have lost."""
        return value * (1 + gamma(n_terms + n_weights + self.loss.n_roundings))


@dataclass(frozen=True)
class Contrast:
    """The class numbers that a binary problem sets against each other.

    Parameters
    ----------
    name : str
        For messages.
    positive : int
        The class whose rows have label +1.
    negative : int or None
        The class whose rows have label -1; None: all the rest.
    """

    name: str
    positive: int
    negative: int | None = None


def relative_gap(objective: float, bound: float) -> float:
    """Compute (F - max(D, 0)) / F, at most 1: F is never negative, so 0 is always a bound.

    Zero when F itself is zero; infinite where F is not finite, or where no D was computed.

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
