"""Threat models: which columns may break, and what a broken cell can contain.

========== ==================================================================================
``any``     every value, missing included (the default)
``trusted`` the cell stays what it is
``increase``, ``decrease`` larger (smaller) numbers; a missing cell stays missing
``missing`` the cell may become missing
(a, b)     numbers from a to b
========== ==================================================================================

A cell can always stay what it is. Except for intervals the values that matter are points of the column.
The ends of an interval become knots, which changes no column function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exclusivity._typing import Ints
from exclusivity.additive.levels import ColumnLevels, Levels
from exclusivity.additive.objective import Reach

KINDS = ("any", "trusted", "increase", "decrease", "missing")


def threats_by_column(
    threats: Any, names: Sequence[str], columns: Sequence[ColumnLevels] | None = None
) -> list[Any]:
    """Return the threat of every column from one threat for all, or from a dict by name or number."""
    if not isinstance(threats, Mapping):
        threats = {} if threats is None else dict.fromkeys(names, threats)
    known = {name: place for place, name in enumerate(names)}
    found: list[Any] = ["any"] * len(names)
    for key, threat in threats.items():
        place = key if isinstance(key, (int, np.integer)) and not isinstance(key, bool) else known.get(key)
        if place is None or not -len(names) <= place < len(names):
            raise ValueError(f"threats names the column {key!r}; expected one of {list(names)[:20]}.")
        found[int(place)] = _checked(threat, names[int(place)])
    for column, threat in zip(columns or (), found, strict=columns is not None):
        if (column.kind == "category" and threat in ("increase", "decrease")) or (
            _is_interval(threat) and column.kind != "number"
        ):
            raise ValueError(
                f"threats: {threat!r} is for numbers, and column {column.name!r} holds "
                f"{'categories' if column.kind == 'category' else 'dates'}; use 'any', 'missing' or "
                f"'trusted'."
            )
    return found


def _is_interval(threat: Any) -> bool:
    return isinstance(threat, tuple)


def _checked(threat: Any, name: str) -> Any:
    if isinstance(threat, str) and threat in KINDS:
        return threat
    if isinstance(threat, (tuple, list)) and len(threat) == 2:
        low, high = (float(end) for end in threat)
        if low <= high and np.isfinite([low, high]).all():
            return low, high
    raise ValueError(
        f"The threat of column {name!r} must be one of {KINDS}, or an interval (low, high) of finite numbers;"
        f" got {threat!r}."
    )


def reach_of(levels: Levels, threats: Sequence[Any], groups: Ints) -> Reach:
    """Return the slices of points that the adversary can reach from each cell."""
    start, stop = [], []
    of_point = np.zeros(levels.starts[-1] + 1, dtype=np.intp)
    shifted = np.zeros(len(threats), dtype=bool)

    def add(low: int, high: int) -> int:
        start.append(low)
        stop.append(high)
        return len(start) - 1

    nothing = add(0, 0)
    for place, (column, threat) in enumerate(zip(levels.columns, threats, strict=True)):
        first, end = int(levels.starts[place]), int(levels.starts[place + 1])
        knots_end = first + len(column.knots)
        points = slice(first, end)
        if threat == "any":
            # The value of a missing cell that is a mean lies inside the range of the levels.
            of_point[points] = add(first, first + column.n_levels)
        elif threat == "missing":
            of_point[points] = add(end - 1, end)
        elif threat == "trusted":
            of_point[points] = nothing
        elif threat == "increase":
            of_point[points] = nothing
            of_point[first : knots_end - 1] = [add(v + 1, knots_end) for v in range(first, knots_end - 1)]
        elif threat == "decrease":
            of_point[points] = nothing
            of_point[first + 1 : knots_end] = [add(first, v) for v in range(first + 1, knots_end)]
            shifted[place] = True
        else:
            low, high = np.searchsorted(column.knots, np.clip(threat, column.knots[0], column.knots[-1]))
            of_point[points] = add(first + int(low), first + int(high) + 1)
    return Reach(np.array(start), np.array(stop), of_point, shifted, np.asarray(groups))
