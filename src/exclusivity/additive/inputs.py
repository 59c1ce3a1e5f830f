"""Parameters that name columns, and tables whose columns are matched by name."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from exclusivity._errors import ParameterError
from exclusivity._typing import Ints
from exclusivity.additive.levels import ColumnLevels
from exclusivity.classifier._validation import group_codes
from exclusivity.tables._columns import column_names, match_columns


def column_place(column: Any, names: Sequence[str], parameter: str) -> int:
    """Return the number of a column that is given by name or number."""
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return int(column) % len(names)
    elif column in names:
        return list(names).index(column)
    raise ParameterError(
        parameter, f"{parameter} names the column {column!r}; expected one of {list(names)[:20]}."
    )


def categorical_places(given: Any, names: Sequence[str]) -> set[int]:
    """Return the numbers of the columns that ``categorical_features`` names."""
    if given is None or (isinstance(given, str) and given == "from_dtype"):
        return set()
    if isinstance(given, str) or np.ndim(given) != 1:
        raise ParameterError(
            "categorical_features",
            f"categorical_features must be 'from_dtype' or a sequence of columns; got {given!r}.",
        )
    given = np.asarray(given, dtype=object).tolist()
    if given and all(isinstance(each, (bool, np.bool_)) for each in given):
        if len(given) != len(names):
            raise ParameterError(
                "categorical_features",
                f"categorical_features has {len(given)} entries; expected {len(names)}, one per column.",
            )
        return {place for place, each in enumerate(given) if each}
    return {column_place(each, names, "categorical_features") for each in given}


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


def numbered(labels: Sequence[Hashable], n_columns: int) -> Ints:
    """Return the number of each column's group, in the order of first appearance."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([numbers[label] for label in labels] if labels else np.arange(n_columns), dtype=np.intp)


def monotone_signs(given: Any, columns: Sequence[ColumnLevels], n_classes: int) -> list[int]:
    """Return 1 for columns whose curve must rise, -1 for those whose curve must fall, else 0."""
    name, names = "monotonic_cst", [column.name for column in columns]
    if given is None:
        return []
    if n_classes > 2:
        raise ParameterError(name, "monotonic_cst is for two classes, and y has more; leave it out.")
    if isinstance(given, Mapping):
        signs = [0] * len(names)
        for column, sign in given.items():
            signs[column_place(column, names, name)] = sign
    else:
        signs = np.asarray(given, dtype=object).ravel().tolist()
    if len(signs) != len(names) or any(sign not in (-1, 0, 1) for sign in signs):
        raise ParameterError(
            name, f"{name} must have one of -1, 0 and 1 for each of {len(names)} columns; got {given!r}."
        )
    for column, sign in zip(columns, signs, strict=True):
        if sign and column.kind == "category":
            raise ParameterError(
                name, f"{name}: column {column.name!r} holds categories, which have no order; give it 0."
            )
    return [int(sign) for sign in signs]


def columns_of_fit(X: Any, names: Sequence[str]) -> Any:
    """Return the columns of fit from a table; those that it does not have are missing, with a warning."""
    given = column_names(X) or []
    if len(set(given)) < len(given):
        twice = next(name for place, name in enumerate(given) if name in given[:place])
        raise ValueError(f"X has two columns with the name {twice!r}; rename or drop one of them.")
    X, absent, unknown = match_columns(X, names)
    if absent:
        _warn(f"X has no column {_listed(absent)}; all of its cells count as missing.")
    if unknown:
        _warn(f"X has columns that fit did not see, {_listed(unknown)}; they are ignored.")
    return X


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:20])) + " and others" * (len(names) > 20)


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=6)
