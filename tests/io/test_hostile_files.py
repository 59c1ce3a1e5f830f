"""One hostile file after the other, through the reader that users call: a clear error, soon, and small."""

import bz2
import gzip
import tracemalloc

import pytest

from exclusivity.io import DataFileError, _text, read_table
from readers import read_libsvm

GARBAGE = bytes(range(256)) * 400

FILES = {
    "index.svm": (b"1 1:1\n1 9223372036854775808:1\n", r"line 2: found .* from 1 to at most 2147483647"),
    "nan.svm": (b"1 1:nan\n", r"line 1: found '1:nan'; expected 'label"),
    "text.svm": (b"1 1:1\n1 1:one\n", r"line 2: found '1 1:one'; expected 'label"),
    "label.svm": (b"1 1:1\n2:1 3:1\n", r"line 2: found '2:1 3:1'; expected 'label"),
    "garbage.svm": (GARBAGE, r"line 1: found byte 0x00 at position 1"),
    "line.svm": (b"1 1:1\n1 1:" + b"z" * 10_000_000, r"line 2: found '1 1:z{36}\.\.\.'; expected"),
    "text.csv": (b"a,y\n1,1\none,2\n", r"line 3, column 'a': it holds numbers, and a text, 'one'"),
    "label.csv": (b"a,y\n1,1\n1,\n", r"line 3, column 'y': 1 of 2 rows has no class \(line 3\)"),
    "garbage.csv": (GARBAGE, r"line 1: found byte 0x00 at position 1"),
    "line.csv": (b"a,y\n1,1\n" + b"1," * 5_200_000, r"line 3: the row has \d+ fields; expected 2"),
    "garbage.parquet": (GARBAGE, r"not a Parquet file that pyarrow can read"),
}


@pytest.mark.parametrize(
    ("name", "compress"),
    [(name, bytes) for name in FILES] + [(name, gzip.compress) for name in FILES if "parquet" not in name],
)
def test_clear_error(tmp_path, name, compress):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    content, cause = FILES[name]
    if compress is gzip.compress and name.startswith("line"):
        content = content[:300_000]
    path = tmp_path / (name if compress is bytes else f"{name}.gz")
    path.write_bytes(compress(content))
    with pytest.raises(DataFileError, match=cause) as caught:
        read_table(path, target=None if name.endswith(".svm") else "y")
    assert str(caught.value).startswith(str(path))
    assert len(caught.value.cause) < 300


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_bomb_with_default_settings(tmp_path, suffix, compress):
    """Sixteen megabytes and a bit, from a few kilobytes."""
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(compress((b"#" * 4095 + b"\n") * 4100))
    assert path.stat().st_size < 80_000
    tracemalloc.start()
    try:
        with pytest.raises(
            DataFileError, match=r"bytes unpack to more than 16777216; .* max_bytes=None for no"
        ):
            read_table(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["bomb.gz", "bomb.csv.bz2"])
def test_bomb_is_found_before_a_row_is_read(tmp_path, monkeypatch, name):
    monkeypatch.setattr(_text.TextFile, "__iter__", None)
    monkeypatch.setattr(_text, "MIN_UNPACKED", 1 << 16)
    compress = gzip.compress if name.endswith(".gz") else bz2.compress
    (tmp_path / name).write_bytes(compress(b"1 1:1\n" * 20_000))
    with pytest.raises(DataFileError, match=r"bytes unpack to more than 65536"):
        read_table(tmp_path / name)


def test_trusted_bomb(tmp_path):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n" + (b"#" * 4095 + b"\n") * 4100))
    assert read_libsvm(path, max_bytes=None).data.shape == (1, 1)


def test_ratio_grows_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(_text, "MIN_UNPACKED", 1000)
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(b"".join(b"1 1:%03d\n" % i for i in range(1000))))
    limit = _text.MAX_RATIO * path.stat().st_size
    assert limit > 8000
    assert len(read_libsvm(path).target) == 1000
    assert len(read_libsvm(path, max_bytes=8000).target) == 1000
    with pytest.raises(DataFileError, match="the text is larger than max_bytes=7999"):
        read_libsvm(path, max_bytes=7999)


def test_large_file_is_refused_unread(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"1 1:1\n" * 10)
    with pytest.raises(DataFileError, match=r"large: the text is larger than max_bytes=59. Pass max_bytes"):
        read_libsvm(path, max_bytes=59)
    assert len(read_libsvm(path, max_bytes=60).target) == 10
