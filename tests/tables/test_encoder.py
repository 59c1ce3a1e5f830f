"""What becomes of columns of every kind, and where the bounds are."""

import datetime as dt
import enum
import pickle
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from exclusivity.tables import TableEncoder
from exclusivity.tables._codes import hats, place_knots
from exclusivity.tables._columns import (
    LONGEST_LEVEL,
    as_levels,
    as_numbers,
    kind_of,
)
from tables.table_cases import mixed_table

TABLE, CLASSES = mixed_table()
ENCODER = TableEncoder().fit(TABLE)


def outputs(encoder, column):
    """Names of the output columns of an input column."""
    names = encoder.get_feature_names_out()
    return names[encoder.feature_groups_ == column].tolist()


def encoded(values, rows, **parameters):
    """Fit a column (beside one that always tells rows apart), encode other values of it."""
    values = np.array([*values], dtype=object)
    ballast = np.arange(len(values))
    encoder = TableEncoder(strict=True, **parameters).fit(pd.DataFrame({"it": values, "ballast": ballast}))
    rows = pd.Series(np.array([*rows], dtype=object), dtype=object)
    found = encoder.transform(pd.DataFrame({"it": rows, "ballast": 0}))
    mine = encoder.sources_ == 0
    return encoder, np.asarray(found)[:, mine]


class TestDoubts:
    """Numbers and dates as texts are categories to Python, which is hardly what their owner means."""

    @pytest.mark.parametrize(
        ("form", "advice"),
        [
            ("{0}%", "such as '0%'. Make them numbers, with pandas X['it'].str.rstrip('% ').astype(float)."),
            ("0,{0:03d}", "X['it'].str.replace(',', '.').astype(float)"),
            ("1.{0:03d},5", "X['it'].str.replace('.', '').str.replace(',', '.').astype(float)"),
            ("1,{0:03d}.5 %", "X['it'].str.rstrip('% ').str.replace(',', '').astype(float)"),
            ("{0}.5", "X['it'].astype(float)"),
            ("08/{1:02d}/2022", "look like dates, such as '08/01/2022'"),
            ("{1:02d}.03.2026", "or write year-month-day"),
        ],
    )
    def test_what_is_told(self, form, advice):
        texts = [form.format(i % 25, i % 25 + 1) for i in range(50)]
        with pytest.warns(UserWarning, match="Column 'it' is taken for a category of 25 levels") as told:
            encoded(texts, texts[:1])
        assert advice in str(told[0].message)

    def test_the_advice_is_right(self):
        column = pd.DataFrame({"it": [f"1.{i:03d},5%" for i in range(25)]})
        with pytest.warns(UserWarning, match="category of 25 levels") as told:
            encoded(column["it"], ["1.000,5%"])
        line = re.search(r"with pandas (X.*?\(float\))", str(told[0].message))[1]
        found = eval(line, {"X": column})  # noqa: S307 -- our own line
        np.testing.assert_array_equal(found, [1000.5 + i for i in range(25)])

    @pytest.mark.parametrize(
        "texts",
        [
            [f"{i:04d}" for i in range(25)],
            [f"{i % 9}%" for i in range(25)],
            [f"{i} km" for i in range(25)],
            [f"1.2.{i}" for i in range(25)],
            [f"may {i}" for i in range(25)],
            [i % 3 > 1 for i in range(25)],
        ],
    )
    def test_what_is_a_category(self, texts):
        encoded(texts, texts[:1])

    def test_who_says_so_is_believed(self):
        texts = pd.Series([f"{i % 25}%" for i in range(50)])
        encoded(texts, texts[:1], categorical=["it"])
        TableEncoder().fit(pd.DataFrame({"it": texts.astype("category"), "ballast": range(50)}))

    def test_gaps_in_words_do_not_hide_it(self):
        with pytest.warns(UserWarning, match="holds numbers as texts"):
            encoded([*(f"{i % 25}%" for i in range(50)), "NA", "?"], ["NA"])


class TestKinds:
    def test_of_a_mixed_table(self):
        kinds = {column.name: column.kind for column in ENCODER.columns_}
        assert kinds == {
            "age": "number",
            "income": "number",
            "colour": "category",
            "member": "category",
            "visits": "number",
            "day": "date",
        }
        gaps = {column.name: column.n_missing for column in ENCODER.columns_}
        assert gaps == {name: int(TABLE[name].isna().sum()) for name in TABLE}
        levels = {column.name: column.n_levels for column in ENCODER.columns_}
        assert levels["colour"] == 4
        assert levels["age"] is None

    def test_names_say_what_they_are(self):
        assert outputs(ENCODER, "age") == [
            "age",
            *(f"age_spline{j}" for j in range(6)),
            "age=(missing)",
        ]
        assert outputs(ENCODER, "member") == ["member=False", "member=True"]
        assert outputs(ENCODER, "colour")[-1] == "colour=(missing)"
        assert outputs(ENCODER, "day")[0] == "day.year"
        assert "day.month=12" in outputs(ENCODER, "day")
        assert "day.weekday=1" in outputs(ENCODER, "day")
        assert not [name for name in outputs(ENCODER, "day") if "hour" in name]

    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            ([1, 2.5, None], "number"),
            ([Decimal("1.5"), Decimal(2), None], "number"),
            ([True, False, None], "category"),
            (["1", "2", "1"], "category"),
            ([1, "a", 1], "category"),
            (["2024-01-31", "", "2024-02-29 12:00"], "date"),
            (["2024-01-31", "soon", "2024-01-31"], "category"),
            ([dt.date(2024, 1, 31), dt.date(2023, 2, 1), None], "date"),
        ],
    )
    def test_of_python_objects(self, values, kind):
        encoder, _ = encoded(values, values, min_frequency=1)
        assert encoder.columns_[0].kind == kind

    def test_integers_that_are_categories(self):
        X = np.array([[3, 0.1], [3, 0.2], [7, 0.3], [7, 0.4]])
        by_number = TableEncoder(categorical=[0]).fit(X)
        assert by_number.get_feature_names_out()[:2].tolist() == ["x0=3", "x0=7"]
        frame = pd.DataFrame(X, columns=["code", "size"])
        by_name = TableEncoder(categorical=["code"]).fit(frame.astype({"code": int}))
        np.testing.assert_array_equal(by_name.transform(frame), by_number.transform(X))
        with pytest.raises(ValueError, match="'cod', which is no column of X"):
            TableEncoder(categorical=["cod"]).fit(frame)
        with pytest.raises(TypeError, match="a sequence of columns"):
            TableEncoder(categorical="code").fit(frame)


class TestTheSameTable:
    """In every form in which people have it."""

    expected = np.asarray(ENCODER.transform(TABLE))

    @pytest.mark.parametrize(
        "form",
        [
            TABLE.convert_dtypes,
            lambda: TABLE.astype({"colour": "category"}),
            lambda: TABLE.assign(day=TABLE["day"].dt.tz_localize("Europe/Berlin")),
            lambda: pa.Table.from_pandas(TABLE),
            lambda: pa.table(TABLE.assign(colour=TABLE["colour"].astype("category"))),
            lambda: pl.from_pandas(TABLE),
            lambda: pl.from_pandas(TABLE).with_columns(pl.col("colour").cast(pl.Categorical)),
        ],
    )
    def test_as_a_frame(self, form):
        for encoder in (ENCODER, clone(ENCODER).fit(form())):
            np.testing.assert_array_equal(encoder.transform(form()), self.expected)
            assert encoder.feature_names_in_.tolist() == TABLE.columns.tolist()

    def test_as_an_array_of_objects(self):
        rows = TABLE.to_numpy(dtype=object)
        encoder = TableEncoder().fit(rows)
        np.testing.assert_array_equal(encoder.transform(rows), self.expected)
        assert not hasattr(encoder, "feature_names_in_")
        assert encoder.feature_groups_.tolist() == encoder.sources_.tolist()

    def test_as_lists(self):
        rows = TABLE.to_numpy(dtype=object)[:50].tolist()
        np.testing.assert_array_equal(
            TableEncoder().fit(rows).transform(rows), TableEncoder().fit_transform(TABLE[:50])
        )

    def test_lists_of_numbers_and_booleans(self):
        """Where no cell is a text, numpy would make numbers of all."""
        rows = [[1.5, True], [0.5, False], [2.5, True], [None, False]]
        encoder = TableEncoder("linear").fit(rows)
        assert encoder.get_feature_names_out().tolist() == ["x0", "x0=(missing)", "x1=False", "x1=True"]
        for given in (
            rows[:3],
            tuple(map(tuple, rows[:3])),
            [np.array(row, dtype=object) for row in rows[:3]],
        ):
            np.testing.assert_array_equal(encoder.transform(given), encoder.transform(rows)[:3])
        with pytest.raises(ValueError, match="row 0 has 2, and row 1 has 1"):
            encoder.transform([[1.5, True], [0.5]])
        with pytest.raises(ValueError, match="2D"):
            encoder.transform([{"x0": 1.5, "x1": True}])

    def test_a_frame_of_a_class_of_your_own(self):
        class Frame(pd.DataFrame):
            pass

        encoder = TableEncoder().fit(Frame(TABLE))
        assert encoder.feature_names_in_.tolist() == TABLE.columns.tolist()
        np.testing.assert_array_equal(encoder.transform(Frame(TABLE)), self.expected)

    def test_sparse_and_float32(self):
        for dtype in (np.float64, np.float32):
            found = TableEncoder(sparse_output=True, dtype=dtype).fit_transform(TABLE)
            assert sparse.issparse(found)
            assert found.has_sorted_indices
            assert found.dtype == dtype
            assert np.mean(found.data != 0) >= 31 / 32
            np.testing.assert_array_equal(found.toarray(), self.expected.astype(dtype))

    def test_row_by_row(self):
        single = [np.asarray(ENCODER.transform(TABLE[i : i + 1]))[0] for i in range(len(TABLE))]
        np.testing.assert_array_equal(single, self.expected)

    def test_columns_do_not_mix(self):
        rng = np.random.default_rng(0)
        for place, name in enumerate(TABLE):
            changed = TABLE.copy()
            changed[name] = TABLE[name].to_numpy()[rng.permutation(len(TABLE))]
            differs = np.any(np.asarray(ENCODER.transform(changed)) != self.expected, axis=0)
            assert set(ENCODER.sources_[differs]) == {place}

    def test_pickled(self):
        again = pickle.loads(pickle.dumps(ENCODER))  # noqa: S301 -- our own
        np.testing.assert_array_equal(again.transform(TABLE), self.expected)
        rows = pickle.loads(pickle.dumps(ENCODER.transform(TABLE)))  # noqa: S301 -- our own
        assert rows.feature_groups.tolist() == ENCODER.sources_.tolist()


class TestNumbers:
    def test_standardised_and_bounded(self):
        values = np.array([1.0, 2.0, 3.0, 6.0])
        _, rows = encoded(values, [1, 6, 1e308, -1e308, np.inf, -np.inf], numeric="linear")
        standardised = (values - values.mean()) / values.std()
        np.testing.assert_allclose(rows[:, 0], standardised[[0, 3, 3, 0, 3, 0]], rtol=1e-14)

    def test_hats_are_a_partition_of_one(self):
        _, rows = encoded(np.random.default_rng(0).normal(size=60), np.linspace(-9, 9, 101))
        assert np.all((rows[:, 1:] >= 0) & (rows[:, 1:] <= 1))
        np.testing.assert_allclose(rows[:, 1:].sum(axis=1), 1.0, rtol=1e-15)
        assert np.all((rows[:, 1:] > 0).sum(axis=1) <= 2)

    def test_hats_against_interpolation(self):
        """Hat j at x is what np.interp makes of the j-th unit vector."""
        rng = np.random.default_rng(1)
        knots, values = np.sort(rng.normal(size=7)), rng.normal(size=500) * 2
        first, upper = hats(values, knots)
        found = np.zeros((500, 7))
        found[np.arange(500), first] += 1 - upper
        found[np.arange(500), first + 1] += upper
        expected = np.stack([np.interp(values, knots, unit) for unit in np.eye(7)], axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-12)

    @pytest.mark.parametrize("seed", range(20))
    def test_knots_of_any_column(self, seed):
        rng = np.random.default_rng(seed)
        values = rng.choice([rng.normal(size=50), rng.poisson(1, 50) * 1.0, np.zeros(50)], axis=0)
        values[: rng.integers(0, 40)] = 0.0
        knots = place_knots(np.sort(values), int(rng.integers(3, 9)))
        if len(np.unique(values)) < 3:
            assert len(knots) == 0
        else:
            assert np.all(np.diff(knots) > 0)
            assert knots[0] == values.min()
            assert knots[-1] == values.max()

    def test_ties_take_no_knots_away(self):
        values = np.r_[np.zeros(950), np.random.default_rng(0).exponential(size=50)]
        knots = place_knots(np.sort(values), 6)
        assert knots[0] == 0
        assert len(knots) >= 5

    def test_a_gap_is_the_median_and_a_sign(self):
        encoder, rows = encoded([1.0, 2.0, 9.0, None], [None, 2.0])
        assert encoder.get_feature_names_out()[encoder.sources_ == 0][-1] == "it=(missing)"
        np.testing.assert_array_equal(rows[0, :-1], rows[1, :-1])
        assert rows[:, -1].tolist() == [1.0, 0.0]

    def test_a_gap_where_there_was_none(self):
        encoder, rows = encoded([1.0, 2.0, 9.0], [np.nan, 2.0])
        assert "it=(missing)" not in encoder.get_feature_names_out()
        np.testing.assert_array_equal(rows[0], rows[1])

    @pytest.mark.parametrize(
        "values", [[1e308, -1e308, 1e308], [1e-320, 2e-320, 0.0], [1e15, 1e15 + 1, 1e15], [5e-324, 0, 0]]
    )
    def test_of_any_size(self, values):
        _, rows = encoded(values, [*values, 1e308, -1e308, 0, 10**400])
        assert np.all(np.isfinite(rows))
        assert np.abs(rows).max(initial=0) < 100

    def test_infinite_in_training(self):
        _, rows = encoded([np.inf, 1.0, 2.0, -np.inf, 4.0], [np.inf, 4.0])
        assert np.all(np.isfinite(rows))
        np.testing.assert_array_equal(rows[0], rows[1])

    def test_texts_that_are_numbers(self):
        _, rows = encoded([1.0, 2.0, 9.0], ["2", "", True])
        np.testing.assert_array_equal(rows[0], rows[1])
        with pytest.raises(ValueError, match=r"Column 'it': it held numbers in fit.*'two'"):
            encoded([1.0, 2.0, 9.0], ["two"])
        with pytest.raises(ValueError, match=r"Column 'it': it held numbers in fit.*2024"):
            TableEncoder(strict=True).fit(pd.DataFrame({"it": [1.0, 2.0]})).transform(
                pd.DataFrame({"it": pd.to_datetime(["2024-01-01"])})
            )

    def test_missing_dates_are_missing_numbers(self):
        encoder = TableEncoder().fit([[1.0], [2.0], [None]])
        row = pd.DataFrame({"x0": pd.to_datetime([None])})
        np.testing.assert_array_equal(encoder.transform(row.to_numpy()), encoder.transform([[None]]))

    def test_what_float_takes_but_is_no_number(self):
        for cell in (np.complex128(1), 1j):
            with pytest.raises(ValueError, match="Column 'x0': it held numbers"):
                TableEncoder(strict=True).fit([[1.0], [2.0]]).transform([[cell]])
        with pytest.raises(ValueError, match="dim 3"):
            TableEncoder().fit([[1.0], [2.0]]).transform([[np.array([1.0])]])

    def test_durations_as_objects(self):
        hours = [dt.timedelta(hours=1), np.timedelta64(2, "h"), pd.Timedelta(hours=3)]
        encoder = TableEncoder().fit([[hour] for hour in hours])
        assert encoder.columns_[0].kind == "number"
        np.testing.assert_array_equal(
            encoder.transform([[3600], [7200], [10800]]), encoder.transform([[hour] for hour in hours])
        )
        many = np.array([10**17 + 123456000, -(10**15) + 1000, 7], dtype="m8[ns]")
        for unit in ("ns", "us"):
            np.testing.assert_array_equal(
                as_numbers(many.astype(f"m8[{unit}]"))[:2],
                as_numbers(many.astype("m8[us]").astype(object))[:2],
            )

    def test_durations(self):
        table = pd.DataFrame({"it": pd.to_timedelta([1, 2, 3], unit="h")})
        np.testing.assert_allclose(
            TableEncoder().fit_transform(table), TableEncoder().fit_transform([[3600.0], [7200.0], [10800.0]])
        )


class TestCategories:
    def test_rare_and_unknown(self):
        encoder, rows = encoded(["a", "a", "b", "b", "c", "d"], ["a", "b", "c", "d", "e", None, 1.5])
        assert encoder.get_feature_names_out()[:3].tolist() == ["it=a", "it=b", "it=(rare)"]
        expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
        assert rows.tolist() == expected

    def test_most_frequent_ones(self):
        _, rows = encoded(list("aaabbbccd"), "abcd", max_levels=2)
        assert rows.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]

    def test_gaps_have_a_sign(self):
        _, rows = encoded(["a", "b", "a", "b", None], ["a", None, np.nan, pd.NA, "", "  "])
        assert rows.tolist() == [[1, 0, 0]] + 5 * [[0, 0, 1]]

    def test_true_counts_as_one_where_training_had_either(self):
        ones = [True, np.True_, "True", 1, 1.0, np.float64(1), np.int8(1), Decimal("1.0"), "1", b"1"]
        for seen, other in ((True, False), (1, 0)):
            _, rows = encoded([seen, other] * 2, ones, categorical=["it"])
            assert rows.tolist() == [[0, 1]] * len(ones)
            assert encoded([seen, other] * 2, [0, False, "0"], categorical=["it"])[1].tolist() == [[1, 0]] * 3

    def test_true_is_not_one_where_training_had_both(self):
        cells = [True, 1, np.True_, np.float64(1), "True", Decimal(1)]
        encoder, rows = encoded([True, 1.0, True, np.int64(1), "a"], cells)
        assert encoder.get_feature_names_out()[:3].tolist() == ["it=1", "it=True", "it=(rare)"]
        assert rows.argmax(axis=1).tolist() == [1, 0, 1, 0, 1, 0]
        for order in (cells, cells[::-1]):
            assert as_levels(np.array(order, dtype=object))[1] == [str(order[0]), str(order[1])]

    def test_the_order_of_training_rows_does_not_decide_the_kind(self):
        cells = [float(i) for i in range(60)] + [1.0, True]
        for order in (cells, [True, *cells], cells[::-1]):
            assert kind_of(np.array(order, dtype=object)) == "category"

    def test_clocks_of_two_places(self):
        """Equal moments, which the clocks on the wall call noon and one o'clock."""
        noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
        paris = noon.astimezone(dt.timezone(dt.timedelta(hours=1)))
        assert noon == paris
        levels = ["2024-01-01T12:00:00.000000", "2024-01-01T13:00:00.000000"]
        assert as_levels(np.array([noon, paris], dtype=object))[1] == levels

    def test_categories_that_no_row_has(self):
        column = pd.Categorical([1.0, 2.0], categories=[1.0, 2.0, "x", (1, 2)])
        for values in ([1.0, 2.0, 9.0], ["1", "2"] * 2):
            encoder = TableEncoder().fit(pd.DataFrame({"it": values}))
            plain = encoder.transform(pd.DataFrame({"it": [1.0, 2.0]}))
            np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"it": column})), plain)

    def test_large_integers_beside_missing_values(self):
        cells = [2**60 + 1, 2**60, 2**60 + 1, 2**60, None]
        encoder = TableEncoder(categorical=["it"]).fit(pd.DataFrame({"it": pd.array(cells, dtype="Int64")}))
        assert encoder.get_feature_names_out()[:2].tolist() == [f"it={2**60}", f"it={2**60 + 1}"]
        for column in (pd.array(cells, dtype="int64[pyarrow]"), pd.array(cells, dtype=object)):
            np.testing.assert_array_equal(
                encoder.transform(pd.DataFrame({"it": column}))[:2], [[0, 1, 0], [1, 0, 0]]
            )

    def test_durations_in_any_unit(self):
        day = dt.timedelta(days=1, microseconds=5)
        units = [np.timedelta64(day, "us"), np.timedelta64(day, "us").astype("m8[ns]"), pd.Timedelta(day)]
        assert as_levels(np.array([day, *units], dtype=object))[1] == ["1 day, 0:00:00.000005"]
        assert as_levels(np.array([day], dtype="m8[ns]"))[1] == ["1 day, 0:00:00.000005"]

    def test_members_of_an_enum_and_empty_bytes(self):
        class Colour(str, enum.Enum):  # noqa: UP042 -- whose str is not its value
            RED = "red"

        cells = np.array([Colour.RED, "red", b"red", b"", b" "], dtype=object)
        assert as_levels(cells)[1] == ["red"]
        assert as_levels(cells)[0].tolist() == [0, 0, 0, -1, -1]

    @pytest.mark.parametrize("number", [1e300, 10**300, Decimal("1e300"), 10.0**250])
    def test_names_of_large_numbers_are_short(self, number):
        assert len(as_levels(np.array([number], dtype=object))[1][0]) == LONGEST_LEVEL

    def test_numbers_of_too_many_digits(self):
        for number in (10**5000, Decimal("1e999999")):
            with pytest.raises(ValueError, match=r"Column 'it': .*4000 digits"):
                encoded(["a", "b"] * 2, [number])

    def test_numbers_of_any_type(self):
        X = np.array([3, 3, 4, 4])
        encoder = TableEncoder(categorical=[0]).fit(X[:, None])
        for cell in (3, 3.0, np.int8(3), np.float32(3), Decimal("3.0"), "3"):
            rows = np.array([[cell]], dtype=object)
            assert encoder.transform(rows).tolist() == [[1, 0]], cell

    def test_names_that_clash(self):
        table = pd.DataFrame({"a": ["b", "b", "c", "c"], "a=b": [1.0, 2.0, 3.0, 5.0]})
        names = TableEncoder("linear").fit(table).get_feature_names_out().tolist()
        assert names == ["a=b", "a=c", "a=b_2"]

    def test_dates_that_are_categories(self):
        table = pd.DataFrame({"it": pd.to_datetime(["2024-01-01", "2024-01-01", "2025-01-01", "2025-01-01"])})
        encoder = TableEncoder(categorical=["it"]).fit(table)
        found = encoder.transform(table.astype("datetime64[s]"))
        assert found.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
        np.testing.assert_array_equal(encoder.transform(table.astype(object)), found)

    def test_what_is_no_value(self):
        with pytest.raises(ValueError, match=r"Column 'it': a cell holds {'a': 1}"):
            encoded([{"a": 1}, {"a": 1}], [])
        with pytest.raises(ValueError, match=r"Column 'it': a cell holds \{3\}"):
            encoded(["a", "b", "a", "b"], [{3}])


class TestDates:
    def test_parts(self):
        days = ["2023-05-01 06:30", "2024-05-02 18:00", "2024-06-01 18:00", None]
        encoder, rows = encoded(days, ["2024-05-01 06:30", "1700-12-24", None], numeric="linear")
        names = encoder.get_feature_names_out()[encoder.sources_ == 0].tolist()
        assert names == [
            "it.year",
            "it.month=5",
            "it.month=6",
            "it.weekday=1",
            "it.weekday=4",
            "it.weekday=6",
            "it.hour",
            "it=(missing)",
        ]
        assert rows[0, 1:6].tolist() == [1, 0, 0, 0, 0]  # a Wednesday, which training rows had not
        assert rows[1, 1:6].tolist() == [0, 0, 0, 0, 0]
        assert rows[1, 0] == encoded(days, ["2023-01-01"], numeric="linear")[1][0, 0]
        assert rows[:, -1].tolist() == [0, 0, 1]

    @pytest.mark.parametrize("cell", [None, np.nan, pd.NaT, pd.NA, "", np.datetime64("NaT")])
    def test_missing_values_of_any_type(self, cell):
        days = pd.DataFrame({"it": pd.to_datetime(["2024-01-01", "2023-02-02", None])})
        encoder = TableEncoder().fit(days)
        for dtype in (None, object):
            row = pd.DataFrame({"it": pd.Series([cell], dtype=dtype)})
            np.testing.assert_array_equal(encoder.transform(row), encoder.transform(days)[2:])
        encoder = TableEncoder().fit(days.to_numpy())
        for row in ([[cell]], np.array([[cell]], dtype=object), np.array([[np.nan]])):
            np.testing.assert_array_equal(encoder.transform(row), encoder.transform(days.to_numpy())[2:])

    def test_what_is_no_date(self):
        for cell in ("2024-02-30", "tomorrow", 5.0):
            with pytest.raises(ValueError, match=r"Column 'it': it held dates in fit"):
                encoded(["2024-01-01", "2023-03-02"], [cell])
        encoder = TableEncoder(strict=True)
        encoder.fit(pd.DataFrame({"it": pd.to_datetime(["2024-01-01", "2023-02-02"])}))
        with pytest.raises(ValueError, match=r"Column 'it': it held dates in fit.*1\.0"):
            encoder.transform(pd.DataFrame({"it": [1.0]}))


class TestLeftOut:
    @pytest.mark.parametrize(
        ("values", "why"),
        [
            ([1.0] * 6, "all its values are the same"),
            (["a"] * 6, "all its values are the same"),
            (list("abcdef"), "no level is in 2 rows or more"),
            ([None] * 6, "no value at all"),
            ([np.nan] * 6, "no value at all"),
            (["2024-01-01"] * 6, "year, month, weekday and hour are the same"),
        ],
    )
    def test_and_why(self, values, why):
        encoder, rows = encoded(values, [values[0]])
        assert rows.shape == (1, 0)
        assert why in encoder.columns_[0].left_out

    def test_gaps_alone_may_tell(self):
        for values in ([1.0, 1.0, None], ["a", "a", None], [*"abcde", None], ["2024-01-01", None]):
            encoder, rows = encoded(values, [values[0], None])
            assert encoder.get_feature_names_out()[0] == "it=(missing)"
            assert rows.tolist() == [[0], [1]]

    def test_nothing_left(self):
        with pytest.raises(ValueError, match=r"No column of X .*'it', is left out because all its values"):
            TableEncoder().fit(pd.DataFrame({"it": [1.0, 1.0]}))


class TestWrongUse:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"numeric": "cubic"}, "numeric must be one of"),
            ({"n_knots": 2}, "n_knots must be an integer at least 3"),
            ({"min_frequency": 0}, "min_frequency must be"),
            ({"max_levels": 1.5}, "max_levels must be"),
            ({"strict": "yes"}, "strict must be True or False"),
            ({"sparse_output": "yes"}, "sparse_output must be"),
            ({"dtype": np.int64}, "dtype must be float64 or float32"),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises((TypeError, ValueError), match=message):
            TableEncoder(**parameters).fit(TABLE)

    def test_columns_that_are_missing_or_moved(self):
        strict = clone(ENCODER).set_params(strict=True).fit(TABLE)
        with pytest.raises(ValueError, match="age"):
            strict.transform(TABLE.drop(columns="age"))
        with pytest.raises(ValueError, match="same order"):
            strict.transform(TABLE[TABLE.columns[::-1]])
        with pytest.raises(ValueError, match="unseen at fit time"):
            strict.transform(TABLE.assign(more=1))
        with pytest.raises(ValueError, match="0 sample"):
            ENCODER.transform(TABLE[:0])
        with pytest.raises(ValueError, match="0 sample"):
            ENCODER.transform(TABLE[:0].drop(columns="age"))
        with pytest.raises(ValueError, match="none of the columns of fit"):
            ENCODER.transform(TABLE[["age"]].rename(columns={"age": "years"}))
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            TableEncoder().fit(sparse.eye(3).tocsr())

    def test_names_for_others(self):
        encoder = TableEncoder("linear").fit([[1.0, "a"], [2.0, "a"], [3.0, "b"], [4.0, "b"]])
        assert encoder.get_feature_names_out(["u", "v"]).tolist() == ["u", "v=a", "v=b"]
        with pytest.raises(ValueError, match="should have length equal"):
            encoder.get_feature_names_out(["u"])


def test_large_tables_become_sparse():
    from exclusivity.tables._codes import sparse_is_better

    codes = [column.code for column in ENCODER.columns_]
    width = sum(code.width for code in codes)
    assert not sparse_is_better(codes, 1000, 8)
    assert sparse_is_better(codes, (1 << 26) // (8 * width) + 1, 8)
    assert not sparse_is_better(codes[:0], 10**9, 8)
