"""What a partition is worth on rows that its members have not seen.

The rows on which votes are compared are split into folds. Without the rows F of a fold, whose weights are s
and whose centred rows and labels are X_F and Y_F, the sums of all rows become

    G - X_F^T s X_F - W d d^T,     c - X_F^T s Y_F - W d e^T,     W = total - sum s,

where d and e are by how much the mean row and the mean labels move: d = -X_F^T s / W, e = -Y_F^T s / W. So no
pass over the rows is needed, wherever they are. Votes are counted as the classifier counts them, not softly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers.exclusive.settings import Partition
from exclusivity.solvers.exclusive.surrogate import RidgeSums, RidgeSurrogate
from exclusivity.solvers.exclusive.votes import decided, ramp

N_FOLDS = 5


def held_out_values(
    surrogates: Sequence[RidgeSurrogate],
    groups: Ints,
    partitions: Sequence[Partition],
    radius: int,
) -> tuple[Floats, Floats]:
    """Certified accuracy of rows left out in turn, each class counting the same, summed over r = 0 to R.

    Returns
    -------
    values : ndarray of shape (n_partitions,)
    errors : ndarray of shape (n_partitions,)
        The standard error of the difference to the first partition's value.
    """
    columns = [[np.flatnonzero(owners[groups] == k) for k in np.unique(owners)] for owners in partitions]
    values, variances = np.zeros(len(partitions)), np.zeros(len(partitions))
    for surrogate in surrogates:
        # Equal rows of one class are one row: a row of weight 2 then counts like two rows.
        rows = np.column_stack([surrogate.truth, surrogate.rows])
        numbers = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        survived = _survived(surrogate, numbers % N_FOLDS, columns, radius)
        value = survived @ surrogate.row_weights
        deviations = surrogate.row_weights * ((survived - survived[0]) - (value - value[0])[:, None])
        values += value
        variances += [np.sum(np.bincount(numbers, weights=row) ** 2) for row in deviations]
    return values, np.sqrt(variances)


def _survived(
    surrogate: RidgeSurrogate,
    places: Ints,
    partitions: Sequence[Sequence[Ints]],
    radius: int,
) -> Floats:
    """For each partition and row, left out with its fold, for how many r it stays right."""
    n_classes = max(2, len(surrogate.label_means))
    counts = np.zeros((len(partitions), len(places), n_classes))
    for fold in np.unique(places):
        rows = np.flatnonzero(places == fold)
        others = without(surrogate, rows)
        for count, columns in zip(counts, partitions, strict=True):
            for own in columns:
                count[rows] += decided(others.fit(own).scores + others.label_means, others.truth)
    pairs = zip(counts, partitions, strict=True)
    return np.stack([ramp(count, surrogate.truth, radius, len(columns)) for count, columns in pairs])


def without(surrogate: RidgeSurrogate, inside: Ints) -> RidgeSurrogate:
    """Ridge regressions of all rows but these, whose scores are those of these."""
    sums, rows, weights = surrogate.sums, surrogate.rows[inside], surrogate.weights[inside]
    labels = _labels(surrogate.truth[inside], len(sums.label_means)) - sums.label_means
    left = sums.total - weights.sum()
    weighted = weights[:, None] * rows
    shift, label_shift = -weighted.sum(axis=0) / left, -(weights @ labels) / left
    smaller = RidgeSums(
        shift,  # rows are centred already: this is by how much the mean moves
        sums.gram - rows.T @ weighted - left * np.outer(shift, shift),
        sums.label_means + label_shift,
        sums.moments - weighted.T @ labels - left * np.outer(shift, label_shift),
        left,
    )
    return RidgeSurrogate(smaller, surrogate.cost, rows, surrogate.truth[inside], weights)


def _labels(truth: Ints, n_problems: int) -> Floats:
    """-1 and 1: one column of two classes, else one for each class."""
    classes = np.arange(n_problems) if n_problems > 1 else np.ones(1)
    return np.where(truth[:, None] == classes, 1.0, -1.0)
