"""Threat models: which columns may break, and what a broken cell can contain.

========== ==================================================================================
``any``     every value, missing included (the default)
``trusted`` the cell stays what it is
``increase``, ``decrease`` larger (smaller) numbers; a missing cell stays missing
``missing`` the cell may become missing
(a, b)     numbers from a to b
========== ==================================================================================

A cell can always stay what it is. The values that matter are points of the column: the ends of an interval
become knots, which changes no column function.

A certificate asks what a clean row can become. For a row that may already have been attacked the question is
what it may have been, and one-sided threats turn round: after "increase" the clean value is smaller, after
"missing" a missing cell may have had any value, and so may a cell inside an interval.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from exclusivity._errors import ParameterError, hint_at_name
from exclusivity._typing import Ints
from exclusivity.additive.levels import ColumnLevels, Levels
from exclusivity.additive.sums import Reach

KINDS = ("any", "trusted", "increase", "decrease", "missing")
_REVERSED = {"increase": "decrease", "decrease": "increase"}

Threat = str | tuple[float, float]
"""What a broken cell of a column can contain."""


def threats_by_column(threats: Any, names: Sequence[str], labels: Sequence[Hashable] = ()) -> list[Threat]:
    """Return the threat of every column, from one for all or a dict by name, number or label of a group.

    Columns that a dict does not name can contain anything.
    """
    if not isinstance(threats, Mapping):
        return [_checked(threats, "all columns")] * len(names)
    found: list[Threat] = ["any"] * len(names)
    ordered = sorted(threats.items(), key=lambda item: bool(_columns_of(item[0], names, ())))
    for key, threat in ordered:  # columns after groups: the threat of a column counts more
        places = _columns_of(key, names, labels)
        if not places:
            known = [*names, *(label for label in dict.fromkeys(labels) if label not in names)]
            raise ParameterError(
                "threats", f"threats names {key!r}, which is no column of X; {hint_at_name(key, known)}"
            )
        for place in places:
            found[place] = _checked(threat, f"column {names[place]!r}")
    return found


def _columns_of(key: Any, names: Sequence[str], labels: Sequence[Hashable]) -> list[int]:
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return [int(key) % len(names)] if -len(names) <= key < len(names) else []
    if key in names:
        return [list(names).index(key)]
    return [place for place, label in enumerate(labels) if label == key]


def _checked(threat: Any, whose: str) -> Threat:
    if isinstance(threat, str) and threat in KINDS:
        return threat
    if isinstance(threat, (tuple, list)) and len(threat) == 2:
        try:
            low, high = (float(end) for end in threat)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if low <= high and np.isfinite([low, high]).all():
            return low, high
    raise ParameterError(
        "threats",
        f"threats: the threat of {whose} must be one of {KINDS}, or an interval (low, high) of finite "
        f"numbers; got {threat!r}.",
    )


def check_threats(threats: Sequence[Threat], columns: Sequence[ColumnLevels]) -> None:
    """Raise where a threat needs an order that the values of its column do not have."""
    held = {"category": "categories", "date": "dates"}
    for column, threat in zip(columns, threats, strict=True):
        is_one_sided = threat in ("increase", "decrease")
        if (is_one_sided and column.kind == "category") or (
            isinstance(threat, tuple) and column.kind in held
        ):
            raise ParameterError(
                "threats",
                f"threats: {threat!r} is for numbers{' and dates' * is_one_sided}, and column "
                f"{column.name!r} holds {held[column.kind]}; use 'any', 'missing' or 'trusted'.",
            )


def reach_of(levels: Levels, threats: Sequence[Threat], groups: Ints, *, attacked: bool = False) -> Reach:
    """Return the slices of points that the adversary can reach from each cell.

    Parameters
    ----------
    levels : Levels
        The columns. The ends of intervals must be knots, or lie beyond them.
    threats : sequence
        The threat of each column.
    groups : ndarray of int of shape (n_columns,)
        The group of each column.
    attacked : bool, default=False
        Go back: what may a cell that has been attacked have contained? A cell of the same left knot as the
        end of an interval counts as inside, and one beyond the last knot as one at that knot.
    """
    start, stop = [], []
    of_point = np.zeros(levels.starts[-1] + 1, dtype=np.intp)
    shifted = np.zeros(len(threats), dtype=bool)

    def add(low: int, high: int) -> int:
        start.append(low)
        stop.append(high)
        return len(start) - 1

    nothing = add(0, 0)
    for place, (column, given) in enumerate(zip(levels.columns, threats, strict=True)):
        first, end = int(levels.starts[place]), int(levels.starts[place + 1])
        knots_end = first + len(column.knots)
        # The value of a missing cell that is a mean lies inside the range of the levels.
        everything = (first, first + column.n_levels)
        threat = _REVERSED.get(str(given), given) if attacked else given
        of_point[first:end] = nothing
        if threat == "any":
            of_point[first:end] = add(*everything)
        elif threat == "missing":
            if attacked:
                of_point[end - 1] = add(*everything)
            else:
                of_point[first:end] = add(end - 1, end)
        elif threat == "increase":
            of_point[first : knots_end - 1] = [add(v + 1, knots_end) for v in range(first, knots_end - 1)]
        elif threat == "decrease":
            of_point[first + 1 : knots_end] = [add(first, v) for v in range(first + 1, knots_end)]
            shifted[place] = True
        elif isinstance(threat, tuple) and len(column.knots):
            inside = np.searchsorted(column.knots, np.clip(threat, column.knots[0], column.knots[-1]))
            low, high = (first + int(knot) for knot in inside)
            if attacked:
                of_point[low : high + 1] = add(*everything)
            else:
                of_point[first:end] = add(low, high + 1)
    return Reach(np.array(start), np.array(stop), of_point, shifted, np.asarray(groups))
