"""The parent's side of one fresh process: start it, watch its time, collect what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from exclusivity.benchmark.child import Request
from exclusivity.benchmark.peers import Solution
from exclusivity.benchmark.peers.base import Floats

# Importing, compiling and reading the rows are not part of a fit, but must end some time.
SETUP_SECONDS = 180.0
_GLANCE_SECONDS = 0.02
_THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@dataclass(frozen=True, eq=False)
class StepOutcome:
    """What came of one step of a ladder.

    ``status`` is "done", "limit" (ended at its time limit), "failed" (``message`` has the last line of the
    error) or "not reached" (an earlier step of the same process did not end).
    """

    step: float
    status: str
    numbers: dict[str, Any]
    solution: Solution | None = None
    duals: Floats | None = None
    message: str = ""


def run_child(request: Request, limit: float) -> list[StepOutcome]:
    """Run the request in a fresh process whose fits may take ``limit`` seconds each."""
    out = Path(request.out)
    out.mkdir(parents=True)
    (out / "request.json").write_text(json.dumps(asdict(request)))
    command = [sys.executable, "-m", "exclusivity.benchmark.child", str(out / "request.json")]
    environment = os.environ | dict.fromkeys(_THREAD_VARIABLES, str(request.threads))
    with (out / "output").open("w") as output, _process(command, environment, output) as process:
        in_time = _watch(process, out / "progress", limit)
    failure = "" if process.returncode == 0 else _last_line(out / "output")
    return collect(request, out, in_time, failure)


@contextmanager
def _process(command: list[str], environment: dict[str, str], output: Any) -> Iterator[Any]:
    """A process that does not outlive this block, Ctrl-C included."""
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)  # noqa: S603 -- ours
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _watch(process: Any, progress: Path, limit: float) -> bool:
    """Wait for the process; False where one of its phases took longer than it may."""
    lines, since = 0, monotonic()
    while True:
        try:
            process.wait(_GLANCE_SECONDS)
        except subprocess.TimeoutExpired:
            told = progress.read_text().splitlines() if progress.exists() else []
            if len(told) != lines:
                lines, since = len(told), monotonic()
            fitting = bool(told) and told[-1].startswith("fit")
            if monotonic() - since > (limit if fitting else limit + SETUP_SECONDS):
                return False
        else:
            return True


def collect(request: Request, out: Path, in_time: bool, failure: str) -> list[StepOutcome]:
    """What the child has left in its folder, step by step."""
    outcomes, ended = [], False
    for number, step in enumerate(request.steps):
        if (out / f"{number}.json").exists():
            outcomes.append(_read(out, number, step))
        elif ended:
            outcomes.append(StepOutcome(step, "not reached", {}))
        elif not in_time:
            outcomes.append(StepOutcome(step, "limit", {}))
            ended = True
        else:
            outcomes.append(StepOutcome(step, "failed", {}, message=failure))
            ended = True
    return outcomes


def _read(out: Path, number: int, step: float) -> StepOutcome:
    weights = np.load(out / f"{number}-weights.npy", allow_pickle=False)
    intercepts = np.load(out / f"{number}-intercepts.npy", allow_pickle=False)
    duals = out / f"{number}-duals.npy"
    return StepOutcome(
        step,
        "done",
        json.loads((out / f"{number}.json").read_text()),
        Solution(weights, intercepts),
        np.load(duals, allow_pickle=False) if duals.exists() else None,
    )


def _last_line(output: Path) -> str:
    lines = output.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it ended without a word"
