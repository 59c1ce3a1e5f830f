"""ERMClassifier on Dask collections: the rows stay with the workers, predictions are lazy."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Self

import dask.array as da
import numpy as np
from dask.array import Array
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dask import delayed
from exclusivity._typing import Matrix
from exclusivity.classifier._erm import ERMClassifier as LocalERMClassifier
from exclusivity.classifier._fit import BlockTasks, check_blockwise
from exclusivity.classifier._fitted import (
    MINIMISED,
    FittedState,
    describe_parameters_like,
    shared_parameters,
    snapshot,
)
from exclusivity.classifier._prediction import has_probabilities
from exclusivity.classifier._progress import with_callbacks
from exclusivity.classifier._validation import check_parameters
from exclusivity.dask._checkpoint import Checkpoint
from exclusivity.dask._engine import Engine
from exclusivity.dask._rows import (
    Collection,
    column_names,
    distributed_rows,
    is_frame,
    joint_blocks,
    row_blocks,
)
from exclusivity.solvers import Callback, SolverResult, Start
from exclusivity.solvers.blocks import Target


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

    Rows stay with the workers; what travels are sums over blocks of rows, a few numbers per feature and one
    matrix per Newton step. X of every method is a Dask array or DataFrame; y and ``sample_weight`` are Dask
    arrays or series. What methods return for every row is a lazy Dask array. ``solver`` "paper" and "alm",
    ``exclusivity`` between 1 and infinity and ``n_jobs`` need rows in memory. With ``warm_start`` an interior
    point (p = 1 where shrinking does not do) begins anew, at the same weights.

    Parameters
    ----------
    persist : bool or "auto", default="auto"
        Whether the workers keep the rows in memory. "auto": if they fill no more than 40 % of it. Else every
        pass reads them anew, from wherever the collection has them.
    checkpoint : path-like or None, default=None
        A file for the iterates. A fit that broke off continues from there when it is repeated; the file is
        removed when a fit is over.

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
    checkpoint: str | os.PathLike[str] | None = field(default=None, kw_only=True)

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
        check_blockwise(self)
        checkpoint = None
        if self.checkpoint is not None:
            if self.exclusivity > 1:
                raise ValueError(
                    "checkpoint needs exclusivity <= 1: members on features of their own are fitted at once."
                )
            checkpoint = Checkpoint(self.checkpoint)  # whether it can be used, before any work is done
        if not (isinstance(self.persist, (bool, np.bool_)) or self.persist == "auto"):
            raise ValueError(f"persist must be True, False or 'auto'; got {self.persist!r}.")
        fresh, names = snapshot(self), column_names(X)
        rows, classes, totals = distributed_rows(Engine.current(), X, y, sample_weight, self.persist)
        shown = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        found = BlockTasks.of(fresh, rows, classes, totals, shown, names)
        if checkpoint is not None:
            fit = {name: getattr(self, name) for name in MINIMISED}
            fit |= {"shape": [rows.n_rows, rows.n_features], "classes": classes.tolist()}
            checkpoint.describe(fit)
            found = _CheckpointedTasks(**vars(found), checkpoint=checkpoint)
        return self._fit(fresh, found, self.feature_groups)

    def to_local(self) -> LocalERMClassifier:
        """Return the plain classifier with the same parameters and the same fitted members.

        Returns
        -------
        model : exclusivity.ERMClassifier
            For rows in memory: saving, plots and everything else work with it.
        """
        model = LocalERMClassifier(**shared_parameters(self, LocalERMClassifier))
        return FittedState.of(self).restore(model)

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
        parts = [hits(sent, *block) for block in zip(*joint_blocks(X, y, sample_weight), strict=True)]
        sums = Engine.current().compute(delayed(np.sum)(parts, axis=0))
        return float(sums[0] / sums[1])


@dataclass(frozen=True, eq=False)
class _CheckpointedTasks(BlockTasks):
    """The tasks of a fit that notes its iterates in a file, and starts from those that it finds there."""

    checkpoint: Checkpoint

    def solve_convex(
        self,
        targets: Sequence[Target],
        settings: Mapping[str, Any],
        starts: Sequence[Start | None] | None,
        callbacks: Sequence[Callback | None] | None,
    ) -> list[SolverResult]:
        """See ``BlockTasks``."""
        nothing = [None] * len(targets)
        starts = [self.checkpoint.start(number) or start for number, start in enumerate(starts or nothing)]
        watched = self.checkpoint.watched(callbacks or nothing)
        results = super().solve_convex(targets, settings, starts, watched)
        self.checkpoint.remove()
        return results


def _mapped(model: Any, method: str, X: Collection, *args: Any, **options: Any) -> Array:
    """Map ``model.method`` over the blocks of rows, as one lazy array.

    Shape and type are those of the answer for one row, which also shows wrong arguments at once. Empty
    blocks, which the model in memory would refuse, give empty answers.
    """
    n_features = X.shape[1] if isinstance(X, Array) else len(X.columns) if is_frame(X) else None
    blocks = row_blocks(X)
    if n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} "
            "features as input."
        )
    nameless = snapshot(model)
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
