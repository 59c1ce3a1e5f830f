"""What is minimised: loss, regulariser, objective, the reduction to one SVM, and the certificate."""

from exclusivity.problem.bounds import BoundedPenalty, Bounds
from exclusivity.problem.costs import cost_grid, natural_cost
from exclusivity.problem.design import UNIT, DesignMatrix, RowScale, gamma, weighted_total
from exclusivity.problem.erm import (
    ERMProblem,
    LabelledRows,
    dual_bound,
    dual_bound_with_pull,
    member_costs,
    objective_error,
    objective_of_shortfall,
    repair_dual,
)
from exclusivity.problem.intercept import best_intercept, dual_from_scores
from exclusivity.problem.logistic import Logistic
from exclusivity.problem.loss import CurvedLoss, LossParts, MarginLoss
from exclusivity.problem.losses import LOSSES, POWER_LOSS, register_loss
from exclusivity.problem.measures import exclusivity, relaxed_exclusivity
from exclusivity.problem.objective import (
    Contrast,
    ElasticPenalty,
    ExclusivityRegulariser,
    Objective,
    relative_gap,
)
from exclusivity.problem.penalty import Penalty
from exclusivity.problem.power_hinge import PowerHinge
from exclusivity.problem.smooth_hinge import SmoothHinge
from exclusivity.problem.sparse_rows import has_compiled_loops

__all__ = [
    "LOSSES",
    "POWER_LOSS",
    "UNIT",
    "BoundedPenalty",
    "Bounds",
    "Contrast",
    "CurvedLoss",
    "DesignMatrix",
    "ERMProblem",
    "ElasticPenalty",
    "ExclusivityRegulariser",
    "LabelledRows",
    "Logistic",
    "LossParts",
    "MarginLoss",
    "Objective",
    "Penalty",
    "PowerHinge",
    "RowScale",
    "SmoothHinge",
    "best_intercept",
    "cost_grid",
    "dual_bound",
    "dual_bound_with_pull",
    "dual_from_scores",
    "exclusivity",
    "gamma",
    "has_compiled_loops",
    "member_costs",
    "natural_cost",
    "objective_error",
    "objective_of_shortfall",
    "register_loss",
    "relative_gap",
    "relaxed_exclusivity",
    "repair_dual",
    "weighted_total",
]
