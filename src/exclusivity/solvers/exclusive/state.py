"""All members of all problems, and the objective that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exclusivity.problem import ERMProblem, relative_gap
from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers.exclusive.members import Member


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

    Parameters
    ----------
    problems : sequence of ERMProblem
    groups : ndarray of shape (n_features,)
        Group codes.
    """

    def __init__(self, problems: Sequence[ERMProblem], groups: Ints) -> None:
        self.problems, self.groups = problems, groups
        self.gamma = problems[0].regulariser.exclusivity
        n_features, K = len(groups), problems[0].n_members
        self.weights = np.zeros((len(problems), n_features, K))
        self.intercepts = np.zeros((len(problems), K))
        self.masses = np.zeros((int(groups.max()) + 1, K))
        self._own = np.array([[float(p.cost * p.weights.sum()) for _ in range(K)] for p in problems])

    def numbers(self) -> tuple[Floats, ...]:
        """Copies of all that changes."""
        return tuple(array.copy() for array in (self.weights, self.intercepts, self.masses, self._own))

    def restore(self, numbers: tuple[Floats, ...]) -> None:
        """What :meth:`numbers` gave, for the same problems."""
        self.weights, self.intercepts, self.masses, self._own = (array.copy() for array in numbers)

    @property
    def objective(self) -> float:
        """The joint objective; at gamma = inf for supports that are disjoint."""
        return float(self._own.sum()) + self._coupling(self.masses)

    def _coupling(self, masses: Floats) -> float:
        if np.isinf(self.gamma):
            return 0.0
        totals = masses.sum(axis=1)
        return float(self.gamma * (totals @ totals - np.einsum("gk,gk->", masses, masses)) / 2)

    def others(self, member: int) -> Floats:
        """a_g, the mass of all other members on every group, spread over the columns."""
        return np.asarray((self.masses.sum(axis=1) - self.masses[:, member])[self.groups])

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
            own = self._own_value(self.problems[number], fit)
            before = self.weights[number, :, member]
            present = self._own[number, member] + float(np.sum(price * np.abs(before)))
            offered = own + float(np.sum(price * np.abs(fit.weights)))
            is_good = relative_gap(present, fit.bound) <= tol
            if offered < present and not (is_good and present - offered <= change * self.objective):
                mass = self.masses[:, member] + self._mass(fit.weights) - self._mass(before)
                self.weights[number, :, member] = fit.weights
                self.intercepts[number, member] = fit.intercept
                self._own[number, member] = own
                self.masses[:, member] = np.maximum(mass, 0.0)
                moved, present = True, offered
            certified &= relative_gap(present, fit.bound) <= tol
        return Visit(moved, certified)

    def _mass(self, weights: Floats) -> Floats:
        return np.bincount(self.groups, weights=np.abs(weights), minlength=len(self.masses)).astype(float)

    @staticmethod
    def _own_value(problem: ERMProblem, fit: Member) -> float:
        shortfall = 1 - problem.labels * (problem.design.times(fit.weights) + fit.intercept)
        size = float(np.sum(problem.regulariser.sparsity * np.abs(fit.weights)))
        loss = problem.loss.total(shortfall[:, None], problem.weights)
        return float(fit.weights @ fit.weights) / 2 + size + problem.cost * loss

    def owners(self) -> Ints:
        """The member with the largest mass on each group; -1 where all are zero."""
        return np.where(self.masses.max(axis=1) > 0, self.masses.argmax(axis=1), -1)
