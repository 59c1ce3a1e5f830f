"""From tasks to solver results: one problem at a time, or together where members compete for features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from exclusivity.classifier._compat import CALLER_OF_FIT
from exclusivity.classifier.fitting import build_problems, warm_starts
from exclusivity.classifier.parameters import ErmParameters
from exclusivity.classifier.progress import ProblemMonitor
from exclusivity.classifier.state import FittedErm
from exclusivity.classifier.stored import StoredPoint
from exclusivity.classifier.threads import fitting_threads
from exclusivity.classifier.training import BinaryTask
from exclusivity.problem import ERMProblem
from exclusivity.problem.arrays import Ints
from exclusivity.solvers import ExclusiveOptions, SolverResult, solve_all, solve_exclusive
from exclusivity.solvers.base import parse_options

_SEED_LIMIT = np.iinfo(np.int32).max


def solve_tasks(
    estimator: FittedErm, tasks: Sequence[BinaryTask], groups: Ints, watchers: Sequence[ProblemMonitor]
) -> Sequence[SolverResult]:
    """One result per task, by the solver that the estimator's parameters ask for.

    For ``exclusivity > 1`` all tasks are solved together, watched by one monitor: a feature group belongs to
    one member in every task.
    """
    problems = build_problems(estimator, tasks)
    seeds = problem_seeds(estimator, len(tasks))
    settings = {
        "tol": estimator.tol,
        "max_iter": estimator.max_iter,
        "n_threads": effective_n_jobs(estimator.n_jobs),
    }
    is_warm = estimator.warm_start and estimator.__sklearn_is_fitted__()
    results: Sequence[SolverResult]
    with fitting_threads(*tasks[0].rows.design.X.shape):
        if estimator.exclusivity > 1:
            results = solve_exclusive(
                problems,
                groups=groups,
                options=parse_options(ExclusiveOptions, estimator.solver_options),
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
    if problem.design.X.dtype == np.float64:
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
            f"abstain. Set n_estimators to {n_groups} or less.",
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
