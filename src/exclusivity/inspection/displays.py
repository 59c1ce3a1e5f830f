"""Displays of fits and votes: convergence, members, scores along C, certified accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from exclusivity._typing import Floats, Matrix
from exclusivity.classifier import ERMPath
from exclusivity.inspection import drawing
from exclusivity.robustness.certificates import certified_accuracy, certified_accuracy_curve, certify
from exclusivity.solvers import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from sklearn.base import BaseEstimator

# A log axis has no place for a gap of zero: gaps far below the tolerance are drawn at its bottom.
_FAR_BELOW, _LEAST_GAP = 1e-4, 1e-16
# Room that a label needs to be read.
_POINTS_PER_TICK = 11.0
# Coefficients with a colour and their name, the largest ones; the others are grey.
_MOST_LABELS = 6
# Above, matplotlib chooses some of the radii.
_MOST_TICKS = 20


class ConvergenceDisplay(drawing.Display):
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

    @property
    def size(self) -> tuple[float, float]:
        """Return width and height of a figure, in inches."""
        return 6.4, 5.4 if self._has_gaps else 4.2

    @property
    def _has_gaps(self) -> bool:
        return any(np.any(np.isfinite(history.gap)) for history in self.histories)

    def _draw(self) -> None:
        labels = ["objective", "relative duality gap"][: 1 + self._has_gaps]
        axes = self._region().subplots(len(labels), 1, sharex=True, squeeze=False)[:, 0]
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
        if self._has_gaps:
            axes[1].set_yscale("log")
            if self.tol is not None:
                line = axes[1].axhline(self.tol, color=drawing.QUIET, linestyle="--", linewidth=1.2)
                axes[1].legend([line], [f"tol = {self.tol:g}"], frameon=False, fontsize="small")
        if len(self.names) == 1:
            drawing.title(axes[0], self.names[0])
        else:
            drawing.legend(axes[0], outside=len(self.names) > 4)
        self.axes_ = axes


class ComponentsDisplay(drawing.Display):
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

    @property
    def size(self) -> tuple[float, float]:
        """Return width and height of a figure, in inches: a row and a column need a quarter of one."""
        n_rows, n_features = (1 if self.members_are_equal else len(self.weights)), self.weights.shape[1]
        names = 0.075 * max(map(len, map(drawing.cut, self.feature_names)))
        height = float(np.clip(0.25 * n_rows, 0.6, 7)) + 0.6 + names
        return float(np.clip(0.25 * n_features + 2, 5, 12)), height

    def _draw(self) -> None:
        ax, n_members = self.ax_, len(self.weights)
        rows = self.weights[:1] if self.members_are_equal else self.weights
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


def _set_ticks(axis: Axis, labels: Sequence[str]) -> None:
    """Show all labels if they can be read, else every second, fifth, tenth, ..."""
    box = axis.axes.get_window_extent()
    points = 72 * (box.width if axis is axis.axes.xaxis else box.height) / axis.axes.figure.dpi
    most = max(2, int(points / _POINTS_PER_TICK))
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000, 10**9) if len(labels) / step <= most)
    places = range(0, len(labels), step)
    axis.set_ticks(places, labels=[drawing.literal(labels[i]) for i in places], fontsize="small")


class PathDisplay(drawing.Display):
    """Plot cross-validated scores, or coefficients, against C.

    Build it with :meth:`from_estimator` (scores of an ``ERMClassifierCV``) or :meth:`from_path`
    (coefficients of an ``erm_path``).

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,)
        Values of C.
    scores : array-like of shape (n_folds, n_Cs), default=None
        Scores, drawn as mean and standard deviation.
    best_C : float, default=None
        The chosen C, marked by a line.
    score_name : str, default="score"
        The name of the score.
    coefs : array-like of shape (n_Cs, n_features), default=None
        Coefficients, one line per feature. Give these or ``scores``.
    feature_names : sequence of str, default=None
        Names of the features.
    title : str, default=None
        The name of the binary problem.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The parts of the plot.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import ERMClassifierCV
    >>> from exclusivity.inspection import PathDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ERMClassifierCV(cv=3, Cs=5).fit(scale(X), y)
    >>> display = PathDisplay.from_estimator(clf)  # doctest: +SKIP
    """

    def __init__(
        self,
        Cs: ArrayLike,
        *,
        scores: ArrayLike | None = None,
        best_C: float | None = None,
        score_name: str = "score",
        coefs: ArrayLike | None = None,
        feature_names: Any = None,
        title: str | None = None,
    ) -> None:
        if (scores is None) == (coefs is None):
            raise ValueError("PathDisplay needs either scores or coefs; give one of them.")
        self.Cs = np.asarray(Cs, dtype=float)
        self.scores = None if scores is None else np.atleast_2d(np.asarray(scores, dtype=float))
        self.coefs = None if coefs is None else np.asarray(coefs, dtype=float)
        self.best_C, self.score_name, self.title = best_C, score_name, title
        self.feature_names = feature_names

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Plot the scores of a fitted ``ERMClassifierCV``, or of a pipeline that ends with one.

        Parameters
        ----------
        estimator : ERMClassifierCV or Pipeline
            Fitted.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        display : PathDisplay
        """
        fitted = drawing.last_step(estimator, "scores_")
        scoring = fitted.scoring
        name = "accuracy" if scoring is None else scoring if isinstance(scoring, str) else "score"
        display = cls(fitted.Cs_, scores=fitted.scores_, best_C=fitted.C_, score_name=name.replace("_", " "))
        return display.plot(ax=ax)

    @classmethod
    def from_path(
        cls,
        path: ERMPath,
        *,
        problem: int = 0,
        feature_names: object = None,
        best_C: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the coefficients along an ``erm_path``.

        Parameters
        ----------
        path : ERMPath
            The result of ``erm_path``.
        problem : int, default=0
            The number of the binary problem.
        feature_names : sequence of str, default=None
            Names of the features; None takes those seen in training.
        best_C : float, default=None
            A value of C to mark.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        display : PathDisplay
        """
        drawing.check_number("problem", problem, path.coefs.shape[1])
        first = path.classifiers[0]
        display = cls(
            path.Cs,
            coefs=path.coefs[:, problem],
            feature_names=drawing.feature_names(first, feature_names),
            best_C=best_C,
            title=drawing.problem_names(path.classes, first.multi_class_)[problem],
        )
        return display.plot(ax=ax)

    def _draw(self) -> None:
        ax = self.ax_
        drawing.tidy(ax)
        order = np.argsort(self.Cs)
        if self.coefs is not None:
            self._plot_coefs(ax, self.Cs[order], self.coefs[order])
        elif self.scores is not None:
            mean, spread = self.scores.mean(axis=0)[order], self.scores.std(axis=0)[order]
            n_folds, colour = len(self.scores), drawing.COLOURS[0]
            label = f"mean of {n_folds} folds"
            ax.plot(self.Cs[order], mean, color=colour, marker="o", markersize=3.5, label=label)
            if n_folds > 1:
                style: Any = {"alpha": 0.15, "linewidth": 0, "label": "± 1 standard deviation"}
                ax.fill_between(self.Cs[order], mean - spread, mean + spread, color=colour, **style)
            ax.set_ylabel(self.score_name)
        ax.set(xscale="log", xlabel="C")
        if self.best_C is not None:
            label = f"C = {self.best_C:.3g}"
            ax.axvline(self.best_C, color=drawing.QUIET, linestyle="--", linewidth=1.2, label=label)
        if ax.get_legend_handles_labels()[0]:
            drawing.legend(ax, outside=self.coefs is not None)
        if self.title is not None:
            drawing.title(ax, self.title)

    def _plot_coefs(self, ax: Axes, Cs: Floats, coefs: Floats) -> None:
        names = self.feature_names or [f"feature {j}" for j in range(coefs.shape[1])]
        by_size = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")
        ax.plot(Cs, coefs[:, by_size[_MOST_LABELS:]], color="#c8c8c8", linewidth=0.8)
        for colour, j in zip(drawing.COLOURS, by_size[:_MOST_LABELS], strict=False):
            label = drawing.literal(drawing.cut(names[j]))
            ax.plot(Cs, coefs[:, j], color=colour, linewidth=1.6, label=label)
        ax.axhline(0, color="#555555", linewidth=0.8)
        ax.set_ylabel("coefficient")


class CertifiedAccuracyDisplay(drawing.Display):
    """Plot certified accuracy at r = 0, 1, 2, ... broken features.

    Parameters
    ----------
    certified : array-like of shape (max_radius + 1,)
        Certified accuracy at every r.
    balanced : bool, default=False
        Whether that is balanced accuracy.
    accuracy : float, default=None
        Plain (or balanced) accuracy of the predictions, drawn as a mark at r = 0.
    name : str, default=None
        The name of the classifier in the legend.

    Attributes
    ----------
    ax_, figure_, line_ : Axes, Figure, Line2D
        The parts of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> clf = ERMClassifier(9, exclusivity=np.inf, voting="hard", random_state=0).fit(X[::2], y[::2])
    >>> display = CertifiedAccuracyDisplay.from_estimator(clf, X[1::2], y[1::2], plot=False)
    >>> display.certified.shape
    (6,)
    """

    line_: Any

    def __init__(
        self,
        certified: ArrayLike,
        *,
        balanced: bool = False,
        accuracy: float | None = None,
        name: str | None = None,
    ) -> None:
        self.certified: Floats = np.asarray(certified, dtype=float)
        self.balanced, self.accuracy, self.name = balanced, accuracy, name

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: Matrix, y: ArrayLike, *, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Certify the predictions of a fitted classifier or pipeline, and plot.

        Parameters
        ----------
        estimator : fitted classifier or Pipeline
            A :class:`~exclusivity.RobustAdditiveClassifier`, or a model that
            :func:`exclusivity.robustness.certify` takes.
        X, y : rows and labels
            As a rule rows that it was not trained on.
        name : str, default=None
            For the legend; None: the name of the class.
        **kwargs : dict
            ``balanced``, ``max_radius``, ``plot`` and ``ax`` of :meth:`from_predictions`.

        Returns
        -------
        display : CertifiedAccuracyDisplay
        """
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(certify(estimator, X), y, estimator.predict(X), name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        radii: ArrayLike,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        balanced: bool = False,
        max_radius: int | None = None,
        name: str | None = None,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Plot certified radii that are known already.

        Parameters
        ----------
        radii : array-like of shape (n_samples,)
            The result of ``certify``.
        y_true, y_pred : array-like of shape (n_samples,)
            True and predicted labels.
        balanced : bool, default=False
            Mean over classes instead of over rows.
        max_radius : int, default=None
            The largest r; None: the first at which nothing is certified.
        name : str, default=None
            For the legend.
        plot : bool, default=True
            Whether to draw at once.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        display : CertifiedAccuracyDisplay
        """
        curve = certified_accuracy_curve(radii, y_true, y_pred, max_radius=max_radius, balanced=balanced)
        # With a radius of zero for every row, ties included, certified accuracy is plain accuracy.
        accuracy = certified_accuracy(np.zeros_like(radii), y_true, y_pred, balanced=balanced)
        display = cls(curve, balanced=balanced, accuracy=accuracy, name=name)
        return display.plot(ax) if plot else display

    def _draw(self) -> None:
        ax, radii = self.ax_, np.arange(len(self.certified))
        colour = drawing.COLOURS[len(ax.lines) % len(drawing.COLOURS)]
        label = None if self.name is None else drawing.literal(self.name)
        (self.line_,) = ax.plot(radii, self.certified, color=colour, marker="o", label=label)
        if self.accuracy is not None:
            ax.scatter([0], [self.accuracy], marker="x", color=colour)
        word = "balanced accuracy" if self.balanced else "accuracy"
        ax.set(xlabel="features that may take any value", ylabel=f"certified {word}", ylim=(0, 1.02))
        if len(radii) <= _MOST_TICKS:
            ax.set_xticks(radii)
        drawing.tidy(ax)
        if label is not None:
            drawing.legend(ax, outside=False)
