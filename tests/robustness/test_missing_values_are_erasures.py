"""A member whose columns are all missing abstains; what is certified then stands against every change."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from exclusivity.partition import FeaturePartitionClassifier

OWNERS = [0, 0, 1, 2, 3, 4, 4]
VALUES = [-1.0, 1.0, 3.0, np.nan]


def fitted(n_classes, voting="hard"):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(n_classes, size=300)
    X = (
        y[:, None] + (rng.random((300, len(OWNERS))) < 0.25) * rng.integers(3, size=(300, len(OWNERS)))
    ) % 3.0
    members = DecisionTreeClassifier(max_depth=3, random_state=0)
    clf = FeaturePartitionClassifier(members, 5, partition=OWNERS, voting=voting, random_state=0).fit(X, y)
    rows = X[:50].copy()
    rows[rng.random(rows.shape) < 0.35] = np.nan
    return clf, rows


def erased(rows):
    """Which members have nothing but missing values."""
    return np.stack([np.isnan(rows[:, np.equal(OWNERS, k)]).all(axis=1) for k in range(5)], axis=1)


def votes_of(clf, rows):
    return np.where(erased(rows), -1, clf.component_predict(rows))


@pytest.mark.parametrize("voting", ["hard", "runoff"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_nothing_that_r_columns_show_changes_what_is_certified(n_classes, voting):
    clf, rows = fitted(n_classes, voting)
    assert erased(rows).any(axis=1).mean() > 0.3
    radius, label, sets = clf.certify(rows), clf.predict(rows), [clf.certify_set(rows, r) for r in (0, 1, 2)]
    assert np.array_equal(radius >= 1, sets[1].sum(axis=1) == 1)
    for r in (1, 2):
        assert (radius >= r).any()
        changes = list(product(combinations(range(len(OWNERS)), r), product(VALUES, repeat=r)))
        others = np.tile(rows, (len(changes), 1, 1))
        for other, (columns, values) in zip(others, changes, strict=True):
            other[:, columns] = values
        after = clf.predict(others.reshape(-1, len(OWNERS))).reshape(len(changes), -1)
        assert np.all((after == label) | (radius < r))
        assert np.all(np.take_along_axis(sets[r], after.T, axis=1))


def test_two_classes_are_safe_where_the_lead_after_abstentions_exceeds_twice_r():
    clf, rows = fitted(2)
    votes = votes_of(clf, rows)
    lead = np.abs((votes == 0).sum(axis=1) - (votes == 1).sum(axis=1))
    for r in range(3):
        assert np.array_equal(clf.certify(rows) >= r, lead > 2 * r)
    clear = lead > 0
    winner = (votes == 1).sum(axis=1) > (votes == 0).sum(axis=1)
    assert np.array_equal(clf.predict(rows)[clear], winner[clear].astype(int))


@pytest.mark.parametrize("voting", ["hard", "runoff"])
def test_a_row_without_values_has_a_label_and_no_certificate(voting):
    clf, rows = fitted(3, voting)
    empty = np.full_like(rows[:2], np.nan)
    votes = clf.component_predict(empty)[0]
    assert np.all(clf.certify(empty) == -1)
    assert clf.predict(empty)[0] in votes
    assert clf.certify_set(empty, 0).all()


@pytest.mark.parametrize("voting", ["hard", "runoff"])
def test_the_only_member_with_a_value_decides(voting):
    clf, rows = fitted(3, voting)
    for column, member in enumerate(OWNERS):
        alone = np.full_like(rows, np.nan)
        alone[:, column] = np.nan_to_num(rows[:, column])
        assert np.array_equal(clf.predict(alone), clf.component_predict(alone)[:, member])
