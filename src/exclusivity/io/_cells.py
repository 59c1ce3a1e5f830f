"""Cells of tables as people write them: numbers, missing values, dates and text.

How a column is written is a ``ColumnRule``: found by ``detect_rule`` in the distinct texts of a training
column, then applied by ``read_column``. That function also reads rows for a model, so how a cell is read
depends on the rule and on the cell alone. A text proves its decimal sign where it is a number under one sign
and none under the other: ``0,624`` and ``1.038,0`` have a decimal comma, ``2.5`` and ``1,234,567`` a decimal
point. ``1,038`` leaves it open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._reading import excerpt

MISSING = ("", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""Texts for missing values."""

MOST_TEXTS = 2_000
"""So many distinct texts of a column are looked at to find its rule."""

OTHER_SIGN = {".": ",", ",": "."}
"""The separator of thousands, by the decimal sign."""

_PLAIN = r"[-+]?(?:[0-9]+{0}?[0-9]*|{0}[0-9]+)(?:[eE][-+]?[0-9]+)?"
_GROUPED = r"[-+]?[1-9][0-9]{{0,2}}(?:{1}[0-9]{{3}})+(?:{0}[0-9]+)?"
# In the syntax that Python and the RE2 of pyarrow share.
_NUMBER = {
    sign: f"(?:{_PLAIN}|{_GROUPED})".format(re.escape(sign), re.escape(other))
    for sign, other in OTHER_SIGN.items()
}
_IS_NUMBER = {sign: re.compile(pattern) for sign, pattern in _NUMBER.items()}
_ALMOST = re.compile(r"[-+]?[$€£]?\s*[0-9][0-9.,' \u00a0\u202f]*\s*(?:%|[$€£])?")
_NAMES = {",": "comma", ".": "point"}
_FEWEST_NUMBERS = 0.1
"""A column with a smaller share of numbers than this is none of numbers, whatever its owner says."""

DATE_FORM = "year-month-day, such as 2024-12-31 or 2024-12-31 23:59:00"
# As exclusivity.tables reads them: by the clock on the wall, whatever the offset of the time zone behind it.
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?: ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?"
_ISO = re.compile(rf"[0-9]{{4}}([-/])[0-9]{{2}}\1[0-9]{{2}}(?:{_CLOCK})?")
_DATE = re.compile(
    r"(?:\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2(?:\d{4}|\d{2}))(?:[T ,]+\d{1,2}[:.]\d\d.*)?"
)
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class ColumnRule:
    """Read the cells of a column.

    Attributes
    ----------
    kind : {"number", "category", "date"}
        What the column holds.
    notation : str
        How its numbers are written: "," or "." before decimals (neither where no number has shown it), "'"
        for thousands, "%" for per cent signs, "?" where texts among numbers or dates are missing values.
    required : bool
        Whether every cell must be a number, as a model of numbers alone needs them.

    Examples
    --------
    >>> ColumnRule("number", ",'%").note
    'per cent, decimal comma, thousands points'
    """

    kind: str
    notation: str = ""
    required: bool = False

    @property
    def decimal(self) -> str:
        """The decimal sign, "" where no number has shown it."""
        return self.notation[:1] if self.notation[:1] in OTHER_SIGN else ""

    @property
    def is_plain(self) -> bool:
        """True where numbers are written as programs write them, so that pyarrow can parse them."""
        return self.kind == "number" and self.decimal != "," and "%" not in self.notation

    @property
    def note(self) -> str:
        """The peculiarities of the notation in words; empty for 1234.5."""
        thousands = f"thousands {'points' if self.decimal == ',' else 'commas'}"
        words = {"%": "per cent", ",": "decimal comma", "'": thousands}
        return ", ".join(words[sign] for sign in words if sign in self.notation)


class ColumnError(Exception):
    """Why a column is refused: the text that is wrong, and arguments of ``read_table`` that would help."""

    def __init__(self, cause: str, text: str, ways: tuple[str, ...] = ()) -> None:
        super().__init__(cause)
        self.cause, self.text, self.ways = cause, text, ways


def is_number(text: str) -> bool:
    """Return whether the text is a decimal number as programs write it, finite or not."""
    return "," not in text and _IS_NUMBER["."].fullmatch(text) is not None


def _signs(texts: Iterable[str]) -> str:
    """Return the decimal signs under which all texts are numbers: both, one or none."""
    found = ".,"
    for text in texts:
        found = "".join(sign for sign in found if _IS_NUMBER[sign].fullmatch(text))
    return found


def _is_date(text: str) -> bool:
    return _ISO.fullmatch(text) is not None


def _without_percent(text: str) -> str:
    """Return what stands before a per cent sign; nothing where there is none: it may then be a share."""
    return text[:-1].rstrip() if text.endswith("%") else ""


def decimal_of_file(columns: Iterable[Sequence[str]], delimiter: str) -> str:
    """Return the decimal sign that the distinct texts of columns agree on; "" where they leave it open.

    Columns that prove a sign speak for the others. Where none does, commas in every cell of a column are
    decimal commas if semicolons separate the fields: that is what semicolons are for.

    Examples
    --------
    >>> open_sign, proof = ["1,038", "2,250"], ["0,5"]
    >>> [decimal_of_file(columns, ",") for columns in ([open_sign, proof], [open_sign])]
    [',', '']
    >>> decimal_of_file([open_sign], ";")
    ','
    """
    proven, in_every_cell = set(), []
    for texts in columns:
        bodies = [text.rstrip("%").rstrip() for text in texts]
        signs = _signs(bodies) if bodies else ""
        if len(signs) == 1:
            proven.add(signs)
        elif signs and any("," in body for body in bodies):
            in_every_cell.append(all("," in body for body in bodies))
    if len(proven) == 1:
        return proven.pop()
    return "," if delimiter == ";" and not proven and in_every_cell and all(in_every_cell) else ""


def detect_rule(
    texts: Mapping[str, int], said: str | None = None, decimal: str = ""
) -> tuple[ColumnRule, str]:
    """Return the rule of a training column, and what is peculiar about it (or "").

    ``texts`` says how often each distinct text occurs, missing values left out; ``said`` what the user says,
    "number" or "category"; ``decimal`` the decimal sign of the file, for a column that leaves it open.
    Numbers and texts that are mixed, and numbers that can be read in two ways, are a ``ColumnError``.

    Examples
    --------
    >>> detect_rule({"1,5": 1, "2": 3})
    (ColumnRule(kind='number', notation=',', required=False), 'decimal comma')
    >>> detect_rule({"007": 2, "012": 1})
    (ColumnRule(kind='category', notation='', required=False), 'codes: zeros in front')
    """
    words, n_cells = list(texts), sum(texts.values())
    if said == "category":
        return ColumnRule("category"), ""
    are_digits = all(text.isascii() and text.isdigit() for text in words)
    if said is None and are_digits and any(len(text) > 1 and text[0] == "0" for text in words):
        return ColumnRule("category"), "codes: zeros in front"
    n_percent = sum(count for text, count in texts.items() if text.endswith("%"))
    percent = 2 * n_percent > n_cells if said == "number" else 0 < n_percent == n_cells
    bodies = list(map(_without_percent, words)) if percent else words
    signs = _signs(bodies)
    if said is None and not signs:
        _refuse_mixtures(words)
        return ColumnRule("date" if words and all(map(_is_date, words)) else "category"), ""
    signs = signs or _usual_signs(texts, bodies)
    shown = [body for body in bodies if ("," in body or "." in body) and _signs([body])]
    if len(signs) == 1:
        decimal = signs
    elif not decimal and shown:
        undecided = next((body for body in shown if "," in body), None)
        if undecided is not None:
            ways = [float(undecided.replace(OTHER_SIGN[sign], "").replace(sign, ".")) for sign in ",."]
            cause = f"found {excerpt(undecided)}, which is {ways[0]:.15g} with a decimal comma and "
            cause += f"{ways[1]:.15g} with a decimal point; nothing else in the file shows which."
            raise ColumnError(cause, words[bodies.index(undecided)], ("decimal", "categorical", "ignore"))
        decimal = "."
    is_grouped = any(decimal in _signs([body]) and OTHER_SIGN[decimal] in body for body in shown)
    notation = decimal + "'" * is_grouped + "%" * percent
    remark = ColumnRule("number", notation if shown else "%" * percent).note
    return ColumnRule("number", notation + "?" * (said == "number")), remark


def _usual_signs(texts: Mapping[str, int], bodies: Sequence[str]) -> str:
    """Return the sign of most numbers in a column of numbers by decree; both where they are as many."""
    found = {text: _signs([body]) for text, body in zip(texts, bodies, strict=True)}
    n_cells, n_numbers = sum(texts.values()), sum(texts[text] for text, signs in found.items() if signs)
    if n_numbers < max(1, _FEWEST_NUMBERS * n_cells):
        first = next(text for text, signs in found.items() if not signs)
        cause = f"it is said to hold numbers, and {n_numbers} of its {n_cells} cells are numbers; "
        cause += f"the first that is none is {excerpt(first)}."
        raise ColumnError(cause, first, ("categorical", "ignore"))
    points, commas = (sum(texts[text] for text, signs in found.items() if sign in signs) for sign in ".,")
    return ".," if points == commas else "." if points > commas else ","


def _refuse_mixtures(texts: list[str]) -> None:
    """Refuse texts among numbers or dates, and what is nearly one: more likely slips than categories."""
    texts, ways = texts[:1000], ("categorical", "ignore")
    signs = [_signs([text]) for text in texts]
    if texts and all(signs):
        rare = min(",.", key=signs.count)
        text = texts[signs.index(rare)]
        cause = f"found {excerpt(text)}, with a decimal {_NAMES[rare]}, among numbers with a decimal "
        raise ColumnError(f"{cause}{_NAMES[OTHER_SIGN[rare]]}; write all of them alike.", text, ways)
    dates = list(map(_is_date, texts))
    for kind, fits, share in (("numbers", signs, 0.5), ("dates", dates, _NEARLY_ALL)):
        others = [text for text, is_one in zip(texts, fits, strict=True) if not is_one]
        if others and len(texts) - len(others) >= share * len(texts):
            what = "a text," if len(others) == 1 else f"{len(others)} different texts such as"
            cause = f"it holds {kind}, and {what} {excerpt(others[0])}.{_as_number(others[0])}"
            raise ColumnError(cause, others[0], ("numeric", *ways) if kind == "numbers" else ways)
    date, almost = date_among(texts), [text for text in texts if _ALMOST.fullmatch(text)]
    if date is not None:
        raise ColumnError(f"it looks like dates, such as {excerpt(date)}; write {DATE_FORM}.", date, ways)
    if almost and 2 * len(almost) >= len(texts) and not all(map(str.isdigit, almost)):
        cause = f"it holds numbers such as {excerpt(almost[0])}.{_as_number(almost[0])}"
        raise ColumnError(cause, almost[0], ways)


def _as_number(text: str) -> str:
    """Return how to write a number with a currency, a per cent sign or blanks; nothing for other texts."""
    plain = "".join(letter for letter in text if letter in "-+0123456789.,")
    return f" As numbers: write {plain}." if _ALMOST.fullmatch(text) else ""


def date_among(texts: Sequence[str]) -> str | None:
    """Return a text that looks like a date, but not as ISO 8601 has it; None where others stand there too.

    Examples
    --------
    >>> date_among(["26.03.2026", "01.04.2026"]), date_among(["2022-08-28"]), date_among(["1.2.2003", "red"])
    ('26.03.2026', None, None)
    """
    found = [text for text in texts if _DATE.fullmatch(text)]
    odd = (text for text in found if not _is_date(text))
    return next(odd, None) if len(found) >= _NEARLY_ALL * len(texts) else None


def as_array(column: Any) -> NDArray[Any]:
    """Return an arrow array of numbers or booleans without nulls."""
    found: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of text: the distinct texts as an arrow array, and the number of its text for every row."""

    codes: NDArray[np.int32]
    texts: Any

    @classmethod
    def of(cls, chunks: Sequence[Any]) -> TextColumn:
        """Put chunks of arrow texts together, which may be dictionary arrays."""
        encoded = import_module("pyarrow").chunked_array([chunk.dictionary_encode() for chunk in chunks])
        chunks = encoded.unify_dictionaries().chunks
        return cls(np.concatenate([as_array(chunk.indices) for chunk in chunks]), chunks[0].dictionary)

    def row_of(self, text: str) -> int:
        """Return the first row with a text, from 0."""
        return int(np.argmax(self.codes == self.texts.index(text).as_py()))

    def counts(self) -> dict[str, int]:
        """Return how often each text occurs, missing values left out; of very many texts some."""
        step, counts = 1 + len(self.texts) // MOST_TEXTS, np.bincount(self.codes, minlength=len(self.texts))
        texts = zip(self.texts[::step].to_pylist(), counts[::step].tolist(), strict=True)
        return {text: count for text, count in texts if count and text not in MISSING}


def read_column(column: TextColumn, rule: ColumnRule, decimal: str = "") -> tuple[Any, int]:
    """Read a column by a rule, each cell by nothing but the rule; return also how many texts were lost.

    ``decimal`` is the sign that the user states, in place of the rule's; the other one may then separate
    thousands. Numbers are float64 with NaN, dates datetime64 with NaT, categories texts with nulls. The first
    cell that does not fit is a ``ColumnError``, unless it is a text and the rule takes texts for missing
    values. So is a comma or point that may separate thousands or decimals where the rule knows none.
    """
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    is_missing = as_array(compute.is_in(column.texts, arrow.array(MISSING)))
    if rule.kind == "category":
        codes = arrow.array(column.codes, mask=is_missing[column.codes] if is_missing.any() else None)
        return arrow.DictionaryArray.from_arrays(codes, column.texts), 0
    if rule.kind == "date":
        values, is_wrong, is_text = _dates(column.texts, is_missing)
    else:
        values, is_wrong, is_text = _numbers(column.texts, is_missing, rule, decimal)
    if "?" not in rule.notation:
        is_wrong, is_text = is_wrong | is_text, np.zeros_like(is_text)
    if rule.required and rule.kind == "number":
        is_wrong = is_wrong | is_missing
    wrong = is_wrong[column.codes]
    if wrong.any():
        text = column.texts[int(column.codes[np.argmax(wrong)])].as_py()
        raise ColumnError(*_why_wrong(text, rule, decimal))
    return values[column.codes], int(is_text[column.codes].sum()) if is_text.any() else 0


_Read = tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]
"""What texts are, which of them are wrong in any case, and which are text."""


def _numbers(texts: Any, is_missing: NDArray[np.bool_], rule: ColumnRule, decimal: str) -> _Read:
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    sign = decimal or rule.decimal or "."
    bodies = texts
    if "%" in rule.notation:
        stripped = compute.utf8_rtrim_whitespace(compute.utf8_slice_codeunits(texts, 0, -1))
        bodies = compute.if_else(compute.ends_with(texts, "%"), stripped, "")
    fits, fits_other = (
        as_array(compute.match_substring_regex(bodies, f"^(?:{_NUMBER[each]})$"))
        for each in (sign, OTHER_SIGN[sign])
    )
    is_grouped = as_array(compute.match_substring(bodies, OTHER_SIGN[sign]))
    is_open = fits & fits_other & is_grouped & (not decimal and "'" not in rule.notation)
    digits = compute.replace_substring(bodies, OTHER_SIGN[sign], "")
    digits = compute.utf8_ltrim(compute.replace_substring(digits, sign, "."), "+")
    numbers = digits.filter(arrow.array(fits))
    values = np.full(len(texts), np.nan)
    try:
        values[fits] = as_array(numbers.cast(arrow.float64()))
    except arrow.ArrowInvalid:  # too large or too small for pyarrow
        values[fits] = [float(number) for number in numbers.to_pylist()]
    is_text = ~(fits | fits_other | is_missing) | np.isinf(values)
    values[is_text] = np.nan
    return values, is_open | (~fits & fits_other), is_text


def _dates(texts: Any, is_missing: NDArray[np.bool_]) -> _Read:
    from exclusivity.tables._columns import as_dates  # noqa: PLC0415 -- with scikit-learn, for few files

    values = as_dates(np.array(texts.to_pylist(), dtype=object))
    return values, np.zeros_like(is_missing), np.isnat(values) & ~is_missing


def _why_wrong(text: str, rule: ColumnRule, decimal: str) -> tuple[str, str, tuple[str, ...]]:
    """Say why a rule cannot take a cell, with the text and what the user can do."""
    found = f"found {excerpt(text)}" if text else "the value is missing"
    form, nothing = "a number", "" if rule.required else ", or nothing"
    ways: tuple[str, ...] = ()
    if rule.kind == "date":
        form = f"a date written as {DATE_FORM}"
    elif text in MISSING:
        nothing = ". Fill it in, or leave the row out"
    elif _signs([text.rstrip("% ")]):  # a number, but not in the notation of the column
        sign = decimal or rule.decimal or "."
        other, body = OTHER_SIGN[sign], _without_percent(text) if "%" in rule.notation else text
        no = "" if "'" in rule.notation or decimal else "no "
        form = f"a finite number with a decimal {_NAMES[sign]}, {no}thousands {_NAMES[other]}s and "
        form += f"{'a' if '%' in rule.notation else 'no'} per cent sign"
        is_other = bool(body) and (sign not in _signs([body]) or other in body)
        ways = ("decimal",) if is_other and not decimal and not rule.required else ()
    return f"{found}; expected {form}{nothing}.", text, ways
