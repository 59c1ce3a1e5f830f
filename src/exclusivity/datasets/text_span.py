"""A part of a text file, from one end of a line to another: large files in several parts."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from exclusivity.datasets.libsvm_lines import MAX_LINE_BYTES

_STEP = 1 << 20


def text_spans(path: str | os.PathLike[str], n_bytes: int) -> list[tuple[int, int]]:
    """Cut a file into as few spans of about equal size as have at most ``n_bytes`` each.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv"
    ...     _ = path.write_bytes(b"x" * 25)
    ...     text_spans(path, 10)
    [(0, 8), (8, 16), (16, 25)]
    """
    size = Path(path).stat().st_size
    count = max(1, -(-size // n_bytes))
    cuts = [size * number // count for number in range(count + 1)]
    return list(pairwise(cuts))


class TextSpan:
    r"""The lines of a file that begin within a span of bytes; an open file to its readers.

    Every line belongs to exactly one of the spans that a file is cut into.

    Parameters
    ----------
    path : path
    start, stop : int
        Bytes from the start of the file.
    header : bool, default False
        Whether every span has the first line of the file that is not blank in front.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv"
    ...     _ = path.write_bytes(b"one\ntwo\nthree\n")
    ...     for start, stop in [(0, 5), (5, 6), (6, 14)]:
    ...         with TextSpan(path, start, stop) as span:
    ...             print(span.read(100))
    b'one\ntwo\n'
    b''
    b'three\n'
    """

    def __init__(self, path: str | os.PathLike[str], start: int, stop: int, *, header: bool = False) -> None:
        self.name = str(path)
        self._stream = Path(path).open("rb")  # noqa: SIM115 -- closed by __exit__
        self._head = self._first_line() if header else b""
        self._has_head = header
        first = self._stream.tell()
        self._start = max(first, self._line_from(start))
        self._stop = self._line_from(stop)
        self._stream.seek(self._start)

    def _first_line(self) -> bytes:
        while (line := self._stream.readline(MAX_LINE_BYTES)) and not line.removeprefix(BOM_UTF8).strip():
            pass
        return line

    def _line_from(self, place: int) -> int:
        """Where the first line starts that does not start before ``place``."""
        if place == 0:
            return 0
        self._stream.seek(place - 1)
        while (piece := self._stream.readline(_STEP)) and not piece.endswith(b"\n"):
            pass
        return self._stream.tell()

    @property
    def is_empty(self) -> bool:
        """Whether no line begins in it, besides the header."""
        return self._start >= self._stop

    def is_blank(self) -> bool:
        """Whether there is nothing in its lines, besides the header."""
        if self.is_empty:
            return True
        head, self._head = self._head, b""
        found = self.read(_STEP).removeprefix(BOM_UTF8)
        while found and not found.strip():
            found = self.read(_STEP)
        self._head = head
        self._stream.seek(self._start)
        return not found

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end of the span."""
        if self._head:
            block, self._head = self._head[:size], self._head[size:]
            return block
        return self._stream.read(max(0, min(size, self._stop - self._stream.tell())))

    def lines_before(self) -> int:
        """What to add to the number of a line read here to get its number in the file; counted when asked."""
        self._stream.seek(0)
        count = -int(self._has_head)
        while self._stream.tell() < self._start:
            count += self._stream.read(min(_STEP, self._start - self._stream.tell())).count(b"\n")
        return count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
