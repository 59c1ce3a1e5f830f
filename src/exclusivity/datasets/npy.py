"""Read tables of numbers from .npy files, or some rows of them: looked at before memory is taken."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.csv_fields import Columns, FieldError, check_ignore, check_target, columns_of
from exclusivity.datasets.csv_file import MAX_COLUMNS
from exclusivity.datasets.errors import DataFileError, MissingClassError, refuse_pipe
from exclusivity.datasets.file_format import FilePart, Format, Reading
from exclusivity.datasets.libsvm import whole_from_one
from exclusivity.datasets.libsvm_lines import DEFAULT_MAX_BYTES
from exclusivity.datasets.table import TableData

_BATCH_VALUES = 1 << 20


def read_npy(
    path: str | os.PathLike[str],
    *,
    target: int | None = None,
    ignore: Sequence[int] = (),
    rows: tuple[int, int] | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> TableData:
    """Read a table of numbers from a .npy file (``numpy.save``), which has one array of two dimensions.

    Numbers are integers, floating point numbers or booleans (0 and 1), without NaN and infinity. Nothing in
    the file is ever run: arrays of Python objects are refused.

    Parameters
    ----------
    path : path
    target : int, optional
        The number of the column that holds the target, from 0 (from the end where negative). By default all
        columns are features.
    ignore : sequence of int, default ()
        Columns to leave out.
    rows : (start, stop), optional
        Only these rows; the others are not read. By default all.
    max_bytes : int or None, default 4 GiB
        The largest size of the table in memory; None for no limit.

    Returns
    -------
    TableData
        ``data`` and ``target``; there are no names.

    Raises
    ------
    DataFileError
        Where the content is wrong, with file, column, row and cause.
    OSError
        Where the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from exclusivity.datasets import read_npy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.npy"
    ...     np.save(path, [[0.5, 2.0, 1.0], [0.25, 3.0, -1.0]])
    ...     table = read_npy(path, target=-1)
    >>> table.target
    array([ 1., -1.])
    """
    check_target(target)
    check_ignore(ignore)
    if max_bytes is not None:
        max_bytes = whole_from_one("max_bytes", max_bytes)
    array = open_npy(path)
    start, stop = (0, len(array)) if rows is None else rows
    if not 0 <= start < stop <= len(array):
        raise ValueError(f"rows must be a part of 0 to {len(array)}; got {rows}.")
    try:
        columns = columns_of(None, array.shape[1], target, ignore)
    except FieldError as fault:
        raise DataFileError(str(path), None, None, fault.cause) from None
    size = 8 * (stop - start) * array.shape[1]
    if max_bytes is not None and size > max_bytes:
        _refuse(
            path,
            f"{stop - start} rows and {array.shape[1]} columns take {size} bytes, more than "
            f"max_bytes={max_bytes}; if you trust the file, pass a larger max_bytes, or None for no limit.",
        )
    return _table(array, columns, start, stop, path)


class NpyFormat(Format):
    """Arrays as ``numpy.save`` writes them; a part is a range of rows."""

    name, suffixes = "npy", (".npy",)

    def columns(self, source: str, reading: Reading) -> int:
        """How many there are."""
        return int(open_npy(source).shape[1])

    def read(self, source: str, reading: Reading) -> TableData:
        """See ``read_npy``."""
        return self.read_part(FilePart(source, 0), reading)

    def parts(self, path: str, reading: Reading, block_bytes: int) -> list[FilePart]:
        """See ``Format``."""
        n_rows, n_columns = open_npy(path).shape
        size = Path(path).stat().st_size
        n_parts = max(1, math.ceil(8 * n_rows * n_columns / block_bytes))
        cuts = [n_rows * number // n_parts for number in range(n_parts + 1)]
        return [
            FilePart(path, size * (b - a) // n_rows, (a, b), 8 * (b - a) * n_columns)
            for a, b in pairwise(cuts)
            if b > a
        ]

    def read_part(self, part: FilePart, reading: Reading) -> TableData:
        """See ``Format``."""
        columns: Any = {"target": reading.target, "ignore": reading.ignore}
        if isinstance(reading.target, str):
            open_npy(part.path)  # a damaged file is the better news
            raise ValueError(
                f"target={reading.target!r}, but a .npy file has no names; give a column's number."
            )
        return read_npy(part.path, rows=part.span, **columns, max_bytes=reading.max_bytes)


def open_npy(path: str | os.PathLike[str]) -> np.memmap[Any, Any]:
    """The array of a file as it lies on disk, after all that can be checked without reading it."""
    refuse_pipe(path)
    with Path(path).open("rb"):  # for the system's own words on what cannot be opened
        pass
    try:
        array: np.memmap[Any, Any] = np.lib.format.open_memmap(os.fspath(path), mode="r")
    except Exception as error:  # NumPy parses the header as Python, and anything may come of that
        reason = " ".join(str(error).split())[:200]
        _refuse(path, f"the file is damaged, or not a .npy file ({reason}).", error)
    if array.dtype.kind not in "biuf":
        kind = str(array.dtype)[:100]
        _refuse(path, f"the array is of type {kind}; expected integers, floating point numbers or booleans.")
    if array.ndim != 2 or not array.size or array.shape[1] > MAX_COLUMNS:
        found = f"the array has the shape {str(array.shape)[:100]}"
        _refuse(path, f"{found}; expected one row or more, and up to {MAX_COLUMNS} columns.")
    n_bytes, size = array.offset + array.nbytes, Path(path).stat().st_size
    if n_bytes != size:
        _refuse(path, f"the file has {size} bytes; expected {n_bytes}, as it says itself.")
    return array


def _refuse(
    path: str | os.PathLike[str], cause: str, error: Exception | None = None, column: str | None = None
) -> NoReturn:
    raise DataFileError(str(path), None, column, cause) from error


def _table(
    array: np.memmap[Any, Any], columns: Columns, start: int, stop: int, path: str | os.PathLike[str]
) -> TableData:
    features = [place for place in range(columns.count) if place not in columns.set_apart]
    data = np.empty((stop - start, len(features)))
    labels: NDArray[np.float64] | None = None if columns.target is None else np.empty(stop - start)
    step = max(1, _BATCH_VALUES // columns.count)
    for first in range(start, stop, step):
        rows = np.asarray(array[first : min(first + step, stop)], dtype=np.float64)
        place = slice(first - start, first - start + len(rows))
        data[place] = rows[:, features]
        _check_finite(data[place], features, first, columns, path)
        if labels is not None:
            labels[place] = rows[:, columns.target]
            given = np.nan_to_num(labels[place, None], nan=0.0, posinf=np.inf, neginf=-np.inf)
            _check_finite(given, [columns.target or 0], first, columns, path)
    missing = [] if labels is None else (start + 1 + np.flatnonzero(np.isnan(labels))).tolist()
    if missing:
        title = columns.title(columns.target or 0)
        raise MissingClassError(str(path), title, missing, len(missing), stop - start, "row")
    return TableData(data, labels, None)


def _check_finite(
    values: NDArray[np.float64],
    places: list[int],
    first: int,
    columns: Columns,
    path: str | os.PathLike[str],
) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.unravel_index(int(np.argmin(finite)), finite.shape)
        cause = f"the value in row {first + row + 1} is {values[row, column]}; expected a finite number."
        _refuse(path, cause, column=columns.title(places[column]))
