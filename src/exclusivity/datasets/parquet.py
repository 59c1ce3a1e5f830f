"""Read Parquet files through pyarrow: typed columns of numbers, looked at before memory is taken."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.csv_fields import (
    Columns,
    FieldError,
    check_ignore,
    check_target,
    columns_of,
    excerpt,
)
from exclusivity.datasets.csv_file import MAX_COLUMNS
from exclusivity.datasets.errors import DataFileError, MissingClassError, NotANumberError, refuse_pipe
from exclusivity.datasets.file_format import FilePart, Format, Reading
from exclusivity.datasets.libsvm import whole_from_one
from exclusivity.datasets.libsvm_lines import DEFAULT_MAX_BYTES
from exclusivity.datasets.notations import GAPS
from exclusivity.datasets.table import TableData

_MAGIC = b"PAR1"
_BATCH_VALUES = 1 << 22
_BATCH_ROWS = 1 << 16
_KINDS = "integers, floating point numbers or booleans"


def read_parquet(
    path: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    ignore: Sequence[str | int] = (),
    row_groups: Sequence[int] | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> TableData:
    """Read a table of numbers from a Parquet file; needs pyarrow (``pip install 'exclusivity[io]'``).

    Features are columns of integers, floating point numbers or booleans (0 and 1), without missing values,
    NaN and infinity. Everything else is an error, never a guess.

    Parameters
    ----------
    path : path
    target : str or int, optional
        The column that holds the target: its name, or its number from 0 (from the end where negative). It may
        hold text. By default all columns are features.
    ignore : sequence of str or int, default ()
        Columns to leave out, named like the target. They may be of any type, and are not read.
    row_groups : sequence of int, optional
        Only these row groups of the file, from 0; by default all.
    max_bytes : int or None, default 4 GiB
        The largest size of the table in memory, and of the data that the file says it holds; None for no
        limit.

    Returns
    -------
    TableData
        ``data``, ``target`` and ``feature_names``.

    Raises
    ------
    DataFileError
        Where the content is wrong, with file, column, row and cause.
    ImportError
        Where pyarrow is not installed.
    OSError
        Where the file cannot be opened.

    Examples
    --------
    >>> from exclusivity.datasets import read_parquet
    >>> table = read_parquet("heart.parquet", target="disease")  # doctest: +SKIP
    >>> table.feature_names[:2]  # doctest: +SKIP
    ('age', 'sex')
    """
    check_target(target)
    check_ignore(ignore)
    if max_bytes is not None:
        max_bytes = whole_from_one("max_bytes", max_bytes)
    arrow, parquet = import_pyarrow()
    try:
        return _ParquetReader(Path(path), target, ignore, row_groups, max_bytes, arrow, parquet).read()
    finally:
        arrow.default_memory_pool().release_unused()  # a hundred megabytes that it would keep for later


def row_group_rows(path: str | os.PathLike[str]) -> list[int] | None:
    """How many rows every row group of a Parquet file has, as the file says; None where it is damaged."""
    arrow, parquet = import_pyarrow()
    refuse_pipe(path)
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            metadata = file.metadata
            return [int(metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups)]
    except (arrow.ArrowException, OSError, ValueError, OverflowError):
        return None


class ParquetFormat(Format):
    """Parquet; a part is a few neighbouring row groups."""

    name, suffixes = "parquet", (".parquet", ".pq")

    def columns(self, source: str, reading: Reading) -> list[str]:
        """What the file calls them."""
        arrow, parquet = import_pyarrow()
        refuse_pipe(source)
        with open(source, "rb"):  # for the system's own words on what cannot be opened
            pass
        try:
            return [str(name) for name in parquet.read_schema(source).names]
        except (arrow.ArrowException, OSError, ValueError):
            return []

    def read(self, source: str, reading: Reading) -> TableData:
        """See ``read_parquet``."""
        return self.read_part(FilePart(source, 0), reading)

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        """See ``Format``: row groups together up to the size of a block."""
        counts = row_group_rows(path)
        if counts is None:
            return super().parts(path, reading, block_bytes)
        size, total = Path(path).stat().st_size, max(1, sum(counts))
        width = 8 * (reading.n_features or 1)
        groups = [(a, b, sum(counts[a:b])) for a, b in _grouped(counts, max(1, block_bytes // width))]
        return [FilePart(path, size * n_rows // total, (a, b), n_rows * width) for a, b, n_rows in groups]

    def read_part(self, part: FilePart, reading: Reading) -> TableData:
        """See ``Format``."""
        return read_parquet(
            part.path,
            target=reading.target,
            ignore=reading.ignore,
            row_groups=None if part.span is None else range(*part.span),
            max_bytes=reading.max_bytes,
        )


def _grouped(counts: list[int], most: int) -> list[tuple[int, int]]:
    """Row groups together as long as they have at most ``most`` rows; those without rows disappear."""
    groups: list[tuple[int, int]] = []
    n_rows = most + 1
    for place, count in enumerate(counts):
        if count == 0:
            continue
        if n_rows + count > most or groups[-1][1] != place:
            groups.append((place, place + 1))
            n_rows = count
        else:
            groups[-1] = (groups[-1][0], place + 1)
            n_rows += count
    return groups


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """The package and its reader of Parquet files, or a message that says how to get it."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            "reading Parquet files needs pyarrow; install it with: pip install 'exclusivity[io]'"
        ) from error


class _ParquetReader:
    """One file, on its way from a name to a table."""

    def __init__(
        self,
        path: Path,
        target: str | int | None,
        ignore: Sequence[str | int],
        row_groups: Sequence[int] | None,
        max_bytes: int | None,
        arrow: ModuleType,
        parquet: ModuleType,
    ) -> None:
        self._path, self._target, self._ignore, self._max_bytes = path, target, ignore, max_bytes
        self._row_groups = row_groups
        self._arrow, self._parquet = arrow, parquet

    def read(self) -> TableData:
        """The table; whatever pyarrow does not like about the file is damage."""
        self._check_magic()
        try:
            return self._read()
        except FieldError as fault:
            self._refuse(fault.cause)
        except DataFileError:
            raise
        except (self._arrow.ArrowException, OSError, ValueError, OverflowError) as error:
            # Names and texts of the file may be part of the message, and of any length.
            reason = " ".join(str(error).split())[:200]
            self._refuse(
                f"the file is damaged, or not a Parquet file that pyarrow can read ({reason}).", error
            )

    def _refuse(self, cause: str, error: Exception | None = None, column: str | None = None) -> NoReturn:
        raise DataFileError(str(self._path), None, column, cause) from error

    def _refuse_value(self, cause: str, column: str) -> NoReturn:
        raise NotANumberError(str(self._path), None, column, cause)

    def _check_magic(self) -> None:
        refuse_pipe(self._path)
        with self._path.open("rb") as stream:
            start = stream.read(len(_MAGIC))
            stream.seek(-min(len(start), len(_MAGIC)), os.SEEK_END)
            end = stream.read()
        if not start:
            self._refuse("the file is empty; expected a Parquet file.")
        if start != _MAGIC or end != _MAGIC:
            found = end if start == _MAGIC else start
            where = "ends" if start == _MAGIC else "starts"
            self._refuse(f"the file {where} with {found!r}; a Parquet file starts and ends with {_MAGIC!r}.")

    def _read(self) -> TableData:
        with self._open([]) as file:
            schema = file.schema_arrow
            n_rows = self._checked_size(file.metadata, len(schema.names))
            columns = self._columns(schema)
            texts = self._texts(schema, columns.target)
        with self._open(texts) as file:
            return self._table(file, columns, n_rows)

    def _open(self, dictionaries: list[str]) -> Any:
        # A text that a file repeats stays one text in memory: as a plain column it may fill all of it.
        return self._parquet.ParquetFile(self._path, read_dictionary=dictionaries, pre_buffer=False)

    def _checked_size(self, metadata: Any, n_columns: int) -> int:
        """How many rows there are to read."""
        chosen = range(metadata.num_row_groups) if self._row_groups is None else self._row_groups
        if any(not 0 <= group < metadata.num_row_groups for group in chosen):
            found = f"the file has {metadata.num_row_groups} row groups"
            self._refuse(f"{found}; expected one for each of {list(chosen)}, counted from 0.")
        groups = [metadata.row_group(group) for group in chosen]
        n_rows = sum(int(group.num_rows) for group in groups)
        if self._row_groups is None:
            n_rows = int(metadata.num_rows)
        if not n_columns or n_rows < 1:
            self._refuse(f"the table has {n_rows} rows and {n_columns} columns; expected something in it.")
        if n_columns > MAX_COLUMNS:
            self._refuse(f"the table has {n_columns} columns; expected at most {MAX_COLUMNS}.")
        size = max(8 * n_rows * n_columns, sum(group.total_byte_size for group in groups))
        if self._max_bytes is not None and size > self._max_bytes:
            self._refuse(
                f"the table of {n_rows} rows and {n_columns} columns takes {size} bytes, more than "
                f"max_bytes={self._max_bytes}; if you trust the file, pass a larger max_bytes, or None for "
                "no limit."
            )
        return n_rows

    def _columns(self, schema: Any) -> Columns:
        names = tuple(schema.names)
        name, times = Counter(names).most_common(1)[0]
        if times > 1:
            self._refuse(f"{times} columns are called {excerpt(name)}; expected different names.")
        columns = columns_of(names, len(names), self._target, self._ignore)
        target = columns.target
        index = _pandas_index(schema)
        for place, kind in enumerate(schema.types):
            if place in columns.ignored:
                continue
            if place != target and names[place] in index:
                cause = "the column is the index of a pandas DataFrame; write the file with index=False."
                self._refuse(cause, column=columns.title(place))
            if not self._is_number(kind) and (place != target or not self._is_text(kind)):
                words = " or text" if place == target else ""
                cause = f"the column is of type {str(kind)[:200]}; expected {_KINDS}{words}."
                if place == target:
                    self._refuse(cause, column=columns.title(place))
                self._refuse_value(cause, columns.title(place))
        return columns

    def _is_number(self, kind: object) -> bool:
        types = self._arrow.types
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def _is_text(self, kind: Any) -> bool:
        types = self._arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        return bool(types.is_string(kind) or types.is_large_string(kind))

    def _texts(self, schema: Any, target: int | None) -> list[str]:
        """The columns to read as texts with numbers that refer to them."""
        return [] if target is None or not self._is_text(schema.types[target]) else [schema.names[target]]

    def _table(self, file: Any, columns: Columns, n_rows: int) -> TableData:
        data = np.empty((n_rows, columns.n_features))
        labels: list[NDArray[Any]] = []
        size = max(1, min(_BATCH_ROWS, _BATCH_VALUES // columns.count))
        read = [place for place in range(columns.count) if place not in columns.ignored]
        names = [file.schema_arrow.names[place] for place in read] if columns.ignored else None
        start = 0
        missing: list[int] = []
        for batch in file.iter_batches(
            batch_size=size, row_groups=self._row_groups, columns=names, use_threads=False
        ):
            rows = data[start : start + batch.num_rows]
            features = iter(rows.T)
            for place, column in zip(read, batch.columns, strict=True):
                if place != columns.target:
                    self._check_missing(column, columns.title(place), start)
                    next(features)[:] = self._numbers(column, columns.title(place), start)
                    continue
                if self._is_text(column.type):
                    column.validate(full=True)  # a damaged page may refer to texts that are not there
                is_missing = missing_entries(column)
                if is_missing.any():
                    missing += (start + 1 + np.flatnonzero(is_missing)).tolist()
                elif self._is_text(column.type):
                    labels.append(_words(column))
                else:
                    labels.append(self._numbers(column, columns.title(place), start))
            start += batch.num_rows
        if start != n_rows:
            self._refuse(f"the file holds {start} rows; expected {n_rows}, as it says itself.")
        if missing and columns.target is not None:
            title = columns.title(columns.target)
            raise MissingClassError(str(self._path), title, missing, len(missing), n_rows, "row")
        return TableData(data, np.concatenate(labels) if labels else None, columns.feature_names)

    def _check_missing(self, column: Any, title: str, start: int) -> None:
        if column.null_count:
            row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
            self._refuse_value(f"the value in row {row} is missing; expected one in every row.", title)

    def _numbers(self, column: Any, title: str, start: int) -> NDArray[np.float64]:
        values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        finite = np.isfinite(values)
        if not finite.all():
            place = int(np.argmin(finite))
            cause = f"the value in row {start + place + 1} is {values[place]}; expected a finite number."
            self._refuse_value(cause, title)
        return values


def missing_entries(column: Any) -> NDArray[np.bool_]:
    """Return which entries of a target are missing values: null, NaN, or a text that stands for one."""
    missing = np.array(column.is_null(nan_is_null=True), dtype=bool)
    start = 0
    for part in getattr(column, "chunks", [column]):
        texts = part.dictionary_encode() if str(part.type) in ("string", "large_string") else part
        if hasattr(texts, "dictionary"):  # equal ones are looked at once
            gaps = [place for place, word in enumerate(texts.dictionary.to_pylist()) if word in GAPS]
            found = np.isin(texts.indices.to_numpy(zero_copy_only=False), gaps)
            missing[start : start + len(part)] |= found
        start += len(part)
    return missing


def _words(column: Any) -> NDArray[Any]:
    """The entries of a column of text; equal ones share their memory."""
    words: NDArray[Any] = np.array(column.dictionary.to_pylist(), dtype=object)
    places: NDArray[np.intp] = np.asarray(column.indices.to_numpy(), dtype=np.intp)
    return words[places]


def _pandas_index(schema: Any) -> set[str]:
    """The columns that pandas wrote for the index of a DataFrame (an index 0, 1, 2, ... needs none)."""
    try:
        columns = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # no JSON, or not what pandas writes
        return set()
    return {name for name in columns if isinstance(name, str)}
