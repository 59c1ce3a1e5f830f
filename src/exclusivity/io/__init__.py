"""Files: tables of any format, and the data sets of the paper."""

from exclusivity.io._errors import DataFileError
from exclusivity.io.datasets import load_dataset
from exclusivity.io.tables import Table, read_table

__all__ = ["DataFileError", "Table", "load_dataset", "read_table"]
