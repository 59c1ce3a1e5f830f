"""Well-formed files, the types that come back, and real files; hostile ones are in test_libsvm_errors."""

import bz2
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_svmlight_file

from exclusivity.datasets import LibsvmData, libsvm_lines, libsvm_rows, read_libsvm
from exclusivity.io.datasets import data_folder

EXAMPLE = b"+1 1:0.5 3:-2e-3\n-1 2:.25\n3.5\n"
EXAMPLE_DATA = np.array([[0.5, 0, -2e-3], [0, 0.25, 0], [0, 0, 0]])


def parse(text, **options):
    return read_libsvm(io.BytesIO(text), **options)


def assert_is_example(found: LibsvmData):
    np.testing.assert_array_equal(found.data.toarray(), EXAMPLE_DATA)
    np.testing.assert_array_equal(found.target, [1, -1, 3.5])
    assert found.query_ids is None


def assert_equal(found: LibsvmData, expected: LibsvmData):
    assert found.data.shape == expected.data.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found.data, name), getattr(expected.data, name))
    np.testing.assert_array_equal(found.target, expected.target)
    np.testing.assert_array_equal(found.query_ids, expected.query_ids)


class TestSources:
    @pytest.mark.parametrize(
        ("name", "compress"),
        [
            ("plain", bytes),
            ("plain.txt", bytes),
            ("packed.gz", gzip.compress),
            ("packed.bz2", bz2.compress),
            ("PACKED.GZ", gzip.compress),
            ("two.streams.gz", lambda text: gzip.compress(text[:11]) + gzip.compress(text[11:])),
        ],
    )
    def test_compression_follows_the_name(self, tmp_path, name, compress):
        path = tmp_path / name
        path.write_bytes(compress(EXAMPLE))
        assert_is_example(read_libsvm(path))
        assert_is_example(read_libsvm(str(path)))

    def test_open_file_is_read_from_its_position_and_left_open(self, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"junk\n" + EXAMPLE)
        with path.open("rb") as stream:
            stream.readline()
            assert_is_example(read_libsvm(stream))
            assert not stream.closed

    def test_own_file_is_closed(self, tmp_path):
        path = tmp_path / "packed.gz"
        path.write_bytes(gzip.compress(EXAMPLE))
        with pytest.MonkeyPatch.context() as patch:
            opened = []
            original = libsvm_lines.open_text
            patch.setattr(
                "exclusivity.datasets.libsvm_lines.open_text",
                lambda path: opened.append(original(path)) or opened[-1],
            )
            read_libsvm(path)
        assert opened[0].closed
        assert all(stream.closed for stream in opened)

    def test_open_decompressor(self):
        with gzip.open(io.BytesIO(gzip.compress(EXAMPLE))) as stream:
            assert_is_example(read_libsvm(stream))

    @pytest.mark.parametrize("source", [None, 3, b"1 1:2\n"])
    def test_other_source_is_a_type_error(self, source):
        with pytest.raises(TypeError, match=f"path or an open binary file; got {type(source).__name__}"):
            read_libsvm(source)

    def test_text_file_is_a_type_error(self):
        with pytest.raises(TypeError, match=r"gave str, not bytes: open it in binary mode"):
            read_libsvm(io.StringIO("1 1:2\n"))

    def test_file_open_for_writing_keeps_its_own_error(self, tmp_path):
        with (tmp_path / "file").open("wb") as stream, pytest.raises(io.UnsupportedOperation):
            read_libsvm(stream)

    def test_missing_file_and_folder_are_os_errors(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_libsvm(tmp_path / "absent")
        with pytest.raises(OSError, match="directory"):
            read_libsvm(tmp_path)

    def test_error_of_the_system_is_not_called_damage(self):
        class Unplugged:
            def read(self, size):
                raise OSError(5, "Input/output error")

        with pytest.raises(OSError, match="Input/output"):
            read_libsvm(Unplugged())


class TestFormat:
    def test_kinds_of_the_result(self):
        found = parse(EXAMPLE)
        assert found.data.format == "csr"
        assert found.data.dtype == found.target.dtype == np.float64
        assert found.data.indices.dtype == found.data.indptr.dtype == np.int32
        found.data.check_format(full_check=True)
        found.data.data *= 2  # the caller may change what it got
        found.target[0] = 7

    def test_canonical_flag_is_true(self):
        claimed = parse(EXAMPLE).data
        assert claimed.has_canonical_format
        fresh = type(claimed)((claimed.data, claimed.indices, claimed.indptr), shape=claimed.shape)
        assert fresh.has_canonical_format

    @pytest.mark.parametrize(
        "text",
        [
            EXAMPLE.rstrip(b"\n"),
            EXAMPLE.replace(b"\n", b"\r\n"),
            EXAMPLE.replace(b" ", b" \t "),
            EXAMPLE.replace(b"\n", b" \t\n"),
            b"\t " + EXAMPLE,
            EXAMPLE.replace(b"\n", b"\n\n \n\r\n# only a comment\n"),
            EXAMPLE.replace(b"\n", b" # a 1:2 comment # with : and caf\xc3\xa9\n"),
            EXAMPLE.replace(b"\n", b"#close\r\n"),
            EXAMPLE.replace(b"3:", b"0003:"),
        ],
    )
    def test_variations_that_mean_the_same(self, text, monkeypatch):
        assert_is_example(parse(text))
        monkeypatch.setattr(libsvm_rows.RowParser, "_add_line", None)
        assert_is_example(parse(text))  # the fast way alone is enough

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1.", 1.0),
            ("+.5E+1", 5.0),
            ("-0", -0.0),
            ("1e-400", 0.0),
            ("4.9e-324", 5e-324),
            ("1.7976931348623157e308", np.finfo(float).max),
            ("0.1000000000000000055511151231257827", 0.1),
        ],
    )
    def test_decimal_numbers(self, text, value):
        found = parse(f"{text} 1:{text}\n".encode())
        for number in (found.target[0], found.data.data[0]):
            assert number == value
            assert np.signbit(number) == np.signbit(value)

    def test_written_zeros_stay(self):
        assert parse(b"1 1:0 2:3\n").data.nnz == 2

    def test_rows_without_entries(self):
        assert parse(b"1\n-1\n").data.shape == (2, 0)
        assert parse(b"1\n-1\n", n_features=4).data.shape == (2, 4)

    def test_query_ids(self):
        found = parse(b"2 qid:7 1:1\n1 qid:9223372036854775807\n0 qid:0 # nothing\n")
        assert found.query_ids.dtype == np.int64
        np.testing.assert_array_equal(found.query_ids, [7, 2**63 - 1, 0])
        np.testing.assert_array_equal(found.data.toarray(), [[1], [0], [0]])

    def test_n_features_widens(self):
        assert parse(EXAMPLE).data.shape == (3, 3)
        assert parse(EXAMPLE, n_features=np.int64(5)).data.shape == (3, 5)

    @pytest.mark.parametrize(
        ("largest", "kind"), [(2**31 - 1, np.int32), (2**31, np.int64), (2**63 - 1, np.int64)]
    )
    def test_indices_are_as_narrow_as_they_can_be(self, largest, kind):
        found = parse(b"1 1:2 %d:3\n-1\n" % largest).data
        assert found.shape == (2, largest)
        assert found.indices.dtype == found.indptr.dtype == kind
        assert found.indices.tolist() == [0, largest - 1]
        assert (parse(b"1 1:2\n", n_features=largest).data.indices.dtype) == kind

    def test_max_bytes_counts_the_last_byte(self):
        assert_is_example(parse(EXAMPLE, max_bytes=len(EXAMPLE)))
        assert_is_example(parse(EXAMPLE, max_bytes=None))

    @pytest.mark.parametrize("name", ["n_features", "max_bytes"])
    @pytest.mark.parametrize("value", [0, -1, 2.0, "3"])
    def test_settings_are_checked(self, name, value):
        with pytest.raises(ValueError, match=rf"^{name} must be a whole number from 1.*got {value!r}"):
            parse(EXAMPLE, **{name: value})

    def test_n_features_beyond_int64(self):
        with pytest.raises(
            ValueError, match=r"n_features must be a whole number from 1 up to 9223372036854775807"
        ):
            parse(EXAMPLE, n_features=2**63)

    def test_ten_megabytes_in_one_line(self, monkeypatch):
        monkeypatch.setattr(libsvm_rows.RowParser, "_add_line", None)  # the fast way alone is enough
        n_features = 900_000
        line = b"1 " + b" ".join(b"%d:0.5" % index for index in range(1, n_features + 1))
        assert len(line) > 9_700_000
        found = parse(line + b"\n-1 5:1").data
        assert found.shape == (2, n_features)
        assert found.nnz == n_features + 1
        assert found.sum() == n_features / 2 + 1


finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def datasets(draw):
    """(labels, query numbers or None, one mapping from index to value per row)."""
    rows = draw(
        st.lists(
            st.dictionaries(st.integers(1, 40) | st.integers(1, 2**63 - 1), finite, max_size=6), min_size=1
        )
    )
    lists = {"min_size": len(rows), "max_size": len(rows)}
    labels = draw(st.lists(finite, **lists))
    query_ids = draw(st.none() | st.lists(st.integers(0, 2**63 - 1), **lists))
    return labels, query_ids, rows


def written(labels, query_ids, rows):
    lines = []
    for i, (label, row) in enumerate(zip(labels, rows, strict=True)):
        query = [] if query_ids is None else [f"qid:{query_ids[i]}"]
        entries = [f"{index}:{row[index]!r}" for index in sorted(row)]
        lines.append(" ".join([repr(label), *query, *entries]) + "\n")
    return "".join(lines).encode()


class Dripping:
    """A stream that gives a few bytes at a time."""

    def __init__(self, text, step):
        self._stream, self._step = io.BytesIO(text), step

    def read(self, size):
        return self._stream.read(min(size, self._step))


class TestRoundTrip:
    @settings(deadline=None, max_examples=60)
    @given(datasets())
    def test_what_is_written_is_read(self, dataset):
        labels, query_ids, rows = dataset
        found = parse(written(*dataset))
        np.testing.assert_array_equal(found.target, labels)
        np.testing.assert_array_equal(found.query_ids, query_ids)
        assert found.data.shape == (len(rows), max((max(row, default=0) for row in rows), default=0))
        ends = found.data.indptr
        for i, row in enumerate(rows):
            entries = slice(ends[i], ends[i + 1])
            indices = (found.data.indices[entries].astype(object) + 1).tolist()
            assert dict(zip(indices, found.data.data[entries].tolist(), strict=True)) == row
            assert indices == sorted(row)

    @settings(deadline=None, max_examples=60)
    @given(datasets(), st.integers(1, 40))
    def test_cuts_do_not_matter(self, dataset, step):
        """Neither where chunks end, nor where the entries of a long line are cut into pieces."""
        text = written(*dataset)
        whole = parse(text)
        assert_equal(read_libsvm(Dripping(text, step)), whole)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(libsvm_rows, "CHUNK_BYTES", step)
            assert_equal(parse(text), whole)

    @settings(deadline=None, max_examples=60)
    @given(datasets())
    def test_both_ways_agree(self, dataset):
        text = written(*dataset)
        fast = parse(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(libsvm_rows, "_plain_rows", lambda lines: None)
            exact = parse(text)
        assert_equal(fast, exact)

    def test_many_chunks(self):
        rng = np.random.default_rng(0)
        values = rng.normal(size=(12_000, 6)).round(6)
        text = b"".join(
            b"%d " % i + b" ".join(b"%d:%r" % (j + 1, value) for j, value in enumerate(row)) + b"\n"
            for i, row in enumerate(values.tolist())
        )
        assert len(text) > 2 * libsvm_lines.CHUNK_BYTES
        found = parse(text)
        np.testing.assert_array_equal(found.data.toarray(), values)
        np.testing.assert_array_equal(found.target, np.arange(12_000))


class TestAgainstScikitLearn:
    @settings(deadline=None, max_examples=50)
    @given(
        st.lists(st.dictionaries(st.integers(1, 30), finite, max_size=6), min_size=1),
        st.booleans(),
    )
    def test_same_arrays(self, rows, with_queries):
        labels = np.linspace(-1, 1, len(rows)).tolist()
        text = written(labels, list(range(len(rows))) if with_queries else None, rows)
        expected = load_svmlight_file(
            io.BytesIO(text), n_features=30, zero_based=False, query_id=with_queries
        )
        found = parse(text, n_features=30)
        np.testing.assert_array_equal(found.data.toarray(), expected[0].toarray())
        np.testing.assert_array_equal(found.target, expected[1])
        if with_queries:
            np.testing.assert_array_equal(found.query_ids, expected[2])


# rows, columns, rows of class +1: from the description of the collection
REAL_FILES = {
    "australian": (690, 14, 307),
    "diabetes_scale": (768, 8, 500),
    "german.numer_scale": (1000, 24, 300),
    "heart": (270, 13, 120),
    "heart_scale": (270, 13, 120),
    "ijcnn1.train": (49990, 22, 4853),
    "ionosphere_scale": (351, 34, 225),
    "liver-disorders_scale": (345, 6, 145),
    "sonar_scale": (208, 60, 97),
    "splice_scale.t": (2175, 60, 1131),
}


def real_file(name) -> Path:
    folder = data_folder()
    candidates = [] if folder is None else [folder / f"{name}{suffix}" for suffix in ("", ".bz2", ".gz")]
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        pytest.skip(f"{name} is not there: set EXCLUSIVITY_DATA to the folder that holds it")
    return path


class TestRealFiles:
    @pytest.mark.parametrize("name", REAL_FILES)
    def test_shape_and_classes(self, name):
        n_rows, n_features, n_positive = REAL_FILES[name]
        found = read_libsvm(real_file(name))
        assert found.data.shape == (n_rows, n_features)
        assert set(found.target.tolist()) == {-1.0, 1.0}
        assert (found.target == 1).sum() == n_positive

    @pytest.mark.parametrize("name", ["australian", "heart_scale", "splice_scale.t"])
    def test_same_as_scikit_learn(self, name):
        path = real_file(name)
        data, target = load_svmlight_file(str(path))
        found = read_libsvm(path)
        np.testing.assert_array_equal(found.data.toarray(), data.toarray())
        np.testing.assert_array_equal(found.target, target)

    def test_helper_file_of_plain_numbers_is_refused(self):
        """Three numbers a line: no rows of index:value, so nothing is guessed."""
        with pytest.raises(ValueError, match=r"line 1: found '2'; expected index:value"):
            read_libsvm(real_file("australian_decimals.txt"))
