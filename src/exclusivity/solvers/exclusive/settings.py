"""What the solver takes and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from exclusivity.problem.arrays import Floats, Ints
from exclusivity.solvers.base import History, SolverResult, Status, check_positive

Partition = Ints
"""The member that owns each feature group; -1 where nobody does."""


@dataclass(frozen=True)
class ExclusiveOptions:
    """The settings of the exclusive solver.

    Parameters
    ----------
    change : float
        For finite exclusivity: a member within the tolerance of its optimum still moves where that lowers the
        objective by more than this share. The run ends with a sweep in which no member moves. At ``inf`` one
        sweep is exact.
    restarts : int
        How many partitions the search starts from; the best one found is kept. 0 means no search: the given
        partition (or a balanced one, dealt out by the strength of the features) is used as it is.
    radius : int
        The search counts the rows whose vote survives up to this many broken features.
    partition : sequence of int or None
        Where the search starts: the member of every feature group, in the order of the group codes, or -1 for
        a group that is free.
    """

    change: float = 1e-4
    restarts: int = 2
    radius: int = 3
    partition: Sequence[int] | Partition | None = None

    def __post_init__(self) -> None:
        check_positive("change", self.change)
        for name in ("restarts", "radius"):
            value: Any = getattr(self, name)
            if not isinstance(value, Integral) or value < 0:
                raise ValueError(f"solver option {name} must be an integer >= 0; got {value!r}.")


@dataclass(frozen=True, eq=False)
class ExclusiveResult(SolverResult):
    """The end of an exclusive run, for one of the problems that were solved together.

    ``objective`` is F of this problem alone; ``history`` shows the objective of all of them together, which
    is what the run minimises. ``gap`` is NaN: above exclusivity = 1 nothing bounds the distance to the best
    F. ``converged`` says that every member is within the tolerance of ITS optimum, given the partition (at
    ``inf``) or the other members (finite exclusivity), and that the stopping rule was met.

    Attributes
    ----------
    partition : ndarray of shape (n_groups,)
        The member that owns each feature group (at finite exclusivity: that weighs it most), -1 if nobody.
    """

    partition: Partition

    @classmethod
    def at_end(
        cls,
        weights: Floats,
        intercepts: Floats,
        objective: float,
        status: Status,
        history: History,
        partition: Partition,
        state: object = None,
    ) -> ExclusiveResult:
        """The result of one problem of a run that ended with ``status``."""
        return cls(
            weights=weights,
            intercepts=intercepts,
            objective=float(objective),
            gap=np.nan,
            dual=np.empty(0),
            converged=status is Status.RULE,
            n_iter=len(history),
            status=status,
            history=history,
            partition=partition,
            state=state,
        )
