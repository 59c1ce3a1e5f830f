"""The closed table of what a model file can hold. A file names a row of it and nothing else.

To add a kind, write a pair of functions like ``pack_erm`` and ``unpack_erm`` and add a row to ``_kinds``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from exclusivity.classifier import ERMClassifier, ERMClassifierCV
from exclusivity.persistence.container import ArrayStore, ArrayTable
from exclusivity.persistence.cv_kind import pack_cv, unpack_cv
from exclusivity.persistence.encoder_kind import pack_encoder, unpack_encoder
from exclusivity.persistence.erm_kind import pack_erm, unpack_erm
from exclusivity.persistence.errors import DAMAGED, NEWER, ModelFormatError, shown
from exclusivity.persistence.fields import Fields
from exclusivity.persistence.interactions_kind import pack_interactions, unpack_interactions
from exclusivity.persistence.scaler_kinds import SCALERS, pack_scaler, unpack_scaler
from exclusivity.tables import InteractionFeatures, TableEncoder

PASSTHROUGH = "passthrough"
TARGET = "target_column_"
"""What a model may know besides: the column of its classes, by name or number."""

_PIPELINE_PARAMS = ("steps", "memory", "verbose", "transform_input")


@dataclass(frozen=True)
class Kind:
    """One row of the table.

    Attributes
    ----------
    made : type
        The class of the objects; a subclass is another kind.
    pack : callable
        From an object and a store of arrays to the header's form.
    unpack : callable
        From ``Fields`` of that form and a table of arrays to the object.
    is_classifier : bool
        Else it may only stand before a classifier in a pipeline.
    """

    made: type
    pack: Callable[[Any, ArrayStore], dict[str, Any]]
    unpack: Callable[[Fields, ArrayTable], Any]
    is_classifier: bool


def _kinds() -> dict[str, Kind]:
    table = {
        "ERMClassifier": Kind(ERMClassifier, pack_erm, unpack_erm, is_classifier=True),
        "ERMClassifierCV": Kind(ERMClassifierCV, pack_cv, unpack_cv, is_classifier=True),
        "TableEncoder": Kind(TableEncoder, pack_encoder, unpack_encoder, is_classifier=False),
        "InteractionFeatures": Kind(
            InteractionFeatures, pack_interactions, unpack_interactions, is_classifier=False
        ),
    }
    for name, scaler in SCALERS.items():
        made: Any = scaler.make
        table[name] = Kind(
            made, partial(pack_scaler, name), partial(unpack_scaler, name), is_classifier=False
        )
    return table


KINDS = _kinds()


def pack_model(model: BaseEstimator, store: ArrayStore) -> dict[str, Any]:
    """The header's form of a classifier or of a pipeline that ends in one."""
    is_pipeline = type(model) is Pipeline
    packed = _pack_pipeline(model, store) if is_pipeline else _pack_kind(model, store, is_classifier=True)
    target = getattr(model, TARGET, None)
    if target is None:
        return packed
    if not _is_column(target):
        raise TypeError(f"{TARGET} must be the name of a column or its number from 0; got {target!r}.")
    return {**packed, "target": target}


def unpack_model(value: object, table: ArrayTable) -> BaseEstimator:
    """The model of a header; all arrays must be used."""
    fields = Fields(value, "the model")
    name = fields.text("kind")
    model = _unpack_pipeline(fields, table) if name == "Pipeline" else _unpack_kind(name, fields, table, True)
    if fields.has("target"):
        target = fields.take("target")
        if not _is_column(target):
            raise fields.wrong("target", target, "the name of a column or its number")
        setattr(model, TARGET, target)
    fields.finish()
    table.finish()
    return model


def _is_column(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)


def _pack_kind(model: BaseEstimator, store: ArrayStore, *, is_classifier: bool) -> dict[str, Any]:
    for name, kind in KINDS.items():
        if type(model) is kind.made and kind.is_classifier == is_classifier:
            return {"kind": name, **kind.pack(model, store)}
    role = "classifier" if is_classifier else "step before the classifier"
    allowed = [name for name, kind in KINDS.items() if kind.is_classifier == is_classifier]
    if hasattr(model, "best_estimator_"):
        raise TypeError(f"{type(model).__name__} cannot be stored; store what it chose: its best_estimator_.")
    raise TypeError(
        f"{type(model).__name__} cannot be stored as a {role}; a model file holds {', '.join(allowed)}"
        + (
            ", or a Pipeline of scalers or a TableEncoder and one of these."
            if is_classifier
            else f" and {PASSTHROUGH!r}."
        )
    )


def _unpack_kind(name: str, fields: Fields, table: ArrayTable, is_classifier: bool) -> BaseEstimator:
    kind = KINDS.get(name)
    if kind is None or kind.is_classifier != is_classifier:
        role = "model" if is_classifier else "step before the classifier"
        raise ModelFormatError(f"the file holds {shown(name)} as a {role}, which is unknown. {NEWER}")
    return kind.unpack(fields, table)


def _pack_pipeline(pipeline: Pipeline, store: ArrayStore) -> dict[str, Any]:
    for name in ("memory", "transform_input"):
        if getattr(pipeline, name, None) is not None:
            raise ValueError(
                f"a Pipeline with {name} set cannot be stored; use set_params({name}=None) first."
            )
    *before, (last_name, last) = pipeline.steps
    _check_names([name for name, _ in pipeline.steps], ValueError, "")
    steps: list[Any] = []
    for name, step in before:
        if step is None or (isinstance(step, str) and step == PASSTHROUGH):
            steps.append([name, {"kind": PASSTHROUGH}])
        else:
            steps.append([name, _pack_kind(step, store, is_classifier=False)])
    steps.append([last_name, _pack_kind(last, store, is_classifier=True)])
    _check_widths(pipeline.steps, ValueError, "Fit the whole pipeline, then save.")
    return {"kind": "Pipeline", "steps": steps, "verbose": bool(pipeline.verbose)}


def _unpack_pipeline(fields: Fields, table: ArrayTable) -> Pipeline:
    packed = fields.items("steps")
    if not packed or not all(isinstance(step, list) and len(step) == 2 for step in packed):
        raise fields.wrong("steps", packed, "pairs of a name and a step")
    _check_names([name for name, _ in packed], ModelFormatError, DAMAGED)
    steps = []
    for place, (name, value) in enumerate(packed):
        step = Fields(value, f"step {shown(name)}")
        kind = step.text("kind")
        is_last = place == len(packed) - 1
        found: Any = PASSTHROUGH
        if is_last or kind != PASSTHROUGH:
            found = _unpack_kind(kind, step, table, is_classifier=is_last)
        step.finish()
        steps.append((name, found))
    _check_widths(steps, ModelFormatError, DAMAGED)
    return Pipeline(steps, verbose=fields.boolean("verbose"))


def _check_names(names: list[Any], error: type[Exception], remedy: str) -> None:
    """As scikit-learn wants them: different texts, no double underscore, no parameter of a pipeline."""
    wrong = [
        name
        for name in names
        if not isinstance(name, str) or not name or "__" in name or name in _PIPELINE_PARAMS
    ]
    if wrong or len(set(names)) < len(names):
        raise error(f"{shown(names)} are not allowed as names of steps. {remedy}".rstrip())


def _check_widths(steps: list[tuple[str, Any]], error: type[Exception], remedy: str) -> None:
    """What a step hands on, the next one takes."""
    handed_on: int | None = None
    for _, step in steps:
        if step is None or isinstance(step, str):
            continue
        if handed_on not in (None, step.n_features_in_):
            widths = [handed_on, step.n_features_in_]
            raise error(f"the steps of the pipeline have {shown(widths)} features. {remedy}")
        is_wider = isinstance(step, (TableEncoder, InteractionFeatures))
        handed_on = step._n_features_out if is_wider else step.n_features_in_
