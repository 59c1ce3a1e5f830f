"""Histories as one table of numbers: seven columns per iteration, all problems below one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any, overload

import numpy as np

from exclusivity.persistence.container import ArrayStore, ArrayTable
from exclusivity.persistence.errors import DAMAGED, NEWER, ModelFormatError, shown
from exclusivity.persistence.fields import Fields
from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers import History, IterationRecord

_COLUMNS = tuple(field.name for field in fields(IterationRecord))
_NEEDED = {field.name for field in fields(IterationRecord) if field.default is MISSING}


class StoredRecords(Sequence[IterationRecord]):
    """Records that stay numbers in a table until somebody looks: objects would take six times the memory."""

    def __init__(self, table: Floats, columns: Sequence[str]) -> None:
        self._table, self._columns = table, tuple(columns)

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> IterationRecord: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[IterationRecord, ...]: ...
    def __getitem__(self, index: int | slice) -> IterationRecord | tuple[IterationRecord, ...]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(*index.indices(len(self))))
        values: dict[str, Any] = dict(zip(self._columns, self._table[index].tolist(), strict=True))
        values["iteration"] = int(values["iteration"])
        return IterationRecord(**values)


class StoredHistories(Sequence[History]):
    """One history per problem, each made when somebody looks: objects would be larger than the file."""

    def __init__(self, table: Floats, columns: Sequence[str], ends: Ints) -> None:
        self._table, self._columns, self._ends = table, tuple(columns), ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> History: ...
    @overload
    def __getitem__(self, index: slice) -> list[History]: ...
    def __getitem__(self, index: int | slice) -> History | list[History]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        start = self._ends[place - 1] if place else 0
        return History(StoredRecords(self._table[start : self._ends[place]], self._columns))


def pack_histories(histories: Sequence[History], store: ArrayStore) -> dict[str, Any]:
    """The header's form of the histories of all problems."""
    rows = [
        [getattr(record, name) for name in _COLUMNS] for history in histories for record in history.records
    ]
    table = np.array(rows, dtype=float).reshape(len(rows), len(_COLUMNS))
    lengths = np.array([len(history) for history in histories], dtype=np.int64)
    return {
        "columns": list(_COLUMNS),
        "lengths": store.add(lengths, "history_"),
        "records": store.add(table, "history_"),
    }


def unpack_histories(value: object, n_problems: int, table: ArrayTable) -> StoredHistories:
    """One history per problem."""
    found = Fields(value, "the history")
    columns = found.items("columns")
    _check_columns(columns)
    lengths = table.take(found.take("lengths"), "the lengths of the histories")
    records = table.take(found.take("records"), "the records of the histories")
    found.finish()
    if lengths.dtype != np.int64 or lengths.shape != (n_problems,) or np.any(lengths < 0):
        raise ModelFormatError(f"the lengths of the histories are not one per problem. {DAMAGED}")
    if records.dtype != np.float64 or records.shape != (sum(lengths.tolist()), len(columns)):
        raise ModelFormatError(f"the history has {shown(records.shape)} entries. {DAMAGED}")
    numbers = records[:, columns.index("iteration")]
    if not np.all((numbers >= 0) & (numbers < 2**53) & (numbers == np.floor(numbers))):
        raise ModelFormatError(f"iterations of the history are not whole numbers. {DAMAGED}")
    return StoredHistories(records, columns, np.cumsum(lengths))


def _check_columns(columns: list[Any]) -> None:
    names = {name for name in columns if isinstance(name, str)}
    if len(names) < len(columns) or not names >= _NEEDED:
        raise ModelFormatError(f"the history has the columns {shown(columns)}. {DAMAGED}")
    unknown = names - set(_COLUMNS)
    if unknown:
        raise ModelFormatError(f"the history has the unknown column {shown(min(unknown))}. {NEWER}")
