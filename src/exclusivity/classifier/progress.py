"""What a fit tells while it runs: lines for ``verbose``, and scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from exclusivity.solvers import IterationState, SolverResult

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def verbose_line(name: str, state: IterationState) -> str:
    """One readable line, for example ``versicolor against the rest: iteration 20, ...``."""
    record = state.record
    gap = f"gap {record.gap:.1e}, " if np.isfinite(record.bound) else ""  # none above exclusivity = 1
    return (
        f"[ERM] {name}: iteration {record.iteration}, objective {record.objective:.6g}, "
        f"{gap}{state.seconds:.1f} s"
    )


def last_line(name: str, result: SolverResult) -> str:
    """How the fit of ``name`` ended; the objective of problems that are solved together is their sum."""
    has_gap = not np.isnan(result.gap)
    objective = result.objective if has_gap else result.history.objective[-1]
    gap = f"gap {result.gap:.1e}, " if has_gap else ""
    return (
        f"[ERM] {name}: ended after {result.n_iter} iterations, objective {objective:.6g}, {gap}"
        f"{result.status.value}"
    )


def is_worth_a_line(iteration: int, verbose: int) -> bool:
    """Every iteration for ``verbose >= 2``; else the first and then ever more seldom."""
    if verbose >= 2:
        return True
    step = 10 ** max(len(str(iteration)) - 1, 0)
    return verbose == 1 and iteration % step == 0 and (iteration // step) in (1, 2, 5)


class ProblemMonitor:
    """Watches the solution of one binary problem for a classifier.

    Parameters
    ----------
    name : str
        The problem, for messages.
    verbose : int
        How much to print.
    context : CallbackContext or None
        scikit-learn's context of this problem; None without callbacks.
    estimator : ERMClassifier
    shown : dict
        What callbacks may ask for besides: X, y, metadata.
    describe : callable
        From an iteration state to the fitted attributes that a callback may ask for.
    """

    def __init__(
        self,
        name: str,
        verbose: int,
        context: Any,
        estimator: BaseEstimator,
        shown: dict[str, Any],
        describe: Callable[[IterationState], dict[str, Any] | None],
    ) -> None:
        self._name, self._verbose, self._context = name, verbose, context
        self._estimator, self._shown, self._describe = estimator, shown, describe
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **shown)

    def __call__(self, state: IterationState) -> bool:
        """Print, tell the callbacks, and say whether one of them wants to stop."""
        if is_worth_a_line(state.record.iteration, self._verbose):
            print(verbose_line(self._name, state))  # noqa: T201 -- this is what verbose is for
        if self._context is None:
            return False
        task = self._context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self._estimator, **self._shown)
        return bool(
            task.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=lambda: self._describe(state),
                **self._shown,
            )
        )

    def finish(self, result: SolverResult) -> None:
        """The problem is solved."""
        if self._verbose:
            print(last_line(self._name, result))  # noqa: T201
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, **self._shown)
