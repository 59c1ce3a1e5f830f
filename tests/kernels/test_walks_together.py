"""Walks in company: what each of them finds is what it finds alone, to the last bit."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from benchmarks.workloads import text_rows
from ctrl_c import CtrlC, needs_signals
from exclusivity import ERMClassifier
from exclusivity.kernels import compiled
from exclusivity.objective.losses import Logistic, PowerHinge
from exclusivity.objective.problem import ERMProblem
from exclusivity.solvers import solve_all, solve_newton
from exclusivity.solvers.dispatch import SOLVERS
from exclusivity.solvers.newton import (
    batched as together_module,
    newton_group_size,
    subspace as compiled_module,
)
from exclusivity.solvers.newton.run import Point
from exclusivity.solvers.newton.subspace import SubspaceSolver, largest_batch
from kernels.kernel_cases import (
    ITERATIVE,
    by_loss,
    endless,
    go_on,
    needs_compiled,
    only_python,
    sparse_rows,
)
from newton.newton_cases import assert_honest, oracle

pytestmark = needs_compiled

REGIME = {"regime": "iterative"}


def class_rows(n_rows=1500, n_features=400, per_row=8, n_classes=5, seed=0):
    """Rows enough for some to be left out, of classes of different sizes."""
    X, _ = sparse_rows(n_rows, n_features, per_row, seed)
    rng = np.random.default_rng(seed)
    scores = X @ rng.normal(size=(n_features, n_classes)) + np.linspace(0, 2, n_classes)
    return X, scores.argmax(axis=1)


def one_vs_rest(X, y, **settings):
    """A problem for every class, all over the same rows and weights."""
    first = ERMProblem.build(X, np.where(y == 0, 1.0, -1.0), **settings)
    return [first.changed(labels=np.where(y == label, 1.0, -1.0)) for label in np.unique(y)]


def assert_same(one, other):
    """The same result, bit by bit, by the same way."""
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.intercepts, other.intercepts)
    np.testing.assert_array_equal(one.dual, other.dual)
    assert (one.objective, one.gap, one.status) == (other.objective, other.gap, other.status)
    for name in ("objective", "bound", "passes"):
        np.testing.assert_array_equal(getattr(one.history, name), getattr(other.history, name))


def together(problems, **settings):
    """What they are together, which they really are."""
    sizes = []

    def solve(problems, **settings):
        sizes.append(len(problems))
        return original(problems, **settings)

    spec = SOLVERS["newton"]
    original = spec.solve_together
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SOLVERS, "newton", replace(spec, solve_together=solve))
        results = solve_all(problems, "newton", options=REGIME, **settings)
    assert max(sizes) > 1
    return results


# ---------------------------------------------------------------- the same as alone


@by_loss
@pytest.mark.parametrize("cost", [0.05, 1.0, 30.0])
def test_company_changes_nothing(loss, cost):
    problems = one_vs_rest(*class_rows(), loss=loss, cost=cost)
    for problem, result in zip(problems, together(problems, tol=1e-6), strict=True):
        assert_same(result, solve_newton(problem, tol=1e-6, options=ITERATIVE))
        assert result.converged


@pytest.mark.parametrize("numbers", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("p", [1, 2])
def test_every_kind_of_rows_is_shared(numbers, indices, p):
    X, y = class_rows()
    X = sparse.csr_array((X.data.astype(numbers), X.indices, X.indptr), shape=X.shape)
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indices)
    problems = one_vs_rest(X, y, p=p)
    for problem, result in zip(problems, together(problems), strict=True):
        assert_same(result, solve_newton(problem, options=ITERATIVE))


def test_all_companions_agree_with_the_oracle():
    problems = one_vs_rest(*class_rows(120, 30, 3), p=1, cost=2.0)
    for problem, result in zip(problems, together(problems, tol=1e-8), strict=True):
        known, weights, _ = oracle(problem.design.X.toarray(), problem.labels, cost=2.0, p=1)
        assert_honest(result, known)
        assert result.objective <= known * (1 + 1e-7)
        np.testing.assert_allclose(result.weights, weights, atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.integers(2, 11),
    p=st.sampled_from([1, 2]),
    cost=st.sampled_from([1e-3, 0.3, 100.0]),
    has_intercept=st.booleans(),
)
def test_company_changes_nothing_on_any_rows(seed, n_classes, p, cost, has_intercept):
    X, y = class_rows(600, 150, 4, n_classes, seed)
    if len(np.unique(y)) < 2:
        return
    problems = one_vs_rest(X, y, p=p, cost=cost, fit_intercept=has_intercept)
    for problem, result in zip(problems, together(problems), strict=True):
        assert_same(result, solve_newton(problem, options=ITERATIVE))


@pytest.mark.parametrize("order", [*permutations(range(3))][1:])
def test_the_order_of_problems_does_not_matter(order):
    problems = one_vs_rest(*class_rows(n_classes=3), p=1)
    straight, other = together(problems), together([problems[i] for i in order])
    for place, i in enumerate(order):
        assert_same(other[place], straight[i])


@pytest.mark.parametrize("p", [1, 2])
def test_a_classifier_does_not_depend_on_jobs(p):
    X, y = class_rows(n_classes=11)
    one, two = (ERMClassifier(3, p=p, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    np.testing.assert_array_equal(one.dual_gap_, two.dual_gap_)


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_results_do_not_depend_on_the_size_of_groups(most, monkeypatch):
    X, y = class_rows(n_classes=7)
    expected = ERMClassifier(2).fit(X, y).coef_
    monkeypatch.setattr(together_module, "largest_batch", lambda problem: most)
    np.testing.assert_array_equal(ERMClassifier(2).fit(X, y).coef_, expected)


def test_many_features_are_sorted_for_each_alone():
    X, y = text_rows(3_000, 300_000, 400)
    rng = np.random.default_rng(0)
    first = ERMProblem.build(X, y, p=1, cost=0.2)
    problems = [first, first.changed(labels=rng.choice([-1.0, 1.0], size=len(y)))]
    for problem, result in zip(problems, together(problems, tol=1e-3), strict=True):
        assert_same(result, solve_newton(problem, tol=1e-3, options=ITERATIVE))


# ---------------------------------------------------------------- each ends by itself


def test_one_that_is_ended_leaves_the_others_alone():
    problems = one_vs_rest(*class_rows(), p=1, cost=100.0)
    heard = []

    def stop(state):
        heard.append(state.record.iteration)
        return True

    callbacks = [None, stop, *[None] * (len(problems) - 2)]
    results = together(problems, callbacks=callbacks, tol=1e-7)
    assert heard == [1]
    assert not results[1].converged
    for i in set(range(len(problems))) - {1}:
        assert_same(results[i], solve_newton(problems[i], tol=1e-7, options=ITERATIVE))


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_limits_hold_for_each(max_iter):
    problems = one_vs_rest(*class_rows(), p=1, cost=1000.0)
    for problem, result in zip(problems, together(problems, tol=1e-9, max_iter=max_iter), strict=True):
        assert result.n_iter <= max_iter
        assert_same(result, solve_newton(problem, tol=1e-9, max_iter=max_iter, options=ITERATIVE))


def test_where_the_walk_comes_to_little_others_go_on(monkeypatch):
    """Every walk ends after a step: the methods in Python have to take over, once."""
    monkeypatch.setattr(compiled_module, "_MOST_STEPS", 1)
    problems = one_vs_rest(*class_rows(n_classes=3), p=1, cost=10.0)
    for problem, result in zip(problems, together(problems, tol=1e-6), strict=True):
        assert result.converged
        assert_same(result, solve_newton(problem, tol=1e-6, options=ITERATIVE))


# ---------------------------------------------------------------- who may share


def test_nobody_shares_where_there_is_no_walk():
    X, y = class_rows(200, 60, 3)
    problem = ERMProblem.build(X, np.where(y == 0, 1.0, -1.0))
    assert newton_group_size(problem, ITERATIVE) == compiled.MOST_WALKS
    dense = ERMProblem.build(X.toarray(), problem.labels)
    assert newton_group_size(dense, ITERATIVE) == 1
    assert newton_group_size(problem.changed(loss=PowerHinge(1.5)), ITERATIVE) == 1
    with only_python():
        one = solve_all([problem, problem], options=REGIME)
    assert len(one) == 2


@pytest.mark.parametrize(
    ("shape", "per_row", "least", "most"),
    [
        ((10_000, 10_000), 20, 8, 8),
        ((20_000, 1_000_000), 400, 1, 2),
        ((1_000_000, 200_000), 100, 1, 1),
    ],
)
def test_few_share_where_vectors_are_long_or_rows_many(shape, per_row, least, most):
    """Memory beyond the rows is at most half of theirs, and 128 MiB."""
    X = SimpleNamespace(shape=shape, nnz=shape[0] * per_row)
    X.data, X.indices = (SimpleNamespace(nbytes=size * X.nnz) for size in (8, 4))
    assert least <= largest_batch(SimpleNamespace(design=SimpleNamespace(X=X))) <= most


@pytest.mark.parametrize(("n_threads", "expected"), [(1, [5]), (2, [3, 2]), (5, [1] * 5), (9, [1] * 5)])
def test_every_thread_has_something_to_do(n_threads, expected):
    problems = one_vs_rest(*class_rows())
    sizes = []

    def solve(problems, *, callbacks, **limits):
        sizes.append(len(problems))
        return solved(problems, callbacks=callbacks, **limits)

    def solve_one(problem, **settings):
        sizes.append(1)
        return alone(problem, **settings)

    spec = SOLVERS["newton"]
    solved, alone = spec.solve_together, spec.solve
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SOLVERS, "newton", replace(spec, solve_together=solve, solve=solve_one))
        solve_all(problems, "newton", options=REGIME, n_threads=n_threads)
    assert sorted(sizes, reverse=True) == expected


# ---------------------------------------------------------------- the door


def some_walks(n=3):
    problems = one_vs_rest(*class_rows(n_classes=n))
    start = Point(np.zeros(problems[0].design.n_features), 0.0)
    return [SubspaceSolver(problem.reduced(), start).handle for problem in problems]


def test_walks_over_other_rows_are_no_company():
    problems = [one_vs_rest(*class_rows(seed=seed))[0] for seed in (0, 1)]
    start = Point(np.zeros(problems[0].design.n_features), 0.0)
    walks = tuple(SubspaceSolver(problem.reduced(), start).handle for problem in problems)
    with pytest.raises(ValueError, match="over the same rows"):
        compiled.go_on(walks, (1e-4, 1e-4), 5)


@pytest.mark.parametrize("wrong", ["none", "too many", "twice", "a list", "something else"])
def test_wrong_company_is_refused(wrong):
    walks = some_walks()
    company = {
        "none": (),
        "too many": tuple(some_walks(compiled.MOST_WALKS + 1)),
        "twice": (walks[0], walks[1], walks[0]),
        "a list": walks,
        "something else": (walks[0], "a walk"),
    }[wrong]
    with pytest.raises((TypeError, ValueError)):
        compiled.go_on(company, (1e-4,) * len(company), 5)
    assert go_on(walks[0], 1e-4, 500)[0] == compiled.SEEMS_CLOSE
    assert go_on(walks[0], 1e-4, 500)[0] == compiled.IS_CLOSE


@pytest.mark.parametrize(
    "goals", [(), (1e-4,), (1e-4,) * 4, [1e-4] * 3, (1e-4, "x", 1e-4), (1e-4, None, 1e-4)]
)
def test_every_walk_has_its_goal(goals):
    with pytest.raises((TypeError, ValueError)):
        compiled.go_on(tuple(some_walks()), goals, 5)


def test_each_goes_to_its_own_goal():
    walks, goals = tuple(some_walks()), (1e-1, 1e-3, 1e-6)
    gaps = [1 - place[4] / place[3] for place in compiled.go_on(walks, goals, 500)]
    assert all(gap <= goal for gap, goal in zip(gaps, goals, strict=True))
    assert gaps[0] > goals[1]


def test_the_same_bytes_may_be_other_rows():
    """Rows without numbers, of 4 and of 8 bytes each: the same memory, as far as addresses and bytes tell."""
    nothing, starts = np.empty(0), np.zeros(501, dtype=np.int64)

    def walk(columns, starts):
        n_rows = len(starts) - 1
        labels, costs = np.where(np.arange(n_rows) % 2, 1.0, -1.0), np.ones(n_rows)
        rows = nothing, columns, starts, labels, costs, np.zeros(3), np.zeros(n_rows), None
        return compiled.start_walk(*rows, 0.0, 0.5, np.inf, 0.0, True)

    columns = np.empty(0, dtype=np.int64)
    walks = walk(columns, starts), walk(columns.view(np.int32), starts.view(np.int32))
    with pytest.raises(ValueError, match="over the same rows"):
        compiled.go_on(walks, (1e-4, 1e-4), 5)


def test_other_losses_on_the_same_rows_are_no_company():
    X, y = class_rows(300, 80, 4)
    hinge = ERMProblem.build(X, np.where(y == 0, 1.0, -1.0), p=1)
    problems = [hinge, hinge.changed(loss=Logistic()), hinge.changed(loss=PowerHinge(2))]
    for problem, result in zip(problems, solve_all(problems, "newton", options=REGIME), strict=True):
        assert_same(result, solve_newton(problem, options=ITERATIVE))


@needs_signals
def test_ctrl_c_ends_all_of_them():
    X, y = endless()
    first = ERMProblem.build(X, y, p=1, cost=100.0)
    problems = [first, first.changed(labels=-y)]
    start = Point(np.zeros(X.shape[1]), 0.0)
    walks = tuple(SubspaceSolver(problem.reduced(), start).handle for problem in problems)
    arrays = [np.empty(n) for n in (X.shape[1], *2 * [X.shape[0]])]

    def is_on():
        try:
            compiled.write_walk(walks[1], *arrays)
        except RuntimeError:
            return True
        return False

    with CtrlC(is_on) as pressed, pytest.raises(KeyboardInterrupt):
        compiled.go_on(walks, (0.0, 0.0), 10**6)
    assert pressed.seconds < 2
    for walk in walks:  # none is locked
        compiled.write_walk(walk, *arrays)
    with pytest.raises(RuntimeError, match="was interrupted"):
        compiled.go_on(walks, (0.0, 0.0), 1)


def test_who_hears_no_signal_can_be_asked():
    X, y = endless(50_000)
    first = ERMProblem.build(X, y, p=1, cost=100.0)
    start, asked = Point(np.zeros(X.shape[1]), 0.0), []

    def is_cancelled():
        asked.append(len(asked))
        return len(asked) == 3

    walks = tuple(
        SubspaceSolver(problem.reduced(), start).handle for problem in (first, first.changed(labels=-y))
    )
    endings = [place[0] for place in compiled.go_on(walks, (0.0, 0.0), 10**6, is_cancelled)]
    assert asked == [0, 1, 2]
    assert set(endings).isdisjoint((compiled.IS_CLOSE, compiled.SEEMS_CLOSE))

    def fails():
        raise ZeroDivisionError

    walk = SubspaceSolver(first.reduced(), start).handle
    with pytest.raises(ZeroDivisionError):
        compiled.go_on((walk,), (0.0,), 10**6, fails)


@needs_signals
def test_ctrl_c_ends_classes_in_threads_soon(monkeypatch):
    X, y = endless(100_000)
    labels = np.random.default_rng(0).integers(8, size=len(y))
    began = threading.Event()
    original = compiled.go_on

    def go_on(*arguments):
        began.set()
        return original(*arguments)

    monkeypatch.setattr(compiled, "go_on", go_on)
    clf = ERMClassifier(1, p=1, C=100.0, n_jobs=2)
    with CtrlC(began.is_set) as pressed, pytest.raises(KeyboardInterrupt):
        clf.fit(X, labels)
    assert pressed.seconds < 2
