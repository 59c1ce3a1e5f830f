"""Well-formed CSV files, the types that come back, and both ways of reading; wrong ones: test_csv_errors."""

import bz2
import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from exclusivity.io import DataFileError, _csv
from readers import read_csv

EXAMPLE = b"age,mass,state\n61,80.5,ill\n18,-6e1,well\n"
DATA = [[61, 80.5], [18, -60]]


def parse(text, **options):
    return read_csv(io.BytesIO(text), **options)


def assert_is_example(table):
    np.testing.assert_array_equal(table.data, DATA)
    assert table.target.tolist() == ["ill", "well"]
    assert table.names == ("age", "mass")


class TestSources:
    @pytest.mark.parametrize(
        ("name", "compress"),
        [
            ("plain.csv", bytes),
            ("no_suffix", bytes),
            ("packed.csv.gz", gzip.compress),
            ("packed.csv.bz2", bz2.compress),
            ("PACKED.CSV.GZ", gzip.compress),
        ],
    )
    def test_compression_follows_the_name(self, tmp_path, name, compress):
        path = tmp_path / name
        path.write_bytes(compress(EXAMPLE))
        assert_is_example(read_csv(path, target="state"))
        assert_is_example(read_csv(str(path), target=2))

    @pytest.mark.parametrize(("name", "compress"), [("t.tsv", bytes), ("t.TSV.gz", gzip.compress)])
    def test_tabs_follow_the_name(self, tmp_path, name, compress):
        path = tmp_path / name
        path.write_bytes(compress(EXAMPLE.replace(b",", b"\t")))
        assert_is_example(read_csv(path, target="state"))

    def test_open_file_is_read_from_its_position_and_left_open(self, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"junk\n" + EXAMPLE)
        with path.open("rb") as stream:
            stream.readline()
            assert_is_example(read_csv(stream, target="state"))
            assert not stream.closed

    @pytest.mark.parametrize("source", [None, 3, b"a,b\n"])
    def test_other_source_is_a_type_error(self, source):
        with pytest.raises(TypeError, match=f"path or an open binary file; got {type(source).__name__}"):
            read_csv(source)

    def test_missing_file_and_folder_are_os_errors(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_csv(tmp_path / "absent.csv")
        with pytest.raises(OSError, match="directory"):
            read_csv(tmp_path)


class TestFormat:
    def test_kinds_of_the_result(self):
        table = parse(EXAMPLE, target="state")
        assert table.data.dtype == np.float64
        assert table.target.dtype == object

    @pytest.mark.parametrize(
        "text",
        [
            EXAMPLE.rstrip(b"\n"),
            EXAMPLE.replace(b"\n", b"\r\n"),
            b"\xef\xbb\xbf" + EXAMPLE,
            b"\n \r\n" + EXAMPLE,
            EXAMPLE.replace(b"\n", b"\n\n"),
            EXAMPLE + b"\n\r\n  ",
            EXAMPLE.replace(b",", b" ,\t"),
            b'"age","mass","state"\n61,80.5,ill\n18,-6e1,well\n',
        ],
    )
    def test_variations_that_mean_the_same(self, text):
        assert_is_example(parse(text, target="state"))

    def test_quoted_fields(self):
        assert_is_example(parse(b'age,"mass",state\n"61", "80.5" ,ill\n18,-60,"well"\n', target="state"))
        table = parse(b'"a, b","say ""x""",c\n1,2,"new, ""old"""\n', target="c")
        assert table.names == ("a, b", 'say "x"')
        assert table.target.tolist() == ['new, "old"']

    @pytest.mark.parametrize("delimiter", [";", "|", "\t"])
    def test_other_delimiters(self, delimiter):
        text = EXAMPLE.replace(b",", delimiter.encode())
        assert_is_example(parse(text, target="state", delimiter=delimiter))
        quoted = text.replace(b"ill", b'"ill"').replace(b"61", b'"61"')
        assert_is_example(parse(quoted, target="state", delimiter=delimiter))

    def test_no_target(self):
        table = parse(b"a,b\n1,2\n3,4\n")
        np.testing.assert_array_equal(table.data, [[1, 2], [3, 4]])
        assert table.target is None
        assert table.names == ("a", "b")

    @pytest.mark.parametrize(
        ("target", "rest"), [("a", "bc"), ("b", "ac"), ("c", "ab"), (0, "bc"), (-1, "ab")]
    )
    def test_target_anywhere(self, target, rest):
        table = parse(b"a,b,c\n1,2,3\n4,5,6\n", target=target)
        column = target if isinstance(target, int) else "abc".index(target)
        np.testing.assert_array_equal(table.target, np.array([[1, 2, 3], [4, 5, 6]])[:, column])
        assert table.target.dtype == np.int64
        assert table.names == tuple(rest)

    def test_no_header(self):
        table = parse(b"1,2,r\n3,4,m\n", header=False, target=-1)
        np.testing.assert_array_equal(table.data, [[1, 2], [3, 4]])
        assert table.target.tolist() == ["r", "m"]
        assert table.names is None

    def test_equal_labels_share_their_memory(self):
        target = parse(b"a,b\n" + b"1,a long label\n" * 1000, target="b").target
        assert len({id(label) for label in target}) == 1

    def test_labels_of_other_alphabets(self):
        assert parse("a,état\n1,malade\n2,größer\n".encode(), target="état").target.tolist() == [
            "malade",
            "größer",
        ]

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1.", 1.0),
            ("+.5E+1", 5.0),
            ("-0", -0.0),
            ("1e-400", 0.0),
            ("1.7976931348623157e308", 1.7976931348623157e308),
        ],
    )
    def test_decimal_numbers(self, text, value):
        table = parse(f"a,b\n{text},{text}\n".encode(), target="b")
        assert table.target[0] == table.data[0, 0] == value
        assert np.signbit(table.data[0, 0]) == np.signbit(value)

    def test_max_bytes_counts_the_last_byte(self):
        assert_is_example(parse(EXAMPLE, target="state", max_bytes=len(EXAMPLE)))
        assert_is_example(parse(EXAMPLE, target="state", max_bytes=None))

    def test_max_bytes_of_a_file(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_bytes(EXAMPLE)
        assert_is_example(read_csv(path, target="state", max_bytes=len(EXAMPLE)))
        assert_is_example(read_csv(path, target="state", max_bytes=None))

    def test_wide_lines(self):
        """20,000 columns: much, but a table."""
        n = 20_000
        names = b",".join(b"x%d" % i for i in range(n))
        line = b",".join([b"0.1234567890123456789012345678901"] * n)
        table = parse(names + b"\n" + (line + b"\n") * 3)
        assert table.data.shape == (3, n)
        assert (table.data == 0.1234567890123456789012345678901).all()


finite = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=5)


@st.composite
def tables(draw):
    """(values, labels or None, whether everything is quoted)."""
    width = draw(st.integers(1, 4))
    values = draw(st.lists(st.lists(finite, min_size=width, max_size=width), min_size=1, max_size=8))
    texts = words.map(lambda word: f"_{word}")  # a word that is no number
    labels = draw(
        st.none()
        | st.lists(texts, min_size=len(values), max_size=len(values))
        | st.lists(finite, min_size=len(values), max_size=len(values))
    )
    return values, labels, draw(st.booleans())


def written(values, labels, quoted):
    names = [f"x{column}" for column in range(len(values[0]))] + ([] if labels is None else ["y"])
    rows = [list(map(repr, row)) for row in values]
    if labels is not None:
        rows = [[*row, str(label)] for row, label in zip(rows, labels, strict=True)]
    quoted = quoted or any('"' in field or "," in field for row in rows for field in row)
    mark = (lambda field: '"' + field.replace('"', '""') + '"') if quoted else str
    return "".join(",".join(map(mark, row)) + "\n" for row in [names, *rows]).encode()


class TestRoundTrip:
    @settings(deadline=None, max_examples=60)
    @given(tables())
    def test_what_is_written_is_read_by_both_ways(self, table):
        values, labels, _ = table
        text = written(*table)
        target = None if labels is None else "y"
        fast = parse(text, target=target)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_csv, "_plain_numbers", lambda column, may_lack=True: None)
            exact = parse(text, target=target)
        for found in (fast, exact):
            np.testing.assert_array_equal(found.data, values)
            assert (None if found.target is None else found.target.tolist()) == labels

    def test_many_chunks(self):
        rng = np.random.default_rng(0)
        values = rng.normal(size=(30_000, 3)).round(6)
        lines = [",".join(map(repr, [*row, i % 7])).encode() for i, row in enumerate(values.tolist())]
        table = parse(b"a,b,c,y\n" + b"\n".join(lines), target="y")
        np.testing.assert_array_equal(table.data, values)
        np.testing.assert_array_equal(table.target, np.arange(30_000) % 7)


class TestIgnoredColumns:
    TEXT = b'id,age,"note, long",mass,state\nr1,61,"a, b",80.5,ill\nr2,18,,60,well\n'

    @pytest.mark.parametrize("ignore", [["id", "note, long"], [0, 2], [2, "id"], (-3, -5)])
    def test_they_may_hold_anything(self, ignore):
        table = read_csv(io.BytesIO(self.TEXT), target="state", ignore=ignore)
        assert table.names == ("age", "mass")
        assert table.data.tolist() == [[61.0, 80.5], [18.0, 60.0]]
        assert table.target.tolist() == ["ill", "well"]

    def test_plain_lines_take_the_fast_way_to_the_same_end(self):
        generator = np.random.default_rng(0)
        values = generator.normal(size=(50, 6))
        lines = [b"a,b,c,d,e,f"] + [",".join(map(repr, row)).encode() for row in values.tolist()]
        for ignore in ([0], [5], [1, 2], [4, 0, 2]):
            table = read_csv(io.BytesIO(b"\n".join(lines)), ignore=ignore)
            np.testing.assert_array_equal(table.data, np.delete(values, ignore, axis=1))
            assert len(table.names) == 6 - len(ignore)

    def test_refusals(self):
        def read(**how):
            read_csv(io.BytesIO(self.TEXT), **how)

        with pytest.raises(DataFileError, match="no column 'x' to ignore"):
            read(ignore=["x"])
        with pytest.raises(DataFileError, match="target is among the columns to ignore"):
            read(target="id", ignore=[0])
        with pytest.raises(DataFileError, match="none of the 5 columns is left"):
            read(ignore=[0, 1, 2, 3, 4])
        with pytest.raises(TypeError, match="sequence of columns"):
            read(ignore="id")
        with pytest.raises(TypeError, match="got 1\\.5"):
            read(ignore=[1.5])
        with pytest.raises(ValueError, match="pass the column's number"):
            read(ignore=["id"], header=False)
