"""Checks and numbering of labels of any type: numbers, strings, objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exclusivity.problem.arrays import Bools, Ints


def prediction_matrix(predictions: ArrayLike) -> NDArray[Any]:
    """The predictions as an array of at least one sample (rows) and two members (columns)."""
    labels = np.asarray(predictions)
    if labels.ndim != 2 or labels.shape[0] < 1 or labels.shape[1] < 2:
        raise ValueError(
            "predictions must have one row per sample and one column per member, at least one sample and "
            f"two members; got shape {labels.shape}."
        )
    _refuse_missing(labels, "predictions")
    return labels


def truth_vector(y_true: ArrayLike, predictions: NDArray[Any]) -> NDArray[Any]:
    """The true labels as a vector that fits ``predictions`` in length and kind."""
    truth = np.asarray(y_true)
    if truth.shape != (len(predictions),):
        raise ValueError(
            f"y_true must hold one label for each of the {len(predictions)} rows of predictions; "
            f"got shape {truth.shape}."
        )
    _refuse_missing(truth, "y_true")
    # Encoded predictions would be compared with names and count as wrong, every one of them.
    if text_kinds(truth).isdisjoint(text_kinds(predictions)):
        raise ValueError(
            f"y_true holds labels such as {truth.flat[0]!r} and predictions such as "
            f"{predictions.flat[0]!r}: one is text and the other is not. Decode the predictions first."
        )
    return truth


def correctness(predictions: ArrayLike, y_true: ArrayLike) -> Bools:
    """Which member is right on which sample, (n_samples, n_members)."""
    labels = prediction_matrix(predictions)
    truth = truth_vector(y_true, labels)
    return np.asarray(labels == truth[:, None], dtype=bool)


def label_codes(labels: NDArray[Any]) -> tuple[Ints, int]:
    """Every label by its place among the distinct labels, and how many of these there are."""
    if labels.dtype.kind != "O":
        names, codes = np.unique(labels.ravel(), return_inverse=True)
        return codes.reshape(labels.shape), len(names)
    # Objects need not have an order of their own; their text gives one that no shuffling changes.
    places = {name: place for place, name in enumerate(sorted(set(labels.flat), key=str))}
    numbers = np.fromiter((places[name] for name in labels.flat), dtype=np.intp, count=labels.size)
    return numbers.reshape(labels.shape), len(places)


def text_kinds(labels: NDArray[Any]) -> set[bool]:
    """{True} for strings, {False} for labels of other types, both for a mixture."""
    if labels.dtype.kind == "O":
        return {isinstance(label, str) for label in labels.flat}
    return {labels.dtype.kind in "UT"}


def _refuse_missing(labels: NDArray[Any], name: str) -> None:
    if labels.dtype.kind in "fO" and bool(np.any(labels != labels)):  # noqa: PLR0124 -- only NaN differs
        raise ValueError(f"{name} contains NaN, which is not a label.")
