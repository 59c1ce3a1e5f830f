"""The search for a partition of the feature groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exclusivity.problem import ERMProblem
from exclusivity.problem.arrays import Floats
from exclusivity.solvers.exclusive.groups import deal, feed
from exclusivity.solvers.exclusive.settings import Partition


def group_strength(problems: Sequence[ERMProblem], groups: NDArray[np.intp]) -> Floats:
    """How well each group of columns follows the labels: squared correlations, summed."""
    strength = np.zeros(len(groups))
    for problem in problems:
        mean = problem.design.mean(problem.weights)
        scatter = problem.design.column_scatter(problem.weights, mean)
        centred = problem.labels - np.average(problem.labels, weights=problem.weights)
        covariance = problem.design.transposed_times(problem.weights * centred)
        total = float(problem.weights @ centred**2)
        strength += np.divide(covariance**2, scatter * total, out=np.zeros_like(mean), where=scatter > 0)
    return np.bincount(groups, weights=strength).astype(float)


def find_partition(
    problems: Sequence[ERMProblem],
    groups: NDArray[np.intp],
    restarts: int,
    rng: np.random.Generator,  # noqa: ARG001 -- the search proper follows
    start: Partition | None,
) -> Partition:
    """The best partition found: the owner of every group."""
    strength = group_strength(problems, groups)
    if start is not None:
        return feed(start, problems[0].n_members, strength) if restarts else start
    return deal(strength, problems[0].n_members)
