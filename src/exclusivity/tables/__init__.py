"""Tables with numbers, categories, dates and missing values, encoded column by column."""

from exclusivity.tables._encoder import TableColumn, TableEncoder
from exclusivity.tables._interactions import InteractionFeatures

__all__ = ["InteractionFeatures", "TableColumn", "TableEncoder"]
