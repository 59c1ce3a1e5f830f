"""Solver "newton": the certified optimum of the reduced SVM by second-order steps."""

from exclusivity.solvers.newton.bands import (
    INNER_SHARE,
    LEAST_ROWS,
    WIDEN,
    can_balance,
    learned_width,
    solve_inside,
)
from exclusivity.solvers.newton.barrier import Barrier, WorkingRows
from exclusivity.solvers.newton.batched import newton_group_size, solve_newton_together
from exclusivity.solvers.newton.interior import drive_interior, with_exact_zeros
from exclusivity.solvers.newton.linear import NewtonSystem, bordered_gram, ridged_system
from exclusivity.solvers.newton.path import solve_newton_path
from exclusivity.solvers.newton.run import (
    Certificate,
    Guess,
    LossSums,
    Point,
    Run,
    bound_from_sums,
    objective_from_sums,
    repaired_weights,
)
from exclusivity.solvers.newton.semismooth import drive_semismooth
from exclusivity.solvers.newton.solver import (
    DEFAULT_MAX_ITER,
    MANY_ROWS,
    NewtonOptions,
    Regime,
    RowFacts,
    choose_regime,
    guess_of_sample,
    make_system,
    methods_of,
    solve_newton,
)
from exclusivity.solvers.newton.source import BlockSource

__all__ = [
    "DEFAULT_MAX_ITER",
    "INNER_SHARE",
    "LEAST_ROWS",
    "MANY_ROWS",
    "WIDEN",
    "Barrier",
    "BlockSource",
    "Certificate",
    "Guess",
    "LossSums",
    "NewtonOptions",
    "NewtonSystem",
    "Point",
    "Regime",
    "RowFacts",
    "Run",
    "WorkingRows",
    "bordered_gram",
    "bound_from_sums",
    "can_balance",
    "choose_regime",
    "drive_interior",
    "drive_semismooth",
    "guess_of_sample",
    "learned_width",
    "make_system",
    "methods_of",
    "newton_group_size",
    "objective_from_sums",
    "repaired_weights",
    "ridged_system",
    "solve_inside",
    "solve_newton",
    "solve_newton_path",
    "solve_newton_together",
    "with_exact_zeros",
]
