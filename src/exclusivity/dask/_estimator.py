"""The classifiers on Dask collections: the rows stay with the workers, predictions are lazy."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from threading import Lock
from typing import Any, Self
from zipfile import BadZipFile

import dask.array as da
import numpy as np
from dask.array import Array
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dask import delayed
from exclusivity._typing import Matrix
from exclusivity.additive.classifier import (
    RobustAdditiveClassifier as LocalRobustAdditiveClassifier,
    has_probabilities as has_additive_probabilities,
)
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
from exclusivity.dask._engine import Engine
from exclusivity.dask._rows import (
    Collection,
    column_names,
    distributed_rows,
    is_frame,
    joint_blocks,
    row_blocks,
)
from exclusivity.io._whole_file import whole_file
from exclusivity.solvers.base import Callback, IterationState, SolverResult, Start
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


class Checkpoint:
    """The last point of every binary problem in a file, so that a fit that broke off goes on where it was.

    Parameters
    ----------
    path : path-like
        A .npz file, which may be there already: ValueError where it is no checkpoint, or a damaged one, and
        FileNotFoundError where it could not be written later on, because its folder is missing. It is written
        as a whole or not at all, after each certified iterate, and removed when the fit is over.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._name, self._lock = Path(path), repr(os.fspath(path)), Lock()
        self._fit, self._points = "", dict[str, Any]()
        if not self._path.parent.is_dir():
            raise FileNotFoundError(
                f"the checkpoint {self._name} needs a folder that does not exist; make it, or name another "
                "file."
            )
        if not self._path.exists():
            return
        try:
            with self._path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                self._points = dict(stored)
            fit = self._points.pop("fit")
            is_known = fit.dtype.kind == "U" and all(point.dtype == float for point in self._points.values())
        except (AttributeError, BadZipFile, EOFError, KeyError, TypeError, ValueError, zlib.error):
            is_known = False
        if not is_known:
            raise ValueError(
                f"the checkpoint {self._name} is damaged, or the file of something else. Remove it to begin "
                "the fit anew, or name another file."
            )
        self._fit = str(fit)

    def describe(self, fit: dict[str, Any]) -> None:
        """Say what the fit is about; a file that belongs to another fit is refused."""
        now = json.dumps(fit, sort_keys=True, default=_plain)
        if self._fit not in ("", now):
            raise ValueError(
                f"the checkpoint {self._name} belongs to another fit: {self._fit}. Remove the file, or name "
                "another one."
            )
        self._fit = now

    def start(self, number: int) -> Start | None:
        """Return the point of problem ``number``, if the file has it."""
        stored = self._points.get(str(number))
        return None if stored is None else Start(stored[:-1, None], stored[-1:])

    def watched(self, callbacks: Sequence[Callback | None]) -> list[Callback]:
        """Return callbacks that note every iterate before the given ones are called."""
        return [self._watch(number, callback) for number, callback in enumerate(callbacks)]

    def _watch(self, number: int, callback: Callback | None) -> Callback:
        def note(state: IterationState) -> bool:
            with self._lock, whole_file(self._path) as file:
                self._points[str(number)] = np.append(state.weights[:, 0], state.intercepts[0])
                np.savez(file, fit=np.array(self._fit), **self._points)
            return callback is not None and bool(callback(state))

        return note

    def remove(self) -> None:
        """Remove the file when the fit is over."""
        self._path.unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    """Return an array as a list; anything else that JSON does not know as text."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)


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
