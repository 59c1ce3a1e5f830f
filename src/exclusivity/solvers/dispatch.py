"""Call a solver by its name: for one problem, for many on the same rows, for one at many costs."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from threading import Event
from typing import Any, TypeVar

import numpy as np

from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import alm, exclusive, newton, paper, path
from exclusivity.solvers.base import Callback, IterationState, NoOptions, SolverResult, Start
from exclusivity.solvers.run import constant_result

Options = TypeVar("Options")


@dataclass(frozen=True, kw_only=True)
class SolverSpec:
    """The call of a solver. What it can do beyond that, the signature of ``solve`` says.

    Parameters
    ----------
    solve : callable
        From a problem, and the keywords ``tol``, ``max_iter``, ``options`` and ``callback``, to a result. It
        also gets those of the following keywords that it has: ``system``, what ``make_system`` gave;
        ``random_state``, a seed; ``start``, an earlier result to start from; or ``resume``, the end of an
        earlier run of the same problem, for a method that can start nowhere else.
    options : type
        The dataclass of its options; by default it has none.
    make_system : callable or None
        Compute what problems that differ in their labels only can share.
    solve_path : callable or None
        Solve many costs together where that saves work; it may return None to leave it.
    takes_bounds : bool
        Whether its weights stay within ``Objective.bounds``.
    """

    solve: Callable[..., Any]
    options: type = NoOptions
    make_system: Callable[[ERMProblem], Any] | None = None
    solve_path: Callable[..., list[SolverResult] | None] | None = None
    takes_bounds: bool = False

    @cached_property
    def keywords(self) -> frozenset[str]:
        """The names of the parameters of ``solve``."""
        return frozenset(signature(self.solve).parameters)


SOLVERS: dict[str, SolverSpec] = {
    "paper": SolverSpec(solve=paper.solve_paper, options=paper.PaperOptions, make_system=paper.make_system),
    "alm": SolverSpec(solve=alm.solve_alm, options=alm.AlmOptions, make_system=alm.make_system),
    "newton": SolverSpec(
        solve=newton.solve_newton,
        options=newton.NewtonOptions,
        make_system=newton.make_system,
        solve_path=path.solve_newton_path,
        takes_bounds=True,
    ),
    # For exclusivity > 1, where all problems of a classifier are solved together: not by ``solve_all``.
    "exclusive": SolverSpec(
        solve=exclusive.solve_exclusive, options=exclusive.ExclusiveOptions, takes_bounds=True
    ),
}


OWN_SOLVERS = frozenset(SOLVERS)
"""The names of the solvers of the package."""


def register_solver(name: str, spec: SolverSpec) -> None:
    """Register a solver under a name, for ``solve_all`` and the estimators.

    Parameters
    ----------
    name : str
        What ``solver=`` will be. The solvers of the package itself keep their names.
    spec : SolverSpec
        How it is called, and what it can do.
    """
    if name == "auto" or name in OWN_SOLVERS:
        raise ValueError(f"there is a solver {name!r} already; choose another name.")
    SOLVERS[name] = spec


def resolve_solver(name: str, exclusivity: float = 1.0) -> str:
    """Return the solver behind ``name``; "auto" is the best one for this exclusivity.

    Examples
    --------
    >>> resolve_solver("auto"), resolve_solver("auto", float("inf")), resolve_solver("alm")
    ('newton', 'exclusive', 'alm')
    """
    if name == "auto":
        return "exclusive" if exclusivity > 1 else "newton"
    if name not in SOLVERS:
        raise ValueError(f"solver must be one of {['auto', *SOLVERS]}; got {name!r}.")
    return name


def solve_all(
    problems: Sequence[ERMProblem],
    solver: str = "auto",
    *,
    options: Mapping[str, Any] | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    starts: Sequence[Start | None] | None = None,
    seeds: Sequence[int] | None = None,
    callbacks: Sequence[Callback | None] | None = None,
    n_threads: int = 1,
) -> list[SolverResult]:
    """Solve every problem; those that differ in their labels only share what does not depend on these.

    Results do not depend on ``n_threads``: each problem is solved from its own start and seed.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), n_members=3)
    >>> [result.converged for result in solve_all([problem, problem])]
    [True, True]
    """
    spec = SOLVERS[resolve_solver(solver)]
    settings: Any = parse_options(spec.options, options)
    limits = {"tol": tol, "max_iter": max_iter, "options": settings}
    results = [constant_result(problem) for problem in problems]
    unsolved = [index for index, result in enumerate(results) if result is None]
    started = {index for index in unsolved if starts is not None and starts[index] is not None}
    _check_solver(solver, problems, has_starts=bool(started))
    keys, systems = [_system_key(problem) for problem in problems], dict[tuple[Any, ...], Any]()
    if spec.make_system is not None:
        repeated = [key for key, times in Counter(keys).items() if times > 1]
        systems = {key: spec.make_system(problems[keys.index(key)]) for key in repeated}

    def run(index: int, callback: Callback | None) -> SolverResult:
        problem, extra = problems[index], dict[str, Any]()
        if keys[index] in systems:
            extra["system"] = systems[keys[index]]
        if seeds is not None and "random_state" in spec.keywords:
            extra["random_state"] = seeds[index]
        if index in started and starts is not None:
            extra["start" if "start" in spec.keywords else "resume"] = starts[index]
        result: SolverResult = spec.solve(problem, callback=callback, **limits, **extra)
        return result

    watchers = [None if callbacks is None else callbacks[index] for index in unsolved]
    if n_threads == 1 or len(unsolved) == 1:
        found = list(map(run, unsolved, watchers))
    else:
        found = _run_in_threads(run, unsolved, watchers, n_threads)
    for index, result in zip(unsolved, found, strict=True):
        results[index] = result
    return [result for result in results if result is not None]


def solve_path(
    problem: ERMProblem,
    costs: Sequence[float],
    solver: str = "auto",
    *,
    options: Mapping[str, Any] | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    seed: int | None = None,
) -> list[SolverResult]:
    """Solve ``problem`` for every cost; results come in the order of ``costs``, without dual vectors.

    Costs are taken in ascending order. "newton" shares work between them, or starts each at the last solution
    as "alm" does, and a solver that prescribes its own start solves each anew, with the same ``seed``.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), p=1)
    >>> [round(result.objective, 3) for result in solve_path(problem, [1.0, 0.1], tol=1e-9)]
    [0.5, 0.18]
    """
    order = np.argsort(np.asarray(costs, dtype=float), kind="stable")
    ascending = [float(costs[i]) for i in order]
    known = constant_result(problem)
    if known is not None:
        return [dataclasses.replace(known, dual=np.empty(0))] * len(ascending)
    name, solved = resolve_solver(solver), None
    shared = SOLVERS[name].solve_path
    if shared is not None:
        settings: Any = parse_options(SOLVERS[name].options, options)
        solved = shared(problem, ascending, tol=tol, max_iter=max_iter, options=settings)
    if solved is None:
        spec, solved = SOLVERS[name], list[SolverResult]()
        for number, cost in enumerate(ascending):
            start = None
            if number > 0 and "start" in spec.keywords:
                start = Start.after(solved[-1], cost / ascending[number - 1])
            solved += solve_all(
                [problem.changed(cost=cost)],
                name,
                options=options,
                tol=tol,
                max_iter=max_iter,
                starts=[start],
                seeds=None if seed is None else [seed],
            )
    results: list[SolverResult] = [solved[0]] * len(solved)
    for place, result in zip(order, solved, strict=True):
        results[place] = dataclasses.replace(result, dual=np.empty(0))
    return results


def _check_solver(solver: str, problems: Sequence[ERMProblem], *, has_starts: bool) -> None:
    """Raise where a solver is asked for what it cannot do."""
    name = resolve_solver(solver)
    spec = SOLVERS[name]
    if name == "exclusive":
        raise ValueError(f"solver={solver!r} solves its problems together: call solve_exclusive(problems).")
    if not spec.takes_bounds and any(problem.objective.bounds is not None for problem in problems):
        raise ValueError(f"solver={solver!r} knows no bounds of weights: solver='newton' does.")
    if has_starts and not {"start", "resume"} & spec.keywords:
        raise ValueError(f"solver={solver!r} cannot continue from an earlier result: warm_start=False.")


def _run_in_threads(
    run: Callable[[int, Callback | None], SolverResult],
    indices: Sequence[int],
    callbacks: Sequence[Callback | None],
    n_threads: int,
) -> list[SolverResult]:
    """Call ``run`` for every problem with its callback; an error or Ctrl-C ends them all."""
    cancelled = Event()

    def cancellable(callback: Callback | None) -> Callback:
        def watch(state: IterationState) -> bool:
            return cancelled.is_set() or (callback is not None and bool(callback(state)))

        vars(watch)["is_cancelled"] = cancelled.is_set  # compiled loops ask between their steps
        return watch

    with ThreadPoolExecutor(n_threads) as pool:
        try:  # around the first thread already: from then on Ctrl-C has something to end
            futures = [
                pool.submit(run, index, cancellable(callback))
                for index, callback in zip(indices, callbacks, strict=True)
            ]
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()  # an error shows at once, not when its turn comes
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C as much as an error: let the other threads end their iteration and go
            cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _system_key(problem: ERMProblem) -> tuple[Any, ...]:
    """Return a key that is equal for problems which differ in their labels only."""
    return (
        id(problem.design),
        id(problem.weights),
        id(problem.loss),
        id(problem.regulariser),
        problem.cost,
        problem.n_members,
        problem.fit_intercept,
        id(problem.objective.bounds),
    )


def parse_options(kind: type[Options], given: Mapping[str, Any] | None) -> Options:
    """Make an options object from a user's mapping, refusing keys that the solver does not know.

    Examples
    --------
    >>> from exclusivity.solvers.paper import PaperOptions
    >>> parse_options(PaperOptions, {"rho": 1.0}).rho
    1.0
    """
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    unknown = [key for key in (given or {}) if key not in known]
    if unknown and not known:
        raise ValueError(f"Unknown solver option {unknown[0]!r}; this solver takes none.")
    if unknown:
        raise ValueError(
            f"Unknown solver option {unknown[0]!r}; {kind.__name__.removesuffix('Options').lower()!r} "
            f"takes {', '.join(known)}."
        )
    return kind(**(given or {}))
