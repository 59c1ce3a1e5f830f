"""ERMClassifier: the ensemble as a scikit-learn estimator. Nothing numeric happens here."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from exclusivity._errors import warn_of_many_classes
from exclusivity._typing import Ints, Matrix
from exclusivity.classifier._fit import (
    ENDED_EARLY,
    BlockTasks,
    ClassTotals,
    FitTasks,
    MemoryTasks,
    advice,
    check_blockwise,
    warn_of_constant_votes,
    warn_of_surplus,
)
from exclusivity.classifier._fitted import (
    Ensemble,
    EnsembleEstimator,
    FittedState,
    fitted_attributes,
    replace_fitted,
    scope_of,
    snapshot,
    width_of,
)
from exclusivity.classifier._prediction import EnsemblePredictions
from exclusivity.classifier._progress import (
    CALLER_OF_FIT,
    CallbackSupportMixin,
    ProblemMonitor,
    watch_fit,
    with_callbacks,
)
from exclusivity.classifier._validation import check_parameters, group_codes, groups_of_rows, signs_of_rows
from exclusivity.rows.source import RowSource
from exclusivity.solvers import SolverResult, Start


class ERMClassifier(EnsemblePredictions, CallbackSupportMixin, ClassifierMixin, EnsembleEstimator):
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
        fresh = snapshot(self)  # other threads predict with the former model until this one is complete
        fresh.monotonic_cst = signs_of_rows(self.monotonic_cst, X)
        check_parameters(vars(fresh))
        rows = MemoryTasks.of(fresh, X, y, sample_weight)
        n_classes, n_rows = len(rows.classes), rows.shown["X"].shape[0]
        # scikit-learn warns of more classes than half of the rows, and a TableEncoder of all these cases.
        if not 2 * n_classes > n_rows > 20 and groups_of_rows(None, X) is None:
            warn_of_many_classes(n_classes, n_rows, CALLER_OF_FIT)
        return self._fit(fresh, rows, groups_of_rows(self.feature_groups, X, self.exclusivity))

    @with_callbacks
    def fit_rows(
        self, rows: RowSource, classes: ArrayLike, *, feature_names: ArrayLike | None = None
    ) -> Self:
        """Train the ensemble on rows that are reached block by block: files, threads, a cluster.

        The result is that of :meth:`fit` on the same rows, with the same certificate. All parameters count,
        but ``solver`` "alm" and "paper", ``exclusivity`` between 1 and infinity and ``n_jobs`` need rows in
        memory.

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
        check_blockwise(self)
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
        fresh = snapshot(self)
        shown = {"X": rows, "y": classes, "metadata": {"sample_weight": None}}
        totals = rows.total(ClassTotals(len(classes)))
        found = BlockTasks.of(fresh, rows, classes, totals, shown, names)
        return self._fit(fresh, found, self.feature_groups)

    def _fit(self, fresh: Self, rows: FitTasks, feature_groups: object) -> Self:
        """Solve for ``fresh``, a snapshot that knows the columns; then all that is fitted changes at once."""
        width = width_of(fresh)
        groups = group_codes(feature_groups, fresh.n_features_in_, width.get("feature_names_in_"))
        names = [task.name for task in rows.tasks]
        if self.exclusivity > 1 and len(names) > 1:
            names = [f"{len(names)} binary problems together"]
        context: Any = None
        monitors: list[ProblemMonitor] = []
        if self.verbose or getattr(self, "_skl_callbacks", None):
            context, monitors = watch_fit(self, width, names, rows)
        results = rows.solve(fresh, groups, monitors)
        fresh._store(results, rows.classes, groups, rows.dtype)
        replace_fitted(self, fitted_attributes(fresh))
        for monitor, result in zip(monitors, results, strict=False):  # one monitor for joint problems
            monitor.finish(result)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, reconstruction_attributes=dict, **rows.shown)
        for name, result in zip(names, results, strict=False):
            if result.status in ENDED_EARLY:
                message = advice(name, result, self.tol)
                warnings.warn(message, ConvergenceWarning, stacklevel=CALLER_OF_FIT + 1)
        if self.exclusivity > 1:
            warn_of_surplus(groups, self.n_estimators)
            if self.voting != "soft":
                warn_of_constant_votes(rows.vote_counts(fresh), fresh)
        return self

    def _store(
        self, results: Sequence[SolverResult], classes: NDArray[Any], groups: Ints, dtype: DTypeLike
    ) -> None:
        """Store the results of a fit, one per binary problem, beside the columns' number and names."""
        members = [(result.weights, result.intercepts) for result in results]
        FittedState(
            classes=classes,
            ensemble=Ensemble.from_members(members, dtype),
            multi_class=self.multi_class,
            exclusivity=float(self.exclusivity),
            objective=np.array([result.objective for result in results]),
            dual_gap=np.array([result.gap for result in results]),
            converged=np.array([result.converged for result in results]),
            n_iter=np.array([result.n_iter for result in results]),
            history=[result.history for result in results],
            n_features=self.n_features_in_,
            feature_names=getattr(self, "feature_names_in_", None),
            groups=groups,
            partition=getattr(results[0], "partition", None),
            certificate_scope=scope_of(self.partition),
        ).restore(self)
        # Some numbers per row and problem: kept only where the next fit will continue from them.
        self._starts = [Start.again(result) for result in results] if self.warm_start else []
