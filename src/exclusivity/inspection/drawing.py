"""Axes, colours and names that the displays share."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from exclusivity._text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

# Okabe and Ito: distinct for colour-blind readers, and in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#555555", "#8A6D00")
QUIET = "#8c8c8c"
_LONGEST_NAME = 60


class Display:
    """Draw on one axes, or on several in the place of one; a display has ``_draw``, and data beside it."""

    ax_: Any
    figure_: Any

    @property
    def size(self) -> tuple[float, float]:
        """Return width and height of a figure, in inches."""
        return 6.4, 4.2

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on, or for several axes a subplot to draw in the place of; None makes a figure.

        Returns
        -------
        display : Display
        """
        self._is_own = ax is None
        if ax is None:
            try:
                import matplotlib.pyplot as plt  # noqa: PLC0415 -- optional
            except ImportError as error:
                message = 'Displays need matplotlib: pip install "exclusivity[plot]".'
                raise ImportError(message) from error
            ax = plt.figure(figsize=self.size, layout="constrained").subplots()
        self.ax_, self.figure_ = ax, ax.figure
        self._draw()
        return self

    def _draw(self) -> None:
        raise NotImplementedError

    def _region(self) -> Any:
        """Return a subfigure in the place of the axes, for several axes."""
        place, figure = self.ax_.get_subplotspec(), self.ax_.figure
        if place is None:
            raise ValueError(
                "ax must be a subplot, as plt.subplots makes it: several axes are drawn in its place."
            )
        if self._is_own:
            self.ax_.remove()
        self.ax_.set_axis_off()
        return figure.add_subfigure(place)


def literal(text: object) -> str:
    """Escape a name from data, so that matplotlib draws it as it is: no formula, and in every legend."""
    shown = printable(text).replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown  # legends leave out what begins with _


def cut(name: str) -> str:
    """Shorten a name that is too long to draw."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def tidy(ax: Axes) -> None:
    """Remove the box around the axes, and draw a light grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e4e4e4", linewidth=0.8)
    ax.set_axisbelow(True)


def legend(ax: Axes, *, outside: bool) -> None:
    """Add a legend without a frame, inside or to the right of the axes."""
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if outside else {}
    ax.legend(frameon=False, fontsize="small", **place)


def title(ax: Axes, text: str) -> None:
    """Write a title above the left end of the axes."""
    ax.set_title(literal(text), fontsize="medium", loc="left")


def last_step(estimator: BaseEstimator, needed: str) -> BaseEstimator:
    """Return the estimator, or the last step of a pipeline; raise if it lacks a fitted attribute."""
    step = estimator[-1] if hasattr(estimator, "steps") else estimator
    if not hasattr(step, needed):
        raise ValueError(
            f"{type(step).__name__} has no {needed}: give a fitted classifier that has it, or a pipeline "
            "that ends with one."
        )
    return step


def feature_names(model: BaseEstimator, given: Any) -> list[str]:
    """Return the names of the features of a classifier, or of the last step of a pipeline.

    These are the names given, else those seen in ``fit``, after the steps before, else numbers.
    """
    fitted = last_step(model, "n_features_in_")
    if given is None and fitted is not model and hasattr(model, "feature_names_in_") and len(model.steps) > 1:
        with suppress(AttributeError, ValueError):  # a step without names
            given = model[:-1].get_feature_names_out()
    n_features = int(fitted.n_features_in_)
    if given is None:
        given = getattr(fitted, "feature_names_in_", [f"feature {j}" for j in range(n_features)])
    names = [str(name) for name in given]
    if len(names) != n_features:
        raise ValueError(f"feature_names must have one name per feature, {n_features}; got {len(names)}.")
    return names


def problem_names(classes: NDArray[Any], multi_class: str) -> list[str]:
    """Return the name of each binary problem: the two sides that it separates."""
    labels = [cut(str(label)) for label in classes]
    if len(labels) == 2:
        return [f"{labels[1]} against {labels[0]}"]
    if multi_class == "ovr":
        return [f"{label} against the rest" for label in labels]
    return [" against ".join(pair) for pair in combinations(labels, 2)]


def duel_names(model: BaseEstimator) -> list[str]:
    """Return the name of each duel of two classes; positive scores are for the first that is named."""
    labels = [cut(str(label)) for label in model.classes_]
    return [f"{second} against {first}" for first, second in combinations(labels, 2)]


def history_names(fitted: BaseEstimator) -> list[str]:
    """Return the names of the problems that were solved: one for all of them above exclusivity 1."""
    names = problem_names(fitted.classes_, fitted.multi_class_)
    return names if len(fitted.n_iter_) >= len(names) else ["all problems together"]


def check_number(name: str, value: object, count: int) -> None:
    """Raise unless a parameter is the number of one of ``count`` things."""
    if not isinstance(value, (int, np.integer)) or not 0 <= value < count:
        raise ValueError(f"{name} must be an integer from 0 to {count - 1}; got {value!r}.")
