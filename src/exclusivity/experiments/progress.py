"""Progress of a long run: a bar where rich and a terminal are there, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from time import monotonic
from typing import Any, TextIO


class Progress:
    """Silence; what a library call wants."""

    def start(self, total: int, *, done: int) -> None:
        """Begin with ``done`` of ``total`` tasks known from an earlier run."""

    def advance(self, label: str) -> None:
        """One more task is done."""

    def stop(self) -> None:
        """The run is over, or was cut short."""


class PlainProgress(Progress):
    """A line now and then.

    Parameters
    ----------
    stream : text file
        Where to.
    interval : float
        Least seconds between two lines; the first and the last are always written.
    command : str
        What the lines begin with.
    """

    def __init__(self, stream: TextIO, interval: float = 5.0, command: str = "erm reproduce") -> None:
        self._stream, self._interval, self._command = stream, interval, command

    def start(self, total: int, *, done: int) -> None:
        """Say how much there is to do."""
        self._total, self._done = total, done
        self._started = self._last = monotonic()
        resumed = f", {done} of them known from an earlier run" if done else ""
        self._write(f"{total} tasks{resumed}")

    def advance(self, label: str) -> None:
        """Count, and tell if it is time."""
        self._done += 1
        now = monotonic()
        if self._done == self._total or now - self._last >= self._interval:
            self._last = now
            self._write(f"{self._done}/{self._total} after {now - self._started:.0f} s: {label}")

    def _write(self, text: str) -> None:
        print(f"{self._command}: {text}", file=self._stream, flush=True)


class RichProgress(Progress):
    """A bar with the time left."""

    def __init__(self) -> None:
        from rich import console, progress  # noqa: PLC0415 -- optional

        self._bar: Any = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            console=console.Console(stderr=True),
        )

    def start(self, total: int, *, done: int) -> None:
        """Draw the bar."""
        self._task = self._bar.add_task("starting", total=total, completed=done)
        self._bar.start()

    def advance(self, label: str) -> None:
        """Move the bar."""
        self._bar.update(self._task, advance=1, description=label)

    def stop(self) -> None:
        """Leave the bar as it is."""
        self._bar.stop()


def terminal_progress(stream: TextIO | None = None, *, command: str = "erm reproduce") -> Progress:
    """The best that the terminal on standard error can show."""
    stream = sys.stderr if stream is None else stream
    if stream.isatty() and find_spec("rich") is not None:
        return RichProgress()
    return PlainProgress(stream, command=command)
