"""Solver "alm": the paper's splitting in an order that converges, stopped by its certificate.

The paper updates W, b, E, P one after the other. Two blocks are enough, and for two blocks the
alternating direction method of multipliers is known to converge for every constant penalty:

    {W, E} given {P, b}:   W = prox of the regulariser (exact),  E = prox of the loss;
    (P, b) jointly:        one ridge regression on centred data (see ``ridge``);
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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity._typing import Floats, Matrix
from exclusivity.objective.estimates import dual_from_scores
from exclusivity.objective.objective import ERMProblem, dual_bound, objective_error
from exclusivity.rows.design import weighted_total
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
from exclusivity.solvers.ridge import RidgeSystem
from exclusivity.solvers.run import Incumbent, Recorder

DEFAULT_MAX_ITER = 20_000

_RELAXATION = 1.6
_BALANCE_FACTOR = 2.0
_BALANCE_INTERVAL = 10
_BALANCE_GROWTH = 0.2
_MAX_REBALANCES = 60
_LARGEST_CHANGE = 10.0
# X @ P and X.T @ R for the (P, b) step and its scores, X.T @ alpha for the certificate.
_PASSES = 3.0


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


def make_system(problem: ERMProblem) -> RidgeSystem:
    """Factorise the (P, b) step; it serves every problem with the same rows, weights, cost and members."""
    return RidgeSystem(
        problem.design,
        problem.weights,
        ridge=problem.kappa / (2 * problem.cost),
        fit_intercept=problem.fit_intercept,
    )


@dataclass(frozen=True, eq=False)
class _Stopped:
    """The end of a run: the second block, both multipliers, the penalty, its next factor and its schedule."""

    P: Floats
    b: Floats
    V: Floats
    U: Floats
    mu: float
    factor: float
    schedule: tuple[int, int, int]


class _TwoBlocks:
    """The state of the method: W, P, b, the scaled multiplier V of P = W, scores and targets."""

    def __init__(self, problem: ERMProblem, system: RidgeSystem, mu: float, is_balanced: bool) -> None:
        self.problem, self.system, self.mu = problem, system, mu
        self.ratio, self.factor = system.ridge, 1.0
        # Iterations so far, the next one after which mu may change, and how often it still may.
        self.schedule = 0, _BALANCE_INTERVAL, _MAX_REBALANCES if is_balanced else 0
        n_rows, n_features, n_members = problem.design.n_rows, problem.design.n_features, problem.n_members
        self.P, self.b = np.zeros((n_features, n_members)), np.zeros(n_members)
        self.V = np.zeros_like(self.P)
        # Not zeros_like, which writes its zeros in one long call that Ctrl-C cannot interrupt.
        self.U, self.scores, self.targets = (np.zeros((n_rows, n_members)) for _ in range(3))
        self.mean_member = np.full(n_members, 1 / n_members)
        self._settle()

    def _settle(self) -> None:
        """Compute the {W, E} block that goes with P, b and the multipliers."""
        for rows in self.problem.design.row_slices(self.problem.n_members):
            np.subtract(self.scores[rows], self.U[rows], out=self.targets[rows])
        self.relaxed_W = self.P
        self._split(1.0)

    def begin_at(self, start: Start, incumbent: Incumbent) -> None:
        """Begin at another result, which may be good enough already; where its run ended, if this goes on."""
        problem = self.problem
        scores, alpha = problem.scores(start.weights, start.intercepts), start.dual
        if alpha is None or len(alpha) != problem.design.n_rows:
            alpha = dual_from_scores(problem, scores.mean(axis=1))
        incumbent.raise_bound(dual_bound(problem, alpha), alpha)
        incumbent.offer_anew(problem, start.weights, start.intercepts)
        if start.resumes(_Stopped, incumbent.objective, incumbent.gap):
            stopped: _Stopped = start.state
            self.P, self.b, self.V, self.U = stopped.P, stopped.b, stopped.V, stopped.U.copy()
            self.mu, self.factor, self.schedule = stopped.mu, stopped.factor, stopped.schedule
            self.scores = problem.scores(self.P, self.b)
            self._settle()
            return
        # At an optimum Z = -kappa y alpha / s and Q = -X^T S Z.
        signed = problem.kappa * problem.labels * alpha
        self.P, self.b, self.scores = np.array(start.weights), np.array(start.intercepts), scores
        self.U -= (signed / problem.weights / self.mu)[:, None]
        self.V += (problem.design.transposed_times(signed) / (self.ratio * self.mu))[:, None]
        self._settle()

    def stopped(self) -> _Stopped:
        """Return where the run is."""
        return _Stopped(self.P, self.b, self.V, self.U, self.mu, self.factor, self.schedule)

    @property
    def point(self) -> Floats:
        """The weights that are certified and returned: P, or W where exact zeros are wanted."""
        return self.P if self.problem.penalty.is_smooth else self.W

    def iterate(self, iteration: int) -> IterationRecord:
        """Update the (P, b) block, the multipliers, mu, and the {W, E} block for the next iteration."""
        problem, old = self.problem, self.P
        self.P, self.b = self.system.solve(self.relaxed_W - self.V, self.targets, old)
        loss, primal, dual = self._split(self.factor)
        dual += self.ratio * weighted_squares(self.P - old)
        loss *= problem.cost
        objective = problem.regulariser.value(self.point) + loss
        return IterationRecord(
            iteration=iteration,
            objective=objective,
            error=objective_error(problem, self.point, self.b, objective, loss),
            bound=dual_bound(problem, self.alpha),
            primal_residual=np.sqrt(primal),
            dual_residual=self.mu * np.sqrt(dual),
            mu=self.mu,
            passes=_PASSES * iteration,
        )

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
        self.alpha = np.empty(problem.design.n_rows)
        sums = np.array([0.0, self.ratio * weighted_squares(violation), 0.0])
        for rows, block in problem.design.blocks(problem.n_members):
            sums += self._split_rows(rows, block, mu_factor)
        loss, primal, dual = sums
        return float(loss), float(primal), float(dual)

    def _split_rows(self, rows: slice, block: Matrix, mu_factor: float) -> tuple[float, float, float]:
        """Do the same for one block of rows."""
        loss, weights, y = self.problem.loss, self.problem.weights[rows], self.problem.labels[rows, None]
        scores = block @ self.P + self.b
        dual = weighted_squares(scores - self.scores[rows], weights)
        multipliers = scores - self.targets[rows]
        primal = weighted_squares(multipliers - self.U[rows], weights)
        if mu_factor != 1:
            multipliers /= mu_factor
        shortfall = 1 - y * scores
        point = shortfall - y * multipliers  # y S
        residual = loss.prox(point, self.problem.cost / self.mu)  # y E
        self.alpha[rows] = ((point - residual) @ self.mean_member) * weights * (self.mu / self.problem.kappa)
        if self.point is self.P:
            point_loss = weighted_total(weights, loss.value(shortfall))
        else:
            point_loss = weighted_total(weights, loss.value(1 - y * (block @ self.W + self.b)))
        self.scores[rows], self.U[rows] = scores, multipliers
        # R = Y - E_relaxed - U, with y E_relaxed = shortfall + relaxation (y E - shortfall)
        residual -= shortfall
        residual *= _RELAXATION * y
        scores -= residual
        np.subtract(scores, multipliers, out=self.targets[rows])
        return point_loss, primal, dual


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
    options = options or AlmOptions()
    mu = 2 * problem.cost if options.mu0 is None else float(options.mu0)
    state = _TwoBlocks(problem, system or make_system(problem), mu, options.balance)
    incumbent, recorder, status = Incumbent(), Recorder(callback), Status.MAX_ITER
    if start is not None:
        state.begin_at(start.for_problem(problem), incumbent)
    for iteration in range(1, (max_iter or DEFAULT_MAX_ITER) + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            record = state.iterate(iteration)
        if not np.isfinite(record.objective):
            status = Status.DIVERGED
            nothing = np.zeros_like(state.P), np.zeros_like(state.b)
            incumbent.offer_anew(problem, *nothing)
            break
        incumbent.raise_bound(record.bound, state.alpha)
        incumbent.offer(record.objective, state.point, state.b, record.error)
        record = record.with_bound(incumbent.bound)
        asked_to_stop = recorder.add(record, lambda: (state.point, state.b))
        state.rebalance(record)
        if incumbent.gap <= tol or asked_to_stop:
            status = Status.CERTIFIED if incumbent.gap <= tol else Status.CALLBACK
            break
    return incumbent.result(tol, status, recorder.history(), state.stopped())
