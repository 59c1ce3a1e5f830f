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

from exclusivity.io._whole_file import whole_file
from exclusivity.solvers import Callback, IterationState, Start


class Checkpoint:
    """The last point of every binary problem, written after each certified iterate.

    Parameters
    ----------
    path : path-like
        A .npz file, which may be there already: ValueError where it is no checkpoint, or a damaged one, and
        FileNotFoundError where it could not be written later on, because its folder is missing. It is written
        as a whole or not at all, and removed when the fit is over.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._name, self._lock = Path(path), repr(os.fspath(path)), Lock()
        self._fit, self._points = "", dict[str, Any]()
        if not self._path.parent.is_dir():
            raise FileNotFoundError(
                f"the checkpoint {self._name} needs a folder that does not exist; make it, or name another "
                "file."
            )
        if not self._path.exists():
            return
        try:
            with self._path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                self._points = dict(stored)
            fit = self._points.pop("fit")
            is_known = fit.dtype.kind == "U" and all(point.dtype == float for point in self._points.values())
        except (AttributeError, BadZipFile, EOFError, KeyError, TypeError, ValueError, zlib.error):
            is_known = False
        if not is_known:
            raise ValueError(
                f"the checkpoint {self._name} is damaged, or the file of something else. Remove it to begin "
                "the fit anew, or name another file."
            )
        self._fit = str(fit)

    def describe(self, fit: dict[str, Any]) -> None:
        """Say what the fit is about; a file that belongs to another fit is refused."""
        now = json.dumps(fit, sort_keys=True, default=_plain)
        if self._fit not in ("", now):
            raise ValueError(
                f"the checkpoint {self._name} belongs to another fit: {self._fit}. Remove the file, or name "
                "another one."
            )
        self._fit = now

    def start(self, number: int) -> Start | None:
        """Return the point of problem ``number``, if the file has it."""
        stored = self._points.get(str(number))
        return None if stored is None else Start(stored[:-1, None], stored[-1:])

    def watched(self, callbacks: Sequence[Callback | None]) -> list[Callback]:
        """Return callbacks that note every iterate before the given ones are called."""
        return [self._watch(number, callback) for number, callback in enumerate(callbacks)]

    def _watch(self, number: int, callback: Callback | None) -> Callback:
        def note(state: IterationState) -> bool:
            with self._lock, whole_file(self._path) as file:
                self._points[str(number)] = np.append(state.weights[:, 0], state.intercepts[0])
                np.savez(file, fit=np.array(self._fit), **self._points)
            return callback is not None and bool(callback(state))

        return note

    def remove(self) -> None:
        """Remove the file when the fit is over."""
        self._path.unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    """Return an array as a list; anything else that JSON does not know as text."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)
