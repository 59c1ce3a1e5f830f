"""AdditiveDisplay: what each column of a table adds to the decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from exclusivity.inspection import drawing
from exclusivity.inspection.panels import Panel, has_interactions, panels_of, with_members
from exclusivity.inspection.short_names import short_names
from exclusivity.problem.arrays import Floats
from exclusivity.tables import TableEncoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 2.9, 2.2
_NARROWEST = 2.0
_ACROSS = 4
# Letters of a tick label in an inch.
_LETTERS = 11
# What the data take of the height of a panel, and how long a name may be to be read below a bar.
_FLOOR = 0.16
_LONGEST = 10
_MOST_LEVELS = 12


class AdditiveDisplay:
    """Small panels, one per column of a table: what the column adds to the score, and the data below.

    A linear model behind a :class:`~exclusivity.tables.TableEncoder` is a sum of functions of one column
    each: a curve of a number, a bar for every level of a category (of many levels twelve bars, and the panel
    says so). Panels are sorted by how much they move the score, and have the same scale. A cross at the left
    is what a gap adds.

    Build it with :meth:`from_estimator`; the data are in the attributes, drawing happens in :meth:`plot`
    (needs matplotlib).

    Parameters
    ----------
    panels : sequence of Panel
        Title, places, effect and importance of every column, the most important first.
    title : str, default=""
        What is separated from what.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, and Figure
        After :meth:`plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from exclusivity import make_robust_classifier
    >>> from exclusivity.inspection import AdditiveDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = make_robust_classifier(2, random_state=0).fit(X, y == 2)
    >>> display = AdditiveDisplay.from_estimator(model, X, plot=False)
    >>> display.panels[0].title in ("petal width (cm)", "petal length (cm)")
    True
    """

    axes_: Any
    figure_: Any

    def __init__(self, panels: Sequence[Panel], *, title: str = "") -> None:
        self.panels, self.title = list(panels), title

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: object = None,
        *,
        problem: int = 0,
        member: int | None = None,
        max_panels: int = 12,
        plot: bool = True,
        figure: Figure | None = None,
    ) -> Self:
        """Take a fitted pipeline apart into its columns, and draw.

        Parameters
        ----------
        estimator : Pipeline
            Fitted, a TableEncoder first and a classifier with ``components_`` last, as
            :func:`~exclusivity.make_robust_classifier` makes it.
        X : table, default=None
            Rows to show below the curves and to weigh columns by; None: no data are shown.
        problem : int, default=0
            Which binary problem.
        member : int, default=None
            Of which member; None: of the mean of all members.
        max_panels : int, default=12
            Columns to keep, the most important ones.
        plot : bool, default=True
            Whether to draw at once.
        figure : matplotlib Figure, default=None
            Where to draw; None makes one.

        Returns
        -------
        display : AdditiveDisplay
        """
        fitted = drawing.last_step(estimator, "components_")
        steps = getattr(estimator, "steps", [])
        if not steps or not isinstance(steps[0][1], TableEncoder):
            raise ValueError(
                "AdditiveDisplay needs a pipeline that begins with a TableEncoder, such as "
                f"make_robust_classifier makes; got {type(estimator).__name__}."
            )
        if has_interactions(estimator):
            raise ValueError(
                "AdditiveDisplay shows what each column adds to the score; members with interactions look at "
                "several columns together, and have no such curves. Fit without interactions."
            )
        drawing.check_problem(problem, len(fitted.components_))
        weights = _weights(fitted, problem, member)
        panels = with_members(panels_of(estimator, weights, X), estimator, fitted._asked_supports)
        title = drawing.problem_names(fitted.classes_, fitted.multi_class_)[problem]
        used = [panel for panel in panels if panel.importance > 0] or panels[:1]
        display = cls(used[:max_panels], title=title if member is None else f"{title}, member {member}")
        return display.plot(figure) if plot else display

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        n_rows, n_columns = self._grid()
        return _WIDTH * n_columns, _HEIGHT * n_rows + 0.4

    def plot(self, figure: Figure | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        figure : matplotlib Figure, default=None
            Where to draw; None makes one of the right size.

        Returns
        -------
        self : AdditiveDisplay
        """
        if figure is None:
            figure = drawing.new_axes(size=self.size).figure
        figure.clear()
        inches = figure.get_size_inches()[0]
        n_rows, n_columns = self._grid(inches)
        axes = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True)
        low, high = self._limits()
        letters = int(_LETTERS * inches / n_columns)
        for ax, panel, title in zip(axes.flat, self.panels, self._titles(letters), strict=False):
            ax.set_title(drawing.literal(title), fontsize="small", loc="left")
            _draw(ax, panel, low, high, letters)
        for ax in axes.flat[len(self.panels) :]:
            ax.set_axis_off()
        for row in axes:
            row[0].set_ylabel("adds to the score", fontsize="small")
        figure.suptitle(drawing.literal(self.title), fontsize="medium", x=0.01, ha="left")
        self.axes_, self.figure_ = axes, figure
        return self

    def _grid(self, inches: float = np.inf) -> tuple[int, int]:
        n_columns = int(min(_ACROSS, len(self.panels), max(1.0, inches / _NARROWEST)))
        return -(-len(self.panels) // n_columns), n_columns

    def _titles(self, letters: int) -> list[str]:
        """What stands above the panels: columns, and the members that own them."""
        owners = ["" if panel.member is None else f"  member {panel.member}" for panel in self.panels]
        rooms = [letters - len(owner) for owner in owners]
        names = short_names([panel.title for panel in self.panels], rooms)
        return [name + owner for name, owner in zip(names, owners, strict=True)]

    def _limits(self) -> tuple[float, float]:
        """Of all panels, with room for the data below."""
        values = [np.append(panel.effect, 0.0 if panel.gap is None else panel.gap) for panel in self.panels]
        low, high = min(map(np.min, values)), max(map(np.max, values))
        room = (high - low) or 1.0
        return float(low - 1.5 * _FLOOR * room), float(high + 0.08 * room)


def _weights(fitted: Any, problem: int, member: int | None) -> Floats:
    weights: Floats = fitted.components_[problem]
    if member is None:
        return np.asarray(weights[0] if weights.strides[0] == 0 else weights.mean(axis=0))
    if not isinstance(member, (int, np.integer)) or not 0 <= member < len(weights):
        raise ValueError(f"member must be an integer from 0 to {len(weights) - 1}; got {member!r}.")
    return np.asarray(weights[member])


def _draw(ax: Axes, panel: Panel, low: float, high: float, letters: int) -> None:
    colour = drawing.COLOURS[0 if panel.member is None else panel.member % len(drawing.COLOURS)]
    drawing.tidy(ax)
    ax.tick_params(labelsize="x-small")
    ax.axhline(0, color=drawing.QUIET, linewidth=0.8)
    ax.set_ylim(low, high)
    ax.locator_params(axis="y", nbins=5)
    floor = _FLOOR * (high - low)
    if panel.is_curve:
        _draw_curve(ax, panel, colour, floor)
    else:
        _draw_bars(ax, panel, colour, floor, letters)


def _draw_curve(ax: Axes, panel: Panel, colour: str, floor: float) -> None:
    places = np.asarray(panel.places)
    ax.plot(places, panel.effect, color=colour)
    ax.locator_params(axis="x", nbins=4)
    ax.ticklabel_format(axis="x", scilimits=(-3, 5), useOffset=False)
    ax.xaxis.get_offset_text().set_fontsize("x-small")
    if panel.gap is not None:
        left = places[0] - 0.06 * (places[-1] - places[0])
        ax.scatter([left], [panel.gap], marker="x", color=colour, s=18)
    if panel.data is not None and panel.data.any():
        edges = np.linspace(places[0], places[-1], len(panel.data) + 1)
        heights = floor * panel.data / panel.data.max()
        ax.bar(
            edges[:-1],
            heights,
            np.diff(edges),
            align="edge",
            bottom=ax.get_ylim()[0],
            color=drawing.QUIET,
            alpha=0.45,
        )


def _draw_bars(ax: Axes, panel: Panel, colour: str, floor: float, letters: int) -> None:
    shown = _shown_levels(panel)
    places = np.arange(len(shown))
    if len(shown) < len(panel.places):
        ax.set_xlabel(f"{len(shown)} of {len(panel.places)} levels, those that add most", fontsize="x-small")
    ax.bar(places, panel.effect[shown], color=colour, width=0.7)
    if panel.data is not None and panel.data.any():
        heights = floor * panel.data[shown] / panel.data.max()
        ax.bar(places, heights, bottom=ax.get_ylim()[0], width=0.7, color=drawing.QUIET, alpha=0.45)
    names = short_names([str(panel.places[place]) for place in shown], [_LONGEST] * len(shown))
    slanted = sum(len(name) + 2 for name in names) > letters + 2
    angle, side = (40, "right") if slanted else (0, "center")
    ax.set_xticks(places, list(map(drawing.literal, names)), rotation=angle, ha=side)
    ax.grid(visible=False, axis="x")


def _shown_levels(panel: Panel) -> list[int]:
    """Of many levels those that move the score most; numbers in their order, not in that of the alphabet."""
    shown: list[int] = np.sort(np.argsort(-np.abs(panel.effect), kind="stable")[:_MOST_LEVELS]).tolist()
    numbers = [_number(str(panel.places[place])) for place in shown]
    if not any(number is not None for number in numbers):
        return shown
    pairs = zip(numbers, shown, strict=True)
    # What is no number, such as rare levels and gaps, stays at the end.
    return [place for _, place in sorted(pairs, key=lambda pair: np.inf if pair[0] is None else pair[0])]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
