"""ConvergenceDisplay: how a fit came to its end, and what it could prove on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from exclusivity.inspection import drawing
from exclusivity.solvers import History

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# A gap of zero has no place on a log axis; what is far below the tolerance is drawn at its bottom.
_FAR_BELOW = 1e-4
_LEAST_GAP = 1e-16


class ConvergenceDisplay:
    """Objective and, where there is a certificate, relative duality gap of every iteration.

    Parameters
    ----------
    histories : sequence of History
        One per binary problem, as in ``ERMClassifier.history_``.
    names : sequence of str
        What each binary problem separates.
    tol : float, default=None
        The gap that was asked for, drawn as a line.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        What was drawn on, after :meth:`plot`: two axes, or one where no gap is known (exclusivity > 1).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.inspection import ConvergenceDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ERMClassifier(solver="alm").fit(scale(X), y)
    >>> display = ConvergenceDisplay.from_estimator(clf)  # doctest: +SKIP
    """

    def __init__(
        self, histories: Sequence[History], names: Sequence[str], *, tol: float | None = None
    ) -> None:
        if len(histories) != len(names):
            raise ValueError(f"{len(histories)} histories need as many names; got {len(names)}.")
        self.histories, self.names, self.tol = list(histories), list(names), tol

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, axes: object = None) -> Self:
        """Draw the last fit of a classifier, or of a pipeline that ends with one.

        Parameters
        ----------
        estimator : ERMClassifier, ERMClassifierCV or Pipeline
            Fitted.
        axes : sequence of two matplotlib Axes, default=None
            For the objective and for the gap (not needed where no gap is known); None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
        """
        return cls.of_problems(estimator).plot(axes=axes)

    @classmethod
    def of_problems(cls, estimator: BaseEstimator, most: int | None = None) -> Self:
        """The display of all binary problems, or of the first ones, not drawn yet."""
        fitted = drawing.last_step(estimator, "history_")
        names = drawing.problem_names(fitted.classes_, fitted.multi_class_)
        if len(fitted.history_) < len(names):  # exclusivity > 1: one descent for all problems
            names = ["all problems together"]
        names = names[:most]
        return cls(fitted.history_[: len(names)], names, tol=fitted.tol)

    def plot(self, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            For the objective and for the gap (not needed where no gap is known); None makes a figure.

        Returns
        -------
        self : ConvergenceDisplay
        """
        proven = any(np.any(np.isfinite(history.gap)) for history in self.histories)
        if axes is None:
            axes = drawing.new_axes(2, (6.4, 5.4)) if proven else drawing.new_axes()
        axes = np.atleast_1d(axes)
        if axes.shape != (2,) and (proven or axes.shape != (1,)):
            raise ValueError(f"axes must be two axes, for objective and gap; got shape {axes.shape}.")
        if not proven:  # nothing to draw below
            for ax in axes[1:]:
                ax.set_visible(False)
            axes = axes[:1]
        floor = _LEAST_GAP if self.tol is None else max(_FAR_BELOW * self.tol, _LEAST_GAP)
        for number, (history, name) in enumerate(zip(self.histories, self.names, strict=True)):
            iterations = np.arange(1, len(history) + 1)
            style = {
                "color": drawing.COLOURS[number % len(drawing.COLOURS)],
                "linestyle": ("-", "--", ":")[number // len(drawing.COLOURS) % 3],
                "marker": "o" if len(history) <= 30 else "",
                "markersize": 3.5,
            }
            for ax, values in zip(axes, (history.objective, np.maximum(history.gap, floor)), strict=False):
                ax.plot(iterations, values, label=drawing.literal(name), **style)
        self._finish(axes)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _finish(self, axes: Any) -> None:
        for ax, label in zip(axes, ("objective", "relative duality gap"), strict=False):
            drawing.tidy(ax)
            ax.xaxis.get_major_locator().set_params(integer=True)
            ax.set_ylabel(label)
        above, *rest = axes
        axes[-1].set_xlabel("iteration")
        for below in rest:
            below.set_yscale("log")
            if self.tol is not None:
                line = below.axhline(self.tol, color=drawing.QUIET, linestyle="--", linewidth=1.2)
                below.legend([line], [f"tol = {self.tol:g}"], frameon=False, fontsize="small")
        if len(self.names) == 1:
            above.set_title(drawing.literal(self.names[0]), fontsize="medium", loc="left")
        else:
            drawing.legend(above, outside=len(self.names) > 4)
