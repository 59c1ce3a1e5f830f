"""The classifiers on Dask collections: the rows stay with the workers, predictions are lazy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from functools import partial, wraps
from itertools import chain
from typing import Any, Self

import dask.array as da
import numpy as np
from dask.array import Array
from dask.array.optimization import optimize
from dask.base import is_dask_collection, tokenize
from dask.core import flatten
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from exclusivity._typing import Floats, Matrix
from exclusivity.additive.classifier import (
    RobustAdditiveClassifier as LocalRobustAdditiveClassifier,
    has_probabilities as has_additive_probabilities,
)
from exclusivity.classifier._ensemble import describe_parameters_like, has_probabilities, shared_parameters
from exclusivity.classifier._erm import ERMClassifier as LocalERMClassifier
from exclusivity.classifier._progress import with_callbacks
from exclusivity.classifier._validation import (
    check_blockwise,
    check_parameters,
    fitted_attributes,
    replace_fitted,
)
from exclusivity.dask._rows import Engine, Rows, distributed_rows

Collection = Any
"""A collection of Dask: an array or a DataFrame; of labels and weights an array or a series."""


def lazy(kind: type, name: str) -> Callable[..., Any]:
    """Make a method that maps the method of this name of a classifier in memory over blocks of rows."""

    @wraps(getattr(kind, name))
    def mapped(self: Any, X: Collection, *args: Any, **options: Any) -> Array:
        check_is_fitted(self)
        return _mapped(self.to_local(), name, X, *args, **options)

    return mapped


_lazy = partial(lazy, LocalERMClassifier)


@describe_parameters_like(LocalERMClassifier)
@dataclass(repr=False, eq=False, match_args=False)
class ERMClassifier(LocalERMClassifier):
    """:class:`exclusivity.ERMClassifier` for Dask arrays and DataFrames: the same certified optimum.

    Rows stay with the workers; what is sent are sums over blocks of rows, a few numbers per feature and one
    matrix per Newton step. X of every method is a Dask array or DataFrame; y and ``sample_weight`` are Dask
    arrays or series. What methods return for every row is a lazy Dask array. ``solver`` "paper" and "alm",
    ``exclusivity`` between 1 and infinity, ``max_iter`` at infinity and ``n_jobs`` need rows in memory.
    With ``warm_start`` an interior point (p = 1 where shrinking does not do) begins anew, at the same
    weights.

    Parameters
    ----------
    persist : bool or "auto", default="auto"
        Whether the workers keep the rows in memory. "auto": if they fill no more than 40 % of it. Else every
        pass reads them anew, from wherever the collection has them.

    See Also
    --------
    exclusivity.ERMClassifier : The classifier for rows in memory, with all attributes described.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exclusivity.dask import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = da.from_array(X / X.max(axis=0), chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> clf = ERMClassifier(30).fit(X, y)
    >>> bool(clf.dual_gap_[0] <= 1e-4)
    True
    >>> clf.predict(X)[:5].compute()
    array([0, 0, 0, 0, 0])
    >>> type(clf.to_local()).__module__
    'exclusivity.classifier._erm'
    """

    persist: bool | str = field(default="auto", kw_only=True)

    @with_callbacks
    def fit(self, X: Collection, y: Collection, sample_weight: Collection | None = None) -> Self:
        """Train the ensemble.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Training rows.
        y : Dask array or Series of shape (n_samples,)
            Class labels of any type, in blocks like those of X.
        sample_weight : Dask array or Series of shape (n_samples,), default=None
            Weights; an integer weight means so many copies of the row, weight 0 none.

        Returns
        -------
        self : ERMClassifier
            The fitted classifier.
        """
        check_parameters(vars(self))
        check_blockwise(vars(self))
        if not (isinstance(self.persist, (bool, np.bool_)) or self.persist == "auto"):
            raise ValueError(f"persist must be True, False or 'auto'; got {self.persist!r}.")
        names = _column_names(X)
        rows, classes, totals = _distributed(X, y, sample_weight, self.persist)
        shown = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        return self._fit_blocks(rows, classes, totals, names, shown)

    def to_local(self) -> LocalERMClassifier:
        """Return the plain classifier with the same parameters and the same fitted members.

        Returns
        -------
        model : exclusivity.ERMClassifier
            For rows in memory: saving, plots and everything else work with it.
        """
        check_is_fitted(self)
        model = LocalERMClassifier(**shared_parameters(self, LocalERMClassifier))
        replace_fitted(model, fitted_attributes(self) | {"_starts": []})
        return model

    predict = _lazy("predict")
    decision_function = _lazy("decision_function")
    predict_proba = available_if(has_probabilities)(_lazy("predict_proba"))
    predict_log_proba = available_if(has_probabilities)(_lazy("predict_log_proba"))
    component_decision_function = _lazy("component_decision_function")
    component_predict = _lazy("component_predict")
    certify = _lazy("certify")
    certify_set = _lazy("certify_set")

    def score(self, X: Collection, y: Collection, sample_weight: Collection | None = None) -> float:
        """Compute the accuracy on rows with known labels, at once.

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
            The weighted share of right predictions.
        """
        check_is_fitted(self)
        sent, hits = delayed(self.to_local(), traverse=False), delayed(_hits)
        parts = [hits(sent, *block) for block in _joint_blocks(X, y, sample_weight)]
        sums = Engine.current().compute(delayed(np.sum)(parts, axis=0))
        return float(sums[0] / sums[1])


@describe_parameters_like(LocalRobustAdditiveClassifier)
class RobustAdditiveClassifier(LocalRobustAdditiveClassifier):
    """:class:`exclusivity.RobustAdditiveClassifier` for Dask arrays and DataFrames.

    Rows stay with the workers, who keep them if they fill no more than 40 % of their memory; what is sent are
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
        rows, classes, _ = _distributed(X, y, sample_weight, "auto", as_tables=True)
        return self.fit_rows(rows, classes, feature_names=_column_names(X), keep_encoded=rows.are_kept)

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

    predict = lazy(LocalRobustAdditiveClassifier, "predict")
    decision_function = lazy(LocalRobustAdditiveClassifier, "decision_function")
    predict_proba = available_if(has_additive_probabilities)(
        lazy(LocalRobustAdditiveClassifier, "predict_proba")
    )
    certify = lazy(LocalRobustAdditiveClassifier, "certify")
    certify_set = lazy(LocalRobustAdditiveClassifier, "certify_set")
    stands = lazy(LocalRobustAdditiveClassifier, "stands")
    explain = lazy(LocalRobustAdditiveClassifier, "explain")
    score = ERMClassifier.score


def _mapped(model: Any, method: str, X: Collection, *args: Any, **options: Any) -> Array:
    """Map ``model.method`` over the blocks of rows, as one lazy array.

    Shape and type are those of the answer for one row, which also shows wrong arguments at once. Empty
    blocks, which the model in memory would refuse, give empty answers.
    """
    n_features = X.shape[1] if isinstance(X, Array) else len(X.columns) if _is_frame(X) else None
    blocks = list(np.ravel(_table(X).to_delayed()))
    if n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} "
            "features as input."
        )
    nameless = copy(model)
    nameless.__dict__.pop("feature_names_in_", None)
    with warnings.catch_warnings():  # the zeros of this row may be dates or words to the model
        warnings.simplefilter("ignore", UserWarning)
        one = getattr(nameless, method)(np.zeros((1, n_features)), *args, **options)
    sizes = X.chunks[0] if isinstance(X, Array) else (np.nan,) * len(blocks)
    answer = delayed(_answer)
    sent = delayed((model, method, one[:0], args, options), traverse=False)
    parts = [
        da.from_delayed(answer(sent, block), shape=(size, *one.shape[1:]), dtype=one.dtype)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _answer(sent: tuple[Any, str, NDArray[Any], Any, Any], rows: Matrix) -> NDArray[Any]:
    model, method, nothing, args, options = sent
    n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    return nothing if n_rows == 0 else np.ascontiguousarray(getattr(model, method)(rows, *args, **options))


def _hits(model: LocalERMClassifier, X: Matrix, y: NDArray[Any], weights: object) -> NDArray[Any]:
    if X.shape[0] == 0:
        return np.zeros(2)
    weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=float)
    right = accuracy_score(y, model.predict(X), sample_weight=weights, normalize=False)
    return np.array([right, weights.sum()])


# Collections


def _distributed(
    X: Collection, y: Collection, sample_weight: Collection | None, persist: bool | str, **kind: bool
) -> tuple[Rows, NDArray[Any], Floats]:
    is_dense = isinstance(getattr(X, "_meta", None), np.ndarray)  # else only the blocks know their size
    n_bytes = float(getattr(X, "nbytes", np.nan)) if is_dense else np.nan
    return distributed_rows(_joint_blocks(X, y, sample_weight), n_bytes, persist, **kind)


def _joint_blocks(
    X: Collection, y: Collection, sample_weight: Collection | None
) -> Iterable[tuple[Any, Any, Any]]:
    """List the blocks of rows, labels and weights (None where there are none), cut alike.

    What they have in common is made once: columns of one array, or rows and labels from one file, would
    otherwise be read twice in every pass, because optimising a graph merges steps that are not shared.
    """
    table = _table(X)
    columns = [(y, "y")] if sample_weight is None else [(y, "y"), (sample_weight, "sample_weight")]
    parts = [table, *(_column(values, X, name) for values, name in columns)]
    if all(isinstance(part, Array) for part in parts):
        blocks = _jointly_optimised(parts)
    else:
        blocks = [list(np.ravel(part.to_delayed())) for part in parts]
    for (_, name), found in zip(columns, blocks[1:], strict=True):
        if len(found) != len(blocks[0]):
            raise ValueError(
                f"X has {len(blocks[0])} blocks of rows and {name} has {len(found)}, of unknown sizes; "
                "repartition them alike, or call compute_chunk_sizes() on the arrays."
            )
    weights = blocks[2] if len(blocks) > 2 else [None] * len(blocks[0])
    return zip(blocks[0], blocks[1], weights, strict=True)


def _jointly_optimised(arrays: list[Array]) -> list[list[Any]]:
    keys = [list(flatten(array.__dask_keys__())) for array in arrays]
    merged = HighLevelGraph.merge(*(array.__dask_graph__() for array in arrays))
    name = f"joint-{tokenize(keys)}"
    graph = HighLevelGraph.from_collections(name, optimize(merged, list(chain(*keys))), dependencies=())
    return [[Delayed(key, graph, layer=name) for key in part] for part in keys]


def _table(X: Collection) -> Collection:
    if isinstance(X, Array):
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional; got {X.ndim} dimensions.")
        return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    if _is_frame(X):
        return X
    raise TypeError(
        f"X must be a Dask array or DataFrame; got {type(X).__name__}. For rows in memory use "
        "exclusivity.ERMClassifier, or make a Dask array of them with dask.array.from_array."
    )


def _column(values: Collection, X: Collection, name: str) -> Collection:
    """Return one value per row (labels, weights), cut like ``X`` where that is known."""
    if not is_dask_collection(values):
        raise TypeError(
            f"{name} must be a Dask array or Series, chunked like X; got {type(values).__name__}. Make one "
            "with dask.array.from_array(values, chunks=X.chunks[0])."
        )
    if isinstance(values, Array):
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"{name} must have one value per row; got {values.ndim} dimensions.")
        if isinstance(X, Array) and not np.isnan([*values.chunks[0], *X.chunks[0]]).any():
            if values.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows and {name} {values.shape[0]}.")
            values = values.rechunk((X.chunks[0],))
    return values


def _is_frame(X: Collection) -> bool:
    """Return whether this is a Dask DataFrame, without importing what that needs."""
    return is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "columns")


def _column_names(X: Collection) -> NDArray[Any] | None:
    """Return the names of a DataFrame's columns, if all of them are text; None for arrays."""
    if not _is_frame(X):
        return None
    names = np.asarray(X.columns, dtype=object)
    are_text = [isinstance(name, str) for name in names]
    if any(are_text) and not all(are_text):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{sorted({type(name).__name__ for name in names})} as feature name / column name types. "
            "Convert the names to strings: X.columns = X.columns.astype(str)."
        )
    return names if all(are_text) else None
