"""Damage for any classifier, and the adversary's own contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from exclusivity.robustness import attack, corrupt, corruption_curve
from exclusivity.robustness.corruption import KINDS
from robustness.robust_cases import fitted, split

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6)) * [1, 2, 3, 4, 5, 6] + 10
GROUPS = ["a", "b", "a", "c", "c", "c"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [0, 1, 3, 6])
def test_k_features_of_every_row_are_broken(kind, k):
    before = X.copy()
    broken = corrupt(X, k, kind, random_state=0)
    assert np.array_equal(X, before)
    changed = (broken != X).sum(axis=1)
    assert np.all(changed <= k)
    assert np.mean(changed) >= 0.9 * k  # a value may be swapped with itself
    assert np.array_equal(broken, corrupt(X, k, kind, random_state=0))
    if 0 < k < 6:
        assert not np.array_equal(broken, corrupt(X, k, kind, random_state=1))
        assert len(np.unique(broken != X, axis=0)) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_features_may_break_in_all_rows(kind):
    broken = corrupt(X, 2, kind, same_for_all=True, random_state=3)
    assert np.sum((broken != X).any(axis=0)) == 2


def test_groups_break_as_a_whole():
    broken = corrupt(X, 1, "outliers", feature_groups=GROUPS, random_state=0) != X
    for pattern in np.unique(broken, axis=0):
        assert pattern.tolist() in (
            [True, False, True, False, False, False],
            [False, True, False, False, False, False],
            [False, False, False, True, True, True],
        )
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    halves = corrupt(frame, 1, feature_groups=lambda names: [name < "w" for name in names], random_state=0)
    assert set((halves != frame).sum(axis=1)) == {2, 4}


def test_each_kind_does_what_it_says():
    reference = RNG.normal(size=(40, 6)) + 50
    moved = corrupt(X, 6, "outliers", reference=reference, size=7, random_state=0) - X
    np.testing.assert_allclose(np.abs(moved), np.broadcast_to(7 * reference.std(axis=0), X.shape))
    assert (moved > 0).any()
    assert (moved < 0).any()
    filled = corrupt(X, 6, "missing", reference=reference)
    np.testing.assert_allclose(filled, np.broadcast_to(reference.mean(axis=0), X.shape))
    stuck = corrupt(X, 6, "stuck", reference=reference, random_state=0)
    assert len(np.unique(stuck, axis=0)) == 1
    swapped = corrupt(X, 6, "swapped", reference=reference, random_state=0)
    for column in range(6):
        assert np.isin(stuck[0, column], reference[:, column])
        assert np.isin(swapped[:, column], reference[:, column]).all()
        assert len(np.unique(swapped[:, column])) > 10


def test_frames_stay_frames():
    frame = pd.DataFrame(X, columns=list("uvwxyz"), index=np.arange(60) + 5)
    broken = corrupt(frame, 2, random_state=0)
    assert list(broken.columns) == list("uvwxyz")
    assert broken.index[0] == 5
    np.testing.assert_allclose(broken.to_numpy(), corrupt(X, 2, random_state=0))


@pytest.mark.parametrize(
    ("rows", "k", "options", "kind", "message"),
    [
        (X, 7, {}, ValueError, "k=7, but there are only 6"),
        (X, 4, {"feature_groups": GROUPS}, ValueError, "only 3 features"),
        (X, -1, {}, ValueError, "k must be an integer at least 0"),
        (X, 1.5, {}, TypeError, "k must be an integer"),
        (X, 1, {"kind": "fire"}, ValueError, "kind must be one of 'outliers'"),
        (X, 1, {"reference": X[:, :3]}, ValueError, "reference has 3 columns and X has 6"),
        (X, 1, {"feature_groups": "ab"}, TypeError, "feature_groups"),
        (X, 1, {"feature_groups": [1, 2]}, ValueError, "6 columns, and 2 labels"),
        (sparse.csr_matrix(X), 1, {}, TypeError, r"Sparse data was passed.*toarray"),
        (np.where(X > 12, np.nan, X), 1, {}, ValueError, "X contains NaN"),
        ([["a", "b"]], 1, {}, ValueError, "could not convert string"),
        (X[0], 1, {}, ValueError, "Expected 2D array"),
    ],
)
def test_bad_damage_is_a_clear_error(rows, k, options, kind, message):
    with pytest.raises(kind, match=message):
        corrupt(rows, k, **options)


def test_a_vote_survives_what_breaks_one_svm():
    train, y, rows, labels = split("breast cancer")
    options = {"ks": [0, 2, 4], "n_repeats": 3, "reference": train, "random_state": 0}
    vote = corruption_curve(fitted("breast cancer", n_estimators=15), rows, labels, **options)
    svm = corruption_curve(LinearSVC().fit(train, y), rows, labels, **options)
    assert vote.scores.shape == (4, 3, 3)
    assert np.all(vote.scores[:, 0] == vote.scores[0, 0, 0])  # nothing broken, no spread
    assert 1 - vote.mean[0, 1] < (1 - svm.mean[0, 1]) / 2


def test_curves_are_comparable_and_may_be_balanced():
    train, y, rows, labels = split("german")
    constant = DummyClassifier().fit(train, y)
    plain = corruption_curve(constant, rows, labels, ks=[1], kinds=["stuck"], n_repeats=2, random_state=0)
    fair = corruption_curve(constant, rows, labels, ks=[1], kinds=["stuck"], balanced=True, random_state=0)
    assert plain.mean[0, 0] > 0.6
    assert fair.mean[0, 0] == 0.5
    svm = LinearSVC().fit(train, y)
    first, again = (corruption_curve(svm, rows, labels, n_repeats=2, random_state=7) for _ in range(2))
    assert np.array_equal(first.scores, again.scores)


@pytest.mark.parametrize("model", [LinearSVC(), RidgeClassifier(), KNeighborsClassifier()], ids=str)
def test_any_classifier_can_be_attacked(model):
    train, y, rows, _ = split("heart")
    model.fit(train, y)
    found = attack(model, rows, 2, reference=train)
    assert np.array_equal(found.changed, model.predict(found.X) != model.predict(rows))
    assert not found.tied.any()
    assert np.array_equal(found.succeeded, found.changed)
    assert np.all((rows != found.X).sum(axis=1) <= 2)
    if hasattr(model, "coef_"):
        assert found.changed.all()


def test_a_classifier_without_scores_is_attacked_by_its_labels():
    class Sign(RidgeClassifier):
        decision_function = None

        def __getattribute__(self, name):
            if name in ("decision_function", "predict_proba"):
                raise AttributeError(name)
            return super().__getattribute__(name)

        def predict(self, X):
            return self.classes_[(X @ self.coef_.ravel() + self.intercept_ > 0).astype(int)]

    train, y, rows, _ = split("heart")
    assert attack(Sign().fit(train, y), rows, 1).changed.mean() > 0.9


def test_no_budget_changes_nothing():
    clf, rows = fitted("heart"), split("heart")[2]
    found = attack(clf, rows, 0)
    assert np.array_equal(found.X, rows)
    assert not found.features.any()
    assert not found.changed.any()


def test_groups_of_the_estimator_are_attacked_as_a_whole():
    clf, rows = fitted("heart", n_estimators=5, n_groups=7), split("heart")[2]
    radius = clf.certify(rows)
    for r in np.unique(radius):
        found = attack(clf, rows[radius == r], int(r) + 1)
        assert found.succeeded.all()
        assert found.features.shape[1] == 7
        touched = rows[radius == r] != found.X
        assert not (touched & ~found.features[:, clf.groups_]).any()


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"n_features": 14}, ValueError, "n_features=14, but there are only 13"),
        ({"n_features": -1}, ValueError, "at least 0"),
        ({"n_features": True}, TypeError, "n_features must be an integer"),
    ],
)
def test_bad_attacks_are_a_clear_error(options, kind, message):
    with pytest.raises(kind, match=message):
        attack(fitted("heart"), split("heart")[2], **options)
