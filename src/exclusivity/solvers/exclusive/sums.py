"""What the search for a partition knows of all rows: two rounds of sums, wherever the rows are.

Problems that share rows and weights (one against the rest, in every class) are one part. The sums of a part
are its means, then, around these, the Gram matrix of the rows and the covariances with the labels, a column
for each problem. Rows in memory are one block; the sums of several blocks add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from exclusivity.problem import ERMProblem
from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers.exclusive.surrogate import RidgeSums, RidgeSurrogate, sample_classes

Part = Sequence[ERMProblem]
"""Problems that share their rows and weights."""


@dataclass(frozen=True, eq=False)
class Means:
    """The mean row and the mean labels of a part, and sum s."""

    row: Floats
    labels: Floats
    total: float

    @classmethod
    def of(cls, sums: Floats, n_problems: int) -> Means:
        """From ``first_sums`` of all rows."""
        means = sums[:-1] / sums[-1]
        return cls(means[:-n_problems], means[-n_problems:], float(sums[-1]))

    def with_scatter(self, sums: Floats) -> RidgeSums:
        """With ``second_sums`` of all rows, all that stand-ins need."""
        n_problems = len(self.labels)
        scatter, covariances = sums[:, :-n_problems].copy(), sums[:, -n_problems:].copy()  # read often
        return RidgeSums(self.row, scatter, self.labels, covariances, self.total)


def first_sums(part: Part) -> Floats:
    """X^T s, Y^T s and sum s, one behind the other."""
    design, weights = part[0].design, part[0].weights
    return np.concatenate([design.transposed_times(weights), weights @ labels_of(part), [weights.sum()]])


def second_sums(part: Part, means: Means, with_gram: bool) -> Floats:
    """Around the means, X^T s X, or only its diagonal, beside X^T s Y."""
    design, weights = part[0].design, part[0].weights
    covariances = design.transposed_times(weights[:, None] * (labels_of(part) - means.labels))
    if with_gram:
        scatter = design.gram(weights, means.row)
    elif design.is_sparse:  # right once it is summed over all blocks, whose mean this is
        squares = design.column_scatter(weights, np.zeros_like(means.row))
        scatter = squares - weights.sum() * means.row**2
    else:
        scatter = design.column_scatter(weights, means.row)
    return np.column_stack([scatter, covariances])


def labels_of(part: Part) -> Floats:
    """The labels of all problems, side by side."""
    return np.stack([problem.labels for problem in part], axis=1)


class PartitionSums:
    """How strong features are, and stand-ins for members on any of them.

    Parameters
    ----------
    sums : sequence of RidgeSums
        Of every part; with the diagonal in place of the Gram matrix, as one column, where nobody will ask for
        stand-ins.
    rows : callable
        Gives the same parts on rows in memory: all rows, or those from which some are drawn to compare votes.
    """

    def __init__(self, sums: Sequence[RidgeSums], rows: Callable[[], Sequence[Part]]) -> None:
        self._sums, self._rows = sums, rows

    @classmethod
    def in_memory(cls, parts: Sequence[Part], with_grams: bool = True) -> PartitionSums:
        """Of problems on rows in memory."""
        sums = []
        for part in parts:
            means = Means.of(first_sums(part), len(part))
            sums.append(means.with_scatter(second_sums(part, means, with_grams)))
        return cls(sums, lambda: parts)

    def strength(self, groups: Ints) -> Floats:
        """How well each group of columns follows the labels: squared correlations, summed."""
        strength = np.zeros(len(groups))
        for sums in self._sums:
            scatter = np.diagonal(sums.gram) if sums.gram.shape[1] > 1 else sums.gram[:, 0]
            # Labels are -1 and 1: sum s (y - mean)^2 = sum s (1 - mean^2).
            scales = scatter[:, None] * (sums.total * (1 - sums.label_means**2))
            shares = np.divide(sums.moments**2, scales, out=np.zeros_like(scales), where=scales > 0)
            strength += shares.sum(axis=1)
        return np.bincount(groups, weights=strength).astype(float)

    def surrogates(self, rng: np.random.Generator) -> list[RidgeSurrogate]:
        """Least-squares stand-ins for the members, for every part; ``rng`` draws rows where they are many."""
        return [_surrogate(sums, part, rng) for sums, part in zip(self._sums, self._rows(), strict=True)]


def _surrogate(sums: RidgeSums, part: Part, rng: np.random.Generator) -> RidgeSurrogate:
    labels, first = labels_of(part), part[0]
    truth = labels.argmax(axis=1) if len(part) > 1 else (labels[:, 0] > 0).astype(np.intp)
    chosen = sample_classes(truth, rng)
    return RidgeSurrogate(sums, first.cost, first.design.X[chosen], truth[chosen], first.weights[chosen])


def sharing_rows(problems: Sequence[ERMProblem]) -> list[Part]:
    """One-vs-rest problems together (a member votes for its best class); all others each alone."""
    runs = groupby(problems, key=lambda problem: (id(problem.design), id(problem.weights)))
    shared = [list(run) for _, run in runs]
    return [part for run in shared for part in ([run] if _is_one_vs_rest(run) else [[one] for one in run])]


def _is_one_vs_rest(problems: Sequence[ERMProblem]) -> bool:
    """Whether every row is positive in exactly one problem."""
    positive = sum((problem.labels > 0).astype(np.intp) for problem in problems)
    return len(problems) > 1 and bool(np.all(positive == 1))
