"""ConvergenceDisplay: how a fit came to its end, and what it could prove on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from exclusivity.inspection import drawing
from exclusivity.solvers import History

# A gap of zero has no place on a log axis; what is far below the tolerance is drawn at its bottom.
_FAR_BELOW = 1e-4
_LEAST_GAP = 1e-16


class ConvergenceDisplay:
    """Objective and relative duality gap of every iteration.

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
    axes_, figure_ : ndarray of two Axes, Figure
        What was drawn on, after :meth:`plot`.

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
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Draw the last fit of a classifier, or of a pipeline that ends with one.

        Parameters
        ----------
        estimator : ERMClassifier, ERMClassifierCV or Pipeline
            Fitted.
        axes : sequence of two matplotlib Axes, default=None
            For the objective and for the gap; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
        """
        fitted = drawing.last_step(estimator, "history_")
        names = drawing.problem_names(fitted.classes_, fitted.multi_class_)
        if len(fitted.history_) < len(names):  # exclusivity > 1: one descent for all problems
            names = ["all problems together"]
        histories = fitted.history_[: len(names)]
        return cls(histories, names, tol=fitted.tol).plot(axes=axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            For the objective and for the gap; None makes a figure.

        Returns
        -------
        self : ConvergenceDisplay
        """
        axes = np.asarray(drawing.new_axes(2, (6.4, 5.4)) if axes is None else axes)
        if axes.shape != (2,):
            raise ValueError(f"axes must be two axes, for objective and gap; got shape {axes.shape}.")
        above, below = axes
        floor = _LEAST_GAP if self.tol is None else max(_FAR_BELOW * self.tol, _LEAST_GAP)
        for number, (history, name) in enumerate(zip(self.histories, self.names, strict=True)):
            iterations = np.arange(1, len(history) + 1)
            style = {
                "color": drawing.COLOURS[number % len(drawing.COLOURS)],
                "linestyle": ("-", "--", ":")[number // len(drawing.COLOURS) % 3],
                "marker": "o" if len(history) <= 30 else "",
                "markersize": 3.5,
            }
            above.plot(iterations, history.objective, label=name, **style)
            below.plot(iterations, np.maximum(history.gap, floor), **style)
        self._finish(above, below)
        self.axes_, self.figure_ = axes, above.figure
        return self

    def _finish(self, above: Any, below: Any) -> None:
        for ax in (above, below):
            drawing.tidy(ax)
            ax.xaxis.get_major_locator().set_params(integer=True)
        above.set_ylabel("objective")
        below.set_ylabel("relative duality gap")
        below.set_xlabel("iteration")
        gaps = np.concatenate([history.gap for history in self.histories])
        if np.any(np.isfinite(gaps)):
            below.set_yscale("log")
            if self.tol is not None:
                below.axhline(
                    self.tol, color=drawing.QUIET, linestyle="--", linewidth=1.2, label=f"tol = {self.tol:g}"
                )
                drawing.legend(below, outside=False)
        else:
            below.set_yticks([])
            below.text(0.5, 0.5, "no certificate for exclusivity > 1", ha="center", transform=below.transAxes)
        if len(self.names) == 1:
            above.set_title(self.names[0], fontsize="medium", loc="left")
        else:
            drawing.legend(above, outside=len(self.names) > 4)
