"""read_npy: what numpy.save writes, and nothing else."""

import re

import numpy as np
import pytest

from exclusivity.io import DataFileError, read_table
from readers import read_npy

ROWS = np.arange(12.0).reshape(4, 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.npy"


@pytest.mark.parametrize("kind", ["f8", "f4", ">f8", "i4", "u1", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_every_kind(path, kind, order):
    rows = np.asarray(ROWS.astype(kind), order=order)
    np.save(path, rows)
    table = read_npy(path, target=1)
    assert table.data.dtype == np.float64
    assert table.data.flags.c_contiguous
    assert np.array_equal(table.data, rows[:, [0, 2]].astype(float))
    assert np.array_equal(table.target, rows[:, 1].astype(float))
    assert table.names is None


def test_columns(path):
    np.save(path, ROWS)
    assert read_npy(path).target is None
    some = read_npy(path, target=-1, ignore=(0,))
    assert some.data.tolist() == [[1], [4], [7], [10]]
    assert some.target.tolist() == [2, 5, 8, 11]
    with pytest.raises(DataFileError, match="there is no column 3 for the target among 3 columns"):
        read_npy(path, target=3)
    with pytest.raises(DataFileError, match=r"takes? 96 bytes, more than max_bytes=95"):
        read_npy(path, max_bytes=95)


def test_a_table_by_its_name(path):
    np.save(path, ROWS)
    assert read_table(path, target=0).target.tolist() == [0, 3, 6, 9]
    with pytest.raises(ValueError, match="has no names"):
        read_table(path, target="state")


def test_missing_numbers_name_their_row(path):
    np.save(path, ROWS)
    assert np.array_equal(read_npy(path, target=0).data, ROWS[:, 1:])
    for column, found in (
        (2, r"column 2 \(from 0\): the value in row 4 is missing"),
        (0, r"column 0 .from 0.: 1 of .* class \(row 4\)"),
    ):
        holed = ROWS.copy()
        holed[3, column] = np.nan
        np.save(path, holed)
        with pytest.raises(DataFileError, match=found):
            read_npy(path, target=0)


def npy_bytes(array):
    from io import BytesIO

    stream = BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


HOSTILE = {
    "empty": b"",
    "text": b"a,b\n1,2\n",
    "objects": npy_bytes(np.array([[{}]], dtype=object)),
    "words": npy_bytes(np.array([["a"]])),
    "complex": npy_bytes(np.array([[1j]])),
    "records": npy_bytes(np.zeros(3, dtype=[("a", "f8")])),
    "one dimension": npy_bytes(np.zeros(3)),
    "three dimensions": npy_bytes(np.zeros((2, 2, 2))),
    "no rows": npy_bytes(np.zeros((0, 3))),
    "no columns": npy_bytes(np.zeros((3, 0))),
    "cut": npy_bytes(ROWS)[:-1],
    "long": npy_bytes(ROWS) + b"x",
    "boast": npy_bytes(ROWS).replace(b"(4, 3)", b"(4444444444444444, 3)".ljust(6)),
    "large boast": re.sub(rb"\(4, 3\), \} {20}", b"(9" + b"0" * 18 + b", 3), }", npy_bytes(ROWS)),
    "negative": npy_bytes(ROWS).replace(b"(4, 3)", b"(-4,3)"),
    "a zip file": b"PK\x03\x04" + bytes(100),
    "version": npy_bytes(ROWS).replace(b"\x93NUMPY\x01", b"\x93NUMPY\x07"),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files(path, content):
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=re.escape(str(path))):
        read_npy(path)


def test_no_file(path):
    with pytest.raises(FileNotFoundError):
        read_npy(path)


def test_every_cut_of_a_file_is_refused(path):
    whole = npy_bytes(ROWS)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataFileError):
            read_npy(path)


def test_random_damage_is_an_error_or_numbers(path):
    rng = np.random.default_rng(0)
    whole = npy_bytes(ROWS)
    for _ in range(400):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), size=3):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            table = read_npy(path)
        except DataFileError:
            continue
        assert np.isfinite(table.data).all()
