"""Objective and gap speak of the weights that a model holds, also where these are float32."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from exclusivity import ERMClassifier, erm_path
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import solve_newton


def separable(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    X = X[np.abs(X[:, 0] + X[:, 1]) > 0.3].astype(dtype)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def problem_of(clf, X, y):
    return ERMProblem.build(
        X.astype(float),
        2.0 * y - 1,
        n_members=clf.n_estimators,
        cost=clf.C,
        p=clf.p,
        exclusivity=clf.exclusivity,
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("setting", [{}, {"solver": "alm"}, {"exclusivity": 0.5}, {"exclusivity": np.inf}])
@pytest.mark.parametrize("C", [1.0, 1e8])
@pytest.mark.parametrize("p", [1, 2])
def test_the_objective_is_that_of_the_stored_weights(setting, C, p):
    X, y = separable(np.float32)
    clf = ERMClassifier(3, C=C, p=p, max_iter=200, **setting).fit(X, y)
    assert clf.components_.dtype == np.float32
    problem = problem_of(clf, X, y)
    stored = problem.value(clf.components_[0].T.astype(float), clf.component_intercepts_[0].astype(float))
    assert clf.objective_[0] == pytest.approx(stored, rel=1e-9)
    if clf.exclusivity <= 1:
        best = solve_newton(problem, tol=1e-9).objective
        assert (stored - best) / stored <= clf.dual_gap_[0] + 1e-8
        assert clf.converged_[0] == (clf.dual_gap_[0] <= clf.tol)


def test_a_solution_that_float32_cannot_hold_is_told():
    X, y = separable(np.float32)
    with pytest.warns(ConvergenceWarning, match=r"rounded to float32.*Fit float64 rows"):
        clf = ERMClassifier(3, C=1e8, p=1).fit(X, y)
    assert not clf.converged_[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert ERMClassifier(3, C=1e8, p=1).fit(X.astype(float), y).converged_[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_path_tells_the_same():
    X, y = separable(np.float32)
    path = erm_path(X, y, Cs=[1.0, 1e8], p=1, n_estimators=3)
    for clf in path.classifiers:
        stored = problem_of(clf, X, y).value(
            clf.components_[0].T.astype(float), clf.component_intercepts_[0].astype(float)
        )
        assert clf.objective_[0] == pytest.approx(stored, rel=1e-9)
    assert path.gaps[1, 0] > 1e-4 > path.gaps[0, 0]
