"""Rows that are reached block by block: what such a source has to give, and the solver above it."""

from exclusivity.solvers.blockwise.bands import Band
from exclusivity.solvers.blockwise.barrier import BarrierSums
from exclusivity.solvers.blockwise.questions import Target, TotalLoss
from exclusivity.solvers.blockwise.solving import Settings, solve_targets

__all__ = [
    "Band",
    "BarrierSums",
    "Settings",
    "Target",
    "TotalLoss",
    "solve_targets",
]
