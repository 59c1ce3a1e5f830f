"""TableEncoder in a model file: what was learned of each column, as arrays of numbers and texts.

Codes of columns are laid out one behind the other: those of numbers as rows of five figures and their knots,
those of categories as their levels. A date is the list of its parts, whose codes stand among the others.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from exclusivity.persistence.arrays import all_finite
from exclusivity.persistence.container import ArrayStore, ArrayTable
from exclusivity.persistence.erm_kind import pack_names, unpack_names
from exclusivity.persistence.errors import DAMAGED, ModelFormatError
from exclusivity.persistence.fields import Fields
from exclusivity.persistence.scaler_kinds import output_of, restore_output
from exclusivity.persistence.values import pack_params, unpack_params
from exclusivity.tables import (
    LONGEST_LEVEL,
    MONTHS,
    PARTS,
    WEEKDAYS,
    Code,
    DateCode,
    GapCode,
    LevelCode,
    NumberCode,
    TableColumn,
    TableEncoder,
    is_gap,
    output_sources,
)

_NAME = "TableEncoder"
_DEFAULTS = TableEncoder().get_params()
_KINDS = ("number", "category", "date")
_CODES = ("none", "number", "level", "date", "gap")
_DTYPES = {"float64": np.float64, "float32": np.float32}

MAX_CODES = 10_000
"""Columns and parts of dates. In memory each of them is an object of up to a kilobyte, whatever its size in
the file; so many fit into what loading may take besides twice the file."""

_NOTATION = re.compile(r"[.,]?'?%?\??|-")
"""How the numbers of a column are written; a dash where nobody knows."""


def pack_encoder(encoder: TableEncoder, store: ArrayStore) -> dict[str, Any]:
    """The header's form of a fitted encoder."""
    check_is_fitted(encoder)
    params = encoder.get_params() | {"dtype": np.dtype(encoder.dtype).name}
    columns, layout = encoder.columns_, _Layout()
    for column in columns:
        layout.add(column.code)
    if layout.size > MAX_CODES:
        raise ValueError(
            f"a model file holds an encoder of at most {MAX_CODES} columns; this has {layout.size}."
        )
    levels = [-1 if column.n_levels is None else column.n_levels for column in columns]
    return {
        "params": pack_params(params, _NAME, store),
        "n_features": encoder.n_features_in_,
        "feature_names": pack_names(getattr(encoder, "feature_names_in_", None), store),
        "sparse_output": encoder.sparse_output_,
        "output": output_of(encoder),
        "kinds": store.add(_bytes([_KINDS.index(column.kind) for column in columns]), "kinds"),
        "n_gaps": store.add(np.array([column.n_gaps for column in columns], dtype=np.int64), "n_gaps"),
        "n_levels": store.add(np.array(levels, dtype=np.int64), "n_levels"),
        "left_out": store.add(_texts([column.left_out for column in columns]), "left_out"),
        **_pack_notations(columns, store),
        "codes": layout.pack(store),
    }


def _pack_notations(columns: list[TableColumn], store: ArrayStore) -> dict[str, Any]:
    """Nothing where no column has one, as in files of earlier versions."""
    tags = [column.notation for column in columns]
    if all(tag is None for tag in tags):
        return {}
    return {"notations": store.add(_texts(["-" if tag is None else tag for tag in tags]), "notations")}


def unpack_encoder(fields: Fields, table: ArrayTable) -> TableEncoder:
    """A fitted encoder, complete and consistent."""
    params = unpack_params(fields.take("params"), _NAME, _DEFAULTS | {"dtype": "float64"}, table)
    n_features = fields.integer("n_features", 1, MAX_CODES)
    encoder = TableEncoder(**(params | {"dtype": _dtype(params["dtype"])}))
    encoder.n_features_in_ = n_features
    names = unpack_names(fields.take("feature_names"), n_features, table)
    if names is not None:
        encoder.feature_names_in_ = names
    encoder.sparse_output_ = fields.boolean("sparse_output")
    restore_output(encoder, fields)
    try:
        encoder._rules()
        encoder._groups()
        encoder._chosen(encoder._input_names())
    except (TypeError, ValueError) as error:
        raise ModelFormatError(f"a parameter is not allowed: {str(error)[:300]} {DAMAGED}") from error
    encoder.columns_ = _unpack_columns(fields, table, encoder._input_names())
    encoder.sources_ = output_sources(encoder.columns_)
    return encoder


def _dtype(name: object) -> Any:
    if not isinstance(name, str) or name not in _DTYPES:
        raise ModelFormatError(f"{_NAME} has another dtype than {' or '.join(_DTYPES)}. {DAMAGED}")
    return _DTYPES[name]


def _unpack_columns(fields: Fields, table: ArrayTable, names: list[str]) -> list[TableColumn]:
    count = len(names)
    kinds = table.shaped(fields, "kinds", "u1", (count,))
    n_gaps, n_levels = (table.shaped(fields, name, "i8", (count,)) for name in ("n_gaps", "n_levels"))
    left_out = table.shaped(fields, "left_out", "O", (count,))
    notations = _unpack_notations(fields, table, count)
    codes = _Codes(Fields(fields.take("codes"), "the codes of the columns"), table, count)
    if kinds.max() >= len(_KINDS) or n_gaps.min() < 0 or n_levels.min() < -1:
        raise ModelFormatError(f"a column of {_NAME} is of no known kind. {DAMAGED}")
    columns = [
        TableColumn(
            names[place],
            _KINDS[kinds[place]],
            codes.take(codes.types[place]),
            int(n_gaps[place]),
            None if n_levels[place] < 0 else int(n_levels[place]),
            left_out[place],
            notations[place],
        )
        for place in range(count)
    ]
    codes.finish()
    return columns


def _unpack_notations(fields: Fields, table: ArrayTable, count: int) -> list[str | None]:
    if not fields.has("notations"):
        return [None] * count
    tags = table.shaped(fields, "notations", "O", (count,)).tolist()
    if not all(_NOTATION.fullmatch(tag) for tag in tags):
        raise ModelFormatError(f"a column of {_NAME} is written in no known way. {DAMAGED}")
    return [None if tag == "-" else tag for tag in tags]


class _Layout:
    """The codes of all columns, one behind the other."""

    def __init__(self) -> None:
        self.types: list[int] = []
        self.has_gaps: list[bool] = []
        self.parts: list[int] = []
        self.numbers: list[NumberCode] = []
        self.levels: list[LevelCode] = []

    @property
    def size(self) -> int:
        return len(self.types) + sum(mask.bit_count() for mask in self.parts)

    def add(self, code: Code | None) -> None:
        if code is None or isinstance(code, GapCode):
            self.types.append(_CODES.index("none" if code is None else "gap"))
        elif isinstance(code, DateCode):
            self.types.append(_CODES.index("date"))
            self.has_gaps.append(code.has_gaps)
            self.parts.append(sum(1 << PARTS.index(part) for part, _ in code.parts))
            for _, part in code.parts:
                self._add_simple(part)
        else:
            assert isinstance(code, (NumberCode, LevelCode))  # noqa: S101 -- there are no others
            self.types.append(_CODES.index("number" if isinstance(code, NumberCode) else "level"))
            self._add_simple(code)

    def _add_simple(self, code: NumberCode | LevelCode) -> None:
        self.has_gaps.append(code.has_gaps)
        if isinstance(code, NumberCode):
            self.numbers.append(code)
        else:
            self.levels.append(code)

    def pack(self, store: ArrayStore) -> dict[str, Any]:
        figures = [[code.low, code.high, code.mean, code.scale, code.fill] for code in self.numbers]
        knots = [code.knots for code in self.numbers]
        sizes = [[len(code.levels), len(code.rare)] for code in self.levels]
        arrays: dict[str, NDArray[Any]] = {
            "types": _bytes(self.types),
            "has_gaps": np.array(self.has_gaps, dtype=bool),
            "parts": _bytes(self.parts),
            "figures": np.array(figures, dtype=np.float64).reshape(-1, 5),
            "n_knots": np.array([len(each) for each in knots], dtype=np.int64),
            "knots": np.concatenate([*knots, np.empty(0)]),
            "sizes": np.array(sizes, dtype=np.int64).reshape(-1, 2),
            "texts": _texts([text for code in self.levels for text in (*code.levels, *code.rare)]),
        }
        return {name: store.add(array, name) for name, array in arrays.items()}


class _Codes:
    """The way back: codes are taken in the order in which they were laid out."""

    def __init__(self, fields: Fields, table: ArrayTable, n_columns: int) -> None:
        self.types = table.shaped(fields, "types", "u1", (n_columns,))
        if self.types.max() >= len(_CODES):
            raise ModelFormatError(f"a column of {_NAME} has no known code. {DAMAGED}")
        self._has_gaps = table.shaped(fields, "has_gaps", "b1", (None,)).tolist()[::-1]
        self._parts = table.shaped(fields, "parts", "u1", (None,)).tolist()[::-1]
        figures = table.shaped(fields, "figures", "f8", (None, 5))
        n_knots = table.shaped(fields, "n_knots", "i8", (len(figures),))
        knots = table.shaped(fields, "knots", "f8", (None,))
        sizes = table.shaped(fields, "sizes", "i8", (None, 2))
        texts = table.shaped(fields, "texts", "O", (None,))
        fields.finish()
        if len(figures) + len(sizes) > MAX_CODES:
            raise ModelFormatError(f"{_NAME} has more than {MAX_CODES} codes. {DAMAGED}")
        if not (all_finite(figures) and all_finite(knots)):
            raise ModelFormatError(f"a number of {_NAME} is not finite. {DAMAGED}")
        self._figures = [tuple(row) for row in figures.tolist()[::-1]]
        self._knots = _cut(knots, n_knots)[::-1]
        self._texts = _cut(texts, sizes.ravel())[::-1]

    def take(self, kind: int) -> Code | None:
        name = _CODES[kind]
        if name == "none":
            return None
        if name == "gap":
            return GapCode()
        has_gaps = _pop(self._has_gaps)
        if name == "number":
            return self._number(has_gaps)
        if name == "level":
            return self._level(has_gaps)
        mask = _pop(self._parts)
        chosen = [part for place, part in enumerate(PARTS) if mask >> place & 1]
        if not chosen or mask >> len(PARTS):
            raise ModelFormatError(f"a date has no known parts. {DAMAGED}")
        return DateCode(tuple((part, self._part(part)) for part in chosen), has_gaps)

    def _part(self, part: str) -> NumberCode | LevelCode:
        if _pop(self._has_gaps):
            raise ModelFormatError(f"a part of a date has gaps of its own. {DAMAGED}")
        if part in ("year", "hour"):
            return self._number(has_gaps=False)
        code = self._level(has_gaps=False)
        if not {*code.levels, *code.rare} <= set(MONTHS if part == "month" else WEEKDAYS):
            raise ModelFormatError(f"a date has a {part} that there is not. {DAMAGED}")
        return code

    def _number(self, has_gaps: bool) -> NumberCode:
        low, high, mean, scale, fill = _pop(self._figures)
        knots = _pop(self._knots)
        with np.errstate(over="ignore", divide="ignore"):
            in_range = bool(scale > 0 and np.isfinite(np.array([low, high, mean]) / max(scale, 0)).all())
            steps = np.diff(knots)
        if (
            not in_range
            or not low <= high
            or len(knots) in (1, 2)
            or not np.all((steps > 0) & (steps < np.inf))
        ):
            raise ModelFormatError(f"the range or the knots of a number are not in order. {DAMAGED}")
        return NumberCode(low, high, mean, scale, fill, knots, has_gaps)

    def _level(self, has_gaps: bool) -> LevelCode:
        levels, rare = tuple(_pop(self._texts)), tuple(_pop(self._texts))
        texts = {*levels, *rare}
        is_wrong = any(is_gap(text) or len(text) > LONGEST_LEVEL for text in texts)
        if not levels or is_wrong or len(texts) < len(levels) + len(rare):
            raise ModelFormatError(f"the levels of a category are not different texts. {DAMAGED}")
        return LevelCode(levels, rare, has_gaps)

    def finish(self) -> None:
        if any((self._has_gaps, self._parts, self._figures, self._knots, self._texts)):
            raise ModelFormatError(f"{_NAME} has codes that belong to no column. {DAMAGED}")


def _cut(values: NDArray[Any], sizes: NDArray[Any]) -> list[NDArray[Any]]:
    """An array in pieces of these sizes."""
    if len(sizes) and (sizes.min() < 0 or sizes.max() > len(values)):
        raise ModelFormatError(f"{_NAME} has a list of {int(sizes.max())} entries. {DAMAGED}")
    if int(sizes.sum()) != len(values):
        raise ModelFormatError(f"{_NAME} has lists of other lengths than it says. {DAMAGED}")
    return np.split(values, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _pop(values: list[Any]) -> Any:
    if not values:
        raise ModelFormatError(f"{_NAME} lacks the code of a column. {DAMAGED}")
    return values.pop()


def _bytes(values: list[int]) -> NDArray[np.uint8]:
    return np.array(values, dtype=np.uint8)


def _texts(values: list[str]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
