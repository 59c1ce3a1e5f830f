"""The objective: losses, penalties, the reduction to one SVM, and the certified lower bound."""

from exclusivity.objective.estimates import dual_from_scores, natural_cost
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
    ERMProblem,
    ExclusivityRegulariser,
    Objective,
    dual_bound,
    exclusivity,
    member_costs,
    relative_gap,
    relaxed_exclusivity,
)

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
