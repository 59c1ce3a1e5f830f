"""A member whose columns are all missing abstains; what is certified then stands against every change."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.io import to_onnx
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import certify, certify_set
from exclusivity.tables import TableEncoder
from tables.votes import table_vote

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


COLUMNS, TEXTS = list("abcdefg"), {0.0: "red", 1.0: "green", 2.0: "blue"}


def as_table(rows):
    """The rows as a table with a column of texts, which may be missing like the others."""
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.assign(c=table["c"].map(TEXTS))


def behind_an_encoder(n_classes, **parameters):
    """A vote behind an encoder, rows with missing values, and which members own which column."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(n_classes, size=300)
    X = (y[:, None] + (rng.random((300, 7)) < 0.25) * rng.integers(3, size=(300, 7))) % 3.0
    voters = {"feature_groups": OWNERS, "partition": [0, 1, 2, 3, 4], "numeric": "linear"} | parameters
    model = table_vote(5, **voters).fit(as_table(X), y)
    rows = X[:40].copy()
    rows[rng.random(rows.shape) < 0.35] = np.nan
    return model, rows


VOTES = pytest.mark.parametrize("voting", ["hard", "runoff"])
SCHEMES = pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (3, "ovo")])


@VOTES
@SCHEMES
def test_nothing_that_r_groups_show_changes_a_vote_behind_an_encoder(n_classes, multi_class, voting):
    """Whatever stands in the columns of r of the five sensors, missing ones included."""
    model, rows = behind_an_encoder(n_classes, multi_class=multi_class, voting=voting)
    assert erased(rows).any(axis=1).mean() > 0.3
    table = as_table(rows)
    radius, label = certify(model, table), model.predict(table)
    values = [-1.0, 0.0, 1.0, 2.0, np.nan]
    for r in (1, 2):
        assert (radius >= r).any()
        allowed = certify_set(model, table, r)
        for members in combinations(range(5), r):
            columns = np.flatnonzero(np.isin(OWNERS, members))
            changes = list(product(values, repeat=len(columns)))[:: 1 if len(columns) < 3 else 7]
            others = np.tile(rows, (len(changes), 1, 1))
            others[:, :, columns] = np.array(changes)[:, None, :]
            after = model.predict(as_table(others.reshape(-1, 7))).reshape(len(changes), -1)
            assert np.all((after == label) | (radius < r))
            assert np.all(np.take_along_axis(allowed, after.T, axis=1))


def test_the_lead_after_abstentions_is_what_counts_behind_an_encoder():
    """Of two classes: e sensors are known to be missing, r others may break."""
    model, rows = behind_an_encoder(2)
    table = as_table(rows)
    votes = np.where(erased(rows), -1, model[-1].component_predict(model[:-1].transform(table)))
    lead = np.abs((votes == 0).sum(axis=1) - (votes == 1).sum(axis=1))
    for r in range(3):
        assert np.array_equal(certify(model, table) >= r, lead > 2 * r)
    clear = lead > 0
    winner = (votes == 1).sum(axis=1) > (votes == 0).sum(axis=1)
    assert np.array_equal(model.predict(table)[clear], winner[clear].astype(int))


@VOTES
def test_absent_columns_and_unreadable_cells_are_erasures_too(voting):
    model, rows = behind_an_encoder(3, voting=voting)
    table = as_table(rows)
    gone = table.assign(d=np.nan, e=np.nan)
    with pytest.warns(UserWarning, match="'d' is absent"):
        assert np.array_equal(model.predict(table.drop(columns=["d", "e"])), model.predict(gone))
    with pytest.warns(UserWarning, match="'e'"):
        assert np.array_equal(model.predict(gone.assign(e="error 17")), model.predict(gone))


@VOTES
def test_without_any_value_all_members_vote_and_nothing_is_certified(voting):
    model, rows = behind_an_encoder(3, voting=voting)
    empty = as_table(np.full_like(rows[:2], np.nan))
    assert model.predict(empty)[0] in model[-1].component_predict(model[:-1].transform(empty))[0]
    assert np.all(certify(model, empty) == -1)
    assert certify_set(model, empty, 0).all()


@VOTES
@SCHEMES
def test_a_graph_abstains_as_the_model_does(n_classes, multi_class, voting):
    runtime = pytest.importorskip("onnxruntime")
    model, rows = behind_an_encoder(n_classes, multi_class=multi_class, voting=voting)
    rows[0] = np.nan
    table = as_table(rows)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    texts = table["c"].where(table["c"].notna(), "").to_numpy(object)
    cells = {name: table[[name]].to_numpy(float) for name in COLUMNS if name != "c"}
    label, scores = session.run(["label", "scores"], cells | {"c": texts[:, None]})
    assert np.array_equal(label, model.predict(table))
    np.testing.assert_allclose(scores, model.decision_function(table), atol=1e-12)


@pytest.mark.parametrize("member", [None, DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_an_average_and_members_of_other_kinds(member):
    """A mean of margins has no votes to leave out; a vote of trees abstains like one of linear members."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = pd.DataFrame((y[:, None] + (rng.random((200, 7)) < 0.25)) % 2.0, columns=COLUMNS)
    voters = ERMClassifier(5) if member is None else FeaturePartitionClassifier(member, 5, partition=OWNERS)
    model = make_pipeline(TableEncoder("linear"), voters).fit(X, y)
    gone = X.assign(a=np.nan, b=np.nan, c=np.nan)
    encoded = model[:-1].transform(gone)
    if member is None:
        assert np.array_equal(model.predict(gone), model[-1].predict(np.asarray(encoded)))
    else:
        votes = model[-1].component_predict(encoded)[:, 2:]
        assert np.array_equal(model.predict(gone), (votes.sum(axis=1) > 1.5).astype(int))
