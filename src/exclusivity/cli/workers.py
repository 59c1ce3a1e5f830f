"""Workers of ``erm fit --dask``: started here or found on a running cluster; what they say when they fail."""

from __future__ import annotations

import argparse
import logging
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from exclusivity.cli.data import Source
from exclusivity.cli.files import CommandError, FileError
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from exclusivity.dask._engine import Engine

_SECONDS_TO_CONNECT = 10


@contextmanager
def cluster(args: argparse.Namespace, progress: Progress) -> Iterator[Engine]:
    """Workers, until the end of the block, whatever ends it."""
    try:
        from dask.system import CPU_COUNT
        from distributed import Client, LocalCluster
    except ImportError:
        raise CommandError("--dask needs Dask; install it with: pip install 'exclusivity[dask]'.") from None
    from exclusivity.dask._engine import Engine

    if args.scheduler is not None:
        progress.tell(f"connecting to {args.scheduler}")
        with _connected(Client, args.scheduler) as client:
            yield Engine(client)
        return
    progress.tell("starting workers")
    with ExitStack() as running:
        with _shielded():
            workers = LocalCluster(
                n_workers=args.workers or CPU_COUNT,
                threads_per_worker=1,
                memory_limit=args.memory or "auto",
                host="127.0.0.1",
                # Even without a dashboard Dask serves pages here, to whoever can reach them.
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                env={"ARROW_DEFAULT_MEMORY_POOL": "system"},  # its own would keep what has been freed
            )
            client = Client(running.enter_context(workers))
            running.enter_context(client)
        yield Engine(client)


@contextmanager
def _shielded() -> Iterator[None]:
    """Threads and processes that start here never see Ctrl-C, which is for the command: it ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover -- Windows
        yield
        return
    resource_tracker.ensure_running()  # it would lift the mask when it starts later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _connected(client: Any, address: str) -> Any:
    try:
        found = client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise CommandError(
            f"no Dask scheduler answers at {address} ({error}); start one with 'dask scheduler', and workers "
            f"with 'dask worker {address}'."
        ) from error
    if not found.scheduler_info(n_workers=-1)["workers"]:
        found.close()
        raise CommandError(
            f"the Dask scheduler at {address} has no workers; start some: dask worker {address}"
        )
    return found


@contextmanager
def worker_errors(source: Source) -> Iterator[None]:
    """What workers say, in the words of the command line."""
    from exclusivity.io._errors import DataFileError

    try:
        yield
    except DataFileError as error:
        raise FileError(source.in_our_words(error)) from error
    except RuntimeError as error:
        raise CommandError(str(error)) from error
    except TimeoutError as error:
        raise CommandError(
            f"the Dask cluster did not answer in time ({error}); is it overloaded? Repeat the command, or "
            "use fewer --workers."
        ) from error
