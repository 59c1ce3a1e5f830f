"""What the linear baselines share: validation, one-vs-rest tasks, prediction with the averaged model."""
# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity.classifier import (
    ClassWeight,
    Ensemble,
    LinearPredictions,
    TrainingSet,
    require_labels,
    sample_weights,
    soft_decision,
    training_set,
)
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.problem.sparse_rows import check_sparse


class LinearBaseline(LinearPredictions, ClassifierMixin, BaseEstimator):
    """A classifier whose decision is linear: one binary problem per class, or one for two classes."""

    def decision_function(self, X: Matrix) -> Floats:
        """Scores of the classes; their order decides ``predict``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive means ``classes_[1]``. More: one column per class.
        """
        check_is_fitted(self)
        ensemble = self._ensemble.mean()
        scores = ensemble.scores(self._validate_rows(X))
        return ensemble.rounded(soft_decision(scores, len(self.classes_), "ovr"))

    @property
    def coef_(self) -> Floats:
        """Weights of the (averaged) model, (n_problems, n_features)."""
        check_is_fitted(self)
        return np.asarray(self._ensemble.coef)

    @property
    def intercept_(self) -> Floats:
        """Intercepts of the (averaged) model, (n_problems,)."""
        check_is_fitted(self)
        return self._ensemble.intercept

    def __sklearn_tags__(self) -> Tags:
        """Sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _training_set(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        class_weight: ClassWeight = None,
    ) -> TrainingSet:
        """Validated rows of positive weight with numbered classes."""
        require_labels(y)
        check_sparse(X)
        X, labels = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(labels)
        weights = sample_weights(sample_weight, X.shape[0])
        return training_set(X, labels, weights, class_weight, keep_classes=False)

    def _store_members(self, data: TrainingSet, members: Sequence[tuple[Floats, Floats]]) -> None:
        """Keep the classes and one (weights (n_features, n_members), intercepts) pair per task."""
        self.classes_ = data.classes
        self._ensemble = Ensemble.from_members(members, data.dtype)
