"""The classes that could win, and radii for more than one of them."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import attack, certify, certify_set, corrupt
from exclusivity.voting.preferences import MemberPreferences
from exclusivity.voting.rules import RULES
from robustness.adversary_oracle import exhaustive_radius, tallies
from robustness.robust_cases import certified_radius, fitted, split
from robustness.test_runoff import elected

MODELS = {
    "hard": lambda: fitted("wine"),
    "runoff": lambda: elected("wine"),
    "hard, shared": lambda: fitted("wine", exclusivity=1e3),
    "runoff, shared": lambda: elected("wine", exclusivity=1e3),
    "binary": lambda: fitted("heart"),
}


def rows_of(name):
    return split("heart" if name == "binary" else "wine")[2]


@pytest.mark.parametrize("name", MODELS)
def test_sets_and_radii_say_the_same(name):
    clf, rows = MODELS[name](), rows_of(name)
    radius, codes = clf.certify(rows), np.searchsorted(clf.classes_, clf.predict(rows))
    before = np.zeros((len(rows), len(clf.classes_)), dtype=bool)
    for r in range(6):
        can_win = clf.certify_set(rows, r)
        assert np.array_equal(can_win.sum(axis=1) == 1, radius >= r)
        assert can_win[np.arange(len(rows)), codes].all()
        assert np.all(can_win | ~before)  # more features can do no less
        assert np.array_equal(certify_set(clf, rows, r), can_win)
        if len(clf.classes_) > 2:
            assert np.array_equal(can_win.sum(axis=1) <= 2, clf.certify(rows, top_k=2) >= r)
        before = can_win


@pytest.mark.parametrize("name", MODELS)
def test_damage_leads_nowhere_else(name):
    clf, rows = MODELS[name](), rows_of(name)
    for r in (1, 2):
        can_win = clf.certify_set(rows, r)
        for seed in range(5):
            broken = corrupt(rows, r, "outliers", size=50, random_state=seed)
            codes = np.searchsorted(clf.classes_, clf.predict(broken))
            assert can_win[np.arange(len(rows)), codes].all()
        attacked = np.searchsorted(clf.classes_, clf.predict(attack(clf, rows[:40], r, max_sets=0).X))
        assert can_win[np.arange(40), attacked].all()


def exhaustive_set(votes, n_classes, r):
    """Every class that has most votes, or as many, after the best change of r members of its own choice."""
    found = np.zeros(n_classes, dtype=bool)
    for c in range(n_classes):
        after = votes.copy()
        for _ in range(r):
            totals = tallies(after, n_classes)
            rivals = np.where(np.arange(n_classes) == c, -1, totals)
            movable = np.flatnonzero(after == rivals.argmax()) if rivals.max() > 0 else []
            if len(movable):
                after[movable[0]] = c
        totals = tallies(after, n_classes)
        found[c] = totals[c] == totals.max()
    return found


def test_hard_votes_on_features_of_their_own_are_exact():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n_members, n_classes = rng.integers(1, 9), rng.integers(2, 6)
        votes = rng.choice(n_classes, size=n_members, p=rng.dirichlet(np.ones(n_classes)))
        supports = np.eye(n_members, dtype=bool)
        threats = RULES["hard"].min_changes(MemberPreferences(votes[None]), supports, n_classes)
        for r in range(n_members + 1):
            assert np.array_equal(threats[0] <= r, exhaustive_set(votes, n_classes, r))
        radius = certified_radius(votes[None], supports, n_classes)[0]
        assert radius == exhaustive_radius(votes, supports, n_classes)


def test_what_cannot_be_asked():
    clf, rows = fitted("wine"), split("wine")[2]
    with pytest.raises(ValueError, match="r must be an integer at least 0"):
        clf.certify_set(rows, -1)
    with pytest.raises(ValueError, match="from 1 to 2"):
        clf.certify(rows, top_k=3)
    with pytest.raises(ValueError, match="top_k must be an integer at least 1"):
        certify(clf, rows, top_k=0)


def test_partitions_have_sets_too():
    X, y, rows, _ = split("wine")
    clf = FeaturePartitionClassifier(LinearSVC(C=0.1), 7, voting="runoff", random_state=0).fit(X, y)
    assert np.array_equal(clf.certify_set(rows, 1).sum(axis=1) == 1, clf.certify(rows) >= 1)
