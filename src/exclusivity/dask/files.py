"""Files as blocks of rows that workers read when they need them, and again when they have lost them.

What columns hold is found in samples of the files, here; workers read all cells by these rules.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dask import delayed
from exclusivity.dask.scaling import scaled
from exclusivity.io._cells import ColumnError, ColumnRule, TextColumn
from exclusivity.io._errors import DataFileError
from exclusivity.io._formats import Content, FilePart, Format, Reading, detect_rules, line_of
from exclusivity.io._text import is_packed
from exclusivity.problem.arrays import Matrix
from exclusivity.tables import ColumnTable, TableEncoder, column_of_arrow, kind_of
from exclusivity.tables._codes import MOST_VALUES
from exclusivity.tables._columns import CellError, as_dates, as_levels, as_numbers, missing

_SAMPLES, _SAMPLE_BYTES, _PACKED_SAMPLES = 40, 1 << 16, 3
_NOTHING = {"number": np.empty(0), "category": np.empty(0, object), "date": np.empty(0, "M8[us]")}


@dataclass(frozen=True)
class FileLayout:
    """How all files of a set are read: by the rules of the features, in the order that all blocks get."""

    format: Format
    reading: Reading

    @classmethod
    def of(cls, format: Format, columns: list[str] | int | None, reading: Reading) -> FileLayout:  # noqa: A002
        """Return the layout of files with these columns, numbers alone."""
        if columns is None:
            return cls(format, reading)
        named: Sequence[str | int] = columns if isinstance(columns, list) else range(columns)
        # By name, so that other files may have their columns in another order.
        target, *ignored = (
            named[place] if isinstance(place, int) else place for place in (reading.target, *reading.ignore)
        )
        features = [name for name in named if name != target and name not in ignored]
        rules = dict.fromkeys(features, ColumnRule("number", ".", required=True))
        settings = replace(
            reading,
            target=target,
            ignore=tuple(map(str, ignored)) if isinstance(columns, list) else reading.ignore,
            n_features=len(rules),
            rules=rules,
        )
        return cls(format, settings)

    @property
    def titles(self) -> list[Any]:
        """The features as users call them; none in a LIBSVM file."""
        return list(self.reading.rules or ())

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, where files have them."""
        return tuple(self.titles) if self.titles and isinstance(self.titles[0], str) else None

    def with_rules(self, rules: Sequence[ColumnRule]) -> FileLayout:
        """Return the same with rules that were found in training rows."""
        found = dict(zip(self.titles, rules, strict=True))
        return replace(self, reading=replace(self.reading, rules=found, mixed=True, decimal="", kinds={}))

    def with_width(self, n_features: int) -> FileLayout:
        """Return the same once the width of all files is known."""
        return replace(self, reading=replace(self.reading, n_features=n_features))

    def empty(self) -> Matrix:
        """Return no rows, of the type and the width of all blocks of numbers."""
        shape = (0, self.reading.n_features or 0)
        return sparse.csr_matrix(shape) if self.format.is_sparse else np.empty(shape)

    def read(self, part: FilePart, *, counts_lines: bool = False) -> Content | None:
        """Read a part as the worker finds it, or raise an error that names the file; None without rows."""
        reading, cause = self.reading.unlimited(part.path), ""
        try:
            found: Content | None = self.format.read_part(part, reading, counts_lines=counts_lines)
        except OSError as error:
            cause = f"a worker cannot read the file ({error.strerror or error}); expected one that every "
            raise DataFileError(part.path, None, None, f"{cause}worker sees under this path.") from error
        target = None if found is None else found.target
        if found is not None and found.left_out:
            cause = f"the file has a column more than the first file, {found.left_out[0]!r}; expected the "
            cause += "same columns in all files."
        elif target is not None and target.dtype.kind == "f":
            first = target[np.argmax(target != np.rint(target))]
            cause = f"the target holds {first}; expected classes: whole numbers, or text."
        if cause:
            raise DataFileError(part.path, None, None, cause)
        return found


def read_rows(part: FilePart, layout: FileLayout, transformer: Any = None) -> tuple[Matrix, NDArray[Any]]:
    """Return the rows of a part, scaled or encoded, and their labels."""
    found = layout.read(part)
    is_table = isinstance(transformer, TableEncoder)
    if found is None:
        return (_no_rows(transformer) if is_table else layout.empty()), np.empty(0, dtype=np.int64)
    if not is_table:
        return scaled(transformer, found.data), np.asarray(found.target)
    rows = transformer.transform(ColumnTable(_columns(found)))
    return (rows if sparse.issparse(rows) else np.asarray(rows)), np.asarray(found.target)


def _columns(found: Content) -> list[Any]:
    return [each if hasattr(each, "dtype") else column_of_arrow(each) for each in found.data]


def _no_rows(encoder: TableEncoder) -> Matrix:
    shape = (0, len(encoder.sources_))
    return sparse.csr_matrix(shape) if encoder.sparse_output_ else np.empty(shape)


def file_arrays(
    parts: Sequence[FilePart], sizes: Sequence[int], layout: FileLayout, transformer: Any
) -> tuple[da.Array, da.Array]:
    """Return X and y as lazy arrays with one block for each part, scaled or encoded wherever it is read."""
    sent = delayed(transformer, traverse=False)
    meta = _no_rows(transformer) if isinstance(transformer, TableEncoder) else layout.empty()
    xs, ys = [], []
    for part, size in zip(parts, sizes, strict=True):
        both = delayed(read_rows)(part, layout, sent)
        xs.append(da.from_delayed(both[0], (size, meta.shape[1]), meta=meta))
        ys.append(da.from_delayed(both[1], (size,), dtype=object))
    return da.concatenate(xs), da.concatenate(ys)


def find_rules(parts: Sequence[FilePart], layout: FileLayout) -> tuple[list[ColumnRule], list[str]]:
    """Find the rules of columns, and what is peculiar about them, in samples of files."""
    as_text = layout.with_rules([ColumnRule("category")] * len(layout.titles))
    taken = [parts[place] for place in sorted({len(parts) * n // _SAMPLES for n in range(_SAMPLES)})]
    if not layout.format.is_text:
        return [
            ColumnRule(kind) for kind in _typed_kinds([_first_group(part) for part in taken], as_text)
        ], []
    if is_packed(taken[0].path):  # of which no part can be read alone
        taken = taken[:_PACKED_SAMPLES]
    samples = [as_text.read(_first_lines(part)) for part in taken]
    found = [each for each in samples if each is not None]
    if not found:  # who reads all parts says what is wrong with them
        return list((layout.reading.rules or {}).values()), []
    columns = {
        name: TextColumn.of([each.data[place].cast("string").fill_null("") for each in found])
        for place, name in enumerate(layout.titles)
    }
    reading = replace(layout.reading, rules=None)
    try:
        return detect_rules(columns, reading, reading.delimiter or layout.format.delimiter)
    except ColumnError as error:
        raise _located(error, parts, as_text) from None


def _first_lines(part: FilePart) -> FilePart:
    if part.span is None and (part.n_bytes <= _SAMPLE_BYTES or is_packed(part.path)):
        return part
    start = 0 if part.span is None else part.span[0]
    return replace(part, span=(start, start + min(part.n_bytes, _SAMPLE_BYTES)))


def _first_group(part: FilePart) -> FilePart:
    return part if part.span is None else replace(part, span=(part.span[0], part.span[0] + 1))


def _typed_kinds(parts: Sequence[FilePart], layout: FileLayout) -> list[str]:
    """Return what typed columns hold: what all parts with values say, and categories where they differ."""
    kinds: list[set[str]] = [set() for _ in layout.titles]
    for part in parts:
        found = layout.read(part)
        for known, column in zip(kinds, _columns(found) if found else (), strict=False):
            known.update([] if missing(column).all() else [kind_of(column)])
    return [next(iter(known)) if len(known) == 1 else "category" for known in kinds]


def _located(error: ColumnError, parts: Sequence[FilePart], layout: FileLayout) -> DataFileError:
    """Return the error about a column with file and line of the first cell that has its text."""
    place, line = layout.titles.index(error.column), None
    for part in parts:
        found = layout.read(part)
        row = -1 if found is None else found.data[place].cast("string").index(error.text).as_py()
        if row >= 0:
            again = layout.read(part, counts_lines=True)
            line = None if again is None else line_of(again.lines, row)
            break
    return DataFileError(part.path, line, error.column, error.cause, error.ways)


@dataclass(frozen=True, eq=False)
class TableSample:
    """Rows of some parts of a table, those of the smallest random keys; it adds up.

    Up to ``MOST_VALUES`` rows all of them, in their order. ``n_lost`` and ``n_missing`` are counts of all
    rows, by column: texts taken for missing values, and missing values.
    """

    keys: NDArray[np.int64]
    columns: list[NDArray[Any]]
    n_lost: NDArray[np.int64]
    n_missing: NDArray[np.int64]

    @classmethod
    def of(cls, part: FilePart, found: Content | None, layout: FileLayout) -> TableSample:
        """Draw from one part."""
        kinds = [rule.kind for rule in (layout.reading.rules or {}).values()]
        raw = [_NOTHING[kind] for kind in kinds] if found is None else _columns(found)
        columns = []
        for title, kind, column in zip(layout.titles, kinds, raw, strict=True):
            try:
                columns.append(_cells(kind, column))
            except CellError as error:
                raise DataFileError(part.path, None, title, f"{error}.", ("categorical",)) from error
        # Which rows are drawn does not depend on the folder, nor on other parts.
        rng = np.random.default_rng(zlib.crc32(f"{Path(part.path).name} {part.span}".encode()))
        n_lost = np.array(found.n_lost if found and found.n_lost else [0] * len(kinds))
        n_missing = np.array([missing(column).sum() for column in columns])
        return cls(rng.integers(1 << 62, size=len(raw[0])), columns, n_lost, n_missing)._cut()

    def __add__(self, other: TableSample) -> TableSample:
        """Return a sample of both."""
        columns = [np.concatenate(pair) for pair in zip(self.columns, other.columns, strict=True)]
        keys, n_lost = np.concatenate([self.keys, other.keys]), self.n_lost + other.n_lost
        return TableSample(keys, columns, n_lost, self.n_missing + other.n_missing)._cut()

    def _cut(self) -> TableSample:
        if len(self.keys) <= MOST_VALUES:
            return self
        kept = np.sort(np.argpartition(self.keys, MOST_VALUES)[:MOST_VALUES])
        return replace(self, keys=self.keys[kept], columns=[column[kept] for column in self.columns])


def _cells(kind: str, column: Any) -> NDArray[Any]:
    """Return a column as numbers, as dates or as texts of categories."""
    if kind != "category":
        return as_numbers(column) if kind == "number" else as_dates(column)
    codes, levels = as_levels(column)
    return np.array([*levels, None], dtype=object)[codes]
