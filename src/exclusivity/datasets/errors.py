"""What can go wrong with data files and data sets, said in a form that leads to a remedy."""

from __future__ import annotations

import os
from pathlib import Path


class DataFileError(ValueError):
    """A file that is not what it should be.

    Attributes
    ----------
    file : str
        Its name.
    line : int or None
        Where reading stopped, counted from 1; None where a file has no lines or all of it is meant.
    column : str or None
        The column that is wrong, where there is one.
    cause : str
        What was found and what is expected.

    Examples
    --------
    >>> str(DataFileError("heart.csv", 3, "2 ('age')", "found 'old'; expected a finite decimal number."))
    "heart.csv, line 3, column 2 ('age'): found 'old'; expected a finite decimal number."
    >>> str(DataFileError("heart.csv", None, None, "the file is empty."))
    'heart.csv: the file is empty.'
    """

    def __init__(self, file: str, line: int | None, column: str | None, cause: str) -> None:
        super().__init__(file, line, column, cause)
        self.file, self.line, self.column, self.cause = file, line, column, cause

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        column = "" if self.column is None else f", column {self.column}"
        return f"{self.file}{line}{column}: {self.cause}"


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Refuse a pipe or a device where a reader has to open its file more than once, or to seek in it."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        cause = "it is a pipe or a device, which can be read only once; copy it to a file first."
        raise DataFileError(str(path), None, None, cause)


class NotANumberError(DataFileError):
    """A cell without a number in a table of numbers; a table of anything could hold it."""


class LibsvmError(DataFileError):
    """A LIBSVM file that is not what it should be.

    Attributes
    ----------
    file : str
        Its name.
    line : int
        Where reading stopped; lines are counted from 1.
    cause : str
        What was found and what is expected.

    Examples
    --------
    >>> str(LibsvmError("heart", 3, "found 'x'; expected index:value."))
    "heart, line 3: found 'x'; expected index:value."
    """

    line: int

    def __init__(self, file: str, line: int, cause: str) -> None:
        super().__init__(file, line, None, cause)
        self.args = (file, line, cause)  # what pickle gives to the constructor


class DatasetNotFoundError(FileNotFoundError):
    """A data set that is in none of the places where it could be; the message says how to get it."""


class DownloadError(OSError):
    """A download that failed for good: after all attempts, or because another one would not help."""
