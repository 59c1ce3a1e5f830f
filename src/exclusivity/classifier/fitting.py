"""Between the estimator and the solvers: problems, starts, monitors, and advice for a fit that fell short."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from joblib import effective_n_jobs, parallel_config
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from exclusivity._errors import ParameterError, ParameterTypeError
from exclusivity.classifier._compat import CALLER_OF_FIT
from exclusivity.classifier.bounds import given_bounds
from exclusivity.classifier.fitted import TEST, Ensemble, FittedErm, VotingState, scope_of
from exclusivity.classifier.parameters import ErmParameters
from exclusivity.classifier.partition import with_partition
from exclusivity.classifier.progress import ProblemMonitor
from exclusivity.classifier.stored import StoredPoint
from exclusivity.classifier.training import BinaryTask
from exclusivity.problem import LOSSES, POWER_LOSS, Contrast, ERMProblem, ExclusivityRegulariser, Objective
from exclusivity.problem.arrays import Floats, Ints, Matrix
from exclusivity.solvers import (
    ExclusiveOptions,
    IterationState,
    SolverResult,
    Start,
    Status,
    parse_options,
    solve_all,
    solve_exclusive,
)

LARGE_SIDE = 4096
"""From this size of the smaller side of X on, BLAS keeps its threads, unless X is sparse."""

_SEED_LIMIT = np.iinfo(np.int32).max
_is_limited = Lock()


def build_problems(estimator: ErmParameters, tasks: Sequence[BinaryTask]) -> list[ERMProblem]:
    """One ERM problem per task, with the estimator's parameters."""
    design = tasks[0].rows.design
    objective = objective_of(estimator, design.n_features, design.X.dtype, len(tasks))
    return [ERMProblem(objective, task.rows) for task in tasks]


def objective_of(estimator: ErmParameters, n_features: int, dtype: DTypeLike, n_problems: int) -> Objective:
    """What an estimator with these parameters minimises, on such rows, in each of so many problems."""
    is_bounded = estimator.coef_bounds is not None or estimator.monotonic_cst is not None
    power = (float(estimator.p),) if estimator.loss == POWER_LOSS else ()
    return Objective(
        loss=LOSSES[estimator.loss](*power),
        regulariser=ExclusivityRegulariser(float(estimator.exclusivity), float(estimator.sparsity)),
        cost=float(estimator.C),
        n_members=int(estimator.n_estimators),
        fit_intercept=bool(estimator.fit_intercept),
        bounds=given_bounds(estimator, n_features, dtype, n_problems) if is_bounded else None,
    )


def warm_starts(estimator: FittedErm, n_problems: int) -> list[Start]:
    """The solution of the previous fit as starts of this one."""
    ensemble, starts, n_members = estimator._ensemble, estimator._starts, estimator.n_estimators
    n_features = estimator.n_features_in_
    before = (len(ensemble.weights), ensemble.weights.shape[2])
    if before != (n_problems, n_features):
        raise ValueError(
            f"warm_start=True, but the previous fit had {before[0]} binary problems with {before[1]} "
            f"features and this one has {n_problems} with {n_features}; set warm_start=False to start anew."
        )
    if starts and ensemble.n_members == n_members:
        return list(starts)
    if ensemble.n_members != n_members:
        ensemble = ensemble.mean()
    return [
        Start(
            weights=np.broadcast_to(ensemble.weights[i].T, (n_features, n_members)).astype(float),
            intercepts=np.broadcast_to(ensemble.intercepts[i], n_members).astype(float),
            dual=starts[i].dual if starts else None,
        )
        for i in range(n_problems)
    ]


def problem_names(estimator: ErmParameters, tasks: Sequence[BinaryTask | Contrast]) -> list[str]:
    """What is solved, for messages: every task by itself, or all together where they share a partition."""
    if estimator.exclusivity > 1 and len(tasks) > 1:
        return [f"{len(tasks)} binary problems together"]
    return [task.name for task in tasks]


def open_fit_context(estimator: BaseEstimator, shown: dict[str, Any], n_problems: int) -> Any:
    """scikit-learn's context of a fit that is about to solve ``n_problems``; None without callbacks."""
    if not getattr(estimator, "_skl_callbacks", None):
        return None
    context = estimator._init_callback_context(max_subtasks=n_problems, sequential_subtasks=False)
    return context.call_on_fit_task_begin(estimator=estimator, **shown)


def monitors(
    estimator: ErmParameters,
    width: dict[str, Any],
    names: Sequence[str],
    classes: NDArray[Any],
    context: Any,
    shown: dict[str, Any],
    dtype: DTypeLike,
) -> list[ProblemMonitor]:
    """One watcher per name; none at all when nobody listens."""
    if context is None and not estimator.verbose:
        return []

    def fitted_attributes(state: IterationState) -> dict[str, Any] | None:
        if len(names) > 1:  # halfway through a multi-class fit there is no classifier to show
            return None
        members = [(state.weights, state.intercepts)]
        if state.weights.ndim == 3:  # problems that are solved together
            members = list(zip(state.weights, state.intercepts, strict=True))
        return width | voting_state(estimator, members, classes, dtype).attributes()

    watchers = []
    for number, name in enumerate(names):
        task_context = None
        if context is not None:
            task_context = context.subcontext(task_name=name, task_id=number, max_subtasks=None)
        watchers.append(
            ProblemMonitor(name, estimator.verbose, task_context, estimator, shown, fitted_attributes)
        )
    return watchers


def voting_state(
    estimator: ErmParameters,
    members: Sequence[tuple[Floats, Floats]],
    classes: NDArray[Any],
    dtype: DTypeLike,
) -> VotingState:
    """What makes an estimator ready to predict with these members."""
    ensemble = Ensemble.from_members(members, dtype)
    return VotingState(classes, ensemble, estimator.multi_class, float(estimator.exclusivity))


def advice(name: str, result: SolverResult, tol: float) -> str:
    """What to tell, and what to try, when a fit ended at its iteration limit."""
    if np.isnan(result.gap):
        return (
            f"{name}: not every member came within tol={tol:g} of its optimum in {result.n_iter} fits of "
            f"members: {result.status.value}. Scale the features (StandardScaler), raise max_iter, or raise "
            "tol."
        )
    if result.status is Status.ROUNDED:
        return (
            f"{name}: duality gap {result.gap:.1e}, above tol={tol:g}: {result.status.value}, and at this C "
            "float32 cannot hold the solution. Fit float64 rows (X.astype(float)), or raise tol."
        )
    return (
        f"{name}: duality gap {result.gap:.1e} after {result.n_iter} iterations, above tol={tol:g}: "
        f"{result.status.value}. "
        "The objective is at most that fraction above its optimum. Scale the features (StandardScaler), "
        "raise max_iter, or accept the gap by raising tol."
    )


def _n_threads(n_jobs: int | None) -> int:
    """Return the threads that ``n_jobs`` asks for, as joblib counts threads and not its processes."""
    with parallel_config(backend="threading"):
        return int(effective_n_jobs(n_jobs))


def solve_tasks(
    estimator: FittedErm, tasks: Sequence[BinaryTask], groups: Ints, watchers: Sequence[ProblemMonitor]
) -> Sequence[SolverResult]:
    """One result per task, by the solver that the estimator's parameters ask for.

    For ``exclusivity > 1`` all tasks are solved together, watched by one monitor: a feature group belongs to
    one member in every task.
    """
    problems = build_problems(estimator, tasks)
    seeds = problem_seeds(estimator, len(tasks))
    settings: dict[str, Any] = {
        "tol": estimator.tol,
        "max_iter": estimator.max_iter,
        "n_threads": _n_threads(estimator.n_jobs),
    }
    is_warm = estimator.warm_start and estimator.__sklearn_is_fitted__()
    results: Sequence[SolverResult]
    with fitting_threads(*tasks[0].rows.design.X.shape, is_sparse=tasks[0].rows.design.is_sparse):
        if estimator.exclusivity > 1:
            results = solve_exclusive(
                problems,
                groups=groups,
                options=exclusive_options(estimator, groups, seeds[0]),
                random_state=seeds[0],
                start=former_partition(estimator, groups) if is_warm else None,
                resume=estimator._starts if is_warm else (),
                callback=watchers[0] if watchers else None,
                **settings,
            )
        else:
            results = solve_all(
                problems,
                estimator.solver,
                options=estimator.solver_options,
                starts=warm_starts(estimator, len(tasks)) if is_warm else None,
                seeds=seeds,
                callbacks=watchers or None,
                **settings,
            )
        return [as_stored(*pair, estimator.tol) for pair in zip(problems, results, strict=True)]


def as_stored(problem: ERMProblem, result: SolverResult, tol: float) -> SolverResult:
    """The result as a model of these rows holds it; see :class:`StoredPoint`."""
    if problem.design.X.dtype != np.float32:
        return result
    stored = StoredPoint.of(problem.objective, result)
    at_point = replace(problem, objective=stored.objective)
    loss = at_point.total_loss(stored.weights, stored.intercepts)
    total_cost = at_point.cost * float(problem.weights.sum())
    return stored.certified(result, tol, loss, total_cost, problem.design.row_scale, problem.design.n_rows)


def problem_seeds(estimator: ErmParameters, n_problems: int) -> list[int]:
    """One seed per binary problem; of problems that are solved together the first one's counts."""
    seeds: Ints = check_random_state(estimator.random_state).randint(_SEED_LIMIT, size=n_problems)
    return [int(seed) for seed in seeds]


def warn_of_surplus(groups: Ints, n_members: int) -> None:
    """Say it when there are more members than feature groups to give them."""
    n_groups = int(groups.max()) + 1
    if n_groups < n_members:
        kind = "features" if n_groups == len(groups) else "feature groups"
        warnings.warn(
            f"{n_members} members compete for {n_groups} {kind}: {n_members - n_groups} of them get none and "
            f"abstain. Use {n_groups} members or fewer.",
            UserWarning,
            stacklevel=CALLER_OF_FIT + 2,
        )


def warn_of_constant_votes(counts: Ints, estimator: FittedErm) -> None:
    """Say it when members give all training rows the same class; ``counts`` has their votes by class.

    No feature can turn such a vote, so that certificates look better for it, and it says nothing about a row.
    """
    constant = np.flatnonzero((counts > 0).sum(axis=1) * estimator.supports_.any(axis=1) == 1)
    if len(constant):
        classes = np.unique(estimator.classes_[counts[constant].argmax(axis=1)])
        more = "" if estimator.class_weight == "balanced" else "class_weight='balanced', "
        warnings.warn(
            f"{len(constant)} of {len(counts)} members vote {' or '.join(map(str, classes))} for every "
            f"training row (the first is number {constant[0]}): nothing can turn such a vote, and it knows "
            f"nothing. Set {more}a larger C, or fewer members.",
            UserWarning,
            stacklevel=CALLER_OF_FIT + 1,
        )


def former_partition(estimator: FittedErm, groups: Ints) -> Ints | None:
    """The partition of the previous fit; None if that had none."""
    partition: Ints | None = getattr(estimator, "partition_", None)
    if partition is None:
        return None
    n_members = len(estimator.supports_)
    if n_members != estimator.n_estimators or not np.array_equal(estimator.groups_, groups):
        raise ValueError(
            f"warm_start=True, but the previous fit divided {len(partition)} feature groups among "
            f"{n_members} members, and this one has {int(groups.max()) + 1} groups and "
            f"{estimator.n_estimators} members, "
            "or other columns in the groups; set warm_start=False to start anew."
        )
    return partition


def carried_groups(feature_groups: object, X: Matrix, exclusivity: float = np.inf) -> object:
    """The parameter as given; where it is None and members compete, the groups that the rows carry.

    A :class:`~exclusivity.tables.TableEncoder` hands out arrays with an attribute ``feature_groups``: the
    columns that it made of one input column belong together.
    """
    # Not of a DataFrame: there an attribute may be a column.
    may_carry = isinstance(X, np.ndarray) or sparse.issparse(X)
    if feature_groups is not None or not exclusivity > 1 or not may_carry:
        return feature_groups
    return getattr(X, "feature_groups", None)


def carried_signs(monotonic_cst: object, X: Matrix) -> object:
    """Return the parameter as given; where it is None, the signs that rows of a TableEncoder carry."""
    may_carry = isinstance(X, np.ndarray) or sparse.issparse(X)
    signs = getattr(X, "monotonic_cst", None) if may_carry else None
    if signs is not None and monotonic_cst is not None:
        raise ParameterError(
            "monotonic_cst", "monotonic_cst is given to the TableEncoder and to the classifier; choose one."
        )
    return monotonic_cst if signs is None else signs


def group_codes(feature_groups: object, n_features: int, names: NDArray[Any] | None) -> Ints:
    """One number per column, 0 to n_groups - 1 in the order of first appearance.

    Parameters
    ----------
    feature_groups : None, sequence of labels, dict, or callable
        None: every column is a group of its own. A dict has labels by column name, and columns that it does
        not name are groups of their own. A callable is given the array of column names.
    n_features : int
    names : ndarray of str or None
        The column names seen in ``fit``, if there were any.

    Examples
    --------
    >>> group_codes(["engine", "brake", "engine"], 3, None)
    array([0, 1, 0])
    """
    if feature_groups is None:
        return np.arange(n_features)
    labels = feature_groups
    if callable(feature_groups) or isinstance(feature_groups, Mapping):
        if names is None:
            raise ParameterError(
                "feature_groups",
                "feature_groups goes by column names, but X has none; fit on a DataFrame with string "
                "columns, or give one label per column.",
            )
        if isinstance(feature_groups, Mapping):
            return _numbered(_labels_of(feature_groups, names), n_features)
        labels = feature_groups(names)
    return _numbered(_as_list(labels), n_features)


def _labels_of(groups: Mapping[Any, Any], names: NDArray[Any]) -> list[Any]:
    """Return one label per column; a column without one is a group of its own."""
    unknown = [name for name in groups if name not in names]
    if unknown:
        raise ParameterError(
            "feature_groups",
            f"feature_groups names {unknown[0]!r}, which is no column of X: {names.tolist()[:20]}.",
        )
    return [groups.get(name, ("alone", place)) for place, name in enumerate(names)]


def _as_list(labels: Any) -> list[Any]:
    if isinstance(labels, (str, bytes, Set)) or not hasattr(labels, "__len__"):
        raise ParameterTypeError(
            "feature_groups",
            "feature_groups must be None, a sequence with one label per column, a dict of labels by column "
            f"name, or a callable that makes the sequence from the column names; got {labels!r}.",
        )
    if np.ndim(labels) != 1:
        raise ParameterError(
            "feature_groups", f"feature_groups must be one-dimensional; got {np.ndim(labels)} dimensions."
        )
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def _numbered(labels: list[Any], n_features: int) -> Ints:
    if len(labels) != n_features:
        raise ParameterError(
            "feature_groups",
            f"feature_groups must have one label per column: X has {n_features} columns, and "
            f"{len(labels)} labels were given.",
        )
    # NaN is unlike itself: columns without a label would become groups of their own without a word.
    if any(label is None or label != label for label in labels):  # noqa: PLR0124
        raise ParameterError(
            "feature_groups", "feature_groups has a missing label (None or NaN); give every column a label."
        )
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.intp)


@cache
def _controller() -> Any:
    """Finding the loaded libraries costs milliseconds, once per process; a limit then 20 microseconds."""
    return ThreadpoolController()


@contextmanager
def fitting_threads(n_rows: int, n_features: int, *, is_sparse: bool = False) -> Iterator[None]:
    """Solve inside: with one BLAS thread where products are too small to be shared out.

    A solver works on blocks of rows that fit into a cache and on systems of the size of the smaller side of
    X. Up to thousands of columns a second thread waits longer than it works, and waiting is done at full
    speed: on a busy machine it multiplies the processor time of a fit. With sparse rows, however many, all
    that BLAS sees is vectors, the worst case of this. The number of threads belongs to the whole process, so
    of fits that run side by side (``n_jobs``, joblib, Dask's threads) or one inside the other only the first
    sets it, and gives the old number back: two that undo each other's limit could leave it behind for ever.
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


def exclusive_options(estimator: ErmParameters, groups: Ints, seed: int) -> ExclusiveOptions:
    """The options of the exclusive solver; a partition that is not learned is used as it is."""
    options = parse_options(ExclusiveOptions, estimator.solver_options)
    if options.voting is None:  # soft votes have no certificate to count
        options = replace(options, voting="runoff" if estimator.voting == "runoff" else "hard")
    is_learned = scope_of(estimator.partition) == TEST
    return options if is_learned else with_partition(options, estimator, groups, seed)
