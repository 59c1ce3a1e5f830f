"""ERMClassifierCV: the value of C that predicts best on rows left out, found along warm-started paths."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from exclusivity._errors import ParameterError
from exclusivity.classifier import describe
from exclusivity.classifier.erm import ERMClassifier
from exclusivity.classifier.fitted import width_of
from exclusivity.classifier.fitting import (
    carried_groups,
    carried_signs,
    problem_seeds,
    warn_of_constant_votes,
    warn_of_surplus,
)
from exclusivity.classifier.grid import Outcome, search
from exclusivity.classifier.parameters import ClassWeight, RandomState, shared_parameters
from exclusivity.classifier.path import PathRows
from exclusivity.classifier.prediction import EnsemblePredictions
from exclusivity.classifier.refitting import fitted_attributes, replace_fitted, snapshot
from exclusivity.classifier.training import (
    check_jobs,
    check_parameters,
    sample_weights,
    validated_classes,
)
from exclusivity.problem.arrays import Floats, Ints, Matrix


class ERMClassifierCV(EnsemblePredictions, ClassifierMixin, BaseEstimator):
    """An ERM whose C is chosen by cross-validation.

    For every fold the whole path over C is solved at little more than the price of a few fits (see
    :func:`erm_path`), every solution with its duality gap. Then the best C is fitted to all rows.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of members.
    Cs : int or array-like of floats, default=10
        Values of C to try, or how many: then a log grid of 4.5 decades whose place is found from the data
        (see :func:`erm_path`), the same for all folds. While the largest or the smallest of that many wins,
        the grid grows beyond it, by three decades at most. A sequence is kept as it is. A warning says when
        the best of three values or more is at an end.
    cv : int, splitter, iterable or None, default=None
        None is stratified 5-fold; an int so many stratified folds; a splitter such as ``GroupKFold``, or
        pairs of training and test indices.
    scoring : str, callable or None, default=None
        How to judge predictions; None is accuracy. Any scorer of a classifier without probabilities.
    refit : bool, default=True
        Whether to fit the best C to all rows. Without that there is nothing to predict with.
    loss : {"hinge", "logistic", "smooth_hinge"}, default="hinge"
        As in :class:`ERMClassifier`.
    p : float, default=2
        As in :class:`ERMClassifier`.
    exclusivity : float, default=1.0
        As in :class:`ERMClassifier`.
    sparsity : float, default=0.0
        As in :class:`ERMClassifier`.
    coef_bounds : pair (lower, upper) or dict, default=None
        As in :class:`ERMClassifier`.
    monotonic_cst : array-like of shape (n_features,) or dict, default=None
        As in :class:`ERMClassifier`.
    voting : {"soft", "hard", "runoff"}, default="soft"
        As in :class:`ERMClassifier`.
    feature_groups : sequence of labels, callable or None, default=None
        As in :class:`ERMClassifier`.
    solver : {"auto", "newton", "alm", "paper", "exclusive"}, default="auto"
        As in :class:`ERMClassifier`.
    solver_options : dict, default=None
        As in :class:`ERMClassifier`.
    tol : float, default=1e-4
        As in :class:`ERMClassifier`.
    max_iter : int, default=None
        As in :class:`ERMClassifier`.
    fit_intercept : bool, default=True
        As in :class:`ERMClassifier`.
    class_weight : dict or "balanced", default=None
        As in :class:`ERMClassifier`. "balanced" weights are those of each fold's training rows.
    multi_class : {"ovr", "ovo"}, default="ovr"
        As in :class:`ERMClassifier`.
    random_state : int, RandomState or None, default=None
        As in :class:`ERMClassifier`; folds are made by ``cv``, which has its own.
    n_jobs : int, default=None
        Threads over folds, and over the binary problems of the last fit. Does not change results.
    verbose : int, default=0
        1 prints a line per path, 2 a line per value of C too.

    Attributes
    ----------
    C_ : float
        The best value of C: the highest mean score; the smallest such C if there are several.
    Cs_ : ndarray of shape (n_Cs,)
        The values tried; more than asked for where the grid had to grow.
    best_index_, best_score_ : int, float
        Where C_ is in ``Cs_``, and its mean score.
    scores_ : ndarray of shape (n_folds, n_Cs)
        The score of every fold and C.
    cv_results_ : dict of ndarrays
        ``param_C``, ``params``, ``split0_test_score``, ..., ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``mean_n_iter`` and ``max_dual_gap`` (over folds and binary problems).
    n_splits_ : int
        Number of folds.
    scorer_ : callable
        What gave the scores.
    classes_, components_, component_intercepts_, coef_, intercept_, objective_, dual_gap_, converged_,
    n_iter_, history_, groups_, partition_, supports_, n_features_in_, feature_names_in_
        Of the last fit, as in :class:`ERMClassifier`.

    See Also
    --------
    erm_path : The path itself.
    exclusivity.inspection.PathDisplay : Scores against C.
    sklearn.model_selection.GridSearchCV : Any parameter, without sharing between values.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import ERMClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ERMClassifierCV(n_estimators=30, Cs=[0.01, 1, 100]).fit(scale(X), y)
    >>> clf.C_
    1.0
    >>> clf.cv_results_["mean_test_score"].round(2)
    array([0.94, 0.98, 0.97])
    """

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        Cs: Any = 10,
        cv: object = None,
        scoring: object = None,
        refit: bool = True,
        loss: str = "hinge",
        p: float = 2,
        exclusivity: float = 1.0,
        sparsity: float = 0.0,
        coef_bounds: Any = None,
        monotonic_cst: Any = None,
        voting: str = "soft",
        feature_groups: object = None,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        multi_class: str = "ovr",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.loss = loss
        self.p = p
        self.exclusivity = exclusivity
        self.sparsity = sparsity
        self.coef_bounds = coef_bounds
        self.monotonic_cst = monotonic_cst
        self.voting = voting
        self.feature_groups = feature_groups
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Matrix, y: NDArray[Any], sample_weight: ArrayLike | None = None, groups: Any = None
    ) -> Self:
        """Choose C and train the ensemble.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, in training and, where the scorer takes them, in scoring. Rows of weight 0 are left out
            of both.
        groups : array-like of shape (n_samples,), default=None
            Handed to the splitter, for example ``GroupKFold``.

        Returns
        -------
        self : ERMClassifierCV
            The fitted classifier.
        """
        template = self._template()
        template.feature_groups = carried_groups(self.feature_groups, X, self.exclusivity)
        template.monotonic_cst = carried_signs(self.monotonic_cst, X)
        check_parameters(vars(template))
        fresh = snapshot(self)  # other threads predict with the former model until this one is complete
        X, y = validated_classes(fresh, X, y)
        template.__dict__.update(width_of(fresh))
        weights = sample_weights(sample_weight, X.shape[0])
        everything = PathRows.build(template, X, y, weights)
        Cs = everything.costs(self.Cs)
        scorer = check_scoring(template, scoring=self.scoring)
        fold = _Fold(template, X, y, weights, sample_weight is not None, scorer)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y, groups))

        def score(costs: Floats) -> list[Outcome]:
            work = (delayed(fold.scores)(costs, number, *split) for number, split in enumerate(splits))
            return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(work))

        Cs, outcomes = search(Cs, score, may_grow=np.ndim(self.Cs) == 0)
        results = summary(Cs, outcomes)
        best = best_index(results["mean_test_score"], Cs)
        template.set_params(n_jobs=self.n_jobs)
        fitted = everything.refit(float(Cs[best])) if self.refit else None
        found = {
            "Cs_": Cs,
            "C_": float(Cs[best]),
            "best_index_": best,
            "best_score_": float(results["mean_test_score"][best]),
            "cv_results_": results,
            "scores_": np.stack([results[f"split{k}_test_score"] for k in range(len(splits))]),
            "n_splits_": len(splits),
            "scorer_": scorer,
        }
        members = {} if fitted is None else fitted_attributes(fitted)
        replace_fitted(self, width_of(fresh) | members | found)
        if self.exclusivity > 1:
            warn_of_surplus(everything.groups, self.n_estimators)
        if self.exclusivity > 1 and self.voting != "soft" and fitted is not None:
            warn_of_constant_votes(fitted._vote_counts(everything.data.X), fitted)
        return self

    def score(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The score of the last fit, as ``scoring`` asks.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score on.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights; the scorer has to take them.

        Returns
        -------
        score : float
            Accuracy, or what ``scoring`` gives.
        """
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(check_scoring(self, scoring=self.scoring)(self, X, y, **given))

    def __sklearn_is_fitted__(self) -> bool:
        """Fitted means having members to predict with; without ``refit`` there are none."""
        if hasattr(self, "C_") and not hasattr(self, "_ensemble"):
            raise NotFittedError(
                f"refit=False: C_={self.C_:.3g} was chosen, but nothing fitted to predict with. Set "
                "refit=True, or fit ERMClassifier(C=clf.C_)."
            )
        return hasattr(self, "_ensemble")

    def __sklearn_tags__(self) -> Tags:
        """Sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The usual repr, and a word when all members are equal."""
        return describe.text(self, super().__repr__(N_CHAR_MAX))

    def _repr_html_inner(self) -> str:
        return describe.html(self)

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        return describe.mimebundle(self)

    def _template(self) -> ERMClassifier:
        """A classifier with this one's parameters; folds run side by side, their problems do not."""
        if not isinstance(self.refit, (bool, np.bool_)):
            raise TypeError(f"refit must be True or False; got {self.refit!r}.")
        check_jobs(self.n_jobs)
        template = ERMClassifier(**{**shared_parameters(self, ERMClassifier), "n_jobs": None})
        check_parameters(template.get_params(deep=False))
        if not isinstance(self.random_state, (int, np.integer)):
            # One number now, so that the order in which folds run does not matter.
            template.random_state = problem_seeds(self, 1)[0]
        return template


class _Fold:
    """The rows and settings that all folds share."""

    def __init__(
        self,
        template: ERMClassifier,
        X: Matrix,
        y: NDArray[Any],
        weights: Floats,
        is_weighted: bool,
        scorer: Any,
    ) -> None:
        self._template, self._X, self._y, self._weights = template, X, y, weights
        self._scorer = scorer
        self._scores_weights = is_weighted and takes_sample_weight(scorer)

    def scores(self, Cs: Floats, number: int, train: Ints, test: Ints) -> Outcome:
        """Test score, mean number of iterations and largest gap of every C."""
        test = np.asarray(test)
        test = np.flatnonzero(test) if test.dtype == bool else test
        test = test[self._weights[test] > 0]
        if len(test) == 0:
            raise ParameterError("cv", f"fold {number} of cv has no test rows of positive weight.")
        try:
            rows = PathRows.build(self._template, self._X[train], self._y[train], self._weights[train])
        except ValueError as error:
            raise ParameterError(
                "cv", f"The training rows of fold {number} of cv cannot be used: {error}"
            ) from error
        given = {"sample_weight": self._weights[test]} if self._scores_weights else {}
        X, y = self._X[test], self._y[test]
        classifiers = rows.solve(Cs)
        for classifier in classifiers:  # the rows are plain arrays by now, whatever had names before
            classifier.__dict__.pop("feature_names_in_", None)
        scores = np.array(
            [self._scorer(classifier, X, y, **given) for classifier in classifiers], dtype=float
        )
        n_iter = np.array([classifier.n_iter_.mean() for classifier in classifiers])
        gaps = np.array([classifier.dual_gap_.max() for classifier in classifiers])
        return scores, n_iter, gaps


def takes_sample_weight(scorer: Any) -> bool:
    """Whether a scorer, or the metric inside it, has an argument ``sample_weight``."""
    metric = getattr(scorer, "_score_func", scorer)
    if metric is scorer and not inspect.isfunction(scorer):
        metric = scorer.__call__
        if hasattr(scorer, "_estimator"):  # scoring=None: the classifier's own accuracy
            return True
    return "sample_weight" in inspect.signature(metric).parameters


def summary(Cs: Floats, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """``cv_results_`` from the scores, iterations and gaps of every fold."""
    scores = np.stack([outcome[0] for outcome in outcomes])
    means = scores.mean(axis=0)
    comparable = np.where(np.isnan(means), -np.inf, means)
    return {
        "param_C": Cs,
        "params": [{"C": float(C)} for C in Cs],
        **{f"split{k}_test_score": row for k, row in enumerate(scores)},
        "mean_test_score": means,
        "std_test_score": scores.std(axis=0),
        # Equal scores have equal ranks, 1 the best, as in GridSearchCV.
        "rank_test_score": 1 + len(means) - np.searchsorted(np.sort(comparable), comparable, side="right"),
        "mean_n_iter": np.mean([outcome[1] for outcome in outcomes], axis=0),
        "max_dual_gap": np.max([outcome[2] for outcome in outcomes], axis=0),
    }


def best_index(means: Floats, Cs: Floats) -> int:
    """Where the best mean score is; of equal ones the smallest C."""
    if np.all(np.isnan(means)):
        raise ValueError("Every score is NaN: choose another scoring, or other folds.")
    candidates = np.flatnonzero(means == np.nanmax(means))
    return int(candidates[np.argmin(Cs[candidates])])
