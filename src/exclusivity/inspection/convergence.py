"""ConvergenceDisplay: objective and duality gap of every iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from exclusivity.inspection import drawing
from exclusivity.solvers import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

# A log axis has no place for a gap of zero: gaps far below the tolerance are drawn at its bottom.
_FAR_BELOW = 1e-4
_LEAST_GAP = 1e-16


class ConvergenceDisplay:
    """Plot the objective and, where there is a certificate, the relative duality gap of every iteration.

    Parameters
    ----------
    histories : sequence of History
        One per binary problem, as in ``ERMClassifier.history_``.
    names : sequence of str
        Names of the binary problems.
    tol : float, default=None
        The gap that was asked for, drawn as a line.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        The axes of the plot, one below the other: two, or one where no gap is known (exclusivity > 1).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.inspection import ConvergenceDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ERMClassifier().fit(scale(X), y)
    >>> display = ConvergenceDisplay.from_estimator(clf)  # doctest: +SKIP
    """

    def __init__(
        self, histories: Sequence[History], names: Sequence[str], *, tol: float | None = None
    ) -> None:
        if len(histories) != len(names):
            raise ValueError(f"{len(histories)} histories need as many names; got {len(names)}.")
        self.histories, self.names, self.tol = list(histories), list(names), tol

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Plot the last fit of a classifier, or of a pipeline that ends with one.

        Parameters
        ----------
        estimator : ERMClassifier, ERMClassifierCV or Pipeline
            Fitted.
        ax : matplotlib Axes, default=None
            A subplot to draw in the place of; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
        """
        fitted = drawing.last_step(estimator, "history_")
        names = drawing.history_names(fitted)
        return cls(fitted.history_[: len(names)], names, tol=fitted.tol).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A subplot to draw in the place of; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
        """
        has_gaps = any(np.any(np.isfinite(history.gap)) for history in self.histories)
        labels = ["objective", "relative duality gap"] if has_gaps else ["objective"]
        figure = drawing.region(ax, (6.4, 5.4 if has_gaps else 4.2))
        axes = figure.subplots(len(labels), 1, sharex=True, squeeze=False)[:, 0]
        floor = _LEAST_GAP if self.tol is None else max(_FAR_BELOW * self.tol, _LEAST_GAP)
        for number, (history, name) in enumerate(zip(self.histories, self.names, strict=True)):
            style: dict[str, Any] = {
                "label": drawing.literal(name),
                "color": drawing.COLOURS[number % len(drawing.COLOURS)],
                "linestyle": ("-", "--", ":")[number // len(drawing.COLOURS) % 3],
                "marker": "o" if len(history) <= 30 else "",
                "markersize": 3.5,
            }
            for each, values in zip(axes, (history.objective, np.maximum(history.gap, floor)), strict=False):
                each.plot(np.arange(1, len(history) + 1), values, **style)
        for each, label in zip(axes, labels, strict=True):
            drawing.tidy(each)
            each.xaxis.get_major_locator().set_params(integer=True)
            each.set_ylabel(label)
        axes[-1].set_xlabel("iteration")
        if has_gaps:
            axes[1].set_yscale("log")
            if self.tol is not None:
                line = axes[1].axhline(self.tol, color=drawing.QUIET, linestyle="--", linewidth=1.2)
                axes[1].legend([line], [f"tol = {self.tol:g}"], frameon=False, fontsize="small")
        if len(self.names) == 1:
            drawing.title(axes[0], self.names[0])
        else:
            drawing.legend(axes[0], outside=len(self.names) > 4)
        self.axes_, self.figure_ = axes, figure.figure
        return self
