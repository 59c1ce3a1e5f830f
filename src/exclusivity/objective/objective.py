"""The objective, on any rows and on rows in memory, and a lower bound on its optimum from any dual vector.

For row j of the M x K matrix W (feature j across the members), with gamma = ``exclusivity`` and
beta = ``sparsity``, the exclusivity regulariser charges

    gamma/2 |W_j|_1^2  +  (1 - gamma)/2 |W_j|_2^2  +  beta |W_j|_1 .

gamma = 1, beta = 0 is the paper's 1/2 |W^T|_{1,2}^2, Eq. (4); gamma = 0 leaves K independent SVMs;
beta > 0 is the extension of the paper's conclusion, W~ = [W, beta 1]. gamma = inf is the limit of growing
gamma: what two members share costs infinitely much, what one member has alone costs 1/2 w^2 + beta |w|.

One member
----------
By the equivalence theorem (``Objective.reduced``) solvers minimise g(w) + sum_i c_i phi(m_i) over one member.
The penalty g is a sum over features of 1/2 w^2 + l |w| on an interval [lo, hi], which may be the whole line.
Its conjugate g*(u) = sup_w u . w - g(w) is what the dual pays for u = X^T (y alpha); the w that attains it is
the member that goes with alpha.

Bounds
------
Sign and box constraints are part of the penalty. For one feature, with [lo, hi] instead of the whole line,
the supremum in

    g*(u) = max {u w - 1/2 w^2 - l |w| : lo <= w <= hi}

is attained at w = clip(soft(u, l), lo, hi), as the function is concave and has one variable. For lo = 0,
hi = inf that is 1/2 max(0, u - l)^2; for finite bounds g* is linear beyond them, as Huber's function is.
All members have the same bounds, so that averaging over their permutations keeps them: the equivalence
theorem (``Objective.reduced``) holds as it stands.

g is 1-strongly convex whatever the bounds, hence g*(u + d) <= g*(u) + w . d + 1/2 |d|^2: with it a conjugate
is rounded up.

The dual
--------
Let c_i = s_i C / kappa and l = beta / kappa be the numbers of the reduced SVM f (see
:meth:`ERMProblem.reduced`). For every alpha in the domain of the loss's conjugate with
sum_i y_i alpha_i = 0 (only needed where the intercept is free), and u = X^T (y alpha),

    D(alpha) = sum_i t_i alpha_i - 1/2 |soft(u, l)|^2 - sum_i loss*_i(alpha_i)  <=  min f,

so that F(W, b) - K kappa D(alpha) bounds the excess of ANY (W, b) from ANY solver. The bound is only
as valid as alpha is feasible: every vector is repaired before it is used. And it is only as valid as its
sums are exact: bounds are rounded down by what rounding may have done to them (see ``rows.design``), and
objectives come with how much larger they may be, so that the gap between the two is one of exact numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import isnan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.objective.losses import MarginLoss, PowerHinge
from exclusivity.rows.design import (
    FEW_NUMBERS,
    LONG_UNIT,
    UNIT,
    DesignMatrix,
    LabelledRows,
    RowScale,
    gamma,
    run_terms,
    weighted_total,
)

# How much of a bound rounding has to cost before longer floats are tried.
_LEAST_LOSS = 1e-9

LEAST_COST = 1e-280
"""The smallest cost of a row. Losses, squared weights and their sums stay far from where numbers vanish."""

_OF_ROWS = frozenset(field.name for field in dataclasses.fields(LabelledRows))


# ---------------------------------------------------------------- penalties on weights


@dataclass(frozen=True)
class ExclusivityRegulariser:
    """gamma/2 |W_j|_1^2 + (1-gamma)/2 |W_j|_2^2 + beta |W_j|_1, summed over the rows of W.

    Parameters
    ----------
    exclusivity : float
        The paper's gamma >= 0. Convex in W for gamma <= 1; at ``inf`` every feature belongs to one member.
    sparsity : float or ndarray of shape (n_features,)
        The penalty beta >= 0, for all features or for each.

    Examples
    --------
    >>> import numpy as np
    >>> ExclusivityRegulariser().value(np.array([[1.0, -2.0]]))
    4.5
    >>> ExclusivityRegulariser(np.inf).value(np.array([[1.0, -2.0]]))
    inf
    """

    exclusivity: float = 1.0
    sparsity: float | Floats = 0.0

    def __post_init__(self) -> None:
        if not self.exclusivity >= 0:
            raise ValueError(f"exclusivity must be a number >= 0, or infinite; got {self.exclusivity!r}.")
        if not np.all(np.isfinite(self.sparsity) & (np.asarray(self.sparsity) >= 0)):
            raise ValueError(f"sparsity must be a finite number >= 0; got {self.sparsity!r}.")

    def kappa(self, n_members: int) -> float:
        """Compute 1 + gamma (K - 1): how many times stiffer K equal members are than one SVM."""
        return 1.0 if n_members == 1 else 1.0 + self.exclusivity * (n_members - 1)

    def value(self, weights: Floats) -> float:
        """Compute the regulariser of the M x K matrix ``weights``."""
        row_sums = np.abs(weights).sum(axis=1)
        squares = np.einsum("jk,jk->", weights, weights)
        penalty = float(np.sum(self.sparsity * row_sums))
        gamma = self.exclusivity
        if np.isinf(gamma):
            is_shared = np.any(np.count_nonzero(weights, axis=1) > 1)
            return np.inf if is_shared else float(squares / 2) + penalty
        return float(gamma / 2 * (row_sums @ row_sums) + (1 - gamma) / 2 * squares) + penalty

    @property
    def _per_row(self) -> Floats:
        """The penalty beta as a column, one entry or one per feature."""
        return np.asarray(self.sparsity, dtype=float)[..., None]

    def prox(self, point: Floats, mu: float) -> Floats:
        """Compute argmin_x  mu/2 |x - v|^2 + regulariser(x) for every row v of ``point``, exactly.

        Soft-threshold v by beta/mu. With a = mu + 1 - gamma > 0 the rest is strictly convex:
        for z = mu v / a the solution is sign(z) max(|z| - tau, 0), where
        tau = max_k gamma (|z|_(1) + ... + |z|_(k)) / (a + gamma k) over the entries sorted
        downwards. For a <= 0 the mixed terms win and only the largest entry survives.
        """
        shrunk = np.maximum(np.abs(point) - self._per_row / mu, 0.0)
        gamma, a = self.exclusivity, mu + 1 - self.exclusivity
        if a > 0:
            counts = np.arange(1, point.shape[1] + 1)
            ordered = -np.sort(-shrunk, axis=1)
            sums = np.cumsum(ordered, axis=1)
            inside = a * ordered + gamma * (counts * ordered - sums) > 0
            k = np.maximum(inside.sum(axis=1, keepdims=True), 1)
            total = np.take_along_axis(sums, k - 1, axis=1)
            # = (mu/a) (shrunk - gamma total / (a + gamma k)), without the cancellation as a -> 0.
            size = np.maximum((shrunk + gamma / a * (k * shrunk - total)) * (mu / (a + gamma * k)), 0.0)
        else:
            rows, winner = np.arange(point.shape[0]), shrunk.argmax(axis=1)
            size = np.zeros_like(shrunk)
            size[rows, winner] = shrunk[rows, winner] * (mu / (mu + 1))
        return np.asarray(np.copysign(size, point))

    def reweighted(
        self, point: Floats, mu: float, start: Floats, *, eps: float, max_iter: int, tol: float
    ) -> Floats:
        """Run Algorithm 1 of the paper: the same minimiser as :meth:`prox`, approached by reweighting.

        Eq. (10): G_k = (gamma |H|_1 + beta) / (|H_k| + eps) + 1 - gamma, then
        Eq. (11): H = mu v / (G + mu), row by row, until no entry of a row moves by more than
        ``tol`` times its largest entry. An entry that is zero in ``start`` stays (nearly) zero, and
        entries that should vanish do so slowly: that comes of dividing by |H_k|.
        """
        gamma, beta = self.exclusivity, np.broadcast_to(self._per_row, (len(point), 1))
        if mu + 1 - gamma <= 0:
            raise ValueError(
                f"Reweighting needs mu > exclusivity - 1 (here mu={mu:g}, exclusivity={gamma:g}); "
                "use the exact step."
            )
        result = np.array(start, dtype=float)
        active = np.arange(result.shape[0])
        for _ in range(max_iter):
            old = result[active]
            size = np.abs(old)
            stiffness = (gamma * size.sum(axis=1, keepdims=True) + beta[active]) / (size + eps) + 1 - gamma
            new = mu * point[active] / (stiffness + mu)  # Eq. (11)
            result[active] = new
            moved = np.abs(new - old).max(axis=1) > tol * np.abs(new).max(axis=1)
            active = active[moved]
            if active.size == 0:
                break
        return result


@dataclass(frozen=True, eq=False)
class Penalty:
    """g(w) = 1/2 |w|^2 + sum_j l_j |w_j| for lower <= w <= upper, else infinite.

    Without bounds it is what the exclusivity regulariser leaves for equal members.

    Parameters
    ----------
    kinks : float or ndarray of shape (n_features,)
        The l_j, half the jump of the slope at zero; where it is positive weights can be exactly zero.
    lower, upper : float or ndarray of shape (n_features,)
        Between which weights have to be.
    """

    kinks: float | Floats = 0.0
    lower: float | Floats = -np.inf
    upper: float | Floats = np.inf

    @cached_property
    def is_bounded(self) -> bool:
        """True if any weight has a bound."""
        return bool(np.any(np.isfinite(self.lower)) or np.any(np.isfinite(self.upper)))

    @cached_property
    def is_smooth(self) -> bool:
        """True if it is 1/2 |w|^2 and nothing else, so that Newton steps on the primal see all of it."""
        return not np.any(self.kinks) and not self.is_bounded

    def value(self, weights: Floats) -> float:
        """Compute g(w): a point outside the bounds loses every comparison."""
        if self.is_bounded and (np.any(weights < self.lower) or np.any(weights > self.upper)):
            return np.inf
        ridge = float(weights @ weights) / 2
        return ridge if self.is_smooth else ridge + float(np.sum(self.kinks * np.abs(weights)))

    def largest_conjugate(self, dual_weights: Floats, reach: float, reaches: Floats) -> float:
        """Bound g*(u) from above for every u so close to ``dual_weights``, as rounding of a sum makes it.

        ``reach`` bounds the distance of the two vectors, ``reaches`` that of every feature. Without bounds
        g*(u) = 1/2 |soft(u, l)|^2, and soft is no longer than what it is applied to; else see above.
        """
        goal = self.attained(dual_weights)
        size = np.abs(goal)
        if not self.is_bounded:
            longer = size + reaches
            length = _least(sqrt(longer @ longer), sqrt(size @ size) + reach) * (1 + gamma(len(goal) + 2))
            return length * length / 2
        gains, penalties = dual_weights * goal, (size / 2 + self.kinks) * size
        by_rows, by_columns = sqrt(size @ size) * reach + reach * reach / 2, (size + reaches / 2) @ reaches
        raised = _least(float(by_columns), by_rows)
        lost = gamma(len(goal) + 6) * float(np.abs(gains).sum() + penalties.sum() + raised)
        return float(gains.sum() - penalties.sum()) + raised + lost

    def attained(self, dual_weights: Floats) -> Floats:
        """Return the w that attains g*(dual_weights), feature by feature: clip(soft(u, l), lo, hi)."""
        if self.is_smooth:
            return dual_weights
        size = np.maximum(np.abs(dual_weights) - self.kinks, 0.0)
        return self.inside(np.copysign(size, dual_weights))

    def inside(self, weights: Floats) -> Floats:
        """Return the nearest weights within the bounds; the same array where there are none."""
        return np.clip(weights, self.lower, self.upper) if self.is_bounded else weights

    def settled(self, weights: Floats, dual_weights: Floats) -> Floats:
        """Return the weights, exact where ``dual_weights`` says zero or a bound."""
        goal = self.attained(dual_weights)
        is_pinned = (goal == 0) | (goal == self.lower) | (goal == self.upper)
        return np.where(is_pinned, goal, self.inside(weights))

    def excess(self, weights: Floats, dual_weights: Floats) -> float:
        """Compute g(w) + g*(u) - u . w >= 0, Fenchel's inequality: what a gap owes to w not going with u."""
        goal = self.attained(dual_weights)
        step = weights - goal
        kinks = float(np.sum(self.kinks * (np.abs(weights) - np.abs(goal))))
        return float(step @ step) / 2 + float((goal - dual_weights) @ step) + kinks

    def slopes(self, weights: Floats, step: Floats, lengths: Floats) -> Floats:
        """Compute d/dt of g(w + t step), inside the bounds, for every t in ``lengths``."""
        slopes = weights @ step + lengths * (step @ step)
        if np.any(self.kinks):
            slopes = slopes + np.sign(weights + lengths[:, None] * step) @ (self.kinks * step)
        return np.asarray(slopes)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Between which every member's weights have to be, feature by feature.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_features,)
        Infinite where there is no bound; equal where a weight is given. Zero need not be between them.

    Examples
    --------
    >>> import numpy as np
    >>> Bounds(np.array([0.0, -1.0]), np.array([np.inf, 1.0])).clip(np.array([-2.0, 0.5]))
    array([0. , 0.5])
    """

    lower: Floats
    upper: Floats

    def __post_init__(self) -> None:
        if self.lower.ndim != 1 or self.lower.shape != self.upper.shape:
            raise ValueError(
                f"bounds are two vectors of one length; got {self.lower.shape}, {self.upper.shape}."
            )
        # Not a number is in no order either.
        is_interval = (self.lower <= self.upper) & (self.lower < np.inf) & (self.upper > -np.inf)
        if not np.all(is_interval):
            first = int(np.argmin(is_interval))
            raise ValueError(
                f"a lower bound must not be above the upper one, nor be infinite on the wrong side; feature "
                f"{first} has [{self.lower[first]:g}, {self.upper[first]:g}]."
            )

    @property
    def contain_zero(self) -> bool:
        """True if every weight may be zero."""
        return bool(np.all((self.lower <= 0) & (self.upper >= 0)))

    def clip(self, weights: Floats) -> Floats:
        """Return the nearest weights within the bounds."""
        return np.clip(weights, self.lower, self.upper)

    def of_columns(self, columns: Ints) -> Bounds:
        """Return the bounds of these columns alone."""
        return Bounds(self.lower[columns], self.upper[columns])


def _least(by_columns: float, by_rows: float) -> float:
    """Return the lesser; one of the two may be beyond the range of numbers, or not a number."""
    return by_columns if by_columns <= by_rows or isnan(by_rows) else by_rows


def exclusivity(u: ArrayLike, v: ArrayLike) -> int:
    """Compute |u . v|_0: the number of entries in which both vectors are non-zero (Definition 1).

    Zero means that the two share nothing. Note the identity |u|_0 = exclusivity(u, 1).

    Parameters
    ----------
    u, v : array-like of shape (n,)
        Two vectors.

    Examples
    --------
    >>> exclusivity([1, 0, 2], [3, 4, 0])
    1
    """
    left, right = _pair(u, v)
    # Comparing each vector with zero, and not their product: a product of tiny numbers underflows.
    return int(np.count_nonzero((left != 0) & (right != 0)))


def relaxed_exclusivity(u: ArrayLike, v: ArrayLike) -> float:
    """Compute |u . v|_1 = sum_i |u_i| |v_i| (Definition 2).

    Note the identities |u|_1 = relaxed_exclusivity(u, 1) and |u|_2^2 = relaxed_exclusivity(u, u).

    Parameters
    ----------
    u, v : array-like of shape (n,)
        Two vectors.

    Examples
    --------
    >>> relaxed_exclusivity([1, 0, -2], [3, 4, 1])
    5.0
    """
    left, right = _pair(u, v)
    return float(np.abs(left) @ np.abs(right))


def _pair(u: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]:
    left, right = np.asarray(u, dtype=float), np.asarray(v, dtype=float)
    if left.ndim != 1 or left.shape != right.shape:
        raise ValueError(
            f"exclusivity compares two vectors of one length; got shapes {left.shape} and {right.shape}."
        )
    return left, right


# ---------------------------------------------------------------- the objective on any rows


@dataclass(frozen=True, eq=False)
class Objective:
    """Eq. (5) of the paper with its three knobs, for K members (w_k, b_k) and rows (x_i, y_i, s_i).

        F(W, b) = regulariser(W) + C sum_k sum_i s_i phi(t_i - y_i (x_i . w_k + b_k))

    with the targets t_i of the rows, all 1 in classification.

    Parameters
    ----------
    loss : MarginLoss
        The loss phi of one row.
    regulariser : ExclusivityRegulariser
        Of the M x K matrix W.
    cost : float
        C, the weight of the loss (the paper's lambda).
    n_members : int
        K, the number of members (the paper's C).
    fit_intercept : bool
        Whether each member has a free intercept b_k, or b_k = 0.
    bounds : Bounds or None
        Between which the weights of every member have to be, if anywhere.

    Examples
    --------
    >>> from exclusivity.objective import PowerHinge
    >>> paper = Objective(PowerHinge(2), ExclusivityRegulariser(), cost=2.0, n_members=10)
    >>> paper.kappa, paper.reduced().cost
    (10.0, 0.2)
    """

    loss: MarginLoss
    regulariser: ExclusivityRegulariser
    cost: float = 1.0
    n_members: int = 1
    fit_intercept: bool = True
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        if self.n_members < 1:
            raise ValueError(f"n_members must be at least 1; got {self.n_members}.")
        if not (np.isfinite(self.cost) and self.cost > 0):
            raise ValueError(f"cost must be a positive finite number; got {self.cost!r}.")

    @property
    def kappa(self) -> float:
        """1 + gamma (K - 1); K for the paper."""
        return self.regulariser.kappa(self.n_members)

    @property
    def is_convex(self) -> bool:
        """True if gamma <= 1, so that a duality gap can certify the optimum."""
        return self.regulariser.exclusivity <= 1

    def reduced(self) -> Objective:
        """Return the ONE ordinary SVM that the mean member of every optimum solves, for gamma <= 1.

        F does not change when members are permuted and is convex, so averaging a solution over all
        permutations cannot raise it: K copies of the mean member (w, b) are optimal too. For equal
        members |W_j|_1 = K |w_j|, hence with kappa = 1 + gamma (K - 1)

            F = K kappa f(w, b),   f(w, b) = 1/2 |w|^2 + beta/kappa |w|_1 + C/kappa sum_i s_i phi(m_i)

        and min F = K kappa min f. For the paper, gamma = 1: an SVM of cost C / K.
        """
        self.require_convex()
        if self.n_members == 1:
            return self
        regulariser = self.regulariser
        return dataclasses.replace(
            self,
            n_members=1,
            cost=self.cost / self.kappa,
            regulariser=dataclasses.replace(regulariser, sparsity=regulariser.sparsity / self.kappa),
        )

    def require_convex(self) -> None:
        """Raise unless gamma <= 1."""
        if not self.is_convex:
            raise ValueError(
                f"exclusivity={float(self.regulariser.exclusivity)!r} makes the problem non-convex: there is "
                "no equivalent SVM and no duality gap above 1; use solver='exclusive'."
            )

    @cached_property
    def penalty(self) -> Penalty:
        """The penalty on the weights of the one member of :meth:`reduced`."""
        kinks = self.regulariser.sparsity / self.kappa
        return Penalty(kinks) if self.bounds is None else Penalty(kinks, self.bounds.lower, self.bounds.upper)

    @cached_property
    def _loss_at_zero(self) -> float:
        return float(self.loss.value(np.zeros(1))[0])

    def lower_dual(
        self,
        *,
        gain: float,
        alpha_sum: float,
        moved: float,
        dual_weights: Floats,
        conjugate: float,
        cost: float,
        scale: RowScale,
        n_terms: float,
        unit: float = UNIT,
    ) -> float:
        """Compute D(alpha) of :meth:`reduced`, rounded down: at most that of an exactly feasible vector.

        Parameters
        ----------
        gain : float
            The sum of t_i alpha_i; that of alpha_i where all targets are 1. Rounding, and what is moved, take
            at most T = max |t_i| times as much from it as from the sum of alpha_i.
        alpha_sum : float
            The sum of alpha_i, before ``moved`` is taken from it.
        moved : float
            What has to be taken from rows to make alpha feasible.
        dual_weights : ndarray of shape (n_features,)
            X^T (y alpha) with sum y alpha = 0 up to ``moved`` and rounding.
        conjugate : float
            The sum of loss*_i(alpha_i).
        cost : float
            The sum of c_i: loss*_i >= -c_i phi(0), so that no more than 2 phi(0) of it cancels in that sum.
        scale : RowScale
        n_terms : float
            The longest chain of additions behind these sums.
        unit : float
            The relative error of one rounding in ``alpha_sum``, ``moved`` and ``dual_weights``.
        """
        lost = gamma(n_terms + 8, unit) * alpha_sum
        moved = moved + lost if self.fit_intercept else moved
        off = moved + lost
        paid = self.penalty.largest_conjugate(dual_weights, off * scale.length, off * scale.columns)
        size = abs(conjugate) + 2 * self._loss_at_zero * cost
        conjugate += gamma(n_terms + self.loss.n_roundings) * size
        if self._loss_at_zero > 0 and alpha_sum > 0:
            # Conjugates below zero rise as alpha shrinks: by t of them where a class is scaled by 1 - t.
            conjugate += 2 * moved / alpha_sum * size
        value = (gain - scale.target * (moved + lost)) - paid - conjugate
        return value - 4 * UNIT * (scale.target * alpha_sum + 2 * abs(paid) + size)

    def rounded_up(self, value: float, n_terms: float, n_weights: int) -> float:
        """Return a value of the objective plus what its sums over rows and weights may have lost."""
        return value * (1 + gamma(n_terms + n_weights + self.loss.n_roundings))


@dataclass(frozen=True)
class Contrast:
    """The class numbers that a binary problem sets against each other.

    Parameters
    ----------
    name : str
        For messages.
    positive : int
        The class whose rows have label +1.
    negative : int or None
        The class whose rows have label -1; None: all the rest.
    """

    name: str
    positive: int
    negative: int | None = None


def relative_gap(objective: float, bound: float) -> float:
    """Compute (F - max(D, 0)) / F, at most 1: F is never negative, so 0 is always a bound.

    Zero when F itself is zero; infinite where F is not finite, or where no D was computed.

    Parameters
    ----------
    objective : float
        F at any point.
    bound : float
        D, a lower bound on the optimum; see :func:`dual_bound`.

    Examples
    --------
    >>> relative_gap(2.0, 1.0)
    0.5
    """
    if objective == 0:
        return 0.0
    gap = (objective - bound) / objective
    return min(max(gap, 0.0), 1.0) if np.isfinite(gap) else np.inf


# ---------------------------------------------------------------- with rows in memory


@dataclass(frozen=True, eq=False)
class ERMProblem:
    """One binary ERM: what is minimised, and on which rows.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    rows : LabelledRows
        The rows it is summed over.

    See Also
    --------
    ERMProblem.build : The same from plain arrays and numbers.
    """

    objective: Objective
    rows: LabelledRows

    def __post_init__(self) -> None:
        # Above exclusivity 1 there is no one SVM behind the members, and the cost is every member's own.
        least = LEAST_COST * (self.kappa if self.objective.is_convex else 1.0)
        if not self.cost * self.rows.least_weight >= least:
            raise ValueError(
                f"C={self.cost:g} times the smallest sample weight, {self.rows.least_weight:g}, is below "
                f"{least:g}: the objective would vanish in floating point, and its gap with it. Raise C, "
                "multiply sample_weight by a constant, or set its smallest values to 0."
            )

    @classmethod
    def build(
        cls,
        X: Matrix,
        y: Floats,
        *,
        n_members: int = 1,
        cost: float = 1.0,
        p: float = 2,
        loss: MarginLoss | None = None,
        exclusivity: float = 1.0,
        sparsity: float = 0.0,
        weights: Floats | None = None,
        targets: Floats | None = None,
        fit_intercept: bool = True,
        bounds: Bounds | None = None,
    ) -> ERMProblem:
        """Build a problem from plain arrays; without a ``loss`` the power hinge of power ``p``.

        Examples
        --------
        >>> import numpy as np
        >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), n_members=3)
        >>> problem.value(np.zeros((1, 3)), np.zeros(3))
        6.0
        """
        labels = np.asarray(y, dtype=float)
        weights = np.ones(labels.shape) if weights is None else np.asarray(weights, dtype=float)
        objective = Objective(
            loss=PowerHinge(p) if loss is None else loss,
            regulariser=ExclusivityRegulariser(exclusivity, sparsity),
            cost=float(cost),
            n_members=n_members,
            fit_intercept=fit_intercept,
            bounds=bounds,
        )
        return cls(objective, LabelledRows(DesignMatrix(X), labels, weights, targets))

    @property
    def loss(self) -> MarginLoss:
        """Of the objective."""
        return self.objective.loss

    @property
    def regulariser(self) -> ExclusivityRegulariser:
        """Of the objective."""
        return self.objective.regulariser

    @property
    def penalty(self) -> Penalty:
        """Of the objective's one member."""
        return self.objective.penalty

    @property
    def cost(self) -> float:
        """C of the objective."""
        return self.objective.cost

    @property
    def n_members(self) -> int:
        """K of the objective."""
        return self.objective.n_members

    @property
    def fit_intercept(self) -> bool:
        """Of the objective."""
        return self.objective.fit_intercept

    @property
    def kappa(self) -> float:
        """1 + gamma (K - 1); K for the paper."""
        return self.objective.kappa

    @property
    def design(self) -> DesignMatrix:
        """The features of the rows."""
        return self.rows.design

    @property
    def labels(self) -> Floats:
        """Those of the rows, -1 or +1."""
        return self.rows.labels

    @property
    def weights(self) -> Floats:
        """The sample weights s_i of the rows."""
        return self.rows.weights

    @property
    def targets(self) -> Floats | None:
        """The t_i of the rows; None where all are 1."""
        return self.rows.targets

    @property
    def row_scale(self) -> RowScale:
        """The sizes on which rounding errors of products with the rows depend."""
        return self.rows.row_scale

    def scores(self, weights: Floats, intercepts: Floats) -> Floats:
        """Compute x_i . w_k + b_k, N x K."""
        return self.design.times(weights) + intercepts

    def value(self, weights: Floats, intercepts: Floats) -> float:
        """Compute F(W, b), from blocks of rows."""
        return self.regulariser.value(weights) + self.total_loss(weights, intercepts)

    def total_loss(self, weights: Floats, intercepts: Floats) -> float:
        """Compute C sum_k sum_i s_i phi(m_ik), from blocks of rows."""
        loss = 0.0
        for rows, block in self.design.blocks(weights.shape[1]):
            shortfall = self.rows.shortfall(block @ weights + intercepts, rows)
            loss += weighted_total(self.weights[rows], self.loss.value(shortfall))
        return self.cost * loss

    def reduced(self) -> ERMProblem:
        """Return the one SVM that the mean member solves, on the same rows; see :meth:`Objective.reduced`."""
        objective = self.objective.reduced()
        return self if objective is self.objective else dataclasses.replace(self, objective=objective)

    def changed(self, **parts: Any) -> ERMProblem:
        """Change parts of the problem, by their names in :class:`Objective` or :class:`LabelledRows`.

        Examples
        --------
        >>> import numpy as np
        >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]))
        >>> problem.changed(cost=3.0).cost
        3.0
        """
        of_rows = {name: part for name, part in parts.items() if name in _OF_ROWS}
        of_objective = {name: part for name, part in parts.items() if name not in _OF_ROWS}
        return ERMProblem(
            dataclasses.replace(self.objective, **of_objective) if of_objective else self.objective,
            dataclasses.replace(self.rows, **of_rows) if of_rows else self.rows,
        )

    def centred(self) -> ERMProblem:
        """Centre the rows of the same problem, where that keeps digits (see ``DesignMatrix``).

        Scores are the same with b + (centre . w) for b.
        """
        if not self.fit_intercept or self.design.centred is self.design:
            return self
        return self.changed(design=self.design.centred)


def member_costs(problem: ERMProblem) -> Floats:
    """Compute c_i = s_i C / kappa, the cost of row i in the reduced SVM.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    """
    return problem.weights * (problem.cost / problem.kappa)


# ---------------------------------------------------------------- the dual bound, and how far both may be off


def repair_dual(problem: ERMProblem, alpha: Floats) -> Floats:
    """Return the nearest easy feasible point: clip to the box, then shrink the heavier class.

    Scaling the class with the larger sum by (smaller sum) / (larger sum) keeps the box and makes
    sum y alpha = 0 up to rounding; where the alphas of one class are zero, nothing but zero is left.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    alpha : ndarray of shape (n_rows,)
        Any dual vector, feasible or not.
    """
    feasible = np.clip(alpha, 0.0, member_costs(problem) * problem.loss.largest_slope)
    if not problem.fit_intercept:
        return feasible
    positive = problem.labels > 0
    # numpy adds in pairs, which keeps more digits than a product with masks.
    above, below = float((feasible * positive).sum()), float((feasible * ~positive).sum())
    if above > below:
        feasible *= np.where(positive, below / above, 1.0)
    elif below > above:
        feasible *= np.where(positive, 1.0, above / below)
    return feasible


def objective_error(
    problem: ERMProblem, weights: Floats, intercepts: Floats, objective: float, loss: float
) -> float:
    """Bound the rounding error of F(W, b), knowing only the sum of the losses.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    weights, intercepts : ndarrays of shape (n_features, n_members) and (n_members,)
        W and b.
    objective, loss : float
        F(W, b) as computed, and its part C sum_k sum_i s_i phi(m_ik).
    """
    error = float(np.max(problem.row_scale.score_error(weights, intercepts)))
    total = problem.cost * problem.n_members * float(problem.weights.sum())
    raised = problem.loss.raised_total(loss, total, error)
    return _rounded_up(problem, objective - loss + raised) - objective


def objective_of_shortfall(
    problem: ERMProblem, weights: Floats, shortfall: Floats, error: Floats | float
) -> tuple[float, float]:
    """Compute F(W, b), and a bound of its error: all shortfalls may be larger by theirs.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    weights : ndarray of shape (n_features, n_members)
        W.
    shortfall : ndarray of shape (n_rows, n_members)
        The t_i - y_i (x_i . w_k + b_k), as computed.
    error : float or ndarray of shape (n_members,)
        How far the scores may be off; see :meth:`RowScale.score_error`.
    """
    is_single = problem.n_members == 1
    penalty = problem.penalty.value(weights[:, 0]) if is_single else problem.regulariser.value(weights)
    objective, upper = (
        penalty + problem.cost * weighted_total(problem.weights, problem.loss.value(missed))
        for missed in (shortfall, shortfall + error)
    )
    return objective, _rounded_up(problem, upper) - objective


def _rounded_up(problem: ERMProblem, value: float) -> float:
    n_weights = problem.design.n_features * problem.n_members
    return problem.objective.rounded_up(value, run_terms(problem.design.n_rows), n_weights)


def dual_bound(problem: ERMProblem, alpha: Floats, dual_weights: Floats | None = None) -> float:
    """Compute K kappa D(alpha) for a repaired alpha: no (W, b) has an objective below this.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    alpha : ndarray of shape (n_rows,)
        Any dual vector, feasible or not.
    dual_weights : ndarray of shape (n_features,) or None
        X^T (y alpha) of a vector that has been repaired, where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), p=1)
    >>> round(dual_bound(problem, np.array([0.5, 0.5])), 12)
    0.5
    """
    problem.objective.require_convex()
    design, feasible = problem.design, repair_dual(problem, alpha) if dual_weights is None else alpha
    if dual_weights is None:
        dual_weights = design.transposed_times(problem.labels * feasible)
    below, n_terms = _lower_bound(problem, feasible), design.transposed_terms()
    here = partial(below, dual_weights=dual_weights, moved=0.0, n_terms=n_terms)
    least = _LEAST_LOSS * abs(bound := here())
    may_lose = design.n_numbers <= FEW_NUMBERS and _may_lose(problem, feasible, dual_weights) > least
    # Where the cost leaves little of the ridge, u is a small difference of huge sums: longer floats help.
    if may_lose and here(unit=0.0) - bound > least:
        signed = (problem.labels * feasible).astype(np.longdouble)
        moved = abs(float(signed.sum())) if problem.fit_intercept else 0.0
        precise = np.asarray(design.X.astype(np.longdouble).T @ signed, dtype=float)
        longer = below(dual_weights=precise, moved=moved, n_terms=design.n_rows, unit=LONG_UNIT)
        bound = max(bound, longer)
    return problem.n_members * problem.kappa * bound


def _may_lose(problem: ERMProblem, feasible: Floats, dual_weights: Floats) -> float:
    """Estimate the most that rounding may take off a bound."""
    off = 2 * gamma(problem.design.transposed_terms() + 8) * float(feasible.sum())
    length = problem.row_scale.length
    return 2 * off * (1 + length * (float(np.linalg.norm(dual_weights)) + off * length))


def dual_bound_from_weights(
    problem: ERMProblem, alpha: Floats, dual_weights: Floats, lost: float = 0.0
) -> float:
    """Compute :func:`dual_bound`, or a little less, where u = X^T (y alpha) is known: no product with X.

    Repairing takes some t from alpha, all rows together. That lengthens u, and with it soft(u, l), by at
    most t times the largest row.

    Parameters
    ----------
    problem : ERMProblem
        What is minimised.
    alpha : ndarray of shape (n_rows,)
        Any dual vector, nearly feasible.
    dual_weights : ndarray of shape (n_features,)
        X^T (y alpha).
    lost : float
        How much of the sum of alpha the rounding of ``dual_weights`` is worth, beyond that of one product.
    """
    feasible = np.clip(alpha, 0.0, member_costs(problem) * problem.loss.largest_slope)
    moved = float(np.abs(feasible - alpha).sum()) + lost
    if problem.fit_intercept:
        moved += abs(float((problem.labels * feasible).sum()))
    bound = _lower_bound(problem, feasible)(
        dual_weights=dual_weights, moved=moved, n_terms=problem.design.transposed_terms()
    )
    return problem.n_members * problem.kappa * bound


def _lower_bound(problem: ERMProblem, feasible: Floats) -> Callable[..., float]:
    """Return ``Objective.lower_dual`` for an alpha inside its box; it still needs X^T (y alpha)."""
    costs, alpha_sum = member_costs(problem), float(feasible.sum(dtype=np.longdouble))
    gain = alpha_sum
    if problem.targets is not None:
        gain = float((problem.targets * feasible).sum(dtype=np.longdouble))
    return partial(
        problem.objective.lower_dual,
        gain=gain,
        alpha_sum=alpha_sum,
        conjugate=float(problem.loss.conjugate(feasible, costs).sum()),
        cost=float(costs.sum()),
        scale=problem.row_scale,
    )
