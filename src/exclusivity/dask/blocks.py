"""Blocks of rows: cut from Dask collections, then on a worker checked, described and encoded.

A block may be made more than once: in every pass, or after the loss of a worker. A fingerprint tells whether
it was the same again: without that sums of different rows would meet, and no iteration would ever end.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from dask.array import Array
from dask.array.optimization import optimize
from dask.base import tokenize
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from dask import is_dask_collection
from exclusivity._typing import Floats, Matrix
from exclusivity.classifier import check_scale, checked_weights, require_labels
from exclusivity.rows.design import DesignMatrix, RowScale, aligned
from exclusivity.rows.source import RowBlock
from exclusivity.rows.sparse_rows import check_sparse

_NAME = "ERMClassifier"
MAX_CLASSES = 10_000
"""More labels than this are no classes: they would also have to travel."""


# Every so many rows are checked byte by byte; all of them would take as long as a pass.
_CHECKED_STEP = 64


class Fingerprint(NamedTuple):
    """What tells the rows of a block from others."""

    n_rows: int
    checksum: int


@dataclass(frozen=True, eq=False)
class LabelledBlock:
    """Rows of positive weight with their labels, and the fingerprint of all rows, those of weight 0 too."""

    X: Matrix
    y: NDArray[Any]
    weights: Floats
    fingerprint: Fingerprint


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """What the client has to know of a block, or of several; they add up.

    ``n_rows`` are of positive weight; ``fingerprints`` has one for each block, in their order.
    """

    n_rows: int
    fingerprints: tuple[Fingerprint, ...]
    n_bytes: int
    n_features: int
    dtype: Any
    labels: NDArray[Any]
    totals: Floats
    row_scale: RowScale

    def __add__(self, other: BlockFacts) -> BlockFacts:
        """The facts of both."""
        if self.n_features != other.n_features:
            raise ValueError(
                f"the blocks of X differ in their number of columns: {self.n_features} and "
                f"{other.n_features}."
            )
        if len(self.labels) == 0 or len(other.labels) == 0:  # an empty block's types mean nothing
            full = other if len(self.labels) == 0 else self
            labels, totals, dtype = full.labels, full.totals, full.dtype
        else:
            labels, totals = _merged(self, other)
            dtype = np.promote_types(self.dtype, other.dtype)
        return BlockFacts(
            self.n_rows + other.n_rows,
            self.fingerprints + other.fingerprints,
            self.n_bytes + other.n_bytes,
            self.n_features,
            dtype,
            labels,
            totals,
            self.row_scale + other.row_scale,
        )


def checked_block(X: Matrix, y: NDArray[Any], weights: NDArray[Any]) -> LabelledBlock:
    """The rows as the solver wants them, or the errors of the classifier in memory."""
    if sparse.issparse(X):
        check_sparse(X)
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_min_samples=0,
        estimator=_NAME,
        input_name="X",
    )
    n_rows = X.shape[0]
    y = column_or_1d(y, warn=True)
    require_labels(y, " of a block")
    if len(y) != n_rows:
        raise ValueError(f"a block of X has {n_rows} rows and its block of y {len(y)}; chunk them alike.")
    weights = checked_weights(weights, n_rows)
    fingerprint = Fingerprint(n_rows, _checksum(X, y, weights))
    if n_rows == 0:
        return LabelledBlock(X, y, weights, fingerprint)
    if y.dtype.kind in "fc":
        check_array(y, ensure_2d=False, dtype=None, estimator=_NAME, input_name="y")
    check_classification_targets(y)
    if not np.all(weights):
        keep = np.flatnonzero(weights)
        X, y, weights = X[keep], y[keep], weights[keep]
    return LabelledBlock(X, y, weights, fingerprint)


def block_facts(block: LabelledBlock) -> BlockFacts:
    """The facts of one block."""
    labels = np.unique(block.y)
    if len(labels) > MAX_CLASSES:
        raise ValueError(f"a block of y has {len(labels)} different labels; at most {MAX_CLASSES} classes.")
    codes = np.searchsorted(labels, block.y)
    totals = np.bincount(codes, weights=block.weights, minlength=len(labels)).astype(float)
    (n_rows, n_features), X = block.X.shape, block.X
    n_bytes = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    scale = DesignMatrix(X).row_scale
    check_scale(scale)
    return BlockFacts(n_rows, (block.fingerprint,), n_bytes, n_features, X.dtype, labels, totals, scale)


def encoded_block(
    block: LabelledBlock, classes: NDArray[Any], factors: Floats, number: int, expected: Fingerprint
) -> RowBlock:
    """Labels as class numbers, class weights multiplied in; an error if they are other rows than expected."""
    if block.fingerprint != expected:
        before, now = expected.n_rows, block.fingerprint.n_rows
        what = "other values" if now == before else f"{now} rows instead of {before}"
        raise RuntimeError(
            f"block {number} of the rows changed while they were fitted: computed again it had {what}. Its "
            "source gives something else each time, such as random numbers without a seed, or a file that is "
            "being written. Seed the source, wait until it is at rest, or keep the rows with the workers: "
            "X, y = dask.persist(X, y) before the fit."
        )
    codes = np.searchsorted(classes, block.y).astype(np.int32)
    return RowBlock(aligned(block.X), codes, block.weights * factors[codes])


def _checksum(X: Matrix, y: NDArray[Any], weights: Floats) -> int:
    """All labels, and of the numbers the sum of their bits and some rows: one look at everything."""
    parts = [X.data, X.indices, X.indptr, weights] if sparse.issparse(X) else [X, weights]
    text = "\0".join(map(str, y)).encode() if y.dtype.kind == "O" else y.tobytes()
    found = [zlib.crc32(text)]
    for part in parts:
        found += [_sum_of_bits(part), zlib.crc32(part[::_CHECKED_STEP].tobytes())]
    return zlib.crc32(repr(found).encode())


def _sum_of_bits(values: NDArray[Any]) -> int:
    return int(values.view(f"u{values.itemsize}").sum(dtype=np.uint64))


def _merged(one: BlockFacts, other: BlockFacts) -> tuple[NDArray[Any], Floats]:
    kinds = [_kind(one.labels), _kind(other.labels)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"labels differ between partitions: some hold {kinds[0]} such as {one.labels[0]!r}, others "
            f"{kinds[1]} such as {other.labels[0]!r}; convert y to one type."
        )
    both = np.concatenate([one.labels, other.labels])
    labels, codes = np.unique(both, return_inverse=True)
    return labels, np.bincount(codes, weights=np.append(one.totals, other.totals)).astype(float)


def _kind(labels: NDArray[Any]) -> str:
    if labels.dtype.kind in "US" or all(isinstance(label, (str, bytes)) for label in labels):
        return "text"
    return "numbers" if labels.dtype.kind in "biuf" else "objects"


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
