"""Whatever finite values break, overflow included: certified predictions stand."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import certify
from robustness.robust_cases import fitted, split
from robustness.test_runoff import elected

LARGEST, TINY = np.finfo(float).max, np.finfo(float).tiny
VALUES = [LARGEST, -LARGEST, 1e200, TINY, np.nextafter(0.0, 1.0), -np.nextafter(0.0, 1.0), -0.0]

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value)")


def assert_stands(model, rows, predict, groups, as_rows=np.asarray):
    """Every pair of values in several pairs of groups, and mixtures within a group."""
    radius, before = certify(model, as_rows(rows)), predict(as_rows(rows))
    assert np.any(radius >= 2)
    rng, n_groups = np.random.default_rng(0), int(groups.max()) + 1
    for values in product(VALUES, repeat=2):
        chosen = rng.choice(n_groups, 2, replace=False)
        broken = rows.copy()
        for group, value in zip(chosen, values, strict=True):
            broken[:, groups == group] = value
        assert np.array_equal(predict(as_rows(broken))[radius >= 2], before[radius >= 2])
        mixed = rows.copy()
        mixed[:, groups == chosen[0]] = rng.choice(VALUES, size=(len(rows), int((groups == chosen[0]).sum())))
        assert np.array_equal(predict(as_rows(mixed))[radius >= 1], before[radius >= 1])


@pytest.mark.parametrize("voting", ["hard", "runoff"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_members_on_features_of_their_own(voting, multi_class, as_rows):
    make = fitted if voting == "hard" else elected
    clf, rows = make("wine", multi_class=multi_class), split("wine")[2]
    assert_stands(clf, rows, clf.predict, clf.groups_, as_rows)


def test_groups_whose_columns_overflow_against_each_other():
    clf, rows = elected("wine", n_groups=7), split("wine")[2]
    assert_stands(clf, rows, clf.predict, clf.groups_)


def test_float32_rows():
    X, y, rows, _ = split("wine")
    clf = ERMClassifier(9, C=0.1, exclusivity=np.inf, voting="runoff", random_state=0)
    clf.fit(X.astype(np.float32), y)
    rows = rows.astype(np.float32)
    radius, before = clf.certify(rows), clf.predict(rows)
    for value in (np.finfo(np.float32).max, -np.finfo(np.float32).max, np.float32(1e-45)):
        broken = rows.copy()
        broken[:, 4] = value
        assert np.array_equal(clf.predict(broken)[radius >= 1], before[radius >= 1])


@pytest.mark.parametrize("base", [LinearSVC(C=0.1), LogisticRegression()], ids=["svm", "logistic"])
@pytest.mark.parametrize("voting", ["hard", "runoff"])
def test_linear_members_of_a_partition(base, voting):
    X, y, rows, _ = split("wine")
    clf = FeaturePartitionClassifier(base, 7, random_state=0, voting=voting).fit(X, y)
    assert_stands(clf, rows, clf.predict, clf.groups_)


def test_beyond_the_reach_of_a_step_there_is_an_error_and_no_label():
    """A scaler may make infinity of a finite value, and trees see float32: both refuse the row."""
    X, y, rows, _ = split("wine")
    broken = rows.copy()
    broken[:, 0] = LARGEST
    scaled = make_pipeline(StandardScaler(), elected("wine")).fit(X * 1e-3, y)
    with pytest.raises(ValueError, match="infinity"):
        scaled.predict(broken)
    trees = FeaturePartitionClassifier(DecisionTreeClassifier(), 5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="too large"):
        trees.predict(broken)


@pytest.mark.parametrize("voting", ["hard", "runoff"])
@pytest.mark.parametrize("size", [1e16, 1e30])
def test_one_row_of_a_sentinel_does_not_stop_the_search(voting, size):
    """Without the fold that holds it, sums over rows are what rounding has left of them."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 6)), np.full((1, 6), size)])
    y = X[:, 0] * X[:, 1] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such members may well be bad ones, or fall short of the optimum
        model = ERMClassifier(3, exclusivity=np.inf, voting=voting, random_state=0).fit(X, y)
    assert set(model.predict(X)) <= {False, True}
    assert model.certify(X).max() <= 3
