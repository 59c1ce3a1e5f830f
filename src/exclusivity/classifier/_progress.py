"""What a fit reports: lines for ``verbose``, scikit-learn's callbacks where it has them, an early end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exclusivity.solvers.base import IterationState, SolverResult, Status

if TYPE_CHECKING:
    from exclusivity.classifier._erm import ERMClassifier

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


class FitProgress:
    """Report a fit: lines for ``verbose``, and scikit-learn's callbacks.

    Parameters
    ----------
    estimator : ERMClassifier
    names : sequence of str
        The binary problems, or one name for all that are solved together.
    shown : dict
        What callbacks may ask for besides: X, y, metadata.
    describe : callable
        From weights and intercepts of all problems to the fitted attributes that a callback may ask for.
    """

    def __init__(
        self,
        estimator: ERMClassifier,
        names: Sequence[str],
        shown: dict[str, Any],
        describe: Callable[[list[tuple[Any, Any]]], dict[str, Any]],
    ) -> None:
        self._estimator, self._names, self._describe = estimator, names, describe
        self._shown, self._context = {"estimator": estimator, **shown}, None
        self._parts: list[Any] = [None] * len(names)  # scikit-learn's contexts; None without callbacks
        if getattr(estimator, "_skl_callbacks", None):
            context = estimator._init_callback_context(max_subtasks=len(names), sequential_subtasks=False)
            self._context = context.call_on_fit_task_begin(**self._shown)
            self._parts = [
                self._context.subcontext(task_name=name, task_id=number, max_subtasks=None)
                for number, name in enumerate(names)
            ]
            for part in self._parts:
                part.call_on_fit_task_begin(**self._shown)
        self.monitors = [partial(self._watch, *pair) for pair in zip(names, self._parts, strict=True)]
        """What solvers call after every iteration, one for each name."""

    def finish(self, results: Sequence[SolverResult]) -> None:
        """Report the end; the objective of problems that are solved together is their sum."""
        for name, part, result in zip(self._names, self._parts, results, strict=False):
            if self._estimator.verbose:
                has_gap = not np.isnan(result.gap)
                objective = result.objective if has_gap else result.history.objective[-1]
                gap = f"gap {result.gap:.1e}, " if has_gap else ""
                end = f"objective {objective:.6g}, {gap}{result.status.value}"
                _print(name, f"ended after {result.n_iter} iterations, {end}")
            if part is not None:
                part.call_on_fit_task_end(**self._shown)
        if self._context is not None:
            self._context.call_on_fit_task_end(reconstruction_attributes=dict, **self._shown)

    def _watch(self, name: str, part: Any, state: IterationState) -> bool:
        """Print, call the callbacks, and return whether one of them wants to stop."""
        record = state.record
        if _is_worth_a_line(record.iteration, self._estimator.verbose):
            gap = f"gap {record.gap:.1e}, " if np.isfinite(record.bound) else ""  # none above exclusivity = 1
            at = f"iteration {record.iteration}, objective {record.objective:.6g}"
            _print(name, f"{at}, {gap}{state.seconds:.1f} s")
        if part is None:
            return False
        task = part.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(**self._shown)
        attributes = partial(self._attributes, state)
        return bool(task.call_on_fit_task_end(reconstruction_attributes=attributes, **self._shown))

    def _attributes(self, state: IterationState) -> dict[str, Any] | None:
        if len(self._names) > 1:  # halfway through a multi-class fit there is no classifier to show
            return None
        if state.weights.ndim == 3:  # problems that are solved together
            return self._describe(list(zip(state.weights, state.intercepts, strict=True)))
        return self._describe([(state.weights, state.intercepts)])


def _print(name: str, text: str) -> None:
    print(f"[ERM] {name}: {text}")  # noqa: T201 -- this is what verbose is for


def _is_worth_a_line(iteration: int, verbose: int) -> bool:
    """Return True in every iteration for ``verbose >= 2``; else in the first and then ever more seldom."""
    if verbose >= 2:
        return True
    step = 10 ** max(len(str(iteration)) - 1, 0)
    return verbose == 1 and iteration % step == 0 and (iteration // step) in (1, 2, 5)


def warn_of_early_ends(
    ended: Sequence[tuple[str, SolverResult]], whole: str, tol: float, stacklevel: int
) -> None:
    """Warn of problems that did not reach the tolerance: how many of the ``whole``, and the largest gap."""
    name, worst = max(ended, key=lambda pair: np.nan_to_num(pair[1].gap, nan=np.inf))
    more = f" So ended {len(ended)} of {whole}; this gap is the largest." * (len(ended) > 1)
    warnings.warn(_advice(name, worst, tol) + more, ConvergenceWarning, stacklevel=stacklevel + 1)


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
