"""Lazy predictions: the model in memory, mapped over the blocks of a collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask.array import Array
from numpy.typing import DTypeLike, NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dask import delayed
from exclusivity._errors import check_number
from exclusivity._typing import Matrix
from exclusivity.classifier import (
    ERMClassifier as LocalERMClassifier,
    FittedState,
    has_probabilities,
    shared_parameters,
)
from exclusivity.dask.blocks import Collection, is_frame, joint_blocks, row_blocks
from exclusivity.dask.engine import Engine
from exclusivity.dask.rounds import tree_sum
from exclusivity.voting.certificates import check_top_k


def mapped(
    model: LocalERMClassifier,
    method: str,
    X: Collection,
    tail: tuple[int, ...],
    dtype: DTypeLike,
    **options: int,
) -> Array:
    """``model.method`` of every block of rows, as one lazy array of shape (n_samples, *tail).

    Empty blocks, which the model in memory would refuse, give empty answers.
    """
    n_features = X.shape[1] if isinstance(X, Array) else len(X.columns) if is_frame(X) else None
    blocks = row_blocks(X)
    if n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but ERMClassifier is expecting {model.n_features_in_} features "
            "as input."
        )
    sizes = X.chunks[0] if isinstance(X, Array) else (np.nan,) * len(blocks)
    sent = delayed(model, traverse=False)
    answer: Callable[..., Any] = delayed(_answer)
    parts = [
        da.from_delayed(answer(sent, method, block, tail, dtype, **options), shape=(size, *tail), dtype=dtype)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def accuracy(
    model: LocalERMClassifier, X: Collection, y: Collection, sample_weight: Collection | None
) -> float:
    """The weighted share of right predictions: two sums over the blocks."""
    blocks = zip(*joint_blocks(X, y, sample_weight), strict=True)
    sent = delayed(model, traverse=False)
    parts = [delayed(_hits)(sent, *block) for block in blocks]
    (sums,) = Engine.current().compute(tree_sum(parts))
    return float(sums[0] / sums[1])


def _answer(
    model: LocalERMClassifier,
    method: str,
    rows: Matrix,
    tail: tuple[int, ...],
    dtype: DTypeLike,
    **options: int,
) -> np.ndarray[Any, Any]:
    if len(rows) == 0 if not hasattr(rows, "shape") else rows.shape[0] == 0:
        return np.empty((0, *tail), dtype=dtype)
    return np.ascontiguousarray(getattr(model, method)(rows, **options))


def _hits(
    model: LocalERMClassifier, X: Matrix, y: NDArray[Any], weights: object
) -> list[np.ndarray[Any, Any]]:
    n_rows = X.shape[0]
    if n_rows == 0:
        return [np.zeros(2)]
    weights = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=float)
    right = accuracy_score(y, model.predict(X), sample_weight=weights, normalize=False)
    return [np.array([right, weights.sum()])]


class DaskPredictions(LocalERMClassifier):
    """The predictions of a classifier on Dask collections, all of them lazy."""

    def to_local(self) -> LocalERMClassifier:
        """The plain classifier with the same parameters and the same fitted members.

        Returns
        -------
        model : exclusivity.ERMClassifier
            For rows in memory: saving, plots and everything else work with it.
        """
        model = LocalERMClassifier(**shared_parameters(self, LocalERMClassifier))
        return FittedState.of(self).restore(model)

    def _mapped(
        self, method: str, X: Collection, tail: tuple[int, ...], dtype: DTypeLike, **options: int
    ) -> Array:
        return mapped(self.to_local(), method, X, tail, dtype, **options)

    def predict(self, X: Collection) -> Array:
        """The class of every row, as a lazy array of shape (n_samples,).

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : Dask array of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        return self._mapped("predict", X, (), self.classes_.dtype)

    def decision_function(self, X: Collection) -> Array:
        """Scores of the classes, lazily; see the classifier in memory.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : Dask array of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        n_classes = len(self.classes_)
        return self._mapped(
            "decision_function", X, () if n_classes == 2 else (n_classes,), self._ensemble.weights.dtype
        )

    @available_if(has_probabilities)
    def predict_proba(self, X: Collection) -> Array:
        """The probability of every class, lazily; for ``loss="logistic"`` only.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        probabilities : Dask array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._mapped("predict_proba", X, (len(self.classes_),), self._ensemble.weights.dtype)

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Collection) -> Array:
        """The logarithm of :meth:`predict_proba`, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        logarithms : Dask array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._mapped("predict_log_proba", X, (len(self.classes_),), self._ensemble.weights.dtype)

    def component_decision_function(self, X: Collection) -> Array:
        """The margins of every member in every binary problem, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : Dask array of shape (n_samples, n_problems, n_estimators)
        """
        check_is_fitted(self)
        return self._mapped(
            "component_decision_function",
            X,
            self._ensemble.all_intercepts.shape,
            self._ensemble.weights.dtype,
        )

    def component_predict(self, X: Collection) -> Array:
        """The class that every member votes for, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : Dask array of shape (n_samples, n_estimators)
        """
        check_is_fitted(self)
        return self._mapped("component_predict", X, (self._ensemble.n_members,), self.classes_.dtype)

    def certify(self, X: Collection, *, top_k: int = 1) -> Array:
        """How many features may take any finite value without changing the prediction, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows to certify.
        top_k : int, default=1
            Count until more than so many classes could win.

        Returns
        -------
        radius : Dask array of int, shape (n_samples,)
        """
        check_is_fitted(self)
        self._voting_ensemble()
        check_top_k(top_k, len(self.classes_))
        return self._mapped("certify", X, (), np.intp, top_k=top_k)

    def certify_set(self, X: Collection, r: int) -> Array:
        """The classes that could win when any ``r`` features take any finite values, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows to certify.
        r : int
            How many features (feature groups) may change.

        Returns
        -------
        can_win : Dask array of bool, shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        self._voting_ensemble()
        check_number({"r": r}, "r", least=0, integer=True)
        return self._mapped("certify_set", X, (len(self.classes_),), np.bool_, r=r)

    def score(self, X: Collection, y: Collection, sample_weight: Collection | None = None) -> float:
        """The accuracy on rows with known labels; computed at once.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows.
        y : Dask array or Series of shape (n_samples,)
            Their labels.
        sample_weight : Dask array or Series of shape (n_samples,), default=None
            Weights.

        Returns
        -------
        accuracy : float
        """
        check_is_fitted(self)
        return accuracy(self.to_local(), X, y, sample_weight)
