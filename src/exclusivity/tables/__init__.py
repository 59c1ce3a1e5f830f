"""Tables as they come: numbers, categories, dates and gaps, encoded column by column."""

from exclusivity.tables.assembling import assemble_dense as assemble_dense
from exclusivity.tables.codes import (
    MONTHS as MONTHS,
    MOST_RARE as MOST_RARE,
    PARTS as PARTS,
    RARE as RARE,
    WEEKDAYS as WEEKDAYS,
    Code as Code,
    DateCode as DateCode,
    GapCode as GapCode,
    LevelCode as LevelCode,
    NumberCode as NumberCode,
    date_parts as date_parts,
)
from exclusivity.tables.columns import TableColumn, output_sources as output_sources
from exclusivity.tables.encoder import TableEncoder, learn_from_summaries as learn_from_summaries
from exclusivity.tables.frames import (
    Column as Column,
    ColumnTable as ColumnTable,
    column_of as column_of,
    column_of_arrow as column_of_arrow,
    take_rows as take_rows,
)
from exclusivity.tables.identifiers import RowNames as RowNames, names_rows as names_rows
from exclusivity.tables.interactions import InteractionFeatures, KernelMap as KernelMap
from exclusivity.tables.robust import (
    interactions_for as interactions_for,
    make_robust_classifier as make_robust_classifier,
)
from exclusivity.tables.summaries import (
    SUMMARIES as SUMMARIES,
    NumberSummary as NumberSummary,
    Summary as Summary,
)
from exclusivity.tables.values import (
    LONGEST_LEVEL as LONGEST_LEVEL,
    CellError as CellError,
    as_dates as as_dates,
    as_levels as as_levels,
    as_numbers as as_numbers,
    as_texts as as_texts,
    is_gap as is_gap,
    is_table as is_table,
    kind_of as kind_of,
    missing as missing,
)

__all__ = ["InteractionFeatures", "TableColumn", "TableEncoder"]
