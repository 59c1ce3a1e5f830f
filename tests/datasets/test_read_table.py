"""The reader that chooses by the file's name."""

import bz2
import gzip

import numpy as np
import pytest

from exclusivity.datasets import DataFileError, LibsvmError, read_table

CSV = b"a,b,y\n1,2,-1\n3,0,1\n"
TEXTS = {"libsvm": b"-1 1:1 2:2\n1 1:3\n", "csv": CSV, "tsv": CSV.replace(b",", b"\t")}


def dense(table):
    return table.data if isinstance(table.data, np.ndarray) else table.data.toarray()


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
    assert table.feature_names == (None if kind == "libsvm" else ("a", "b"))


@pytest.mark.parametrize("kind", TEXTS)
def test_format_overrules_the_name(tmp_path, kind):
    path = tmp_path / "data.csv.unknown"
    path.write_bytes(TEXTS[kind])
    assert_is_example(read_table(path, kind, None if kind == "libsvm" else -1))


def test_tsv_by_format_in_a_csv_file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(TEXTS["tsv"])
    assert_is_example(read_table(path, format="tsv", target="y"))


@pytest.mark.parametrize("name", ["set.parquet", "set.pq", "set.bin"])
def test_parquet(tmp_path, name):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"a": [1, 3], "b": [2, 0], "y": [-1, 1]}), tmp_path / name)
    assert_is_example(read_table(tmp_path / name, "parquet" if name == "set.bin" else None, "y"))


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
        (tmp_path / name).write_bytes(b"a,b\n1,x\n")
        with pytest.raises(DataFileError, match=f"{name}, line"):
            read_table(tmp_path / name)
    assert issubclass(LibsvmError, DataFileError)
    assert issubclass(DataFileError, ValueError)
