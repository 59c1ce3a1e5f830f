"""Cells of tables as people write them: numbers, gaps and words, told apart column by column."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.csv_fields import FieldError, counted, decoded, excerpt, remedy
from exclusivity.datasets.notations import (
    GAPS,
    Notation,
    are_codes,
    as_numbers,
    common_signs,
    is_grouped,
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
    """What is known about a column before it is read.

    Attributes
    ----------
    kind : {"number", "category", None}
        What the user says, or the model knows; None: whatever all the cells are.
    decimal : {",", ".", ""}
        The decimal sign of the file, for a column that leaves it open.
    model : Notation or None
        How the numbers were written that a model was fitted to.
    is_training : bool
        Whether a text among numbers that are wanted becomes a gap; else it is an error, unless the model was
        fitted to such.
    """

    kind: str | None = None
    decimal: str = ""
    model: Notation | None = None
    is_training: bool = True


ANYTHING = Expected()


def read_cells(cells: NDArray[np.bytes_], expected: Expected = ANYTHING) -> Cells:
    """Tell what a column of text holds.

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
    if expected.is_training and expected.kind == "number" and notation is not None:
        notation = replace(notation, texts=True)
    return replace(read, values=values, notation=notation)


class _Column:
    """The cells of a column that are no gaps, on their way to numbers."""

    def __init__(self, known: NDArray[np.bytes_], expected: Expected) -> None:
        self._known, self._expected, self._texts = known, expected, known.tolist()

    def read(self) -> Cells | None:
        """Numbers, or None where they are words."""
        if not (self._may_be_commas or self._is_in_percent):
            found = self._plain()
            if found is not None:
                return found
        found = self._numbers()
        if found is None and self._expected.kind == "number":
            return self._forced() if self._expected.is_training else self._as_trained()
        if found is None:
            self._refuse_mixtures()
        return found

    @property
    def _may_be_commas(self) -> bool:
        """Whether a point may stand between thousands."""
        return "," in (self._expected.decimal, self._expected.model and self._expected.model.decimal)

    @property
    def _is_in_percent(self) -> bool:
        """Whether it was when the model was trained: a number without a sign may then be a share."""
        return self._expected.model is not None and self._expected.model.percent

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
        grouped = bool(decimal) and is_grouped(texts, decimal)
        model = self._expected.model
        if model is not None and grouped and not model.grouped and len(signs) > 1:
            raise self._undecided(texts, "the model knows no thousands in this column")
        notation = Notation(decimal, grouped, percent)
        shown = any(b"," in text or b"." in text for text in texts)  # not only in other columns
        return Cells(values, notation, (notation if shown else replace(notation, decimal="")).note)

    def _without_percent(self) -> tuple[list[bytes], bool]:
        """The texts without the per cent signs behind them; nothing where one is missing."""
        texts = self._texts
        if self._expected.model is not None:  # cell by cell, whatever the others are like
            return (list(map(of_percent, texts)) if self._is_in_percent else texts), False
        if texts and all(text.endswith(b"%") for text in texts):
            return list(map(of_percent, texts)), True
        return texts, False

    def _decided(self, signs: str, texts: list[bytes]) -> str:
        """The decimal sign: what the column proves, else what the file says, else what the model knows."""
        if len(signs) == 1:
            return signs
        model = self._expected.model
        said = self._expected.decimal or ("" if model is None else model.decimal)
        if said or not any(b"," in text or b"." in text for text in texts):
            return said
        if any(b"," in text for text in texts):
            raise self._undecided(texts, "nothing else in the file shows which")
        return "."

    def _undecided(self, texts: list[bytes], why: str) -> ColumnError:
        text = next(text for text in texts if b"," in text or b"." in text)
        row = next(row for row, cell in enumerate(self._texts) if cell.startswith(text))
        comma, point = (f"{as_numbers([text], sign)[0]:.15g}" for sign in ",.")
        cause = (
            f"found {_shown(text)}, which is {comma} with a decimal comma and {point} with a decimal point; "
            f"{why}."
        )
        if not self._expected.is_training:
            return ColumnError(f"{cause} Write it without thousands.", row)
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

    def _as_trained(self) -> Cells:
        """Numbers, read as if no texts stood among them; gaps elsewhere, if the model was fitted to such."""
        is_number = np.array([bool(signs_of(text)) for text in self._without_percent()[0]], dtype=bool)
        if is_number.all() or self._expected.model is None or not self._expected.model.texts:
            self._refused()
        values = np.full(len(is_number), np.nan)
        try:
            read = _Column(self._known[is_number], self._expected).read() if is_number.any() else None
        except ColumnError as error:
            row = None if error.row is None else int(np.flatnonzero(is_number)[error.row])
            raise ColumnError(error.cause, row, error.ways) from None
        if read is not None:
            values[is_number] = read.values
        return Cells(values, self._expected.model, n_lost=int((~is_number).sum()))

    def _refused(self) -> NoReturn:
        """What a model that waits for numbers cannot take."""
        bodies, _ = self._without_percent()
        for row, (text, body) in enumerate(zip(self._texts, bodies, strict=True)):
            if not signs_of(body):
                raise ColumnError(
                    f"found {_shown(text)}; expected a number, or nothing.{self._why_not(text)}", row
                )
        raise self._contradiction(bodies)

    def _why_not(self, text: bytes) -> str:
        if self._is_in_percent and signs_of(text):
            return " The model was fitted to per cent: write the sign, as the number may be a share."
        if not self._is_in_percent and signs_of(of_percent(text)):
            return " The model was fitted to numbers without per cent signs."
        return _advice(text)

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
            self._refused()
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
