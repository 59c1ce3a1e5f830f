"""``erm fit --dask``: the files stay on disk, worker processes read them block by block."""

from __future__ import annotations

import argparse
import glob
import math
import os
import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from exclusivity.cli import options, tables, training, workers
from exclusivity.cli.data import Source, in_folder, reads_once
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.matching import target_of
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from exclusivity.dask._engine import Engine
    from exclusivity.dask._files import FileLayout, Survey
    from exclusivity.io._formats import FilePart

# Below this a worker spends its memory on the libraries that it imports.
_LEAST_MEMORY = 400_000_000
_UNITS = {"": 1, "m": 10**6, "mb": 10**6, "mib": 2**20, "g": 10**9, "gb": 10**9, "gib": 2**30}
_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 22, 1 << 27
# From 60 % of its limit on a worker writes to disk what it holds. Libraries take 230 MB of that; copies of a
# block that is read, checked and scaled, and the next block on its way, the rest.
_SHARE, _LIBRARIES, _COPIES = 0.6, 230_000_000, 6


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
    from exclusivity.solvers import resolve_solver

    if args.folds:
        raise UsageError("--folds is for rows in memory; with --dask keep some files apart for --test.")
    if args.jobs is not None:
        raise UsageError("--jobs is for rows in memory; with --dask say --workers.")
    if resolve_solver(args.solver, args.exclusivity) not in ("newton", "exclusive"):
        raise UsageError(
            f"--solver {args.solver} needs all rows in memory; with --dask use newton, exclusive or auto."
        )
    if 1 < args.exclusivity < math.inf:
        raise UsageError(
            f"--exclusivity {args.exclusivity:g}: between 1 and inf members need all rows in memory; with "
            "--dask use inf, or at most 1."
        )
    for path in (*args.data, *([] if args.groups is None else [args.groups])):
        if path == "-" or reads_once(path):
            name = "standard input" if path == "-" else path
            raise UsageError(f"{name} can be read only once; with --dask give files.")


def _check_one_file(data: list[str]) -> None:
    found = data if len(data) > 1 else []
    if not found and glob.has_magic(data[0]) and not Path(data[0]).exists():
        found = glob.glob(data[0], recursive=True)
    if found:
        raise UsageError(f"{len(found)} files: one file at a time, or all of them with --dask.")


def train(args: argparse.Namespace, progress: Progress) -> training.Trained:
    """Fit on workers, from the files to a pipeline in this process."""
    sources = _sources(args)
    columns = sources[0].columns()
    reading = target_of(sources[0], columns, args)
    if columns == []:  # a damaged file, or no pyarrow: reading it says so
        sources[0].read(reading, progress)
    reading = replace(reading, **tables.settings_of(args, sources[0], columns))
    with workers.cluster(args, progress) as engine, workers.worker_errors(sources[0]):
        from exclusivity.dask._files import FileLayout

        started = perf_counter()
        layout = FileLayout.of(sources[0].format, columns, reading)
        files = _Files(sources, layout, _parts(sources, layout, engine), engine, progress)
        return _fit(args, files, _rows(args, files), started)


@dataclass(frozen=True, eq=False)
class _Files:
    """What is trained on, and with whom."""

    sources: list[Source]
    layout: FileLayout
    parts: list[FilePart]
    engine: Engine
    progress: Progress

    @property
    def title(self) -> str:
        return self.sources[0].title if len(self.sources) == 1 else f"the {len(self.sources)} files"

    def survey(self, layout: FileLayout, scale: str | None) -> tuple[Survey, list[Any]]:
        """Pass over all parts: counts, classes, and what scaler or encoder have to know."""
        from exclusivity.dask._files import survey_files, survey_part

        total, done = sum(part.n_bytes for part in self.parts) / 1e6, 0

        def tell(n_bytes: int) -> None:
            nonlocal done
            done += n_bytes
            self.progress.tell(f"reading {len(self.parts)} blocks: {done / 1e6:.0f} of {total:.0f} MB")

        tell(0)
        look = partial(survey_part, layout=layout, scale=scale)
        found, *rest = survey_files(self.engine, self.parts, look, tell)
        training.check_header(layout.names, layout.reading.target, found.labels, self.title)
        training.check_classes(found.labels, found.n_rows, self.title)
        return found, rest


@dataclass(frozen=True, eq=False)
class _Rows:
    """Blocks to train on: X and y as dask arrays, scaler or encoder, size in memory, what columns hold."""

    X: Any
    y: Any
    transformer: Any
    n_features: int
    n_bytes: int
    columns: list[dict[str, Any]] | None = None


def _rows(args: argparse.Namespace, files: _Files) -> _Rows:
    """Return the rows: numbers where files hold nothing else and nobody asks for more, else a table."""
    from exclusivity.dask._files import find_rules
    from exclusivity.io._errors import NotANumberError

    reading, layout = files.layout.reading, files.layout
    if not layout.format.has_columns:
        return _number_rows(args, files)
    rules, remarks = find_rules(files.parts, layout)
    if not (reading.mixed or reading.kinds) and all(
        rule.is_plain and "'" not in rule.notation for rule in rules
    ):
        try:
            return _number_rows(args, files)
        except NotANumberError:
            pass
    tables.check_options(args)
    return _table_rows(args, files, rules, remarks or [""] * len(rules))


def _number_rows(args: argparse.Namespace, files: _Files) -> _Rows:
    from exclusivity.dask._files import file_arrays

    layout, is_sparse = files.layout, files.layout.format.is_sparse
    survey, _ = files.survey(layout, args.scale or ("none" if is_sparse else "standard"))
    scaler = None if survey.sums is None else survey.sums.scaler(is_sparse=is_sparse)
    X, y = file_arrays(files.parts, survey.sizes, layout.with_width(survey.n_features), scaler)
    return _Rows(X, y, scaler, survey.n_features, survey.n_bytes)


def _table_rows(args: argparse.Namespace, files: _Files, rules: list[Any], remarks: list[str]) -> _Rows:
    """Learn to encode a table from a sample of its rows, by the rules for tables in memory."""
    from exclusivity.dask._files import file_arrays
    from exclusivity.tables import ColumnTable, TableEncoder

    titles, kinds = files.layout.titles, files.layout.reading.kinds
    if not files.layout.format.is_text:
        for name, rule in zip(titles, rules, strict=True):
            tables.check_typed(kinds.get(name), rule.kind, name, files.title)
        rules = [
            replace(rule, kind=kinds.get(name, rule.kind)) for name, rule in zip(titles, rules, strict=True)
        ]
    layout = files.layout.with_rules(rules)
    survey, (sample,) = files.survey(layout, None)
    found = [tables.Found(*each) for each in zip(rules, remarks, sample.n_lost.tolist(), strict=True)]
    tables.warn_of_losses(titles, found, survey.n_rows)
    groups = training.read_groups(args.groups, layout.names, len(titles))
    chosen = tables.said_to_be_categories(titles, kinds)
    encoder = TableEncoder(training.numeric(args), categorical=chosen, feature_groups=groups)
    table, n_missing = ColumnTable(sample.columns), sample.n_missing.tolist()
    encoder._learn_from_sample(table, [rule.kind for rule in rules], n_missing, survey.n_rows)
    tables.remember(encoder, found)
    tables.warn_of_levels(encoder, titles, survey.n_rows)
    if len(table) == survey.n_rows:
        training.warn_of_identifiers(training.places_of_row_names(table), titles, survey.n_rows)
    X, y = file_arrays(files.parts, survey.sizes, layout, encoder)
    columns = tables.document(encoder, titles, [read.note for read in found])
    slots = sum(each.code.slots for each in encoder.columns_ if each.code)
    n_bytes = survey.n_rows * (12 * slots if encoder.sparse_output_ else 8 * X.shape[1])
    return _Rows(X, y, encoder, len(titles), n_bytes, columns)


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


def _may_stay(n_bytes: int, engine: Engine) -> bool:
    """Whether workers can keep the rows beside their libraries."""
    from exclusivity.dask._rows import fits

    each = engine.memory_per_thread
    # Without limits the quotient is not a number, and everything fits.
    too_much = n_bytes * each / engine.memory > _SHARE * each - _LIBRARIES
    return bool(fits(n_bytes, engine)) and not too_much


def _fit(args: argparse.Namespace, files: _Files, rows: _Rows, started: float) -> training.Trained:
    from sklearn.pipeline import Pipeline

    from exclusivity.dask import ERMClassifier
    from exclusivity.tables import TableEncoder

    n_rows, n_features = rows.X.shape[0], rows.n_features
    stay = _may_stay(rows.n_bytes, files.engine)
    settings = training.parameters(args, files.layout.names, n_features)
    if isinstance(rows.transformer, TableEncoder):
        settings["feature_groups"] = rows.transformer.feature_groups_ if args.exclusivity > 1 else None
    classifier = ERMClassifier(persist=stay, **settings)
    with files.progress.of_fit(f"training on {n_rows} rows of {n_features} features"):
        classifier.fit(rows.X, rows.y)
    model = classifier.to_local().set_params(verbose=0)
    if rows.columns is not None:
        model.set_params(feature_groups=None)  # in a pipeline the encoder hands them on
    step = "scaler" if rows.columns is None else "encoder"
    steps = [(step, rows.transformer), ("classifier", model)][rows.transformer is None :]
    return training.Trained(
        Pipeline(steps),
        files.layout.names,
        files.layout.reading.target,
        (n_rows, n_features),
        perf_counter() - started,
        len(files.parts),
        stay,
        columns=rows.columns,
    )
