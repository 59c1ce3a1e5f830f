"""Where graphs run: on the cluster of the current client, or on Dask's local scheduler without one.

A cluster that has lost all its workers lets a computation wait for ever. Here it waits for a while and then
says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

import numpy as np
from distributed import Client, Future, futures_of
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker, NoValidWorkerError

import dask

PATIENCE = 30.0
"""Seconds without any worker, or without a word from the scheduler, after which a fit gives up."""

_LOOK_EVERY = 2.0


class Engine:
    """Runs delayed values.

    Parameters
    ----------
    client : distributed.Client or None
        None: Dask's default scheduler in this process.
    """

    def __init__(self, client: Client | None) -> None:
        self._client = client

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
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [float(worker["memory_limit"] or 0) for worker in workers]
        return sum(limits) if limits and all(limits) else float("inf")

    @property
    def memory_per_thread(self) -> float:
        """Bytes that a task may use, on the smallest worker; infinite where nobody says."""
        if self._client is None:
            return float("inf")
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [float(worker["memory_limit"] or "inf") / worker["nthreads"] for worker in workers]
        return min(limits, default=float("inf"))

    def together(self, values: Sequence[Any]) -> list[list[int]]:
        """The places of persisted values that lie with the same worker, in one list for each thread there.

        Values of which nobody knows where they are have lists of their own.
        """
        known = futures_of(list(values)) if self._client is not None else []
        if self._client is None or not known:
            return [[place] for place in range(len(values))]
        owners, threads = self._client.who_has(known), self._client.nthreads()
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

    def compute(self, value: Any) -> Any:
        """The result of one delayed value; an error in bounded time where nobody can compute it."""
        if self._client is None:
            return dask.compute(value)[0]
        known = futures_of(value)
        is_persisted = len(known) == 1 and known[0].key == value.key
        future = known[0] if is_persisted else self._client.compute(value)
        try:
            return self._result(future)
        except KilledWorker as error:
            raise RuntimeError(
                "the workers of the Dask cluster died again and again in the same task, most likely for "
                "want of memory: use smaller chunks, fewer threads per worker, or a larger memory limit. "
                f"{error}"
            ) from error
        except (CommClosedError, FutureCancelledError) as error:
            raise RuntimeError(
                f"the Dask scheduler is gone or has dropped the computation ({error}); start the cluster "
                "again and repeat the fit (a checkpoint file lets it go on where it was)."
            ) from error

    def _result(self, future: Future) -> Any:
        last_sign = monotonic()
        while True:
            try:
                return future.result(timeout=_LOOK_EVERY)
            except NoValidWorkerError:
                self._give_up("has no workers any more")
            except TimeoutError:
                if future.done():  # just now, or its result is slow to come; or the timeout is the task's own
                    return future.result(timeout=PATIENCE)
            if self._has_workers():
                last_sign = monotonic()
            elif monotonic() - last_sign > PATIENCE:
                self._give_up(f"has had no workers for {PATIENCE:.0f} seconds")

    def _has_workers(self) -> bool:
        assert self._client is not None  # noqa: S101 -- there are futures
        if self._client.status != "running":
            return False
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        except (OSError, RuntimeError, ValueError):
            return False
        # One that is paused has run out of memory, and takes no tasks.
        return any(worker.get("status") != "paused" for worker in workers)

    @staticmethod
    def _give_up(what: str) -> None:
        raise RuntimeError(
            f"the Dask cluster {what}: they were killed, ran out of memory or lost their connection. Start "
            "workers (with more memory, or use smaller chunks) and repeat the fit (a checkpoint file lets "
            "it go on where it was)."
        )
