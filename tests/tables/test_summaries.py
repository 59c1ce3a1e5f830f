"""One look at a column: parts add up to the whole, and large columns are drawn from."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from exclusivity.tables import TableEncoder, summaries
from exclusivity.tables.cells import CellError, column_of, column_of_arrow, kind_of
from exclusivity.tables.encoder import _learn_column
from exclusivity.tables.summaries import SUMMARIES, LevelSummary, NumberSummary, Rules
from tables.table_cases import mixed_table

RULES = Rules(6, 2, 64)
NUMBERS = st.one_of(
    st.just(np.nan),
    st.sampled_from([0.0, 1.0, -3.0, np.inf]),
    st.floats(-1e6, 1e6),
    st.sampled_from([1e300, -1e300]),
)


def numbers_of(code):
    """A code of numbers as one array."""
    return np.r_[code.low, code.high, code.mean / code.scale, 1.0, code.fill, code.knots]


class TestPartsAddUp:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(NUMBERS, min_size=1, max_size=60), st.lists(st.integers(0, 60), max_size=3))
    def test_numbers(self, values, cuts):
        values = np.array(values)
        parts = np.split(values, sorted(cut for cut in cuts if cut <= len(values)))
        whole = NumberSummary.of(values)
        total = NumberSummary.of(parts[0], 0)
        for number, part in enumerate(parts[1:], 1):
            total = total + NumberSummary.of(part, number)
        assert (total.n_rows, total.n_gaps, total.n_known) == (whole.n_rows, whole.n_gaps, whole.n_known)
        codes = whole.code(RULES), total.code(RULES)
        if codes[0] is None or codes[1] is None:  # where rounding decides whether there is a deviation
            assert codes == (None, None) or whole.variance < 1e-25
            return
        assert codes[0].has_gaps == codes[1].has_gaps
        assert codes[0].scale == pytest.approx(codes[1].scale, rel=1e-9)
        if len(codes[0].knots) == len(codes[1].knots):  # knots that nearly coincide may or may not be one
            np.testing.assert_allclose(*map(numbers_of, codes), rtol=1e-7, atol=1e-7)

    def test_a_mixed_table(self):
        table, _ = mixed_table(300)
        whole = TableEncoder().fit(table)
        blocks = [table[:90], table[90:91], table[91:250], table[250:]]
        for place, expected in enumerate(whole.columns_):
            kind = SUMMARIES[expected.kind]
            total = kind.of(column_of(blocks[0], place), 0)
            for number, block in enumerate(blocks[1:], 1):
                total = total + kind.of(column_of(block, place), number)
            found = _learn_column(expected.name, expected.kind, total, RULES)
            assert found.code.names("it") == expected.code.names("it")
            assert (found.n_gaps, found.n_levels) == (expected.n_gaps, expected.n_levels)

    def test_most_frequent_levels_are_counted(self, monkeypatch):
        monkeypatch.setattr(summaries, "MOST_LEVELS", 3)
        one = LevelSummary.of(np.array(["a", "a", "b", "c", None], dtype=object))
        other = LevelSummary.of(np.array(["b", "d", "e", "a"], dtype=object))
        total = one + other
        assert total.counts == {"a": 3, "b": 2, "c": 1}
        assert (total.n_levels, total.n_rows, total.n_gaps) == (5, 9, 1)


class TestDraws:
    def test_quantiles_of_many_values(self, monkeypatch):
        monkeypatch.setattr(summaries, "MOST_VALUES", 2000)
        summaries._draw.cache_clear()
        values = np.random.default_rng(0).normal(size=50_000)
        whole = NumberSummary.of(values)
        assert len(whole.values) == 2000
        parts = [NumberSummary.of(part, number) for number, part in enumerate(np.split(values, 10))]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        assert len(total.values) == 2000
        for summary in (whole, total):
            knots = summary.code(RULES).knots
            ranks = np.searchsorted(np.sort((values - values.mean()) / values.std()), knots) / len(values)
            assert np.all(np.abs(ranks - np.linspace(0, 1, 6)) < 0.04)  # four deviations of a draw
            np.testing.assert_allclose(
                knots[[0, -1]] * values.std() + values.mean(), [values.min(), values.max()]
            )
        np.testing.assert_allclose(total.mean, whole.mean, rtol=1e-10)
        np.testing.assert_allclose(total.variance, whole.variance, rtol=1e-10)
        summaries._draw.cache_clear()

    def test_draws_do_not_change(self):
        one, other = (NumberSummary.of(np.arange(200_000.0)).values for _ in range(2))
        np.testing.assert_array_equal(one, other)
        assert len(one) == summaries.MOST_VALUES
        assert not np.array_equal(one, NumberSummary.of(np.arange(200_000.0), 1).values)


class TestNumberedTexts:
    """Texts that their maker numbers are the same as texts one by one."""

    texts = ("b", None, "a", "", "b", " ", "a", "c")

    @pytest.mark.parametrize(
        "form",
        [
            lambda texts: pd.DataFrame({"it": pd.Series(texts, dtype=object)}),
            lambda texts: pd.DataFrame({"it": pd.Series(texts, dtype="string")}),
            lambda texts: pd.DataFrame({"it": pd.Series(texts, dtype="category")}),
            lambda texts: pa.table({"it": pa.chunked_array([list(texts[:3]), list(texts[3:])])}),
            lambda texts: pa.table({"it": pa.array(list(texts)).dictionary_encode()}),
        ],
    )
    def test_levels(self, form):
        plain = np.array(self.texts, dtype=object)[:, None]
        expected = TableEncoder(min_frequency=1).fit(plain)
        encoder = TableEncoder(min_frequency=1).fit(form(self.texts))
        assert encoder.columns_[0].code.levels == expected.columns_[0].code.levels == ("a", "b", "c")
        assert encoder.columns_[0].n_gaps == 3
        rows = expected.transform(plain)
        np.testing.assert_array_equal(encoder.transform(form(self.texts)), rows)
        np.testing.assert_array_equal(encoder.fit_transform(form(self.texts)), rows)

    @pytest.mark.parametrize(
        "kind", [pa.string(), pa.decimal128(3, 2), pa.dictionary(pa.int8(), pa.string())]
    )
    def test_no_rows(self, kind):
        assert len(column_of_arrow(pa.chunked_array([], kind))) == 0

    def test_cells_of_no_kind_are_refused_where_they_are_read(self):
        column = column_of_arrow(pa.array([[1], None]))
        assert kind_of(column) == "category"
        with pytest.raises(CellError, match="a cell holds"):
            LevelSummary.of(column)

    def test_levels_that_do_not_occur(self):
        column = pa.chunked_array([pa.array(["x", "y", "z", "x"]).dictionary_encode()])
        assert LevelSummary.of(column_of_arrow(column.slice(0, 2))).counts == {"x": 1, "y": 1}
        frame = pd.DataFrame({"it": pd.Categorical(["a", "b", "a"], categories=["a", "b", "c"])})
        assert TableEncoder(min_frequency=1).fit(frame).columns_[0].n_levels == 2

    def test_numbers_that_their_maker_calls_categories(self):
        frame = pd.DataFrame({"it": pd.Categorical([3, 7, 3, None, 7])})
        encoder = TableEncoder().fit(frame)
        assert encoder.get_feature_names_out().tolist() == ["it=3", "it=7", "it=(missing)"]
        plain = pd.DataFrame({"it": [7.0, 3.0, np.nan]})
        assert encoder.transform(plain).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]

    def test_dates_and_numbers_in_texts(self):
        frame = pd.DataFrame({"it": ["2024-01-31", "2023-02-01", None, "2024-01-31"]})
        encoder = TableEncoder("linear").fit(frame)
        assert encoder.columns_[0].kind == "date"
        same = pd.DataFrame({"it": pd.to_datetime(frame["it"])})
        np.testing.assert_array_equal(encoder.transform(same), encoder.transform(frame))
        numbers = TableEncoder().fit(pd.DataFrame({"it": [1.0, 2.0, 5.0]}))
        found = numbers.transform(pd.DataFrame({"it": ["2", None, "5"]}))
        np.testing.assert_array_equal(found, numbers.transform(pd.DataFrame({"it": [2.0, np.nan, 5.0]})))


def test_many_zeros_are_taken_out():
    """Most rows sit on a knot, so that one of their two hats is zero."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random((10_000, 3)) < 0.9, 0.0, rng.exponential(size=(10_000, 3)))
    dense = TableEncoder(sparse_output=False).fit_transform(values)
    found = TableEncoder(sparse_output=True).fit_transform(values)
    np.testing.assert_array_equal(found.toarray(), dense)
    assert np.all(found.data != 0)
    assert found.nnz == np.count_nonzero(dense)
    order = [found.indices[a:b] for a, b in pairwise(found.indptr)]
    assert all(np.all(np.diff(row) > 0) for row in order)
