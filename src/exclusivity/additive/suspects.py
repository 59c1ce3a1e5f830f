"""Columns of new rows that look broken, compared with the training rows.

The shift of a column is its population stability index, the sum over its levels of
(new share - old share) log(new share / old share), with half a row added to every level. Below 0.1 it is
usually called small, above 0.25 large. Without any shift it is about (B - 1)(1/n + 1/m) for B levels, n
training rows and m new ones: what does not exceed that by four standard deviations is no evidence.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from exclusivity._typing import Floats
from exclusivity.additive.levels import ColumnLevels
from exclusivity.tables._columns import column_of

if TYPE_CHECKING:
    from exclusivity.additive.classifier import RobustAdditiveClassifier

LARGE_SHIFT = 0.25
"""The population stability index above which a column is flagged."""
MANY_CELLS = 0.05
"""A column is flagged where the share of missing, outside or unseen cells rises by more than this."""


@dataclass(frozen=True)
class Suspect:
    """One column of new rows."""

    column: str
    flagged: bool
    """True where it looks broken."""
    reason: str
    """Why, in words; empty where it does not."""
    shift: float
    """The population stability index."""
    missing: float
    """The share of missing cells."""
    missing_in_training: float
    outside: float
    """The share of numbers or dates outside the range of the training rows."""
    unseen: float
    """The share of categories that the training rows did not have."""
    stands: float
    """The share of predictions that cannot change whatever this column contains."""


@dataclass(frozen=True)
class Suspects:
    """The columns of new rows, the most suspicious first."""

    columns: list[Suspect]
    """All columns: flagged ones first, then by shift."""
    stands: float
    """The share of predictions that cannot change whatever the flagged columns contain, all at once."""
    n_rows: int
    """The number of new rows."""

    @property
    def flagged(self) -> list[str]:
        """The names of the columns that look broken, for :meth:`RobustAdditiveClassifier.stands`."""
        return [suspect.column for suspect in self.columns if suspect.flagged]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one line per column."""
        import pandas as pd  # noqa: PLC0415 -- only for tables

        return pd.DataFrame([asdict(suspect) for suspect in self.columns])

    def __str__(self) -> str:
        """Return what was found, one line per flagged column."""
        lines = [f"{each.column}: {each.reason}" for each in self.columns if each.flagged]
        last = f"{self.stands:.1%} of {self.n_rows} predictions stand whatever these columns contain"
        return "\n".join([*lines, last] if lines else [f"no column of {self.n_rows} rows looks broken"])

    def _repr_html_(self) -> str:
        """Return the table for notebooks."""
        lines = str(self).splitlines()
        return f"{self.to_frame().to_html(float_format='{:.3f}'.format)}<p>{escape(lines[-1])}</p>"


def find_suspects(model: RobustAdditiveClassifier, X: Any) -> Suspects:
    """Compare every column of a table with what the model keeps of the training rows."""
    names = [column.name for column in model.columns_]
    levels = model._levels
    n_points = int(levels.starts[-1])
    counts, odd = np.zeros(n_points), np.zeros(len(names))
    stands, n_rows = np.zeros(len(names)), X.shape[0]
    adversary, single = model._against("any")[0], np.eye(len(names), dtype=bool)
    for table in levels.tables(X):
        left, weight = levels.encode(table)
        counts += np.bincount(left.ravel(), (1 - weight).ravel(), n_points)
        counts += np.bincount(left.ravel() + 1, weight.ravel(), n_points + 1)[:n_points]
        odd += [column.is_odd(column_of(table, place)).sum() for place, column in enumerate(model.columns_)]
        stands += adversary.stands(left, weight, single).sum(axis=0)
    found = []
    for place, column in enumerate(model.columns_):
        new = counts[levels.starts[place] : levels.starts[place + 1]]
        found.append(_suspect(column, new, odd[place] / n_rows, n_rows, stands[place] / n_rows))
    found.sort(key=lambda each: (not each.flagged, -each.shift))
    flagged = [each.column for each in found if each.flagged]
    together = np.isin(names, flagged)[:, None]
    n_standing = sum(int(adversary.stands(*rows, together).sum()) for rows in levels.blocks(X))
    return Suspects(found, n_standing / n_rows, n_rows)


def _suspect(column: ColumnLevels, new: Floats, odd: float, n_rows: int, stands: float) -> Suspect:
    old = np.append(column.shares, np.zeros(int(not column.has_missing)))
    is_category = column.kind == "category"
    hidden = odd if is_category and not column.rare else 0.0  # unseen categories without a level
    missing, missing_before = float(new[-1] / n_rows - hidden), float(old[-1])
    shift, noise = _stability_index(old, column.n_rows, new / n_rows, n_rows)
    outside, unseen = (0.0, odd) if is_category else (odd, 0.0)
    reasons = []
    if _is_raised(missing, missing_before, column.n_rows, n_rows):
        reasons.append(f"{missing:.1%} missing, {missing_before:.1%} in training")
    if _is_raised(odd, 0.0, column.n_rows, n_rows):
        what = "in categories unseen in training" if is_category else "outside the range of training"
        reasons.append(f"{odd:.1%} {what}")
    if shift > max(LARGE_SHIFT, noise):
        reasons.append(f"its distribution has shifted (stability index {shift:.2f})")
    reason = "; ".join(reasons)
    shares = (shift, missing, missing_before, outside, unseen, stands)
    return Suspect(column.name, bool(reasons), reason, *shares)


def _stability_index(old: Floats, n_old: float, new: Floats, n_new: float) -> tuple[float, float]:
    """Return the population stability index, and what it hardly exceeds without any shift."""
    in_use = (old > 0) | (new > 0)
    n_levels = int(in_use.sum())
    shares = [(share[in_use] * n + 0.5) / (n + 0.5 * n_levels) for share, n in ((old, n_old), (new, n_new))]
    index = float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())
    freedom = max(n_levels - 1, 1)
    return index, (freedom + 4 * np.sqrt(2 * freedom)) * (1 / max(n_old, 1.0) + 1 / n_new)


def _is_raised(share: float, before: float, n_old: float, n_new: int) -> bool:
    """Return whether a share rose by more than ``MANY_CELLS`` and more than chance explains."""
    expected = (before * n_old + 0.5) / (n_old + 1)
    spread = np.sqrt(expected * (1 - expected) * (1 / n_new + 1 / max(n_old, 1.0)))
    return bool(share - before > max(MANY_CELLS, 4 * spread))
