"""The arguments and results of every solver: options, iteration state, history, result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.objective import ERMProblem, Objective, relative_gap

SAMPLE_SEED = 20160328
"""Samples of the rows are random but always the same, so that results repeat bit for bit."""
# Objectives and gaps of the same point in the same problem differ by rounding alone.
_SAME = 1e-9


@dataclass(frozen=True)
class NoOptions:
    """The options of a solver that has none."""


class Status(Enum):
    """The reason for which a solver stopped."""

    CERTIFIED = "the duality gap reached the tolerance"
    RULE = "its own stopping rule was met"
    MAX_ITER = "the iteration limit was reached"
    CALLBACK = "the callback asked to stop"
    DIVERGED = "the iterates left the range of floating point"
    ROUNDED = "the weights were rounded to float32, like the rows"


@dataclass(frozen=True)
class IterationRecord:
    """One line of the history.

    ``objective`` is F at the iterate and ``bound`` the best lower bound known by then, so that
    ``objective - bound`` bounds the excess of this iterate; ``gap`` is the same relative to F.
    ``passes`` counts how often the rows of X have been read so far, and ``error`` is how much larger F may be
    than what was computed.
    """

    iteration: int
    objective: float
    bound: float
    primal_residual: float
    dual_residual: float
    mu: float
    passes: float = 0.0
    error: float = 0.0

    @property
    def gap(self) -> float:
        """(objective - bound) / objective, the objective being as large as it may be."""
        return relative_gap(self.objective + self.error, self.bound)

    def with_bound(self, bound: float) -> IterationRecord:
        """Return the record with a better bound."""
        return dataclasses.replace(self, bound=bound)


@dataclass(frozen=True)
class IterationState:
    """The argument of a callback. The arrays are the solver's own: read them, copy to keep them."""

    record: IterationRecord
    weights: Floats
    intercepts: Floats
    seconds: float


Callback = Callable[[IterationState], bool | None]
"""Called after every iteration; a true answer ends the run with what has been reached."""


@dataclass(frozen=True, eq=False)
class History:
    """The records of a run, and the same as columns.

    Examples
    --------
    >>> history = History((IterationRecord(1, 4.0, 3.0, 0.1, 0.2, 1.0),))
    >>> history.gap
    array([0.25])
    """

    records: Sequence[IterationRecord]

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        """Return the number of iterations and the last objective as text."""
        end = f", ending at objective {self.records[-1].objective:.6g}" if self.records else ""
        return f"<History: {len(self)} iterations{end}>"

    def column(self, name: str) -> Floats:
        """Return one field of all records as an array."""
        return np.array([getattr(record, name) for record in self.records], dtype=float)

    @property
    def objective(self) -> Floats:
        """F at every iterate."""
        return self.column("objective")

    @property
    def bound(self) -> Floats:
        """The best lower bound on F known at every iteration."""
        return self.column("bound")

    @property
    def gap(self) -> Floats:
        """The relative duality gap of every iterate."""
        return self.column("gap")

    @property
    def mu(self) -> Floats:
        """The penalty, smoothing width or barrier of every iteration."""
        return self.column("mu")

    @property
    def passes(self) -> Floats:
        """The number of passes over the rows of X after every iteration."""
        return self.column("passes")


@dataclass(frozen=True, eq=False)
class SolverResult:
    """The end of a run.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_members)
    intercepts : ndarray of shape (n_members,)
    objective : float
        F(weights, intercepts).
    gap : float
        Relative duality gap of exactly these weights; it bounds their relative excess.
    dual : ndarray of shape (n_rows,)
        The dual vector of the reduced SVM that proves the gap (see ``dual_bound``).
    converged : bool
        Whether ``gap`` is at most the tolerance asked for.
    n_iter : int
    status : Status
        Why the run ended.
    history : History
    state : object
        Where the method was, in its own terms: a warm start continues from there (see ``Start``).
    """

    weights: Floats
    intercepts: Floats
    objective: float
    gap: float
    dual: Floats
    converged: bool
    n_iter: int
    status: Status
    history: History
    state: Any = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class Start:
    """A point to start from: an earlier result, on these rows or on others.

    ``dual`` may be missing or belong to other rows (then its length differs, and it is left out). With
    ``state`` come the objective and the gap of that result: a method continues from its state only where both
    are what they were, that is, in the problem that it was stopped in.
    """

    weights: Floats
    intercepts: Floats
    dual: Floats | None = None
    objective: float = np.nan
    gap: float = np.nan
    state: Any = None

    @classmethod
    def again(cls, result: SolverResult) -> Start:
        """Start from a result, to go on where its run ended."""
        return cls(result.weights, result.intercepts, result.dual, result.objective, result.gap, result.state)

    @classmethod
    def after(cls, result: SolverResult, factor: float) -> Start:
        """Start from a result for the same rows at another cost, ``factor`` times smaller.

        Dual variables of the new cost: bounds and slopes are proportional to the cost.
        """
        return cls(result.weights, result.intercepts, factor * result.dual)

    def resumes(self, kind: type, objective: float, gap: float, n_rows: int | None = None) -> bool:
        """Return whether its state is of that kind and of the problem with that objective and gap.

        Rounding aside: a dual vector may also be repaired into a better one. With ``n_rows`` the state has
        numbers of every row: those of as many others (each row twice instead of weight 2, say) are no use.
        """
        if n_rows is not None and (self.dual is None or len(self.dual) != n_rows):
            return False
        is_same = abs(objective - self.objective) <= _SAME * abs(self.objective)
        is_proven = gap <= self.gap + _SAME or bool(np.isnan(gap) and np.isnan(self.gap))
        return isinstance(self.state, kind) and is_same and is_proven

    def for_objective(self, objective: Objective) -> Start:
        """Return the start as ``objective`` allows it: no intercept where there is none to fit."""
        if objective.fit_intercept:
            return self
        return dataclasses.replace(self, intercepts=np.zeros_like(self.intercepts))

    def for_problem(self, problem: ERMProblem) -> Start:
        """Return the start in terms of ``problem``: around its centre, without an intercept if need be."""
        if not problem.fit_intercept or problem.design.offset is None:
            return self.for_objective(problem.objective)
        return dataclasses.replace(self, intercepts=self.intercepts + problem.design.offset @ self.weights)


def weighted_squares(values: Floats, weights: Floats | None = None) -> float:
    """Compute sum_i s_i |values_i|^2 over the rows; without weights the squared Frobenius norm."""
    squares = np.einsum("ij,ij->i", values, values)
    return float(squares.sum() if weights is None else weights @ squares)


def check_positive(name: str, value: object, *, least: float = 0.0, strict: bool = True) -> None:
    """Raise unless ``value`` is a finite number above (or, not strict, at least) ``least``."""
    number: Any = value if isinstance(value, Real) else np.nan
    in_range = np.isfinite(number) and number >= least
    if not in_range or (strict and value == least):
        sign = ">" if strict else ">="
        raise ValueError(f"solver option {name} must be a finite number {sign} {least:g}; got {value!r}.")


def check_targets(problem: ERMProblem, solver: str) -> None:
    """Raise where rows have targets of their own: only solver "newton" knows of them."""
    if problem.targets is not None:
        raise ValueError(f"solver={solver!r} takes all targets for 1; use solver='newton'.")
