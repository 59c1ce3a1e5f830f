"""Tables with numbers, categories, dates and missing values, encoded column by column."""

from exclusivity.tables._encoder import TableColumn, TableEncoder

__all__ = ["TableColumn", "TableEncoder"]
