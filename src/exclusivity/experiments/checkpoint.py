"""Finished tasks as lines of JSON, appended one by one: what is done stays done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exclusivity.experiments.provenance import computing_versions
from exclusivity.experiments.tasks import Result, Task

# Raise when a task's meaning changes without a change of its parameters.
FORMAT = 1


class Checkpoint:
    """The file of finished tasks.

    A line counts for a task of the same kind and parameters (which include the seed and the fingerprint of
    the data), made with the same versions. Other lines are left alone. A last line cut short by a crash is
    skipped.

    Parameters
    ----------
    path : Path
        The file; made when the first task is added.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: Mapping[str, Any] = {"format": FORMAT, "versions": computing_versions()}
        self._ends_with_newline = True

    def load(self) -> dict[str, Result]:
        """Task key -> result."""
        if not self.path.is_file():
            return {}
        text = self.path.read_text(encoding="utf-8", errors="replace")
        self._ends_with_newline = not text or text.endswith("\n")
        found = {}
        for line in text.splitlines():
            record = _record(line)
            if record is not None and record.get("stamp") == self._stamp:
                found[str(record["key"])] = record["result"]
        return found

    def add(self, task: Task, result: Result) -> None:
        """Append one finished task; on disk when this returns."""
        line = json.dumps({"stamp": self._stamp, "key": task.key, "result": result}) + "\n"
        if not self._ends_with_newline:
            line = "\n" + line
            self._ends_with_newline = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)


def _record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if isinstance(record, dict) and isinstance(record.get("result"), dict) and "key" in record:
        return record
    return None
