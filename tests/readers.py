"""The readers of numbers behind ``read_table`` and ``erm``, one function for each format."""

import os

from exclusivity.io._formats import FORMATS, Reading


def _read(name, source, **settings):
    settings["ignore"] = ignore if isinstance(ignore := settings.get("ignore", ()), str) else tuple(ignore)
    source = os.fspath(source) if isinstance(source, os.PathLike) else source
    if name == "csv" and str(source).endswith(".tsv"):
        name = "tsv"
    return FORMATS[name].read(source, Reading(**settings))


def read_csv(source, **settings):
    return _read("csv", source, **settings)


def read_libsvm(source, **settings):
    return _read("libsvm", source, **settings)


def read_parquet(source, **settings):
    return _read("parquet", source, **settings)


def read_npy(source, **settings):
    return _read("npy", source, **settings)
