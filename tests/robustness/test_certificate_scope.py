"""What a certificate covers: the row to be predicted, or training rows too, as the model says."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.io import load_model, save_model
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import certificate_scope, certify
from robustness.robust_cases import split

TOO = "training and test"
IF = f"{TOO} if the partition does not depend on the rows"


def voters(partition="random", **parameters):
    settings = {"C": 0.1, "exclusivity": np.inf, "voting": "runoff", "random_state": 0, **parameters}
    return ERMClassifier(7, partition=partition, **settings)


def poisoned(X, columns, rng):
    """Values of some columns as an adversary of labels' sight may set them: strong, misleading, or wild."""
    X = X.copy()
    X[:, columns] = rng.choice([-50.0, 0.0, 50.0], size=(len(X), len(columns)))
    return X


MODELS = {
    "erm": lambda: make_pipeline(StandardScaler(), voters()),
    "erm, hard, pairs": lambda: make_pipeline(StandardScaler(), voters(voting="hard", multi_class="ovo")),
    "erm, given": lambda: make_pipeline(StandardScaler(), voters(np.arange(13) % 7)),
    "erm, groups": lambda: voters(feature_groups=np.arange(13) // 2, class_weight="balanced"),
    "trees": lambda: FeaturePartitionClassifier(DecisionTreeClassifier(max_depth=3), 7, random_state=0),
    "logistic": lambda: FeaturePartitionClassifier(LogisticRegression(), 7, random_state=0, voting="runoff"),
}


@pytest.mark.parametrize("name", MODELS)
def test_certified_predictions_stand_when_training_columns_are_poisoned(name):
    X, y, rows, _ = split("wine")
    rng = np.random.default_rng(0)
    model = MODELS[name]().fit(X, y)
    assert certificate_scope(model) == (IF if name == "erm, given" else TOO)
    radius, before, turned = certify(model, rows), model.predict(rows), 0
    last = model[-1] if hasattr(model, "steps") else model
    n_groups = int(last.groups_.max()) + 1
    for trial in range(12):
        r = 1 + trial % 2
        broken = rng.choice(n_groups, r, replace=False)
        columns = np.flatnonzero(np.isin(last.groups_, broken))
        again = MODELS[name]().fit(poisoned(X, columns, rng), y)
        for seen in (rows, poisoned(rows, columns, rng)):  # in training alone, and in both
            after = again.predict(seen)
            assert np.array_equal(after[radius >= r], before[radius >= r])
            turned += int((after != before).sum())
    assert np.any(radius >= 2)
    assert turned > 0  # the poison is strong enough to turn what is not certified


def test_members_see_nothing_of_columns_that_are_not_theirs():
    X, y, _, _ = split("wine")
    rng = np.random.default_rng(1)
    clf, again = voters().fit(X, y), voters().fit(poisoned(X, [3, 8], rng), y)
    assert np.array_equal(clf.partition_, again.partition_)
    untouched = ~clf.supports_[:, [3, 8]].any(axis=1)
    assert np.array_equal(clf.components_[:, untouched], again.components_[:, untouched])
    assert np.array_equal(clf.component_intercepts_[:, untouched], again.component_intercepts_[:, untouched])


def test_with_a_learned_partition_they_can_fall():
    """The search looks at all columns: a poisoned one moves others from member to member."""
    X, y, rows, _ = split("wine")
    clf = voters("learned").fit(X, y)
    assert clf.certificate_scope_ == certificate_scope(clf) == "test"
    radius, before = clf.certify(rows), clf.predict(rows)
    fallen = 0
    for column in range(X.shape[1]):
        worse = X.copy()
        # A column that shows the class: members that get it, and those that lose theirs, are others now.
        worse[:, column] = np.searchsorted(clf.classes_, y) * 10.0
        again = voters("learned").fit(worse, y)
        fallen += int((again.predict(rows)[radius >= 1] != before[radius >= 1]).sum())
    assert fallen > 0


@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")
def test_what_is_not_column_by_column_covers_the_test_row_only():
    X, y, _, _ = split("wine")
    for step in (SelectKBest(k=8), PCA(8)):
        assert certificate_scope(make_pipeline(step, voters()).fit(X, y)) == "test"
    assert certificate_scope(make_pipeline("passthrough", voters()).fit(X, y)) == TOO
    search = GridSearchCV(voters(), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert certificate_scope(search) == "test"
    assert certificate_scope(LogisticRegression().fit(X, y)) == "test"
    trees = FeaturePartitionClassifier(DecisionTreeClassifier(), 5, partition="learned").fit(X, y)
    assert trees.certificate_scope_ == "test"
    # Groups that were learned before are labels like others: the model names the condition that they break.
    borrowed = FeaturePartitionClassifier(DecisionTreeClassifier(), 5, partition=trees.partition_).fit(X, y)
    assert borrowed.certificate_scope_ == certificate_scope(borrowed) == IF


def test_a_model_file_keeps_the_scope(tmp_path):
    X, y, rows, _ = split("wine")
    for partition, scope in (("random", TOO), ("learned", "test"), ((np.arange(13) % 7).tolist(), IF)):
        clf = voters(partition).fit(X, y)
        save_model(clf, tmp_path / "model.erm")
        twin = load_model(tmp_path / "model.erm")
        assert twin.certificate_scope_ == clf.certificate_scope_ == scope
        assert np.array_equal(twin.predict(rows), clf.predict(rows))
        # Written only where it matters: to an older reader it is an unknown key, and a reason to refuse.
        written = (tmp_path / "model.erm").read_bytes()
        assert (b'"certificate_scope"' in written) == (scope != "test")


def test_the_draw_depends_on_the_seed_alone():
    X, y, _, _ = split("wine")
    first, second = (voters().fit(rows, y).partition_ for rows in (X, X[:, ::-1] ** 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, voters(random_state=1).fit(X, y).partition_)
    assert np.bincount(first).max() - np.bincount(first).min() <= 1


def test_partitions_that_cannot_be_honoured():
    X, y, _, _ = split("wine")
    with pytest.raises(ValueError, match="'learned', 'random'; got 'drawn'"):
        voters("drawn").fit(X, y)
    with pytest.raises(ValueError, match=r"set exclusivity=np\.inf"):
        voters(exclusivity=100.0).fit(X, y)
    with pytest.raises(ValueError, match="there is none; leave one of them out"):
        voters(solver_options={"restarts": 3}).fit(X, y)
    with pytest.raises(ValueError, match="one label for each of the 13 columns"):
        voters([0, 1, 2]).fit(X, y)
    with pytest.raises(ValueError, match="set n_estimators=5"):
        voters(np.arange(13) % 5).fit(X, y)


def test_quantiles_of_drawn_rows_depend_on_other_columns():
    """Of sparse columns the values are drawn one after the other from one stream of random numbers."""
    X, y, _, _ = split("wine")
    other = X.copy()
    other[:, 0] = 0.0

    def quantiles(rows, subsample):
        rows = sparse.csc_matrix(np.abs(rows))
        return QuantileTransformer(n_quantiles=5, subsample=subsample, random_state=0).fit(rows)

    for subsample, scope in ((20, "test"), (None, TOO)):
        before, after = quantiles(X, subsample), quantiles(other, subsample)
        assert np.array_equal(before.quantiles_[:, 1:], after.quantiles_[:, 1:]) == (scope == TOO)
        model = make_pipeline(before, voters())
        model[-1].fit(before.transform(np.abs(X)), y)
        assert certificate_scope(model) == scope
