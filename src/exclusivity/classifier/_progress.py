"""What a fit reports: lines for ``verbose``, scikit-learn's callbacks where it has them, and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exclusivity._typing import Ints
from exclusivity.classifier._ensemble import Ensemble
from exclusivity.solvers.base import IterationState, SolverResult, Status

if TYPE_CHECKING:
    from exclusivity.classifier._erm import ERMClassifier, FitTasks

__all__ = ["CallbackSupportMixin", "with_callbacks"]
"""Those of scikit-learn, beside what is defined here."""

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


ENDED_EARLY = (Status.MAX_ITER, Status.DIVERGED, Status.ROUNDED)
"""The ends of a run that deserve a warning."""


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


def warn_of_early_ends(short: Sequence[tuple[str, SolverResult]], n_problems: int, tol: float) -> None:
    """Warn of problems that did not reach the tolerance: how many they are, and the largest gap."""
    name, worst = max(short, key=lambda pair: np.nan_to_num(pair[1].gap, nan=np.inf))
    more = f" So ended {len(short)} of {n_problems} problems; this gap is the largest." * (len(short) > 1)
    warnings.warn(_advice(name, worst, tol) + more, ConvergenceWarning, stacklevel=CALLER_OF_FIT + 2)


def _advice(name: str, result: SolverResult, tol: float) -> str:
    """Describe a fit that ended at its iteration limit, and what to try."""
    if np.isnan(result.gap):
        return (
            f"{name}: not every member came within tol={tol:g} of its optimum in {result.n_iter} fits of "
            f"members: {result.status.value}. Scale the features (StandardScaler), raise max_iter, or raise "
            "tol."
        )
    if result.status is Status.ROUNDED:
        return (
            f"{name}: duality gap {result.gap:.1e}, above tol={tol:g}: {result.status.value}, and at this C "
            "float32 cannot hold the solution. Fit float64 rows (X.astype(float)), or raise tol."
        )
    return (
        f"{name}: duality gap {result.gap:.1e} after {result.n_iter} iterations, above tol={tol:g}: "
        f"{result.status.value}. "
        "The objective is at most that fraction above its optimum. Scale the features (StandardScaler), "
        "raise max_iter, or accept the gap by raising tol."
    )


def warn_of_surplus(groups: Ints, n_members: int) -> None:
    """Warn where there are more members than feature groups to give them."""
    n_groups = int(groups.max()) + 1
    if n_groups < n_members:
        kind = "features" if n_groups == len(groups) else "feature groups"
        warnings.warn(
            f"{n_members} members compete for {n_groups} {kind}: {n_members - n_groups} of them get none and "
            f"abstain. Use {n_groups} members or fewer.",
            UserWarning,
            stacklevel=CALLER_OF_FIT + 2,
        )


def warn_of_constant_votes(counts: Ints, estimator: Any) -> None:
    """Warn where members give all training rows the same class; ``counts`` has their votes by class.

    No feature can turn such a vote, so that certificates look better for it, and it says nothing about a row.
    """
    constant = np.flatnonzero((counts > 0).sum(axis=1) * estimator.supports_.any(axis=1) == 1)
    if len(constant):
        classes = np.unique(estimator.classes_[counts[constant].argmax(axis=1)])
        more = "" if estimator.class_weight == "balanced" else "class_weight='balanced', "
        warnings.warn(
            f"{len(constant)} of {len(counts)} members vote {' or '.join(map(str, classes))} for every "
            f"training row (the first is number {constant[0]}): nothing can turn such a vote, and it knows "
            f"nothing. Set {more}a larger C, or fewer members.",
            UserWarning,
            stacklevel=CALLER_OF_FIT + 2,
        )
