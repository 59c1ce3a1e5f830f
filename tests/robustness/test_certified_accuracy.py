"""Certified accuracies, and searches for parameters by them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier, RobustAdditiveClassifier
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import (
    certified_accuracy,
    certified_accuracy_curve,
    certified_accuracy_scorer,
    certify,
    certify_set,
)
from robustness.robust_cases import SETS, fitted, split
from tables.votes import table_vote

RADII = np.array([2, 0, 1, -1, 3, 0])
TRUE = np.array(["a", "a", "b", "b", "a", "a"])
PREDICTED = np.array(["a", "a", "a", "b", "a", "b"])


@pytest.mark.parametrize("r", range(5))
def test_certified_accuracy_counts_rows_that_stay_right(r):
    safe = [t == p and radius >= r for radius, t, p in zip(RADII, TRUE, PREDICTED, strict=True)]
    by_class = [np.mean([s for s, t in zip(safe, TRUE, strict=True) if t == label]) for label in "ab"]
    assert certified_accuracy(RADII, TRUE, PREDICTED, r) == np.mean(safe)
    assert certified_accuracy(RADII, TRUE, PREDICTED, r, balanced=True) == pytest.approx(np.mean(by_class))


@pytest.mark.parametrize("balanced", [False, True])
def test_curves_fall_to_zero(balanced):
    curve = certified_accuracy_curve(RADII, TRUE, PREDICTED, balanced=balanced)
    assert len(curve) == 5
    assert curve[-1] == 0
    assert np.all(np.diff(curve) <= 0)
    longer = certified_accuracy_curve(RADII, TRUE, PREDICTED, balanced=balanced, max_radius=8)
    assert np.array_equal(longer[:5], curve)
    assert len(longer) == 9


def test_a_huge_number_of_broken_columns_takes_no_memory():
    assert certified_accuracy([2, 0, 1], ["a", "a", "b"], ["a", "a", "b"], r=10**15) == 0


@pytest.mark.parametrize("name", SETS)
@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")
def test_clean_accuracy_is_an_upper_bound(name):
    _, _, rows, labels = split(name)
    clf = fitted(name)
    radii, predicted = clf.certify(rows), clf.predict(rows)
    assert certified_accuracy(radii, labels, predicted) <= accuracy_score(labels, predicted)
    fair = certified_accuracy(radii, labels, predicted, balanced=True)
    assert fair <= balanced_accuracy_score(labels, predicted) + 1e-12
    assert certified_accuracy(np.maximum(radii, 0), labels, predicted) == accuracy_score(labels, predicted)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((RADII[:3], TRUE, PREDICTED), ValueError, r"same length.*\(3,\), \(6,\) and \(6,\)"),
        ((RADII[:, None], TRUE, PREDICTED), ValueError, "one-dimensional"),
        (([], [], []), ValueError, "at least 1"),
        ((RADII / 2, TRUE, PREDICTED), TypeError, "radii must be integers"),
        ((RADII, TRUE, PREDICTED, -1), ValueError, "r must be an integer at least 0"),
        ((RADII, TRUE, PREDICTED, 0.5), TypeError, "r must be an integer"),
    ],
)
def test_bad_arguments_are_a_clear_error(arguments, kind, message):
    with pytest.raises(kind, match=message):
        certified_accuracy(*arguments)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(
    "voters",
    [
        ERMClassifier(5, C=0.1, exclusivity=np.inf, voting="hard", random_state=3),
        FeaturePartitionClassifier(DecisionTreeClassifier(max_depth=3, random_state=0), 5, random_state=0),
    ],
    ids=["svm", "trees"],
)
@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")
def test_the_scorer_is_the_certified_accuracy_of_held_out_rows(voters, balanced):
    X, y, _, _ = split("heart")
    folds = StratifiedKFold(2, shuffle=True, random_state=5)
    model = make_pipeline(StandardScaler(), voters)
    scorer = pickle.loads(pickle.dumps(certified_accuracy_scorer(1, balanced=balanced)))  # noqa: S301
    scores = cross_val_score(model, X, y, scoring=scorer, cv=folds)
    expected = []
    for train, test in folds.split(X, y):
        fitted_model = clone(model).fit(X[train], y[train])
        radii, predicted = certify(fitted_model, X[test]), fitted_model.predict(X[test])
        expected.append(certified_accuracy(radii, y[test], predicted, 1, balanced=balanced))
    assert scores.tolist() == expected
    assert min(expected) > 0


def test_a_grid_search_finds_enough_members():
    X, y, rows, labels = split("breast cancer")
    voters = ERMClassifier(exclusivity=np.inf, voting="hard", class_weight="balanced", random_state=0)
    grid = {"n_estimators": [3, 9], "C": [0.01, 1.0]}
    search = GridSearchCV(voters, grid, scoring=certified_accuracy_scorer(2), cv=2).fit(X, y)
    results = search.cv_results_
    # Three members cannot survive two broken features.
    assert not np.any(results["mean_test_score"][results["param_n_estimators"] == 3])
    assert search.best_params_["n_estimators"] == 9
    assert certified_accuracy(certify(search, rows), labels, search.predict(rows), 2, balanced=True) > 0.7


def test_the_scorer_takes_tables():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    table = pd.DataFrame({name: rng.normal(size=90) + y for name in "abc"})
    table["colour"] = np.where(y == rng.integers(0, 2, 90), "red", "blue")
    model = table_vote(3, random_state=0).fit(table, y)
    expected = certified_accuracy(certify(model, table), y, model.predict(table), 1, balanced=True)
    assert certified_accuracy_scorer(1)(model, table, y) == expected > 0.3


def test_the_scorer_refuses_what_cannot_be_a_radius():
    with pytest.raises(ValueError, match="r must be an integer at least 0"):
        certified_accuracy_scorer(-1)
    with pytest.raises(TypeError, match="There is no certificate for LogisticRegression"):
        certified_accuracy_scorer(1)(LogisticRegression().fit([[0], [1]], [0, 1]), [[0], [1]], [0, 1])


def test_robust_additive_models_are_certified_and_searched():
    X, y = load_breast_cancer(return_X_y=True)
    model = RobustAdditiveClassifier(max_broken=2, tol=0.1).fit(X[::2], y[::2])
    np.testing.assert_array_equal(certify(model, X[1::2]), model.certify(X[1::2]))
    np.testing.assert_array_equal(certify_set(model, X[1::2], 1), model.certify_set(X[1::2], 1))
    with pytest.raises(ValueError, match="certify_set"):
        certify(model, X[1::2], top_k=2)
    grid = {"clean_weight": [0.3, 1.0]}  # 1: nothing is trained against broken columns
    search = GridSearchCV(model, grid, scoring=certified_accuracy_scorer(r=2), cv=2).fit(X[::2], y[::2])
    assert search.best_params_ == {"clean_weight": 0.3}
