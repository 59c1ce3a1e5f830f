"""PSVMClassifier: the single SVM that the paper compares its ensembles with."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from exclusivity.baselines.linear import LinearBaseline
from exclusivity.baselines.svm_alm import make_system, solve_svm_alm
from exclusivity.classifier import BinaryTask, ClassWeight, binary_tasks, check_number
from exclusivity.problem import ERMProblem, ExclusivityRegulariser, Objective, PowerHinge
from exclusivity.problem.arrays import Matrix
from exclusivity.solvers import SolverResult

# u lies between 0 and C where e is of order 1. Measured on 150 rows of the paper's sets scaled to [-1, 1],
# C in {0.1, 1, 10}: iterations are fewest between 0.1 C and C, and 0.3 C is never far from the best.
_MU_PER_COST = 0.3


class PSVMClassifier(LinearBaseline):
    """Primal SVM by an augmented Lagrangian method (SVM-ALM, or PSVM in the ERM paper).

    Minimises 1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i (x_i . w + b))^p with a free intercept b. More than
    two classes are handled one-vs-rest.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    p : {1, 2}, default=2
        Power of the hinge loss.
    mu : float, default=None
        Constant penalty of the augmented Lagrangian; changes the path, not the solution. None means 0.3 C.
    tol : float, default=1e-4
        Relative duality gap, (F - D) / F, at which a fit ends.
    max_iter : int, default=10000
        Most iterations per binary problem.
    fit_intercept : bool, default=True
        Whether there is an intercept. It is free, never penalised.
    class_weight : dict or "balanced", default=None
        Factors on the sample weights. "balanced" gives all classes the same total weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    coef_ : ndarray of shape (n_problems, n_features)
        Weights; n_problems is 1 for two classes, else the number of classes.
    intercept_ : ndarray of shape (n_problems,)
        Intercepts.
    objective_ : ndarray of shape (n_problems,)
        Value of the minimised function.
    dual_gap_ : ndarray of shape (n_problems,)
        Relative duality gap: a proven bound on the relative distance of ``objective_`` from the optimum.
    n_iter_ : ndarray of shape (n_problems,)
        Iterations taken.
    history_ : list of History
        Objective, bound, gap and residuals of every iteration, per problem.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    See Also
    --------
    exclusivity.ERMClassifier : With ``n_estimators=1`` the same SVM, to a certified gap.

    Notes
    -----
    The original schedule of mu is not known to us; a constant mu converges for every value.

    References
    ----------
    F. Nie, Y. Huang, X. Wang and H. Huang, "New Primal SVM Solver with Linear Computational Cost for Big Data
    Classifications", ICML 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity.baselines import PSVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = PSVMClassifier(C=0.1).fit(scale(X), y)
    >>> round(clf.score(scale(X), y), 2)
    0.99
    >>> bool(clf.dual_gap_[0] < 1e-4)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        p: int = 2,
        mu: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
    ) -> None:
        self.C = C
        self.p = p
        self.mu = mu
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight

    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the SVM.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. float32 stays float32 in memory; all sums are float64.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; an integer weight means so many copies of the row, weight 0 none.

        Returns
        -------
        self : PSVMClassifier
            The fitted classifier.
        """
        self._check_parameters()
        data = self._training_set(X, y, sample_weight, self.class_weight)
        tasks = binary_tasks(data, "ovr")
        problems = [self._problem(task) for task in tasks]
        mu = _MU_PER_COST * self.C if self.mu is None else float(self.mu)
        system = make_system(problems[0], mu)  # one-vs-rest problems differ in their labels only
        results = [
            solve_svm_alm(problem, mu, tol=self.tol, max_iter=self.max_iter, system=system)
            for problem in problems
        ]
        self._store_members(data, [(result.weights, result.intercepts) for result in results])
        self.objective_ = np.array([result.objective for result in results])
        self.dual_gap_ = np.array([result.gap for result in results])
        self.n_iter_ = np.array([result.n_iter for result in results])
        self.history_ = [result.history for result in results]
        for task, result in zip(tasks, results, strict=True):
            if not result.converged:
                warnings.warn(_advice(task, result, self.tol), ConvergenceWarning, stacklevel=2)
        return self

    def _check_parameters(self) -> None:
        params = self.get_params(deep=False)
        check_number(params, "C", least=0, strict=True)
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, the powers with closed forms; got {self.p!r}.")
        if self.mu is not None:
            check_number(params, "mu", least=0, strict=True)
        check_number(params, "tol", least=0, strict=True)
        check_number(params, "max_iter", least=1, integer=True)
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise TypeError(f"fit_intercept must be True or False; got {self.fit_intercept!r}.")

    def _problem(self, task: BinaryTask) -> ERMProblem:
        """The SVM as an ERM of one member."""
        objective = Objective(
            loss=PowerHinge(self.p),
            regulariser=ExclusivityRegulariser(),
            cost=float(self.C),
            fit_intercept=bool(self.fit_intercept),
        )
        return ERMProblem(objective, task.rows)


def _advice(task: BinaryTask, result: SolverResult, tol: float) -> str:
    return (
        f"{task.name}: duality gap {result.gap:.1e} after {result.n_iter} iterations, above tol={tol:g}. "
        "Scale the features (StandardScaler), change mu, raise max_iter, or raise tol."
    )
