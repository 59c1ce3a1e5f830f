"""Cells of tables as people write them: numbers, gaps and words, told apart column by column."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.csv_fields import FieldError, counted, decoded, excerpt, remedy
from exclusivity.datasets.notations import (
    GAPS,
    OTHER_SIGN,
    Notation,
    are_codes,
    as_numbers,
    common_signs,
    is_grouped,
    numbers_among,
    of_percent,
    signs_of,
)
from exclusivity.datasets.written_dates import dates_among, stray_among_dates

_PLAIN = re.compile(rb"[-+.0-9eE ]*+")
_ALMOST = re.compile(r"[-+]?[$€£]?\s*\d[\d.,' \u00a0\u202f]*\s*(?:%|[$€£])?")

_HARDLY_ANY = 0.1
"""A column with a smaller share of numbers than this is none of numbers, whatever its owner says."""

_SIGNS = {",": "comma", ".": "point"}
_WAYS = ("numeric", "categorical", "drop")


class ColumnError(FieldError):
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
        self.row, self.ways = row, ways


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
    for gap in GAPS:
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
        row, shown = self._texts.index(words[0]), decoded(words[0])
        if 2 * len(words) <= len(distinct):
            texts = (
                f"a text, {excerpt(shown)}"
                if len(words) == 1
                else (f"{len(words)} different texts such as {excerpt(shown)}")
            )
            raise ColumnError(f"it holds numbers, and {texts}.{_advice(words[0])}", row, _WAYS)
        looked_at = [decoded(word) for word in words[:1000]]
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


def _shown(text: bytes) -> str:
    return excerpt(decoded(text))


def _advice(text: bytes) -> str:
    return remedy(decoded(text))


def _words(cells: NDArray[np.bytes_], gaps: NDArray[np.bool_]) -> NDArray[Any]:
    """Python strings, equal ones once in memory, None for gaps."""
    texts = cells.tolist()
    known = {text: decoded(text) for text in dict.fromkeys(texts)}
    words = np.empty(len(texts), dtype=object)
    words[:] = [known[text] for text in texts]
    words[gaps] = None
    return words
