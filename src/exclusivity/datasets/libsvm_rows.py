"""The grammar of LIBSVM rows, twice: fast for blocks of plain rows, and exact with a reason for a refusal.

    label [qid:n] index:value ... [# comment]

Both read the same numbers. The fast way takes what it is sure about; whatever it does not
understand is read again by the exact way, which accepts it or says what is wrong.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np

from exclusivity.datasets.errors import LibsvmError
from exclusivity.datasets.libsvm_lines import CHUNK_BYTES

MAX_INDEX = 2**63 - 1

# Within these characters float() accepts exactly the decimal numbers; outside wait "nan", "infinity",
# "1_000" and the digits of other scripts. 19 digits are enough for every int64. (Possessive: no
# backtracking, so that a match takes linear time.)
_NUMBER = rb"[-+.0-9eE]++"
_WHOLE = rb"[0-9]{1,19}+"
_PLAIN_LINE = re.compile(
    rb"[ \t]*+(?:(%b)(?:[ \t]++qid:(%b))?((?:[ \t][^#]*+)?))?(#.*+)?" % (_NUMBER, _WHOLE), re.DOTALL
)
_PLAIN_ENTRIES = re.compile(rb"(?:[ \t]++%b:%b)*[ \t]*+" % (_WHOLE, _NUMBER))
_NUMBER_TEXT = re.compile(_NUMBER)
_WHOLE_TEXT = re.compile(_WHOLE)
_TOKEN = re.compile(rb"[^ \t]+")
_NOT_TEXT = re.compile(rb"[^\t -~]")
_EXCERPT = 40


class _LineError(Exception):
    """Why a line is refused."""


class Rows:
    """Rows in a compact form that grows: labels, query numbers, and 1-based indices with their values.

    Row i holds the entries from ``ends[i]`` up to ``ends[i + 1]``.
    """

    def __init__(self) -> None:
        self.labels = array("d")
        self.query_ids = array("q")
        self.ends = array("q", [0])
        self.indices = array("q")
        self.values = array("d")

    def __len__(self) -> int:
        return len(self.labels)

    def append(self, other: Rows) -> None:
        """Take the rows of another one behind these."""
        self.ends.extend(end + len(self.indices) for end in islice(other.ends, 1, None))
        self.labels.extend(other.labels)
        self.query_ids.extend(other.query_ids)
        self.indices.extend(other.indices)
        self.values.extend(other.values)

    def are_legal(self, n_features: int) -> bool:
        """Whether numbers are finite, and indices positive, increasing in each row and not too large."""
        indices, starts = np.asarray(self.indices), np.asarray(self.ends)[:-1]
        steps = np.diff(indices, prepend=0)
        starts = starts[starts < len(indices)]  # an empty last row starts where the entries end
        steps[starts] = indices[starts]
        return bool(
            np.all(steps > 0)
            and np.all(indices <= n_features)
            and np.isfinite(self.values).all()
            and np.isfinite(self.labels).all()
        )


class RowParser:
    r"""Collects the rows of blocks of lines.

    Parameters
    ----------
    name : str
        What errors call the file.
    n_features : int or None
        The largest index to accept.

    Examples
    --------
    >>> parser = RowParser("example", None)
    >>> parser.add_block(1, [b"+1 2:0.5 7:1e3", b"# a comment", b"-1"])
    >>> parser.rows.labels, parser.rows.ends
    (array('d', [1.0, -1.0]), array('q', [0, 2, 2]))
    >>> parser.add_block(4, [b"1 3:one"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    exclusivity.datasets.errors.LibsvmError: example, line 4: the value of index 3 is 'one'; ...
    """

    def __init__(self, name: str, n_features: int | None) -> None:
        self.rows = Rows()
        self._name = name
        self._n_features = MAX_INDEX if n_features is None else n_features

    def add_block(self, first: int, lines: Sequence[bytes]) -> None:
        """Add the rows of these lines, or raise for the first line that is wrong."""
        rows = _plain_rows(lines)
        if rows is not None and rows.are_legal(self._n_features) and self._same_kind(rows):
            self.rows.append(rows)
            return
        for number, line in enumerate(lines, first):
            try:
                self._add_line(line)
            except _LineError as fault:
                raise LibsvmError(self._name, number, str(fault)) from None

    def _same_kind(self, rows: Rows) -> bool:
        """Whether still all rows have a query number, or none."""
        return len(self.rows.query_ids) + len(rows.query_ids) in (0, len(self.rows) + len(rows))

    def _add_line(self, line: bytes) -> None:
        """The exact way."""
        content, _, comment = line.removesuffix(b"\r").partition(b"#")
        _check_text(content, comment)
        tokens = (match.group() for match in _TOKEN.finditer(content))
        label = next(tokens, None)
        if label is None:
            return
        if b":" in label:
            raise _LineError(
                f"found {_excerpt(label)} where the label should be; expected 'label index:value ...'."
            )
        self.rows.labels.append(_finite(label, "the label"))
        second = list(islice(tokens, 1))
        if second and second[0].startswith(b"qid:"):
            self._add_query(second.pop())
        elif self.rows.query_ids:
            raise _LineError("found no qid, unlike in the rows before; expected it in all rows or in none.")
        self._add_entries(chain(second, tokens))
        self.rows.ends.append(len(self.rows.indices))

    def _add_query(self, token: bytes) -> None:
        number = _whole(token.removeprefix(b"qid:"))
        if number is None:
            raise _LineError(
                f"found {_excerpt(token)}; expected qid:n with a whole number up to {MAX_INDEX}."
            )
        self.rows.query_ids.append(number)
        if len(self.rows.query_ids) != len(self.rows):
            raise _LineError(
                f"found {_excerpt(token)}, unlike in the rows before; expected it in all rows or in none."
            )

    def _add_entries(self, tokens: Iterator[bytes]) -> None:
        previous = 0
        for token in tokens:
            index_text, colon, value_text = token.partition(b":")
            if not colon:
                raise _LineError(f"found {_excerpt(token)}; expected index:value.")
            if index_text == b"qid":
                raise _LineError(
                    f"found {_excerpt(token)}; expected one qid:n at most, directly after the label."
                )
            index = _whole(index_text)
            if index is None or index == 0:
                raise _LineError(
                    f"the index in {_excerpt(token)} is {_excerpt(index_text)}; "
                    f"expected a whole number from 1 to {MAX_INDEX}."
                )
            if index <= previous:
                raise _LineError(
                    f"index {index} follows index {previous}; expected strictly increasing indices."
                )
            if index > self._n_features:
                raise _LineError(
                    f"index {index} is too large; expected at most n_features={self._n_features}."
                )
            self.rows.indices.append(index)
            self.rows.values.append(_finite(value_text, f"the value of index {index}"))
            previous = index


def _plain_rows(lines: Sequence[bytes]) -> Rows | None:
    """The fast way; None where the exact way has to look."""
    rows = Rows()
    try:
        for line in lines:
            if line and not _add_plain(rows, line.removesuffix(b"\r")):
                return None
    except (ValueError, OverflowError):
        return None
    return rows


def _add_plain(rows: Rows, line: bytes) -> bool:
    """Add the row of a line; False, or an exception of int(), float() or decode(), if it is not plain."""
    match = _PLAIN_LINE.fullmatch(line)
    if match is None:
        return False
    label, query_id, entries, comment = match.groups()
    if comment is not None:
        comment.decode("utf-8")
    if label is None:
        return True
    rows.labels.append(float(label))
    if query_id is not None:
        rows.query_ids.append(int(query_id))
    for piece in _pieces(entries):
        if _PLAIN_ENTRIES.fullmatch(piece) is None:
            return False
        fields = piece.replace(b":", b" ").split()
        rows.indices.extend(map(int, fields[::2]))
        rows.values.extend(map(float, fields[1::2]))
    rows.ends.append(len(rows.indices))
    return True


def _pieces(entries: bytes) -> Iterator[bytes]:
    """The entries, cut between two of them when they are many: as a list they take ten times the memory."""
    start = 0
    while start < len(entries):
        end = entries.find(b" ", start + CHUNK_BYTES)
        end = len(entries) if end < 0 else end
        yield entries[start:end]
        start = end


def _check_text(content: bytes, comment: bytes) -> None:
    foreign = _NOT_TEXT.search(content)
    if foreign is not None:
        raise _LineError(
            f"found byte 0x{foreign.group()[0]:02x} at column {foreign.start() + 1}; expected plain text "
            "(the name of a compressed file must end in .gz or .bz2)."
        )
    try:
        comment.decode("utf-8")
    except UnicodeDecodeError as error:
        found = comment[error.start]
        raise _LineError(f"found byte 0x{found:02x} in the comment; expected UTF-8 text.") from None


def _finite(text: bytes, what: str) -> float:
    try:
        number = float(text) if _NUMBER_TEXT.fullmatch(text) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _LineError(f"{what} is {_excerpt(text)}; expected a finite decimal number.")
    return number


def _whole(text: bytes) -> int | None:
    number = int(text) if _WHOLE_TEXT.fullmatch(text) else MAX_INDEX + 1
    return number if number <= MAX_INDEX else None


def _excerpt(text: bytes) -> str:
    """The text in quotes, cut when it is long."""
    short = text[:_EXCERPT].decode("ascii") + ("..." if len(text) > _EXCERPT else "")
    return repr(short)
