"""Parquet files, column by column: a damaged file or a bomb is refused, a repeated text is one in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._cells import MISSING, as_array
from exclusivity.io._reading import (
    MAX_COLUMNS,
    Columns,
    DataFileError,
    Reading,
    Table,
    check_size,
    excerpt,
    import_extra,
    refuse_pipe,
)

KINDS = "integers, floating point numbers or booleans"


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """Open a Parquet file; whatever pyarrow does not like about it is damage."""
    arrow, parquet = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    refuse_pipe(path)
    with open(path, "rb"):  # for the system's own words on what cannot be opened
        pass
    try:
        # A text that a file repeats stays one text in memory: as a plain column it may fill all of it.
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            texts = [each.name for each in file.schema_arrow if _is_text(each.type)]
        with parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
            yield file
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, DataFileError):
            raise
        # Names and texts of the file may be part of the message, and of any length.
        reason = " ".join(str(error).split())[:200]
        cause = f"the file is damaged, or not a Parquet file that pyarrow can read ({reason})."
        raise DataFileError(path, None, None, cause) from error
    finally:
        arrow.default_memory_pool().release_unused()  # a hundred megabytes that it would keep for later


def read_parquet(source: str, reading: Reading) -> Table:
    """Read a Parquet file: as numbers alone, or column by column."""
    with open_parquet(source) as file:
        columns, metadata = _columns(file, source, reading), file.metadata
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        n_rows = sum(int(group.num_rows) for group in groups)
        said = sum(int(group.total_byte_size) for group in groups)
        if n_rows < 1:
            cause = f"the table has {n_rows} rows and {len(columns.all)} columns; expected something in it."
            raise DataFileError(source, None, None, cause)
        check_size(source, n_rows, len(columns.all), said, reading)
        target = None
        if columns.target is not None:
            target = _labels(_column(file, columns.all[columns.target], n_rows, source), columns)
        found = [_column(file, title, n_rows, source) for title in columns.titles]
        is_strict = reading.rules is not None and all(rule.required for rule in reading.rules.values())
        is_plain = is_strict or (reading.rules is None and not reading.kinds)
        for title, column in zip(columns.titles, found, strict=True):
            values = _numbers(column) if _is_numeric(column.type) else np.full(1, np.nan)
            if is_strict and not _is_numeric(column.type):
                kind = column.type.value_type if _is_text(column.type) else column.type
                cause = f"the column is of type {str(kind)[:200]}; expected {KINDS}."
                raise DataFileError(source, None, title, cause)
            _refuse(np.isnan(values) & is_strict, "missing", title, source)
            _refuse(np.isinf(values), "infinite", title, source)
            is_plain = is_plain and not np.isnan(values).any()
        if not is_plain:
            return columns.table(found, target)
        X = np.empty((n_rows, len(found)), order="F")
        for j in range(len(found)):
            X[:, j], found[j] = _numbers(found[j]), None  # the memory of one column beside those of X
        return columns.table(X, target)


def _refuse(is_wrong: NDArray[np.bool_], what: str, title: str, file: str) -> None:
    if is_wrong.any():
        cause = f"the value in row {int(np.argmax(is_wrong)) + 1} is {what}; expected a finite number."
        raise DataFileError(file, None, title, cause)


def _columns(file: Any, path: str, reading: Reading) -> Columns:
    """Return the columns; refuse too many, names that occur twice, and the index of a DataFrame."""
    schema, cause = file.schema_arrow, ""
    name, times = Counter(schema.names).most_common(1)[0] if schema.names else ("", 0)
    if not times or len(schema.names) > MAX_COLUMNS:
        cause = f"the table has {len(schema.names)} columns; expected 1 to {MAX_COLUMNS}."
    elif times > 1:
        cause = f"{times} columns are called {excerpt(name)}; expected different names."
    if cause:
        raise DataFileError(path, None, None, cause)
    columns = Columns.of(tuple(schema.names), len(schema.names), reading, path)
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # no JSON, or not what pandas writes
        index = []
    if indices := [title for title in columns.titles if title in index]:
        cause = "the column is the index of a pandas DataFrame; write the file with index=False."
        raise DataFileError(path, None, indices[0], cause, ("ignore",))
    return columns


def _column(file: Any, title: str, n_rows: int, path: str) -> Any:
    """Return a column."""
    column = file.read([title], use_threads=False).column(title)
    column.validate(full=True)  # a damaged page may refer to texts that are not there
    if len(column) != n_rows:
        cause = f"the file holds {len(column)} rows; expected {n_rows}, as it says itself."
        raise DataFileError(path, None, None, cause)
    return column


def _is_text(kind: Any) -> bool:
    types = import_extra("pyarrow").types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_numeric(kind: Any) -> bool:
    types = import_extra("pyarrow").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return a column of numbers or booleans as float64, NaN where missing."""
    found = []
    for chunk in column.chunks:
        values = as_array(chunk.fill_null(False if str(chunk.type) == "bool" else 0))
        found.append(np.where(as_array(chunk.is_null()), np.nan, values) if chunk.null_count else values)
    return np.concatenate(found).astype(np.float64, copy=False)


def _labels(column: Any, columns: Columns) -> NDArray[Any]:
    """Return the target; refuse one with missing values."""
    if _is_numeric(column.type):
        return columns.classes(_numbers(column))
    if not _is_text(column.type):
        cause = f"the column is of type {str(column.type)[:200]}; expected {KINDS} or text."
        raise DataFileError(columns.file, None, columns.all[columns.target or 0], cause)
    column = column if hasattr(column.type, "value_type") else column.dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    words = np.array([*chunks[0].dictionary.to_pylist(), None], dtype=object)
    codes = np.concatenate([as_array(chunk.indices.fill_null(len(words) - 1)) for chunk in chunks])
    columns.check_classes(np.array([word is None or word in MISSING for word in words])[codes])
    return np.asarray(words[codes])
