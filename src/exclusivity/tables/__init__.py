"""Tables as they come: numbers, categories, dates and gaps, encoded column by column."""

from exclusivity.tables.columns import TableColumn
from exclusivity.tables.encoder import TableEncoder

__all__ = ["TableColumn", "TableEncoder"]
