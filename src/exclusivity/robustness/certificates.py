"""Certificates of whole pipelines, and accuracies that no broken feature can take away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.classifier._validation import TEST, check_counted, check_number
from exclusivity.robustness.sources import (
    column_sources,
    hides_methods,
    is_exactly,
    join_groups,
    learns_by_columns,
)
from exclusivity.rows.design import check_sparse
from exclusivity.voting.members import VotingMembers, members_of
from exclusivity.voting.rules import RULES, CertifiedVotes, VotingEnsemble


def certify(estimator: BaseEstimator, X: Matrix, *, voting: str | None = None, top_k: int = 1) -> Ints:
    """Count the input columns that may take any value without changing each prediction.

    Parameters
    ----------
    estimator : fitted classifier
        A :class:`~exclusivity.RobustAdditiveClassifier`, an :class:`~exclusivity.ERMClassifier` with
        ``voting="hard"`` or ``"runoff"``, a :class:`~exclusivity.partition.FeaturePartitionClassifier`, a
        BaggingClassifier whose members have no ``predict_proba``, a Pipeline that ends in one of the votes, a
        FrozenEstimator of one, or a search (GridSearchCV) over them. Classes derived from these, or from a
        step's class, may override what is certified and are refused.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Rows, as ``estimator.predict`` takes them.
    voting : {"hard", "runoff"} or None, default=None
        Certify what :func:`elect` says, the votes of the same members counted by this rule; any of the
        ensembles above will do, and for "runoff" its members must rank classes (``decision_function`` or
        ``predict_proba``). None: what ``estimator.predict`` says.
    top_k : int, default=1
        Count until more than so many classes could win; see :func:`certify_set`.

    Returns
    -------
    radius : ndarray of int, shape (n_samples,)
        -1 where the vote is a tie, or might be one in another batch or arithmetic. Counted are columns of X,
        or feature groups where the classifier has some; columns that an encoder makes of one column of X
        count as one.

    Raises
    ------
    ValueError
        If a step of the pipeline mixes columns (PCA, Normalizer, ...), if X has values that are not finite by
        the time they reach the members, or if the classifier does not count votes.

    Notes
    -----
    The certificate is about the values of one row at prediction time; :func:`certificate_scope` says whether
    it covers training rows that were tampered with. It says nothing about whether the prediction is right.

    Up to its radius a label does not depend on the rows beside it, on sparse or dense storage, nor on float32
    or float64 for the same values: where the rounding error of linear scores might turn a member's vote, it
    counts as if it could be for any class. Members that are not linear are taken as exact.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> voters = ERMClassifier(9, exclusivity=np.inf, voting="hard", random_state=0)
    >>> model = make_pipeline(StandardScaler(), voters).fit(X[::2], y[::2])
    >>> bool(np.median(certify(model, X[1::2])) >= 3)
    True
    """
    if type(estimator) is RobustAdditiveClassifier:
        if voting is not None or top_k != 1:
            raise ValueError(
                "voting and top_k are for votes; a RobustAdditiveClassifier has certify_set(X, r)."
            )
        return np.asarray(estimator.certify(X))
    return voting_ensemble(estimator, voting).radii(X, top_k)


def certify_set(estimator: BaseEstimator, X: Matrix, r: int, *, voting: str | None = None) -> Bools:
    """Return the classes that each prediction could change to when any ``r`` input columns take any values.

    Parameters
    ----------
    estimator : fitted classifier
        As for :func:`certify`.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Rows, as ``estimator.predict`` takes them.
    r : int
        How many columns (feature groups) may change.
    voting : {"hard", "runoff"} or None, default=None
        As for :func:`certify`.

    Returns
    -------
    can_win : ndarray of bool, shape (n_samples, n_classes)
        In the order of ``estimator.classes_``; the prediction is always among them. A row with one class is
        certified at r. Exact for two classes and disjoint supports; otherwise no class is missing that could
        win, and some may be there that could not.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> voters = ERMClassifier(5, exclusivity=np.inf, voting="runoff", random_state=0)
    >>> model = make_pipeline(StandardScaler(), voters).fit(X[::2], y[::2])
    >>> can_win = certify_set(model, X[1::2], r=1)
    >>> bool(np.all((can_win.sum(axis=1) == 1) == (certify(model, X[1::2]) >= 1)))
    True
    """
    if type(estimator) is RobustAdditiveClassifier and voting is None:
        return np.asarray(estimator.certify_set(X, r))
    return voting_ensemble(estimator, voting).can_win(X, r)


def elect(estimator: BaseEstimator, X: Matrix, voting: str = "runoff") -> NDArray[Any]:
    """Predict by a vote of an ensemble's members, whatever rule the ensemble itself has.

    Parameters
    ----------
    estimator : fitted classifier
        As for :func:`certify`; members of a BaggingClassifier may have ``predict_proba``.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Rows, as ``estimator.predict`` takes them.
    voting : {"hard", "runoff"}, default="runoff"
        How votes are counted: "hard", most votes win; "runoff", the two classes with most votes meet in a
        second round.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        What ``certify(estimator, X, voting=voting)`` certifies.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_wine(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> subspaces = BaggingClassifier(LogisticRegression(), 15, max_features=2, random_state=0).fit(X, y)
    >>> bool((elect(subspaces, X) == y).mean() > 0.9)
    True
    """
    return np.asarray(voting_ensemble(estimator, voting).predict(X))


def certificate_scope(estimator: BaseEstimator) -> str:
    """Tell whether a certificate covers values of the row to be predicted, or of training rows as well.

    Parameters
    ----------
    estimator : fitted classifier
        An ERMClassifier, a FeaturePartitionClassifier, or a Pipeline that ends in one.

    Returns
    -------
    scope : str
        "training and test" if the partition of the features was drawn, independently of the data, and
        every step before the classifier is known to look at one column at a time and to make one of it
        (scalers, powers, ordinal numbers, a QuantileTransformer with ``subsample=None``). A radius r then
        holds whatever r features show in the row AND whatever they showed in training rows, the labels being
        correct; all else that was done by looking at the rows, such as a choice of C, has to be done without
        those features, and no software can see that. For a partition that was given it is "training and test
        if the partition does not depend on the rows". Everything else, a search over parameters included, is
        "test".

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> voters = ERMClassifier(5, exclusivity=np.inf, voting="runoff", partition="random", random_state=0)
    >>> certificate_scope(make_pipeline(StandardScaler(), voters).fit(X, y))
    'training and test'
    """
    if is_exactly(estimator, (Pipeline,)):
        steps = [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        is_by_columns = all(learns_by_columns(step) for step in steps)
        return certificate_scope(estimator[-1]) if is_by_columns else TEST
    check_is_fitted(estimator)
    return str(getattr(estimator, "certificate_scope_", TEST))


def certified_accuracy(
    radii: ArrayLike, y_true: ArrayLike, y_pred: ArrayLike, r: int = 0, *, balanced: bool = False
) -> float:
    """Return the share of rows that are right and stay right whatever happens to ``r`` features.

    Parameters
    ----------
    radii : array-like of int, shape (n_samples,)
        What :func:`certify` gave.
    y_true, y_pred : array-like of shape (n_samples,)
        The labels, and the predictions that were certified.
    r : int, default=0
        How many features may break. At 0 ties do not count as right, however they were broken, so that this
        is at most the plain accuracy.
    balanced : bool, default=False
        The mean over classes of the share within the class: 1 / n_classes is then all that a constant gets.

    Returns
    -------
    accuracy : float

    Examples
    --------
    >>> certified_accuracy([2, 0, 1, -1], ["a", "a", "b", "b"], ["a", "a", "a", "b"], r=1)
    0.25
    """
    check_number({"r": r}, "r", least=0, integer=True)
    curve = certified_accuracy_curve(radii, y_true, y_pred, balanced=balanced)
    return float(curve[min(r, len(curve) - 1)])  # beyond its end nothing is certified


def certified_accuracy_curve(
    radii: ArrayLike,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    max_radius: int | None = None,
    balanced: bool = False,
) -> Floats:
    """Return certified accuracy at r = 0, 1, ..., ``max_radius``.

    Parameters
    ----------
    radii : array-like of shape (n_samples,)
        As for :func:`certified_accuracy`.
    y_true : array-like of shape (n_samples,)
        As for :func:`certified_accuracy`.
    y_pred : array-like of shape (n_samples,)
        As for :func:`certified_accuracy`.
    max_radius : int, default=None
        None: up to the first r at which nothing is certified.
    balanced : bool, default=False
        As for :func:`certified_accuracy`.

    Returns
    -------
    curve : ndarray of shape (max_radius + 1,)

    Examples
    --------
    >>> certified_accuracy_curve([2, 0, 1, -1], ["a", "a", "b", "b"], ["a", "a", "a", "b"])
    array([0.5 , 0.25, 0.25, 0.  ])
    """
    radii, y_true, y_pred = map(np.asarray, (radii, y_true, y_pred))
    shapes = [values.shape for values in (radii, y_true, y_pred)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or shapes[0] == (0,):
        raise ValueError(
            "radii, y_true and y_pred must be one-dimensional and of the same length, at least 1; got shapes "
            f"{shapes[0]}, {shapes[1]} and {shapes[2]}."
        )
    if not np.issubdtype(radii.dtype, np.integer):
        raise TypeError(f"radii must be integers, as certify gives them; got {radii.dtype}.")
    if max_radius is None:
        max_radius = int(radii.max()) + 1
    check_number({"max_radius": max_radius}, "max_radius", least=0, integer=True)
    is_right = np.asarray(y_true == y_pred)
    labels = y_true if balanced else np.zeros(len(radii))
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    # It changes at radii of rows only, and there may be far fewer of them than radii.
    steps = np.unique(np.clip(radii, -1, max_radius))
    counts = (np.bincount(codes[is_right & (radii >= r)], minlength=len(sizes)) for r in steps)
    shares = np.array([*(np.mean(count / sizes) for count in counts), 0.0])
    return np.asarray(shares[np.searchsorted(steps, np.arange(max_radius + 1))])


def certified_accuracy_scorer(r: int, *, balanced: bool = True) -> Callable[..., float]:
    """Make a scorer of certified accuracy at ``r`` broken features, for ``GridSearchCV`` and its relatives.

    Parameters
    ----------
    r : int
        How many features (feature groups) may break at once.
    balanced : bool, default=True
        The mean over classes of the share within the class. A constant classifier is perfectly robust: its
        plain certified accuracy is that of the largest class.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)``; larger is better.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> voters = ERMClassifier(exclusivity=np.inf, voting="hard", class_weight="balanced", random_state=0)
    >>> grid = {"ermclassifier__n_estimators": [3, 9]}
    >>> model = make_pipeline(StandardScaler(), voters)
    >>> search = GridSearchCV(model, grid, scoring=certified_accuracy_scorer(r=1), cv=2).fit(X, y)
    >>> search.best_params_
    {'ermclassifier__n_estimators': 9}
    """
    check_number({"r": r}, "r", least=0, integer=True)
    return partial(_certified_score, r=r, balanced=balanced)


def _certified_score(estimator: BaseEstimator, X: Matrix, y: ArrayLike, *, r: int, balanced: bool) -> float:
    return certified_accuracy(certify(estimator, X), y, estimator.predict(X), r, balanced=balanced)


def voting_ensemble(estimator: BaseEstimator, voting: str | None = None) -> VotingEnsemble:
    """Return the vote of a fitted estimator, counted by the rule ``voting`` (None: its own), or refuse it."""
    if voting is not None:
        check_counted({"voting": voting})
    if is_exactly(estimator, (FrozenEstimator,)):
        return voting_ensemble(estimator.estimator, voting)
    if _is_of("sklearn", estimator) and hasattr(estimator, "best_estimator_"):
        return voting_ensemble(estimator.best_estimator_, voting)
    if is_exactly(estimator, (Pipeline,)):
        return _behind_steps(estimator, voting)
    check_is_fitted(estimator)
    if is_exactly(estimator, (BaggingClassifier,)):
        return _bagging(estimator, voting)
    if not isinstance(estimator, CertifiedVotes) or not _is_of("exclusivity", estimator):
        raise TypeError(
            f"There is no certificate for {type(estimator).__name__}: it needs members that vote on "
            "features of their own, counted as this package knows it. Give an ERMClassifier with "
            "voting='hard' or 'runoff', a FeaturePartitionClassifier, a BaggingClassifier whose members have "
            "no predict_proba, or a Pipeline that ends in one of these; of a search of another package its "
            "best_estimator_, and of a class derived from Pipeline sklearn.pipeline.Pipeline(model.steps)."
        )
    return estimator._voting_ensemble(voting)


def _is_of(package: str, estimator: BaseEstimator) -> bool:
    """Return whether the class is one of the package itself, and the object does what the class does."""
    return type(estimator).__module__.split(".")[0] == package and not hides_methods(estimator)


def _behind_steps(pipeline: BaseEstimator, voting: str | None) -> VotingEnsemble:
    """Return the vote of the last step on rows of the pipeline; columns of one source break together."""
    inner, head = voting_ensemble(pipeline[-1], voting), pipeline[:-1]
    if all(step in (None, "passthrough") for _, step in head.steps):
        return inner
    groups = join_groups(inner.groups, column_sources(head))

    def transformed(X: Matrix) -> Any:
        check_sparse(X)
        return head.transform(X)

    return replace(
        inner,
        groups=groups,
        preferences=lambda X: inner.preferences(transformed(X)),
        predict=lambda X: inner.predict(transformed(X)),
    )


def _bagging(estimator: BaseEstimator, voting: str | None) -> VotingEnsemble:
    if voting is None and any(hasattr(member, "predict_proba") for member in estimator.estimators_):
        raise ValueError(
            "This BaggingClassifier averages the probabilities of its members, and one broken feature may "
            "move a mean past any majority; use a base estimator without predict_proba (LinearSVC), whose "
            "votes are counted, or count them yourself: elect(estimator, X, voting='hard') predicts, and "
            "certify(estimator, X, voting='hard') certifies that."
        )
    found, classes = members_of(estimator), estimator.classes_
    supports = np.zeros((len(found.estimators), estimator.n_features_in_), dtype=bool)
    for member, columns in enumerate(estimator.estimators_features_):
        supports[member, columns] = True
    rule = RULES[voting or "hard"]
    voters = VotingMembers(found.estimators, estimator.estimators_features_, len(classes), rule)
    return VotingEnsemble(
        rule,
        classes,
        supports,
        np.arange(estimator.n_features_in_),
        lambda X: voters.preferences(found.checked(X)),
        lambda X: classes[voters.winners(found.checked(X))],
    )
