"""Read data files: what to take, what comes of it, and errors that name file, line and column."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from exclusivity.io._cells import ColumnRule

DEFAULT_MAX_BYTES = 4 << 30
"""4 GiB of text."""

DELIMITERS = (",", "\t", ";", "|")

MAX_COLUMNS = 1 << 16
"""65,536 columns, for each of which pyarrow takes some memory. Wider rows are better sparse (LIBSVM)."""

_EXCERPT, _SHOWN, _LISTED = 40, 5, 20


def excerpt(text: str) -> str:
    """Return the text in quotes, cut when it is long.

    Examples
    --------
    >>> excerpt("abc" * 1000)
    "'abcabcabcabcabcabcabcabcabcabcabcabcabca...'"
    """
    return repr(text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}...")


def listed(names: Sequence[str | int]) -> str:
    """Return names of columns in a row, the first twenty of them."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(excerpt(str(name)) for name in names[:_LISTED]) + more


_WAYS = {"header": "header=False", "max_bytes": "max_bytes=None for no limit, if you trust the file"}


class DataFileError(ValueError):
    """A file that is not what it should be.

    Attributes
    ----------
    file : str
        Its name.
    line : int or None
        Where reading stopped, counted from 1; None where a file has no lines or all of it is meant.
    column : str, int or None
        The column that is wrong, where there is one: its name, or its number from 0 without names.
    cause : str
        What was found and what is expected.
    ways : tuple of str
        Arguments of ``read_table`` that would make something of the column: of "numeric", "categorical",
        "decimal", "header" and "ignore"; or "max_bytes", to read it all the same.

    Examples
    --------
    >>> str(DataFileError("heart.csv", 3, "age", "found 'old'; expected a number, or nothing."))
    "heart.csv, line 3, column 'age': found 'old'; expected a number, or nothing."
    >>> str(DataFileError("heart.csv", None, None, "the file is empty."))
    'heart.csv: the file is empty.'
    """

    def __init__(
        self, file: str, line: int | None, column: str | int | None, cause: str, ways: tuple[str, ...] = ()
    ) -> None:
        super().__init__(file, line, column, cause, ways)
        self.file, self.line, self.column, self.cause, self.ways = file, line, column, cause, ways

    @property
    def place(self) -> str:
        """File, line and column in words."""
        line = "" if self.line is None else f", line {self.line}"
        name = excerpt(self.column) if isinstance(self.column, str) else f"{self.column} (from 0)"
        return f"{self.file}{line}" + ("" if self.column is None else f", column {name}")

    def __str__(self) -> str:
        ways = f" Pass {' or '.join(_WAYS.get(way, f'{way}=...') for way in self.ways)}." if self.ways else ""
        return f"{self.place}: {self.cause}{ways}"


@dataclass(frozen=True)
class Reading:
    """Say what to take from a file; most as in ``read_table``.

    ``kinds`` says what columns hold ("number" or "category"), by name, or by number from 0 without names.
    ``report`` is called with the number of bytes of text that have been read.
    """

    target: str | int | None = None
    ignore: tuple[str | int, ...] = ()
    n_features: int | None = None
    delimiter: str | None = None
    header: bool = True
    max_bytes: int | None = DEFAULT_MAX_BYTES
    decimal: str = ""
    kinds: Mapping[str | int, str] = field(default_factory=dict)
    rules: Mapping[str | int, ColumnRule] | None = None
    report: Callable[[int], None] | None = None

    def __post_init__(self) -> None:
        """Refuse settings that are none."""
        ignored: Any = self.ignore
        if isinstance(ignored, (str, bytes)):
            raise TypeError(f"ignore must be a sequence of columns' names or numbers; got {ignored!r}.")
        target = [] if self.target is None else [("target", self.target)]
        for name, column in [*target, *(("ignore", column) for column in self.ignore)]:
            if not isinstance(column, (str, int)) or isinstance(column, bool):
                raise TypeError(f"{name} must be a column's name or number, or None; got {column!r}.")
            if isinstance(column, str) and not self.header:
                cause = "but header=False means that columns have no names; pass the column's number."
                raise ValueError(f"{name} is the name {column!r}, {cause}")
        if self.delimiter is not None and self.delimiter not in DELIMITERS:
            raise ValueError(f"delimiter must be one of {DELIMITERS}, or None; got {self.delimiter!r}.")
        for name, value in (("max_bytes", self.max_bytes), ("n_features", self.n_features)):
            if value is not None and (not isinstance(value, (int, np.integer)) or value < 1):
                raise ValueError(f"{name} must be a whole number from 1, or None; got {value!r}.")


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a data file.

    Attributes
    ----------
    data : DataFrame, ndarray or scipy.sparse.csr_matrix
        The features: a pandas DataFrame of a CSV or Parquet file (float64 and
        text with missing values, dates), a float64 array of a .npy file, a CSR matrix of a LIBSVM file.
    target : ndarray or None
        The classes: integers where all are whole numbers, else float64 or text. None where no target was
        asked for.
    rules : dict
        How the columns of a CSV file were read; hand them to ``read_table`` to read other files alike.
    remarks : dict
        What is unusual about how columns are written.
    n_lost : dict
        The number of texts that were read as missing values, for columns with some.
    """

    data: Any
    target: NDArray[Any] | None
    rules: dict[str | int, ColumnRule] = field(default_factory=dict)
    remarks: dict[str | int, str] = field(default_factory=dict)
    n_lost: dict[str | int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """The columns of a file: their names or numbers, and which of them are the target and the features."""

    all: Sequence[Any]
    target: int | None
    features: tuple[int, ...]
    file: str

    @classmethod
    def of(  # noqa: C901 -- one cause after the other
        cls, titles: Sequence[Any], reading: Reading, file: str, line: int | None = None
    ) -> Columns:
        """Choose columns by names, or by numbers from a range; an error names one that is not there."""
        count = len(titles)

        def place_of(column: str | int, role: str) -> int:
            if isinstance(column, int) and -count <= column < count:
                return column % count
            if not isinstance(column, int) and column in titles:
                return titles.index(column)
            shown = f"{column} {role} among {count} columns"
            if isinstance(column, str):
                shown = f"{excerpt(column)} {role}; there are {listed(titles)}"
            raise DataFileError(file, line, None, f"there is no column {shown}.")

        target = None if reading.target is None else place_of(reading.target, "for the target")
        ignored = {place_of(column, "to ignore") for column in reading.ignore}
        features = tuple(place for place in range(count) if place != target and place not in ignored)
        rules, cause = features if reading.rules is None else reading.rules, ""
        is_named = not isinstance(titles, range) and all(isinstance(name, str) for name in rules)
        if target in ignored:
            cause = "the target is among the columns to ignore; expected another column."
        elif not features:
            cause = f"none of the {count} columns is left for features; expected at least one."
        elif not is_named and len(features) != len(rules):
            cause = f"the file has {len(features)} features; expected {len(rules)}."
        if cause:
            raise DataFileError(file, line, None, cause)
        if is_named:
            features = tuple(place_of(name, "that is a feature") for name in rules)
        elif unknown := [name for name in reading.kinds if name not in [titles[at] for at in features]]:
            raise ValueError(f"{unknown[0]!r} is named in numeric or categorical, and is no feature.")
        return cls(titles, target, features, file)

    @property
    def titles(self) -> list[Any]:
        """The features."""
        return [self.all[place] for place in self.features]

    @property
    def used(self) -> list[int]:
        """Features and target."""
        return [*self.features, *([] if self.target is None else [self.target])]

    def refuse_equal(self, line: int | None = None) -> None:
        """Refuse names that occur twice."""
        counts = Counter(self.all)
        if twice := [title for title in (self.all[place] for place in self.used) if counts[title] > 1]:
            cause = f"{counts[twice[0]]} columns are called {excerpt(twice[0])}; expected different names."
            raise DataFileError(self.file, line, None, cause)

    def table(self, data: Any, target: NDArray[Any] | None, **facts: Sequence[Any]) -> Table:
        """Return an array or a list of columns as a DataFrame; facts are about each column in turn."""
        if isinstance(data, list):
            data = dict(zip(self.titles, map(_for_pandas, data), strict=True))
        frame = import_extra("pandas").DataFrame(data, columns=self.titles)
        pairs = {name: zip(self.titles, each, strict=True) for name, each in facts.items()}
        return Table(frame, target, **{name: {k: v for k, v in each if v} for name, each in pairs.items()})

    def check_classes(self, is_missing: NDArray[np.bool_], lines: Callable[[int], int] | None = None) -> None:
        """Refuse rows without a class; ``lines`` gives the line of a row, where the file has lines."""
        if not is_missing.any():
            return
        shown, count = np.flatnonzero(is_missing)[: _SHOWN + 1].tolist(), int(is_missing.sum())
        places = [str(row + 1 if lines is None else lines(row)) for row in shown]
        unit = ("row" if lines is None else "line") + "s" * (count > 1)
        more = ["..."] if len(places) > _SHOWN else []
        cause = (
            f"{count} of {len(is_missing)} rows {'have' if count > 1 else 'has'} no class ({unit} "
            f"{', '.join(places[:_SHOWN] + more)}); a cell that is empty or says NA, NaN, null, None or ? is "
            "a missing value. Leave such rows out, or give them a class."
        )
        line = None if lines is None else int(places[0])
        raise DataFileError(self.file, line, self.all[self.target or 0], cause)

    def classes(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Return a target of numbers: integers where all are whole."""
        self.check_classes(np.isnan(values))
        check_finite(values, self.file, self.all[self.target or 0])
        return whole_numbers(values)


def check_finite(values: NDArray[np.float64], file: str, title: Any, *, may_lack: bool = False) -> None:
    """Refuse a column with infinite or missing numbers, in which rows have no lines."""
    is_missing = np.isnan(values)
    wrong = ~np.isfinite(values) & ~(is_missing & may_lack)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "missing" if is_missing[row] else "infinite"
        cause = f"the value in row {row + 1} is {what}; expected a finite number."
        raise DataFileError(file, None, title, cause)


def check_size(file: str, n_rows: int, n_columns: int, said: int, reading: Reading) -> None:
    """Refuse a table that is too large before memory is taken; ``said`` is the size that a file states."""
    size = max(8 * n_rows * n_columns, said)
    if reading.max_bytes is not None and size > reading.max_bytes:
        cause = f"the table of {n_rows} rows and {n_columns} columns takes {size} bytes, more than "
        raise DataFileError(file, None, None, f"{cause}max_bytes={reading.max_bytes}.", ("max_bytes",))


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Refuse a pipe or a device where a reader opens its file more than once, or seeks in it.

    What cannot be opened is refused in the words of the system.
    """
    if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
        cause = "it is a pipe or a device, which can be read only once; copy it to a file first."
        raise DataFileError(os.fspath(path), None, None, cause)
    with open(path, "rb"):
        pass


def whole_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as integers, text and other numbers as they are."""
    if values.dtype.kind != "f" or not ((values == np.rint(values)) & (np.abs(values) < 2**53)).all():
        return values
    return np.asarray(values.astype(np.int64))


def import_extra(module: str, purpose: str = "reading CSV and Parquet files", extra: str = "cli") -> Any:
    """Return a module of an optional package; the error says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        cause = f"{purpose} needs {name}; install it with: pip install 'exclusivity[{extra}]'"
        raise ImportError(cause) from error


def _for_pandas(column: Any) -> Any:
    """Return texts as Python strings, equal ones once in memory; other columns as they are."""
    if isinstance(column, np.ndarray):
        return column
    if not hasattr(column, "dictionary"):  # a typed column of a Parquet file
        return column.to_pandas()
    words = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    return words[column.indices.fill_null(len(words) - 1).to_numpy()]
