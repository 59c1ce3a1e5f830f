"""The rows of X: dense or CSR matrices in memory, and sources of rows that are reached block by block."""

from exclusivity.rows.design import DesignMatrix, LabelledRows, RowScale
from exclusivity.rows.source import Answer, LocalBlocks, Question, RowBlock, RowSource

__all__ = [
    "Answer",
    "DesignMatrix",
    "LabelledRows",
    "LocalBlocks",
    "Question",
    "RowBlock",
    "RowScale",
    "RowSource",
]
