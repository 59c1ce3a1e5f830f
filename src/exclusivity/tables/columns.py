"""What is learned of the columns of a table: their kinds, their codes, and why some have none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Ints
from exclusivity.tables.codes import Code, GapCode, learn_date, learn_levels, learn_number
from exclusivity.tables.frames import Values
from exclusivity.tables.values import as_dates, as_levels, as_numbers, kind_of


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
    """

    name: str
    kind: str
    code: Code | None
    n_gaps: int
    n_levels: int | None = None
    left_out: str = ""

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 0 if self.code is None else self.code.width


@dataclass(frozen=True)
class Rules:
    """How columns are encoded; the parameters of a :class:`TableEncoder`."""

    n_knots: int
    min_frequency: int
    max_levels: int


def learn_column(name: str, values: Values, rules: Rules, *, is_category: bool) -> TableColumn:
    """Look at a column of the training rows."""
    kind = "category" if is_category else kind_of(values)
    return _LEARNERS[kind](name, values, rules)


def _learn_number(name: str, values: Values, rules: Rules) -> TableColumn:
    numbers = as_numbers(values)
    n_gaps = int(np.isnan(numbers).sum())
    code = learn_number(numbers, rules.n_knots)
    return _learned(name, "number", code, n_gaps, len(values), "all its values are the same")


def _learn_category(name: str, values: Values, rules: Rules) -> TableColumn:
    codes, levels = as_levels(values)
    n_gaps = int((codes < 0).sum())
    code = learn_levels(codes, levels, rules.min_frequency, rules.max_levels)
    why = "all its values are the same"
    if len(levels) > 1:
        why = f"no level is in {rules.min_frequency} rows or more, as in a column that names rows"
    return _learned(name, "category", code, n_gaps, len(values), why, len(levels))


def _learn_date(name: str, values: Values, rules: Rules) -> TableColumn:
    moments = as_dates(values)
    code = learn_date(moments, rules.n_knots)
    n_gaps = int(np.isnat(moments).sum())
    return _learned(name, "date", code, n_gaps, len(values), "year, month, weekday and hour are the same")


def _learned(
    name: str, kind: str, code: Code | None, n_gaps: int, n_rows: int, why: str, n_levels: int | None = None
) -> TableColumn:
    if code is None and 0 < n_gaps < n_rows:
        code = GapCode()
    if code is not None:
        return TableColumn(name, kind, code, n_gaps, n_levels)
    why = "it has no value at all" if n_gaps == n_rows else why
    return TableColumn(name, kind, None, n_gaps, n_levels, why)


_LEARNERS: dict[str, Callable[[str, Values, Rules], TableColumn]] = {
    "number": _learn_number,
    "category": _learn_category,
    "date": _learn_date,
}


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
