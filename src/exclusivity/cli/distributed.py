"""``erm fit --dask``: the files stay on disk, worker processes read them block by block."""

from __future__ import annotations

import argparse
import glob
import logging
import math
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from exclusivity.cli import options, training
from exclusivity.cli.data import Source, in_folder
from exclusivity.cli.errors import CommandError, FileError, UsageError, file_errors
from exclusivity.cli.matching import target_of
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from exclusivity.dask import Engine, FileLayout, Survey
    from exclusivity.datasets import FilePart

# Below this a worker spends its memory on the libraries that it imports.
_LEAST_MEMORY = 400_000_000
_UNITS = {"": 1, "m": 10**6, "mb": 10**6, "mib": 2**20, "g": 10**9, "gb": 10**9, "gib": 2**30}
_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 22, 1 << 27
# From 60 % of its limit on a worker writes to disk what it holds. Libraries take 230 MB of that; copies of a
# block that is read, checked and scaled, and the next block on its way, the rest.
_SHARE, _LIBRARIES, _COPIES = 0.6, 230_000_000, 6
_SECONDS_TO_CONNECT = 10


def memory(text: str) -> int:
    """A type for argparse: an amount of memory.

    Examples
    --------
    >>> memory("1GB"), memory("1.5 GiB")
    (1000000000, 1610612736)
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", text.strip().lower())
    unit = None if match is None else _UNITS.get(match[2])
    if match is None or unit is None:
        raise argparse.ArgumentTypeError(f"must be an amount of memory such as 1GB or 800MB; got {text!r}")
    n_bytes = round(float(match[1]) * unit)
    if n_bytes < _LEAST_MEMORY:
        least = f"{_LEAST_MEMORY / 1e6:.0f}MB"
        raise argparse.ArgumentTypeError(
            f"must be at least {least}, most of which a worker's libraries take; got {text!r}"
        )
    return n_bytes


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = parser.add_argument_group(
        "more rows than memory",
        "DATA may be many files, or a pattern in quotes. Workers read them block by block, and again in "
        "every pass over the rows where they do not fit into memory. The model is the same.",
    )
    group.add_argument(
        "--dask", action="store_true", help="train on Dask workers (pip install 'exclusivity[dask]')"
    )
    group.add_argument(
        "--workers",
        type=options.COUNT,
        metavar="N",
        help="worker processes on this machine (default: one for each core)",
    )
    group.add_argument(
        "--memory",
        type=memory,
        metavar="SIZE",
        help="memory of each of them, such as 1GB (default: this machine's, shared out)",
    )
    group.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="workers of a running Dask cluster instead, such as tcp://host:8786; they must see the files "
        "under the same paths",
    )


def check_options(args: argparse.Namespace) -> None:
    """Refuse what does not go together."""
    if not args.dask:
        for option in ("workers", "memory", "scheduler"):
            if getattr(args, option) is not None:
                raise UsageError(f"--{option} is for workers; add --dask.")
        _check_one_file(args.data)
        return
    if args.scheduler is not None:
        for option in ("workers", "memory"):
            if getattr(args, option) is not None:
                raise UsageError(
                    f"--{option} starts workers on this machine, and --scheduler uses those of a running "
                    "cluster; leave one of them out."
                )
    _check_model(args)


def _check_model(args: argparse.Namespace) -> None:
    """What needs all rows in one place."""
    from exclusivity.solvers import SOLVERS, resolve_solver

    if args.folds:
        raise UsageError("--folds is for rows in memory; with --dask keep some files apart for --test.")
    if args.jobs is not None:
        raise UsageError("--jobs is for rows in memory; with --dask say --workers.")
    if SOLVERS[resolve_solver(args.solver, args.exclusivity)].keeps_members:
        raise UsageError(
            f"--solver {args.solver} needs all rows in memory; with --dask use newton, exclusive or auto."
        )
    if 1 < args.exclusivity < math.inf:
        raise UsageError(
            f"--exclusivity {args.exclusivity:g}: between 1 and inf members need all rows in memory; with "
            "--dask use inf, or at most 1."
        )
    if "-" in args.data:
        raise UsageError("standard input can be read only once; with --dask give files.")


def _check_one_file(data: list[str]) -> None:
    found = data if len(data) > 1 else [] if Path(data[0]).exists() else glob.glob(data[0], recursive=True)
    if found:
        raise UsageError(f"{len(found)} files: one file at a time, or all of them with --dask.")


def train(args: argparse.Namespace, progress: Progress) -> training.Trained:
    """Fit on workers, from the files to a pipeline in this process."""
    sources = _sources(args)
    columns = sources[0].columns()
    reading = target_of(sources[0], columns, args)
    if columns == []:  # a damaged file, or no pyarrow: reading it says so
        sources[0].read(reading, progress)
    with _cluster(args, progress) as engine, _worker_errors(sources[0]):
        from exclusivity.dask import FileLayout

        layout = FileLayout.of(sources[0].format, columns, reading)
        started = perf_counter()
        parts = _parts(sources, layout, engine)
        title = sources[0].title if len(sources) == 1 else f"the {len(sources)} files"
        survey = _survey(engine, parts, layout, _scale(args, layout), progress, title)
        return _fit(
            args,
            engine,
            _Rows(parts, layout, survey, training.remembered(reading.target, columns)),
            progress,
            started,
        )


def _sources(args: argparse.Namespace) -> list[Source]:
    paths = []
    for name in args.data:
        found = [name] if Path(name).exists() else sorted(glob.glob(name, recursive=True))
        if not found and glob.has_magic(name):
            raise FileError(f"no file matches {name}; it was looked for in {Path.cwd()}.")
        paths += found or [name]
    for path in paths:
        if Path(path).is_dir():
            raise FileError(in_folder(path))
        with file_errors(path), open(path, "rb"):
            pass
    sources = [Source.of(path, args) for path in paths]
    other = next((source for source in sources if source.format is not sources[0].format), None)
    if other is not None:
        raise FileError(
            f"{sources[0].title} is read as {sources[0].format.name} and {other.title} as "
            f"{other.format.name}; use files of one format, or say which it is with --format."
        )
    if args.scheduler is not None:
        for source in sources:
            source.path = os.path.abspath(source.path)
    return sources


def _scale(args: argparse.Namespace, layout: FileLayout) -> str:
    if args.scale is not None:
        return str(args.scale)
    return "none" if layout.format.is_sparse else "standard"


@contextmanager
def _cluster(args: argparse.Namespace, progress: Progress) -> Iterator[Engine]:
    """Workers, until the end of the block, whatever ends it."""
    try:
        from dask.system import CPU_COUNT
        from distributed import Client, LocalCluster
    except ImportError:
        raise CommandError("--dask needs Dask; install it with: pip install 'exclusivity[dask]'.") from None
    from exclusivity.dask import Engine

    if args.scheduler is not None:
        progress.tell(f"connecting to {args.scheduler}")
        with _connected(Client, args.scheduler) as client:
            yield Engine(client)
        return
    progress.tell("starting workers")
    with ExitStack() as running:
        with _shielded():
            cluster = LocalCluster(
                n_workers=args.workers or CPU_COUNT,
                threads_per_worker=1,
                memory_limit=args.memory or "auto",
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
                env={"ARROW_DEFAULT_MEMORY_POOL": "system"},  # its own would keep what has been freed
            )
            client = Client(running.enter_context(cluster))
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
def _worker_errors(source: Source) -> Iterator[None]:
    """What workers say, in the words of the command line."""
    from exclusivity.datasets import DataFileError

    try:
        yield
    except DataFileError as error:
        raise FileError(source.in_our_words(str(error))) from error
    except RuntimeError as error:
        raise CommandError(str(error)) from error
    except TimeoutError as error:
        raise CommandError(
            f"the Dask cluster did not answer in time ({error}); is it overloaded? Repeat the command, or "
            "use fewer --workers."
        ) from error


def _parts(sources: list[Source], layout: FileLayout, engine: Engine) -> list[FilePart]:
    room = (_SHARE * engine.memory_per_thread - _LIBRARIES) / _COPIES
    block_bytes = int(min(max(room, _SMALLEST_BLOCK), _LARGEST_BLOCK))
    parts: list[FilePart] = []
    for source in sources:
        with file_errors(source.path):
            parts += layout.format.parts(source.path, layout.reading, block_bytes)
    if not parts:
        raise FileError(f"{sources[0].title} has no rows; check how it was written.")
    largest = max(parts, key=lambda part: part.memory)
    if largest.memory > engine.memory_per_thread / 3:
        raise FileError(
            f"{largest.path}: one row group takes {largest.memory / 1e6:.0f} MB, and a worker has "
            f"{engine.memory_per_thread / 1e6:.0f} MB for three copies of it; give workers more --memory, or "
            "write the file with smaller row groups."
        )
    return parts


def _survey(
    engine: Engine, parts: list[FilePart], layout: FileLayout, scale: str, progress: Progress, title: str
) -> Survey:
    from exclusivity.dask import survey_files

    total, done = sum(part.n_bytes for part in parts) / 1e6, 0

    def tell(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        progress.tell(f"reading {len(parts)} blocks: {done / 1e6:.0f} of {total:.0f} MB")

    progress.tell(f"reading {len(parts)} blocks: {total:.0f} MB")
    found = survey_files(engine, parts, layout, scale, tell)
    training.check_header(layout.names, layout.reading.target, found.labels, title)
    training.check_classes(found.labels, found.n_rows, title)
    return found


def _may_stay(n_bytes: int, engine: Engine) -> bool:
    """Whether workers can keep the rows beside their libraries."""
    from exclusivity.dask import fits

    each = engine.memory_per_thread
    # Without limits the quotient is not a number, and everything fits.
    too_much = n_bytes * each / engine.memory > _SHARE * each - _LIBRARIES
    return bool(fits(n_bytes, engine)) and not too_much


@dataclass(frozen=True)
class _Rows:
    parts: list[FilePart]
    layout: FileLayout
    survey: Survey
    target: str | int | None


def _fit(
    args: argparse.Namespace, engine: Engine, rows: _Rows, progress: Progress, started: float
) -> training.Trained:
    from sklearn.pipeline import Pipeline

    from exclusivity.dask import ERMClassifier, file_arrays, with_width

    survey = rows.survey
    n_rows, n_features = survey.n_rows, survey.n_features
    scaler = None if survey.sums is None else survey.sums.scaler(is_sparse=rows.layout.format.is_sparse)
    X, y = file_arrays(rows.parts, survey.sizes, with_width(rows.layout, n_features), scaler)
    stay = _may_stay(survey.n_bytes, engine)
    classifier = ERMClassifier(
        C=args.cost, persist=stay, **training.parameters(args, rows.layout.names, n_features)
    )
    with progress.of_fit(f"training on {n_rows} rows of {n_features} features"):
        classifier.fit(X, y)
    model = classifier.to_local().set_params(verbose=0)
    steps = [("classifier", model)] if scaler is None else [("scaler", scaler), ("classifier", model)]
    return training.Trained(
        Pipeline(steps),
        rows.layout.names,
        rows.target,
        (n_rows, n_features),
        perf_counter() - started,
        len(rows.parts),
        stay,
    )
