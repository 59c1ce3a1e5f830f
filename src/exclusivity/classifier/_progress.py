"""The progress of a fit: lines for ``verbose``, and scikit-learn's callbacks, where it has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from exclusivity.classifier._fitted import Ensemble
from exclusivity.solvers import IterationState, SolverResult

if TYPE_CHECKING:
    from exclusivity.classifier._erm import ERMClassifier
    from exclusivity.classifier._fit import FitTasks

__all__ = ["CALLER_OF_FIT", "CallbackSupportMixin", "ProblemMonitor", "watch_fit", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin where that does not exist yet."""

        def set_callbacks(self, *callbacks: object) -> Any:
            """Refuse: there is no callback protocol to speak.

            Parameters
            ----------
            *callbacks : callback instances
                What scikit-learn 1.9 would call during a fit.
            """
            raise RuntimeError("Callbacks need scikit-learn 1.9 or newer (pip install -U scikit-learn).")

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is: no callbacks, no context."""
        return method


# The decorator stands between ``fit`` and its caller.
CALLER_OF_FIT = 3 if hasattr(CallbackSupportMixin, "_init_callback_context") else 2


class ProblemMonitor:
    """Report the progress of one binary problem: lines for ``verbose``, and scikit-learn's callbacks.

    Parameters
    ----------
    name : str
        The problem, for messages.
    estimator : ERMClassifier
    shown : dict
        What callbacks may ask for besides: X, y, metadata.
    context : CallbackContext or None
        scikit-learn's context of this problem; None without callbacks.
    describe : callable
        From an iteration state to the fitted attributes that a callback may ask for.
    """

    def __init__(
        self,
        name: str,
        estimator: ERMClassifier,
        shown: dict[str, Any],
        context: Any,
        describe: Callable[[IterationState], dict[str, Any] | None],
    ) -> None:
        self._name, self._estimator, self._shown = name, estimator, shown
        self._context, self._describe = context, describe
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **shown)

    def __call__(self, state: IterationState) -> bool:
        """Print, call the callbacks, and return whether one of them wants to stop."""
        record = state.record
        if _is_worth_a_line(record.iteration, self._estimator.verbose):
            gap = f"gap {record.gap:.1e}, " if np.isfinite(record.bound) else ""  # none above exclusivity = 1
            self._print(
                f"iteration {record.iteration}, objective {record.objective:.6g}, {gap}{state.seconds:.1f} s"
            )
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
        """Report the end; the objective of problems that are solved together is their sum."""
        if self._estimator.verbose:
            has_gap = not np.isnan(result.gap)
            objective = result.objective if has_gap else result.history.objective[-1]
            gap = f"gap {result.gap:.1e}, " if has_gap else ""
            self._print(
                f"ended after {result.n_iter} iterations, objective {objective:.6g}, {gap}"
                f"{result.status.value}"
            )
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, **self._shown)

    def _print(self, text: str) -> None:
        print(f"[ERM] {self._name}: {text}")  # noqa: T201 -- this is what verbose is for


def _is_worth_a_line(iteration: int, verbose: int) -> bool:
    """Return True in every iteration for ``verbose >= 2``; else in the first and then ever more seldom."""
    if verbose >= 2:
        return True
    step = 10 ** max(len(str(iteration)) - 1, 0)
    return verbose == 1 and iteration % step == 0 and (iteration // step) in (1, 2, 5)


def watch_fit(
    estimator: ERMClassifier, width: dict[str, Any], names: Sequence[str], rows: FitTasks
) -> tuple[Any, list[ProblemMonitor]]:
    """Open scikit-learn's context of a fit (None without callbacks), and make a monitor per name."""

    def describe(state: IterationState) -> dict[str, Any] | None:
        if len(names) > 1:  # halfway through a multi-class fit there is no classifier to show
            return None
        members = [(state.weights, state.intercepts)]
        if state.weights.ndim == 3:  # problems that are solved together
            members = list(zip(state.weights, state.intercepts, strict=True))
        return width | {
            "classes_": rows.classes,
            "_ensemble": Ensemble.from_members(members, rows.dtype),
            "_fitted_multi_class": estimator.multi_class,
            "_fitted_exclusivity": float(estimator.exclusivity),
        }

    context, contexts = None, [None] * len(names)
    if getattr(estimator, "_skl_callbacks", None):
        context = estimator._init_callback_context(max_subtasks=len(names), sequential_subtasks=False)
        context = context.call_on_fit_task_begin(estimator=estimator, **rows.shown)
        contexts = [
            context.subcontext(task_name=name, task_id=number, max_subtasks=None)
            for number, name in enumerate(names)
        ]
    monitors = [
        ProblemMonitor(name, estimator, rows.shown, own, describe)
        for name, own in zip(names, contexts, strict=True)
    ]
    return context, monitors
