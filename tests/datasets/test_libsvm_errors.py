"""Hostile files: each is refused with the file, the line and the cause, in bounded time and memory."""

import bz2
import contextlib
import gzip
import io
import pickle
import tracemalloc

import pytest
from hypothesis import example, given, settings, strategies as st

from exclusivity.datasets import LibsvmError, libsvm_lines, libsvm_rows, read_libsvm
from exclusivity.datasets.libsvm_lines import CHUNK_BYTES, MAX_LINE_BYTES

NUMBER = "expected a finite decimal number."
INDEX = "expected a whole number from 1 to 9223372036854775807."
ALIKE = "unlike in the rows before; expected it in all rows or in none."


def refusal(text, **options) -> LibsvmError:
    with pytest.raises(LibsvmError) as caught:
        read_libsvm(io.BytesIO(text), **options)
    return caught.value


BAD_LINES = [
    # labels
    (b"1:2 2:3", "found '1:2' where the label should be; expected 'label index:value ...'."),
    (b"qid:1 2:3", "found 'qid:1' where the label should be; expected 'label index:value ...'."),
    (b"cat 1:2", f"the label is 'cat'; {NUMBER}"),
    (b"nan 1:2", f"the label is 'nan'; {NUMBER}"),
    (b"-inf 1:2", f"the label is '-inf'; {NUMBER}"),
    (b"1e999 1:2", f"the label is '1e999'; {NUMBER}"),
    (b"1,2 1:2", f"the label is '1,2'; {NUMBER}"),
    (b"1_0 1:2", f"the label is '1_0'; {NUMBER}"),
    (b"0x1 1:2", f"the label is '0x1'; {NUMBER}"),
    (b"-+1 1:2", f"the label is '-+1'; {NUMBER}"),
    # values
    (b"1 1:two", f"the value of index 1 is 'two'; {NUMBER}"),
    (b"1 1:", f"the value of index 1 is ''; {NUMBER}"),
    (b"1 1: 2", f"the value of index 1 is ''; {NUMBER}"),
    (b"1 1:2:3 4", f"the value of index 1 is '2:3'; {NUMBER}"),
    (b"1 1:2 7:NaN", f"the value of index 7 is 'NaN'; {NUMBER}"),
    (b"1 1:2 7:infinity", f"the value of index 7 is 'infinity'; {NUMBER}"),
    (b"1 1:-1e309", f"the value of index 1 is '-1e309'; {NUMBER}"),
    (b"1 1:1_000", f"the value of index 1 is '1_000'; {NUMBER}"),
    (b"1 1:1e", f"the value of index 1 is '1e'; {NUMBER}"),
    (b"1 1:.", f"the value of index 1 is '.'; {NUMBER}"),
    (b"1 1:1e+", f"the value of index 1 is '1e+'; {NUMBER}"),
    # indices
    (b"1 0:2", f"the index in '0:2' is '0'; {INDEX}"),
    (b"1 -1:2", f"the index in '-1:2' is '-1'; {INDEX}"),
    (b"1 +1:2", f"the index in '+1:2' is '+1'; {INDEX}"),
    (b"1 1.0:2", f"the index in '1.0:2' is '1.0'; {INDEX}"),
    (b"1 1_0:2", f"the index in '1_0:2' is '1_0'; {INDEX}"),
    (b"1 x:2", f"the index in 'x:2' is 'x'; {INDEX}"),
    (b"1 :2", f"the index in ':2' is ''; {INDEX}"),
    (b"1 1 :2", "found '1'; expected index:value."),
    (
        b"1 9223372036854775808:2",
        f"the index in '9223372036854775808:2' is '9223372036854775808'; {INDEX}",
    ),
    (b"1 1" + b"0" * 19 + b":2", f"the index in '1{'0' * 19}:2' is '1{'0' * 19}'; {INDEX}"),
    (b"1 2:1 2:3", "index 2 follows index 2; expected strictly increasing indices."),
    (b"1 1:1 5:1 3:1", "index 3 follows index 5; expected strictly increasing indices."),
    # structure
    (b"1 1:2 three", "found 'three'; expected index:value."),
    (b"1 2 3", "found '2'; expected index:value."),
    (b"1 1:2 qid:3", "found 'qid:3'; expected one qid:n at most, directly after the label."),
    (b"1 qid:3 1:2", f"found 'qid:3', {ALIKE}"),
    (b"1 qid:x 1:2", "found 'qid:x'; expected qid:n with a whole number up to 9223372036854775807."),
    (b"1 qid:-1 1:2", "found 'qid:-1'; expected qid:n with a whole number up to 9223372036854775807."),
]

BAD_BYTES = [
    (b"1 1:2\x00", "0x00 at column 6"),
    (b"\xef\xbb\xbf1 1:2", "0xef at column 1"),  # a byte order mark
    ("1 1:\u0663".encode(), "0xd9 at column 5"),  # an Arabic three, which float() takes
    ("\uff11 1:2".encode(), "0xef at column 1"),  # a full-width one
    (b"1\xa01:2", "0xa0 at column 2"),  # a no-break space
    (b"1 1:2\r1 1:2", "0x0d at column 6"),  # an old line end
    (b"1 1:2\r 2:3", "0x0d at column 6"),
    (b"1\x0b1:2", "0x0b at column 2"),
    (b"1 1:2\x1c", "0x1c at column 6"),
    (gzip.compress(b"1 1:2\n", mtime=0), "0x1f at column 1"),
]


class TestLines:
    # A good line after the bad one leaves it to the fast way to notice.
    @pytest.mark.parametrize("after", [b"1 1:1", b"1 bad too"])
    @pytest.mark.parametrize(("line", "cause"), BAD_LINES)
    def test_cause(self, line, cause, after):
        error = refusal(b"1 1:1\n\n" + line + b"\n" + after)
        assert (error.file, error.line, error.cause) == ("<stream>", 3, cause)
        assert str(error) == f"<stream>, line 3: {cause}"

    @pytest.mark.parametrize(("line", "found"), BAD_BYTES)
    def test_bytes_that_are_no_text(self, line, found):
        error = refusal(line)
        assert error.line == 1
        assert error.cause == (
            f"found byte {found}; expected plain text "
            "(the name of a compressed file must end in .gz or .bz2)."
        )

    def test_comment_must_be_text(self):
        error = refusal(b"1 1:2\n1 1:2 # caf\xe9\n")
        assert (error.line, error.cause) == (2, "found byte 0xe9 in the comment; expected UTF-8 text.")

    def test_query_number_missing_later(self):
        error = refusal(b"1 qid:1 1:2\n1 1:2\n")
        assert (error.line, error.cause) == (2, f"found no qid, {ALIKE}")

    def test_query_numbers_begin_in_another_block(self):
        filler = b"#" + b"x" * CHUNK_BYTES + b"\n"
        error = refusal(b"1 1:2\n" + filler + b"1 qid:3 1:2\n2 qid:3\n")
        assert (error.line, error.cause) == (3, f"found 'qid:3', {ALIKE}")

    def test_n_features(self):
        error = refusal(b"1 3:1\n1 1:1 4:1\n", n_features=3)
        assert (error.line, error.cause) == (2, "index 4 is too large; expected at most n_features=3.")

    def test_line_number_far_into_the_file(self):
        lines = [b"1 1:0.25 2:0.5 3:0.75"] * 30_000
        lines[24_320] = b"1 1:0.25 2:0,5"
        text = b"\n".join(lines)
        assert len(text) > 2 * CHUNK_BYTES
        assert refusal(text).line == 24_321

    def test_first_of_several_errors_is_the_one_told(self):
        """Also where the first is found by numpy at the end of a block, and the second by a pattern."""
        assert refusal(b"1 2:1 1:1\n1 one:1\n").line == 1
        assert refusal(b"1 1:1\n1 1:1e999\nbad\n").line == 2

    def test_long_tokens_are_cut_in_messages(self):
        error = refusal(b"1 1:" + b"z" * 100_000)
        assert len(str(error)) < 200
        assert error.cause == f"the value of index 1 is '{'z' * 40}...'; {NUMBER}"

    @pytest.mark.parametrize(
        "text", [b"1 1:0." + b"1" * 1_000_000, b"1 1:1" + b"0" * 300 + b"." + b"9" * 10**6]
    )
    def test_million_digits_are_a_number(self, text):
        assert read_libsvm(io.BytesIO(text)).data.nnz == 1

    def test_million_digits_are_no_index(self):
        assert refusal(b"1 " + b"1" * 1_000_000 + b":1").cause.endswith(INDEX)

    def test_error_survives_pickling(self):
        error = refusal(b"x")
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (str(copy), copy.line) == (str(error), 1)
        assert isinstance(copy, ValueError)


class TestFiles:
    @pytest.mark.parametrize(("text", "line"), [(b"", 1), (b"\n", 2), (b"# nothing\n \n", 3), (b"\r\n\t", 3)])
    def test_no_rows(self, text, line):
        error = refusal(text)
        assert error.line == line
        assert error.cause == "the file ends without a single row; expected 'label index:value ...'."

    @pytest.mark.parametrize("name", ["empty", "empty.gz", "empty.bz2"])
    def test_empty_file(self, tmp_path, name):
        path = tmp_path / name
        path.touch()
        with pytest.raises(LibsvmError, match=f"{name}, line 1: "):
            read_libsvm(path)

    def test_error_names_the_file(self, tmp_path):
        path = tmp_path / "broken.gz"
        path.write_bytes(gzip.compress(b"1 1:2\n1 1:x\n"))
        for source in (path, str(path)):
            with pytest.raises(LibsvmError) as caught:
                read_libsvm(source)
            assert str(caught.value).startswith(f"{path}, line 2: ")
        with gzip.open(path) as stream, pytest.raises(LibsvmError, match=r"broken.gz, line 2: "):
            read_libsvm(stream)


ROWS = b"".join(b"%d 1:%d 2:0.%d\n" % (i, i * i, i**3 % 1009) for i in range(20_000))


class TestCompressed:
    @pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
    @pytest.mark.parametrize("kept", [0.0001, 0.5, 0.99])
    def test_truncated(self, tmp_path, suffix, compress, kept):
        packed = compress(ROWS)
        path = tmp_path / f"cut{suffix}"
        path.write_bytes(packed[: int(kept * len(packed))])
        with pytest.raises(LibsvmError, match=r"damaged or end early.*fetch the file again") as caught:
            read_libsvm(path)
        assert 1 <= caught.value.line <= 20_001

    def test_truncation_is_told_with_the_line_it_hits(self, tmp_path):
        path = tmp_path / "cut.gz"
        path.write_bytes(gzip.compress(ROWS)[:-8])  # everything but the checksum
        with pytest.raises(LibsvmError, match="damaged or end early") as caught:
            read_libsvm(path)
        assert caught.value.line > 10_000

    @pytest.mark.parametrize("suffix", [".gz", ".bz2"])
    def test_not_compressed_at_all(self, tmp_path, suffix):
        path = tmp_path / f"plain{suffix}"
        path.write_bytes(ROWS[:100_000])
        with pytest.raises(LibsvmError, match="line 1: the compressed data are damaged"):
            read_libsvm(path)

    @pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
    def test_flipped_bits(self, tmp_path, suffix, compress):
        packed = bytearray(compress(ROWS[:200_000]))
        for place in range(len(packed) // 2, len(packed) // 2 + 20):
            packed[place] ^= 0x55
        path = tmp_path / f"flipped{suffix}"
        path.write_bytes(packed)
        with pytest.raises(LibsvmError):
            read_libsvm(path)

    @pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
    def test_bomb(self, tmp_path, suffix, compress):
        """4 MiB of comments in a few kilobytes, of which a part at a time is in memory."""
        path = tmp_path / f"bomb{suffix}"
        path.write_bytes(compress((b"#" * 63 + b"\n") * (1 << 16)))
        assert path.stat().st_size < 20_000
        limit = 3 << 20
        tracemalloc.start()
        try:
            with pytest.raises(LibsvmError) as caught:
                read_libsvm(path, max_bytes=limit)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert caught.value.line == limit // 64 + 1
        assert caught.value.cause == (
            f"the text is larger than max_bytes={limit}; if you trust the file, "
            "pass a larger max_bytes, or None for no limit."
        )
        assert peak < 2 << 20

    def test_one_byte_too_many(self):
        assert refusal(b"1 1:2\n", max_bytes=5).line == 1
        assert refusal(b"1 1:2\n\n", max_bytes=6).line == 2


class Endless:
    """A stream that repeats itself for ever and counts what it gave."""

    def __init__(self, unit):
        self.unit, self.given = unit, 0

    def read(self, size):
        text = self.unit * (size // len(self.unit))
        self.given += len(text)
        return text


class TestLongLines:
    @pytest.mark.parametrize("unit", [b"1", b"\x00", b" 1:1"])
    def test_line_without_an_end(self, unit):
        stream = Endless(unit)
        with pytest.raises(LibsvmError) as caught:
            read_libsvm(stream)
        assert caught.value.line == 1
        assert caught.value.cause.startswith(
            "the line is longer than 67108864 bytes; expected one row of text"
        )
        assert stream.given <= MAX_LINE_BYTES + CHUNK_BYTES

    def test_limit_holds_for_the_end_of_a_line(self, monkeypatch):
        """A line that ends in the very chunk that makes it too long."""
        limit = 2 * CHUNK_BYTES + 10
        monkeypatch.setattr(libsvm_lines, "MAX_LINE_BYTES", limit)
        comment = b"#" * limit
        assert refusal(b"\n" + comment + b"#\n1 1:2\n").line == 2
        assert read_libsvm(io.BytesIO(b"\n" + comment + b"\n1 1:2\n")).target == [1]

    def test_limit_is_for_each_line_alone(self, monkeypatch):
        monkeypatch.setattr(libsvm_lines, "CHUNK_BYTES", 50)
        monkeypatch.setattr(libsvm_lines, "MAX_LINE_BYTES", 120)
        line = b"1 1:2 #" + b"x" * 100 + b"\n"
        assert len(read_libsvm(io.BytesIO(20 * line)).target) == 20


def outcome(text):
    """What reading gives, in a form that compares; any other exception than LibsvmError passes through."""
    try:
        found = read_libsvm(io.BytesIO(text))
    except LibsvmError as error:
        return str(error)
    found.data.check_format(full_check=True)
    assert found.data.has_sorted_indices
    return [
        part.tobytes() for part in (found.data.data, found.data.indices, found.data.indptr, found.target)
    ] + [found.data.shape, None if found.query_ids is None else found.query_ids.tobytes()]


pieces = st.sampled_from(
    [
        *b"1 -1 0 2.5 : 1:1 2:2 # e5 qid: nan inf _ . + 0x1 1e999".split(),
        *[b"9223372036854775807:1", b"9999999999999999999"],
        *[b" 3:4", b" qid:1 ", b"1 1:1 2:1\n", b"1\n1\n", b" ", b"\t", b"\n", b"\r\n", b"\r"],
        *[b"\x00", b"\xff", b"\xc3\xa9", "\u0663".encode()],
    ]
)


class TestFuzz:
    @settings(deadline=None, max_examples=200)
    @given(st.binary(max_size=200))
    @example(b"1 1:" + b"9" * 5000)
    @example(b"9" * 5000 + b" 1:1")
    @example(b"1 " + b"0" * 5000 + b"1:1")
    @example(b"1 qid:" + b"9" * 5000)
    def test_random_bytes(self, text):
        outcome(text)

    @settings(deadline=None, max_examples=300)
    @given(st.lists(pieces, max_size=30).map(b"".join))
    def test_almost_rows_and_both_ways_agree(self, text):
        fast = outcome(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(libsvm_rows, "_plain_rows", lambda lines: None)
            assert outcome(text) == fast

    @settings(deadline=None, max_examples=100)
    @given(
        st.binary(max_size=100), st.sampled_from([b"", gzip.compress(b"1 1:2\n"), bz2.compress(b"1 1:2\n")])
    )
    def test_random_bytes_as_compressed_files(self, tmp_path_factory, text, start):
        folder = tmp_path_factory.mktemp("fuzz")
        for name in ("random.gz", "random.bz2"):
            (folder / name).write_bytes(start + text)
            with contextlib.suppress(LibsvmError):
                read_libsvm(folder / name)
