"""Read a table whatever its format, which the name of the file gives away."""

from __future__ import annotations

import os
from pathlib import Path

from exclusivity.datasets.csv_file import CsvFormat, TsvFormat
from exclusivity.datasets.file_format import Reading
from exclusivity.datasets.formats import add_format, format_named, format_of
from exclusivity.datasets.libsvm import LibsvmFormat
from exclusivity.datasets.npy import NpyFormat
from exclusivity.datasets.parquet import ParquetFormat
from exclusivity.datasets.table import TableData

for _format in (LibsvmFormat(), CsvFormat(), TsvFormat(), ParquetFormat(), NpyFormat()):
    add_format(_format)


def read_table(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 -- what users call it, as in other readers
    target: str | int | None = None,
) -> TableData:
    r"""Read a table from a LIBSVM, CSV, Parquet or .npy file, or one of a format that was added.

    Parameters
    ----------
    path : path
        Text files may be compressed, their names then end in ``.gz`` or ``.bz2``.
    format : {"libsvm", "csv", "tsv", "parquet", "npy"}, or a name given to ``register_format``, optional
        By default what the name says: ``.csv``, ``.tsv``, ``.parquet`` (``.pq``), ``.npy``, and LIBSVM for
        ``.svm``, ``.libsvm``, ``.svmlight``, ``.txt``, names without a dot, and the endings that the LIBSVM
        site uses.
    target : str or int, optional
        The column that holds the target: its name, or its number. A LIBSVM file has its target in front of
        every row, so that there is nothing to choose.

    Returns
    -------
    TableData
        ``data`` (sparse for LIBSVM files), ``target`` and ``feature_names``.

    See Also
    --------
    read_libsvm, read_csv, read_parquet, read_npy : The readers behind this one, with all their settings.

    Examples
    --------
    >>> import tempfile
    >>> from exclusivity.datasets import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.tsv"
    ...     _ = path.write_text("age\tmass\tstate\n61\t80.5\till\n18\t60\twell\n")
    ...     read_table(path, target="state").target
    array(['ill', 'well'], dtype=object)
    """
    chosen = format_of(Path(path)) if format is None else format_named(format)
    return chosen.read(os.fspath(path), Reading(target))
