"""FeaturePartitionClassifier: disjoint groups of features, random, learned or given, and a majority vote."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from exclusivity.partition import FeaturePartitionClassifier
from tables.votes import table_vote

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.filterwarnings("ignore:.*members compete for")  # some checks have one feature only
@pytest.mark.parametrize(
    ("base", "partition"), [(LinearSVC(), "random"), (GaussianNB(), "random"), (GaussianNB(), "learned")]
)
def test_every_check_passes(base, partition):
    clf = FeaturePartitionClassifier(base, 2, partition=partition)
    results = check_estimator(clf, on_skip=None, on_fail=None)
    assert not {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert sum(r["status"] == "passed" for r in results) > 40


def test_groups_are_disjoint_balanced_and_complete():
    clf = FeaturePartitionClassifier(GaussianNB(), 7, random_state=0).fit(X, Y)
    assert np.all(clf.supports_.sum(axis=0) == 1)
    assert set(clf.supports_.sum(axis=1)) == {4, 5}
    assert np.array_equal(clf.supports_.argmax(axis=0), clf.partition_)
    assert len(clf.estimators_) == 7
    for member, columns in zip(clf.estimators_, clf.supports_, strict=True):
        assert member.n_features_in_ == columns.sum()


def test_the_majority_decides():
    wine, labels = load_wine(return_X_y=True)
    names = np.array(["x", "y", "z"])[labels]
    clf = FeaturePartitionClassifier(DecisionTreeClassifier(max_depth=2), 5, random_state=0).fit(wine, names)
    votes = clf.component_predict(wine)
    for row, label, radius in zip(votes, clf.predict(wine), clf.certify(wine), strict=True):
        found, counts = np.unique(row, return_counts=True)
        assert counts[list(found).index(label)] == counts.max()
        assert (radius == -1) == (np.sum(counts == counts.max()) > 1)


def test_the_radius_is_half_the_lead():
    clf = FeaturePartitionClassifier(LinearSVC(), 9, random_state=0).fit(X[::2], Y[::2])
    votes = clf.component_predict(X[1::2])
    lead = np.abs(2 * (votes == 1).sum(axis=1) - 9)
    assert np.array_equal(clf.certify(X[1::2]), (lead - 1) // 2)


def test_random_state_draws_partition_and_members():
    forest = RandomForestClassifier(2, max_depth=2)
    first, again, other = (
        FeaturePartitionClassifier(forest, 3, random_state=seed).fit(X, Y) for seed in (0, 0, 1)
    )
    assert np.array_equal(first.partition_, again.partition_)
    assert np.array_equal(first.component_predict(X), again.component_predict(X))
    assert not np.array_equal(first.partition_, other.partition_)
    assert len({member.random_state for member in first.estimators_}) == 3
    assert forest.random_state is None
    nested = FeaturePartitionClassifier(make_pipeline(StandardScaler(), forest), 3, random_state=0).fit(X, Y)
    assert nested.estimators_[0][-1].random_state is not None


def test_feature_groups_stay_together():
    groups = [f"sensor {i % 10}" for i in range(30)]
    clf = FeaturePartitionClassifier(LinearSVC(), 5, feature_groups=groups, random_state=0).fit(X, Y)
    for sensor in range(10):
        assert clf.supports_[:, clf.groups_ == sensor].any(axis=1).sum() == 1
    assert clf.partition_.shape == (10,)
    assert clone(clf).feature_groups == groups
    frame = pd.DataFrame(X, columns=[f"{i % 10}_{i}" for i in range(30)])
    named = FeaturePartitionClassifier(
        LinearSVC(), 5, feature_groups=lambda names: [name.split("_")[0] for name in names], random_state=0
    ).fit(frame, Y)
    assert np.array_equal(named.partition_, clf.partition_)
    with pytest.raises(ValueError, match="30 columns, and 3 labels"):
        FeaturePartitionClassifier(LinearSVC(), feature_groups=[1, 2, 3]).fit(X, Y)


def test_more_members_than_features():
    with pytest.warns(UserWarning, match="5 members compete for 3 features or groups") as caught:
        clf = FeaturePartitionClassifier(GaussianNB(), 5).fit(X[:, :3], Y)
    assert caught[0].filename == __file__
    assert len(clf.estimators_) == 3


def test_sparse_rows():
    rows = np.where(X > 0, X, 0)
    dense = FeaturePartitionClassifier(LinearSVC(), 5, random_state=0).fit(rows, Y)
    thin = FeaturePartitionClassifier(LinearSVC(), 5, random_state=0).fit(sparse.csr_matrix(rows), Y)
    assert np.mean(dense.predict(rows) == thin.predict(sparse.csr_matrix(rows))) > 0.99


@pytest.mark.parametrize(("n_estimators", "kind"), [(0, ValueError), (2.5, TypeError), ("3", TypeError)])
def test_bad_numbers_of_members(n_estimators, kind):
    with pytest.raises(kind, match="n_estimators must be an integer"):
        FeaturePartitionClassifier(GaussianNB(), n_estimators).fit(X, Y)


def test_values_that_are_not_finite_are_refused():
    clf = FeaturePartitionClassifier(GaussianNB(), 3, random_state=0).fit(X, Y)
    rows = X[:4].copy()
    rows[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        clf.certify(rows)


# --- who gets what ----------------------------------------------------------------------------------------


def test_a_learned_partition_is_that_of_the_search():
    clf = FeaturePartitionClassifier(LinearSVC(), 9, partition="learned", random_state=0).fit(X[::2], Y[::2])
    again = clone(clf).fit(X[::2], Y[::2])
    assert np.array_equal(clf.partition_, again.partition_)
    assert np.all(clf.supports_.sum(axis=0) == 1)
    assert np.all(clf.supports_.any(axis=1))
    drawn = [
        FeaturePartitionClassifier(LinearSVC(), 9, random_state=seed).fit(X[::2], Y[::2]) for seed in range(3)
    ]
    ours, *theirs = (
        np.mean((each.predict(X[1::2]) == Y[1::2]) & (each.certify(X[1::2]) >= 3)) for each in (clf, *drawn)
    )
    assert ours > np.mean(theirs)


def test_a_learned_partition_with_groups_classes_gaps_and_weights():
    wine, labels = load_wine(return_X_y=True)
    holed = wine.copy()
    holed[::4, 2] = np.nan
    groups, weights = np.arange(13) % 7, 1.0 + (np.arange(len(labels)) % 3)
    clf = FeaturePartitionClassifier(
        DecisionTreeClassifier(max_depth=3), 3, partition="learned", feature_groups=groups, random_state=0
    ).fit(holed, labels, sample_weight=weights)
    assert clf.partition_.shape == (7,)
    assert sorted(set(clf.partition_)) == [0, 1, 2]
    thin = FeaturePartitionClassifier(LinearSVC(), 3, partition="learned", random_state=0)
    assert thin.fit(sparse.csr_matrix(wine), labels).supports_.shape == (3, 13)
    with pytest.warns(UserWarning, match="5 members compete for 3"):
        few = FeaturePartitionClassifier(GaussianNB(), 5, partition="learned").fit(X[:, :3], Y)
    assert len(few.estimators_) == 3


def test_a_given_partition_is_used_as_it_is():
    wanted = np.array(["left", "right", "middle"])[np.arange(30) % 3]
    clf = FeaturePartitionClassifier(GaussianNB(), 3, partition=wanted).fit(X, Y)
    assert np.array_equal(np.array(["left", "middle", "right"])[clf.supports_.argmax(axis=0)], wanted)
    groups = np.arange(30) // 5
    by_group = FeaturePartitionClassifier(GaussianNB(), 2, feature_groups=groups, partition=[0, 1] * 3).fit(
        X, Y
    )
    by_column = clone(by_group).set_params(partition=(groups % 2).tolist()).fit(X, Y)
    assert np.array_equal(by_group.supports_, by_column.supports_)
    assert np.array_equal(by_group.certify(X), by_column.certify(X))


def test_trees_take_the_groups_that_additive_members_found():
    wine, labels = load_wine(return_X_y=True)
    additive = table_vote(5, random_state=0).fit(wine[::2], labels[::2])
    owners = additive[-1].partition_
    clf = FeaturePartitionClassifier(DecisionTreeClassifier(max_depth=3), 5, partition=owners, random_state=0)
    clf.fit(wine[::2], labels[::2])
    assert np.array_equal(clf.partition_, owners)
    assert [member.n_features_in_ for member in clf.estimators_] == np.bincount(owners).tolist()
    broken = wine[1::2].copy()
    broken[:, [0, 6]] = 1e9
    kept = clf.certify(wine[1::2]) >= 2
    assert kept.any()
    assert np.array_equal(clf.predict(broken)[kept], clf.predict(wine[1::2])[kept])


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ("best", "partition must be one of 'random', 'learned'; got 'best'"),
        (3, "partition must be 'random', 'learned', or a sequence"),
        ([0, 1], "one label for each of the 30 columns, or of the 10 feature groups; got 2"),
        ([0, 1, 2] * 10, "columns of one feature group to different members"),
        ([0, 1] * 5, r"partition names 2 members, and n_estimators is 3; set n_estimators=2"),
    ],
)
def test_bad_partitions(partition, message):
    clf = FeaturePartitionClassifier(GaussianNB(), 3, feature_groups=np.arange(30) // 3, partition=partition)
    with pytest.raises(ValueError, match=message):
        clf.fit(X, Y)


# --- weights, gaps, processes -----------------------------------------------------------------------------


def test_a_row_of_weight_two_is_two_rows():
    weights = 1 + (np.arange(len(Y)) % 2)
    base = DecisionTreeClassifier(max_depth=2)
    weighted = FeaturePartitionClassifier(base, 5, random_state=0).fit(X, Y, sample_weight=weights)
    repeated = FeaturePartitionClassifier(base, 5, random_state=0).fit(
        np.repeat(X, weights, axis=0), np.repeat(Y, weights)
    )
    assert np.array_equal(weighted.component_predict(X), repeated.component_predict(X))
    plain = FeaturePartitionClassifier(base, 5, random_state=0).fit(X, Y)
    uneven = FeaturePartitionClassifier(base, 5, random_state=0).fit(X, Y, np.where(Y == 1, 9.0, 1.0))
    assert not np.array_equal(plain.component_predict(X), uneven.component_predict(X))
    with pytest.raises(TypeError, match="KNeighborsClassifier takes none in fit"):
        FeaturePartitionClassifier(KNeighborsClassifier(), 3).fit(X, Y, sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        FeaturePartitionClassifier(base, 3).fit(X, Y, sample_weight=-weights)


def test_gaps_where_the_members_take_them():
    holed = X.copy()
    holed[::3, ::4] = np.nan
    clf = FeaturePartitionClassifier(DecisionTreeClassifier(max_depth=3), 7, random_state=0).fit(holed, Y)
    radius, label = clf.certify(holed), clf.predict(holed)
    assert radius.max() == 3
    for column in range(30):
        for value in (np.nan, -9.0, 9.0):
            other = holed.copy()
            other[:, column] = value
            assert np.array_equal(clf.predict(other)[radius >= 1], label[radius >= 1])
    with pytest.raises(ValueError, match="contains NaN"):
        FeaturePartitionClassifier(GaussianNB(), 3).fit(holed, Y)


def test_jobs_change_nothing():
    forest = RandomForestClassifier(2, max_depth=2)
    with parallel_config("threading"):
        one, two = (FeaturePartitionClassifier(forest, 4, random_state=0, n_jobs=n).fit(X, Y) for n in (1, 2))
    assert np.array_equal(one.component_predict(X), two.component_predict(X))


@pytest.mark.parametrize("voting", ["hard", "runoff"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_members_with_sparse_weights_are_certified(voting, n_classes):
    """Of sparse rows a linear SVC keeps a sparse ``coef_``."""
    wine, labels = load_wine(return_X_y=True)
    rows = sparse.csr_matrix(wine / wine.std(axis=0))
    clf = FeaturePartitionClassifier(SVC(kernel="linear"), 5, random_state=0, voting=voting)
    clf.fit(rows, np.minimum(labels, n_classes - 1))
    assert sparse.issparse(clf.estimators_[0].coef_)
    radius, before = clf.certify(rows), clf.predict(rows)
    assert np.any(radius >= 1)
    for column in range(13):
        broken = rows.toarray()
        broken[:, column] = 1e6
        assert np.array_equal(clf.predict(sparse.csr_matrix(broken))[radius >= 1], before[radius >= 1])
