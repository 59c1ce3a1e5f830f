"""Lines of a plain or compressed text file, in blocks, within bounds on memory and on size."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from exclusivity.datasets.errors import DataFileError, LibsvmError, refuse_pipe

CHUNK_BYTES = 1 << 18
"""How much text is asked for at once: large enough for speed, small enough for the cache."""

MAX_LINE_BYTES = 1 << 26
"""64 MiB: five million features in one row. What is longer is more likely no text at all."""

DEFAULT_MAX_BYTES = 4 << 30
"""4 GiB of text."""

MAX_RATIO = 100
"""Real tables become 3 to 40 times smaller; a file that unpacks to 100 times its size is a trap."""

MIN_UNPACKED = 16 << 20
"""16 MiB do no harm, whatever they were unpacked from."""

LIBSVM_ROW = "'label index:value ...'"

_UTF8 = "expected UTF-8: save the file as UTF-8, or convert it (iconv -f UTF-16 -t UTF-8 old > new)."

TextError = Callable[[str, int, str], DataFileError]
"""Makes an error from a file's name, a line and a cause."""


class Readable(Protocol):
    """All that is asked of an open file."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end of the file."""


@dataclass(frozen=True)
class SizeLimit:
    """The largest number of (decompressed) bytes to accept, and what is told about more of them."""

    n_bytes: int
    cause: str


def is_packed(path: Path) -> bool:
    """Whether the name says that the file is compressed."""
    return path.suffix.lower() in (".gz", ".bz2")


def plain_suffix(path: Path) -> str:
    """The end of a file's name that says what is in it, in small letters.

    Examples
    --------
    >>> plain_suffix(Path("heart.CSV.gz")), plain_suffix(Path("heart_scale"))
    ('.csv', '')
    """
    return Path(path.stem if is_packed(path) else path.name).suffix.lower()


def title_of(source: str | os.PathLike[str] | Readable) -> str:
    """What errors call a path or an open file."""
    if isinstance(source, (str, os.PathLike)):
        return str(source)
    return str(getattr(source, "name", "<stream>"))


def text_error(file: str, line: int, cause: str) -> DataFileError:
    """An error in a line as a whole."""
    return DataFileError(file, line, None, cause)


def open_text(path: Path) -> gzip.GzipFile | bz2.BZ2File | io.BufferedReader:
    """The bytes of a file, decompressed when its name ends in ``.gz`` or ``.bz2``."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.GzipFile(path, "rb")
    if suffix == ".bz2":
        return bz2.BZ2File(path, "rb")
    return path.open("rb")


def size_limit(max_bytes: int | None) -> SizeLimit | None:
    """The limit that the caller of a reader sets."""
    if max_bytes is None:
        return None
    advice = "if you trust the file, pass a larger max_bytes, or None for no limit."
    return SizeLimit(max_bytes, f"the text is larger than max_bytes={max_bytes}; {advice}")


def file_limit(path: Path, max_bytes: int | None, error: TextError) -> SizeLimit | None:
    """The limit for a file, after a look at its size: too much text is refused before it is read.

    Parameters
    ----------
    path : Path
    max_bytes : int or None
        The largest size of the text; None lifts the limit on the compression as well.
    error : callable
        Makes an error from the file's name, a line and a cause.
    """
    limit = size_limit(max_bytes)
    if limit is None:
        return None
    size = path.stat().st_size
    if not is_packed(path):
        if size > limit.n_bytes:
            raise error(str(path), 1, limit.cause)
        return limit
    most = max(MIN_UNPACKED, MAX_RATIO * size)
    if most < limit.n_bytes:
        limit = SizeLimit(
            most,
            f"the {size} compressed bytes unpack to more than {most}; if you trust the file, decompress it "
            "first, or pass max_bytes=None for no limit.",
        )
    line = _line_beyond(path, limit.n_bytes)
    if line is not None:
        raise error(str(path), line, limit.cause)
    return limit


def _line_beyond(path: Path, n_bytes: int) -> int | None:
    """The line that holds the first byte too many of a compressed file, None where all is within bounds.

    To unpack twice takes a tenth of the time that numbers take, and a trap is found before it costs
    anything.
    """
    total, line = 0, 1
    with open_text(path) as stream:
        try:
            while chunk := stream.read(CHUNK_BYTES):
                line += chunk.count(b"\n", 0, n_bytes - total)
                total += len(chunk)
                if total > n_bytes:
                    return line
        except (EOFError, zlib.error, OSError):
            pass  # who reads it says where the damage is
    return None


def _is_utf16(start: bytes) -> bool:
    """Whether a text begins like UTF-16, marked as such or with Latin letters and digits."""
    zeros = [byte == 0 for byte in start[:4]]
    has_mark = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return has_mark or zeros in ([False, True] * 2, [True, False] * 2)


class LineBlocks:
    r"""Iterate over ``(number of the first line, lines)``; lines come without their newline.

    A block holds the lines that a chunk of about ``CHUNK_BYTES`` completes, so no more than that and
    one line is in memory, however far a small file would decompress.

    Parameters
    ----------
    stream : binary file
    name : str
        What errors call the file.
    limit : SizeLimit or None
        How much to accept.
    error : callable, default LibsvmError
        Makes an error from the file's name, a line and a cause.
    row : str
        What errors call the text that is expected in a line.

    Attributes
    ----------
    line : int
        The number of the first line that has not been handed out.

    Examples
    --------
    >>> import io
    >>> list(LineBlocks(io.BytesIO(b"1 1:2\n-1"), "example", None))
    [(1, [b'1 1:2']), (2, [b'-1'])]
    """

    def __init__(
        self,
        stream: Readable,
        name: str,
        limit: SizeLimit | None,
        error: TextError = LibsvmError,
        row: str = LIBSVM_ROW,
    ) -> None:
        self._stream, self.name, self._limit = stream, name, limit
        self._error, self._row = error, row
        self.line = 1

    def __iter__(self) -> Iterator[tuple[int, list[bytes]]]:
        # The start of a long line is kept in pieces: joining them at every chunk would take quadratic time.
        pieces: list[bytes] = []
        total = pending = 0
        while chunk := self._read():
            if not total and _is_utf16(chunk):
                raise self._error(self.name, 1, f"the text is UTF-16; {_UTF8}")
            self._check_size(total, chunk)
            total += len(chunk)
            head, newline, tail = chunk.rpartition(b"\n")
            if newline:
                pieces.append(head)
                yield self._block(b"".join(pieces).split(b"\n"))
                pieces, pending = [], 0
            pieces.append(tail)
            pending += len(tail)
            self._check_length(pending)
        if pending:
            yield self._block([b"".join(pieces)])

    def _block(self, lines: list[bytes]) -> tuple[int, list[bytes]]:
        # Only the first line can be longer than a chunk.
        self._check_length(len(lines[0]))
        first = self.line
        self.line += len(lines)
        return first, lines

    def _read(self) -> bytes:
        try:
            chunk = self._stream.read(CHUNK_BYTES)
        except (EOFError, zlib.error, OSError) as error:
            # An operating system's error has a number, a decompressor's has none.
            if isinstance(error, io.UnsupportedOperation) or getattr(error, "errno", None) is not None:
                raise
            raise self._error(
                self.name,
                self.line,
                f"the compressed data are damaged or end early ({error}); fetch the file again.",
            ) from error
        if not isinstance(chunk, bytes):
            raise TypeError(
                f"{self.name} gave {type(chunk).__name__}, not bytes: open it in binary mode ('rb')."
            )
        return chunk

    def _check_size(self, total: int, chunk: bytes) -> None:
        if self._limit is not None and total + len(chunk) > self._limit.n_bytes:
            line = self.line + chunk.count(b"\n", 0, self._limit.n_bytes - total)
            raise self._error(self.name, line, self._limit.cause)

    def _check_length(self, length: int) -> None:
        if length > MAX_LINE_BYTES:
            raise self._error(
                self.name,
                self.line,
                f"the line is longer than {MAX_LINE_BYTES} bytes; expected one row of text, {self._row}.",
            )


@contextmanager
def opened_lines(
    source: str | os.PathLike[str] | Readable, max_bytes: int | None, error: TextError, row: str
) -> Iterator[LineBlocks]:
    """The lines of a path, or of an open file from where it stands; see ``LineBlocks``."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if is_packed(path) and max_bytes is not None:
            refuse_pipe(path)  # its size is checked in a pass of its own
        with open_text(path) as stream:
            yield LineBlocks(stream, str(path), file_limit(path, max_bytes, error), error, row)
    elif hasattr(source, "read"):
        yield LineBlocks(source, title_of(source), size_limit(max_bytes), error, row)
    else:
        raise TypeError(f"source must be a path or an open binary file; got {type(source).__name__}.")


def numbered_lines(source: str | Readable, max_bytes: int | None) -> Iterator[tuple[int, bytes]]:
    r"""The lines that are not blank, with their numbers and without their ends.

    Examples
    --------
    >>> import io
    >>> list(numbered_lines(io.BytesIO(b"one\r\n\nthree"), None))
    [(1, b'one'), (3, b'three')]
    """
    with opened_lines(source, max_bytes, text_error, "one for each line") as blocks:
        for first, lines in blocks:
            if first == 1:
                lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)  # spreadsheets write one
            for number, line in enumerate(lines, first):
                if line.strip():
                    yield number, line.removesuffix(b"\r")
