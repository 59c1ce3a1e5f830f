"""The members of a fitted ensemble: their predicted labels and their weight vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from exclusivity.diversity.ensembles import members_of
from exclusivity.problem.arrays import Floats, Matrix


def member_predictions(ensemble: BaseEstimator, X: Matrix) -> NDArray[Any]:
    """The label that each member of a fitted ensemble gives to each row.

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
    if hasattr(ensemble, "component_decision_function"):
        return _component_labels(ensemble, X)
    labels = members_of(ensemble).predictions(X)
    # Stacking numbers and strings would turn 1 into "1" without a word.
    if len({column.dtype.kind in "UT" for column in labels if column.dtype.kind != "O"}) > 1:
        raise ValueError(
            "Some members predict strings and others numbers: were they trained on the same labels?"
        )
    return np.stack(labels, axis=1)


def member_weights(ensemble: BaseEstimator) -> Floats:
    """The weight vector of each member of a fitted ensemble of linear models.

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


def _component_labels(ensemble: BaseEstimator, X: Matrix) -> NDArray[Any]:
    """Every member by its own best class; scores alone are taken for one-vs-rest scores."""
    if hasattr(ensemble, "component_predict"):
        return np.asarray(ensemble.component_predict(X))
    scores = np.asarray(ensemble.component_decision_function(X))
    is_binary = len(ensemble.classes_) == 2
    best = (scores[:, 0] > 0).astype(np.intp) if is_binary else scores.argmax(axis=1)
    return np.asarray(ensemble.classes_[best])
