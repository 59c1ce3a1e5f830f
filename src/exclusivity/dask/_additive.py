"""RobustAdditiveClassifier on Dask collections: the rows stay with the workers, predictions are lazy."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Self

from sklearn.utils.metaestimators import available_if

from exclusivity.additive.classifier import (
    RobustAdditiveClassifier as LocalRobustAdditiveClassifier,
    has_probabilities,
)
from exclusivity.classifier._fitted import describe_parameters_like
from exclusivity.dask._engine import Engine
from exclusivity.dask._estimator import ERMClassifier, lazy
from exclusivity.dask._rows import Collection, column_names, distributed_rows

_lazy = partial(lazy, LocalRobustAdditiveClassifier)


@describe_parameters_like(LocalRobustAdditiveClassifier)
class RobustAdditiveClassifier(LocalRobustAdditiveClassifier):
    """:class:`exclusivity.RobustAdditiveClassifier` for Dask arrays and DataFrames.

    Rows stay with the workers, who keep them if they fill no more than 40 % of their memory; what travels are
    sums over blocks of rows. Levels are those of 200,000 rows, evenly spaced; with no more rows, the optimum
    is that of the rows in memory. Parameters and attributes are the same, too. Predictions and certificates
    are lazy Dask arrays, and X has the columns of fit, in their order. For ``attack`` and ``suspects`` take
    :meth:`to_local`.

    Parameters
    ----------
    n_jobs : int or None, default=None
        How many duels of several classes ask the workers at the same time.

    See Also
    --------
    exclusivity.RobustAdditiveClassifier : The classifier for rows in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exclusivity.dask import RobustAdditiveClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> model = RobustAdditiveClassifier().fit(X, y)
    >>> bool(model.dual_gap_[0] <= 1e-2)
    True
    >>> model.predict(X)[:5].compute()
    array([0, 0, 0, 0, 0])
    """

    def fit(self, X: Collection, y: Collection, sample_weight: Collection | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Training rows.
        y : Dask array or Series of shape (n_samples,)
            Their classes, in blocks like those of X.
        sample_weight : Dask array or Series of shape (n_samples,), default=None
            Weights; a row of weight 2 counts as two rows.

        Returns
        -------
        self : RobustAdditiveClassifier
        """
        self._check_parameters()
        rows, classes, _ = distributed_rows(Engine.current(), X, y, sample_weight, "auto", as_tables=True)
        return self.fit_rows(rows, classes, feature_names=column_names(X), keep_encoded=rows.are_kept)

    def to_local(self) -> LocalRobustAdditiveClassifier:
        """Return the plain classifier with the same parameters and the same fitted curves.

        Returns
        -------
        model : exclusivity.RobustAdditiveClassifier
            For rows in memory: saving, plots and everything else work with it.
        """
        model = copy(self)
        model.__class__ = LocalRobustAdditiveClassifier
        return model

    predict = _lazy("predict")
    decision_function = _lazy("decision_function")
    predict_proba = available_if(has_probabilities)(_lazy("predict_proba"))
    certify = _lazy("certify")
    certify_set = _lazy("certify_set")
    stands = _lazy("stands")
    explain = _lazy("explain")
    score = ERMClassifier.score
