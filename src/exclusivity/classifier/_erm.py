"""ERMClassifier: the ensemble as a scikit-learn estimator, and the binary problems of its fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache, partial
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs, parallel_config
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from threadpoolctl import ThreadpoolController

from exclusivity._typing import Floats, Ints, Matrix, RandomState
from exclusivity.classifier._ensemble import Ensemble, EnsemblePredictions
from exclusivity.classifier._progress import (
    CALLER_OF_FIT,
    ENDED_EARLY,
    CallbackSupportMixin,
    FitProgress,
    warn_of_early_ends,
    with_callbacks,
)
from exclusivity.classifier._validation import (
    TEST,
    bounds_of,
    check_blockwise,
    check_parameters,
    check_scale,
    class_weights,
    contrasts,
    fitted_attributes,
    group_codes,
    groups_of_rows,
    random_partition,
    read_partition,
    replace_fitted,
    require_two_classes,
    sample_weights,
    scope_of,
    signs_of_rows,
    validate_classes,
    warn_of_many_classes,
    width_of,
)
from exclusivity.objective.losses import LOSSES, POWER_LOSS
from exclusivity.objective.objective import (
    Contrast,
    ERMProblem,
    ExclusivityRegulariser,
    Objective,
    relative_gap,
)
from exclusivity.rows.design import DesignMatrix, LabelledRows, RowScale, aligned
from exclusivity.rows.source import Question, RowBlock, RowSource
from exclusivity.solvers.base import Callback, SolverResult, Start, Status
from exclusivity.solvers.dispatch import parse_options, solve_all
from exclusivity.solvers.exclusive import ExclusiveOptions, solve_exclusive, solve_exclusive_targets
from exclusivity.solvers.newton import NewtonOptions, solve_targets
from exclusivity.solvers.run import Target, TotalLoss
from exclusivity.voting.rules import RULES


@dataclass(repr=False, eq=False, match_args=False)
class ERMParameters(BaseEstimator):
    """The parameters of ``ERMClassifier``, which describes them."""

    n_estimators: int = 10
    _: KW_ONLY
    C: float = 2.0
    loss: str = "hinge"
    p: float = 2
    exclusivity: float = 1.0
    sparsity: float = 0.0
    coef_bounds: Any = None
    monotonic_cst: Any = None
    voting: str = "soft"
    feature_groups: object = None
    partition: ArrayLike = "learned"
    solver: str = "auto"
    solver_options: dict[str, Any] | None = None
    tol: float = 1e-4
    max_iter: int | None = None
    fit_intercept: bool = True
    class_weight: Mapping[Any, float] | str | None = None
    multi_class: str = "ovr"
    warm_start: bool = False
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Tags:
        """Accept sparse rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ERMClassifier(EnsemblePredictions, CallbackSupportMixin, ClassifierMixin, ERMParameters):
    """Exclusivity regularised machine: an ensemble of linear SVMs trained jointly.

    Minimises, over K = ``n_estimators`` linear members,

        sum_j [ gamma/2 |W_j|_1^2 + (1-gamma)/2 |W_j|_2^2 + beta |W_j|_1 ]
        + C sum_k sum_i s_i max(0, 1 - y_i (x_i . w_k + b_k))^p

    where W_j holds the weights of feature j in all members, gamma = ``exclusivity`` and
    beta = ``sparsity``. Up to gamma = 1 the result carries a proof of its quality: ``dual_gap_`` bounds how
    far the objective is from the optimum. Above 1 members compete for features, up to disjoint supports at
    ``inf``; with ``voting="hard"`` or ``"runoff"`` :meth:`certify` then says how many features may break
    before a prediction can change.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of members K (the paper's C).
    C : float, default=2.0
        Weight of the loss (the paper's lambda). The ensemble is equivalent to one SVM of cost C / kappa,
        kappa = 1 + exclusivity (n_estimators - 1): for the paper's ``exclusivity=1`` that is
        C / n_estimators. At ``exclusivity=inf`` every member is an SVM of cost C. Changing ``exclusivity`` or
        ``n_estimators`` therefore means choosing C anew.
    loss : {"hinge", "logistic", "smooth_hinge"}, default="hinge"
        What a row costs that misses its margin by m = 1 - y f: max(0, m)^p; log(1 + exp(-y f)), which makes
        the averaged model the logistic regression of cost C / kappa, with :meth:`predict_proba`; or m^2 / 2
        inside the margin and m - 1/2 beyond it (Rennie and Srebro's smooth hinge), where no outlier
        counts more than its cost. Others: :func:`exclusivity.objective.register_loss`.
    p : float, default=2
        Power of the hinge loss, at least 1. 1 is the hinge, 2 the squared hinge.
    exclusivity : float, default=1.0
        How much members avoid each other's features, gamma in [0, inf]. 0: independent members, 1: the
        paper, where members are usually all equal. Above 1 they differ: the objective is not convex any
        more, and the more gamma the fewer features are shared. ``inf``: every feature belongs to one member.
    sparsity : float, default=0.0
        The penalty beta >= 0; a positive value sets weights to exactly zero.
    coef_bounds : pair (lower, upper) or dict, default=None
        Between which the weights of every member, and so ``coef_``, have to be: numbers, one number per
        column, dicts from column names to numbers, or None for no bound on that side; or one dict from
        column names to pairs of numbers. With more than two classes they hold for each class against the
        rest ("ovo": they must be symmetric). For ``exclusivity`` at most 1, or ``inf``.
    monotonic_cst : array-like of shape (n_features,) or dict, default=None
        1, -1 or 0 for each column, or by column name: the score of ``classes_[1]`` rises with the column,
        falls, or may do either. As in scikit-learn's trees, for two classes only. A column that a
        :class:`~exclusivity.tables.TableEncoder` makes several features of is refused: the
        encoder takes such rules.
    voting : {"soft", "hard", "runoff"}, default="soft"
        "soft" averages the members' margins (the paper). "hard": each member votes for its best class and
        the majority wins; ties go to the larger mean margin. "runoff": the two classes with most votes meet
        in a second round, in which each member votes for the one it scores higher (one-vs-one: the one that
        wins their pair); of two classes that is "hard". Members without features abstain.
    feature_groups : sequence of labels, dict, callable or None, default=None
        Columns that come from one source (a sensor, a one-hot encoded category): one label per column, a dict
        of labels by column name (columns that it does not name are on their own), or a callable from
        the array of column names to labels. For ``exclusivity > 1`` only. A group goes to one member as a
        whole, in all classes, and :meth:`certify` counts groups. None: every column is its own group, but
        behind a :class:`~exclusivity.tables.TableEncoder` in a pipeline every input column is.
    partition : {"learned", "random"} or sequence of labels, default="learned"
        Who owns which feature group at ``exclusivity=inf``: found by a search for the partition whose votes
        survive most broken features; drawn, by ``random_state``; or one member's label for each column or
        group. In the latter two no row has a say, and certificates cover training columns too.
    solver : {"auto", "newton", "alm", "paper", "exclusive"}, default="auto"
        "newton" solves the one SVM that the ensemble is equivalent to, by second-order steps: its cost does
        not depend on ``n_estimators``. "alm" is the paper's splitting made convergent, with all members
        carried along. Both stop on ``tol``. "paper" runs Algorithms 1 and 2 of the paper to the letter
        and stops by their own rule. "exclusive" is the one for ``exclusivity > 1``: it divides the feature
        groups among the members and fits each of them exactly. "auto" is "newton" or "exclusive".
    solver_options : dict, default=None
        Options of the solver. "newton": regime. "alm": mu0, balance. "paper": start, mu0, rho, change,
        w_step, eps. "exclusive": the fields of :class:`exclusivity.solvers.ExclusiveOptions`.
    tol : float, default=1e-4
        Relative duality gap, (F - D) / F, at which a fit counts as converged; "exclusive" asks it of every
        member's own SVM.
    max_iter : int, default=None
        Most iterations per binary problem; None leaves it to the solver ("newton" 500, "alm" 20000,
        "paper" 1000). For "exclusive" the most fits of members, by default 100 times their number, or fewer
        where they take minutes.
    fit_intercept : bool, default=True
        Whether members have an intercept. It is free, never penalised.
    class_weight : dict or "balanced", default=None
        Factors on the sample weights. "balanced" gives all classes the same total weight.
    multi_class : {"ovr", "ovo"}, default="ovr"
        More than two classes: one problem per class against the rest, or one per pair of classes.
    warm_start : bool, default=False
        Start from the solution of the previous ``fit``; for ``exclusivity > 1`` from its partition. On the
        same rows and with the same parameters (``max_iter`` and ``tol`` aside) the solver goes on exactly
        where it stopped, so that repeated short fits end where one long fit does. "paper", which prescribes
        its own start, can do nothing else.
    random_state : int, RandomState or None, default=None
        The search for a partition (``exclusivity > 1``), and ``solver="paper"`` with ``start="random"``; no
        other fit depends on it.
    n_jobs : int, default=None
        Threads over the binary problems of a multi-class fit. Does not change results.
    verbose : int, default=0
        1 prints a line now and then, 2 a line per iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    components_ : ndarray of shape (n_problems, n_estimators, n_features)
        Weights of the members; n_problems is 1 for two classes, else the number of classes ("ovr") or of
        pairs ("ovo"). Equal members are stored once: then this is a read-only view.
    component_intercepts_ : ndarray of shape (n_problems, n_estimators)
        Intercepts of the members.
    coef_ : ndarray of shape (n_problems, n_features)
        The averaged model; soft voting only.
    intercept_ : ndarray of shape (n_problems,)
        Intercept of the averaged model; soft voting only.
    objective_ : ndarray of shape (n_problems,)
        Value of the minimised function at the stored weights; those of float32 rows are float32.
    dual_gap_ : ndarray of shape (n_problems,)
        Relative duality gap: a proven bound on the relative distance of ``objective_`` from the optimum.
        NaN for ``exclusivity > 1``, where nothing bounds it.
    converged_ : ndarray of shape (n_problems,)
        Whether ``dual_gap_ <= tol``. For ``exclusivity > 1``: whether the descent came to its end and every
        member is certified within ``tol`` of its optimum, given the partition (``inf``) or the other members.
    groups_ : ndarray of shape (n_features_in_,)
        The number of each column's feature group, in order of appearance; 0, 1, 2, ... without groups.
    partition_ : ndarray of shape (n_groups,)
        The member that owns each feature group (that weighs it most, if they share), -1 for a group that
        no member uses. For ``exclusivity > 1`` only.
    certificate_scope_ : str
        What a radius of :meth:`certify` is about: "test", values of the row to be predicted, where the
        partition was learned; "training and test", values of the same features in training rows too (their
        labels correct), where it was drawn; for labels that were given "training and test if the partition
        does not depend on the rows", which only you can know.
    supports_ : ndarray of bool, shape (n_estimators, n_features_in_)
        Which member uses which feature.
    multi_class_ : str
        The scheme that was fitted.
    n_iter_ : ndarray of shape (n_problems,)
        Iterations taken.
    history_ : list of History
        Objective, bound, gap, residuals, penalty and passes over X of every iteration, per problem; a model
        that was loaded from a file has none.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    See Also
    --------
    sklearn.svm.LinearSVC : One linear SVM, with a penalised intercept.
    sklearn.ensemble.BaggingClassifier : Ensembles by resampling.

    Notes
    -----
    For ``exclusivity <= 1`` the objective is convex and symmetric in the members, so the mean member
    at every optimum is one ordinary SVM of cost C / kappa; usually all members are equal. ``repr`` of a
    fitted classifier says so. Soft voting averages all members, also those without features: these have
    zero weights and intercepts, so that they scale the decision and do not turn it.

    References
    ----------
    X. Guo, "Exclusivity Regularized Machine", arXiv:1603.08318, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), ERMClassifier(n_estimators=30)).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    >>> bool(model[-1].dual_gap_[0] <= 1e-4)
    True
    """

    @with_callbacks
    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the ensemble.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. float32, integers and booleans stay so in memory; all sums are float64.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; an integer weight means so many copies of the row, weight 0 none.

        Returns
        -------
        self : ERMClassifier
            The fitted classifier.
        """
        fresh = copy(self)  # other threads predict with the former model until this one is complete
        fresh.monotonic_cst = signs_of_rows(self.monotonic_cst, X)
        check_parameters(vars(fresh))
        fresh.feature_groups = groups_of_rows(self.feature_groups, X, self.exclusivity)
        is_encoded = groups_of_rows(None, X) is not None
        X, labels = validate_classes(fresh, X, y)
        shown = {"X": X, "y": labels, "metadata": {"sample_weight": sample_weight}}
        rows = MemoryTasks.build(fresh, X, labels, sample_weights(sample_weight, X.shape[0]), shown)
        # scikit-learn warns of more classes than half of the rows, and a TableEncoder of all these cases.
        if not 2 * len(rows.classes) > len(labels) > 20 and not is_encoded:
            warn_of_many_classes(len(rows.classes), len(labels), CALLER_OF_FIT)
        return self._fit(fresh, rows)

    @with_callbacks
    def fit_rows(
        self, rows: RowSource, classes: ArrayLike, *, feature_names: ArrayLike | None = None
    ) -> Self:
        """Train the ensemble on rows that are reached block by block: files, threads, a cluster.

        The result is that of :meth:`fit` on the same rows, with the same certificate. All parameters count,
        but ``solver`` "alm" and "paper", ``exclusivity`` between 1 and infinity, ``max_iter`` at infinity
        and ``n_jobs`` need rows in memory.

        Parameters
        ----------
        rows : RowSource
            A source of rows, see :class:`exclusivity.rows.RowSource`. Its blocks hold the
            numbers of classes as ``codes``, and sample weights. With an attribute ``dtype = numpy.float32``
            the fitted weights are float32.
        classes : array-like of shape (n_classes,)
            The label of class 0, 1, ...; increasing, as predictions expect them.
        feature_names : array-like of str, shape (n_features,), default=None
            The names of the columns, for parameters that use them and for ``feature_names_in_``.

        Returns
        -------
        self : ERMClassifier
            The fitted classifier.
        """
        check_parameters(vars(self))
        check_blockwise(vars(self))
        classes, names = np.asarray(classes), None
        if classes.ndim != 1 or not np.array_equal(np.unique(classes), classes):
            raise ValueError(
                f"classes must be different labels in increasing order; got {classes.tolist()!r}."
            )
        if feature_names is not None:
            names = np.asarray(feature_names, dtype=object)
            if names.shape != (rows.n_features,):
                raise ValueError(
                    f"feature_names must have one name for each of the {rows.n_features} columns; got shape "
                    f"{names.shape}."
                )
        totals = rows.total(ClassTotals(len(classes)))
        shown = {"X": rows, "y": classes, "metadata": {"sample_weight": None}}
        return self._fit_blocks(rows, classes, totals, names, shown)

    def _fit_blocks(
        self,
        rows: RowSource,
        classes: NDArray[Any],
        totals: Floats,
        names: NDArray[Any] | None,
        shown: dict[str, Any],
    ) -> Self:
        """Fit to checked rows; ``totals`` are the sums of the classes' sample weights."""
        require_two_classes(classes)
        warn_of_many_classes(len(classes), rows.n_rows, CALLER_OF_FIT + 1)
        check_scale(rows.row_scale)
        fresh = copy(self)
        fresh.n_features_in_ = rows.n_features
        fresh.__dict__.pop("feature_names_in_", None)
        if names is not None:
            fresh.feature_names_in_ = names
        return self._fit(fresh, BlockTasks.build(fresh, rows, classes, totals, shown))

    def _fit(self, fresh: Self, rows: FitTasks) -> Self:
        """Solve for ``fresh``, a copy that knows the columns; then all that is fitted changes at once."""
        names = [task.name for task in rows.tasks]
        if self.exclusivity > 1 and len(names) > 1:
            names = [f"{len(names)} binary problems together"]
        progress: FitProgress | None = None
        if self.verbose or getattr(self, "_skl_callbacks", None):
            progress = FitProgress(self, names, rows.shown, partial(fitted_members, fresh, rows))
        results = rows.solve(fresh, () if progress is None else progress.monitors)
        fresh._store(results, rows)
        replace_fitted(self, fitted_attributes(fresh))
        if progress is not None:
            progress.finish(results)
        ended = [pair for pair in zip(names, results, strict=False) if pair[1].status in ENDED_EARLY]
        if ended:
            warn_of_early_ends(ended, f"{len(names)} problems", self.tol, CALLER_OF_FIT + 1)
        if self.exclusivity > 1:
            warn_of_members(fresh, rows)
        return self

    def _store(self, results: Sequence[SolverResult], rows: FitTasks) -> None:
        """Store the results of a fit, one per binary problem, beside the columns' number and names."""
        fitted = fitted_members(self, rows, [(result.weights, result.intercepts) for result in results])
        for name in ("objective", "gap", "converged", "n_iter"):
            values = np.array([getattr(result, name) for result in results])
            fitted["dual_gap_" if name == "gap" else f"{name}_"] = values
        fitted |= {
            "history_": [result.history for result in results],
            "groups_": rows.groups,
            "certificate_scope_": scope_of(self.partition),
            # Some numbers per row and problem: kept only where the next fit will continue from them.
            "_starts": [Start.again(result) for result in results] if self.warm_start else [],
        }
        if (partition := getattr(results[0], "partition", None)) is not None:
            fitted["partition_"] = partition
        replace_fitted(self, fitted)


_SEED_LIMIT = np.iinfo(np.int32).max
# Solvers treat members alike, but a matrix product may round its columns differently.
_EQUAL_TOL = 1e-10


def fitted_members(
    model: ERMClassifier, rows: FitTasks, members: Sequence[tuple[Floats, Floats]]
) -> dict[str, Any]:
    """Return the fitted attributes that hold members: a pair of weights and intercepts per binary problem.

    Equal members are stored once.
    """
    n_members = len(members[0][1])
    if all(weights.strides[1] == 0 for weights, _ in members):  # a view of one member, repeated
        members = [(weights[:, :1], intercepts[:1]) for weights, intercepts in members]
    stacked = np.stack([pair[0].T for pair in members]), np.stack([pair[1] for pair in members])
    means = [own.mean(axis=1, keepdims=True) for own in stacked]
    pairs = list(zip(stacked, means, strict=True))
    if all(np.abs(own - mean).max() <= _EQUAL_TOL * np.abs(mean).max() for own, mean in pairs):
        stacked = means[0], means[1]
    weights, intercepts = (np.ascontiguousarray(own, dtype=rows.dtype) for own in stacked)
    return width_of(model) | {
        "classes_": rows.classes,
        "_ensemble": Ensemble(weights, intercepts, n_members),
        "multi_class_": model.multi_class,
        "_fitted_exclusivity": float(model.exclusivity),
    }


def warn_of_members(model: ERMClassifier, rows: FitTasks) -> None:
    """Warn of members without features, and of votes that are the same for all training rows.

    No feature can turn such a vote, so that certificates look better for it, and it says nothing about a row.
    """
    n_groups, n_members = int(rows.groups.max()) + 1, model.n_estimators
    if n_groups < n_members:
        kind = "features" if n_groups == len(rows.groups) else "feature groups"
        warnings.warn(
            f"{n_members} members compete for {n_groups} {kind}: {n_members - n_groups} of them get none and "
            f"abstain. Use {n_groups} members or fewer.",
            UserWarning,
            stacklevel=CALLER_OF_FIT + 2,
        )
    if model.voting == "soft":
        return
    ensemble = model._ensemble
    defeats = rows.total(Defeats(ensemble.weights, ensemble.intercepts, rows.tasks, len(rows.classes)))
    is_constant = (defeats == 0).any(axis=0) & (ensemble.weights != 0).any(axis=(0, 2))
    if constant := np.flatnonzero(is_constant).tolist():
        classes = np.unique(rows.classes[defeats[:, constant].argmin(axis=0)])
        more = "" if model.class_weight == "balanced" else "class_weight='balanced', "
        warnings.warn(
            f"{len(constant)} of {n_members} members vote {' or '.join(map(str, classes))} for every "
            f"training row (the first is number {constant[0]}): nothing can turn such a vote, and it knows "
            f"nothing. Set {more}a larger C, or fewer members.",
            UserWarning,
            stacklevel=CALLER_OF_FIT + 2,
        )


@dataclass(frozen=True, eq=False)
class Defeats:
    """Request in how many rows each class loses a comparison, for each member: (n_classes, n_members).

    A class that never does has all votes of the member.
    """

    weights: Floats
    intercepts: Floats
    tasks: Sequence[Contrast]
    n_classes: int

    def answer(self, block: RowBlock, state: object) -> tuple[Ints, None]:
        """See ``Request``."""
        return self.of(DesignMatrix(aligned(block.X))), None

    def of(self, design: DesignMatrix) -> Ints:
        """Count in some rows."""
        n_problems, n_members, n_features = self.weights.shape
        weights = self.weights.reshape(-1, n_features).T.astype(float)
        has_rest = n_problems > 1 and self.tasks[0].negative is None
        found = np.zeros((self.n_classes, n_members), dtype=np.intp)
        for _, X in design.blocks(weights.shape[1]):
            scores = (X @ weights).reshape(-1, n_problems, n_members) + self.intercepts
            wins = scores == scores.max(axis=1, keepdims=True) if has_rest else scores > 0
            for task, won in zip(self.tasks, np.moveaxis(wins, 1, 0), strict=True):
                found[task.positive] += (~won).sum(axis=0)
                if not has_rest:
                    found[task.negative or 0] += won.sum(axis=0)
        return found


# Rows in memory


@dataclass(frozen=True, eq=False)
class MemoryTasks:
    """The binary problems of a fit to rows in memory, and what callbacks may see of it.

    ``design`` has all rows of positive weight, ``groups`` the number of each column's feature group,
    ``tasks`` the classes of each binary problem and ``rows`` its rows. One-vs-rest problems share one design
    matrix and one array of weights, hence one factorisation. In one-vs-one the first class of a pair is
    positive, as in ``SVC``.
    """

    design: DesignMatrix
    classes: NDArray[Any]
    groups: Ints
    tasks: Sequence[Contrast]
    rows: Sequence[LabelledRows]
    shown: dict[str, Any]

    @classmethod
    def build(
        cls, estimator: ERMClassifier, X: Matrix, y: NDArray[Any], weights: Floats, shown: dict[str, Any]
    ) -> Self:
        """Build from checked rows: number the classes, drop rows of weight 0, multiply class weights in.

        A class whose rows all have weight 0 (in a bootstrap, say) stays a class.
        """
        classes, codes = np.unique(y, return_inverse=True)
        if not np.all(weights):
            keep = np.flatnonzero(weights)
            X, codes, weights = X[keep], codes[keep], weights[keep]
        require_two_classes(classes)
        design = DesignMatrix(X)
        check_scale(design.row_scale)
        totals = np.bincount(codes, weights=weights, minlength=len(classes)).astype(float)
        weights = weights * class_weights(estimator.class_weight, classes, totals)[codes]
        tasks, rows = contrasts(classes, estimator.multi_class), []
        for task in tasks:
            own, labels, own_weights = design, np.where(codes == task.positive, 1.0, -1.0), weights
            if task.negative is not None:
                of_pair = np.flatnonzero((codes == task.positive) | (codes == task.negative))
                own, labels, own_weights = DesignMatrix(X[of_pair]), labels[of_pair], weights[of_pair]
            rows.append(LabelledRows(own, labels, own_weights))
        return cls(design, classes, _groups_of(estimator), tasks, rows, shown)

    @property
    def dtype(self) -> Any:
        """The type that the fitted weights get: float32 where the rows are, else float64."""
        return np.dtype(np.float32 if self.design.X.dtype == np.float32 else np.float64)

    def problems(self, estimator: ERMClassifier) -> list[ERMProblem]:
        """Build one ERM problem per task, with the estimator's parameters."""
        design = self.design
        objective = objective_of(estimator, design.n_features, design.X.dtype, len(self.tasks))
        return [ERMProblem(objective, rows) for rows in self.rows]

    def solve(self, estimator: ERMClassifier, monitors: Sequence[Callback] = ()) -> list[SolverResult]:
        """Solve every task by the solver that the estimator's parameters ask for.

        For ``exclusivity > 1`` all tasks are solved in one run, watched by one monitor: a feature group
        belongs to one member in every task.
        """
        problems, n_threads = self.problems(estimator), _n_threads(estimator.n_jobs)
        results: Sequence[SolverResult]
        with fitting_threads(*self.design.X.shape, is_sparse=self.design.is_sparse):
            if estimator.exclusivity > 1:
                results = solve_exclusive(
                    problems,
                    max_iter=estimator.max_iter,
                    n_threads=n_threads,
                    resume=estimator._starts if _is_warm(estimator) else (),
                    **exclusive_settings(estimator, self.groups, len(problems), monitors),
                )
            else:
                results = solve_all(
                    problems,
                    estimator.solver,
                    options=estimator.solver_options,
                    tol=estimator.tol,
                    max_iter=estimator.max_iter,
                    starts=_warm_starts(estimator, len(problems)),
                    seeds=problem_seeds(estimator, len(problems)),
                    callbacks=monitors or None,
                    n_threads=n_threads,
                )
            return [as_stored(*pair, estimator.tol) for pair in zip(problems, results, strict=True)]

    def total(self, request: Defeats) -> Ints:
        """Answer a request about these rows."""
        return request.of(self.design)


# Rows in blocks


@dataclass(frozen=True, eq=False)
class BlockTasks:
    """The binary problems of a fit to rows that are reached block by block; see ``MemoryTasks``.

    ``class_weights`` are factors on the weights of rows, by class.
    """

    rows: RowSource
    class_weights: Floats | None
    classes: NDArray[Any]
    groups: Ints
    tasks: Sequence[Contrast]
    shown: dict[str, Any]

    @classmethod
    def build(
        cls,
        estimator: ERMClassifier,
        rows: RowSource,
        classes: NDArray[Any],
        totals: Floats,
        shown: dict[str, Any],
    ) -> Self:
        """Build from checked rows; ``totals`` are the sums of the classes' sample weights."""
        is_weighted = estimator.class_weight is not None
        factors = class_weights(estimator.class_weight, classes, totals) if is_weighted else None
        tasks = contrasts(classes, estimator.multi_class)
        return cls(rows, factors, classes, _groups_of(estimator), tasks, shown)

    @property
    def dtype(self) -> Any:
        """The type of the fitted weights."""
        return np.dtype(getattr(self.rows, "dtype", np.float64))

    def solve(self, estimator: ERMClassifier, monitors: Sequence[Callback] = ()) -> list[SolverResult]:
        """Solve every task; all of them share each pass over the rows."""
        rows = self.rows
        objective = objective_of(estimator, rows.n_features, self.dtype, len(self.tasks))
        targets = [Target(objective, task, class_weights=self.class_weights) for task in self.tasks]
        # Of this process: its own systems, and the products of a source that works in its threads.
        with fitting_threads(rows.n_rows, rows.n_features):
            if estimator.exclusivity > 1:
                settings = exclusive_settings(estimator, self.groups, len(targets), monitors)
                results: Sequence[SolverResult] = solve_exclusive_targets(rows, targets, **settings)
            else:
                options = parse_options(NewtonOptions, estimator.solver_options)
                found = _warm_starts(estimator, len(targets))
                results = solve_targets(
                    rows,
                    targets,
                    tol=estimator.tol,
                    max_iter=estimator.max_iter,
                    regime=options.regime,
                    starts=None if found is None else [start.for_objective(objective) for start in found],
                    callbacks=monitors or None,
                )
            return list(results) if self.dtype == np.float64 else self._as_stored(targets, results, estimator)

    def total(self, request: Defeats) -> Ints:
        """Answer a request about these rows."""
        found: Ints = self.rows.total(request)
        return found

    def _as_stored(
        self, targets: Sequence[Target], results: Sequence[SolverResult], estimator: ERMClassifier
    ) -> list[SolverResult]:
        """Certify the results as a model of float32 rows holds them: one pass for all of them."""
        points = [_rounded(*pair) for pair in zip([t.objective for t in targets], results, strict=True)]
        questions = [
            Question(TotalLoss(replace(target, objective=at.objective), at.weights, at.intercepts))
            for target, at in zip(targets, points, strict=True)
        ]
        totals = [answer.total for answer in self.rows.ask(questions)]
        scale, n_rows = self.rows.row_scale, self.rows.n_rows
        return [
            _certified(result, at, estimator.tol, float(total[0]), float(total[1]), scale, n_rows)
            for at, result, total in zip(points, results, totals, strict=True)
        ]


FitTasks = MemoryTasks | BlockTasks


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """Request the sum of the weights of each class, and check the rows on the way."""

    n_classes: int
    takes_tables: bool = False

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, None]:
        """See ``Request``."""
        if not (self.takes_tables or isinstance(block.X, np.ndarray) or sparse.issparse(block.X)):
            raise TypeError(
                f"X of a block must be an array or a CSR matrix of numbers; got {type(block.X).__name__}. "
                "RobustAdditiveClassifier takes blocks of tables."
            )
        codes, weights = np.asarray(block.codes), block.weights
        if codes.dtype.kind not in "iu" or (
            len(codes) and not 0 <= codes.min() <= codes.max() < self.n_classes
        ):
            raise ValueError(f"codes of a block must be integers from 0 to {self.n_classes - 1}.")
        if not np.all((weights > 0) & np.isfinite(weights)):
            raise ValueError("weights of a block must be positive and finite; leave other rows out.")
        return np.bincount(codes, weights=weights, minlength=self.n_classes).astype(float), None


# Objectives, starts and options


def _groups_of(estimator: ERMClassifier) -> Ints:
    names = vars(estimator).get("feature_names_in_")
    return group_codes(estimator.feature_groups, estimator.n_features_in_, names)


def objective_of(estimator: ERMClassifier, n_features: int, dtype: DTypeLike, n_problems: int) -> Objective:
    """Return what an estimator minimises on such rows, in each of so many binary problems."""
    is_bounded = estimator.coef_bounds is not None or estimator.monotonic_cst is not None
    power = (float(estimator.p),) if estimator.loss == POWER_LOSS else ()
    return Objective(
        loss=LOSSES[estimator.loss](*power),
        regulariser=ExclusivityRegulariser(float(estimator.exclusivity), float(estimator.sparsity)),
        cost=float(estimator.C),
        n_members=int(estimator.n_estimators),
        fit_intercept=bool(estimator.fit_intercept),
        bounds=bounds_of(estimator, n_features, dtype, n_problems) if is_bounded else None,
    )


def problem_seeds(estimator: Any, n_problems: int) -> list[int]:
    """Return one seed per binary problem; problems that are solved together use the first one."""
    seeds: Ints = check_random_state(estimator.random_state).randint(_SEED_LIMIT, size=n_problems)
    return [int(seed) for seed in seeds]


def exclusive_settings(
    estimator: ERMClassifier, groups: Ints, n_problems: int, monitors: Sequence[Callback]
) -> dict[str, Any]:
    """Return the arguments of the exclusive solver; a partition that is not learned is used as it is.

    A warm start searches from the partition of the previous fit.
    """
    options, n_members = parse_options(ExclusiveOptions, estimator.solver_options), estimator.n_estimators
    seed = problem_seeds(estimator, n_problems)[0]
    former: Ints | None = getattr(estimator, "partition_", None) if _is_warm(estimator) else None
    if former is not None:
        n_former = len(estimator.supports_)
        if n_former != n_members or not np.array_equal(estimator.groups_, groups):
            raise ValueError(
                f"warm_start=True, but the previous fit divided {len(former)} feature groups among "
                f"{n_former} members, and this one has {int(groups.max()) + 1} groups and {n_members} "
                "members, or other columns in the groups; set warm_start=False to start anew."
            )
    if options.partition is None:
        options = replace(options, partition=former)
    if options.voting is None:  # soft votes have no certificate to count
        options = replace(options, voting=RULES[estimator.voting].search)
    if scope_of(estimator.partition) != TEST:
        if isinstance(estimator.partition, str):
            partition = random_partition(int(groups.max()) + 1, n_members, check_random_state(seed))
        else:
            partition = read_partition(estimator.partition, groups, n_members)
        options = replace(options, restarts=0, partition=partition)
    shown = monitors[0] if monitors else None
    limits = {"tol": estimator.tol, "random_state": seed}
    return {"groups": groups, "options": options, "callback": shown, **limits}


def _is_warm(estimator: ERMClassifier) -> bool:
    return bool(estimator.warm_start and estimator.__sklearn_is_fitted__())


def _warm_starts(estimator: ERMClassifier, n_problems: int) -> list[Start] | None:
    """Return the solution of the previous fit as starts of this one; None without ``warm_start``."""
    if not _is_warm(estimator):
        return None
    ensemble, starts, n_members = estimator._ensemble, estimator._starts, estimator.n_estimators
    n_features = estimator.n_features_in_
    before = (len(ensemble.weights), ensemble.weights.shape[2])
    if before != (n_problems, n_features):
        raise ValueError(
            f"warm_start=True, but the previous fit had {before[0]} binary problems with {before[1]} "
            f"features and this one has {n_problems} with {n_features}; set warm_start=False to start anew."
        )
    if ensemble.n_members != n_members:
        ensemble = ensemble.mean()
    elif starts:
        return list(starts)
    return [
        Start(
            weights=np.broadcast_to(ensemble.weights[i].T, (n_features, n_members)).astype(float),
            intercepts=np.broadcast_to(ensemble.intercepts[i], n_members).astype(float),
            dual=starts[i].dual if starts else None,
        )
        for i in range(n_problems)
    ]


# Models of float32 rows


class _Rounded(NamedTuple):
    """A result's weights in float32, and the objective by which they are certified.

    The objective is that of all members, or of the one SVM behind them where they are equal; the result's is
    ``scale`` times it.
    """

    objective: Objective
    weights: Floats
    intercepts: Floats
    scale: float


def as_stored(problem: ERMProblem, result: SolverResult, tol: float) -> SolverResult:
    """Return the result as a model of these rows holds it: of float32 rows, weights rounded to float32.

    They are another point than the one that was found: at a large C rounding may undo the last digits of the
    loss, and a certificate speaks of what is stored.
    """
    if problem.design.X.dtype != np.float32:
        return result
    at = _rounded(problem.objective, result)
    loss = replace(problem, objective=at.objective).total_loss(at.weights, at.intercepts)
    cost = at.objective.cost * float(problem.weights.sum())
    return _certified(result, at, tol, loss, cost, problem.design.row_scale, problem.design.n_rows)


def _rounded(objective: Objective, result: SolverResult) -> _Rounded:
    weights, intercepts, scale = result.weights, result.intercepts, 1.0
    if weights.strides[1] == 0:  # K equal members cost what the one SVM behind them costs
        scale = objective.n_members * objective.kappa
        objective, weights, intercepts = objective.reduced(), weights[:, :1], intercepts[:1]
    weights, intercepts = (a.astype(np.float32).astype(float) for a in (weights, intercepts))
    return _Rounded(objective, weights, intercepts, scale)


def _certified(
    result: SolverResult, at: _Rounded, tol: float, loss: float, cost: float, rows: RowScale, n_rows: int
) -> SolverResult:
    """Return the result at rounded weights whose rows have this loss and, all together, this cost."""
    penalty, n_members = at.objective.regulariser.value(at.weights), at.weights.shape[1]
    objective, shape = at.scale * (penalty + loss), result.weights.shape
    stored = replace(
        result,
        weights=np.broadcast_to(at.weights, shape),
        intercepts=np.broadcast_to(at.intercepts, shape[1]),
        objective=objective,
    )
    if np.isnan(result.gap):
        return stored
    error = float(np.max(rows.score_error(at.weights, at.intercepts)))
    raised = penalty + at.objective.loss.raised_total(loss, n_members * cost, error)
    upper = at.scale * at.objective.rounded_up(raised, n_rows, at.weights.size)
    bound = result.objective * (1 - result.gap)
    gap = relative_gap(objective, bound - (upper - objective))
    status = Status.ROUNDED if result.converged and gap > tol else result.status
    return replace(stored, gap=gap, converged=gap <= tol, status=status)


# Threads

LARGE_SIDE = 4096
"""From this size of the smaller side of X on, BLAS keeps its threads, unless X is sparse."""

_is_limited = Lock()


def _n_threads(n_jobs: int | None) -> int:
    """Return the threads that ``n_jobs`` asks for, as joblib counts threads and not its processes."""
    with parallel_config(backend="threading"):
        return int(effective_n_jobs(n_jobs))


@cache
def _controller() -> Any:
    """Find the loaded libraries: milliseconds, once per process; a limit then takes 20 microseconds."""
    return ThreadpoolController()


@contextmanager
def fitting_threads(n_rows: int, n_features: int, *, is_sparse: bool = False) -> Iterator[None]:
    """Solve inside: with one BLAS thread where products are too small to be shared out.

    A solver works on blocks of rows that fit into a cache and on systems of the size of the smaller side of
    X. Up to thousands of columns a second thread waits at full speed for longer than it works; with sparse
    rows BLAS sees vectors only, the worst case. The number of threads belongs to the whole process, so of
    fits that run side by side or one inside the other only the first sets it, and gives the old number back.
    """
    is_large = min(n_rows, n_features) >= LARGE_SIDE and not is_sparse
    if is_large or not _is_limited.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _is_limited.release()
