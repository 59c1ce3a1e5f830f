"""Least-squares stand-ins for the members of a partition: cheap to fit, cheap to change.

A member on the columns S is replaced by the ridge regression of the labels on these columns,

    w = (G_SS + I / (2 C))^(-1) c_S,     G = X^T diag(s) X,  c = X^T diag(s) y   (all centred),

the squared loss where the SVM has max(0, m)^p. G and c are computed once; after that a member costs one small
matrix. When the columns J join the member, its matrix inverse grows by the Schur complement
Q = G_JJ + I / (2 C) - G_JS B with B = (G_SS + I / (2 C))^(-1) G_SJ, and its scores change by

    (X_J - X_S B) v,     v = Q^(-1) (c_J - B^T c_S).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Floats, Ints, Matrix

MAX_ROWS = 1000
"""Scores are compared on this many rows at most; the Gram matrix is that of all rows."""

# Keeps the small systems solvable when C is so large that collinear columns have no ridge left.
_RELATIVE_RIDGE = 1e-6

Columns = Ints


@dataclass(frozen=True, eq=False)
class StandIn:
    """One member's ridge regression: its columns, their rows, the inverse matrix, and its centred scores."""

    columns: Columns
    rows: Floats
    inverse: Floats
    scores: Floats


@dataclass(frozen=True, eq=False)
class RidgeSums:
    """All that ridge regressions need of the rows: mean row, G, mean labels, c, and sum s."""

    mean: Floats
    gram: Floats
    label_means: Floats
    moments: Floats
    total: float


class RidgeSurrogate:
    """Ridge regressions on subsets of columns, for problems that share rows and weights.

    Parameters
    ----------
    sums : RidgeSums
        Over all rows; one right-hand side for each problem.
    cost : float
        C.
    X : ndarray or CSR matrix
        The few rows on which scores are compared.
    truth : ndarray of int
        Their classes: 0 and 1 for one problem, else the number of the problem whose label is 1.
    weights : ndarray
        Their weights.
    """

    def __init__(self, sums: RidgeSums, cost: float, X: Matrix, truth: Ints, weights: Floats) -> None:
        self.sums, self.cost, self.weights = sums, cost, weights
        self.gram, self.label_means, self.moments = sums.gram, sums.label_means, sums.moments
        self.ridge = max(1 / (2 * cost), _RELATIVE_RIDGE * float(np.diagonal(self.gram).mean()))
        self.truth = truth
        self.rows = _dense(X) - sums.mean
        # A row of weight 2 is two rows, here and in whatever is averaged over rows.
        self.shares = weights / weights.sum()
        # Every class counts the same, whatever its share: a constant vote must not look like a good one.
        totals = np.bincount(truth, weights=weights)
        self.row_weights = weights / (totals[truth] * np.count_nonzero(totals))

    def fit(self, columns: Columns) -> StandIn:
        """The member on these columns."""
        system = self.gram[np.ix_(columns, columns)]
        system[np.diag_indices(len(columns))] += self.ridge
        inverse = np.asarray(np.linalg.inv(system), dtype=float)
        rows = self.rows[:, columns]
        return StandIn(columns, rows, inverse, rows @ (inverse @ self.moments[columns]))

    def joined(self, members: Sequence[StandIn], columns: Columns) -> Floats:
        """The scores of every member with these columns added: (members, rows, problems)."""
        inner = self.gram[np.ix_(columns, columns)]
        inner[np.diag_indices(len(columns))] += self.ridge
        near, moments, rows = self.gram[:, columns], self.moments[columns], self.rows[:, columns]
        scores = np.empty((len(members), *members[0].scores.shape))
        for place, member in enumerate(members):
            cross = near[member.columns]
            solved = member.inverse @ cross
            schur, right = inner - cross.T @ solved, moments - solved.T @ self.moments[member.columns]
            weights = np.linalg.solve(schur, right) if len(columns) > 1 else right / schur
            scores[place] = member.scores
            scores[place] += rows @ weights
            scores[place] -= member.rows @ (solved @ weights)
        return scores


def sample_classes(truth: Ints, rng: np.random.Generator) -> Columns:
    """At most ``MAX_ROWS`` rows: all of the small classes, as many of each large one as fit."""
    if len(truth) <= MAX_ROWS:
        return np.arange(len(truth))
    sizes, room, share = np.bincount(truth), MAX_ROWS, np.zeros(int(truth.max()) + 1, dtype=np.intp)
    for place, code in enumerate(np.argsort(sizes)):
        share[code] = min(sizes[code], room // (len(sizes) - place))
        room -= share[code]
    picked = [
        rng.choice(np.flatnonzero(truth == code), share[code], replace=False) for code in range(len(sizes))
    ]
    return np.sort(np.concatenate(picked))


def _dense(rows: object) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)
