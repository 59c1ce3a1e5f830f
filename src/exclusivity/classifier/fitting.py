"""Between the estimator and the solvers: problems, starts, monitors, and advice for a fit that fell short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator

from exclusivity.classifier.ensemble import Ensemble
from exclusivity.classifier.parameters import ErmParameters
from exclusivity.classifier.progress import ProblemMonitor
from exclusivity.classifier.state import WIDTH, FittedErm, VotingState, width_of
from exclusivity.classifier.training import BinaryTask
from exclusivity.problem import Contrast, ERMProblem, ExclusivityRegulariser, Objective, PowerHinge
from exclusivity.problem.arrays import Floats
from exclusivity.solvers import IterationState, SolverResult, Start, Status


@contextmanager
def old_width_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Validation notes the width of the new data at once; a fit that then fails must not keep it."""
    before = width_of(estimator)
    try:
        yield
    except BaseException:  # Ctrl-C too
        for name in WIDTH:
            estimator.__dict__.pop(name, None)
        estimator.__dict__.update(before)
        raise


def build_problems(estimator: ErmParameters, tasks: Sequence[BinaryTask]) -> list[ERMProblem]:
    """One ERM problem per task, with the estimator's parameters."""
    objective = objective_of(estimator)
    return [ERMProblem(objective, task.rows) for task in tasks]


def objective_of(estimator: ErmParameters) -> Objective:
    """What an estimator with these parameters minimises."""
    return Objective(
        loss=PowerHinge(float(estimator.p)),
        regulariser=ExclusivityRegulariser(float(estimator.exclusivity), float(estimator.sparsity)),
        cost=float(estimator.C),
        n_members=int(estimator.n_estimators),
        fit_intercept=bool(estimator.fit_intercept),
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


def monitors(
    estimator: ErmParameters,
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
        return voting_state(estimator, members, classes, dtype).attributes()

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
