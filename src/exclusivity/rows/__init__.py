"""The rows of X: dense or CSR matrices in memory, and sources of rows that are reached block by block."""

from exclusivity.rows.design import UNIT, DesignMatrix, LabelledRows, RowScale, gamma, weighted_total
from exclusivity.rows.source import (
    Answer,
    LocalBlocks,
    RowBlock,
    RowSource,
)
from exclusivity.rows.sparse_rows import has_compiled_loops

__all__ = [
    "UNIT",
    "Answer",
    "DesignMatrix",
    "LabelledRows",
    "LocalBlocks",
    "RowBlock",
    "RowScale",
    "RowSource",
    "gamma",
    "has_compiled_loops",
    "weighted_total",
]
