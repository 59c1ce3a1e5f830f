"""ERMClassifierCV in a model file: the classifier of the last fit, and the scores that chose its C."""

from __future__ import annotations

from typing import Any

import numpy as np

from exclusivity.classifier import ERMClassifierCV, FittedState, SearchState
from exclusivity.persistence.container import ArrayStore, ArrayTable
from exclusivity.persistence.erm_kind import pack_state, unpack_state
from exclusivity.persistence.errors import DAMAGED, ModelFormatError
from exclusivity.persistence.fields import Fields
from exclusivity.persistence.values import pack_params, unpack_params

_KIND = "ERMClassifierCV"
_DEFAULTS = ERMClassifierCV().get_params(deep=False)

MAX_SEARCHED = 10_000
"""Folds, and values of C: each has an entry of its own in ``cv_results_``, far larger than in the file."""


def pack_cv(model: ERMClassifierCV, store: ArrayStore) -> dict[str, Any]:
    """The header's form of a fitted classifier with its search."""
    fitted, search = FittedState.of(model), SearchState.of(model)
    if max(search.scores.shape) > MAX_SEARCHED:
        raise ValueError(
            f"a model file holds at most {MAX_SEARCHED} folds and values of C; got {search.scores.shape}."
        )
    return {
        "params": pack_params(model.get_params(deep=False), _KIND, store),
        "fitted": pack_state(fitted, store),
        "search": {name: store.add(np.asarray(values, float), name) for name, values in vars(search).items()},
    }


def unpack_cv(fields: Fields, table: ArrayTable) -> ERMClassifierCV:
    """A fitted classifier with its search, complete and consistent."""
    params = unpack_params(fields.take("params"), _KIND, _DEFAULTS, table)
    fitted = unpack_state(fields.take("fitted"), table)
    search = _unpack_search(Fields(fields.take("search"), "the search for C"), table)
    model = fitted.restore(ERMClassifierCV(**params))
    try:
        return search.restore(model)  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        raise ModelFormatError(f"a parameter is not allowed: {str(error)[:300]} {DAMAGED}") from error


def _unpack_search(fields: Fields, table: ArrayTable) -> SearchState:
    names = ("Cs", "scores", "mean_n_iter", "max_dual_gap")
    arrays = {name: table.take(fields.take(name), name) for name in names}
    fields.finish()
    Cs, scores = arrays["Cs"], arrays["scores"]
    shapes = dict.fromkeys(names, (Cs.size,)) | {"scores": (*scores.shape[:1], Cs.size)}
    if not all(array.dtype == np.float64 and array.shape == shapes[name] for name, array in arrays.items()):
        raise ModelFormatError(f"the scores of the search for C have shape {scores.shape}. {DAMAGED}")
    if max(scores.shape) > MAX_SEARCHED:
        raise ModelFormatError(f"the search for C has {scores.shape} folds and values. {DAMAGED}")
    if not np.all((Cs > 0) & (Cs < np.inf)):
        raise ModelFormatError(f"a value of C is not a positive number. {DAMAGED}")
    return SearchState(**arrays)
