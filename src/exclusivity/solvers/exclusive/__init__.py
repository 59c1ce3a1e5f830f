"""Solver "exclusive": members that compete for features (exclusivity > 1), up to disjoint supports."""

from exclusivity.solvers.exclusive._search import ExclusiveOptions, ExclusiveResult
from exclusivity.solvers.exclusive._solver import solve_exclusive, solve_exclusive_targets

__all__ = [
    "ExclusiveOptions",
    "ExclusiveResult",
    "solve_exclusive",
    "solve_exclusive_targets",
]
