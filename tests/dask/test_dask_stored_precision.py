"""Objective and gap of a Dask fit speak of the weights that the model holds, also where these are float32."""

import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from exclusivity.dask import ERMClassifier
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import solve_newton

pytestmark = pytest.mark.usefixtures("local")


def separable(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    X = X[np.abs(X[:, 0] + X[:, 1]) > 0.3].astype(dtype)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def fitted(X, y, **settings):
    return ERMClassifier(3, **settings).fit(da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=50))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("exclusivity", [1.0, 0.5, np.inf])
@pytest.mark.parametrize("C", [1.0, 1e8])
@pytest.mark.parametrize("p", [1, 2])
def test_the_objective_is_that_of_the_stored_weights(exclusivity, C, p):
    X, y = separable(np.float32)
    clf = fitted(X, y, C=C, p=p, exclusivity=exclusivity)
    assert clf.components_.dtype == np.float32
    problem = ERMProblem.build(
        X.astype(float), 2.0 * y - 1, n_members=3, cost=C, p=p, exclusivity=exclusivity
    )
    stored = problem.value(clf.components_[0].T.astype(float), clf.component_intercepts_[0].astype(float))
    assert clf.objective_[0] == pytest.approx(stored, rel=1e-9)
    if exclusivity <= 1:
        best = solve_newton(problem, tol=1e-9).objective
        assert (stored - best) / stored <= clf.dual_gap_[0] + 1e-8
        assert clf.converged_[0] == (clf.dual_gap_[0] <= clf.tol)


def test_a_solution_that_float32_cannot_hold_is_told():
    X, y = separable(np.float32)
    with pytest.warns(ConvergenceWarning, match=r"rounded to float32.*Fit float64 rows"):
        clf = fitted(X, y, C=1e8, p=1)
    assert not clf.converged_[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert fitted(X.astype(float), y, C=1e8, p=1).converged_[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_class_is_certified_on_its_own_rows():
    X, _ = separable(np.float32)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    clf = fitted(X, y, C=1e6, p=1, multi_class="ovo")
    for number, (low, high) in enumerate([(0, 1), (0, 2), (1, 2)]):
        inside = (y == low) | (y == high)
        labels = np.where(y[inside] == low, 1.0, -1.0)
        problem = ERMProblem.build(X[inside].astype(float), labels, n_members=3, cost=1e6, p=1)
        weights = clf.components_[number].T.astype(float)
        intercepts = clf.component_intercepts_[number].astype(float)
        values = [problem.value(sign * weights, sign * intercepts) for sign in (1, -1)]
        assert clf.objective_[number] == pytest.approx(min(values), rel=1e-9)
