"""Solver "exclusive": gamma > 1, members that compete for features, up to disjoint supports.

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

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.objective import ERMProblem, ExclusivityRegulariser, Objective, relative_gap
from exclusivity.rows.design import DesignMatrix
from exclusivity.rows.source import RowSource
from exclusivity.solvers.base import Callback, IterationRecord, SolverResult, Start, Status, check_targets
from exclusivity.solvers.newton import solve_newton, solve_targets
from exclusivity.solvers.partition_search import BlockSums, ExclusiveOptions, MemorySums, find_partition
from exclusivity.solvers.run import Recorder, Target, constant_result

__all__ = ["ExclusiveOptions", "ExclusiveResult", "solve_exclusive", "solve_exclusive_targets"]

DEFAULT_SWEEPS = 100
# Without a limit of the user's, sweeps end after about so many multiplications: half a minute or a minute.
_MOST_WORK = 5e11
# Members that compete are fitted more sharply than asked: then every move gains, and there cannot be many.
_FIT_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class ExclusiveResult(SolverResult):
    """The end of an exclusive run, for one of the problems that were solved together.

    ``objective`` is F of this problem alone; ``history`` shows the objective of all of them together, which
    is what the run minimises. ``gap`` is NaN: above exclusivity = 1 nothing bounds the distance to the best
    F. ``converged`` says that every member is within the tolerance of ITS optimum, given the partition (at
    ``inf``) or the other members (finite exclusivity), and that the stopping rule was met.

    Attributes
    ----------
    partition : ndarray of shape (n_groups,)
        The member that owns each feature group (at finite exclusivity: that weighs it most), -1 if none.
    """

    partition: Ints


def solve_exclusive(
    problems: Sequence[ERMProblem],
    *,
    groups: Ints | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    options: ExclusiveOptions | None = None,
    random_state: int | np.random.Generator | None = None,
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
    codes = _check_problems(problems, groups)
    to_divide = [problem for problem in problems if constant_result(problem) is None]
    if not to_divide:  # one class has all the rows: members own no features and are constant
        shared = {"gap": np.nan, "dual": np.empty(0), "status": Status.RULE}
        shared["partition"] = np.full(codes.max() + 1, -1, dtype=np.intp)
        return [ExclusiveResult(**vars(constant_result(problem)) | shared) for problem in problems]
    descent, everything = _stopped_here(problems, resume), np.arange(len(codes))
    sparsity, n_members = problems[0].regulariser.sparsity, problems[0].n_members
    recorder, status = Recorder(callback), Status.MAX_ITER
    with ThreadPoolExecutor(n_threads) as pool:
        run_all: Callable[..., Any] = map if n_threads == 1 or len(problems) == 1 else pool.map

        def fit(columns: Ints, penalties: Floats | float, tol: float) -> list[SolverResult]:
            return list(run_all(lambda problem: fit_member(problem, columns, penalties, tol), problems))

        if descent is None:
            sums, rng = MemorySums(to_divide), np.random.default_rng(random_state)
            owners = find_partition(sums, codes, options, rng)
            totals = np.array([problem.weights.sum() for problem in problems])
            descent = _Descent([problem.objective for problem in problems], totals, codes, owners)
            own = (fit(columns, sparsity, tol) for columns in descent.columns.values())
            status = descent.fit_own(own, tol, recorder)
        if status is not Status.CALLBACK and np.isfinite(descent.gamma):  # sweep by sweep
            status, work = Status.MAX_ITER, 0.0
            limit, most_work = (
                (DEFAULT_SWEEPS * n_members, _MOST_WORK) if max_iter is None else (max_iter, np.inf)
            )
            smaller, larger = sorted(problems[0].design.X.shape)
            while len(recorder) < limit and (work < most_work or descent.turn > 0):
                k = descent.turn
                descent.has_moved &= k > 0
                fits = fit(everything, sparsity + descent.rivalry(k), tol * _FIT_SHARE)
                descent.has_moved |= descent.replace(k, everything, fits, tol, options.change)
                descent.turn = (k + 1) % n_members
                work += sum(float(each.n_iter) * smaller**2 * larger for each in fits)  # one system each
                if descent.record(recorder):
                    status = Status.CALLBACK
                    break
                if descent.turn == 0 and not descent.has_moved:
                    status = descent.end
                    break
    pairs = zip(problems, descent.weights, descent.intercepts, strict=True)
    return descent.results(status, [problem.value(*numbers) for problem, *numbers in pairs], recorder)


def solve_exclusive_targets(
    rows: RowSource,
    targets: Sequence[Target],
    *,
    groups: Ints | None = None,
    tol: float = 1e-4,
    options: ExclusiveOptions | None = None,
    random_state: int | np.random.Generator | None = None,
    callback: Callback | None = None,
) -> list[ExclusiveResult]:
    """Do what ``solve_exclusive`` does at exclusivity = inf, for rows that are reached block by block.

    ``targets`` are one for two classes; more of them are either each class against the rest, in the order of
    the class numbers, or pairs of classes. They share their objective. All else as for ``solve_exclusive``,
    but that all members are fitted together, before the callback is called with one after the other.
    """
    objective, recorder = targets[0].objective, Recorder(callback)
    if not np.isinf(objective.regulariser.exclusivity):
        raise ValueError(
            "rows that are reached block by block need exclusivity = np.inf for members on different "
            f"features; got {objective.regulariser.exclusivity:g}."
        )
    codes, sums = _check_groups(groups, rows.n_features), BlockSums(rows, targets)
    owners = find_partition(sums, codes, options, np.random.default_rng(random_state))
    totals = np.concatenate([[total] * len(labels) for _, labels, total in sums.means])
    descent = _Descent([target.objective for target in targets], totals, codes, owners)
    sparsity = objective.regulariser.sparsity
    members = [
        replace(target, objective=of_one_member(target.objective, columns, sparsity), columns=columns)
        for columns in descent.columns.values()
        for target in targets
    ]
    results = solve_targets(rows, members, tol=tol)  # all members look at the rows together
    fits = (results[at : at + len(targets)] for at in range(0, len(results), len(targets)))
    status = descent.fit_own(fits, tol, recorder)
    return descent.results(status, descent.own.sum(axis=1), recorder)


def _check_problems(problems: Sequence[ERMProblem], groups: Ints | None) -> Ints:
    """Raise where problems cannot be solved together; return the group code of each of their columns."""
    if not problems:
        raise ValueError("solve_exclusive needs at least one problem.")
    for problem in problems:
        check_targets(problem, "exclusive")
        if not problem.regulariser.exclusivity > 1:
            raise ValueError(
                "solver='exclusive' needs exclusivity > 1 (np.inf for disjoint features); got "
                f"{problem.regulariser.exclusivity:g}. Up to 1 use solver='newton'."
            )
    shapes = {(p.design.n_features, p.n_members, p.regulariser.exclusivity) for p in problems}
    if len(shapes) > 1:
        raise ValueError(
            "problems that are solved together must share the number of features, n_members and "
            f"exclusivity; got {sorted(shapes)}."
        )
    return _check_groups(groups, problems[0].design.n_features)


def _check_groups(groups: Ints | None, n_features: int) -> Ints:
    """Return one group code per column, 0 to G - 1, all of them in use; ``None``: each column its own."""
    if groups is None:
        return np.arange(n_features)
    codes = np.asarray(groups)
    is_numbered = codes.shape == (n_features,) and np.issubdtype(codes.dtype, np.integer)
    if not is_numbered or not np.array_equal(np.unique(codes), np.arange(codes.max() + 1)):
        raise ValueError(
            f"groups needs one code per feature ({n_features}), the integers 0, 1, ..., G - 1 without gaps; "
            "number them with np.unique(labels, return_inverse=True)[1]."
        )
    return codes.astype(np.intp, copy=False)


def _stopped_here(problems: Sequence[ERMProblem], resume: Sequence[Start]) -> _Descent | None:
    """Return a copy of the descent that ended in these very problems, if one did."""
    if len(resume) != len(problems):
        return None
    for problem, given in zip(problems, resume, strict=True):
        start = given.for_problem(problem)
        if start.weights.shape != (problem.design.n_features, problem.n_members):
            return None
        if not start.resumes(_Descent, problem.value(start.weights, start.intercepts), np.nan):
            return None
    descent: _Descent = deepcopy(resume[0].state)
    return descent


class _Descent:
    """The weights of K members in P binary problems that share the columns of X, and the way to better ones.

    With A_gk = sum over problems and over the columns j of group g of |W_jk|, the joint objective is

        sum over problems, members of [1/2 |w|^2 + beta |w|_1 + C loss]  +  gamma sum_g sum_{k<k'} A_gk A_gk'

    which is F itself for one problem whose groups are single columns. Charging sources (a group of columns,
    in all classes) instead of single numbers is what makes a feature belong to ONE member for all classes.
    Rows are not needed: members come with their values. ``own`` has the objective of each member by itself,
    (P, K): the joint objective without its last term.

    Parameters
    ----------
    objectives : sequence of Objective
        One per problem; they share gamma and K.
    totals : ndarray of shape (n_problems,)
        The sum of the sample weights of each problem.
    groups : ndarray of shape (n_features,)
        Group codes.
    owners : ndarray of shape (n_groups,)
        The partition of the first sweep.
    """

    def __init__(self, objectives: Sequence[Objective], totals: Floats, groups: Ints, owners: Ints) -> None:
        self.groups, self.gamma, self.owners = groups, objectives[0].regulariser.exclusivity, owners
        n_features, K = len(groups), objectives[0].n_members
        self.weights = np.zeros((len(objectives), n_features, K))
        self.intercepts = np.zeros((len(objectives), K))
        # Of members without weights, all of whose rows fall short by 1.
        pairs = zip(objectives, totals, strict=True)
        empty = [one.cost * total * one.loss.value(np.ones(1)) for one, total in pairs]
        self.own = np.repeat(np.array(empty, dtype=float), K, axis=1)
        self.columns = {k: np.flatnonzero(owners[groups] == k) for k in range(K) if np.any(owners == k)}
        self.turn, self.has_moved, self.is_certified = 0, False, np.ones(K, dtype=bool)

    def fit_own(self, fits: Iterable[Sequence[SolverResult]], tol: float, recorder: Recorder) -> Status:
        """Take in every member's fit on its own columns, in their order; return why it ended."""
        for (member, columns), fit in zip(self.columns.items(), fits, strict=True):
            self.replace(member, columns, fit, tol, 0.0)
            if self.record(recorder):
                return Status.CALLBACK
        return self.end

    @property
    def end(self) -> Status:
        """The status of a run in which no member moves any more."""
        return Status.RULE if self.is_certified.all() else Status.MAX_ITER

    @property
    def l1_norms(self) -> Floats:
        """The A_gk, (G, K)."""
        norms = np.zeros((len(self.owners), self.own.shape[1]))
        np.add.at(norms, self.groups, np.abs(self.weights).sum(axis=0))
        return norms

    @property
    def objective(self) -> float:
        """The joint objective; at gamma = inf for supports that are disjoint."""
        if np.isinf(self.gamma):
            return float(self.own.sum())
        norms = self.l1_norms
        return float(
            self.own.sum() + self.gamma * (norms.sum(axis=1) ** 2 - (norms**2).sum(axis=1)).sum() / 2
        )

    def rivalry(self, member: int) -> Floats:
        """Return gamma a_g, from the l1 norm of all other members on every group, for each of the columns."""
        if np.isinf(self.gamma):  # the others own other groups
            return np.zeros(len(self.groups))
        others = np.delete(self.l1_norms, member, axis=1).sum(axis=1)
        return np.asarray(self.gamma * others[self.groups])

    def replace(
        self, member: int, columns: Ints, fits: Sequence[SolverResult], tol: float, change: float
    ) -> bool:
        """Put in a new version of one member, problem by problem, where the present one is not good enough.

        Good enough is what lies within ``tol`` of the new version's bound, unless the new one lowers the
        joint objective by more than ``change`` of it. So where no member moves in a whole sweep, each is
        certified against the others as they are, and not as they were when it was fitted.

        A version that uses no feature in any problem is left out: no member loses its last feature, and one
        that never had a feature keeps intercept zero, too, and abstains. Return whether the member moved.
        """
        penalties, moved = self.rivalry(member), False
        if not any(np.any(fit.weights) for fit in fits):
            self.is_certified[member] = all(fit.converged for fit in fits)
            return False
        self.is_certified[member] = True
        for number, fit in enumerate(fits):
            before, after = self.weights[number, :, member], np.zeros(len(self.groups))
            after[columns] = fit.weights[:, 0]
            present = self.own[number, member] + float(penalties @ np.abs(before))
            bound = fit.objective * (1 - fit.gap)
            is_good = relative_gap(present, bound) <= tol
            gain = present - fit.objective
            if gain > 0 and not (is_good and gain <= change * self.objective):
                self.own[number, member] = fit.objective - float(penalties @ np.abs(after))
                self.weights[number, :, member] = after
                self.intercepts[number, member] = fit.intercepts[0]
                moved, present = True, fit.objective
            self.is_certified[member] &= relative_gap(present, bound) <= tol
        return moved

    def record(self, recorder: Recorder) -> bool:
        """Keep an iterate, the arrays of all problems or of the only one; True when the callback stops it."""
        record = IterationRecord(len(recorder) + 1, self.objective, -np.inf, np.nan, np.nan, np.nan)
        at = 0 if len(self.weights) == 1 else slice(None)
        weights, intercepts = self.weights[at], self.intercepts[at]
        return recorder.add(record, lambda: (weights, intercepts))

    def results(
        self, status: Status, values: Sequence[float] | Floats, recorder: Recorder
    ) -> list[ExclusiveResult]:
        """Return one result per problem, with these values of F."""
        norms, history = self.l1_norms, recorder.history()
        heaviest = np.where(norms.max(axis=1) > 0, norms.argmax(axis=1), -1)
        return [
            ExclusiveResult(
                weights=weights,
                intercepts=intercepts,
                objective=float(value),
                gap=np.nan,
                dual=np.empty(0),
                converged=status is Status.RULE,
                n_iter=len(history),
                status=status,
                history=history,
                partition=self.owners if np.isinf(self.gamma) else heaviest,
                state=self if np.isfinite(self.gamma) else None,
            )
            for weights, intercepts, value in zip(self.weights, self.intercepts, values, strict=True)
        ]


def fit_member(problem: ERMProblem, columns: Ints, penalties: Floats | float, tol: float) -> SolverResult:
    """Fit the SVM of one member on these columns alone, with an l1 penalty for each of them."""
    is_whole = len(columns) == problem.design.n_features
    design = problem.design if is_whole else DesignMatrix(problem.design.X[:, columns])
    objective = of_one_member(problem.objective, columns, penalties)
    single = ERMProblem(objective, replace(problem.rows, design=design))
    return constant_result(single) or solve_newton(single, tol=tol)


def of_one_member(objective: Objective, columns: Ints, penalties: Floats | float) -> Objective:
    """Return the objective of one member on these columns, with an l1 penalty for each of them."""
    return replace(
        objective,
        n_members=1,
        regulariser=ExclusivityRegulariser(0.0, penalties if np.any(penalties) else 0.0),
        bounds=None if objective.bounds is None else objective.bounds.of_columns(columns),
    )
