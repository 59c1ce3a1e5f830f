"""Check parameters and targets; errors name the parameter that they are about."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping
from itertools import islice
from numbers import Integral, Real
from typing import Any

import numpy as np

_MOST_NAMES = 20


class ParameterError(ValueError):
    """A parameter has a value that cannot be used, alone or with the other parameters.

    Parameters
    ----------
    parameter : str
        Its name, for callers that have another name for it, such as an option of the command line.
    message : str
        What is wrong, and what to do.

    Examples
    --------
    >>> error = ParameterError("tol", "tol must be above 0; got 0.")
    >>> error.parameter, str(error)
    ('tol', 'tol must be above 0; got 0.')
    """

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(parameter, message)  # both, so that the error can be pickled
        self.parameter = parameter

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[1])


class ParameterTypeError(ParameterError, TypeError):
    """A parameter has a value of a wrong type."""


def check_number(
    params: Mapping[str, Any],
    name: str,
    *,
    least: float,
    strict: bool = False,
    integer: bool = False,
    finite: bool = True,
) -> None:
    """Raise unless ``params[name]`` is a number (an integer) of at least, or above, ``least``."""
    value: Any = params[name]
    kind: Any = Integral if integer else Real
    word = "an integer" if integer else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise ParameterTypeError(name, f"{name} must be {word}; got {value!r}.")
    in_range = value > least if strict else value >= least
    if not in_range or (finite and not np.isfinite(value)):
        bound = ("above" if strict else "at least") + f" {least:g}"
        raise ParameterError(
            name, f"{name} must be {word} {bound}{' and finite' if finite else ''}; got {value!r}."
        )


def check_choice(params: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> None:
    """Raise unless ``params[name]`` is one of the allowed words."""
    if params[name] not in allowed:
        raise ParameterError(
            name, f"{name} must be one of {', '.join(map(repr, allowed))}; got {params[name]!r}."
        )


MANY_CLASSES = 50
# A table of so few rows may well have one row of each class.
_FEW_ROWS = 10


def warn_of_many_classes(n_classes: int, n_rows: int, stacklevel: int) -> None:
    """Warn of a target that hardly holds classes: very many of them, or one for every row."""
    if n_classes > MANY_CLASSES or n_classes == n_rows > _FEW_ROWS:
        warnings.warn(
            f"y has {n_classes} different values in {n_rows} rows. Are they classes, and not amounts?",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def hint_at_name(name: object, known: Iterable[object]) -> str:
    """Return the end of a message about an unknown name: the one that was probably meant, or what there is.

    Examples
    --------
    >>> hint_at_name("Agee", ["Age", "Home"]), hint_at_name("x", ["Age", "Home"])
    ("did you mean 'Age'?", "there are 'Age', 'Home'.")
    """
    texts = {str(each): each for each in known}
    same = [text for text in texts if text.casefold() == str(name).casefold()]
    if near := same or difflib.get_close_matches(str(name), texts, n=1):
        return f"did you mean {_shown(texts[near[0]])}?"
    more = f" and {len(texts) - _MOST_NAMES} more" if len(texts) > _MOST_NAMES else ""
    return f"there are {', '.join(map(_shown, islice(texts.values(), _MOST_NAMES)))}{more}."


def _shown(name: object) -> str:
    return repr(str(name) if isinstance(name, str) else name)  # texts of NumPy say that they are
