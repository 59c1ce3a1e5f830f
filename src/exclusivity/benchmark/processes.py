"""The parent's side of fresh processes: start them, watch their time, collect what they wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self

import numpy as np

from exclusivity.benchmark.child import Request
from exclusivity.benchmark.peers import Solution
from exclusivity.problem.arrays import Floats

# Importing, compiling and reading the rows are not part of a fit, but must end some time.
SETUP_SECONDS = 180.0
_GLANCE_SECONDS = 0.02
_SERVE = "import sys; from exclusivity.benchmark import child; child.serve(sys.stdin)"
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


class Children:
    """Runs requests, each in a fresh process of its own.

    Used as a context: no process outlives it, Ctrl-C included.

    Parameters
    ----------
    threads : int
        BLAS threads, which are settled when a process starts.
    """

    def __init__(self, threads: int) -> None:
        self._environment = os.environ | dict.fromkeys(_THREAD_VARIABLES, str(threads))
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)  # and the fork that it waits for
        self._server.communicate()
        self._server = None

    def run(self, request: Request, limit: float) -> list[StepOutcome]:
        """What came of the request, whose fits may take ``limit`` seconds each."""
        out = Path(request.out)
        out.mkdir(parents=True)
        path = out / "request.json"
        path.write_text(json.dumps(asdict(request)))
        server = self._running()
        with suppress(BrokenPipeError):  # it has ended, which the next line finds out
            print(path, file=server.stdin, flush=True)
        in_time = _watch(server, out / "progress", limit)
        if not in_time:
            self._end(out / "progress")
        succeeded = _told(out / "progress")[-1:] == ["end 0"]
        return collect(request, out, in_time, "" if succeeded else _last_line(out / "output"))

    def _running(self) -> subprocess.Popen[str]:
        """The process that forks; a new one where there is none, or no longer."""
        if self._server is None or self._server.poll() is not None:
            command = [sys.executable, "-c", _SERVE]
            self._server = subprocess.Popen(  # noqa: S603 -- ours
                command, env=self._environment, stdin=subprocess.PIPE, text=True, start_new_session=True
            )
        return self._server

    def _end(self, progress: Path) -> None:
        """End the fork; where there is none after all this time, what should have forked."""
        pids = [int(line.split()[1]) for line in _told(progress) if line.startswith("pid")]
        if not pids:
            self.__exit__()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _watch(server: Any, progress: Path, limit: float) -> bool:
    """Wait for the end of the request; False where one of its phases took longer than it may."""
    lines, since = 0, monotonic()
    while True:
        ended = server.poll() is not None
        told = _told(progress)
        if ended or (told and told[-1].startswith("end")):
            return True
        if len(told) != lines:
            lines, since = len(told), monotonic()
        fitting = bool(told) and told[-1].startswith("fit")
        if monotonic() - since > (limit if fitting else limit + SETUP_SECONDS):
            return False
        sleep(_GLANCE_SECONDS)


def _told(progress: Path) -> list[str]:
    """The whole lines so far."""
    text = progress.read_text() if progress.exists() else ""
    return text.split("\n")[:-1]


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
    lines = output.read_text(errors="replace").strip().splitlines() if output.exists() else []
    return lines[-1] if lines else "it ended without a word"
