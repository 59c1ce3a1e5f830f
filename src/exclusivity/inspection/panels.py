"""What each column of a table adds to the score of an additive model: curves, bars, and the data below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from exclusivity.problem.arrays import Floats, Ints
from exclusivity.tables import (
    RARE,
    Column,
    DateCode,
    GapCode,
    InteractionFeatures,
    LevelCode,
    NumberCode,
    TableColumn,
    TableEncoder,
    as_dates,
    as_numbers,
    assemble_dense,
    column_of,
    date_parts,
    missing,
)

_POINTS = 101
_BINS = 24
_NO_VALUE = "no value"


@dataclass(frozen=True, eq=False)
class Panel:
    """One column of a table, or one part of its dates.

    Attributes
    ----------
    title : str
        The column.
    places : ndarray or list of str
        Numbers along a curve, or levels.
    effect : ndarray
        What is added to the score at each of them; zero on average.
    gap : float or None
        What a gap adds to the score, next to a curve.
    importance : float
        The standard deviation of what the column adds: over rows, where there are some, else over the knots
        of the curve or the levels.
    data : ndarray or None
        How many rows there are: in equal intervals along the curve, or of each level.
    member : int or None
        The only member that uses the column, where there are several and one does.
    """

    title: str
    places: Floats | list[str]
    effect: Floats
    gap: float | None
    importance: float
    data: Ints | None = None
    member: int | None = None

    @property
    def is_curve(self) -> bool:
        """Whether the column holds numbers."""
        return not isinstance(self.places, list)


@dataclass(frozen=True, eq=False)
class _Piece:
    """A code with the place of its output columns."""

    title: str
    column: int
    part: str | None
    code: NumberCode | LevelCode | GapCode
    outputs: slice


class Scores:
    """What output columns of an encoder add to a score, through the scalers behind it."""

    def __init__(self, model: BaseEstimator, weights: Floats) -> None:
        self._steps = [step for _, step in model.steps[1:-1] if step is not None and step != "passthrough"]
        self._weights = np.asarray(weights, dtype=float)

    def of(self, block: Floats, outputs: slice) -> Floats:
        """The sums of these output columns, for rows in which all others are zero."""
        rows: Any = np.zeros((len(block), len(self._weights)))
        rows[:, outputs] = block
        for step in self._steps:
            rows = np.asarray(step.transform(rows))
        return np.asarray(rows[:, outputs] @ self._weights[outputs])


def has_interactions(model: BaseEstimator) -> bool:
    """Whether a step of the pipeline looks at several columns together."""
    return any(isinstance(step, InteractionFeatures) for _, step in model.steps)


def panels_of(model: BaseEstimator, weights: Floats, X: object) -> list[Panel]:
    """The panels of a pipeline that begins with a TableEncoder, the most important first."""
    encoder, scores = model[0], Scores(model, weights)
    panels = [_panel(piece, scores, None if X is None else _values(X, piece)) for piece in _pieces(encoder)]
    return sorted(panels, key=lambda panel: -panel.importance)


def with_members(panels: list[Panel], model: BaseEstimator, supports: Any) -> list[Panel]:
    """The same panels, with the member that owns the column."""
    owners = {}
    for piece in _pieces(model[0]):
        users = np.flatnonzero(supports[:, piece.outputs].any(axis=1))
        owners[piece.title] = int(users[0]) if len(users) == 1 and len(supports) > 1 else None
    return [replace(panel, member=owners[panel.title]) for panel in panels]


def _pieces(encoder: TableEncoder) -> Iterator[_Piece]:
    start = 0
    for number, column in enumerate(encoder.columns_):
        at = start
        for title, part, code in _simple_codes(column):
            yield _Piece(title, number, part, code, slice(at, at + code.width))
            at += code.width
        start += column.width


def _simple_codes(column: TableColumn) -> Iterator[tuple[str, str | None, Any]]:
    if isinstance(column.code, DateCode):
        for part, code in column.code.parts:
            yield f"{column.name}: {part}", part, code
    elif column.code is not None:
        yield column.name, None, column.code


def _values(X: object, piece: _Piece) -> Column:
    values = column_of(X, piece.column)
    return values if piece.part is None else date_parts(as_dates(values))[piece.part]


def _block(code: NumberCode | LevelCode | GapCode, values: Column) -> Floats:
    return assemble_dense([code], [code.ready(values)], len(values), np.float64)


def _panel(piece: _Piece, scores: Scores, values: Column | None) -> Panel:
    if isinstance(piece.code, NumberCode):
        return _curve(piece, piece.code, scores, values)
    return _bars(piece, scores, values)


def _curve(piece: _Piece, code: NumberCode, scores: Scores, values: Column | None) -> Panel:
    bends = code.mean + code.scale * code.knots
    places = np.union1d(np.linspace(code.low, code.high, _POINTS), np.clip(bends, code.low, code.high))
    # Without rows the knots stand for them: they are quantiles. Of a straight line the ends do.
    standing_in = bends if len(bends) else np.array([code.mean - code.scale, code.mean + code.scale])
    rows = scores.of(_block(code, standing_in if values is None else values), piece.outputs)
    centre = rows.mean()
    gap = None
    if code.has_gaps:
        gap = float(scores.of(_block(code, np.array([np.nan])), piece.outputs)[0] - centre)
    effect = scores.of(_block(code, places), piece.outputs) - centre
    data = None
    if values is not None:
        known = as_numbers(values)
        known = np.clip(known[~np.isnan(known)], code.low, code.high)
        data = np.histogram(known, bins=_BINS, range=(code.low, code.high))[0]
    return Panel(piece.title, places, effect, gap, float(rows.std()), data)


def _bars(piece: _Piece, scores: Scores, values: Column | None) -> Panel:
    code = piece.code
    if isinstance(code, LevelCode):
        names = [*code.levels, *([RARE] if code.rare else []), *([_NO_VALUE] if code.has_gaps else [])]
        count = None if values is None else _count(code, values)
    else:
        names = [_NO_VALUE, "a value"]
        count = None if values is None else np.bincount(~missing(values), minlength=2)
    block = np.eye(len(names))[:, : code.width]
    added = scores.of(block, piece.outputs)
    shares = np.full(len(names), 1 / len(names)) if count is None or not count.sum() else count / count.sum()
    effect = added - shares @ added
    return Panel(piece.title, names, effect, None, float(np.sqrt(shares @ effect**2)), count)


def _count(code: LevelCode, values: Column) -> Ints:
    """Rows of each level; levels never seen are left out."""
    return np.asarray(_block(code, values).sum(axis=0), dtype=np.intp)
