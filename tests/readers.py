"""Readers of numbers alone, one function for each format: every feature of every row must be a number."""

import io
import os
from contextlib import suppress
from types import SimpleNamespace

from exclusivity.io._cells import ColumnRule
from exclusivity.io._reading import DataFileError, Reading
from exclusivity.io.tables import FORMATS

NUMBER = ColumnRule("number", ".", required=True)


def read_csv(source, **settings):
    return _read("csv", source, **settings)


def read_libsvm(source, **settings):
    return _read("libsvm", source, **settings)


def read_parquet(source, **settings):
    return _read("parquet", source, **settings)


def read_npy(source, **settings):
    return _read("npy", source, **settings)


def _read(name, source, **settings):
    settings["ignore"] = ignore if isinstance(ignore := settings.get("ignore", ()), str) else tuple(ignore)
    source = os.fspath(source) if isinstance(source, os.PathLike) else source
    if name == "csv" and str(source).lower().removesuffix(".gz").endswith(".tsv"):
        name = "tsv"
    reading = Reading(**settings)
    if name in ("csv", "tsv", "parquet"):
        reading = Reading(**settings, rules=_rules(FORMATS[name], source, reading))
    table = FORMATS[name].read(source, reading)
    if not hasattr(table.data, "columns"):
        return SimpleNamespace(data=table.data, target=table.target, names=None)
    names = tuple(table.data.columns)
    is_named = all(isinstance(name, str) for name in names)
    return SimpleNamespace(data=table.data.to_numpy(), target=table.target, names=names if is_named else None)


def _rules(kind, source, reading):
    """A rule for every column that is neither target nor ignored; None where the file is wrong."""
    if not isinstance(source, (str, io.BytesIO)) or (isinstance(source, str) and not os.path.isfile(source)):
        return None
    copy = source if isinstance(source, str) else io.BytesIO(source.getvalue()[source.tell() :])
    with suppress(DataFileError):
        columns = kind.columns(copy, reading)
        names = columns if isinstance(columns, list) else list(range(columns))
        chosen = [reading.target, *reading.ignore]
        apart = {names[c] if isinstance(c, int) and -len(names) <= c < len(names) else c for c in chosen}
        if len(set(names)) == len(names):
            return {name: NUMBER for name in names if name not in apart} or None
    return None
