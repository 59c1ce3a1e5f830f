"""What a certificate needs of a fitted ensemble: who votes for what, and which columns reach whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from exclusivity.classifier import UNDECIDED, DoubtOf
from exclusivity.diversity import members_of
from exclusivity.problem.arrays import Bools, Ints, Matrix
from exclusivity.robustness.sources import column_sources


@dataclass(frozen=True, eq=False)
class Electorate:
    """A fitted classifier that decides by the majority of members on some columns each.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    supports : ndarray of bool, shape (n_members, n_columns)
        Which member uses which of the model's columns.
    groups : ndarray of int, shape (n_columns,)
        What may break as a whole: the number of each column's feature group.
    votes : callable
        From rows to the number of the class that each member votes for, (n_samples, n_members); ``UNDECIDED``
        where rounding might turn the vote.
    """

    classes: NDArray[Any]
    supports: Bools
    groups: Ints
    votes: Callable[[Any], Ints]


def electorate_of(estimator: BaseEstimator) -> Electorate:
    """The voters of a fitted estimator; an error that says what is missing if there is no majority."""
    if hasattr(estimator, "best_estimator_"):
        return electorate_of(estimator.best_estimator_)
    if isinstance(estimator, Pipeline):
        return _behind_steps(estimator)
    check_is_fitted(estimator)
    if isinstance(estimator, BaggingClassifier):
        return _bagging(estimator)
    if not hasattr(estimator, "_certain_votes"):
        raise TypeError(
            f"There is no certificate for {type(estimator).__name__}: it needs members that vote on "
            "features of their own. Give an ERMClassifier with voting='hard', a "
            "FeaturePartitionClassifier, a BaggingClassifier whose members have no predict_proba, or a "
            "Pipeline that ends in one of these."
        )
    if getattr(estimator, "voting", "hard") != "hard":
        raise ValueError(
            f"certify needs voting='hard', and this classifier has voting={estimator.voting!r}: one broken "
            "feature moves a mean of margins as far as it likes. Call set_params(voting='hard'); no new fit "
            "is needed."
        )
    return Electorate(estimator.classes_, estimator.supports_, estimator.groups_, estimator._certain_votes)


def _behind_steps(pipeline: BaseEstimator) -> Electorate:
    """The voters of the last step, asked about rows of the pipeline; columns of one source break together."""
    inner, head = electorate_of(pipeline[-1]), pipeline[:-1]
    if all(step in (None, "passthrough") for _, step in head.steps):
        return inner
    sources = column_sources(head)
    return replace(
        inner,
        groups=joined(inner.groups, sources),
        votes=lambda X: inner.votes(head.transform(X)),
    )


def joined(groups: Ints, sources: Ints) -> Ints:
    """The finest grouping that keeps together columns of one group and columns of one source.

    Examples
    --------
    >>> joined(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 2]))
    array([0, 0, 1, 1])
    """
    # Every column takes the lowest number among its group and its source until nothing changes any more.
    numbers = np.arange(len(groups))
    while True:
        before = numbers
        for codes in (groups, sources):
            lowest = np.full(int(codes.max()) + 1, len(groups))
            np.minimum.at(lowest, codes, numbers)
            numbers = lowest[codes]
        if np.array_equal(numbers, before):
            return np.unique(numbers, return_inverse=True)[1].astype(np.intp)


def _bagging(estimator: BaseEstimator) -> Electorate:
    if any(hasattr(member, "predict_proba") for member in estimator.estimators_):
        raise ValueError(
            "This BaggingClassifier averages the probabilities of its members, and one broken feature may "
            "move a mean past any majority; use a base estimator without predict_proba (LinearSVC), whose "
            "votes are counted."
        )
    supports = np.zeros((len(estimator.estimators_), estimator.n_features_in_), dtype=bool)
    for member, columns in enumerate(estimator.estimators_features_):
        supports[member, columns] = True
    groups = np.arange(estimator.n_features_in_)
    return Electorate(estimator.classes_, supports, groups, lambda X: _bagged_votes(estimator, X))


def _bagged_votes(estimator: BaseEstimator, X: Matrix) -> Ints:
    found = members_of(estimator)
    # The same rows and columns reach a stand-in that "predicts" whether its member's vote is in doubt.
    doubtful = replace(found, estimators=[DoubtOf(member) for member in found.estimators], classes=None)
    codes = np.searchsorted(estimator.classes_, np.stack(found.predictions(X), axis=1))
    return np.where(np.stack(doubtful.predictions(X), axis=1), UNDECIDED, codes)
