"""Categories that may be none: numbers and dates, written in a way that only people read."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from itertools import islice

_FEW = 10
"""So few levels may well be a category, whatever they look like."""

_MOST = 1000
_BEGINS = re.compile(r"[-+.,]?\d|\w{3,9}[. ]+\d")


def warn_of_texts(name: str, levels: Collection[str]) -> None:
    """Say which category holds numbers or dates as texts, and how to make them what they are.

    Parameters
    ----------
    name : str
        The column.
    levels : collection of str
        Its different texts, of which the first thousand are looked at.
    """
    texts = list(islice(levels, _MOST))
    if len(texts) <= _FEW or 2 * sum(_BEGINS.match(text) is not None for text in texts[:_FEW]) < _FEW:
        return
    from exclusivity.io._cells import MISSING  # noqa: PLC0415 -- few tables need the readers of files

    texts = [text for text in texts if text not in MISSING]
    advice = _numbers(name, texts) or _dates(name, texts)
    if advice is not None:
        warnings.warn(
            f"Column {name!r} is taken for a category of {len(levels)} levels, but {advice} (Named in "
            "categorical it stays a category, and nothing is said.)",
            UserWarning,
            stacklevel=2,
        )


def _numbers(name: str, texts: list[str]) -> str | None:
    from exclusivity.io._cells import ColumnError, detect_rule  # noqa: PLC0415 -- as above

    try:
        rule, _ = detect_rule(dict.fromkeys(texts, 1))
    except ColumnError:
        return None
    if rule.kind != "number":
        return None
    steps = ".str.rstrip('% ')" if "%" in rule.notation else ""
    other = {",": ".", ".": ","}.get(rule.decimal, "")
    steps += f".str.replace({other!r}, '')" if "'" in rule.notation else ""
    steps += ".str.replace(',', '.')" if rule.decimal == "," else ""
    return (
        f"holds numbers as texts, such as {texts[0]!r}. Make them numbers, with pandas "
        f"X[{name!r}]{steps}.astype(float)."
    )


def _dates(name: str, texts: list[str]) -> str | None:
    from exclusivity.io._cells import DATE_FORM, date_among  # noqa: PLC0415 -- as above

    found = date_among(texts)
    if found is None:
        return None
    return (
        f"holds texts that look like dates, such as {found!r}. Make them dates (with pandas "
        f"pandas.to_datetime(X[{name!r}]), which may need a format), or write {DATE_FORM}."
    )
