"""From a raw table to certified votes: groups are found, and certificates speak of input columns."""

import re
import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.io import load_model, save_model, to_onnx
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import (
    certify,
    feature_groups_from_transformer,
)
from exclusivity.robustness.sources import column_sources
from exclusivity.tables import TableEncoder
from tables.table_cases import mixed_table
from tables.votes import table_vote

TABLE, CLASSES = mixed_table()
VOTING = {"exclusivity": np.inf, "voting": "hard", "random_state": 0}


class TestGroups:
    def test_of_the_one_line(self):
        model = table_vote(5, random_state=0).fit(TABLE, CLASSES)
        encoder, classifier = model
        assert classifier.groups_.tolist() == encoder.sources_.tolist()
        assert len(classifier.partition_) == 6
        assert classifier.voting == "hard"
        assert classifier.feature_groups is None

    @pytest.mark.parametrize("sparse_output", [False, True])
    def test_in_any_pipeline(self, sparse_output, tmp_path):
        encoder = TableEncoder(sparse_output=sparse_output)
        expected = encoder.fit(TABLE).sources_.tolist()
        for memory in (None, str(tmp_path)):
            for _ in range(2):  # the second time from the cache
                pipeline = make_pipeline(encoder, ERMClassifier(3, **VOTING), memory=memory)
                assert pipeline.fit(TABLE, CLASSES)[-1].groups_.tolist() == expected

    def test_after_cloning_and_slicing_and_in_a_search(self):
        model = table_vote(3, random_state=0)
        expected = clone(model).fit(TABLE, CLASSES)
        search = GridSearchCV(model, {"encoder__numeric": ["linear", "spline"]}, cv=2).fit(TABLE, CLASSES)
        best = search.best_estimator_
        assert best[-1].groups_.tolist() == best[0].sources_.tolist()
        assert certify(search, TABLE).max() >= 1
        head = clone(expected)[:-1].fit(TABLE)
        rows = head.transform(TABLE)
        alone = clone(expected[-1]).fit(rows, CLASSES)
        np.testing.assert_array_equal(alone.groups_, expected[-1].groups_)

    @pytest.mark.filterwarnings("ignore:The search for a partition:UserWarning")
    def test_of_other_classifiers(self):
        encoder = TableEncoder().fit(TABLE)
        for classifier in (
            ERMClassifierCV(3, Cs=[0.1, 1], cv=2, **VOTING),
            FeaturePartitionClassifier(LogisticRegression(), 3, random_state=0),
            FeaturePartitionClassifier(LogisticRegression(), 3, partition="learned", random_state=0),
        ):
            model = make_pipeline(encoder, classifier).fit(TABLE, CLASSES)
            assert model[-1].groups_.tolist() == encoder.sources_.tolist()
            assert certify(model, TABLE).max() == 1

    def test_only_where_members_compete(self):
        model = make_pipeline(TableEncoder(), ERMClassifier(3)).fit(TABLE, CLASSES)
        assert len(np.unique(model[-1].groups_)) == len(model[0].sources_)

    def test_given_groups_win(self):
        n_columns = len(TableEncoder().fit(TABLE).sources_)
        model = table_vote(3, random_state=0)
        model.set_params(classifier__feature_groups=np.arange(n_columns) % 4)
        assert model.fit(TABLE, CLASSES)[-1].groups_.tolist() == (np.arange(n_columns) % 4).tolist()

    def test_a_column_called_feature_groups(self):
        X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["feature_groups", "b"])
        model = ERMClassifier(2, **VOTING).fit(X, X["b"] > 0)
        assert model.groups_.tolist() == [0, 1]

    def test_sources(self):
        encoder = TableEncoder().fit(TABLE)
        np.testing.assert_array_equal(column_sources(encoder), encoder.sources_)
        assert feature_groups_from_transformer(encoder) == encoder.feature_groups_.tolist()


class TestVotes:
    @pytest.mark.parametrize("form", [lambda X: X, pa.Table.from_pandas, pl.from_pandas])
    def test_any_table(self, form):
        model = table_vote(3, random_state=0).fit(form(TABLE), CLASSES)
        assert model.score(form(TABLE), CLASSES) > 0.7
        assert certify(model, form(TABLE)).max() == 1

    def test_curves_see_what_lines_do_not(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(600, 9))
        y = np.abs(X).sum(axis=1) > np.median(np.abs(X).sum(axis=1))
        curves, lines = (
            table_vote(9, numeric=numeric, random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:])
            for numeric in ("spline", "linear")
        )
        assert curves > lines + 0.15


JUNK = {
    "age": [0, -1e308, 1e308, np.inf, None, "17", True, 10**400, 49.5],
    "income": [0.0, 1e300, -5, np.nan, "1e5", False, 20_000],
    "colour": ["red", "green", "blue", "grey", "never seen", None, "", 3.5, True],
    "member": [True, False, None, "maybe", 1, "True"],
    "visits": [0, 1, 2, 3.5, 1e9, None, "-4"],
    "day": ["1700-01-01", "2021-12-31", "2999-06-15 23:59", None, np.datetime64("2022-02-02")],
}
"""What the encoder takes in each column, sense or not."""


def broken(table, chosen, rng):
    """The table with the chosen cells replaced by anything that the encoder accepts."""
    changed = table.astype(object)
    for place, name in enumerate(table):
        rows = np.flatnonzero(chosen[:, place])
        values = np.empty(len(rows), dtype=object)
        values[:] = [JUNK[name][k] for k in rng.integers(len(JUNK[name]), size=len(rows))]
        column = changed[name].to_numpy(dtype=object).copy()
        column[rows] = values
        changed[name] = pd.Series(column, dtype=object, index=table.index)
    return changed


class TestSoundness:
    """A prediction of radius r stands, whatever stands in any r input columns."""

    @pytest.mark.parametrize(
        ("n_members", "parameters", "n_classes"),
        [
            (3, {}, 2),
            (5, {}, 2),
            (5, {"numeric": "linear", "sparse_output": True}, 2),
            (5, {"dtype": np.float32, "categorical": ["visits"]}, 3),
            (6, {"multi_class": "ovo"}, 3),
            (3, {"voting": "runoff", "dtype": np.float32}, 3),
        ],
    )
    def test_a_thousand_rows(self, n_members, parameters, n_classes):
        train, y = mixed_table(300, seed=1)
        if n_classes == 3:
            y = np.where(np.arange(len(y)) % 3 == 0, "maybe", y)
        test, _ = mixed_table(1000, seed=2)
        model = table_vote(n_members, random_state=0, **parameters).fit(train, y)
        radii, labels = certify(model, test), model.predict(test)
        assert radii.max() >= 1
        rng = np.random.default_rng(0)
        for _ in range(10):
            # Of every row as many columns as its radius allows, others every time.
            ranks = rng.permuted(np.tile(np.arange(6), (len(test), 1)), axis=1)
            changed = broken(test, ranks < np.maximum(radii, 0)[:, None], rng)
            assert np.all((model.predict(changed) == labels)[radii >= 0])

    @pytest.mark.parametrize("numeric", ["linear", "spline"])
    def test_exhaustive(self, numeric):
        """Every choice of r columns, and every value that the encoder tells apart at its corners."""
        table, y = mixed_table(120, seed=3)
        table = table[["age", "colour", "member", "visits", "income"]]
        model = table_vote(5, numeric=numeric, random_state=0).fit(table, y)
        radii, labels = certify(model, table), model.predict(table)
        rows = np.concatenate([np.flatnonzero(radii == r)[:4] for r in np.unique(radii)])
        # Curves are piecewise linear: a score is largest and smallest at corners.
        corners = {name: self.corners(model, name, JUNK[name]) for name in table}
        for row in rows:
            r = max(int(radii[row]), 0)
            for chosen in combinations(table.columns, r):
                values = list(product(*(corners[name] for name in chosen)))
                changed = pd.concat(
                    [table.iloc[[row]].astype(object)] * max(1, len(values)), ignore_index=True
                )
                for place, name in enumerate(chosen):
                    changed[name] = pd.Series([value[place] for value in values], dtype=object)
                if radii[row] >= 0:
                    assert set(model.predict(changed)) == {labels[row]}

    @staticmethod
    def corners(model, name, junk):
        column = next(column for column in model[0].columns_ if column.name == name)
        if column.kind != "number":
            return junk
        code = column.code
        return [None, code.low, code.high, *(code.mean + code.scale * code.knots[1:-1])]

    def test_it_would_notice(self):
        """Past the radius some rows do turn."""
        train, y = mixed_table(300, seed=1)
        test, _ = mixed_table(1000, seed=2)
        model = table_vote(3, random_state=0).fit(train, y)
        radii, labels = certify(model, test), model.predict(test)
        rng = np.random.default_rng(0)
        ranks = rng.permuted(np.tile(np.arange(6), (len(test), 1)), axis=1)
        changed = broken(test, ranks < radii[:, None] + 2, rng)
        assert np.any(model.predict(changed) != labels)


class TestGroupsOfColumns:
    """Columns of one label go to one member together."""

    labels = ("body", "money", "look", "money", "body", "when")

    def test_reach_the_classifier(self):
        table, y = mixed_table(150)
        encoder = TableEncoder("linear", feature_groups=self.labels)
        model = make_pipeline(encoder, ERMClassifier(3, exclusivity=np.inf, voting="hard", random_state=0))
        model.fit(table, y)
        owner = {}
        for place, group in zip(encoder.sources_, model[-1].partition_[model[-1].groups_], strict=True):
            owner.setdefault(self.labels[place], set()).add(group)
        assert all(len(members) == 1 for members in owner.values())
        assert len(np.unique(encoder.feature_groups_)) == 4
        radius = certify(model, table)
        changed = table.assign(age=1e9, visits=-5)  # both are of one group
        safe = radius >= 1
        assert safe.any()
        np.testing.assert_array_equal(model.predict(changed)[safe], model.predict(table)[safe])

    def test_as_a_callable_and_in_one_line(self):
        table, y = mixed_table(150)
        by_letter = table_vote(3, feature_groups=_first_letters, random_state=0).fit(table, y)
        assert len(np.unique(by_letter[0].feature_groups_)) == len({name[0] for name in table})
        assert by_letter[-1].feature_groups is None

    def test_that_do_not_fit(self):
        table, _ = mixed_table(50)
        with pytest.raises(ValueError, match="6"):
            TableEncoder(feature_groups=["a", "b"]).fit(table)


def _first_letters(names):
    return [name[0] for name in names]


class TestMonotonicColumns:
    """A rule about a column is a rule about all that an encoder makes of it."""

    table, y = mixed_table(300)
    many = mixed_table(600, seed=1)
    whole = mixed_table(300, gaps=False)[0]

    def model(self, column, *, numeric="spline", **parameters):
        encoder = TableEncoder(numeric).set_output(transform="pandas")
        return make_pipeline(encoder, ERMClassifier(1, monotonic_cst={column: 1}, **parameters))

    @pytest.mark.parametrize(
        ("column", "numeric", "feature"),
        [
            ("income", "spline", "income_spline0"),
            ("age", "linear", "age=(missing)"),
            ("colour", "linear", "colour=blue"),
            ("member", "linear", "member=False"),
            ("day", "linear", "day.year"),
        ],
    )
    def test_that_become_several_features(self, column, numeric, feature):
        match = re.escape(
            f"names {column!r}, which a TableEncoder makes several features of (such as {feature!r}"
        )
        with pytest.raises(ValueError, match=match):
            self.model(column, numeric=numeric).fit(self.table, self.y)

    def test_without_names_the_way_to_them_is_told(self):
        model = make_pipeline(TableEncoder(), ERMClassifier(monotonic_cst={"income": 1}))
        with pytest.raises(ValueError, match="Behind a TableEncoder give monotonic_cst to the encoder"):
            model.fit(self.table, self.y)

    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"numeric": "linear"},
            {"voting": "soft", "exclusivity": 0, "sparse_output": True, "dtype": np.float32},
            {"voting": "soft", "exclusivity": 0, "C": 100.0, "n_knots": 12},
        ],
    )
    def test_of_curves(self, sign, parameters):
        """The score is monotone in the column from end to end, and where the rule binds it is not free."""
        table, y = self.many
        rules = {"age": sign, "income": -1}
        model = table_vote(3, random_state=0, monotonic_cst=rules, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # members that vote for one class
            model.fit(table, y)
        assert model[-1].converged_.all()
        is_free = []
        for column, way in rules.items():
            known = table[column].dropna()
            ends = [-np.inf, *np.linspace(known.min(), known.max(), 200), *known[:100].sort_values(), np.inf]
            ends = sorted(ends)
            for row in range(8):
                rows = pd.concat([table[row : row + 1]] * len(ends)).assign(**{column: ends})
                scores = way * model.decision_function(rows)
                assert np.all(np.diff(scores) >= -1e-6 * max(1, np.abs(scores).max()))
                is_free.append(np.ptp(scores) > 1e-3)
        assert any(is_free)

    def test_of_curves_is_no_worse_than_it_must_be(self):
        """Where the best curve is monotone anyhow, the rule costs nothing."""
        rng = np.random.default_rng(0)
        x = rng.uniform(size=800)
        X, y = x[:, None], rng.random(800) < 0.1 + 0.8 * (x > 0.3) * np.minimum(2 * x, 1)
        free = make_pipeline(TableEncoder(), ERMClassifier(1)).fit(X, y)
        ruled = make_pipeline(TableEncoder(monotonic_cst=[1]), ERMClassifier(1)).fit(X, y)
        assert ruled[0].get_feature_names_out().tolist() == ["x0", *(f"x0_ramp{j}" for j in range(5))]
        assert abs(free.score(X, y) - ruled.score(X, y)) < 0.02
        against = make_pipeline(TableEncoder(monotonic_cst=[-1]), ERMClassifier(1)).fit(X, y)
        assert np.ptp(against.decision_function(X)) < 1e-3

    def test_rules_that_cannot_be_honoured(self):
        table, y = self.table, self.y
        for rule, message in (
            ({"colour": 1}, "'colour', which holds categories"),
            ({"day": 1}, "'day', which holds dates"),
            ({"cost": 1}, "'cost', which is no column"),
            ({"age": 2}, "must have 1, -1 or 0"),
            ([1], "must have 1, -1 or 0 for each of 6 columns"),
        ):
            with pytest.raises(ValueError, match=message):
                table_vote(3, monotonic_cst=rule).fit(table, y)
        rule = {"age": 1}
        with pytest.raises(ValueError, match="needs set_output"):
            table_vote(3, monotonic_cst=rule).set_output(transform="pandas").fit(table, y)
        with pytest.raises(ValueError, match="more than two classes"):
            table_vote(3, monotonic_cst=rule).fit(table, np.arange(len(y)) % 3)
        with pytest.raises(ValueError, match="choose one"):
            make_pipeline(TableEncoder(monotonic_cst=rule), ERMClassifier(monotonic_cst=[0] * 30)).fit(
                table, y
            )
        with pytest.raises(ValueError, match="exclusivity=2"):
            table_vote(3, monotonic_cst=rule, exclusivity=2.0, voting="soft").fit(table, y)
        for other in (ERMClassifierCV(3, exclusivity=2.0), FeaturePartitionClassifier(3)):
            with pytest.raises(ValueError, match="monotonic_cst"):
                make_pipeline(TableEncoder(monotonic_cst=rule), other).fit(table, y)

    def test_in_a_search_over_C(self):
        model = make_pipeline(TableEncoder(monotonic_cst={"age": -1}), ERMClassifierCV(1, Cs=3, cv=2))
        model.fit(self.table, self.y)
        rows = pd.concat([self.table[:1]] * 50).assign(age=np.linspace(0, 100, 50))
        assert np.all(np.diff(model.decision_function(rows)) <= 1e-12)

    def test_in_files_and_graphs(self, tmp_path):
        model = make_pipeline(TableEncoder(monotonic_cst={"age": 1, "income": -1}), ERMClassifier(2))
        model.fit(self.table[["age", "income"]], self.y)
        save_model(model, tmp_path / "m.erm")
        again = load_model(tmp_path / "m.erm")
        expected = model.decision_function(self.table[["age", "income"]])
        np.testing.assert_array_equal(again.decision_function(self.table[["age", "income"]]), expected)
        assert again[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()
        session = pytest.importorskip("onnxruntime").InferenceSession(to_onnx(model).SerializeToString())
        rows = self.table[["age", "income"]].to_numpy(dtype=float)
        np.testing.assert_allclose(session.run(["scores"], {"X": rows})[0], expected, atol=1e-9)

    @pytest.mark.parametrize("sign", [1, -1])
    def test_that_are_one_feature(self, sign):
        """The score is monotone from end to end, infinite values included; the rule binds for one sign."""
        model = self.model("income", numeric="linear").set_params(
            ermclassifier__monotonic_cst={"income": sign}
        )
        model.fit(self.whole, self.y)
        ends = [-np.inf, *np.linspace(-1e6, 1e7, 500), np.inf]
        for row in range(5):
            rows = pd.concat([self.whole[row : row + 1]] * len(ends)).assign(income=ends)
            assert np.all(sign * np.diff(model.decision_function(rows)) >= -1e-12)
            # A missing value counts as the median: it is inside, too.
            missing = model.decision_function(rows[:1].assign(income=np.nan))
            scores = model.decision_function(rows)
            assert scores.min() - 1e-12 <= missing[0] <= scores.max() + 1e-12

    def test_encoded_features_may_be_named(self):
        model = self.model("colour=red", numeric="linear").fit(self.table, self.y)
        place = model[0].get_feature_names_out().tolist().index("colour=red")
        assert model[-1].coef_[0, place] >= 0
        free = self.model("age", numeric="linear").set_params(ermclassifier__monotonic_cst={"age": 0})
        free.fit(self.table, self.y)  # no rule
