"""Files as blocks of rows that workers read when they need them, and again when they have lost them.

What columns hold is found in samples of the files, here; workers read all cells by these rules. A survey, one
pass over all files, gives the number of rows, the classes, and what a scaler or an encoder has to know.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import futures_of
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from dask import delayed
from exclusivity._typing import Floats, Matrix
from exclusivity.dask._engine import Engine
from exclusivity.dask._rows import MAX_CLASSES, tree_sum
from exclusivity.io._cells import ColumnError, ColumnRule, TextColumn
from exclusivity.io._csv import detect_rules, line_of
from exclusivity.io._errors import DataFileError
from exclusivity.io._formats import FilePart, Format
from exclusivity.io._reading import Content, Reading
from exclusivity.io._text import is_packed
from exclusivity.tables import ColumnTable, TableEncoder, column_of_arrow, kind_of
from exclusivity.tables._codes import MOST_VALUES
from exclusivity.tables._columns import CellError, as_dates, as_levels, as_numbers, missing

_SAMPLES, _SAMPLE_BYTES, _PACKED_SAMPLES = 40, 1 << 16, 3
_BATCH_ROWS = 1 << 16
_NOTHING = {"number": np.empty(0), "category": np.empty(0, object), "date": np.empty(0, "M8[us]")}


@dataclass(frozen=True)
class FileLayout:
    """The rules by which all files of a set are read, in the order of the features in all blocks."""

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
    if not found:  # reading all parts raises what is wrong with them
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
    """Return the kinds of typed columns: that of all parts with values, or categories where they differ."""
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


# The survey


@dataclass(frozen=True, eq=False)
class Survey:
    """The facts about some parts; they add up.

    Rows of every part in their order, memory that all rows take, the largest width, the classes and the file
    where the first of them were found; for numbers alone what a scaler has to know (None where nobody asks,
    or there are no rows).
    """

    sizes: tuple[int, ...]
    n_bytes: int
    n_features: int
    labels: NDArray[Any]
    file: str
    sums: ColumnSums | None

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.sizes)

    def __add__(self, other: Survey) -> Survey:
        """Add two surveys."""
        width = max(self.n_features, other.n_features)
        sums = _total([part.sums.widened(width) for part in (self, other) if part.sums is not None])
        known = [part for part in (self, other) if len(part.labels)]
        return Survey(
            self.sizes + other.sizes,
            self.n_bytes + other.n_bytes,
            width,
            _all_labels(self, other) if len(known) == 2 else (known or [self])[0].labels,
            (known or [self])[0].file,
            sums,
        )


def survey_files(
    engine: Engine,
    parts: Sequence[FilePart],
    look: Callable[[FilePart], list[Any]],
    report: Callable[[int], None],
) -> list[Any]:
    """Read all files once, and add up what is found in their parts.

    ``look`` turns a part into a list of summands. ``report`` is called with the number of bytes of a part
    when it has been read, from any thread.
    """
    looks = engine.persist([delayed(look, pure=False)(part) for part in parts])
    for answer, part in zip(looks, parts, strict=True):
        for future in futures_of(answer):  # none without a cluster
            future.add_done_callback(lambda _, n_bytes=part.n_bytes: report(n_bytes))
    found: list[Any] = engine.compute(tree_sum(looks))
    return found


def survey_part(part: FilePart, layout: FileLayout, scale: str | None) -> list[Any]:
    """Return a survey of one part, scaled or (without ``scale``) with a sample of the rows of a table."""
    if scale is None:
        found = layout.read(part)
        y = np.empty(0, dtype=np.int64) if found is None else np.asarray(found.target)
        width = len(layout.titles)
        survey = Survey((len(y),), 0, width, classes_of(y, part), part.path, None)
        return [survey, TableSample.of(part, found, layout)]
    X, y = read_rows(part, layout)
    n_bytes = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    sums = column_sums(X, scale)
    return [Survey((X.shape[0],), n_bytes, X.shape[1], classes_of(y, part), part.path, sums)]


def classes_of(y: NDArray[Any], part: FilePart) -> NDArray[Any]:
    """Return the classes of a part."""
    labels = np.unique(y)
    if len(labels) > MAX_CLASSES:
        cause = f"the target has {len(labels)} different values; expected at most {MAX_CLASSES} classes."
        raise DataFileError(part.path, None, None, cause)
    return labels


def _total(sums: list[Any]) -> Any:
    return reduce(add, sums) if sums else None


def _all_labels(one: Survey, other: Survey) -> NDArray[Any]:
    is_text = [part.labels.dtype.kind not in "iu" for part in (one, other)]
    if is_text[0] != is_text[1]:
        text, numbers = (one, other) if is_text[0] else (other, one)
        raise DataFileError(
            text.file,
            None,
            None,
            f"the labels are text, such as {text.labels[0]!r}, but those of {numbers.file} are numbers, such "
            f"as {numbers.labels[0]}; expected the same kind in all files.",
        )
    return np.unique(np.concatenate([one.labels, other.labels]))


# Scalers


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Number of rows, means, and sums of squared deviations from them: for ``StandardScaler``."""

    n_rows: int
    means: Floats
    scatter: Floats

    @classmethod
    def of(cls, X: Matrix) -> ColumnMoments:
        """Compute the moments of a block, which has rows."""
        scaler = StandardScaler(with_mean=not sparse.issparse(X))
        for start in range(0, X.shape[0], _BATCH_ROWS):  # it would make copies of the whole block
            scaler.partial_fit(X[start : start + _BATCH_ROWS])
        return cls(X.shape[0], scaler.mean_, scaler.var_ * X.shape[0])

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        """Add moments: m = m1 + (n2 / n) d and S = S1 + S2 + (n1 n2 / n) d^2 with d = m2 - m1."""
        n_rows, apart = self.n_rows + other.n_rows, other.means - self.means
        return ColumnMoments(
            n_rows,
            self.means + apart * (other.n_rows / n_rows),
            self.scatter + other.scatter + apart**2 * (self.n_rows * other.n_rows / n_rows),
        )

    def widened(self, n_features: int) -> ColumnMoments:
        """Return the same with more columns, whose entries are all zero."""
        return ColumnMoments(self.n_rows, _padded(self.means, n_features), _padded(self.scatter, n_features))

    def scaler(self, *, is_sparse: bool) -> StandardScaler:
        """Return the fitted scaler; for sparse rows one that keeps zeros."""
        n, variance = self.n_rows, self.scatter / self.n_rows
        # A deviation within the rounding errors of n sums is none: scikit-learn's own rule.
        eps = np.finfo(float).eps
        is_constant = variance <= n * eps * variance + (n * self.means * eps) ** 2
        scaler = StandardScaler(with_mean=not is_sparse)
        scaler.mean_, scaler.var_ = self.means, variance
        scaler.scale_ = np.where(is_constant, 1.0, np.sqrt(variance))
        scaler.n_samples_seen_, scaler.n_features_in_ = np.int64(n), len(self.means)
        return scaler


@dataclass(frozen=True, eq=False)
class ColumnRanges:
    """Number of rows, lowest and highest entries: for ``MinMaxScaler`` and ``MaxAbsScaler``."""

    n_rows: int
    low: Floats
    high: Floats

    @classmethod
    def of(cls, X: Matrix) -> ColumnRanges:
        """Compute the ranges of a block, which has rows."""
        if not sparse.issparse(X):
            return cls(X.shape[0], X.min(axis=0), X.max(axis=0))
        return cls(X.shape[0], X.min(axis=0).toarray()[0], X.max(axis=0).toarray()[0])

    def __add__(self, other: ColumnRanges) -> ColumnRanges:
        """Join two ranges."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return ColumnRanges(self.n_rows + other.n_rows, low, high)

    def widened(self, n_features: int) -> ColumnRanges:
        """Return the same with more columns, whose entries are all zero."""
        return ColumnRanges(self.n_rows, _padded(self.low, n_features), _padded(self.high, n_features))

    def scaler(self, *, is_sparse: bool) -> BaseEstimator:
        """Return the fitted scaler; for sparse rows one that keeps zeros."""
        # Two rows with the same extremes teach a scaler the same.
        scaler = MaxAbsScaler() if is_sparse else MinMaxScaler((-1, 1))
        scaler.fit(np.stack([self.low, self.high]))
        scaler.n_samples_seen_ = self.n_rows
        return scaler


ColumnSums = ColumnMoments | ColumnRanges


def column_sums(X: Matrix, scale: str) -> ColumnSums | None:
    """Return what the scaler of that name (standard, minmax, none) has to know; None without rows."""
    if scale == "none" or X.shape[0] == 0:
        return None
    return ColumnMoments.of(X) if scale == "standard" else ColumnRanges.of(X)


def scaled(scaler: BaseEstimator, X: Matrix) -> Matrix:
    """Return the rows as the scaler makes them, in their own memory."""
    if scaler is None or X.shape[0] == 0:
        return X
    in_place = copy(scaler).set_params(copy=False)
    if sparse.issparse(X):
        return in_place.transform(X)
    for start in range(0, X.shape[0], _BATCH_ROWS):
        X[start : start + _BATCH_ROWS] = in_place.transform(X[start : start + _BATCH_ROWS])
    return X


def _padded(values: NDArray[Any], n_features: int) -> NDArray[Any]:
    return np.append(values, np.zeros(n_features - len(values)))
