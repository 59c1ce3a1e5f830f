"""PathDisplay: scores or coefficients against C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from exclusivity.classifier import ERMPath
from exclusivity.inspection import drawing
from exclusivity.problem.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PathDisplay:
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

    def plot(self, ax: Axes | None = None, *, n_labels: int = 6) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.
        n_labels : int, default=6
            How many of the largest coefficients get a colour and their name; the others are grey.

        Returns
        -------
        display : PathDisplay
        """
        ax = drawing.new_figure().subplots() if ax is None else ax
        drawing.tidy(ax)
        order = np.argsort(self.Cs)
        if self.scores is not None:
            self._plot_scores(ax, self.Cs[order], self.scores[:, order])
        elif self.coefs is not None:
            self._plot_coefs(ax, self.Cs[order], self.coefs[order], n_labels)
        ax.set(xscale="log", xlabel="C")
        if self.best_C is not None:
            label = f"C = {self.best_C:.3g}"
            ax.axvline(self.best_C, color=drawing.QUIET, linestyle="--", linewidth=1.2, label=label)
        if ax.get_legend_handles_labels()[0]:
            drawing.legend(ax, outside=self.coefs is not None)
        if self.title is not None:
            drawing.title(ax, self.title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_scores(self, ax: Axes, Cs: Floats, scores: Floats) -> None:
        mean, spread, colour = scores.mean(axis=0), scores.std(axis=0), drawing.COLOURS[0]
        ax.plot(Cs, mean, color=colour, marker="o", markersize=3.5, label=f"mean of {len(scores)} folds")
        if len(scores) > 1:
            style: Any = {"color": colour, "alpha": 0.15, "linewidth": 0, "label": "± 1 standard deviation"}
            ax.fill_between(Cs, mean - spread, mean + spread, **style)
        ax.set_ylabel(self.score_name)

    def _plot_coefs(self, ax: Axes, Cs: Floats, coefs: Floats, n_labels: int) -> None:
        names = self.feature_names or [f"feature {j}" for j in range(coefs.shape[1])]
        by_size = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")
        n_labels = min(n_labels, len(drawing.COLOURS))
        ax.plot(Cs, coefs[:, by_size[n_labels:]], color="#c8c8c8", linewidth=0.8)
        for colour, j in zip(drawing.COLOURS, by_size[:n_labels], strict=False):
            label = drawing.literal(drawing.cut(names[j]))
            ax.plot(Cs, coefs[:, j], color=colour, linewidth=1.6, label=label)
        ax.axhline(0, color="#555555", linewidth=0.8)
        ax.set_ylabel("coefficient")
