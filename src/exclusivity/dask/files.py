"""Files as blocks of rows that workers read when they need them, and again when they have lost them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dask import delayed
from exclusivity.dask.scaling import scaled
from exclusivity.io._errors import DataFileError
from exclusivity.io._formats import FilePart, Format, Reading, TableData, first_measured
from exclusivity.problem.arrays import Matrix


@dataclass(frozen=True)
class FileLayout:
    """How all files of a set are read.

    Attributes
    ----------
    format : Format
    reading : Reading
        With the width of all blocks in ``n_features``; None: whatever is found.
    names : tuple of str or None
        The features, in the order that all blocks get.
    """

    format: Format
    reading: Reading
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, format: Format, columns: list[str] | int | None, reading: Reading) -> FileLayout:  # noqa: A002
        """All files as the first one, whose columns these are."""
        if isinstance(columns, list):
            # By name, so that other files may have their columns in another order.
            chosen = [reading.target, *reading.ignore]
            target, *ignored = [columns[name] if isinstance(name, int) else str(name) for name in chosen]
            names = tuple(name for name in columns if name != target and name not in ignored)
            return cls(
                format, replace(reading, target=target, ignore=(*ignored,), n_features=len(names)), names
            )
        if columns is not None:
            places = {
                int(place) % columns for place in (reading.target, *reading.ignore) if place is not None
            }
            reading = replace(reading, n_features=columns - len(places))
        return cls(format, reading)

    def empty(self) -> Matrix:
        """No rows, of the type and the width of all blocks."""
        shape = (0, self.reading.n_features or 0)
        return sparse.csr_matrix(shape) if self.format.is_sparse else np.empty(shape)


def read_part(part: FilePart, layout: FileLayout) -> tuple[Matrix, NDArray[Any]]:
    """The rows and labels of a part, as the worker finds them; or an error that names the file."""
    with worker_sees(part):
        table = layout.format.read_part(part, layout.reading.unlimited(part.path))
    if table is None:
        return layout.empty(), np.empty(0, dtype=np.int64)
    return _ordered(table, part, layout), labels_of(table, part)


@contextmanager
def worker_sees(part: FilePart) -> Iterator[None]:
    """An error that names the file where a worker cannot read it."""
    try:
        yield
    except OSError as error:
        raise DataFileError(
            part.path,
            None,
            None,
            f"a worker cannot read the file ({error.strerror or error}); expected one that every worker sees "
            "under this path.",
        ) from error


def _ordered(table: TableData, part: FilePart, layout: FileLayout) -> Matrix:
    """The features in the order of all blocks."""
    X = table.data
    places = places_of(table.feature_names, X.shape[1], part, layout)
    return X if places is None else X[:, places]


def places_of(
    found: tuple[str, ...] | None, width: int, part: FilePart, layout: FileLayout
) -> list[int] | None:
    """Where the features of all blocks are in a part; None: in the same order."""
    if found != layout.names and found is not None and layout.names is not None:
        places = {name: place for place, name in enumerate(found)}
        missing = [name for name in layout.names if name not in places]
        if missing or len(places) != len(layout.names):
            name = missing[0] if missing else next(name for name in places if name not in layout.names)
            what = "lacks the column" if missing else "has a column more than the first file,"
            cause = f"the file {what} {name!r}; expected the same columns in all files."
            raise DataFileError(part.path, None, None, cause)
        return [places[name] for name in layout.names]
    expected = layout.reading.n_features
    if expected is not None and width != expected:
        cause = f"the file has {width} features; expected {expected}, as in the first file."
        raise DataFileError(part.path, None, None, cause)
    return None


def labels_of(table: TableData, part: FilePart) -> NDArray[Any]:
    """What has been measured is no class."""
    labels = np.asarray(table.labels)
    if labels.dtype.kind == "f":
        cause = f"the target holds {first_measured(labels)}; expected classes: whole numbers, or text."
        raise DataFileError(part.path, None, None, cause)
    return labels


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
    return lazy_arrays([delayed(read_scaled)(part, layout, sent) for part in parts], sizes, layout.empty())


def lazy_arrays(blocks: Sequence[Any], sizes: Sequence[int], meta: Matrix) -> tuple[da.Array, da.Array]:
    """Delayed pairs of rows and labels as arrays; ``meta`` has no rows and the type and the width of all."""
    xs, ys = [], []
    for both, size in zip(blocks, sizes, strict=True):
        xs.append(da.from_delayed(both[0], (size, meta.shape[1]), meta=meta))
        ys.append(da.from_delayed(both[1], (size,), dtype=object))
    return da.concatenate(xs), da.concatenate(ys)


def read_scaled(part: FilePart, layout: FileLayout, scaler: Any) -> tuple[Matrix, NDArray[Any]]:
    """The rows of a part, scaled, and their labels."""
    X, y = read_part(part, layout)
    return scaled(scaler, X), y


def with_width(layout: FileLayout, n_features: int) -> FileLayout:
    """The layout once the width of all files is known."""
    return replace(layout, reading=replace(layout.reading, n_features=n_features))
