"""What is minimised: the ERM objective, and the one SVM it reduces to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.problem.design import DesignMatrix
from exclusivity.problem.loss import PowerHinge
from exclusivity.problem.regulariser import ExclusivityRegulariser


@dataclass(frozen=True, eq=False)
class ERMProblem:
    """One binary ERM: Eq. (5) of the paper with its three knobs and sample weights.

        F(W, b) = regulariser(W) + C sum_k sum_i s_i max(0, 1 - y_i (x_i . w_k + b_k))^p

    Parameters
    ----------
    design : DesignMatrix
        The N rows of X.
    labels : ndarray of shape (N,)
        -1 or +1.
    weights : ndarray of shape (N,)
        Sample weights s_i > 0. Leave rows of weight 0 out: they have no dual variable.
    n_members : int
        K, the number of members (the paper's C).
    cost : float
        C, the weight of the loss (the paper's lambda).
    loss : PowerHinge
    regulariser : ExclusivityRegulariser
    fit_intercept : bool
        Whether each member has a free intercept b_k, or b_k = 0.

    See Also
    --------
    ERMProblem.build : The same from plain arrays and numbers.
    """

    design: DesignMatrix
    labels: Floats
    weights: Floats
    n_members: int
    cost: float
    loss: PowerHinge
    regulariser: ExclusivityRegulariser
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        n_rows = self.design.n_rows
        if self.labels.shape != (n_rows,) or self.weights.shape != (n_rows,):
            raise ValueError(
                f"X has {n_rows} rows, but labels have shape {self.labels.shape} "
                f"and weights {self.weights.shape}."
            )
        if not np.all(np.abs(self.labels) == 1):
            raise ValueError("labels must be -1 or +1.")
        if not np.all(np.isfinite(self.weights) & (self.weights > 0)):
            raise ValueError("weights must be positive and finite; leave rows of weight 0 out.")
        if self.n_members < 1:
            raise ValueError(f"n_members must be at least 1; got {self.n_members}.")
        if not (np.isfinite(self.cost) and self.cost > 0):
            raise ValueError(f"cost must be a positive finite number; got {self.cost!r}.")

    @classmethod
    def build(
        cls,
        X: Matrix,
        y: Floats,
        *,
        n_members: int = 1,
        cost: float = 1.0,
        p: float = 2,
        exclusivity: float = 1.0,
        sparsity: float = 0.0,
        weights: Floats | None = None,
        fit_intercept: bool = True,
    ) -> ERMProblem:
        """A problem from plain arrays.

        Examples
        --------
        >>> import numpy as np
        >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), n_members=3)
        >>> problem.objective(np.zeros((1, 3)), np.zeros(3))
        6.0
        """
        labels = np.asarray(y, dtype=float)
        return cls(
            design=DesignMatrix(X),
            labels=labels,
            weights=np.ones(labels.shape) if weights is None else np.asarray(weights, dtype=float),
            n_members=n_members,
            cost=float(cost),
            loss=PowerHinge(p),
            regulariser=ExclusivityRegulariser(exclusivity, sparsity),
            fit_intercept=fit_intercept,
        )

    @property
    def kappa(self) -> float:
        """1 + gamma (K - 1); K for the paper."""
        return self.regulariser.kappa(self.n_members)

    @property
    def is_convex(self) -> bool:
        """Whether gamma <= 1, so that a duality gap can certify the optimum."""
        return self.regulariser.exclusivity <= 1

    def scores(self, weights: Floats, intercepts: Floats) -> Floats:
        """x_i . w_k + b_k, N x K."""
        return self.design.times(weights) + intercepts

    def objective(self, weights: Floats, intercepts: Floats) -> float:
        """F(W, b), from blocks of rows."""
        loss = 0.0
        for rows, block in self.design.blocks(weights.shape[1]):
            shortfall = 1 - self.labels[rows, None] * (block @ weights + intercepts)
            loss += self.loss.total(shortfall, self.weights[rows])
        return self.regulariser.value(weights) + self.cost * loss

    def objective_at(self, weights: Floats, scores: Floats) -> float:
        """F(W, b) where the scores are known already: no product with X."""
        loss = 0.0
        for rows in self.design.row_slices(scores.shape[1]):
            loss += self.loss.total(1 - self.labels[rows, None] * scores[rows], self.weights[rows])
        return self.regulariser.value(weights) + self.cost * loss

    def reduced(self) -> ERMProblem:
        """The ONE ordinary SVM that the mean member of every optimum solves, for gamma <= 1.

        F does not change when members are permuted and is convex, so averaging a solution over all
        permutations cannot raise it: K copies of the mean member (w, b) are optimal too. For equal
        members |W_j|_1 = K |w_j|, hence with kappa = 1 + gamma (K - 1)

            F = K kappa f(w, b),   f(w, b) = 1/2 |w|^2 + beta/kappa |w|_1 + C/kappa sum_i s_i max(0, m_i)^p

        and min F = K kappa min f. For the paper, gamma = 1: an SVM of cost C / K.
        """
        self.require_convex()
        return dataclasses.replace(
            self,
            n_members=1,
            cost=self.cost / self.kappa,
            regulariser=ExclusivityRegulariser(
                self.regulariser.exclusivity, self.regulariser.sparsity / self.kappa
            ),
        )

    def centred(self) -> ERMProblem:
        """The same problem on rows around their centre, where that keeps digits (see ``DesignMatrix``).

        Scores are the same with b + (centre . w) for b.
        """
        if not self.fit_intercept or self.design.centred is self.design:
            return self
        return dataclasses.replace(self, design=self.design.centred)

    def require_convex(self) -> None:
        """Raise unless gamma <= 1."""
        if not self.is_convex:
            raise ValueError(
                f"exclusivity={self.regulariser.exclusivity:g} makes the problem non-convex: "
                "there is no equivalent SVM and no duality gap above exclusivity=1."
            )
