"""No certified prediction changes: random damage, a greedy adversary, an exhaustive one.

And no certificate is smaller than it has to be, where it claims to be exact.
"""

from __future__ import annotations

import warnings
from itertools import combinations, product

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import attack, certify, corrupt
from robustness.robust_cases import BINARY, SETS, fitted, split

pytestmark = pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")

KINDS = ("outliers", "swapped", "stuck", "missing")


def assert_sound_against_damage(clf, rows, reference, groups=None):
    """r = 1..5 broken features of all kinds; returns how many predictions were put to the test."""
    radius, before, tested = clf.certify(rows), clf.predict(rows), 0
    for r, kind in product(range(1, 6), KINDS):
        chosen = radius >= r
        if chosen.any():
            broken = corrupt(
                rows[chosen], r, kind, reference=reference, feature_groups=groups, size=50, random_state=r
            )
            assert np.array_equal(clf.predict(broken), before[chosen])
            tested += int(chosen.sum())
    return tested


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("setting", [{}, {"exclusivity": 1e3}, {"n_groups": 7}], ids=str)
def test_random_damage_changes_no_certified_prediction(name, setting):
    if name == "digits" and "exclusivity" in setting:
        pytest.skip("ten classes that compete take long; other sets have several classes too")
    X, _, rows, _ = split(name)
    if "n_groups" in setting and X.shape[1] <= 7:
        pytest.skip("not enough features for seven groups")
    clf = fitted(name, **setting)
    tested = assert_sound_against_damage(clf, rows, X, clf.feature_groups)
    if setting == {} and len(rows) > 100:
        assert tested > len(rows)


@pytest.mark.parametrize("name", BINARY)
def test_the_adversary_fails_within_the_radius_and_succeeds_one_beyond(name):
    # Tightness, two classes and disjoint supports: EVERY row has an attack on radius + 1 features.
    _, _, rows, _ = split(name)
    clf = fitted(name)
    radius = clf.certify(rows)
    assert len(np.unique(radius)) > 1
    for r in np.unique(radius):
        chosen = rows[radius == r]
        if r > 0:
            assert not attack(clf, chosen, int(r), max_sets=0).succeeded.any()
        beyond = attack(clf, chosen, int(r) + 1, max_sets=0)
        assert beyond.succeeded.all()
        changed_columns = (chosen != beyond.X).sum(axis=1)
        assert np.all(changed_columns <= r + 1)
        assert np.array_equal(chosen != beyond.X, beyond.features)


@pytest.mark.parametrize("name", ["wine", "iris", "digits"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_the_adversary_fails_within_the_radius_of_several_classes(name, multi_class):
    if (name, multi_class) == ("digits", "ovo"):
        pytest.skip("45 pairs take long; wine and iris have pairs too")
    rows = split(name)[2][: 20 if name == "digits" else 60]
    clf = fitted(name, multi_class=multi_class)
    radius = clf.certify(rows)
    for r in range(1, 6):
        if np.any(radius >= r):
            assert not attack(clf, rows[radius >= r], r, max_sets=0).succeeded.any()
    beyond = [attack(clf, rows[radius == r], int(r) + 1, max_sets=0).succeeded for r in np.unique(radius)]
    assert np.concatenate(beyond).mean() > 0.7  # a lower bound, and not a loose one


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("liver", {"n_estimators": 5}),
        ("liver", {"n_estimators": 5, "exclusivity": 3.0}),
        ("diabetes", {"n_estimators": 7, "exclusivity": 1e3}),
        ("diabetes", {"n_estimators": 3, "n_groups": 4}),
        ("iris", {"n_estimators": 4}),
        ("iris", {"n_estimators": 3, "multi_class": "ovo"}),
        ("wine", {"n_estimators": 5, "n_groups": 6}),
    ],
    ids=str,
)
def test_an_exhaustive_search_changes_no_certified_prediction(name, setting):
    rows = split(name)[2][:30]
    clf = fitted(name, **setting)
    radius = clf.certify(rows)
    n_groups = int(clf.groups_.max()) + 1
    values = np.array([-1e4, -3.0, 0.0, 3.0, 1e4])
    before = clf.predict(rows)
    tested = 0
    for r in (1, 2):
        chosen = radius >= r
        if not chosen.any():
            continue
        for groups in combinations(range(n_groups), r):
            for sizes in product(values, repeat=r):
                broken = rows[chosen].copy()
                for group, value in zip(groups, sizes, strict=True):
                    broken[:, clf.groups_ == group] = value
                assert np.array_equal(clf.predict(broken), before[chosen])
                tested += len(broken)
        assert not attack(clf, rows[chosen], r, max_sets=np.inf).succeeded.any()
    if setting.get("exclusivity", np.inf) == np.inf:
        assert tested >= 300


def test_greedy_and_exhaustive_agree_on_disjoint_supports():
    clf, rows = fitted("liver", n_estimators=5), split("liver")[2][:50]
    for r in (1, 2):
        every, greedy = (attack(clf, rows, r, max_sets=most) for most in (np.inf, 0))
        assert np.array_equal(every.succeeded, greedy.succeeded)
        assert np.array_equal(every.succeeded, clf.certify(rows) < r)


@pytest.mark.parametrize("n_estimators", [10, 25])
def test_members_without_features_fake_no_robustness(n_estimators):
    X, y, rows, _ = split("diabetes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = ERMClassifier(n_estimators, exclusivity=np.inf, voting="hard", random_state=0).fit(X, y)
    radius = clf.certify(rows)
    assert radius.max() <= 3  # eight features, eight voters
    assert assert_sound_against_damage(clf, rows, X) > 100
    for r in np.unique(radius):
        assert attack(clf, rows[radius == r], int(r) + 1).succeeded.all()


@pytest.mark.parametrize("base", [LinearSVC(), DecisionTreeClassifier(max_depth=3)], ids=["svm", "tree"])
@pytest.mark.parametrize("name", ["heart", "breast cancer", "wine"])
def test_random_partitions_of_any_model_are_certified_too(base, name):
    X, y, rows, _ = split(name)
    clf = FeaturePartitionClassifier(base, 7, random_state=0).fit(X, y)
    assert assert_sound_against_damage(clf, rows, X) > 50
    assert np.array_equal(certify(clf, rows), clf.certify(rows))
    radius = clf.certify(rows)
    for r in (1, 2):
        assert not attack(clf, rows[radius >= r], r, max_sets=0).succeeded.any()


@pytest.mark.parametrize("name", ["breast cancer", "sonar", "wine"])
def test_random_subspaces_are_certified_with_their_overlaps(name):
    X, y, rows, _ = split(name)
    clf = BaggingClassifier(
        LinearSVC(), 25, max_features=0.08, bootstrap=False, bootstrap_features=False, random_state=0
    ).fit(X, y)
    radius = certify(clf, rows)
    assert radius.max() >= 1
    before = clf.predict(rows)
    for r, kind in product(range(1, int(radius.max()) + 1), KINDS):
        chosen = radius >= r
        broken = corrupt(rows[chosen], r, kind, reference=X, size=50, random_state=0)
        assert np.array_equal(clf.predict(broken), before[chosen])


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")  # by scikit-learn
@pytest.mark.parametrize("name", ["heart", "wine", "breast cancer"])
def test_the_largest_and_smallest_numbers_there_are_change_nothing(name):
    clf, rows = fitted(name), split(name)[2]
    radius, before = clf.certify(rows), clf.predict(rows)
    assert np.any(radius >= 2)
    for values in product((np.finfo(float).max, -np.finfo(float).max, np.finfo(float).tiny), repeat=2):
        for pair in [(0, 1), (2, 5), (3, 4), (6, 6)]:
            broken = rows.copy()
            broken[:, list(pair)] = values
            r = len(set(pair))
            assert np.array_equal(clf.predict(broken)[radius >= r], before[radius >= r])
