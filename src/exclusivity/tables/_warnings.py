"""Warnings about columns that are hardly what they seem, and about targets that are hardly classes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from exclusivity._typing import Ints
from exclusivity.classifier._validation import MANY_CLASSES, warn_of_many_classes
from exclusivity.tables._codes import READERS
from exclusivity.tables._columns import column_of, kind_of

LEAK = (
    "Column {} {} the target: rows of one of its values are of one class. If it is not known when "
    "predictions are made, leave it out."
)
# So few levels may well be a category, whatever they look like.
_FEW = 10
# A category of more levels than this, and more than a level for every other row, cannot generalise.
_MANY_LEVELS = 100
_MOST = 1000
_BEGINS = re.compile(r"[-+.,]?\d|\w{3,9}[. ]+\d")


def classes_in(y: Any, n_rows: int) -> Ints | None:
    """Return the numbers of classes, with a warning if there are very many; None where y has no classes."""
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape != (n_rows,) or y.dtype.kind not in "OUSiub":
        return None
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:  # texts and numbers, which the classifier refuses
        return None
    warn_of_many_classes(len(classes), n_rows, 3)
    return codes


def warn_of_target(name: str, read: Any, classes: Ints) -> None:
    """Warn of a column that determines the class of every training row: it may not be known in time."""
    if how := determines(read, classes):
        _warn(LEAK.format(repr(name), how))


def columns_that_determine(X: Any, titles: Iterable[Any], y: Any) -> list[tuple[Any, str]]:
    """Return the columns of a table that equal or determine the classes, and which of the two they do."""
    codes, found = np.unique(y, return_inverse=True)[1], []
    table = getattr(X, "iloc", X)
    for place, title in enumerate(titles):
        for rows in (slice(_MOST), slice(None)):  # the first rows settle nearly every column
            column = column_of(table[rows], place)
            how = determines(READERS[kind_of(column)](column), codes[rows])
            if not how:
                break
        found += [(title, how)] if how else []
    return found


def determines(read: Any, classes: Ints) -> str:
    """Return "equals" or "determines" where a column that was read does so with the target, else ""."""
    if isinstance(read, np.ndarray):
        values = np.unique(read[:_MOST])
        codes = np.searchsorted(values, read).clip(max=max(len(values) - 1, 0))
        if len(values) > MANY_CLASSES or not np.array_equal(values[codes], read, equal_nan=True):
            return ""
        levels: Sequence[Any] = values.tolist()
    elif isinstance(read, tuple):
        codes, levels = read[0] + 1, [None, *read[1]]
    else:
        return ""
    n_rows, n_classes = len(classes), int(classes.max()) + 1
    if n_classes < 2 or _FEW * len(levels) > n_rows or np.bincount(classes).min() < _FEW:
        return ""
    table = np.bincount(codes * n_classes + classes, minlength=len(levels) * n_classes)
    seen = table.reshape(len(levels), n_classes) > 0
    if seen.sum(axis=1).max() > 1:
        return ""
    return "equals" if int(seen.any(axis=1).sum()) == n_classes else "determines"


def warn_of_levels(name: str, levels: Sequence[str], n_known: int) -> None:
    """Warn of a category that holds free text, or numbers or dates as texts; say how to make them these."""
    advice, texts = None, levels[:_MOST]
    if len(texts) > _FEW and 2 * sum(_BEGINS.match(text) is not None for text in texts[:_FEW]) >= _FEW:
        from exclusivity.io._cells import MISSING  # noqa: PLC0415 -- few tables need the readers of files

        texts = [text for text in texts if text not in MISSING]
        advice = _numbers(name, texts) or _dates(name, texts)
    if advice is not None:
        _warn(
            f"Column {name!r} is taken for a category of {len(levels)} levels, but {advice} (Named in "
            "categorical it stays a category, and nothing is said.)"
        )
    elif len(levels) > _MANY_LEVELS and 2 * len(levels) > n_known:
        _warn(
            f"Column {name!r} has {len(levels)} distinct values in {n_known} rows and cannot generalise. "
            "Leave out names of rows; make features of free text before, as with a TfidfVectorizer."
        )


def warn_of_table(X: Any, y: Any, columns: Sequence[tuple[str, Sequence[str], int]]) -> None:
    """Warn of columns that determine the class, and of categories that hold free text.

    Of every column: its name, its distinct texts ([] if nothing is to be said of them), and its known rows.
    """
    for name, how in columns_that_determine(X, [name for name, _, _ in columns], y):
        warnings.warn(LEAK.format(repr(name), how), UserWarning, stacklevel=3)
    for column in columns:
        warn_of_levels(*column)


def describe_odd_cells(known: Any, count: int, cell: str) -> list[str]:
    """Return a remark on cells that a column of this name and kind cannot hold, the first of them as text."""
    cells = f"{count} cell{'s' * (count > 1)} with no {known.kind}, such as {cell}"
    return [f"column {known.name!r}: {cells}, count as missing"] * (count > 0)


def warn_of_changes(remarks: Sequence[str], advice: str = "", stacklevel: int = 4) -> None:
    """Warn of a table that is not as in training, with all remarks on it."""
    if remarks:
        message = f"Columns are not as in training: {'; '.join(remarks)}.{advice}"
        warnings.warn(message, UserWarning, stacklevel=stacklevel)


def _numbers(name: str, texts: list[str]) -> str | None:
    from exclusivity.io._cells import ColumnError, detect_rule  # noqa: PLC0415 -- as above

    try:
        rule, _ = detect_rule(dict.fromkeys(texts, 1))
    except ColumnError:
        return None
    if rule.kind != "number":
        return None
    steps = ".str.rstrip('% ')" if "%" in rule.notation else ""
    other = {",": ".", ".": ","}.get(rule.decimal, "")
    steps += f".str.replace({other!r}, '')" if "'" in rule.notation else ""
    steps += ".str.replace(',', '.')" if rule.decimal == "," else ""
    return (
        f"holds numbers as texts, such as {texts[0]!r}. Make them numbers, with pandas "
        f"X[{name!r}]{steps}.astype(float)."
    )


def _dates(name: str, texts: list[str]) -> str | None:
    from exclusivity.io._cells import DATE_FORM, date_among  # noqa: PLC0415 -- as above

    found = date_among(texts)
    if found is None:
        return None
    return (
        f"holds texts that look like dates, such as {found!r}. Make them dates (with pandas "
        f"pandas.to_datetime(X[{name!r}]), which may need a format), or write {DATE_FORM}."
    )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=5)
