"""What surrounds the iterations: options, statuses, history, callbacks, warm starts, many problems."""

from __future__ import annotations

import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from exclusivity.cli.options import SOLVERS as OFFERED
from exclusivity.objective.objective import ERMProblem
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers import (
    SOLVERS,
    AlmOptions,
    History,
    IterationRecord,
    PaperOptions,
    SolverSpec,
    Start,
    Status,
    dispatch,
    solve_all,
    solve_alm,
    solve_newton,
    solve_paper,
)
from exclusivity.solvers.dispatch import parse_options, resolve_solver

OPTIONS = {"alm": ("mu0", "balance"), "paper": ("start", "mu0", "rho", "change", "w_step", "eps")}
SOLVE = {"alm": solve_alm, "paper": solve_paper}
EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVE))


def data(n_rows=40, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    return X, np.where(X[:, 0] + rng.normal(size=n_rows) > 0, 1.0, -1.0)


def build(p=2, seed=0, **knobs):
    return ERMProblem.build(*data(seed=seed), p=p, **({"n_members": 3} | knobs))


def one_vs_rest(n_problems=4, **knobs):
    """Problems on the same rows that differ in their labels only, as a multi-class fit makes them."""
    first = build(**knobs)
    rng = np.random.default_rng(9)
    labels = [rng.permutation(first.labels) for _ in range(n_problems - 1)]
    return [first, *(first.changed(labels=y) for y in labels)]


# Options ------------------------------------------------------------------------------------------


@EVERY_SOLVER
def test_an_unknown_option_is_refused_with_the_known_ones(solver):
    with pytest.raises(ValueError, match="Unknown solver option 'muu'") as error:
        solve_all([build()], solver, options={"muu": 1.0})
    for name in OPTIONS[solver]:
        assert name in str(error.value)
    assert repr(solver) in str(error.value)
    assert {field.name for field in dataclasses.fields(SOLVERS[solver].options)} == set(OPTIONS[solver])


BAD_NUMBERS = (float("nan"), float("inf"), -1.0, "1")
BAD = [
    *(("alm", "mu0", value) for value in (0, [1.0, 2.0], *BAD_NUMBERS)),
    *(("alm", "balance", value) for value in ("yes", 1, None)),
    *(("paper", "mu0", value) for value in (0, None, *BAD_NUMBERS)),
    *(("paper", "rho", value) for value in (0.99, None, *BAD_NUMBERS)),
    *(("paper", "change", value) for value in (-1e-9, None, *BAD_NUMBERS)),
    *(("paper", "eps", value) for value in (0, None, *BAD_NUMBERS)),
    *(("paper", "start", value) for value in ("one", None, 1)),
    *(("paper", "w_step", value) for value in ("newton", None, 1)),
]


@pytest.mark.parametrize(("solver", "key", "value"), BAD)
def test_a_wrong_value_is_refused_with_its_key_and_itself(solver, key, value):
    with pytest.raises((ValueError, TypeError), match=f"option {key} must be") as error:
        parse_options(SOLVERS[solver].options, {key: value})
    assert repr(value) in str(error.value)


GOOD = [
    *(("alm", "mu0", value) for value in (None, 1, 0.5, np.float32(2))),
    *(("alm", "balance", value) for value in (True, False, np.True_)),
    *(("paper", "mu0", value) for value in (1, 1e-3, np.float64(3))),
    *(("paper", "rho", value) for value in (1, 1.0, 2.5)),
    *(("paper", "change", value) for value in (0, 1e-9)),
    *(("paper", "start", value) for value in ("ones", "random")),
    *(("paper", "w_step", value) for value in ("reweighted", "exact")),
    ("paper", "eps", 1e-6),
]


@pytest.mark.parametrize(("solver", "key", "value"), GOOD)
def test_a_right_value_is_kept_and_runs(solver, key, value):
    options = parse_options(SOLVERS[solver].options, {key: value})
    assert getattr(options, key) == value
    result = solve_all([build()], solver, options={key: value}, max_iter=3, seeds=[0])[0]
    assert np.isfinite(result.objective)


def test_every_option_does_something():
    """None is accepted and ignored: each changes the iterates or where they end."""
    plain = solve_alm(build(1), tol=-1.0, max_iter=30).weights
    for options in (AlmOptions(mu0=0.1), AlmOptions(balance=False)):
        assert (
            np.abs(solve_alm(build(1), tol=-1.0, max_iter=30, options=options).weights - plain).max() > 1e-9
        )
    paper = solve_paper(build(1), max_iter=60)
    for change in ({"mu0": 3.0}, {"rho": 1.3}, {"change": 1e-6}, {"start": "random"}, {"eps": 0.1}):
        other = solve_paper(build(1), max_iter=60, options=PaperOptions(**change), random_state=0)
        assert np.abs(other.weights - paper.weights).max() > 1e-9
    apart = [
        solve_paper(
            build(1), max_iter=5, options=PaperOptions(start="random", w_step=step), random_state=0
        ).weights
        for step in ("reweighted", "exact")
    ]
    assert np.abs(apart[0] - apart[1]).max() > 1e-9


def test_the_defaults_are_those_of_the_paper():
    assert dataclasses.asdict(PaperOptions()) == {
        "start": "ones",
        "mu0": 1.0,
        "rho": 1.1,
        "change": 0.05,
        "w_step": "reweighted",
        "eps": 1e-12,
    }
    assert parse_options(PaperOptions, None) == PaperOptions()


def test_names_of_solvers():
    assert resolve_solver("auto") in SOLVERS
    for name in SOLVERS:
        assert resolve_solver(name) == name
    with pytest.raises(ValueError, match=r"must be one of .*; got 'liblinear'") as error:
        resolve_solver("liblinear")
    for name in ("auto", *SOLVERS):
        assert repr(name) in str(error.value)


@pytest.mark.parametrize(("gamma", "name"), [(0.0, "newton"), (1.0, "newton"), (1.1, "exclusive")])
def test_auto_looks_at_the_exclusivity(gamma, name):
    assert resolve_solver("auto", gamma) == name


def test_the_command_line_offers_all_solvers():
    assert set(OFFERED) == {"auto", *SOLVERS}


def test_problems_that_are_solved_together_are_not_solved_one_by_one():
    with pytest.raises(ValueError, match=r"solver='exclusive' solves its problems together: call solve_ex"):
        solve_all([build(exclusivity=np.inf)], "exclusive")


@EVERY_SOLVER
@pytest.mark.parametrize("gamma", [1.0000001, 5.0])
def test_a_non_convex_problem_is_refused(solver, gamma):
    with pytest.raises(ValueError, match=f"exclusivity={gamma} makes the problem non-convex"):
        SOLVE[solver](build(exclusivity=gamma))


# Status, history, result --------------------------------------------------------------------------


def test_status_certified():
    result = solve_alm(build(), tol=1e-6)
    assert result.status is Status.CERTIFIED
    assert result.converged
    assert result.gap <= 1e-6 < result.history.gap[-2]


def test_status_rule_does_not_claim_convergence():
    result = solve_paper(build(), tol=1e-12)
    assert result.status is Status.RULE
    assert not result.converged
    assert solve_paper(build(), tol=1.0).converged  # the same run: `tol` judges, it does not steer
    assert solve_paper(build(), tol=1.0).n_iter == result.n_iter


@EVERY_SOLVER
def test_status_max_iter(solver):
    result = SOLVE[solver](build(1), tol=1e-14, max_iter=4)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == len(result.history) == 4
    assert not result.converged


@EVERY_SOLVER
@pytest.mark.parametrize("answer", [True, np.True_, 1])
def test_status_callback(solver, answer):
    seen = []

    def callback(state):
        seen.append(state.record.iteration)
        return answer if state.record.iteration == 3 else None

    result = SOLVE[solver](build(1), tol=1e-14, callback=callback)
    assert result.status is Status.CALLBACK
    assert seen == [1, 2, 3]
    assert result.n_iter == 3
    # What has been reached is returned, with an honest gap.
    np.testing.assert_allclose(
        result.objective, build(1).value(result.weights, result.intercepts), rtol=1e-12
    )
    assert result.gap >= 0


@EVERY_SOLVER
def test_a_callback_sees_the_iterate_of_its_record(solver):
    problem, seconds = build(1), []

    def callback(state):
        np.testing.assert_allclose(
            state.record.objective, problem.value(state.weights, state.intercepts), rtol=1e-12
        )
        assert state.weights.shape == (5, 3)
        assert state.intercepts.shape == (3,)
        seconds.append(state.seconds)

    result = SOLVE[solver](problem, max_iter=15, tol=1e-14, callback=callback)
    assert len(seconds) == result.n_iter
    assert seconds == sorted(seconds)
    assert seconds[0] > 0


@EVERY_SOLVER
def test_a_callback_does_not_change_the_run(solver):
    plain = SOLVE[solver](build(1), max_iter=40)
    watched = SOLVE[solver](build(1), max_iter=40, callback=lambda _: False)
    np.testing.assert_array_equal(plain.weights, watched.weights)


@EVERY_SOLVER
def test_history_columns(solver):
    result = SOLVE[solver](build(1), max_iter=40)
    history = result.history
    assert [record.iteration for record in history.records] == list(range(1, result.n_iter + 1))
    for name in (field.name for field in dataclasses.fields(IterationRecord)):
        column = history.column(name)
        assert column.shape == (len(history),)
        assert column.dtype == float
        assert np.isfinite(column).all()
    for name in ("objective", "bound", "gap", "mu"):
        np.testing.assert_array_equal(getattr(history, name), history.column(name))
    upper = history.objective + history.column("error")
    np.testing.assert_allclose(history.gap, (upper - history.bound) / upper, rtol=1e-12)
    assert (history.column("primal_residual") >= 0).all()
    assert (history.column("dual_residual") >= 0).all()
    with pytest.raises(AttributeError):
        history.column("nothing")


def test_residuals_of_paper_by_hand():
    """One iteration from W = Q = 1, P = 0, mu = 1 gives W = 1 / (1 + K); the rest is written out."""
    X, y = data()
    problem = build()
    record = solve_paper(problem, max_iter=1).history.records[0]
    W, b = np.full((5, 3), 1 / 4), np.full(3, y.mean())
    S = y[:, None] - b
    E = np.where(y[:, None] * S > 0, S / 3, S)
    P = np.linalg.solve(np.eye(5) + X.T @ X, W - 1 + X.T @ (y[:, None] - b - E))
    violation = E - y[:, None] + X @ P + b
    np.testing.assert_allclose(
        record.primal_residual**2, np.sum(violation**2) + np.sum((P - W) ** 2), rtol=1e-10
    )
    np.testing.assert_allclose(record.dual_residual**2, np.sum(P**2) + np.sum((X @ P + b) ** 2), rtol=1e-10)


def test_residuals_vanish_at_convergence():
    history = solve_alm(build(), tol=1e-12).history
    for name in ("primal_residual", "dual_residual"):
        column = history.column(name)
        assert column[-1] < 1e-4 * column.max()


def test_mu_of_the_history():
    paper = solve_paper(build(1), max_iter=30, options=PaperOptions(change=0, mu0=0.5, rho=1.2))
    np.testing.assert_allclose(paper.history.mu, 0.5 * 1.2 ** np.arange(30), rtol=1e-12)
    constant = solve_alm(build(1), max_iter=50, tol=-1.0, options=AlmOptions(balance=False))
    np.testing.assert_array_equal(constant.history.mu, 2.0)  # 2 C
    balanced = solve_alm(build(1, cost=50.0), max_iter=300, tol=-1.0, options=AlmOptions(mu0=1e-3)).history.mu
    assert len(set(balanced)) > 3
    changes = np.flatnonzero(np.diff(balanced))
    assert len(changes) <= 60
    assert np.diff(changes).min() >= 10  # seldom, and ever more seldom
    ratio = balanced[1:] / balanced[:-1]
    assert ratio.max() <= 10 * (1 + 1e-12)
    assert ratio.min() >= 0.1 * (1 - 1e-12)


FROZEN = {
    "result": lambda: (solve_alm(build(), max_iter=2), "gap"),
    "history": lambda: (History(()), "records"),
    "record": lambda: (solve_alm(build(), max_iter=2).history.records[0], "bound"),
    "start": lambda: (Start(np.zeros((1, 1)), np.zeros(1)), "dual"),
    "problem": lambda: (build(), "cost"),
    "alm options": lambda: (AlmOptions(), "mu0"),
    "paper options": lambda: (PaperOptions(), "rho"),
}


@pytest.mark.parametrize("name", FROZEN)
def test_what_is_handed_out_is_frozen(name):
    thing, field = FROZEN[name]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(thing, field, 0)


@EVERY_SOLVER
def test_inputs_are_left_alone(solver):
    X, y = data()
    weights, kept = np.linspace(0.5, 2, len(y)), None
    problem = ERMProblem.build(X, y, n_members=2, p=1, weights=weights)
    kept = X.copy(), y.copy(), weights.copy()
    result = SOLVE[solver](problem, max_iter=30)
    if solver == "alm":
        start = Start(result.weights, result.intercepts, result.dual)
        before = [array.copy() for array in (start.weights, start.intercepts, start.dual)]
        solve_alm(problem, max_iter=30, start=start, tol=-1.0)
        for array, old in zip((start.weights, start.intercepts, start.dual), before, strict=True):
            np.testing.assert_array_equal(array, old)
    for array, old in zip((X, y, weights), kept, strict=True):
        np.testing.assert_array_equal(array, old)


def test_the_result_of_a_longer_run_is_never_worse():
    """`alm` is not monotone, its answers are."""
    results = [solve_alm(build(1), tol=-1.0, max_iter=n) for n in range(1, 40)]
    objectives = [result.objective for result in results]
    gaps = [result.gap for result in results]
    assert any(result.objective < result.history.objective[-1] for result in results)
    for result in results:
        assert result.objective == result.history.objective.min()
    assert objectives == sorted(objectives, reverse=True)
    assert gaps == sorted(gaps, reverse=True)


# Warm starts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "knobs"), [(1, {}), (2, {}), (1.5, {}), (1, {"sparsity": 0.5}), (2, {"sparsity": 0.5})]
)
def test_a_warm_start_from_a_solution_ends_at_once(p, knobs):
    """From a point and a dual vector two digits better than what is asked for."""
    problem = build(p, weights=np.linspace(0.5, 2, 40), **knobs)
    cold = solve_alm(problem, tol=1e-9)
    assert cold.converged
    warm = solve_alm(problem, tol=1e-7, start=Start(cold.weights, cold.intercepts, cold.dual))
    assert warm.converged
    assert warm.n_iter <= 2 < cold.n_iter


@pytest.mark.parametrize("p", [1, 2])
def test_a_warm_start_from_a_certified_solution_is_accepted_at_the_same_tolerance(p):
    """The point and the dual vector handed over prove the gap: there is nothing left to do."""
    for seed in range(5):
        problem = build(p, seed=seed)
        cold = solve_alm(problem, tol=1e-6)
        warm = solve_alm(problem, tol=1e-6, start=Start(cold.weights, cold.intercepts, cold.dual))
        assert cold.converged
        assert warm.n_iter <= 2


def test_a_warm_start_without_dual_or_with_that_of_other_rows():
    problem = build()
    cold = solve_alm(problem, tol=1e-8)
    for dual in (None, np.ones(7)):
        warm = solve_alm(problem, tol=1e-7, start=Start(cold.weights, cold.intercepts, dual))
        assert warm.n_iter <= 2  # p = 2: the dual vector follows from the scores


@pytest.mark.parametrize("p", [1, 2])
def test_a_bad_start_ends_in_the_same_optimum(p):
    problem = build(p)
    rng = np.random.default_rng(0)
    expected = solve_newton(problem, tol=1e-9)
    start = Start(10 * rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=40))
    result = solve_alm(problem, tol=1e-9, start=start)
    assert result.converged
    np.testing.assert_allclose(result.objective, expected.objective, rtol=2e-9)


# Many problems ------------------------------------------------------------------------------------


@EVERY_SOLVER
def test_problems_on_the_same_rows_share_one_factorisation(solver, monkeypatch):
    made, spec = [], SOLVERS[solver]

    def counting(problem):
        made.append(problem)
        return spec.make_system(problem)

    monkeypatch.setitem(SOLVERS, solver, dataclasses.replace(spec, make_system=counting))
    problems = one_vs_rest()
    shared = solve_all(problems, solver, tol=1e-6)
    assert len(made) == 1
    for problem, result in zip(problems, shared, strict=True):
        alone = SOLVE[solver](problem, tol=1e-6)
        np.testing.assert_array_equal(result.weights, alone.weights)
        np.testing.assert_array_equal(result.intercepts, alone.intercepts)

    made.clear()
    first = problems[0]
    others = [
        first.changed(weights=2 * first.weights),
        first.changed(design=DesignMatrix(first.design.X + 1)),
        first.changed(fit_intercept=False),
        first.changed(n_members=7),
        first.changed(cost=9.0),
    ]
    for result, problem in zip(solve_all([first, *others], solver), [first, *others], strict=True):
        np.testing.assert_array_equal(result.weights, SOLVE[solver](problem).weights)
    assert not made, "what differs in more than its labels has nothing to share"


@EVERY_SOLVER
@pytest.mark.parametrize("p", [1, 2])
def test_threads_do_not_change_a_single_bit(solver, p):
    problems = one_vs_rest(5, p=p)
    options = {"start": "random"} if solver == "paper" else {}
    runs = [
        solve_all(problems, solver, options=options, n_threads=n, max_iter=60, seeds=range(5), tol=1e-6)
        for n in (1, 2, 4)
    ]
    for results in runs[1:]:
        for one, other in zip(runs[0], results, strict=True):
            np.testing.assert_array_equal(one.weights, other.weights)
            np.testing.assert_array_equal(one.intercepts, other.intercepts)
            np.testing.assert_array_equal(one.dual, other.dual)
            np.testing.assert_array_equal(one.history.objective, other.history.objective)
            assert one.n_iter == other.n_iter


def test_seeds_belong_to_problems():
    problem = build()
    options = {"start": "random"}
    one, two, again = solve_all([problem] * 3, "paper", options=options, seeds=[1, 2, 1])
    np.testing.assert_array_equal(one.weights, again.weights)
    assert np.abs(one.weights - two.weights).max() > 1e-6


def test_starts_and_callbacks_belong_to_problems():
    problems, seen = one_vs_rest(3), [[], [], []]
    callbacks = [lambda state, kept=kept: kept.append(state.record.objective) for kept in seen]
    cold = solve_all(problems, "alm", tol=1e-9, callbacks=[callbacks[0], None, callbacks[2]])
    for kept, result, expected in zip(seen, cold, (True, False, True), strict=True):
        assert kept == (list(result.history.objective) if expected else [])
    starts = [Start(result.weights, result.intercepts, result.dual) for result in cold]
    warm = solve_all(problems, "alm", tol=1e-7, starts=[starts[0], None, starts[2]])
    assert warm[0].n_iter <= 2
    assert warm[1].n_iter > 2
    assert warm[2].n_iter <= 2


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_an_error_in_a_callback_reaches_the_caller(n_threads):
    def failing(state):
        if state.record.iteration == 3:
            raise RuntimeError("from the callback")

    problems = one_vs_rest(3, p=1)
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="from the callback"):
        solve_all(
            problems, "alm", callbacks=[None, failing, None], n_threads=n_threads, tol=1e-12, max_iter=50
        )
    assert threading.active_count() <= before  # no thread is left behind


def test_an_error_in_one_thread_ends_the_others():
    """The second problem would run for ever: it has to be told to stop."""
    count = [0]

    def failing(state):
        if state.record.iteration == 5:
            raise RuntimeError("from the callback")

    def counting(state):
        count[0] += 1

    with pytest.raises(RuntimeError, match="from the callback"):
        solve_all(
            one_vs_rest(2, p=1), "alm", callbacks=[failing, counting], n_threads=2, tol=-1.0, max_iter=100_000
        )
    assert count[0] < 50_000


def test_an_error_in_one_thread_reaches_the_compiled_loops_of_the_others(monkeypatch):
    asked, started = [], threading.Event()

    def solve(problem, *, tol, max_iter, options, callback):
        if problem is problems[0]:
            started.wait(10)
            raise ZeroDivisionError
        started.set()
        for _ in range(1000):
            asked.append(callback.is_cancelled())
            if asked[-1]:
                break
            time.sleep(0.01)
        return solve_newton(problem)

    monkeypatch.setitem(SOLVERS, "asking", SolverSpec(solve=solve))
    problems = one_vs_rest(2)
    with pytest.raises(ZeroDivisionError):
        solve_all(problems, "asking", n_threads=2)
    assert asked[-1]


def test_no_problems_no_results():
    assert solve_all([]) == []
    assert solve_all([], n_threads=3) == []


def test_an_interrupt_while_threads_are_started_ends_them_all(monkeypatch):
    started = []

    class Pool(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            if started:
                raise KeyboardInterrupt
            started.append(args)
            return super().submit(*args, **kwargs)

    monkeypatch.setattr(dispatch, "ThreadPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt):
        solve_all(one_vs_rest(3), "paper", options={"change": 0.0}, max_iter=10**9, n_threads=2)
    assert len(started) == 1
