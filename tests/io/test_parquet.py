"""Parquet files, good and bad; without pyarrow only the error that says what to install."""

import importlib.util
import json

import numpy as np
import pytest

from exclusivity.io import DataFileError, _reading, tables
from exclusivity.io._cells import MISSING, ColumnRule
from readers import read_parquet

needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed"
)


@pytest.fixture
def write(tmp_path):
    """Write columns (name to list or arrow array) to a file, and give its path."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def write(columns, metadata=None, **options):
        names, arrays = zip(*columns, strict=True) if columns else ((), ())
        table = pa.Table.from_arrays([pa.array(values) for values in arrays], names=list(names))
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "table.parquet", **options)
        return tmp_path / "table.parquet"

    return write


def refusal(path, **options):
    with pytest.raises(DataFileError) as caught:
        read_parquet(path, **options)
    assert caught.value.file == str(path)
    assert caught.value.line is None
    return caught.value


class TestGood:
    def test_features_and_numbers(self, write):
        path = write([("a", [1, 2, 3]), ("y", [-1.0, 1.0, 1.0]), ("b", [0.5, -2.0, 1e300])])
        table = read_parquet(path, target="y")
        np.testing.assert_array_equal(table.data, [[1, 0.5], [2, -2], [3, 1e300]])
        np.testing.assert_array_equal(table.target, [-1, 1, 1])
        assert (table.data.dtype, table.target.dtype) == (np.float64, np.int64)
        assert table.names == ("a", "b")

    def test_no_target(self, write):
        table = read_parquet(str(write([("a", [1, 2]), ("b", [3, 4])])))
        np.testing.assert_array_equal(table.data, [[1, 3], [2, 4]])
        assert table.target is None
        assert table.names == ("a", "b")

    @pytest.mark.parametrize("target", [1, -1])
    def test_target_by_number(self, write, target):
        assert read_parquet(write([("a", [1, 2]), ("b", [3, 4])]), target=target).target.tolist() == [3, 4]

    @pytest.mark.parametrize("kind", ["int8", "uint64", "float16", "float32", "float64", "bool_"])
    def test_kinds_of_numbers(self, write, kind):
        pa = pytest.importorskip("pyarrow")
        values = np.array([0, 1, 1]).astype(bool if kind == "bool_" else kind)
        path = write(
            [("a", pa.array(values, getattr(pa, kind)())), ("y", pa.array(values, getattr(pa, kind)()))]
        )
        table = read_parquet(path, target="y")
        np.testing.assert_array_equal(table.data[:, 0], [0, 1, 1])
        np.testing.assert_array_equal(table.target, [0, 1, 1])

    @pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
    @pytest.mark.parametrize("use_dictionary", [True, False])
    def test_text_as_target(self, write, kind, use_dictionary):
        pa = pytest.importorskip("pyarrow")
        words = ["ill", "well", "größer", "ill"]
        array = (
            pa.array(words).dictionary_encode()
            if kind == "dictionary"
            else pa.array(words, getattr(pa, kind)())
        )
        table = read_parquet(
            write([("a", [1, 2, 3, 4]), ("y", array)], use_dictionary=use_dictionary), target="y"
        )
        assert table.target.tolist() == words
        assert table.target.dtype == object

    def test_many_batches_and_row_groups(self, write):
        n = 100
        words = [f"class {i % 3}" for i in range(n)]
        table = read_parquet(
            write([("a", list(range(n))), ("y", words), ("b", list(range(n, 2 * n)))], row_group_size=30),
            target="y",
        )
        np.testing.assert_array_equal(table.data, np.arange(2 * n).reshape(2, n).T)
        assert table.target.tolist() == words

    def test_index_that_pandas_does_not_store(self, write):
        metadata = {
            "pandas": json.dumps({"index_columns": [{"kind": "range", "start": 0, "stop": 2, "step": 1}]})
        }
        assert read_parquet(write([("a", [1, 2])], metadata)).data.shape == (2, 1)

    @pytest.mark.parametrize("metadata", [{"pandas": "no JSON"}, {"pandas": "[1]"}, {"pandas": "{}"}])
    def test_metadata_of_others(self, write, metadata):
        assert read_parquet(write([("a", [1, 2])], metadata)).data.shape == (2, 1)

    def test_no_limit(self, write):
        path = write([("a", [1, 2])])
        for max_bytes in (None, 10_000):
            assert read_parquet(path, max_bytes=max_bytes).data.shape == (2, 1)


class TestContent:
    def test_missing_target_lists_the_columns(self, write):
        error = refusal(write([("age", [1]), ("mass", [2])]), target="state")
        assert error.cause == "there is no column 'state' for the target; there are 'age', 'mass'."

    def test_target_alone(self, write):
        assert "none of the 1 columns is left for features" in refusal(write([("y", [1])]), target="y").cause

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("column", ["b", "y"])
    def test_not_finite(self, write, value, column):
        columns = {"a": [1, 2, 3, 4], "b": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 1.0, 1.0, 1.0]}
        columns[column][3] = value
        error = refusal(write(columns.items()), target="y")
        assert error.column == column
        if column == "y" and np.isnan(value):
            assert error.cause.startswith("1 of 4 rows has no class (row 4); a cell")
        else:
            shown = "missing" if np.isnan(value) else "infinite"
            assert error.cause == f"the value in row 4 is {shown}; expected a finite number."

    @pytest.mark.parametrize("values", [[1, None, 3], [1.5, None, 3.5], [True, None, False]])
    def test_missing_number(self, write, values):
        error = refusal(write([("a", [1, 2, 3]), ("b", values)]))
        assert str(error).endswith("column 'b': the value in row 2 is missing; expected a finite number.")

    @pytest.mark.parametrize("gap", [None, *MISSING])
    def test_missing_text(self, write, gap):
        error = refusal(write([("a", [1, 2, 3]), ("y", ["x", gap, gap])]), target="y")
        assert error.cause.startswith("2 of 3 rows have no class (rows 2, 3); a cell")

    @pytest.mark.parametrize(
        ("values", "kind"),
        [(["1", "2"], "string"), ([[1], [2]], "list"), ([b"1", b"2"], "binary"), ([None, None], "null")],
    )
    def test_features_of_other_types(self, write, values, kind):
        error = refusal(write([("a", [1, 2]), ("b", values)]))
        assert error.column == "b"
        assert error.cause.startswith(f"the column is of type {kind}")
        assert error.cause.endswith("; expected integers, floating point numbers or booleans.")

    def test_target_of_another_type(self, write):
        error = refusal(write([("a", [1, 2]), ("y", [[1], [2]])]), target="y")
        assert error.cause.endswith("expected integers, floating point numbers or booleans or text.")

    def test_duplicate_names(self, write):
        error = refusal(write([("a", [1]), ("b", [2]), ("a", [3])]))
        assert error.cause == "2 columns are called 'a'; expected different names."

    def test_index_of_pandas(self, write):
        metadata = {"pandas": json.dumps({"index_columns": ["__index_level_0__"]})}
        error = refusal(write([("a", [1, 2]), ("__index_level_0__", [5, 7])], metadata))
        assert error.column == "__index_level_0__"
        assert error.cause.endswith("write the file with index=False.")

    def test_no_rows_and_no_columns(self, write):
        assert "0 rows and 1 columns" in refusal(write([("a", np.array([], float))])).cause
        assert "0 columns" in refusal(write([])).cause

    @pytest.mark.parametrize("value", [0, 2.0])
    def test_settings(self, tmp_path, value):
        with pytest.raises(ValueError, match="max_bytes must be a whole number"):
            read_parquet(tmp_path / "x", max_bytes=value)
        with pytest.raises(TypeError, match="target must be"):
            read_parquet(tmp_path / "x", target=1.5)


class TestHostile:
    def test_billion_rows_are_refused_before_memory_is_taken(self, write, monkeypatch):
        """A million equal rows are a few hundred bytes; no row of them is read."""
        path = write([("a", np.zeros(1_000_000)), ("b", np.zeros(1_000_000))])
        assert path.stat().st_size < 20_000
        monkeypatch.setattr(tables, "_column", None)
        error = refusal(path, max_bytes=15_999_999)
        assert error.cause.startswith(
            "the table of 1000000 rows and 2 columns takes 16000000 bytes, more than max_bytes"
        )

    def test_size_that_the_file_states(self, write):
        error = refusal(write([("a", [1]), ("y", ["x" * 100_000])]), target="y", max_bytes=50_000)
        assert "max_bytes=50000" in error.cause

    @pytest.mark.parametrize("store_schema", [True, False])  # False: nothing says "dictionary" to pyarrow
    def test_text_repeated_a_million_times(self, write, store_schema):
        """100 GB, had every row its own copy."""
        columns = [("a", np.zeros(1_000_000, np.int8)), ("y", _repeated("x" * 100_000, 1_000_000))]
        path = write(columns, store_schema=store_schema)
        table = read_parquet(path, target="y")
        assert len(table.target) == 1_000_000
        assert len({id(word) for word in table.target}) <= -(-1_000_000 // (1 << 16)) + 1

    def test_too_many_columns(self, write, monkeypatch):
        monkeypatch.setattr(tables, "MAX_COLUMNS", 2)
        assert "the table has 3 columns; expected 1 to 2." in refusal(write([(n, [1]) for n in "abc"])).cause

    @pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PA", b"PAR1 cut"])
    @needs_pyarrow
    def test_not_parquet(self, tmp_path, content):
        path = tmp_path / "x.parquet"
        path.write_bytes(content)
        assert "not a Parquet file that pyarrow can read (" in refusal(path).cause

    @pytest.mark.parametrize(
        "content", [b"PAR1PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"]
    )
    @needs_pyarrow
    def test_garbage_between(self, tmp_path, content):
        path = tmp_path / "x.parquet"
        path.write_bytes(content)
        assert refusal(path).cause.startswith(
            "the file is damaged, or not a Parquet file that pyarrow can read ("
        )

    def test_flipped_bytes(self, write):
        """Whatever byte is wrong, there is a table or a DataFileError, and its message is short."""
        path = write([("a", list(range(50))), ("y", ["x", "y"] * 25)])
        content = path.read_bytes()
        refused = []
        for place in range(4, len(content) - 4, 5):
            path.write_bytes(content[:place] + bytes([content[place] ^ 0x5A]) + content[place + 1 :])
            try:
                read_parquet(path, target="y", max_bytes=1 << 20)
            except DataFileError as error:
                refused.append(str(error))
        assert len(refused) > 50
        assert max(map(len, refused)) < 600

    def test_fewer_rows_than_stated(self, write, monkeypatch):
        path = write([("a", [1, 2, 3])])
        parquet = pytest.importorskip("pyarrow.parquet")
        original = parquet.ParquetFile.read
        cut = lambda *given, **options: original(*given, **options).slice(0, 2)  # noqa: E731
        monkeypatch.setattr(parquet.ParquetFile, "read", cut)
        assert refusal(path).cause == "the file holds 2 rows; expected 3, as it says itself."

    def test_missing_file_and_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_parquet(tmp_path / "absent.parquet")
        with pytest.raises(OSError, match="directory"):
            read_parquet(tmp_path)


def _repeated(word, times):
    pa = pytest.importorskip("pyarrow")
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(times, np.int32)), pa.array([word]))


def test_without_pyarrow(tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(_reading, "import_module", absent)
    with pytest.raises(
        ImportError, match=r"needs pyarrow; install it with: pip install 'exclusivity\[cli\]'"
    ):
        read_parquet(tmp_path / "x.parquet")


def test_ignored_columns_may_be_of_any_type(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {"when": pa.array([None, "x"]), "a": [1.5, 2.5], "b": [[1], [2]], "y": ["u", "v"], "c": [3, 4]}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    table = read_parquet(path, target="y", ignore=["when", 2])
    assert table.names == ("a", "c")
    assert table.data.tolist() == [[1.5, 3.0], [2.5, 4.0]]
    assert table.target.tolist() == ["u", "v"]
    with pytest.raises(DataFileError, match="target is among"):
        read_parquet(path, target="y", ignore=["y"])


def test_texts_where_numbers_or_dates_are_wanted(write):
    path = write([("size", ["1.5", "old", None]), ("day", ["2024-02-05", "soon", ""])])
    found = tables.read_table(path, numeric=["size"])
    assert found.data["size"].tolist() == pytest.approx([1.5, np.nan, np.nan], nan_ok=True)
    assert found.n_lost == {"size": 1}
    rules = {"day": ColumnRule("date", "?"), "size": ColumnRule("number", "?")}
    found = tables.read_table(path, rules=rules)
    assert found.data["day"].isna().tolist() == [False, True, True]
    assert found.n_lost == {"day": 1, "size": 1}
    with pytest.raises(DataFileError, match="column 'size': 1 cells are no number, such as 'old'"):
        tables.read_table(path, rules=rules | {"size": ColumnRule("number")})
