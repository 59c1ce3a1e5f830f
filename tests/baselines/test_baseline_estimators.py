"""PSVMClassifier and DRMClassifier as scikit-learn estimators."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import check_estimator

from baselines.baseline_oracles import small_problem
from exclusivity.baselines import DRMClassifier, PSVMClassifier
from exclusivity.diversity import diversity_report, member_predictions

CONFIGURATIONS = [
    PSVMClassifier(),
    PSVMClassifier(C=0.3, p=1, mu=0.2, tol=1e-3),
    DRMClassifier(),
    DRMClassifier(n_estimators=1),
    DRMClassifier(n_estimators=2, mu=0.1, nu=2.0),
    DRMClassifier(n_estimators=3, mu=0.02, variant="sphere", random_state=0),
]

ALL = [
    PSVMClassifier(),
    PSVMClassifier(p=1),
    DRMClassifier(5),
    DRMClassifier(5, variant="sphere", random_state=0),
]

WEIGHT_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


@pytest.mark.parametrize("estimator", CONFIGURATIONS, ids=str)
def test_every_check_of_scikit_learn_passes(estimator, caplog):
    caplog.set_level(logging.CRITICAL)
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    assert not any(r["expected_to_fail"] for r in results)
    assert sum(r["status"] == "skipped" for r in results) <= 1
    if isinstance(estimator, PSVMClassifier):
        assert {r["check_name"] for r in results if r["status"] == "passed"} >= WEIGHT_CHECKS


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_sparse_and_float32_rows(estimator):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)[:200]
    y = y[:200]
    dense = clone(estimator).fit(X, y)
    in_rows = clone(estimator).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(in_rows.coef_, dense.coef_, atol=1e-3)
    np.testing.assert_allclose(
        in_rows.decision_function(sparse.csr_matrix(X)), in_rows.decision_function(X), atol=1e-12
    )
    single = clone(estimator).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.decision_function(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.objective_, dense.objective_, rtol=1e-3)
    assert np.mean(single.predict(X.astype(np.float32)) == dense.predict(X)) > 0.98


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_three_classes_are_one_against_the_rest(estimator):
    X, y = load_iris(return_X_y=True)
    X, names = scale(X), np.array(["a", "b", "c"])[y]
    clf = clone(estimator).fit(X, names)
    assert clf.coef_.shape == (3, 4)
    assert clf.decision_function(X).shape == (150, 3)
    for shape in (clf.intercept_, clf.objective_, clf.dual_gap_, clf.n_iter_, clf.history_):
        assert len(shape) == 3
    assert clf.score(X, names) > 0.75
    if getattr(estimator, "variant", "") != "sphere":  # random directions are drawn class by class
        binary = clone(estimator).fit(X, names == "c")
        np.testing.assert_allclose(binary.coef_[0], clf.coef_[2], rtol=1e-12)
        np.testing.assert_allclose(binary.objective_[0], clf.objective_[2], rtol=1e-12)


def test_class_weights_multiply_sample_weights():
    X, y, s = small_problem()
    by_class = PSVMClassifier(class_weight={1: 3.0, -1: 0.5}).fit(X, y, sample_weight=s)
    by_row = PSVMClassifier().fit(X, y, sample_weight=s * np.where(y > 0, 3.0, 0.5))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-12)
    dropped = PSVMClassifier().fit(X, y, sample_weight=np.arange(len(y)) != 5)
    np.testing.assert_allclose(
        dropped.coef_, PSVMClassifier().fit(np.delete(X, 5, 0), np.delete(y, 5)).coef_, rtol=1e-12
    )


def test_members_of_a_drm():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    clf = DRMClassifier(4, variant="sphere", mu=0.05, random_state=0).fit(X, y)
    assert clf.components_.shape == (3, 4, 4)
    np.testing.assert_allclose(np.linalg.norm(clf.components_, axis=2), 1, rtol=1e-12)
    scores = clf.component_decision_function(X)
    np.testing.assert_allclose(scores, np.einsum("ij,ckj->ick", X, clf.components_), atol=1e-12)
    np.testing.assert_allclose(clf.decision_function(X), scores.mean(axis=2), atol=1e-12)
    assert np.all(clf.intercept_ == 0)
    assert np.all(np.isnan(clf.dual_gap_))
    np.testing.assert_array_equal(member_predictions(clf, X), scores.argmax(axis=1))
    assert diversity_report(clf, X, y).mutual_angular > 0.1

    relaxed = DRMClassifier(4, mu=0.05, tol=1e-8).fit(X, y)
    assert np.all(relaxed.dual_gap_ <= 1e-8)
    assert diversity_report(relaxed, X, y).mutual_angular < 1e-3
    assert [len(history) for history in relaxed.history_] == relaxed.n_iter_.tolist()


def test_random_state_matters_on_the_sphere_only():
    X, y, _ = small_problem(40, 6)
    for variant, expected in (("relaxed", True), ("sphere", False)):
        one, other = (
            DRMClassifier(3, variant=variant, mu=0.3, random_state=seed).fit(X, y).components_
            for seed in (0, 1)
        )
        assert np.array_equal(one, other) == expected


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            PSVMClassifier(max_iter=2),
            r"1.0 against -1.0: duality gap .* after 2 iterations, above tol=0.0001",
        ),
        (DRMClassifier(max_sweeps=1, tol=1e-9), "duality gap .* after 1 sweeps.*raise max_sweeps"),
        (DRMClassifier(max_sweeps=2, variant="sphere", random_state=0), "gradient .* after 2 sweeps"),
    ],
    ids=str,
)
def test_unfinished_fits_say_so(estimator, message):
    X, y, _ = small_problem(60, 8)
    with pytest.warns(ConvergenceWarning, match=message):
        estimator.fit(X, y)
    assert np.isfinite(estimator.coef_).all()


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (PSVMClassifier(C=0), ValueError, "C must be a number above 0"),
        (PSVMClassifier(C="1"), TypeError, "C must be a number"),
        (PSVMClassifier(p=1.5), ValueError, "p must be 1 or 2"),
        (PSVMClassifier(mu=-1.0), ValueError, "mu must be a number above 0"),
        (PSVMClassifier(tol=0), ValueError, "tol"),
        (PSVMClassifier(max_iter=1.5), TypeError, "max_iter must be an integer"),
        (PSVMClassifier(fit_intercept="no"), TypeError, "fit_intercept must be True or False"),
        (PSVMClassifier(class_weight={7: 1.0}), ValueError, "not a class in y"),
        (DRMClassifier(n_estimators=0), ValueError, "n_estimators must be an integer at least 1"),
        (DRMClassifier(nu=0), ValueError, "nu must be a number above 0"),
        (DRMClassifier(mu=-0.1), ValueError, "mu must be a number at least 0"),
        (DRMClassifier(variant="cube"), ValueError, "variant must be one of 'relaxed', 'sphere'"),
        (DRMClassifier(max_sweeps=0), ValueError, "max_sweeps"),
        (DRMClassifier(tol=np.inf), ValueError, "tol"),
    ],
    ids=str,
)
def test_bad_parameters(estimator, error, message):
    X, y, _ = small_problem()
    with pytest.raises(error, match=message):
        estimator.fit(X, y)


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_bad_data_and_unfitted_use(estimator):
    X, y, _ = small_problem()
    fresh = clone(estimator)
    for use in (fresh.predict, fresh.decision_function):
        with pytest.raises(NotFittedError):
            use(X)
    with pytest.raises(NotFittedError):
        fresh.coef_  # noqa: B018 -- a property
    with pytest.raises(ValueError, match="one class only"):
        fresh.fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="scale the features"):
        fresh.fit(X * 1e150, y)
    assert not hasattr(fresh, "classes_")
