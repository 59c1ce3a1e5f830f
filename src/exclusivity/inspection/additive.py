"""AdditiveDisplay: the contribution of each column of a table to the score."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from exclusivity._text import printable
from exclusivity._typing import Floats, Ints
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.inspection import drawing
from exclusivity.inspection.summary import by_batches
from exclusivity.tables._codes import (
    MISSING,
    RARE,
    READERS,
    DateCode,
    LevelCode,
    MissingCode,
    NumberCode,
    assemble_dense,
    missing_in,
)
from exclusivity.tables._columns import as_numbers, column_of
from exclusivity.tables._encoder import TableEncoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS, _BINS = 101, 24
_YEAR = 365.2425 * 86_400e6  # microseconds
_NO_VALUE = "no value"
_WIDTH, _HEIGHT, _NARROWEST, _MOST_ACROSS = 2.9, 2.2, 2.0, 4
_LETTERS_PER_INCH = 11
# The histogram's share of a panel, the letters of a tick label, and the bars of a panel.
_FLOOR = 0.16
_LONGEST = 10
_MOST_CATEGORIES = 12


@dataclass(frozen=True, eq=False)
class Panel:
    """One column of a table, or one part of its dates.

    Attributes
    ----------
    title : str
        The name of the column.
    places : ndarray or list of str
        Numbers along a curve, or categories.
    effect : ndarray
        The contribution to the score at each of them; zero on average.
    missing : float or None
        The contribution of a missing value, beside a curve.
    importance : float
        The standard deviation of the contribution: over rows, where there are some, else over the knots of
        the curve or the categories.
    data : ndarray or None
        The number of rows in equal intervals along the curve, or of each category.
    member : int or None
        The only member that uses the column, where there are several members.
    reach : tuple of float or None
        The smallest and largest contribution that a broken cell can have, in a robust additive model.
    """

    title: str
    places: Floats | list[str]
    effect: Floats
    missing: float | None
    importance: float
    data: Ints | None = None
    member: int | None = None
    reach: tuple[float, float] | None = None


class AdditiveDisplay(drawing.Display):
    """Plot the contribution of each column of a table to the score, and the data below, one panel per column.

    A linear model behind a :class:`~exclusivity.tables.TableEncoder` is a sum of functions of one column
    each: a curve for numbers, a bar for every category (of many the twelve with the largest contributions,
    and the panel says so). So is an :class:`~exclusivity.RobustAdditiveClassifier`, and a band shows what a
    broken cell can add at most. Panels are sorted by importance and have the same scale. A cross at the left
    is the contribution of a missing value.

    Parameters
    ----------
    panels : sequence of Panel
        One record per column with ``title``, ``places`` (numbers or categories), ``effect`` at each of them,
        ``missing`` (the effect of a missing value), ``importance`` (the standard deviation of the effect),
        ``data`` (numbers of rows) and ``member``; the most important first.
    title : str, default=""
        The name of the binary problem.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        The axes of the plot.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from exclusivity import RobustAdditiveClassifier
    >>> from exclusivity.inspection import AdditiveDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = RobustAdditiveClassifier().fit(X, y == 2)
    >>> display = AdditiveDisplay.from_estimator(model, X, plot=False)
    >>> display.panels[0].title in ("petal width (cm)", "petal length (cm)")
    True
    """

    axes_: Any

    def __init__(self, panels: Sequence[Panel], *, title: str = "") -> None:
        self.panels, self.title = list(panels), title

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: object = None,
        *,
        problem: int = 0,
        max_panels: int = 12,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the contributions of the columns of a fitted pipeline, and plot.

        Parameters
        ----------
        estimator : RobustAdditiveClassifier or Pipeline
            Fitted. Of a pipeline a TableEncoder comes first and a classifier with ``components_`` last.
        X : table, default=None
            Rows to show below the curves and to weight columns by; None: no data are shown.
        problem : int, default=0
            The number of the binary problem, or of the duel of two classes.
        max_panels : int, default=12
            Columns to keep, the most important ones.
        plot : bool, default=True
            Whether to draw at once.
        ax : matplotlib Axes, default=None
            A subplot to draw in the place of; None makes a figure.

        Returns
        -------
        display : AdditiveDisplay
        """
        if isinstance(estimator, RobustAdditiveClassifier):
            check_is_fitted(estimator)
            drawing.check_number("problem", problem, len(estimator.points_))
            panels, title = _level_panels(estimator, problem, X), drawing.duel_names(estimator)[problem]
        else:
            fitted = drawing.last_step(estimator, "components_")
            if not is_additive(estimator):
                raise ValueError(
                    "AdditiveDisplay needs a RobustAdditiveClassifier, or a pipeline that begins with a "
                    f"TableEncoder; got {type(estimator).__name__}."
                )
            drawing.check_number("problem", problem, len(fitted.components_))
            weights = fitted.components_[problem]
            # Members that are stored once have a stride of zero.
            panels = _panels(estimator, weights[0] if weights.strides[0] == 0 else weights.mean(axis=0), X)
            title = drawing.problem_names(fitted.classes_, fitted.multi_class_)[problem]
        panels.sort(key=lambda panel: -panel.importance)
        used = [panel for panel in panels if panel.importance > 0] or panels[:1]
        display = cls(used[:max_panels], title=title)
        return display.plot(ax) if plot else display

    @property
    def size(self) -> tuple[float, float]:
        """Return width and height of the figure, in inches."""
        n_rows, n_columns = self._grid()
        return _WIDTH * n_columns, _HEIGHT * n_rows + 0.4

    def _draw(self) -> None:
        figure = self._region()
        inches = figure.bbox.width / figure.dpi
        n_rows, n_columns = self._grid(inches)
        axes = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True)
        letters = int(_LETTERS_PER_INCH * inches / n_columns)
        values = np.concatenate([[*panel.effect, panel.missing or 0.0] for panel in self.panels])
        span = np.ptp(values) or 1.0
        axes[0, 0].set_ylim(values.min() - 1.5 * _FLOOR * span, values.max() + 0.08 * span)
        axes[0, 0].locator_params(axis="y", nbins=5)
        for panel, each in zip(self.panels, axes.flat, strict=False):
            _plot_panel(each, panel, letters)
        for each in axes.flat[len(self.panels) :]:
            each.set_axis_off()
        for each in axes[:, 0]:
            each.set_ylabel("adds to the score", fontsize="small")
        figure.suptitle(drawing.literal(self.title), fontsize="medium", x=0.01, ha="left")
        self.axes_ = axes

    def _grid(self, inches: float = np.inf) -> tuple[int, int]:
        n_columns = int(min(_MOST_ACROSS, len(self.panels), max(1.0, inches / _NARROWEST)))
        return -(-len(self.panels) // n_columns), n_columns


def is_additive(model: BaseEstimator) -> bool:
    """Return whether a model is a pipeline that begins with a TableEncoder."""
    steps = [step for _, step in getattr(model, "steps", [])]
    return isinstance(next(iter(steps), None), TableEncoder)


def _panels(model: BaseEstimator, weights: Floats, X: object) -> list[Panel]:
    """Return the panels of all columns."""
    steps = [step for _, step in model.steps[1:-1] if step is not None and step != "passthrough"]
    supports = model[-1]._ensemble.supports

    def contribution(code: Any, outputs: slice, values: Any) -> Floats:
        """Return the score of rows in which the output columns of all other codes are zero."""

        def ask(part: Any) -> Floats:
            rows: Any = np.zeros((len(part), len(weights)))
            rows[:, outputs] = assemble_dense([(code, part)], len(part), np.float64)
            for step in steps:
                rows = np.asarray(step.transform(rows))
            return np.asarray(rows[:, outputs] @ weights[outputs])

        return by_batches(model, values, ask)

    panels, end = [], 0
    for number, column in enumerate(model[0].columns_):
        start, end = end, end + column.width
        if column.code is None:
            continue
        read: Any = None if X is None else READERS[column.kind](column_of(X, number))
        is_date = isinstance(column.code, DateCode)
        parts: Any = column.code.parts if is_date else [("", column.code)]
        for part, code in parts:
            outputs = slice(start, start + code.width)
            start = outputs.stop
            users = np.flatnonzero(supports[:, outputs].any(axis=1))
            member = int(users[0]) if len(users) == 1 and len(supports) > 1 else None
            make = _curve if isinstance(code, NumberCode) else _bars
            values = read[part] if is_date and read is not None else read
            found = make(code, partial(contribution, code, outputs), values)
            title = f"{column.name}: {part}" if is_date else column.name
            panels.append(Panel(title, *found, member=member))
    return panels


def _level_panels(model: RobustAdditiveClassifier, problem: int, X: Any) -> list[Panel]:
    """Return the panels of all columns of a robust additive model."""
    panels, end = [], 0
    for number, column in enumerate(model.columns_):
        start, end = end, end + column.n_points
        points = model.points_[problem, start:end]
        shares: Floats = column.shares
        if X is not None:
            left, right = column.encode(column_of(X, number))
            total = np.bincount(left, 1 - right, len(points) + 1)
            total += np.bincount(left + 1, right, len(points) + 1)
            shares = total[:-1] / len(left)
        values = points[: len(shares)]
        effect = points - shares @ values
        importance = float(np.sqrt(shares @ (values - shares @ values) ** 2))
        names = [_NO_VALUE if name == MISSING else str(name) for name in column.labels()]
        places: Floats | list[str] = names if column.has_missing else names[:-1]
        title, data, at_missing = column.name, None, None
        if len(column.knots):
            places = np.asarray(column.knots, dtype=float)
            at_missing = float(effect[-1]) if column.has_missing else None
            if X is not None and column.kind == "number":
                read = as_numbers(column_of(X, number))
                known = np.clip(read[~np.isnan(read)], places[0], places[-1])
                data = np.histogram(known, bins=_BINS, range=(places[0], max(places[-1], places[0] + 1)))[0]
            if column.kind == "date":
                places, title = 1970 + places / _YEAR, f"{column.name}: year"
        elif X is not None:
            data = np.rint(shares * X.shape[0]).astype(np.intp)[: len(places)]
        reach = float(effect.min()), float(effect.max())
        added = effect[: len(places)]
        panels.append(Panel(title, places, added, at_missing, importance, data, reach=reach))
    return panels


_Found = tuple[Floats | list[str], Floats, float | None, float, Ints | None]


def _curve(code: NumberCode, score: Callable[[Any], Floats], values: Floats | None) -> _Found:
    """Return places, effect, effect of a missing value, importance and histogram of a column of numbers."""
    bends = code.mean + code.scale * code.knots
    places = np.union1d(np.linspace(code.low, code.high, _POINTS), np.clip(bends, code.low, code.high))
    # The knots are quantiles, and stand for rows where there are none; for a straight line its ends do.
    typical = bends if len(bends) else np.array([code.mean - code.scale, code.mean + code.scale])
    rows = score(typical if values is None else values)
    centre = rows.mean()
    at_missing = float(score(np.array([np.nan]))[0] - centre) if code.has_missing else None
    data = None
    if values is not None:
        known = np.clip(values[~np.isnan(values)], code.low, code.high)
        data = np.histogram(known, bins=_BINS, range=(code.low, code.high))[0]
    return places, score(places) - centre, at_missing, float(rows.std()), data


def _bars(code: LevelCode | MissingCode, score: Callable[[Any], Floats], values: Any) -> _Found:
    """Return the same for a column of categories, or one that only says whether a value is missing."""
    count = None
    if isinstance(code, LevelCode):
        names = [*code.levels, *([RARE] if code.rare else []), *([_NO_VALUE] if code.has_missing else [])]
        if values is not None:  # categories that were not seen in training are not counted
            ((_, places),) = code.leaves(values)
            count = np.bincount(places + 1, minlength=len(names) + 1)[1:]
        added = score(np.arange(len(names)))
    else:
        names = [_NO_VALUE, "a value"]
        count = None if values is None else np.bincount(~missing_in(values), minlength=2)
        added = score(np.array([True, False]))
    shares = np.full(len(names), 1 / len(names)) if count is None or not count.sum() else count / count.sum()
    effect = added - shares @ added
    return names, effect, None, float(np.sqrt(shares @ effect**2)), count


def _plot_panel(ax: Axes, panel: Panel, letters: int) -> None:
    colour = drawing.COLOURS[(panel.member or 0) % len(drawing.COLOURS)]
    owner = "" if panel.member is None else f"  member {panel.member}"
    lines = textwrap.wrap(printable(drawing.cut(panel.title) + owner), max(letters, 1))
    ax.set_title("\n".join(map(drawing.literal, lines)), fontsize="small", loc="left")
    drawing.tidy(ax)
    ax.tick_params(labelsize="x-small")
    ax.axhline(0, color=drawing.QUIET, linewidth=0.8)
    if panel.reach is not None:
        ax.axhspan(*panel.reach, color=colour, alpha=0.08, linewidth=0)
    if not isinstance(panel.places, list):
        places = np.asarray(panel.places)
        ax.plot(places, panel.effect, color=colour)
        ax.locator_params(axis="x", nbins=4)
        ax.ticklabel_format(axis="x", scilimits=(-3, 5), useOffset=False)
        ax.xaxis.get_offset_text().set_fontsize("x-small")
        if panel.missing is not None:
            left = places[0] - 0.06 * (places[-1] - places[0])
            ax.scatter([left], [panel.missing], marker="x", color=colour, s=18)
        shown, width = np.arange(_BINS), (places[-1] - places[0]) / _BINS
        bars = places[0] + width * (shown + 0.5)
    else:
        shown = _most_important(panel)
        bars, width = np.arange(len(shown)), 0.7
        ax.bar(bars, panel.effect[shown], color=colour, width=width)
        if len(shown) < len(panel.places):
            kept = f"{len(shown)} of {len(panel.places)} categories, those that add most"
            ax.set_xlabel(kept, fontsize="x-small")
        names = _abbreviate([printable(panel.places[place]) for place in shown], _LONGEST)
        slanted = sum(len(name) + 2 for name in names) > letters + 2
        style: Any = {"rotation": 40, "ha": "right"} if slanted else {}
        ax.set_xticks(bars, list(map(drawing.literal, names)), **style)
        ax.grid(visible=False, axis="x")
    if panel.data is not None and panel.data.any():
        low, high = ax.get_ylim()
        heights = _FLOOR * (high - low) * panel.data[shown] / panel.data.max()
        ax.bar(bars, heights, width, bottom=low, color=drawing.QUIET, alpha=0.45)


def _most_important(panel: Panel) -> Ints:
    """Return the categories with the largest effects: numbers in their order, then the others in theirs."""
    shown = np.sort(np.argsort(-np.abs(panel.effect), kind="stable")[:_MOST_CATEGORIES])
    numbers = as_numbers(np.array(panel.places, dtype=object)[shown])
    return np.asarray(shown[np.argsort(np.where(np.isfinite(numbers), numbers, np.inf), kind="stable")])


def _abbreviate(names: list[str], width: int) -> list[str]:
    """Cut the middle out of long names, but less of it where two names would look alike."""
    short = [name if len(name) <= width else f"{name[: width - 5]}…{name[-4:]}" for name in names]
    return _abbreviate(names, 2 * width) if len(set(short)) < len(set(names)) and width < 40 else short
