"""Read the members of a fitted ensemble: their labels for given rows and their weight vectors."""

from __future__ import annotations

from collections.abc import Sequence
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
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.rows.sparse_rows import check_sparse

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

    def checked(self, X: Matrix) -> Any:
        """Return rows as the ensemble's own predict hands them on: members were trained without names."""
        check_sparse(X)
        if self.checked_by is None:
            return X
        how = {"accept_sparse": ["csr", "csc"], "dtype": None, "ensure_all_finite": False}
        return validate_data(self.checked_by, X, reset=False, **how)

    def rows(self, X: Matrix) -> list[Any]:
        """Return the rows as each member sees them."""
        X = self.checked(X)
        if self.columns is None:
            return [X] * len(self.estimators)
        return [X[:, columns] for columns in self.columns]

    def predictions(self, X: Matrix) -> list[NDArray[Any]]:
        """Return the labels that each member predicts."""
        return [self._labels(*pair) for pair in zip(self.estimators, self.rows(X), strict=True)]

    def weights(self) -> list[Floats]:
        """Return the (n_problems, n_features) weights of each member; a TypeError if one is not linear."""
        coefficients = [_coefficients(estimator) for estimator in self.estimators]
        if self.columns is None:
            return coefficients
        # A feature that was drawn twice has the sum of its weights.
        full = [np.zeros((self.checked_by.n_features_in_, len(own))) for own in coefficients]
        for target, columns, own in zip(full, self.columns, coefficients, strict=True):
            np.add.at(target, columns, own.T)
        return [target.T for target in full]

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
    """Return the members of a list or of one of scikit-learn's ensembles; a TypeError for anything else."""
    if isinstance(ensemble, (list, tuple)):
        if not ensemble:
            raise ValueError("The list of classifiers is empty.")
        return Members(ensemble)
    forests = (RandomForestClassifier, ExtraTreesClassifier)
    known = (BaggingClassifier, *forests, AdaBoostClassifier, VotingClassifier, StackingClassifier)
    if not isinstance(ensemble, known):
        raise TypeError(f"No members are known of {type(ensemble).__name__}; give {_SUPPORTED}.")
    check_is_fitted(ensemble)
    estimators, classes = ensemble.estimators_, ensemble.classes_
    if isinstance(classes, list):
        raise ValueError("Diversity is measured for one label per sample; this ensemble has several outputs.")
    if isinstance(ensemble, BaggingClassifier):
        return Members(estimators, classes, ensemble, ensemble.estimators_features_)
    if isinstance(ensemble, forests):
        return Members(estimators, classes, ensemble)
    if isinstance(ensemble, AdaBoostClassifier):
        return Members(estimators, checked_by=ensemble)
    # Members of a stack that came fitted were trained on the labels and not on their numbers.
    is_prefit = isinstance(ensemble, StackingClassifier) and str(ensemble.cv) == "prefit"
    return Members(estimators, None if is_prefit else classes)


def member_predictions(ensemble: BaseEstimator, X: Matrix) -> NDArray[Any]:
    """Return the label that each member of a fitted ensemble gives to each row.

    Parameters
    ----------
    ensemble : estimator or list of estimators
        A fitted ERMClassifier (or other classifier with its ``component_decision_function``),
        BaggingClassifier, RandomForestClassifier, ExtraTreesClassifier, AdaBoostClassifier,
        VotingClassifier or StackingClassifier, a Pipeline that ends in one of these, or a list of fitted
        classifiers.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, as ``ensemble.predict`` takes them.

    Returns
    -------
    predictions : ndarray of shape (n_samples, n_members)
        Labels as in ``ensemble.classes_``, also where members only know their numbers. A member of an
        ERMClassifier chooses its best class, as in hard voting.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> iris = load_iris()
    >>> names = iris.target_names[iris.target]
    >>> forest = RandomForestClassifier(3, max_depth=1, random_state=0).fit(iris.data, names)
    >>> member_predictions(forest, iris.data[[0, 149]]).tolist()
    [['setosa', 'setosa', 'setosa'], ['virginica', 'versicolor', 'virginica']]
    """
    if isinstance(ensemble, Pipeline):
        head = ensemble[:-1]
        return member_predictions(ensemble[-1], head.transform(X) if len(head) else X)
    if hasattr(ensemble, "component_predict"):
        return np.asarray(ensemble.component_predict(X))
    if hasattr(ensemble, "component_decision_function"):  # taken for one-vs-rest scores
        scores = np.asarray(ensemble.component_decision_function(X))
        is_binary = len(ensemble.classes_) == 2
        best = (scores[:, 0] > 0).astype(np.intp) if is_binary else scores.argmax(axis=1)
        return np.asarray(ensemble.classes_[best])
    labels = members_of(ensemble).predictions(X)
    # Stacking numbers and strings would turn 1 into "1" silently.
    if len({column.dtype.kind in "UT" for column in labels if column.dtype.kind != "O"}) > 1:
        raise ValueError(
            "Some members predict strings and others numbers: were they trained on the same labels?"
        )
    return np.stack(labels, axis=1)


def member_weights(ensemble: BaseEstimator) -> Floats:
    """Return the weight vector of each member of a fitted ensemble of linear models.

    Parameters
    ----------
    ensemble : estimator or list of estimators
        A fitted ERMClassifier, an ensemble that :func:`member_predictions` takes and whose members have
        ``coef_``, or a list of fitted linear models. Of a Pipeline the last step: its weights belong to the
        transformed features.

    Returns
    -------
    weights : ndarray of shape (n_members, n_problems * n_features)
        The binary problems of a multi-class model one after the other, so that (relaxed) exclusivities add
        up over problems, as they do in the ERM objective. Features that a member of a BaggingClassifier
        does not see have weight zero.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> member_weights([RidgeClassifier(alpha).fit(X, y) for alpha in (0.1, 1, 10)]).shape
    (3, 30)
    """
    if isinstance(ensemble, Pipeline):
        return member_weights(ensemble[-1])
    if hasattr(ensemble, "component_decision_function"):
        components = np.asarray(ensemble.components_, dtype=float)
        return components.transpose(1, 0, 2).reshape(components.shape[1], -1)
    weights = members_of(ensemble).weights()
    shapes = {coefficients.shape for coefficients in weights}
    if len(shapes) > 1:
        raise ValueError(
            f"Members have coef_ of different shapes, {sorted(shapes)}: not trained on the same classes and "
            "features, they cannot be compared by weights."
        )
    return np.stack([coefficients.ravel() for coefficients in weights])


def _coefficients(estimator: BaseEstimator) -> Floats:
    """Return ``coef_`` as a dense (n_problems, n_features) array."""
    coefficients = getattr(estimator, "coef_", None)
    if coefficients is None:
        raise TypeError(
            f"Weight vectors exist for fitted linear models with coef_ only; one member is {estimator!r}."
        )
    dense = coefficients.toarray() if sparse.issparse(coefficients) else coefficients
    return np.atleast_2d(np.asarray(dense, dtype=float))
