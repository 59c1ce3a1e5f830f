"""Describe what a model file says: fields of known types and sizes, and parameters of estimators as JSON.

=====================  ===========================================
parameter              the header
=====================  ===========================================
None, bool, int, str   itself
float                  itself, or {"float": "inf"}, {"float": "-inf"}
list                   [...]
tuple                  {"tuple": [...]}
dict                   {"dict": [[key, value], ...]}
ndarray, long list     {"array": number}
=====================  ===========================================

A field takes a value of the header, arrays in the place of the references to them, and returns it or raises
``Refusal``. Shapes are given in named dimensions: what the first field finds, the others must
have. ``save_model`` passes every model through the same checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

DAMAGED = "The file is damaged or was not written by save_model; get a fresh copy or save the model again."
NEWER = "It may come from a newer version: upgrade exclusivity (pip install -U exclusivity)."

LONGEST_LIST = 1000
"""A longer list, for example one feature group per column, is stored and comes back as an array."""

MOST = 2**53
"""No count is larger."""

LARGEST = float(np.finfo(float).max)
SMALLEST = 5e-324

MAX_PARTS = 10_000
"""Columns of a table and parts of its dates, folds, values of C, pairs of classes:
in memory each is an object of up to a kilobyte, whatever its size in the file. So many fit into what loading
may take besides twice the file."""

_LARGEST_INT = 1 << 64
_MAX_DEPTH = 8
_CHUNK = 1 << 18
_KEYS = (str, int, float, type(None))


class Refusal(Exception):  # noqa: N818 -- callers see a ModelFormatError or a ValueError
    """Something that a model file cannot hold; ``advice`` is for who has such a file."""

    def __init__(self, what: str, advice: str = DAMAGED) -> None:
        super().__init__(what)
        self.what, self.advice = what, advice


def shown(value: object) -> str:
    """Return a value of the file for a message: short, whatever it is."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


Rules = Iterator[tuple[Any, str]]
"""Conditions, and what is wrong where one does not hold."""


Field = Callable[[Any, str, dict[str, int]], Any]
"""Read a value of the header: from it, its path and the dimensions known so far to the value of a model."""


def plain(expected: str, fits: Callable[[Any], bool]) -> Field:
    """Take a value that fits as it is."""

    def read(value: Any, path: str, _: object) -> Any:
        if not fits(value):
            raise Refusal(f"{path}: expected {expected}, found {shown(value)}.")
        return value

    return read


def whole(least: int, most: int) -> Field:
    """Take a whole number in a range; in an object it is the dimension of its name, too."""
    words = f"a whole number from {least} to {most}"
    return plain(words, lambda value: type(value) is int and least <= value <= most)


def choice(*options: Any) -> Field:
    """Take one of some texts, truth values or None."""
    known = [(type(option), option) for option in options]
    return plain(" or ".join(map(repr, options)), lambda value: (type(value), value) in known)


def instance(made: type) -> Field:
    """Take any value of a type of Python."""
    return plain(f"a {made.__name__}", lambda value: isinstance(value, made))


def maybe(field: Field) -> Field:
    """Take null, too."""
    return lambda value, path, dims: None if value is None else field(value, path, dims)


def array(types: str, *shape: str | int, least: float | None = None, most: float = LARGEST) -> Field:
    """Take an array of one of some element types, of a shape in dimensions, and with entries in a range."""
    numbers = f"numbers from {least}" + ("" if most == LARGEST else f" to {most}")
    if most == LARGEST and least in (-LARGEST, SMALLEST):
        numbers = "finite numbers" if least == -LARGEST else "positive, finite numbers"

    def read(value: Any, path: str, dims: dict[str, int]) -> NDArray[Any]:
        if not isinstance(value, np.ndarray) or type_of(value) not in types.split():
            found = f"one of {type_of(value)}" if isinstance(value, np.ndarray) else shown(value)
            raise Refusal(f"{path}: expected an array of {types.replace(' ', ' or ')}, found {found}.")
        if value.ndim != len(shape) or any(
            length != (dims.setdefault(dim, length) if isinstance(dim, str) else dim)
            for dim, length in zip(shape, value.shape, strict=False)
        ):
            expected = ", ".join(str(dims.get(str(dim), dim)) for dim in shape)
            raise Refusal(f"{path}: expected an array of shape ({expected}), found {value.shape}.")
        if least is not None and value.size and value.dtype.kind in "iuf":
            # Python's numbers: least would be rounded to the type of the array.
            with np.errstate(invalid="ignore"):
                low, high = value.min().item(), value.max().item()
            if not (least <= low and high <= most):
                raise Refusal(f"{path}: expected {numbers}, found {low} to {high}.")
        return value

    return read


finite, positive = partial(array, least=-LARGEST), partial(array, least=SMALLEST)
"""Take an array of finite, or of positive and finite numbers."""


def params(defaults: dict[str, Any], **fields: Field) -> Field:
    """Take all parameters of an estimator; those that an older version did not know keep their defaults."""
    known = Object({f"{name}?": fields.get(name, parameter) for name in defaults})
    return lambda value, path, _: defaults | known(value, path, {})


def ruled(field: Field, rules: Callable[[Any], Rules]) -> Field:
    """Take what another field takes, if conditions on its value hold."""

    def read(value: Any, path: str, dims: dict[str, int]) -> Any:
        found = field(value, path, dims)
        for is_so, words in rules(found):
            _demand(is_so, f"{path}: {words}")
        return found

    return read


def _demand(is_so: Any, path: str) -> None:
    if not is_so:
        raise Refusal(f"{path}.")


@dataclass(frozen=True)
class Object:
    """An object with these keys and no others; a file may lack those that end in "?".

    ``rules`` says what has to be so of the values that were read, one condition after the other.
    """

    fields: dict[str, Field]
    rules: Callable[[dict[str, Any]], Rules] = lambda _: iter(())

    def __call__(self, value: Any, path: str, dims: dict[str, int]) -> dict[str, Any]:
        """Return the values of an object of the header."""
        if not isinstance(value, dict):
            raise Refusal(f"{path}: expected an object, found {shown(value)}.")
        missing = [key for key in self.fields if key not in value and not key.endswith("?")]
        if missing:
            raise Refusal(f"{path} has no {missing[0]!r}.")
        fields = {key.removesuffix("?"): field for key, field in self.fields.items()}
        unknown = value.keys() - fields.keys()
        if unknown:
            raise Refusal(f"{path} has the unknown key {shown(min(unknown))}.", NEWER)
        found = {}
        for key in [key for key in fields if key in value]:
            found[key] = fields[key](value[key], f"{path}.{key}", dims)
            if type(found[key]) is int:
                dims[key] = found[key]
        for is_so, words in self.rules(found):
            _demand(is_so, f"{path}: {words}")
        return found


def has_surrogates(text: str) -> bool:
    """Tell whether a text holds what is no character."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def type_of(array: NDArray[Any]) -> str:
    """Return the name of an element type in the file: f8, i8, ..., bool, U (of a fixed width) or text."""
    kind = array.dtype.kind
    return {"b": "bool", "U": "U", "O": "text"}.get(kind, f"{kind}{array.dtype.itemsize}")


def pack(value: Any, name: str) -> Any:
    """Return the header's form of a parameter, arrays in their places; TypeError where there is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, str, int, float)):
        return value
    if isinstance(value, dict):
        return {"dict": [[pack(part, name) for part in pair] for pair in value.items()]}
    is_list = isinstance(value, (list, tuple))
    if is_list and len(value) <= LONGEST_LIST:
        parts = [pack(part, name) for part in value]
        return parts if isinstance(value, list) else {"tuple": parts}
    if is_list or hasattr(value, "__array__"):
        array = np.asarray(value)
        # numpy would turn a list of numbers and texts into texts.
        return np.array(value, dtype=object) if is_list and array.dtype.kind == "U" else array
    raise TypeError(
        f"{name}={shown(value)} cannot be stored: a model file holds None, numbers, text, lists, dicts and "
        "arrays, but no code and no objects of other kinds. Set it to such a value with "
        f"set_params({name.rpartition('.')[2]}=...) before saving."
    )


def pack_params(model: Any, **changes: Any) -> dict[str, Any]:
    """Return the header's form of all parameters of an estimator."""
    kind, values = type(model).__name__, model.get_params(deep=False) | changes
    return {name: pack(value, f"{kind}.{name}") for name, value in values.items()}


def parameter(value: Any, path: str, _: object = None, depth: int = 0) -> Any:  # noqa: C901 -- case by case
    """Take a parameter of an estimator."""
    if depth > _MAX_DEPTH:
        raise Refusal(f"{path} is nested too deeply.")
    if isinstance(value, list):
        return [parameter(part, path, None, depth + 1) for part in value]
    if isinstance(value, str) and has_surrogates(value):
        raise Refusal(f"{path} is {shown(value)}: lone surrogates are no text.")
    if isinstance(value, int) and abs(value) >= _LARGEST_INT:
        raise Refusal(f"{path} is {shown(value)}, which is too large.")
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items() if len(value) == 1 else [("", None)]
    if tag == "float":
        if not isinstance(content, str) or content not in ("inf", "-inf"):
            raise Refusal(f"{path} is {shown(content)}; expected 'inf' or '-inf'.")
        return float(content)
    if tag not in ("tuple", "dict") or not isinstance(content, list):
        raise Refusal(f"{path} is {shown(value)}, which stands for no parameter.")
    parts = parameter(content, path, None, depth - (tag == "dict"))  # whose pairs are lists, too
    if tag == "tuple":
        return tuple(parts)
    found: dict[Any, Any] = {}
    for pair in parts:
        if not isinstance(pair, list) or len(pair) != 2:
            raise Refusal(f"{path} holds {shown(pair)}; expected a key and a value.")
        key, entry = pair
        if not isinstance(key, _KEYS) or key in found:
            raise Refusal(f"{path} has the key {shown(key)} twice, or as neither a number nor a text.")
        found[key] = entry
    return found


@dataclass(frozen=True)
class Kind:
    """One row of the table; a classifier stands at the end of a pipeline, all others before it."""

    made: Any
    fields: Object
    pack: Callable[[Any], dict[str, Any]]
    build: Callable[[dict[str, Any]], Any]
    is_classifier: bool = False


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Refuse what an estimator does not accept as its parameters."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise Refusal(f"{name}: a parameter is not allowed: {str(error)[:300]}") from error


def _group_rules(groups: NDArray[Any]) -> Rules:
    steps = np.maximum.accumulate(groups)
    np.subtract(groups[1:], steps[:-1], out=steps[:-1])  # in place: the array may be the size of the file
    is_so = groups[0] == 0 and steps[:-1].max(initial=0) <= 1
    yield is_so, "groups are not in the order of appearance"


def _class_rules(classes: NDArray[Any]) -> Rules:
    yield len(classes) >= 2, "expected two classes or more"
    yield np.all(classes[:-1] < classes[1:]), "the classes are not in increasing order"


FLAG = choice(True, False)
NAMES = maybe(array("text", "n_features"))
CLASSES = ruled(finite("f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 bool U text", "n_classes"), _class_rules)
GROUPS = ruled(array("i8", "n_features", least=0, most=MOST), _group_rules)
