"""The folders where data files live: the user's own (``EXCLUSIVITY_DATA``), and the cache of downloads."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PureWindowsPath

VARIABLE = "EXCLUSIVITY_DATA"
"""The environment variable that names the user's folder."""

CACHE_VARIABLE = "EXCLUSIVITY_CACHE"
"""The environment variable that names the cache."""

_SUFFIXES = ("", ".bz2", ".gz")


def data_folder() -> Path | None:
    """The folder that ``EXCLUSIVITY_DATA`` names; None where the variable is unset or empty.

    Raises
    ------
    FileNotFoundError
        Where the variable names something that is not an existing directory.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, EXCLUSIVITY_DATA=folder):
    ...     data_folder() == Path(folder)
    True
    """
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    folder = Path(value)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{VARIABLE} is {value!r}, which is not an existing directory; "
            "set it to the folder that holds your data files, or unset it."
        )
    return folder


def find_data_file(name: str) -> Path | None:
    """The file ``name``, ``name.bz2`` or ``name.gz`` in the data folder, or None if there is none.

    Parameters
    ----------
    name : str
        A plain file name, without a folder.

    Examples
    --------
    >>> find_data_file("../secret")
    Traceback (most recent call last):
    ValueError: name must be a plain file name without a folder; got '../secret'.
    """
    # Windows' idea of a path is the wider one (both slashes, drives), so a name means the same everywhere.
    if name in ("", "..") or PureWindowsPath(name).name != name or "\0" in name:
        raise ValueError(f"name must be a plain file name without a folder; got {name!r}.")
    folder = data_folder()
    return None if folder is None else find_in(folder, name)


def find_in(folder: Path, name: str) -> Path | None:
    """The file ``name``, ``name.bz2`` or ``name.gz`` in a folder, or None if there is none."""
    candidates = (folder / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def cache_folder() -> Path:
    r"""The folder for downloads, which need not exist yet.

    It is what ``EXCLUSIVITY_CACHE`` says, else the place that the system has for such things:
    ``~/.cache/exclusivity`` (or ``$XDG_CACHE_HOME/exclusivity``), ``~/Library/Caches/exclusivity`` on macOS,
    ``%LOCALAPPDATA%\exclusivity\cache`` on Windows.

    Examples
    --------
    >>> import os
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, EXCLUSIVITY_CACHE="downloads"):
    ...     cache_folder().name
    'downloads'
    """
    value = os.environ.get(CACHE_VARIABLE, "")
    if value:
        return Path(value)
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "exclusivity" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "exclusivity"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    return (Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache") / "exclusivity"
