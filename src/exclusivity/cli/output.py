"""Results: text for people, JSON for scripts, CSV files of predictions; and progress on standard error."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, TextIO

from exclusivity._text import CONTROLS_IN_LINES, printable
from exclusivity.cli.files import file_errors

_SHARES = (
    *("accuracy", "share", "precision", "recall", "f1", "detected", "stand", "stands", "missing"),
    *("in_training", "outside", "unseen"),
)
_MOST_LINES, _MOST_SHOWN = 60, 10
_TERMINAL_INTERVAL, _LOG_INTERVAL = 0.1, 5.0  # seconds between two lines of progress


def show(
    document: Mapping[str, Any],
    *,
    as_json: bool,
    words: Mapping[str, str | None] | None = None,
    hidden: Sequence[str] = (),
) -> None:
    """Print a result: one JSON document, or lines of names and values and then the tables in it.

    A list of dicts is a table, without its ``hidden`` columns. ``words`` are texts in place of values, None
    for what only JSON has; entries without a value are left out of the text.
    """
    if as_json:
        write_json(None, document)
        return
    words = words or {}
    known = {key: value for key, value in document.items() if words.get(key, "") is not None}
    tables = {key: rows for key, rows in known.items() if _is_table(rows) and key not in words}
    texts = {key: words.get(key) or text_of(key, value) for key, value in known.items() if key not in tables}
    print_facts((_title(key), text) for key, text in texts.items() if text)
    for rows in tables.values():
        shown = [row for place, row in enumerate(rows) if place < _MOST_LINES or row.get("note")]
        if not shown:
            continue
        print()
        keys = [key for key in shown[0] if key not in hidden and any(row[key] is not None for row in shown)]
        lines = [[text_of(key, row[key]) for key in keys] for row in shown]
        print_table(
            [_title(key) for key in keys], lines, ends_with_words=keys[-1] in ("note", "largest_weights")
        )
        if len(shown) < len(rows):
            print(f"... and {len(rows) - len(shown)} more (--json has them)")


def _is_table(value: object) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(row, dict) for row in value)


def _title(key: str) -> str:
    return key.replace("_", " ")


def text_of(key: str, value: Any) -> str:
    """Return a value of a result as text.

    Examples
    --------
    >>> text_of("balanced_accuracy", 0.5), text_of("dual_gap", 1.2e-5), text_of("C", 1 / 3)
    ('50.0%', '1.2e-05', '0.333333')
    >>> text_of("weights", {"age": 0.5, "mass": -1.0}), text_of("converged", False)
    ('age 0.5, mass -1', 'NO')
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (str, int, float, bool, type(None))):
        return _scalar(key, value)
    if isinstance(value, Mapping):
        parts = [f"{_title(str(name))} {text_of(str(name), each)}" for name, each in value.items()]
    else:
        parts = [text_of(key, each) for each in islice(value, _MOST_SHOWN)]
    more = f", ... ({len(value)})" if len(value) > len(parts) else ""
    return ", ".join(parts) + more


def _scalar(key: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if not isinstance(value, float):
        return printable(value)
    if key.endswith("gap"):
        return "no bound" if math.isnan(value) else f"{value:.1e}"
    if key.endswith(_SHARES):
        return "-" if math.isnan(value) else f"{value:.1%}"
    return f"{value:.6g}"


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, ends_with_words: bool = False
) -> None:
    """Print a table, its first column to the left, the others to the right; words at the end to the left."""
    lines = [list(map(printable, row)) for row in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for number, (first, *rest) in enumerate(lines):
        padded = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        if ends_with_words:
            padded[-1] = rest[-1]
        print("  ".join([first.ljust(widths[0]), *padded]).rstrip())
        if number == 0:
            print("-" * (sum(widths) + 2 * (len(widths) - 1)))


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print names and values, the values and their lines below each other."""
    pairs = [(name, str(value).split("\n")) for name, value in facts]
    width = max((len(name) for name, _ in pairs), default=0)
    for name, lines in pairs:
        for place, line in enumerate(lines):
            print(f"{'' if place else name:{width}}  {printable(line)}")


def write_json(path: str | None, document: object) -> None:
    """Write one JSON document to a file or to standard output; NaN becomes null, infinity text."""
    if path is None or path == "-":
        print(_as_json(document, indent=2))
    else:
        write_whole(path, [_as_json(document).encode()])


def _as_json(document: object, indent: int | None = None) -> str:
    """Return JSON with its control characters escaped."""
    text = json.dumps(plain(document), indent=indent, ensure_ascii=False, allow_nan=False)
    return CONTROLS_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: object) -> Any:
    """Return the value in types that JSON has.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"gap": np.float64("nan"), "radius": np.array([1, 2]), "exclusivity": float("inf")})
    {'gap': None, 'radius': [1, 2], 'exclusivity': 'inf'}
    """
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def write_rows(path: str | None, header: Sequence[str], columns: Sequence[Any]) -> None:
    """Write CSV to a file, as a whole or not at all, or to standard output (None and ``-``).

    Labels are written as they are, except to a terminal, where control characters are escaped.
    """
    to_stdout = path is None or path == "-"
    rows: Iterable[Sequence[Any]] = (header, *zip(*(column.tolist() for column in columns), strict=True))
    if to_stdout and sys.stdout.isatty():
        rows = (list(map(printable, row)) for row in rows)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    if to_stdout:
        sys.stdout.write(text.getvalue())
    else:
        write_whole(str(path), [text.getvalue().encode()])


def write_whole(path: str, blocks: Iterable[bytes]) -> None:
    """Write a file as a whole or not at all."""
    from exclusivity.io.models import whole_file

    # A device or a pipe cannot be replaced by a file.
    is_special = Path(path).exists() and not Path(path).is_file()
    with file_errors(path), open(path, "wb") if is_special else whole_file(Path(path)) as stream:
        stream.writelines(blocks)


class Progress:
    """Show how far a command is: one line that changes at a terminal, a line now and then elsewhere."""

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
