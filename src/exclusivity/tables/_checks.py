"""Checks of tables: the columns of fit, parameters that name columns, and columns that are hardly meant."""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from exclusivity._errors import ParameterError, ParameterTypeError, hint_at_name
from exclusivity._typing import Ints
from exclusivity.classifier._validation import MANY_CLASSES, group_codes, warn_of_many_classes
from exclusivity.tables._codes import READERS
from exclusivity.tables._columns import (
    ColumnTable,
    as_array,
    column_of,
    frame_package,
    kind_of,
    match_columns,
)

# So few levels may well be a category, whatever they look like.
_FEW = 10
# A category of more levels than this, and more than a level for every other row, cannot generalise.
_MANY_LEVELS = 100
_MOST = 1000
_BEGINS = re.compile(r"[-+.,]?\d|\w{3,9}[. ]+\d")


def check_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> tuple[Any, list[str]]:
    """Return a table of the right columns, and remarks on absent and unknown ones; cells are not checked.

    The columns of a frame are found by name, unless the estimator is ``strict`` or knows no names.
    """
    is_strict = getattr(estimator, "strict", False)
    remarks: list[str] = []
    if frame_package(X) is None:
        X = validate_data(estimator, as_array(X), reset=reset, dtype=None, ensure_all_finite=False)
    elif reset or is_strict or isinstance(X, ColumnTable) or not hasattr(estimator, "feature_names_in_"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    else:
        X, remarks = match_columns(X, [str(name) for name in estimator.feature_names_in_])
    if 0 in X.shape:
        raise ValueError(f"Found 0 sample(s) or 0 feature(s) (shape={X.shape}) while 1 is required.")
    return X, remarks


def column_place(column: Any, names: Sequence[str], parameter: str) -> int:
    """Return the number of a column that is given by name or number."""
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return int(column) % len(names)
    elif column in names:
        return list(names).index(column)
    raise ParameterError(
        parameter, f"{parameter} names {column!r}, which is no column of X; {hint_at_name(column, names)}"
    )


def categorical_places(given: Any, names: Sequence[str], parameter: str) -> set[int]:
    """Return the numbers of the columns that a sequence names, or a mask; "from_dtype" and None name none."""
    if given is None or (isinstance(given, str) and given == "from_dtype"):
        return set()
    if isinstance(given, str) or np.ndim(given) != 1:
        raise ParameterTypeError(parameter, f"{parameter} must be a sequence of columns; got {given!r}.")
    given = np.asarray(given, dtype=object).tolist()
    if given and all(isinstance(each, (bool, np.bool_)) for each in given):
        if len(given) != len(names):
            raise ParameterError(
                parameter, f"{parameter} has {len(given)} entries; expected {len(names)}, one per column."
            )
        return {place for place, each in enumerate(given) if each}
    return {column_place(each, names, parameter) for each in given}


def monotone_signs(given: Any, columns: Sequence[Any], kinds: Sequence[str]) -> list[int]:
    """Return the sign of each column in ``monotonic_cst``; only columns of these kinds may have one."""
    parameter, names = "monotonic_cst", [column.name for column in columns]
    if given is None:
        return []
    signs = [0] * len(names) if isinstance(given, Mapping) else np.ravel(given).tolist()
    for column, sign in given.items() if isinstance(given, Mapping) else ():
        signs[column_place(column, names, parameter)] = sign
    if len(signs) != len(names) or any(sign not in (-1, 0, 1) for sign in signs):
        raise ParameterError(
            parameter, f"{parameter} must have 1, -1 or 0 for each of {len(names)} columns; got {given!r}."
        )
    for column, sign in zip(columns, signs, strict=True):
        if sign and column.kind not in kinds:
            held = "dates" if column.kind == "date" else "categories, which have no order"
            expected = f"expected a column of {'s or '.join(kinds)}s."
            raise ParameterError(
                parameter, f"{parameter} names {column.name!r}, which holds {held}; {expected}"
            )
    return [int(sign) for sign in signs]


def group_labels(feature_groups: Any, names: Sequence[str]) -> list[Hashable]:
    """Return the label of each column's group; columns that a dict does not name have labels of their own."""
    if feature_groups is None:
        return []
    if not isinstance(feature_groups, Mapping):
        codes = group_codes(feature_groups, len(names), np.array(names, dtype=object))
        labels = feature_groups(np.array(names, dtype=object)) if callable(feature_groups) else feature_groups
        return codes.tolist() if labels is None else list(labels)
    found: list[Hashable] = [("alone", name) for name in names]
    for column, label in feature_groups.items():
        found[column_place(column, names, "feature_groups")] = label
    return found


def number_labels(labels: Sequence[Hashable], n_columns: int) -> Ints:
    """Return the number of each column's group, in the order of first appearance."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([numbers[label] for label in labels] if labels else np.arange(n_columns), dtype=np.intp)


def describe_odd_cells(known: Any, count: int, cell: str) -> list[str]:
    """Return a remark on cells that a column of this name and kind cannot hold, the first of them as text."""
    cells = f"{count} cell{'s' * (count > 1)} with no {known.kind}, such as {cell}"
    return [f"column {known.name!r}: {cells}, count as missing"] * (count > 0)


def warn_of_changes(remarks: Sequence[str], advice: str = "", stacklevel: int = 4) -> None:
    """Warn of a table that is not as in training, with all remarks on it."""
    if remarks:
        message = f"Columns are not as in training: {'; '.join(remarks)}.{advice}"
        warnings.warn(message, UserWarning, stacklevel=stacklevel)


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


def doubt_of_leak(name: str, how: str) -> str:
    """Return a warning of a column that ``determines`` the class, which may not be known in time."""
    return how and (
        f"Column {name!r} {how} the target: rows of one of its values are of one class. If it is not known "
        "when predictions are made, leave it out."
    )


def doubt_of_levels(name: str, levels: Sequence[str], n_known: int) -> str:
    """Return a warning of a category that holds free text, or numbers or dates as texts, or ""."""
    advice, texts = None, levels[:_MOST]
    if len(texts) > _FEW and 2 * sum(_BEGINS.match(text) is not None for text in texts[:_FEW]) >= _FEW:
        advice = _advice(name, list(texts))
    if advice is not None:
        return (
            f"Column {name!r} is taken for a category of {len(levels)} levels, but {advice} (Named in "
            "categorical it stays a category, and nothing is said.)"
        )
    if len(levels) > _MANY_LEVELS and 2 * len(levels) > n_known:
        return (
            f"Column {name!r} has {len(levels)} distinct values in {n_known} rows and cannot generalise. "
            "Leave out names of rows; make features of free text before, as with a TfidfVectorizer."
        )
    return ""


def warn_of_table(X: Any, y: Any, columns: Sequence[tuple[str, Sequence[str], int]]) -> None:
    """Warn of columns that determine the class, and of categories that hold free text.

    Of every column: its name, its distinct texts ([] if nothing is to be said of them), and its known rows.
    """
    leaks = columns_that_determine(X, [name for name, _, _ in columns], y)
    doubts = [doubt_of_leak(*leak) for leak in leaks] + [doubt_of_levels(*column) for column in columns]
    for doubt in filter(None, doubts):
        warnings.warn(doubt, UserWarning, stacklevel=3)


def _advice(name: str, texts: list[str]) -> str | None:
    """Return how to make numbers or dates of texts that are such, all of them."""
    from exclusivity.io import _cells  # noqa: PLC0415 -- few tables need the readers of files

    texts = [text for text in texts if text not in _cells.MISSING]
    if date := _cells.date_among(texts):
        return (
            f"holds texts that look like dates, such as {date!r}. Make them dates (with pandas "
            f"pandas.to_datetime(X[{name!r}]), which may need a format), or write {_cells.DATE_FORM}."
        )
    try:
        rule, _ = _cells.detect_rule(dict.fromkeys(texts, 1))
    except _cells.ColumnError:
        return None
    if rule.kind != "number":
        return None
    steps = ".str.rstrip('% ')" if "%" in rule.notation else ""
    steps += f".str.replace({_cells.OTHER_SIGN[rule.decimal]!r}, '')" if "'" in rule.notation else ""
    steps += ".str.replace(',', '.')" if rule.decimal == "," else ""
    return (
        f"holds numbers as texts, such as {texts[0]!r}. Make them numbers, with pandas "
        f"X[{name!r}]{steps}.astype(float)."
    )
