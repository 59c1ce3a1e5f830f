"""How it is minimised: each solver takes an ERMProblem and returns one frozen SolverResult."""

from exclusivity.solvers.alm import AlmOptions, solve_alm
from exclusivity.solvers.base import (
    Callback,
    History,
    IterationRecord,
    IterationState,
    SolverResult,
    Start,
    Status,
)
from exclusivity.solvers.dispatch import SOLVERS, SolverSpec, register_solver, solve_all, solve_path
from exclusivity.solvers.exclusive import ExclusiveOptions, solve_exclusive
from exclusivity.solvers.newton import NewtonOptions, solve_newton, solve_targets
from exclusivity.solvers.paper import PaperOptions, solve_paper as solve_paper
from exclusivity.solvers.run import Target

__all__ = [
    "SOLVERS",
    "AlmOptions",
    "Callback",
    "ExclusiveOptions",
    "History",
    "IterationRecord",
    "IterationState",
    "NewtonOptions",
    "PaperOptions",
    "SolverResult",
    "SolverSpec",
    "Start",
    "Status",
    "Target",
    "register_solver",
    "solve_all",
    "solve_alm",
    "solve_exclusive",
    "solve_newton",
    "solve_path",
    "solve_targets",
]
