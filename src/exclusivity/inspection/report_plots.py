"""The plots of model_report: our displays on axes that belong to no window."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.inspection import drawing
from exclusivity.inspection.additive import AdditiveDisplay
from exclusivity.inspection.batches import by_batches
from exclusivity.inspection.certified import CertifiedAccuracyDisplay
from exclusivity.inspection.components import ComponentsDisplay
from exclusivity.inspection.convergence import ConvergenceDisplay
from exclusivity.inspection.panels import has_interactions
from exclusivity.inspection.path import PathDisplay
from exclusivity.pages import drawn
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.robustness import certify
from exclusivity.tables import TableEncoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


# Drawn at most: more cells than that, and a heat map is megabytes of a picture in which nothing can be seen.
_MOST_FEATURES = 200
_MOST_MEMBERS = 60
_MOST_PROBLEMS = 4
_MOST_CURVES = 24
_SIZE = (5.2, 3.4)


class ReportPlots:
    """The plots of one model.

    Parameters
    ----------
    model : fitted classifier or Pipeline
    feature_names : list of str
    """

    def __init__(self, model: BaseEstimator, feature_names: list[str]) -> None:
        self._model, self._names = model, feature_names
        self._fitted = drawing.last_step(model, "components_")

    def convergence(self) -> tuple[str | None, str]:
        """Objective and, where there is one, the gap, with a caption."""
        proven = bool(np.isfinite(self._fitted.dual_gap_).any())
        display = ConvergenceDisplay.of_problems(self._model, _MOST_CURVES)
        svg = drawn(
            "convergence",
            (5.2, 4.8) if proven else _SIZE,
            lambda axes: _ignored(display.plot(axes=axes)),
            n_rows=2 if proven else 1,
        )
        more = len(self._fitted.history_) - len(display.histories)
        left_out = f"; {more} problems are not drawn" if more > 0 else ""
        return svg, f"Objective{' and relative duality gap' if proven else ''} at every iteration{left_out}."

    def path(self) -> str | None:
        """Scores along C."""
        return drawn("path", _SIZE, lambda ax: _ignored(PathDisplay.from_estimator(self._model, ax=ax)))

    def certified(self, X: Matrix, y: NDArray[Any]) -> tuple[str | None, Floats, Floats]:
        """The certified accuracy curve, drawn and as numbers, and the balanced one."""
        radii = by_batches(self._model, X, lambda rows: certify(self._model, rows))
        predicted = by_batches(self._model, X, self._model.predict)
        plain, balanced = (
            CertifiedAccuracyDisplay.from_predictions(
                radii, y, predicted, balanced=is_balanced, name=name, plot=False
            )
            for is_balanced, name in ((False, "all rows alike"), (True, "balanced: all classes alike"))
        )

        def draw(ax: Axes) -> None:
            plain.plot(ax=ax)
            balanced.plot(ax=ax)
            ax.set_ylabel("certified accuracy")

        return drawn("certified", _SIZE, draw), plain.certified, balanced.certified

    def additive(self, X: object) -> list[tuple[str | None, str]]:
        """What the columns of a table add to the score, with captions, one picture per binary problem.

        Empty unless the model is a pipeline that begins with a TableEncoder, without interactions.
        """
        steps = getattr(self._model, "steps", [])
        if not steps or not isinstance(steps[0][1], TableEncoder) or has_interactions(self._model):
            return []
        below = " Grey: the rows of this report." if X is not None else ""
        plots: list[tuple[str | None, str]] = []
        for problem in range(min(len(self._fitted.components_), _MOST_PROBLEMS)):
            shown = AdditiveDisplay.from_estimator(self._model, X, problem=problem, plot=False)
            svg = drawn(f"additive{problem}", shown.size, partial(_draw_panels, shown))
            n_hidden = len(steps[0][1].columns_) - len(shown.panels)
            more = " Columns that move the score less are left out." if n_hidden > 0 else ""
            caption = f"What each column adds to the score, {shown.title}; a cross is a gap.{below}{more}"
            plots.append((svg, caption))
        return plots

    def components(self) -> list[tuple[str | None, str]]:
        """Heat maps of the members with captions, one per binary problem."""
        weights = self._fitted.components_
        titles = drawing.problem_names(self._fitted.classes_, self._fitted.multi_class_)
        # Equal members cost nothing here, and the display says how many there are.
        n_members = weights.shape[1] if weights.strides[1] == 0 else min(weights.shape[1], _MOST_MEMBERS)
        columns = self._columns(weights)
        left_out = []
        if len(columns) < weights.shape[2]:
            left_out.append(f"the {len(columns)} of {weights.shape[2]} features with the largest weights")
        if n_members < weights.shape[1]:
            left_out.append(f"the first {n_members} of {weights.shape[1]} members")
        plots: list[tuple[str | None, str]] = []
        for problem, title in enumerate(titles[:_MOST_PROBLEMS]):
            drawn_once = weights.strides[1] == 0
            rows = weights[problem, : 1 if drawn_once else n_members][:, columns]
            shown = ComponentsDisplay(
                np.broadcast_to(rows, (n_members, len(columns))) if drawn_once else rows,
                [self._names[j] for j in columns],
                title=title,
            )
            caption = f"Weights of the members, {title}: {', '.join(left_out) or 'all features'}."
            plots.append((self._heat_map(f"components{problem}", shown), caption))
        if len(titles) > _MOST_PROBLEMS:
            plots[-1] = (
                plots[-1][0],
                f"{plots[-1][1]} {len(titles) - _MOST_PROBLEMS} problems are not drawn.",
            )
        return plots

    def _columns(self, weights: Floats) -> Any:
        if weights.shape[2] <= _MOST_FEATURES:
            return np.arange(weights.shape[2])
        unequal = weights[:, :1] if weights.strides[1] == 0 else weights
        size = np.abs(unequal).max(axis=(0, 1))
        return np.sort(np.argsort(-size, kind="stable")[:_MOST_FEATURES])

    def _heat_map(self, name: str, display: ComponentsDisplay) -> str | None:
        n_rows = 1 if display.members_are_equal else len(display.weights)
        width = float(np.clip(0.25 * len(display.feature_names) + 2, 5, 12))
        height = (
            float(np.clip(0.22 * n_rows, 0.6, 7))
            + 0.4
            + 0.075 * min(20, max(map(len, display.feature_names)))
        )
        return drawn(name, (width, height), lambda ax: _ignored(display.plot(ax=ax)))


def _draw_panels(display: AdditiveDisplay, ax: Axes) -> None:
    display.plot(ax.figure)  # type: ignore[arg-type]  # never a part of another figure


def _ignored(_: object) -> None:
    """A display draws when it is made; here nobody asks for the object."""
