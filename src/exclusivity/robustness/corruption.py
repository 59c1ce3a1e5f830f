"""Scores of any classifier on rows of which k features are broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.utils import check_array, check_random_state

from exclusivity._typing import Floats, Matrix, RandomState
from exclusivity.classifier._validation import check_choice, check_number, group_codes

KINDS = ("outliers", "swapped", "stuck", "missing")


def corrupt(
    X: Matrix,
    k: int,
    kind: str = "outliers",
    *,
    reference: object = None,
    feature_groups: object = None,
    size: float = 20.0,
    same_for_all: bool = False,
    random_state: RandomState = None,
) -> Matrix:
    """Return a copy of X in which ``k`` features of every row are broken.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Finite numbers.
    k : int
        How many features (groups) break.
    kind : {"outliers", "swapped", "stuck", "missing"}, default="outliers"
        "outliers": moved up or down by ``size`` standard deviations. "swapped": the value that another row of
        the reference has there. "stuck": one constant per column, its value in some row of the reference.
        "missing": filled with the mean, as an imputer does.
    reference : array-like, default=None
        The rows that means, deviations and other values are taken from, as a rule the training rows; None: X.
    feature_groups : sequence of labels, callable or None, default=None
        Columns that break together, as for :class:`~exclusivity.ERMClassifier`.
    size : float, default=20.0
        The size of outliers in standard deviations.
    same_for_all : bool, default=False
        Whether the same features break in every row (a sensor fails), or others in each.
    random_state : int, RandomState or None, default=None
        Decides what breaks and how.

    Returns
    -------
    broken : ndarray or DataFrame
        Like X.

    Examples
    --------
    >>> corrupt(np.zeros((2, 4)), 1, reference=np.eye(4), size=10, random_state=0).round(1).tolist()
    [[0.0, 0.0, 0.0, 4.3], [-4.3, 0.0, 0.0, 0.0]]
    """
    values = check_array(X, dtype=np.float64, input_name="X")
    base = values if reference is None else check_array(reference, dtype=np.float64, input_name="reference")
    if base.shape[1] != values.shape[1]:
        raise ValueError(f"reference has {base.shape[1]} columns and X has {values.shape[1]}.")
    check_choice({"kind": kind}, "kind", KINDS)
    rng = check_random_state(random_state)
    names = np.asarray(X.columns, dtype=object) if hasattr(X, "iloc") else None
    groups = group_codes(feature_groups, values.shape[1], names)
    n_groups = int(groups.max()) + 1
    check_number({"k": k}, "k", least=0, integer=True)
    if k > n_groups:
        raise ValueError(f"k={k}, but there are only {n_groups} features (groups) to break.")
    ranks = rng.random_sample((1 if same_for_all else len(values), n_groups)).argsort(axis=1).argsort(axis=1)
    is_broken = (ranks < k)[:, groups]
    broken = np.where(is_broken, _replacement(kind, values, base, size, rng), values)
    if hasattr(X, "iloc"):
        return type(X)(broken, columns=X.columns, index=X.index)
    return broken


@dataclass(frozen=True, eq=False)
class CorruptionCurve:
    """Scores of a classifier on rows with broken features.

    Attributes
    ----------
    ks : tuple of int
        Numbers of broken features.
    kinds : tuple of str
        Kinds of damage.
    scores : ndarray of shape (n_kinds, n_ks, n_repeats)
    """

    ks: tuple[int, ...]
    kinds: tuple[str, ...]
    scores: Floats

    @property
    def mean(self) -> Floats:
        """Return means over the repeats, (n_kinds, n_ks)."""
        return np.asarray(self.scores.mean(axis=2))


def corruption_curve(
    estimator: BaseEstimator,
    X: Matrix,
    y: object,
    *,
    ks: Sequence[int] = (0, 1, 2, 3),
    kinds: Sequence[str] = KINDS,
    n_repeats: int = 5,
    balanced: bool = False,
    random_state: RandomState = None,
    **damage: Any,
) -> CorruptionCurve:
    """Measure the accuracy of any fitted classifier when k features of every row break.

    The same ``random_state`` breaks the same values for every classifier, so that curves can be compared.

    Parameters
    ----------
    estimator : fitted classifier
        Anything with ``predict``.
    X : array-like or DataFrame of shape (n_samples, n_features)
        Rows that it was not trained on.
    y : array-like of shape (n_samples,)
        Their labels.
    ks : sequence of int, default=(0, 1, 2, 3)
        Numbers of broken features.
    kinds : sequence of str
        Kinds of damage, see :func:`corrupt`.
    n_repeats : int, default=5
        How often the damage is drawn.
    balanced : bool, default=False
        Balanced accuracy instead of accuracy.
    random_state : int, RandomState or None, default=None
        Decides all damage.
    **damage : dict
        Other parameters of :func:`corrupt`: ``reference``, ``feature_groups``, ``size``, ``same_for_all``.

    Returns
    -------
    curve : CorruptionCurve

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> corruption_curve(DummyClassifier().fit(X, y), X, y, ks=[0, 5], balanced=True, random_state=0).mean[0]
    array([0.5, 0.5])
    """
    score: Callable[[Any, Any], float] = balanced_accuracy_score if balanced else accuracy_score
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_repeats)

    def one(kind: str, k: int, seed: int) -> float:
        rows = corrupt(X, k, kind, random_state=int(seed), **damage)
        return float(score(y, estimator.predict(rows)))

    scores = np.array([[[one(kind, k, seed) for seed in seeds] for k in ks] for kind in kinds])
    return CorruptionCurve(tuple(ks), tuple(kinds), scores)


def _replacement(kind: str, values: Floats, base: Floats, size: float, rng: np.random.RandomState) -> Floats:
    if kind == "missing":
        return np.asarray(base.mean(axis=0))
    if kind in ("stuck", "swapped"):
        size_of_draw = base.shape[1] if kind == "stuck" else values.shape
        return np.asarray(base[rng.randint(len(base), size=size_of_draw), np.arange(base.shape[1])])
    signs = rng.choice([-1.0, 1.0], size=values.shape)
    return np.asarray(values + size * signs * base.std(axis=0))
