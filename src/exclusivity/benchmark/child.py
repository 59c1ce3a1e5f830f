"""Each request in a fresh process: ``serve`` reads their paths, one per line.

Importing takes longer than most fits, so this process does it once and forks for every request: the fork has
the modules, and nothing else that an earlier fit might have left in memory.

The request names the folder of the rows, the peer, its steps, and where to write. Every step leaves
``STEP-weights.npy``, ``STEP-intercepts.npy`` and, last and at once, ``STEP.json``; with ``certify`` also
``STEP-duals.npy``. Lines in ``progress`` tell the parent which process it is, that a fit begins or has ended,
and the exit status.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from exclusivity.benchmark.memory import peak_bytes, reset_peak
from exclusivity.benchmark.peers import Action, Peer, Setting, Solution, find_peer
from exclusivity.benchmark.workloads import load_rows
from exclusivity.problem.arrays import Matrix

# Fits of a millisecond are repeated until they add up to something that a clock can tell.
_ENOUGH_SECONDS, _ENOUGH_FITS = 0.2, 50
_PRODUCTS = 5

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Request:
    """What the parent asks for.

    Attributes
    ----------
    rows, out : str
        The folder of the rows, and the one to write to.
    peer : str
    steps : tuple of float
    cost : float
    p : int
    threads : int
    certify : bool
        Whether dual vectors are wanted.
    """

    rows: str
    out: str
    peer: str
    steps: tuple[float, ...]
    cost: float
    p: int
    threads: int
    certify: bool

    def setting(self, step: float) -> Setting:
        """The setting of one step."""
        return Setting(cost=self.cost, p=self.p, step=step, threads=self.threads)


def run(request: Request) -> None:
    """Warm up, then every step."""
    pin(request.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a coarse step is meant not to converge
        _run_steps(request)


def _run_steps(request: Request) -> None:
    peer = find_peer(request.peer)
    X, y = load_rows(Path(request.rows))
    peer.prepare(*tiny_rows(X, y), request.setting(request.steps[0]))()
    for number, step in enumerate(request.steps):
        setting, out = request.setting(step), Path(request.out)
        action = peer.prepare(X, y, setting)
        tell(out, f"fit {number}")
        solution, numbers = measure(action)
        tell(out, f"done {number}")
        numbers |= product_times(X)
        write_solution(out, number, solution, numbers)
        if request.certify:
            write_duals(out, number, peer, X, y, setting)


def pin(threads: int) -> None:
    """Keep this process on the first CPUs it may use, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def tiny_rows(X: object, y: ArrayLike) -> tuple[Any, Any]:
    """A problem of the same kind (dense or sparse, number of classes), for imports and compilers."""
    classes = np.unique(y)
    labels = np.tile(classes, 20)
    rows = np.random.default_rng(0).standard_normal((len(labels), 4)) + labels[:, None]
    return (sparse.csr_matrix(rows) if sparse.issparse(X) else rows), labels


def measure(action: Action) -> tuple[Solution, dict[str, Any]]:
    """Wall and CPU seconds (medians where one fit is too short to tell), peak extra memory of the first."""
    reset_peak()
    before = peak_bytes()
    solution, wall, cpu = timed(action)
    extra = peak_bytes() - before
    walls, cpus = [wall], [cpu]
    while sum(walls) < _ENOUGH_SECONDS and len(walls) < _ENOUGH_FITS:
        _, wall, cpu = timed(action)
        walls.append(wall)
        cpus.append(cpu)
    numbers = {
        "seconds": median(walls),
        "cpu_seconds": median(cpus),
        "fits": len(walls),
        "extra_bytes": max(extra, 0),
    }
    return solution, numbers


def timed(action: Callable[[], Outcome]) -> tuple[Outcome, float, float]:
    """What the action gives, its wall and its CPU seconds."""
    cpu, wall = process_time(), perf_counter()
    outcome = action()
    return outcome, perf_counter() - wall, process_time() - cpu


def product_times(X: Matrix) -> dict[str, float]:
    """Wall and CPU seconds of one product X @ w, the unit of passes."""
    w = np.ones(X.shape[1])
    times = [timed(lambda: X @ w)[1:] for _ in range(_PRODUCTS)]
    wall, cpu = (median(column) for column in zip(*times, strict=True))
    return {"product_seconds": wall, "product_cpu_seconds": cpu}


def tell(out: Path, line: str) -> None:
    """Append a line for the parent."""
    with (out / "progress").open("a") as file:
        file.write(line + "\n")


def write_solution(out: Path, number: int, solution: Solution, numbers: dict[str, Any]) -> None:
    """The arrays first; the JSON file appears at once, when everything is there."""
    np.save(out / f"{number}-weights.npy", solution.weights)
    np.save(out / f"{number}-intercepts.npy", solution.intercepts)
    part = out / f"{number}.part"
    part.write_text(json.dumps(numbers))
    part.replace(out / f"{number}.json")


def write_duals(out: Path, number: int, peer: Peer, X: Matrix, y: NDArray[Any], setting: Setting) -> None:
    """Dual vectors of all binary problems, one per row; nothing where the peer has none."""
    if peer.certify is None:
        return
    part = out / f"{number}-part.npy"
    np.save(part, np.stack(peer.certify(X, y, setting)))
    part.replace(out / f"{number}-duals.npy")


def serve(paths: Iterable[str]) -> None:
    """Fork for each request, and wait for the fork's end."""
    for line in paths:
        path = Path(line.rstrip("\n"))
        pid = os.fork()
        if pid == 0:
            answer(path)
            return  # the fork ends here: the other requests are not its own
        tell(path.parent, f"end {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")


def answer(path: Path) -> None:
    """Run one request; what it prints, the error that ends it included, goes to ``output``."""
    with (path.parent / "output").open("w") as output:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(output.fileno(), stream.fileno())
    tell(path.parent, f"pid {os.getpid()}")
    request = json.loads(path.read_text())
    run(Request(**request | {"steps": tuple(request["steps"])}))
