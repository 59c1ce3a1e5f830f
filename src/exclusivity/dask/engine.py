"""Where graphs run: on the cluster of the current client, or on Dask's local scheduler without one.

A cluster that has lost all its workers, or whose scheduler is silent, lets a computation wait for ever. Here
it waits for a while and then says what is wrong.

Nothing that runs on the client's loop is ever cancelled, by a time limit or by Ctrl-C. ``Future.result`` with
a timeout cancels the transfer of the result, and a transfer that is cancelled before it has begun stays with
the client as the one that all later transfers wait for. Here the thread stops waiting, and the future is
released.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine, Sequence
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
"""Seconds without a word from the scheduler; when it sees the first graph it has our libraries to import."""

_PATIENCE_KEY, _SILENCE_KEY = "exclusivity.worker-patience", "exclusivity.scheduler-patience"
_LOOK_EVERY = 2.0
_REPEAT = "repeat the fit (a checkpoint file lets it go on where it was)."


class Engine:
    """Runs delayed values.

    Parameters
    ----------
    client : distributed.Client or None
        None: Dask's default scheduler in this process.
    """

    def __init__(self, client: Client | None) -> None:
        self._client = client
        self._patience, self._silence = _seconds(_PATIENCE_KEY, PATIENCE), _seconds(_SILENCE_KEY, SILENCE)
        self._end: concurrent.futures.Future[None] = concurrent.futures.Future()

    @classmethod
    def current(cls) -> Engine:
        """On the client that is in use now, if there is one."""
        try:
            return cls(Client.current())
        except ValueError:
            return cls(None)

    @property
    def memory(self) -> float:
        """Bytes that all workers may use together; infinite where nobody says."""
        if self._client is None:
            return float("inf")
        limits = [float(worker["memory_limit"] or 0) for worker in self._workers()]
        return sum(limits) if limits and all(limits) else float("inf")

    @property
    def memory_per_thread(self) -> float:
        """Bytes that a task may use, on the smallest worker; infinite where nobody says."""
        if self._client is None:
            return float("inf")
        limits = [float(worker["memory_limit"] or "inf") / worker["nthreads"] for worker in self._workers()]
        return min(limits, default=float("inf"))

    def together(self, values: Sequence[Any]) -> list[list[int]]:
        """The places of persisted values that lie with the same worker, in one list for each thread there.

        Values of which nobody knows where they are have lists of their own.
        """
        known = futures_of(list(values)) if self._client is not None else []
        if self._client is None or not known:
            return [[place] for place in range(len(values))]
        scheduler = self._client.scheduler
        owners = self._answer(self._begin(scheduler.who_has(keys=[future.key for future in known])))
        threads = self._answer(self._begin(scheduler.ncores()))
        of_worker: dict[str, list[int]] = {}
        for place, value in enumerate(values):
            of_worker.setdefault(min(owners.get(value.key) or [value.key]), []).append(place)
        shares = [np.array_split(places, threads.get(name, 1)) for name, places in of_worker.items()]
        return sorted(share.tolist() for parts in shares for share in parts if len(share) > 0)

    def persist(self, values: Sequence[Any]) -> list[Any]:
        """The same values, computed and kept on the workers, who can make them again from their lineage."""
        if not values:
            return []
        if self._client is None:
            return list(dask.persist(*values))
        return list(self._client.persist(list(values)))

    def abandon(self, error: BaseException) -> None:
        """End every computation with this error; what runs in this process ends when it is done."""
        if not self._end.done():
            self._end.set_exception(error)

    def compute(self, value: Any) -> Any:
        """The result of one delayed value; an error in bounded time where nobody can compute it."""
        if self._client is None:
            return dask.compute(value)[0]
        known = futures_of(value)
        is_persisted = len(known) == 1 and known[0].key == value.key
        future = known[0] if is_persisted else self._client.compute(value)
        try:
            return _value(self._transfer(future), future)
        finally:
            future.release()  # whoever gives up leaves no work behind

    def _transfer(self, future: Future) -> concurrent.futures.Future[Any]:
        """The result on this side, or the error in its place, when it is there."""
        result = self._begin(future.client.gather(future, asynchronous=True))
        watch = _Watch(self._ask_who_works, self._patience, self._silence)
        while True:
            concurrent.futures.wait([result, self._end], _LOOK_EVERY, concurrent.futures.FIRST_COMPLETED)
            if self._end.done():
                self._end.result()
            if result.done():
                return result
            watch.look()

    def _workers(self) -> list[dict[str, Any]]:
        return list(self._answer(self._ask_who_works())["workers"].values())

    def _ask_who_works(self) -> concurrent.futures.Future[Any]:
        assert self._client is not None  # noqa: S101 -- asked by those who know
        return self._begin(self._client.scheduler.identity(n_workers=-1))

    def _answer(self, asked: concurrent.futures.Future[Any]) -> Any:
        """What the scheduler says, in bounded time."""
        concurrent.futures.wait([asked], self._silence)
        if not asked.done():
            raise RuntimeError(_silent(self._silence))
        return asked.result()

    def _begin(self, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Let it run on the client's loop, whether or not somebody waits for it."""
        assert self._client is not None  # noqa: S101 -- there is a loop
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)


class _Watch:
    """Looks after a cluster that works on something: it has to answer, and to have workers.

    Parameters
    ----------
    ask : callable
        Asks the scheduler who it is and who its workers are; gives the future of the answer.
    patience, silence : float
        Seconds that it may go without workers, and without an answer.
    """

    def __init__(
        self, ask: Callable[[], concurrent.futures.Future[Any]], patience: float, silence: float
    ) -> None:
        self._ask, self._patience, self._silence = ask, patience, silence
        self._asked: concurrent.futures.Future[Any] | None = None
        self._last_sign = monotonic()

    def look(self) -> None:
        """Take the last answer and ask again; a RuntimeError if there was no good one for too long."""
        if self._asked is not None:
            seconds = monotonic() - self._last_sign
            if not self._asked.done():
                if seconds > self._silence:
                    raise RuntimeError(_silent(self._silence))
            elif _has_workers(self._asked):
                self._last_sign = monotonic()
            elif seconds > self._patience:
                raise RuntimeError(_no_workers(f"has had no workers for {self._patience:.0f} seconds"))
        if self._asked is None or self._asked.done():
            self._asked = self._ask()


def _has_workers(answer: concurrent.futures.Future[Any]) -> bool:
    try:
        workers = answer.result()["workers"].values()
    except (OSError, RuntimeError, ValueError):
        return False
    # One that is paused has run out of memory, and takes no tasks.
    return any(worker.get("status") != "paused" for worker in workers)


def _value(result: concurrent.futures.Future[Any], future: Future) -> Any:
    """What was transferred; errors of the cluster in words that say what to do."""
    try:
        return result.result()
    except NoValidWorkerError:
        raise RuntimeError(_no_workers("has no workers any more")) from None
    except KilledWorker as error:
        raise RuntimeError(
            "the workers of the Dask cluster died again and again in the same task, most likely for want of "
            f"memory: use smaller chunks, fewer threads per worker, or a larger memory limit. {error}"
        ) from error
    except (OSError, concurrent.futures.CancelledError) as error:
        if future.status == "error":  # the task's own
            raise
        raise RuntimeError(
            f"the Dask scheduler is gone or has dropped the computation ({error}); start the cluster, or "
            f"connect the client, again and {_REPEAT}"
        ) from error


def _seconds(key: str, default: float) -> float:
    """A Dask setting that is a time."""
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
