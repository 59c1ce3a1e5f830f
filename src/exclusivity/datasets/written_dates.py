"""Dates as people write them, told from other texts so that a message can say how to write them instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TIME = r"(?:[T ,]+\d{1,2}[:.]\d\d.*)?"
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?")
_FIGURES = re.compile(rf"(\d{{1,4}})([./-])(\d{{1,2}})\2(\d{{2,4}}|\d){_TIME}")
_MONTH = r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[^\W\d_]{0,6}"
_NAMED = re.compile(
    rf"(?:\d{{1,2}}[. -]+{_MONTH}[. ,-]+\d{{2,4}}|{_MONTH}[. ]+\d{{1,2}}[, ]+\d{{4}}){_TIME}", re.IGNORECASE
)
# Without letters for half a day: they change the hour. A time zone may be dropped where all rows share it.
_CLOCK = re.compile(r"[T ,]+(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?(?:\.\d+)?\s*(?:Z|[+-]\d\d:?\d\d)?")
_MOST_TEXTS = 1000
_NEARLY_ALL = 0.9
FORM = "year-month-day, such as 2024-12-31"


def dates_among(texts: Sequence[str]) -> tuple[str, str] | None:
    """A text that looks like a date, with how to write it; None where other texts stand there too.

    None as well where all dates are written as ISO 8601 has them.

    Parameters
    ----------
    texts : sequence of str
        Different texts of a column, of which the first thousand are looked at.

    Examples
    --------
    >>> dates_among(["26.03.2026", "01.04.2026"]), dates_among(["01/02/2022", "08/28/2022"])
    (('26.03.2026', '2026-03-26'), ('01/02/2022', '2022-01-02'))
    >>> dates_among(["2022-08-28"]), dates_among(["1.2.3", "red"])
    (None, None)
    >>> dates_among(["2024-03-11T08:15:00Z"]), dates_among(["26.03.2026 9:05"])
    (('2024-03-11T08:15:00Z', '2024-03-11 08:15:00'), ('26.03.2026 9:05', '2026-03-26 09:05'))
    """
    texts = texts[:_MOST_TEXTS]
    found = [text for text in texts if _is_date(text)]
    shown = next((text for text in found if not _ISO.fullmatch(text)), None)
    if shown is None or len(found) < _NEARLY_ALL * len(texts):
        return None
    return shown, _in_iso(shown, found) or FORM


def stray_among_dates(texts: Sequence[str]) -> str | None:
    """The first text that is no date, where nearly all are dates as ISO 8601 writes them; else None.

    Examples
    --------
    >>> stray_among_dates([*(f"2024-12-{day}" for day in range(10, 30)), "soon"])
    'soon'
    >>> stray_among_dates(["2024-12-31"]), stray_among_dates(["2024-12-31", "soon"])
    (None, None)
    """
    texts = texts[:_MOST_TEXTS]
    strays = [text for text in texts if not _ISO.fullmatch(text)]
    return strays[0] if strays and len(texts) - len(strays) >= _NEARLY_ALL * len(texts) else None


def _is_date(text: str) -> bool:
    figures = _FIGURES.fullmatch(text)
    if figures is None:
        return _NAMED.fullmatch(text) is not None
    first, middle, last = figures[1], int(figures[3]), figures[4]
    if len(first) == 4:  # the year stands in front
        return middle <= 12 and int(last) <= 31 and len(last) <= 2
    day_and_month = sorted((int(first), middle))
    return len(first) <= 2 and len(last) in (2, 4) and 1 <= day_and_month[0] <= 12 and day_and_month[1] <= 31


def _in_iso(text: str, dates: Sequence[str]) -> str | None:
    """A date as ISO 8601 has it, where the dates beside it say which figure is the month."""
    figures = _FIGURES.fullmatch(text)
    if figures is None:
        return None
    first, sign, middle, last = figures[1], figures[2], figures[3], figures[4]
    clock = _CLOCK.fullmatch(text, figures.end(4))
    if (len(first) < 4 and len(last) < 4) or (clock is None and figures.end(4) < len(text)):
        return None  # of which century, and whether before noon, nobody has said
    time = "" if clock is None else f" {clock[1]:0>2}:{clock[2]}" + (f":{clock[3]}" if clock[3] else "")
    if len(first) == 4:
        return f"{first}-{middle:0>2}-{last:0>2}{time}"
    beside = filter(None, map(_FIGURES.fullmatch, dates))
    others = [found for found in beside if found[2] == sign and len(found[1]) <= 2]
    day_first = sign == "." or any(int(found[1]) > 12 for found in others)
    month_first = any(int(found[3]) > 12 for found in others)
    if day_first == month_first:
        return None
    day, month = (first, middle) if day_first else (middle, first)
    return f"{last}-{month:0>2}-{day:0>2}{time}"
