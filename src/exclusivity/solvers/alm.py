"""Solver "alm": the paper's splitting in an order that converges, stopped by its certificate.

The paper updates W, b, E, P one after the other. Two blocks are enough, and for two blocks the
alternating direction method of multipliers is known to converge for every constant penalty:

    {W, E} given {P, b}:   W = prox of the regulariser (exact),  E = prox of the loss;
    (P, b) jointly:        one ridge regression on centred data;
    multipliers:           U = Z / mu and V = Q / nu in scaled form.

Three things make it fast.

* The constraint P = W has a penalty of its own, nu = ratio mu with ratio = kappa / (2 C). Along equal
  members the regulariser has curvature kappa, the squared hinge on its active rows 2 C; a penalty equal
  to the curvature lets a quadratic piece converge in one step, whatever the scale of X.
* Over-relaxation (1.6) of the first block.
* mu is rebalanced when primal and dual residual differ by more than a factor 2, at intervals that grow with
  the iteration count and at most 60 times, so that in the end mu is constant and the theory holds.

Three N x K arrays are kept: the scores A = X P + b, the multipliers U, and the regression targets
R = Y - E - U. The new multiplier is what the regression missed, so one pass over the rows updates everything:

    A = X P + b;  U = A - R;  S = Y - A - U;  y E = prox(y S);  R = Y - E - U.

The point that is certified at every iteration is (P, b): its scores are known, hence its objective costs no
product. (With ``sparsity`` > 0 it is (W, b), for its exact zeros, which takes one more product.) The dual
vector alpha_i = s_i mu mean_k(y S - y E)_i / kappa lies in its box by construction of the prox.

The ridge regression, which solver "paper" shares with nu = mu and without an intercept, is

    min over P (and b):   ridge/2 |P - H|_F^2  +  1/2 sum_i s_i |R_i - x_i P - b|^2

With a free b, centring removes it: for the weighted means x_ and R_, b = R_ - x_ P and P solves the same
problem on X_c = X - 1 x_^T. Which system is factorised depends on the shape only:

* M <= N:  (ridge I + X_c^T S X_c) P = ridge H + X_c^T S R,  an M x M Cholesky factor;
* M > N:   P = H + X_c^T S^(1/2) (ridge I + S^(1/2) X_c X_c^T S^(1/2))^(-1) S^(1/2) (R - X_c H),  N x N;
* either one too large for memory:  conjugate gradients on the M x M system, never formed.

Nothing here depends on labels, so one system serves all iterations, members and one-vs-rest classes.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

from exclusivity._typing import Floats
from exclusivity.objective.estimates import dual_from_scores
from exclusivity.objective.objective import ERMProblem, dual_bound, objective_error
from exclusivity.rows.design import DesignMatrix, weighted_total
from exclusivity.solvers.base import (
    Callback,
    IterationRecord,
    SolverResult,
    Start,
    Status,
    check_positive,
    check_targets,
    weighted_squares,
)
from exclusivity.solvers.run import Incumbent, Recorder

DEFAULT_MAX_ITER = 20_000

_RELAXATION = 1.6
_BALANCE_FACTOR = 2.0
_BALANCE_INTERVAL = 10
_BALANCE_GROWTH = 0.2
_MAX_REBALANCES = 60
_LARGEST_CHANGE = 10.0

MEMORY_CAP = 1 << 27
"""Bytes that a factor may take before conjugate gradients take over: 128 MiB, a dimension of 4096, which is
also about what a factorisation can do in the second that Ctrl-C may have to wait."""

_CG_TOL = 1e-11
_CG_MAX_ITER = 2000


@dataclass(frozen=True)
class AlmOptions:
    """The settings of the two-block method.

    Parameters
    ----------
    mu0 : float, optional
        The first penalty of the residual constraint; by default 2 C, the curvature of the squared hinge.
    balance : bool
        Whether mu follows the residuals; ``False`` keeps it at ``mu0``.
    """

    mu0: float | None = None
    balance: bool = True

    def __post_init__(self) -> None:
        if self.mu0 is not None:
            check_positive("mu0", self.mu0)
        if not isinstance(self.balance, (bool, np.bool_)):
            raise TypeError(f"solver option balance must be True or False; got {self.balance!r}.")


class RidgeSystem:
    """The least-squares step, ready to be solved with.

    Parameters
    ----------
    design : DesignMatrix
    weights : ndarray of shape (n_rows,)
    ridge : float
    fit_intercept : bool
    kind : {"primal", "dual", "iterative"} or None
        The M x M factor, the N x N factor or conjugate gradients; None chooses by shape and memory.
    """

    def __init__(
        self,
        design: DesignMatrix,
        weights: Floats,
        *,
        ridge: float,
        fit_intercept: bool,
        kind: Literal["primal", "dual", "iterative"] | None = None,
    ) -> None:
        self.design, self.weights, self.ridge, self.fit_intercept = design, weights, ridge, fit_intercept
        self.mean = design.mean(weights) if fit_intercept else np.zeros(design.n_features)
        if kind is None:
            kind = "primal" if design.n_features <= design.n_rows else "dual"
            if 8 * min(design.n_rows, design.n_features) ** 2 > MEMORY_CAP:
                kind = "iterative"
        self.kind = kind
        if kind == "primal":
            self._solve_shifted = shifted_solver(design.gram(weights, self.mean), ridge)
        elif kind == "dual":
            self._roots = np.sqrt(weights)[:, None]
            kernel = self._roots * design.kernel(self.mean) * self._roots.T
            self._solve_shifted = shifted_solver(kernel, ridge)
        else:
            self._scales = np.sqrt(ridge + design.column_scatter(weights, self.mean))[:, None]

    def solve(self, prior: Floats, targets: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Return P and b for H = ``prior`` and R = ``targets``; iterations begin at P = ``start``."""
        level = np.zeros(targets.shape[1])
        if self.fit_intercept:
            level = np.average(targets, axis=0, weights=self.weights)
        if self.kind == "dual":
            missed = targets - level - (self.design.times(prior) - self.mean @ prior)
            solution = prior + self._transposed_times(self._roots * self._solve_shifted(self._roots * missed))
        else:
            right = self.ridge * prior + self._transposed_times(self.weights[:, None] * targets)
            solution = self._solve_shifted(right) if self.kind == "primal" else self._iterate(right, start)
        return solution, level - self.mean @ solution

    def _transposed_times(self, values: Floats) -> Floats:
        """Compute X_c^T values."""
        return self.design.transposed_times(values) - np.outer(self.mean, values.sum(axis=0))

    def _iterate(self, right: Floats, start: Floats) -> Floats:
        """Solve by conjugate gradients, scaled by the diagonal, all columns at once."""
        scales, shape = self._scales, right.shape
        if not np.isfinite(right).all():  # the run has diverged, which its objective will say
            return right

        def image(scaled: Floats) -> Floats:
            direction = scaled.reshape(shape) / scales
            scores = self.design.times(direction) - self.mean @ direction
            product = self.ridge * direction + self._transposed_times(self.weights[:, None] * scores)
            return np.asarray((product / scales).ravel())

        system = LinearOperator((right.size, right.size), matvec=image, dtype=float)
        first = (start * scales).ravel()
        solution, _ = cg(system, (right / scales).ravel(), first, rtol=_CG_TOL, maxiter=_CG_MAX_ITER)
        return np.asarray(solution.reshape(shape) / scales)


def shifted_solver(matrix: Floats, shift: float) -> Callable[[Floats], Floats]:
    """Return the function that solves with matrix + shift I, for a positive semi-definite matrix.

    It has a Cholesky factor, unless rounding has eaten the shift (columns repeated at a scale of 1e8, say):
    then eigenvectors, whose eigenvalues can be held at their true lower limit.
    """
    try:
        shifted = matrix + shift * np.eye(len(matrix))
        factor = linalg.cho_factor(shifted, lower=True, check_finite=False)
        return partial(linalg.cho_solve, factor, check_finite=False)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(matrix, check_finite=False)
        values = np.maximum(values, 0.0)[:, None] + shift
        return lambda right: np.asarray(vectors @ ((vectors.T @ right) / values))


class MultiplierMethod:
    """The variables of a method of multipliers on one problem, among them b, mu and a dual vector alpha.

    Attributes
    ----------
    stored : tuple of str
        The names of the variables that a run continues from.
    passes : float
        How often an iteration reads the rows of X.
    """

    stored: ClassVar[tuple[str, ...]]
    passes: ClassVar[float]
    problem: ERMProblem
    b: Floats
    mu: float
    alpha: Floats

    def stopped(self) -> Self:
        """Return where the run is: the stored variables alone."""
        state = object.__new__(type(self))
        vars(state).update({name: vars(self)[name] for name in self.stored})
        return state

    def go_on(self, stopped: Self) -> None:
        """Take up a run where it ended."""
        vars(self).update(deepcopy(vars(stopped)))

    def record(self, count: int, weights: Floats, loss: float, primal: float, dual: float) -> IterationRecord:
        """Return the record of iteration ``count``, which led to this loss and these squared residuals."""
        problem = self.problem
        objective = problem.regulariser.value(weights) + loss
        return IterationRecord(
            iteration=count,
            objective=objective,
            error=objective_error(problem, weights, self.b, objective, loss),
            bound=dual_bound(problem, self.alpha),
            primal_residual=np.sqrt(primal),
            dual_residual=self.mu * np.sqrt(dual),
            mu=self.mu,
            passes=self.passes * count,
        )


def make_system(problem: ERMProblem) -> RidgeSystem:
    """Factorise the (P, b) step; it serves every problem with the same rows, weights, cost and members."""
    return RidgeSystem(
        problem.design,
        problem.weights,
        ridge=problem.kappa / (2 * problem.cost),
        fit_intercept=problem.fit_intercept,
    )


class _TwoBlocks(MultiplierMethod):
    """The variables W, P, b, the scaled multipliers V of P = W and U, scores and targets."""

    stored = ("P", "b", "V", "U", "mu", "factor", "schedule")
    passes = 3.0  # X @ P and X.T @ R for the (P, b) step and its scores, X.T @ alpha for the certificate

    def __init__(
        self,
        problem: ERMProblem,
        system: RidgeSystem,
        options: AlmOptions,
        start: Start | None,
        incumbent: Incumbent,
    ) -> None:
        self.problem, self.system, self.ratio, self.factor = problem, system, system.ridge, 1.0
        self.mu = 2 * problem.cost if options.mu0 is None else float(options.mu0)
        # Iterations so far, the next one after which mu may change, and how often it still may.
        self.schedule = 0, _BALANCE_INTERVAL, _MAX_REBALANCES if options.balance else 0
        n_rows, n_features, n_members = problem.design.n_rows, problem.design.n_features, problem.n_members
        self.P, self.b = np.zeros((n_features, n_members)), np.zeros(n_members)
        self.V = np.zeros_like(self.P)
        # Not zeros_like, which writes its zeros in one long call that Ctrl-C cannot interrupt.
        self.U, self.scores, self.targets = (np.zeros((n_rows, n_members)) for _ in range(3))
        if start is not None:
            self._begin_at(start, incumbent)
        for rows in problem.design.row_slices(n_members):
            np.subtract(self.scores[rows], self.U[rows], out=self.targets[rows])
        self.relaxed_W = self.P
        self._split(1.0)  # the {W, E} block that goes with P, b and the multipliers

    def _begin_at(self, start: Start, incumbent: Incumbent) -> None:
        """Begin at another result, which may be good enough already; where its run ended, if this goes on."""
        problem = self.problem
        self.scores, alpha = problem.scores(start.weights, start.intercepts), start.dual
        if alpha is None or len(alpha) != problem.design.n_rows:
            alpha = dual_from_scores(problem, self.scores.mean(axis=1))
        incumbent.raise_bound(dual_bound(problem, alpha), alpha)
        incumbent.offer_anew(problem, start.weights, start.intercepts)
        if start.resumes(_TwoBlocks, incumbent.objective, incumbent.gap, len(alpha)):
            self.go_on(start.state)
            self.scores = problem.scores(self.P, self.b)
            return
        # At an optimum Z = -kappa y alpha / s and Q = -X^T S Z.
        signed = problem.kappa * problem.labels * alpha
        self.P, self.b = np.array(start.weights), np.array(start.intercepts)
        self.U -= (signed / problem.weights / self.mu)[:, None]
        self.V += (problem.design.transposed_times(signed) / (self.ratio * self.mu))[:, None]

    @property
    def point(self) -> Floats:
        """The weights that are certified and returned: P, or W where exact zeros are wanted."""
        return self.P if self.problem.penalty.is_smooth else self.W

    def iterate(self, iteration: int) -> IterationRecord:
        """Update the (P, b) block, the multipliers, mu, and the {W, E} block for the next iteration."""
        old = self.P
        self.P, self.b = self.system.solve(self.relaxed_W - self.V, self.targets, old)
        loss, primal, dual = self._split(self.factor)
        dual += self.ratio * weighted_squares(self.P - old)
        return self.record(iteration, self.point, loss, primal, dual)

    def rebalance(self, record: IterationRecord) -> None:
        """Choose the factor of mu for the next iteration: seldom another than 1, and finally never."""
        count, following, left = self.schedule
        count, self.factor = count + 1, 1.0
        if left > 0 and count >= following:
            following = count + _BALANCE_INTERVAL + int(_BALANCE_GROWTH * count)
            primal, dual = record.primal_residual * record.mu, record.dual_residual
            if primal > 0 and dual > 0 and not 1 / _BALANCE_FACTOR <= primal / dual <= _BALANCE_FACTOR:
                left -= 1
                change = np.clip(np.sqrt(primal / dual), 1 / _LARGEST_CHANGE, _LARGEST_CHANGE)
                self.factor = float(change)
        self.schedule = count, following, left

    def _split(self, mu_factor: float) -> tuple[float, float, float]:
        """Update multipliers and {W, E} in one pass; return loss, squared primal and dual residuals."""
        problem = self.problem
        violation = self.P - self.relaxed_W
        self.mu *= mu_factor
        self.V = (self.V + violation) / mu_factor
        self.W = problem.regulariser.prox(self.P + self.V, self.ratio * self.mu)
        self.relaxed_W = _RELAXATION * self.W + (1 - _RELAXATION) * self.P
        self.alpha, mean = np.empty(problem.design.n_rows), np.full(problem.n_members, 1 / problem.n_members)
        loss, primal, dual = 0.0, self.ratio * weighted_squares(violation), 0.0
        for rows, block in problem.design.blocks(problem.n_members):
            weights, y = problem.weights[rows], problem.labels[rows, None]
            scores = block @ self.P + self.b
            dual += weighted_squares(scores - self.scores[rows], weights)
            multipliers = scores - self.targets[rows]
            primal += weighted_squares(multipliers - self.U[rows], weights)
            if mu_factor != 1:
                multipliers /= mu_factor
            shortfall = 1 - y * scores
            point = shortfall - y * multipliers  # y S
            residual = problem.loss.prox(point, problem.cost / self.mu)  # y E
            self.alpha[rows] = ((point - residual) @ mean) * weights * (self.mu / problem.kappa)
            missed = shortfall if self.point is self.P else 1 - y * (block @ self.W + self.b)
            loss += weighted_total(weights, problem.loss.value(missed))
            self.scores[rows], self.U[rows] = scores, multipliers
            # R = Y - E_relaxed - U, with y E_relaxed = shortfall + relaxation (y E - shortfall)
            residual -= shortfall
            residual *= _RELAXATION * y
            scores -= residual
            np.subtract(scores, multipliers, out=self.targets[rows])
        return problem.cost * loss, primal, dual


def solve_alm(
    problem: ERMProblem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    options: AlmOptions | None = None,
    system: RidgeSystem | None = None,
    start: Start | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Iterate until the relative duality gap of the best iterate is at most ``tol``.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), n_members=3, cost=2)
    >>> result = solve_alm(problem, tol=1e-9)
    >>> result.converged, round(result.objective, 6)
    (True, 3.272727)
    """
    problem.objective.require_convex()
    check_targets(problem, "alm")
    incumbent, recorder, status = Incumbent(), Recorder(callback), Status.MAX_ITER
    system, start = system or make_system(problem), start and start.for_problem(problem)
    state = _TwoBlocks(problem, system, options or AlmOptions(), start, incumbent)
    for iteration in range(1, (max_iter or DEFAULT_MAX_ITER) + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            record = state.iterate(iteration)
        if not np.isfinite(record.objective):
            status = Status.DIVERGED
            incumbent.offer_anew(problem, np.zeros_like(state.P), np.zeros_like(state.b))
            break
        incumbent.raise_bound(record.bound, state.alpha)
        incumbent.offer(record.objective, state.point, state.b, record.error)
        asked_to_stop = recorder.add(record.with_bound(incumbent.bound), lambda: (state.point, state.b))
        state.rebalance(record)
        if incumbent.gap <= tol or asked_to_stop:
            status = Status.CERTIFIED if incumbent.gap <= tol else Status.CALLBACK
            break
    return incumbent.result(tol, status, recorder.history(), state.stopped())
