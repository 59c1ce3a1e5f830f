"""Lines of a plain or compressed text file, in blocks, within bounds on memory and on size."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

CHUNK_BYTES = 1 << 18
"""How much text is asked for at once: large enough for speed, small enough for the cache."""

MAX_LINE_BYTES = 1 << 26
"""64 MiB: five million features in one row. What is longer is more likely no text at all."""


class Readable(Protocol):
    """All that is asked of an open file."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end of the file."""


class LibsvmError(ValueError):
    """A file that is not what it should be.

    Attributes
    ----------
    file : str
        Its name.
    line : int
        Where reading stopped; lines are counted from 1.
    cause : str
        What was found and what is expected.

    Examples
    --------
    >>> str(LibsvmError("heart", 3, "found 'x'; expected index:value."))
    "heart, line 3: found 'x'; expected index:value."
    """

    def __init__(self, file: str, line: int, cause: str) -> None:
        super().__init__(file, line, cause)
        self.file, self.line, self.cause = file, line, cause

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.cause}"


def open_text(path: Path) -> gzip.GzipFile | bz2.BZ2File | io.BufferedReader:
    """The bytes of a file, decompressed when its name ends in ``.gz`` or ``.bz2``."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.GzipFile(path, "rb")
    if suffix == ".bz2":
        return bz2.BZ2File(path, "rb")
    return path.open("rb")


class LineBlocks:
    r"""Iterate over ``(number of the first line, lines)``; lines come without their newline.

    A block holds the lines that a chunk of about ``CHUNK_BYTES`` completes, so no more than that and
    one line is in memory, however far a small file would decompress.

    Parameters
    ----------
    stream : binary file
    name : str
        What errors call the file.
    max_bytes : int or None
        The largest number of (decompressed) bytes to accept.

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

    def __init__(self, stream: Readable, name: str, max_bytes: int | None) -> None:
        self._stream, self._name, self._max_bytes = stream, name, max_bytes
        self.line = 1

    def __iter__(self) -> Iterator[tuple[int, list[bytes]]]:
        # The start of a long line is kept in pieces: joining them at every chunk would take quadratic time.
        pieces: list[bytes] = []
        total = pending = 0
        while chunk := self._read():
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
            raise LibsvmError(
                self._name,
                self.line,
                f"the compressed data are damaged or end early ({error}); fetch the file again.",
            ) from error
        if not isinstance(chunk, bytes):
            raise TypeError(
                f"{self._name} gave {type(chunk).__name__}, not bytes: open it in binary mode ('rb')."
            )
        return chunk

    def _check_size(self, total: int, chunk: bytes) -> None:
        if self._max_bytes is not None and total + len(chunk) > self._max_bytes:
            line = self.line + chunk.count(b"\n", 0, self._max_bytes - total)
            raise LibsvmError(
                self._name,
                line,
                f"the text is larger than max_bytes={self._max_bytes}; if you trust the file, "
                "pass a larger max_bytes, or None for no limit.",
            )

    def _check_length(self, length: int) -> None:
        if length > MAX_LINE_BYTES:
            raise LibsvmError(
                self._name,
                self.line,
                f"the line is longer than {MAX_LINE_BYTES} bytes; expected one row of text, "
                "'label index:value ...'.",
            )
