"""Newton-CG: rows and features both too many for a factorisation, so only products with X are used.

    f(w, b) = 1/2 |w|^2 + sum_i theta_i(m_i),   m = 1 - y (X w + b)

with a rounded loss theta (below), or with the loss around a dual vector that follows (the proximal point
method), where the loss is steep. With a_i = theta_i'(m_i) and h_i = theta_i''(m_i) > 0 on few rows
only, the Newton step solves

    (I + X^T H_c X) dw = X^T (y a) - w ,     H_c = H - H 1 1^T H / (1^T H 1) ,

by conjugate gradients with a diagonal preconditioner, and roughly: the next step does the rest.
With kinks or bounds of the penalty these are steps of the weights that are free (``model_step``).
The intercept needs no ridge and no gradient of its own: it is put at its optimum, sum y a = 0, before every
step, which also makes a feasible for the dual. Products with X and X^T of all rows are needed once per step;
all else runs over the rows with curvature, or over vectors.

Rounded losses
--------------
A rounded loss answers for its slope a_i = c_i phi'(m_i), which is a dual variable of the true loss whatever
the rounding, and for its curvature. ``sharpen`` brings it closer to the true loss at the current point.

A smooth loss is rounded by a width where it has a corner (``MarginLoss.rounded``). For the hinge a shrinking
width would make the Newton systems ever worse. The augmented Lagrangian does better: around the dual vector
alpha known so far, the hinge c max(0, m) = max {a m : 0 <= a <= c} becomes

    max {a m - (a - alpha)^2 / (2 c sigma) : 0 <= a <= c},   slope  clip(alpha + c sigma m, 0, c),

whose minimiser tends to the optimum for any fixed sigma as alpha follows the slope (the proximal point
method on the dual), and the faster the larger sigma.

The same helps any loss where costs are large and nearly all rows can be fitted. The curvature c phi'' then
says nothing about the solution, whose dual variables are far below c, and Newton steps end at the next row
that becomes active. With conjugates c phi*(a / c) in the place of the box, and v = m + alpha / (c sigma),

    max_a  a m - c phi*(a / c) - (a - alpha)^2 / (2 c sigma),   slope  c phi'(q),   q = prox_(phi / sigma)(v),

has a curvature of at most c sigma, for which c sigma |x|^2 = 100 is a good start however large c is. Steps
towards a distant alpha would be wasted: it follows once |gradient|^2 / 2 is a small share of
sum_i (a_i - alpha_i)^2 / (2 c_i sigma), Rockafellar's criterion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np

from exclusivity._typing import Bools, Floats
from exclusivity.objective.losses import MarginLoss
from exclusivity.objective.objective import (
    ERMProblem,
    dual_bound_from_weights,
    member_costs,
    objective_of_shortfall,
    relative_gap,
    repair_dual,
)
from exclusivity.rows.design import UNIT, DesignMatrix, weighted_total
from exclusivity.solvers.factorised import model_step
from exclusivity.solvers.run import Guess, Run
from exclusivity.solvers.sums import Certificate, Point, Step, objective_of

PATIENCE = 300.0
"""Passes, 20 to 60 as a rule, after which an interior point is the better bet."""

_MAX_STEPS = 250
# Where another method waits, a run whose gap does not halve for this share of its passes hands over. With a
# tenth once these are used up, dense 1500 x 1500 at p = 2, C = 100 takes 2.7 instead of 0.35 s.
_STALLED = 1 / 2
# Where the gap but for rounding is this share of the tolerance, rounding alone keeps it from being proven.
_BEYOND = 1e-3
_MAX_LENGTHS = 12
_CG_MAX_ITER = 100
# The relative residual of Newton systems. With 0.5 far from the optimum and 0.2 near it, sparse rows of
# 2,000 x 20,000 take twice the time, words and characters of text 0.7 to 1.2 times.
_RESIDUAL = 0.1
# A step ends where the slope has come down to this share, the search for one among kinks where the gain has.
_ROUGHLY = 0.1
# Sharpen the loss once the gradient is to blame for no more than this share of the gap.
_SETTLED = 0.2
# Shortfalls that may be so many times farther off than new ones are made anew.
_STALE = 8.0
# For how many Newton steps the shape of a preconditioner is kept.
_KEPT = 4
# Rows with curvature are worth a copy where they are at most this share of all.
_FEW = 0.5

# Tried: 0.5 to 300. On 20,000 x 10^6 at C = 2 it takes 172 passes with 2 and 102 with 10; elsewhere as many.
_COLD_WIDTH = 10.0
_WARM_WIDTH = 0.5
# A good start is worth a sharp corner, but one sharper than this makes Newton steps fail (tried: to 0.001).
_LEAST_WARM_WIDTH = 0.01
# Faster growth saves few outer rounds and costs many Newton steps and conjugate gradients (tried: 1.5 to 5).
_GROWTH = 1.5
_SHARPEST = 1e12
STEEP = 100.0
"""The mean of c |x|^2 from which a loss counts as steep, and c sigma |x|^2 of the proximal loss then.

Tried: 1 to 10,000; 1 to 100 do as well.
"""

_FIRST_WIDTH = 1.0
_WIDTH_FACTOR = 0.1
_LEAST_WIDTH = 1e-13
_MAX_INTERCEPTS = 100

# So many features per row, at most, for a diagonal preconditioner: with more, most features are in few rows
# and the diagonal says nothing (20,000 x 10^6: 125 passes without, 210 with it; 200,000 x 50,000: 172, 92).
_TELLING, _TELLING_OF_HINGE = 4, 1


def has_few_rows(problem: ERMProblem) -> bool:
    """Return whether features are so many that a diagonal preconditioner says nothing."""
    telling = _TELLING_OF_HINGE if problem.loss.is_hinge else _TELLING
    return bool(problem.design.n_features > telling * problem.design.n_rows)


def drive_newton_cg(
    run: Run, reduced: ERMProblem, guess: Guess, *, most_passes: float = np.inf, is_proximal: bool = False
) -> None:
    """Take Newton steps by products alone until the run is over, no step helps or the gap halves too slowly.

    ``guess`` has the point, and maybe a dual vector that goes with it, the width of the rounding and the
    passes spent so far. With ``most_passes`` another method waits: the gap has to halve within half of so
    many passes. ``is_proximal``: around a dual vector that follows.
    """
    if is_proximal:
        loss = proximal_loss(reduced, guess.dual, guess.width)
    else:
        loss = rounded_loss(reduced.loss, member_costs(reduced), guess.dual, guess.width)
    before, halved, halved_at = run.passes, run.gap, guess.spent
    state = NewtonCG(reduced, guess.point, loss)
    for _ in range(_MAX_STEPS):
        run.passes, passes = before + state.passes, guess.spent + state.passes
        run.state = Guess(
            state.point,
            width=loss.width,
            dual=loss.dual,
            method="proximal" if is_proximal else "newton-cg",
            spent=passes,
        )
        point, certificate = state.point, state.certificate()
        if not reduced.penalty.is_smooth and run.would_end(certificate):
            point, certificate = _settled(run, reduced, state, certificate)
        norm = float(np.linalg.norm(state.gradient))
        run.take(point, certificate, residual=norm, mu=loss.width, is_start=not state.has_moved)
        if run.gap <= halved / 2:
            halved, halved_at = run.gap, passes
        is_slow = passes > halved_at + _STALLED * most_passes
        if run.is_over or is_slow or state.gap <= _BEYOND * run.tol or not state.advance():
            return


def _settled(
    run: Run, reduced: ERMProblem, state: NewtonCG, certificate: Certificate
) -> tuple[Point, Certificate]:
    """Return the last iterate with exact zeros and bounds, unless they cost it its certificate: one pass.

    Steps that were shortened come close to these, and no closer.
    """
    point = Point(reduced.penalty.settled(state.weights, state.dual_weights), state.intercept)
    objective = objective_of(reduced, point, reduced.design.times(point.weights) + point.intercept)
    run.passes += 0.5
    settled = Certificate(*objective, certificate.bound, certificate.dual)
    return (point, settled) if run.would_end(settled) else (state.point, certificate)


class NewtonCG:
    """The current iterate.

    Attributes
    ----------
    weights, intercept
        The point.
    shortfall, error
        1 - y (X w + b) there, and how far that may be off.
    alpha, curvatures, dual_weights, gradient
        Slopes and curvatures of the rounded loss, X^T (y alpha), and w less that.
    objective, bound
        About f(w, b) and D(alpha): rounding is left to :meth:`certificate`.
    passes : float
        So far; a product with X or with X^T is half of one.
    has_moved : bool
        Whether it is not the start any more, seen with a sharper loss.
    """

    def __init__(self, problem: ERMProblem, start: Point, loss: RoundedLoss) -> None:
        self.problem, self.loss, self.y = problem, loss, problem.labels
        self.weights, self.intercept = start.inside(problem.penalty).weights, start.intercept
        self.passes, self.has_moved, self.shortfall, self.error = 0.0, False, self.y, 0.0
        self._measure()
        self._has_few_rows = has_few_rows(problem)
        self._mean_squares, self._n_directions = np.empty(0), 0
        self._evaluate()

    @property
    def point(self) -> Point:
        """Weights and intercept."""
        return Point(self.weights, self.intercept)

    @property
    def gap(self) -> float:
        """About the relative duality gap."""
        return relative_gap(self.objective, self.bound)

    def certificate(self) -> Certificate:
        """Return what can be proven here: rounding is taken into account."""
        objective, lost = objective_of_shortfall(
            self.problem, self.weights[:, None], self.shortfall[:, None], self.error
        )
        bound = dual_bound_from_weights(self.problem, self.alpha, self.dual_weights)
        return Certificate(objective, lost, bound, partial(repair_dual, self.problem, self.alpha))

    def advance(self) -> bool:
        """Sharpen the loss where the gradient is settled, else take one step; False when nothing helps."""
        room = min(max(self.objective - self.bound, 0.0), self.loss.distance(self.alpha))
        is_settled = self._excess <= _SETTLED * room
        if is_settled or not self._newton_step():
            if not self.loss.sharpen(self.shortfall):
                return is_settled and self._newton_step()
            self._evaluate()
        return True

    def _evaluate(self) -> None:
        """Put the intercept at its best; compute slopes, weighted sums, and about objective and bound."""
        problem, penalty = self.problem, self.problem.penalty
        if problem.fit_intercept:
            here = balanced(self.loss, self.shortfall, self.y)
            self.intercept += here.shift
            self.error += 2 * UNIT * (abs(self.intercept) + abs(here.shift))
        else:
            here = Balanced(0.0, self.shortfall, *self.loss.derivatives(self.shortfall))
        self.shortfall, self.alpha, self.curvatures = here.shortfall, here.slopes, here.curvatures
        self.dual_weights = problem.design.transposed_times(self.y * self.alpha)
        self.passes += 0.5
        self.gradient = self.weights - self.dual_weights
        degree = problem.loss.degree
        if self.loss.is_exact and degree is not None:  # Euler: phi'(m) m = q phi(m)
            total = float(self.alpha @ self.shortfall) / degree
        else:
            total = problem.cost * weighted_total(problem.weights, problem.loss.value(self.shortfall))
        self.objective = penalty.value(self.weights) + total
        # What the gap owes to weights that do not go with the slopes.
        if penalty.is_smooth:
            self._excess = float(self.gradient @ self.gradient) / 2
        else:
            self._excess = penalty.excess(self.weights, self.dual_weights)
        if self.loss.is_exact and penalty.is_smooth:  # Fenchel's equality in every row
            self.bound = self.objective - self._excess
        else:
            self.bound = _dual_value(problem, self.alpha, self.dual_weights)

    def _measure(self) -> None:
        """Compute shortfalls from scratch."""
        self.shortfall = 1 - self.y * self.intercept
        self.error = self._fresh = self._rounding(self.weights, self.intercept)
        if self.weights.any():
            self.shortfall -= self.y * self.problem.design.times(self.weights)
            self.passes += 0.5

    def _rounding(self, weights: Floats, intercept: float) -> float:
        """Return how far the scores of such weights may be off."""
        return float(self.problem.design.row_scale.score_error(weights, intercept))

    def _newton_step(self) -> bool:
        """Take a Newton step, shortened where it is too long; False where it does not lead down."""
        step = self._newton_direction()
        dw, h = step.change.weights, self.curvatures
        scores = self.problem.design.times(dw)
        self.passes += 0.5
        # The change of the intercept that goes with such a change of the scores.
        total = float(h.sum()) if self.problem.fit_intercept else 0.0
        db = -float(h @ scores) / total if total > 0 else 0.0
        step, change = step.with_intercept(self.intercept, db), -self.y * (scores + db)
        length = self._length(dw, change)
        if length == 0:
            return False
        point = step.part(self.point, length, self.problem.penalty)
        self._carry(point, length * change, self._rounding(length * dw, length * db))
        self._evaluate()
        return True

    def _newton_direction(self) -> Step:
        """Solve the Newton system, roughly."""
        h, rows = self.curvatures, self.problem.design
        active = np.flatnonzero(h)
        if len(active) <= _FEW * len(h):
            rows, h = rows.taken(active), h[active]
        diagonal = self._preconditioner(rows, h)
        system = ProductSystem(rows, h, self.problem.fit_intercept, diagonal, _RESIDUAL)
        point, penalty = self.point, self.problem.penalty
        if penalty.is_smooth:
            dw, _ = system.solve(-self.gradient, 0.0)
            step = Step(point.moved(Point(dw, 0.0), 1.0), Point(dw, 0.0), float(self.gradient @ dw))
        else:
            step = model_step(system, penalty, point, Point(self.gradient, 0.0), _ROUGHLY)
        self.passes += system.n_products * rows.n_rows / len(self.y)
        return step

    def _preconditioner(self, rows: DesignMatrix, h: Floats) -> Floats | None:
        """Return 1 + diag(X^T H X), its shape kept for some steps: it only steers."""
        total = float(h.sum())
        if self._has_few_rows or total == 0:
            return None
        if self._n_directions % _KEPT == 0:
            self._mean_squares = rows.column_scatter(h / total, np.zeros_like(self.weights))
        self._n_directions += 1
        return np.asarray(1 + total * self._mean_squares)

    def _length(self, dw: Floats, change: Floats) -> float:
        """Find where the slope along the step is about zero, at most 1; 0 if the step does not lead down."""
        along, squares, penalty = float(self.weights @ dw), float(dw @ dw), self.problem.penalty

        def slope(t: float) -> float:
            of_loss = float(self.loss.slope(self.shortfall + t * change) @ change)
            if penalty.is_smooth:
                return along + t * squares + of_loss
            return float(penalty.slopes(self.weights, dw, np.array([t]))[0]) + of_loss

        low, high, at_low, at_high = 0.0, 1.0, slope(0.0), slope(1.0)
        if not (at_low < 0 and np.isfinite(at_high)):
            return 0.0
        # Conjugate gradients make it zero up to rounding where no row crosses a corner: either sign will do.
        goal = _ROUGHLY * at_low
        if at_high <= -goal:
            return 1.0
        for _ in range(_MAX_LENGTHS):
            middle = low + (high - low) * float(np.clip(at_low / (at_low - at_high), 0.1, 0.9))
            here = slope(middle)
            low, high, at_low, at_high = (
                (low, middle, at_low, here) if here > 0 else (middle, high, here, at_high)
            )
            if goal <= here <= 0:
                break
        return low if low > 0 else high

    def _carry(self, point: Point, change: Floats, error: float) -> None:
        """Move shortfalls to a new point, and note how far they may be off; from scratch where too far.

        What is carried on has the errors of the step's own scores, and those of adding it to weights,
        intercept and shortfalls.
        """
        self.weights, self.intercept, self.has_moved = point.weights, point.intercept, True
        self.shortfall = self.shortfall + change
        largest = float(np.abs(self.shortfall).max())
        # Adding to n weights rounds as a product with them does, n times less.
        scale, length = self.problem.design.row_scale, float(np.linalg.norm(self.weights))
        # ``_fresh`` may be that of weights up to _STALE times as small.
        of_weights = np.fmin(UNIT * scale.length * length, (1 + _STALE) * self._fresh / max(scale.n_terms, 1))
        self.error += error + 4 * UNIT * (abs(self.intercept) + largest) + float(of_weights)
        if not self.error <= _STALE * self._fresh:  # or not a number
            self._fresh = self._rounding(self.weights, self.intercept)
            if not self.error <= _STALE * self._fresh:
                self._measure()


def _dual_value(problem: ERMProblem, alpha: Floats, dual_weights: Floats) -> float:
    """Return about D(alpha) of a feasible vector, X^T (y alpha) being known."""
    conjugate = 0.0
    if not problem.loss.is_hinge:
        conjugate = float(problem.loss.conjugate(alpha, member_costs(problem)).sum())
    if problem.penalty.is_smooth:
        paid = float(dual_weights @ dual_weights) / 2
    else:
        paid = problem.penalty.largest_conjugate(dual_weights, 0.0, np.zeros_like(dual_weights))
    return float(alpha.sum()) - paid - conjugate


class ProductSystem:
    """I + X^T H_c X in the weights alone, H_c = H - H 1 1^T H / (1^T H 1), solved roughly and by products.

    Parameters
    ----------
    rows : DesignMatrix
    curvatures : ndarray of shape (n_rows,)
        The diagonal of H.
    has_intercept : bool
        Whether an intercept follows the weights: scores are centred then; else H_c = H.
    diagonal : ndarray of shape (n_features,) or None
        The preconditioner.
    rest : float
        The relative residual that will do.
    """

    def __init__(
        self,
        rows: DesignMatrix,
        curvatures: Floats,
        has_intercept: bool,
        diagonal: Floats | None,
        rest: float,
    ) -> None:
        self._rows, self._curvatures, self._diagonal, self._rest = rows, curvatures, diagonal, rest
        self._free: Bools | None = None
        self._total = float(curvatures.sum()) if has_intercept else 0.0
        # In a list, as restricted systems count with the whole one.
        self._count = [0]

    @property
    def n_products(self) -> int:
        """The number of products so far."""
        return self._count[0]

    def _centred(self, scores: Floats) -> Floats:
        """Subtract the mean of the scores, which an intercept takes over; in place."""
        if self._total > 0:
            scores -= float(self._curvatures @ scores) / self._total
        return scores

    def solve(self, r_w: Floats, r_b: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        solution, n_products = conjugate_gradients(self._apply, r_w, self._diagonal, self._rest)
        self._count[0] += n_products
        return solution, r_b

    def times(self, dw: Floats, db: float) -> tuple[Floats, float]:
        """See ``NewtonSystem``."""
        return self._apply(dw), db

    def restricted(self, free: Bools) -> ProductSystem:
        """See ``NewtonSystem``; of the whole system only."""
        part = copy(self)
        part._free, part._diagonal = free, None if self._diagonal is None else self._diagonal[free]
        return part

    def _apply(self, vector: Floats) -> Floats:
        whole = vector
        if self._free is not None:
            whole = np.zeros(len(self._free))
            whole[self._free] = vector
        image = self._centred(self._rows.times(whole))
        image *= self._curvatures
        product = self._rows.transposed_times(image)
        product += whole
        return np.asarray(product if self._free is None else product[self._free])


def conjugate_gradients(
    apply: Callable[[Floats], Floats], right: Floats, diagonal: Floats | None, rest: float
) -> tuple[Floats, int]:
    """Solve apply(x) = right to this relative residual; also return how many products it took."""
    residual, solution = right.copy(), np.zeros_like(right)
    scaled = residual if diagonal is None else residual / diagonal
    direction, rho = scaled.copy(), float(residual @ scaled)
    goal = rest**2 * rho
    for count in range(_CG_MAX_ITER):
        if not rho > goal:
            return solution, count
        image = apply(direction)
        curvature = float(direction @ image)
        if not 0 < curvature < np.inf:  # rounding has eaten the curvature: what has been found so far must do
            return solution, count + 1
        length = rho / curvature
        solution += length * direction
        residual -= length * image
        scaled = residual if diagonal is None else residual / diagonal
        rho, old = float(residual @ scaled), rho
        direction *= rho / old
        direction += scaled
    return solution, _CG_MAX_ITER


# ---------------------------------------------------------------- rounded losses


class RoundedLoss(ABC):
    """The loss of all rows, rounded.

    Attributes
    ----------
    width : float
        How far the rounding reaches; around a dual vector a / c runs from 0 to 1 over 1 / sigma.
    dual : ndarray or None
        The dual vector that it is made around, if it is.
    is_exact : bool
        Whether it is the loss itself.
    """

    width: float
    dual: Floats | None = None
    is_exact = False

    @abstractmethod
    def slope(self, shortfall: Floats) -> Floats:
        """Compute c_i phi'(m_i), a feasible dual vector but for the balance of the classes."""

    @abstractmethod
    def derivatives(self, shortfall: Floats) -> tuple[Floats, Floats]:
        """Compute the slope, and the curvature c_i phi''(m_i)."""

    def distance(self, slope: Floats) -> float:
        """Compute what the rounding takes off the dual at these slopes; infinite if nothing depends on it."""
        return np.inf

    @abstractmethod
    def sharpen(self, shortfall: Floats) -> bool:
        """Come closer to the true loss, knowing the minimiser of the rounded one; False if that is it."""


class _Proximal(RoundedLoss):
    """Any loss around a dual vector; without one around zero.

    ``is_close``: whether alpha has to follow the slope closely, by Rockafellar's criterion.
    """

    dual: Floats

    def __init__(self, costs: Floats, alpha: Floats | None, width: float, *, is_close: bool) -> None:
        self._costs, self._cost, self._is_close = costs, common_value(costs), is_close
        self.dual, self.width, self._sharpness = (
            np.zeros_like(costs) if alpha is None else alpha,
            width,
            1 / width,
        )

    def distance(self, slope: Floats) -> float:
        """See ``RoundedLoss``."""
        if not self._is_close:
            return np.inf
        return float(((slope - self.dual) ** 2 / self._costs).sum() / (2 * self._sharpness))

    def sharpen(self, shortfall: Floats) -> bool:
        """See ``RoundedLoss``: alpha follows the slope, sigma grows."""
        self.dual = self.slope(shortfall)
        self._sharpness = min(self._sharpness * _GROWTH, _SHARPEST)
        self.width = 1 / self._sharpness
        return True


class ProximalHinge(_Proximal):
    """p = 1 around a dual vector.

    ``width`` is by default that of a cold start, or of the solution for a neighbouring cost where there is a
    dual vector.
    """

    def __init__(
        self, costs: Floats, alpha: Floats | None, width: float | None = None, *, is_close: bool = False
    ) -> None:
        if width is None:
            width = _COLD_WIDTH if alpha is None else _WARM_WIDTH
        super().__init__(costs, alpha, width, is_close=is_close)

    def slope(self, shortfall: Floats) -> Floats:
        """See ``RoundedLoss``."""
        slope = shortfall * (self._sharpness * self._cost)
        slope += self.dual
        np.maximum(slope, 0.0, out=slope)
        return np.minimum(slope, self._cost, out=slope)

    def derivatives(self, shortfall: Floats) -> tuple[Floats, Floats]:
        """See ``RoundedLoss``: the curvature is sigma c between the two corners."""
        slope = self.slope(shortfall)
        between = slope > 0
        between &= slope < self._cost
        return slope, np.asarray(between * (self._sharpness * self._cost))


class ProximalSmooth(_Proximal):
    """A smooth loss around a dual vector, which it follows closely."""

    def __init__(self, costs: Floats, loss: MarginLoss, alpha: Floats | None, width: float) -> None:
        super().__init__(costs, alpha, width, is_close=True)
        self._loss = loss

    def _moved(self, shortfall: Floats) -> Floats:
        """Compute where the loss itself has the slope that the rounded one has here."""
        shifted = shortfall + self.dual / (self._sharpness * self._cost)
        return self._loss.prox(shifted, 1 / self._sharpness)

    def slope(self, shortfall: Floats) -> Floats:
        """See ``RoundedLoss``."""
        return np.asarray(self._cost * self._loss.slope(self._moved(shortfall)))

    def derivatives(self, shortfall: Floats) -> tuple[Floats, Floats]:
        """See ``RoundedLoss``: the reciprocals of both curvatures add up."""
        moved = self._moved(shortfall)
        curvatures = self._loss.curvature(moved)
        active = curvatures > 0
        both = self._cost / (1 / self._sharpness + 1 / np.where(active, curvatures, 1.0))
        return np.asarray(self._cost * self._loss.slope(moved)), both * active


class RoundedCorner(RoundedLoss):
    """A smooth loss; exact where it has no corner."""

    def __init__(self, costs: Floats, loss: MarginLoss, width: float | None = None) -> None:
        self._cost, self._exact = common_value(costs), loss
        self._round(width or _FIRST_WIDTH)

    def _round(self, width: float) -> None:
        self._loss = self._exact.rounded(width)
        self.width, self.is_exact = self._loss.width, self._loss.width == 0

    def slope(self, shortfall: Floats) -> Floats:
        """See ``RoundedLoss``."""
        return np.asarray(self._cost * self._loss.parts(shortfall, curvature=False)[1])

    def derivatives(self, shortfall: Floats) -> tuple[Floats, Floats]:
        """See ``RoundedLoss``."""
        stiffness = self._exact.active_curvature
        if stiffness is not None:  # no corner to round; two operations instead of six
            slope = self._cost * self._exact.slope(shortfall)
            return np.asarray(slope), np.asarray((slope > 0) * (stiffness * self._cost))
        parts = self._loss.parts(shortfall)
        assert parts.curvature is not None  # noqa: S101 -- asked for
        return np.asarray(self._cost * parts.slope), np.asarray(self._cost * parts.curvature)

    def sharpen(self, shortfall: Floats) -> bool:
        """See ``RoundedLoss``."""
        if self.width <= _LEAST_WIDTH:
            return False
        self._round(self.width * _WIDTH_FACTOR)
        return True


def common_value(values: Floats) -> Floats | float:
    """Return the one number that they all are, for quicker products; else the numbers themselves."""
    return float(values[0]) if len(values) and values.min() == values.max() else values


def rounded_loss(
    loss: MarginLoss, costs: Floats, alpha: Floats | None = None, width: float | None = None
) -> RoundedLoss:
    """Return the rounding that fits the loss; a dual vector matters for the hinge, a width for corners."""
    return ProximalHinge(costs, alpha, width) if loss.is_hinge else RoundedCorner(costs, loss, width)


def proximal_loss(
    problem: ERMProblem, alpha: Floats | None = None, width: float | None = None
) -> RoundedLoss:
    """Return the loss around a dual vector, however steep it is; by default as wide as that asks for."""
    costs = member_costs(problem)
    if width is None:  # rows may be zero, or their squares infinite
        width = float(np.clip(steepness(problem), 1 / _SHARPEST, _SHARPEST))
    if problem.loss.is_hinge:
        return ProximalHinge(costs, alpha, width, is_close=True)
    return ProximalSmooth(costs, problem.loss, alpha, width)


def steepness(problem: ERMProblem) -> float:
    """Compute the mean of c_i |x_i|^2, in hundreds.

    Above 1, Newton steps on the loss itself may come to nothing.
    """
    squares = member_costs(problem) @ problem.design.squared_lengths
    return float(squares / (STEEP * problem.design.n_rows))


def width_for_error(error: float) -> float:
    """Return the width for a start whose margins are off by ``error``, p = 1."""
    return float(np.clip(error, _LEAST_WARM_WIDTH, _COLD_WIDTH))


class Balanced(NamedTuple):
    """The change of the intercept that balances the classes; shortfalls, slopes and curvatures after it."""

    shift: float
    shortfall: Floats
    slopes: Floats
    curvatures: Floats


def balanced(loss: RoundedLoss, shortfall: Floats, y: Floats) -> Balanced:
    """Find the change t of the intercept with sum_i y_i slope_i(m_i - y_i t) = 0: safeguarded Newton steps.

    The sum falls as t grows, from the slopes of the positive rows alone to those of the negative ones.
    """
    low, high, t = -np.inf, np.inf, 0.0
    best, least, reach = Balanced(0.0, shortfall, *loss.derivatives(shortfall)), np.inf, 1.0
    rest = 4 * UNIT * np.sqrt(len(y))  # below that, a sum of so many numbers says nothing
    here = best
    for _ in range(_MAX_INTERCEPTS):
        imbalance, alpha_sum = float(y @ here.slopes), float(here.slopes.sum())
        if abs(imbalance) < least:
            best, least = here, abs(imbalance)
        if abs(imbalance) <= rest * alpha_sum or not np.isfinite(imbalance):
            break
        low, high = (t, high) if imbalance > 0 else (low, t)
        is_bracketed = np.isfinite(low) and np.isfinite(high)
        curvature = float(here.curvatures.sum())
        step = imbalance / curvature if curvature > 0 else np.inf
        if not (abs(step) <= reach and low < t + step < high):
            step = (low + high) / 2 - t if is_bracketed else float(np.copysign(reach, imbalance))
        if t + step in (low, high):
            break
        t += step
        # Inside a bracket steps have to halve, or Newton's method may go to and fro; outside they may grow.
        reach = abs(step) / 2 if is_bracketed else 4 * reach
        moved = shortfall - t * y
        here = Balanced(t, moved, *loss.derivatives(moved))
    return best
