"""Solver "exclusive": gamma > 1, members that compete for features.

gamma = inf: a partition of the feature groups over the members is searched, then each member is the exact SVM
on its own columns, in every class. gamma finite: block coordinate descent over the members from there; given
the others, a member is an SVM with an l1 penalty per column, so every step is exact and the objective never
rises. It ends when a sweep over all members moves none of them: then each one is within the tolerance of its
optimum, given the others as they are.

For member k and column j of group g, with A_gk the l1 norm of member k on the columns of g (in all classes)
and a_g = sum of A_gk' over the other members k', everything in F that depends on member k is

    sum_j [1/2 w_j^2 + (beta + gamma a_g(j)) |w_j|]  +  C sum_i s_i max(0, m_i)^p ,

because gamma/2 (|w| + a)^2 + (1 - gamma)/2 w^2 = 1/2 w^2 + gamma a |w| + const: convex, and exactly what
``solve_newton`` solves. At gamma = inf the penalty is beta on the member's own columns, its only ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.objective import Objective, relative_gap
from exclusivity.objective.penalties import ElasticPenalty, ExclusivityRegulariser
from exclusivity.objective.problem import ERMProblem, dual_bound
from exclusivity.rows.design import DesignMatrix, weighted_total
from exclusivity.rows.source import RowSource
from exclusivity.solvers.base import (
    Callback,
    IterationRecord,
    Recorder,
    SolverResult,
    Start,
    Status,
    check_targets,
    constant_result,
)
from exclusivity.solvers.blocks import Settings, Target, solve_targets
from exclusivity.solvers.exclusive._search import (
    ExclusiveOptions,
    ExclusiveResult,
    Partition,
    check_groups,
    check_partition,
    find_partition,
    search_partition,
)
from exclusivity.solvers.exclusive._surrogate import BlockwiseSums
from exclusivity.solvers.newton import solve_newton

DEFAULT_SWEEPS = 100
# Without a limit of the user's, sweeps end after about so many multiplications: half a minute or a minute.
_MOST_WORK = 5e11

_FIT_SHARE = 0.2

# |x_j . (y alpha)| of a column outside may exceed its penalty by this share before it is let in: rounding,
# not a violation.
_SLACK = 1e-7


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
    _check_problems(problems)
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
    else:
        owners = stopped.owners
    totals = np.array([problem.weights.sum() for problem in problems])
    state = JointState([problem.objective for problem in problems], totals, codes)
    run = _Descent(state, owners, tol, callback)
    sparsity, gamma = first.regulariser.sparsity, first.regulariser.exclusivity

    def solve(run_all: Callable[..., Any]) -> Status:
        def fit_own(k: int) -> list[Member]:
            columns = np.flatnonzero(owners[codes] == k)
            return list(run_all(lambda problem: fit_on_columns(problem, columns, tol), problems))

        def fit_competing(k: int) -> list[Member]:
            penalties, current = sparsity + gamma * state.others(k), state.weights[:, :, k]
            # Sharper than what is asked of a member: then every move gains, and there cannot be many of them.
            sharp = tol * _FIT_SHARE
            return list(
                run_all(lambda *one: fit_against(one[0], penalties, one[1], sharp), problems, current)
            )

        if stopped is None:
            status = run.fit_partition(fit_own)
            if status is Status.CALLBACK or np.isinf(gamma):
                return status
        else:
            run.go_on(stopped)
        limit = DEFAULT_SWEEPS * first.n_members if max_iter is None else max_iter
        return run.compete(fit_competing, options.change, limit, _MOST_WORK if max_iter is None else np.inf)

    if n_threads == 1 or len(problems) == 1:
        status = solve(map)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            status = solve(pool.map)
    pairs = zip(problems, state.weights, state.intercepts, strict=True)
    return run.results(status, [problem.value(*numbers) for problem, *numbers in pairs])


def solve_exclusive_targets(
    rows: RowSource,
    targets: Sequence[Target],
    *,
    groups: Ints | None = None,
    tol: float = 1e-4,
    options: ExclusiveOptions | None = None,
    random_state: int | np.random.Generator | None = None,
    start: Partition | None = None,
    callback: Callback | None = None,
) -> list[ExclusiveResult]:
    """Do what ``solve_exclusive`` does at exclusivity = inf, for rows that are reached block by block.

    ``targets`` are one for two classes; more of them are either each class against the rest, in the order of
    the class numbers, or pairs of classes. They share their objective. All else as for ``solve_exclusive``,
    but that all members are fitted together, before the callback is called with one after the other.
    """
    options, objective = options or ExclusiveOptions(), targets[0].objective
    if not np.isinf(objective.regulariser.exclusivity):
        raise ValueError(
            "rows that are reached block by block need exclusivity = np.inf for members on different "
            f"features; got {objective.regulariser.exclusivity:g}."
        )
    codes, K = check_groups(groups, rows.n_features), objective.n_members
    given = start if options.partition is None else options.partition
    if given is not None:
        given = check_partition(given, int(codes.max()) + 1, K)
    sums = BlockwiseSums(rows, targets)
    rng = np.random.default_rng(random_state)
    owners = search_partition(sums.partition_sums, codes, K, options, rng, given)
    columns = [np.flatnonzero(owners[codes] == k) for k in range(K)]
    members = [_member(target, own) for own in columns if own.size for target in targets]
    fits = iter(solve_targets(rows, members, Settings(tol)))  # all members look at the rows together
    state = JointState([target.objective for target in targets], sums.totals, codes)
    run = _Descent(state, owners, tol, callback)
    status = run.fit_partition(
        lambda k: [_on_own_columns(next(fits), columns[k], len(codes)) for _ in targets]
    )
    return run.results(status, state.own.sum(axis=1))


def _constant_results(problems: Sequence[ERMProblem], n_groups: int) -> list[ExclusiveResult]:
    """Return the results where one class has all the rows: members own no features and are constant."""
    no_owner = np.full(n_groups, -1, dtype=np.intp)
    return [
        ExclusiveResult.at_end(
            known.weights, known.intercepts, known.objective, Status.RULE, known.history, no_owner
        )
        for known in map(constant_result, problems)
        if known is not None
    ]


@dataclass(frozen=True, eq=False)
class _Stopped:
    """The end of a descent: all members, whose turn it is in a sweep, and whether the sweep moved one."""

    numbers: tuple[Floats, ...]
    owners: Partition
    turn: int
    moved: bool
    uncertified: frozenset[int]


def _stopped_here(problems: Sequence[ERMProblem], resume: Sequence[Start]) -> _Stopped | None:
    """Return where the descent for these very problems ended, if that is known."""
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

    def __init__(self, state: JointState, owners: Partition, tol: float, callback: Callback | None) -> None:
        self.state, self.owners, self.tol = state, owners, tol
        self.n_members = state.intercepts.shape[1]
        self.recorder = Recorder(callback)
        self.uncertified: set[int] = set()
        self.turn: int | None = None  # none before the competition
        self.change, self.has_moved, self.work = 0.0, False, 0.0

    def go_on(self, stopped: _Stopped) -> None:
        """Take up a descent where it ended."""
        self.state.restore(stopped.numbers)
        self.turn, self.has_moved, self.uncertified = stopped.turn, stopped.moved, set(stopped.uncertified)

    def fit_partition(self, fit: Callable[[int], list[Member]]) -> Status:
        """Fit every member on its own columns; return why it ended."""
        owned = self.owners[self.state.groups]
        if not self._sweep([k for k in range(self.n_members) if np.any(owned == k)], fit):
            return Status.CALLBACK
        return self._end

    def compete(
        self, fit: Callable[[int], list[Member]], change: float, limit: float, most_work: float
    ) -> Status:
        """Fit members against the others, sweep by sweep; return why it ended."""
        self.turn = self.turn or 0
        self.change = change
        while len(self.recorder) < limit and self.work < most_work:
            if self.turn == 0:
                self.has_moved = False
            if not self._sweep(range(self.turn, self.n_members), fit, limit):
                return Status.CALLBACK
            if self.turn == 0 and not self.has_moved:
                return self._end
        return Status.MAX_ITER

    @property
    def _end(self) -> Status:
        return Status.MAX_ITER if self.uncertified else Status.RULE

    def _sweep(
        self, members: Sequence[int], fit: Callable[[int], list[Member]], limit: float = np.inf
    ) -> bool:
        """Fit the members in turn; False when the callback asked to stop."""
        for k in members:
            if len(self.recorder) >= limit:
                break
            fits = fit(k)
            visit = self.state.replace(k, fits, self.tol, self.change)
            self.work += sum(one.work for one in fits)
            self.has_moved |= visit.moved
            self.uncertified.discard(k)
            if not visit.certified:
                self.uncertified.add(k)
            if self.turn is not None:
                self.turn = (k + 1) % self.n_members
            if self._record():
                return False
        return True

    def _record(self) -> bool:
        """Keep an iterate, the arrays of all problems or of the only one; True when the callback stops it."""
        record = IterationRecord(
            len(self.recorder) + 1, self.state.objective, -np.inf, np.nan, np.nan, np.nan
        )
        weights, intercepts = self.state.weights, self.state.intercepts
        is_single = len(weights) == 1
        return self.recorder.add(
            record, lambda: (weights[0], intercepts[0]) if is_single else (weights, intercepts)
        )

    def results(self, status: Status, values: Sequence[float] | Floats) -> list[ExclusiveResult]:
        """Return one result per problem, with these values of F."""
        history, state, stopped = self.recorder.history(), self.state, None
        owners = self.owners if np.isinf(state.gamma) else state.owners()
        if self.turn is not None:
            uncertified = frozenset(self.uncertified)
            stopped = _Stopped(state.numbers(), self.owners, self.turn, self.has_moved, uncertified)
        return [
            ExclusiveResult.at_end(*numbers, status, history, owners, stopped)
            for numbers in zip(state.weights, state.intercepts, values, strict=True)
        ]


def _check_problems(problems: Sequence[ERMProblem]) -> None:
    if not problems:
        raise ValueError("solve_exclusive needs at least one problem.")
    first = problems[0]
    for problem in problems:
        check_targets(problem, "exclusive")
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


def _member(target: Target, columns: Ints) -> Target:
    """Return the SVM of one member on its columns, for rows that are reached block by block."""
    bounds = target.objective.bounds
    alone = replace(
        target.objective,
        n_members=1,
        bounds=None if bounds is None else bounds.of_columns(columns),
        regulariser=ExclusivityRegulariser(0.0, target.objective.regulariser.sparsity),
    )
    return replace(target, objective=alone, columns=columns)


@dataclass(frozen=True, eq=False)
class Member:
    """Weights on all columns, the intercept, what they cost, and a lower bound for any version of the member.

    ``value`` is 1/2 |w|^2 + beta |w|_1 + C loss; ``bound`` includes the penalty for what others use as well.
    ``certified`` says whether these weights came within the tolerance of the bound, and ``work`` how many
    multiplications that took, roughly.
    """

    weights: Floats
    intercept: float
    value: float
    bound: float
    certified: bool
    work: float = 0.0


def _on_own_columns(result: SolverResult, columns: Ints, n_features: int) -> Member:
    """Return the member whose SVM on these columns, the only ones it may use, has this result."""
    bound = result.objective * (1 - result.gap)
    return _spread(result, columns, n_features, result.objective, bound)


def fit_on_columns(problem: ERMProblem, columns: Ints, tol: float) -> Member:
    """Fit the SVM on these columns alone, each penalised by beta."""
    sparsity = problem.regulariser.sparsity
    single = _on_columns(problem, columns, np.broadcast_to(sparsity, problem.design.n_features))
    result = constant_result(single) or solve_newton(single, tol=tol)
    return _on_own_columns(result, columns, problem.design.n_features)


def fit_against(problem: ERMProblem, penalties: Floats, current: Floats, tol: float) -> Member:
    """Fit the SVM on all columns with one penalty for each, solved on the few that matter.

    Start from the columns in use and those that no other member uses. Where a column outside has more than
    its penalty, |x_j . (y alpha)| > l_j, it comes in and the SVM is solved again; without such a column the
    solution is the one on all columns, and its dual vector proves it: the bound is that of all columns.
    """
    inside, work = (penalties <= penalties.min()) | (current != 0), 0.0
    while True:
        columns = np.flatnonzero(inside)
        single = _on_columns(problem, columns, penalties)
        result = constant_result(single) or solve_newton(single, tol=tol)
        sides = sorted(single.design.X.shape)
        work += float(result.n_iter * sides[0] ** 2 * sides[1])  # one system per iteration
        slopes = np.abs(problem.design.transposed_times(problem.labels * result.dual))
        entering = ~inside & (slopes > penalties * (1 + _SLACK))
        if not entering.any():
            whole = _on_columns(problem, np.arange(len(penalties)), penalties)
            member = _spread(result, columns, len(penalties), np.nan, dual_bound(whole, result.dual))
            return replace(member, value=_own_value(problem, member), work=work)
        inside |= entering


def _on_columns(problem: ERMProblem, columns: Ints, penalties: Floats) -> ERMProblem:
    """Return the SVM of one member on these columns."""
    chosen, is_whole = penalties[columns], len(columns) == problem.design.n_features
    bounds = problem.objective.bounds
    return problem.changed(
        design=problem.design if is_whole else DesignMatrix(problem.design.X[:, columns]),
        n_members=1,
        regulariser=ExclusivityRegulariser(0.0, chosen if chosen.any() else 0.0),
        bounds=None if bounds is None else bounds.of_columns(columns),
    )


def _spread(result: SolverResult, columns: Ints, n_features: int, value: float, bound: float) -> Member:
    weights = np.zeros(n_features)
    weights[columns] = result.weights[:, 0]
    return Member(weights, float(result.intercepts[0]), value, bound, result.converged)


def _own_value(problem: ERMProblem, fit: Member) -> float:
    shortfall = 1 - problem.labels * (problem.design.times(fit.weights) + fit.intercept)
    loss = weighted_total(problem.weights, problem.loss.value(shortfall))
    return ElasticPenalty(problem.regulariser.sparsity).value(fit.weights) + problem.cost * loss


class Visit(NamedTuple):
    """The result of a fit of one member: whether it changed, and whether it is within the tolerance."""

    moved: bool
    certified: bool


class JointState:
    """The weights of K members in P binary problems that share the columns of X.

    With A_gk = sum over problems and over the columns j of group g of |W_jk|, the joint objective is

        sum over problems, members of [1/2 |w|^2 + beta |w|_1 + C loss]  +  gamma sum_g sum_{k<k'} A_gk A_gk'

    which is F itself for one problem whose groups are single columns. Charging sources (a group of columns,
    in all classes) instead of single numbers is what makes a feature belong to ONE member for all classes.

    Rows are not needed: members come with their values.

    Parameters
    ----------
    objectives : sequence of Objective
        One per problem; they share gamma and K.
    totals : ndarray of shape (n_problems,)
        The sum of the sample weights of each problem.
    groups : ndarray of shape (n_features,)
        Group codes.

    Attributes
    ----------
    own : ndarray of shape (n_problems, n_members)
        What each member costs by itself: the joint objective without its last term.
    """

    def __init__(self, objectives: Sequence[Objective], totals: Floats, groups: Ints) -> None:
        self.groups, self.gamma = groups, objectives[0].regulariser.exclusivity
        n_features, K = len(groups), objectives[0].n_members
        self.weights = np.zeros((len(objectives), n_features, K))
        self.intercepts = np.zeros((len(objectives), K))
        self.l1_norms = np.zeros((int(groups.max()) + 1, K))
        # Of members without weights, all of whose rows fall short by 1.
        empty = [
            one.cost * total * one.loss.value(np.ones(1))
            for one, total in zip(objectives, totals, strict=True)
        ]
        self.own = np.repeat(np.array(empty, dtype=float), K, axis=1)

    def numbers(self) -> tuple[Floats, ...]:
        """Return copies of all that changes."""
        return tuple(array.copy() for array in (self.weights, self.intercepts, self.l1_norms, self.own))

    def restore(self, numbers: tuple[Floats, ...]) -> None:
        """Take up what :meth:`numbers` gave, for the same problems."""
        self.weights, self.intercepts, self.l1_norms, self.own = (array.copy() for array in numbers)

    @property
    def objective(self) -> float:
        """Return the joint objective; at gamma = inf for supports that are disjoint."""
        return float(self.own.sum()) + self._coupling(self.l1_norms)

    def _coupling(self, l1_norms: Floats) -> float:
        if np.isinf(self.gamma):
            return 0.0
        totals = l1_norms.sum(axis=1)
        return float(self.gamma * (totals @ totals - np.einsum("gk,gk->", l1_norms, l1_norms)) / 2)

    def others(self, member: int) -> Floats:
        """Return a_g, the l1 norm of all other members on every group, spread over the columns."""
        return np.asarray((self.l1_norms.sum(axis=1) - self.l1_norms[:, member])[self.groups])

    def replace(self, member: int, fits: Sequence[Member], tol: float, change: float) -> Visit:
        """Put in a new version of one member, problem by problem, where the present one is not good enough.

        Good enough is what lies within ``tol`` of the new version's bound, unless the new one lowers the
        joint objective by more than ``change`` of it. So where no member moves in a whole sweep, each is
        certified against the others as they are, and not as they were when it was fitted.

        A version that uses no feature in any problem is left out: no member loses its last feature, and one
        that never had a feature keeps intercept zero, too, and abstains.
        """
        if not any(np.any(fit.weights) for fit in fits):
            return Visit(moved=False, certified=all(fit.certified for fit in fits))
        moved, certified = False, True
        penalty = 0.0 if np.isinf(self.gamma) else self.gamma * self.others(member)
        for number, fit in enumerate(fits):
            before = self.weights[number, :, member]
            present = self.own[number, member] + float(np.sum(penalty * np.abs(before)))
            offered = fit.value + float(np.sum(penalty * np.abs(fit.weights)))
            is_good = relative_gap(present, fit.bound) <= tol
            if offered < present and not (is_good and present - offered <= change * self.objective):
                sizes = self.l1_norms[:, member] + self._l1_norms(fit.weights) - self._l1_norms(before)
                self.weights[number, :, member] = fit.weights
                self.intercepts[number, member] = fit.intercept
                self.own[number, member] = fit.value
                self.l1_norms[:, member] = np.maximum(sizes, 0.0)
                moved, present = True, offered
            certified &= relative_gap(present, fit.bound) <= tol
        return Visit(moved, certified)

    def _l1_norms(self, weights: Floats) -> Floats:
        return np.bincount(self.groups, weights=np.abs(weights), minlength=len(self.l1_norms)).astype(float)

    def owners(self) -> Ints:
        """Return the member with the largest l1 norm on each group; -1 where all are zero."""
        return np.where(self.l1_norms.max(axis=1) > 0, self.l1_norms.argmax(axis=1), -1)
