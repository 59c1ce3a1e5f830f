"""Read a table whatever its format, which the name of the file gives away."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exclusivity.datasets.csv_file import plain_suffix, read_csv
from exclusivity.datasets.libsvm import read_libsvm
from exclusivity.datasets.libsvm_lines import is_packed
from exclusivity.datasets.npy import read_npy
from exclusivity.datasets.parquet import read_parquet
from exclusivity.datasets.table import TableData

FORMATS = ("libsvm", "csv", "tsv", "parquet", "npy")

# The LIBSVM site's names end in what the sets are for, or in what was done to them (german.numer_scale).
_LIBSVM = ("", ".svm", ".libsvm", ".svmlight", ".txt", ".t", ".tr", ".val", ".train", ".test")
_LIBSVM_SCALED = (".scale", ".numer", ".numer_scale")
_ENDINGS = {
    **dict.fromkeys(_LIBSVM + _LIBSVM_SCALED, "libsvm"),
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
}


def read_table(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 -- what users call it, as in other readers
    target: str | int | None = None,
) -> TableData:
    r"""Read a table from a LIBSVM, CSV, Parquet or .npy file.

    Parameters
    ----------
    path : path
        Text files may be compressed, their names then end in ``.gz`` or ``.bz2``.
    format : {"libsvm", "csv", "tsv", "parquet", "npy"}, optional
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
    path = Path(path)
    chosen = format_of(path) if format is None else format
    if chosen not in FORMATS:
        raise ValueError(f"format must be one of {FORMATS}, or None; got {format!r}.")
    if chosen == "parquet":
        return read_parquet(path, target=target)
    if chosen == "npy":
        if isinstance(target, str):
            raise ValueError(f"target={target!r}, but a .npy file has no names; give a column's number.")
        return read_npy(path, target=target)
    if chosen == "libsvm" and target is not None:
        raise ValueError(
            f"target={target!r}, but {path.name} is read as a LIBSVM file, which has its target in front of "
            "every row; leave target out, or say what the file is with format."
        )
    return read_text(path, chosen, target=target, delimiter="\t" if chosen == "tsv" else ",")


def read_text(
    source: Any,
    format: str,  # noqa: A002 -- as above
    *,
    target: str | int | None = None,
    ignore: Sequence[str | int] = (),
    delimiter: str = ",",
    header: bool = True,
    n_features: int | None = None,
    **limits: Any,
) -> TableData:
    """Read LIBSVM, or text with a delimiter, from a path or a stream.

    ``n_features`` is for LIBSVM and the other settings are for the rest; ``limits`` go to either reader.
    """
    if format == "libsvm":
        found = read_libsvm(source, n_features=n_features, **limits)
        return TableData(found.data, found.target, None)
    return read_csv(source, target=target, ignore=ignore, delimiter=delimiter, header=header, **limits)


def format_of(path: Path) -> str:
    """The format that the name of a file gives away.

    Examples
    --------
    >>> format_of(Path("heart.csv.gz")), format_of(Path("heart_scale"))
    ('csv', 'libsvm')
    """
    chosen = _ENDINGS.get(plain_suffix(path))
    if chosen is None or (chosen in ("parquet", "npy") and is_packed(path)):
        known = ", ".join(ending for ending in _ENDINGS if ending)
        raise ValueError(
            f"the name {path.name!r} does not say what the file is: it ends in none of {known} (for text "
            f"also with .gz or .bz2 behind that); pass format, one of {FORMATS}."
        )
    return chosen
