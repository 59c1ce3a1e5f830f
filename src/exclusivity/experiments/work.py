"""Which function does which kind of task."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from threadpoolctl import threadpool_limits

from exclusivity.experiments import figure1, theory, trials
from exclusivity.experiments.tasks import Result, Sets, Task

KINDS: Mapping[str, Callable[..., Result]] = {
    "trial": trials.run_trial,
    "sweep": figure1.run_sweep,
    "convergence": figure1.run_convergence,
    "scaling": figure1.run_scaling,
    "theory": theory.run_check,
}
"""Every kind of task and the function that does it."""


def run_task(task: Task, sets: Sets) -> Result:
    """Do the work, with one BLAS thread: numbers depend neither on the machine's cores nor on the jobs."""
    with threadpool_limits(limits=1):
        return KINDS[task.kind](sets, **task.params)
