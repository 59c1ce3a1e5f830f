"""One look at all files: how many rows and features, which classes, and what a scaler has to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from distributed import futures_of
from numpy.typing import NDArray
from scipy import sparse

from dask import delayed
from exclusivity.dask.blocks import MAX_CLASSES
from exclusivity.dask.engine import Engine
from exclusivity.dask.files import FileLayout, TableSample, read_rows
from exclusivity.dask.rounds import tree_sum
from exclusivity.dask.scaling import ColumnSums, column_sums
from exclusivity.io._errors import DataFileError
from exclusivity.io._formats import FilePart


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of some parts; it adds up.

    Rows of every part in their order, memory that all rows take, the largest width, the classes and the file
    where the first of them were found; for numbers alone what a scaler has to know (None where nobody asks,
    or there are no rows).
    """

    sizes: tuple[int, ...]
    n_bytes: int
    n_features: int
    labels: NDArray[Any]
    file: str
    sums: ColumnSums | None

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.sizes)

    def __add__(self, other: Survey) -> Survey:
        """The survey of both."""
        width = max(self.n_features, other.n_features)
        sums = _total([part.sums.widened(width) for part in (self, other) if part.sums is not None])
        known = [part for part in (self, other) if len(part.labels)]
        return Survey(
            self.sizes + other.sizes,
            self.n_bytes + other.n_bytes,
            width,
            _all_labels(self, other) if len(known) == 2 else (known or [self])[0].labels,
            (known or [self])[0].file,
            sums,
        )


def survey_files(
    engine: Engine,
    parts: Sequence[FilePart],
    look: Callable[[FilePart], list[Any]],
    tell: Callable[[int], None],
) -> list[Any]:
    """Read all files once, and add up what is found in their parts.

    ``look`` turns a part into a list of summands. ``tell`` is called with the number of bytes of a part when
    it has been read, from any thread.
    """
    looks = engine.persist([delayed(look, pure=False)(part) for part in parts])
    for answer, part in zip(looks, parts, strict=True):
        for future in futures_of(answer):  # none without a cluster
            future.add_done_callback(lambda _, n_bytes=part.n_bytes: tell(n_bytes))
    found: list[Any] = engine.compute(tree_sum(looks))
    return found


def survey_part(part: FilePart, layout: FileLayout, scale: str | None) -> list[Any]:
    """Return a survey of one part, scaled or (without ``scale``) with a sample of the rows of a table."""
    if scale is None:
        found = layout.read(part)
        y = np.empty(0, dtype=np.int64) if found is None else np.asarray(found.target)
        width = len(layout.titles)
        survey = Survey((len(y),), 0, width, classes_of(y, part), part.path, None)
        return [survey, TableSample.of(part, found, layout)]
    X, y = read_rows(part, layout)
    n_bytes = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    sums = column_sums(X, scale)
    return [Survey((X.shape[0],), n_bytes, X.shape[1], classes_of(y, part), part.path, sums)]


def classes_of(y: NDArray[Any], part: FilePart) -> NDArray[Any]:
    """Return the classes of a part."""
    labels = np.unique(y)
    if len(labels) > MAX_CLASSES:
        cause = f"the target has {len(labels)} different values; expected at most {MAX_CLASSES} classes."
        raise DataFileError(part.path, None, None, cause)
    return labels


def _total(sums: list[Any]) -> Any:
    return reduce(add, sums) if sums else None


def _all_labels(one: Survey, other: Survey) -> NDArray[Any]:
    is_text = [part.labels.dtype.kind not in "iu" for part in (one, other)]
    if is_text[0] != is_text[1]:
        text, numbers = (one, other) if is_text[0] else (other, one)
        raise DataFileError(
            text.file,
            None,
            None,
            f"the labels are text, such as {text.labels[0]!r}, but those of {numbers.file} are numbers, such "
            f"as {numbers.labels[0]}; expected the same kind in all files.",
        )
    return np.unique(np.concatenate([one.labels, other.labels]))
