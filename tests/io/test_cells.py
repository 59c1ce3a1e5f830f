"""Numbers, missing values and words of columns as people write them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from exclusivity.io._cells import (
    MISSING,
    ColumnError,
    ColumnRule,
    TextColumn,
    date_among,
    decimal_of_file,
    detect_rule,
    read_column,
)
from exclusivity.tables._columns import as_dates


def number(notation=""):
    return ColumnRule("number", notation)


@dataclass
class Read:
    """A column, how it was read, and what was said about it."""

    values: Any
    rule: ColumnRule
    remark: str
    n_lost: int


def by_rule(texts, rule, decimal=""):
    """The cells, texts as such and None for missing ones."""
    values, n_lost = read_column(TextColumn.of([pa.array(texts, pa.string())]), rule, decimal)
    return (values if isinstance(values, np.ndarray) else values.to_pylist()), n_lost


def read_cells(texts, said=None, decimal=""):
    """A training column: its rule is found and applied."""
    rule, remark = detect_rule(TextColumn.of([pa.array(texts, pa.string())]).counts(), said, decimal)
    values, n_lost = by_rule(texts, rule)
    return Read(values, rule, remark, n_lost)


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
        (["-0,624", "0,275"], [-0.624, 0.275], "decimal comma"),
        (["910,6", "1.038,0", "7"], [910.6, 1038, 7], "decimal comma, thousands points"),
        (["1.234.567", "12"], [1234567, 12], "decimal comma, thousands points"),
        (["1,500.25", "2,250", "3.5"], [1500.25, 2250, 3.5], "thousands commas"),
        (["1.038", "2.250"], [1.038, 2.25], ""),
    ],
)
def test_numbers(texts, expected, note):
    read = read_cells(texts)
    np.testing.assert_array_equal(read.values, expected)
    assert read.remark == note


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
    assert read_cells(texts).values == expected


@pytest.mark.parametrize(
    "text",
    ["2024-02-05T10:30:00Z", "2024-02-05 10:30:00.000+02:00", "2024/02/05 10:30 -0500", "2024-02-05T10:30"],
)
def test_dates_are_those_of_the_clock_on_the_wall_as_in_a_dataframe(text):
    read = read_cells([text, "", "2023-01-01T00:00:00Z"])
    assert read.rule.kind == "date"
    assert read.values.astype("datetime64[m]").astype(str).tolist() == [
        "2024-02-05T10:30",
        "NaT",
        "2023-01-01T00:00",
    ]
    np.testing.assert_array_equal(read.values, as_dates(np.array([text, None, "2023-01-01"], dtype=object)))


@pytest.mark.parametrize(
    ("texts", "row", "message"),
    [
        (["1", "", "2", "soon"], 3, "numbers, and a text, 'soon'."),
        (["1", "2", "soon", "late"], 2, "2 different texts such as 'soon'"),
        (["910", "", "1,500"], 2, "'1,500', which is 1.5 with a decimal comma and 1500 with a decimal point"),
        (["$5", "$7"], 0, "it holds numbers such as '$5'"),
        (["910,6", "2.5", "1,5"], 1, "found '2.5', with a decimal point, among numbers with a decimal comma"),
        (["1", "1e999"], 1, "found '1e999'; expected a finite number with a decimal point"),
        (["26.03.2026", "01.04.2026"], 0, "it looks like dates, such as '26.03.2026'; write year-month-day"),
        (["", "08/09/2022", "08/28/2022"], 1, "such as '08/09/2022'; write year-month-day"),
    ],
)
def test_what_may_be_a_slip(texts, row, message):
    with pytest.raises(ColumnError) as caught:
        read_cells(texts)
    assert message in caught.value.cause
    assert caught.value.text == texts[row]


class TestDecimalSign:
    """What a column leaves open, the file decides, and what the file leaves open, its owner."""

    OPEN = ("1,038", "2,250")

    @pytest.mark.parametrize(
        ("others", "delimiter", "decimal"),
        [
            ([["0,5"]], ",", ","),
            ([["910,6%"]], "\t", ","),
            ([["2.5", "10"]], ";", "."),
            ([["2.5"], ["2,5"]], ";", ""),
            ([], ";", ","),
            ([["910", "1,038"]], ";", ""),
            ([], ",", ""),
            ([["Berlin, Mitte"]], ",", ""),
        ],
    )
    def test_of_a_file(self, others, delimiter, decimal):
        assert decimal_of_file([self.OPEN, *others], delimiter) == decimal

    def test_it_decides(self):
        assert read_cells(self.OPEN, decimal=",").values.tolist() == [1.038, 2.25]
        assert read_cells(self.OPEN, decimal=".").values.tolist() == [1038, 2250]
        assert read_cells(["910", "1.038"], decimal=",").values.tolist() == [910, 1038]
        assert read_cells(["1.5", "1.038"], decimal=",").values.tolist() == [1.5, 1.038]

    @settings(deadline=None)
    @given(
        st.lists(st.decimals(-(10**9), 10**9, places=3), min_size=1),
        st.sampled_from(",."),
        st.booleans(),
        st.booleans(),
    )
    def test_what_was_written_is_read(self, numbers, decimal, grouped, percent):
        """Whatever the notation, and in a column of any length, as soon as it is known."""
        texts = [f"{number:,.3f}" if grouped else f"{number:.3f}" for number in numbers]
        if decimal == ",":
            texts = [text.translate(str.maketrans(",.", ".,")) for text in texts]
        texts = [text + "%" * percent for text in texts]
        read = read_cells(texts, decimal=decimal)
        np.testing.assert_array_equal(read.values, [float(number) for number in numbers])
        for text, number in zip(texts, numbers, strict=True):
            assert by_rule([text], read.rule)[0][0] == float(number)


class TestModels:
    """A model knows how its numbers were written; rows beside a row do not matter."""

    def read(self, notation, *texts):
        return by_rule(texts, number(notation))[0].tolist()

    def test_its_notation_decides(self):
        assert self.read(",", "1,038") == [1.038]
        assert self.read(",'", "1.038") == [1038]
        assert self.read(".", "1.038") == [1.038]
        assert self.read("%", "12%", "3 %") == [12, 3]

    def test_a_number_without_its_per_cent_sign_may_be_a_share(self):
        """A missing value where texts are missing values, as in training; else an error."""
        texts = ["5%", "6%", "7%", "8", "9%", "soon"]
        trained = read_cells(texts, "number")
        for values in (trained.values, by_rule(texts, trained.rule)[0]):
            np.testing.assert_array_equal(values, [5, 6, 7, np.nan, 9, np.nan])

    def test_thousands_that_leave_nothing_open(self):
        assert self.read(".", "1,234.5", "1,234,567") == [1234.5, 1234567]
        assert self.read("", "1,234,567", "1.038") == [1234567, 1.038]

    def test_the_user_overrides(self):
        for notation in (".", ",", ""):
            read = {sign: by_rule(["1,038"], number(notation), sign)[0].tolist() for sign in ",."}
            assert read == {",": [1.038], ".": [1038]}
        with pytest.raises(
            ColumnError, match=r"found '2.5'; expected a finite number with a decimal comma"
        ) as error:
            by_rule(["2.5"], number("."), ",")
        assert error.value.ways == ()

    @settings(deadline=None)
    @given(
        st.lists(st.text(alphabet="0123456789,.%-+eE x", max_size=8).map(str.strip), min_size=1, max_size=6),
        st.builds(
            "".join,
            st.tuples(*[st.sampled_from(each) for each in (["", ",", "."], ["", "'"], ["", "%"], ["", "?"])]),
        ),
        st.sampled_from(["", ",", "."]),
    )
    def test_a_cell_is_read_alone_as_in_any_company(self, texts, notation, decimal):
        """The same value, or the first one refused alone is the one that is refused among others."""
        alone = []
        for text in texts:
            try:
                alone.append(by_rule([text], number(notation), decimal)[0][0])
            except ColumnError as error:
                alone.append(error.cause)
        refused = [row for row, found in enumerate(alone) if isinstance(found, str)]
        if refused:
            with pytest.raises(ColumnError) as caught:
                by_rule(texts, number(notation), decimal)
            assert (caught.value.text, caught.value.cause) == (texts[refused[0]], alone[refused[0]])
        else:
            np.testing.assert_array_equal(by_rule(texts, number(notation), decimal)[0], alone)

    @pytest.mark.parametrize(
        ("notation", "text", "message"),
        [
            (".", "1,038", "a decimal point, no thousands commas and no per cent sign"),
            (",", "1.038", "a decimal comma, no thousands points and no per cent sign"),
            ("", "1,038", "a decimal point, no thousands commas and no per cent sign"),
            (".", "0,275", "expected a finite number with a decimal point"),
            ("", "0,275", "expected a finite number with a decimal point"),
            (",", "0.275", "expected a finite number with a decimal comma"),
            (",?", "0.275", "expected a finite number with a decimal comma"),
            (".", "1e999", "expected a finite number"),
            (",", "12%", "with a decimal comma, no thousands points and no per cent sign"),
            (",", "old", "found 'old'; expected a number, or nothing."),
            ("%", "old", "found 'old'; expected a number, or nothing."),
            ("%", "0.07", "no thousands commas and a per cent sign, or nothing."),
        ],
    )
    def test_what_it_does_not_decide(self, notation, text, message):
        with pytest.raises(ColumnError, match="found") as caught:
            self.read(notation, "", "7%" if "%" in notation else "7", text)
        assert message in caught.value.cause
        assert caught.value.text == text


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="0123456789,.%-+eE '/x", max_size=8), min_size=1, max_size=6),
    st.sampled_from(["number", None]),
    st.sampled_from(["", ",", "."]),
)
def test_anything_is_read_or_refused_with_its_text(texts, said, decimal):
    texts = [text.strip() for text in texts]
    n_known = sum(text not in MISSING for text in texts)
    try:
        read = read_cells(texts, said, decimal)
    except ColumnError as error:
        refused = error.text
    else:
        refused = None
    if refused is not None:
        assert refused in texts
        assert refused not in MISSING
        return
    assert len(read.values) == len(texts)
    if read.rule.kind == "number":
        assert np.isfinite(read.values).sum() + read.n_lost == n_known


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["31/12/2022", "01/02/2022"], "31/12/2022"),
        (["1.2.2026 12:30"], "1.2.2026 12:30"),
        (["31.12.99"], "31.12.99"),
        (["2022/8/9"], "2022/8/9"),
        (["2022-08-09T10Z"], None),
        (["2022-08-09T10:00:00Z", "2022/08/09 10:00 +0200"], None),
        (["2022-08-09 10:00 PM"], "2022-08-09 10:00 PM"),
        (["3/26/2023 9:05 PM"], "3/26/2023 9:05 PM"),
        (["2022-08-09", "2022-08-09 10:00"], None),
        (["1.2.3", "99.99.9999", "10.0.0.1", "300/12/2022"], None),
        (["1/2", "red"], None),
        ([f"2022-08-{day}" for day in range(10, 30)] + ["later"], None),
    ],
)
def test_dates_of_people(texts, found):
    assert date_among(texts) == found


def test_a_word_among_dates():
    days = [f"2022-08-{day}" for day in range(10, 30)]
    with pytest.raises(ColumnError, match="it holds dates, and a text, 'later'") as caught:
        read_cells(["", *days, "later"])
    assert caught.value.text == "later"
    assert read_cells([*days[:3], "later"]).rule.kind == "category"
    assert read_cells(["", *days]).values[1] == np.datetime64(days[0])


def test_what_the_user_says():
    mixed = ["1", "soon", "", "3"]
    read = read_cells(mixed, "number")
    np.testing.assert_array_equal(read.values, [1, np.nan, np.nan, 3])
    assert (read.rule.notation, read.n_lost) == ("?", 1)
    assert read_cells(mixed, "category").values == ["1", "soon", None, "3"]
    np.testing.assert_array_equal(read_cells(["007", "12"], "number").values, [7, 12])


@pytest.mark.parametrize(
    ("texts", "expected", "note"),
    [
        (["0,5", "1,25", "x"], [0.5, 1.25, np.nan], "decimal comma"),
        (["5%", "6 %", "7"], [5, 6, np.nan], "per cent"),
        (["5", "6", "7%"], [5, 6, np.nan], ""),
        (["5", "1e999"], [5, np.nan], ""),
    ],
)
def test_numbers_by_decree(texts, expected, note):
    read = read_cells(texts, "number")
    np.testing.assert_array_equal(read.values, expected)
    assert (read.remark, read.n_lost) == (note, 1)


def test_two_notations_are_refused_by_decree_too():
    """As at prediction: a decimal point among decimal commas is no missing value."""
    with pytest.raises(ColumnError, match=r"found '2.5'; expected a finite number with a decimal comma"):
        read_cells(["0,5", "1,25", "x", "2.5"], "number")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["red", "blue"], "0 of its 2 cells are numbers; the first that is none is 'red'"),
        (["7", *["red"] * 20], "1 of its 21 cells are numbers"),
    ],
)
def test_hardly_any_number_is_no_column_of_numbers(texts, message):
    with pytest.raises(ColumnError) as caught:
        read_cells(texts, "number")
    assert message in caught.value.cause
    assert "numeric" not in caught.value.ways
