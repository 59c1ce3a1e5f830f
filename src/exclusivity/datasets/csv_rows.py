"""Rows of CSV files, collected twice: fast where a block of lines is plain, else field by field."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.csv_fields import (
    Columns,
    FieldError,
    NumberFieldError,
    Splitter,
    decoded,
    excerpt,
    is_number,
    label,
    listed,
    number,
)
from exclusivity.datasets.errors import DataFileError, MissingClassError, NotANumberError
from exclusivity.datasets.notations import GAPS

# Within these characters float() accepts exactly the decimal numbers.
_PLAIN = re.compile(rb"[-+.0-9eE \t]*+")
_MISSING = frozenset(gap.encode() for gap in GAPS)


class TargetColumn:
    """The entries of a target column: all numbers, or all text.

    Examples
    --------
    >>> target = TargetColumn()
    >>> target.extend([b"ill", b"well", b"ill"])
    >>> target.values()
    array(['ill', 'well', 'ill'], dtype=object)
    >>> target.extend([b"3"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    exclusivity.datasets.csv_fields.FieldError: found '3', but the rows before have text; ...
    """

    def __init__(self) -> None:
        self._numbers = array("d")
        self._texts: list[str] = []
        # Classes are few: each text is read once, and kept once.
        self._known: dict[bytes, str] = {}
        self._missing = array("q")

    def add(self, entry: bytes, line: int) -> None:
        """Add one entry; a missing value is no class, and its line is kept for ``check``."""
        if entry in _MISSING:
            self._missing.append(line)
        else:
            self.extend([entry])

    def check(self, file: str, title: str) -> None:
        """Refuse a column with missing values, which are counted."""
        if self._missing:
            n_rows = len(self._texts) + len(self._numbers) + len(self._missing)
            raise MissingClassError(file, title, self._missing, len(self._missing), n_rows)

    def extend(self, entries: Sequence[bytes]) -> None:
        """Add the entries, all of them or, where one is refused or missing, none."""
        if not _MISSING.isdisjoint(entries):
            raise FieldError("the class is missing.")
        read = [self._known.get(entry) or label(entry) for entry in entries]
        texts = [value for value in read if isinstance(value, str)]
        numbers = [value for value in read if isinstance(value, float)]
        if self._texts or (not self._numbers and isinstance(read[0], str)):
            self._check(entries, read, str, "text")
            self._texts.extend(map(self._known.setdefault, entries, texts))
        else:
            self._check(entries, read, float, "numbers")
            self._numbers.extend(numbers)

    @staticmethod
    def _check(entries: Sequence[bytes], read: list[float | str], kind: type, before: str) -> None:
        for entry, value in zip(entries, read, strict=True):
            if not isinstance(value, kind):
                raise FieldError(
                    f"found {excerpt(entry.decode('utf-8'))}, but the rows before have {before}; "
                    "expected only numbers or only text in the target."
                )

    def values(self) -> NDArray[Any]:
        """The column."""
        if self._texts:
            return np.array(self._texts, dtype=object)
        return np.asarray(self._numbers)


class CsvRows:
    """Collects the rows of blocks of lines.

    Parameters
    ----------
    name : str
        What errors call the file.
    columns : Columns
    splitter : Splitter

    Examples
    --------
    >>> rows = CsvRows("example", Columns(("age", "mass", "ill"), 3, 2), Splitter(b","))
    >>> rows.add_block(2, [b"61,80.5,yes", b"18,60,no"])
    >>> rows.add_block(4, [b"heavy,20,no"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    exclusivity.datasets.errors.NotANumberError: example, line 4, column 1 ('age'): found 'heavy'; ...
    >>> rows.data()
    array([[61. , 80.5],
           [18. , 60. ]])
    """

    def __init__(self, name: str, columns: Columns, splitter: Splitter) -> None:
        self.target = None if columns.target is None else TargetColumn()
        self._name, self._columns, self._splitter = name, columns, splitter
        self._values = array("d")

    def add_block(self, first: int, lines: Sequence[bytes]) -> None:
        """Add the rows of these lines, or raise for the first line that is wrong; blank lines are skipped."""
        present = [line for line in lines if line.strip(b" \r")]
        if not present or self._add_plain(present):
            return
        for position, line in enumerate(lines, first):
            if line.strip(b" \r"):
                self._add_line(position, line)

    def data(self) -> NDArray[np.float64]:
        """The features, in the memory in which they were collected."""
        return np.asarray(self._values).reshape(-1, self._columns.n_features)

    def _add_plain(self, lines: Sequence[bytes]) -> bool:
        """The fast way; False, with nothing added, where the exact way has to look."""
        delimiter, count = self._splitter.delimiter, self._columns.count
        lines = [line.removesuffix(b"\r") for line in lines]
        if any(line.count(delimiter) != count - 1 or b'"' in line for line in lines):
            return False
        fields = delimiter.join(lines).split(delimiter)
        place = self._columns.target
        entries = [] if place is None else [field.strip(b" \t") for field in fields[place::count]]
        for removed, other in enumerate(sorted(self._columns.set_apart, reverse=True)):
            del fields[other :: count - removed]
        if _PLAIN.fullmatch(b" ".join(fields)) is None:
            return False
        try:
            values = array("d", map(float, fields))
            if not np.isfinite(values).all():
                return False
            if self.target is not None:
                self.target.extend(entries)
        except (ValueError, FieldError):
            return False
        self._values.extend(values)
        return True

    def _add_line(self, position: int, line: bytes) -> None:
        """The exact way."""
        place: int | None = None
        fields: list[bytes] = []
        try:
            fields = row_fields(line.removesuffix(b"\r"), self._columns.count, self._splitter)
            for place, field in enumerate(fields):
                if self.target is not None and place == self._columns.target:
                    self.target.add(field, position)
                elif place not in self._columns.ignored:
                    self._values.append(number(field))
        except FieldError as fault:
            place = place if fault.field is None else fault.field
            title = None if place is None else self._columns.title(place)
            cause = fault.cause + self._others(fields, place)
            error = NotANumberError if isinstance(fault, NumberFieldError) else DataFileError
            raise error(self._name, position, title, cause) from None

    def _others(self, fields: list[bytes], place: int | None) -> str:
        """The features of the line that would be refused next, so that nobody meets them one by one."""
        if place is None or place == self._columns.target:
            return ""
        apart, names = self._columns.set_apart, self._columns.names
        others = [j for j in range(place + 1, len(fields)) if j not in apart and not is_number(fields[j])]
        if not others:
            return ""
        titles = [str(j + 1) for j in others] if names is None else [names[j] for j in others]
        return f" The same line has no numbers in {listed(tuple(titles))} either."


def row_fields(line: bytes, expected: int, splitter: Splitter) -> list[bytes]:
    """The fields of a row, which are as many as expected."""
    decoded(line)  # first of all, so that what is no text is not counted as too few fields
    fields = splitter.fields(line, expected)
    if len(fields) != expected:
        found = f"more than {expected}" if len(fields) > expected else f"{len(fields)}"
        comma = " A comma inside a number or a text needs quotes around the field." * (
            len(fields) > expected and splitter.delimiter == b","
        )
        raise FieldError(f"the row has {found} fields; expected {expected}, as in the first line.{comma}")
    return fields
