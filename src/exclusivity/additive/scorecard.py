"""The model as a table: one line per level of every column."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from exclusivity.additive.classifier import RobustAdditiveClassifier


def scorecard(model: RobustAdditiveClassifier) -> Any:
    """Return a DataFrame of the values of all points; see :meth:`RobustAdditiveClassifier.to_frame`."""
    import pandas as pd  # noqa: PLC0415 -- only for tables

    lines: list[tuple[str, str, Any, float]] = [("(intercept)", "", "", 1.0)]
    for column in model.columns_:
        kind = column.kind
        levels = [
            column.value_of(place) if kind == "date" else label for place, label in enumerate(column.labels())
        ]
        levels[-1] = column.labels()[-1]
        shares = [*column.shares.tolist(), *[0.0] * (not column.has_missing)]
        lines += [(column.name, kind, level, share) for level, share in zip(levels, shares, strict=True)]
    frame = pd.DataFrame(lines, columns=["column", "kind", "level", "share"])
    pairs = list(combinations(model.classes_.tolist(), 2))
    for (first, second), b, points in zip(pairs, model.intercept_, model.points_, strict=True):
        name = str(second) if len(pairs) == 1 else f"{second} against {first}"
        frame[name] = np.append(b, points)
    return frame
