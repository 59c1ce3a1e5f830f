"""Rows that are reached block by block: what such a source has to give, and the solver above it."""

from exclusivity.solvers.blockwise.bands import Band
from exclusivity.solvers.blockwise.questions import BarrierSums, Target, TotalLoss
from exclusivity.solvers.blockwise.rows import (
    Answer,
    BlockRows,
    LocalBlocks,
    Meeting,
    Question,
    Request,
    RowBlock,
    RowList,
    added,
    aligned,
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
    "added",
    "aligned",
    "solve_targets",
]
