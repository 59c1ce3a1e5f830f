"""Errors that name the parameter they are about, and the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

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
