"""The grammar of CSV lines: fields, numbers and labels, and the reasons for refusing them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

_NUMBER_TEXT = re.compile(rb"[-+.0-9eE]++")
_EXCERPT = 40
_LISTED = 20

# Tabs may separate or surround fields, all other control characters mean that this is no text.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")

_FINITE = "expected a finite decimal number."
_QUOTES = (
    "found a quote that is not closed in its line, or one inside the text of a field; expected a field "
    'without quotes, or "..." around all of it with the quotes inside doubled.'
)


class FieldError(Exception):
    """Why a line is refused, and in which of its fields (counted from 0) where that is known."""

    def __init__(self, cause: str, field: int | None = None) -> None:
        super().__init__(cause)
        self.cause, self.field = cause, field


class NumberFieldError(FieldError):
    """A field that a table of numbers cannot hold, while a table of anything can."""


@dataclass(frozen=True)
class Columns:
    """The columns of a file.

    Attributes
    ----------
    names : tuple of str, or None
        None for a file without a header.
    count : int
        How many there are.
    target : int or None
        Which of them is the target, counted from 0.
    ignored : frozenset of int
        Which of them are neither target nor features.

    Examples
    --------
    >>> columns = Columns(("age", "mass", "ill"), 3, 2)
    >>> columns.title(1), columns.feature_names
    ("2 ('mass')", ('age', 'mass'))
    >>> Columns(None, 3, None).title(1)
    '2'
    """

    names: tuple[str, ...] | None
    count: int
    target: int | None
    ignored: frozenset[int] = frozenset()

    def title(self, column: int) -> str:
        """What errors call a column: its number from 1, and its name."""
        return f"{column + 1}" if self.names is None else f"{column + 1} ({excerpt(self.names[column])})"

    @property
    def set_apart(self) -> frozenset[int]:
        """The columns that are no features."""
        return self.ignored if self.target is None else self.ignored | {self.target}

    @property
    def n_features(self) -> int:
        """How many columns are features."""
        return self.count - len(self.set_apart)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features."""
        if self.names is None:
            return None
        return tuple(name for place, name in enumerate(self.names) if place not in self.set_apart)


def excerpt(text: str) -> str:
    """The text in quotes, cut when it is long.

    Examples
    --------
    >>> excerpt("abc" * 1000)
    "'abcabcabcabcabcabcabcabcabcabcabcabcabca...'"
    """
    return repr(text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}...")


def listed(names: tuple[str, ...]) -> str:
    """The names of columns in a row, the first twenty of them.

    Examples
    --------
    >>> listed(("age", "mass"))
    "'age', 'mass'"
    """
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(excerpt, names[:_LISTED])) + more


def counted(count: int, noun: str) -> str:
    """So many of something, one of them included.

    Examples
    --------
    >>> counted(1, "text"), counted(2, "text")
    ('1 text', '2 texts')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def decoded(text: bytes) -> str:
    """The text of a line, which must be UTF-8 without control characters."""
    foreign = _CONTROL.search(text)
    position = None if foreign is None else foreign.start()
    try:
        content = text.decode("utf-8")
    except UnicodeDecodeError as error:
        position = error.start if position is None else min(position, error.start)
        content = ""
    if position is not None:
        raise FieldError(
            f"found byte 0x{text[position]:02x} at position {position + 1}; expected UTF-8 text: "
            f"{_way_to_text(text, position)}"
        )
    return content


def _way_to_text(text: bytes, position: int) -> str:
    """What to do about bytes that are no UTF-8."""
    if text.startswith((b"\x1f\x8b", b"BZh")):
        return "the file looks compressed, and the name of such a file must end in .gz or .bz2."
    if text[position] < 0x80:  # a control character, as in no encoding of text
        return "save the file as UTF-8."
    return (
        "save the file as UTF-8, or convert it, from the encoding of Windows for example: "
        "iconv -f WINDOWS-1252 -t UTF-8 old.csv > new.csv."
    )


def check_target(target: object) -> None:
    """Whether a caller's target can name a column at all."""
    if target is not None and not _names_a_column(target):
        raise TypeError(f"target must be a column's name or number, or None; got {target!r}.")


def check_ignore(ignore: object) -> None:
    """Whether a caller's list of columns to leave out is one."""
    if isinstance(ignore, (str, bytes)) or not isinstance(ignore, Sequence):
        raise TypeError(f"ignore must be a sequence of columns' names or numbers; got {ignore!r}.")
    for column in ignore:
        if not _names_a_column(column):
            raise TypeError(f"ignore must hold columns' names or numbers; got {column!r}.")


def _names_a_column(column: object) -> bool:
    return isinstance(column, (str, int)) and not isinstance(column, bool)


def columns_of(
    names: tuple[str, ...] | None, count: int, target: str | int | None, ignore: Sequence[str | int]
) -> Columns:
    """The columns of a file, with those found that are no features.

    Examples
    --------
    >>> columns_of(("id", "age", "ill"), 3, "ill", ["id"]).feature_names
    ('age',)
    """
    place = None if target is None else place_of(target, names, count)
    ignored = frozenset(place_of(column, names, count, "to ignore") for column in ignore)
    if place in ignored:
        raise FieldError("the target is among the columns to ignore; expected another column.")
    columns = Columns(names, count, place, ignored)
    if columns.n_features < 1 and not ignored:
        raise FieldError("the target is the only column; expected features as well.")
    if columns.n_features < 1:
        raise FieldError(f"none of the {count} columns is left for features; expected at least one.")
    return columns


def place_of(
    target: str | int, names: tuple[str, ...] | None, count: int, role: str = "for the target"
) -> int:
    """Where the target (or a column in another role) is among the columns, counted from 0.

    Examples
    --------
    >>> place_of("ill", ("age", "mass", "ill"), 3), place_of(-3, None, 3)
    (2, 0)
    """
    if isinstance(target, int):
        if not -count <= target < count:
            raise FieldError(f"there is no column {target} {role} among {count} columns.")
        return target % count
    if names is None or target not in names:
        raise FieldError(f"there is no column {excerpt(target)} {role}; there are {listed(names or ())}.")
    return names.index(target)


class Splitter:
    r"""Cuts lines into fields.

    A field that starts with a double quote ends with one, and two of them inside stand for one. It cannot
    contain the end of a line. Blanks around fields do not count.

    Parameters
    ----------
    delimiter : bytes
        One character.

    Examples
    --------
    >>> Splitter(b",").fields(b'1, 2.5 ,"big, ""red"" one"', 10)
    [b'1', b'2.5', b'big, "red" one']
    """

    def __init__(self, delimiter: bytes) -> None:
        self.delimiter = delimiter
        self._blank = b" " if delimiter == b"\t" else b" \t"
        end = re.escape(delimiter)
        self._quoted = re.compile(
            rb'[%b]*+(?:"((?:[^"]++|"")*+)"[%b]*+|([^"%b]*+))(%b|\Z)' % (self._blank, self._blank, end, end)
        )

    def fields(self, line: bytes, limit: int) -> list[bytes]:
        """The fields of a line; where there are more than ``limit`` of them, only one more than that."""
        if b'"' not in line:
            return [field.strip(self._blank) for field in line.split(self.delimiter, limit)]
        found: list[bytes] = []
        start = 0
        while len(found) <= limit:
            match = self._quoted.match(line, start)
            if match is None:
                # Beyond the last column there is no field to name.
                raise FieldError(_QUOTES, len(found) if len(found) < limit else None)
            quoted, plain, delimiter = match.groups()
            found.append(plain.strip(self._blank) if quoted is None else quoted.replace(b'""', b'"'))
            if not delimiter:
                break
            start = match.end()
        return found


def is_number(text: bytes) -> bool:
    """Whether the text is a decimal number, finite or not."""
    try:
        return _NUMBER_TEXT.fullmatch(text) is not None and not math.isnan(float(text))
    except ValueError:
        return False


def number(text: bytes) -> float:
    """The number in a field, which must be finite."""
    if not text:
        raise NumberFieldError(f"the value is missing; {_FINITE} Fill it in, or leave the row out.")
    value = float(text) if is_number(text) else math.nan
    if not math.isfinite(value):
        content = decoded(text)
        raise NumberFieldError(f"found {excerpt(content)}; {_FINITE}{remedy(content)}")
    return value


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


def label(text: bytes) -> float | str:
    """The number or the text in the field of a target.

    What is only almost a number (nan, infinity, 1_000, the digits of other scripts) is neither.

    Examples
    --------
    >>> label(b"-1"), label(b"ill")
    (-1.0, 'ill')
    """
    if is_number(text):
        return number(text)
    content = decoded(text)
    try:
        float(content)
    except ValueError:
        return content
    raise FieldError(f"found {excerpt(content)}; expected a finite decimal number, or a class in words.")
