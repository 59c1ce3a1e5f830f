"""A sample of the rows, for a start that is most of the way to the optimum at a fraction of the price."""

from __future__ import annotations

import numpy as np

from exclusivity.problem import DesignMatrix, ERMProblem

MANY_ROWS = 20_000
"""From here on a sample is worth its while."""

_FRACTION = 10
_SEED = 20160328
SAMPLE_TOL = 1e-3
"""Enough: the optimum of a sample is off by more than that."""


def sample_rows(problem: ERMProblem) -> ERMProblem | None:
    """The problem on a tenth of its rows, weights scaled up to the same total; None when it is small.

    The sample is random but always the same, so that results repeat bit for bit.
    """
    n_rows = problem.design.n_rows
    if n_rows <= MANY_ROWS:
        return None
    chosen = np.sort(
        np.random.default_rng(_SEED).choice(n_rows, n_rows // _FRACTION, replace=False, shuffle=False)
    )
    labels, weights = problem.labels[chosen], problem.weights[chosen]
    if abs(labels.sum()) == len(labels):  # one class only: nothing to learn from
        return None
    return problem.changed(
        design=DesignMatrix(problem.design.X[chosen]),
        labels=labels,
        weights=weights * (problem.weights.sum() / weights.sum()),
    )
