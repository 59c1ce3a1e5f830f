"""From Dask collections to blocks of rows, one delayed value each."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.array import Array
from numpy.typing import NDArray

from dask import is_dask_collection


def row_blocks(X: Any) -> list[Any]:
    """The blocks of a table, every one with all columns.

    Parameters
    ----------
    X : dask Array of shape (n_samples, n_features), or dask DataFrame
    """
    if isinstance(X, Array):
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional; got {X.ndim} dimensions.")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed()[:, 0])
    if is_frame(X):
        return list(X.to_delayed())
    raise TypeError(
        f"X must be a Dask array or DataFrame; got {type(X).__name__}. For rows in memory use "
        "exclusivity.ERMClassifier, or make a Dask array of them with dask.array.from_array."
    )


def column_blocks(values: Any, X: Any, name: str) -> list[Any]:
    """The blocks of one value per row (labels, weights), cut like ``X``."""
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
    blocks = list(np.ravel(values.to_delayed()))
    n_blocks = X.numblocks[0] if isinstance(X, Array) else X.npartitions
    if len(blocks) != n_blocks:
        raise ValueError(
            f"X has {n_blocks} blocks of rows and {name} has {len(blocks)}, of unknown sizes; repartition "
            "them alike, or call compute_chunk_sizes() on the arrays."
        )
    return blocks


def is_frame(X: Any) -> bool:
    """Whether this is a Dask DataFrame, told without importing what it needs."""
    return is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "columns")


def column_names(X: Any) -> NDArray[Any] | None:
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
