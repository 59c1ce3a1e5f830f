"""p = 1 with many distributed rows: only rows near the margin matter, and only so many of them travel.

The method of ``solvers.newton.bands``. Rows with |m| > width, m = 1 - y f, are taken for what they look
like, alpha = c for m > 0 and alpha = 0 for m < 0, and stay with the workers: sums of them travel. The rows of
the band come to the client, at most ``BAND_BYTES`` of them (those nearest to the margin), and are solved for
exactly. The dual vector found this way is feasible for ALL rows, so that its bound, which needs no further
pass, and the objective, which needs one, certify the point.

The start is the optimum of a sample, off by about sqrt(M / n) in the margins. One Newton step for all rows,
from one pass and with the second derivatives of the sample, makes that a small part of it: a few thousand
rows of millions are enough then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from scipy import linalg

from exclusivity._typing import Floats, Matrix
from exclusivity.objective.objective import Objective
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.source import RowBlock, RowList
from exclusivity.solvers.blockwise.questions import BlockwiseSource, Target, no_sums
from exclusivity.solvers.newton import (
    INNER_SHARE,
    LEAST_ROWS,
    WIDEN,
    Certificate,
    Guess,
    LossSums,
    Point,
    Run,
    WorkingRows,
    bordered_gram,
    bound_from_sums,
    can_balance,
    learned_width,
    objective_from_sums,
    repaired_weights,
    ridged_system,
    solve_inside,
    with_exact_zeros,
)

BAND_BYTES = 1 << 23
"""A band may bring so many bytes of rows to the client, all problems together."""

# The second derivatives of a sample come from rows within so many widths of the margin.
_KERNEL = 1.0
# Three standard errors of the margins after a Newton step, in units of that step's size in the margins; from
# 0.1 to 0.4 in samples of 5,000 to 75,000 rows of 28 columns.
_REST = 0.3
_MOST_BANDS = 10


@dataclass(frozen=True, eq=False)
class Band:
    """The rows near the margin of a point, at most ``most`` of them, and sums over the others.

    Parameters
    ----------
    sums : LossSums
        Loss and cost are those of all rows; everything else is of the rows outside the band.
    rows : RowList
        The rows inside, with labels -1 and 1 and costs c_i.
    shortfall : ndarray
        Their m_i = 1 - y_i f_i.
    most : int
    is_cut : bool
        Whether rows were left outside only because they were too many.
    """

    sums: LossSums
    rows: RowList
    shortfall: Floats
    most: int
    is_cut: bool = False

    def __add__(self, other: Band) -> Band:
        """The band of both sets of rows."""
        return Band.combined([self, other])

    @staticmethod
    def combined(bands: Sequence[Band]) -> Band:
        """The band of all sets of rows."""
        return Band(
            reduce(add, [band.sums for band in bands]),
            RowList.combined([band.rows for band in bands]),
            np.concatenate([band.shortfall for band in bands]),
            bands[0].most,
            any(band.is_cut for band in bands),
        ).cut()

    def cut(self) -> Band:
        """The ``most`` rows nearest to the margin; the order of the rows stays."""
        if len(self.shortfall) <= self.most:
            return self
        order = np.argsort(np.abs(self.shortfall), kind="stable")
        keep, drop = np.sort(order[: self.most]), np.sort(order[self.most :])
        rows, m = self.rows, self.shortfall
        alpha = _fixed_alpha(rows.weights[drop], m[drop])
        dropped = _dual_sums(rows.X[drop], rows.labels[drop], alpha)
        return Band(self.sums + dropped, rows.take(keep), m[keep], self.most, is_cut=True)

    def can_balance(self, fit_intercept: bool) -> bool:
        """Whether the rows inside can make up for those outside in sum y alpha = 0."""
        signed = self.rows.labels * self.rows.weights
        return not fit_intercept or can_balance(signed, -float(self.sums.alpha_sums[1]))

    def solve(self, objective: Objective, start: Point, goal: float) -> tuple[Point, LossSums]:
        """The optimum with the rows outside fixed, and the sums of the dual vector of ALL rows there.

        ``goal`` is the complementarity to reach.
        """
        rows = self.rows
        working = WorkingRows(
            rows.X, rows.labels, rows.weights, -self.sums.weighted_sums[1], -float(self.sums.alpha_sums[1])
        )
        point, alpha = solve_inside(working, objective, start, goal)
        return point, self.sums + _dual_sums(rows.X, rows.labels, np.clip(alpha, 0.0, rows.weights))


@dataclass(frozen=True, eq=False)
class NearMargin:
    """Asks for the ``Band`` around the margin of a point; with ``most`` = 0 for sums over all rows."""

    target: Target
    point: Point
    width: float
    most: int

    def answer(self, block: RowBlock, state: object) -> tuple[Band, None]:
        """See ``Request``."""
        problem = self.target.rows_of(block)
        costs, labels, sums = member_costs(problem), problem.labels, no_sums(problem.design.n_features, False)
        inside, shortfalls = [np.empty(0, dtype=np.intp)], [np.empty(0)]
        with np.errstate(all="ignore"):
            for rows, X in problem.design.blocks(1):
                m = 1 - labels[rows] * (X @ self.point.weights + self.point.intercept)
                near = np.flatnonzero(np.abs(m) <= self.width) if self.most > 0 else inside[0]
                alpha = _fixed_alpha(costs[rows], m)
                loss = float(alpha @ np.maximum(m, 0.0))
                alpha[near] = 0.0
                sums += _dual_sums(X, labels[rows], alpha, loss, float(costs[rows].sum()))
                inside.append(rows.start + near)
                shortfalls.append(m[near])
        chosen = np.concatenate(inside)
        band = RowList(problem.design.X[chosen], labels[chosen], costs[chosen])
        return Band(sums, band, np.concatenate(shortfalls), self.most).cut(), None


@dataclass(frozen=True, eq=False)
class Pilot:
    """The optimum ``point`` of a sample: a ``fraction`` of the rows, weights scaled up to those of all."""

    problem: ERMProblem
    point: Point
    fraction: float

    @property
    def total_cost(self) -> float:
        """What all rows cost at zero, about."""
        return float(member_costs(self.problem).sum())

    def is_enough(self, most: int) -> bool:
        """Whether the sample, and bands of at most so many rows, can tell as many unknowns."""
        return self.problem.design.n_rows >= 4 * self._least and most >= 2 * self._least

    def improved(self, point: Point, sums: LossSums) -> tuple[Point, float]:
        """One Newton step for all rows, and how far margins may still be off then.

        ``sums`` are those of alpha = c [m > 0] over all rows. Their second derivatives, costs times the
        density of the rows on the margin, come from the sample. A step without sense is not taken.
        """
        sample, descent = self.problem, sums.negative_gradient
        distance = self._distance(point)
        half = max(_KERNEL * self.width(), nearest(distance, 4 * self._least))
        weights = np.where(distance <= half, member_costs(sample) / (2 * half), 0.0)
        gram, ridge = bordered_gram(sample.design.X, weights), np.ones(sample.design.n_features)
        try:
            system = ridged_system(gram, ridge, sample.fit_intercept)
        except linalg.LinAlgError:
            return point, self.width()
        dw, db = system.solve(descent.weights - point.weights, descent.intercept)
        size = float(np.sqrt(np.mean((sample.design.times(dw) + db) ** 2)))
        if not size <= self.width():  # nor where it is not a number
            return point, self.width()
        return point.moved(Point(dw, db), 1.0), _REST * size

    def width(self) -> float:
        """How far the margins of the sample's optimum may be off."""
        scores = self.problem.design.times(self.point.weights) + self.point.intercept
        return learned_width(self.problem, self.point, scores, self.problem.design.n_rows)

    def reach(self, point: Point, most: int) -> tuple[float, float]:
        """Between which widths the band has, most likely, rows enough, and not more than ``most``."""
        distance = self._distance(point)
        least, largest = (int(count * self.fraction) + 1 for count in (2 * self._least, most))
        return nearest(distance, least), nearest(distance, largest)

    def _distance(self, point: Point) -> Floats:
        scores = self.problem.design.times(point.weights) + point.intercept
        return np.abs(1 - self.problem.labels * scores)

    @property
    def _least(self) -> int:
        return int(LEAST_ROWS * (self.problem.design.n_features + 1))


def drive_bounded_bands(
    run: Run, reduced: Objective, source: BlockwiseSource, pilot: Pilot, most_bytes: int
) -> None:
    """The hinge, many rows: bands around the margin, each of bounded size, until the gap is closed.

    Ends early where bounded bands cannot do it (too many rows on the margin itself,
    say, or too many features).
    """
    point, most = pilot.point, most_bytes // (8 * source.n_features)
    if not pilot.is_enough(most):
        return
    walk = _BandWalk(run, reduced, source)
    sums = walk.certify(point, None, is_start=True)
    centre, width = walk.approach(pilot, point, sums, most)
    has_moved = False
    for _ in range(_MOST_BANDS):
        if run.is_over:
            break
        width_here = max(width, pilot.reach(centre, most)[0])
        band: Band = source.ask(NearMargin(source.target, centre, width_here, most))
        gap, objective, is_second = run.gap, run.best_objective, has_moved
        if band.can_balance(reduced.fit_intercept):
            point, dual = walk.solve(band, centre, pilot.total_cost)
            sums = walk.certify(point, dual)
            if run.best_objective < objective:
                centre, has_moved = point, True
        if len(band.shortfall) == source.n_rows or (band.is_cut and run.gap > gap / 2):
            break
        if band.is_cut:
            centre, width = walk.approach(pilot, point, sums, most)
        elif is_second or not has_moved:  # a second band of the same width usually does it
            width *= WIDEN


class _BandWalk:
    """What is done with every band."""

    def __init__(self, run: Run, reduced: Objective, source: BlockwiseSource) -> None:
        self._run, self._reduced, self._source = run, reduced, source
        self._before = run.passes - source.passes

    def approach(self, pilot: Pilot, point: Point, sums: LossSums, most: int) -> tuple[Point, float]:
        """Newton steps until the rows that may change sides are few enough for one band; its width."""
        if not self._reduced.penalty.is_smooth:
            return point, pilot.width()
        point, width = pilot.improved(point, sums)
        while width > pilot.reach(point, most)[1] and not self._run.is_over:
            better, narrower = pilot.improved(point, self.certify(point, None))
            if narrower > width / 2:
                break
            point, width = better, narrower
        return point, width

    def solve(self, band: Band, start: Point, total_cost: float) -> tuple[Point, LossSums]:
        """The optimum that a band suggests, and the sums of its dual vector."""
        run, reduced = self._run, self._reduced
        goal = INNER_SHARE * run.tol * min(run.best_objective, total_cost)
        point, dual = band.solve(reduced, start, goal)
        if not reduced.penalty.is_smooth:
            dual_weights = repaired_weights(dual, reduced)
            point = with_exact_zeros(point, dual_weights, reduced.penalty)
        return point, dual

    def certify(self, point: Point, dual: LossSums | None, *, is_start: bool = False) -> LossSums:
        """One pass for the objective, and the sums of alpha = c [m > 0], which is a dual vector too."""
        sums: LossSums = self._source.ask(NearMargin(self._source.target, point, 0.0, 0)).sums
        self._run.passes = self._before + self._source.passes
        reduced, scale = self._reduced, self._source.row_scale
        bound, _ = bound_from_sums(sums if dual is None else dual, reduced, scale)
        certificate = Certificate(*objective_from_sums(point, sums, reduced, scale), bound)
        self._run.state = Guess(point)
        self._run.take(point, certificate, is_start=is_start)
        return sums


def nearest(distance: Floats, count: int) -> float:
    """The ``count``-th smallest distance, or the largest."""
    at = min(count, len(distance)) - 1
    return float(np.partition(distance, at)[at])


def _fixed_alpha(costs: Floats, shortfall: Floats) -> Floats:
    return np.where(shortfall > 0, costs, 0.0)


def _dual_sums(X: Matrix, labels: Floats, alpha: Floats, loss: float = 0.0, cost: float = 0.0) -> LossSums:
    signed = labels * alpha
    weighted_sums = np.array([X.T @ alpha, X.T @ signed], dtype=float)
    alpha_sums = np.array([alpha.sum(), signed.sum()])
    return LossSums(loss, loss, weighted_sums, alpha_sums, np.zeros(2), None, cost, len(alpha))
