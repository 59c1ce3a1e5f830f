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
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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


def whole(least: int, most: int) -> Field:
    """Take a whole number in a range; in an object it is the dimension of its name, too."""

    def read(value: Any, path: str, _: object) -> int:
        if type(value) is not int or not least <= value <= most:
            raise Refusal(f"{path}: expected a whole number from {least} to {most}, found {shown(value)}.")
        return value

    return read


def choice(*options: Any) -> Field:
    """Take one of some texts, truth values or None."""

    def read(value: Any, path: str, _: object) -> Any:
        if not any(type(value) is type(option) and value == option for option in options):
            raise Refusal(f"{path}: expected {' or '.join(map(repr, options))}, found {shown(value)}.")
        return value

    return read


def instance(made: type) -> Field:
    """Take any value of a type of Python."""

    def read(value: Any, path: str, _: object) -> Any:
        if not isinstance(value, made):
            raise Refusal(f"{path}: expected a {made.__name__}, found {shown(value)}.")
        return value

    return read


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


def finite(types: str, *shape: str | int) -> Field:
    """Take an array of finite numbers."""
    return array(types, *shape, least=-LARGEST)


def positive(types: str, *shape: str | int) -> Field:
    """Take an array of positive, finite numbers."""
    return array(types, *shape, least=SMALLEST)


def params(defaults: dict[str, Any]) -> Field:
    """Take all parameters of an estimator; those that an older version did not know keep their defaults."""
    known = Object({f"{name}?": parameter for name in defaults})
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


def parameter(value: Any, path: str, _: object) -> Any:
    """Take a parameter of an estimator."""
    return unpack(value, path)


@dataclass(frozen=True)
class Object:
    """An object with these keys and no others; a file may lack those that end in "?".

    ``rules`` says what has to be so of the values that were read, one condition after the other.
    """

    fields: dict[str, Field]
    rules: Callable[[dict[str, Any]], Rules] = lambda _: iter(())

    def __call__(self, value: Any, path: str, dims: dict[str, int]) -> dict[str, Any]:
        """Return the values of an object of the header."""
        found: dict[str, Any] = ruled(self._read, self.rules)(value, path, dims)
        return found

    def _read(self, value: Any, path: str, dims: dict[str, int]) -> dict[str, Any]:
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
        for key, field in fields.items():
            if key in value:
                found[key] = field(value[key], f"{path}.{key}", dims)
                if type(found[key]) is int:
                    dims[key] = found[key]
        return found

    def ordered(self, packed: dict[str, Any]) -> dict[str, Any]:
        """Return the values of a model in the order of the fields."""
        fields = {key.removesuffix("?"): field for key, field in self.fields.items()}
        return {
            key: field.ordered(packed[key]) if isinstance(field, Object) else packed[key]
            for key, field in fields.items()
            if key in packed
        }


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
        odd = [key for key in value if not isinstance(key, (*_KEYS, np.generic))]
        if odd:
            raise TypeError(
                f"{name} has the key {shown(odd[0])}; a model file stores numbers and text as keys."
            )
        return {"dict": [[pack(part, name) for part in pair] for pair in value.items()]}
    if isinstance(value, (list, tuple)) and len(value) <= LONGEST_LIST:
        parts = [pack(part, name) for part in value]
        return parts if isinstance(value, list) else {"tuple": parts}
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        array = np.asarray(value)
        # numpy would turn a list of numbers and texts into texts.
        mixed = isinstance(value, (list, tuple)) and array.dtype.kind == "U"
        return np.array(value, dtype=object) if mixed else array
    raise TypeError(
        f"{name}={shown(value)} cannot be stored: a model file holds None, numbers, text, lists, dicts and "
        "arrays, but no code and no objects of other kinds. Set it to such a value with "
        f"set_params({name.rpartition('.')[2]}=...) before saving."
    )


def pack_params(model: Any, **changes: Any) -> dict[str, Any]:
    """Return the header's form of all parameters of an estimator."""
    kind, values = type(model).__name__, model.get_params(deep=False) | changes
    return {name: pack(value, f"{kind}.{name}") for name, value in values.items()}


def unpack(value: Any, name: str, depth: int = 0) -> Any:  # noqa: C901, PLR0912 -- a case for each type
    """Return the parameter behind its header's form."""
    if depth > _MAX_DEPTH:
        raise Refusal(f"{name} is nested too deeply.")
    if isinstance(value, list):
        return [unpack(part, name, depth + 1) for part in value]
    if isinstance(value, str) and has_surrogates(value):
        raise Refusal(f"{name} is {shown(value)}: lone surrogates are no text.")
    if isinstance(value, int) and abs(value) >= _LARGEST_INT:
        raise Refusal(f"{name} is {shown(value)}, which is too large.")
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or not value.keys() <= {"float", "tuple", "dict"}:
        raise Refusal(f"{name} is {shown(value)}, which stands for no parameter.")
    ((tag, content),) = value.items()
    if tag == "float":
        if not isinstance(content, str) or content not in ("inf", "-inf"):
            raise Refusal(f"{name} is {shown(content)}; expected 'inf' or '-inf'.")
        return float(content)
    if not isinstance(content, list):
        raise Refusal(f"{name} is {shown(value)}; expected a list.")
    if tag == "tuple":
        return tuple(unpack(part, name, depth + 1) for part in content)
    found: dict[Any, Any] = {}
    for pair in content:
        if not isinstance(pair, list) or len(pair) != 2:
            raise Refusal(f"{name} holds {shown(pair)}; expected a key and a value.")
        key, entry = (unpack(part, name, depth + 1) for part in pair)
        if not isinstance(key, _KEYS) or key in found:
            raise Refusal(f"{name} has the key {shown(key)} twice, or it is no key.")
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


def int64(values: Iterable[Any]) -> NDArray[np.int64]:
    """Return whole numbers as they are stored."""
    return np.array(list(values), dtype=np.int64)


def texts_of(values: Iterable[str]) -> NDArray[Any]:
    """Return texts as they are stored."""
    return np.array(list(values), dtype=object)


def cut(values: NDArray[Any], sizes: NDArray[Any]) -> list[NDArray[Any]]:
    """Return an array in pieces of these sizes."""
    return np.split(values, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _are_groups(groups: NDArray[Any]) -> bool:
    """Tell whether 0 is first, and nowhere a number more than one above all before it."""
    highest = -1
    for start in range(0, len(groups), _CHUNK):  # no arrays of the size of the file beside it
        steps = np.maximum.accumulate(np.r_[highest, groups[start : start + _CHUNK]])
        if np.diff(steps).max() > 1:
            return False
        highest = steps[-1]
    return True


def _class_rules(classes: NDArray[Any]) -> Rules:
    yield len(classes) >= 2, "expected two classes or more"
    yield np.all(classes[:-1] < classes[1:]), "the classes are not in increasing order"


def _notation_rules(tags: NDArray[Any]) -> Rules:
    yield all(map(_NOTATION.fullmatch, tags)), "a column is written in no known way"


FLAG = choice(True, False)
NAMES = maybe(array("text", "n_features"))
CLASSES = ruled(finite("f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 bool U text", "n_classes"), _class_rules)
GROUPS = ruled(
    array("i8", "n_features", least=0, most=MOST),
    lambda groups: iter([(_are_groups(groups), "groups are not in the order of appearance")]),
)
_NOTATION = re.compile(r"[.,]?'?%?\??|-")
NOTATIONS = ruled(array("text", "n_features"), _notation_rules)
"""The notation of the numbers of each column; a dash where unknown."""


def pack_notations(columns: Sequence[Any]) -> dict[str, Any]:
    """Return how the numbers of columns are written; nothing where unknown."""
    tags = ["-" if column.notation is None else column.notation for column in columns]
    return {} if set(tags) == {"-"} else {"notations": texts_of(tags)}


def notations_of(found: dict[str, Any]) -> list[str | None]:
    """Return the notation of each column, None where unknown."""
    tags = found.get("notations", ["-"] * found["n_features"])
    return [None if tag == "-" else tag for tag in tags]
