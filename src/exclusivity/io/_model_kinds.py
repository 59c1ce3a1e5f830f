"""The closed table of what a model file can hold. A file names a row of it and nothing else.

A kind is a class, the fields of its objects in a file, and a pair of functions: from an object to its fields
and back. To add one, add a row to ``_ROWS``. Arrays are stored in the order of the fields.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from exclusivity.classifier import ERMClassifier, ERMClassifierCV
from exclusivity.classifier._ensemble import Ensemble, FittedState
from exclusivity.classifier._path import SearchState
from exclusivity.classifier._validation import TEST, TRAINING_IF, TRAINING_TOO, check_parameters
from exclusivity.io import _model_additive
from exclusivity.io._model_values import (
    CLASSES,
    FLAG,
    GROUPS,
    LARGEST,
    MAX_PARTS,
    MOST,
    NAMES,
    NEWER,
    NOTATIONS,
    Field,
    Kind,
    Object,
    Refusal,
    Rules,
    array,
    choice,
    cut,
    finite,
    has_surrogates,
    instance,
    int64,
    maybe,
    notations_of,
    pack,
    pack_notations,
    pack_params,
    parameter,
    params,
    positive,
    refusing,
    shown,
    texts_of,
    whole,
)
from exclusivity.tables._codes import MONTHS, PARTS, WEEKDAYS, DateCode, LevelCode, MissingCode, NumberCode
from exclusivity.tables._columns import LONGEST_LEVEL, is_missing
from exclusivity.tables._encoder import TableColumn, TableEncoder, output_sources
from exclusivity.tables._parameters import categorical_places

PASSTHROUGH = "passthrough"
TARGET = "target_column_"
"""The attribute of a model that names the column of its classes, by name or number."""

MAX_MEMBERS = 10**6
"""Equal members are stored once, whatever their number; votes are counted one by one."""

_CHUNK = 1 << 18

# ERMClassifier: parameters, members (equal ones once), labels, quality.


def count_problems(n_classes: int, multi_class: str) -> int:
    """Return the number of binary problems behind so many classes."""
    if n_classes == 2:
        return 1
    return n_classes if multi_class == "ovr" else n_classes * (n_classes - 1) // 2


def _are_plain(groups: NDArray[Any]) -> bool:
    """Tell whether every column is a group of its own, 0, 1, 2, ..., in little memory."""
    parts = ((at, groups[at : at + _CHUNK]) for at in range(0, len(groups), _CHUNK))
    return all(np.array_equal(part, np.arange(at, at + len(part))) for at, part in parts)


def _fitted_rules(found: dict[str, Any]) -> Rules:
    classes, weights, exclusivity = found["classes"], found["weights"], found["exclusivity"]
    groups, partition, n_members = found["groups"], found["partition"], found["n_members"]
    n_problems = count_problems(len(classes), found["multi_class"])
    yield len(weights) == n_problems, "weights are not those of so many classes"
    yield weights.shape[1] in (1, n_members), "expected the weights of one member or of all"
    yield found["intercepts"].dtype == weights.dtype, "intercepts are of another type than weights"
    yield isinstance(exclusivity, float) and exclusivity >= 0, "exclusivity is not a number >= 0"
    # A loaded model has groups in any case, and must not take more than twice the memory of its file.
    is_long = weights.nbytes >= 8 * found["n_features"]
    yield groups is not None or is_long, "a file of so few bytes needs groups"
    n_groups = found["n_features"] if groups is None else int(groups.max()) + 1
    if partition is not None:
        yield len(partition) == n_groups, "partition is not the owner of each group"
        yield partition.max() < n_members, "a group belongs to no member"


_FITTED = Object(
    {
        "n_features": whole(1, MOST),
        "classes": CLASSES,
        "weights": finite("f4 f8", "n_problems", "n_stored", "n_features"),
        "intercepts": finite("f4 f8", "n_problems", "n_stored"),
        "n_members": whole(1, MAX_MEMBERS),
        "multi_class": choice("ovr", "ovo"),
        "exclusivity": parameter,
        "objective": array("f8", "n_problems"),
        "dual_gap": array("f8", "n_problems"),
        "converged": array("bool", "n_problems"),
        "n_iter": array("i8", "n_problems"),
        "history?": instance(dict),  # of versions up to 0.2.0; it is not read
        "feature_names": NAMES,
        "groups": maybe(GROUPS),
        "partition": maybe(array("i8", "n_groups", least=-1)),
        "certificate_scope?": choice(TRAINING_TOO, TRAINING_IF),
    },
    _fitted_rules,
)


def _pack_fitted(model: BaseEstimator) -> dict[str, Any]:
    state = FittedState.of(model)
    packed = vars(state) | vars(state.ensemble)
    del packed["ensemble"], packed["history"]
    packed["exclusivity"] = pack(state.exclusivity, "exclusivity")
    for name in ("n_iter", "groups", "partition"):
        packed[name] = None if packed[name] is None else np.asarray(packed[name], dtype=np.int64)
    if state.ensemble.weights.nbytes >= 8 * state.n_features and _are_plain(state.groups):
        packed["groups"] = None
    # A key that older readers do not know: only where they must refuse the file.
    if packed["certificate_scope"] == TEST:
        del packed["certificate_scope"]
    return packed


def _restore_fitted(found: dict[str, Any], model: Any) -> Any:
    members = [found.pop(name) for name in ("weights", "intercepts", "n_members")]
    groups = np.arange(found["n_features"]) if found["groups"] is None else found["groups"]
    found |= {"ensemble": Ensemble(*members), "history": None, "groups": groups}
    for name in ("groups", "partition"):
        found[name] = None if found[name] is None else found[name].astype(np.intp, copy=False)
    return FittedState(**found).restore(model)


def _pack_classifier(model: BaseEstimator) -> dict[str, Any]:
    packed = {"params": pack_params(model), "fitted": _pack_fitted(model)}
    if isinstance(model, ERMClassifierCV):
        search = vars(SearchState.of(model))
        packed["search"] = {name: np.asarray(values, float) for name, values in search.items()}
    return packed


def _build_erm(found: dict[str, Any]) -> Any:
    with refusing("ERMClassifier"):
        check_parameters(found["params"])
    return _restore_fitted(found["fitted"], ERMClassifier(**found["params"]))


# ERMClassifierCV: the classifier of the last fit, and the scores that chose its C.


def _search_rules(found: dict[str, Any]) -> Rules:
    is_so = min(found["scores"].shape) > 0 and max(found["scores"].shape) <= MAX_PARTS
    yield is_so, f"expected 1 to {MAX_PARTS} folds and values of C"


_SEARCH = Object(
    {
        "Cs": positive("f8", "n_Cs"),
        "scores": array("f8", "n_folds", "n_Cs"),
        "mean_n_iter": array("f8", "n_Cs"),
        "max_dual_gap": array("f8", "n_Cs"),
    },
    _search_rules,
)


def _build_cv(found: dict[str, Any]) -> Any:
    model = _restore_fitted(found["fitted"], ERMClassifierCV(**found["params"]))
    with refusing("ERMClassifierCV"):
        SearchState(**found["search"]).restore(model)
    return model


# What all steps before a classifier have.

_STEP: dict[str, Field] = {"output": choice(None, "default", "pandas", "polars"), "feature_names": NAMES}


def _pack_step(step: BaseEstimator) -> dict[str, Any]:
    return {
        "n_features": step.n_features_in_,
        "feature_names": getattr(step, "feature_names_in_", None),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
    }


def _restore_step(step: BaseEstimator, found: dict[str, Any]) -> None:
    step.n_features_in_ = found["n_features"]
    if found["feature_names"] is not None:
        step.feature_names_in_ = found["feature_names"]
    if found["output"] is not None:
        step.set_output(transform=found["output"])


# scikit-learn's scalers: parameters, and arrays of a number per column.


def _rows(value: Any, path: str, dims: dict[str, int]) -> Any:
    """Take the number of rows that a scaler has seen: one, or one per column where values were missing."""
    counts = array("i1 i2 i4 i8 f2 f4 f8", "n_features", least=0)
    return (counts if isinstance(value, np.ndarray) else whole(0, MOST))(value, path, dims)


def _is_like(value: Any, default: Any) -> bool:
    """Tell whether a parameter is true or false, or a pair of finite numbers, like its default."""
    if isinstance(default, bool):
        return isinstance(value, bool)
    is_pair = isinstance(value, tuple) and len(value) == 2
    return is_pair and all(type(part) in (int, float) and abs(part) <= LARGEST for part in value)


def _scaler(made: Any, names: str, columns: dict[str, str], *, counts_rows: bool = True) -> Kind:
    """Return the kind of a scaler; its columns map to the parameter that needs them, "" stands for always."""
    # "clip" is False where an older scikit-learn does not know it.
    defaults = {name: made().get_params().get(name, False) for name in names.split()}
    arrays = {name: finite("f2 f4 f8", "n_features") for name in columns}
    arrays["scale_"] = positive("f2 f4 f8", "n_features")

    def rules(found: dict[str, Any]) -> Rules:
        for name, value in found["params"].items():
            words = "neither true nor false" if isinstance(defaults[name], bool) else "no pair of numbers"
            yield _is_like(value, defaults[name]), f"{name} is {words}"
        for name, flag in columns.items():
            if flag:
                yield found["columns"][name] is not None or not found["params"][flag], f"{name} is missing"

    def pack_scaler(scaler: BaseEstimator) -> dict[str, Any]:
        step = _pack_step(scaler)
        seen = scaler.n_samples_seen_ if counts_rows else None
        rows = np.asarray(seen) if isinstance(seen, np.ndarray) and seen.ndim else seen and int(seen)
        fitted = {name: getattr(scaler, name) for name in columns}
        return step | {"params": pack_params(scaler), "columns": fitted, "rows": rows}

    def build(found: dict[str, Any]) -> BaseEstimator:
        scaler = made()
        known = {name: value for name, value in found["params"].items() if value or hasattr(scaler, name)}
        with refusing(made.__name__):  # clip=True, and a scikit-learn that does not know it
            scaler.set_params(**known)
        vars(scaler).update(found["columns"] | ({"n_samples_seen_": found["rows"]} if counts_rows else {}))
        _restore_step(scaler, found)
        return scaler

    fields: dict[str, Field] = {
        "n_features": whole(1, MOST),
        "params": params(defaults),
        "columns": Object(
            {name: maybe(arrays[name]) if flag else arrays[name] for name, flag in columns.items()}
        ),
        "rows": _rows if counts_rows else choice(None),
        **_STEP,
    }
    return Kind(made, Object(fields, rules), pack_scaler, build)


# TableEncoder: what was learned of each column. The codes of columns lie one behind the other: those of
# numbers as rows of five figures and their knots, those of categories as their levels. A date is the list
# of its parts, whose codes stand among the others.

_KINDS = ("number", "category", "date")
_FLAGGED = (NumberCode, LevelCode, DateCode)
_CODES = (type(None), *_FLAGGED, MissingCode)
_NUMBER, _LEVEL, _DATE = 1, 2, 3
_PARTS = {"year": _NUMBER, "month": _LEVEL, "weekday": _LEVEL, "hour": _NUMBER}
_TEXTS = {"month": set(MONTHS), "weekday": set(WEEKDAYS)}


def _chosen(mask: int) -> list[str]:
    return [part for bit, part in enumerate(PARTS) if mask >> bit & 1]


def _code_rules(found: dict[str, Any]) -> Rules:
    sizes, n_knots = found["sizes"], found["n_knots"]
    yield len(n_knots) + len(sizes) <= MAX_PARTS, f"expected at most {MAX_PARTS} columns and parts of dates"
    yield sum(n_knots.tolist()) == len(found["knots"]), "expected as many knots as n_knots says"
    yield sum(sizes.ravel().tolist()) == len(found["texts"]), "expected as many texts as sizes say"


def _encoder_rules(found: dict[str, Any]) -> Rules:
    dtype = found["params"]["dtype"]
    yield isinstance(dtype, str) and dtype in ("float64", "float32"), "dtype is not float64 or float32"
    kinds, types = found["kinds"].astype(int), found["codes"]["types"].astype(int)
    of_any_kind = np.isin(types, [_CODES.index(type(None)), _CODES.index(MissingCode)])
    yield np.all(of_any_kind | (types == kinds + 1)), "a column is coded as one of another kind"


_ENCODER = Object(
    {
        "n_features": whole(1, MAX_PARTS),
        "params": params(TableEncoder().get_params() | {"dtype": "float64"}),
        **_STEP,
        "sparse_output": FLAG,
        "kinds": array("u1", "n_features", least=0, most=len(_KINDS) - 1),
        "n_gaps": array("i8", "n_features", least=0),
        "n_levels": array("i8", "n_features", least=-1),
        "left_out": array("text", "n_features"),
        "notations?": NOTATIONS,
        "codes": Object(
            {
                "types": array("u1", "n_features"),  # of the kinds of columns
                "has_gaps": array("bool", "n_codes"),
                "parts": array("u1", "n_dates", least=1, most=2 ** len(PARTS) - 1),
                "figures": finite("f8", "n_numbers", 5),
                "n_knots": array("i8", "n_numbers", least=0),
                "knots": array("f8", "all_knots"),
                "sizes": array("i8", "n_levels", 2, least=0),
                "texts": array("text", "n_texts"),
            },
            _code_rules,
        ),
    },
    _encoder_rules,
)


def _pack_encoder(encoder: TableEncoder) -> dict[str, Any]:
    columns = encoder.columns_
    packed = _pack_step(encoder) | {
        "params": pack_params(encoder, dtype=np.dtype(encoder.dtype).name),
        "sparse_output": encoder.sparse_output_,
        "kinds": np.array([_KINDS.index(column.kind) for column in columns], dtype=np.uint8),
        "n_gaps": int64(column.n_missing for column in columns),
        "n_levels": int64(-1 if column.n_levels is None else column.n_levels for column in columns),
        "left_out": texts_of(column.left_out for column in columns),
        "codes": _pack_codes([column.code for column in columns]),
    }
    return packed | pack_notations(columns)


def _pack_codes(codes: list[Any]) -> dict[str, Any]:
    dates = [code.parts for code in codes if isinstance(code, DateCode)]
    flat = [each for code in codes for each in (code, *dict(getattr(code, "parts", ())).values())]
    numbers = [code for code in flat if isinstance(code, NumberCode)]
    levels = [code for code in flat if isinstance(code, LevelCode)]
    masks = [sum(1 << PARTS.index(part) for part, _ in parts) for parts in dates]
    figures = [[code.low, code.high, code.mean, code.scale, code.fill] for code in numbers]
    return {
        "types": np.array([_CODES.index(type(code)) for code in codes], dtype=np.uint8),
        "has_gaps": np.array([code.has_missing for code in flat if isinstance(code, _FLAGGED)], dtype=bool),
        "parts": np.array(masks, dtype=np.uint8),
        "figures": np.array(figures, dtype=np.float64).reshape(-1, 5),
        "n_knots": int64(len(code.knots) for code in numbers),
        "knots": np.concatenate([*(code.knots for code in numbers), np.empty(0)]),
        "sizes": int64((len(code.levels), len(code.rare)) for code in levels).reshape(-1, 2),
        "texts": texts_of(text for code in levels for text in (*code.levels, *code.rare)),
    }


def _build_encoder(found: dict[str, Any]) -> TableEncoder:
    encoder = TableEncoder(**found["params"] | {"dtype": np.dtype(found["params"]["dtype"]).type})
    _restore_step(encoder, found)
    encoder.sparse_output_ = found["sparse_output"]
    names = encoder._input_names()
    with refusing("TableEncoder"):
        encoder._check_parameters()
        encoder._groups()
        categorical_places(encoder.categorical, names, "categorical")
    kinds, n_gaps = [_KINDS[kind] for kind in found["kinds"]], found["n_gaps"].tolist()
    n_levels = [None if number < 0 else number for number in found["n_levels"].tolist()]
    codes, tags = _codes(found["codes"]), notations_of(found)
    parts = (names, kinds, codes, n_gaps, n_levels, found["left_out"], tags)
    with refusing("TableEncoder"):
        encoder.columns_ = encoder._with_ramps(list(map(TableColumn, *parts)))
    encoder.sources_ = output_sources(encoder.columns_)
    return encoder


def _codes(found: dict[str, Any]) -> list[Any]:
    """Return the code of every column, or None; refuse too few of their parts, and too many."""
    figures, knots = iter(found["figures"].tolist()), iter(cut(found["knots"], found["n_knots"]))
    texts, gaps = iter(cut(found["texts"], found["sizes"].ravel())), iter(found["has_gaps"].tolist())
    masks = iter(found["parts"].tolist())

    def simple(kind: int, part: str = "") -> NumberCode | LevelCode:
        if kind == _NUMBER:
            low, high, mean, scale, fill = next(figures)
            return _number(NumberCode(low, high, mean, scale, fill, next(knots), next(gaps)), part)
        return _level(LevelCode(tuple(next(texts)), tuple(next(texts)), next(gaps)), part)

    codes: list[Any] = []
    try:
        for kind in found["types"].tolist():
            if kind == _DATE:
                has_gaps = next(gaps)
                parts = [(part, simple(_PARTS[part], part)) for part in _chosen(next(masks))]
                codes.append(DateCode(tuple(parts), has_gaps))
            else:
                codes.append(
                    simple(kind) if kind in (_NUMBER, _LEVEL) else None if not kind else MissingCode()
                )
    except StopIteration:
        raise Refusal("TableEncoder: its codes lack a part.") from None
    if [*figures, *texts, *gaps, *masks]:
        raise Refusal("TableEncoder: its codes have a part too many.")
    return codes


def _number(code: NumberCode, part: str) -> NumberCode:
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        figures = np.array([code.low, code.high, code.mean]) / code.scale
        steps = np.diff(code.knots)
    if not (code.scale > 0 and np.isfinite(figures).all()) or not code.low <= code.high:
        raise Refusal("TableEncoder: the range of a number is not in order.")
    if len(code.knots) in (1, 2) or not np.all((steps > 0) & (steps < np.inf)):
        raise Refusal("TableEncoder: the knots of a number are not in order.")
    if part and code.has_missing:
        raise Refusal("TableEncoder: a part of a date has missing values of its own.")
    return code


def _level(code: LevelCode, part: str) -> LevelCode:
    texts = {*code.levels, *code.rare}
    if not code.levels or len(texts) < len(code.levels) + len(code.rare):
        raise Refusal("TableEncoder: the levels of a category are not different texts.")
    if any(is_missing(text) or len(text) > LONGEST_LEVEL for text in texts):
        raise Refusal("TableEncoder: a level of a category is missing or too long.")
    if part and (code.has_missing or not texts <= _TEXTS[part]):
        raise Refusal(f"TableEncoder: a date has a {part} that there is not.")
    return code


_ERM: dict[str, Field] = {"params": params(ERMClassifier().get_params(deep=False)), "fitted": _FITTED}
_CV = _ERM | {"params": params(ERMClassifierCV().get_params(deep=False)), "search": _SEARCH}
_ROWS = (
    Kind(ERMClassifier, Object(_ERM), _pack_classifier, _build_erm, is_classifier=True),
    Kind(ERMClassifierCV, Object(_CV), _pack_classifier, _build_cv, is_classifier=True),
    _model_additive.KIND,
    Kind(TableEncoder, _ENCODER, _pack_encoder, _build_encoder),
    _scaler(
        StandardScaler,
        "copy with_mean with_std",
        {"mean_": "with_mean", "var_": "with_std", "scale_": "with_std"},
    ),
    _scaler(
        MinMaxScaler,
        "copy clip feature_range",
        dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), ""),
    ),
    _scaler(MaxAbsScaler, "copy clip", {"max_abs_": "", "scale_": ""}),
    _scaler(
        RobustScaler,
        "with_centering with_scaling copy unit_variance quantile_range",
        {"center_": "with_centering", "scale_": "with_scaling"},
        counts_rows=False,
    ),
)
KINDS = {kind.made.__name__: kind for kind in _ROWS}

_PIPELINE = Object({"steps": instance(list), "verbose": FLAG})


def pack_model(model: BaseEstimator) -> dict[str, Any]:
    """Return the header's form of a classifier or of a pipeline that ends in one, arrays in their places."""
    packed = _pack_pipeline(model) if type(model) is Pipeline else _pack_kind(model, is_classifier=True)
    target = getattr(model, TARGET, None)
    return packed if target is None else {**packed, "target": target}


def unpack_model(value: Any) -> BaseEstimator:
    """Return the model of a header, complete and consistent, or raise ``Refusal``."""
    name, fields = _split(value)
    targets = [fields.pop(key) for key in ("target",) if key in fields]
    model = _unpack_pipeline(fields) if name == "Pipeline" else _unpack_kind(name, fields, is_classifier=True)
    for target in targets:
        is_name = isinstance(target, str) and not has_surrogates(target)
        if not is_name and (type(target) is not int or target < 0):
            raise Refusal(f"{TARGET} is {shown(target)}; expected the name of a column or its number from 0.")
        setattr(model, TARGET, target)
    return model


def _split(value: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of a kind, and its fields."""
    fields = dict(value) if isinstance(value, dict) else {}
    name = fields.pop("kind", None)
    return (name if isinstance(name, str) else shown(value)), fields


def _pack_kind(model: BaseEstimator, *, is_classifier: bool) -> dict[str, Any]:
    kind = KINDS.get(type(model).__name__)
    if kind is not None and type(model) is kind.made and kind.is_classifier == is_classifier:
        check_is_fitted(model)
        return {"kind": type(model).__name__} | kind.fields.ordered(kind.pack(model))
    if hasattr(model, "best_estimator_"):
        raise TypeError(f"{type(model).__name__} cannot be stored; store what it chose: its best_estimator_.")
    role = "classifier" if is_classifier else "step before the classifier"
    allowed = [name for name, kind in KINDS.items() if kind.is_classifier == is_classifier]
    allowed.append("or a Pipeline of such steps and one of these" if is_classifier else repr(PASSTHROUGH))
    raise TypeError(
        f"{type(model).__name__} cannot be stored as a {role}; a model file holds {', '.join(allowed)}."
    )


def _unpack_kind(name: str, fields: dict[str, Any], *, is_classifier: bool) -> Any:
    if not is_classifier and name == PASSTHROUGH and not fields:
        return PASSTHROUGH
    kind = KINDS.get(name)
    if kind is None or kind.is_classifier != is_classifier:
        role = "model" if is_classifier else "step before the classifier"
        raise Refusal(f"the file holds {shown(name)} as a {role}, which is unknown.", NEWER)
    return kind.build(kind.fields(fields, name, {}))


def _pack_pipeline(pipeline: Pipeline) -> dict[str, Any]:
    for name in ("memory", "transform_input"):
        if getattr(pipeline, name, None) is not None:
            raise ValueError(
                f"a Pipeline with {name} set cannot be stored; use set_params({name}=None) first."
            )
    steps: list[Any] = []
    for name, step in pipeline.steps:
        is_last = len(steps) == len(pipeline.steps) - 1
        is_idle = not is_last and (step is None or (isinstance(step, str) and step == PASSTHROUGH))
        packed = {"kind": PASSTHROUGH} if is_idle else _pack_kind(step, is_classifier=is_last)
        steps.append([name, packed])
    return {"kind": "Pipeline", "steps": steps, "verbose": bool(pipeline.verbose)}


def _unpack_pipeline(fields: dict[str, Any]) -> Pipeline:
    found = _PIPELINE(fields, "the pipeline", {})
    packed = found["steps"]
    if not packed or not all(isinstance(step, list) and len(step) == 2 for step in packed):
        raise Refusal(f"the pipeline has {shown(packed)}; expected pairs of a name and a step.")
    _check_names([name for name, _ in packed])
    steps: list[tuple[str, Any]] = []
    for name, step in packed:
        steps.append((name, _unpack_kind(*_split(step), is_classifier=len(steps) == len(packed) - 1)))
    _check_widths(steps)
    return Pipeline(steps, verbose=found["verbose"])


def _check_names(names: list[Any]) -> None:
    """Refuse what scikit-learn would: other than texts, equal ones, a parameter of a pipeline."""
    taken = ("", "steps", "memory", "verbose", "transform_input")
    allowed = {name for name in names if isinstance(name, str) and name not in taken and "__" not in name}
    if len(allowed) < len(names):
        raise Refusal(f"{shown(names)} are not allowed as names of steps.")


def _check_widths(steps: list[tuple[str, Any]]) -> None:
    """Refuse steps that do not take what the one before hands on."""
    handed_on: int | None = None
    for _, step in steps:
        if isinstance(step, str):
            continue
        if handed_on not in (None, step.n_features_in_):
            raise Refusal(
                f"the steps of the pipeline have {handed_on} and {step.n_features_in_} features; fit the "
                "whole pipeline, then save."
            )
        handed_on = step._n_features_out if isinstance(step, TableEncoder) else step.n_features_in_
