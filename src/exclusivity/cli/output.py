"""Results: tables for people, JSON for scripts, CSV files of predictions."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from exclusivity._text import CONTROLS_IN_LINES, printable
from exclusivity.cli.files import file_errors


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
    """Print names and values, the values below each other."""
    pairs = [(name, printable(value)) for name, value in facts]
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print(f"{name.ljust(width)}  {value}")


def print_json(document: object) -> None:
    """Print one JSON document; NaN becomes null, infinity text."""
    print(_as_json(document, indent=2))


def write_json(path: str | None, document: object) -> None:
    """Write one JSON document to a file or to standard output."""
    if path is None or path == "-":
        print_json(document)
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
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def percent(share: float) -> str:
    """Format a share; a dash for NaN."""
    return "-" if math.isnan(share) else f"{share:.1%}"


def gap(value: float) -> str:
    """Format a duality gap."""
    return "no bound" if math.isnan(value) else f"{value:.1e}"


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
    from exclusivity.io._whole_file import whole_file

    # A device or a pipe cannot be replaced by a file.
    is_special = Path(path).exists() and not Path(path).is_file()
    with file_errors(path), open(path, "wb") if is_special else whole_file(Path(path)) as stream:
        stream.writelines(blocks)
