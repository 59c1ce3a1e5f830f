"""The rows of X: dense or CSR matrices in memory, and sources of rows that are reached block by block."""

from exclusivity.rows.design import UNIT, DesignMatrix, LabelledRows, RowScale, gamma, weighted_total
from exclusivity.rows.source import (
    Answer,
    LocalBlocks,
    Question,
    Request,
    RowBlock,
    RowList,
    RowSource,
    SharedPasses,
    aligned,
)
from exclusivity.rows.sparse_rows import has_compiled_loops

__all__ = [
    "UNIT",
    "Answer",
    "DesignMatrix",
    "LabelledRows",
    "LocalBlocks",
    "Question",
    "Request",
    "RowBlock",
    "RowList",
    "RowScale",
    "RowSource",
    "SharedPasses",
    "aligned",
    "gamma",
    "has_compiled_loops",
    "weighted_total",
]
