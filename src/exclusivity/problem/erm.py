"""Rows in memory, and an objective on them: one binary ERM."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.problem.design import DesignMatrix
from exclusivity.problem.loss import MarginLoss
from exclusivity.problem.objective import Objective
from exclusivity.problem.power_hinge import PowerHinge
from exclusivity.problem.regulariser import ExclusivityRegulariser


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """N rows of a binary problem.

    Parameters
    ----------
    design : DesignMatrix
        Their features.
    labels : ndarray of shape (N,)
        -1 or +1.
    weights : ndarray of shape (N,)
        Sample weights s_i > 0. Leave rows of weight 0 out: they have no dual variable.
    """

    design: DesignMatrix
    labels: Floats
    weights: Floats

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


@dataclass(frozen=True)
class Contrast:
    """Which class numbers a binary problem sets against each other.

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
        fit_intercept: bool = True,
    ) -> ERMProblem:
        """A problem from plain arrays; without a ``loss`` the power hinge of power ``p``.

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
        )
        return cls(objective, LabelledRows(DesignMatrix(X), labels, weights))

    @property
    def loss(self) -> MarginLoss:
        """Of the objective."""
        return self.objective.loss

    @property
    def regulariser(self) -> ExclusivityRegulariser:
        """Of the objective."""
        return self.objective.regulariser

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
    def is_convex(self) -> bool:
        """Whether gamma <= 1, so that a duality gap can certify the optimum."""
        return self.objective.is_convex

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

    def scores(self, weights: Floats, intercepts: Floats) -> Floats:
        """x_i . w_k + b_k, N x K."""
        return self.design.times(weights) + intercepts

    def value(self, weights: Floats, intercepts: Floats) -> float:
        """F(W, b), from blocks of rows."""
        return self.regulariser.value(weights) + self.total_loss(weights, intercepts)

    def total_loss(self, weights: Floats, intercepts: Floats) -> float:
        """C sum_k sum_i s_i phi(m_ik), from blocks of rows."""
        loss = 0.0
        for rows, block in self.design.blocks(weights.shape[1]):
            shortfall = 1 - self.labels[rows, None] * (block @ weights + intercepts)
            loss += self.loss.total(shortfall, self.weights[rows])
        return self.cost * loss

    def value_at(self, weights: Floats, scores: Floats) -> float:
        """F(W, b) where the scores are known already: no product with X."""
        loss = 0.0
        for rows in self.design.row_slices(scores.shape[1]):
            loss += self.loss.total(1 - self.labels[rows, None] * scores[rows], self.weights[rows])
        return self.regulariser.value(weights) + self.cost * loss

    def reduced(self) -> ERMProblem:
        """The one SVM that the mean member solves, on the same rows; see :meth:`Objective.reduced`."""
        return dataclasses.replace(self, objective=self.objective.reduced())

    def changed(self, **parts: Any) -> ERMProblem:
        """The same problem with other parts, by their names in :class:`Objective` or :class:`LabelledRows`.

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
        """The same problem on rows around their centre, where that keeps digits (see ``DesignMatrix``).

        Scores are the same with b + (centre . w) for b.
        """
        if not self.fit_intercept or self.design.centred is self.design:
            return self
        return self.changed(design=self.design.centred)
