"""Tables as they come: numbers, categories, dates and gaps, encoded column by column."""

from exclusivity.tables.codes import (
    MONTHS as MONTHS,
    MOST_RARE as MOST_RARE,
    PARTS as PARTS,
    WEEKDAYS as WEEKDAYS,
    Code as Code,
    DateCode as DateCode,
    GapCode as GapCode,
    LevelCode as LevelCode,
    NumberCode as NumberCode,
)
from exclusivity.tables.columns import TableColumn, output_sources as output_sources
from exclusivity.tables.encoder import TableEncoder
from exclusivity.tables.frames import is_table as is_table, take_rows as take_rows
from exclusivity.tables.robust import make_robust_classifier as make_robust_classifier
from exclusivity.tables.values import LONGEST_LEVEL as LONGEST_LEVEL, is_gap as is_gap

__all__ = ["TableColumn", "TableEncoder"]
