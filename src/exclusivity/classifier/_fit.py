"""Solve the binary problems of a fit, with rows in memory or in blocks: objectives, starts, warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs, parallel_config
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from exclusivity._errors import ParameterError, warn_of_many_classes
from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.classifier._bounds import bounds_of
from exclusivity.classifier._fitted import TEST, scope_of
from exclusivity.classifier._progress import CALLER_OF_FIT, ProblemMonitor
from exclusivity.classifier._validation import (
    check_scale,
    class_weights,
    contrasts,
    number_classes,
    random_partition,
    read_partition,
    require_two_classes,
    sample_weights,
    validate_classes,
)
from exclusivity.objective.losses import LOSSES, POWER_LOSS
from exclusivity.objective.objective import Contrast, ExclusivityRegulariser, Objective, relative_gap
from exclusivity.objective.problem import ERMProblem
from exclusivity.rows.design import DesignMatrix, LabelledRows, RowScale, aligned
from exclusivity.rows.source import Question, RowBlock, RowSource
from exclusivity.solvers.base import SolverResult, Start, Status, parse_options
from exclusivity.solvers.blocks import Target, TotalLoss, solve_targets
from exclusivity.solvers.dispatch import resolve_solver, solve_all
from exclusivity.solvers.exclusive import ExclusiveOptions, solve_exclusive, solve_exclusive_targets
from exclusivity.solvers.newton import NewtonOptions
from exclusivity.voting.rules import RULES

if TYPE_CHECKING:
    from exclusivity.classifier._erm import ERMClassifier

ENDED_EARLY = (Status.MAX_ITER, Status.DIVERGED, Status.ROUNDED)
"""The ends of a run that deserve a warning."""

LARGE_SIDE = 4096
"""From this size of the smaller side of X on, BLAS keeps its threads, unless X is sparse."""

_SEED_LIMIT = np.iinfo(np.int32).max
_is_limited = Lock()


# Rows in memory


@dataclass(frozen=True, eq=False)
class MemoryTasks:
    """The binary problems of a fit to rows in memory, and what callbacks may see of it.

    ``design`` has all rows of positive weight, ``tasks`` the classes of each binary problem and ``rows`` its
    rows. One-vs-rest problems share one design matrix and one array of weights, hence one factorisation. In
    one-vs-one the first class of a pair is positive, as in ``SVC``.
    """

    design: DesignMatrix
    classes: NDArray[Any]
    tasks: Sequence[Contrast]
    rows: Sequence[LabelledRows]
    shown: dict[str, Any]

    @classmethod
    def of(cls, estimator: ERMClassifier, X: Matrix, y: Any, sample_weight: ArrayLike | None) -> Self:
        """Check the arguments of ``fit``; the number and the names of the features go to the estimator."""
        X, y = validate_classes(estimator, X, y)
        shown = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        return cls.build(estimator, X, y, sample_weights(sample_weight, X.shape[0]), shown)

    @classmethod
    def build(
        cls, estimator: ERMClassifier, X: Matrix, y: NDArray[Any], weights: Floats, shown: dict[str, Any]
    ) -> Self:
        """Build from checked rows: number the classes, drop rows of weight 0, multiply class weights in.

        A class whose rows all have weight 0 (in a bootstrap, say) stays a class.
        """
        classes, codes = number_classes(y)
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
        return cls(design, classes, tasks, rows, shown)

    @property
    def dtype(self) -> Any:
        """The type that the fitted weights get: float32 where the rows are, else float64."""
        return np.dtype(np.float32 if self.design.X.dtype == np.float32 else np.float64)

    def problems(self, estimator: ERMClassifier) -> list[ERMProblem]:
        """Build one ERM problem per task, with the estimator's parameters."""
        design = self.design
        objective = objective_of(estimator, design.n_features, design.X.dtype, len(self.tasks))
        return [ERMProblem(objective, rows) for rows in self.rows]

    def solve(
        self, estimator: ERMClassifier, groups: Ints, monitors: Sequence[ProblemMonitor] = ()
    ) -> list[SolverResult]:
        """Solve every task by the solver that the estimator's parameters ask for.

        For ``exclusivity > 1`` all tasks are solved in one run, watched by one monitor: a feature group
        belongs to one member in every task.
        """
        problems, seeds = self.problems(estimator), problem_seeds(estimator, len(self.tasks))
        settings: dict[str, Any] = {
            "tol": estimator.tol,
            "max_iter": estimator.max_iter,
            "n_threads": _n_threads(estimator.n_jobs),
        }
        results: Sequence[SolverResult]
        with fitting_threads(*self.design.X.shape, is_sparse=self.design.is_sparse):
            if estimator.exclusivity > 1:
                results = solve_exclusive(
                    problems,
                    groups=groups,
                    options=exclusive_options(estimator, groups, seeds[0]),
                    random_state=seeds[0],
                    resume=estimator._starts if _is_warm(estimator) else (),
                    callback=monitors[0] if monitors else None,
                    **settings,
                )
            else:
                results = solve_all(
                    problems,
                    estimator.solver,
                    options=estimator.solver_options,
                    starts=_warm_starts(estimator, len(problems)),
                    seeds=seeds,
                    callbacks=monitors or None,
                    **settings,
                )
            return [as_stored(*pair, estimator.tol) for pair in zip(problems, results, strict=True)]

    def vote_counts(self, model: ERMClassifier) -> Ints:
        """Count how often each member votes for each class in these rows."""
        return model._vote_counts(self.design.X)


# Rows in blocks


@dataclass(frozen=True, eq=False)
class BlockTasks:
    """The binary tasks of a fit to rows that are reached block by block.

    ``class_weights`` are factors on the weights of rows, by class; ``dtype`` is that of the fitted weights,
    ``tasks`` has the classes of each binary problem, and ``shown`` what callbacks may see.
    """

    rows: RowSource
    class_weights: Floats | None
    classes: NDArray[Any]
    dtype: Any
    tasks: Sequence[Contrast]
    shown: dict[str, Any]

    @classmethod
    def of(
        cls,
        estimator: ERMClassifier,
        rows: RowSource,
        classes: ArrayLike,
        totals: Floats,
        shown: dict[str, Any],
        feature_names: NDArray[Any] | None = None,
    ) -> Self:
        """Prepare a fit to checked rows; ``totals`` are the sums of the classes' sample weights."""
        classes = np.asarray(classes)
        require_two_classes(classes)
        warn_of_many_classes(len(classes), rows.n_rows, CALLER_OF_FIT + 1)
        check_scale(rows.row_scale)
        estimator.n_features_in_ = rows.n_features
        estimator.__dict__.pop("feature_names_in_", None)
        if feature_names is not None:
            estimator.feature_names_in_ = feature_names
        dtype = np.dtype(getattr(rows, "dtype", np.float64))
        is_weighted = estimator.class_weight is not None
        factors = class_weights(estimator.class_weight, classes, totals) if is_weighted else None
        return cls(rows, factors, classes, dtype, contrasts(classes, estimator.multi_class), shown)

    def solve(
        self, estimator: ERMClassifier, groups: Ints, monitors: Sequence[ProblemMonitor] = ()
    ) -> list[SolverResult]:
        """Solve every task; all of them share each pass over the rows."""
        rows = self.rows
        objective = objective_of(estimator, rows.n_features, self.dtype, len(self.tasks))
        targets = [Target(objective, task, class_weights=self.class_weights) for task in self.tasks]
        # Of this process: its own systems, and the products of a source that works in its threads.
        with fitting_threads(rows.n_rows, rows.n_features):
            if estimator.exclusivity > 1:
                seed = problem_seeds(estimator, len(targets))[0]
                results: Sequence[SolverResult] = solve_exclusive_targets(
                    rows,
                    targets,
                    groups=groups,
                    tol=estimator.tol,
                    options=exclusive_options(estimator, groups, seed),
                    random_state=seed,
                    callback=monitors[0] if monitors else None,
                )
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

    def vote_counts(self, model: ERMClassifier) -> Ints:
        """Count how often each member votes for each class in these rows."""
        voters = object.__new__(type(model))  # no more than votes need: it goes to every block
        for name in ("_ensemble", "_fitted_multi_class", "classes_"):
            setattr(voters, name, getattr(model, name))
        counts: Ints = self.rows.total(_CountVotes(voters))
        return counts

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


def check_blockwise(estimator: ERMClassifier) -> None:
    """Raise for parameters that need rows in memory."""
    if resolve_solver(estimator.solver, estimator.exclusivity) not in ("newton", "exclusive"):
        raise ParameterError(
            "solver",
            f"solver={estimator.solver!r} needs rows in memory; for rows in blocks use solver='auto', or fit "
            "a sample of the rows.",
        )
    if 1 < estimator.exclusivity < np.inf:
        raise ParameterError(
            "exclusivity",
            f"exclusivity={estimator.exclusivity!r}: between 1 and infinity members are fitted against each "
            "other row by row, which needs rows in memory; for rows in blocks use exclusivity=np.inf for "
            "members on different features, or at most 1.",
        )
    if estimator.n_jobs is not None:
        raise ParameterError(
            "n_jobs",
            f"n_jobs={estimator.n_jobs!r} has no meaning for rows in blocks: their source decides how many "
            "of them are worked on at a time; leave n_jobs=None.",
        )


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """Request the sum of the weights of each class, and check class numbers and weights on the way."""

    n_classes: int

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, None]:
        """See ``Request``."""
        codes, weights = np.asarray(block.codes), block.weights
        if codes.dtype.kind not in "iu" or (
            len(codes) and not 0 <= codes.min() <= codes.max() < self.n_classes
        ):
            raise ValueError(f"codes of a block must be integers from 0 to {self.n_classes - 1}.")
        if not np.all((weights > 0) & np.isfinite(weights)):
            raise ValueError("weights of a block must be positive and finite; leave other rows out.")
        return np.bincount(codes, weights=weights, minlength=self.n_classes).astype(float), None


@dataclass(frozen=True, eq=False)
class _CountVotes:
    """Request how often each member of a fitted classifier votes for each class."""

    model: ERMClassifier

    def answer(self, block: RowBlock, state: object) -> tuple[Ints, None]:
        """See ``Request``."""
        return self.model._vote_counts(aligned(block.X)), None


# Objectives, starts and options


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


def exclusive_options(estimator: ERMClassifier, groups: Ints, seed: int) -> ExclusiveOptions:
    """Return the options of the exclusive solver; a partition that is not learned is used as it is.

    A warm start searches from the partition of the previous fit.
    """
    options, n_members = parse_options(ExclusiveOptions, estimator.solver_options), estimator.n_estimators
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
    if scope_of(estimator.partition) == TEST:
        return options
    if isinstance(estimator.partition, str):
        partition = random_partition(int(groups.max()) + 1, n_members, check_random_state(seed))
    else:
        partition = read_partition(estimator.partition, groups, n_members)
    return replace(options, restarts=0, partition=partition)


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


# Warnings


def advice(name: str, result: SolverResult, tol: float) -> str:
    """Describe a fit that ended at its iteration limit, and what to try."""
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


def warn_of_surplus(groups: Ints, n_members: int) -> None:
    """Warn where there are more members than feature groups to give them."""
    n_groups = int(groups.max()) + 1
    if n_groups < n_members:
        kind = "features" if n_groups == len(groups) else "feature groups"
        warnings.warn(
            f"{n_members} members compete for {n_groups} {kind}: {n_members - n_groups} of them get none and "
            f"abstain. Use {n_groups} members or fewer.",
            UserWarning,
            stacklevel=CALLER_OF_FIT + 2,
        )


def warn_of_constant_votes(counts: Ints, estimator: Any) -> None:
    """Warn where members give all training rows the same class; ``counts`` has their votes by class.

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
            stacklevel=CALLER_OF_FIT + 2,
        )


# Threads


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
