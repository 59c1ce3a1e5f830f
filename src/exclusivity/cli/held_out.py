"""Out-of-sample figures of ``erm fit``: predictions of rows by models that have not seen them."""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exclusivity.cli import curves
from exclusivity.cli.progress import Progress
from exclusivity.cli.training import TrainingData

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


FOLDS = 5
# Values times fits of one SVM: so much is seconds, and a copy of the rows takes no more than 80 MB.
_MOST_WORK = 10_000_000
_MOST_WORK_ONCE = 5 * _MOST_WORK
_MOST_VALUES = 10_000_000


@dataclass(frozen=True, eq=False)
class Folds:
    """Which rows are left out, and when.

    Attributes
    ----------
    splits : list of (train, test)
        Numbers of rows. One pair: some rows are held out; several: every row is left out once.
    how : str
        The same in words.
    """

    splits: list[tuple[Any, Any]]
    how: str


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows predicted by models that had not seen them.

    Attributes
    ----------
    rows : ndarray of int
        Their places in the training data.
    labels, predicted : ndarrays
        Their classes, and what was predicted.
    how : str
        How that was got.
    """

    rows: Any
    labels: Any
    predicted: Any
    how: str


def folds_for(args: argparse.Namespace, data: TrainingData) -> Folds | None:
    """The folds that were asked for with ``--folds``, else those that cost little; None where there are none.

    What decides is the size of the data, not a clock: the same command gives the same figures.
    """
    import numpy as np

    counts = np.sort(np.bincount(np.unique(data.y, return_inverse=True)[1]))
    # The two largest classes are in the training rows of every fold, so that there is something to learn.
    n_folds = min(FOLDS if args.folds is None else args.folds, int(counts[-2]))
    if n_folds < 2 or (args.folds is None and args.test is not None):
        return None
    n_values = data.X.nnz if data.is_sparse else curves.values_of_a_member(args, data.X)
    work = n_values * _n_fits(args, len(counts))
    if args.folds is None and (n_values > _MOST_VALUES or work > _MOST_WORK_ONCE):
        return None
    is_once = args.folds is None and work > _MOST_WORK
    return _split(data, n_folds, args.seed, is_once=is_once)


def _n_fits(args: argparse.Namespace, n_classes: int) -> int:
    """How many SVMs a fit amounts to: members that differ are trained one by one."""
    from exclusivity.solvers import SOLVERS, resolve_solver

    n_problems = 1 if n_classes == 2 else n_classes if args.multi_class == "ovr" else math.comb(n_classes, 2)
    spec = SOLVERS[resolve_solver(args.solver, args.exclusivity)]
    differ = spec.members_compete or spec.keeps_members
    return int(n_problems * (args.members if differ else 1))


def _split(data: TrainingData, n_folds: int, seed: int, *, is_once: bool) -> Folds:
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        # A class with fewer rows than folds is in some test sets only, which is right.
        warnings.simplefilter("ignore", UserWarning)
        splits = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(data.y, data.y))
    if is_once:
        return Folds(
            splits[:1], f"trained on the others at the same settings, {n_folds - 1} of {n_folds} rows"
        )
    return Folds(splits, f"{n_folds}-fold cross-validation at the same settings")


def one_svm(pipeline: object) -> BaseEstimator:
    """The same pipeline with one SVM on all features in place of its members, at the cost of each of them."""
    from sklearn.base import clone

    rival = clone(pipeline)
    rival[-1].set_params(n_estimators=1, exclusivity=1.0, voting="soft", feature_groups=None, solver="auto")
    if curves.STEP in rival.named_steps:
        rival.set_params(**{f"{curves.STEP}__voters__n_estimators": 1})  # which looks at all columns together
    return rival


def predict_held_out(pipeline: object, data: TrainingData, folds: Folds, progress: Progress) -> HeldOut:
    """Fit a copy of the pipeline, its scaler included, to every fold's rows, and predict the others.

    The rows may have been scaled already: scaling is learned anew from a fold's rows, and what it gives does
    not depend on an earlier shift or factor of a feature.
    """
    import numpy as np
    from sklearn.base import clone

    predicted = []
    for number, (train, test) in enumerate(folds.splits, 1):
        progress.tell(f"out of sample: fold {number} of {len(folds.splits)}")
        model = clone(pipeline)
        model.set_params(classifier__verbose=0)
        if len(model) > 1 and data.found is None:
            model[0].set_params(copy=False)  # the rows of a fold are a copy already
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows has said it
            predicted.append(model.fit(data.X[train], data.y[train]).predict(data.X[test]))
    progress.clear()
    rows = np.concatenate([test for _, test in folds.splits])
    return HeldOut(rows, data.y[rows], np.concatenate(predicted), folds.how)
