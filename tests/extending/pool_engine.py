"""An engine in one file: rows in blocks, worked on by a pool of ``concurrent.futures``."""

from __future__ import annotations

from functools import cached_property, reduce
from itertools import repeat
from operator import add

import numpy as np

from exclusivity.rows.design import DesignMatrix
from exclusivity.rows.source import Answer, RowBlock, RowSource as BlockRows


def answer_all(requests, block, states):
    """Answer several requests for one block."""
    return [request.answer(block, state) for request, state in zip(requests, states, strict=True)]


class PoolRows(BlockRows):
    """Blocks of rows, and the pool whose threads or processes answer for them."""

    def __init__(self, blocks, pool):
        self.blocks, self.pool = blocks, pool
        self.n_rows = sum(len(block.codes) for block in blocks)
        self.n_features = blocks[0].X.shape[1]

    # Linear models ask for these two; the blocks of others may be tables, which have neither.

    @cached_property
    def dtype(self):
        """The type of the fitted weights."""
        return np.result_type(*(block.X.dtype for block in self.blocks))

    @cached_property
    def row_scale(self):
        """How far products with the rows may be off."""
        return reduce(add, (DesignMatrix(block.X).row_scale for block in self.blocks))

    def ask(self, questions):
        """Answer all questions in one pass; parts are added in the order of the blocks."""
        requests = [question.request for question in questions]
        nothing = [None] * len(self.blocks)
        states = zip(*(question.states or nothing for question in questions), strict=True)
        parts = list(self.pool.map(answer_all, repeat(requests), self.blocks, states))
        answers = []
        for number, question in enumerate(questions):
            totals, after = zip(*(part[number] for part in parts), strict=True)
            answers.append(Answer(reduce(add, totals), list(after) if question.keeps_state else None))
        return answers


def fit_chunks(model, chunks, pool):
    """Fit a classifier that has ``fit_rows`` to chunks (X, y) or (X, y, sample_weight) of rows."""
    classes = np.unique(np.concatenate([np.unique(y) for _, y, *_ in chunks]))
    blocks = []
    for X, y, *weights in chunks:
        codes = np.searchsorted(classes, y).astype(np.int32)
        blocks.append(RowBlock(X, codes, weights[0] if weights else np.ones(len(y))))
    return model.fit_rows(PoolRows(blocks, pool), classes)
