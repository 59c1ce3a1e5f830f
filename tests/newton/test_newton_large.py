"""Many rows, or many features too: samples, bands, borrowed Hessians, conjugate gradients, few passes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from exclusivity.solvers import NewtonOptions, Start, solve_newton
from exclusivity.solvers.interior import drive_interior
from exclusivity.solvers.run import Guess, MemoryRows, Run
from exclusivity.solvers.sums import Point
from newton.newton_cases import assert_honest, blobs, build, plain_objective, radius

TOL = 1e-6


@pytest.fixture(scope="module")
def tall():
    return blobs(120_000, 8, seed=1)


def without_sampling(problem):
    """The same optimum from zero, over all rows at every step."""
    zero = Point(np.zeros(problem.design.n_features), 0.0)
    if problem.loss.p == 1:
        run = Run(problem.objective, TOL, 100, None)
        drive_interior(run, MemoryRows(problem.reduced()), Guess(zero))
        return run.result()
    start = Start(zero.weights[:, None], np.zeros(1))
    return solve_newton(problem, tol=TOL, start=start)


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_samples_and_bands_give_the_optimum_in_few_passes(tall, p):
    X, y = tall
    problem = build(X, y, p=p, cost=0.01)
    result = solve_newton(problem, tol=TOL)
    assert result.converged
    assert result.gap <= TOL
    # Counted, increasing, and few: a method without samples or bands needs 100 to 300 for p = 1.
    passes = result.history.passes
    assert np.all(np.diff(passes) > 0)
    assert passes[0] > 1
    assert passes[-1] < {1: 60, 1.5: 40, 2: 15}[p]

    plain = without_sampling(problem)
    assert plain.converged
    assert_honest(result, plain.objective)
    assert_honest(plain, result.objective)
    assert result.objective == pytest.approx(plain.objective, rel=TOL)
    distance = np.linalg.norm(result.weights - plain.weights)
    assert distance <= radius(problem, result, plain)
    if p < 1.5:
        assert passes[-1] < plain.history.passes[-1] / 2

    again = solve_newton(problem, tol=TOL)
    np.testing.assert_array_equal(again.weights, result.weights)
    np.testing.assert_array_equal(again.dual, result.dual)


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_a_hundred_members_on_many_rows(tall, p):
    X, y = tall[0][:30_000], tall[1][:30_000]
    one = solve_newton(build(X, y, p=p, cost=0.5), tol=TOL)
    many = solve_newton(build(X, y, p=p, cost=50.0, n_members=100), tol=TOL)
    np.testing.assert_array_equal(many.weights[:, 41], one.weights[:, 0])
    assert many.weights.strides[1] == 0
    np.testing.assert_array_equal(many.history.passes, one.history.passes)


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_storage_does_not_matter_on_many_rows(tall, p):
    X, y = tall[0][:24_000], tall[1][:24_000]
    X = np.where(np.abs(X) < 0.5, 0, X).astype(np.float32)
    base = solve_newton(build(X.astype(float), y, p=p, cost=0.1), tol=TOL)
    for data in (X, np.asfortranarray(X), sparse.csr_matrix(X)):
        result = solve_newton(build(data, y, p=p, cost=0.1), tol=TOL)
        np.testing.assert_allclose(result.weights, base.weights, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("p", [1, 1.5, 2])
@pytest.mark.parametrize("case", ["imbalanced", "sorted", "tiny cost", "constant", "no b", "mixed scales"])
def test_nasty_data_with_many_rows(case, p):
    X, y = blobs(24_000, 3, seed=2)
    settings = {"p": p, "cost": 1.0}
    if case == "imbalanced":
        y = np.where(np.arange(24_000) % 1000 == 0, 1.0, -1.0)
        X = X + y[:, None]
    elif case == "sorted":
        X, y = X[np.argsort(y)], np.sort(y)
    elif case == "tiny cost":
        settings["cost"] = 1e-7
    elif case == "constant":
        X = np.ones_like(X)
    elif case == "no b":
        settings["fit_intercept"] = False
    else:
        X = X * [1e-5, 1, 1e5]
    problem = build(X, y, **settings)
    result = solve_newton(problem, tol=TOL)
    assert result.converged
    plain = plain_objective(problem, result.weights[:, 0], result.intercepts[0])
    assert result.objective == pytest.approx(plain, rel=1e-11)
    assert_honest(result, plain, 1e-11)
    assert result.history.passes[-1] < 250


@pytest.mark.parametrize("p", [1.5, 2, 3])
def test_a_sample_that_misses_what_matters_is_only_a_bad_start(p):
    # One feature is zero but in 11 rows, where it is huge: the sample knows nothing of it, and a Newton
    # system borrowed from it would step a thousand times too far.
    X, y = blobs(22_000, 3, seed=4)
    rare = np.zeros(22_000)
    rare[::2000] = 300.0 * y[::2000] * np.where(np.arange(11) % 3, 1, -1)
    problem = build(np.column_stack([X, rare]), y, p=p, cost=0.1)
    result = solve_newton(problem, tol=1e-8)
    plain = without_sampling(problem)
    assert result.converged
    assert_honest(result, plain.objective)
    assert result.objective == pytest.approx(plain.objective, rel=TOL)
    assert result.n_iter <= 30


# ---------------------------------------------------------------- wide and sparse


@pytest.fixture(scope="module")
def wide():
    """6,000 x 6,000, ten numbers per row."""
    rng = np.random.default_rng(0)
    X = sparse.random(
        6000, 6000, density=10 / 6000, format="csr", random_state=rng, data_rvs=rng.standard_normal
    )
    margin = X @ rng.normal(size=6000) + rng.normal(size=6000) + 0.5
    return X, np.where(margin > 0, 1.0, -1.0)


def outside_value(problem, X, y, **settings):
    """F at what LIBLINEAR finds: some point, so that no bound may lie above it."""
    other = LinearSVC(dual=True, C=problem.cost, max_iter=20_000, tol=1e-3, random_state=0, **settings).fit(
        X, y
    )
    return plain_objective(problem, other.coef_[0], other.intercept_[0])


@pytest.mark.usefixtures("without_kernel")
def test_conjugate_gradients_on_wide_sparse_rows_p_2(wide):
    X, y = wide
    problem = build(X, y, p=2)
    result = solve_newton(problem, tol=1e-4)  # "auto": both sides are beyond 4096
    assert result.converged
    assert result.n_iter <= 20
    assert (
        result.history.passes[-1] <= 120
    )  # conjugate gradients included; random rows take more of them than text
    known = outside_value(problem, X, y, loss="squared_hinge")
    assert_honest(result, known)
    assert result.objective <= known * (1 + 1e-4)
    w, b = result.weights[:, 0], result.intercepts[0]
    assert result.objective == pytest.approx(plain_objective(problem, w, b), rel=1e-12)
    forced = solve_newton(problem, tol=1e-4, options=NewtonOptions("iterative"))
    np.testing.assert_array_equal(forced.weights, result.weights)


@pytest.mark.usefixtures("without_kernel")
def test_conjugate_gradients_on_wide_sparse_rows_p_1(wide):
    X, y = wide
    problem = build(X, y, p=1, cost=0.05)
    result = solve_newton(problem, tol=1e-5)
    known = outside_value(problem, X, y, loss="hinge")
    assert_honest(result, known)
    assert result.converged
    assert result.objective <= known * (1 + 1e-5)
