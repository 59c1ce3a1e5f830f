"""Tables with numbers, categories, dates and missing values, encoded column by column."""

from exclusivity.tables.cells import (
    LONGEST_LEVEL as LONGEST_LEVEL,
    CellError as CellError,
    Column as Column,
    ColumnTable as ColumnTable,
    as_dates as as_dates,
    as_levels as as_levels,
    as_texts as as_texts,
    column_of_arrow as column_of_arrow,
    is_missing as is_missing,
    kind_of as kind_of,
    missing as missing,
)
from exclusivity.tables.codes import (
    MONTHS as MONTHS,
    PARTS as PARTS,
    WEEKDAYS as WEEKDAYS,
    Code as Code,
    DateCode as DateCode,
    GapCode as GapCode,
    LevelCode as LevelCode,
    NumberCode as NumberCode,
)
from exclusivity.tables.encoder import (
    TableColumn,
    TableEncoder,
    learn_from_summaries as learn_from_summaries,
    output_sources as output_sources,
)
from exclusivity.tables.identifiers import RowNames as RowNames, names_rows as names_rows
from exclusivity.tables.interactions import (
    InteractionFeatures,
    KernelMap as KernelMap,
    interactions_for as interactions_for,
    make_robust_classifier as make_robust_classifier,
)
from exclusivity.tables.summaries import SUMMARIES as SUMMARIES, NumberSummary as NumberSummary

is_gap = is_missing

__all__ = ["InteractionFeatures", "TableColumn", "TableEncoder"]
