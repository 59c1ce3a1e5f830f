"""Cells of tables as people write them: numbers, missing values, dates and words, column by column.

How a column is written (``Notation``: decimal sign, thousands, per cent signs) is decided from all of its
training cells; for a model each cell is then read by the notation of its column and by nothing else. A text
proves its decimal sign where it is a number under one sign and none under the other: ``0,624`` and
``1.038,0`` have a decimal comma, ``2.5`` and ``1,234,567`` a decimal point. ``1,038`` leaves it open.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMBER_TEXT = re.compile(rb"[-+.0-9eE]++")
_EXCERPT = 40
MISSING = ("", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""What people write where there is nothing."""

_MISSING_BYTES = frozenset(text.encode() for text in MISSING)
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
    is_text = [not fits and text not in _MISSING_BYTES for text, fits in zip(texts, is_number, strict=True)]
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
        texts = [text.rstrip(b"%").rstrip() for text in column.tolist() if text not in _MISSING_BYTES]
        signs = common_signs(texts) if texts else ""
        if len(signs) == 1:
            proven.add(signs)
        elif signs and any(b"," in text for text in texts):
            in_every_cell.append(all(b"," in text for text in texts))
    if len(proven) == 1:
        return proven.pop()
    return "," if delimiter == ";" and not proven and in_every_cell and all(in_every_cell) else ""


def excerpt(text: str) -> str:
    """The text in quotes, cut when it is long.

    Examples
    --------
    >>> excerpt("abc" * 1000)
    "'abcabcabcabcabcabcabcabcabcabcabcabcabca...'"
    """
    return repr(text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}...")


def counted(count: int, noun: str) -> str:
    """So many of something, one of them included.

    Examples
    --------
    >>> counted(1, "text"), counted(2, "text")
    ('1 text', '2 texts')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def is_number(text: bytes) -> bool:
    """Whether the text is a decimal number, finite or not."""
    try:
        return _NUMBER_TEXT.fullmatch(text) is not None and not math.isnan(float(text))
    except ValueError:
        return False


def remedy(text: str) -> str:
    """What to do about a number as people write it, and programs do not read it.

    Examples
    --------
    >>> remedy("1,5"), remedy("7 %")
    (' Write decimals with a point (1.5).', ' Write it without the per cent sign, in all rows.')
    """
    if re.fullmatch(r"[-+]?[\d.,]+\s*%", text):
        return " Write it without the per cent sign, in all rows."
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})", text):
        return f" Write decimals with a point ({text.replace(',', '.')}), thousands without a comma."
    if re.fullmatch(r"[-+]?\d*,\d+", text):
        return f" Write decimals with a point ({text.replace(',', '.')})."
    if re.fullmatch(r"[-+]?\d{1,3}([,.' \u00a0\u202f]\d{3})+([.,]\d+)?", text):
        return " Write thousands without separators, decimals with a point."
    return ""


def label(text: str) -> float | str:
    """Return the number or the text of a target.

    What is only almost a number (infinity, 1_000, the digits of other scripts) is neither: a ``ValueError``.

    Examples
    --------
    >>> label("-1"), label("ill")
    (-1.0, 'ill')
    """
    try:
        value = float(text)
    except ValueError:
        return text
    if is_number(text.encode()) and math.isfinite(value):
        return value
    raise ValueError(f"found {excerpt(text)}; expected a finite decimal number, or a class in words.")


_PLAIN = re.compile(rb"[-+.0-9eE ]*+")
_ALMOST = re.compile(r"[-+]?[$€£]?\s*\d[\d.,' \u00a0\u202f]*\s*(?:%|[$€£])?")

_HARDLY_ANY = 0.1
"""A column with a smaller share of numbers than this is none of numbers, whatever its owner says."""

_SIGNS = {",": "comma", ".": "point"}
_WAYS = ("numeric", "categorical", "drop")


class ColumnError(Exception):
    """Why a column is refused.

    Attributes
    ----------
    row : int or None
        The first row that is wrong, counted from 0.
    ways : tuple of str
        The options that would make something of it: of "numeric", "categorical", "drop", "decimal".
    """

    def __init__(self, cause: str, row: int | None = None, ways: tuple[str, ...] = ()) -> None:
        super().__init__(cause)
        self.cause, self.row, self.ways = cause, row, ways


@dataclass(frozen=True, eq=False)
class Cells:
    """A column of text, read.

    Attributes
    ----------
    values : ndarray
        float64 with NaN for gaps, or Python strings with None for gaps.
    notation : Notation or None
        How its numbers are written; None for words.
    remark : str
        What is peculiar about how it is written, or "".
    n_lost : int
        Texts that were taken for gaps.
    """

    values: NDArray[Any]
    notation: Notation | None = None
    remark: str = ""
    n_lost: int = 0

    @property
    def note(self) -> str:
        """All that was peculiar about it, or ""."""
        lost = f"{counted(self.n_lost, 'text')} taken for gaps" if self.n_lost else ""
        return ", ".join(filter(None, [self.remark, lost]))


@dataclass(frozen=True)
class Expected:
    """What is known about a column of training rows before it is read.

    Attributes
    ----------
    kind : {"number", "category", None}
        What the user says; None: whatever all the cells are.
    decimal : {",", ".", ""}
        The decimal sign of the file, for a column that leaves it open.
    """

    kind: str | None = None
    decimal: str = ""


ANYTHING = Expected()


def read_cells(cells: NDArray[np.bytes_], expected: Expected = ANYTHING) -> Cells:
    """Tell what a column of training rows holds, from all of its cells.

    Parameters
    ----------
    cells : ndarray of bytes
        The fields, without blanks around them.
    expected : Expected
        What is known about it.

    Returns
    -------
    read : Cells

    Raises
    ------
    ColumnError
        Where numbers and words are mixed and nobody says what is meant, or numbers can be read in two ways.

    Examples
    --------
    >>> read_cells(np.array([b"1,5", b"NA", b"2"])).values
    array([1.5, nan, 2. ])
    >>> read_cells(np.array([b"007", b"012"])).values
    array(['007', '012'], dtype=object)
    """
    gaps = np.zeros(len(cells), dtype=bool)
    for gap in MISSING:
        gaps |= cells == gap.encode()
    known = cells[~gaps]
    if expected.kind == "category" or (expected.kind is None and are_codes(known.tolist())):
        remark = "" if expected.kind else "codes: zeros in front"
        return Cells(_words(cells, gaps), remark=remark)
    try:
        read = _Column(known, expected).read()
    except ColumnError as error:
        row = None if error.row is None else int(np.flatnonzero(~gaps)[error.row])
        raise ColumnError(error.cause, row, error.ways) from None
    if read is None:
        return Cells(_words(cells, gaps))
    values = np.full(len(cells), np.nan)
    values[~gaps] = read.values
    notation = read.notation
    if expected.kind == "number" and notation is not None:
        notation = replace(notation, texts=True)
    return replace(read, values=values, notation=notation)


def read_by_notation(cells: NDArray[np.bytes_], notation: Notation, decimal: str = "") -> Cells:
    """Read numbers for a model, each cell by the notation of its column and by nothing else.

    No other cell matters: a row is read alike alone, in any file and beside any other rows. What the notation
    does not cover is refused and never taken for another notation.

    Parameters
    ----------
    cells : ndarray of bytes
        The fields, without blanks around them.
    notation : Notation
        How the numbers of this column were written in training. A decimal sign that no number has shown is a
        point.
    decimal : {",", ".", ""}
        The decimal sign that the user states, in place of the model's; the other one may then separate
        thousands.

    Raises
    ------
    ColumnError
        For the first cell that is no number under the notation, unless it is a text and training took texts
        for gaps; and for a comma or point that may separate thousands or decimals, where training had no
        thousands in this column.

    Examples
    --------
    >>> read_by_notation(np.array([b"1.038", b"NA", b"910,6"]), Notation(",", grouped=True)).values
    array([1038. ,    nan,  910.6])
    """
    sign = decimal or notation.decimal or "."
    values, is_text = numbers_among(cells, replace(notation, decimal=sign))
    suspect = is_text
    if not (decimal or notation.grouped) and OTHER_SIGN[sign] in cells.tobytes():
        suspect = is_text | (np.char.find(cells, OTHER_SIGN[sign]) >= 0)
    n_lost = 0
    for row in np.flatnonzero(suspect).tolist():
        text: bytes = cells[row]
        signs = signs_of(of_percent(text) if notation.percent else text)
        if not signs and notation.texts:
            n_lost += 1
        elif is_text[row] or len(signs) > 1:
            raise _unreadable(text, row, notation, decimal)
    return Cells(values, notation, n_lost=n_lost)


def _unreadable(text: bytes, row: int, notation: Notation, decimal: str) -> ColumnError:
    """Say why a model cannot take a cell for a number."""
    body = of_percent(text) if notation.percent else text
    signs, sign = signs_of(body), decimal or notation.decimal or "."
    ways = () if decimal else ("decimal",)
    if len(signs) > 1 and not decimal and not notation.grouped and OTHER_SIGN[sign] in body:
        cause = f"{_two_readings(body)}; the model knows no thousands in this column."
        return ColumnError(f"{cause} Write it without thousands.", row, ways)
    if signs and sign not in signs:
        fitted = "the options state" if decimal else "this column of the model has"
        cause = f"found {_shown(text)}, with a decimal {_SIGNS[signs]}; {fitted} a decimal {_SIGNS[sign]}."
        return ColumnError(cause, row, ways)
    if signs:
        return ColumnError(f"found {_shown(text)}, which is too large.", row)
    cause = f"found {_shown(text)}; expected a number, or nothing."
    if notation.percent and signs_of(text):
        hint = " The model was fitted to per cent: write the sign, as the number may be a share."
    elif not notation.percent and signs_of(of_percent(text)):
        hint = " The model was fitted to numbers without per cent signs."
    else:
        hint = _advice(text)
    return ColumnError(cause + hint, row)


def _two_readings(text: bytes) -> str:
    comma, point = (f"{as_numbers([text], sign)[0]:.15g}" for sign in ",.")
    return f"found {_shown(text)}, which is {comma} with a decimal comma and {point} with a decimal point"


class _Column:
    """The cells of a column that are no gaps, on their way to numbers."""

    def __init__(self, known: NDArray[np.bytes_], expected: Expected) -> None:
        self._known, self._expected, self._texts = known, expected, known.tolist()

    def read(self) -> Cells | None:
        """Numbers, or None where they are words."""
        found = None if self._expected.decimal == "," else self._plain()  # there a point may group thousands
        if found is None:
            found = self._numbers()
        if found is None and self._expected.kind == "number":
            return self._forced()
        if found is None:
            self._refuse_mixtures()
        return found

    def _plain(self) -> Cells | None:
        """The quick way for numbers as programs write them."""
        # Within these characters numpy accepts exactly the decimal numbers.
        joined = b" ".join(self._texts)
        if _PLAIN.fullmatch(joined) is None:
            return None
        try:
            found = self._known.astype(np.float64)
        except ValueError:
            return None
        decimal = "." if b"." in joined else self._expected.decimal
        return Cells(found, Notation(decimal)) if np.isfinite(found).all() else None

    def _numbers(self) -> Cells | None:
        """All of them as numbers, however they are written."""
        texts, percent = self._without_percent()
        signs = common_signs(texts)
        if not signs:
            return None
        decimal = self._decided(signs, texts)
        values = as_numbers(texts, decimal or ".")
        if not np.isfinite(values).all():
            return None
        notation = Notation(decimal, bool(decimal) and is_grouped(texts, decimal), percent)
        shown = any(b"," in text or b"." in text for text in texts)  # not only in other columns
        return Cells(values, notation, (notation if shown else replace(notation, decimal="")).note)

    def _without_percent(self) -> tuple[list[bytes], bool]:
        """The texts without the per cent signs behind them; nothing where one is missing."""
        texts = self._texts
        if texts and all(text.endswith(b"%") for text in texts):
            return list(map(of_percent, texts)), True
        return texts, False

    def _decided(self, signs: str, texts: list[bytes]) -> str:
        """The decimal sign: what the column proves, else what the file says."""
        if len(signs) == 1:
            return signs
        said = self._expected.decimal
        if said or not any(b"," in text or b"." in text for text in texts):
            return said
        if any(b"," in text for text in texts):
            raise self._undecided(texts)
        return "."

    def _undecided(self, texts: list[bytes]) -> ColumnError:
        text = next(text for text in texts if b"," in text or b"." in text)
        row = next(row for row, cell in enumerate(self._texts) if cell.startswith(text))
        cause = f"{_two_readings(text)}; nothing else in the file shows which."
        return ColumnError(cause, row, ("decimal", "categorical", "drop"))

    def _forced(self) -> Cells:
        """Numbers where there are some, gaps elsewhere."""
        bodies = self._texts
        percent = 2 * sum(text.endswith(b"%") for text in bodies) > len(bodies)
        if percent:
            bodies = list(map(of_percent, bodies))
        signs = [signs_of(body) for body in bodies]
        n_comma, n_point = (sum(sign in each for each in signs) for sign in ",.")
        readable = [body for body, each in zip(bodies, signs, strict=True) if each]
        decimal = max(",.", key={",": n_comma, ".": n_point}.__getitem__)
        if n_comma == n_point:
            decimal = self._decided(",.", readable) or "."
        places = [place for place, each in enumerate(signs) if decimal in each]
        values = np.full(len(bodies), np.nan)
        values[places] = as_numbers([bodies[place] for place in places], decimal)
        values[np.isinf(values)] = np.nan
        self._check_losses(values)
        notation = Notation(decimal, is_grouped([bodies[place] for place in places], decimal), percent)
        return Cells(values, notation, notation.note, int(np.isnan(values).sum()))

    def _check_losses(self, values: NDArray[np.float64]) -> None:
        n_numbers = int(np.isfinite(values).sum())
        if n_numbers < max(1, _HARDLY_ANY * len(values)):
            row = int(np.flatnonzero(np.isnan(values))[0])
            count = f"only {n_numbers}" if n_numbers else "none"
            verb = "is one" if n_numbers < 2 else "are"
            raise ColumnError(
                f"it is said to hold numbers, and {count} of its {counted(len(values), 'cell')} {verb}; the "
                f"first that is none is {_shown(self._texts[row])}.",
                row,
                ("categorical", "drop"),
            )

    def _contradiction(self, texts: list[bytes]) -> ColumnError:
        """Numbers one by one, but not all of them in one notation; or one that is too large."""
        proofs = [signs_of(text) for text in texts]
        rare, usual = sorted(",.", key=proofs.count)
        if rare not in proofs:
            values = as_numbers(texts, common_signs(texts)[0])
            row = int(np.flatnonzero(np.isinf(values))[0])
            return ColumnError(f"found {_shown(texts[row])}, which is too large.", row, _WAYS)
        row = proofs.index(rare)
        return ColumnError(
            f"found {_shown(texts[row])}, with a decimal {_SIGNS[rare]}, among numbers with a decimal "
            f"{_SIGNS[usual]} such as {_shown(texts[proofs.index(usual)])}; write all of them alike.",
            row,
            _WAYS,
        )

    def _refuse_mixtures(self) -> None:
        """Words among numbers, and what is nearly a number, are more likely slips than categories."""
        distinct = list(dict.fromkeys(self._texts))
        words = [text for text in distinct if not signs_of(text)]
        if not words:
            raise self._contradiction(self._texts)
        row, shown = self._texts.index(words[0]), _decoded(words[0])
        if 2 * len(words) <= len(distinct):
            texts = (
                f"a text, {excerpt(shown)}"
                if len(words) == 1
                else (f"{len(words)} different texts such as {excerpt(shown)}")
            )
            raise ColumnError(f"it holds numbers, and {texts}.{_advice(words[0])}", row, _WAYS)
        looked_at = [_decoded(word) for word in words[:1000]]
        self._refuse_dates(looked_at)
        almost = [text for text in looked_at if _ALMOST.fullmatch(text)]
        if almost and 2 * len(almost) >= min(len(words), 1000) and not all(map(str.isdigit, almost)):
            row = self._texts.index(almost[0].encode())
            plain = "".join(letter for letter in almost[0] if letter in "-+0123456789.,")
            way_out = _advice(almost[0].encode()) or f" As numbers: write {plain}."
            cause = f"it holds numbers such as {excerpt(almost[0])}.{way_out}"
            raise ColumnError(cause, row, ("categorical", "drop"))

    def _refuse_dates(self, words: list[str]) -> None:
        """Dates in a form that is not read, and a word among dates, are slips as well."""
        found = dates_among(words)
        if found is not None:
            text, written = found
            cause = f"it looks like dates, such as {excerpt(text)}; write {written}."
            raise ColumnError(cause, self._texts.index(text.encode()), ("categorical", "drop"))
        stray = stray_among_dates(words)
        if stray is not None:
            cause = f"it holds dates, and a text, {excerpt(stray)}; write a date, or nothing."
            raise ColumnError(cause, self._texts.index(stray.encode()), ("categorical", "drop"))


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _shown(text: bytes) -> str:
    return excerpt(_decoded(text))


def _advice(text: bytes) -> str:
    return remedy(_decoded(text))


def _words(cells: NDArray[np.bytes_], gaps: NDArray[np.bool_]) -> NDArray[Any]:
    """Python strings, equal ones once in memory, None for gaps."""
    texts = cells.tolist()
    known = {text: _decoded(text) for text in dict.fromkeys(texts)}
    words = np.empty(len(texts), dtype=object)
    words[:] = [known[text] for text in texts]
    words[gaps] = None
    return words


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
