"""Documents on a model and its predictions, which ``erm`` prints and the report shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, precision_recall_fscore_support
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from exclusivity._text import printable
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.classifier._ensemble import note
from exclusivity.inspection import drawing

# Numbers of one batch: 16 MB.
_BATCH_NUMBERS = 1 << 21
# Members and problems in a summary: the summary of one takes more memory than the one itself.
_MOST = 10_000
# As a share of the way from a constant prediction to a perfect one, in balanced accuracy.
_LEAST_GAIN = 0.1
_PROBLEM = ("name", "objective", "dual_gap", "iterations", "converged")


def by_batches(model: Any, X: Any, ask: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
    """Ask about every row of X; ask a pipeline about as many at once as its widest step can take.

    A model may have far more features than its rows have values, and an encoder makes many columns of one:
    all rows at once would take the product of the sizes of the model and the data. Sparse rows become dense
    here where a scaler shifts them. ``ask`` returns an answer for each of some rows.

    Examples
    --------
    >>> from exclusivity import ERMClassifier
    >>> model = ERMClassifier(2).fit([[0.0], [1.0]], [0, 1])
    >>> by_batches(model, np.array([[0.1], [0.9]]), model.predict)
    array([0, 1])
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    steps = [step for _, step in model.steps if hasattr(step, "fit")] if isinstance(model, Pipeline) else []
    width = max((max(step.n_features_in_, getattr(step, "_n_features_out", 0)) for step in steps), default=1)
    shifts = sparse.issparse(X) and any(map(_shifts, steps))
    n_rows, step = X.shape[0], max(1, _BATCH_NUMBERS // width)
    answers = []
    for start in range(0, n_rows, step):
        rows = X[start : start + step] if n_rows > step else X
        answers.append(ask(rows.toarray() if shifts else rows))
    return answers[0] if len(answers) == 1 else np.concatenate(answers)


def _shifts(step: Any) -> bool:
    """Say whether a scaler makes other numbers of zeros."""
    is_ranged = type(step).__name__ == "MinMaxScaler"
    return is_ranged or getattr(step, "with_mean", False) or getattr(step, "with_centering", False)


def summarise(model: BaseEstimator, *, feature_names: Any = None, n_strongest: int = 5) -> dict[str, Any]:
    """Summarise a fitted classifier, or a pipeline that ends with one.

    Returns
    -------
    summary : dict
        ``kind``, ``parameters``, ``classes``, ``features`` (their number) and ``problems`` (name, objective,
        dual_gap, iterations and converged of each; the gap is NaN where there is no bound). Of a robust
        additive model ``by_column`` (column and largest_effect_on_score), the largest first. Of other models
        ``steps`` before it, ``chosen_C`` or None, ``members`` (their number), ``note`` (one sentence on them,
        or "") and ``by_member``: its number or "all", features_used, and largest_weights by name; with
        several binary problems the weight of a feature is the largest absolute one. At most 10,000 members
        and problems are kept.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> summary = summarise(ERMClassifier(30).fit(scale(X), y))
    >>> summary["note"], [member["member"] for member in summary["by_member"]]
    ('30 equal members = one SVM at cost C/30', ['all'])
    """
    last = model[-1] if hasattr(model, "steps") else model
    is_robust = isinstance(last, RobustAdditiveClassifier)
    if is_robust:
        check_is_fitted(last)
    fitted = last if is_robust else drawing.last_step(model, "components_")
    names = drawing.duel_names(fitted) if is_robust else drawing.history_names(fitted)
    ends = (fitted.objective_, fitted.dual_gap_, fitted.n_iter_, fitted.converged_)
    problems = zip(names[:_MOST], *(end.tolist() for end in ends), strict=False)
    before: dict[str, Any] = {}
    members: dict[str, Any] = {}
    if is_robust:
        parts = {"by_column": _by_column(fitted, feature_names)}
    else:
        steps = [step for _, step in model.steps[:-1]] if hasattr(model, "steps") else []
        steps = [step for step in steps if step is not None and step != "passthrough"]
        before = {"steps": list(map(repr, steps)), "chosen_C": getattr(fitted, "C_", None)}
        members = {"members": fitted.components_.shape[1], "note": note(fitted)}
        names = drawing.feature_names(model, feature_names)
        parts = {"by_member": _by_member(fitted.components_, names, n_strongest)}
    return {
        "kind": type(fitted).__name__,
        **before,
        "parameters": fitted.get_params(deep=False),
        "classes": fitted.classes_.tolist(),
        "features": fitted.n_features_in_,
        **members,
        "problems": [dict(zip(_PROBLEM, problem, strict=True)) for problem in problems],
        **parts,
    }


def _by_column(model: RobustAdditiveClassifier, names: Any) -> list[dict[str, Any]]:
    starts = np.cumsum([0, *(column.n_points for column in model.columns_)])[:-1]
    largest, smallest = (each.reduceat(model.points_, starts, axis=1) for each in (np.maximum, np.minimum))
    effects = (largest - smallest).max(axis=0)
    if names is None:
        names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return [
        {"column": str(names[place]), "largest_effect_on_score": float(effects[place])}
        for place in np.argsort(-effects, kind="stable")
    ]


def _by_member(weights: Any, names: list[str], n_strongest: int) -> list[dict[str, Any]]:
    n_members, members = weights.shape[1], []
    # Members that are stored once have a stride of zero.
    are_equal = weights.strides[1] == 0 or bool(np.all(weights == weights[:, :1]))
    for number in range(1 if are_equal else min(n_members, _MOST)):
        own = weights[:, number]
        size = np.abs(own).max(axis=0)
        values = own[0] if len(own) == 1 else size
        largest = [j for j in np.argsort(-size, kind="stable")[:n_strongest] if size[j] > 0]
        title = "all" if are_equal and n_members > 1 else number
        strongest = {names[j]: float(values[j]) for j in largest}
        member = {"member": title, "features_used": int((size > 0).sum()), "largest_weights": strongest}
        members.append(member)
    return members


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
