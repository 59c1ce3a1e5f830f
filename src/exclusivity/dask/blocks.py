"""A block of rows on a worker: checked, described, encoded. Nothing here knows about Dask.

A block may be made more than once: in every pass, or after the loss of a worker. A fingerprint tells whether
it was the same again: without that sums of different rows would meet, and no iteration would ever end.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from exclusivity.classifier.training import check_scale, checked_weights, require_labels
from exclusivity.problem import DesignMatrix, RowScale
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.solvers.blockwise import RowBlock, aligned

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
    check_scale(X)
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
