"""What is minimised, whatever the rows: loss, regulariser, cost, members, and the one SVM they reduce to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from exclusivity.problem.loss import MarginLoss
from exclusivity.problem.regulariser import ExclusivityRegulariser


@dataclass(frozen=True, eq=False)
class Objective:
    """Eq. (5) of the paper with its three knobs, for K members (w_k, b_k) and rows (x_i, y_i, s_i).

        F(W, b) = regulariser(W) + C sum_k sum_i s_i phi(1 - y_i (x_i . w_k + b_k))

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

    Examples
    --------
    >>> from exclusivity.problem import PowerHinge
    >>> paper = Objective(PowerHinge(2), ExclusivityRegulariser(), cost=2.0, n_members=10)
    >>> paper.kappa, paper.reduced().cost
    (10.0, 0.2)
    """

    loss: MarginLoss
    regulariser: ExclusivityRegulariser
    cost: float = 1.0
    n_members: int = 1
    fit_intercept: bool = True

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
        """Whether gamma <= 1, so that a duality gap can certify the optimum."""
        return self.regulariser.exclusivity <= 1

    def reduced(self) -> Objective:
        """The ONE ordinary SVM that the mean member of every optimum solves, for gamma <= 1.

        F does not change when members are permuted and is convex, so averaging a solution over all
        permutations cannot raise it: K copies of the mean member (w, b) are optimal too. For equal
        members |W_j|_1 = K |w_j|, hence with kappa = 1 + gamma (K - 1)

            F = K kappa f(w, b),   f(w, b) = 1/2 |w|^2 + beta/kappa |w|_1 + C/kappa sum_i s_i phi(m_i)

        and min F = K kappa min f. For the paper, gamma = 1: an SVM of cost C / K.
        """
        self.require_convex()
        gamma, beta = self.regulariser.exclusivity, self.regulariser.sparsity
        return dataclasses.replace(
            self,
            n_members=1,
            cost=self.cost / self.kappa,
            regulariser=ExclusivityRegulariser(gamma, beta / self.kappa),
        )

    def require_convex(self) -> None:
        """Raise unless gamma <= 1."""
        if not self.is_convex:
            raise ValueError(
                f"exclusivity={self.regulariser.exclusivity:g} makes the problem non-convex: "
                "there is no equivalent SVM and no duality gap above exclusivity=1."
            )
