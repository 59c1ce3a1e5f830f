"""DRMClassifier: the ensemble of SVMs that the paper compares its own with."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from exclusivity.baselines.drm_problem import DRMProblem
from exclusivity.baselines.drm_relaxed import DRMResult, solve_relaxed
from exclusivity.baselines.drm_sphere import solve_sphere
from exclusivity.baselines.linear import LinearBaseline
from exclusivity.classifier import BinaryTask, RandomState, binary_tasks, check_choice, check_number
from exclusivity.problem.arrays import Floats, Matrix

_SEED_LIMIT = np.iinfo(np.int32).max


class DRMClassifier(LinearBaseline):
    """Diversity Regularized Machine: an ensemble of linear nu-SVMs with diverse weight vectors.

    Minimises, over T = ``n_estimators`` linear members without intercepts,

        sum_t ( -nu rho_t + (1/N) sum_i xi_ti^2 ) + mu sum_{t<t'} |w_t + w_t'|^2
        subject to  y_i w_t . x_i >= rho_t - xi_ti  and  |w_t| <= 1,

    and predicts with the mean of the w_t. More than two classes are handled one-vs-rest.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of members T.
    nu : float, default=0.5
        Weight of the margins rho_t. It matters only where the constraint |w_t| <= 1 does: inside the ball it
        scales all members alike.
    mu : float, default=0.001
        Weight of the diversity. 0 trains the members independently.
    variant : {"relaxed", "sphere"}, default="relaxed"
        "relaxed" is the convex problem above, solved by alternating over the members. "sphere" demands
        |w_t| = 1, so that the last term counts cosines; it is not convex and starts from random directions.
    max_sweeps : int, default=1000
        Most sweeps over the members per binary problem; for "sphere" a sweep is one L-BFGS step of all.
    tol : float, default=1e-4
        The fit ends at this relative duality gap ("relaxed") or relative size of the gradient ("sphere").
    random_state : int, RandomState or None, default=None
        Random directions of ``variant="sphere"``; the relaxed fit is deterministic.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    components_ : ndarray of shape (n_problems, n_estimators, n_features)
        Weights of the members; n_problems is 1 for two classes, else the number of classes.
    coef_ : ndarray of shape (n_problems, n_features)
        The mean of the members.
    intercept_ : ndarray of shape (n_problems,)
        Zeros.
    objective_ : ndarray of shape (n_problems,)
        Value of the minimised function.
    dual_gap_ : ndarray of shape (n_problems,)
        Relative duality gap: a proven bound on the relative distance of ``objective_`` from the optimum. NaN
        for "sphere", which has none.
    n_iter_ : ndarray of shape (n_problems,)
        Sweeps taken.
    history_ : list of ndarray
        The objective after every sweep, per problem.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    See Also
    --------
    exclusivity.ERMClassifier : The paper's own ensemble.
    exclusivity.diversity.diversity_report : How much the members differ.

    Notes
    -----
    A reconstruction from the publication: the authors' code is not public any more. The relaxed problem is
    convex and symmetric in its members, so for T >= 3 and mu > 0 all of them are equal at the optimum: one
    nu-SVM with a ridge of 2 mu (T - 1). What difference is left is of the size of sqrt(tol).

    There is no intercept, as in the original: centre the features, or append a constant column.

    References
    ----------
    Y. Yu, Y.-F. Li and Z.-H. Zhou, "Diversity Regularized Machine", IJCAI 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity.baselines import DRMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = DRMClassifier(n_estimators=5).fit(scale(X), y)
    >>> round(clf.score(scale(X), y), 2), clf.components_.shape
    (0.99, (1, 5, 30))
    """

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        nu: float = 0.5,
        mu: float = 0.001,
        variant: str = "relaxed",
        max_sweeps: int = 1000,
        tol: float = 1e-4,
        random_state: RandomState = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.nu = nu
        self.mu = mu
        self.variant = variant
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Train the ensemble.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. float32 stays float32 in memory; all sums are float64.
        y : array-like of shape (n_samples,)
            Class labels of any type.

        Returns
        -------
        self : DRMClassifier
            The fitted classifier.
        """
        self._check_parameters()
        data = self._training_set(X, y)
        tasks = binary_tasks(data, "ovr")
        seeds = check_random_state(self.random_state).randint(_SEED_LIMIT, size=len(tasks))
        results = [self._solve(task, seed) for task, seed in zip(tasks, seeds, strict=True)]
        no_intercepts = np.zeros(self.n_estimators)
        self._store_members(data, [(result.weights, no_intercepts) for result in results])
        self.objective_ = np.array([result.history[-1] for result in results])
        self.dual_gap_ = np.array([result.gap for result in results])
        self.n_iter_ = np.array([len(result.history) for result in results])
        self.history_ = [result.history for result in results]
        for task, result in zip(tasks, results, strict=True):
            if not result.converged:
                warnings.warn(_advice(task, result, self.tol), ConvergenceWarning, stacklevel=2)
        return self

    def component_decision_function(self, X: Matrix) -> Floats:
        """The margins of every member in every binary problem.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_problems, n_estimators)
            A read-only view when all members are equal.
        """
        check_is_fitted(self)
        return self._ensemble.scores(self._validate_rows(X))

    @property
    def components_(self) -> Floats:
        """Weights of the members, (n_problems, n_estimators, n_features), read-only."""
        check_is_fitted(self)
        return self._ensemble.all_weights

    def _check_parameters(self) -> None:
        params = self.get_params(deep=False)
        check_number(params, "n_estimators", least=1, integer=True)
        check_number(params, "nu", least=0, strict=True)
        check_number(params, "mu", least=0)
        check_choice(params, "variant", ("relaxed", "sphere"))
        check_number(params, "max_sweeps", least=1, integer=True)
        check_number(params, "tol", least=0, strict=True)

    def _solve(self, task: BinaryTask, seed: int) -> DRMResult:
        problem = DRMProblem.build(
            task.rows.design.X, task.rows.labels, n_members=self.n_estimators, nu=self.nu, mu=self.mu
        )
        if self.variant == "relaxed":
            return solve_relaxed(problem, tol=self.tol, max_sweeps=self.max_sweeps)
        return solve_sphere(problem, tol=self.tol, max_sweeps=self.max_sweeps, random_state=int(seed))


def _advice(task: BinaryTask, result: DRMResult, tol: float) -> str:
    measure = "gradient" if np.isnan(result.gap) else "duality gap"
    return (
        f"{task.name}: {measure} {result.residual:.1e} after {len(result.history)} sweeps, above "
        f"tol={tol:g}. Scale the features (StandardScaler), raise max_sweeps, or raise tol."
    )
