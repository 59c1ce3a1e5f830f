"""What is minimised: loss, regulariser, objective, the reduction to one SVM, and the certificate."""

from exclusivity.problem.certificate import (
    dual_bound,
    dual_bound_with_pull,
    dual_from_scores,
    member_costs,
    relative_gap,
    repair_dual,
)
from exclusivity.problem.costs import cost_grid, natural_cost
from exclusivity.problem.design import DesignMatrix
from exclusivity.problem.erm import ERMProblem
from exclusivity.problem.intercept import best_intercept
from exclusivity.problem.loss import PowerHinge
from exclusivity.problem.measures import exclusivity, relaxed_exclusivity
from exclusivity.problem.regulariser import ExclusivityRegulariser

__all__ = [
    "DesignMatrix",
    "ERMProblem",
    "ExclusivityRegulariser",
    "PowerHinge",
    "best_intercept",
    "cost_grid",
    "dual_bound",
    "dual_bound_with_pull",
    "dual_from_scores",
    "exclusivity",
    "member_costs",
    "natural_cost",
    "relative_gap",
    "relaxed_exclusivity",
    "repair_dual",
]
