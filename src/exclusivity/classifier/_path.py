"""A path over C: one ensemble per value, with shared work done once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from exclusivity._errors import ParameterError, ParameterTypeError
from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.classifier._erm import ERMClassifier
from exclusivity.classifier._fit import (
    ENDED_EARLY,
    MemoryTasks,
    as_stored,
    fitting_threads,
    problem_seeds,
    warn_of_surplus,
)
from exclusivity.classifier._validation import check_parameters, group_codes, sample_weights, validate_classes
from exclusivity.objective.problem import cost_grid
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
    check_parameters(template.get_params(deep=False))
    X, y = validate_classes(template, X, y)
    rows = PathRows.build(template, X, y, sample_weights(sample_weight, X.shape[0]))
    values = rows.costs(Cs)
    classifiers = rows.solve(values)
    if template.exclusivity > 1:
        warn_of_surplus(rows.groups, template.n_estimators)
    return ERMPath(
        Cs=values,
        coefs=np.stack([classifier.coef_ for classifier in classifiers]),
        intercepts=np.stack([classifier.intercept_ for classifier in classifiers]),
        objectives=np.stack([classifier.objective_ for classifier in classifiers]),
        gaps=np.stack([classifier.dual_gap_ for classifier in classifiers]),
        n_iter=np.stack([classifier.n_iter_ for classifier in classifiers]),
        classifiers=tuple(classifiers),
    )


@dataclass(frozen=True, eq=False)
class PathRows:
    """Validated rows as binary tasks, made once for all values of C.

    ``template`` carries the parameters (its C does not matter) and the names of the features.
    """

    template: ERMClassifier
    rows: MemoryTasks
    groups: Ints

    @classmethod
    def build(cls, template: ERMClassifier, X: Matrix, y: NDArray[Any], weights: Floats) -> PathRows:
        """Build from validated arrays."""
        names = getattr(template, "feature_names_in_", None)
        groups = group_codes(template.feature_groups, X.shape[1], names)
        return cls(template, MemoryTasks.build(template, X, y, weights, {}), groups)

    def costs(self, Cs: object) -> Floats:
        """Return the values of C to solve for."""
        if isinstance(Cs, (int, np.integer)) and not isinstance(Cs, bool):
            if Cs < 1:
                raise ParameterError(
                    "Cs", f"Cs must be at least 1 (how many values of C) or a sequence; got {Cs!r}."
                )
            return cost_grid(self.rows.problems(self.template), int(Cs))
        return check_costs(Cs)

    def solve(self, Cs: Floats) -> list[ERMClassifier]:
        """Fit one classifier per C; warn once about all that did not reach the tolerance."""
        if self.template.exclusivity <= 1:
            return self._stored(Cs, list(zip(*self._solve_convex(Cs), strict=True)))
        return self._stored(Cs, [self._solve_one(float(C)) for C in Cs])

    def refit(self, C: float) -> ERMClassifier:
        """Fit what ``ERMClassifier(C=C)`` would fit to these rows, number by number."""
        return self._stored(np.array([C]), [self._solve_one(C)])[0]

    def _stored(self, Cs: Floats, solved: Sequence[Sequence[SolverResult]]) -> list[ERMClassifier]:
        """Return a classifier with the results of each C, one per task."""
        classifiers = [self._new(float(C)) for C in Cs]
        for classifier, results in zip(classifiers, solved, strict=True):
            classifier._store(results, self.rows.classes, self.groups, self.rows.dtype)
        _warn(Cs, solved, self.template.tol)
        return classifiers

    def _new(self, C: float) -> ERMClassifier:
        # What ``clone`` would copy, without its look at signatures; the width of the rows comes along.
        classifier = deepcopy(self.template)
        classifier.C = C
        return classifier

    def _solve_one(self, C: float) -> Sequence[SolverResult]:
        started = perf_counter()
        results = self.rows.solve(self._new(C), self.groups)
        if self.template.verbose:
            print(f"[ERM] C = {C:.3g}: {perf_counter() - started:.1f} s")  # noqa: T201
        return results

    def _solve_convex(self, Cs: Floats) -> list[list[SolverResult]]:
        """Return one list of results per task."""
        template = self.template
        problems = self.rows.problems(template)
        seeds = problem_seeds(template, len(problems))
        limits: dict[str, Any] = {
            "tol": template.tol,
            "max_iter": template.max_iter,
            "options": template.solver_options,
        }

        def solve(number: int) -> list[SolverResult]:
            started, costs = perf_counter(), Cs.tolist()
            results = solve_path(problems[number], costs, template.solver, seed=seeds[number], **limits)
            results = [
                as_stored(problems[number].changed(cost=C), result, template.tol)
                for C, result in zip(costs, results, strict=True)
            ]
            _report(self.rows.tasks[number].name, Cs, results, perf_counter() - started, template.verbose)
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


def _report(name: str, Cs: Floats, results: list[SolverResult], seconds: float, verbose: int) -> None:
    if verbose:
        largest = max(result.gap for result in results)
        print(f"[ERM] {name}: {len(Cs)} values of C, largest gap {largest:.1e}, {seconds:.1f} s")  # noqa: T201
    if verbose >= 2:
        for C, result in zip(Cs, results, strict=True):
            line = f"objective {result.objective:.6g}, gap {result.gap:.1e}, {result.n_iter} iterations"
            print(f"[ERM]   C = {C:.3g}: {line}")  # noqa: T201


def _warn(Cs: Floats, solved: Sequence[Sequence[SolverResult]], tol: float) -> None:
    pairs = [(C, result) for C, results in zip(Cs, solved, strict=True) for result in results]
    short = [(C, result) for C, result in pairs if result.status in ENDED_EARLY]
    if short:
        C, worst = max(short, key=lambda pair: np.nan_to_num(pair[1].gap, nan=np.inf))
        warnings.warn(
            f"{len({C for C, _ in short})} of {len(Cs)} values of C did not reach tol={tol:g}; the worst, "
            f"C={C:.3g}, has a duality gap of {worst.gap:.1e} after {worst.n_iter} iterations: "
            f"{worst.status.value}. Scale the features (StandardScaler), raise max_iter, or raise tol.",
            ConvergenceWarning,
            stacklevel=5,
        )
