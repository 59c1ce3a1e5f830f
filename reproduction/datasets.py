"""The nine data sets of the paper: from a folder of yours, from the package, or from the LIBSVM site."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_file, get_data_home
from sklearn.utils import Bunch

from exclusivity.io import DataFileError, load_dataset as load_bundled, read_table
from exclusivity.io.datasets import BUNDLED, describe, scale_features

VARIABLE = "EXCLUSIVITY_DATA"
"""The environment variable that names a folder with LIBSVM files."""

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
"""The LIBSVM site's data sets with two classes."""

Floats = NDArray[np.float64]

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
    content = json.loads(Path(__file__).with_name("datasets.json").read_text(encoding="utf-8"))
    for facts in content.values():
        facts |= {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    return {name: DatasetInfo(name, **facts) for name, facts in content.items()}


REGISTRY = _registry()
"""Name to facts, in the order of the paper."""


def load_dataset(name: str, scaled: bool = True, *, download: bool = True) -> Bunch:
    """Load one of the nine data sets of the paper.

    It is taken from the first of these places that has it: the folder that ``EXCLUSIVITY_DATA`` names (LIBSVM
    files with their names on the LIBSVM site, also with .bz2 or .gz), the package, scikit-learn's data folder
    (:func:`sklearn.datasets.get_data_home`), the LIBSVM site. The order of the rows differs between them.

    Parameters
    ----------
    name : str
        "sonar", "german", "australian", "ijcnn1", "heart", "ionosphere", "diabetes", "liver" or "splice".
    scaled : bool, default True
        Whether each feature is mapped linearly to [-1, 1] over the whole set, as on the LIBSVM site. False
        gives the original values; there are none of "ijcnn1".
    download : bool, default True
        Whether the LIBSVM site may be asked.

    Returns
    -------
    sklearn.utils.Bunch
        As of :func:`exclusivity.io.load_dataset`.

    Raises
    ------
    FileNotFoundError
        Where no place has it; the message says how to get it.
    DataFileError
        Where a file does not hold the set that its name says.
    ValueError
        Where there is no such set, or no original values of it.
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
    if path is None and name in BUNDLED:
        return load_bundled(name, scaled)
    if path is None:
        path, is_scaled = _fetched(info, scaled, download), True
    X, y = _read(info, path)
    if scaled and not is_scaled:
        X = scale_features(X)
    names = None if info.feature_names is None else list(info.feature_names)
    facts = {"title": info.title, "classes": info.classes, "licence_of_the_data": info.licence}
    return describe(name, X, y, names, facts, scaled, str(path), "as where you got it")


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
    wanted = [(file, True) for file in info.scaled_files] if scaled else []
    wanted += [(file, False) for file in info.raw_files]
    folders = [data_folder()] if info.name in BUNDLED else [data_folder(), Path(get_data_home())]
    for folder in folders:
        for file, is_scaled in wanted:
            for suffix in ("", ".bz2", ".gz"):
                if folder is not None and (path := folder / f"{file}{suffix}").is_file():
                    return path, is_scaled
    return None, False


def _fetched(info: DatasetInfo, scaled: bool, download: bool) -> Path:
    """Download the LIBSVM site's file; it gets its name only if its checksum is right."""
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


def _read(info: DatasetInfo, path: Path) -> tuple[Floats, Floats]:
    """Read a LIBSVM file; refuse another set, or another version of it."""
    table = read_table(path, format="libsvm", n_features=info.n_features, max_bytes=_MAX_BYTES)
    X, y = table.data.toarray(), np.asarray(table.target, dtype=float)
    positive, negative = int(np.sum(y == 1)), int(np.sum(y == -1))
    if (len(X), positive, negative) != (info.n_rows, info.n_positive, info.n_rows - info.n_positive):
        cause = (
            f"found {len(X)} rows with {positive} labels +1 and {negative} labels -1; expected the set "
            f"{info.name!r}: {info.n_rows} rows of {info.n_features} features with {info.n_positive} and "
            f"{info.n_rows - info.n_positive}."
        )
        raise DataFileError(str(path), None, None, cause)
    return X, y
