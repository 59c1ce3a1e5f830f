"""Metrics of predictions: the document that ``erm evaluate --json`` prints and the report shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.metrics import accuracy_score, precision_recall_fscore_support
from sklearn.utils import column_or_1d

from exclusivity._text import printable

# As a share of the way from a constant prediction to a perfect one, in balanced accuracy.
_LEAST_GAIN = 0.1


def scores_of(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, Any]:
    """Compare predictions with labels, both numbers or both text.

    Returns
    -------
    scores : dict
        ``rows``, ``accuracy``, ``balanced_accuracy`` (the mean recall of the classes that have rows),
        ``constant`` (the most frequent class and both accuracies of always predicting it), ``classes``
        (class, rows, precision, recall and F1, NaN where undefined) and ``confusion_matrix``. The matrix is
        sparse: a model may predict another class for every row, and the dense one has all pairs of classes.

    Examples
    --------
    >>> scores = scores_of(["ill", "ill", "well", "well"], ["ill", "well", "well", "well"])
    >>> scores["accuracy"], scores["confusion_matrix"].toarray().tolist()
    (0.75, [[1, 1], [0, 2]])
    """
    true, predicted = column_or_1d(y_true), column_or_1d(y_pred)
    are_numbers = [values.dtype.kind in "biuf" for values in (true, predicted)]
    if are_numbers[0] != are_numbers[1]:
        kinds = ["numbers" if numeric else "text" for numeric in are_numbers]
        raise ValueError(
            f"the labels are {kinds[0]} (such as {true[0]!r}), the model predicts {kinds[1]} (such as "
            f"{predicted[0]!r}); give labels of the kind that it was fitted to."
        )
    classes, codes = np.unique(np.concatenate([true, predicted]), return_inverse=True)
    pair, labels = (codes[: len(true)], codes[len(true) :]), np.arange(len(classes))
    metrics = precision_recall_fscore_support(*pair, labels=labels, zero_division=np.nan)
    precision, recall, f1, support = (values.tolist() for values in metrics)
    names = classes.tolist()
    return {
        "rows": len(true),
        "accuracy": float(accuracy_score(*pair)),
        "balanced_accuracy": float(np.nanmean(recall)),
        "constant": {
            "class": names[int(np.argmax(support))],
            "accuracy": max(support) / len(true),
            "balanced_accuracy": 1 / np.count_nonzero(support),
        },
        "classes": [
            dict(zip(("class", "rows", "precision", "recall", "f1"), values, strict=True))
            for values in zip(names, support, precision, recall, f1, strict=True)
        ],
        "confusion_matrix": sparse.csr_array((np.ones_like(pair[0]), pair), shape=2 * (len(classes),)),
    }


def caution(scores: dict[str, Any]) -> str:
    """Return a warning if the predictions hardly beat a constant, else an empty text."""
    constant, balanced = scores["constant"], scores["balanced_accuracy"]
    least = constant["balanced_accuracy"]
    if least == 1 or balanced >= least + _LEAST_GAIN * (1 - least):
        return ""
    return (
        f"the classes are hardly distinguished: {balanced:.1%} balanced accuracy, where always saying "
        f"{printable(constant['class'])} gets {least:.1%} (and {constant['accuracy']:.1%} accuracy, against "
        f"{scores['accuracy']:.1%})."
    )
