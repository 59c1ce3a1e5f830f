"""One BLAS thread where products are too small to be shared out.

A solver works on blocks of rows that fit into a cache and on systems of the size of the smaller side of X. Up
to thousands of columns a second thread waits longer than it works, and waiting is done at full speed: on a
busy machine it multiplies the processor time of a fit. The number of threads belongs to the whole process, so
of fits that run side by side (``n_jobs``, joblib, Dask's threads) or one inside the other only the first sets
it, and gives the old number back: two that undo each other's limit could leave it behind for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

LARGE_SIDE = 4096
"""From this size of the smaller side of X on, BLAS keeps its threads."""

_is_limited = Lock()


@cache
def _controller() -> Any:
    """Finding the loaded libraries costs milliseconds, once per process; a limit then 20 microseconds."""
    return ThreadpoolController()


@contextmanager
def fitting_threads(n_rows: int, n_features: int) -> Iterator[None]:
    """Solve inside: with one BLAS thread for small systems, and with all of them for large ones."""
    if min(n_rows, n_features) >= LARGE_SIDE or not _is_limited.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _is_limited.release()
