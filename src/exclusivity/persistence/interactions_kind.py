"""InteractionFeatures in a model file: who owns which column, and the landmarks of every member."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from exclusivity.classifier import ERMClassifier
from exclusivity.persistence.arrays import all_finite
from exclusivity.persistence.container import ArrayStore, ArrayTable
from exclusivity.persistence.erm_kind import pack_names, refuse_parameters, unpack_names
from exclusivity.persistence.errors import DAMAGED, ModelFormatError
from exclusivity.persistence.fields import Fields
from exclusivity.persistence.scaler_kinds import output_of, restore_output
from exclusivity.persistence.values import pack_params, unpack_params
from exclusivity.tables import InteractionFeatures, KernelMap

_NAME = "InteractionFeatures"
_DEFAULTS = InteractionFeatures().get_params(deep=False)
_VOTERS = ERMClassifier().get_params(deep=False)
_MOST = 2**53
_MAX_MEMBERS = 10_000


def pack_interactions(step: InteractionFeatures, store: ArrayStore) -> dict[str, Any]:
    """The header's form of a fitted step."""
    check_is_fitted(step)
    if len(step.maps_) > _MAX_MEMBERS:
        raise ValueError(f"a model file holds interactions of at most {_MAX_MEMBERS} members.")
    arrays = {
        "owners": step.owners_.astype(np.int64),
        "sizes": np.array([learned.mixing.shape for learned in step.maps_], dtype=np.int64),
        "decays": np.array([learned.decay for learned in step.maps_], dtype=np.float64),
        "landmarks": np.concatenate([learned.landmarks.ravel() for learned in step.maps_]),
        "mixing": np.concatenate([learned.mixing.ravel() for learned in step.maps_]),
    }
    members = np.unique(step.members_)
    return {
        "params": pack_params(step.get_params(deep=False) | {"voters": None}, _NAME, store),
        "voters": None if step.voters is None else _pack_voters(step.voters, store),
        "n_features": step.n_features_in_,
        "feature_names": pack_names(getattr(step, "feature_names_in_", None), store),
        "output": output_of(step),
        "members": store.add(members.astype(np.int64), "members"),
        **{name: store.add(array, name) for name, array in arrays.items()},
    }


def unpack_interactions(fields: Fields, table: ArrayTable) -> InteractionFeatures:
    """A fitted step, complete and consistent."""
    step = InteractionFeatures(**unpack_params(fields.take("params"), _NAME, _DEFAULTS, table))
    try:
        step._check_parameters()
    except (TypeError, ValueError) as error:
        raise ModelFormatError(f"{_NAME}: {str(error)[:300]} {DAMAGED}") from None
    if step.voters is not None:
        raise ModelFormatError(f"parameters of {_NAME} hold voters, whose place is elsewhere. {DAMAGED}")
    voters = fields.take("voters")
    step.voters = None if voters is None else _unpack_voters(voters, table)
    step.n_features_in_ = n_features = fields.integer("n_features", 1, _MOST)
    names = unpack_names(fields.take("feature_names"), n_features, table)
    if names is not None:
        step.feature_names_in_ = names
    restore_output(step, fields)
    owners = table.shaped(fields, "owners", "i8", (n_features,))
    members = table.shaped(fields, "members", "i8", (None,))
    count = len(members)
    is_known = np.isin(members, owners).all() and np.all(members >= 0) and np.all(np.diff(members) > 0)
    if not 0 < count <= _MAX_MEMBERS or not is_known:
        raise ModelFormatError(f"the members of {_NAME} are not owners of columns. {DAMAGED}")
    decays = table.shaped(fields, "decays", "f8", (count,))
    if not all_finite(decays) or decays.min() <= 0:
        raise ModelFormatError(f"a member of {_NAME} has no scale. {DAMAGED}")
    columns, sizes = _columns(owners, members), _sizes(fields, count, table)
    wide = [(rows, len(own)) for (rows, _), own in zip(sizes, columns, strict=True)]
    landmarks = _matrices(fields, "landmarks", wide, table)
    mixing = _matrices(fields, "mixing", sizes, table)
    maps = map(KernelMap, columns, landmarks, decays.tolist(), mixing)
    step._store(owners.astype(np.intp, copy=False), dict(zip(members.tolist(), maps, strict=True)))
    return step


def _pack_voters(voters: ERMClassifier, store: ArrayStore) -> dict[str, Any]:
    if type(voters) is not ERMClassifier:
        raise TypeError(
            f"voters of {_NAME} are a {type(voters).__name__}; a model file holds an ERMClassifier."
        )
    return pack_params(voters.get_params(deep=False), "voters", store)


def _unpack_voters(value: object, table: ArrayTable) -> ERMClassifier:
    """Not fitted; what is not allowed is refused as in a classifier."""
    params = unpack_params(value, "voters", _VOTERS, table)
    refuse_parameters(params)
    return ERMClassifier(**params)


def _columns(owners: NDArray[np.int64], members: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """The columns of each of these members, in order; one sort for all."""
    order = np.argsort(owners, kind="stable")
    ranked = owners[order]
    starts, ends = (np.searchsorted(ranked, members, side=side) for side in ("left", "right"))
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]


def _sizes(fields: Fields, count: int, table: ArrayTable) -> list[tuple[int, int]]:
    """Numbers of landmarks and of features of every member: at least two, and no more features."""
    sizes = table.shaped(fields, "sizes", "i8", (count, 2))
    if not np.all((sizes[:, 0] >= 2) & (sizes[:, 1] >= 1) & (sizes[:, 1] <= sizes[:, 0])):
        raise ModelFormatError(f"{_NAME} has members without landmarks. {DAMAGED}")
    return [(int(rows), int(width)) for rows, width in sizes]


def _matrices(
    fields: Fields, name: str, shapes: list[tuple[int, int]], table: ArrayTable
) -> list[NDArray[np.float64]]:
    """Matrices of these shapes, which lie one behind the other."""
    values = table.shaped(fields, name, "f8", (None,))
    lengths = [rows * width for rows, width in shapes]
    if sum(lengths) != len(values) or not all_finite(values):
        raise ModelFormatError(f"the {name} of {_NAME} are not finite, or of another size. {DAMAGED}")
    parts = np.split(values, np.cumsum(lengths)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
