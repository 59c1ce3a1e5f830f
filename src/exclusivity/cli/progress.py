"""Progress on standard error: one line that changes at a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from time import monotonic
from typing import Any, TextIO

from exclusivity._text import printable

_TERMINAL_INTERVAL = 0.1
_LOG_INTERVAL = 5.0


class Progress:
    """Show how far a command is: lines that begin with its name, on standard error or another stream."""

    def __init__(self, command: str, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._command, self._quiet = command, quiet
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        # A log of a quick command stays empty: its first line comes after some seconds.
        self._last = 0.0 if self._is_terminal else monotonic()

    def update(self, text: str) -> None:
        """Show the text, unless the last one is too fresh."""
        now = monotonic()
        if self._quiet or now - self._last < (_TERMINAL_INTERVAL if self._is_terminal else _LOG_INTERVAL):
            return
        self._last = now
        line = f"erm {self._command}: {printable(text)}"
        if self._is_terminal:
            line = f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}"
        self._stream.write(line if self._is_terminal else f"{line}\n")
        self._stream.flush()

    def write(self, text: str) -> int:
        """Show a line that a verbose fit prints: this is its standard output."""
        if line := text.strip():
            self.update(line.removeprefix("[ERM] "))
        return len(text)

    def flush(self) -> None:
        """Do nothing: lines are flushed."""

    def clear(self) -> None:
        """Remove the line at a terminal, before something else is written."""
        if self._is_terminal and not self._quiet:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    @contextmanager
    def of_fit(self, text: str) -> Iterator[None]:
        """Show what a verbose fit prints instead of printing it."""
        self.update(text)
        stdout: Any = self
        with redirect_stdout(stdout):
            yield
        self.clear()
