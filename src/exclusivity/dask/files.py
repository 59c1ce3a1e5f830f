"""Files as blocks of rows that workers read when they need them, and again when they have lost them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dask import delayed
from exclusivity.dask.scaling import scaled
from exclusivity.datasets import DataFileError, TableData, read_npy, read_parquet
from exclusivity.datasets.libsvm_lines import is_packed
from exclusivity.datasets.npy import open_npy
from exclusivity.datasets.parquet import row_group_rows
from exclusivity.datasets.read_any import read_text
from exclusivity.datasets.text_span import TextSpan, text_spans
from exclusivity.problem.arrays import Matrix

_EXACT = 2**53


@dataclass(frozen=True)
class FileLayout:
    """How all files of a set are read.

    Attributes
    ----------
    kind : {"libsvm", "csv", "tsv", "parquet", "npy"}
    delimiter : str
        Between the fields of text.
    header : bool
        Whether text has a line with names.
    target : str or int or None
        The column of the labels; None for LIBSVM.
    ignore : tuple of str or int
        Columns to leave out.
    names : tuple of str or None
        The features, in the order that all blocks get.
    n_features : int or None
        The width of all blocks; None: whatever is found.
    """

    kind: str
    delimiter: str = ","
    header: bool = True
    target: str | int | None = None
    ignore: tuple[Any, ...] = ()
    names: tuple[str, ...] | None = None
    n_features: int | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are sparse matrices."""
        return self.kind == "libsvm"


@dataclass(frozen=True)
class FilePart:
    """What becomes one block: a file, or a span of its bytes (text), rows (.npy) or row groups (Parquet).

    ``n_bytes`` is about what has to be read, ``memory`` what its numbers take (0 where only reading tells).
    """

    path: str
    n_bytes: int
    span: tuple[int, int] | None = None
    memory: int = 0


def file_parts(path: str, layout: FileLayout, block_bytes: int) -> list[FilePart]:
    """One file in parts that take about ``block_bytes`` of memory, or a little more.

    What cannot be cut is one part: compressed text, and a row group. A damaged file is one too; whoever reads
    it says what is wrong with it.
    """
    size = Path(path).stat().st_size
    if layout.kind == "npy":
        n_rows, n_columns = open_npy(path).shape
        n_parts = max(1, math.ceil(8 * n_rows * n_columns / block_bytes))
        cuts = [n_rows * number // n_parts for number in range(n_parts + 1)]
        return [
            FilePart(path, size * (b - a) // n_rows, (a, b), 8 * (b - a) * n_columns)
            for a, b in pairwise(cuts)
            if b > a
        ]
    if layout.kind == "parquet":
        return _parquet_parts(path, size, layout, block_bytes)
    # Numbers of few digits grow when they are read.
    spans = [] if is_packed(Path(path)) else text_spans(path, max(1, block_bytes // 2))
    if len(spans) < 2:
        return [FilePart(path, size)]
    return [FilePart(path, b - a, (a, b)) for a, b in spans]


def _parquet_parts(path: str, size: int, layout: FileLayout, block_bytes: int) -> list[FilePart]:
    counts = row_group_rows(path)
    if counts is None:
        return [FilePart(path, size)]
    width = 8 * (1 if layout.names is None else len(layout.names))
    total = max(1, sum(counts))
    parts = []
    for a, b in _grouped(counts, max(1, block_bytes // width)):
        n_rows = sum(counts[a:b])
        parts.append(FilePart(path, size * n_rows // total, (a, b), n_rows * width))
    return parts


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


def read_part(part: FilePart, layout: FileLayout) -> tuple[Matrix, NDArray[Any]]:
    """The rows and labels of a part, as the worker finds them; or an error that names the file."""
    try:
        table = _table(part, layout)
    except OSError as error:
        raise DataFileError(
            part.path,
            None,
            None,
            f"a worker cannot read the file ({error.strerror or error}); expected one that every worker sees "
            "under this path.",
        ) from error
    if table is None:
        width = layout.n_features or 0
        empty = sparse.csr_matrix((0, width)) if layout.is_sparse else np.empty((0, width))
        return empty, np.empty(0, dtype=np.int64)
    return _ordered(table, part, layout), _labels(table.target, part)


def _table(part: FilePart, layout: FileLayout) -> TableData | None:
    """What the readers say; None for a span of text in which no line begins."""
    # Text that is not compressed is no larger than its file: nothing to be wary of.
    columns: dict[str, Any] = {"target": layout.target, "ignore": layout.ignore, "max_bytes": None}
    if layout.kind == "parquet":
        groups = None if part.span is None else range(*part.span)
        return read_parquet(part.path, row_groups=groups, **columns)
    if layout.kind == "npy":
        return read_npy(part.path, rows=part.span, **columns)
    if part.span is None:
        return _text(part.path, layout, {} if is_packed(Path(part.path)) else {"max_bytes": None})
    has_header = layout.header and not layout.is_sparse
    with TextSpan(part.path, *part.span, header=has_header) as span:
        if span.is_empty:
            return None
        try:
            return _text(span, layout, {"max_bytes": None})
        except DataFileError as error:
            if error.line is None:
                raise
            line = error.line + span.lines_before()
            raise DataFileError(error.file, line, error.column, error.cause) from None


def _text(source: Any, layout: FileLayout, limits: dict[str, Any]) -> TableData:
    return read_text(
        source,
        layout.kind,
        target=layout.target,
        ignore=layout.ignore,
        delimiter=layout.delimiter,
        header=layout.header,
        n_features=layout.n_features,
        **limits,
    )


def _ordered(table: TableData, part: FilePart, layout: FileLayout) -> Matrix:
    """The features in the order of all blocks."""
    X = table.data
    if table.feature_names != layout.names and table.feature_names is not None and layout.names is not None:
        places = {name: place for place, name in enumerate(table.feature_names)}
        missing = [name for name in layout.names if name not in places]
        if missing or len(places) != len(layout.names):
            name = missing[0] if missing else next(name for name in places if name not in layout.names)
            what = "lacks the column" if missing else "has a column more than the first file,"
            cause = f"the file {what} {name!r}; expected the same columns in all files."
            raise DataFileError(part.path, None, None, cause)
        return X[:, [places[name] for name in layout.names]]
    if layout.n_features is not None and X.shape[1] != layout.n_features:
        cause = f"the file has {X.shape[1]} features; expected {layout.n_features}, as in the first file."
        raise DataFileError(part.path, None, None, cause)
    return X


def _labels(target: Any, part: FilePart) -> NDArray[Any]:
    """Whole numbers as such, text as it is; what has been measured is no class."""
    if target.dtype.kind != "f":
        return np.asarray(target)
    is_class = (target == np.rint(target)) & (np.abs(target) < _EXACT)
    if not is_class.all():
        value = target[int(np.argmin(is_class))]
        cause = f"the target holds {value}; expected classes: whole numbers, or text."
        raise DataFileError(part.path, None, None, cause)
    return np.asarray(target.astype(np.int64))


def file_arrays(
    parts: Sequence[FilePart], sizes: Sequence[int], layout: FileLayout, scaler: Any
) -> tuple[da.Array, da.Array]:
    """X and y as lazy arrays with one block for each part.

    Parameters
    ----------
    parts : sequence of FilePart
    sizes : sequence of int
        Their numbers of rows.
    layout : FileLayout
        With ``n_features``.
    scaler : fitted scaler or None
        Applied to the rows wherever they are read.
    """
    sent = delayed(scaler, traverse=False)
    width = layout.n_features or 0
    meta = sparse.csr_matrix((0, width)) if layout.is_sparse else np.empty((0, width))
    xs, ys = [], []
    for part, size in zip(parts, sizes, strict=True):
        both = delayed(read_scaled)(part, layout, sent)
        xs.append(da.from_delayed(both[0], (size, width), meta=meta))
        ys.append(da.from_delayed(both[1], (size,), dtype=object))
    return da.concatenate(xs), da.concatenate(ys)


def read_scaled(part: FilePart, layout: FileLayout, scaler: Any) -> tuple[Matrix, NDArray[Any]]:
    """The rows of a part, scaled, and their labels."""
    X, y = read_part(part, layout)
    return scaled(scaler, X), y


def with_width(layout: FileLayout, n_features: int) -> FileLayout:
    """The layout once the width of all files is known."""
    return dataclasses.replace(layout, n_features=n_features)
