"""Solver "exclusive": members that compete for features (exclusivity > 1), up to disjoint supports."""

from exclusivity.solvers.exclusive._search import ExclusiveOptions, ExclusiveResult, find_partition
from exclusivity.solvers.exclusive._solver import solve_exclusive, solve_exclusive_targets

__all__ = [
    "ExclusiveOptions",
    "ExclusiveResult",
    "find_partition",
    "solve_exclusive",
    "solve_exclusive_targets",
]
