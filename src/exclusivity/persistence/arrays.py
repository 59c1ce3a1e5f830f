"""The arrays of a model file: a closed set of element types, little-endian, sizes known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from exclusivity.persistence.errors import DAMAGED, ModelFormatError, shown
from exclusivity.persistence.fields import Fields

NUMBERS = {code: np.dtype(f"<{code}") for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8")} | {
    code: np.dtype(f"<{code}") for code in ("u1", "u2", "u4", "u8")
}
"""Names of element types in the file, beside "bool" (a byte, 0 or 1), "U" and "text"."""

MIN_TEXT_WIDTH = 20
"""Characters of a slot for a Python string, at least: a slot of 4 * 20 bytes is more than half of what the
string takes in memory, header and pointer counted, so that no file of tiny strings can fill it."""

_MAX_DIMENSIONS = 3
_CHUNK = 1 << 18

ReadInto = Callable[[memoryview], None]
"""Fills a buffer with the next bytes of the file, or raises ModelFormatError."""


@dataclass(frozen=True)
class ArraySpec:
    """Element type and shape of one array of the file.

    Attributes
    ----------
    type : str
        A key of ``NUMBERS``, "bool", "U" (numpy's text of a fixed width) or "text" (Python strings).
    shape : tuple of int
    width : int
        Characters of "U" and "text", else 0.
    """

    type: str
    shape: tuple[int, ...]
    width: int = 0

    @property
    def count(self) -> int:
        """Number of elements, a Python integer that cannot overflow."""
        return math.prod(self.shape)

    @property
    def n_bytes(self) -> int:
        """Size in the file."""
        size = 4 * self.width if self.width else 1 if self.type == "bool" else NUMBERS[self.type].itemsize
        return self.count * size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the bytes in the file."""
        if self.width:
            return np.dtype(f"<U{self.width}")
        return np.dtype("u1") if self.type == "bool" else NUMBERS[self.type]

    def as_json(self) -> dict[str, Any]:
        """What the header holds."""
        width = {"width": self.width} if self.width else {}
        return {"type": self.type, "shape": list(self.shape), **width}

    @classmethod
    def from_json(cls, value: object, largest: int) -> Self:
        """Checked against the closed set of types; no dimension may exceed ``largest``."""
        fields = Fields(value, "an array of the header")
        kind = fields.text("type")
        shape = fields.integers("shape", 0, largest)
        width = 0
        if kind in ("U", "text"):
            width = fields.integer("width", MIN_TEXT_WIDTH if kind == "text" else 1, largest)
        elif kind != "bool" and kind not in NUMBERS:
            raise ModelFormatError(f"an array is of the unknown type {shown(kind)}. {DAMAGED}")
        fields.finish()
        if len(shape) > _MAX_DIMENSIONS:
            raise ModelFormatError(f"an array has {len(shape)} dimensions. {DAMAGED}")
        return cls(kind, shape, width)


def spec_of(array: NDArray[Any], name: str) -> ArraySpec:
    """How an array is stored; TypeError or ValueError where it cannot be."""
    kind = array.dtype.kind
    code = f"{kind}{array.dtype.itemsize}"
    if array.ndim > _MAX_DIMENSIONS:
        raise ValueError(
            f"{name} has {array.ndim} dimensions; a model file stores at most {_MAX_DIMENSIONS}."
        )
    if kind == "b":
        return ArraySpec("bool", array.shape)
    if code in NUMBERS:
        return ArraySpec(code, array.shape)
    if kind == "U":
        _check_text(array, name)
        return ArraySpec("U", array.shape, max(1, array.dtype.itemsize // 4))
    if kind == "O" and all(isinstance(entry, str) for entry in array.flat):
        _check_text(array, name)
        return ArraySpec("text", array.shape, _text_width(array))
    raise TypeError(
        f"{name} holds {_described(array)}; a model file stores integers, booleans, floating point numbers "
        "of up to 64 bits, and text. Convert it (for example with .astype(str)) and fit again."
    )


def _text_width(array: NDArray[Any]) -> int:
    """Characters of a slot: those of the longest text, or the fewest allowed."""
    return max(MIN_TEXT_WIDTH, max(map(len, array.flat), default=0))


def _described(array: NDArray[Any]) -> str:
    if array.dtype.kind != "O":
        return f"elements of type {array.dtype}"
    odd = next(entry for entry in array.flat if not isinstance(entry, str))
    return f"objects such as {shown(odd)}"


def _check_text(array: NDArray[Any], name: str) -> None:
    for entry in array.flat:
        if entry.endswith("\0") or any("\ud800" <= letter <= "\udfff" for letter in entry):
            raise ValueError(
                f"{name} holds {shown(str(entry))}: text with a NUL at its end or lone surrogates cannot be "
                "stored; rename it and fit again."
            )


def chunks_of(array: NDArray[Any], spec: ArraySpec) -> Iterator[memoryview]:
    """The bytes of an array as the file holds them, piece by piece."""
    flat = array.reshape(-1)
    step = max(1, _CHUNK // max(1, spec.n_bytes // max(1, spec.count)))
    for start in range(0, spec.count, step):
        piece = np.ascontiguousarray(flat[start : start + step], dtype=spec.dtype)
        yield piece.view(np.uint8).data


def read_array(spec: ArraySpec, read_into: ReadInto) -> NDArray[Any]:
    """The next array of the file; memory is taken once, for the result."""
    if spec.type == "text":
        return _read_objects(spec, read_into)
    array = np.empty(spec.shape, dtype=spec.dtype)
    _fill(array.reshape(-1), read_into)
    if spec.type == "bool":
        if array.size and array.max() > 1:
            raise ModelFormatError(f"a truth value is neither 0 nor 1. {DAMAGED}")
        return array.view(np.bool_)
    if spec.type == "U":
        _check_letters(array.reshape(-1))
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def all_finite(array: NDArray[Any]) -> bool:
    """Whether all numbers are finite, without a second array of that size."""
    flat = array.reshape(-1)
    return all(bool(np.isfinite(flat[at : at + _CHUNK]).all()) for at in range(0, len(flat), _CHUNK))


def _fill(flat: NDArray[Any], read_into: ReadInto) -> None:
    if flat.size:
        read_into(flat.view(np.uint8).data)


def _read_objects(spec: ArraySpec, read_into: ReadInto) -> NDArray[Any]:
    """Python strings, a few slots at a time."""
    objects = np.empty(spec.count, dtype=object)
    step = max(1, _CHUNK // (4 * spec.width))
    for start in range(0, spec.count, step):
        slots = np.empty(min(step, spec.count - start), dtype=spec.dtype)
        _fill(slots, read_into)
        _check_letters(slots)
        objects[start : start + len(slots)] = slots.tolist()
    if spec.width != _text_width(objects):
        raise ModelFormatError(f"texts have {spec.width} characters of room, not what they need. {DAMAGED}")
    return objects.reshape(spec.shape)


def _check_letters(texts: NDArray[Any]) -> None:
    letters = texts.view("<u4")
    step = _CHUNK // 4
    for start in range(0, len(letters), step):
        piece = letters[start : start + step]
        if np.any((piece > 0x10FFFF) | ((piece >= 0xD800) & (piece <= 0xDFFF))):
            raise ModelFormatError(f"a text holds what is no character. {DAMAGED}")
