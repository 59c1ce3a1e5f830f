"""Columns of any container, and what is learned of large ones."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from exclusivity.tables import TableEncoder
from exclusivity.tables._codes import MOST_VALUES
from exclusivity.tables._columns import as_levels, column_of_arrow, kind_of, odd_cells


class TestDraws:
    def test_quantiles_of_many_values(self):
        values = np.random.default_rng(0).normal(size=4 * MOST_VALUES)
        codes = [TableEncoder().fit(values[:, None]).columns_[0].code for _ in range(2)]
        knots = codes[0].knots
        np.testing.assert_array_equal(knots, codes[1].knots)  # a draw does not change
        ranks = np.searchsorted(np.sort((values - values.mean()) / values.std()), knots) / len(values)
        assert np.all(np.abs(ranks - np.linspace(0, 1, 6)) < 0.006)  # four deviations of a draw
        ends = knots[[0, -1]] * values.std() + values.mean()
        np.testing.assert_allclose(ends, [values.min(), values.max()])
        assert codes[0].low == values.min()
        np.testing.assert_allclose([codes[0].mean, codes[0].scale], [values.mean(), values.std()], atol=1e-9)

    @pytest.mark.parametrize("values", [[1e308, -1e308, 3.0, 1e308], [1e-300, 3e-300, 2e-300, 0.0]])
    def test_deviation_of_any_size(self, values):
        code = TableEncoder("linear").fit(np.array(values)[:, None]).columns_[0].code
        size = max(map(abs, values))
        assert code.scale / size == pytest.approx(np.std(np.array(values) / size), rel=1e-12)


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
        assert encoder.columns_[0].n_missing == 3
        rows = expected.transform(plain)
        np.testing.assert_array_equal(encoder.transform(form(self.texts)), rows)
        np.testing.assert_array_equal(encoder.fit_transform(form(self.texts)), rows)

    @pytest.mark.parametrize(
        "kind", [pa.string(), pa.decimal128(3, 2), pa.dictionary(pa.int8(), pa.string())]
    )
    def test_no_rows(self, kind):
        assert len(column_of_arrow(pa.chunked_array([], kind))) == 0

    def test_cells_of_no_kind_are_missing_and_odd(self):
        column = column_of_arrow(pa.array([[1], None]))
        assert kind_of(column) == "category"
        codes, _ = as_levels(column)
        assert codes.tolist() == [-1, -1]
        assert odd_cells(column, codes < 0) == (1, "array([1])")

    def test_levels_that_do_not_occur(self):
        column = pa.chunked_array([pa.array(["x", "y", "z", "x"]).dictionary_encode()])
        assert as_levels(column_of_arrow(column.slice(0, 2)))[1] == ["x", "y"]
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
