"""The rows of X: dense or CSR matrices in memory, touched block by block."""

from exclusivity.rows.design import UNIT, DesignMatrix, LabelledRows, RowScale, gamma, weighted_total
from exclusivity.rows.sparse_rows import has_compiled_loops

__all__ = [
    "UNIT",
    "DesignMatrix",
    "LabelledRows",
    "RowScale",
    "gamma",
    "has_compiled_loops",
    "weighted_total",
]
