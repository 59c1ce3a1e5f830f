"""scikit-learn's column-wise scalers in a model file, rebuilt from their documented fitted attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from exclusivity.persistence.arrays import all_finite
from exclusivity.persistence.container import ArrayStore, ArrayTable
from exclusivity.persistence.erm_kind import pack_names, unpack_names
from exclusivity.persistence.errors import DAMAGED, ModelFormatError, shown
from exclusivity.persistence.fields import Fields
from exclusivity.persistence.values import pack_params, unpack_params

_MOST = 2**53
_OUTPUTS = ("default", "pandas", "polars")


@dataclass(frozen=True)
class ScalerKind:
    """What makes a scaler of one class.

    Attributes
    ----------
    make : callable
        Its class.
    flags, ranges : tuple of str
        Parameters that are true or false, and that are pairs of numbers.
    columns : tuple of str
        Fitted attributes with one number per column.
    optional : dict
        Those of them that may be None, and the flag that says when they are needed.
    counts_rows : bool
        Whether it has ``n_samples_seen_``.
    """

    make: Callable[[], Any]
    flags: tuple[str, ...]
    ranges: tuple[str, ...]
    columns: tuple[str, ...]
    optional: dict[str, str]
    counts_rows: bool = True


SCALERS = {
    "StandardScaler": ScalerKind(
        StandardScaler,
        flags=("copy", "with_mean", "with_std"),
        ranges=(),
        columns=("mean_", "var_", "scale_"),
        optional={"mean_": "with_mean", "var_": "with_std", "scale_": "with_std"},
    ),
    "MinMaxScaler": ScalerKind(
        MinMaxScaler,
        flags=("copy", "clip"),
        ranges=("feature_range",),
        columns=("min_", "scale_", "data_min_", "data_max_", "data_range_"),
        optional={},
    ),
    "MaxAbsScaler": ScalerKind(
        MaxAbsScaler, flags=("copy", "clip"), ranges=(), columns=("max_abs_", "scale_"), optional={}
    ),
    "RobustScaler": ScalerKind(
        RobustScaler,
        flags=("with_centering", "with_scaling", "copy", "unit_variance"),
        ranges=("quantile_range",),
        columns=("center_", "scale_"),
        optional={"center_": "with_centering", "scale_": "with_scaling"},
        counts_rows=False,
    ),
}

# Parameters that older versions of scikit-learn lack, and the value at which the lack makes no difference.
_LATER = {("MaxAbsScaler", "clip"): False}


def pack_scaler(name: str, scaler: BaseEstimator, store: ArrayStore) -> dict[str, Any]:
    """The header's form of a fitted scaler."""
    check_is_fitted(scaler)
    kind = SCALERS[name]
    params = scaler.get_params(deep=False)
    fault = _parameter_fault(kind, params)
    if fault:
        raise ValueError(f"{name} cannot be stored: {fault}.")
    columns = {attribute: getattr(scaler, attribute) for attribute in kind.columns}
    for attribute, values in columns.items():
        if values is not None and not np.isfinite(values).all():
            raise ValueError(
                f"{attribute} of {name} is not finite: a column had no finite values; fit it again."
            )
    return {
        "params": pack_params(params, name, store),
        "columns": {
            attribute: None if values is None else store.add(np.asarray(values), attribute)
            for attribute, values in columns.items()
        },
        "rows": _pack_rows(scaler.n_samples_seen_, store) if kind.counts_rows else None,
        "output": output_of(scaler),
        "n_features": scaler.n_features_in_,
        "feature_names": pack_names(getattr(scaler, "feature_names_in_", None), store),
    }


def unpack_scaler(name: str, fields: Fields, table: ArrayTable) -> BaseEstimator:
    """A fitted scaler, complete and consistent."""
    kind = SCALERS[name]
    scaler = kind.make()
    params = _unpack_scaler_params(name, fields.take("params"), scaler, table)
    n_features = fields.integer("n_features", 1, _MOST)
    columns = Fields(fields.take("columns"), f"the columns of {name}")
    for attribute in kind.columns:
        reference = columns.take(attribute)
        needed = kind.optional.get(attribute)
        if reference is None and needed is not None and not params[needed]:
            setattr(scaler, attribute, None)
        else:
            setattr(scaler, attribute, _column(reference, attribute, n_features, table))
    columns.finish()
    rows = fields.take("rows")
    if kind.counts_rows:
        scaler.n_samples_seen_ = _unpack_rows(rows, n_features, table)
    elif rows is not None:
        raise fields.wrong("rows", rows, "nothing")
    scaler.set_params(**params)
    scaler.n_features_in_ = n_features
    names = unpack_names(fields.take("feature_names"), n_features, table)
    if names is not None:
        scaler.feature_names_in_ = names
    restore_output(scaler, fields)
    return scaler


def _unpack_scaler_params(
    name: str, value: object, scaler: BaseEstimator, table: ArrayTable
) -> dict[str, Any]:
    known = scaler.get_params(deep=False)
    later = {param: harmless for (owner, param), harmless in _LATER.items() if owner == name}
    found = unpack_params(value, name, {**later, **known}, table)
    for param in later.keys() - known.keys():
        if found.pop(param) is not later[param]:
            raise ModelFormatError(
                f"{name} has {param} set, which the installed scikit-learn does not know; upgrade it "
                "(pip install -U scikit-learn)."
            )
    fault = _parameter_fault(SCALERS[name], found)
    if fault:
        raise ModelFormatError(f"{name}: {fault}. {DAMAGED}")
    return found


def _parameter_fault(kind: ScalerKind, params: dict[str, Any]) -> str | None:
    for name, value in params.items():
        if name in kind.flags:
            fine = isinstance(value, (bool, np.bool_))
        elif name in kind.ranges:
            fine = isinstance(value, tuple) and len(value) == 2 and all(map(_is_finite, value))
        else:
            return f"its parameter {name!r} is new to this version of exclusivity"
        if not fine:
            return f"its parameter {name} is {shown(value)}"
    return None


def _is_finite(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and bool(np.isfinite(float(value)))


def _column(reference: object, name: str, n_features: int, table: ArrayTable) -> NDArray[Any]:
    values = table.take(reference, name)
    if values.dtype.kind != "f" or values.shape != (n_features,) or not all_finite(values):
        raise ModelFormatError(f"{name} is not one finite number per feature. {DAMAGED}")
    if name == "scale_" and not np.all(values > 0):
        raise ModelFormatError(f"scale_ is not positive for every feature. {DAMAGED}")
    return values


def _pack_rows(seen: Any, store: ArrayStore) -> Any:
    return store.add(np.asarray(seen), "n_samples_seen_") if np.ndim(seen) else int(seen)


def _unpack_rows(rows: object, n_features: int, table: ArrayTable) -> Any:
    if isinstance(rows, int) and not isinstance(rows, bool) and 0 <= rows <= _MOST:
        return rows
    seen = table.take(rows, "n_samples_seen_")
    if (
        seen.dtype.kind not in "if"
        or seen.shape != (n_features,)
        or not np.all((seen >= 0) & (seen < np.inf))
    ):
        raise ModelFormatError(f"n_samples_seen_ is not one count per feature. {DAMAGED}")
    return seen


def output_of(transformer: BaseEstimator) -> str | None:
    """What ``set_output`` was told, if it was."""
    chosen: str | None = getattr(transformer, "_sklearn_output_config", {}).get("transform")
    return chosen


def restore_output(transformer: BaseEstimator, fields: Fields) -> None:
    """Tell a transformer what ``set_output`` had told it."""
    output = fields.take("output")
    if output is None:
        return
    if output not in _OUTPUTS:
        raise fields.wrong("output", output, " or ".join(_OUTPUTS))
    transformer.set_output(transform=output)
