"""The certificate of weights that a model holds in float32."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.objective import Objective, relative_gap
from exclusivity.rows.design import RowScale
from exclusivity.solvers import SolverResult, Status


@dataclass(frozen=True, eq=False)
class StoredPoint:
    """A result's weights rounded to float32, and whose loss has to be summed to certify them.

    They are another point than the one that was found: at a large C rounding may undo the last digits of the
    loss, and a certificate speaks of what is stored.

    Parameters
    ----------
    objective : Objective
        Of all members, or of the one SVM behind them where they are equal.
    weights, intercepts : ndarrays of shape (n_features, n_members) and (n_members,)
        Those of ``objective``'s members.
    scale : float
        How many times its objective the result's is.
    """

    objective: Objective
    weights: Floats
    intercepts: Floats
    scale: float

    @classmethod
    def of(cls, objective: Objective, result: SolverResult) -> StoredPoint:
        """What a model of float32 rows keeps of a result."""
        weights, intercepts = result.weights, result.intercepts
        scale = 1.0
        if weights.strides[1] == 0:  # K equal members cost what the one SVM behind them costs
            scale = objective.n_members * objective.kappa
            objective, weights, intercepts = objective.reduced(), weights[:, :1], intercepts[:1]
        weights, intercepts = (a.astype(np.float32).astype(float) for a in (weights, intercepts))
        return cls(objective, weights, intercepts, scale)

    def certified(
        self, result: SolverResult, tol: float, loss: float, total_cost: float, rows: RowScale, n_rows: int
    ) -> SolverResult:
        """The result at this point, whose rows have this loss and, all together, this cost."""
        penalty, members = self.objective.regulariser.value(self.weights), self.weights.shape[1]
        objective = self.scale * (penalty + loss)
        shape = result.weights.shape
        stored = replace(
            result,
            weights=np.broadcast_to(self.weights, shape),
            intercepts=np.broadcast_to(self.intercepts, shape[1]),
            objective=objective,
        )
        if np.isnan(result.gap):
            return stored
        error = float(np.max(rows.score_error(self.weights, self.intercepts)))
        raised = penalty + self.objective.loss.raised_total(loss, members * total_cost, error)
        upper = self.scale * self.objective.rounded_up(raised, n_rows, self.weights.size)
        bound = result.objective * (1 - result.gap)
        gap = relative_gap(objective, bound - (upper - objective))
        is_lost = result.converged and gap > tol
        status = Status.ROUNDED if is_lost else result.status
        return replace(stored, gap=gap, converged=gap <= tol, status=status)
