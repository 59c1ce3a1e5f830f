"""Members that compete: one of them, given what the others use, and the objective that they share.

A member is an SVM on some columns, with an l1 penalty for each.

For member k and column j of group g, with A_gk the l1 norm of member k on the columns of g (in all classes)
and a_g = sum of A_gk' over the other members k', everything in F that depends on member k is

    sum_j [1/2 w_j^2 + (beta + gamma a_g(j)) |w_j|]  +  C sum_i s_i max(0, m_i)^p ,

because gamma/2 (|w| + a)^2 + (1 - gamma)/2 w^2 = 1/2 w^2 + gamma a |w| + const: convex, and exactly what
``solve_newton`` solves. At gamma = inf the penalty is beta on the member's own columns, its only ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exclusivity._typing import Floats, Ints
from exclusivity.objective.objective import Objective, relative_gap
from exclusivity.objective.penalties import ElasticPenalty, ExclusivityRegulariser
from exclusivity.objective.problem import ERMProblem, dual_bound
from exclusivity.rows.design import DesignMatrix, weighted_total
from exclusivity.solvers.base import SolverResult, constant_result
from exclusivity.solvers.newton import solve_newton

# |x_j . (y alpha)| of a column outside may exceed its penalty by this share before it is let in: rounding,
# not a violation.
_SLACK = 1e-7


@dataclass(frozen=True, eq=False)
class Member:
    """Weights on all columns, the intercept, what they cost, and a lower bound for any version of the member.

    ``value`` is 1/2 |w|^2 + beta |w|_1 + C loss; ``bound`` includes the penalty for what others use as well.
    ``certified`` says whether these weights came within the tolerance of the bound, and ``work`` how many
    multiplications that took, roughly.
    """

    weights: Floats
    intercept: float
    value: float
    bound: float
    certified: bool
    work: float = 0.0


def on_own_columns(result: SolverResult, columns: Ints, n_features: int) -> Member:
    """Return the member whose SVM on these columns, the only ones it may use, has this result."""
    bound = result.objective * (1 - result.gap)
    return _spread(result, columns, n_features, result.objective, bound)


def fit_on_columns(problem: ERMProblem, columns: Ints, tol: float) -> Member:
    """The SVM on these columns alone, each penalised by beta."""
    sparsity = problem.regulariser.sparsity
    single = _on_columns(problem, columns, np.broadcast_to(sparsity, problem.design.n_features))
    result = constant_result(single) or solve_newton(single, tol=tol)
    return on_own_columns(result, columns, problem.design.n_features)


def fit_against(problem: ERMProblem, penalties: Floats, current: Floats, tol: float) -> Member:
    """The SVM on all columns with one penalty for each, solved on the few that matter.

    Start from the columns in use and those that nobody else uses. Where a column outside has more than
    its penalty, |x_j . (y alpha)| > l_j, it comes in and the SVM is solved again; without such a column the
    solution is the one on all columns, and its dual vector proves it: the bound is that of all columns.
    """
    inside, work = (penalties <= penalties.min()) | (current != 0), 0.0
    while True:
        columns = np.flatnonzero(inside)
        single = _on_columns(problem, columns, penalties)
        result = constant_result(single) or solve_newton(single, tol=tol)
        sides = sorted(single.design.X.shape)
        work += float(result.n_iter * sides[0] ** 2 * sides[1])  # one system per iteration
        slopes = np.abs(problem.design.transposed_times(problem.labels * result.dual))
        entering = ~inside & (slopes > penalties * (1 + _SLACK))
        if not entering.any():
            whole = _on_columns(problem, np.arange(len(penalties)), penalties)
            member = _spread(result, columns, len(penalties), np.nan, dual_bound(whole, result.dual))
            return replace(member, value=_own_value(problem, member), work=work)
        inside |= entering


def _on_columns(problem: ERMProblem, columns: Ints, penalties: Floats) -> ERMProblem:
    """The SVM of one member on these columns."""
    chosen, is_whole = penalties[columns], len(columns) == problem.design.n_features
    bounds = problem.objective.bounds
    return problem.changed(
        design=problem.design if is_whole else DesignMatrix(problem.design.X[:, columns]),
        n_members=1,
        regulariser=ExclusivityRegulariser(0.0, chosen if chosen.any() else 0.0),
        bounds=None if bounds is None else bounds.of_columns(columns),
    )


def _spread(result: SolverResult, columns: Ints, n_features: int, value: float, bound: float) -> Member:
    weights = np.zeros(n_features)
    weights[columns] = result.weights[:, 0]
    return Member(weights, float(result.intercepts[0]), value, bound, result.converged)


def _own_value(problem: ERMProblem, fit: Member) -> float:
    shortfall = 1 - problem.labels * (problem.design.times(fit.weights) + fit.intercept)
    loss = weighted_total(problem.weights, problem.loss.value(shortfall))
    return ElasticPenalty(problem.regulariser.sparsity).value(fit.weights) + problem.cost * loss


class Visit(NamedTuple):
    """What a fit of one member came to: whether it changed, and whether it is within the tolerance now."""

    moved: bool
    certified: bool


class JointState:
    """The weights of K members in P binary problems that share the columns of X.

    With A_gk = sum over problems and over the columns j of group g of |W_jk|, the joint objective is

        sum over problems, members of [1/2 |w|^2 + beta |w|_1 + C loss]  +  gamma sum_g sum_{k<k'} A_gk A_gk'

    which is F itself for one problem whose groups are single columns. Charging sources (a group of columns,
    in all classes) instead of single numbers is what makes a feature belong to ONE member for all classes.

    Rows are not needed: members come with their values.

    Parameters
    ----------
    objectives : sequence of Objective
        One per problem; they share gamma and K.
    totals : ndarray of shape (n_problems,)
        The sum of the sample weights of each problem.
    groups : ndarray of shape (n_features,)
        Group codes.

    Attributes
    ----------
    own : ndarray of shape (n_problems, n_members)
        What each member costs by itself: the joint objective without its last term.
    """

    def __init__(self, objectives: Sequence[Objective], totals: Floats, groups: Ints) -> None:
        self.groups, self.gamma = groups, objectives[0].regulariser.exclusivity
        n_features, K = len(groups), objectives[0].n_members
        self.weights = np.zeros((len(objectives), n_features, K))
        self.intercepts = np.zeros((len(objectives), K))
        self.l1_norms = np.zeros((int(groups.max()) + 1, K))
        # Of members without weights, all of whose rows fall short by 1.
        empty = [
            one.cost * total * one.loss.value(np.ones(1))
            for one, total in zip(objectives, totals, strict=True)
        ]
        self.own = np.repeat(np.array(empty, dtype=float), K, axis=1)

    def numbers(self) -> tuple[Floats, ...]:
        """Copies of all that changes."""
        return tuple(array.copy() for array in (self.weights, self.intercepts, self.l1_norms, self.own))

    def restore(self, numbers: tuple[Floats, ...]) -> None:
        """What :meth:`numbers` gave, for the same problems."""
        self.weights, self.intercepts, self.l1_norms, self.own = (array.copy() for array in numbers)

    @property
    def objective(self) -> float:
        """The joint objective; at gamma = inf for supports that are disjoint."""
        return float(self.own.sum()) + self._coupling(self.l1_norms)

    def _coupling(self, l1_norms: Floats) -> float:
        if np.isinf(self.gamma):
            return 0.0
        totals = l1_norms.sum(axis=1)
        return float(self.gamma * (totals @ totals - np.einsum("gk,gk->", l1_norms, l1_norms)) / 2)

    def others(self, member: int) -> Floats:
        """a_g, the l1 norm of all other members on every group, spread over the columns."""
        return np.asarray((self.l1_norms.sum(axis=1) - self.l1_norms[:, member])[self.groups])

    def replace(self, member: int, fits: Sequence[Member], tol: float, change: float) -> Visit:
        """Put in a new version of one member, problem by problem, where the present one is not good enough.

        Good enough is what lies within ``tol`` of the new version's bound, unless the new one lowers the
        joint objective by more than ``change`` of it. So where no member moves in a whole sweep, each is
        certified against the others as they are, and not as they were when it was fitted.

        A version that uses no feature in any problem is left out: nobody starves, and a member that never had
        a feature keeps intercept zero, too, and abstains.
        """
        if not any(np.any(fit.weights) for fit in fits):
            return Visit(moved=False, certified=all(fit.certified for fit in fits))
        moved, certified = False, True
        price = 0.0 if np.isinf(self.gamma) else self.gamma * self.others(member)
        for number, fit in enumerate(fits):
            before = self.weights[number, :, member]
            present = self.own[number, member] + float(np.sum(price * np.abs(before)))
            offered = fit.value + float(np.sum(price * np.abs(fit.weights)))
            is_good = relative_gap(present, fit.bound) <= tol
            if offered < present and not (is_good and present - offered <= change * self.objective):
                sizes = self.l1_norms[:, member] + self._l1_norms(fit.weights) - self._l1_norms(before)
                self.weights[number, :, member] = fit.weights
                self.intercepts[number, member] = fit.intercept
                self.own[number, member] = fit.value
                self.l1_norms[:, member] = np.maximum(sizes, 0.0)
                moved, present = True, offered
            certified &= relative_gap(present, fit.bound) <= tol
        return Visit(moved, certified)

    def _l1_norms(self, weights: Floats) -> Floats:
        return np.bincount(self.groups, weights=np.abs(weights), minlength=len(self.l1_norms)).astype(float)

    def owners(self) -> Ints:
        """The member with the largest l1 norm on each group; -1 where all are zero."""
        return np.where(self.l1_norms.max(axis=1) > 0, self.l1_norms.argmax(axis=1), -1)
