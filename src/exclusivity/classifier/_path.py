"""Many values of C: a path with shared work done once, and the C that predicts best on held-out rows."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from numbers import Real
from time import perf_counter
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from exclusivity._errors import ParameterError, ParameterTypeError
from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.classifier._ensemble import EnsemblePredictions, describe_parameters_like, shared_parameters
from exclusivity.classifier._erm import (
    ERMClassifier,
    ERMParameters,
    MemoryTasks,
    as_stored,
    fitting_threads,
    problem_seeds,
    warn_of_members,
)
from exclusivity.classifier._progress import ENDED_EARLY, warn_of_early_ends
from exclusivity.classifier._validation import (
    check_jobs,
    check_parameters,
    fitted_attributes,
    groups_of_rows,
    replace_fitted,
    sample_weights,
    signs_of_rows,
    validate_classes,
    width_of,
)
from exclusivity.objective.estimates import cost_grid
from exclusivity.solvers import SolverResult, solve_path


@dataclass(frozen=True, eq=False)
class ERMPath:
    """The solutions along a path over C.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        The values of C, in the order they were given.
    coefs : ndarray of shape (n_Cs, n_problems, n_features)
        Weights of the averaged model.
    intercepts : ndarray of shape (n_Cs, n_problems)
        Its intercepts.
    objectives, gaps : ndarray of shape (n_Cs, n_problems)
        The minimised function, and the proven bound on its relative distance from the optimum (NaN for
        ``exclusivity > 1``).
    n_iter : ndarray of shape (n_Cs, n_problems)
        Iterations taken.
    classifiers : tuple of ERMClassifier
        The fitted classifier of every C, with its members in ``components_``.
    """

    Cs: Floats
    coefs: Floats
    intercepts: Floats
    objectives: Floats
    gaps: Floats
    n_iter: Ints
    classifiers: tuple[ERMClassifier, ...]

    def __repr__(self) -> str:
        """Describe in one line what was solved and how well."""
        classifier = self.classifiers[0]
        gap = np.max(self.gaps)
        proof = "no certificate above exclusivity 1" if np.isnan(gap) else f"largest gap {gap:.1e}"
        return (
            f"<ERMPath: {len(self.Cs)} values of C from {self.Cs.min():.3g} to {self.Cs.max():.3g}, "
            f"{len(self.classes)} classes, {classifier.n_features_in_} features, "
            f"{classifier.n_estimators} members, {proof}>"
        )

    @property
    def classes(self) -> NDArray[Any]:
        """The class labels."""
        return np.asarray(self.classifiers[0].classes_)

    @property
    def components(self) -> Floats:
        """Weights of all members, (n_Cs, n_problems, n_estimators, n_features)."""
        return np.stack([classifier.components_ for classifier in self.classifiers])


def erm_path(
    X: Matrix,
    y: NDArray[Any],
    *,
    Cs: object = 10,
    sample_weight: ArrayLike | None = None,
    **parameters: Any,
) -> ERMPath:
    """Train an ERM for every value of C, much faster than one after the other.

    Every solution is certified as a single fit would be: its duality gap is at most ``tol``, or a
    ``ConvergenceWarning`` says what it is.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Class labels.
    Cs : int or array-like of floats, default=10
        Values of C in any order, or how many: then a log grid of 4.5 decades that starts where the model
        does little but compare class means (:func:`exclusivity.objective.natural_cost`).
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    **parameters
        All others of :class:`ERMClassifier`, except C, voting, partition and warm_start. For
        ``exclusivity > 1`` and ``solver="paper"`` every C is solved by itself. ``verbose=1`` prints a line
        per binary problem, 2 a line per value of C too.

    Returns
    -------
    path : ERMPath
        Coefficients, intercepts, objectives, gaps and iterations for every C and binary problem.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import erm_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = erm_path(scale(X), y, Cs=[0.01, 1, 100], n_estimators=30)
    >>> path.coefs.shape, bool(path.gaps.max() <= 1e-4)
    ((3, 1, 30), True)
    """
    for name in ("C", "voting", "partition", "warm_start"):
        if name in parameters:
            raise TypeError(f"erm_path() got an unexpected keyword argument {name!r}")
    template = ERMClassifier(**parameters)
    template.monotonic_cst = signs_of_rows(template.monotonic_cst, X)
    check_parameters(vars(template))
    template.feature_groups = groups_of_rows(template.feature_groups, X, template.exclusivity)
    X, y = validate_classes(template, X, y)
    rows = PathRows(template, X, y, sample_weights(sample_weight, X.shape[0]))
    values = rows.costs(Cs)
    classifiers = rows.solve(values)
    if template.exclusivity > 1:
        warn_of_members(classifiers[0], rows.rows)
    return ERMPath(
        Cs=values,
        coefs=np.stack([classifier.coef_ for classifier in classifiers]),
        intercepts=np.stack([classifier.intercept_ for classifier in classifiers]),
        objectives=np.stack([classifier.objective_ for classifier in classifiers]),
        gaps=np.stack([classifier.dual_gap_ for classifier in classifiers]),
        n_iter=np.stack([classifier.n_iter_ for classifier in classifiers]),
        classifiers=tuple(classifiers),
    )


class PathRows:
    """Checked rows as binary problems, made once for all values of C.

    ``template`` carries the parameters (its C does not matter) and the names of the features.
    """

    def __init__(self, template: ERMClassifier, X: Matrix, y: NDArray[Any], weights: Floats) -> None:
        self.template, self.rows = template, MemoryTasks.build(template, X, y, weights, {})

    def costs(self, Cs: object) -> Floats:
        """Return the values of C to solve for."""
        if isinstance(Cs, (int, np.integer)) and not isinstance(Cs, bool):
            if Cs < 1:
                raise ParameterError(
                    "Cs", f"Cs must be at least 1 (how many values of C) or a sequence; got {Cs!r}."
                )
            return cost_grid(self.rows.problems(self.template), int(Cs))
        return check_costs(Cs)

    def solve(self, Cs: Floats, *, one_by_one: bool = False) -> list[ERMClassifier]:
        """Fit one classifier per C; warn once about all that did not reach the tolerance.

        One by one they are what ``ERMClassifier(C=C)`` would fit to these rows, number by number.
        """
        solved: Sequence[Sequence[SolverResult]]
        if one_by_one or self.template.exclusivity > 1:
            solved = [self._solve_one(C) for C in Cs.tolist()]
        else:
            solved = list(zip(*self._solve_convex(Cs), strict=True))
        classifiers = [self._new(C) for C in Cs.tolist()]
        for classifier, results in zip(classifiers, solved, strict=True):
            classifier._store(results, self.rows)
        ends = [(f"C={C:.3g}", result) for C, results in zip(Cs, solved, strict=True) for result in results]
        ended = [pair for pair in ends if pair[1].status in ENDED_EARLY]
        if ended:
            warn_of_early_ends(ended, f"{len(ends)} fits", self.template.tol, 3)
        return classifiers

    def _new(self, C: float) -> ERMClassifier:
        # What ``clone`` would copy, without its look at signatures; the width of the rows comes along.
        classifier = deepcopy(self.template)
        classifier.C = C
        return classifier

    def _solve_one(self, C: float) -> Sequence[SolverResult]:
        started = perf_counter()
        results = self.rows.solve(self._new(C))
        if self.template.verbose:
            print(f"[ERM] C = {C:.3g}: {perf_counter() - started:.1f} s")  # noqa: T201
        return results

    def _solve_convex(self, Cs: Floats) -> list[list[SolverResult]]:
        """Return one list of results per binary problem."""
        template, problems, costs = self.template, self.rows.problems(self.template), Cs.tolist()
        seeds = problem_seeds(template, len(problems))

        def solve(number: int) -> list[SolverResult]:
            problem, started = problems[number], perf_counter()
            found = solve_path(
                problem,
                costs,
                template.solver,
                tol=template.tol,
                max_iter=template.max_iter,
                options=template.solver_options,
                seed=seeds[number],
            )
            results = [
                as_stored(problem.changed(cost=C), result, template.tol)
                for C, result in zip(costs, found, strict=True)
            ]
            if template.verbose:
                name, seconds = self.rows.tasks[number].name, perf_counter() - started
                gap = max(result.gap for result in results)
                print(f"[ERM] {name}: {len(Cs)} values of C, largest gap {gap:.1e}, {seconds:.1f} s")  # noqa: T201
            for C, result in zip(costs, results, strict=True) if template.verbose >= 2 else ():
                print(  # noqa: T201
                    f"[ERM]   C = {C:.3g}: objective {result.objective:.6g}, gap {result.gap:.1e}, "
                    f"{result.n_iter} iterations"
                )
            return results

        workers = Parallel(n_jobs=template.n_jobs if len(problems) > 1 else 1, prefer="threads")
        design = self.rows.design
        with fitting_threads(*design.X.shape, is_sparse=design.is_sparse):
            return list(workers(delayed(solve)(number) for number in range(len(problems))))


def check_costs(Cs: object) -> Floats:
    """Return a user's values of C as float64, or raise if they are none."""
    if isinstance(Cs, (bool, np.bool_, str, Real)):
        raise ParameterTypeError(
            "Cs", f"Cs must be an integer (how many values of C) or a sequence of numbers; got {Cs!r}."
        )
    try:
        values = np.asarray(Cs, dtype=float)
    except (TypeError, ValueError) as error:
        raise ParameterTypeError(
            "Cs", f"Cs must be an integer or a sequence of numbers; got {Cs!r}."
        ) from error
    if values.ndim != 1 or len(values) == 0:
        raise ParameterError("Cs", f"Cs must be one-dimensional and not empty; got shape {values.shape}.")
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ParameterError("Cs", f"Cs must be positive and finite; got {values.tolist()}.")
    return values


Outcome = tuple[Floats, Floats, Floats]
"""Of one fold: score, mean number of iterations and largest gap of every C."""

_MOST_DECADES = 3.0
_DECADES_AT_ONCE = 1.0


@describe_parameters_like(ERMClassifier)
@dataclass(repr=False, eq=False, match_args=False)
class ERMClassifierCV(EnsemblePredictions, ClassifierMixin, ERMParameters):
    """An ERM whose C is chosen by cross-validation.

    For every fold the whole path over C takes little longer to solve than a few fits (see
    :func:`erm_path`), every solution with its duality gap. Then the best C is fitted to all rows.

    Parameters
    ----------
    Cs : int or array-like of floats, default=10
        Values of C to try, or how many: then a log grid of 4.5 decades that starts where the data say
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
    class_weight : dict or "balanced", default=None
        As in :class:`ERMClassifier`. "balanced" weights are those of each fold's training rows.
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

    Cs: Any = field(default=10, kw_only=True)
    cv: object = field(default=None, kw_only=True)
    scoring: object = field(default=None, kw_only=True)
    refit: bool = field(default=True, kw_only=True)
    C: float = field(init=False)
    partition: ArrayLike = field(init=False)
    warm_start: bool = field(init=False)

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
        template.feature_groups = groups_of_rows(self.feature_groups, X, self.exclusivity)
        template.monotonic_cst = signs_of_rows(self.monotonic_cst, X)
        check_parameters(vars(template))
        fresh = copy(self)  # other threads predict with the former model until this one is complete
        X, y = validate_classes(fresh, X, y)
        template.__dict__.update(width_of(fresh))
        weights = sample_weights(sample_weight, X.shape[0])
        everything = PathRows(template, X, y, weights)
        Cs = everything.costs(self.Cs)
        scorer = check_scoring(template, scoring=self.scoring)
        scores_weights = sample_weight is not None and takes_sample_weight(scorer)
        judge = accuracy if self.scoring is None else scorer
        fold = _Fold(template, X, y, weights, judge, scores_weights)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y, groups))

        def score(costs: Floats) -> list[Outcome]:
            work = (delayed(fold.scores)(costs, number, *split) for number, split in enumerate(splits))
            return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(work))

        Cs, outcomes = search_costs(Cs, score, may_grow=np.ndim(self.Cs) == 0)
        scores, n_iter, gaps = (np.stack(each) for each in zip(*outcomes, strict=True))
        found = SearchState(Cs, scores, n_iter.mean(axis=0), gaps.max(axis=0)).attributes(scorer)
        template.set_params(n_jobs=self.n_jobs)
        fitted = everything.solve(np.array([found["C_"]]), one_by_one=True)[0] if self.refit else None
        members = {} if fitted is None else fitted_attributes(fitted)
        replace_fitted(self, width_of(fresh) | members | found)
        if self.exclusivity > 1 and fitted is not None:
            warn_of_members(fitted, everything.rows)
        return self

    def score(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute the score of the last fit, as ``scoring`` asks.

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
        """Return whether there are members to predict with; without ``refit`` there are none."""
        if hasattr(self, "C_") and not hasattr(self, "_ensemble"):
            raise NotFittedError(
                f"refit=False: C_={self.C_:.3g} was chosen, but nothing fitted to predict with. Set "
                "refit=True, or fit ERMClassifier(C=clf.C_)."
            )
        return hasattr(self, "_ensemble")

    def _template(self) -> ERMClassifier:
        """Make a classifier with these parameters; folds run in parallel, their binary problems do not."""
        if not isinstance(self.refit, (bool, np.bool_)):
            raise TypeError(f"refit must be True or False; got {self.refit!r}.")
        check_jobs(self.n_jobs)
        template = ERMClassifier(**{**shared_parameters(self, ERMClassifier), "n_jobs": None})
        check_parameters(template.get_params(deep=False))
        if not isinstance(self.random_state, (int, np.integer)):
            # One number now, so that the order in which folds run does not matter.
            template.random_state = problem_seeds(self, 1)[0]
        return template


def accuracy(model: Any, X: Matrix, y: NDArray[Any], sample_weight: Floats | None = None) -> float:
    """Return the share of rows predicted right: scikit-learn's checks take as long as a short fit."""
    return float(np.average(model.predict(X) == y, weights=sample_weight))


@dataclass(frozen=True, eq=False)
class _Fold:
    """The rows and settings that all folds share."""

    template: ERMClassifier
    X: Matrix
    y: NDArray[Any]
    weights: Floats
    scorer: Any
    scores_weights: bool

    def scores(self, Cs: Floats, number: int, train: Ints, test: Ints) -> Outcome:
        """Compute test score, mean number of iterations and largest gap of every C."""
        test = np.asarray(test)
        test = np.flatnonzero(test) if test.dtype == bool else test
        test = test[self.weights[test] > 0]
        if len(test) == 0:
            raise ParameterError("cv", f"fold {number} of cv has no test rows of positive weight.")
        try:
            rows = PathRows(self.template, self.X[train], self.y[train], self.weights[train])
        except ValueError as error:
            raise ParameterError(
                "cv", f"The training rows of fold {number} of cv cannot be used: {error}"
            ) from error
        given = {"sample_weight": self.weights[test]} if self.scores_weights else {}
        X, y = self.X[test], self.y[test]
        classifiers = rows.solve(Cs)
        for classifier in classifiers:  # the rows are plain arrays by now, whatever had names before
            classifier.__dict__.pop("feature_names_in_", None)
        scores = np.array([self.scorer(classifier, X, y, **given) for classifier in classifiers], dtype=float)
        n_iter = np.array([classifier.n_iter_.mean() for classifier in classifiers])
        gaps = np.array([classifier.dual_gap_.max() for classifier in classifiers])
        return scores, n_iter, gaps


def takes_sample_weight(scorer: Any) -> bool:
    """Return whether a scorer, or the metric inside it, has an argument ``sample_weight``."""
    metric = getattr(scorer, "_score_func", scorer)
    if metric is scorer and not inspect.isfunction(scorer):
        metric = scorer.__call__
        if hasattr(scorer, "_estimator"):  # scoring=None: the classifier's own accuracy
            return True
    return "sample_weight" in inspect.signature(metric).parameters


@dataclass(frozen=True, eq=False)
class SearchState:
    """The values of C that an ``ERMClassifierCV`` tried and how they did; all else follows from these.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
    scores : ndarray of shape (n_folds, n_Cs)
    mean_n_iter, max_dual_gap : ndarray of shape (n_Cs,)
    """

    Cs: Floats
    scores: Floats
    mean_n_iter: Floats
    max_dual_gap: Floats

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """Collect the search of a fitted classifier."""
        estimator._template()  # its parameters are those of a classifier
        results = estimator.cv_results_
        return cls(estimator.Cs_, estimator.scores_, results["mean_n_iter"], results["max_dual_gap"])

    def restore(self, estimator: BaseEstimator) -> BaseEstimator:
        """Give the search to a classifier; ValueError or TypeError where its parameters are not allowed."""
        estimator._template()
        with np.errstate(all="ignore"):  # scores may be infinite
            found = self.attributes(check_scoring(estimator, scoring=estimator.scoring))
        estimator.__dict__.update(found)
        return estimator

    def attributes(self, scorer: Any) -> dict[str, Any]:
        """Return the fitted attributes; of equal mean scores that of the smallest C is the best."""
        means = self.scores.mean(axis=0)
        if np.all(np.isnan(means)):
            raise ValueError("Every score is NaN: choose another scoring, or other folds.")
        candidates = np.flatnonzero(means == np.nanmax(means))
        best = int(candidates[np.argmin(self.Cs[candidates])])
        comparable = np.where(np.isnan(means), -np.inf, means)
        results = {
            "param_C": self.Cs,
            "params": [{"C": float(C)} for C in self.Cs],
            **{f"split{k}_test_score": row for k, row in enumerate(self.scores)},
            "mean_test_score": means,
            "std_test_score": self.scores.std(axis=0),
            # Equal scores have equal ranks, 1 the best, as in GridSearchCV.
            "rank_test_score": 1
            + len(means)
            - np.searchsorted(np.sort(comparable), comparable, side="right"),
            "mean_n_iter": self.mean_n_iter,
            "max_dual_gap": self.max_dual_gap,
        }
        return {
            "Cs_": self.Cs,
            "C_": float(self.Cs[best]),
            "best_index_": best,
            "best_score_": float(means[best]),
            "cv_results_": results,
            "scores_": self.scores,
            "n_splits_": len(self.scores),
            "scorer_": scorer,
        }


# The grid of costs


def search_costs(
    Cs: Floats, score: Callable[[Floats], list[Outcome]], *, may_grow: bool
) -> tuple[Floats, list[Outcome]]:
    """Score every C on every fold, and go on past an end of the grid that wins.

    A grid that was placed by a guess from the data (:func:`exclusivity.objective.cost_grid`) may end too
    early. While the largest, or the smallest, C has the best mean score to itself, a decade is added beyond
    it with the spacing of the grid, three decades at most on either side. Warns where the best is at an end
    still, or at an end of values that the user chose (then ``may_grow`` is False). Of one or two values one
    is always at an end, which says nothing. ``score`` gives the outcomes of all folds for some values of C;
    returned are the values tried, increasing where some were added, and the outcomes in their order.
    """
    first, outcomes = Cs, score(Cs)
    end = winning_end(Cs, outcomes)
    while may_grow and end and len(more := _beyond(Cs, first, end)):
        added = score(more)
        order = np.argsort(np.concatenate([Cs, more]), kind="stable")
        Cs = np.concatenate([Cs, more])[order]
        for fold, more_outcomes in enumerate(added):
            pairs = zip(outcomes[fold], more_outcomes, strict=True)
            scores, n_iter, gaps = (np.concatenate(pair)[order] for pair in pairs)
            outcomes[fold] = scores, n_iter, gaps
        end = winning_end(Cs, outcomes)
    if end:
        _warn_of_end(Cs, end, may_grow)
    return Cs, outcomes


def winning_end(Cs: Floats, outcomes: Sequence[Outcome]) -> int:
    """Return 1 or -1 where the largest or smallest C alone has the best mean score, else 0."""
    means = np.mean([scores for scores, *_ in outcomes], axis=0)
    best = np.flatnonzero(means == np.max(means, where=~np.isnan(means), initial=-np.inf))
    if len(Cs) < 3 or len(best) != 1:
        return 0
    return int(Cs[best[0]] == Cs.max()) - int(Cs[best[0]] == Cs.min())


def _beyond(Cs: Floats, first: Floats, end: int) -> Floats:
    """Return the next values past an end: about a decade, and none farther out than the bound."""
    step = float(np.log10(first[-1] / first[0])) / (len(first) - 1)
    edge, start = (Cs[-1], first[-1]) if end > 0 else (Cs[0], first[0])
    so_far = abs(float(np.log10(edge / start)))
    at_once = max(1, round(_DECADES_AT_ONCE / step))
    room = int((_MOST_DECADES - so_far) / step + 1e-9)
    return np.asarray(edge * 10.0 ** (end * step * np.arange(1, min(at_once, room) + 1)))


def _warn_of_end(Cs: Floats, end: int, has_grown: bool) -> None:
    edge, word, others = (Cs.max(), "largest", "larger") if end > 0 else (Cs.min(), "smallest", "smaller")
    tried = (
        f"of {len(Cs)} values tried, {_MOST_DECADES:g} decades past the usual grid"
        if has_grown
        else f"of the {len(Cs)} values given"
    )
    warnings.warn(
        f"The best C, {edge:.3g}, is the {word} {tried}: {others} ones may predict better. Give "
        f"{others} values of C, or scale the features (StandardScaler).",
        UserWarning,
        stacklevel=4,
    )
