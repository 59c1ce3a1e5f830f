"""Tables with numbers, categories, dates and missing values, encoded column by column."""

from exclusivity.tables._codes import (
    MONTHS as MONTHS,
    PARTS as PARTS,
    WEEKDAYS as WEEKDAYS,
    DateCode as DateCode,
    LevelCode as LevelCode,
    MissingCode as MissingCode,
    NumberCode as NumberCode,
)
from exclusivity.tables._columns import (
    LONGEST_LEVEL as LONGEST_LEVEL,
    ColumnTable as ColumnTable,
    as_levels as as_levels,
    column_of_arrow as column_of_arrow,
    is_missing as is_missing,
    kind_of as kind_of,
)
from exclusivity.tables._encoder import TableColumn, TableEncoder, output_sources as output_sources
from exclusivity.tables._interactions import (
    InteractionFeatures,
    KernelMap as KernelMap,
    interactions_for as interactions_for,
    make_robust_classifier as make_robust_classifier,
)

__all__ = ["InteractionFeatures", "TableColumn", "TableEncoder"]
