"""The arguments and results of every solver: options, iteration state, history, result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from numbers import Real
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.objective import Objective, relative_gap
from exclusivity.objective.problem import ERMProblem, objective_error

Options = TypeVar("Options")

SAMPLE_SEED = 20160328
"""Samples of the rows are random but always the same, so that results repeat bit for bit."""

# exp of minus this is zero.
_NO_LOSS = 800.0
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

    def resumes(self, kind: type, objective: float, gap: float) -> bool:
        """Return whether its state is of that kind and of the problem with that objective and gap.

        Rounding aside: a dual vector may also be repaired into a better one.
        """
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


class Incumbent:
    """The best point and the best bound so far: methods need not be monotone, their answers are."""

    def __init__(self) -> None:
        self.objective, self.error, self.bound = np.inf, 0.0, -np.inf
        self.dual = np.empty(0)

    def raise_bound(self, bound: float, dual: Floats) -> None:
        """Take in a dual vector and the bound it proves."""
        if not bound > 0:  # zero is a dual vector too, and proves 0: nothing is worse, nor lost by overflow
            bound, dual = 0.0, np.zeros_like(dual)
        if bound > self.bound:
            self.bound, self.dual = bound, dual

    def offer(self, objective: float, weights: Floats, intercepts: Floats, error: float) -> None:
        """Take in a point, whose objective may be larger by ``error``; the first one is kept in any case."""
        if objective + error < self.objective + self.error or not np.isfinite(self.objective):
            self.objective, self.error = objective, error
            self.weights, self.intercepts = weights, intercepts

    def offer_anew(self, problem: ERMProblem, weights: Floats, intercepts: Floats) -> None:
        """Take in a point that has yet to be evaluated: one pass."""
        objective = problem.value(weights, intercepts)
        loss = max(objective - problem.regulariser.value(weights), 0.0)
        self.offer(
            objective, weights, intercepts, objective_error(problem, weights, intercepts, objective, loss)
        )

    @property
    def gap(self) -> float:
        """The relative gap between the two."""
        return relative_gap(self.objective + self.error, self.bound)

    def result(self, tol: float, status: Status, history: History, state: object = None) -> SolverResult:
        """Return the end of the run."""
        return SolverResult(
            weights=self.weights,
            intercepts=self.intercepts,
            objective=self.objective,
            gap=self.gap,
            dual=self.dual,
            converged=self.gap <= tol,
            n_iter=len(history),
            status=status,
            history=history,
            state=state,
        )


class Recorder:
    """The records of a run, and its callback."""

    def __init__(self, callback: Callback | None) -> None:
        self._callback = callback
        self._records: list[IterationRecord] = []
        self._started = perf_counter()

    def keep(self, record: IterationRecord) -> None:
        """Keep the record without calling the callback."""
        self._records.append(record)

    def amend(self, record: IterationRecord) -> None:
        """Keep the record in place of the last."""
        self._records[-1] = record

    def add(self, record: IterationRecord, members: Callable[[], tuple[Floats, Floats]]) -> bool:
        """Keep the record; True when the callback wants to stop.

        ``members`` gives weights and intercepts, and is asked only where a callback is set.
        """
        self.keep(record)
        if self._callback is None:
            return False
        seconds = perf_counter() - self._started
        return bool(self._callback(IterationState(record, *members(), seconds)))

    def __len__(self) -> int:
        return len(self._records)

    def history(self) -> History:
        """Return all records so far."""
        return History(tuple(self._records))


def constant_result(problem: ERMProblem) -> SolverResult | None:
    """Return the optimum where one class has all the rows; None where a solver is needed.

    A free intercept at the margin, b = y t, leaves no loss and no weights: F = 0, which nothing can be below.
    A loss that never vanishes has no optimum, but from some intercept on it is 0 in floating point. Where
    bounds keep weights from zero, F is what those nearest to it cost.

    Examples
    --------
    >>> problem = ERMProblem.build(np.array([[1.0], [2.0]]), np.array([-1.0, -1.0]), n_members=3)
    >>> constant_result(problem).intercepts
    array([-1., -1., -1.])
    """
    labels = problem.labels
    is_solved = problem.fit_intercept and abs(labels.sum()) == len(labels)
    if len(labels) > 0 and not is_solved:
        return None
    side = float(labels[0]) if len(labels) > 0 else 0.0
    sign = side
    if problem.targets is not None:
        side *= float(np.max(problem.targets, initial=-np.inf))
    if not problem.loss.vanishes:
        side += sign * (_NO_LOSS - 1)
    weights, least = np.zeros(problem.design.n_features), 0.0
    if problem.objective.bounds is not None:  # what the nearest weights to zero say, the intercept outweighs
        weights = problem.objective.bounds.clip(weights)
        least = problem.n_members * problem.kappa * problem.penalty.value(weights)
        side += 2 * sign * np.abs(problem.design.times(weights)).max(initial=0.0)
    return SolverResult(
        weights=np.repeat(weights[:, None], problem.n_members, axis=1),
        intercepts=np.full(problem.n_members, side),
        objective=least,
        gap=0.0,
        dual=np.zeros(len(labels)),
        converged=True,
        n_iter=1,
        status=Status.CERTIFIED,
        history=History((IterationRecord(1, least, least, 0.0, 0.0, 0.0),)),
    )


def parse_options(kind: type[Options], given: Mapping[str, Any] | None) -> Options:
    """Make an options object from a user's mapping, refusing keys that the solver does not know.

    Examples
    --------
    >>> from exclusivity.solvers.paper import PaperOptions
    >>> parse_options(PaperOptions, {"rho": 1.0}).rho
    1.0
    """
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    unknown = [key for key in (given or {}) if key not in known]
    if unknown and not known:
        raise ValueError(f"Unknown solver option {unknown[0]!r}; this solver takes none.")
    if unknown:
        raise ValueError(
            f"Unknown solver option {unknown[0]!r}; {kind.__name__.removesuffix('Options').lower()!r} "
            f"takes {', '.join(known)}."
        )
    return kind(**(given or {}))


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


def check_convex(objective: Objective, solver: str) -> None:
    """Raise unless the objective is convex, as all solvers but one need it."""
    if not objective.is_convex:
        raise ValueError(
            f"solver={solver!r} needs exclusivity <= 1; got {objective.regulariser.exclusivity:g}."
        )
