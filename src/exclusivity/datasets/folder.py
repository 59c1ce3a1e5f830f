"""The folder where a user keeps data files: the environment variable ``EXCLUSIVITY_DATA``."""

from __future__ import annotations

import os
from pathlib import Path, PureWindowsPath

VARIABLE = "EXCLUSIVITY_DATA"
"""The environment variable that names the folder."""

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
    if folder is None:
        return None
    candidates = (folder / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)
