"""Solver "paper": Algorithms 1 and 2 of X. Guo, Exclusivity Regularized Machine, to the letter.

The variables carry the paper's names: W and its copy P, the residuals E = Y - (X P + 1 b^T), the
multipliers Q (of P = W) and Z (of the residual constraint), the penalty mu. Rows of X are samples here,
columns there. What the paper leaves open is filled in as follows.

* E^(0), used by the first b step and never given, is zero.
* "Converged" in Algorithm 1 means that no entry moves by more than 1e-6 of its row's largest.
* The objective whose change ends Algorithm 2 is Eq. (5) at (W, b), absolute, threshold 0.05.
* Sample weights multiply the loss AND the augmented terms of the E constraint,
  Phi_s(Z, V) = sum_i s_i (mu/2 |V_i|^2 + Z_i . V_i). The E step then does not see them, b is a weighted mean,
  and weight 2 equals a repeated row in every iterate.
* ``exclusivity`` and ``sparsity`` enter through the reweighting only (see the regulariser).

With mu growing without bound the iterates freeze before they reach the optimum, and from the paper's start
all members stay equal; the reported gap says how far from the optimum a run ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.estimates import dual_from_scores
from exclusivity.objective.objective import ERMProblem, dual_bound
from exclusivity.solvers.alm import MultiplierMethod, RidgeSystem
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

DEFAULT_MAX_ITER = 1000

_INNER_TOL = 1e-6
_INNER_MAX_ITER = 1000
# Beyond this the squared penalty terms leave the range of floating point; the iterates froze long before.
_LARGEST_MU = 1e100


@dataclass(frozen=True)
class PaperOptions:
    """The settings of Algorithms 1 and 2; the defaults are the paper's.

    Parameters
    ----------
    start : {"ones", "random"}
        W = Q = 1, P = 0 as in the paper, or unit normal W, P and Q, which breaks the tie between members.
    mu0, rho : float
        The first penalty and its growth; ``rho=1`` keeps it constant.
    change : float
        Stop once the objective changes by less than this, absolutely.
    w_step : {"reweighted", "exact"}
        Algorithm 1, or the exact minimiser in its place.
    eps : float
        The small constant in the denominators of Eq. (10).
    """

    start: Literal["ones", "random"] = "ones"
    mu0: float = 1.0
    rho: float = 1.1
    change: float = 0.05
    w_step: Literal["reweighted", "exact"] = "reweighted"
    eps: float = 1e-12

    def __post_init__(self) -> None:
        if self.start not in ("ones", "random"):
            raise ValueError(f"solver option start must be 'ones' or 'random'; got {self.start!r}.")
        if self.w_step not in ("reweighted", "exact"):
            raise ValueError(f"solver option w_step must be 'reweighted' or 'exact'; got {self.w_step!r}.")
        check_positive("mu0", self.mu0)
        check_positive("rho", self.rho, least=1.0, strict=False)
        check_positive("change", self.change, strict=False)
        check_positive("eps", self.eps)


def make_system(problem: ERMProblem) -> RidgeSystem:
    """Factorise K = I + X X^T of Eq. (17); it serves every problem on the same rows and weights."""
    return RidgeSystem(problem.design, problem.weights, ridge=1.0, fit_intercept=False)


class Algorithm2(MultiplierMethod):
    """The variables of Algorithm 2 and its steps, in the paper's order."""

    # With the objective that the next one is compared with.
    stored = ("W", "P", "Q", "b", "E", "Z", "mu", "objective")
    passes = 4.0  # X @ P and X.T @ (M - E) of the algorithm; X @ W and X.T @ alpha for the certificate

    def __init__(
        self,
        problem: ERMProblem,
        options: PaperOptions,
        system: RidgeSystem,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.options, self.system = problem, options, system
        self.y = problem.labels[:, None]
        n_rows, n_members = problem.design.n_rows, problem.n_members
        shape = (problem.design.n_features, n_members)
        if options.start == "ones":
            self.W, self.P, self.Q = np.ones(shape), np.zeros(shape), np.ones(shape)
        else:
            self.W, self.P, self.Q = (rng.standard_normal(shape) for _ in range(3))
        self.b = np.zeros(n_members)
        self.XP = problem.design.times(self.P)
        self.E, self.Z = np.zeros((n_rows, n_members)), np.zeros((n_rows, n_members))
        self.mu, self.objective = float(options.mu0), np.inf

    def update_weights(self) -> None:
        """Apply Eq. (8): W = argmin regulariser(W) + Phi(Q, P - W)."""
        point, regulariser, options = self.P + self.Q / self.mu, self.problem.regulariser, self.options
        if options.w_step == "exact":
            self.W = regulariser.prox(point, self.mu)
        else:  # Algorithm 1, Eqs. (9) to (11)
            self.W = regulariser.reweighted(
                point, self.mu, self.W, eps=options.eps, max_iter=_INNER_MAX_ITER, tol=_INNER_TOL
            )

    def update_intercepts(self) -> None:
        """Apply Eq. (12): b is the (weighted) mean of Y - E - X P - Z / mu over the rows."""
        if self.problem.fit_intercept:
            missed = self.y - self.E - self.XP - self.Z / self.mu
            self.b = np.average(missed, axis=0, weights=self.problem.weights)

    def update_residuals(self) -> None:
        """Apply Eqs. (13) to (15): E = prox of the loss at S = Y - X P - 1 b^T - Z / mu, in m = y e."""
        M = self.y - self.b - self.Z / self.mu
        S = M - self.XP
        self.E = self.y * self.problem.loss.prox(self.y * S, self.problem.cost / self.mu)
        self.targets = M - self.E

    def update_copy(self) -> None:
        """Apply Eq. (17): P = K^(-1) (W - Q / mu + X (M - E)) with M = Y - 1 b^T - Z / mu."""
        self.P, _ = self.system.solve(self.W - self.Q / self.mu, self.targets, self.P)

    def update_multipliers(self) -> Floats:
        """Apply Eq. (18); return the violation E - Y + X P + 1 b^T."""
        self.XP = self.problem.design.times(self.P)
        violation = self.E - self.y + self.XP + self.b
        self.Z = self.Z + self.mu * violation
        self.Q = self.Q + self.mu * (self.P - self.W)
        return violation

    def iterate(self, iteration: int) -> IterationRecord:
        """Make one iteration of Algorithm 2."""
        problem, weights, old_P, old_scores = self.problem, self.problem.weights, self.P, self.XP + self.b
        self.update_weights()
        self.update_intercepts()
        self.update_residuals()
        self.update_copy()
        violation = self.update_multipliers()
        primal = weighted_squares(self.P - self.W) + weighted_squares(violation, weights)
        dual = weighted_squares(self.P - old_P) + weighted_squares(self.XP + self.b - old_scores, weights)
        self.alpha = weights * -problem.labels * self.Z.mean(axis=1) / problem.kappa
        loss = problem.total_loss(self.W, self.b)
        record = self.record(iteration, self.W, loss, primal, dual)
        self.mu = min(self.options.rho * self.mu, _LARGEST_MU)
        return record


def solve_paper(
    problem: ERMProblem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    options: PaperOptions | None = None,
    system: RidgeSystem | None = None,
    random_state: int | np.random.Generator | None = None,
    resume: Start | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Run Algorithm 2 until its own rule, |F - F_previous| < ``options.change``, is met.

    ``tol`` does not steer the run: it only decides whether the result may call itself ``converged``. The
    paper prescribes where to start: ``resume`` goes on where an earlier run of the same problem ended.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), n_members=3, cost=2)
    >>> solve_paper(problem).status
    <Status.RULE: 'its own stopping rule was met'>
    """
    problem.objective.require_convex()
    check_targets(problem, "paper")
    options = options or PaperOptions()
    algorithm = Algorithm2(
        problem, options, system or make_system(problem), np.random.default_rng(random_state)
    )
    incumbent, recorder, status = Incumbent(), Recorder(callback), Status.MAX_ITER
    if resume is not None:
        start = resume.for_problem(problem)
        dual, shape = start.dual, start.weights.shape
        if dual is not None and len(dual) == problem.design.n_rows and shape == algorithm.W.shape:
            incumbent.raise_bound(dual_bound(problem, dual), dual)
            incumbent.offer_anew(problem, start.weights, start.intercepts)
        if not start.resumes(Algorithm2, incumbent.objective, incumbent.gap, problem.design.n_rows):
            raise ValueError(
                "warm_start=True with solver='paper', which prescribes its own start, can only go on with "
                "the problem of the previous fit: the same solver, rows and parameters. Set warm_start=False "
                "to start anew, or solver='auto'."
            )
        algorithm.go_on(start.state)
        algorithm.XP = problem.design.times(algorithm.P)
    for iteration in range(1, (max_iter or DEFAULT_MAX_ITER) + 1):
        before, previous = (algorithm.W, algorithm.b), algorithm.objective
        with np.errstate(over="ignore", invalid="ignore"):
            record = algorithm.iterate(iteration)
        if not np.isfinite(record.objective):
            status, (algorithm.W, algorithm.b) = Status.DIVERGED, before
            break
        incumbent.raise_bound(record.bound, algorithm.alpha)
        if recorder.add(record.with_bound(incumbent.bound), lambda: (algorithm.W, algorithm.b)):
            status = Status.CALLBACK
            break
        algorithm.objective = record.objective
        if abs(record.objective - previous) < options.change:
            status = Status.RULE
            break
    # The answer of Algorithm 2 is its last iterate, not its best.
    incumbent.objective = np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        incumbent.offer_anew(problem, algorithm.W, algorithm.b)
        if problem.loss.is_smooth:
            # The final weights themselves give a dual point, often a better one than the multipliers.
            dual = dual_from_scores(problem, problem.design.times(incumbent.weights.mean(axis=1)))
            incumbent.raise_bound(dual_bound(problem, dual), dual)
    return incumbent.result(tol, status, recorder.history(), algorithm.stopped())
