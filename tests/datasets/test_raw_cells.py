"""Numbers, gaps and words of columns as people write them."""

import numpy as np
import pytest

from exclusivity.datasets import FieldError, read_cells


def cells(*texts):
    return np.array([text.encode() for text in texts])


@pytest.mark.parametrize(
    ("texts", "expected", "note"),
    [
        (["1", "2.5", "-3e2"], [1, 2.5, -300], ""),
        (["1", "", "NA", "?", "nan"], [1, np.nan, np.nan, np.nan, np.nan], ""),
        (["1,5", "2"], [1.5, 2], "decimal comma"),
        (["10%", "2.5 %"], [10, 2.5], "per cent"),
        (["1,5%", "2%"], [1.5, 2], "per cent, decimal comma"),
        (["0", "0.5", "10"], [0, 0.5, 10], ""),
        (["", "NULL"], [np.nan, np.nan], ""),
    ],
)
def test_numbers(texts, expected, note):
    read = read_cells(cells(*texts))
    np.testing.assert_array_equal(read.values, expected)
    assert read.note == note


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["red", "", "blue"], ["red", None, "blue"]),
        (["007", "12"], ["007", "12"]),
        (["inf", "x"], ["inf", "x"]),
        (["1_000", "z"], ["1_000", "z"]),
        (["größe", "1a"], ["größe", "1a"]),
    ],
)
def test_words(texts, expected):
    assert read_cells(cells(*texts)).values.tolist() == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["1", "2", "soon"], "numbers, and 1 different texts such as 'soon'"),
        (["1,500", "2,250"], "Write decimals with a point (1.500), thousands without a comma"),
        (["1,500.25", "2,250.50"], "thousands without separators"),
        (["$5", "$7"], "it holds numbers such as '$5'"),
        (["1,5", "2.5"], "with a point"),
    ],
)
def test_what_may_be_a_slip(texts, message):
    with pytest.raises(FieldError) as caught:
        read_cells(cells(*texts))
    assert message in caught.value.cause


def test_commas_between_fields_are_no_decimals():
    with pytest.raises(FieldError):
        read_cells(cells("1,5", "2"), decimal_comma=False)


def test_what_the_user_says():
    mixed = cells("1", "soon", "", "3")
    read = read_cells(mixed, "number")
    np.testing.assert_array_equal(read.values, [1, np.nan, np.nan, 3])
    assert read.note == "1 texts taken for gaps"
    assert read_cells(mixed, "category").values.tolist() == ["1", "soon", None, "3"]
    with pytest.raises(FieldError) as caught:
        read_cells(mixed, "number", is_training=False)
    assert "found 'soon'; expected a number, or nothing" in caught.value.cause
    np.testing.assert_array_equal(read_cells(cells("007", "12"), "number").values, [7, 12])
