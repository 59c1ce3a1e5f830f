"""Read LIBSVM files: strictly, with bounded memory, and with errors that say where and why."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.errors import LibsvmError
from exclusivity.datasets.file_format import Reading, TextFormat
from exclusivity.datasets.libsvm_lines import (
    DEFAULT_MAX_BYTES,
    LIBSVM_ROW,
    LineBlocks,
    Readable,
    opened_lines,
    title_of,
)
from exclusivity.datasets.libsvm_rows import MAX_INDEX, RowParser, Rows
from exclusivity.datasets.table import TableData

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, eq=False)
class LibsvmData:
    """What a LIBSVM file holds.

    Attributes
    ----------
    data : scipy.sparse.csr_matrix of shape (n_rows, n_features), float64
        Index 1 of the file is column 0. Zeros that the file spells out stay explicit. The index
        arrays are int32 where that is wide enough, and int64 otherwise.
    target : ndarray of shape (n_rows,), float64
        The labels.
    query_ids : ndarray of shape (n_rows,), int64, or None
        The numbers after ``qid:`` where the file has them.
    """

    data: sparse.csr_matrix
    target: NDArray[np.float64]
    query_ids: NDArray[np.int64] | None


def read_libsvm(
    source: str | os.PathLike[str] | Readable,
    *,
    n_features: int | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> LibsvmData:
    r"""Read a LIBSVM (svmlight) file.

    Each line is ``label [qid:n] index:value ... [# comment]`` with indices that start at 1 and increase;
    blank lines and lines with only a comment are skipped. Numbers are finite decimal numbers, all rows
    have a ``qid`` or none has. Everything else is an error, never a guess.

    Parameters
    ----------
    source : path or open binary file
        A path ending in ``.gz`` or ``.bz2`` is decompressed. An open file is read as it is, from where
        it stands to its end, and left open.
    n_features : int, optional
        The number of columns; by default the largest index. Give it to read test data that
        must fit training data. A larger index in the file is an error.
    max_bytes : int or None, default 4 GiB
        The largest size of the decompressed text, a guard against small files that unpack to
        enormous ones; None for no limit. A compressed file may also not unpack to more than 100 times its
        size (or 16 MiB), unless this is None. Reading takes about twice the size of the text in memory, and
        at most twelve times (rows of a label only).

    Returns
    -------
    LibsvmData
        ``data``, ``target`` and ``query_ids``.

    Raises
    ------
    LibsvmError
        Where the content is wrong, with file, line number and cause. Lines longer than 64 MiB are refused.
    OSError
        Where the file cannot be opened or read.

    Examples
    --------
    >>> import io
    >>> from exclusivity.datasets import read_libsvm
    >>> heart = read_libsvm(io.BytesIO(b"+1 1:0.5 3:2\n-1 2:1  # a healthy one\n"))
    >>> heart.target
    array([ 1., -1.])
    >>> heart.data.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> read_libsvm(io.BytesIO(b"+1 1:0.5\n-1 2:nan\n"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    exclusivity.datasets.errors.LibsvmError: <stream>, line 2: the value of index 2 is 'nan'; ...
    """
    if n_features is not None:
        n_features = whole_from_one("n_features", n_features, MAX_INDEX)
    if max_bytes is not None:
        max_bytes = whole_from_one("max_bytes", max_bytes)
    with opened_lines(source, max_bytes, LibsvmError, LIBSVM_ROW) as blocks:
        return _read(blocks, n_features)


def _read(blocks: LineBlocks, n_features: int | None) -> LibsvmData:
    parser = RowParser(blocks.name, n_features)
    for first, lines in blocks:
        parser.add_block(first, lines)
    if not len(parser.rows):
        raise LibsvmError(
            blocks.name, blocks.line, f"the file ends without a single row; expected {LIBSVM_ROW}."
        )
    return _as_data(parser.rows, n_features)


def _as_data(rows: Rows, n_features: int | None) -> LibsvmData:
    from scipy import sparse  # noqa: PLC0415 -- `erm fit --help` lists formats, and should not wait for it

    # The arrays below share memory with rows, apart from narrower indices.
    indices = np.asarray(rows.indices)
    if n_features is None:
        n_features = int(indices.max(initial=0))
    widest = max(n_features, len(indices), len(rows))
    kind = np.int32 if widest <= np.iinfo(np.int32).max else np.int64
    indices -= 1
    data = sparse.csr_matrix(
        (
            np.asarray(rows.values),
            indices.astype(kind, copy=False),
            np.asarray(rows.ends).astype(kind, copy=False),
        ),
        shape=(len(rows), n_features),
    )
    data.has_canonical_format = True  # each row is sorted and free of duplicates: no need to look again
    query_ids = np.asarray(rows.query_ids) if rows.query_ids else None
    return LibsvmData(data, np.asarray(rows.labels), query_ids)


class LibsvmFormat(TextFormat):
    """The files of the LIBSVM site, whose names end in what sets are for, or in what was done to them."""

    name = "libsvm"
    suffixes = (
        *("", ".svm", ".libsvm", ".svmlight", ".txt", ".t", ".tr", ".val", ".train", ".test"),
        *(".scale", ".numer", ".numer_scale"),
    )
    is_sparse = True
    row = LIBSVM_ROW

    def columns(self, source: str | Readable, reading: Reading) -> None:
        """None: features have numbers."""

    def read(self, source: str | Readable, reading: Reading) -> TableData:
        """See ``read_libsvm``."""
        if reading.target is not None:
            raise ValueError(
                f"target={reading.target!r}, but {Path(title_of(source)).name} is read as a LIBSVM file, "
                "which has its target in front of every row; leave target out, or say what the file is with "
                "format."
            )
        found = read_libsvm(source, n_features=reading.n_features, max_bytes=reading.max_bytes)
        return TableData(found.data, found.target, None)


def whole_from_one(name: str, value: int, largest: int | None = None) -> int:
    """The value of a setting that must be a whole number from 1, up to ``largest`` where that is given."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or (largest is not None and number > largest):
        bound = "" if largest is None else f" up to {largest}"
        raise ValueError(f"{name} must be a whole number from 1{bound}, or None; got {value!r}.")
    return number
