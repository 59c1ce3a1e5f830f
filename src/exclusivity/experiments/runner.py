"""Runs tasks in one process or in several, with the same results; finished ones survive an interruption."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager

from exclusivity.experiments.checkpoint import Checkpoint
from exclusivity.experiments.progress import Progress
from exclusivity.experiments.sets import ExperimentSet
from exclusivity.experiments.tasks import Result, Sets, Task
from exclusivity.experiments.work import run_task

_worker_sets: dict[str, ExperimentSet] = {}


def run_all(
    tasks: Sequence[Task], sets: Sets, checkpoint: Checkpoint, *, jobs: int, progress: Progress
) -> dict[str, Result]:
    """The result of every task, by its key.

    Parameters
    ----------
    tasks : sequence of Task
    sets : mapping
        The data sets that the tasks name.
    checkpoint : Checkpoint
        Tasks found there are not run again; every finished one is added.
    jobs : int
        Processes. Does not change results.
    progress : Progress
        Told of every finished task.
    """
    known = checkpoint.load()
    results = {task.key: known[task.key] for task in tasks if task.key in known}
    todo = [task for task in tasks if task.key not in results]
    progress.start(len(tasks), done=len(results))
    try:
        finished = _serial(todo, sets) if min(jobs, len(todo)) <= 1 else _parallel(todo, sets, jobs)
        for task, result in finished:
            checkpoint.add(task, result)
            results[task.key] = result
            progress.advance(task.label)
    finally:
        progress.stop()
    return results


def _serial(tasks: Sequence[Task], sets: Sets) -> Iterator[tuple[Task, Result]]:
    for task in tasks:
        yield task, run_task(task, sets)


def _parallel(tasks: Sequence[Task], sets: Sets, jobs: int) -> Iterator[tuple[Task, Result]]:
    """In the order in which they finish."""
    with _pool(min(jobs, len(tasks)), sets) as pool:
        futures: dict[Future[Result], Task] = {pool.submit(_run_in_worker, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def _pool(n_workers: int, sets: Sets) -> Iterator[ProcessPoolExecutor]:
    # "spawn": a forked copy of a process with running BLAS threads can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_workers, context, _start_worker, (dict(sets),))
    try:
        yield pool
    except BaseException:  # Ctrl-C, an error, or a reader that stops early: nobody waits for what still runs
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()
        raise
    pool.shutdown()


def _start_worker(sets: dict[str, ExperimentSet]) -> None:
    # Ctrl-C reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker_sets.update(sets)


def _run_in_worker(task: Task) -> Result:
    return run_task(task, _worker_sets)
