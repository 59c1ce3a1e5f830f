"""A sample of distributed rows, small enough to be solved on the client: most of the way for little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exclusivity.problem import ERMProblem
from exclusivity.solvers.blockwise.questions import Target
from exclusivity.solvers.blockwise.rows import BlockRows, RowBlock, RowList
from exclusivity.solvers.newton.sample import MANY_ROWS

SAMPLE_BYTES = 1 << 22
"""A sample of the rows, to start from, may bring so many bytes to the client."""

_FRACTION = 25
_SEED = 20160328


@dataclass(frozen=True, eq=False)
class Draw:
    """Asks for rows drawn at random from every block, always the same ones."""

    fraction: float

    def answer(self, block: RowBlock, state: Any) -> tuple[RowList, None]:
        """See ``Request``."""
        n_rows = block.X.shape[0]
        rng = np.random.default_rng([_SEED, n_rows])
        chosen = np.flatnonzero(rng.random(n_rows) < self.fraction)
        return RowList(block.X[chosen], block.codes[chosen], block.weights[chosen]), None


@dataclass(frozen=True, eq=False)
class Sample:
    """A random share of all rows."""

    rows: RowList
    fraction: float

    def problem_of(self, target: Target) -> ERMProblem | None:
        """The target's problem on the sample, weights scaled up to those of all rows.

        None where the sample has one class only: there is nothing to learn from it.
        """
        rows = self.rows
        problem = target.rows_of(RowBlock(rows.X, rows.labels.astype(np.int32), rows.weights))
        if problem.design.n_rows == 0 or abs(problem.labels.sum()) == len(problem.labels):
            return None
        return problem.changed(weights=problem.weights / self.fraction)


def draw_sample(rows: BlockRows) -> Sample | None:
    """At most ``SAMPLE_BYTES`` of the rows; None where they are few."""
    if rows.n_rows <= MANY_ROWS:
        return None
    most = SAMPLE_BYTES / (8 * rows.n_features)
    n_wanted = min(max(rows.n_rows / _FRACTION, MANY_ROWS), most)
    drawn: RowList = rows.total(Draw(n_wanted / rows.n_rows))
    return Sample(drawn, len(drawn.weights) / rows.n_rows)
