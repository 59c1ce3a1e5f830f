"""Store models of tables: TableEncoder, and RobustAdditiveClassifier.

Both know their columns one by one: numbers and dates have knots, categories texts. A file has these one
behind the other, with a number for every column that says how many are its own.

The codes of a TableEncoder are those of numbers as rows of five figures and their knots, and those of
categories as their levels. A date is the list of its parts, whose codes stand among the others. A threat of a
RobustAdditiveClassifier is a number, and an interval for the last of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.additive.levels import ColumnLevels
from exclusivity.additive.threats import KINDS as THREAT_KINDS, check_threats
from exclusivity.io import _model_values as field
from exclusivity.io._model_values import MAX_PARTS, Kind, Refusal, Rules, pack_params, refusing
from exclusivity.tables._checks import categorical_places
from exclusivity.tables._codes import MONTHS, PARTS, WEEKDAYS, DateCode, LevelCode, MissingCode, NumberCode
from exclusivity.tables._columns import LONGEST_LEVEL, is_missing
from exclusivity.tables._encoder import TableColumn, TableEncoder, output_sources

_NOTATION = re.compile(r"[.,]?'?%?\??|-")
NOTATIONS = field.ruled(
    field.array("text", "n_features"),
    lambda tags: iter([(all(map(_NOTATION.fullmatch, tags)), "a column is written in no known way")]),
)
"""The notation of the numbers of each column; a dash where unknown."""


def _pack_notations(columns: Sequence[Any]) -> dict[str, Any]:
    """Return how the numbers of columns are written; nothing where unknown."""
    tags = ["-" if column.notation is None else column.notation for column in columns]
    return {} if set(tags) == {"-"} else {"notations": _texts(tags)}


def _notations(found: dict[str, Any]) -> list[str | None]:
    """Return the notation of each column, None where unknown."""
    tags = found.get("notations", ["-"] * found["n_features"])
    return [None if tag == "-" else tag for tag in tags]


def _integers(values: Iterable[Any]) -> NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)


def _places(values: Iterable[Any], known: Sequence[Any]) -> NDArray[np.uint8]:
    """Return each value as its number among those that are known."""
    return np.array([known.index(value) for value in values], dtype=np.uint8)


def _texts(values: Iterable[str]) -> NDArray[Any]:
    return np.array(list(values), dtype=object)


def _cut(values: NDArray[Any], sizes: NDArray[Any]) -> list[NDArray[Any]]:
    """Return an array in pieces of these sizes."""
    return np.split(values, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _fits(sizes: NDArray[Any], values: NDArray[Any]) -> bool:
    """Tell whether an array can be cut into pieces of these sizes, whose sum is that of Python's integers."""
    return bool(sum(sizes.ravel().tolist()) == len(values))


def _knot_and_text_rules(found: dict[str, Any]) -> Rules:
    """Demand knots in increasing order and different texts of each number and category."""
    knots, texts, ends = found["knots"], found["texts"], np.cumsum(found["n_knots"])
    yield _fits(found["n_knots"], knots), "expected as many knots as n_knots says"
    yield _fits(found["sizes"], texts), "expected as many texts as sizes say"
    with np.errstate(over="ignore"):
        steps = np.diff(knots)
    steps[ends[(ends > 0) & (ends < len(knots))] - 1] = 1.0  # from one column to the next
    yield steps.min(initial=1.0) > 0, "knots are not in increasing order"
    own = _cut(texts, found["sizes"].sum(axis=1))
    yield all(len(set(each)) == len(each) for each in own), "categories are not different texts"
    is_level = all(len(text) <= LONGEST_LEVEL and not is_missing(text) for text in texts)
    yield is_level, "a category is a missing value or too long"


# What all steps before a classifier have.

STEP: dict[str, field.Field] = {
    "output": field.choice(None, "default", "pandas", "polars"),
    "feature_names": field.NAMES,
}


def pack_step(step: BaseEstimator) -> dict[str, Any]:
    """Return what a file holds of every step before a classifier."""
    return {
        "n_features": step.n_features_in_,
        "feature_names": getattr(step, "feature_names_in_", None),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
    }


def restore_step(step: BaseEstimator, found: dict[str, Any]) -> None:
    """Give a step what ``pack_step`` took from it."""
    step.n_features_in_ = found["n_features"]
    if found["feature_names"] is not None:
        step.feature_names_in_ = found["feature_names"]
    if found["output"] is not None:
        step.set_output(transform=found["output"])


# TableEncoder

_KINDS = ("number", "category", "date")
_CODES = (type(None), NumberCode, LevelCode, DateCode, MissingCode)  # those of kinds, one further
_NUMBER, _LEVEL, _DATE, _MISSING = range(1, 5)
_PART_CODES = {"year": _NUMBER, "month": _LEVEL, "weekday": _LEVEL, "hour": _NUMBER}
_PART_TEXTS = {"month": set(MONTHS), "weekday": set(WEEKDAYS)}
_MOST_KNOT = field.LARGEST / 2  # the difference of two is finite


def _code_rules(found: dict[str, Any]) -> Rules:
    sizes, n_knots = found["sizes"], found["n_knots"]
    yield len(n_knots) + len(sizes) <= MAX_PARTS, f"expected at most {MAX_PARTS} columns and parts of dates"
    low, high, _, scale, _ = found["figures"].T
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        is_finite = np.isfinite(found["figures"][:, :3] / scale[:, None]).all(axis=1)
    is_range = is_finite & (scale > 0) & (low <= high)
    yield is_range.all(), "the range of a number is not in order"
    yield not np.isin(n_knots, [1, 2]).any(), "a number has one knot or two"
    yield (sizes[:, 0] > 0).all(), "a category has no level"
    yield from _knot_and_text_rules(found)


def _encoder_rules(found: dict[str, Any]) -> Rules:
    kinds, types = found["kinds"].astype(int), found["codes"]["types"].astype(int)
    is_own = np.isin(types, [0, _MISSING]) | (types == kinds + 1)
    yield np.all(is_own), "a column is coded as one of another kind"


_ENCODER = field.Object(
    {
        "n_features": field.whole(1, MAX_PARTS),
        "params": field.params(
            TableEncoder().get_params() | {"dtype": "float64"}, dtype=field.choice("float64", "float32")
        ),
        **STEP,
        "sparse_output": field.FLAG,
        "kinds": field.array("u1", "n_features", least=0, most=len(_KINDS) - 1),
        "n_gaps": field.array("i8", "n_features", least=0),
        "n_levels": field.array("i8", "n_features", least=-1),
        "left_out": field.array("text", "n_features"),
        "notations?": NOTATIONS,
        "codes": field.Object(
            {
                "types": field.array("u1", "n_features"),  # of the kinds of columns
                "has_gaps": field.array("bool", "n_codes"),
                "parts": field.array("u1", "n_dates", least=1, most=2 ** len(PARTS) - 1),
                "figures": field.finite("f8", "n_numbers", 5),
                "n_knots": field.array("i8", "n_numbers", least=0),
                "knots": field.array("f8", "all_knots", least=-_MOST_KNOT, most=_MOST_KNOT),
                "sizes": field.array("i8", "n_levels", 2, least=0),
                "texts": field.array("text", "n_texts"),
            },
            _code_rules,
        ),
    },
    _encoder_rules,
)


def _pack_encoder(encoder: TableEncoder) -> dict[str, Any]:
    columns = encoder.columns_
    return {
        "params": pack_params(encoder, dtype=np.dtype(encoder.dtype).name),
        **pack_step(encoder),
        "sparse_output": encoder.sparse_output_,
        "kinds": _places((column.kind for column in columns), _KINDS),
        "n_gaps": _integers(column.n_missing for column in columns),
        "n_levels": _integers(-1 if column.n_levels is None else column.n_levels for column in columns),
        "left_out": _texts(column.left_out for column in columns),
        **_pack_notations(columns),
        "codes": _pack_codes([column.code for column in columns]),
    }


def _pack_codes(codes: list[Any]) -> dict[str, Any]:
    dates = [code.parts for code in codes if isinstance(code, DateCode)]
    flat = [each for code in codes for each in (code, *dict(getattr(code, "parts", ())).values())]
    numbers = [code for code in flat if isinstance(code, NumberCode)]
    levels = [code for code in flat if isinstance(code, LevelCode)]
    flags = [code.has_missing for code in flat if code is not None and not isinstance(code, MissingCode)]
    masks = [sum(1 << PARTS.index(part) for part, _ in parts) for parts in dates]
    figures = [[code.low, code.high, code.mean, code.scale, code.fill] for code in numbers]
    return {
        "types": _places(map(type, codes), _CODES),
        "has_gaps": np.array(flags, dtype=bool),
        "parts": np.array(masks, dtype=np.uint8),
        "figures": np.array(figures, dtype=np.float64).reshape(-1, 5),
        "n_knots": _integers(len(code.knots) for code in numbers),
        "knots": np.concatenate([*(code.knots for code in numbers), np.empty(0)]),
        "sizes": _integers((len(code.levels), len(code.rare)) for code in levels).reshape(-1, 2),
        "texts": _texts(text for code in levels for text in (*code.levels, *code.rare)),
    }


def _build_encoder(found: dict[str, Any]) -> TableEncoder:
    encoder = TableEncoder(**found["params"] | {"dtype": np.dtype(found["params"]["dtype"]).type})
    restore_step(encoder, found)
    encoder.sparse_output_ = found["sparse_output"]
    names, kinds = encoder._input_names(), [_KINDS[kind] for kind in found["kinds"]]
    n_levels = [None if number < 0 else number for number in found["n_levels"].tolist()]
    with refusing("TableEncoder"):
        encoder._check_parameters()
        encoder._groups()
        categorical_places(encoder.categorical, names, "categorical")
        facts = (found["n_gaps"].tolist(), n_levels, found["left_out"], _notations(found))
        columns = list(map(TableColumn, names, kinds, _codes(found["codes"]), *facts))
        encoder.columns_ = encoder._with_ramps(columns)
    encoder.sources_ = output_sources(encoder.columns_)
    return encoder


def _codes(found: dict[str, Any]) -> list[Any]:
    """Return the code of every column, or None; refuse too few of their parts, and too many."""
    figures, knots = iter(found["figures"].tolist()), iter(_cut(found["knots"], found["n_knots"]))
    texts, flags = iter(_cut(found["texts"], found["sizes"].ravel())), iter(found["has_gaps"].tolist())
    masks = iter(found["parts"].tolist())

    def code(kind: int, part: str = "") -> Any:
        if kind == _DATE:
            has_missing, mask = next(flags), next(masks)
            names = [name for bit, name in enumerate(PARTS) if mask >> bit & 1]
            return DateCode(tuple([(name, code(_PART_CODES[name], name)) for name in names]), has_missing)
        if kind not in (_NUMBER, _LEVEL):
            return MissingCode() if kind == _MISSING else None
        if kind == _NUMBER:
            low, high, mean, scale, fill = next(figures)
            made: Any = NumberCode(low, high, mean, scale, fill, next(knots), next(flags))
        else:
            made = LevelCode(tuple(next(texts)), tuple(next(texts)), next(flags))
        if part and made.has_missing:
            raise Refusal("TableEncoder: a part of a date has missing values of its own.")
        if part in _PART_TEXTS and not {*made.levels, *made.rare} <= _PART_TEXTS[part]:
            raise Refusal(f"TableEncoder: a date has a {part} that there is not.")
        return made

    try:
        codes = [code(kind) for kind in found["types"].tolist()]
    except StopIteration:
        raise Refusal("TableEncoder: its codes lack a part.") from None
    if [*figures, *texts, *flags, *masks]:
        raise Refusal("TableEncoder: its codes have a part too many.")
    return codes


# RobustAdditiveClassifier: the levels of its columns, and the values of their points.

_COLUMN_KINDS = ("number", "date", "category")
_THREATS = (*THREAT_KINDS, "interval")
_INTERVAL = len(THREAT_KINDS)
_MOST_MICROSECONDS = 2**62
_MOST_REACHED = 1 << 20
"""Slices of reachable points times the longest of them, besides four for each number of a file: a table of
these is made when rows are certified."""


def _column_rules(found: dict[str, Any]) -> Rules:
    n_knots, sizes = found["n_knots"], found["sizes"]
    is_category, is_date = (found["kinds"] == _COLUMN_KINDS.index(kind) for kind in ("category", "date"))
    has_other = np.where(is_category, n_knots > 0, (sizes > 0).any(axis=1))
    yield not has_other.any(), "a category has knots, or a number has categories"
    yield from _knot_and_text_rules(found)
    n_levels = _n_levels(found)
    yield n_levels.min() > 0, "a column has no level"
    yield _fits(n_levels, found["shares"]), "expected a share for every level"
    moments = found["knots"][np.repeat(is_date, n_knots)]
    yield (np.abs(moments) < _MOST_MICROSECONDS).all(), "a date is out of range"


def _n_levels(columns: dict[str, Any]) -> NDArray[Any]:
    """Return the number of levels of each column: rare categories share one."""
    n_texts, n_rare = columns["sizes"].T
    return np.asarray(columns["n_knots"] + n_texts + (n_rare > 0) + columns["has_missing"])


def _additive_rules(found: dict[str, Any]) -> Rules:
    classes, points, columns = found["classes"], found["points"], found["columns"]
    yield len(points) == len(classes) * (len(classes) - 1) // 2, "expected points for each pair of classes"
    yield len(points) <= MAX_PARTS, f"expected at most {MAX_PARTS} pairs of classes"
    n_levels = _n_levels(columns)
    yield points.shape[1] == sum(n_levels + ~columns["has_missing"]), "expected a value for each point"
    spare = found["intervals"][found["threats"] != _INTERVAL]
    yield not spare.tobytes().strip(b"\0"), "an interval belongs to no threat"
    is_between = all(_is_between(values, n_levels, columns["has_missing"]) for values in points)
    yield is_between, "the value of a missing cell is beyond the levels"


def _is_between(points: NDArray[Any], n_levels: NDArray[Any], has_missing: NDArray[Any]) -> bool:
    """Tell whether no missing cell shows a value beyond those of the levels; certificates rest on it."""
    if has_missing.all():
        return True
    count = n_levels[~has_missing]
    ends = np.cumsum(n_levels + ~has_missing)[~has_missing] - 1
    starts = np.column_stack([ends - count, ends]).ravel()
    low, high = (end.reduceat(points, starts)[::2] for end in (np.minimum, np.maximum))
    slack = 2.0**-52 * count * np.maximum(np.abs(low), np.abs(high))
    return bool(((low - slack <= points[ends]) & (points[ends] <= high + slack)).all())


_ADDITIVE = field.Object(
    {
        "n_features": field.whole(1, MAX_PARTS),
        "params": field.params(RobustAdditiveClassifier().get_params(deep=False)),
        "feature_names": field.NAMES,
        "classes": field.CLASSES,
        "columns": field.Object(
            {
                "kinds": field.array("u1", "n_features", least=0, most=len(_COLUMN_KINDS) - 1),
                "has_missing": field.array("bool", "n_features"),
                "n_knots": field.array("i8", "n_features", least=0),
                "knots": field.finite("f8", "all_knots"),
                "sizes": field.array("i8", "n_features", 2, least=0),
                "texts": field.array("text", "n_texts"),
                "shares": field.array("f8", "n_levels", least=0, most=1),
                "n_rows": field.array("f8", "n_features", least=0),
            },
            _column_rules,
        ),
        "groups": field.GROUPS,
        "notations?": NOTATIONS,
        "threats": field.array("u1", "n_features", least=0, most=len(_THREATS) - 1),
        "intervals": field.finite("f8", "n_features", 2),
        "points": field.finite("f8", "n_duels", "n_points"),
        "intercept": field.finite("f8", "n_duels"),
        "objective": field.array("f8", "n_duels"),
        "dual_gap": field.array("f8", "n_duels"),
        "converged": field.array("bool", "n_duels"),
        "n_iter": field.array("i8", "n_duels", least=0),
    },
    _additive_rules,
)
_PER_DUEL = ("points", "intercept", "objective", "dual_gap", "converged", "n_iter")


def _pack_additive(model: RobustAdditiveClassifier) -> dict[str, Any]:
    columns, threats = model.columns_, model.threats_
    kinds = ["interval" if isinstance(threat, tuple) else threat for threat in threats]
    return {
        "n_features": model.n_features_in_,
        "params": pack_params(model),
        "feature_names": getattr(model, "feature_names_in_", None),
        "classes": model.classes_,
        "columns": {
            "kinds": _places((column.kind for column in columns), _COLUMN_KINDS),
            "has_missing": np.array([column.has_missing for column in columns]),
            "n_knots": _integers(len(column.knots) for column in columns),
            "knots": np.concatenate([column.knots for column in columns]),
            "sizes": _integers((len(column.categories), len(column.rare)) for column in columns),
            "texts": _texts(text for column in columns for text in (*column.categories, *column.rare)),
            "shares": np.concatenate([column.shares for column in columns]),
            "n_rows": np.array([column.n_rows for column in columns]),
        },
        "groups": model.feature_groups_.astype(np.int64),
        **_pack_notations(columns),
        "threats": _places(kinds, _THREATS),
        "intervals": np.array([each if isinstance(each, tuple) else (0.0, 0.0) for each in threats]),
        **{name: getattr(model, f"{name}_") for name in _PER_DUEL},
    }


def _build_additive(found: dict[str, Any]) -> RobustAdditiveClassifier:
    model = RobustAdditiveClassifier(**found["params"])
    model.n_features_in_, model.classes_ = found["n_features"], found["classes"]
    if found["feature_names"] is not None:
        model.feature_names_in_ = found["feature_names"]
    for name in _PER_DUEL:
        setattr(model, f"{name}_", found[name])
    model.columns_ = _build_columns(model._names(), found["columns"], _notations(found))
    model.feature_groups_ = found["groups"].astype(np.intp, copy=False)
    model.threats_ = [
        tuple(ends) if kind == _INTERVAL else _THREATS[kind]
        for kind, ends in zip(found["threats"].tolist(), found["intervals"].tolist(), strict=True)
    ]
    with refusing("RobustAdditiveClassifier"):
        model._check_parameters()
        check_threats(model.threats_, model.columns_)
    _check_reach(model)
    model._prepare()
    return model


def _build_columns(
    names: list[str], found: dict[str, Any], notations: list[str | None]
) -> list[ColumnLevels]:
    """Return the levels of every column."""
    texts = list(map(tuple, _cut(found["texts"], found["sizes"].ravel())))
    kinds, knots = [_COLUMN_KINDS[kind] for kind in found["kinds"]], _cut(found["knots"], found["n_knots"])
    shares = _cut(found["shares"], _n_levels(found))
    facts = (found["has_missing"].tolist(), shares, found["n_rows"].tolist(), notations)
    return list(map(ColumnLevels, names, kinds, knots, texts[::2], texts[1::2], *facts))


def _check_reach(model: RobustAdditiveClassifier) -> None:
    """Refuse intervals whose worst value is none of the points, and too many points for certificates."""
    n_slices = 1
    for column, threat in zip(model.columns_, model.threats_, strict=True):
        n_slices += len(column.knots) if threat in ("increase", "decrease") else 1
        if not isinstance(threat, tuple):
            continue
        if not threat[0] <= threat[1]:
            raise Refusal("RobustAdditiveClassifier: an interval is not in order.")
        ends = np.clip(threat, column.knots[0], column.knots[-1]) if len(column.knots) else ()
        if not np.isin(ends, column.knots).all():
            raise Refusal(f"RobustAdditiveClassifier: the threat {threat} of a column ends between knots.")
    longest = max(column.n_points for column in model.columns_)
    if n_slices * longest > _MOST_REACHED + 4 * model.points_.size:
        raise Refusal("RobustAdditiveClassifier: its columns have too many levels to be certified.")


ENCODER = Kind(TableEncoder, _ENCODER, _pack_encoder, _build_encoder)
ADDITIVE = Kind(RobustAdditiveClassifier, _ADDITIVE, _pack_additive, _build_additive, is_classifier=True)
