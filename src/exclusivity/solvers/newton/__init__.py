"""Solver "newton": the certified optimum of the reduced SVM by second-order steps."""

from exclusivity.solvers.newton.path import solve_newton_path
from exclusivity.solvers.newton.solver import NewtonOptions, make_system, solve_newton

__all__ = [
    "NewtonOptions",
    "make_system",
    "solve_newton",
    "solve_newton_path",
]
