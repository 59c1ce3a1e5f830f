"""What users of scikit-learn's linear models rely on: fixed coefficients, bagging, sparse form, selection."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.svm import LinearSVC

from classifier.erm_cases import binary_data, class_data
from exclusivity import ERMClassifier, ERMClassifierCV, erm_path

EQUAL = {"n_estimators": 3}
APART = {"n_estimators": 3, "exclusivity": np.inf, "random_state": 0}
VOTE = {**APART, "voting": "hard"}
SHARING = {**APART, "exclusivity": 2.0}


# Coefficients are what was fitted


@pytest.mark.parametrize("knobs", [EQUAL, APART, {**EQUAL, "sparsity": 0.5}], ids=str)
@pytest.mark.parametrize(
    "how",
    [lambda c: c, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))],  # noqa: S301
    ids=["itself", "copy", "pickle"],
)
@pytest.mark.parametrize("name", ["coef_", "intercept_", "components_", "component_intercepts_"])
def test_coefficients_cannot_be_changed(knobs, how, name):
    X, y = class_data()
    clf = how(ERMClassifier(**knobs).fit(X, y))
    before = clf.predict(X)
    with pytest.raises(ValueError, match="read-only"):
        getattr(clf, name)[:] = 0
    with pytest.raises(AttributeError):
        setattr(clf, name, np.zeros_like(getattr(clf, name)))
    np.testing.assert_array_equal(clf.predict(X), before)


def test_models_work_from_joblibs_memory_maps(tmp_path):
    X, y = binary_data()
    clf = ERMClassifier(**APART).fit(X, y)
    joblib.dump(clf, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict(X), clf.predict(X))
    np.testing.assert_array_equal(mapped.coef_, clf.coef_)


# Classes without weight


def without(y, *absent):
    return np.where(np.isin(y, absent), 0.0, 1.0)


@pytest.mark.parametrize(
    "knobs", [EQUAL, APART, VOTE, {"n_estimators": 3, "exclusivity": 2.0, "random_state": 0}]
)
@pytest.mark.parametrize("p", [1, 2])
def test_a_class_without_weight_is_never_predicted_and_stays_a_class(knobs, p):
    X, y = class_data(n_classes=4)
    for multi_class in ("ovr", "ovo"):
        clf = ERMClassifier(p=p, multi_class=multi_class, class_weight="balanced", **knobs)
        clf.fit(X, y, sample_weight=without(y, 1, 3))
        np.testing.assert_array_equal(clf.classes_, [0, 1, 2, 3])
        assert clf.decision_function(X).shape == (len(X), 4)
        assert clf.converged_.all()
        labels = clf.predict(X)
        kept = np.isin(y, [0, 2])
        assert set(labels[kept]) == {0, 2}
        # One-vs-one leaves a class without rows no vote of its own: what is left is the two-class problem.
        if multi_class == "ovo":
            alone = clone(clf).set_params(multi_class="ovr").fit(X[kept], y[kept])
            if knobs is EQUAL:
                np.testing.assert_array_equal(labels[kept], alone.predict(X[kept]))


@pytest.mark.parametrize("solver", ["auto", "alm", "paper"])
@pytest.mark.parametrize("only", [0, 1])
def test_one_class_with_weight_is_what_is_predicted(solver, only):
    X, y = binary_data()
    clf = ERMClassifier(3, solver=solver).fit(X, y, sample_weight=without(y, 1 - only))
    np.testing.assert_array_equal(clf.predict(X), only)
    np.testing.assert_array_equal(clf.classes_, [0, 1])
    assert clf.converged_.all()
    assert clf.dual_gap_[0] == 0
    np.testing.assert_array_equal(clf.coef_, 0)


@pytest.mark.parametrize("knobs", [APART, VOTE, SHARING], ids=str)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_one_class_with_weight_among_competing_members(knobs, multi_class):
    X, y = class_data()
    clf = ERMClassifier(multi_class=multi_class, **knobs).fit(X, y, sample_weight=without(y, 0, 2))
    np.testing.assert_array_equal(clf.predict(X), 1)
    assert clf.converged_.all()


def test_without_an_intercept_one_class_is_a_problem_like_any_other():
    X, y = binary_data()
    clf = ERMClassifier(3, fit_intercept=False).fit(X, y, sample_weight=without(y, 0))
    assert np.any(clf.coef_ != 0)
    assert clf.converged_.all()


def test_a_path_over_a_class_without_weight():
    X, y = class_data()
    path = erm_path(X, y, Cs=[0.1, 1.0], sample_weight=without(y, 1))
    assert path.coefs.shape == (2, 3, X.shape[1])
    np.testing.assert_array_equal(path.coefs[:, 1], 0)
    assert path.gaps.max() <= 1e-4


@pytest.mark.parametrize("data", [binary_data(n_rows=12), class_data(n_rows=12)], ids=["two", "three"])
@pytest.mark.parametrize("knobs", [EQUAL, {**EQUAL, "multi_class": "ovo"}, APART, VOTE], ids=str)
@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")
def test_bagging_of_few_rows_works_as_with_linear_svc(data, knobs):
    X, y = data
    settings = {"n_estimators": 12, "max_samples": 3, "random_state": 0}
    bag = BaggingClassifier(ERMClassifier(**knobs), **settings).fit(X, y)
    peer = BaggingClassifier(LinearSVC(), **settings).fit(X, y)
    # The bootstraps are the same: some leave a class out.
    assert any(len(np.unique(y[rows])) < len(bag.classes_) for rows in bag.estimators_samples_)
    shape = (len(X),) if len(bag.classes_) == 2 else (len(X), len(bag.classes_))
    assert bag.decision_function(X).shape == shape  # which LinearSVC, that drops classes, cannot add up
    assert bag.score(X, y) >= peer.score(X, y) - 0.35


# Feature selection


@pytest.mark.parametrize("kind", [ERMClassifier, partial(ERMClassifierCV, Cs=[2.0])], ids=["one C", "cv"])
def test_select_from_model_keeps_what_a_sparse_model_uses(kind):
    X, y = binary_data(n_features=12)
    X[:, 9:] *= 0.01
    sparse_model = kind(2, sparsity=3.0).fit(X, y)
    used = np.flatnonzero(np.abs(sparse_model.coef_[0]) > 1e-5)
    assert 0 < len(used) < 12
    chosen = SelectFromModel(kind(2, sparsity=3.0)).fit(X, y)
    assert chosen.threshold_ == 1e-5
    np.testing.assert_array_equal(chosen.get_support(indices=True), used)
    dense = SelectFromModel(kind(2)).fit(X, y)
    assert dense.threshold_ == pytest.approx(np.abs(dense.estimator_.coef_).mean())
    assert "penalty" not in kind(2).get_params()


# A hard margin


@pytest.mark.parametrize("C", [np.inf, float("inf"), np.float32("inf")])
def test_an_infinite_cost_is_refused_with_what_to_do(C):
    with pytest.raises(ValueError, match=r"C=inf asks for a hard margin.*finite.*C=1e6.*p=1"):
        ERMClassifier(C=C).fit(*binary_data())


def test_the_advice_for_a_hard_margin_is_right():
    X, y = binary_data(noise=0.0)
    first, second = (ERMClassifier(2, C=C, p=1, tol=1e-8).fit(X, y) for C in (1e6, 1e8))
    assert first.score(X, y) == 1
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-3)
