"""PSVM against libsvm, a conic solver and ERM, and against its own steps written out."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from conic import solve_conic
from drm_oracles import small_problem
from exclusivity import ERMClassifier
from reproduction.psvm import PSVMClassifier, solve_psvm

SHAPES = [(24, 5), (40, 3), (12, 30)]
TIGHT = {"tol": 1e-9, "max_iter": 200_000}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_hinge_loss_equals_libsvm(shape, C):
    X, y = small_problem(*shape)
    svc = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
    w, b = svc.coef_[0], svc.intercept_[0]
    optimum = w @ w / 2 + C * np.maximum(0, 1 - y * (X @ w + b)).sum()
    clf = PSVMClassifier(C=C, p=1, **TIGHT).fit(X, y)
    # libsvm keeps its kernel in float32, eps = 6e-8, which costs it up to 1.3e-5 here.
    np.testing.assert_allclose(clf.objective_, optimum, rtol=3e-5)
    assert clf.objective_[0] <= optimum * (1 + 1e-8)
    # f is 1-strongly convex in w: |w - w*|^2 / 2 <= excess.
    assert np.linalg.norm(clf.coef_[0] - w) <= np.sqrt(2 * 3e-5 * optimum)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("p", [1, 2])
def test_both_losses_equal_the_conic_solver(shape, p):
    X, y = small_problem(*shape, seed=1)
    optimum, W, b = solve_conic(X, y, 1, 0.7, p, 1.0, 0.0)
    clf = PSVMClassifier(C=0.7, p=p, **TIGHT).fit(X, y)
    np.testing.assert_allclose(clf.objective_, optimum, rtol=1e-7)
    np.testing.assert_allclose(clf.coef_[0], W[:, 0], atol=np.sqrt(2 * 1e-7 * optimum))
    if p == 2:  # for p = 1 the best intercept may be an interval
        np.testing.assert_allclose(clf.intercept_, b, atol=1e-3)
    assert clf.dual_gap_[0] <= 1e-9


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_squared_hinge_equals_an_erm_of_one_member(C):
    X, y = small_problem(60, 8, seed=2)
    erm = ERMClassifier(n_estimators=1, C=C, tol=1e-10).fit(X, y)
    clf = PSVMClassifier(C=C, **TIGHT).fit(X, y)
    np.testing.assert_allclose(clf.objective_, erm.objective_, rtol=2e-9)
    np.testing.assert_allclose(clf.coef_, erm.coef_, atol=np.sqrt(4e-9 * erm.objective_[0]))
    np.testing.assert_allclose(clf.intercept_, erm.intercept_, atol=1e-4)
    np.testing.assert_array_equal(clf.predict(X), erm.predict(X))


def steps_written_out(X, y, C, p, mu, n_steps):
    """The iteration of the description, with an explicit least-squares problem for (w, b)."""
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
    return w, b


@pytest.mark.parametrize("mu", [0.05, 0.7])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("n_steps", [1, 2, 7])
def test_every_iterate_is_that_of_the_description(p, mu, n_steps):
    X, y = small_problem(seed=3)
    w, b = steps_written_out(X, y, 1.3, p, mu, n_steps)
    result = solve_psvm(X, y, cost=1.3, p=p, mu=mu, tol=1e-30, max_iter=n_steps)
    assert len(result.objectives) == n_steps
    objective = w @ w / 2 + 1.3 * (np.maximum(0, 1 - y * (X @ w + b)) ** p).sum()
    np.testing.assert_allclose(result.objectives[-1], objective, rtol=1e-10)


@pytest.mark.parametrize("mu", [0.03, 3.0])
@pytest.mark.parametrize("p", [1, 2])
def test_mu_changes_the_path_and_not_the_solution(p, mu):
    X, y = small_problem(seed=4)
    by_default = PSVMClassifier(p=p, **TIGHT).fit(X, y)
    clf = PSVMClassifier(p=p, mu=mu, **TIGHT).fit(X, y)
    np.testing.assert_allclose(clf.objective_, by_default.objective_, rtol=2e-9)
    assert clf.n_iter_[0] != by_default.n_iter_[0]


@pytest.mark.parametrize("p", [1, 2])
def test_order_of_rows_sign_of_labels_and_shifts(p):
    X, y = small_problem(seed=6)
    clf = PSVMClassifier(p=p).fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    # Sums in another order are rounded differently, and normal equations keep half of the digits.
    np.testing.assert_allclose(PSVMClassifier(p=p).fit(X[order], y[order]).coef_, clf.coef_, rtol=1e-6)
    swapped = PSVMClassifier(p=p).fit(X, -y)
    np.testing.assert_allclose(swapped.coef_, -clf.coef_, rtol=1e-9)
    np.testing.assert_allclose(swapped.intercept_, -clf.intercept_, rtol=1e-9)
    moved = PSVMClassifier(p=p).fit(X + 100, y)
    np.testing.assert_allclose(moved.coef_, clf.coef_, atol=1e-8)
    np.testing.assert_allclose(moved.intercept_, clf.intercept_ - 100 * clf.coef_.sum(), atol=1e-6)


@pytest.mark.parametrize("p", [1, 2])
def test_no_iterate_is_further_from_the_optimum_than_its_gap(p):
    X, y = small_problem(seed=8)
    optimum = solve_conic(X, y, 1, 1.0, p, 1.0, 0.0)[0]
    result = solve_psvm(X, y, cost=1.0, p=p, mu=0.3, tol=1e-6, max_iter=10_000)
    assert np.all(result.bounds <= optimum * (1 + 1e-8))
    assert np.all(result.objectives >= optimum * (1 - 1e-8))
    assert result.gap <= 1e-6


def test_the_dual_vector_is_feasible():
    X, y = small_problem(seed=9)
    for p, largest in ((1, 2.0), (2, np.inf)):
        dual = solve_psvm(X, y, cost=2.0, p=p, mu=0.6, tol=1e-6, max_iter=10_000).dual
        assert np.all(dual >= 0)
        assert np.all(dual <= largest + 1e-12)
        assert abs(y @ dual) <= 1e-12 * dual.sum()


def test_labels_of_any_kind_and_unfinished_fits():
    X, y = small_problem(60, 8)
    names = np.where(y > 0, "yes", "no")
    assert set(PSVMClassifier().fit(X, names).predict(X)) == {"yes", "no"}
    with pytest.raises(ValueError, match="two classes; got 1"):
        PSVMClassifier().fit(X, np.ones(60))
    with pytest.warns(ConvergenceWarning, match="duality gap .* after 2 iterations, above tol=0.0001"):
        PSVMClassifier(max_iter=2).fit(X, y)
