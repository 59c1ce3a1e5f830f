"""From validated arrays to binary ERM problems: weights, classes, one-vs-rest and one-vs-one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.problem import DesignMatrix
from exclusivity.problem.arrays import Floats, Matrix

# Sums of squares of the features must stay finite, with room for rows, weights and costs.
_LARGEST_FEATURE = 1e140


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Rows of positive weight, their class numbers and their weights."""

    X: Matrix
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    weights: Floats


@dataclass(frozen=True, eq=False)
class BinaryTask:
    """One binary problem: its rows as a design matrix, labels -1/+1, weights, and a name for messages."""

    name: str
    design: DesignMatrix
    labels: Floats
    weights: Floats


def sample_weights(given: Any, n_rows: int) -> Floats:
    """The sample weights as float64: one per row, finite, not negative, not all zero."""
    if given is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one value per row, shape ({n_rows},); got shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)):
        raise ValueError("sample_weight contains NaN or infinity.")
    if np.any(weights < 0):
        raise ValueError("sample_weight must not be negative.")
    if not np.any(weights):
        raise ValueError("sample_weight is zero for every row: nothing to learn from.")
    return weights


def training_set(X: Matrix, y: NDArray[Any], weights: Floats, class_weight: Any) -> TrainingSet:
    """Leave out rows of weight 0, number the classes, multiply class weights in."""
    if not np.all(weights):
        keep = np.flatnonzero(weights)
        X, y, weights = X[keep], y[keep], weights[keep]
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "A classifier needs at least 2 classes in y; these rows have one class only: "
            f"{classes.tolist()[0]!r}."
        )
    _check_scale(X)
    factors = class_weights(class_weight, classes, codes, weights)
    return TrainingSet(X, codes, classes, weights * factors[codes])


def class_weights(given: Any, classes: NDArray[Any], codes: NDArray[np.intp], weights: Floats) -> Floats:
    """One factor per class; "balanced" gives every class the same total weight, sample weights counted."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        totals = np.bincount(codes, weights=weights)
        return np.asarray(weights.sum() / (len(classes) * totals))
    if not isinstance(given, Mapping):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a mapping of class to weight; got {given!r}."
        )
    unknown = [label for label in given if label not in classes]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class in y: {classes.tolist()}.")
    try:
        factors = np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"class_weight must map classes to numbers; got {dict(given)!r}.") from error
    if not np.all(np.isfinite(factors) & (factors > 0)):
        raise ValueError(f"class_weight must be positive and finite; got {dict(given)!r}.")
    return factors


def binary_tasks(data: TrainingSet, multi_class: str) -> list[BinaryTask]:
    """Two classes: one task, the second class positive. More: one per class, or one per pair.

    One-vs-rest tasks share one design matrix and one weight array, hence one factorisation. In
    one-vs-one the first class of a pair is positive, as in ``SVC``.
    """
    names = [str(label) for label in data.classes]
    if len(names) > 2 and multi_class == "ovo":
        return [_pair_task(data, i, j, names) for i, j in combinations(range(len(names)), 2)]
    design = DesignMatrix(data.X)
    positives = range(len(names)) if len(names) > 2 else [1]
    return [
        BinaryTask(
            name=f"{names[c]} against the rest" if len(names) > 2 else f"{names[1]} against {names[0]}",
            design=design,
            labels=np.where(data.codes == c, 1.0, -1.0),
            weights=data.weights,
        )
        for c in positives
    ]


def _pair_task(data: TrainingSet, i: int, j: int, names: list[str]) -> BinaryTask:
    rows = np.flatnonzero((data.codes == i) | (data.codes == j))
    return BinaryTask(
        name=f"{names[i]} against {names[j]}",
        design=DesignMatrix(data.X[rows]),
        labels=np.where(data.codes[rows] == i, 1.0, -1.0),
        weights=data.weights[rows],
    )


def _check_scale(X: Matrix) -> None:
    # Not abs(X).max(): that would be a second X in memory.
    largest = max(float(X.max()), -float(X.min())) if X.size else 0.0
    if largest > _LARGEST_FEATURE:
        raise ValueError(
            f"X has values as large as {largest:.1e}, whose squares leave the range of floating point; "
            "scale the features first (for example with StandardScaler or MaxAbsScaler)."
        )
