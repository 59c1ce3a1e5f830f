"""``erm fit --dask``: the files stay on disk, worker processes read them block by block."""

from __future__ import annotations

import argparse
import glob
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from exclusivity.cli import options, training
from exclusivity.cli.data import Source
from exclusivity.cli.files import CommandError, FileError, UsageError, file_errors
from exclusivity.cli.output import Progress
from exclusivity.io._cells import MISSING

_SECONDS_TO_CONNECT = 10
_SAMPLE_ROWS = 100_000
"""Rows from which an encoder learns what columns of a table hold."""

ARGUMENTS = (
    (
        "more rows than memory",
        "DATA may be many CSV or Parquet files, or a pattern in quotes. Workers read them block by block, "
        "and again in every pass over the rows where they do not fit into memory.",
    ),
    ("--dask", None, None, "train on Dask workers (pip install 'exclusivity[cli,dask]')"),
    ("--workers", "N", options.COUNT, "worker processes on this machine (default: one for each core)"),
    ("--memory", "SIZE", str, "memory of each of them, such as 1GB (default: this machine's, shared)"),
    ("--scheduler", "ADDRESS", str, "a running Dask cluster instead, such as tcp://host:8786"),
)


def check_options(args: argparse.Namespace) -> None:
    """Refuse what does not go together."""
    if not args.dask:
        options.refuse(args, ("workers", "memory", "scheduler"), "is for workers; add --dask.")
        if len(args.data) > 1 or (glob.has_magic(args.data[0]) and not Path(args.data[0]).exists()):
            raise UsageError("one file at a time, or several with --dask.")
        return
    if args.scheduler is not None:
        options.refuse(args, ("workers", "memory"), "starts workers; leave it or --scheduler out.")
    in_memory = ["max_broken", "sample_weight", "drop_missing_target", "features"]
    options.refuse(
        args, in_memory + ["folds"] * bool(args.folds), "is for rows in memory; leave it or --dask out."
    )


@contextmanager
def cluster(args: argparse.Namespace, progress: Progress) -> Iterator[None]:
    """Provide workers until the end of the block, whatever ends it."""
    try:
        from dask.system import CPU_COUNT
        from dask.utils import parse_bytes
        from distributed import Client, LocalCluster
    except ImportError:
        message = "--dask needs Dask; install it with: pip install 'exclusivity[cli,dask]'."
        raise CommandError(message) from None
    try:
        memory = parse_bytes(args.memory) if args.memory else "auto"
    except ValueError:
        raise UsageError(f"--memory must be an amount such as 1GB or 800MB; got {args.memory!r}.") from None
    with ExitStack() as running:
        if args.scheduler is not None:
            progress.update(f"connecting to {args.scheduler}")
            try:
                client = running.enter_context(Client(args.scheduler, timeout=_SECONDS_TO_CONNECT))
                client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
            except (OSError, ValueError) as error:
                raise CommandError(
                    f"no Dask scheduler with workers answers at {args.scheduler} ({error}); start one with "
                    f"'dask scheduler', and workers with 'dask worker {args.scheduler}'."
                ) from error
        else:
            progress.update("starting workers")
            with _shielded():
                workers = LocalCluster(
                    n_workers=args.workers or CPU_COUNT,
                    threads_per_worker=1,
                    memory_limit=memory,
                    host="127.0.0.1",
                    # Even without a dashboard Dask serves pages here, to whoever can reach them.
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                    env={"ARROW_DEFAULT_MEMORY_POOL": "system"},  # its own would keep what has been freed
                )
                running.enter_context(Client(running.enter_context(workers)))
        yield


@contextmanager
def _shielded() -> Iterator[None]:
    """Keep Ctrl-C, which is for the command, from threads and processes that start here: it ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover -- Windows
        yield
        return
    resource_tracker.ensure_running()  # it would lift the mask when it starts later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def train(args: argparse.Namespace, progress: Progress) -> training.Trained:
    """Fit on workers, from the files to a pipeline in this process."""
    sources = _sources(args)
    first = sources[0]
    if not first.columns:  # a damaged file, or no pyarrow: reading it says so
        first.read()
    settings = training.reading_settings(args, first)
    with cluster(args, progress), _worker_errors():
        from dask import config

        with config.set({"dataframe.convert-string": False}):
            return _train(args, sources, settings, progress)


@contextmanager
def _worker_errors() -> Iterator[None]:
    """Turn errors of workers into those of the command."""
    try:
        yield
    except TimeoutError as error:
        raise CommandError(f"the Dask cluster did not answer in time ({error}).") from error
    except RuntimeError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise FileError(f"a worker cannot read the file: {error}") from error
    except ValueError as error:
        if getattr(error, "parameter", None):
            raise
        raise FileError(
            f"{error} Where a column holds numbers and texts, --numeric COL takes the texts for missing "
            "values, --categorical COL takes all for categories, --drop COL leaves the column out."
        ) from error


def _sources(args: argparse.Namespace) -> list[Source]:
    sources: list[Source] = []
    for name in args.data:
        matches = [] if Path(name).exists() else sorted(glob.glob(name, recursive=True))
        for path in matches or [name]:
            sources.append(source := Source(path, args))
            with file_errors(path), open(source.path, "rb"):
                pass
            if not source.format.has_columns:
                kind = f"{source.title} is read as {source.format.name}"
                raise UsageError(f"--dask reads CSV and Parquet files; {kind}.")
    return sources


def _frame(source: Source, names: list[Any], settings: dict[str, Any]) -> Any:
    """Return some columns of a file as a Dask DataFrame."""
    from dask import dataframe

    path, known = os.path.abspath(source.path), source.columns or []
    if absent := [name for name in names if name not in known]:
        raise FileError(
            f"{source.title} has no column {absent[0]!r}; expected the same columns in all files."
        )
    if not source.format.is_text:
        found = dataframe.read_parquet(path)[names]
    else:
        found = dataframe.read_csv(
            path,
            sep=source.delimiter,
            header=0 if source.header else None,
            names=known,
            skipinitialspace=True,
            dtype=dict.fromkeys([*settings["categorical"], *settings["numeric"]], object),
            na_values=list(MISSING),
            keep_default_na=False,
            decimal=settings["decimal"] or ".",
            assume_missing=True,
            blocksize=None if path.endswith((".gz", ".bz2")) else "default",
        )[names]
    for name in settings["numeric"]:
        found[name] = found[name].map_partitions(_as_numbers, settings["decimal"], meta=(name, float))
    return found


def _as_numbers(cells: Any, decimal: str) -> Any:
    """Return texts as numbers, others than numbers as missing values."""
    import pandas as pd

    if decimal == ",":
        cells = cells.map(lambda text: text.replace(".", "").replace(",", "."), na_action="ignore")
    return pd.to_numeric(cells, errors="coerce")


def _train(
    args: argparse.Namespace, sources: list[Source], settings: dict[str, Any], progress: Progress
) -> training.Trained:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    import dask
    from dask import dataframe
    from exclusivity.dask import ERMClassifier

    started, target = perf_counter(), settings["target"]
    title = sources[0].title if len(sources) == 1 else f"the {len(sources)} files"
    names = [name for name in sources[0].columns or () if name not in (target, *settings["ignore"])]
    frames = [_frame(source, [*names, target], settings) for source in sources]
    for name in (*names, target):
        if len({frame[name].dtype.kind == "O" for frame in frames}) > 1:
            raise ValueError(f"column {name!r} holds numbers in some files, and texts in others.")
    rows = dataframe.concat(frames)
    X, y = rows[names], rows[target]
    are_numbers = all(dtype.kind in "iuf" for dtype in X.dtypes)
    progress.update(f"reading {rows.npartitions} blocks")
    moments = [X.mean(), X.var(ddof=0), X.min(), X.max()] if are_numbers else []
    counts, gaps, start, *found = dask.compute(
        y.value_counts(dropna=False, sort=False, split_out=1), X.isna().any(), X.partitions[0], *moments
    )
    y, n_rows = _labels(y, counts, title), int(counts.sum())
    training.check_target(map(str, names), target, np.unique(counts.index), n_rows, title)
    training.warn_of_row_names(start, names)
    names_of_features = names if isinstance(names[0], str) else None
    given, described = training.parameters(args, names_of_features, len(names)), None
    if are_numbers and training.asked_for_by(args) is None and not gaps.any():
        steps = _scaler(args.scale or "standard", found, n_rows)
    else:
        training.check_options(args)
        sample = X.sample(frac=_SAMPLE_ROWS / n_rows, random_state=args.seed) if n_rows > _SAMPLE_ROWS else X
        encoder = training.encoder(args, given.pop("feature_groups"), names, settings["categorical"])
        encoder.set_params(sparse_output=False).fit(sample.compute())
        described = training.describe(encoder.columns_, names)
        given["feature_groups"] = encoder.feature_groups_ if (args.exclusivity or 1) > 1 else None
        steps = [("encoder", encoder)]
    width = len(encoder.sources_ if described is not None else names)
    meta = pd.DataFrame(np.empty((0, width)))
    with progress.of_fit(f"training on {n_rows} rows of {len(names)} features"):
        classifier = ERMClassifier(**given).fit(X.map_partitions(_encoded, steps, width, meta=meta), y)
    model = classifier.to_local().set_params(verbose=0)
    if described is not None:
        model.set_params(feature_groups=None)  # in a pipeline the encoder hands them on
    pipeline, seconds = Pipeline([*steps, ("classifier", model)]), perf_counter() - started
    more = {"blocks": rows.npartitions} | ({} if described is None else {"columns": described})
    return training.Trained(pipeline, names_of_features, target, (n_rows, len(names)), seconds, more)


def _labels(y: Any, counts: Any, title: str) -> Any:
    """Return classes as whole numbers or as they are; refuse missing ones."""
    labels = counts.index
    if labels.hasnans:
        n_missing, n_rows = int(counts[labels.isna()].sum()), int(counts.sum())
        cause = f"{n_missing} of {n_rows} rows have no class. Leave such rows out, or give them a class."
        raise FileError(f"{title}: {cause}")
    if labels.dtype.kind != "f" or not (labels == np.rint(labels)).all():
        return y
    counts.index = labels.astype(np.int64)
    return y.astype(np.int64)


def _scaler(kind: str, moments: list[Any], n_rows: int) -> list[tuple[str, Any]]:
    """Return the scaler of all rows from their moments, that of two rows with the same moments, as a step."""
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    mean, variance, least, largest = (np.asarray(moment, dtype=np.float64) for moment in moments)
    if kind == "none":
        return []
    scaler: Any = MinMaxScaler((-1, 1)).fit(np.array([least, largest]))
    if kind == "standard":
        scaler = StandardScaler().fit(mean + np.sqrt(variance) * np.array([[-1.0], [1.0]]))
        scaler.n_samples_seen_ = np.int64(n_rows)
    return [("scaler", scaler)]


def _encoded(part: Any, steps: list[tuple[str, Any]], width: int) -> Any:
    """Return the rows of a partition, scaled or encoded."""
    import pandas as pd

    if not steps:
        return part.set_axis(range(width), axis=1)
    ((name, step),) = steps
    rows = part if name == "encoder" else part.to_numpy()
    return pd.DataFrame(step.transform(rows) if len(part) else np.empty((0, width)), index=part.index)
