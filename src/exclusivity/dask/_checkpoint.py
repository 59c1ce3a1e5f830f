"""Keep the iterates of a fit in a file, so that a fit that broke off goes on where it was."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any
from zipfile import BadZipFile

import numpy as np

from exclusivity._typing import Floats
from exclusivity.io._whole_file import whole_file
from exclusivity.solvers import Callback, IterationState, Start


class Checkpoint:
    """The last point of every binary problem, written after each certified iterate.

    Parameters
    ----------
    path : path-like
        A .npz file; it is written as a whole or not at all, and removed when the fit is over.
    fit : dict
        What the fit is about. A file that belongs to another fit is refused.
    """

    def __init__(self, path: str | os.PathLike[str], fit: dict[str, Any]) -> None:
        self._path, self._lock = Path(path), Lock()
        self._fit = json.dumps(fit, sort_keys=True, default=_plain)
        self._points: dict[str, Floats] = read_checkpoint(path)
        found = str(self._points.pop("fit", self._fit))
        if found != self._fit:
            raise ValueError(
                f"the checkpoint {os.fspath(path)!r} belongs to another fit: {found}. Remove the file, or "
                "name another one."
            )

    def start(self, number: int) -> Start | None:
        """Return the point of problem ``number``, if the file has it."""
        stored = self._points.get(str(number))
        return None if stored is None else Start(stored[:-1, None], stored[-1:])

    def watched(self, callbacks: Sequence[Callback | None]) -> list[Callback | None]:
        """Return callbacks that note every iterate before the given ones are called."""
        return [self._watch(number, callback) for number, callback in enumerate(callbacks)]

    def _watch(self, number: int, callback: Callback | None) -> Callback:
        def note(state: IterationState) -> bool:
            with self._lock, whole_file(self._path) as file:
                self._points[str(number)] = np.append(state.weights[:, 0], state.intercepts[0])
                np.savez(file, fit=np.array(self._fit), **self._points)  # type: ignore[arg-type]
            return callback is not None and bool(callback(state))

        return note

    def remove(self) -> None:
        """Remove the file when the fit is over."""
        self._path.unlink(missing_ok=True)


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the arrays of a checkpoint, or none where there is no file yet.

    Raises
    ------
    FileNotFoundError
        Where the file could not be written later on, because its folder is missing.
    ValueError
        Where the file is no checkpoint, or a damaged one.
    """
    file = Path(path)
    if not file.parent.is_dir():
        raise FileNotFoundError(
            f"the checkpoint {os.fspath(path)!r} needs a folder that does not exist; make it, or name "
            "another file."
        )
    if not file.exists():
        return {}
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = dict(stored)
        points = [point for name, point in arrays.items() if name != "fit"]
        is_known = arrays["fit"].dtype.kind == "U" and all(point.dtype == float for point in points)
    except (AttributeError, BadZipFile, EOFError, KeyError, TypeError, ValueError, zlib.error):
        is_known = False
    if not is_known:
        raise ValueError(
            f"the checkpoint {os.fspath(path)!r} is damaged, or the file of something else. Remove it to "
            "begin the fit anew, or name another file."
        )
    return arrays


def _plain(value: Any) -> Any:
    """Return an array as a list; anything else that JSON does not know as text."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)
