"""From Dask collections to blocks of rows, one delayed value each."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from dask.array import Array
from dask.array.optimization import optimize
from dask.base import tokenize
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray

from dask import is_dask_collection

Collection = Any
"""What users of Dask hold: an array or a DataFrame; of labels and weights an array or a series."""


def row_blocks(X: Collection) -> list[Any]:
    """The blocks of a table, every one with all columns.

    Parameters
    ----------
    X : dask Array of shape (n_samples, n_features), or dask DataFrame
    """
    return list(np.ravel(_table(X).to_delayed()))


def joint_blocks(
    X: Collection, y: Collection, sample_weight: Collection | None
) -> tuple[list[Any], list[Any], list[Any]]:
    """The blocks of rows, labels and weights (None each where there are none), cut alike.

    What they have in common is made once: columns of one array, or rows and labels from one file, would
    otherwise be read twice in every pass, because optimising a graph merges steps that nobody shares.
    """
    table = _table(X)
    columns = [(y, "y")] if sample_weight is None else [(y, "y"), (sample_weight, "sample_weight")]
    parts = [table, *(_column(values, X, name) for values, name in columns)]
    if all(isinstance(part, Array) for part in parts):
        blocks = _jointly_optimised(parts)
    else:
        blocks = [list(np.ravel(part.to_delayed())) for part in parts]
    for (_, name), found in zip(columns, blocks[1:], strict=True):
        if len(found) != len(blocks[0]):
            raise ValueError(
                f"X has {len(blocks[0])} blocks of rows and {name} has {len(found)}, of unknown sizes; "
                "repartition them alike, or call compute_chunk_sizes() on the arrays."
            )
    return blocks[0], blocks[1], blocks[2] if len(blocks) > 2 else [None] * len(blocks[0])


def _jointly_optimised(arrays: list[Array]) -> list[list[Any]]:
    keys = [list(flatten(array.__dask_keys__())) for array in arrays]
    merged = HighLevelGraph.merge(*(array.__dask_graph__() for array in arrays))
    name = f"joint-{tokenize(keys)}"
    graph = HighLevelGraph.from_collections(name, optimize(merged, list(chain(*keys))), dependencies=())
    return [[Delayed(key, graph, layer=name) for key in part] for part in keys]


def _table(X: Collection) -> Collection:
    if isinstance(X, Array):
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional; got {X.ndim} dimensions.")
        return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    if is_frame(X):
        return X
    raise TypeError(
        f"X must be a Dask array or DataFrame; got {type(X).__name__}. For rows in memory use "
        "exclusivity.ERMClassifier, or make a Dask array of them with dask.array.from_array."
    )


def _column(values: Collection, X: Collection, name: str) -> Collection:
    """One value per row (labels, weights), cut like ``X`` where that is known."""
    if not is_dask_collection(values):
        raise TypeError(
            f"{name} must be a Dask array or Series, chunked like X; got {type(values).__name__}. Make one "
            "with dask.array.from_array(values, chunks=X.chunks[0])."
        )
    if isinstance(values, Array):
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"{name} must have one value per row; got {values.ndim} dimensions.")
        if _is_known(values) and isinstance(X, Array) and _is_known(X):
            values = _cut_alike(values, X, name)
    return values


def is_frame(X: Collection) -> bool:
    """Whether this is a Dask DataFrame, told without importing what it needs."""
    return is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "columns")


def column_names(X: Collection) -> NDArray[Any] | None:
    """The names of a DataFrame's columns, if all of them are text; None for arrays."""
    if not is_frame(X):
        return None
    names = np.asarray(X.columns, dtype=object)
    are_text = [isinstance(name, str) for name in names]
    if any(are_text) and not all(are_text):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{sorted({type(name).__name__ for name in names})} as feature name / column name types. "
            "Convert the names to strings: X.columns = X.columns.astype(str)."
        )
    return names if all(are_text) else None


def _is_known(array: Array) -> bool:
    return not any(np.isnan(size) for size in array.chunks[0])


def _cut_alike(values: Array, X: Array, name: str) -> Array:
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and {name} {values.shape[0]}.")
    return values.rechunk((X.chunks[0],))
