"""Errors about data files, which name file, line or row, and column."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Self

_SHOWN = 5
"""Lines or rows in a message."""


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

    def after(self, n_lines: int) -> Self:
        """Return the same error for a whole file, of which a part was read.

        Parameters
        ----------
        n_lines : int
            Lines before that part.
        """
        moved = copy(self)
        moved.line = None if self.line is None else self.line + n_lines
        return moved


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Refuse a pipe or a device where a reader has to open its file more than once, or to seek in it."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        cause = "it is a pipe or a device, which can be read only once; copy it to a file first."
        raise DataFileError(str(path), None, None, cause)


class NotANumberError(DataFileError):
    """A cell without a number in a table of numbers; a table of anything could hold it."""


class MissingClassError(DataFileError):
    """Rows whose target is a missing value.

    Parameters
    ----------
    file, column : str
        As in ``DataFileError``.
    places : sequence of int
        The lines, or rows from 1, of those rows, in order; the first few are enough.
    n_missing, n_rows : int
        How many there are of how many.
    unit : {"line", "row"}
        What ``places`` counts.

    Examples
    --------
    >>> print(MissingClassError("vote.csv", "2 ('vote')", [3, 9], 2, 80))  # doctest: +ELLIPSIS
    vote.csv, line 3, column 2 ('vote'): 2 of 80 rows have no class (lines 3, 9); a cell...
    """

    def __init__(
        self,
        file: str,
        column: str | None,
        places: Sequence[int],
        n_missing: int,
        n_rows: int,
        unit: str = "line",
    ) -> None:
        shown = [int(place) for place in places[:_SHOWN]]
        listed = ", ".join(map(str, shown)) + (", ..." if n_missing > len(shown) else "")
        several = n_missing > 1
        cause = (
            f"{n_missing} of {n_rows} rows {'have' if several else 'has'} no class ({unit}{'s' * several} "
            f"{listed}); a cell that is empty or says NA, NaN, null, None or ? is a missing value. Leave "
            "such rows out, or give them a class."
        )
        super().__init__(file, shown[0] if unit == "line" else None, column, cause)
        self.args = (file, column, shown, n_missing, n_rows, unit)  # what pickle gives to the constructor

    def after(self, n_lines: int) -> Self:
        """Return the same error further down; see ``DataFileError``.

        Parameters
        ----------
        n_lines : int
            Lines before the part that was read.
        """
        file, column, places, n_missing, n_rows, unit = self.args
        moved = [place + n_lines for place in places] if unit == "line" else places
        return type(self)(file, column, moved, n_missing, n_rows, unit)
