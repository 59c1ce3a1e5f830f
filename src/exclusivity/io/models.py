"""Model files: data and no code.

offset  0   8 bytes  magic
        8   4        version of the format, unsigned, little-endian like all that follows
       12   4        length of the header
       16   8        length of the file
       24            the header: JSON in ASCII, {"arrays": [...], "model": ..., "written_by": ...}
                     the arrays, one after the other, in the order of the header
      -32   32       SHA-256 of everything before

What a model is made of, is in ``_model_kinds``.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from exclusivity import __version__
from exclusivity.io._model_kinds import pack_model, unpack_model
from exclusivity.io._model_values import (
    DAMAGED,
    NEWER,
    Field,
    Object,
    Refusal,
    choice,
    has_surrogates,
    instance,
    shown,
    type_of,
    whole,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# As in PNG: the first byte is no text, and a transfer that rewrites line ends is noticed at once.
MAGIC = b"\x89ERM\r\n\x1a\n"
VERSION = 1
PREFIX = struct.Struct("<8sIIQ")
DIGEST_SIZE = 32

MAX_HEADER = 1 << 18
"""256 KiB. Whatever grows with the data is an array; JSON takes up to 40 times its size when parsed."""

TYPES = {
    code: np.dtype(f"<{code}") for code in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
}
"""Element types of arrays in the file, beside "bool" (a byte, 0 or 1), "U" and "text"."""

MIN_TEXT_WIDTH = 20
"""Characters of a slot for a Python string, at least: a slot of 4 * 20 bytes is more than half of what the
string takes in memory, header and pointer counted, so that no file of tiny strings can fill it."""

_TYPE_NAMES = (*TYPES, "bool", "U", "text")
_MAX_DIMENSIONS = 3
_CHUNK = 1 << 18


class ModelFormatError(ValueError):
    """A file that is not a model file, a damaged one, or one of a newer version.

    Attributes
    ----------
    cause : str
        What was found, what is expected, and what to do.
    file : str or None
        Its name.

    Examples
    --------
    >>> str(ModelFormatError("the file is empty.", "heart.erm"))
    'heart.erm: the file is empty.'
    """

    def __init__(self, cause: str, file: str | None = None) -> None:
        super().__init__(cause, file)
        self.cause, self.file = cause, file

    def __str__(self) -> str:
        return self.cause if self.file is None else f"{self.file}: {self.cause}"


def save_model(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file that holds data only, no code.

    The file is written as a whole or not at all: an existing one stays intact until the new one is complete.

    Parameters
    ----------
    model : ERMClassifier, ERMClassifierCV, RobustAdditiveClassifier or Pipeline
        A fitted classifier, or a pipeline of ``TableEncoder``, ``StandardScaler``,
        ``MinMaxScaler``, ``MaxAbsScaler`` or ``RobustScaler`` steps and such a classifier. Where it has an
        attribute ``target_column_`` (the name, or the number from 0, of the column that held its classes),
        that is stored too; ``erm fit`` sets it.
    path : path
        Where to; usually ``*.erm``.

    Raises
    ------
    TypeError, ValueError
        Where the model, a parameter (a function, for example) or a label cannot be stored; then
        nothing is written.
    OSError
        Where the file cannot be written.

    See Also
    --------
    load_model : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.io import load_model, save_model
    >>> model = ERMClassifier(3).fit([[0.0], [1.0]], ["low", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "level.erm")
    ...     load_model(Path(folder) / "level.erm").predict([[0.2], [0.8]])
    array(['low', 'high'], dtype='<U4')
    """
    header, arrays = packed_file(model)
    with whole_file(Path(path)) as stream:
        write_container(header, arrays, stream.write)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write to, which takes its place at ``path`` when all went well.

    It is written beside its place (``.name.<random>.tmp``), flushed to disk, and renamed. A crash, a kill or
    a full disk at any moment leaves the old file; at worst the temporary one stays behind. A new file gets
    the usual permissions of new files, a replaced one keeps those it had. A link stays a link.
    """
    path = Path(os.path.realpath(path))
    if not path.parent.exists():  # the temporary file would be named
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    is_new = not path.exists()
    if not (is_new or path.is_file()):
        raise ValueError(f"{path} is no ordinary file; give another name.")
    if not (is_new or os.access(path, os.W_OK)):
        raise PermissionError(f"{path} is write-protected; give another name or change its permissions.")
    temporary = path.with_name(f".{path.name[:100]}.{token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:  # with the permissions of new files
            if not is_new:
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C too
        temporary.unlink(missing_ok=True)
        raise


def load_model(path: str | os.PathLike[str]) -> BaseEstimator:
    """Load a model that ``save_model`` wrote. Safe with untrusted files: nothing in a file is executed.

    The model is as good as the saved one: it predicts bit by bit the same, can be cloned and fitted again.
    Loading takes at most twice the memory of the file, and 16 MiB.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    model : ERMClassifier, ERMClassifierCV, RobustAdditiveClassifier or Pipeline
        What was saved.

    Raises
    ------
    ModelFormatError
        Where the file is not a model file, is damaged, or comes from a newer version.
    OSError
        Where the file cannot be read.

    See Also
    --------
    save_model : Writes the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from exclusivity.io import ModelFormatError, load_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "not_a_model.erm"
    ...     _ = file.write_bytes(b"something else")
    ...     try:
    ...         load_model(file)
    ...     except ModelFormatError as error:
    ...         print(error.cause[:21])
    this is no model file
    """
    path = Path(path)
    if stat.S_ISDIR(path.stat().st_mode):
        raise IsADirectoryError(f"{path} is a folder; give the name of a model file.")
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait, perhaps without end
        raise ModelFormatError("this is no ordinary file; expected a model file.", str(path))
    with path.open("rb") as stream:
        return read_model(stream, os.fstat(stream.fileno()).st_size, str(path))


def read_model(stream: BinaryIO, size: int, file: str | None = None) -> BaseEstimator:
    """Load a model from an open binary file of ``size`` bytes; errors name the ``file``."""
    try:
        return _read(stream, size)
    except RecursionError:
        raise ModelFormatError(f"the header is nested too deeply. {DAMAGED}", file) from None
    except Refusal as refusal:
        raise ModelFormatError(f"{refusal.what} {refusal.advice}".rstrip(), file) from refusal.__cause__


def packed_file(model: BaseEstimator) -> tuple[bytes, list[tuple[ArraySpec, NDArray[Any]]]]:
    """Return the header and the arrays of a model that can be stored, and would load."""
    arrays: list[tuple[ArraySpec, NDArray[Any]]] = []
    packed = pack_model(model)
    tree = _with_references(packed, "the model", arrays)
    try:
        unpack_model(packed)
    except Refusal as refusal:
        raise ValueError(f"this model cannot be stored: {refusal.what}") from refusal.__cause__
    specs = [spec.as_json() for spec, _ in arrays]
    header = dump_json({"arrays": specs, "model": tree, "written_by": __version__})
    if len(header) > MAX_HEADER:
        raise ValueError(
            f"the parameters of this model take {len(header)} bytes, more than the {MAX_HEADER} that a model "
            "file has for them; give long lists as numpy arrays."
        )
    return header, arrays


def write_container(
    header: bytes, arrays: list[tuple[ArraySpec, NDArray[Any]]], write: Callable[[Any], Any]
) -> None:
    """Write a whole file through ``write``; arrays are not copied as a whole."""
    size = PREFIX.size + len(header) + sum(spec.n_bytes for spec, _ in arrays) + DIGEST_SIZE
    digest = hashlib.sha256()
    start = PREFIX.pack(MAGIC, VERSION, len(header), size)
    pieces = (piece for spec, array in arrays for piece in spec.chunks(array))
    for piece in chain((start, header), pieces):
        digest.update(piece)
        write(piece)
    write(digest.digest())


def _read(stream: BinaryIO, size: int) -> BaseEstimator:
    """Return the model; every length is compared with the size of the file before memory is taken for it."""
    digest = hashlib.sha256()

    def fill(buffer: Any) -> Any:
        if stream.readinto(buffer) != len(buffer):  # type: ignore[attr-defined]
            raise Refusal("the file ended while it was being read.")
        digest.update(buffer)
        return buffer

    header_length = _check_prefix(fill(bytearray(min(size, PREFIX.size))), size)
    header = _HEADER(parse_json(fill(bytearray(header_length))), "the header", {})
    specs = [ArraySpec.from_json(value, size) for value in header["arrays"]]
    expected = PREFIX.size + header_length + sum(spec.n_bytes for spec in specs) + DIGEST_SIZE
    if expected != size:
        raise Refusal(f"its arrays need a file of {shown(expected)} bytes, not of {size}.")
    arrays = {number: spec.read(fill) for number, spec in enumerate(specs)}
    found = digest.digest()
    if fill(bytearray(DIGEST_SIZE)) != found:
        raise Refusal("the checksum does not match the content.")
    model = unpack_model(_with_arrays(header["model"], arrays))
    if arrays:
        raise Refusal(f"{len(arrays)} arrays belong to nothing.")
    return model


def _check_prefix(start: bytearray, size: int) -> int:
    """Return the length of the header, where everything before it is as it should be."""
    smallest = PREFIX.size + DIGEST_SIZE
    if start[: len(MAGIC)] != MAGIC[: len(start)]:
        pickled = "It looks like a pickle, which is never read here." if start[:1] == b"\x80" else ""
        found = shown(bytes(start[: len(MAGIC)]))
        cause = f"this is no model file: it starts with {found}; expected one that was written by "
        raise Refusal(f"{cause}exclusivity.io.save_model or `erm fit`.", pickled)
    if size < smallest:
        raise Refusal(f"the file ends after {size} bytes." if size else "the file is empty.")
    _, version, header_length, length = PREFIX.unpack(start)
    if version != VERSION:
        cause = f"the file has version {version} of the format; this version of exclusivity reads "
        raise Refusal(f"{cause}version {VERSION}.", NEWER)
    if length != size:
        what = "it was cut short" if length > size else "something was appended"
        raise Refusal(f"the file has {size} bytes and should have {length}: {what}.")
    if header_length > min(MAX_HEADER, size - smallest):
        raise Refusal(f"the header claims {header_length} bytes.")
    return int(header_length)


def dump_json(value: object) -> bytes:
    """Return compact, sorted JSON in ASCII: the same value always gives the same bytes."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.encode("ascii")


def parse_json(text: bytes | bytearray) -> Any:
    """Return the value of a header, which must be what ``dump_json`` writes: no NaN, no key twice."""
    try:
        value = json.loads(text.decode("ascii"))
        written = dump_json(value)
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are both
        raise Refusal(f"the header is no valid JSON ({shown(str(error))}).") from None
    if written != text:
        raise Refusal("the header is not written as save_model writes it.")
    return value


def _with_references(value: Any, name: str, arrays: list[tuple[ArraySpec, NDArray[Any]]]) -> Any:
    """Return a packed model with the numbers of its arrays in their places, and note the arrays."""
    if isinstance(value, np.ndarray):
        arrays.append((ArraySpec.of(value, name), value))
        return {"array": len(arrays) - 1}
    if isinstance(value, dict):
        return {key: _with_references(entry, key, arrays) for key, entry in value.items()}
    return [_with_references(entry, name, arrays) for entry in value] if isinstance(value, list) else value


def _with_arrays(value: Any, arrays: dict[int, NDArray[Any]]) -> Any:
    """Return what ``_with_references`` was given; each array is taken exactly once."""
    if isinstance(value, list):
        return [_with_arrays(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    if value.keys() != {"array"}:
        return {key: _with_arrays(entry, arrays) for key, entry in value.items()}
    number = value["array"]
    if type(number) is not int or number not in arrays:
        raise Refusal(f"the model refers to array {shown(number)}, which is not there.")
    return arrays.pop(number)


_HEADER = Object({"arrays": instance(list), "model": instance(object), "written_by": instance(str)})


@dataclass(frozen=True)
class ArraySpec:
    """Element type and shape of one array of the file; ``width`` are the characters of a text, else 0."""

    type: str
    shape: tuple[int, ...]
    width: int = 0

    @property
    def count(self) -> int:
        """Number of elements, a Python integer that cannot overflow."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the bytes in the file."""
        return np.dtype(f"<U{self.width}") if self.width else TYPES.get(self.type, np.dtype("u1"))

    @property
    def n_bytes(self) -> int:
        """Size in the file."""
        return self.count * (4 * self.width if self.width else self.dtype.itemsize)

    def as_json(self) -> dict[str, Any]:
        """Return what the header holds."""
        width = {"width": self.width} if self.width else {}
        return {"type": self.type, "shape": list(self.shape), **width}

    @classmethod
    def of(cls, array: NDArray[Any], name: str) -> ArraySpec:
        """Return how an array is stored; TypeError or ValueError where it cannot be."""
        kind = type_of(array)
        if array.ndim > _MAX_DIMENSIONS or kind not in _TYPE_NAMES:
            raise TypeError(
                f"{name} has {array.ndim} dimensions and elements of type {array.dtype}; a model file holds "
                f"up to {_MAX_DIMENSIONS} dimensions of integers, booleans, floats up to 64 bits and text. "
                "Convert it (for example with .astype(str)) and fit again."
            )
        if kind not in ("U", "text"):
            return cls(kind, array.shape)
        for entry in array.flat:
            if not isinstance(entry, str) or entry.endswith("\0") or has_surrogates(entry):
                raise ValueError(
                    f"{name} holds {shown(entry)}; a model file stores text, without a NUL at its end and "
                    "without lone surrogates. Convert or rename it and fit again."
                )
        width = _text_width(array) if kind == "text" else max(1, array.dtype.itemsize // 4)
        return cls(kind, array.shape, width)

    @classmethod
    def from_json(cls, value: object, size: int) -> ArraySpec:
        """Return the array that a file of ``size`` bytes describes."""
        kind = value.get("type") if isinstance(value, dict) else None
        fields: dict[str, Field] = {"type": choice(*_TYPE_NAMES), "shape": instance(list)}
        if kind in ("U", "text"):
            fields["width"] = whole(MIN_TEXT_WIDTH if kind == "text" else 1, size)
        found = Object(fields)(value, "an array of the header", {})
        for length in found["shape"]:
            whole(0, size)(length, "the shape of an array", {})
        if len(found["shape"]) > _MAX_DIMENSIONS:
            raise Refusal(f"an array has {len(found['shape'])} dimensions.")
        return cls(found["type"], tuple(found["shape"]), found.get("width", 0))

    def chunks(self, array: NDArray[Any]) -> Iterator[Any]:
        """Return the bytes of an array as the file holds them, piece by piece."""
        flat = array.reshape(-1)
        step = max(1, _CHUNK // self.dtype.itemsize)
        for start in range(0, self.count, step):
            yield np.ascontiguousarray(flat[start : start + step], dtype=self.dtype).view(np.uint8).data

    def read(self, fill: Callable[[memoryview], object]) -> NDArray[Any]:
        """Return the next array of the file; memory is taken once, for the result."""
        if self.type == "text":
            return self._read_text(fill)
        array = np.empty(self.shape, dtype=self.dtype)
        if array.size:
            fill(array.reshape(-1).view(np.uint8).data)
        if self.type == "bool":
            if array.max(initial=0) > 1:
                raise Refusal("a truth value is neither 0 nor 1.")
            return array.view(np.bool_)
        if self.type == "U":
            _check_letters(array.reshape(-1))
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def _read_text(self, fill: Callable[[memoryview], object]) -> NDArray[Any]:
        """Return Python strings, read a few slots at a time."""
        texts = np.empty(self.count, dtype=object)
        step = max(1, _CHUNK // (4 * self.width))
        for start in range(0, self.count, step):
            slots = np.empty(min(step, self.count - start), dtype=self.dtype)
            fill(slots.view(np.uint8).data)
            _check_letters(slots)
            texts[start : start + len(slots)] = slots.tolist()
        if self.width != _text_width(texts):
            raise Refusal(f"texts have {self.width} characters of room, not what they need.")
        return texts.reshape(self.shape)


def _text_width(texts: NDArray[Any]) -> int:
    """Return the characters of a slot: those of the longest text, or the fewest allowed."""
    return max(MIN_TEXT_WIDTH, max(map(len, texts.flat), default=0))


def _check_letters(texts: NDArray[Any]) -> None:
    letters = texts.view("<u4")
    if np.any((letters > 0x10FFFF) | ((letters >= 0xD800) & (letters <= 0xDFFF))):
        raise Refusal("a text holds what is no character.")
