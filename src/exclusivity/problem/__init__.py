"""What is minimised: loss, regulariser, objective, the reduction to one SVM, and the certificate."""

from exclusivity.problem.certificate import (
    dual_bound,
    dual_bound_with_pull,
    dual_from_scores,
    member_costs,
    objective_error,
    objective_of_shortfall,
    relative_gap,
    repair_dual,
    rounded_up,
)
from exclusivity.problem.costs import cost_grid, natural_cost
from exclusivity.problem.design import DesignMatrix
from exclusivity.problem.erm import Contrast, ERMProblem, LabelledRows
from exclusivity.problem.intercept import best_intercept
from exclusivity.problem.loss import CurvedLoss, MarginLoss
from exclusivity.problem.measures import exclusivity, relaxed_exclusivity
from exclusivity.problem.objective import Objective
from exclusivity.problem.power_hinge import PowerHinge
from exclusivity.problem.precision import RowScale, gamma, lower_dual
from exclusivity.problem.regulariser import ExclusivityRegulariser

__all__ = [
    "Contrast",
    "CurvedLoss",
    "DesignMatrix",
    "ERMProblem",
    "ExclusivityRegulariser",
    "LabelledRows",
    "MarginLoss",
    "Objective",
    "PowerHinge",
    "RowScale",
    "best_intercept",
    "cost_grid",
    "dual_bound",
    "dual_bound_with_pull",
    "dual_from_scores",
    "exclusivity",
    "gamma",
    "lower_dual",
    "member_costs",
    "natural_cost",
    "objective_error",
    "objective_of_shortfall",
    "relative_gap",
    "relaxed_exclusivity",
    "repair_dual",
    "rounded_up",
]
