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
from exclusivity.solvers.dispatch import SOLVERS, resolve_solver, solve_all
from exclusivity.solvers.exclusive import ExclusiveOptions, ExclusiveResult, solve_exclusive
from exclusivity.solvers.newton import NewtonOptions, solve_newton
from exclusivity.solvers.paper import PaperOptions, solve_paper
from exclusivity.solvers.path import solve_path

__all__ = [
    "SOLVERS",
    "AlmOptions",
    "Callback",
    "ExclusiveOptions",
    "ExclusiveResult",
    "History",
    "IterationRecord",
    "IterationState",
    "NewtonOptions",
    "PaperOptions",
    "SolverResult",
    "Start",
    "Status",
    "resolve_solver",
    "solve_all",
    "solve_alm",
    "solve_exclusive",
    "solve_newton",
    "solve_paper",
    "solve_path",
]
