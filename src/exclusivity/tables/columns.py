"""What is learned of the columns of a table: their kinds, their codes, and why some have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Ints
from exclusivity.tables.codes import Code, GapCode
from exclusivity.tables.doubts import warn_of_texts
from exclusivity.tables.frames import Column, Numbered
from exclusivity.tables.summaries import SUMMARIES, LevelSummary, Rules, Summary
from exclusivity.tables.values import kind_of


@dataclass(frozen=True, eq=False, slots=True)
class TableColumn:
    """One input column of a fitted :class:`TableEncoder`.

    Attributes
    ----------
    name : str
        Its name, or "x" and its number.
    kind : {"number", "category", "date"}
        What it holds.
    code : code or None
        How it becomes output columns; None where it is left out.
    n_gaps : int
        Gaps in the training rows.
    n_levels : int or None
        Levels in the training rows, of a category.
    left_out : str
        Why it is left out, or "".
    notation : str or None
        How its numbers were written, where ``erm`` read them from text: the decimal sign, if one was seen,
        ``'`` if thousands were set apart, ``%`` if per cent signs stood behind them.
    """

    name: str
    kind: str
    code: Code | None
    n_gaps: int
    n_levels: int | None = None
    left_out: str = ""
    notation: str | None = None

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 0 if self.code is None else self.code.width


def learn_column(name: str, column: Column, rules: Rules, *, is_category: bool) -> TableColumn:
    """Look at a column of the training rows."""
    kind = "category" if is_category else kind_of(column)
    summary = SUMMARIES[kind].of(column)
    said_so = is_category or (isinstance(column, Numbered) and column.is_category)
    if isinstance(summary, LevelSummary) and not said_so:
        warn_of_texts(name, summary.counts)
    return learned(name, kind, summary, rules)


def learned(name: str, kind: str, summary: Summary, rules: Rules) -> TableColumn:
    """What a summary of the training rows says about a column."""
    code: Code | None = summary.code(rules)
    n_rows, n_gaps = summary.n_rows, summary.n_gaps
    if code is None and 0 < n_gaps < n_rows:
        code = GapCode()
    if code is not None:
        return TableColumn(name, kind, code, n_gaps, summary.n_levels)
    why = "it has no value at all" if n_gaps == n_rows else summary.why_not(rules)
    return TableColumn(name, kind, None, n_gaps, summary.n_levels, why)


def output_names(columns: Sequence[TableColumn], names: Sequence[str]) -> list[str]:
    """A name for every output column, none of them twice."""
    found: dict[str, None] = {}
    for column, name in zip(columns, names, strict=True):
        for wanted in [] if column.code is None else column.code.names(name):
            unique, number = wanted, 1
            while unique in found:
                number += 1
                unique = f"{wanted}_{number}"
            found[unique] = None
    return list(found)


def output_sources(columns: Sequence[TableColumn]) -> Ints:
    """The number of the input column behind every output column."""
    return np.repeat(np.arange(len(columns)), [column.width for column in columns])
