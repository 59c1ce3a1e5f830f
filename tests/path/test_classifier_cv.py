"""ERMClassifierCV against a plain grid search, and the contract of a scikit-learn estimator."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy import sparse
from sklearn import clone, config_context
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from classifier.erm_cases import binary_data, class_data
from exclusivity import ERMClassifier, ERMClassifierCV

CS = [0.01, 0.1, 1.0, 10.0]


@pytest.mark.parametrize(
    "configuration",
    [
        {"Cs": [1.0], "cv": 2, "p": 1, "n_estimators": 2, "tol": 1e-2},
        {
            "Cs": 2,
            "cv": 2,
            "voting": "hard",
            "exclusivity": 0.3,
            "class_weight": "balanced",
            "n_jobs": 2,
            "multi_class": "ovo",
            "tol": 1e-2,
        },
    ],
    ids=str,
)
def test_every_check_of_scikit_learn_passes(configuration, caplog):
    caplog.set_level(logging.CRITICAL)
    results = check_estimator(ERMClassifierCV(**configuration), on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    passed = {r["check_name"] for r in results if r["status"] == "passed"}
    assert "check_sample_weight_equivalence_on_dense_data" in passed
    assert len(results) - len([r for r in results if r["status"] == "passed"]) <= 2


@pytest.mark.parametrize(
    ("p", "scoring"),
    [(1, None), (2, "balanced_accuracy"), (2, make_scorer(accuracy_score, normalize=False))],
    ids=["1-None", "2-balanced_accuracy", "2-scorer"],
)
def test_the_same_choice_as_a_grid_search(scoring, p):
    X, y = class_data(3, n_rows=90)
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    ours = ERMClassifierCV(Cs=CS, cv=cv, scoring=scoring, p=p, tol=1e-8).fit(X, y)
    grid = GridSearchCV(ERMClassifier(p=p, tol=1e-8), {"C": CS}, cv=cv, scoring=scoring).fit(X, y)
    assert grid.best_params_["C"] == ours.C_
    assert ours.best_score_ == pytest.approx(grid.best_score_)
    assert CS[ours.best_index_] == ours.C_
    for name in ("mean_test_score", "std_test_score", "rank_test_score", "split2_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], grid.cv_results_[name])
    assert ours.cv_results_["params"] == grid.cv_results_["params"]
    assert ours.scores_.shape == (4, 4)
    assert ours.n_splits_ == 4
    np.testing.assert_array_equal(ours.coef_, grid.best_estimator_.coef_)
    assert ours.score(X, y) == grid.score(X, y)
    assert ours.cv_results_["max_dual_gap"].max() <= 1e-8


@pytest.mark.filterwarnings("ignore:The best C:UserWarning")
def test_the_refit_is_what_the_classifier_fits():
    X, y = binary_data()
    ours = ERMClassifierCV(3, Cs=CS).fit(X, y)
    single = ERMClassifier(3, C=ours.C_).fit(X, y)
    for name in ("components_", "objective_", "dual_gap_", "n_iter_", "supports_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(single, name))
    np.testing.assert_array_equal(ours.decision_function(X), single.decision_function(X))
    assert "3 equal members" in repr(ours)


def test_ties_go_to_the_smallest_c():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 5)
    y = (X[:, 0] > 0).astype(int)
    clf = ERMClassifierCV(Cs=[100.0, 1.0, 10.0]).fit(X, y)
    assert clf.best_score_ == 1
    assert clf.C_ == 1
    assert clf.cv_results_["rank_test_score"].tolist() == [1, 1, 1]


def test_groups_reach_the_splitter():
    X, y = binary_data()
    groups = np.arange(len(y)) % 6
    clf = ERMClassifierCV(Cs=CS, cv=GroupKFold(3)).fit(X, y, groups=groups)
    expected = ERMClassifierCV(Cs=CS, cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(clf.scores_, expected.scores_)
    with pytest.raises(ValueError, match="groups"):
        ERMClassifierCV(cv=GroupKFold(3)).fit(X, y)


def weightless(y_true, y_pred):
    return np.mean(y_true == y_pred)


def test_weights_count_in_training_and_in_scoring():
    X, y = binary_data()
    weights = np.where(np.arange(len(y)) % 3 == 0, 5.0, 1.0)
    weights[:4] = 0
    folds = list(KFold(3).split(X))
    clf = ERMClassifierCV(Cs=[1.0], cv=folds).fit(X, y, sample_weight=weights)
    blind = ERMClassifierCV(Cs=[1.0], cv=folds, scoring=make_scorer(weightless))
    blind.fit(X, y, sample_weight=weights)
    for k, (train, test) in enumerate(folds):
        single = ERMClassifier(C=1.0).fit(X[train], y[train], sample_weight=weights[train])
        right = single.predict(X[test]) == y[test]
        assert clf.scores_[k, 0] == pytest.approx(np.average(right, weights=weights[test]))
        assert blind.scores_[k, 0] == pytest.approx(right[weights[test] > 0].mean())


@pytest.mark.parametrize("random_state", [0, np.random.RandomState(0)], ids=["int", "RandomState"])
def test_threads_change_nothing(random_state):
    X, y = class_data(3)
    options = {"solver": "paper", "solver_options": {"start": "random", "change": 1e6}, "Cs": CS[:2], "cv": 2}
    one = ERMClassifierCV(**options, random_state=clone_state(random_state)).fit(X, y)
    two = ERMClassifierCV(**options, random_state=clone_state(random_state), n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.components_, two.components_)


def clone_state(random_state):
    if isinstance(random_state, int):
        return random_state
    copy = np.random.RandomState()
    copy.set_state(random_state.get_state())
    return copy


def test_members_that_compete_and_their_groups():
    pd = pytest.importorskip("pandas")
    X, y = binary_data(n_features=6)
    frame = pd.DataFrame(X, columns=["a1", "a2", "b1", "b2", "c1", "c2"])
    clf = ERMClassifierCV(
        3,
        Cs=[0.1, 1.0],
        cv=3,
        exclusivity=np.inf,
        voting="hard",
        feature_groups=lambda names: [name[0] for name in names],
        random_state=0,
    ).fit(frame, y)
    assert clf.partition_.shape == (3,)
    assert clf.certify(frame).shape == y.shape
    assert np.isnan(clf.cv_results_["max_dual_gap"]).all()


@pytest.mark.filterwarnings("ignore:The best C:UserWarning")
def test_sparse_strings_and_pipelines():
    X, y = class_data(3)
    names = np.array(["x", "y", "z"])[y]
    dense = ERMClassifierCV(Cs=CS, cv=3).fit(X, names)
    thin = ERMClassifierCV(Cs=CS, cv=3).fit(sparse.csr_matrix(X), names)
    np.testing.assert_array_equal(dense.scores_, thin.scores_)
    assert set(dense.predict(X)) <= {"x", "y", "z"}
    pipeline = make_pipeline(StandardScaler(), ERMClassifierCV(Cs=3, cv=3)).fit(X, names)
    assert pipeline.score(X, names) > 0.7


def test_without_refit_there_is_a_choice_and_nothing_to_predict_with():
    X, y = binary_data()
    clf = ERMClassifierCV(Cs=CS, refit=False).fit(X, y)
    assert clf.C_ in CS
    with pytest.raises(NotFittedError, match="refit=False"):
        clf.predict(X)
    clf.set_params(refit=True).fit(X, y).predict(X)
    clf.set_params(refit=False).fit(X, y)
    with pytest.raises(NotFittedError, match="refit=False"):
        clf.decision_function(X)
    with pytest.raises(NotFittedError, match="not fitted"):
        ERMClassifierCV().predict(X)


def test_metadata_routing_requests():
    X, y = binary_data()
    with config_context(enable_metadata_routing=True):
        inner = ERMClassifierCV(Cs=CS, cv=GroupKFold(3)).set_fit_request(groups=True, sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inner)
        pipeline.fit(X, y, groups=np.arange(len(y)) % 5, sample_weight=np.ones(len(y)))
        assert pipeline[-1].n_splits_ == 3


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"refit": "yes"}, TypeError, "refit must be True or False"),
        ({"Cs": []}, ValueError, "Cs must be"),
        ({"p": 0}, ValueError, "p must"),
        ({"scoring": "no such score"}, ValueError, "scor"),
        ({"cv": [(np.arange(30), np.arange(0))]}, ValueError, "fold 0 of cv has no test rows"),
        ({"cv": [(np.arange(1), np.arange(30))]}, ValueError, "training rows of fold 0"),
        ({"scoring": lambda *_: np.nan}, ValueError, "Every score is NaN"),
    ],
)
def test_wrong_parameters(given, error, match):
    with pytest.raises(error, match=match):
        ERMClassifierCV(**given).fit(*binary_data())


def test_a_failed_fit_keeps_the_old_one():
    X, y = binary_data()
    clf = ERMClassifierCV(Cs=CS).fit(X, y)
    before = clf.predict(X)
    with pytest.raises(ValueError, match="2 classes"):
        clf.fit(X[:, :2], np.zeros(len(y)))
    np.testing.assert_array_equal(clf.predict(X), before)
    assert clone(clf).get_params() == clf.get_params()
