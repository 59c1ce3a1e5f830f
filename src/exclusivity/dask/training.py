"""From Dask collections to encoded blocks of rows with the workers, in one or two passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask import delayed
from exclusivity.classifier.training import NO_WEIGHT, ClassWeight, class_weights, require_two_classes
from exclusivity.dask.blocks import BlockFacts, LabelledBlock, block_facts, checked_block, encoded_block
from exclusivity.dask.collections import Collection, joint_blocks
from exclusivity.dask.engine import Engine
from exclusivity.dask.rounds import Rows
from exclusivity.problem.arrays import Ints
from exclusivity.solvers.blockwise import RowBlock, aligned

# Blocks that fill more than this share of the workers' memory are read anew in every pass.
_MEMORY_SHARE = 0.4


@dataclass(frozen=True, eq=False)
class DistributedSet:
    """What a fit needs: the rows, and what is known about all of them."""

    rows: Rows
    classes: NDArray[Any]
    dtype: Any
    totals: Any


def distributed_set(
    engine: Engine,
    X: Collection,
    y: NDArray[Any],
    sample_weight: Collection | None,
    class_weight: ClassWeight,
    persist: bool | str,
) -> DistributedSet:
    """Check, describe and encode all blocks.

    With ``persist`` the workers keep them; without, every pass makes them anew from the collections.
    """
    blocks = [
        delayed(checked_block)(*parts) for parts in zip(*joint_blocks(X, y, sample_weight), strict=True)
    ]
    keep = persist if isinstance(persist, bool) else fits(_known_bytes(X), engine)
    if keep:
        blocks = engine.persist(blocks)
    facts: BlockFacts = Rows(engine, blocks, 0, 0).total(Describe())
    classes, factors = _classes(facts, class_weight)
    keep = keep or (keep is None and fits(facts.n_bytes, engine))
    groups = engine.together(blocks) if keep else None
    blocks = [
        delayed(encoded_block)(block, classes, factors, number, expected)
        for number, (block, expected) in enumerate(zip(blocks, facts.fingerprints, strict=True))
    ]
    if keep:
        blocks = engine.persist(blocks)
    rows = Rows(engine, blocks, facts.n_rows, facts.n_features, groups, facts.row_scale)
    return DistributedSet(rows, classes, facts.dtype, facts.totals * factors)


class Describe:
    """Asks a block for its ``BlockFacts``."""

    def answer(self, block: LabelledBlock, state: Any) -> tuple[BlockFacts, None]:
        """See ``Request``."""
        return block_facts(block), None


@dataclass(frozen=True, eq=False)
class CountVotes:
    """How often each member of a fitted classifier votes for each class."""

    model: Any

    def answer(self, block: RowBlock, state: Any) -> tuple[Ints, None]:
        """See ``Request``."""
        return self.model._vote_counts(aligned(block.X)), None


def _classes(facts: BlockFacts, class_weight: ClassWeight) -> tuple[NDArray[Any], Any]:
    if facts.n_rows == 0:
        if any(found.n_rows > 0 for found in facts.fingerprints):
            raise ValueError(NO_WEIGHT)
        raise ValueError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
    require_two_classes(facts.labels)
    return facts.labels, class_weights(class_weight, facts.labels, facts.totals)


def _known_bytes(X: Collection) -> float:
    """The size of the rows where the collection knows it; NaN where only the blocks do."""
    is_dense = isinstance(getattr(X, "_meta", None), np.ndarray)
    return float(getattr(X, "nbytes", np.nan)) if is_dense else np.nan


def fits(n_bytes: float, engine: Engine) -> bool | None:
    """Whether so many bytes of rows may stay with the workers; None if nobody knows how many they are."""
    return None if np.isnan(n_bytes) else bool(n_bytes <= _MEMORY_SHARE * engine.memory)
