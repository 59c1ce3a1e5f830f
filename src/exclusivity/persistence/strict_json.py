"""JSON without the liberties of Python's reader: no NaN, no infinity, no key twice, no huge numbers."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from exclusivity.persistence.errors import DAMAGED, ModelFormatError, shown

LARGEST_INT = 1 << 64
"""Whole numbers of a header are smaller."""


def dump_json(value: object) -> bytes:
    """Compact, sorted, ASCII: the same value always gives the same bytes."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.encode("ascii")


def parse_json(text: bytes) -> Any:
    """The value of a strict JSON text.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> parse_json(b'{"a": 1, "a": 2}')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    exclusivity.persistence.errors.ModelFormatError: the header has the key 'a' twice. ...
    """
    try:
        return json.loads(
            text.decode("ascii"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except ModelFormatError:
        raise
    except RecursionError:
        raise ModelFormatError(f"the header is nested too deeply. {DAMAGED}") from None
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are both
        raise ModelFormatError(f"the header is no valid JSON ({shown(str(error))}). {DAMAGED}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ModelFormatError(f"the header has the key {shown(twice)} twice. {DAMAGED}")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ModelFormatError(f"the header holds {name}, which JSON does not have. {DAMAGED}")


def _whole(text: str) -> int:
    value = int(text)
    if abs(value) >= LARGEST_INT:
        raise ModelFormatError(f"the header holds a number of {len(text)} digits. {DAMAGED}")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ModelFormatError(f"the header holds {shown(text)}, which is not a finite number. {DAMAGED}")
    return value
