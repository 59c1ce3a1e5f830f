"""The objective: losses, penalties, the reduction to one SVM, and the certified lower bound."""

from exclusivity.objective.losses import (
    LOSSES,
    Logistic,
    LossParts,
    MarginLoss,
    PowerHinge,
    SmoothHinge,
    register_loss,
)
from exclusivity.objective.objective import (
    Bounds,
    Contrast,
    ExclusivityRegulariser,
    Objective,
    exclusivity,
    relative_gap,
    relaxed_exclusivity,
)
from exclusivity.objective.problem import ERMProblem, dual_bound, dual_from_scores, member_costs, natural_cost

__all__ = [
    "LOSSES",
    "Bounds",
    "Contrast",
    "ERMProblem",
    "ExclusivityRegulariser",
    "Logistic",
    "LossParts",
    "MarginLoss",
    "Objective",
    "PowerHinge",
    "SmoothHinge",
    "dual_bound",
    "dual_from_scores",
    "exclusivity",
    "member_costs",
    "natural_cost",
    "register_loss",
    "relative_gap",
    "relaxed_exclusivity",
]
