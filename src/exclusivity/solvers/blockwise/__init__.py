"""Rows that are reached block by block: what such a source has to give, and the solver above it."""

from exclusivity.solvers.blockwise.bands import Band
from exclusivity.solvers.blockwise.barrier import BarrierSums
from exclusivity.solvers.blockwise.questions import RowList, Target, TotalLoss, aligned
from exclusivity.solvers.blockwise.rows import (
    Answer,
    BlockRows,
    LocalBlocks,
    Meeting,
    Question,
    Request,
    RowBlock,
)
from exclusivity.solvers.blockwise.solving import Settings, solve_targets

__all__ = [
    "Answer",
    "Band",
    "BarrierSums",
    "BlockRows",
    "LocalBlocks",
    "Meeting",
    "Question",
    "Request",
    "RowBlock",
    "RowList",
    "Settings",
    "Target",
    "TotalLoss",
    "aligned",
    "solve_targets",
]
