"""Certified accuracies, and the choice of members by them."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.baselines import FeaturePartitionClassifier
from exclusivity.robustness import certified_accuracy, certified_accuracy_curve, certify, choose_members
from robustness.robust_cases import SETS, fitted, split

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


def test_the_choice_is_the_best_of_its_table():
    X, y, rows, labels = split("breast cancer")
    choice = choose_members(X, y, 2, C=[0.01, 1.0], n_estimators=[3, 9], cv=2)
    assert (
        len(
            choose_members(
                X[::3], y[::3], 1, C=[0.1], exclusivity=[1e4, np.inf], n_estimators=[3], cv=2
            ).table
        )
        == 2
    )
    assert len(choice.table) == 4
    best = max(choice.table, key=lambda record: record["certified"])
    assert choice.best_params == {name: best[name] for name in ("n_estimators", "C", "exclusivity")}
    assert choice.best_params["n_estimators"] == 9  # three members cannot survive two broken features
    assert all(record["certified"] == 0 for record in choice.table if record["n_estimators"] == 3)
    for record in choice.table:
        assert 0 <= record["certified"] <= record["balanced_accuracy"] <= 1
    predicted = choice.estimator.predict(rows)
    assert certified_accuracy(certify(choice.estimator, rows), labels, predicted, 2, balanced=True) > 0.7
    trade_off = choice.trade_off()
    assert [record["n_estimators"] for record in trade_off] == [3, 9]
    assert trade_off[1]["certified"] == best["certified"]


@pytest.mark.parametrize(
    ("own", "asked", "expected"),
    [
        (None, {}, "balanced"),
        (None, {"class_weight": None}, None),
        ({-1.0: 1, 1.0: 3}, {}, {-1.0: 1, 1.0: 3}),
    ],
    ids=["default", "none", "the estimator's own"],
)
def test_the_table_is_that_of_a_plain_loop(own, asked, expected):
    X, y, _, _ = split("heart")
    folds = StratifiedKFold(2, shuffle=True, random_state=5)
    voters = ERMClassifier(exclusivity=np.inf, class_weight=own, random_state=3)
    model = make_pipeline(StandardScaler(), voters)
    choice = choose_members(X, y, 1, estimator=model, n_estimators=[5], C=[0.1], cv=folds, **asked)
    scores = []
    for train, test in folds.split(X, y):
        clf = make_pipeline(
            StandardScaler(),
            ERMClassifier(5, C=0.1, exclusivity=np.inf, voting="hard", class_weight=expected, random_state=3),
        ).fit(X[train], y[train])
        radii = certify(clf, X[test])
        scores.append(certified_accuracy(radii, y[test], clf.predict(X[test]), 1, balanced=True))
    assert choice.table[0]["certified"] == pytest.approx(np.mean(scores))
    assert choice.table[0]["certified_std"] == pytest.approx(np.std(scores))
    assert model[-1].voting == "soft"  # the user's own estimator is left alone
    assert choice.estimator[-1].voting == "hard"
    assert (model[-1].class_weight, choice.estimator[-1].class_weight) == (own, expected)


def test_feature_groups_and_defaults_are_kept():
    X, y, _, _ = split("heart")
    groups = list(np.arange(13) % 5)
    model = ERMClassifier(exclusivity=np.inf, feature_groups=groups)
    choice = choose_members(X, y, 1, estimator=model, n_estimators=[3, 5], C=[0.1], cv=2)
    assert choice.estimator.groups_.max() == 4
    small = choose_members(X, y, 1, C=[0.1], cv=2)
    assert [record["n_estimators"] for record in small.trade_off()] == [3, 5, 9]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"r": 0}, ValueError, "r must be an integer at least 1"),
        ({"r": 7}, ValueError, "7 broken features a vote needs 15 members.*13 columns"),
        ({"r": 1, "C": []}, ValueError, "must each have a value"),
        (
            {"r": 1, "estimator": LogisticRegression()},
            TypeError,
            "must be an ERMClassifier, a Feature.* or a Pipeline",
        ),
    ],
)
def test_bad_choices_are_a_clear_error(options, kind, message):
    X, y, _, _ = split("heart")
    with pytest.raises(kind, match=message):
        choose_members(X, y, **options)


def test_the_trade_off_can_be_drawn():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    X, y, _, _ = split("heart")
    choice = choose_members(X, y, 1, n_estimators=[3, 5], C=[0.1], cv=2)
    ax = choice.plot()
    assert [line.get_label() for line in ax.lines[:2]] == ["nothing broken", "certified, 1 broken"]
    assert ax.lines[1].get_ydata()[1] == choice.trade_off()[1]["certified"]
    _, own = plt.subplots()
    assert choice.plot(ax=own) is own
    plt.close("all")


@pytest.mark.parametrize(
    ("base", "names"),
    [
        (DecisionTreeClassifier(max_depth=3), ["n_estimators"]),
        (LinearSVC(), ["n_estimators", "C"]),
        (make_pipeline(StandardScaler(), LinearSVC()), ["n_estimators", "C"]),
    ],
    ids=["tree", "svm", "pipeline"],
)
def test_members_of_any_kind_are_chosen(base, names):
    X, y = split("heart")[:2]
    voters = FeaturePartitionClassifier(base, partition="learned")
    options = {"C": [0.1, 1.0]} if "C" in names else {}
    choice = choose_members(X, y, 1, estimator=voters, n_estimators=[3, 5], cv=2, **options)
    assert list(choice.best_params) == names
    assert len(choice.table) == 2 * max(1, len(options.get("C", [])))
    assert choice.estimator.n_estimators == choice.best_params["n_estimators"]
    assert choice.estimator.random_state == 0
    weights = {k: v for k, v in choice.estimator.get_params().items() if k.endswith("class_weight")}
    assert list(weights.values()) == ["balanced"]
    assert [record["n_estimators"] for record in choice.trade_off()] == [3, 5]
    assert certify(choice.estimator, X).max() >= 1


@pytest.mark.parametrize(
    ("base", "options", "message"),
    [
        (
            DecisionTreeClassifier(),
            {"C": [1.0]},
            "C was given, and DecisionTreeClassifier.* has 0 parameters",
        ),
        (LinearSVC(), {"exclusivity": [np.inf]}, "leave exclusivity out"),
        (LinearSVC(), {"class_weight": {1: 2.0}}, "see numbers in place of the classes"),
    ],
    ids=["C", "exclusivity", "class_weight"],
)
def test_what_members_do_not_have_is_not_tried(base, options, message):
    X, y = split("heart")[:2]
    with pytest.raises(ValueError, match=message):
        choose_members(X, y, 1, estimator=FeaturePartitionClassifier(base), cv=2, **options)
