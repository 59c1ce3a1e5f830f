"""Solver "exclusive": gamma > 1, members that compete for features.

gamma = inf: a partition of the feature groups over the members is searched, then each member is the exact SVM
on its own columns, in every class. gamma finite: block coordinate descent over the members from there; given
the others, a member is an SVM with an l1 penalty per column (see ``members``), so every step is exact and the
objective never rises. It ends when a sweep over all members moves none of them: then each one is within the
tolerance of its optimum, given the others as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.problem import ERMProblem
from exclusivity.solvers.base import (
    Callback,
    IterationRecord,
    Recorder,
    Start,
    Status,
    check_targets,
    constant_result,
)
from exclusivity.solvers.exclusive.members import JointState, Member, fit_against, fit_on_columns
from exclusivity.solvers.exclusive.search import (
    ExclusiveOptions,
    ExclusiveResult,
    Partition,
    check_groups,
    check_partition,
    find_partition,
)

DEFAULT_SWEEPS = 100
# Without a limit of the user's, sweeps end after about so many multiplications: half a minute or a minute.
_MOST_WORK = 5e11

_FIT_SHARE = 0.2


def solve_exclusive(
    problems: Sequence[ERMProblem],
    *,
    groups: Ints | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    options: ExclusiveOptions | None = None,
    random_state: int | np.random.Generator | None = None,
    start: Partition | None = None,
    resume: Sequence[Start] = (),
    callback: Callback | None = None,
    n_threads: int = 1,
) -> list[ExclusiveResult]:
    """Solve the binary problems of one classifier together: a feature group has one owner in all of them.

    Parameters
    ----------
    problems : sequence of ERMProblem
        They share columns, members, cost, loss and an exclusivity above 1; rows may differ (one-vs-one).
    groups : ndarray of shape (n_features,), optional
        One integer group code per column, 0 to G - 1; by default each column is a group of its own.
    tol : float
        Relative duality gap of every member's own SVM.
    max_iter : int, optional
        Most member fits; the first sweep over all members is always finished. By default 100 sweeps, or fewer
        where they take more than a minute or so: of many rows and columns, for many members and classes.
    options : ExclusiveOptions, optional
    random_state : int, Generator or None
        Of the search for a partition.
    start : ndarray of shape (n_groups,), optional
        A partition to start the search from; ``options.partition`` goes before it.
    resume : sequence of Start
        The results of an earlier run, one per problem. Where that was about the same problems, and about a
        finite exclusivity, the descent goes on where it ended.
    callback : callable, optional
        Called after every member. Its state's weights are (M, K) for one problem and (P, M, K) for several.
    n_threads : int
        Threads over the problems of one member; results do not depend on it.

    Returns
    -------
    list of ExclusiveResult
        One per problem. With fewer groups than members the surplus members are zero, intercepts included.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 6))
    >>> y = np.sign(X.sum(axis=1))
    >>> problem = ERMProblem.build(X, y, n_members=3, exclusivity=np.inf)
    >>> (result,) = solve_exclusive([problem], random_state=0)
    >>> np.count_nonzero(result.weights, axis=1)
    array([1, 1, 1, 1, 1, 1])
    """
    options = options or ExclusiveOptions()
    _check_convexs(problems)
    for problem in problems:
        check_targets(problem, "exclusive")
    first = problems[0]
    codes = check_groups(groups, first.design.n_features)
    given = start if options.partition is None else options.partition
    if given is not None:
        given = check_partition(given, int(codes.max()) + 1, first.n_members)
    to_divide = [problem for problem in problems if constant_result(problem) is None]
    if not to_divide:
        return _constant_results(problems, int(codes.max()) + 1)
    stopped = _stopped_here(problems, resume)
    if stopped is None:
        owners = find_partition(to_divide, codes, options, np.random.default_rng(random_state), given)
        run = _Descent(problems, codes, owners, tol, callback)
    else:
        run = _Descent(problems, codes, stopped.owners, tol, callback)
        run.go_on(stopped)
    limit = DEFAULT_SWEEPS * first.n_members if max_iter is None else max_iter
    run.most_work = _MOST_WORK if max_iter is None else np.inf
    if n_threads == 1 or len(problems) == 1:
        status = run.descend(options.change, limit, map)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            status = run.descend(options.change, limit, pool.map)
    return run.results(status)


def _constant_results(problems: Sequence[ERMProblem], n_groups: int) -> list[ExclusiveResult]:
    """Where one class has all the rows: nobody owns a feature, and all members say the same."""
    nobody = np.full(n_groups, -1, dtype=np.intp)
    return [
        ExclusiveResult.at_end(
            known.weights, known.intercepts, known.objective, Status.RULE, known.history, nobody
        )
        for known in map(constant_result, problems)
        if known is not None
    ]


@dataclass(frozen=True, eq=False)
class _Stopped:
    """Where a descent ended: all members, whose turn it is in a sweep, and whether the sweep moved one."""

    numbers: tuple[Floats, ...]
    owners: Partition
    turn: int
    moved: bool
    uncertified: frozenset[int]


def _stopped_here(problems: Sequence[ERMProblem], resume: Sequence[Start]) -> _Stopped | None:
    """Where the descent for these very problems ended, if that is known."""
    if len(resume) != len(problems):
        return None
    for problem, given in zip(problems, resume, strict=True):
        start = given.for_problem(problem)
        if start.weights.shape != (problem.design.n_features, problem.n_members):
            return None
        if not start.resumes(_Stopped, problem.value(start.weights, start.intercepts), np.nan):
            return None
    stopped: _Stopped = resume[0].state
    return stopped


class _Descent:
    """Sweeps over the members, each fitted exactly given the others."""

    def __init__(
        self,
        problems: Sequence[ERMProblem],
        codes: Ints,
        owners: Partition,
        tol: float,
        callback: Callback | None,
    ) -> None:
        self.problems, self.tol, self.owners = problems, tol, owners
        totals = np.array([problem.weights.sum() for problem in problems])
        self.state = JointState([problem.objective for problem in problems], totals, codes)
        self.recorder = Recorder(callback)
        self.column_owners = owners[codes]
        self.is_disjoint = bool(np.isinf(problems[0].regulariser.exclusivity))
        self.uncertified: set[int] = set()
        self.turn: int | None = None  # none before the competition
        self.change, self.has_moved = 0.0, False
        self.work, self.most_work = 0.0, np.inf

    def go_on(self, stopped: _Stopped) -> None:
        """Take up a descent where it ended."""
        self.state.restore(stopped.numbers)
        self.turn, self.has_moved, self.uncertified = stopped.turn, stopped.moved, set(stopped.uncertified)

    def _stopped(self) -> _Stopped | None:
        if self.turn is None:
            return None
        return _Stopped(
            self.state.numbers(), self.owners, self.turn, self.has_moved, frozenset(self.uncertified)
        )

    def descend(self, change: float, limit: int, run_all: Callable[..., object]) -> Status:
        """One sweep on the partition, then (gamma finite) sweeps of competition; why it ended."""
        members = range(self.problems[0].n_members)
        if self.turn is None:
            fed = [k for k in members if np.any(self.column_owners == k)]
            if not self._sweep(fed, self._fit_own, np.inf, run_all):
                return Status.CALLBACK
            if self.is_disjoint:
                return self._end
            self.turn = 0
        self.change = change
        while len(self.recorder) < limit and self.work < self.most_work:
            if self.turn == 0:
                self.has_moved = False
            if not self._sweep(members[self.turn :], self._fit_competing, limit, run_all):
                return Status.CALLBACK
            if self.turn == 0 and not self.has_moved:
                return self._end
        return Status.MAX_ITER

    @property
    def _end(self) -> Status:
        return Status.MAX_ITER if self.uncertified else Status.RULE

    def _sweep(
        self,
        members: Sequence[int],
        fit: Callable[[int, ERMProblem, int], Member],
        limit: float,
        run_all: Callable[..., object],
    ) -> bool:
        """Fit the members in turn; False when the callback asked to stop."""
        for k in members:
            if len(self.recorder) >= limit:
                break
            numbers = range(len(self.problems))
            fits: list[Member] = list(run_all(fit, numbers, self.problems, [k] * len(numbers)))  # type: ignore[call-overload]
            visit = self.state.replace(k, fits, self.tol, self.change)
            self.work += sum(fit.work for fit in fits)
            self.has_moved |= visit.moved
            self.uncertified.discard(k)
            if not visit.certified:
                self.uncertified.add(k)
            if self.turn is not None:
                self.turn = (k + 1) % self.problems[0].n_members
            if self._record():
                return False
        return True

    def _fit_own(self, number: int, problem: ERMProblem, k: int) -> Member:
        return fit_on_columns(problem, np.flatnonzero(self.column_owners == k), self.tol)

    def _fit_competing(self, number: int, problem: ERMProblem, k: int) -> Member:
        penalties = problem.regulariser.sparsity + self.state.gamma * self.state.others(k)
        # Sharper than what is asked of a member: then every move gains, and there cannot be many of them.
        tol = self.tol * _FIT_SHARE
        return fit_against(problem, penalties, self.state.weights[number, :, k], tol)

    def _record(self) -> bool:
        return record_members(self.recorder, self.state.objective, self.state.weights, self.state.intercepts)

    def results(self, status: Status) -> list[ExclusiveResult]:
        """One result per problem."""
        history, state, stopped = self.recorder.history(), self.state, self._stopped()
        owners = self.owners if self.is_disjoint else state.owners()
        return [
            ExclusiveResult.at_end(
                weights, intercepts, problem.value(weights, intercepts), status, history, owners, stopped
            )
            for problem, weights, intercepts in zip(
                self.problems, state.weights, state.intercepts, strict=True
            )
        ]


def _check_convexs(problems: Sequence[ERMProblem]) -> None:
    if not problems:
        raise ValueError("solve_exclusive needs at least one problem.")
    first = problems[0]
    for problem in problems:
        if not problem.regulariser.exclusivity > 1:
            raise ValueError(
                f"solver='exclusive' needs exclusivity > 1 (np.inf for disjoint features); got "
                f"{problem.regulariser.exclusivity:g}. Up to 1 use solver='newton'."
            )
        same = (
            problem.design.n_features == first.design.n_features
            and problem.n_members == first.n_members
            and problem.regulariser.exclusivity == first.regulariser.exclusivity
        )
        if not same:
            raise ValueError(
                "problems that are solved together must share the number of features, n_members and "
                f"exclusivity; got {problem.design.n_features}, {problem.n_members}, "
                f"{problem.regulariser.exclusivity:g} beside {first.design.n_features}, {first.n_members}, "
                f"{first.regulariser.exclusivity:g}."
            )


def record_members(recorder: Recorder, objective: float, weights: Floats, intercepts: Floats) -> bool:
    """Keep an iterate of problems that are solved together; True when the callback wants to stop.

    A callback sees the arrays of all problems, or of the only one.
    """
    record = IterationRecord(len(recorder) + 1, objective, -np.inf, np.nan, np.nan, np.nan)
    is_single = len(weights) == 1
    return recorder.add(record, lambda: (weights[0], intercepts[0]) if is_single else (weights, intercepts))
