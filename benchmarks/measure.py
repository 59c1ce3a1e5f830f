"""Measure fits: in fresh processes with one thread, CPU and wall time, peak memory, the true objective.

A fit runs in a process that was forked from one that has imported everything and done nothing else, so that
neither imports nor what an earlier fit left in memory count. The child evaluates the objective and, for our
solvers, a dual bound with the formulas below, whatever the solver says about itself.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy import sparse, special

from benchmarks.peers import PEERS, POWER, Floats, Peer, Setting, Solution, binary_labels
from benchmarks.workloads import Rows

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# Importing, compiling and reading the rows are not part of a fit, but must end some time.
SETUP_SECONDS = 180.0
# Fits of a millisecond are repeated until they add up to something that a clock can tell.
ENOUGH_SECONDS, ENOUGH_FITS = 0.2, 50
# A point that took longer than this is not repeated: its noise is small beside it.
REPEAT_BELOW_SECONDS = 60.0
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Plan(NamedTuple):
    """How a case is measured; ``quick`` takes short ladders, each in one process."""

    quick: bool = False
    repeats: int = 3
    limit: float = 300.0
    threads: int = 1


def losses(margins: Floats, loss: str) -> Floats:
    """Return the loss of rows with margins m = y f."""
    if loss == "logistic":
        return np.logaddexp(0.0, -margins)
    return np.maximum(0.0, 1.0 - margins) ** POWER[loss]


def slopes(margins: Floats, loss: str) -> Floats:
    """Return minus the derivative of the loss."""
    if loss == "logistic":
        return special.expit(-margins)
    return (margins < 1) * 1.0 if loss == "hinge" else 2 * np.maximum(0.0, 1.0 - margins)


def objective(X: Any, y: Floats, solution: Solution, loss: str, cost: float) -> dict[str, float]:
    """Return sums over the binary problems of 1/2 |w|^2 + C sum_i loss(y_i (w . x_i + b)).

    "own" is at the solver's own intercepts; "objective" takes for each problem the better of that and of the
    best intercept for its weights, which favours solvers that penalise theirs.
    """
    own = best = 0.0
    with np.errstate(all="ignore"):  # a solver that diverged gets an infinite objective
        for labels, w, b in zip(binary_labels(y), solution.weights.T, solution.intercepts, strict=True):
            scores, penalty = X @ w, w @ w / 2
            here = penalty + cost * losses(labels * (scores + b), loss).sum()
            moved = scores + best_intercept(scores, labels, loss)
            own += here
            best += min(here, penalty + cost * losses(labels * moved, loss).sum())
    return {"objective": best if np.isfinite(best) else np.inf, "own": own if np.isfinite(own) else np.inf}


def best_intercept(scores: Floats, labels: Floats, loss: str) -> float:
    """Return the b that minimises sum_i loss(y_i (f_i + b)), by bisection of its derivative."""
    if not np.all(np.isfinite(scores)):
        return 0.0
    low, high = -np.max(np.abs(scores)) - 30.0, np.max(np.abs(scores)) + 30.0
    while high - low > 1e-13 * max(1.0, abs(low), abs(high)):
        middle = (low + high) / 2
        if labels @ slopes(labels * (scores + middle), loss) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def lower_bound(X: Any, y: Floats, alphas: Sequence[Floats], loss: str, cost: float) -> float:
    """Return a bound on the optimum: the dual value of these vectors, made feasible first.

    sum_i -conjugate(alpha_i) - 1/2 |X' (y alpha)|^2 for alpha >= 0 (at most C for the hinge and the logistic
    loss) with y . alpha = 0; the class with the larger sum is scaled down to that of the other.
    """
    total = 0.0
    for labels, alpha in zip(binary_labels(y), alphas, strict=True):
        a = np.clip(alpha, 0.0, np.inf if loss == "squared_hinge" else cost)
        sums = {side: a[labels == side].sum() for side in (1.0, -1.0)}
        larger = max(sums, key=lambda side: sums[side])
        if sums[larger] > 0:
            a = np.where(labels == larger, a * (sums[-larger] / sums[larger]), a)
        if loss == "logistic":
            values = cost * (special.entr(a / cost) + special.entr(1 - a / cost))
        else:
            values = a if loss == "hinge" else a - a**2 / (4 * cost)
        v = X.T @ (labels * a)
        total += values.sum() - v @ v / 2
    return float(total)


def dual_vectors(X: Any, y: Floats, solution: Solution, loss: str, cost: float) -> list[Floats]:
    """Return the dual vectors that follow from weights where the loss is smooth: C times its slopes."""
    found = []
    for labels, w in zip(binary_labels(y), solution.weights.T, strict=True):
        scores = X @ w
        found.append(cost * slopes(labels * (scores + best_intercept(scores, labels, loss)), loss))
    return found


def timed(action: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what the action gives, its wall and its CPU seconds."""
    cpu, wall = process_time(), perf_counter()
    outcome = action()
    return outcome, perf_counter() - wall, process_time() - cpu


def interleaved(actions: dict[str, Callable[[], Any]], repeats: int, clock: str = "cpu") -> dict[str, float]:
    """Return the median seconds of every action, one call of each in turn."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            times[name].append(timed(action)[2 if clock == "cpu" else 1])
    return {name: median(spent) for name, spent in times.items()}


def peak_bytes(*, reset: bool = False) -> int:
    """Return the largest resident memory since the last reset (Linux), or since the process began."""
    try:
        if reset:
            _CLEAR.write_text("5")
        return int(_STATUS.read_text().split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        import resource  # noqa: PLC0415 -- not on every system

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measured(action: Callable[[], Solution]) -> tuple[Solution, dict[str, Any]]:
    """Return the solution, seconds (medians where one fit is too short to tell) and extra memory of a fit."""
    before = peak_bytes(reset=True)
    solution, wall, cpu = timed(action)
    extra = peak_bytes() - before
    walls, cpus = [wall], [cpu]
    while sum(walls) < ENOUGH_SECONDS and len(walls) < ENOUGH_FITS:
        _, wall, cpu = timed(action)
        walls.append(wall)
        cpus.append(cpu)
    return solution, {"wall": median(walls), "cpu": median(cpus), "extra_bytes": max(extra, 0)}


def tiny_rows(X: Any, y: Floats) -> Rows:
    """Return a problem of the same kind (dense or sparse, as many classes), for imports and compilers."""
    labels = np.tile(np.unique(y), 20)
    rows = np.random.default_rng(0).standard_normal((len(labels), 4)) + labels[:, None]
    return (sparse.csr_matrix(rows) if sparse.issparse(X) else rows), labels


def child(connection: Connection, rows: str, name: str, settings: Sequence[Setting], certify: bool) -> None:
    """Fit every step in this process; send "fit" before each fit and a dict of numbers after it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: settings[0].threads])
    warnings.simplefilter("ignore")  # a coarse step is meant not to converge
    try:
        peer = PEERS[name]
        X, y = joblib.load(rows)
        peer.prepare(*tiny_rows(X, y), settings[0])()
        for setting in settings:
            action = peer.prepare(X, y, setting)
            connection.send("fit")
            solution, numbers = measured(action)
            connection.send("done")
            connection.send(numbers | judged(X, y, solution, peer if certify else None, setting))
    except Exception as error:  # the parent reports it
        connection.send({"message": f"{type(error).__name__}: {error}"})


def judged(X: Any, y: Floats, solution: Solution, peer: Peer | None, setting: Setting) -> dict[str, float]:
    """Return the objective, the bound if the peer given has one, and the seconds of one product X @ w."""
    ones, (loss, cost) = np.ones(X.shape[1]), setting[:2]
    walls, cpus = zip(*(timed(lambda: X @ ones)[1:] for _ in range(5)), strict=True)
    numbers = {"product_wall": median(walls), "product_cpu": median(cpus)}
    numbers |= objective(X, y, solution, loss, cost)
    alphas = peer.duals(X, y, setting) if peer else None
    if alphas is None:
        return numbers
    vectors = [alphas] if loss == "hinge" else [alphas, dual_vectors(X, y, solution, loss, cost)]
    return numbers | {"bound": max(lower_bound(X, y, each, loss, cost) for each in vectors)}


class Runner:
    """Rows on disk, and fresh processes that fit them; a context, whose end removes the rows."""

    def __init__(self, X: Any, y: Floats, threads: int = 1) -> None:
        os.environ.update(dict.fromkeys(THREADS, str(threads)))
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["benchmarks.measure", "benchmarks.tables"])
        self._folder = tempfile.TemporaryDirectory(prefix="benchmarks-")
        self._rows = str(Path(self._folder.name) / "rows")
        joblib.dump((X, y), self._rows)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(
        self, name: str, settings: Sequence[Setting], limit: float, *, certify: bool = True
    ) -> list[dict[str, Any]]:
        """Return one record per step: status "done", "limit", "failed" or "not reached"."""
        here, there = self._context.Pipe(duplex=False)
        arguments = (there, self._rows, name, settings, certify)
        process = self._context.Process(target=child, args=arguments, daemon=True)
        process.start()
        there.close()
        records = []
        try:
            for setting in settings:
                status = records[-1]["status"] if records else "done"
                outcome = _outcome(here, limit) if status == "done" else {"status": "not reached"}
                records.append({"peer": name, "step": setting.step} | outcome)
        finally:
            process.kill()
            process.join()
            here.close()
        return records


def _outcome(here: Connection, limit: float) -> dict[str, Any]:
    """Wait for the end of one fit; evaluating it, like the preparations, may take longer."""
    for seconds in (limit + SETUP_SECONDS, limit, limit + SETUP_SECONDS):
        if not here.poll(seconds):
            return {"status": "limit"}
        try:
            message = here.recv()
        except EOFError:
            return {"status": "failed", "message": "the process ended without a word"}
        if isinstance(message, dict):
            break
    return {"status": "failed" if "message" in message else "done"} | message


def schedule(
    ladders: dict[str, tuple[float, ...]], repeats: int, *, together: bool
) -> Iterator[tuple[str, tuple[float, ...], int]]:
    """Yield peer, steps and repeat: coarse steps first, peers in turn; repeats start with another peer.

    >>> list(schedule({"a": (1, 2), "b": (1,)}, 2, together=False))
    [('a', (1,), 0), ('b', (1,), 0), ('a', (2,), 0), ('b', (1,), 1), ('a', (1,), 1), ('a', (2,), 1)]
    """
    names = list(ladders)
    for repeat in range(repeats):
        turn = repeat % max(len(names), 1)
        turned = {name: ladders[name] for name in names[turn:] + names[:turn]}
        batches = {name: [steps] if together else [(s,) for s in steps] for name, steps in turned.items()}
        for level in range(max(map(len, batches.values()), default=0)):
            for name, steps in batches.items():
                if level < len(steps):
                    yield name, steps[level], repeat


def wanted(records: Sequence[dict[str, Any]], step: float, ladder: Sequence[float]) -> bool:
    """Tell whether a step is worth another run: not where it or a coarser one failed, nor where it is slow.

    >>> records = [{"step": 1e-2, "status": "done", "wall": 0.1}, {"step": 1e-4, "status": "limit"}]
    >>> [wanted(records, step, (1e-2, 1e-4, 1e-6)) for step in (1e-2, 1e-4, 1e-6)]
    [True, False, False]
    """
    place = ladder.index(step)
    if any(each["status"] != "done" and ladder.index(each["step"]) <= place for each in records):
        return False
    return not any(each["step"] == step and each["wall"] > REPEAT_BELOW_SECONDS for each in records)


def run_case(
    runner: Runner, peers: Sequence[str], loss: str, cost: float, plan: Plan
) -> Iterator[dict[str, Any]]:
    """Yield the records of all peers that know the loss; a bound found in one repeat holds in the others."""
    able = {name: PEERS[name] for name in peers if loss in PEERS[name].losses}
    ladders = {name: peer.quick_ladder if plan.quick else peer.ladder for name, peer in able.items()}
    records: list[dict[str, Any]] = []
    for name, steps, repeat in schedule(ladders, plan.repeats, together=plan.quick):
        earlier = [each for each in records if each["peer"] == name]
        left = [Setting(loss, cost, s, plan.threads) for s in steps if wanted(earlier, s, ladders[name])]
        if not left:
            continue
        found = runner.run(name, left, plan.limit, certify=repeat == 0)
        found = [each | {"repeat": repeat, "loss": loss, "cost": cost} for each in found]
        records += found
        yield from found
