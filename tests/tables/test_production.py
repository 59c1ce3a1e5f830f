"""A table that is not as in training: predicted all the same, and reported; and doubtful training tables."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from exclusivity import ERMClassifier, RobustAdditiveClassifier
from exclusivity.tables import TableEncoder
from tables.table_cases import mixed_table
from tables.votes import table_vote

TABLE, CLASSES = mixed_table(200)
ENCODER = TableEncoder().fit(TABLE)
ROBUST = RobustAdditiveClassifier(1)


def message_of(function):
    """Call, and return the result and the one warning."""
    with pytest.warns(UserWarning, match="Columns are not as in training") as caught:
        found = function()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return found, str(caught[0].message)


def silent(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function()


class TestCells:
    broken = TABLE.astype(object).assign(
        age=["forty", 41.0, "forty", None, "4e1"] * 40,
        day=["2024-13-01", "soon", "2024-01-05", None, 5] * 40,
        colour=["red", [1], {"a": 1}, None, "blue"] * 40,
    )
    as_missing = TABLE.astype(object).assign(
        age=[None, 41.0, None, None, 40.0] * 40,
        day=[None, None, "2024-01-05", None, None] * 40,
        colour=["red", None, None, None, "blue"] * 40,
    )

    def test_count_as_missing(self):
        found, message = message_of(lambda: ENCODER.transform(self.broken))
        np.testing.assert_array_equal(found, silent(lambda: ENCODER.transform(self.as_missing)))
        assert "column 'age': 80 cells with no number, such as 'forty', count as missing" in message
        assert "column 'day': 120 cells with no date, such as '2024-13-01'" in message
        assert "column 'colour': 80 cells with no category, such as [1]" in message
        assert "income" not in message

    def test_whatever_the_batch_and_the_container(self):
        rows = self.broken.drop(columns="colour")
        encoder = TableEncoder().fit(TABLE.drop(columns="colour"))
        expected = encoder.transform(self.as_missing.drop(columns="colour"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for row in range(10):
                np.testing.assert_array_equal(encoder.transform(rows[row : row + 1]), expected[row : row + 1])
            texts = {name: [None if pd.isna(x) else str(x) for x in rows[name]] for name in rows}
            forms = [rows.astype(object), pl.DataFrame(texts), pa.table(texts)]
            for form in forms:
                np.testing.assert_array_equal(encoder.transform(form), expected)
            plain = TableEncoder().fit(TABLE.drop(columns="colour").to_numpy(dtype=object))
            for form in (rows.to_numpy(dtype=object), rows.to_numpy(dtype=object).tolist()):
                np.testing.assert_array_equal(plain.transform(form), expected)

    def test_columns_of_another_type(self):
        dates = pd.DataFrame({"it": pd.to_datetime(["2024-01-01", "2024-05-01", None])})
        numbers = pd.DataFrame({"it": [1.0, 2.0, np.nan]})
        for trained, given in ((dates, numbers), (numbers, dates)):
            encoder = TableEncoder().fit(trained)
            found, message = message_of(lambda e=encoder, g=given: e.transform(g))
            assert "column 'it': 2 cells" in message
            np.testing.assert_array_equal(found, encoder.transform(trained)[[2, 2, 2]])

    def test_strict(self):
        strict = clone(ENCODER).set_params(strict=True).fit(TABLE)
        with pytest.raises(ValueError, match="Column 'age': it held numbers in fit"):
            strict.transform(self.broken)
        np.testing.assert_array_equal(strict.transform(TABLE), silent(lambda: ENCODER.transform(TABLE)))


class TestColumns:
    def test_absent_unknown_and_moved_ones(self):
        rows = TABLE[TABLE.columns[::-1]].drop(columns="income").assign(more=1)
        expected = ENCODER.transform(TABLE.assign(income=np.nan))
        for form in (rows, pl.from_pandas(rows), pa.Table.from_pandas(rows)):
            found, message = message_of(lambda form=form: ENCODER.transform(form))
            np.testing.assert_array_equal(found, expected)
            assert "column 'income' is absent, and all of its cells count as missing" in message
            assert "column 'more' is unknown and ignored" in message

    def test_moved_ones_are_found_by_name(self):
        found = silent(lambda: ENCODER.transform(TABLE[TABLE.columns[::-1]]))
        np.testing.assert_array_equal(found, ENCODER.transform(TABLE))

    def test_through_a_pipeline(self):
        model = table_vote(3, random_state=0).fit(TABLE, CLASSES)
        found, _ = message_of(lambda: model[0].transform(TABLE.drop(columns="day")))
        with pytest.warns(UserWarning, match="column 'day' is absent"):
            labels = model.predict(TABLE.drop(columns="day"))
        np.testing.assert_array_equal(labels, model[-1].predict(found))


class TestDates:
    @pytest.mark.parametrize(
        ("text", "same"),
        [
            ("2024/02/05", "2024-02-05"),
            ("2024/02/05 10:30", "2024-02-05T10:30"),
            ("2024-02-05T10:30:00Z", "2024-02-05T10:30"),
            ("2024-02-05 10:30:15.5+02:00", "2024-02-05T10:30:15.5"),
            ("2024-02-05 10:30 -0500", "2024-02-05T10:30"),
        ],
    )
    def test_forms(self, text, same):
        days = ["2023-01-01 00:00", "2024-02-05 10:30", "2024-02-06 22:00"]
        encoder = TableEncoder("linear", strict=True).fit([[day] for day in days])
        np.testing.assert_array_equal(encoder.transform([[text]]), encoder.transform([[same]]))
        trained = TableEncoder().fit([[text], ["2020/01/01"], [None]])
        assert trained.columns_[0].kind == "date"

    @pytest.mark.parametrize("text", ["2024/02-05", "2024-02-05Z", "2024-02-05T10", "2024-02-05T10:30+2"])
    def test_what_is_none(self, text):
        encoder = TableEncoder("linear", strict=True).fit([["2023-01-01"], ["2024-02-05"]])
        with pytest.raises(ValueError, match="it held dates in fit"):
            encoder.transform([[text]])


class TestTrainingTables:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    good = pd.DataFrame({"good": rng.normal(size=300)})

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            (y, "Column 'it' equals the target"),
            (np.where(y == 1, "yes", "no"), "Column 'it' equals the target"),
            (np.where(y == 1, np.nan, 3.5), "Column 'it' equals the target"),
            (y * 3 + rng.integers(0, 3, 300), "Column 'it' determines the target"),
        ],
    )
    def test_columns_that_tell_the_target(self, column, message):
        table = self.good.assign(it=column)
        fits = (TableEncoder().fit, TableEncoder().fit_transform, table_vote(2).fit, ROBUST.fit)
        for fit in fits:
            with pytest.warns(UserWarning, match=message) as caught:
                fit(table, self.y)
        assert caught[0].filename == __file__
        silent(lambda: TableEncoder().fit(table))

    @pytest.mark.parametrize(
        "column",
        [
            np.where(np.arange(300) == 7, 1 - y, y),
            rng.normal(size=300),
            rng.integers(0, 5, 300),
            [f"word {n % 60}" for n in range(300)],
        ],
    )
    def test_columns_that_do_not(self, column):
        for fit in (TableEncoder().fit, ROBUST.fit):
            silent(lambda fit=fit: fit(self.good.assign(it=column), self.y))

    def test_one_row_of_a_class_is_chance(self):
        y = np.arange(300) == 5
        silent(lambda: TableEncoder().fit(self.good.assign(it=y), y))

    def test_free_text(self):
        texts = [f"{n} words about {n * n} things" for n in range(300)]
        with pytest.warns(UserWarning, match="Column 'it' has 300 distinct values in 300 rows and cannot"):
            TableEncoder().fit(self.good.assign(it=texts))
        silent(lambda: TableEncoder(categorical=["it"]).fit(self.good.assign(it=texts)))
        with pytest.warns(UserWarning, match="Column 'it' has 300 distinct values in 300 rows") as caught:
            ROBUST.fit(self.good.assign(it=texts), self.y)
        assert caught[0].filename == __file__
        declared = clone(ROBUST).set_params(categorical_features=["it"])
        silent(lambda: declared.fit(self.good.assign(it=texts), self.y))
        silent(lambda: ROBUST.fit(self.good.assign(it=pd.Categorical(texts)), self.y))

    @pytest.mark.filterwarnings("ignore:The number of unique classes is greater")
    @pytest.mark.parametrize("y", [np.arange(300) % 51, [f"case {n}" for n in range(300)]])
    def test_targets_that_are_no_classes(self, y):
        one = RobustAdditiveClassifier(0, tol=1.0, max_iter=1)
        for fit in (TableEncoder().fit, one.fit):
            with pytest.warns(UserWarning, match=r"y has \d+ different values in 300 rows. Are they classes"):
                fit(self.good, y)

    @pytest.mark.parametrize("y", [np.arange(300) % 50, rng.normal(size=300), None, [None, 1, "a"] * 100])
    def test_targets_that_are_or_may_be(self, y):
        silent(lambda: TableEncoder().fit(self.good, y))


@pytest.mark.parametrize("hole", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_label_is_named(hole):
    labels = np.where(np.arange(300) % 2, "a", "b").astype(object)
    labels[5] = hole
    with pytest.raises(ValueError, match="Input y contains NaN: the label of row 5 is missing"):
        ROBUST.fit(pd.DataFrame({"number": np.arange(300.0)}), labels)


class TestGroups:
    def test_by_column_name(self):
        groups = {"age": "person", "income": "person", "day": "visit", "visits": "visit"}
        model = table_vote(3, feature_groups=groups, random_state=0).fit(TABLE, CLASSES)
        assert model[0].feature_groups_[[0, -1]].tolist() == [0, 3]
        owners = model[-1].partition_
        assert len(owners) == 4  # two groups, and two columns of their own
        numbers = TABLE[["age", "income", "visits"]].astype(float).fillna(0.0)
        plain = ERMClassifier(2, exclusivity=np.inf, feature_groups={"age": "person", "income": "person"})
        assert plain.fit(numbers, CLASSES).groups_.tolist() == [0, 0, 1]

    def test_wrong_names(self):
        with pytest.raises(ValueError, match="feature_groups names 'aeg', which is no column of X"):
            table_vote(3, feature_groups={"aeg": 1}).fit(TABLE, CLASSES)
        with pytest.raises(ValueError, match="goes by column names, but X has none"):
            ERMClassifier(2, exclusivity=np.inf, feature_groups={"age": 1}).fit([[0.0], [1.0]], [0, 1])
