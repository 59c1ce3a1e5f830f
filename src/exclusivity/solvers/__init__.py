"""How it is minimised: each solver takes an ERMProblem and returns one frozen SolverResult."""

from exclusivity.solvers.alm import AlmOptions, solve_alm
from exclusivity.solvers.base import (
    Callback,
    History,
    Incumbent as Incumbent,
    IterationRecord,
    IterationState,
    Recorder as Recorder,
    SolverResult,
    Start,
    Status,
    parse_options as parse_options,
)
from exclusivity.solvers.dispatch import (
    SOLVERS,
    SolverSpec,
    register_solver,
    resolve_solver as resolve_solver,
    solve_all,
)
from exclusivity.solvers.exclusive import (
    ExclusiveOptions,
    ExclusiveResult as ExclusiveResult,
    solve_exclusive,
)
from exclusivity.solvers.newton import NewtonOptions, solve_newton
from exclusivity.solvers.paper import (
    Algorithm2 as Algorithm2,
    PaperOptions,
    make_system as make_system,
    solve_paper as solve_paper,
)
from exclusivity.solvers.path import solve_path
from exclusivity.solvers.ridge import RidgeSystem as RidgeSystem, ridge_system as ridge_system

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
    "register_solver",
    "solve_all",
    "solve_alm",
    "solve_exclusive",
    "solve_newton",
    "solve_path",
]
