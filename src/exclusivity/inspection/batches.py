"""Ask a fitted model about some rows at a time, so that what its steps make of them fits in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

# Numbers of one batch: 16 MB.
_BATCH_NUMBERS = 1 << 21


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
