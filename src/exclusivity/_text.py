"""Text from data and files, written so that it cannot steer a terminal, a page or a plot."""

from __future__ import annotations

import re

# Control characters, line and paragraph separators, changes of the direction of text, lone surrogates.
_INVISIBLE = "\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROLS = re.compile(f"[{_INVISIBLE}]")
CONTROLS_IN_LINES = re.compile(f"(?![\\n\\t])[{_INVISIBLE}]")
"""The same, except line ends and tabs."""


def printable(value: object, *, lines: bool = False) -> str:
    r"""Return a text with its control characters escaped.

    Parameters
    ----------
    value : object
    lines : bool, default=False
        Whether line ends and tabs stay.

    Examples
    --------
    >>> print(printable("a\x1b[2J\nb"))
    a\x1b[2J\nb
    """
    controls = CONTROLS_IN_LINES if lines else _CONTROLS
    return controls.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))
