"""The closed table of what a model file can hold. A file names a row of it and nothing else.

A kind is a class, the fields of its objects in a file, and a pair of functions: from an object to its fields
and back. To add one, add a row to ``_ROWS``. Arrays are stored in the order of the fields.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from exclusivity.classifier import ERMClassifier, ERMClassifierCV
from exclusivity.classifier._ensemble import Ensemble, FittedState
from exclusivity.classifier._path import SearchState
from exclusivity.classifier._validation import TEST, TRAINING_IF, TRAINING_TOO, check_parameters
from exclusivity.io import _model_values as field
from exclusivity.io._model_tables import ADDITIVE, ENCODER, STEP, pack_step, restore_step
from exclusivity.io._model_values import MAX_PARTS, NEWER, Kind, Refusal, Rules, pack_params, refusing, shown

PASSTHROUGH = "passthrough"
TARGET = "target_column_"
"""The attribute of a model that names the column of its classes, by name or number."""

MAX_MEMBERS = 10**6
"""Equal members are stored once, whatever their number; votes are counted one by one."""

# ERMClassifier: parameters, members (equal ones once), labels, quality.


def count_problems(n_classes: int, multi_class: str) -> int:
    """Return the number of binary problems behind so many classes."""
    if n_classes == 2:
        return 1
    return n_classes if multi_class == "ovr" else n_classes * (n_classes - 1) // 2


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


_FITTED = field.Object(
    {
        "n_features": field.whole(1, field.MOST),
        "classes": field.CLASSES,
        "weights": field.finite("f4 f8", "n_problems", "n_stored", "n_features"),
        "intercepts": field.finite("f4 f8", "n_problems", "n_stored"),
        "n_members": field.whole(1, MAX_MEMBERS),
        "multi_class": field.choice("ovr", "ovo"),
        "exclusivity": field.parameter,
        "objective": field.array("f8", "n_problems"),
        "dual_gap": field.array("f8", "n_problems"),
        "converged": field.array("bool", "n_problems"),
        "n_iter": field.array("i8", "n_problems"),
        "history?": field.instance(dict),  # of versions up to 0.2.0; it is not read
        "feature_names": field.NAMES,
        "groups": field.maybe(field.GROUPS),
        "partition": field.maybe(field.array("i8", "n_groups", least=-1)),
        "certificate_scope?": field.choice(TRAINING_TOO, TRAINING_IF),
    },
    _fitted_rules,
)


def _pack_fitted(model: BaseEstimator) -> dict[str, Any]:
    state = FittedState.of(model)
    values = vars(state) | vars(state.ensemble)
    packed = {name: values[name] for name in _FITTED.fields if name in values}
    packed["exclusivity"] = field.pack(state.exclusivity, "exclusivity")
    for name in ("n_iter", "groups", "partition"):
        packed[name] = None if packed[name] is None else np.asarray(packed[name], dtype=np.int64)
    # Groups are numbered as they appear: where the last number is the largest possible, all of them differ.
    is_long = state.ensemble.weights.nbytes >= 8 * state.n_features
    if is_long and state.groups[-1] == state.n_features - 1:
        packed["groups"] = None
    # A key that older readers do not know: only where they must refuse the file.
    scope = state.certificate_scope
    return packed if scope == TEST else packed | {"certificate_scope": scope}


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


_SEARCH = field.Object(
    {
        "Cs": field.positive("f8", "n_Cs"),
        "scores": field.array("f8", "n_folds", "n_Cs"),
        "mean_n_iter": field.array("f8", "n_Cs"),
        "max_dual_gap": field.array("f8", "n_Cs"),
    },
    _search_rules,
)


def _build_cv(found: dict[str, Any]) -> Any:
    model = _restore_fitted(found["fitted"], ERMClassifierCV(**found["params"]))
    with refusing("ERMClassifierCV"):
        SearchState(**found["search"]).restore(model)
    return model


# scikit-learn's scalers: parameters, and arrays of a number per column.


def _rows(value: Any, path: str, dims: dict[str, int]) -> Any:
    """Take the number of rows that a scaler has seen: one, or one per column where values were missing."""
    counts = field.array("i1 i2 i4 i8 f2 f4 f8", "n_features", least=0)
    return (counts if isinstance(value, np.ndarray) else field.whole(0, field.MOST))(value, path, dims)


def _pair(value: Any, path: str, dims: dict[str, int]) -> Any:
    """Take a parameter that is a pair of finite numbers."""

    def fits(found: Any) -> bool:
        is_pair = isinstance(found, tuple) and len(found) == 2
        return is_pair and all(type(part) in (int, float) and abs(part) <= field.LARGEST for part in found)

    return field.plain("a pair of numbers", fits)(field.parameter(value, path), path, dims)


def _scaler(made: Any, names: str, columns: dict[str, str], *, counts_rows: bool = True) -> Kind:
    """Return the kind of a scaler; its columns map to the parameter that needs them, "" stands for always."""
    # "clip" is False where an older scikit-learn does not know it.
    defaults = {name: made().get_params().get(name, False) for name in names.split()}
    kinds = {name: field.FLAG if isinstance(value, bool) else _pair for name, value in defaults.items()}
    arrays = {name: field.finite("f2 f4 f8", "n_features") for name in columns}
    arrays["scale_"] = field.positive("f2 f4 f8", "n_features")
    arrays |= {name: field.maybe(arrays[name]) for name, flag in columns.items() if flag}

    def rules(found: dict[str, Any]) -> Rules:
        for name, flag in columns.items():
            if flag:
                yield found["columns"][name] is not None or not found["params"][flag], f"{name} is missing"

    def pack_scaler(scaler: BaseEstimator) -> dict[str, Any]:
        seen = getattr(scaler, "n_samples_seen_", None)
        fitted = {name: getattr(scaler, name) for name in columns}
        rows = seen if seen is None or np.ndim(seen) else int(seen)
        return {"params": pack_params(scaler), "columns": fitted, "rows": rows} | pack_step(scaler)

    def build(found: dict[str, Any]) -> BaseEstimator:
        known = {name: value for name, value in found["params"].items() if value or hasattr(made(), name)}
        with refusing(made.__name__):  # clip=True, and a scikit-learn that does not know it
            scaler = made(**known)
        vars(scaler).update(found["columns"] | ({"n_samples_seen_": found["rows"]} if counts_rows else {}))
        restore_step(scaler, found)
        return scaler

    fields: dict[str, field.Field] = {
        "n_features": field.whole(1, field.MOST),
        "params": field.params(defaults, **kinds),
        "columns": field.Object(arrays),
        "rows": _rows if counts_rows else field.choice(None),
        **STEP,
    }
    return Kind(made, field.Object(fields, rules), pack_scaler, build)


_ERM: dict[str, field.Field] = {
    "params": field.params(ERMClassifier().get_params(deep=False)),
    "fitted": _FITTED,
}
_CV = _ERM | {"params": field.params(ERMClassifierCV().get_params(deep=False)), "search": _SEARCH}
_ROWS = (
    Kind(ERMClassifier, field.Object(_ERM), _pack_classifier, _build_erm, is_classifier=True),
    Kind(ERMClassifierCV, field.Object(_CV), _pack_classifier, _build_cv, is_classifier=True),
    ADDITIVE,
    ENCODER,
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

_PIPELINE = field.Object({"steps": field.instance(list), "verbose": field.FLAG})


def pack_model(model: BaseEstimator) -> dict[str, Any]:
    """Return the header's form of a classifier or of a pipeline that ends in one, arrays in their places."""
    packed = _pack_pipeline(model) if type(model) is Pipeline else _pack_kind(model, is_classifier=True)
    target = getattr(model, TARGET, None)
    return packed if target is None else {**packed, "target": target}


def unpack_model(value: Any) -> BaseEstimator:
    """Return the model of a header, complete and consistent, or raise ``Refusal``."""
    name, fields = _split(value)
    has_target, target = "target" in fields, fields.pop("target", None)
    model = _unpack_pipeline(fields) if name == "Pipeline" else _unpack_kind(name, fields, is_classifier=True)
    if has_target:
        is_name = isinstance(target, str) and not field.has_surrogates(target)
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
        return {"kind": type(model).__name__} | kind.pack(model)
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
        handed_on = getattr(step, "_n_features_out", step.n_features_in_)
