"""Damaged data files: a sound table or a DataFileError. The long run is scripts/fuzz_data.py."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from exclusivity.io import DataFileError
from readers import read_csv, read_libsvm, read_parquet

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0xFF])
def test_every_byte_of_a_parquet_file(tmp_path, byte):
    """Among them the places of labels in the dictionary of labels: 255 is none of them."""
    labels = ["a", "b", "c"]
    table = pa.table({"x": np.arange(12.0), "y": labels * 4})
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="none", write_statistics=False, store_schema=False)
    path = tmp_path / "some.parquet"
    refused = 0
    for place in range(4, len(stream.getvalue()) - 4):
        data = bytearray(stream.getvalue())
        data[place] = byte
        path.write_bytes(data)
        try:
            found = read_parquet(path, target=-1)
        except DataFileError:
            refused += 1
        else:
            assert len(found.target) == len(found.data)
            assert np.isfinite(found.data).all()
    assert refused > 50


words = st.sampled_from(
    ["1", "-2.5", "1:2", "2:1e3", "qid:1", ":", ",", '"', "\n", "\r\n", " ", "#", "nan", "x", "\0", "é"]
)


@given(st.lists(words, max_size=12).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_words(text):
    for read in (read_libsvm, read_csv):
        try:
            found = read(io.BytesIO(text.encode()))
        except DataFileError as error:
            assert len(error.cause) < 500  # noqa: PT017 -- either way is fine
        else:
            values = found.data.toarray() if hasattr(found.data, "toarray") else found.data
            assert values.shape[0] > 0
            assert np.isfinite(values).all()


@pytest.fixture
def fuzz_data(monkeypatch):
    """The script; its workers are processes, which it starts itself."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import fuzz_data

    return fuzz_data


def test_mutation_fuzzer(fuzz_data, tmp_path, capsys):
    broken = fuzz_data.run(300, seed=0, out=tmp_path)
    told = capsys.readouterr().out
    assert broken == 0, told
    assert "300 files" in told
    assert "0 broke a rule" in told


def test_crash_of_a_worker_is_a_finding(fuzz_data, tmp_path):
    class Died:
        returncode, stderr = -11, "Segmentation fault"

    (tmp_path / "file-41.csv.gz").write_bytes(b"the last one")
    broken = []
    assert fuzz_data._crash(Died, tmp_path, 0, tmp_path, broken, 7) == 42
    assert "-11: Segmentation fault" in broken[0]
    assert (tmp_path / "fuzz-0-41.csv.gz").read_bytes() == b"the last one"
