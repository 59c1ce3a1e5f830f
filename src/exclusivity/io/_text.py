"""Text files in pieces of whole lines: plain or compressed, from a path or an open file.

What every reader of text needs is checked here, within bounds on memory: the size, the encoding (UTF-8),
NUL bytes and the ends of lines.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._reading import DataFileError, refuse_pipe

PIECE_BYTES = 1 << 20
"""The text that is handed out at once, apart from the end of its last line."""

MAX_LINE_BYTES = 1 << 26
"""64 MiB: five million features in one row. What is longer is more likely no text at all."""

MAX_RATIO = 100
"""Real tables become 3 to 40 times smaller; a file that unpacks to 100 times its size is a trap."""

MIN_UNPACKED = 16 << 20
"""16 MiB do no harm, whatever they were unpacked from."""

_CHUNK = 1 << 18
_Report = Callable[[int], None]
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Return whether the name says that the file is compressed."""
    return Path(path).suffix.lower() in _OPENERS


def plain_suffix(path: str | os.PathLike[str]) -> str:
    """Return the end of a file's name that says what is in it, in small letters.

    Examples
    --------
    >>> plain_suffix("heart.CSV.gz"), plain_suffix("heart_scale")
    ('.csv', '')
    """
    path = Path(path)
    return Path(path.stem if is_packed(path) else path.name).suffix.lower()


def title_of(source: Any) -> str:
    """Return what errors call a path or an open file."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", "<stream>"))


@dataclass(frozen=True, eq=False)
class Piece:
    """Lines that follow each other, without blank ones: each ends with a newline, and has a number from 1."""

    text: bytes
    lines: NDArray[np.int64] | range


class TextFile:
    """Iterate over the pieces of an open text file, with every check that does not depend on the format.

    ``limit`` is the largest number of (decompressed) bytes, and what to say about more; ``report`` is called
    with the number of bytes read; ``line`` is the number of the first line that has not been handed out.
    """

    def __init__(
        self, stream: Any, name: str, limit: tuple[int, str] | None, report: _Report | None = None
    ) -> None:
        self.name, self.line = name, 1
        self._stream, self._limit, self._report = stream, limit, report
        self._total = 0

    def error(self, cause: str, line: int | None = None) -> DataFileError:
        """Return the error about a line, by default the first that has not been handed out."""
        return DataFileError(self.name, self.line if line is None else line, None, cause)

    def __iter__(self) -> Iterator[Piece]:
        # The start of a long line is kept in chunks: joining them at every chunk would take quadratic time.
        kept: list[bytes] = []
        size, wanted = 0, 0  # the first piece is one line or a few, for who looks at a header
        while chunk := self._read():
            head, newline, tail = chunk.rpartition(b"\n")
            if newline and size + len(head) >= wanted:
                text = b"".join([*kept, head, newline])
                kept, size = [tail], len(tail)
                # Lines of many columns by the hundred: a piece takes time for every column.
                wanted = max(wanted, min(max(PIECE_BYTES, 256 * text.index(b"\n")), MAX_LINE_BYTES))
                yield from self._checked(text)
            else:
                kept.append(chunk)
                size += len(chunk)
            if size > MAX_LINE_BYTES + PIECE_BYTES:
                raise self.error(f"the line is longer than {MAX_LINE_BYTES} bytes; expected a table of text.")
        if size:
            text = b"".join(kept)
            yield from self._checked(text if text.endswith(b"\n") else text + b"\n")

    def _read(self) -> bytes:
        try:
            chunk = self._stream.read(_CHUNK)
        except (EOFError, zlib.error, OSError) as error:
            # An operating system's error has a number, a decompressor's has none.
            if isinstance(error, io.UnsupportedOperation) or getattr(error, "errno", None) is not None:
                raise
            cause = f"the compressed data are damaged or end early ({error}); fetch the file again."
            raise DataFileError(self.name, None, None, cause) from error
        if not isinstance(chunk, bytes):
            kind = type(chunk).__name__
            raise TypeError(f"{self.name} gave {kind}, not bytes: open it in binary mode ('rb').")
        if not self._total and chunk.startswith(BOM_UTF8):  # spreadsheets write one
            self._total += len(BOM_UTF8)
            chunk = chunk.removeprefix(BOM_UTF8) or self._stream.read(_CHUNK)
        self._total += len(chunk)
        if self._report is not None:
            self._report(self._total)
        if self._limit is not None and self._total > self._limit[0]:
            raise DataFileError(self.name, None, None, self._limit[1], ("max_bytes",))
        return bytes(chunk)

    def _checked(self, text: bytes) -> Iterator[Piece]:
        first, n_lines = self.line, text.count(b"\n")
        self._check_text(text)
        self.line += n_lines
        lines: NDArray[np.int64] | range = range(first, first + n_lines)
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
            if b"\r" in text:
                place = text.index(b"\r")
                cause = "found byte 0x0d inside a line; expected lines that end with \\n or \\r\\n."
                raise self.error(cause, first + text.count(b"\n", 0, place))
        if text.startswith((b"\n", b" ")) or b"\n\n" in text or b"\n " in text:
            numbered = zip(text.split(b"\n"), lines, strict=False)
            kept = [(line, number) for line, number in numbered if line.strip(b" ")]
            text = b"".join(line + b"\n" for line, _ in kept)
            lines = np.array([number for _, number in kept], dtype=np.int64)
        if text:
            yield Piece(text, lines)

    def _check_text(self, text: bytes) -> None:
        place = text.find(b"\0")
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            place = error.start if place < 0 else min(place, error.start)
        if place < 0:
            return
        start = text.rfind(b"\n", 0, place) + 1
        marks, encoding = (BOM_UTF16_LE, BOM_UTF16_BE), "WINDOWS-1252"
        if self.line == 1 and (text.startswith(marks) or text[:4].count(0) == 2):
            encoding = "UTF-16"
        remedy = "save the file as UTF-8"
        if text.startswith((b"\x1f\x8b", b"BZh"), start):
            remedy = "the file looks compressed, and the name of such a file must end in .gz or .bz2"
        elif text[place] or encoding == "UTF-16":
            command = f"iconv -f {encoding} -t UTF-8 old.csv > new.csv"
            remedy += f", or convert it, from {encoding} for example: {command}"
        cause = f"found byte 0x{text[place]:02x} at position {place - start + 1}; expected UTF-8 text: "
        raise self.error(f"{cause}{remedy}.", self.line + text.count(b"\n", 0, place))


@contextmanager
def opened_text(source: Any, max_bytes: int | None, report: _Report | None = None) -> Iterator[TextFile]:
    """Open a path, or take an open file as it is and leave it open; without ``max_bytes`` trust its size."""
    limit = None
    if max_bytes is not None:
        limit = (max_bytes, f"the text is larger than max_bytes={max_bytes}.")
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            raise TypeError(f"source must be a path or an open binary file; got {type(source).__name__}.")
        yield TextFile(source, title_of(source), limit, report)
        return
    path = Path(source)
    size, opener = path.stat().st_size, _OPENERS.get(path.suffix.lower(), open)
    if is_packed(path):
        refuse_pipe(path)
        if limit is not None and (most := max(MIN_UNPACKED, MAX_RATIO * size)) < limit[0]:
            limit = (most, f"the {size} compressed bytes unpack to more than {most}; decompress it first.")
        # Unpacked before it is read: a trap is found before its numbers take memory.
        with opener(path, "rb") as stream, suppress(EOFError, zlib.error, OSError):  # told when it is read
            total = 0
            while limit is not None and (chunk := stream.read(_CHUNK)):
                total += len(chunk)
                if total > limit[0]:
                    raise DataFileError(str(path), None, None, limit[1], ("max_bytes",))
    elif limit is not None and size > limit[0]:
        raise DataFileError(str(path), None, None, limit[1], ("max_bytes",))
    with opener(path, "rb") as stream:
        yield TextFile(stream, str(path), limit, report)
