"""SVM-ALM against libsvm, a conic solver and ERM, and against its own steps written out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from baselines.baseline_oracles import small_problem
from conic import solve_conic
from exclusivity import ERMClassifier
from exclusivity.baselines import PSVMClassifier
from exclusivity.baselines.svm_alm import solve_svm_alm
from exclusivity.problem import ERMProblem
from exclusivity.solvers.base import Status

SHAPES = [(24, 5), (40, 3), (12, 30)]
TIGHT = {"tol": 1e-9, "max_iter": 200_000}


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_hinge_loss_equals_libsvm(shape, C, weighted):
    X, y, s = small_problem(*shape)
    s = s if weighted else np.ones(len(y))
    svc = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y, sample_weight=s)
    w, b = svc.coef_[0], svc.intercept_[0]
    optimum = w @ w / 2 + C * (s @ np.maximum(0, 1 - y * (X @ w + b)))

    clf = PSVMClassifier(C=C, p=1, **TIGHT).fit(X, y, sample_weight=s)
    # libsvm keeps its kernel in float32, eps = 6e-8, which costs it up to 1.3e-5 here.
    np.testing.assert_allclose(clf.objective_, optimum, rtol=3e-5)
    assert clf.objective_[0] <= optimum * (1 + 1e-8)
    # f is 1-strongly convex in w: |w - w*|^2 / 2 <= excess.
    assert np.linalg.norm(clf.coef_[0] - w) <= np.sqrt(2 * 3e-5 * optimum)


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "origin"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("p", [1, 2])
def test_both_losses_equal_the_conic_solver(shape, p, fit_intercept):
    X, y, s = small_problem(*shape, seed=1)
    optimum, W, b = solve_conic(X, y, 1, 0.7, p, 1.0, 0.0, s, fit_intercept)
    clf = PSVMClassifier(C=0.7, p=p, fit_intercept=fit_intercept, **TIGHT).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(clf.objective_, optimum, rtol=1e-7)
    np.testing.assert_allclose(clf.coef_[0], W[:, 0], atol=np.sqrt(2 * 1e-7 * optimum))
    if p == 2:  # for p = 1 the best intercept may be an interval
        np.testing.assert_allclose(clf.intercept_, b, atol=1e-3 if fit_intercept else 0)
    assert clf.dual_gap_[0] <= 1e-9


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_squared_hinge_equals_an_erm_of_one_member(C):
    X, y, s = small_problem(60, 8, seed=2)
    erm = ERMClassifier(n_estimators=1, C=C, tol=1e-10).fit(X, y, sample_weight=s)
    clf = PSVMClassifier(C=C, **TIGHT).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(clf.objective_, erm.objective_, rtol=2e-9)
    np.testing.assert_allclose(clf.coef_, erm.coef_, atol=np.sqrt(4e-9 * erm.objective_[0]))
    np.testing.assert_allclose(clf.intercept_, erm.intercept_, atol=1e-4)


def steps_written_out(X, y, C, p, mu, n_steps):
    """The iteration of math.md section 7, with an explicit least-squares problem for (w, b)."""
    n_rows, n_features = X.shape
    e, u = np.zeros(n_rows), np.zeros(n_rows)
    # 1/2 |w|^2 + mu/2 |X w + b - t|^2: one least-squares problem with rows for the ridge.
    A = np.block([[X, np.ones((n_rows, 1))], [np.eye(n_features) / np.sqrt(mu), np.zeros((n_features, 1))]])
    for _ in range(n_steps):
        t = y - e - u / mu
        solution = np.linalg.lstsq(A, np.concatenate([t, np.zeros(n_features)]), rcond=None)[0]
        w, b = solution[:-1], solution[-1]
        for i in range(n_rows):
            s = y[i] - X[i] @ w - b - u[i] / mu
            if p == 1 and y[i] * s > C / mu:
                e[i] = s - C / mu * y[i]
            elif p == 1 and y[i] * s >= 0:
                e[i] = 0
            elif p == 2 and y[i] * s > 0:
                e[i] = s / (1 + 2 * C / mu)
            else:
                e[i] = s
            u[i] += mu * (X[i] @ w + b - y[i] + e[i])
    return w, b, u


@pytest.mark.parametrize("mu", [0.05, 0.7])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("n_steps", [1, 2, 7])
def test_every_iterate_is_that_of_the_description(p, mu, n_steps):
    X, y, _ = small_problem(seed=3)
    w, b, u = steps_written_out(X, y, 1.3, p, mu, n_steps)
    problem = ERMProblem.build(X, y, cost=1.3, p=p)
    result = solve_svm_alm(problem, mu, tol=1e-30, max_iter=n_steps)
    assert result.status is Status.MAX_ITER
    assert len(result.history) == n_steps
    np.testing.assert_allclose(
        result.history.objective[-1], problem.value(w[:, None], np.array([b])), rtol=1e-10
    )
    if n_steps == 1:  # later on the best iterate and the best bound need not be the last ones
        np.testing.assert_allclose(result.weights[:, 0], w, atol=1e-12)
        np.testing.assert_allclose(result.dual, -y * u, atol=1e-12)


@pytest.mark.parametrize("mu", [0.03, 0.3, 3.0])
@pytest.mark.parametrize("p", [1, 2])
def test_mu_changes_the_path_and_not_the_solution(p, mu):
    X, y, _ = small_problem(seed=4)
    by_default = PSVMClassifier(p=p, **TIGHT).fit(X, y)
    clf = PSVMClassifier(p=p, mu=mu, **TIGHT).fit(X, y)
    np.testing.assert_allclose(clf.objective_, by_default.objective_, rtol=2e-9)
    if mu != 0.3:
        assert clf.n_iter_[0] != by_default.n_iter_[0]


@pytest.mark.parametrize("p", [1, 2])
def test_a_weight_of_two_is_a_repeated_row_in_every_iterate(p):
    X, y, _ = small_problem(seed=5)
    weights = np.where(np.arange(len(y)) % 3 == 0, 2, 1)
    for max_iter in (1, 4, 25):
        kwargs = {"tol": 1e-30, "max_iter": max_iter}
        weighted = solve_svm_alm(ERMProblem.build(X, y, p=p, weights=weights), 0.3, **kwargs)
        repeated = solve_svm_alm(
            ERMProblem.build(np.repeat(X, weights, axis=0), np.repeat(y, weights), p=p), 0.3, **kwargs
        )
        for name in ("objective", "bound", "primal_residual", "dual_residual"):
            np.testing.assert_allclose(
                weighted.history.column(name), repeated.history.column(name), rtol=1e-9, atol=1e-12
            )


@pytest.mark.parametrize("p", [1, 2])
def test_order_of_rows_and_sign_of_labels(p):
    X, y, s = small_problem(seed=6)
    clf = PSVMClassifier(p=p).fit(X, y, sample_weight=s)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = PSVMClassifier(p=p).fit(X[order], y[order], sample_weight=s[order])
    np.testing.assert_allclose(shuffled.coef_, clf.coef_, rtol=1e-9)
    swapped = PSVMClassifier(p=p).fit(X, -y, sample_weight=s)
    np.testing.assert_allclose(swapped.coef_, -clf.coef_, rtol=1e-9)
    np.testing.assert_allclose(swapped.intercept_, -clf.intercept_, rtol=1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_a_shift_of_the_features_moves_the_intercept_only(p):
    X, y, _ = small_problem(seed=7)
    clf = PSVMClassifier(p=p).fit(X, y)
    moved = PSVMClassifier(p=p).fit(X + 100, y)
    np.testing.assert_allclose(moved.coef_, clf.coef_, atol=1e-8)
    np.testing.assert_allclose(moved.intercept_, clf.intercept_ - 100 * clf.coef_.sum(), atol=1e-6)


@pytest.mark.parametrize("p", [1, 2])
def test_no_iterate_is_further_from_the_optimum_than_its_gap(p):
    X, y, s = small_problem(seed=8)
    optimum = solve_conic(X, y, 1, 1.0, p, 1.0, 0.0, s)[0]
    history = PSVMClassifier(p=p, tol=1e-6).fit(X, y, sample_weight=s).history_[0]
    assert np.all(history.bound <= optimum * (1 + 1e-8))
    assert np.all(history.objective >= optimum * (1 - 1e-8))
    assert history.gap[-1] <= 1e-6 < history.gap[0]
    for name in ("primal_residual", "dual_residual"):  # they vanish with the gap
        assert history.column(name)[-1] < 0.05 * history.column(name).max()
