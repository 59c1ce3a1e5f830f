"""How people write numbers: decimal commas and points, thousands, per cent signs.

A text proves its decimal sign where it is a number under one sign and none under the other: ``0,624`` and
``1.038,0`` have a decimal comma, ``2.5`` and ``1,234,567`` a decimal point. ``1,038`` leaves it open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAPS = ("", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""What people write where there is nothing."""

_GAPS = frozenset(gap.encode() for gap in GAPS)
_CODE = re.compile(rb"0\d+")
OTHER_SIGN = {".": b",", ",": b"."}
"""What may separate thousands, by the decimal sign."""


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : {",", ".", ""}
        What stands before decimals; "" where no number has shown it.
    grouped : bool
        Whether the other sign stands between thousands.
    percent : bool
        Whether per cent signs stand behind the numbers.
    texts : bool
        Whether texts among the numbers stand for gaps, because somebody said so.

    Examples
    --------
    >>> Notation(",", grouped=True).note, Notation(",", percent=True).tag
    ('decimal comma, thousands points', ',%')
    >>> Notation.of(",%") == Notation(",", percent=True)
    True
    """

    decimal: str = ""
    grouped: bool = False
    percent: bool = False
    texts: bool = False

    @property
    def tag(self) -> str:
        """The same in up to four characters, as model files keep it."""
        return self.decimal + "'" * self.grouped + "%" * self.percent + "?" * self.texts

    @classmethod
    def of(cls, tag: str) -> Notation:
        """The way back."""
        return cls(tag[:1] if tag[:1] in OTHER_SIGN else "", "'" in tag, "%" in tag, "?" in tag)

    @property
    def note(self) -> str:
        """What a person should know about it; empty for 1234.5."""
        words = ["per cent"] if self.percent else []
        words += ["decimal comma"] if self.decimal == "," else []
        words += [f"thousands {'points' if self.decimal == ',' else 'commas'}"] if self.grouped else []
        return ", ".join(words)


def _cell(decimal: str) -> bytes:
    sign, other = re.escape(decimal).encode(), re.escape(OTHER_SIGN[decimal])
    plain = rb"(?:\d++%b?\d*+|%b\d++)(?:[eE][-+]?\d++)?" % (sign, sign)
    grouped = rb"[1-9]\d{0,2}(?:%b\d{3})++(?:%b\d++)?" % (other, sign)
    return rb"[-+]?(?:%b|%b)" % (grouped, plain)


_ONE = {decimal: re.compile(_cell(decimal)) for decimal in OTHER_SIGN}
# Many at once, each with an end of line behind it, which no cell holds.
_ALL = {decimal: re.compile(rb"(?:%b\n)*+" % _cell(decimal)) for decimal in OTHER_SIGN}


def signs_of(text: bytes) -> str:
    """The decimal signs under which a text is a number.

    Examples
    --------
    >>> signs_of(b"2.5"), signs_of(b"0,624"), signs_of(b"1,038"), signs_of(b"26.03.2026")
    ('.', ',', '.,', '')
    """
    return "".join(decimal for decimal, cell in _ONE.items() if cell.fullmatch(text))


def common_signs(texts: Sequence[bytes]) -> str:
    """The decimal signs under which all texts are numbers.

    Examples
    --------
    >>> common_signs([b"1.038,0", b"910,6", b"7"]), common_signs([b"1,5", b"2.5"])
    (',', '')
    """
    joined = b"\n".join([*texts, b""])
    return "".join(decimal for decimal, cells in _ALL.items() if cells.fullmatch(joined))


def as_numbers(texts: Sequence[bytes], decimal: str) -> NDArray[np.float64]:
    """Texts that are numbers under a decimal sign, as such.

    Examples
    --------
    >>> as_numbers([b"1.038,0", b"910,6"], ",")
    array([1038. ,  910.6])
    """
    if not texts:
        return np.empty(0)
    joined = b"\n".join(texts).replace(OTHER_SIGN[decimal], b"")
    return np.array(joined.replace(decimal.encode(), b".").split(b"\n")).astype(np.float64)


def numbers_among(
    cells: NDArray[np.bytes_], notation: Notation
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The numbers of a column written in a known way, NaN elsewhere; and which cells hold a text instead.

    Examples
    --------
    >>> numbers_among(np.array([b"1,5%", b"NA", b"0,02"]), Notation(",", percent=True))
    (array([1.5, nan, nan]), array([False, False,  True]))
    """
    texts = cells.tolist()
    bodies = list(map(of_percent, texts)) if notation.percent else texts
    sign = notation.decimal or "."
    if _ALL[sign].fullmatch(b"\n".join([*bodies, b""])):  # most columns, quickly
        values = as_numbers(bodies, sign)
        return values, np.isinf(values)
    is_number = [_ONE[sign].fullmatch(body) is not None for body in bodies]
    values = np.full(len(texts), np.nan)
    values[is_number] = as_numbers([body for body, fits in zip(bodies, is_number, strict=True) if fits], sign)
    is_text = [not fits and text not in _GAPS for text, fits in zip(texts, is_number, strict=True)]
    return values, np.array(is_text, dtype=bool) | np.isinf(values)


def of_percent(text: bytes) -> bytes:
    """What stands before a per cent sign; nothing where there is none: the number may then be a share."""
    return text[:-1].rstrip() if text.endswith(b"%") else b""


def notation_of(texts: Sequence[bytes]) -> Notation | None:
    """How texts are written that are all numbers; None for other texts, and for codes with zeros in front.

    Examples
    --------
    >>> notation_of([b"1.038,0%", b"7%"]), notation_of([b"007", b"12"])
    (Notation(decimal=',', grouped=True, percent=True, texts=False), None)
    """
    percent = bool(texts) and all(text.endswith(b"%") for text in texts)
    bodies = list(map(of_percent, texts)) if percent else texts
    signs = common_signs(bodies) if bodies else ""
    if not signs or are_codes(bodies):
        return None
    decimal = signs if len(signs) == 1 else "." if any(b"." in text for text in bodies) else ""
    return Notation(decimal, bool(decimal) and is_grouped(bodies, decimal), percent)


def are_codes(texts: Sequence[bytes]) -> bool:
    """Digits with zeros in front: parts of a code, such as those of places, and no amounts."""
    return any(map(_CODE.fullmatch, texts[:1000])) and all(text.isdigit() for text in texts)


def is_grouped(texts: Iterable[bytes], decimal: str) -> bool:
    """Whether the other sign stands between thousands."""
    return any(OTHER_SIGN[decimal] in text for text in texts)


def decimal_of_file(columns: Iterable[NDArray[np.bytes_]], delimiter: str | None) -> str:
    """Return the decimal sign that the columns of a training file agree on; "" where they leave it open.

    Columns that prove a sign speak for the others. Where none does, commas in every cell of a column are
    decimal commas if semicolons separate the fields: that is what semicolons are for.

    Parameters
    ----------
    columns : iterable of ndarray of bytes
        The cells, column by column, without those of categories.
    delimiter : str or None
        What separates the fields.

    Examples
    --------
    >>> thousands, proof = np.array([b"1,038", b"2,250"]), np.array([b"0,5", b"NA"])
    >>> decimal_of_file([thousands, proof], ","), decimal_of_file([thousands], ",")
    (',', '')
    >>> decimal_of_file([thousands], ";")
    ','
    """
    columns = list(columns)
    if not any(b"," in column.tobytes() for column in columns):
        return ""  # as of most files, quickly
    proven, in_every_cell = set(), []
    for column in columns:
        texts = [text.rstrip(b"%").rstrip() for text in column.tolist() if text not in _GAPS]
        signs = common_signs(texts) if texts else ""
        if len(signs) == 1:
            proven.add(signs)
        elif signs and any(b"," in text for text in texts):
            in_every_cell.append(all(b"," in text for text in texts))
    if len(proven) == 1:
        return proven.pop()
    return "," if delimiter == ";" and not proven and in_every_cell and all(in_every_cell) else ""
