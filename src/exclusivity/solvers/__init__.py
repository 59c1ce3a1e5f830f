"""How it is minimised: each solver takes an ERMProblem and returns one frozen SolverResult."""

from exclusivity.solvers.alm import AlmOptions, solve_alm
from exclusivity.solvers.base import (
    Callback,
    History,
    IterationRecord,
    IterationState,
    SolverResult,
    Status,
)
from exclusivity.solvers.paper import PaperOptions, solve_paper

__all__ = [
    "AlmOptions",
    "Callback",
    "History",
    "IterationRecord",
    "IterationState",
    "PaperOptions",
    "SolverResult",
    "Status",
    "solve_alm",
    "solve_paper",
]
