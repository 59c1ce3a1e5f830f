"""CSV files that are not what they should be: a clear error in bounded time and memory."""

import bz2
import contextlib
import gzip
import io
import pickle
import tracemalloc

import pytest
from hypothesis import example, given, settings, strategies as st

from exclusivity.io import DataFileError, _csv, _text, read_table
from exclusivity.io._cells import MISSING
from exclusivity.io._text import MAX_LINE_BYTES
from readers import read_csv

NUMBER = "expected a number."
FILL_IN = f"{NUMBER} Fill it in, or leave the row out."


SAVE = "save the file as UTF-8"
CONVERT = (
    f"{SAVE}, or convert it, from WINDOWS-1252 for example: iconv -f WINDOWS-1252 -t UTF-8 old.csv > new.csv"
)
UNPACK = "the file looks compressed, and the name of such a file must end in .gz or .bz2"


FINITE = "expected a finite number with a decimal point, no thousands commas and no per cent sign."


def refusal(text, **options):
    with pytest.raises(DataFileError) as caught:
        read_csv(io.BytesIO(text), **options)
    return caught.value


BAD_FIELDS = [
    (b"two", f"found 'two'; {NUMBER}"),
    (b"", f"the value is missing; {FILL_IN}"),
    (b"  ", f"the value is missing; {FILL_IN}"),
    (b'""', f"the value is missing; {FILL_IN}"),
    (b"nan", f"found 'nan'; {FILL_IN}"),
    (b"-inf", f"found '-inf'; {NUMBER}"),
    (b"1e999", f"found '1e999'; {FINITE}"),
    (b"1_000", f"found '1_000'; {NUMBER}"),
    (b"0x1", f"found '0x1'; {NUMBER}"),
    (b"1 2", f"found '1 2'; {NUMBER}"),
    (b"1e", f"found '1e'; {NUMBER}"),
    (b"True", f"found 'True'; {NUMBER}"),
    ("\u0663".encode(), f"found '\u0663'; {NUMBER}"),  # an Arabic three, which float() takes
    (b"z" * 100_000, f"found '{'z' * 40}...'; {NUMBER}"),
]


class TestFields:
    # A line after the bad one that is bad as well must not be told first.
    @pytest.mark.parametrize("after", [b"1,2,3", b"1,bad too,3"])
    @pytest.mark.parametrize(("field", "cause"), BAD_FIELDS)
    def test_cause(self, field, cause, after):
        error = refusal(b"a,b,c\n1,2,3\n\n1," + field + b",3\n" + after, target="c")
        assert (error.file, error.line, error.column, error.cause) == ("<stream>", 4, "b", cause)
        assert str(error) == f"<stream>, line 4, column 'b': {cause}"

    def test_column_without_a_name(self):
        error = refusal(b"1,2\n3,x\n", header=False)
        assert (error.line, error.column) == (2, 1)

    @pytest.mark.parametrize("field", [b"-nan", b"Infinity", b"1_000", "\u0663".encode()])
    def test_target_that_is_almost_a_number(self, field):
        error = refusal(b"a,y\n1," + field + b"\n", target="y")
        assert error.column == "y"
        assert error.cause.endswith("expected a finite decimal number, or a class in words.")

    def test_target_that_is_infinite(self):
        assert refusal(b"a,y\n1,1e999\n", target="y").cause.startswith("found '1e999'; expected a finite")

    @pytest.mark.parametrize("gap", MISSING)
    @pytest.mark.parametrize("others", [b"ill", b"1"])
    @pytest.mark.parametrize("quotes", [b"", b'"'])
    def test_targets_that_are_missing_are_counted(self, gap, others, quotes):
        """Whatever stands for a missing value among features does so in the target."""
        lines = [b"a,y", b"1," + others, b"", *[b"2," + quotes + gap.encode() + quotes] * 7, b"3," + others]
        error = refusal(b"\n".join(lines), target="y")
        assert (error.line, error.column) == (4, "y")
        assert error.cause.startswith("7 of 9 rows have no class (lines 4, 5, 6, 7, 8, ...); a cell")
        assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301

    @pytest.mark.parametrize(
        ("first", "second", "before"), [(b"ill", b"1", "text"), (b"1", b"ill", "numbers")]
    )
    @pytest.mark.parametrize("blocks", [False, True])
    def test_target_of_both_kinds(self, first, second, before, blocks):
        filler = (b"1," + first + b"\n") * (_text._CHUNK // 4 if blocks else 1)
        error = refusal(b"a,y\n" + filler + b"1," + second + b"\n", target="y")
        assert error.line == filler.count(b"\n") + 2
        assert error.cause == (
            f"found {second.decode()!r}, but the rows before have {before}; "
            "expected only numbers or only text in the target."
        )


class TestLines:
    @pytest.mark.parametrize(
        ("line", "found"),
        [
            (b"1", "1"),
            (b"1,2", "2"),
            (b"1,2,3,4", "4"),
            (b"1,2,3,", "4"),
            (b"1;2;3", "1"),
        ],
    )
    def test_ragged_row(self, line, found):
        error = refusal(b"a,b,c\n1,2,3\n" + line + b"\n1,2,3\n")
        assert (error.line, error.column) == (3, None)
        more = " A comma inside a number or a text needs quotes around the field." * (found == "4")
        assert error.cause == f"the row has {found} fields; expected 3, as in the first line.{more}"

    def test_quoted_row_with_more_fields(self):
        assert "the row has 4 fields" in refusal(b'a,b\n"1","2","3","4"\n').cause
        error = refusal(b'a,b\n1,2,"3\n')
        assert (error.line, error.column) == (2, None)
        assert "a quote that is not closed" in error.cause

    @pytest.mark.parametrize("line", [b'1,"2', b'1"1",2', b'1,"2"2', b'"1""2,3', b'1","2'])
    def test_quotes(self, line):
        error = refusal(b"a,b\n1,2\n" + line + b"\n")
        assert (error.line, error.column) == (3, None)
        assert "a quote that is not closed in its line" in error.cause

    def test_quoted_line_end(self):
        assert "not closed in its line" in refusal(b'a,b\n1,"2\n3"\n').cause

    @pytest.mark.parametrize(
        ("line", "byte", "position", "advice"),
        [
            (b"1,2\x00", 0x00, 4, SAVE),
            (b"caf\xe9,2", 0xE9, 4, CONVERT),
            (b"\xff\x00", 0xFF, 1, CONVERT),
            (b"\x00\xff", 0x00, 1, SAVE),
            (gzip.compress(b"1,2\n", mtime=0), 0x8B, 2, UNPACK),
        ],
    )
    def test_bytes_that_are_no_text(self, line, byte, position, advice):
        for text in (line, b"a,b\n1,2\n" + line):
            error = refusal(text)
            assert error.cause == (
                f"found byte 0x{byte:02x} at position {position}; expected UTF-8 text: {advice}."
            )

    def test_old_line_ends(self):
        for text in (b"a,b\r1,2\r3,4", b"a,b\n1,2\r3,4\n"):
            assert "found byte 0x0d inside a line; expected lines that end with" in refusal(text).cause

    def test_labels_that_are_no_text(self):
        """Also where the fast way could have taken the row."""
        assert "0xe9" in refusal(b"a,y\n1,x\n1,caf\xe9\n", target="y").cause

    def test_line_number_far_into_the_file(self):
        lines = [b"0.25,0.5,0.75"] * 60_000
        lines[45_320] = b"0.25,0.5.1,0.75"
        error = refusal(b"a,b,c\n" + b"\n".join(lines))
        assert (error.line, error.column) == (45_322, "b")

    def test_error_survives_pickling(self):
        error = refusal(b"a,b\n1,x\n")
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (str(copy), copy.line, copy.column) == (str(error), 2, "b")


class TestHeader:
    def test_missing_target_lists_the_columns(self):
        error = refusal(b"age,mass\n1,2\n", target="state")
        assert error.line == 1
        assert error.cause == "there is no column 'state' for the target; there are 'age', 'mass'."

    def test_long_lists_are_cut(self):
        names = b",".join(b"x%d" % i for i in range(3000))
        error = refusal(names + b"\n", target="state")
        assert error.cause.endswith("'x18', 'x19' and 2980 more.")
        assert len(error.cause) < 300

    @pytest.mark.parametrize("target", [2, -3])
    def test_target_number_out_of_range(self, target):
        error = refusal(b"a,b\n1,2\n", target=target)
        assert error.cause == f"there is no column {target} for the target among 2 columns."

    def test_target_alone(self):
        assert "none of the 1 columns is left for features" in refusal(b"state\n1\n", target="state").cause

    def test_duplicate_names(self):
        error = refusal(b"\na,b,c,b\n1,2,3,4\n")
        assert (error.line, error.cause) == (
            2,
            "2 columns are called 'b'; expected different names.",
        )

    def test_column_without_a_name(self):
        error = refusal(b",a,b\n0,1,2\n")
        assert error.cause == "the column has no name; it may hold row numbers, as pandas writes them."
        assert (error.column, error.ways) == (0, ("ignore",))
        table = read_csv(io.BytesIO(b",a,b\n7,1,2\n"), ignore=[0])
        assert (table.names, table.data.tolist()) == (("a", "b"), [[1, 2]])

    def test_numbers_are_no_names(self):
        error = refusal(b"1,2.5\n3,4\n")
        assert error.cause.startswith("the first line, '1', '2.5', holds numbers; expected the names")
        assert error.ways == ("header",)
        assert "header=False" in str(error)
        assert "holds numbers" in refusal(b"1,2.5\n3,4\n", target="state").cause

    def test_too_many_columns(self, monkeypatch):
        monkeypatch.setattr(_csv, "MAX_COLUMNS", 10)
        assert (
            refusal(b"a" + b",a" * 10 + b"\n").cause == "the line has more than 10 fields; expected a table."
        )

    def test_open_quote(self):
        assert "not closed in its line" in refusal(b'"a,b\n1,2\n').cause


class TestFiles:
    @pytest.mark.parametrize(("text", "line"), [(b"", 1), (b"\n", 2), (b" \n\r\n", 3), (b"\xef\xbb\xbf", 1)])
    def test_empty(self, text, line):
        error = refusal(text)
        assert (error.line, error.cause) == (line, "the file ends without a single line; expected a table.")

    @pytest.mark.parametrize("text", [b"a,b", b"a,b\n", b"a,b\n\n \n"])
    def test_header_alone(self, text):
        assert refusal(text).cause == "the file ends after the header; expected rows."

    @pytest.mark.parametrize("name", ["empty.csv", "empty.csv.gz", "empty.csv.bz2"])
    def test_empty_file(self, tmp_path, name):
        path = tmp_path / name
        path.touch()
        with pytest.raises(
            DataFileError, match=f"{name}(, line 1)?: the (file ends without|compressed data)"
        ):
            read_csv(path)

    @pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
    def test_truncated(self, tmp_path, suffix, compress):
        path = tmp_path / f"cut.csv{suffix}"
        path.write_bytes(compress(b"a,b\n" + b"1,2\n" * 1000)[:-10])
        with pytest.raises(DataFileError, match=r"damaged or end early.*fetch the file again"):
            read_csv(path)

    def test_file_larger_than_allowed_is_not_read(self, tmp_path, monkeypatch):
        path = tmp_path / "large.csv"
        path.write_bytes(b"a,b\n1,2\n")
        monkeypatch.setattr(_text, "TextFile", None)
        with pytest.raises(
            DataFileError, match=r"large.csv: the text is larger than max_bytes=7. Pass max_bytes=None"
        ):
            read_table(path, max_bytes=7)

    def test_text_larger_than_allowed(self):
        cause = refusal(b"a,b\n1,2\n3,4\n", max_bytes=11).cause
        assert cause.startswith("the text is larger than max_bytes=11.")


class TestSettings:
    @pytest.mark.parametrize("target", [True, 1.0, b"a", ["a"]])
    def test_target(self, target):
        with pytest.raises(TypeError, match="target must be a column's name or number, or None; got"):
            read_csv(io.BytesIO(b"a,b\n"), target=target)

    @pytest.mark.parametrize("delimiter", ["", " ", "::", '"', "1", "\n"])
    def test_delimiter(self, delimiter):
        with pytest.raises(ValueError, match="delimiter must be one of"):
            read_csv(io.BytesIO(b"a,b\n"), delimiter=delimiter)

    def test_name_without_header(self):
        with pytest.raises(ValueError, match=r"header=False means that columns have no names"):
            read_csv(io.BytesIO(b"a,b\n"), header=False, target="a")

    @pytest.mark.parametrize("value", [0, -1, 2.0, "3"])
    def test_max_bytes(self, value):
        with pytest.raises(ValueError, match="max_bytes must be a whole number from 1, or None"):
            read_csv(io.BytesIO(b"a,b\n"), max_bytes=value)


class Endless:
    """A stream that repeats itself for ever and counts what it gave."""

    def __init__(self, unit):
        self.unit, self.given = unit, 0

    def read(self, size):
        text = self.unit * (size // len(self.unit))
        self.given += len(text)
        return text


def peak_of(action):
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class TestBounds:
    def test_line_without_an_end(self):
        stream = Endless(b"1")
        with pytest.raises(DataFileError, match=r"longer than 67108864 bytes; expected a table"):
            read_csv(stream)
        assert stream.given <= MAX_LINE_BYTES + _text.PIECE_BYTES + _text._CHUNK

    @pytest.mark.parametrize(
        "line",
        [b"1," * 5_000_000, b'"",' * 3_500_000, b"x" * 10_000_000, b"\x00" * 10_000_000, b'"' * 10_000_000],
        ids=["fields", "quoted", "text", "binary", "quotes"],
    )
    def test_ten_megabytes_in_one_line(self, line):
        """Fields are not made before they are counted: a list of them would take 300 MB."""
        for text in (line, b"a,b\n" + line):
            assert peak_of(lambda text=text: refusal(text)) < 60 << 20

    def test_bomb(self, tmp_path):
        path = tmp_path / "bomb.csv.gz"
        path.write_bytes(gzip.compress(b"a,b\n" + (b" " * 255 + b"\n") * (17 << 12)))
        assert path.stat().st_size < 80_000
        with pytest.raises(DataFileError, match=r"bytes unpack to more than 16777216; .* max_bytes=None"):
            read_csv(path)

    def test_memory_of_a_bomb(self, tmp_path, monkeypatch):
        limit = 1 << 17
        monkeypatch.setattr(_text, "MIN_UNPACKED", limit)
        path = tmp_path / "bomb.csv.bz2"
        monkeypatch.setattr(_text, "_CHUNK", limit // 16)
        path.write_bytes(bz2.compress(b"a,b\n" + b"1,2\n" * limit))
        assert _text.MAX_RATIO * path.stat().st_size < limit

        def read():
            with pytest.raises(DataFileError, match="unpack to more than 131072"):
                read_csv(path)

        # Two bytes of text make eight bytes of table, and bzip2 needs 4 MB for itself.
        assert peak_of(read) < 8 * limit + (8 << 20)


pieces = st.sampled_from(
    [
        *b"1 -1 2.5 nan inf x e5 1_0 0x1 . +".split(),
        *[
            b",",
            b",",
            b"\n",
            b"\n",
            b'"',
            b'""',
            b" ",
            b"\t",
            b"\r\n",
            b"\r",
            b"a,b\n1,2\n",
            b"3,4\n",
            b"5,yes\n",
        ],
        *[b"\x00", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", "\u0663".encode()],
    ]
)


def outcome(text, **options):
    """What reading gives, in a form that compares; any other exception than DataFileError passes through."""
    try:
        table = read_csv(io.BytesIO(text), **options)
    except DataFileError as error:
        return str(error)
    return table.data.tobytes(), None if table.target is None else table.target.tolist(), table.names


class TestFuzz:
    @settings(deadline=None, max_examples=150)
    @given(st.binary(max_size=200), st.booleans())
    @example(b"9" * 5000, False)
    @example(b"a\n" + b"9" * 5000, True)
    def test_random_bytes(self, text, header):
        outcome(text, header=header)
        outcome(b"a,b\n" + text, target="b")

    @settings(deadline=None, max_examples=250)
    @given(st.lists(pieces, max_size=30).map(b"".join), st.sampled_from([None, 0, -1]), st.booleans())
    def test_almost_tables_and_both_ways_agree(self, text, target, header):
        fast = outcome(text, target=target, header=header)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_csv, "_plain_numbers", lambda column, may_lack=True: None)
            assert outcome(text, target=target, header=header) == fast

    @settings(deadline=None, max_examples=40)
    @given(
        st.binary(max_size=100),
        st.sampled_from([b"", gzip.compress(b"a,b\n1,2\n"), bz2.compress(b"a,b\n1,2\n")]),
    )
    def test_random_bytes_as_compressed_files(self, tmp_path_factory, text, start):
        folder = tmp_path_factory.mktemp("fuzz")
        for name in ("random.csv.gz", "random.csv.bz2"):
            (folder / name).write_bytes(start + text)
            with contextlib.suppress(DataFileError):
                read_csv(folder / name)
