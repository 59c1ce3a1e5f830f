"""Tables as they come: numbers, categories, dates and gaps, encoded column by column."""

from exclusivity.tables.columns import TableColumn
from exclusivity.tables.encoder import TableEncoder
from exclusivity.tables.frames import is_table as is_table, take_rows as take_rows
from exclusivity.tables.robust import make_robust_classifier as make_robust_classifier

__all__ = ["TableColumn", "TableEncoder"]
