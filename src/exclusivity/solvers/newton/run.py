"""Points, sums over rows and what they certify, and the record of a run.

Inside is the reduced SVM, outside the ERM of K members.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.objective import Objective, relative_gap
from exclusivity.objective.penalties import Penalty
from exclusivity.objective.problem import (
    ERMProblem,
    dual_bound,
    objective_of_shortfall,
    repair_dual,
)
from exclusivity.rows.design import RowScale, gamma
from exclusivity.solvers.base import Callback, Incumbent, IterationRecord, Recorder, SolverResult, Status
from exclusivity.solvers.newton.linear import NewtonSystem


@dataclass(frozen=True, eq=False)
class Point:
    """Weights and intercept of one linear model, or a step between two."""

    weights: Floats
    intercept: float

    def moved(self, step: Point, length: float) -> Point:
        """The point plus ``length`` times ``step``."""
        return Point(self.weights + length * step.weights, self.intercept + length * step.intercept)

    def inside(self, penalty: Penalty) -> Point:
        """The nearest point within the bounds of a penalty."""
        return self if penalty.is_smooth else Point(penalty.inside(self.weights), self.intercept)


class Step(NamedTuple):
    """Where a step leads, the way there, and at most how fast the objective begins to change along it.

    The slope is negative, or there is nothing to gain. ``n_systems`` were factorised to find the step.
    """

    target: Point
    change: Point
    slope: float
    n_systems: int = 1

    def with_intercept(self, start: float, change: float) -> Step:
        """The same step, which takes the intercept along."""
        target, way = Point(self.target.weights, start + change), Point(self.change.weights, change)
        return self._replace(target=target, change=way)

    def part(self, start: Point, length: float, penalty: Penalty) -> Point:
        """The point so far along it: at its end exactly there, so that zeros and bounds are exact."""
        if length == 1:
            return self.target
        return start.moved(self.change, length).inside(penalty)


@dataclass(frozen=True, eq=False)
class LossSums:
    """Sums over rows at one point, alpha_i = c_i phi'(m_i) being the dual vector it suggests.

    ``weighted_sums`` (2 x M), ``alpha_sums`` and ``conjugates`` (2 each) hold sums of v_i and of y_i v_i for
    v_i = alpha_i x_i, alpha_i and the loss's conjugate: half their sum belongs to the positive class, half
    their difference to the negative one. Repairing the dual vector needs them apart. ``gains`` are the same
    of t_i alpha_i, which is alpha_i where all targets are 1. ``cost`` is the sum of the costs of the rows
    whose loss this is, and ``n_terms`` the longest chain of additions behind any sum: what rounding errors
    depend on.
    """

    loss: float
    smoothed: float
    weighted_sums: Floats
    alpha_sums: Floats
    conjugates: Floats
    curvature: Floats | None
    cost: float
    n_terms: float
    gains: Floats

    @classmethod
    def of_nothing(cls, n_features: int, curvature: bool) -> LossSums:
        """The sums over no rows."""
        hessian, none = np.zeros((n_features + 1, n_features + 1)) if curvature else None, np.zeros(2)
        return cls(0.0, 0.0, np.zeros((2, n_features)), none, none, hessian, 0.0, 0, none)

    def __add__(self, other: LossSums) -> LossSums:
        """The sums over both sets of rows."""
        has_curvature = self.curvature is not None and other.curvature is not None
        return LossSums(
            self.loss + other.loss,
            self.smoothed + other.smoothed,
            self.weighted_sums + other.weighted_sums,
            self.alpha_sums + other.alpha_sums,
            self.conjugates + other.conjugates,
            self.curvature + other.curvature if has_curvature else None,  # type: ignore[operator]
            self.cost + other.cost,
            max(self.n_terms, other.n_terms) + 1,
            self.gains + other.gains,
        )

    def times(self, factor: float) -> LossSums:
        """The sums with all costs multiplied by ``factor``."""
        return LossSums(
            factor * self.loss,
            factor * self.smoothed,
            factor * self.weighted_sums,
            factor * self.alpha_sums,
            factor * self.conjugates,
            None if self.curvature is None else factor * self.curvature,
            factor * self.cost,
            self.n_terms + 1,
            factor * self.gains,
        )

    @property
    def negative_gradient(self) -> Point:
        """sum_i y_i alpha_i (x_i, 1): minus the gradient of the smoothed loss."""
        return Point(self.weighted_sums[1], float(self.alpha_sums[1]))

    def by_class(self) -> tuple[tuple[Floats, Floats], tuple[float, float], tuple[float, float]]:
        """``weighted_sums``, ``alpha_sums`` and ``conjugates`` of the positive and of the negative class."""
        both, difference = self.weighted_sums
        weighted = (both + difference) / 2, (both - difference) / 2
        return weighted, _halves(self.alpha_sums), _halves(self.conjugates)


@dataclass(frozen=True, eq=False)
class Guess:
    """Where to start, and what else is known there.

    That is a Newton system that is nearly right (from a sample of the rows, say) with the width of the
    rounding, or a dual vector.

    Where a run is to go on, ``method`` says with what: "semismooth", "truncated" or "shifted" (with the width
    and the dual vector, and the passes spent), "bands" (the width of the next one), or "interior" (the
    multipliers and slacks of the rows and of the penalty). ``tried_kernel``: the kernel came to little.
    """

    point: Point
    system: NewtonSystem | None = None
    width: float | None = None
    dual: Floats | None = None
    method: str | None = None
    spent: float = 0.0
    tried_kernel: bool = False
    slacks: tuple[Floats, tuple[Floats, ...]] | None = None


class Certificate(NamedTuple):
    """What is known of a point: its objective and how much larger that may be, and a bound on all points.

    ``dual`` gives the vector behind the bound, where there is one; it is only asked at the end, for the best.
    """

    objective: float
    error: float
    bound: float
    dual: Callable[[], Floats] = partial(np.empty, 0)


class Run:
    """Takes in certified points of the reduced SVM f and answers for F = K kappa f.

    Parameters
    ----------
    objective : Objective
        Of K members.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most iterations: certified points after a step.
    callback : callable or None
    offset : ndarray of shape (n_features,) or None
        What was taken from every row; intercepts of the answer make up for it.
    """

    def __init__(
        self,
        objective: Objective,
        tol: float,
        max_iter: int,
        callback: Callback | None = None,
        offset: Floats | None = None,
    ) -> None:
        self.objective, self.tol, self.max_iter, self._offset = objective, tol, max_iter, offset
        # Whether other threads want the run to end: compiled loops ask, as signals reach the main one alone.
        self.is_cancelled: Callable[[], bool] = getattr(callback, "is_cancelled", bool)
        self.scale = objective.n_members * objective.kappa
        self.passes = 0.0
        self._incumbent, self._recorder = Incumbent(), Recorder(callback)
        self._status: Status | None = None
        # Zero is a dual vector too, and proves 0: no bound is ever worse (or, by overflow, not a number).
        self._best_bound = 0.0
        # Of the rounded corner of the loss in the last semismooth step (not the mu of an interior point).
        self.last_width = 1.0
        self._dual: Callable[[], Floats] | None = None
        self._start: IterationRecord | None = None
        # Where the method is (a ``Guess``), for a warm start to continue from.
        self.state: Any = None

    @property
    def gap(self) -> float:
        """Relative gap of the best point so far."""
        return self._incumbent.gap

    @property
    def has_point(self) -> bool:
        """Whether there has been any point."""
        return bool(np.isfinite(self.best_objective))

    @property
    def best(self) -> Point:
        """The best point so far."""
        return Point(self._incumbent.weights, float(self._incumbent.intercepts[0]))

    @property
    def best_objective(self) -> float:
        """The reduced SVM's objective there; infinite before the first point."""
        return self._incumbent.objective / self.scale

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self._status is not None

    def would_end(self, certificate: Certificate) -> bool:
        """Whether a point that is known so well is good enough."""
        objective, bound = certificate.objective + certificate.error, max(certificate.bound, self._best_bound)
        return relative_gap(objective, bound) <= self.tol

    def take(
        self,
        point: Point,
        certificate: Certificate,
        *,
        residual: float = 0.0,
        mu: float = 0.0,
        is_start: bool = False,
        amends: bool = False,
    ) -> None:
        """One point of the reduced SVM and what is known of it.

        Where a method starts is no iteration, unless it is good enough: an iteration takes a step. A point
        that the run has passed by is none either: what is known of it now ``amends`` its record.
        """
        value, error = self.scale * certificate.objective, self.scale * certificate.error
        if certificate.bound > self._best_bound:
            self._best_bound, self._dual = certificate.bound, certificate.dual
        self._incumbent.raise_bound(self.scale * self._best_bound, np.empty(0))
        self._incumbent.offer(value, point.weights, np.array([point.intercept]), error)
        record = IterationRecord(
            iteration=len(self._recorder) + (0 if amends else 1),
            objective=value,
            error=error,
            bound=self._incumbent.bound,
            primal_residual=residual,
            dual_residual=0.0,
            mu=mu,
            passes=self.passes,
        )
        if is_start and not self.gap <= self.tol:
            self._start = record
            return
        if amends:
            self._recorder.amend(record)
        asked_to_stop = not amends and self._recorder.add(record, lambda: self._members(point))
        if self.gap <= self.tol:
            self._status = Status.CERTIFIED
        elif asked_to_stop:
            self._status = Status.CALLBACK
        elif len(self._recorder) >= self.max_iter:
            self._status = Status.MAX_ITER

    def pass_by(self, point: Point, objective: float, *, residual: float = 0.0, mu: float = 0.0) -> bool:
        """Note a point on the way, of which nothing is proven yet; True if a callback ends the run here."""
        record = IterationRecord(
            iteration=len(self._recorder) + 1,
            objective=self.scale * objective,
            bound=self.scale * self._best_bound,
            primal_residual=residual,
            dual_residual=0.0,
            mu=mu,
            passes=self.passes,
        )
        if self._recorder.add(record, lambda: self._members(point)):
            self._status = Status.CALLBACK
        return self.is_over

    @property
    def may_go_on(self) -> bool:
        """Whether there may be another iteration after the next."""
        return len(self._recorder) + 1 < self.max_iter

    def _members(self, point: Point) -> tuple[Floats, Floats]:
        """K equal members as read-only views: any number of them at the price of one."""
        K, intercept = self.objective.n_members, point.intercept
        if self._offset is not None:  # of all additions only the last one rounds
            intercept = fsum([intercept, *(-self._offset * point.weights)])
        weights = np.broadcast_to(point.weights[:, None], (len(point.weights), K))
        return weights, np.broadcast_to(np.array([intercept]), K)

    def result(self, n_rows: int = 0) -> SolverResult:
        """The end; a run that stalled before its tolerance counts as one that ran out of iterations.

        Writing the dual vector of ``n_rows`` rows down may cost a pass; without them the result's is empty.
        """
        if len(self._recorder) == 0 and self._start is not None:  # no step was possible
            self._recorder.keep(self._start)
        status, history = self._status or Status.MAX_ITER, self._recorder.history()
        dual = np.zeros(n_rows) if n_rows == 0 or self._dual is None else self._dual()
        weights, intercepts = self._members(self.best)
        found = self._incumbent.result(self.tol, status, history, self.state)
        return dataclasses.replace(found, weights=weights, intercepts=intercepts, dual=dual)


def _halves(sums: Floats) -> tuple[float, float]:
    """From a sum of v and one of y v to those over the rows with y = 1 and with y = -1."""
    both, difference = sums.tolist()
    return (both + difference) / 2, (both - difference) / 2


def objective_from_sums(
    point: Point, sums: LossSums, reduced: Objective, scale: RowScale
) -> tuple[float, float]:
    """The objective at ``point``, and how much larger it may be; ``scale`` is that of all rows."""
    error = float(scale.score_error(point.weights, point.intercept))
    penalty = reduced.penalty.value(point.weights)
    objective, raised = penalty + sums.loss, reduced.loss.raised_total(sums.loss, sums.cost, error)
    upper = reduced.rounded_up(penalty + raised, sums.n_terms, len(point.weights))
    return objective, upper - objective


def bound_from_sums(sums: LossSums, reduced: Objective, scale: RowScale) -> tuple[float, Floats]:
    """D(alpha) of the repaired alpha behind ``sums``, rounded down, and the factors of the two classes.

    Scaling a class's alpha by t scales its sums by t; what it does to its conjugates the loss knows.
    """
    weighted_sums, alpha_sums, conjugates = sums.by_class()
    factors = _class_factors(alpha_sums, reduced)
    # The two classes' sums are differences of sums over all rows, and as exact as these.
    rounding = gamma(sums.n_terms + 4) * (alpha_sums[0] + alpha_sums[1])
    gains = _halves(sums.gains)
    value = reduced.lower_dual(
        gain=factors[0] * gains[0] + factors[1] * gains[1],
        alpha_sum=factors[0] * alpha_sums[0] + factors[1] * alpha_sums[1],
        moved=rounding if reduced.fit_intercept else 0.0,
        dual_weights=factors[0] * weighted_sums[0] - factors[1] * weighted_sums[1],
        conjugate=sum(map(reduced.loss.scaled_conjugate, conjugates, factors)),
        cost=sums.cost,
        scale=scale,
        n_terms=sums.n_terms,
    )
    return value, np.array(factors)


def _class_factors(alpha_sums: tuple[float, float], reduced: Objective) -> list[float]:
    """What the alphas of the two classes are multiplied by to balance: the heavier one shrinks."""
    factors = [1.0, 1.0]
    if reduced.fit_intercept:
        heavier = int(alpha_sums[1] > alpha_sums[0])
        if alpha_sums[heavier] > 0:
            factors[heavier] = max(alpha_sums[1 - heavier], 0.0) / alpha_sums[heavier]
    return factors


def repaired_weights(sums: LossSums, reduced: Objective) -> Floats:
    """X^T (y alpha) of the repaired dual vector behind ``sums``."""
    (above, below), alpha_sums, _ = sums.by_class()
    factors = _class_factors(alpha_sums, reduced)
    return factors[0] * above - factors[1] * below


def certificate_of(reduced: ERMProblem, point: Point, alpha: Floats) -> Certificate:
    """Compute what a point and a dual vector prove, evaluated from scratch: two products with all rows."""
    alpha = repair_dual(reduced, alpha)
    scores = reduced.design.times(point.weights)
    dual_weights = reduced.design.transposed_times(reduced.labels * alpha)
    objective = objective_of(reduced, point, scores + point.intercept)
    return Certificate(*objective, dual_bound(reduced, alpha, dual_weights), partial(np.asarray, alpha))


def dual_weights_of(reduced: ERMProblem, alpha: Floats) -> Floats:
    """X^T (y alpha) of the repaired dual vector: one pass."""
    return reduced.design.transposed_times(reduced.labels * repair_dual(reduced, alpha))


def objective_of(reduced: ERMProblem, point: Point, scores: Floats) -> tuple[float, float]:
    """The objective at a point with these scores, and how much larger it may be."""
    error = reduced.row_scale.score_error(point.weights, point.intercept)
    shortfall = reduced.rows.shortfall(scores)
    return objective_of_shortfall(reduced, point.weights[:, None], shortfall[:, None], error)
