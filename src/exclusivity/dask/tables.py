"""Tables of anything in blocks: what columns hold, what an encoder has to know of them, and encoded rows.

Each is a pass over the files. What columns hold is told by their distinct cells, of which blocks hand over so
many that the rules for tables in memory can be asked; statistics add up (``tables.summaries``).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dask import delayed
from exclusivity.dask.files import FileLayout, labels_of, lazy_arrays, places_of, worker_sees
from exclusivity.dask.survey import Survey, classes_of
from exclusivity.io._cells import Expected, Notation, numbers_among, read_cells
from exclusivity.io._errors import DataFileError
from exclusivity.io._formats import FilePart, RawTable, TableData, line_in_file
from exclusivity.problem.arrays import Matrix
from exclusivity.tables import (
    SUMMARIES,
    CellError,
    Column,
    ColumnTable,
    TableEncoder,
    as_dates,
    column_of_arrow,
    kind_of,
    missing,
)

MOST_TEXTS = 1 << 14
"""So many distinct cells of a column of text are looked at to tell what it holds, odd ones first."""

# Numbers as programs write them; zeros in front make a code.
_USUAL = re.compile(rb"[-+]?(?:0|[1-9]\d*)?(?:\.\d*)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What tells the kinds of the columns; it adds up.

    Attributes
    ----------
    columns : tuple of (tuple of bytes, frozenset of str)
        Of every column its distinct cells where it is text, and where it is typed the kinds of its blocks.
    """

    columns: tuple[tuple[tuple[bytes, ...], frozenset[str]], ...]

    def __add__(self, other: Evidence) -> Evidence:
        """The evidence of both."""
        pairs = zip(self.columns, other.columns, strict=True)
        return Evidence(tuple((_few([*a, *b]), kinds | more) for (a, kinds), (b, more) in pairs))

    def widened(self, n_features: int) -> Evidence:
        """Tables have the same columns in all parts."""
        return self


def _few(texts: Iterable[bytes]) -> tuple[bytes, ...]:
    """Distinct texts, not too many of them: those first that are no usual numbers."""
    distinct = dict.fromkeys(texts)
    if len(distinct) <= MOST_TEXTS:
        return tuple(distinct)
    return tuple(sorted(distinct, key=lambda text: _USUAL.fullmatch(text) is not None)[:MOST_TEXTS])


@dataclass(frozen=True)
class ColumnReader:
    """How workers read a column.

    Attributes
    ----------
    title : str
        What the column is called.
    kind : {"number", "category", "date"}
        What it holds.
    notation : Notation
        How its numbers are written, where they are text.
    takes_texts : bool
        Whether a text among numbers is a gap; else it is an error.
    """

    title: str
    kind: str
    notation: Notation
    takes_texts: bool = False

    def read(self, cells: Any) -> tuple[Column, int]:
        """The column, and how many of its texts were taken for gaps; a CellError where one is wrong."""
        if not hasattr(cells, "dtype"):
            return column_of_arrow(cells), 0
        if self.kind != "number":
            words = read_cells(cells, Expected("category")).values
            return (as_dates(words) if self.kind == "date" else words), 0
        values, lost = numbers_among(cells, self.notation)
        if lost.any() and not self.takes_texts:
            row = int(np.argmax(lost))
            text = cells[row].decode(errors="replace")[:40]
            raise CellError(
                f"found {text!r} among numbers; --numeric takes what is no number for gaps, --categorical "
                "takes all for categories",
                row,
            )
        values[lost] = np.nan
        return values, int(lost.sum())


@dataclass(frozen=True, eq=False)
class PartTable:
    """The columns of a part, in the order of all parts.

    Attributes
    ----------
    part : FilePart
    layout : FileLayout
    raw : RawTable
        The part as it stands in the file.
    columns : list
        Its columns.
    """

    part: FilePart
    layout: FileLayout
    raw: RawTable
    columns: list[Any]

    @property
    def labels(self) -> NDArray[Any]:
        """The classes of the rows."""
        return labels_of(TableData(np.empty((0, 0)), self.raw.target, None), self.part)

    def line(self, row: int) -> int | None:
        """Where a row stands in the file; None where it has no lines."""
        return line_in_file(self.part, self.layout.reading, self.raw, row)

    def read(self, readers: Sequence[ColumnReader]) -> list[tuple[Column, int]]:
        """What the readers make of the columns; an error names line and column."""
        found = []
        for reader, cells in zip(readers, self.columns, strict=True):
            try:
                found.append(reader.read(cells))
            except CellError as error:
                line = None if error.row is None else self.line(error.row)
                raise DataFileError(self.part.path, line, repr(reader.title), f"{error}.") from error
        return found


def read_columns(part: FilePart, layout: FileLayout) -> PartTable | None:
    """The columns of a part as they stand in the file; None where it has no rows."""
    with worker_sees(part):
        raw = layout.format.read_part(part, layout.reading.unlimited(part.path), columns=True)
    if raw is None:
        return None
    places = places_of(raw.names, len(raw.columns), part, layout)
    return PartTable(
        part, layout, raw, raw.columns if places is None else [raw.columns[place] for place in places]
    )


def look_at_part(part: FilePart, layout: FileLayout) -> list[Survey]:
    """How many rows a part has, its classes, and what its columns look like."""
    found = read_columns(part, layout)
    width = layout.reading.n_features or 0
    if found is None:
        return [Survey((0,), 0, width, np.empty(0, dtype=np.int64), part.path, None)]
    y = found.labels
    evidence: Any = Evidence(tuple(_evidence(cells) for cells in found.columns))
    return [Survey((len(y),), 0, width, classes_of(y, part), part.path, evidence)]


def places_of_text(
    part: FilePart, layout: FileLayout, column: int, text: bytes
) -> list[list[tuple[str, int | None]]]:
    """File and line of the first cell of a part that is such a text in a column; lists of them add up."""
    found = read_columns(part, layout)
    if found is None or text not in (cells := found.columns[column]):
        return [[]]
    return [[(part.path, found.line(int(np.argmax(cells == text))))]]


def _evidence(cells: Any) -> tuple[tuple[bytes, ...], frozenset[str]]:
    if hasattr(cells, "dtype"):
        return _few(cells.tolist()), frozenset()
    column = column_of_arrow(cells)
    return (), frozenset() if missing(column).all() else frozenset([kind_of(column)])


def summarise_part(part: FilePart, layout: FileLayout, readers: Sequence[ColumnReader]) -> list[Any]:
    """A summary of every column of a part, and behind them how many texts were taken for gaps in each."""
    found = read_columns(part, layout)
    # What decides which values are drawn does not depend on the folder, nor on other parts.
    number = zlib.crc32(f"{Path(part.path).name} {part.span}".encode()) & 0xFFFFFF
    read = [reader.read(_NO_CELLS) for reader in readers] if found is None else found.read(readers)
    summaries = [
        SUMMARIES[reader.kind].of(column, number) for reader, (column, _) in zip(readers, read, strict=True)
    ]
    return [*summaries, np.array([n_lost for _, n_lost in read])]


_NO_CELLS = np.empty(0, dtype="S1")


def table_arrays(
    parts: Sequence[FilePart],
    sizes: Sequence[int],
    layout: FileLayout,
    readers: Sequence[ColumnReader],
    encoder: TableEncoder,
) -> tuple[da.Array, da.Array]:
    """X, encoded wherever it is read, and y as lazy arrays with one block for each part."""
    sent = delayed((tuple(readers), encoder), traverse=False)
    blocks = [delayed(read_encoded)(part, layout, sent) for part in parts]
    return lazy_arrays(blocks, sizes, _no_rows(encoder))


def read_encoded(
    part: FilePart, layout: FileLayout, how: tuple[Sequence[ColumnReader], TableEncoder]
) -> tuple[Matrix, NDArray[Any]]:
    """The rows of a part, encoded, and their labels."""
    readers, encoder = how
    found = read_columns(part, layout)
    if found is None:
        return _no_rows(encoder), np.empty(0, dtype=np.int64)
    rows = encoder.transform(ColumnTable([column for column, _ in found.read(readers)]))
    return (rows if sparse.issparse(rows) else np.asarray(rows)), found.labels


def _no_rows(encoder: TableEncoder) -> Matrix:
    shape = (0, len(encoder.sources_))
    return sparse.csr_matrix(shape) if encoder.sparse_output_ else np.empty(shape)


def kinds_of(evidence: Evidence) -> list[str]:
    """What typed columns hold: what all blocks with values say, and categories where they differ."""
    return [next(iter(kinds)) if len(kinds) == 1 else "category" for _, kinds in evidence.columns]
