"""Store RobustAdditiveClassifier: the levels of its columns, and the values of their points.

Columns lie one behind the other: those of numbers and dates as their knots, those of categories as their
texts, the rare ones last. A threat is a number, and an interval for the last of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.additive.levels import ColumnLevels
from exclusivity.additive.threats import KINDS, Threat, check_threats
from exclusivity.io._model_values import (
    CLASSES,
    GROUPS,
    MAX_PARTS,
    NAMES,
    NOTATIONS,
    Kind,
    Object,
    Refusal,
    Rules,
    array,
    cut,
    finite,
    int64,
    notations_of,
    pack_notations,
    pack_params,
    params,
    refusing,
    texts_of,
    whole,
)
from exclusivity.tables._columns import is_missing

_KINDS = ("number", "date", "category")
_THREATS = (*KINDS, "interval")
_CATEGORY, _INTERVAL = _KINDS.index("category"), _THREATS.index("interval")
_MOST_MICROSECONDS = 2**62
_MOST_REACHED = 1 << 20
"""Slices of reachable points times the longest of them, besides four for each number of a file: a table of
these is made when rows are certified."""


def _column_rules(found: dict[str, Any]) -> Rules:
    n_knots, sizes = found["n_knots"], found["sizes"]
    is_category = found["kinds"] == _CATEGORY
    yield sum(n_knots.tolist()) == len(found["knots"]), "expected as many knots as n_knots says"
    yield sum(sizes.ravel().tolist()) == len(found["texts"]), "expected as many texts as sizes say"
    has_other = np.where(is_category, n_knots > 0, (sizes > 0).any(axis=1))
    yield not has_other.any(), "a category has knots, or a number has categories"
    n_levels = _n_levels(found)
    yield n_levels.min() > 0, "a column has no level"
    yield sum(n_levels.tolist()) == len(found["shares"]), "expected a share for every level"
    owner = np.repeat(np.arange(len(n_knots)), n_knots)
    with np.errstate(over="ignore"):
        is_step = np.diff(owner) == 0
        yield (np.diff(found["knots"])[is_step] > 0).all(), "knots are not in increasing order"
    is_date = (found["kinds"] == _KINDS.index("date"))[owner]
    yield (np.abs(found["knots"][is_date]) < _MOST_MICROSECONDS).all(), "a date is out of range"
    texts = list(map(tuple, cut(found["texts"], sizes.sum(axis=1))))
    yield all(len(set(own)) == len(own) for own in texts), "categories are not different texts"
    yield not any(map(is_missing, found["texts"])), "a category is a missing value"


def _n_levels(columns: dict[str, Any]) -> NDArray[Any]:
    """Return the number of levels of each column: rare categories share one."""
    n_texts, n_rare = columns["sizes"].T
    return np.asarray(columns["n_knots"] + n_texts + (n_rare > 0) + columns["has_missing"])


def _rules(found: dict[str, Any]) -> Rules:
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


_COLUMNS = Object(
    {
        "kinds": array("u1", "n_features", least=0, most=len(_KINDS) - 1),
        "has_missing": array("bool", "n_features"),
        "n_knots": array("i8", "n_features", least=0),
        "knots": finite("f8", "all_knots"),
        "sizes": array("i8", "n_features", 2, least=0),
        "texts": array("text", "n_texts"),
        "shares": array("f8", "n_levels", least=0, most=1),
        "n_rows": array("f8", "n_features", least=0),
    },
    _column_rules,
)
_FIELDS = Object(
    {
        "n_features": whole(1, MAX_PARTS),
        "params": params(RobustAdditiveClassifier().get_params(deep=False)),
        "feature_names": NAMES,
        "classes": CLASSES,
        "columns": _COLUMNS,
        "groups": GROUPS,
        "notations?": NOTATIONS,
        "threats": array("u1", "n_features", least=0, most=len(_THREATS) - 1),
        "intervals": finite("f8", "n_features", 2),
        "points": finite("f8", "n_duels", "n_points"),
        "intercept": finite("f8", "n_duels"),
        "objective": array("f8", "n_duels"),
        "dual_gap": array("f8", "n_duels"),
        "converged": array("bool", "n_duels"),
        "n_iter": array("i8", "n_duels", least=0),
    },
    _rules,
)
_PER_DUEL = ("points", "intercept", "objective", "dual_gap", "converged", "n_iter")


def _pack(model: RobustAdditiveClassifier) -> dict[str, Any]:
    columns = model.columns_
    packed = {
        "kinds": np.array([_KINDS.index(column.kind) for column in columns], dtype=np.uint8),
        "has_missing": np.array([column.has_missing for column in columns]),
        "n_knots": int64(len(column.knots) for column in columns),
        "knots": np.concatenate([column.knots for column in columns]),
        "sizes": int64((len(column.categories), len(column.rare)) for column in columns),
        "texts": texts_of(text for column in columns for text in (*column.categories, *column.rare)),
        "shares": np.concatenate([column.shares for column in columns]),
        "n_rows": np.array([column.n_rows for column in columns]),
    }
    threats = [
        ("interval", threat) if isinstance(threat, tuple) else (threat, (0.0, 0.0))
        for threat in model.threats_
    ]
    return pack_notations(columns) | {
        "n_features": model.n_features_in_,
        "params": pack_params(model),
        "feature_names": getattr(model, "feature_names_in_", None),
        "classes": model.classes_,
        "columns": packed,
        "groups": model.feature_groups_.astype(np.int64),
        "threats": np.array([_THREATS.index(kind) for kind, _ in threats], dtype=np.uint8),
        "intervals": np.array([ends for _, ends in threats]),
        **{name: getattr(model, f"{name}_") for name in _PER_DUEL},
    }


def _build(found: dict[str, Any]) -> RobustAdditiveClassifier:
    model = RobustAdditiveClassifier(**found["params"])
    model.n_features_in_, model.classes_ = found["n_features"], found["classes"]
    if found["feature_names"] is not None:
        model.feature_names_in_ = found["feature_names"]
    for name in _PER_DUEL:
        setattr(model, f"{name}_", found[name])
    model.columns_ = _build_columns(model._names(), found["columns"], notations_of(found))
    model.feature_groups_ = found["groups"].astype(np.intp, copy=False)
    model.threats_ = [
        tuple(ends) if kind == _INTERVAL else _THREATS[kind]
        for kind, ends in zip(found["threats"].tolist(), found["intervals"].tolist(), strict=True)
    ]
    with refusing("RobustAdditiveClassifier"):
        model._check_parameters()
        check_threats(model.threats_, model.columns_)
    _check_intervals(model.columns_, model.threats_)
    _check_reach(model.columns_, model.threats_, model.points_.size)
    model._prepare()
    return model


def _build_columns(
    names: list[str], found: dict[str, Any], notations: list[str | None]
) -> list[ColumnLevels]:
    """Return the levels of every column."""
    texts = iter(cut(found["texts"], found["sizes"].ravel()))
    return [
        ColumnLevels(name, _KINDS[kind], knots, tuple(next(texts)), tuple(next(texts)), *levels)
        for name, kind, knots, *levels in zip(
            names,
            found["kinds"].tolist(),
            cut(found["knots"], found["n_knots"]),
            found["has_missing"].tolist(),
            cut(found["shares"], _n_levels(found)),
            found["n_rows"].tolist(),
            notations,
            strict=True,
        )
    ]


def _check_intervals(columns: list[ColumnLevels], threats: list[Threat]) -> None:
    """Refuse an interval that ends between knots: the worst value of it would be none of the points."""
    for column, threat in zip(columns, threats, strict=True):
        if isinstance(threat, tuple) and not threat[0] <= threat[1]:
            raise Refusal("RobustAdditiveClassifier: an interval is not in order.")
        if isinstance(threat, tuple) and len(column.knots):
            ends = np.clip(threat, column.knots[0], column.knots[-1])
            if not np.isin(ends, column.knots).all():
                raise Refusal(
                    f"RobustAdditiveClassifier: the threat {threat} of a column ends between knots."
                )


def _check_reach(columns: list[ColumnLevels], threats: list[Threat], n_numbers: int) -> None:
    """Refuse a model whose adversary reaches too many different points for the memory of certificates."""
    n_slices = 1 + sum(
        len(column.knots) if threat in ("increase", "decrease") else 1
        for column, threat in zip(columns, threats, strict=True)
    )
    if n_slices * max(column.n_points for column in columns) > _MOST_REACHED + 4 * n_numbers:
        raise Refusal("RobustAdditiveClassifier: its columns have too many levels to be certified.")


KIND = Kind(RobustAdditiveClassifier, _FIELDS, _pack, _build, is_classifier=True)
