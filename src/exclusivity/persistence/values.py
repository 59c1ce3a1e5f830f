"""Parameters of estimators as JSON: what JSON lacks is tagged, what grows with the data is an array.

=====================  ===========================================
Python                 the header
=====================  ===========================================
None, bool, int, str   itself
float                  itself, or {"float": "inf"}, {"float": "-inf"}
list                   [...]
tuple                  {"tuple": [...]}
dict                   {"dict": [[key, value], ...]}
ndarray, long list     {"array": number}
=====================  ===========================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.persistence.container import ArrayStore, ArrayTable
from exclusivity.persistence.errors import DAMAGED, ModelFormatError, shown
from exclusivity.persistence.fields import Fields
from exclusivity.persistence.strict_json import LARGEST_INT

LONGEST_LIST = 1000
"""A longer list, for example one feature group per column, is stored and comes back as an array."""

_MAX_DEPTH = 8
_KEYS = (str, int, float, type(None))
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def pack(value: object, name: str, store: ArrayStore, depth: int = 0) -> Any:
    """The header's form of a parameter; TypeError or ValueError where there is none."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"{name} is nested too deeply to be stored.")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return _checked_text(value, name) if isinstance(value, str) else value
    if isinstance(value, (int, float)):
        return _pack_number(value, name)
    if isinstance(value, dict):
        odd = [key for key in value if not isinstance(key, (*_KEYS, np.generic))]
        if odd:
            raise TypeError(
                f"{name} has the key {shown(odd[0])}; a model file stores numbers and text as keys."
            )
        pairs = [[pack(part, name, store, depth + 1) for part in pair] for pair in value.items()]
        return {"dict": pairs}
    if isinstance(value, (list, tuple)) and len(value) <= LONGEST_LIST:
        parts = [pack(part, name, store, depth + 1) for part in value]
        return parts if isinstance(value, list) else {"tuple": parts}
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        return store.add(_as_array(value), name)
    raise TypeError(
        f"{name}={shown(value)} cannot be stored: a model file holds None, numbers, text, lists, dicts and "
        "arrays, but no code and no objects of other kinds. Set it to such a value with "
        f"set_params({name.rpartition('.')[2]}=...) before saving."
    )


def _as_array(value: object) -> NDArray[Any]:
    array = np.asarray(value)
    # numpy would turn a list of numbers and texts into texts.
    mixed = isinstance(value, (list, tuple)) and array.dtype.kind == "U"
    return np.array(value, dtype=object) if mixed else array


def _pack_number(value: int | float, name: str) -> Any:
    if isinstance(value, int):
        if abs(value) >= LARGEST_INT:
            raise ValueError(f"{name}={shown(value)} is too large to be stored.")
        return int(value)
    if math.isnan(value):
        raise ValueError(f"{name} is NaN, which is no parameter; set it to a number before saving.")
    return {"float": str(value)} if math.isinf(value) else float(value)


def _has_surrogates(value: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in value)


def _checked_text(value: str, name: str) -> str:
    if _has_surrogates(value):
        raise ValueError(f"{name}={shown(value)} has lone surrogates and cannot be stored.")
    return str(value)


def unpack(value: object, name: str, table: ArrayTable, depth: int = 0) -> Any:
    """The parameter behind its header's form."""
    if depth > _MAX_DEPTH:
        raise ModelFormatError(f"{name} is nested too deeply. {DAMAGED}")
    if isinstance(value, list):
        return [unpack(part, name, table, depth + 1) for part in value]
    if isinstance(value, dict):
        return _unpack_tagged(value, name, table, depth + 1)
    if isinstance(value, str) and _has_surrogates(value):
        raise ModelFormatError(f"{name} is {shown(value)}, which is no text. {DAMAGED}")
    return value


def _unpack_tagged(value: dict[str, Any], name: str, table: ArrayTable, depth: int) -> Any:
    if "array" in value:
        return table.take(value, name)
    fields = Fields(value, name)
    if "float" in value:
        found: Any = _INFINITIES[fields.text("float", tuple(_INFINITIES))]
    elif "tuple" in value:
        found = tuple(unpack(part, name, table, depth) for part in fields.items("tuple"))
    else:
        found = _unpack_dict(fields.items("dict"), name, table, depth)
    fields.finish()
    return found


def _unpack_dict(pairs: list[Any], name: str, table: ArrayTable, depth: int) -> dict[Any, Any]:
    found = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ModelFormatError(f"{name} holds {shown(pair)}; expected a key and a value. {DAMAGED}")
        key, value = (unpack(part, name, table, depth) for part in pair)
        if not isinstance(key, _KEYS) or key in found:
            raise ModelFormatError(f"{name} has the key {shown(key)} twice, or it is no key. {DAMAGED}")
        found[key] = value
    return found


def pack_params(params: dict[str, Any], kind: str, store: ArrayStore) -> dict[str, Any]:
    """All parameters of an estimator."""
    return {name: pack(value, f"{kind}.{name}", store) for name, value in params.items()}


def unpack_params(value: Any, kind: str, known: dict[str, Any], table: ArrayTable) -> dict[str, Any]:
    """The parameters of a file: names must be known; those that are missing keep their defaults.

    That is how files of an older version load, which did not know all of today's parameters.
    """
    fields = Fields(value, f"the parameters of {kind}")
    found = {
        name: unpack(fields.take(name), f"{kind}.{name}", table) if name in value else default
        for name, default in known.items()
    }
    fields.finish()
    return found
