"""Warm starts go on where the last fit stopped: many short fits end where a long one does."""

from __future__ import annotations

import warnings
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from classifier.erm_cases import binary_data, class_data
from exclusivity import ERMClassifier
from exclusivity.io import load_model, save_model
from exclusivity.solvers import interior as shrinking, newton as solver

METHODS = {
    "interior, p=1": {"p": 1},
    "interior, p=1.5": {"p": 1.5},
    "interior, penalty": {"p": 2, "sparsity": 0.5},
    "interior, p=1, penalty": {"p": 1, "sparsity": 0.5},
    "semismooth, p=1.5": {"p": 1.5, "solver_options": {"regime": "semismooth"}},
    "semismooth, p=2": {"p": 2},
    "semismooth, p=3": {"p": 3},
    "truncated, p=1": {"p": 1, "solver_options": {"regime": "iterative"}},
    "truncated, p=1.5": {"p": 1.5, "solver_options": {"regime": "iterative"}},
    "truncated, p=2": {"p": 2, "solver_options": {"regime": "iterative"}},
    "alm, p=1": {"p": 1, "solver": "alm", "tol": 1e-3},
    "alm, p=2": {"p": 2, "solver": "alm", "tol": 1e-3},
    "competing": {"exclusivity": 2.0, "random_state": 0},
    "disjoint": {"exclusivity": np.inf, "random_state": 0},
}

by_method = pytest.mark.parametrize("knobs", METHODS.values(), ids=METHODS.keys())


def machine(**knobs):
    return ERMClassifier(3, C=1.0, **{"tol": 1e-7, **knobs})


def quietly(clf, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(X, y)


def fits_until_converged(clf, X, y, most):
    """How many fits it takes until all problems are certified; at most ``most``."""
    for count in range(1, most + 1):
        quietly(clf, X, y)
        if clf.converged_.all():
            return count
    pytest.fail(f"{most} fits did not do it: gap {clf.dual_gap_}")


@pytest.fixture(scope="module")
def long_fit():
    """A function from the name of a method to its fit without a limit; each is fitted once."""

    @cache
    def fit(name):
        return machine(warm_start=True, **METHODS[name]).fit(*binary_data())

    return fit


@pytest.mark.parametrize("max_iter", [1, 2, 8])
@pytest.mark.parametrize("name", METHODS)
def test_short_fits_reach_the_optimum_in_as_many_iterations_as_a_long_one(name, max_iter, long_fit):
    knobs, whole = METHODS[name], long_fit(name)
    X, y = binary_data()
    assert whole.converged_.all()
    clf = machine(max_iter=max_iter, warm_start=True, **knobs)
    # A few more for rounding, and for preconditioners that are made anew.
    most = int(np.ceil(1.2 * whole.n_iter_[0] / max_iter)) + 1
    fits_until_converged(clf, X, y, most)
    assert clf.objective_[0] == pytest.approx(whole.objective_[0], rel=2 * clf.tol)
    assert (
        clf.n_iter_[0] <= max_iter or knobs.get("exclusivity", 1) > 1
    )  # their first sweep is always finished


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("knobs", [{"p": 1}, {"p": 2}, {"exclusivity": 2.0, "random_state": 0}], ids=str)
def test_all_classes_go_on(multi_class, knobs):
    X, y = class_data()
    whole = machine(multi_class=multi_class, **knobs).fit(X, y)
    clf = machine(multi_class=multi_class, max_iter=3, warm_start=True, **knobs)
    fits_until_converged(clf, X, y, int(np.ceil(whole.n_iter_.max() / 3)) + 1)
    np.testing.assert_allclose(clf.objective_, whole.objective_, rtol=1e-6)


@by_method
def test_one_iteration_takes_a_step(knobs):
    X, y = binary_data()
    clf = quietly(machine(max_iter=1, **knobs), X, y)
    assert np.any(clf.components_ != 0)
    assert clf.n_iter_[0] == 1 or clf.exclusivity > 1


def test_float32_rows_go_on_too():
    X, y = binary_data()
    clf = machine(p=1, max_iter=2, warm_start=True)
    fits_until_converged(clf, X.astype(np.float32), y, 15)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("rounds", [1, 7, 25])
def test_the_papers_algorithm_goes_on_to_the_letter(p, rounds):
    X, y = binary_data()
    knobs = {"p": p, "solver": "paper", "solver_options": {"change": 0.0}}
    whole = quietly(machine(max_iter=50, **knobs), X, y)
    clf = machine(max_iter=rounds, warm_start=True, **knobs)
    for _ in range(50 // rounds):
        quietly(clf, X, y)
    missing = machine(max_iter=rounds * (50 // rounds), **knobs)
    expected = whole if missing.max_iter == 50 else quietly(missing, X, y)
    np.testing.assert_allclose(clf.components_, expected.components_, rtol=1e-9, atol=1e-12)
    assert clf.dual_gap_[0] == pytest.approx(expected.dual_gap_[0], rel=1e-6)


def test_the_papers_algorithm_ends_by_its_rule_whichever_way():
    X, y = binary_data()
    whole = ERMClassifier(3, solver="paper").fit(X, y)
    clf = ERMClassifier(3, solver="paper", max_iter=1, warm_start=True)
    for _ in range(whole.n_iter_[0] - 1):
        with pytest.warns(ConvergenceWarning, match="iteration limit"):
            clf.fit(X, y)
    clf.fit(X, y)  # the rule is met: no warning
    np.testing.assert_allclose(clf.coef_, whole.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "change", [{"C": 3.0}, {"n_estimators": 4}, {"p": 1}, {"fit_intercept": False}], ids=str
)
def test_the_papers_algorithm_refuses_to_start_elsewhere(change):
    X, y = binary_data()
    clf = ERMClassifier(3, solver="paper", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"solver='paper'.*the same solver, rows and parameters"):
        clf.set_params(**change).fit(X, y)
    other = ERMClassifier(3, warm_start=True).fit(X, y).set_params(solver="paper")
    with pytest.raises(ValueError, match=r"prescribes its own start.*warm_start=False"):
        other.fit(X, y)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("change", ["rows", "order", "C"])
def test_a_state_of_another_problem_is_no_start(name, change, long_fit):
    # An interior point that has nearly converged is a bad place for another problem to start from.
    X, y = binary_data()
    clf = deepcopy(long_fit(name))
    if change == "rows":
        X = X + 0.3 * np.random.default_rng(1).standard_normal(X.shape)
    elif change == "order":
        order = np.random.default_rng(1).permutation(len(X))
        X, y = X[order], y[order]
    else:
        clf.set_params(C=5.0)
    clf.fit(X, y)
    cold = clone(clf).set_params(warm_start=False).fit(X, y)
    assert clf.converged_.all()
    if clf.exclusivity <= 1:
        assert clf.objective_[0] == pytest.approx(cold.objective_[0], rel=2 * clf.tol)


@pytest.mark.parametrize(("first", "second"), [("alm", "newton"), ("newton", "alm")])
def test_another_solver_takes_the_point_and_not_the_state(first, second):
    X, y = binary_data()
    clf = quietly(machine(solver=first, max_iter=2, warm_start=True), X, y)
    clf.set_params(solver=second, max_iter=None, tol=1e-5).fit(X, y)
    assert clf.converged_.all()


def test_bands_of_many_rows_go_on(monkeypatch):
    monkeypatch.setattr(solver, "MANY_ROWS", 500)
    monkeypatch.setattr(shrinking, "_LARGEST_SHARE", 1.0)  # never hand over to truncated Newton
    monkeypatch.setattr(shrinking, "_SPREAD", 0.3)  # narrow bands: many of them
    X, y = binary_data(n_rows=1500, n_features=3)
    whole = machine(p=1).fit(X, y)
    assert whole.n_iter_[0] > 1
    clf = machine(p=1, max_iter=1, warm_start=True)
    assert fits_until_converged(clf, X, y, whole.n_iter_[0] + 1) == whole.n_iter_[0]


def test_copies_go_on_and_model_files_begin_at_the_weights(tmp_path):
    X, y = binary_data()
    clf = quietly(machine(p=1, max_iter=4, warm_start=True), X, y)
    twin = quietly(deepcopy(clf), X, y)
    quietly(clf, X, y)
    np.testing.assert_array_equal(twin.coef_, clf.coef_)
    save_model(clf, tmp_path / "model.erm")
    loaded = load_model(tmp_path / "model.erm")
    assert loaded._starts == []
    np.testing.assert_array_equal(loaded.coef_, clf.coef_)
    assert loaded.set_params(max_iter=None).fit(X, y).converged_.all()


def test_a_cold_classifier_keeps_nothing():
    X, y = binary_data()
    assert machine(p=1).fit(X, y)._starts == []


@pytest.mark.parametrize(
    "knobs",
    [
        {"p": 1},
        {"p": 1.5},
        {"solver_options": {"regime": "interior"}},
        {"solver": "alm"},
        {"loss": "logistic"},
    ],
)
def test_each_row_twice_in_place_of_weight_two_is_a_start_of_other_rows(knobs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    clf = ERMClassifier(3, C=5.0, warm_start=True, max_iter=1, tol=1e-12, **knobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        before = clf.fit(X, y, sample_weight=np.full(60, 2.0)).objective_
        clf.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))  # the same objective, and twice as many multipliers
    assert clf.objective_ <= before * (1 + 1e-9)
    assert clf.set_params(max_iter=None, tol=1e-8).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).converged_[0]
