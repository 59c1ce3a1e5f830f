"""Errors about data files, which name file, line or row, and column."""

from __future__ import annotations

import os
from pathlib import Path

_EXCERPT = 40


def excerpt(text: str) -> str:
    """Return the text in quotes, cut when it is long.

    Examples
    --------
    >>> excerpt("abc" * 1000)
    "'abcabcabcabcabcabcabcabcabcabcabcabcabca...'"
    """
    return repr(text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}...")


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
        "decimal" and "ignore".

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
        ways = f" Pass {' or '.join(f'{way}=...' for way in self.ways)}." if self.ways else ""
        return f"{self.place}: {self.cause}{ways}"


class NotANumberError(DataFileError):
    """A missing value, or anything else but a number, where a model or a user wants numbers alone."""


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Refuse a pipe or a device where a reader has to open its file more than once, or to seek in it."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        cause = "it is a pipe or a device, which can be read only once; copy it to a file first."
        raise DataFileError(str(path), None, None, cause)
