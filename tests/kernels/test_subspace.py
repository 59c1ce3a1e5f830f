"""The compiled solver over sparse rows: its optimum, what does not matter to it, how it ends."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from itertools import pairwise
from time import monotonic, sleep
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import SVC

from benchmarks.workloads import text_rows
from conic import objective_by_loops
from ctrl_c import CtrlC, needs_signals
from exclusivity import ERMClassifier, erm_path
from exclusivity.kernels import compiled
from exclusivity.objective.losses import PowerHinge, SmoothHinge
from exclusivity.objective.objective import ERMProblem, dual_bound, member_costs
from exclusivity.solvers import Start, Status, solve_newton, subspace as subspace_module
from exclusivity.solvers.run import Guess, Run
from exclusivity.solvers.subspace import SubspaceSolver, drive_subspace, has_kernel
from exclusivity.solvers.sums import Point
from kernels.kernel_cases import (
    ITERATIVE,
    TALL,
    WIDE,
    by_loss,
    counted_runs,
    endless,
    needs_compiled,
    only_python,
    sparse_rows,
)
from newton.newton_cases import assert_honest, oracle, plain_objective, radius

pytestmark = needs_compiled


def solved(problem, tol=1e-7, **settings):
    """What "newton" finds, and that the kernel has been used."""
    with counted_runs() as runs:
        result = solve_newton(problem, tol=tol, options=ITERATIVE, **settings)
    assert runs
    return result


def alone(problem, tol=1e-7):
    """Where the compiled solver comes by itself, no other method being there to help."""
    run, reduced = Run(problem.objective, tol, 500), problem.reduced()
    start = Point(np.zeros(reduced.design.n_features), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # as in ``solve_newton``
        drive_subspace(run, reduced, Guess(start))
        return run.result(reduced.design.n_rows)


def smooth_oracle(X, y, cost, weights, fit_intercept):
    """F at what a conic solver finds: half of cvxpy's Huber function of the positive part."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.huber(cp.pos(1 - cp.multiply(y, X @ w + b)), 1) / 2
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(w) / 2 + cost * (weights @ loss)), [] if fit_intercept else [b == 0]
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # F will tell
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    shortfall = 1 - y * (X @ w.value + b.value)
    return w.value @ w.value / 2 + cost * (weights @ SmoothHinge().value(shortfall))


def best_known(X, y, loss, cost, weights, fit_intercept):
    """F at the optimum of independent solvers."""
    X = X.toarray()
    if isinstance(loss, SmoothHinge):
        return smooth_oracle(X, y, cost, weights, fit_intercept)
    found, W, b = oracle(X, y, cost=cost, p=loss.p, weights=weights, fit_intercept=fit_intercept)
    assert found == pytest.approx(objective_by_loops(X, y, W, b, cost, loss.p, 1.0, 0.0, weights))
    return found


def assert_same(problem, result, other, change=lambda w, b: (w, b)):
    """Two results of which the first, changed, is the optimum of the same problem as the other."""
    for one in (result, other):
        assert one.converged
    assert result.objective == pytest.approx(other.objective, rel=2e-7)
    w, b = change(result.weights[:, 0], result.intercepts[0])
    assert np.linalg.norm(w - other.weights[:, 0]) <= radius(problem, result, other)
    value = problem.value(w[:, None], np.array([b]))
    assert value == pytest.approx(other.objective, rel=2e-7)


def counts(X):
    """How many hold on to the arrays of a matrix."""
    return [sys.getrefcount(part) for part in (X.data, X.indices, X.indptr)]


# ---------------------------------------------------------------- the optimum


@by_loss
@settings(deadline=None, max_examples=8)
@given(
    seed=st.integers(0, 10_000),
    shape=st.sampled_from([TALL, WIDE]),
    exponent=st.floats(-3, 3),
    fit_intercept=st.booleans(),
    is_weighted=st.booleans(),
    tol=st.sampled_from([1e-6, 1e-7, 1e-8]),
)
def test_it_is_the_optimum_of_independent_solvers(
    loss, seed, shape, exponent, fit_intercept, is_weighted, tol
):
    X, y = sparse_rows(*shape, seed)
    rng, cost = np.random.default_rng(seed), 10.0**exponent
    weights = rng.uniform(0.2, 3, size=len(y)) if is_weighted else np.ones(len(y))
    problem = ERMProblem.build(X, y, loss=loss, cost=cost, weights=weights, fit_intercept=fit_intercept)
    assert has_kernel(problem)
    known = best_known(X, y, loss, cost, weights, fit_intercept)
    rounding = 1e-7 if cost > 100 else 1e-8  # of the other solvers
    by_itself = alone(problem, tol)
    assert_honest(by_itself, known, rounding)
    assert by_itself.gap <= 100 * tol or cost >= 1  # where it may be too slow
    result = solve_newton(problem, tol=tol, options=ITERATIVE)
    with only_python():
        plain = solve_newton(problem, tol=tol, options=ITERATIVE)
    for one in (result, plain):
        assert one.converged
        assert one.objective <= known * (1 + tol + rounding)
        assert_honest(one, known, rounding)
    assert result.objective == pytest.approx(plain.objective, rel=tol)
    assert np.all(result.dual >= 0)
    assert np.all(result.dual <= loss.largest_slope * member_costs(problem) * (1 + 1e-12))


@pytest.mark.parametrize("is_weighted", [True, False])
@pytest.mark.parametrize("cost", [0.01, 1.0, 20.0])
def test_the_hinge_is_that_of_libsvm(cost, is_weighted):
    X, y = sparse_rows(200, 90, 6)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=200) if is_weighted else np.ones(200)
    problem = ERMProblem.build(X, y, p=1, cost=cost, weights=weights)
    other = SVC(kernel="linear", C=cost, tol=1e-9).fit(X, y, sample_weight=weights)
    known = plain_objective(problem, other.coef_.toarray()[0], other.intercept_[0])
    result = solved(problem, 1e-8)
    assert result.converged
    assert_honest(result, known)
    assert result.objective <= known * (1 + 1e-8)


@by_loss
def test_many_members_that_differ_in_their_exclusivity_are_one_problem(loss):
    X, y = sparse_rows(*TALL)
    one = solved(ERMProblem.build(X, y, loss=loss, cost=2.0))
    many = ERMProblem.build(X, y, loss=loss, cost=2.0 * 2.0, n_members=3, exclusivity=0.5)
    assert many.kappa == 2.0
    result = solved(many)
    assert result.objective == pytest.approx(6 * one.objective, rel=1e-12)
    np.testing.assert_array_equal(result.weights, np.repeat(one.weights, 3, axis=1))


# ---------------------------------------------------------------- what does not matter


@by_loss
def test_the_order_of_rows_does_not_matter(loss):
    X, y = sparse_rows(*TALL)
    weights = np.random.default_rng(2).uniform(0.5, 2, size=len(y))
    order = np.random.default_rng(0).permutation(len(y))
    problem = ERMProblem.build(X, y, loss=loss, weights=weights)
    other = ERMProblem.build(X[order], y[order], loss=loss, weights=weights[order])
    assert_same(problem, solved(other), solved(problem))


@by_loss
def test_the_order_of_features_does_not_matter(loss):
    X, y = sparse_rows(*TALL)
    order = np.random.default_rng(0).permutation(X.shape[1])
    problem = ERMProblem.build(X, y, loss=loss)
    moved = solved(ERMProblem.build(sparse.csr_array(X[:, order]), y, loss=loss))
    assert_same(problem, moved, solved(problem), lambda w, b: (w[np.argsort(order)], b))


@by_loss
def test_a_row_twice_is_a_row_of_weight_two(loss):
    X, y = sparse_rows(*TALL)
    counts = np.random.default_rng(0).integers(1, 4, size=len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    problem = ERMProblem.build(X, y, loss=loss, weights=counts.astype(float))
    assert_same(problem, solved(ERMProblem.build(X[rows], y[rows], loss=loss)), solved(problem))


@by_loss
def test_flipped_labels_flip_the_plane(loss):
    X, y = sparse_rows(*TALL)
    problem = ERMProblem.build(X, y, loss=loss)
    flipped = solved(ERMProblem.build(X, -y, loss=loss))
    assert_same(problem, flipped, solved(problem), lambda w, b: (-w, -b))


@by_loss
def test_longer_rows_are_higher_costs(loss):
    """1/2 |w|^2 + C sum phi(1 - y (s x . w + b)) is 1/s^2 of the same with s w for w, x for s x and s^2 C."""
    X, y = sparse_rows(*TALL)
    problem = ERMProblem.build(X, y, loss=loss, cost=9.0)
    scaled = solved(ERMProblem.build(3.0 * X, y, loss=loss))
    assert 9 * scaled.objective == pytest.approx(solved(problem).objective, rel=2e-7)


@by_loss
def test_indices_of_64_bits_are_as_good(loss):
    X, y = sparse_rows(*TALL)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    results = []
    for data in (X, wide):
        with counted_runs() as runs:
            results.append(solve_newton(ERMProblem.build(data, y, loss=loss), options=ITERATIVE))
        assert {columns for _, columns in runs} == {data.indices.dtype}
    np.testing.assert_array_equal(results[0].weights, results[1].weights)
    np.testing.assert_array_equal(results[0].dual, results[1].dual)


@by_loss
@pytest.mark.parametrize("shape", [TALL, WIDE, (1200, 700, 12)])
def test_float32_is_widened_and_not_rounded_again(loss, shape):
    X, y = sparse_rows(*shape)
    narrow = X.astype(np.float32)
    with counted_runs() as runs:
        found = solve_newton(ERMProblem.build(narrow, y, loss=loss), tol=1e-7, options=ITERATIVE)
    assert {numbers for numbers, _ in runs} == {np.dtype(np.float32)}
    same = solved(ERMProblem.build(narrow.astype(float), y, loss=loss))
    # As close as two runs of the same numbers are, far closer than the tolerance.
    np.testing.assert_allclose(found.weights, same.weights, atol=1e-9 * np.abs(same.weights).max(), rtol=0)
    assert found.objective == pytest.approx(same.objective, rel=1e-12)


def scrambled(X, seed=0):
    """The same rows: some numbers stored in two parts, zeros stored too, columns in any order."""
    rng, rows = np.random.default_rng(seed), []
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        columns, numbers = X.indices[start:stop], X.data[start:stop]
        columns = np.concatenate([columns, columns[:1], rng.integers(X.shape[1], size=1)])
        numbers = np.concatenate([numbers, numbers[:1] / 4, [0.0]])
        numbers[: min(1, stop - start)] *= 0.75
        order = rng.permutation(len(columns))
        rows.append((columns[order], numbers[order]))
    starts = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    parts = [np.concatenate(part) for part in zip(*rows, strict=True)]
    made = sparse.csr_array(X.shape)
    made.data, made.indices, made.indptr = parts[1], parts[0].astype(np.int32), starts.astype(np.int32)
    return made


@by_loss
def test_zeros_order_and_parts_of_stored_numbers_do_not_matter(loss):
    X, y = sparse_rows(60, 60, 3)
    messy = scrambled(X)
    assert messy.nnz > X.nnz
    np.testing.assert_allclose(messy.toarray(), X.toarray(), rtol=1e-15)
    problem = ERMProblem.build(X, y, loss=loss)
    result = solved(ERMProblem.build(messy, y, loss=loss))
    assert_same(problem, result, solved(problem))


@by_loss
def test_rows_and_features_may_be_empty(loss):
    X, _ = sparse_rows(*TALL)
    padded = sparse.csr_array(sparse.block_diag([X, sparse.csr_array((20, 40))], format="csr"))
    padded = sparse.csr_array(padded[np.random.default_rng(0).permutation(80)])
    empty = np.diff(padded.indptr) == 0
    assert empty.sum() == 20
    labels = np.where(np.arange(80) % 3 == 0, 1.0, -1.0)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=80)
    problem = ERMProblem.build(padded, labels, loss=loss, cost=0.7, weights=weights)
    result = solved(problem)
    assert result.converged
    assert_honest(result, best_known(padded, labels, loss, 0.7, weights, True), 1e-8)
    np.testing.assert_array_equal(result.weights[30:], 0)


@by_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_matrix_without_numbers_has_the_best_intercept(loss, fit_intercept):
    y = np.array([1.0, -1.0, -1.0, -1.0])
    problem = ERMProblem.build(sparse.csr_array((4, 3)), y, loss=loss, fit_intercept=fit_intercept)
    result = solved(problem)
    assert result.converged
    np.testing.assert_array_equal(result.weights, 0)
    at_best = {PowerHinge(1): 2.0, PowerHinge(2): 3.0, SmoothHinge(): 1.5}[loss]  # b = -1, -1/2, and -1/2
    at_zero = {PowerHinge(1): 4.0, PowerHinge(2): 4.0, SmoothHinge(): 2.0}[loss]
    if loss == SmoothHinge():  # 3/2 (1 + b)^2 + 1/2 - b has its minimum at b = -2/3
        at_best = 1.5 / 9 + 0.5 + 2 / 3
    assert result.objective == pytest.approx(at_best if fit_intercept else at_zero, rel=1e-7)


@by_loss
def test_a_class_may_have_one_row(loss):
    X, _ = sparse_rows(*TALL)
    y = np.where(np.arange(60) == 7, 1.0, -1.0)
    problem = ERMProblem.build(X, y, loss=loss, cost=2.0)
    result = solved(problem)
    assert result.converged
    assert_honest(result, best_known(X, y, loss, 2.0, np.ones(60), True), 1e-8)


@by_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_may_all_be_of_one_class(loss, fit_intercept):
    X, _ = sparse_rows(*TALL)
    problem = ERMProblem.build(X, np.ones(60), loss=loss, fit_intercept=fit_intercept)
    result = solved(problem)
    if fit_intercept:
        assert result.objective == pytest.approx(0, abs=1e-12)
    else:
        assert result.converged
        assert_honest(result, best_known(X, np.ones(60), loss, 1.0, np.ones(60), False), 1e-8)


# ---------------------------------------------------------------- rows held out


@pytest.fixture(scope="module")
def text():
    return text_rows(2500, 4000, 30)


def few_rows_that_matter(wrong, n_rows=8000):
    """Rows of 40 features that tell the classes well apart and 3,000 rare ones, some rows mislabelled."""
    rng = np.random.default_rng(0)
    columns = np.column_stack(
        [rng.integers(40, size=(n_rows, 4)), 40 + rng.integers(3000, size=(n_rows, 2))]
    ).astype(np.int32)
    numbers = rng.normal(size=(n_rows, 6)) * [1, 1, 1, 1, 0.1, 0.1]
    starts = np.arange(0, 6 * n_rows + 1, 6, dtype=np.int32)
    X = sparse.csr_array((numbers.ravel(), columns.ravel(), starts), shape=(n_rows, 3040))
    scores = X[:, :40] @ rng.normal(size=40) + 0.2
    clear = np.abs(scores) > 1
    X, y = X[clear], np.where(scores[clear] > 0, 1.0, -1.0)
    return X, np.where(rng.random(len(y)) < wrong, -y, y)


class Step(NamedTuple):
    """What a solver says of itself after a step, and how many passes that took."""

    passes: float
    ending: int
    intercept: float
    width: float
    objective: float
    bound: float
    norm: float
    weights: np.ndarray
    slopes: np.ndarray
    dual: np.ndarray


def steps_of(problem, goal, *, has_preconditioner, most=300):
    """Every step of a solver."""
    reduced = problem.reduced()
    n_rows, n_features = reduced.design.X.shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subspace_module, "has_few_rows", lambda problem: not has_preconditioner)
        solver = SubspaceSolver(reduced, Point(np.zeros(n_features), 0.0))
    before = 0.0
    for _ in range(most):
        ending, *place, passes = compiled.advance(solver.handle, goal, 1)
        arrays = np.empty(n_features), np.empty(n_rows), np.empty(n_rows)
        compiled.write_iterate(solver.handle, *arrays)
        yield Step(passes - before, ending, *place, *arrays)
        before = passes
        if ending != compiled.STEP_LIMIT:
            return


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("has_preconditioner", [True, False])
@pytest.mark.parametrize(
    ("loss", "cost", "wrong"),
    [(PowerHinge(1), 0.3, 0.02), (PowerHinge(2), 10.0, 0.0), (SmoothHinge(), 10.0, 0.002)],
    ids=str,
)
def test_what_the_kernel_says_of_its_iterate_is_so_at_every_step(
    loss, cost, wrong, has_preconditioner, fit_intercept
):
    X, y = few_rows_that_matter(wrong)
    problem = ERMProblem.build(X, y, loss=loss, cost=cost, fit_intercept=fit_intercept)
    costs, top, k = member_costs(problem.reduced()), loss.largest_slope, loss.conjugate_stiffness
    steps = list(steps_of(problem, 1e-5, has_preconditioner=has_preconditioner))
    for step in steps:
        w, b, a = step.weights, step.intercept, step.slopes
        dual_weights, proven = X.T @ (y * costs * a), X.T @ (y * costs * step.dual)
        assert step.norm == pytest.approx(
            np.linalg.norm(w - dual_weights), rel=1e-6, abs=1e-9 * np.linalg.norm(w)
        )
        bound = costs @ step.dual - proven @ proven / 2 - k / 2 * costs @ step.dual**2
        assert step.bound == pytest.approx(bound, abs=1e-9 * step.objective)
        for each in (a, step.dual):
            assert 0 <= each.min() <= each.max() <= top
        # Rows whose slope is 0 or the largest are on a line, and stay there while they are held out.
        s = 1 - y * (X @ w + b)
        losses = np.where((a == 0) | (a == top), a * (s - k * a / 2), loss.value(s))
        assert step.objective == pytest.approx(w @ w / 2 + costs @ losses, rel=1e-9)
    # Half of a pass are products with all rows. A step of less than an eighth was over a quarter of the
    # numbers at most, or the loss was sharpened: rows have been held out.
    same_loss = [two.passes for one, two in pairwise(steps) if one.width == two.width and two.passes > 0]
    assert min(same_loss) < 0.125
    # In the end nothing is held out.
    last = steps[-1]
    assert last.ending == compiled.CONVERGED
    value = problem.reduced().value(last.weights[:, None], np.array([last.intercept]))
    assert last.objective == pytest.approx(value, rel=1e-9)
    assert (value - last.bound) / value <= 1e-5
    assert dual_bound(problem.reduced(), costs * last.dual) == pytest.approx(last.bound, rel=1e-4)


@by_loss
@pytest.mark.parametrize("cost", [0.3, 10.0])
@pytest.mark.parametrize("easy", [True, False])
def test_rows_held_out_lead_to_the_same_optimum(loss, cost, easy, text):
    problem = ERMProblem.build(*(few_rows_that_matter(0.005) if easy else text), loss=loss, cost=cost)
    result = solved(problem)
    with only_python():
        plain = solve_newton(problem, tol=1e-7, options=ITERATIVE)
    assert_same(problem, result, plain)
    assert_honest(result, plain.objective)
    assert_honest(plain, result.objective)


@by_loss
def test_two_runs_are_the_same_to_the_bit(loss, text):
    one, two = (solved(ERMProblem.build(*text, loss=loss, cost=3.0)) for _ in range(2))
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.intercepts, two.intercepts)
    np.testing.assert_array_equal(one.dual, two.dual)
    assert one.gap == two.gap


@pytest.mark.parametrize("settings", [{"p": 1}, {"p": 2}, {"loss": "smooth_hinge"}], ids=str)
def test_threads_do_not_matter_to_the_bit(settings, text):
    X, y = text
    classes = np.where(y > 0, np.where(np.arange(len(y)) % 2 == 0, "a", "b"), "c")
    with counted_runs() as runs:
        one, two = (ERMClassifier(2, n_jobs=n, **settings).fit(X, classes) for n in (1, 2))
    assert len(runs) == 6
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.component_intercepts_, two.component_intercepts_)
    np.testing.assert_array_equal(one.dual_gap_, two.dual_gap_)


@by_loss
def test_a_run_from_the_optimum_of_a_cost_close_by_is_shorter(loss, text):
    problem = ERMProblem.build(*text, loss=loss, cost=1.0)
    near = solved(problem.changed(cost=0.95), 1e-6)
    cold, warm = solved(problem, 2e-7), solved(problem, 2e-7, start=Start.after(near, 1.0 / 0.95))
    assert_same(problem, warm, cold)
    assert warm.history.passes[-1] < cold.history.passes[-1]
    assert_honest(warm, cold.objective)


@pytest.mark.parametrize("settings", [{"p": 1}, {"p": 2}, {"loss": "smooth_hinge"}], ids=str)
def test_paths_and_warm_starts_use_the_kernel_too(settings, text):
    X, y = text
    costs = [0.5, 1.0, 2.0]
    with counted_runs() as runs:
        path = erm_path(X, y, Cs=costs, tol=1e-6, **settings)
        n_of_path = len(runs)
        clf = ERMClassifier(warm_start=True, tol=1e-6, **settings)
        fits = [clf.set_params(C=cost).fit(X, y).objective_[0] for cost in costs]
    assert n_of_path >= 3
    assert len(runs) - n_of_path >= 3
    with only_python():
        plain = [ERMClassifier(C=cost, tol=1e-6, **settings).fit(X, y).objective_[0] for cost in costs]
    np.testing.assert_allclose(fits, plain, rtol=1e-6)
    np.testing.assert_allclose([one.objective_[0] for one in path.classifiers], plain, rtol=1e-6)


# ---------------------------------------------------------------- ends before the end


LONG = {"p": 1, "cost": 3.0}


def test_the_number_of_iterations_is_a_limit(text):
    problem = ERMProblem.build(*text, **LONG)
    whole = solved(problem, 1e-9)
    assert whole.converged
    assert whole.n_iter >= 3
    part = solved(problem, 1e-9, max_iter=3)
    assert part.status is Status.MAX_ITER
    assert not part.converged
    assert part.n_iter == 3
    assert_honest(part, whole.objective)
    rest = solved(problem, 1e-9, start=Start.after(part, 1.0))
    assert rest.converged
    assert rest.history.passes[-1] < whole.history.passes[-1]  # it goes on where it was


def test_a_callback_sees_every_certificate_and_may_end_the_run(text):
    problem, seen = ERMProblem.build(*text, **LONG), []

    def callback(state):
        value = problem.value(state.weights, state.intercepts)
        assert state.record.objective == pytest.approx(value, rel=1e-12)
        assert state.record.bound <= value
        seen.append(state.record.passes)
        return len(seen) == 2

    result = solved(problem, 1e-9, callback=callback)
    assert result.status is Status.CALLBACK
    assert not result.converged
    assert result.n_iter == len(seen) == 2
    assert 0 < seen[0] < seen[1]


def test_an_error_in_a_callback_ends_the_run_and_gives_the_rows_back(text):
    X, y = text
    problem = ERMProblem.build(X, y, **LONG)
    solved(problem, 0.1)  # what the problem remembers of its rows it remembers from here on
    before = counts(X)

    def callback(state):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        solved(problem, 1e-9, callback=callback)
    gc.collect()
    assert counts(X) == before


def test_a_fit_that_ends_early_says_so_and_goes_on_where_it_was(text):
    X, y = text
    settings = {"p": 1, "C": 3.0, "tol": 1e-9, "warm_start": True}
    with counted_runs() as runs, pytest.warns(ConvergenceWarning, match="after 1 iterations"):
        clf = ERMClassifier(max_iter=1, **settings).fit(X, y)
    assert len(runs) == 1
    assert not clf.converged_.any()
    assert clf.dual_gap_[0] > 1e-9
    clf.set_params(max_iter=None).fit(X, y)
    assert clf.converged_.all()
    assert len(runs) == 1


# ---------------------------------------------------------------- Ctrl-C


@needs_signals
def test_ctrl_c_is_heard_within_the_compiled_run():
    X, y = endless()
    problem = ERMProblem.build(X, y, p=1, cost=100.0)
    before = counts(X)
    solver = SubspaceSolver(problem.reduced(), Point(np.zeros(X.shape[1]), 0.0))
    arrays = [np.empty(n) for n in (X.shape[1], *2 * [X.shape[0]])]

    def is_on(solver=solver.handle):
        try:
            compiled.write_iterate(solver, *arrays)
        except RuntimeError:
            return True
        return False

    # One call, which would go on for a hundred steps before it could find itself too slow.
    with CtrlC(is_on) as pressed, pytest.raises(KeyboardInterrupt):
        compiled.advance(solver.handle, 0.0, 10**6)
    assert pressed.seconds < 2
    # The solver is over, but no longer on: nothing has been locked.
    with pytest.raises(RuntimeError, match="was interrupted"):
        compiled.advance(solver.handle, 0.0, 10**6)
    compiled.write_iterate(solver.handle, *arrays)
    assert counts(X) > before
    del solver, is_on, pressed
    assert counts(X) == before


@needs_signals
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_fit_by_the_kernel(n_jobs):
    X, y = endless(40_000)
    classes = np.where(y > 0, "a", np.where(np.arange(len(y)) % 2 == 0, "b", "c"))
    clf = ERMClassifier(p=1, C=100.0, tol=1e-14, n_jobs=n_jobs, solver_options={"regime": "iterative"})
    before, threads = counts(X), threading.active_count()
    with (
        counted_runs() as runs,
        CtrlC(lambda: len(runs) >= n_jobs) as pressed,
        pytest.raises(KeyboardInterrupt),
    ):
        clf.fit(X, classes)
    assert pressed.seconds < 2
    until = monotonic() + 20  # a thread that was being started when Ctrl-C came is nobody's to wait for
    while threading.active_count() > threads and monotonic() < until:
        sleep(0.01)
    assert threading.active_count() <= threads, "threads go on in the background"
    gc.collect()
    assert counts(X) == before
    with pytest.raises(NotFittedError):
        clf.predict(X)
    few = slice(0, 300)
    clf.set_params(C=0.01, tol=1e-4).fit(X[few], classes[few])
    assert clf.converged_.all()


# ---------------------------------------------------------------- numbers of any size


@by_loss
@pytest.mark.parametrize("shape", [TALL, WIDE])
@pytest.mark.parametrize("cost", [1.0, 1e12])
@pytest.mark.parametrize("scale", [1e-300, 1e-100])
def test_rows_of_almost_nothing_leave_the_intercept(scale, cost, shape, loss):
    X, y = sparse_rows(*shape, seed=1)
    result = solved(ERMProblem.build(scale * X, y, loss=loss, cost=cost))
    b = np.linspace(-1, 1, 2001)
    best = loss.value(1 - np.multiply.outer(y, b)).sum(axis=0).min()
    assert result.converged
    assert cost * best * (1 - 1e-5) <= result.objective <= cost * best * (1 + 1e-7)


@by_loss
@pytest.mark.parametrize(
    ("scale", "cost"), [(1e8, 1.0), (1e100, 1.0), (1e150, 1e12), (1e160, 1.0), (1e300, 1e12)]
)
def test_rows_of_any_length_have_an_honest_end(scale, cost, loss):
    X, y = sparse_rows(*TALL, seed=1)
    problem = ERMProblem.build(scale * X, y, loss=loss, cost=cost)
    by_itself = alone(problem, 1e-6)
    assert not by_itself.converged or np.isfinite(by_itself.objective)
    assert by_itself.n_iter < 50  # steps that lead nowhere are no reason to take more of them
    result = solved(problem, 1e-6, max_iter=None if scale == 1e8 else 50)
    assert np.all(np.isfinite(result.weights))
    assert np.all(np.isfinite(result.intercepts))
    assert 0 <= result.gap <= 1
    assert result.converged == (result.gap <= 1e-6)
    value = problem.value(result.weights, result.intercepts)
    assert result.objective == pytest.approx(value, rel=1e-9)
    assert np.all(result.history.bound <= value)
    assert result.converged or scale > 1e8
    # Nothing is worse than weights of zero.
    assert result.objective <= problem.value(np.zeros((30, 1)), np.zeros(1)) * (1 + 1e-12)


@by_loss
def test_a_cost_beyond_all_measure_is_mended_by_others(loss):
    X, y = sparse_rows(*TALL, seed=2)
    problem = ERMProblem.build(X, y, loss=loss, cost=1e12)
    result = solved(problem, 1e-6)
    with only_python():
        plain = solve_newton(problem, tol=1e-6)
    assert result.converged
    assert plain.converged
    assert result.objective == pytest.approx(plain.objective, rel=1e-6)


@pytest.mark.parametrize("settings", [{"p": 1}, {"p": 2}, {"loss": "smooth_hinge"}], ids=str)
def test_a_fit_of_rows_that_are_too_long_is_told(settings):
    X, y = sparse_rows(500, 450, 5)
    with pytest.raises(ValueError, match="squares leave the range of floating point"):
        ERMClassifier(**settings).fit(1e160 * X, y)
    with counted_runs() as runs, pytest.warns(ConvergenceWarning):
        clf = ERMClassifier(C=1e12, max_iter=5, **settings).fit(1e130 * X, y)
    assert runs
    assert not clf.converged_.any()
    assert np.all(np.isfinite(clf.coef_))


# ---------------------------------------------------------------- arrays as people have them


def unaligned(array):
    """The same numbers one byte away from where processors like them."""
    room = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(array.dtype)
    moved[:] = array
    return moved


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_unaligned_arrays_go_by_python(part):
    X, y = sparse_rows(*TALL, seed=3)
    good = solve_newton(ERMProblem.build(X, y, p=2), tol=1e-8, options=ITERATIVE)
    setattr(X, part, unaligned(getattr(X, part)))
    problem = ERMProblem.build(X, y, p=2)
    assert not has_kernel(problem.reduced())
    assert solve_newton(problem, tol=1e-8, options=ITERATIVE).objective == pytest.approx(good.objective)


def test_labels_need_not_be_contiguous():
    X, y = sparse_rows(*TALL, seed=3)
    strided = np.repeat(y, 2)[::2]
    one, two = (
        solve_newton(ERMProblem.build(X, labels, p=1), tol=1e-6, options=ITERATIVE) for labels in (y, strided)
    )
    assert np.array_equal(one.weights, two.weights)


# ---------------------------------------------------------------- rows that were held out


@by_loss
def test_all_rows_are_checked_before_it_has_converged(loss):
    X, y = sparse_rows(3000, 800, 8)
    reduced = ERMProblem.build(X, y, loss=loss, cost=0.3 if loss.is_hinge else 4.0).reduced()
    solver = SubspaceSolver(reduced, Point(np.zeros(X.shape[1]), 0.0)).handle
    ending, passes = compiled.STEP_LIMIT, [0.0]
    while ending == compiled.STEP_LIMIT:
        ending, *place = compiled.advance(solver, 1e-4, 1)
        passes.append(place[-1])
    assert ending == compiled.CONVERGED
    steps = np.diff(passes)
    assert steps[:-1].min() < 0.5  # of the active rows alone
    assert steps[-1] > 0.1  # of the rows that were held out, which are most of them


def test_a_cost_that_vanishes_is_refused():
    X, y = sparse_rows(60, 30, 3)
    with pytest.raises(ValueError, match="would vanish in floating point"):
        ERMProblem.build(X * 1e200, y, p=1, cost=1e-200, weights=np.full(len(y), 1e-200))


# ---------------------------------------------------------------- several classes


def classes_of_noise(n_classes, n_rows=1500, n_features=400):
    """Rows enough for some to be held out, of classes of different sizes."""
    X, _ = sparse_rows(n_rows, n_features, 8)
    rng = np.random.default_rng(0)
    scores = X @ rng.normal(size=(n_features, n_classes)) + np.linspace(0, 2, n_classes)
    return X, scores.argmax(axis=1)


@pytest.mark.parametrize("p", [1, 2])
def test_a_classifier_does_not_depend_on_jobs(p):
    X, y = classes_of_noise(11)
    one, two = (ERMClassifier(3, p=p, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    np.testing.assert_array_equal(one.dual_gap_, two.dual_gap_)


def test_where_the_kernel_comes_to_little_others_go_on(monkeypatch):
    """Every call of the kernel ends after a step: Newton-CG has to take over."""
    monkeypatch.setattr(subspace_module, "_MOST_STEPS", 1)
    X, y = classes_of_noise(3)
    for label in range(3):
        problem = ERMProblem.build(X, np.where(y == label, 1.0, -1.0), p=1, cost=10.0)
        assert solved(problem, 1e-6).converged


def test_a_thread_that_gets_no_signal_can_be_cancelled():
    X, y = endless(50_000)
    reduced = ERMProblem.build(X, y, p=1, cost=100.0).reduced()
    start, asked = Point(np.zeros(X.shape[1]), 0.0), []

    def is_cancelled():
        asked.append(len(asked))
        return len(asked) == 3

    ending = compiled.advance(SubspaceSolver(reduced, start).handle, 0.0, 10**6, is_cancelled)[0]
    assert asked == [0, 1, 2]
    assert ending != compiled.CONVERGED

    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compiled.advance(SubspaceSolver(reduced, start).handle, 0.0, 10**6, fails)


@needs_signals
def test_ctrl_c_ends_classes_in_threads_soon(monkeypatch):
    X, _ = endless(100_000)
    labels = np.random.default_rng(0).integers(8, size=X.shape[0])
    began = threading.Event()
    original = compiled.advance

    def advance(*arguments):
        began.set()
        return original(*arguments)

    monkeypatch.setattr(compiled, "advance", advance)
    clf = ERMClassifier(1, p=1, C=100.0, n_jobs=2)
    with CtrlC(began.is_set) as pressed, pytest.raises(KeyboardInterrupt):
        clf.fit(X, labels)
    assert pressed.seconds < 2


# ---------------------------------------------------------------- classes that two words nearly separate


def two_words(noise, seed):
    """Short texts: those with both of two words are the class, but for a share of the labels."""
    rng, n_rows, n_words = np.random.default_rng(seed), 20_000, 5000
    first, second = rng.random((2, n_rows)) < 0.15
    y = np.where(first & second, 1.0, -1.0)
    y[rng.random(n_rows) < noise] *= -1
    others = np.minimum(rng.zipf(1.4, size=(n_rows, 12)), n_words) + 1
    rows = [np.repeat(np.arange(n_rows), 12), np.flatnonzero(first), np.flatnonzero(second)]
    columns = [others.ravel(), np.zeros(len(rows[1]), dtype=int), np.ones(len(rows[2]), dtype=int)]
    places = np.concatenate(rows), np.concatenate(columns)
    X = sparse.csr_array((np.ones(len(places[0])), places), shape=(n_rows, n_words + 2))
    X.sum_duplicates()
    rarity = np.log(n_rows / np.maximum(np.bincount(X.indices, minlength=n_words + 2), 1)) + 1
    X = sparse.csr_array((rarity[X.indices], X.indices, X.indptr), shape=X.shape)
    return sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None])), y


@pytest.mark.parametrize("seed", [0, 1])
def test_a_class_that_two_words_nearly_separate_does_not_stall(seed):
    """Without the wider loss that "SURPRISE" in subspace.c asks for it takes 99 and 81 certificates."""
    problem = ERMProblem.build(*two_words(0.001, seed), p=1, cost=100.0)
    result = solve_newton(problem, tol=1e-4, options=ITERATIVE)
    assert result.converged
    assert result.n_iter <= 40
