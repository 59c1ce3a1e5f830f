"""LIBSVM files: what comes back, and errors that name the line."""

import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from exclusivity.io import DataFileError, _text
from readers import read_libsvm

EXAMPLE = b"+1 1:0.5 3:2  # a comment\n\n# only that\n-1\n3.5 qid:7 2:-1e-3\r\n"
MOST = 2**31 - 1


def parse(text, **options):
    return read_libsvm(io.BytesIO(text), **options)


def refusal(text, **options):
    with pytest.raises(DataFileError) as caught:
        parse(text, **options)
    return caught.value


def assert_is_example(table):
    np.testing.assert_array_equal(table.data.toarray(), [[0.5, 0, 2], [0, 0, 0], [0, -0.001, 0]])
    np.testing.assert_array_equal(table.target, [1, -1, 3.5])


@pytest.mark.parametrize(
    "text",
    [EXAMPLE, EXAMPLE.rstrip(), b"\xef\xbb\xbf" + EXAMPLE, EXAMPLE.replace(b" ", b"\t "), b"\n" + EXAMPLE],
)
def test_variations_that_mean_the_same(text):
    assert_is_example(parse(text))


def test_kinds_of_the_result():
    table = parse(EXAMPLE)
    assert sparse.issparse(table.data)
    assert table.data.format == "csr"
    assert table.data.has_sorted_indices
    assert (table.data.dtype, table.target.dtype) == (np.float64, np.float64)
    assert table.names is None


def test_number_of_features():
    assert parse(EXAMPLE, n_features=9).data.shape == (3, 9)
    error = refusal(b"1 1:1\n\n# x\n1 1:1 12:1\n", n_features=3)
    assert error.line == 4
    assert error.cause.endswith("from 1 to at most n_features=3.")


@pytest.mark.parametrize(
    "line",
    [
        *(b"one 1:1", b"nan 1:1", b"1e999 1:1", b"2:1 3:1", b"1 1:nan", b"1 1:1 2:-inf", b"1 1:two"),
        *(b"1 1:1_0", b"1 1:0,5", b"1 1", b"1 0:1", b"1 -1:1", b"1 x:1", b"1 2:1 2:1", b"1 2:1 1:1"),
        *(b"1 1:2 qid:3", b"1 9223372036854775808:1"),
    ],
)
def test_line_and_what_is_expected(line):
    error = refusal(b"1 1:1\n\n# a comment\n" + line + b"\n1 1:1\n")
    assert error.line == 4
    assert error.cause.endswith(
        "expected 'label index:value ...' with finite decimal numbers, and whole indices that increase "
        f"from 1 to at most {MOST}."
    )


def test_line_number_far_into_the_file():
    lines = [b"1 1:0.25 2:0.5"] * 90_000
    lines[84_320] = b"1 1:0.25 2:0.5.1"
    assert refusal(b"\n".join(lines)).line == 84_321


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing\n"])
def test_no_rows(text):
    assert "the file ends without a single row" in refusal(text).cause


def test_bytes_that_are_no_text():
    assert "0x00" in refusal(b"1 1:1\n1 1:\0\n").cause
    assert "0xff" in refusal(b"1 1:1 # \xff\n").cause


def test_endless_line(monkeypatch):
    class Endless:
        def read(self, size):
            return b"1" * size

    monkeypatch.setattr(_text, "MAX_LINE_BYTES", 1 << 22)
    tracemalloc.start()
    try:
        with pytest.raises(DataFileError, match="the line is longer than"):
            read_libsvm(Endless())
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_what_scikit_learn_writes_is_read(seed):
    rng = np.random.default_rng(seed)
    X = sparse.random(rng.integers(1, 30), 7, 0.4, format="csr", random_state=rng)
    y = rng.normal(size=X.shape[0])
    stream = io.BytesIO()
    dump_svmlight_file(X, y, stream, zero_based=False)
    table = parse(stream.getvalue(), n_features=7)
    np.testing.assert_allclose(table.data.toarray(), X.toarray(), rtol=1e-14)
    np.testing.assert_allclose(table.target, y, rtol=1e-14)
