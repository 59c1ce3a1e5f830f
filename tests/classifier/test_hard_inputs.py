"""Inputs that break other libraries: they succeed here, or say clearly what is wrong."""

from __future__ import annotations

import warnings
from time import process_time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from classifier.erm_cases import CONVEX_SOLVERS, GAP_SOLVERS, WARM_SOLVERS, binary_data, class_data
from exclusivity import ERMClassifier

SECONDS = 10
"""What "within seconds" means, in processor time: a loaded machine must not fail a test."""

X2, Y2 = binary_data(n_rows=40, n_features=3)


def separable():
    return X2 + 6 * (2 * Y2 - 1)[:, None], Y2


def imbalanced():
    rng = np.random.default_rng(0)
    X = np.r_[rng.standard_normal((1000, 4)), rng.standard_normal((1, 4)) + 2]
    return X, np.r_[np.zeros(1000, int), 1]


def wide():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 100))
    return X, (X[:, 0] > 0).astype(int)


MUST_SUCCEED = {
    "constant column": (np.c_[X2, np.full(40, 3.0)], Y2),
    "large constant column": (np.c_[X2, np.full(40, 1e6)], Y2),
    "constant columns only": (np.full((40, 3), 7.0), Y2),
    "duplicated columns": (np.c_[X2, X2, X2], Y2),
    "all zero": (np.zeros((40, 3)), Y2),
    "all zero, sparse": (sparse.csr_matrix((40, 3)), Y2),
    "N = 2": (np.array([[0.0, 1.0], [1.0, 3.0]]), np.array([0, 1])),
    "N = 2, equal rows": (np.ones((2, 3)), np.array([0, 1])),
    "N = 3, one row of a class": (np.array([[0.0], [1.0], [0.5]]), np.array([0, 0, 1])),
    "M = 1": (X2[:, :1], Y2),
    "M = 5 N": wide(),
    "scaled by 1e-8": (X2 * 1e-8, Y2),
    "scaled by 1e8": (X2 * 1e8, Y2),
    "mixed from 1e-6 to 1e6": (X2 * [1e-6, 1.0, 1e6], Y2),
    "1 to 1000": imbalanced(),
    "separable": separable(),
    "strings": (X2, np.where(Y2, "yes", "no")),
    "contradictory rows": (np.r_[X2, X2], np.r_[Y2, 1 - Y2]),
    "twelve classes": class_data(n_classes=12, n_rows=36),
}


def fit_quietly(clf, X, y, **more):
    """Fit; the fitted classifier, whether it warned, and the seconds. Other warnings are errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        start = process_time()
        clf.fit(X, y, **more)
        seconds = process_time() - start
    return clf, bool(caught), seconds


def assert_success(clf, warned, seconds, X, y):
    for name in ("components_", "component_intercepts_", "objective_"):
        assert np.isfinite(getattr(clf, name)).all(), name
    assert not np.isnan(clf.dual_gap_).any()
    np.testing.assert_array_equal(clf.converged_, clf.dual_gap_ <= clf.tol)
    if clf.solver != "paper":  # which stops by its own rule
        assert warned == (not clf.converged_.all())
    assert seconds < SECONDS
    assert np.isfinite(clf.decision_function(X)).all()
    assert set(clf.predict(X)) <= set(y)


@pytest.mark.parametrize("name", MUST_SUCCEED)
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
def test_it_succeeds_within_seconds(name, p, solver):
    X, y = MUST_SUCCEED[name]
    max_iter = 500 if solver == "alm" else None  # the others end sooner
    clf, warned, seconds = fit_quietly(ERMClassifier(3, p=p, solver=solver, max_iter=max_iter), X, y)
    assert_success(clf, warned, seconds, X, y)


@pytest.mark.parametrize("name", sorted(set(MUST_SUCCEED) - {"scaled by 1e8"}))
@pytest.mark.parametrize("p", [1, 2])
def test_the_default_solver_certifies_all_but_the_worst(name, p):
    X, y = MUST_SUCCEED[name]
    clf, warned, _ = fit_quietly(ERMClassifier(p=p), X, y)
    assert not warned
    assert np.all(clf.dual_gap_ <= 1e-4)


@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
@pytest.mark.parametrize("p", [1, 2])
def test_answers_where_the_answer_is_known(solver, p):
    for name in ("separable", "N = 2", "M = 5 N"):
        X, y = MUST_SUCCEED[name]
        if solver != "paper" or name == "separable":
            assert ERMClassifier(3, p=p, solver=solver).fit(X, y).score(X, y) == 1.0
    if solver != "paper":
        same = ERMClassifier(3, p=p, solver=solver, tol=1e-7).fit(*MUST_SUCCEED["all zero"])
        np.testing.assert_allclose(same.coef_, 0, atol=1e-3)
        assert set(same.predict(MUST_SUCCEED["all zero"][0])) == {round(Y2.mean())}
        constant = ERMClassifier(3, p=p, solver=solver, tol=1e-7).fit(*MUST_SUCCEED["constant column"])
        np.testing.assert_allclose(constant.coef_[0, -1], 0, atol=1e-2)
        twins = ERMClassifier(3, p=p, solver=solver, tol=1e-7).fit(*MUST_SUCCEED["duplicated columns"])
        np.testing.assert_allclose(twins.coef_[0, :3], twins.coef_[0, 3:6], atol=1e-2)


@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
@pytest.mark.parametrize("size", [1e6, 1e8])
def test_features_far_from_zero(solver, size):
    clf, warned, seconds = fit_quietly(ERMClassifier(3, solver=solver), X2 + size, Y2)
    assert_success(clf, warned, seconds, X2 + size, Y2)


# Scales from 1e-300 to 1e300: a right answer or a clear error


@pytest.mark.parametrize("exponent", [*range(-300, 301, 60), -154, -8, 8, 100, 139, 141, 160])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
def test_any_scale_gives_a_right_answer_or_a_clear_error(exponent, p, solver):
    X = X2 / np.abs(X2).max() * 10.0**exponent
    clf = ERMClassifier(2, p=p, solver=solver, max_iter=100)
    try:
        clf, warned, seconds = fit_quietly(clf, X, Y2)
    except ValueError as error:
        assert exponent > 100, "refused without need"
        assert "scale the features" in str(error)  # noqa: PT017 -- both outcomes are right
        return
    assert_success(clf, warned, seconds, X, Y2)
    if not clf.converged_.all() and exponent > 0:
        # no certificate, but it still has to separate the classes about as well as at scale 1
        assert clf.score(X, Y2) > 0.8


@pytest.mark.parametrize("exponent", range(-36, 37, 6))
@pytest.mark.parametrize("p", [1, 2])
def test_any_scale_of_float32(exponent, p):
    X = (X2 * 10.0**exponent).astype(np.float32)
    clf, warned, seconds = fit_quietly(ERMClassifier(2, p=p, max_iter=100), X, Y2)
    assert clf.coef_.dtype == np.float32
    assert_success(clf, warned, seconds, X, Y2)


@pytest.mark.parametrize("cost", [1e-12, 1e-4, 1e6, 1e12])
@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
def test_any_cost(cost, solver):
    clf, warned, seconds = fit_quietly(ERMClassifier(3, C=cost, solver=solver, max_iter=2000), X2, Y2)
    assert_success(clf, warned, seconds, X2, Y2)


@pytest.mark.parametrize("size", [1e-12, 1e-4, 1e6, 1e12])
@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
def test_any_size_of_weights(size, solver):
    weights = size * np.linspace(0.5, 2, len(Y2))
    clf = ERMClassifier(3, solver=solver, max_iter=2000)
    clf, warned, seconds = fit_quietly(clf, X2, Y2, sample_weight=weights)
    assert_success(clf, warned, seconds, X2, Y2)


@pytest.mark.parametrize("p", [1.001, 1.1, 2.5, 10, 50])
@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
def test_any_power(p, solver):
    clf, warned, seconds = fit_quietly(ERMClassifier(3, p=p, solver=solver), X2, Y2)
    assert_success(clf, warned, seconds, X2, Y2)


def test_a_thousand_members_and_a_large_sparsity():
    clf, warned, seconds = fit_quietly(ERMClassifier(1000), X2, Y2)
    assert_success(clf, warned, seconds, X2, Y2)
    clf, warned, seconds = fit_quietly(ERMClassifier(sparsity=1e6), X2, Y2)
    assert_success(clf, warned, seconds, X2, Y2)
    np.testing.assert_array_equal(clf.coef_, 0)


# Clear errors: data

BAD_DATA = {
    "one class": (X2, np.zeros(40), ValueError, "at least 2 classes"),
    "one class of strings": (X2, ["a"] * 40, ValueError, "one class only: .*a"),
    "no rows": (X2[:0], Y2[:0], ValueError, r"0 sample\(s\).*minimum of 1"),
    "no columns": (X2[:, :0], Y2, ValueError, r"0 feature\(s\).*minimum of 1"),
    "NaN": (np.where(X2 > 1, np.nan, X2), Y2, ValueError, "X contains NaN"),
    "inf": (np.where(X2 > 1, np.inf, X2), Y2, ValueError, "X contains infinity"),
    "NaN, sparse": (sparse.csr_matrix(np.where(X2 > 1, np.nan, X2)), Y2, ValueError, "X contains NaN"),
    "NaN in y": (X2, np.where(Y2, 1.0, np.nan), ValueError, "y contains NaN"),
    "no y": (X2, None, ValueError, "requires y to be passed"),
    "lengths": (X2, Y2[:7], ValueError, r"inconsistent numbers of samples: \[40, 7\]"),
    "one dimension": (X2[:, 0], Y2, ValueError, "Expected 2D array"),
    "three dimensions": (X2[None], Y2, ValueError, "Found array with dim 3"),
    "text": (np.full((40, 2), "red", dtype=object), Y2, ValueError, "could not convert string to float"),
    "text, not object": (np.full((40, 2), "red"), Y2, ValueError, "could not convert string to float"),
    "text in a frame": (pd.DataFrame({"a": ["x"] * 40}), Y2, ValueError, "could not convert string to float"),
    "objects": (
        np.full((40, 2), {}, dtype=object),
        Y2,
        (TypeError, ValueError),
        "float.*dict|setting an array",
    ),
    "complex": (X2 * 1j, Y2, ValueError, "Complex data not supported"),
    "continuous": (X2, X2[:, 0], ValueError, "Unknown label type: continuous"),
    "several outputs": (X2, np.c_[Y2, Y2], ValueError, "y should be a 1d array"),
    "mixed labels": (X2, np.array([1, "a"] * 20, dtype=object), ValueError, "Unknown label type"),
    "bytes": (X2, np.array([b"x", b"y"] * 20), TypeError, "bytes is not supported"),
    "missing values in a frame": (pd.DataFrame(X2).where(X2 < 1), Y2, ValueError, "X contains NaN"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_is_a_clear_error(name):
    X, y, kind, message = BAD_DATA[name]
    with pytest.raises(kind, match=message):
        ERMClassifier().fit(X, y)


BAD_WEIGHTS = {
    "negative": (np.r_[-1.0, np.ones(39)], "sample_weight must not be negative"),
    "all zero": (np.zeros(40), "sample_weight is zero for every row"),
    "too short": (np.ones(7), r"sample_weight must have one value per row, shape \(40,\); got shape \(7,\)"),
    "two-dimensional": (np.ones((40, 1)), "sample_weight must have one value per row"),
    "NaN": (np.r_[np.nan, np.ones(39)], "sample_weight contains NaN"),
    "inf": (np.r_[np.inf, np.ones(39)], "sample_weight contains NaN or infinity"),
    "text": (["a"] * 40, "sample_weight must hold numbers"),
}


@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights_are_a_clear_error(name):
    weights, message = BAD_WEIGHTS[name]
    with pytest.raises(ValueError, match=message):
        ERMClassifier().fit(X2, Y2, sample_weight=weights)


def test_rows_to_predict_must_look_like_those_of_fit():
    clf = ERMClassifier().fit(X2, Y2)
    for method in (clf.predict, clf.decision_function, clf.component_decision_function):
        with pytest.raises(ValueError, match="X has 2 features, but ERMClassifier is expecting 3"):
            method(X2[:, :2])
        with pytest.raises(ValueError, match="X has 4 features"):
            method(sparse.csr_matrix((5, 4)))
        with pytest.raises(ValueError, match="X contains NaN"):
            method(np.full((1, 3), np.nan))
        with pytest.raises(ValueError, match="X contains infinity"):
            method(np.full((1, 3), np.inf))
        with pytest.raises(ValueError, match="Expected 2D array"):
            method(X2[0])


def test_names_of_columns_must_be_those_of_fit():
    frame = pd.DataFrame(X2, columns=["a", "b", "c"])
    clf = ERMClassifier().fit(frame, Y2)
    with pytest.raises(ValueError, match=r"feature names should match[\s\S]*- z"):
        clf.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="must be in the same order"):
        clf.predict(frame[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        clf.predict(X2)


# Clear errors: parameters

BAD_PARAMETERS = [
    ({"n_estimators": 0}, ValueError, "n_estimators must be an integer at least 1.*got 0"),
    ({"n_estimators": -3}, ValueError, "n_estimators"),
    ({"n_estimators": 2.5}, TypeError, "n_estimators must be an integer; got 2.5"),
    ({"n_estimators": 2.0}, TypeError, "n_estimators must be an integer"),
    ({"n_estimators": True}, TypeError, "n_estimators must be an integer; got True"),
    ({"n_estimators": "3"}, TypeError, "n_estimators"),
    ({"n_estimators": None}, TypeError, "n_estimators"),
    ({"C": 0}, ValueError, "C must be a number above 0"),
    ({"C": -1.0}, ValueError, "C must be a number above 0.*got -1.0"),
    ({"C": np.nan}, ValueError, "C must be"),
    ({"C": np.inf}, ValueError, "C must be .*finite"),
    ({"C": "big"}, TypeError, "C must be a number; got 'big'"),
    ({"p": 0.99}, ValueError, "p must be a number at least 1"),
    ({"p": -1}, ValueError, "p must be"),
    ({"p": np.inf}, ValueError, "p must be .*finite"),
    ({"p": np.nan}, ValueError, "p must be"),
    ({"p": "2"}, TypeError, "p must be a number"),
    ({"exclusivity": -0.1}, ValueError, "exclusivity must be a number at least 0; got -0.1"),
    ({"exclusivity": np.nan}, ValueError, "exclusivity must be"),
    ({"exclusivity": None}, TypeError, "exclusivity must be a number"),
    ({"sparsity": -1}, ValueError, "sparsity must be a number at least 0"),
    ({"sparsity": np.inf}, ValueError, "sparsity"),
    ({"tol": 0}, ValueError, "tol must be a number above 0"),
    ({"tol": None}, TypeError, "tol must be a number"),
    ({"max_iter": 0}, ValueError, "max_iter must be an integer at least 1"),
    ({"max_iter": 10.5}, TypeError, "max_iter must be an integer"),
    ({"voting": "loud"}, ValueError, "voting must be one of 'soft', 'hard', 'runoff'; got 'loud'"),
    ({"multi_class": "crammer_singer"}, ValueError, "multi_class must be one of 'ovr', 'ovo'"),
    ({"fit_intercept": 1}, TypeError, "fit_intercept must be True or False"),
    ({"warm_start": "yes"}, TypeError, "warm_start must be True or False"),
    ({"verbose": -1}, ValueError, "verbose"),
    ({"verbose": "much"}, TypeError, "verbose must be an integer"),
    ({"solver": "magic"}, ValueError, "solver must be one of 'auto', .*'paper'.*; got 'magic'"),
    ({"solver": None}, ValueError, "solver must be one of"),
    ({"solver_options": [("mu0", 1)]}, TypeError, "solver_options must be a mapping"),
    ({"solver_options": "mu0"}, TypeError, "solver_options must be a mapping"),
    ({"random_state": "dice"}, ValueError, "cannot be used to seed"),
    ({"n_jobs": 0}, ValueError, "n_jobs"),
    ({"class_weight": "even"}, ValueError, "class_weight must be None, 'balanced' or a mapping.*got 'even'"),
    ({"class_weight": [1, 2]}, ValueError, "class_weight must be None, 'balanced' or a mapping"),
    (
        {"class_weight": {0: 1, 7: 2}},
        ValueError,
        r"class_weight names 7, which is not a class in y: \[0, 1\]",
    ),
    ({"class_weight": {"a": 2}}, ValueError, "class_weight names 'a'"),
    ({"class_weight": {0: -1}}, ValueError, "class_weight must be positive and finite"),
    ({"class_weight": {0: np.nan}}, ValueError, "class_weight must be positive and finite"),
    ({"class_weight": {0: "heavy"}}, ValueError, "class_weight"),
]


@pytest.mark.parametrize(
    ("parameters", "kind", "message"), BAD_PARAMETERS, ids=[str(c[0]) for c in BAD_PARAMETERS]
)
def test_bad_parameters_are_a_clear_error(parameters, kind, message):
    clf = ERMClassifier(**parameters)  # never in the constructor
    with pytest.raises(kind, match=message):
        clf.fit(X2, Y2)


@pytest.mark.parametrize("groups", [[0, 0, 1], np.array([0, 1, 2]), len])
def test_feature_groups_are_not_ignored(groups):
    with pytest.raises(ValueError, match=r"feature_groups only matters.*leave feature_groups None"):
        ERMClassifier(feature_groups=groups).fit(X2, Y2)


@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
@pytest.mark.parametrize(
    "options", [{"nonsense": 1}, {"nonsense": 1, "MU0": 2}, {"": 0}, {1: 2}, {1: 2, "b": 3}]
)
def test_unknown_options_name_themselves_and_the_known_ones(solver, options):
    with pytest.raises(ValueError, match=f"Unknown solver option .*'{solver}' takes"):
        ERMClassifier(solver=solver, solver_options=options).fit(X2, Y2)


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("paper", {"start": "zeros"}, "option start must be 'ones' or 'random'; got 'zeros'"),
        ("paper", {"w_step": "fast"}, "option w_step must be"),
        ("paper", {"mu0": 0}, "option mu0 must be a finite number > 0"),
        ("paper", {"rho": 0.9}, "option rho must be a finite number >= 1"),
        ("paper", {"change": -1}, "option change must be"),
        ("paper", {"eps": "small"}, "option eps must be"),
        ("alm", {"mu0": -1}, "option mu0 must be a finite number > 0; got -1"),
        ("alm", {"balance": "no"}, "option balance must be True or False"),
    ],
)
def test_values_of_options_are_checked(solver, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ERMClassifier(solver=solver, solver_options=options).fit(X2, Y2)


def test_options_of_another_solver_are_not_ignored():
    with pytest.raises(ValueError, match="Unknown solver option 'balance'"):
        ERMClassifier(solver="paper", solver_options={"balance": True}).fit(X2, Y2)


@pytest.mark.parametrize("name", ["coef_", "intercept_"])
def test_no_averaged_model_under_hard_voting(name):
    clf = ERMClassifier(voting="hard").fit(X2, Y2)
    assert not hasattr(clf, name)
    with pytest.raises(AttributeError, match=f"{name} does not exist under voting='hard'.*voting='soft'"):
        getattr(clf, name)
    assert hasattr(clf.set_params(voting="soft"), name)


@pytest.mark.parametrize("solver", WARM_SOLVERS)
def test_warm_start_with_another_width_or_other_classes(solver):
    X, y = class_data()
    clf = ERMClassifier(solver=solver, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start=True.*4 features.*with 3.*set warm_start=False"):
        clf.fit(X[:, :3], y)
    clf = ERMClassifier(solver=solver, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start=True.*3 binary problems.*set warm_start=False"):
        clf.fit(X, y == 0)


@pytest.mark.parametrize(
    "bad", [(X2[:, :2], np.zeros(40)), (X2[:, :2], X2[:, 0])], ids=["one class", "continuous"]
)
def test_a_fit_that_fails_leaves_the_old_model_or_none(bad):
    """Not a mixture: the width of the new data with the weights of the old."""
    clf = ERMClassifier().fit(X2, Y2)
    before = clf.predict(X2)
    with pytest.raises(ValueError, match=r"class|label"):
        clf.fit(*bad)
    try:
        after = clf.predict(X2)
    except NotFittedError:
        return
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("solver", WARM_SOLVERS)
def test_a_refused_warm_start_leaves_the_old_model_or_none(solver):
    clf = ERMClassifier(solver=solver, warm_start=True).fit(X2, Y2)
    before = clf.predict(X2)
    with pytest.raises(ValueError, match="set warm_start=False"):
        clf.fit(X2[:, :2], Y2)
    try:
        after = clf.predict(X2)
    except NotFittedError:
        return
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("solver", GAP_SOLVERS)
def test_falling_short_is_said(solver):
    with pytest.warns(ConvergenceWarning, match="gap"):
        clf = ERMClassifier(solver=solver, p=1, max_iter=1, tol=1e-9).fit(X2, Y2)
    assert not clf.converged_.any()
