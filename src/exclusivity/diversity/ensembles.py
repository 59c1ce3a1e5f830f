"""What stands between an ensemble and its members: encoded labels, subsets of features, checked rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity.problem.arrays import Floats, Ints, Matrix
from exclusivity.problem.sparse_rows import check_sparse

_SUPPORTED = (
    "an ERMClassifier, BaggingClassifier, RandomForestClassifier, ExtraTreesClassifier, AdaBoostClassifier, "
    "VotingClassifier or StackingClassifier, a Pipeline that ends in one of these, or a list of fitted "
    "classifiers"
)


@dataclass(frozen=True, eq=False)
class Members:
    """Fitted estimators, and what their ensemble does to rows before them and to labels after them.

    Attributes
    ----------
    estimators : sequence of estimators
    classes : ndarray or None
        Labels that the members' predictions number; None if members predict labels themselves.
    checked_by : estimator or None
        The ensemble, if it converts X to an array before any member sees it; None if members take X as is.
    columns : sequence of ndarray or None
        The features that each member sees; None for all.
    """

    estimators: Sequence[Any]
    classes: NDArray[Any] | None = None
    checked_by: Any = None
    columns: Sequence[Ints] | None = None

    def rows(self, X: Matrix) -> list[Any]:
        """The rows as each member sees them."""
        check_sparse(X)
        if self.checked_by is not None:
            # The check of the ensemble's own predict. Members were trained without column names.
            X = validate_data(
                self.checked_by,
                X,
                reset=False,
                accept_sparse=["csr", "csc"],
                dtype=None,
                ensure_all_finite=False,
            )
        if self.columns is None:
            return [X] * len(self.estimators)
        return [X[:, columns] for columns in self.columns]

    def predictions(self, X: Matrix) -> list[NDArray[Any]]:
        """The labels of each member."""
        return [self._labels(*pair) for pair in zip(self.estimators, self.rows(X), strict=True)]

    def weights(self) -> list[Floats]:
        """The (n_problems, n_features) weights of each member, if all are linear."""
        coefficients = [_coefficients(estimator) for estimator in self.estimators]
        if self.columns is None:
            return coefficients
        n_features = self.checked_by.n_features_in_
        return [_embedded(*pair, n_features) for pair in zip(coefficients, self.columns, strict=True)]

    def _labels(self, estimator: BaseEstimator, rows: Matrix) -> NDArray[Any]:
        if not hasattr(estimator, "predict") or isinstance(estimator, RegressorMixin):
            raise TypeError(f"Every member must be a fitted classifier; one is {estimator!r}.")
        predicted = np.asarray(estimator.predict(rows))
        if predicted.ndim != 1:
            raise ValueError(
                "Diversity is measured for one label per sample; "
                f"{estimator!r} predicts an array of shape {predicted.shape}."
            )
        # The trees of a forest give class numbers as floats.
        return predicted if self.classes is None else np.asarray(self.classes[predicted.astype(np.intp)])


def members_of(ensemble: BaseEstimator) -> Members:
    """The members of a list or of one of scikit-learn's ensembles; a TypeError for anything else."""
    if isinstance(ensemble, (list, tuple)):
        if not ensemble:
            raise ValueError("The list of classifiers is empty.")
        return Members(ensemble)
    for kinds, read in _READERS:
        if isinstance(ensemble, kinds):
            check_is_fitted(ensemble)
            if isinstance(ensemble.classes_, list):
                raise ValueError(
                    "Diversity is measured for one label per sample; this ensemble has several outputs."
                )
            return read(ensemble)
    raise TypeError(f"No members are known of {type(ensemble).__name__}; give {_SUPPORTED}.")


def _bagging(ensemble: BaseEstimator) -> Members:
    return Members(ensemble.estimators_, ensemble.classes_, ensemble, ensemble.estimators_features_)


def _forest(ensemble: BaseEstimator) -> Members:
    return Members(ensemble.estimators_, ensemble.classes_, ensemble)


def _boosting(ensemble: BaseEstimator) -> Members:
    return Members(ensemble.estimators_, checked_by=ensemble)


def _voting(ensemble: BaseEstimator) -> Members:
    return Members(ensemble.estimators_, ensemble.classes_)


def _stacking(ensemble: BaseEstimator) -> Members:
    # Members that came fitted were trained on the labels and not on their numbers.
    is_prefit = isinstance(ensemble.cv, str) and ensemble.cv == "prefit"
    return Members(ensemble.estimators_, None if is_prefit else ensemble.classes_)


_READERS: tuple[tuple[Any, Callable[[Any], Members]], ...] = (
    (BaggingClassifier, _bagging),
    ((RandomForestClassifier, ExtraTreesClassifier), _forest),
    (AdaBoostClassifier, _boosting),
    (VotingClassifier, _voting),
    (StackingClassifier, _stacking),
)


def _coefficients(estimator: BaseEstimator) -> Floats:
    """``coef_`` as a dense (n_problems, n_features) array."""
    coefficients = getattr(estimator, "coef_", None)
    if coefficients is None:
        raise TypeError(
            f"Weight vectors exist for fitted linear models with coef_ only; one member is {estimator!r}."
        )
    dense = coefficients.toarray() if sparse.issparse(coefficients) else coefficients
    return np.atleast_2d(np.asarray(dense, dtype=float))


def _embedded(coefficients: Floats, columns: Ints, n_features: int) -> Floats:
    """Weights among all features; a feature that was drawn twice has the sum of its weights."""
    full = np.zeros((n_features, len(coefficients)))
    np.add.at(full, columns, coefficients.T)
    return full.T
