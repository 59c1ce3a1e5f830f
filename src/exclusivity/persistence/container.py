"""The bytes of a model file: prefix, header, arrays, checksum. What they mean is said elsewhere.

offset  0   8 bytes  magic
        8   4        version of the format, unsigned, little-endian like all that follows
       12   4        length of the header
       16   8        length of the file
       24            the header: strict JSON in ASCII, {"arrays": [...], "model": ..., "written_by": ...}
                     the arrays, one after the other, in the order of the header
      -32   32       SHA-256 of everything before
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from exclusivity.persistence.arrays import ArraySpec, chunks_of, read_array, spec_of
from exclusivity.persistence.errors import DAMAGED, NEWER, ModelFormatError, shown
from exclusivity.persistence.fields import Fields
from exclusivity.persistence.strict_json import dump_json, parse_json

# As in PNG: the first byte is no text, and a transfer that rewrites line ends is noticed at once.
MAGIC = b"\x89ERM\r\n\x1a\n"
VERSION = 1
PREFIX = struct.Struct("<8sIIQ")
DIGEST_SIZE = 32

MAX_HEADER = 1 << 18
"""256 KiB. Whatever grows with the data is an array; JSON takes up to 40 times its size when parsed."""

_READ_CHUNK = 1 << 20


class Stream(Protocol):
    """What is needed of an open binary file."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer as far as possible."""
        ...


class ArrayStore:
    """The arrays of a model that is being saved; the header refers to them by number."""

    def __init__(self) -> None:
        self.arrays: list[tuple[ArraySpec, NDArray[Any]]] = []

    def add(self, array: NDArray[Any], name: str) -> dict[str, int]:
        """Keep an array and give the reference to it."""
        self.arrays.append((spec_of(array, name), array))
        return {"array": len(self.arrays) - 1}


class ArrayTable:
    """The arrays of a file that is being loaded; each is taken exactly once."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._arrays: dict[int, NDArray[Any]] = dict(enumerate(arrays))

    def take(self, reference: object, where: str) -> NDArray[Any]:
        """The array behind ``{"array": number}``."""
        fields = Fields(reference, where)
        number = fields.take("array")
        fields.finish()
        if isinstance(number, bool) or not isinstance(number, int) or number not in self._arrays:
            raise ModelFormatError(f"{where} refers to array {shown(number)}, which is not there. {DAMAGED}")
        return self._arrays.pop(number)

    def shaped(self, fields: Fields, name: str, kind: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """The array that a field refers to, of a type and shape; None is any length."""
        array = self.take(fields.take(name), name)
        fits = len(shape) == array.ndim and all(
            want in (None, found) for want, found in zip(shape, array.shape, strict=True)
        )
        if array.dtype != np.dtype(kind) or not fits:
            raise fields.wrong(name, array.shape, f"{np.dtype(kind)} of shape {shape}")
        return array

    def finish(self) -> None:
        """Refuse arrays that nobody asked for."""
        if self._arrays:
            raise ModelFormatError(f"{len(self._arrays)} arrays belong to nothing. {DAMAGED}")


def write_container(model: object, store: ArrayStore, version: str, write: Callable[[Any], Any]) -> None:
    """Write the whole file through ``write``; arrays are not copied as a whole."""
    specs = [spec.as_json() for spec, _ in store.arrays]
    header = dump_json({"arrays": specs, "model": model, "written_by": version})
    if len(header) > MAX_HEADER:
        raise ValueError(
            f"the parameters of this model take {len(header)} bytes, more than the {MAX_HEADER} that a model "
            "file has for them; give long lists as numpy arrays."
        )
    size = PREFIX.size + len(header) + sum(spec.n_bytes for spec, _ in store.arrays) + DIGEST_SIZE
    digest = hashlib.sha256()
    for piece in (PREFIX.pack(MAGIC, VERSION, len(header), size), header):
        digest.update(piece)
        write(piece)
    for spec, array in store.arrays:
        for chunk in chunks_of(array, spec):
            digest.update(chunk)
            write(chunk)
    write(digest.digest())


def read_container(stream: Stream, size: int) -> tuple[Any, ArrayTable]:
    """The header's model and the arrays of a file of ``size`` bytes.

    Every length is compared with the size of the file before memory is taken for it.
    """
    reader = _Reader(stream)
    header_length = _check_prefix(reader, size)
    fields = Fields(parse_json(reader.bytes(header_length)), "the header")
    model, _ = fields.take("model"), fields.text("written_by")
    specs = [ArraySpec.from_json(value, size) for value in fields.items("arrays")]
    fields.finish()
    expected = PREFIX.size + header_length + sum(spec.n_bytes for spec in specs) + DIGEST_SIZE
    if expected != size:
        raise ModelFormatError(f"its arrays need a file of {shown(expected)} bytes, not of {size}. {DAMAGED}")
    arrays = [read_array(spec, reader.read_into) for spec in specs]
    found = reader.digest.digest()
    if reader.bytes(DIGEST_SIZE) != found:
        raise ModelFormatError(f"the checksum does not match the content. {DAMAGED}")
    return model, ArrayTable(arrays)


def _check_prefix(reader: _Reader, size: int) -> int:
    """The length of the header, where everything before it is as it should be."""
    smallest = PREFIX.size + DIGEST_SIZE
    start = reader.bytes(min(size, PREFIX.size))
    if start[: len(MAGIC)] != MAGIC[: len(start)]:
        pickled = " It looks like a pickle, which is never read here." if start[:1] == b"\x80" else ""
        raise ModelFormatError(
            f"this is no model file: it starts with {shown(start[: len(MAGIC)])}; expected one that was "
            f"written by exclusivity.persistence.save_model or `erm fit`.{pickled}"
        )
    if size < smallest:
        empty = "the file is empty; expected a model written by save_model."
        raise ModelFormatError(f"the file ends after {size} bytes. {DAMAGED}" if size else empty)
    _, version, header_length, length = PREFIX.unpack(start)
    if version != VERSION:
        raise ModelFormatError(
            f"the file has version {version} of the format; this version of exclusivity reads version "
            f"{VERSION}. {NEWER}"
        )
    if length != size:
        what = "it was cut short" if length > size else "something was appended"
        raise ModelFormatError(f"the file has {size} bytes and should have {length}: {what}. {DAMAGED}")
    if header_length > min(MAX_HEADER, size - smallest):
        raise ModelFormatError(f"the header claims {header_length} bytes. {DAMAGED}")
    return int(header_length)


class _Reader:
    """Reads exactly, and keeps the checksum of what was read."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self.digest = stream, hashlib.sha256()

    def bytes(self, count: int) -> bytes:
        buffer = bytearray(count)
        self.read_into(memoryview(buffer))
        return bytes(buffer)

    def read_into(self, buffer: memoryview) -> None:
        for start in range(0, len(buffer), _READ_CHUNK):
            piece = buffer[start : start + _READ_CHUNK]
            self._fill(piece)
            self.digest.update(piece)

    def _fill(self, piece: memoryview) -> None:
        done = 0
        while done < len(piece):
            count = self._stream.readinto(piece[done:])
            if not count:
                raise ModelFormatError(f"the file ended while it was being read. {DAMAGED}")
            done += count
