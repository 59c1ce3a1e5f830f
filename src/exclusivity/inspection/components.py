"""ComponentsDisplay: the features that each member uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.inspection import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from sklearn.base import BaseEstimator

# Room that a label needs to be read.
_POINTS_PER_TICK = 11.0


class ComponentsDisplay:
    """Plot the weights of the members as a heat map, members by features.

    Members that are all equal (the optimum for ``exclusivity <= 1``) are drawn once, and the title says so.

    Parameters
    ----------
    weights : array-like of shape (n_members, n_features)
        Weights of one binary problem.
    feature_names : sequence of str
        Names of the features.
    title : str, default=""
        The name of the binary problem.

    Attributes
    ----------
    ax_, figure_, image_, colorbar_ : Axes, Figure, AxesImage, Colorbar
        The parts of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.inspection import ComponentsDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ERMClassifier(5, exclusivity=np.inf, random_state=0).fit(scale(X), y)
    >>> display = ComponentsDisplay.from_estimator(clf)  # doctest: +SKIP
    """

    def __init__(self, weights: ArrayLike, feature_names: Sequence[str], *, title: str = "") -> None:
        weights = np.asarray(weights)
        if weights.ndim != 2 or weights.shape[1] != len(feature_names):
            raise ValueError(
                f"weights must be members by features, with {len(feature_names)} features as named; got "
                f"shape {weights.shape}."
            )
        # A row that is repeated by a stride of zero stays one row in memory.
        rows = weights[:1] if weights.strides[0] == 0 else weights
        self.weights = np.broadcast_to(rows.astype(float), weights.shape)
        self.feature_names, self.title = list(feature_names), title

    @property
    def members_are_equal(self) -> bool:
        """Say whether all members have the same weights."""
        return bool(self.weights.strides[0] == 0 or np.all(self.weights == self.weights[0]))

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        problem: int = 0,
        feature_names: object = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the members of a fitted classifier, or of a pipeline that ends with one.

        Parameters
        ----------
        estimator : ERMClassifier, ERMClassifierCV or Pipeline
            Fitted.
        problem : int, default=0
            The number of the binary problem.
        feature_names : sequence of str, default=None
            Names of the features; None takes those seen in ``fit``.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        display : ComponentsDisplay
        """
        fitted = drawing.last_step(estimator, "components_")
        drawing.check_number("problem", problem, len(fitted.components_))
        display = cls(
            fitted.components_[problem],
            drawing.feature_names(estimator, feature_names),
            title=drawing.problem_names(fitted.classes_, fitted.multi_class_)[problem],
        )
        return display.plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        display : ComponentsDisplay
        """
        n_members, n_features = self.weights.shape
        rows = self.weights[:1] if self.members_are_equal else self.weights
        if ax is None:
            size = np.clip(0.25 * n_features + 2, 5, 12), np.clip(0.25 * len(rows) + 2, 2.4, 9)
            ax = drawing.new_figure(size).subplots()
        limit = float(np.abs(rows).max()) or 1.0
        # Zero is white: features that a member does not use are invisible.
        self.image_ = ax.imshow(
            rows, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
        )
        self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, label="weight", pad=0.02)
        _set_ticks(ax.xaxis, [drawing.cut(name) for name in self.feature_names])
        if max(map(len, self.feature_names)) > 2:
            ax.tick_params(axis="x", rotation=90)
        note = ""
        if self.members_are_equal and n_members > 1:
            note = f"{n_members} equal members, drawn once"
            ax.set_yticks([])
        else:
            _set_ticks(ax.yaxis, [str(k) for k in range(n_members)])
            ax.set_ylabel("member")
        drawing.title(ax, " · ".join(filter(None, (self.title, note))))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _set_ticks(axis: Axis, labels: Sequence[str]) -> None:
    """Show all labels if they can be read, else every second, fifth, tenth, ..."""
    box = axis.axes.get_window_extent()
    points = 72 * (box.width if axis is axis.axes.xaxis else box.height) / axis.axes.figure.dpi
    most = max(2, int(points / _POINTS_PER_TICK))
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000, 10**9) if len(labels) / step <= most)
    places = range(0, len(labels), step)
    axis.set_ticks(places, labels=[drawing.literal(labels[i]) for i in places], fontsize="small")
