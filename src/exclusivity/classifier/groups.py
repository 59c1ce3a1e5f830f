"""Feature groups: which columns of X belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.problem.arrays import Ints


def group_codes(feature_groups: object, n_features: int, names: NDArray[Any] | None) -> Ints:
    """One number per column, 0 to n_groups - 1 in the order of first appearance.

    Parameters
    ----------
    feature_groups : None, sequence of labels, or callable
        None: every column is a group of its own. A callable is given the array of column names.
    n_features : int
    names : ndarray of str or None
        The column names seen in ``fit``, if there were any.

    Examples
    --------
    >>> group_codes(["engine", "brake", "engine"], 3, None)
    array([0, 1, 0])
    """
    if feature_groups is None:
        return np.arange(n_features)
    labels = feature_groups
    if callable(feature_groups):
        if names is None:
            raise ValueError(
                "feature_groups is a callable from column names to labels, but X has no column names; fit "
                "on a DataFrame with string columns, or give one label per column."
            )
        labels = feature_groups(names)
    return _numbered(_as_list(labels), n_features)


def _as_list(labels: Any) -> list[Any]:
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        raise TypeError(
            "feature_groups must be None, a sequence with one label per column, or a callable that makes one "
            f"from the column names; got {labels!r}."
        )
    if np.ndim(labels) != 1:
        raise ValueError(f"feature_groups must be one-dimensional; got {np.ndim(labels)} dimensions.")
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def _numbered(labels: list[Any], n_features: int) -> Ints:
    if len(labels) != n_features:
        raise ValueError(
            f"feature_groups must have one label per column: X has {n_features} columns, and "
            f"{len(labels)} labels were given."
        )
    # NaN is unlike itself: columns without a label would become groups of their own without a word.
    if any(label is None or label != label for label in labels):  # noqa: PLR0124
        raise ValueError("feature_groups has a missing label (None or NaN); give every column a label.")
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.intp)
