"""CertifiedAccuracyDisplay: what stays right when features break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from exclusivity.inspection import drawing
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.robustness import certified_accuracy_curve, certify

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

# Above, matplotlib chooses some of the radii.
_MOST_TICKS = 20


class CertifiedAccuracyDisplay:
    """Certified accuracy at r = 0, 1, 2, ... broken features.

    Build it with :meth:`from_estimator` or :meth:`from_predictions`; the data are in the attributes, drawing
    happens in :meth:`plot` (needs matplotlib).

    Parameters
    ----------
    certified : array-like of shape (max_radius + 1,)
        Certified accuracy at every r.
    balanced : bool, default=False
        Whether that is balanced accuracy.
    accuracy : float, default=None
        Plain (or balanced) accuracy of the predictions, drawn as a mark at r = 0.
    name : str, default=None
        What to call the classifier in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After :meth:`plot`.
    line_ : matplotlib Line2D
        The curve.

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

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(
        self,
        certified: object,
        *,
        balanced: bool = False,
        accuracy: float | None = None,
        name: str | None = None,
    ) -> None:
        self.certified: Floats = np.asarray(certified, dtype=float)
        self.balanced, self.accuracy, self.name = balanced, accuracy, name

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Matrix,
        y: ArrayLike,
        *,
        balanced: bool = False,
        max_radius: int | None = None,
        name: str | None = None,
        plot: bool = True,
        ax: Axes | None = None,
        **kwargs: object,
    ) -> Self:
        """Certify the predictions of a fitted classifier or pipeline, and draw.

        Parameters
        ----------
        estimator : fitted classifier or Pipeline
            Anything that :func:`exclusivity.robustness.certify` takes.
        X, y : rows and labels
            As a rule rows that it was not trained on.
        balanced : bool, default=False
            Mean over classes instead of over rows.
        max_radius : int, default=None
            The largest r; None: the first at which nothing is certified.
        name : str, default=None
            For the legend; None: the name of the class.
        plot : bool, default=True
            Whether to draw at once.
        ax : matplotlib Axes, default=None
            Where to draw; None: a new figure.
        **kwargs : dict
            For ``Axes.plot``.

        Returns
        -------
        display : CertifiedAccuracyDisplay
        """
        name = type(estimator).__name__ if name is None else name
        radii, predicted = certify(estimator, X), estimator.predict(X)
        return cls.from_predictions(
            radii,
            y,
            predicted,
            balanced=balanced,
            max_radius=max_radius,
            name=name,
            plot=plot,
            ax=ax,
            **kwargs,
        )

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
        **kwargs: Any,
    ) -> Self:
        """The same from radii that are known already.

        Parameters
        ----------
        radii : array-like of shape (n_samples,)
            What ``certify`` said.
        y_true, y_pred : array-like of shape (n_samples,)
            True and predicted labels.
        balanced, max_radius, name, plot, ax, **kwargs
            As for :meth:`from_estimator`.

        Returns
        -------
        display : CertifiedAccuracyDisplay
        """
        curve = certified_accuracy_curve(radii, y_true, y_pred, max_radius=max_radius, balanced=balanced)
        # A radius of zero for every row: what certified accuracy would be if ties counted.
        plain = certified_accuracy_curve(
            np.zeros(len(np.asarray(radii)), dtype=int), y_true, y_pred, max_radius=0, balanced=balanced
        )
        display = cls(curve, balanced=balanced, accuracy=float(plain[0]), name=name)
        return display.plot(ax=ax, **kwargs) if plot else display

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: object) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None: a new figure.
        name : str, default=None
            For the legend, instead of the display's own.
        **kwargs : dict
            For ``Axes.plot``.

        Returns
        -------
        display : CertifiedAccuracyDisplay
            With ``ax_``, ``figure_`` and ``line_``.
        """
        if ax is None:
            ax = drawing.new_axes()
        radii = np.arange(len(self.certified))
        colour = drawing.COLOURS[len(ax.lines) % len(drawing.COLOURS)]
        style: dict[str, Any] = {
            "color": colour,
            "marker": "o",
            "label": self.name if name is None else name,
            **kwargs,
        }
        (self.line_,) = ax.plot(radii, self.certified, **style)
        if self.accuracy is not None:
            ax.scatter([0], [self.accuracy], marker="x", color=self.line_.get_color())
        word = "balanced accuracy" if self.balanced else "accuracy"
        ax.set(xlabel="features that may take any value", ylabel=f"certified {word}")
        if len(radii) <= _MOST_TICKS:
            ax.set_xticks(radii)
        ax.set_ylim(0, 1.02)
        drawing.tidy(ax)
        if style["label"] is not None:
            drawing.legend(ax, outside=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
