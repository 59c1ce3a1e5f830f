"""ERMClassifier in a model file: parameters, members (equal ones once), labels, quality, history."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from exclusivity.classifier import (
    TEST,
    TRAINING_IF,
    TRAINING_TOO,
    Ensemble,
    ERMClassifier,
    FittedState,
    check_parameters,
)
from exclusivity.persistence.arrays import all_finite
from exclusivity.persistence.container import ArrayStore, ArrayTable
from exclusivity.persistence.errors import DAMAGED, ModelFormatError
from exclusivity.persistence.fields import Fields
from exclusivity.persistence.histories import pack_histories, unpack_histories
from exclusivity.persistence.values import pack, pack_params, unpack, unpack_params

MAX_MEMBERS = 10**6
"""Equal members are stored once, whatever their number; votes are counted one by one."""

_KIND = "ERMClassifier"
_DEFAULTS = ERMClassifier().get_params(deep=False)
_MOST = 2**53
_CHUNK = 1 << 18


def pack_erm(model: ERMClassifier, store: ArrayStore) -> dict[str, Any]:
    """The header's form of a fitted classifier."""
    params = model.get_params(deep=False)
    check_parameters(params)
    return {"params": pack_params(params, _KIND, store), "fitted": pack_state(FittedState.of(model), store)}


def pack_state(state: FittedState, store: ArrayStore) -> dict[str, Any]:
    """The header's form of what a fit leaves behind."""
    ensemble = state.ensemble
    if not (all_finite(ensemble.weights) and all_finite(ensemble.intercepts)):
        raise ValueError(
            "the weights of this classifier are not finite: its fit failed; fit again, then save."
        )
    if ensemble.n_members > MAX_MEMBERS:
        raise ValueError(f"a model file holds at most {MAX_MEMBERS} members; this has {ensemble.n_members}.")
    return {
        "classes": store.add(state.classes, "classes_"),
        "weights": store.add(ensemble.weights, "components_"),
        "intercepts": store.add(ensemble.intercepts, "component_intercepts_"),
        "n_members": ensemble.n_members,
        "multi_class": state.multi_class,
        "exclusivity": pack(state.exclusivity, "exclusivity", store),
        "objective": store.add(state.objective, "objective_"),
        "dual_gap": store.add(state.dual_gap, "dual_gap_"),
        "converged": store.add(state.converged, "converged_"),
        "n_iter": store.add(_int64(state.n_iter), "n_iter_"),
        "history": pack_histories(state.history, store),
        "n_features": state.n_features,
        "feature_names": pack_names(state.feature_names, store),
        "groups": _pack_groups(state, store),
        "partition": None if state.partition is None else store.add(_int64(state.partition), "partition_"),
        # A key that older readers do not know: only where they must refuse the file.
        **({} if state.certificate_scope == TEST else {"certificate_scope": state.certificate_scope}),
    }


def pack_names(names: NDArray[Any] | None, store: ArrayStore) -> Any:
    """``feature_names_in_``, or None where the data had none."""
    return None if names is None else store.add(names, "feature_names_in_")


def unpack_names(reference: object, n_features: int, table: ArrayTable) -> NDArray[Any] | None:
    """The names of the columns: one text for each, or None."""
    if reference is None:
        return None
    names = table.take(reference, "the feature names")
    if names.dtype != object or names.shape != (n_features,):
        raise ModelFormatError(f"the file has not one name per feature. {DAMAGED}")
    return names


def unpack_erm(fields: Fields, table: ArrayTable) -> ERMClassifier:
    """A fitted classifier, complete and consistent."""
    params = unpack_params(fields.take("params"), _KIND, _DEFAULTS, table)
    refuse_parameters(params)
    return unpack_state(fields.take("fitted"), table).restore(ERMClassifier(**params))


def refuse_parameters(params: dict[str, Any]) -> None:
    """Refuse parameters of a file that the classifier would not accept."""
    try:
        check_parameters(params)
    except (TypeError, ValueError) as error:
        raise ModelFormatError(f"a parameter is not allowed: {str(error)[:300]} {DAMAGED}") from error


def unpack_state(value: object, table: ArrayTable) -> FittedState:
    """What a fit left behind, complete and consistent."""
    fields = Fields(value, "the fitted classifier")
    multi_class = fields.text("multi_class", ("ovr", "ovo"))
    classes = table.take(fields.take("classes"), "the classes")
    n_features = fields.integer("n_features", 1, _MOST)
    _check_classes(classes)
    n_problems = count_problems(len(classes), multi_class)
    ensemble = _unpack_ensemble(fields, table, n_problems, n_features)
    state = FittedState(
        classes=classes,
        ensemble=ensemble,
        multi_class=multi_class,
        exclusivity=_exclusivity(fields, table),
        objective=_per_problem(fields, "objective", np.float64, n_problems, table),
        dual_gap=_per_problem(fields, "dual_gap", np.float64, n_problems, table),
        converged=_per_problem(fields, "converged", np.bool_, n_problems, table),
        n_iter=_per_problem(fields, "n_iter", np.int64, n_problems, table),
        history=unpack_histories(fields.take("history"), n_problems, table),
        n_features=n_features,
        feature_names=unpack_names(fields.take("feature_names"), n_features, table),
        **_unpack_groups(fields, table, ensemble),
        certificate_scope=_unpack_scope(fields),
    )
    fields.finish()
    return state


def _unpack_scope(fields: Fields) -> str:
    if not fields.has("certificate_scope"):
        return TEST
    found = fields.take("certificate_scope")
    if found not in (TRAINING_TOO, TRAINING_IF):
        raise fields.wrong("certificate_scope", found, f"{TRAINING_TOO!r} or {TRAINING_IF!r}")
    return str(found)


def count_problems(n_classes: int, multi_class: str) -> int:
    """Binary problems behind so many classes."""
    if n_classes == 2:
        return 1
    return n_classes if multi_class == "ovr" else n_classes * (n_classes - 1) // 2


def _check_classes(classes: NDArray[Any]) -> None:
    if classes.ndim != 1 or len(classes) < 2:
        raise ModelFormatError(f"the classes have shape {classes.shape}; expected two or more. {DAMAGED}")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ModelFormatError(f"a class is not a finite number. {DAMAGED}")
    if not np.all(classes[:-1] < classes[1:]):
        raise ModelFormatError(f"the classes are not in increasing order. {DAMAGED}")


def _unpack_ensemble(fields: Fields, table: ArrayTable, n_problems: int, n_features: int) -> Ensemble:
    weights = table.take(fields.take("weights"), "the weights")
    intercepts = table.take(fields.take("intercepts"), "the intercepts")
    n_members = fields.integer("n_members", 1, MAX_MEMBERS)
    shapes = [(n_problems, n_stored, n_features) for n_stored in (1, n_members)]
    if weights.dtype not in (np.float32, np.float64) or weights.shape not in shapes:
        raise ModelFormatError(
            f"the weights are {weights.dtype} of shape {weights.shape}; expected one of {shapes}. {DAMAGED}"
        )
    if intercepts.dtype != weights.dtype or intercepts.shape != weights.shape[:2]:
        raise ModelFormatError(
            f"the intercepts have shape {intercepts.shape} beside these weights. {DAMAGED}"
        )
    if not (all_finite(weights) and all_finite(intercepts)):
        raise ModelFormatError(f"a weight is not a finite number. {DAMAGED}")
    return Ensemble(weights, intercepts, n_members)


def _exclusivity(fields: Fields, table: ArrayTable) -> float:
    value = unpack(fields.take("exclusivity"), "exclusivity", table)
    if not isinstance(value, float) or not value >= 0:
        raise fields.wrong("exclusivity", value, "a number >= 0")
    return value


def _per_problem(
    fields: Fields, name: str, dtype: DTypeLike, n_problems: int, table: ArrayTable
) -> NDArray[Any]:
    array = table.take(fields.take(name), name)
    if array.dtype != dtype or array.shape != (n_problems,):
        raise fields.wrong(name, array.shape, f"{np.dtype(dtype)} of shape {(n_problems,)}")
    return array


def _int64(values: object) -> NDArray[np.int64]:
    return np.asarray(values, dtype=np.int64)


def _pack_groups(state: FittedState, store: ArrayStore) -> Any:
    """Feature groups; None stands for a group per column where the file is long enough without them.

    A loaded model has them in any case, and shall not take more than twice the memory of its file.
    """
    if _are_plain(state.groups) and state.ensemble.weights.nbytes >= 8 * state.n_features:
        return None
    return store.add(_int64(state.groups), "groups_")


def _are_plain(groups: NDArray[Any]) -> bool:
    """Whether every column is a group of its own, 0, 1, 2, ..."""
    return all(
        np.array_equal(groups[at : at + _CHUNK], np.arange(at, min(at + _CHUNK, len(groups))))
        for at in range(0, len(groups), _CHUNK)
    )


def _unpack_groups(fields: Fields, table: ArrayTable, ensemble: Ensemble) -> dict[str, Any]:
    """Feature groups, numbered in the order of their first columns, and their owners."""
    groups, partition = (
        None if reference is None else table.take(reference, name)
        for name, reference in ((name, fields.take(name)) for name in ("groups", "partition"))
    )
    n_features = ensemble.weights.shape[2]
    if groups is None:
        if ensemble.weights.nbytes < 8 * n_features:
            raise fields.wrong("groups", groups, "an array")
        groups = np.arange(n_features)
    elif not _are_groups(groups, n_features):
        raise fields.wrong("groups", groups.shape, "one number per feature, in the order of appearance")
    if partition is not None:
        n_groups = int(groups.max()) + 1
        fits = partition.dtype == np.int64 and partition.shape == (n_groups,)
        if not fits or partition.min() < -1 or partition.max() >= ensemble.n_members:
            raise fields.wrong("partition", partition.shape, f"the member of each of {n_groups} groups")
        partition = partition.astype(np.intp, copy=False)
    return {"groups": groups.astype(np.intp, copy=False), "partition": partition}


def _are_groups(groups: NDArray[Any], n_features: int) -> bool:
    """0 first, and nowhere a number that is more than one above all before it."""
    if groups.dtype != np.int64 or groups.shape != (n_features,):
        return False
    highest = -1
    for start in range(0, n_features, _CHUNK):  # no arrays of the size of the file beside it
        steps = np.maximum.accumulate(np.r_[highest, groups[start : start + _CHUNK]])
        if groups[start : start + _CHUNK].min() < 0 or np.diff(steps).max() > 1:
            return False
        highest = steps[-1]
    return True
