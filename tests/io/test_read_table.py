"""The reader that chooses by the file's name."""

import bz2
import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from exclusivity.io import DataFileError, read_table
from exclusivity.io._cells import ColumnRule, TextColumn, read_column
from exclusivity.io._csv import _plain_numbers

CSV = b"a,b,y\n1,2,-1\n3,0,1\n"
TEXTS = {"libsvm": b"-1 1:1 2:2\n1 1:3\n", "csv": CSV, "tsv": CSV.replace(b",", b"\t")}


def dense(table):
    return table.data.toarray() if hasattr(table.data, "toarray") else np.asarray(table.data)


def assert_is_example(table):
    np.testing.assert_array_equal(dense(table), [[1, 2], [3, 0]])
    np.testing.assert_array_equal(table.target, [-1, 1])


@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("set", "libsvm"),
        ("set.svm", "libsvm"),
        ("set.LIBSVM", "libsvm"),
        ("set.txt", "libsvm"),
        ("splice.t", "libsvm"),
        ("german.numer_scale", "libsvm"),
        ("ijcnn1.train", "libsvm"),
        ("set.csv", "csv"),
        ("my.set.tsv", "tsv"),
    ],
)
def test_text_formats(tmp_path, name, kind, suffix, compress):
    path = tmp_path / (name + suffix)
    path.write_bytes(compress(TEXTS[kind]))
    table = read_table(str(path), target=None if kind == "libsvm" else "y")
    assert_is_example(table)
    if kind != "libsvm":
        assert list(table.data.columns) == ["a", "b"]


@pytest.mark.parametrize("kind", TEXTS)
def test_format_overrules_the_name(tmp_path, kind):
    path = tmp_path / "data.csv.unknown"
    path.write_bytes(TEXTS[kind])
    assert_is_example(read_table(path, format=kind, target=None if kind == "libsvm" else -1))


def test_tsv_by_format_in_a_csv_file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(TEXTS["tsv"])
    assert_is_example(read_table(path, format="tsv", target="y"))


@pytest.mark.parametrize("name", ["set.parquet", "set.pq", "set.bin"])
def test_parquet(tmp_path, name):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"a": [1, 3], "b": [2, 0], "y": [-1, 1]}), tmp_path / name)
    assert_is_example(
        read_table(tmp_path / name, format="parquet" if name == "set.bin" else None, target="y")
    )


@pytest.mark.parametrize("name", ["set.xlsx", "set.csv.zip", "set.parquet.gz", "set.json.bz2"])
def test_name_that_says_nothing(tmp_path, name):
    with pytest.raises(ValueError, match=r"does not say what the file is.*pass format, one of \('libsvm'"):
        read_table(tmp_path / name)


def test_unknown_format(tmp_path):
    with pytest.raises(ValueError, match=r"format must be one of .* or None; got 'excel'"):
        read_table(tmp_path / "set", format="excel")


def test_target_of_a_libsvm_file(tmp_path):
    with pytest.raises(ValueError, match=r"target='y', but set is read as a LIBSVM file.*leave target out"):
        read_table(tmp_path / "set", target="y")


def test_errors_of_the_readers_pass_through(tmp_path):
    for name in ("set", "set.csv"):
        (tmp_path / name).write_bytes(b"a,b\n1,x\n2\n")
        with pytest.raises(DataFileError, match=f"{name}, line"):
            read_table(tmp_path / name)
    assert issubclass(DataFileError, ValueError)


def csv(text, **settings):
    return read_table(io.BytesIO(text), format="csv", **settings)


def test_columns_as_people_write_them():
    text = b"size;share;code;when;y\n1.038,5;7 %;007;2024-12-31;a\n910,6;NA;012;2024-01-01;b\n;3,5%;013;;a\n"
    table = csv(text, target="y")
    assert table.data["size"].tolist()[:2] == [1038.5, 910.6]
    assert np.isnan(table.data["size"][2])
    assert table.data["share"].tolist()[::2] == [7, 3.5]
    assert table.data["code"].tolist() == ["007", "012", "013"]
    assert table.data["when"].dtype.kind == "M"
    assert table.data["when"].astype(str).tolist()[:2] == ["2024-12-31", "2024-01-01"]
    assert table.data["when"].isna().tolist() == [False, False, True]
    assert table.rules["size"].notation == ",'"
    assert table.remarks == {
        "size": "decimal comma, thousands points",
        "share": "per cent, decimal comma",
        "code": "codes: zeros in front",
    }
    assert table.target.tolist() == ["a", "b", "a"]


def test_what_the_caller_says_about_columns():
    text = b"a,b,y\n1,2,0\n3,four,1\n5,6,0\n7,8,1\n"
    with pytest.raises(
        DataFileError, match=r"line 3, column 'b': it holds numbers, and a text, 'four'.*numeric"
    ):
        csv(text, target="y")
    table = csv(text, target="y", numeric=["b"], categorical=["a"])
    assert np.isnan(table.data["b"][1])
    assert table.rules["b"].notation == "?"
    assert table.data["a"].tolist() == ["1", "3", "5", "7"]
    with pytest.raises(DataFileError, match=r"1.038 with a decimal comma and 1038 with.*decimal=\.\.\."):
        csv(b'a,y\n"1,038",0\n"2,250",1\n', target="y")
    assert csv(b'a,y\n"1,038",0\n', target="y", decimal=",").data["a"].tolist() == [1.038]
    with pytest.raises(ValueError, match="'y' is named in numeric or categorical, and is no feature"):
        csv(text, target="y", numeric=["y"])


def test_long_names_are_cut_in_messages():
    with pytest.raises(DataFileError) as caught:
        csv(b"a" * 70_000 + b",b\n1,1\ntwo,2\n3,3\n4,4\n")
    assert len(str(caught.value)) < 300


def test_delimiter_of_the_first_line():
    for sign in b";", b"\t", b"|":
        assert csv(b"a,b\n1,2\n".replace(b",", sign)).data.to_numpy().tolist() == [[1, 2]]


def test_parquet_columns_keep_their_types(tmp_path):
    when = pd.to_datetime(["2024-12-31", None])
    pd.DataFrame({"when": when, "word": ["x", None], "y": [0, 1]}).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", target="y")
    assert table.data["when"].dtype.kind == "M"
    assert table.data["word"].tolist()[0] == "x"
    assert table.target.tolist() == [0, 1]


def test_infinite_numbers_of_a_parquet_file(tmp_path):
    pd.DataFrame({"a": [0.0, np.inf], "word": ["x", "y"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataFileError, match="column 'a': the value in row 2 is infinite"):
        read_table(tmp_path / "t.parquet")


def test_open_files_need_a_format():
    with pytest.raises(ValueError, match="pass format"):
        read_table(io.BytesIO(CSV))


numbers = st.floats(allow_nan=False, allow_infinity=False)
written = st.one_of(
    numbers.map(repr),
    numbers.map("{:+.3e}".format),
    st.integers().map(str),
    st.sampled_from(["1.", ".5", "+.5E+1", "-0", "1e-400", " 7 ", "1e400", "1_0", "0x1", "12.", "\t3"]),
)


@settings(deadline=None)
@given(st.lists(written, min_size=1, max_size=8))
def test_pyarrow_and_the_slow_path_agree_cell_by_cell(cells):
    texts = pa.array([cell.strip(" \t") for cell in cells])
    fast = _plain_numbers(texts)
    if fast is not None:
        slow, _ = read_column(TextColumn.of([texts]), ColumnRule("number", "."))
        np.testing.assert_array_equal(fast, slow)
        np.testing.assert_array_equal(np.signbit(fast), np.signbit(slow))
        np.testing.assert_array_equal(slow, [float(cell) for cell in cells])


@settings(deadline=None)
@given(st.lists(written, min_size=1, max_size=8), st.booleans())
def test_a_file_and_a_stream_give_the_same_numbers(tmp_path_factory, cells, quoted):
    mark = '"' if quoted else ""
    text = "a,b\n" + "".join(f"{mark}{cell}{mark},1\n" for cell in cells)
    path = tmp_path_factory.mktemp("numbers") / "t.csv"
    path.write_text(text)

    def outcome(source):
        try:
            return read_table(source, format="csv").data.to_csv()
        except DataFileError as error:
            return str(error).replace(str(path), "<stream>")

    assert outcome(path) == outcome(io.BytesIO(text.encode()))


def test_rules_of_one_file_read_another():
    """By name, in the order of the rules, and each cell by its rule alone."""
    table = csv(b"size;when;code\n1,5;2024-01-01;07\n2;;08\n")
    other = csv(b"code,extra,when,size\n7,x,2024-02-01,3\n", rules=table.rules)
    assert list(other.data) == ["size", "when", "code"]
    assert other.data["code"].tolist() == ["7"]
    with pytest.raises(
        DataFileError,
        match=r"line 2, column 'size': found '1.5'; expected a finite number with a decimal comma",
    ):
        csv(b"size;when;code\n1.5;;7\n", rules=table.rules)
    with pytest.raises(DataFileError, match="there is no column 'when' that is a feature"):
        csv(b"size;code\n1,5;7\n", rules=table.rules)
    with pytest.raises(DataFileError, match="the file has 2 features; expected 3"):
        csv(b"1;2\n", rules=table.rules, header=False)


def test_a_cell_that_the_sample_did_not_show(tmp_path):
    """Rows from all over a large file tell what columns hold; a cell that does not fit is an error."""
    lines = [f"{row}.5,{row % 3},x" for row in range(400_000)]
    lines[399_990] = "soon,?,x"
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "\n".join(lines))
    with pytest.raises(DataFileError, match=r"line 399992, column 'a': found 'soon'; expected a.*numeric"):
        read_table(path)
    table = read_table(path, numeric=["a"])
    assert np.isnan(table.data.loc[399_990, ["a", "b"]].to_numpy(float)).all()
    assert table.data["b"].isna().sum() == 1
