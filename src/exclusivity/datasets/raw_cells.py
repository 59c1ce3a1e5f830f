"""Cells of tables as people write them: numbers, gaps and words, told apart column by column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.csv_fields import FieldError, decoded, excerpt, is_number, remedy

GAPS = ("", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""What people write where there is nothing."""

_PLAIN = re.compile(rb"[-+.0-9eE ]*+")
_CODE = re.compile(rb"0\d+")
_ALMOST = re.compile(r"[-+]?[$€£]?\s*\d[\d.,' \u00a0\u202f]*\s*(?:%|[$€£])?")


@dataclass(frozen=True, eq=False)
class Cells:
    """A column of text, read.

    Attributes
    ----------
    values : ndarray
        float64 with NaN for gaps, or Python strings with None for gaps.
    note : str
        What was peculiar about it, or "".
    """

    values: NDArray[Any]
    note: str = ""


def read_cells(
    cells: NDArray[np.bytes_],
    wanted: str | None = None,
    *,
    decimal_comma: bool = True,
    is_training: bool = True,
) -> Cells:
    """Tell what a column of text holds.

    Parameters
    ----------
    cells : ndarray of bytes
        The fields, without blanks around them.
    wanted : {"number", "category"}, default=None
        What the user says, or the model knows; None: whatever all the cells are.
    decimal_comma : bool, default=True
        Whether a comma may stand before decimals; not where three digits follow each: those may be thousands.
    is_training : bool, default=True
        Whether a text among numbers that are wanted becomes a gap; else it is an error.

    Returns
    -------
    read : Cells

    Raises
    ------
    FieldError
        Where numbers and words are mixed and nobody says what is meant.

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
    if wanted == "category" or (wanted is None and _are_codes(known)):
        note = "" if wanted else "codes: zeros in front"
        return Cells(_words(cells, gaps), note)
    numbers, note = _numbers(known, decimal_comma)
    if numbers is None and wanted == "number":
        numbers, note = _forced(known, is_training)
    if numbers is None:
        _refuse_mixtures(known)
        return Cells(_words(cells, gaps))
    values = np.full(len(cells), np.nan)
    values[~gaps] = numbers
    return Cells(values, note)


def _are_codes(known: NDArray[np.bytes_]) -> bool:
    """Digits with zeros in front: parts of a code, such as those of places, and no amounts."""
    texts = known.tolist()
    return any(_CODE.fullmatch(text) for text in texts[:1000]) and all(text.isdigit() for text in texts)


def _numbers(known: NDArray[np.bytes_], decimal_comma: bool) -> tuple[NDArray[np.float64] | None, str]:
    """All of them as numbers, however they are written."""
    found = _plain(known)
    if found is not None:
        return found, ""
    share = np.char.endswith(known, b"%") if len(known) else np.zeros(0, dtype=bool)
    if len(known) and share.all():
        found, note = _numbers(np.char.strip(np.char.rstrip(known, b"%")), decimal_comma)
        return found, f"per cent{', ' if note else ''}{note}"
    if decimal_comma and _has_decimal_commas(known.tolist()):
        return _plain(np.char.replace(known, b",", b".")), "decimal comma"
    return None, ""


def _has_decimal_commas(texts: list[bytes]) -> bool:
    ends = [text.partition(b",")[2] for text in texts if b"," in text]
    at_most_one = all(b"," not in end for end in ends) and not any(b"." in text for text in texts)
    return at_most_one and any(len(end) != 3 for end in ends)


def _plain(known: NDArray[np.bytes_]) -> NDArray[np.float64] | None:
    # Within these characters numpy accepts exactly the decimal numbers.
    if _PLAIN.fullmatch(b" ".join(known.tolist())) is None:
        return None
    try:
        found = known.astype(np.float64)
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _forced(known: NDArray[np.bytes_], is_training: bool) -> tuple[NDArray[np.float64], str]:
    """Numbers where there are some, gaps elsewhere; an error where a model is waiting for numbers."""
    texts = known.tolist()
    wrong = [text for text in dict.fromkeys(texts) if not is_number(text)]
    if not is_training:
        raise FieldError(f"found {excerpt(decoded(wrong[0]))}; expected a number, or nothing.")
    bad = set(wrong)
    found = np.array([np.nan if text in bad else float(text) for text in texts])
    return found, f"{int(np.isnan(found).sum())} texts taken for gaps"


def _refuse_mixtures(known: NDArray[np.bytes_]) -> None:
    """Words among numbers, and what is nearly a number, are more likely slips than categories."""
    distinct = list(dict.fromkeys(known.tolist()))
    words = [text for text in distinct if not is_number(text)]
    n_numbers = len(distinct) - len(words)
    if n_numbers and n_numbers >= len(words):
        raise FieldError(
            f"it holds numbers, and {len(words)} different texts such as {excerpt(decoded(words[0]))}."
            f"{remedy(decoded(words[0]))}"
        )
    almost = [text for text in map(decoded, words[:1000]) if _ALMOST.fullmatch(text)]
    if almost and 2 * len(almost) >= min(len(words), 1000) and not all(map(str.isdigit, almost)):
        raise FieldError(f"it holds numbers such as {excerpt(almost[0])}.{remedy(almost[0])}")


def _words(cells: NDArray[np.bytes_], gaps: NDArray[np.bool_]) -> NDArray[Any]:
    """Python strings, equal ones once in memory, None for gaps."""
    texts = cells.tolist()
    known = {text: decoded(text) for text in dict.fromkeys(texts)}
    words = np.empty(len(texts), dtype=object)
    words[:] = [known[text] for text in texts]
    words[gaps] = None
    return words
