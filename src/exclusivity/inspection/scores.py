"""How good predictions are: one table that the command line and the report share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exclusivity.pages.markup import printable
from exclusivity.problem.arrays import Floats, Ints

# Of the way from a constant to perfection, in balanced accuracy: less is hardly better than a constant.
_LEAST_GAIN = 0.1


@dataclass(frozen=True, eq=False)
class Scores:
    """Predictions beside labels.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Every class that was predicted or should have been.
    true, predicted : ndarray of int, shape (n_samples,)
        The place in ``classes`` of every row's label and prediction.

    Examples
    --------
    >>> scores = scores_of(["ill", "ill", "well", "well"], ["ill", "well", "well", "well"])
    >>> scores.accuracy, scores.confusion.tolist(), scores.recall.tolist()
    (0.75, [[1, 1], [0, 2]], [0.5, 1.0])
    """

    classes: NDArray[Any]
    true: Ints
    predicted: Ints

    @property
    def confusion(self) -> Ints:
        """Rows of the true class by predicted class, (n_classes, n_classes): large where there are many."""
        return self.confusion_of(len(self.classes))

    def confusion_of(self, n_classes: int) -> Ints:
        """The same for the first classes only."""
        among = (self.true < n_classes) & (self.predicted < n_classes)
        pairs = self.true[among] * n_classes + self.predicted[among]
        return np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, -1)

    def _counted(self, codes: Ints) -> Ints:
        return np.bincount(codes, minlength=len(self.classes))

    @property
    def _hits(self) -> Ints:
        return self._counted(self.true[self.true == self.predicted])

    @property
    def support(self) -> Ints:
        """Rows of each class."""
        return self._counted(self.true)

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return len(self.true)

    @property
    def accuracy(self) -> float:
        """The share of rows that are right."""
        return float(np.mean(self.true == self.predicted))

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall of the classes that have rows."""
        return float(np.nanmean(self.recall))

    @property
    def most_frequent(self) -> Any:
        """The class with the most rows; of several the first."""
        return self.classes[self.support.argmax()]

    @property
    def constant_accuracy(self) -> float:
        """The accuracy of giving every row the most frequent class."""
        return float(self.support.max() / self.n_rows)

    @property
    def constant_balanced_accuracy(self) -> float:
        """The balanced accuracy of giving every row the same class: one of those that have rows is right."""
        return float(1 / np.count_nonzero(self.support))

    @property
    def hardly_beats_a_constant(self) -> bool:
        """Whether balanced accuracy is less than a tenth of the way from a constant to perfection."""
        least = self.constant_balanced_accuracy
        return bool(least < 1 and self.balanced_accuracy < least + _LEAST_GAIN * (1 - least))

    def caution(self) -> str:
        """A sentence where the classes are hardly told apart, however good the accuracy looks; else none."""
        if not self.hardly_beats_a_constant:
            return ""
        return (
            f"the classes are hardly told apart: {self.balanced_accuracy:.1%} balanced accuracy, where "
            f"always saying {printable(self.most_frequent)} gets {self.constant_balanced_accuracy:.1%} (and "
            f"{self.constant_accuracy:.1%} accuracy, against {self.accuracy:.1%})."
        )

    @property
    def recall(self) -> Floats:
        """The share of each class's rows that are found; NaN for a class without rows."""
        return _ratio(self._hits, self.support)

    @property
    def precision(self) -> Floats:
        """The share of each class's predictions that are right; NaN for a class never predicted."""
        return _ratio(self._hits, self._counted(self.predicted))

    @property
    def f1(self) -> Floats:
        """The harmonic mean of precision and recall."""
        return _ratio(2 * self._hits, self.support + self._counted(self.predicted))


def scores_of(y_true: ArrayLike, y_pred: ArrayLike) -> Scores:
    """Compare predictions with labels.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Labels of one type: all numbers, or all text.

    Returns
    -------
    scores : Scores
        Accuracy, balanced accuracy, and the numbers of every class.

    Examples
    --------
    >>> from exclusivity.inspection import scores_of
    >>> scores_of([1, 1, 2, 2], [1, 2, 2, 2]).balanced_accuracy
    0.75
    """
    true, predicted = np.asarray(y_true), np.asarray(y_pred)
    if true.shape != predicted.shape or true.ndim != 1 or not len(true):
        raise ValueError(
            "y_true and y_pred must be one-dimensional and of the same length, at least 1; got shapes "
            f"{true.shape} and {predicted.shape}."
        )
    are_numbers = [values.dtype.kind in "biuf" for values in (true, predicted)]
    if are_numbers[0] != are_numbers[1]:
        kinds = ["numbers" if numeric else "text" for numeric in are_numbers]
        raise ValueError(
            f"the labels are {kinds[0]} (such as {true[0]!r}), the model predicts {kinds[1]} (such as "
            f"{predicted[0]!r}); give labels of the kind that it was fitted to."
        )
    classes, codes = np.unique(np.concatenate([true, predicted]), return_inverse=True)
    return Scores(classes, codes[: len(true)], codes[len(true) :])


def _ratio(above: NDArray[Any], below: NDArray[Any]) -> Floats:
    share: Floats = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0, dtype=float)
    return share
