"""Run graphs on the cluster of the current client, or on Dask's local scheduler without one.

The rows and the questions about them are in ``exclusivity.dask._rows``; this module only computes and waits.

A cluster that has lost all its workers, or whose scheduler is frozen, lets a computation wait indefinitely.
Dask's own time-outs notice broken connections only. Here the client waits for a bounded time and then reports
what is wrong.

Nothing that runs on the client's loop is ever cancelled, by a time limit or by Ctrl-C. ``Future.result`` with
a timeout cancels the transfer of the result, and a transfer that is cancelled before it has begun stays with
the client as the one that all later transfers wait for. Here the thread stops waiting, and the future is
released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future as LocalFuture, wait
from math import isfinite
from time import monotonic
from typing import Any

import numpy as np
from dask.utils import parse_timedelta
from distributed import Client, Future, futures_of
from distributed.scheduler import KilledWorker, NoValidWorkerError

import dask

PATIENCE = 30.0
"""Seconds without any worker after which a fit gives up."""

SILENCE = 120.0
"""Seconds without an answer of the scheduler; when it sees the first graph it has our libraries to import."""

_PATIENCE_KEY, _SILENCE_KEY = "exclusivity.worker-patience", "exclusivity.scheduler-patience"
_LOOK_EVERY = 2.0
_REPEAT = "repeat the fit (a checkpoint file lets it go on where it was)."


class Engine:
    """Compute delayed values.

    Parameters
    ----------
    client : distributed.Client or None
        None: Dask's default scheduler in this process.
    """

    def __init__(self, client: Client | None) -> None:
        self._client: Any = client
        self._patience, self._silence = _seconds(_PATIENCE_KEY, PATIENCE), _seconds(_SILENCE_KEY, SILENCE)
        self._end: LocalFuture[None] = LocalFuture()

    @classmethod
    def current(cls) -> Engine:
        """Use the client that is in use now, if there is one."""
        try:
            return cls(Client.current())
        except ValueError:
            return cls(None)

    @property
    def memory(self) -> float:
        """Return the bytes that all workers may use in total; infinite where unknown."""
        if self._client is None:
            return float("inf")
        workers = self._ask(self._identity())["workers"].values()
        limits = [float(worker["memory_limit"] or 0) for worker in workers]
        return sum(limits) if limits and all(limits) else float("inf")

    def placement(self, values: Sequence[Any]) -> list[list[int]]:
        """Group persisted values by worker, in one list of their numbers for each thread there.

        Values in unknown places have lists of their own.
        """
        known = futures_of(list(values)) if self._client is not None else []
        if self._client is None or not known:
            return [[number] for number in range(len(values))]
        owners = self._ask(self._client.scheduler.who_has(keys=[future.key for future in known]))
        threads = self._ask(self._client.scheduler.ncores())
        of_worker: dict[str, list[int]] = {}
        for number, value in enumerate(values):
            of_worker.setdefault(min(owners.get(value.key) or [value.key]), []).append(number)
        shares = [np.array_split(numbers, threads.get(name, 1)) for name, numbers in of_worker.items()]
        return sorted(share.tolist() for parts in shares for share in parts if len(share) > 0)

    def persist(self, values: Sequence[Any]) -> list[Any]:
        """Compute values that stay with the workers, who can make them again from their lineage."""
        if self._client is None or not values:
            return list(dask.persist(*values))
        return list(self._client.persist(list(values)))

    def abandon(self, error: BaseException) -> None:
        """End every computation with this error; what runs in this process ends when it is done."""
        if not self._end.done():
            self._end.set_exception(error)

    def compute(self, value: Any) -> Any:
        """Return the result of one delayed value, or an error in bounded time."""
        if self._client is None:
            return dask.compute(value)[0]
        known = futures_of(value)
        is_persisted = len(known) == 1 and known[0].key == value.key
        future = known[0] if is_persisted else self._client.compute(value)
        try:
            return self._result(future)
        finally:
            future.release()  # whoever gives up leaves no work behind

    def _result(self, future: Future) -> Any:
        """Transfer a result; errors of the cluster say what to do."""
        transfer = self._begin(future.client.gather(future, asynchronous=True))
        self._wait(transfer)
        try:
            return transfer.result()
        except NoValidWorkerError:
            raise RuntimeError(_no_workers("has no workers any more")) from None
        except KilledWorker as error:
            raise RuntimeError(
                "the workers of the Dask cluster died again and again in the same task, most likely for want "
                f"of memory: use smaller chunks, fewer threads per worker, or a larger memory limit. {error}"
            ) from error
        except (OSError, CancelledError) as error:
            if future.status == "error":  # the task's own
                raise
            raise RuntimeError(
                f"the Dask scheduler is gone or has dropped the computation ({error}); start the cluster, or "
                f"connect the client, again and {_REPEAT}"
            ) from error

    def _wait(self, transfer: LocalFuture[Any]) -> None:
        """Wait while the scheduler answers and has workers; a RuntimeError otherwise."""
        asked, last_sign = self._begin(self._identity()), monotonic()
        while not wait([transfer, self._end], _LOOK_EVERY, FIRST_COMPLETED).done:
            seconds = monotonic() - last_sign
            if asked.done():
                if _has_workers(asked):
                    last_sign = monotonic()
                elif seconds > self._patience:
                    raise RuntimeError(_no_workers(f"has had no workers for {self._patience:.0f} seconds"))
                asked = self._begin(self._identity())
            elif seconds > self._silence:
                raise RuntimeError(_silent(self._silence))
        if self._end.done():
            self._end.result()

    def _identity(self) -> Coroutine[Any, Any, Any]:
        """Ask the scheduler who it is and who its workers are."""
        identity: Coroutine[Any, Any, Any] = self._client.scheduler.identity(n_workers=-1)
        return identity

    def _ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        """Return the scheduler's answer, in bounded time."""
        asked = self._begin(question)
        if not wait([asked], self._silence).done:
            raise RuntimeError(_silent(self._silence))
        return asked.result()

    def _begin(self, coroutine: Coroutine[Any, Any, Any]) -> LocalFuture[Any]:
        """Let it run on the client's loop, whether or not a caller waits for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)


def _has_workers(answer: LocalFuture[Any]) -> bool:
    try:
        workers = answer.result()["workers"].values()
    except (OSError, RuntimeError, ValueError):
        return False
    # One that is paused has run out of memory, and takes no tasks.
    return any(worker.get("status") != "paused" for worker in workers)


def _seconds(key: str, default: float) -> float:
    """Read a Dask setting that is a time."""
    given = dask.config.get(key, default)
    try:
        seconds = float(parse_timedelta(given))
    except (AttributeError, KeyError, TypeError, ValueError):
        seconds = np.nan
    if not (isfinite(seconds) and seconds > 0):
        raise ValueError(
            f"the Dask setting {key} must be a positive time such as 30 or '2 minutes'; got {given!r}."
        )
    return seconds


def _silent(seconds: float) -> str:
    return (
        f"the Dask scheduler has not answered for {seconds:.0f} seconds: it is frozen, overloaded or cut "
        f"off. Look after it, or wait longer with dask.config.set({{'{_SILENCE_KEY}': '5 minutes'}}); then "
        f"{_REPEAT}"
    )


def _no_workers(what: str) -> str:
    return (
        f"the Dask cluster {what}: they were killed, ran out of memory or lost their connection. Start "
        f"workers (with more memory, or use smaller chunks) and {_REPEAT}"
    )
