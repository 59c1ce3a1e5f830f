"""Parameters that name columns: by name, or by number."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from exclusivity._errors import ParameterError, ParameterTypeError, hint_at_name
from exclusivity._typing import Ints
from exclusivity.classifier._validation import group_codes


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
