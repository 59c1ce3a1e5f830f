"""Warnings about categories whose texts are numbers or dates."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from itertools import islice

_FEW = 10
"""So few categories may well be categories, whatever they look like."""

_MOST = 1000
_BEGINS = re.compile(r"[-+.,]?\d|\w{3,9}[. ]+\d")


def warn_of_texts(name: str, levels: Collection[str]) -> None:
    """Warn if the categories of a column are numbers or dates as texts, and say how to convert them."""
    texts = list(islice(levels, _MOST))
    if len(texts) <= _FEW or 2 * sum(_BEGINS.match(text) is not None for text in texts[:_FEW]) < _FEW:
        return
    from exclusivity.io._cells import MISSING, dates_among, notation_of  # noqa: PLC0415 -- rarely needed

    texts = [text for text in texts if text not in MISSING]
    notation = notation_of([text.encode() for text in texts])
    if notation is not None:
        steps = ".str.rstrip('% ')" if notation.percent else ""
        other = {",": ".", ".": ","}.get(notation.decimal, "")
        steps += f".str.replace({other!r}, '')" if notation.grouped else ""
        steps += ".str.replace(',', '.')" if notation.decimal == "," else ""
        advice = (
            f"holds numbers as texts, such as {texts[0]!r}. Make them numbers, with pandas "
            f"X[{name!r}]{steps}.astype(float)."
        )
    elif (found := dates_among(texts)) is not None:
        advice = (
            f"holds texts that look like dates, such as {found[0]!r}. Make them dates (with pandas "
            f"pandas.to_datetime(X[{name!r}]), which may need a format), or write {found[1]}."
        )
    else:
        return
    warnings.warn(
        f"Column {name!r} is taken for a category of {len(levels)} levels, but {advice} (Named in "
        "categorical it stays a category, without this warning.)",
        UserWarning,
        stacklevel=2,
    )
