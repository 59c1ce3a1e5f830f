"""Runs a plan: workloads are made once, repeats are interleaved, every finished case is kept at once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from exclusivity.benchmark.child import Request
from exclusivity.benchmark.measures import Judge, curve, reference
from exclusivity.benchmark.peers import Peer
from exclusivity.benchmark.plan import Plan
from exclusivity.benchmark.processes import Children, StepOutcome
from exclusivity.benchmark.workloads import Workload, save_rows
from exclusivity.experiments import Progress, machine, today, versions
from exclusivity.versions import installed_versions

FORMAT = 1
# A point that took longer than this is not repeated: its noise is small beside it.
REPEAT_BELOW_SECONDS = 60.0
_PEER_PACKAGES = ("liblinear-official", "snapml", "skglm", "rehline")

Tell = Callable[[str], None]


def run_benchmark(
    plan: Plan,
    *,
    progress: Progress | None = None,
    tell: Tell = lambda _: None,
    keep: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Run the plan.

    Parameters
    ----------
    plan : Plan
    progress : Progress, optional
        Told of every process.
    tell : callable, optional
        Takes a message for each peer or workload that is skipped.
    keep : callable, optional
        Takes the document so far after every case.

    Returns
    -------
    dict
        Settings, machine, versions, what was skipped and why, and the cases with all their runs and curves.
    """
    progress = progress or Progress()
    document = _front(plan)

    def skip(what: str, why: str) -> None:
        document["skipped"].append({"what": what, "why": why})
        tell(f"without {what}: {why}")

    peers = _present(plan, skip)
    progress.start(_count(plan, peers), done=0)
    try:
        with Children(plan.threads) as children:
            for workload in plan.found_workloads():
                try:
                    X, y = workload.make()
                except (OSError, ValueError) as error:
                    skip(workload.name, str(error))
                    continue
                with tempfile.TemporaryDirectory(prefix="erm-bench-") as scratch:
                    stage = _Stage(plan, peers, workload, X, y, Path(scratch), progress, children)
                    for case in stage.cases():
                        document["cases"].append(case)
                        keep(document)
    finally:
        progress.stop()
    return document


def _front(plan: Plan) -> dict[str, Any]:
    described = {
        name: {
            "title": peer.title,
            "intercept": peer.intercept,
            "ours": peer.ours,
            "yardstick": peer.yardstick,
            "step": peer.step,
            "ladder": list(peer.steps(plan.quick)),
        }
        for name, peer in plan.found_peers().items()
    }
    return {
        "format": FORMAT,
        "date": today(),
        "settings": plan.document(),
        "machine": machine(),
        "versions": versions() | installed_versions(_PEER_PACKAGES),
        "peers": described,
        "skipped": [],
        "cases": [],
    }


def _present(plan: Plan, skip: Callable[[str, str], None]) -> dict[str, Peer]:
    peers = {}
    for name, peer in plan.found_peers().items():
        why = peer.absence()
        if why is None:
            peers[name] = peer
        else:
            skip(name, why)
    return peers


def _batches(peer: Peer, quick: bool) -> list[tuple[float, ...]]:
    """The steps of each process: one, or with --quick the whole ladder."""
    steps = peer.steps(quick)
    return [steps] if quick else [(step,) for step in steps]


def _count(plan: Plan, peers: dict[str, Peer]) -> int:
    """The number of processes, if none is left out."""
    per_cost = sum(
        len(_batches(peer, plan.quick)) for peer in peers.values() for p in plan.powers if p in peer.powers
    )
    costs = sum(len(plan.costs_of(workload)) for workload in plan.found_workloads())
    return per_cost * costs * plan.run_repeats


@dataclass(eq=False)
class _Stage:
    """One workload on disk and everything that is run on it."""

    plan: Plan
    peers: dict[str, Peer]
    workload: Workload
    X: Any
    y: Any
    scratch: Path
    progress: Progress
    children: Children
    numbers: Iterator[int] = field(default_factory=count)

    def cases(self) -> Iterator[dict[str, Any]]:
        """One per power and cost."""
        save_rows(self.scratch / "rows", self.X, self.y)
        for p in self.plan.powers:
            for cost in self.plan.costs_of(self.workload):
                yield self.case(p, cost)

    def case(self, p: int, cost: float) -> dict[str, Any]:
        """All peers, all steps, all repeats."""
        judge = Judge(self.X, self.y, cost=cost, p=p)
        runs: list[dict[str, Any]] = []
        for name, steps, repeat in self.order(p):
            label = f"{self.workload.name} p={p} C={cost:.3g} {name}"
            earlier = [run for run in runs if run["peer"] == name]
            ladder = self.peers[name].steps(self.plan.quick)
            left = [step for step in steps if wanted(earlier, step, ladder)]
            if left:
                outcomes = self.children.run(self.request(name, left, p, cost, repeat), self.plan.run_limit)
                runs += [self.record(judge, name, outcome, repeat, earlier) for outcome in outcomes]
            self.progress.advance(label)
        return self.document(p, cost, runs)

    def order(self, p: int) -> Iterator[tuple[str, tuple[float, ...], int]]:
        """Coarse steps first, peers side by side, starting with another peer in every repeat."""
        able = [name for name, peer in self.peers.items() if p in peer.powers]
        for repeat in range(self.plan.run_repeats):
            turn = repeat % max(len(able), 1)
            ladders = {
                name: _batches(self.peers[name], self.plan.quick) for name in able[turn:] + able[:turn]
            }
            for level in range(max(map(len, ladders.values()), default=0)):
                for name, batches in ladders.items():
                    if level < len(batches):
                        yield name, batches[level], repeat

    def request(self, name: str, steps: Sequence[float], p: int, cost: float, repeat: int) -> Request:
        """What the child is asked; dual vectors once."""
        return Request(
            rows=str(self.scratch / "rows"),
            out=str(self.scratch / f"run-{next(self.numbers)}"),
            peer=name,
            steps=tuple(steps),
            cost=cost,
            p=p,
            threads=self.plan.threads,
            certify=repeat == 0,
        )

    def record(
        self, judge: Judge, name: str, outcome: StepOutcome, repeat: int, earlier: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """One run as numbers; a bound that was proven in the first repeat holds for the others too."""
        run = {"peer": name, "step": outcome.step, "repeat": repeat, "status": outcome.status}
        if outcome.message:
            run["message"] = outcome.message
        if outcome.solution is None:
            return run
        if self.peers[name].yardstick:
            return run | outcome.numbers
        value = judge.value(outcome.solution)
        bound: float | None
        if outcome.duals is not None:
            bound = judge.bound(outcome.solution, outcome.duals)
        else:
            known = (each.get("bound") for each in earlier if each["step"] == outcome.step)
            bound = next(known, None)
        numbers = {key: _finite(number) for key, number in (value | {"bound": bound}).items()}
        return run | outcome.numbers | numbers

    def document(self, p: int, cost: float, runs: list[dict[str, Any]]) -> dict[str, Any]:
        """The case with its curves."""
        yardsticks = [run for run in runs if self.peers[run["peer"]].yardstick]
        runs = [run for run in runs if not self.peers[run["peer"]].yardstick]
        found = reference(runs)
        names = dict.fromkeys(run["peer"] for run in runs)
        curves = {}
        if found["objective"] is not None:
            curves = {
                name: curve([run for run in runs if run["peer"] == name], found["objective"], self.plan.clock)
                for name in names
            }
        stored = self.X.data.nbytes + self.X.indices.nbytes if sparse.issparse(self.X) else self.X.nbytes
        return {
            "workload": self.workload.name,
            "title": self.workload.title,
            "kind": self.workload.kind,
            "shape": list(self.X.shape),
            "entries": int(self.X.nnz if sparse.issparse(self.X) else self.X.size),
            "bytes": int(stored),
            "classes": len(np.unique(self.y)),
            "p": p,
            "cost": cost,
            "reference": found,
            "curves": curves,
            "runs": runs,
            "yardsticks": yardsticks,
        }


def wanted(runs: Sequence[dict[str, Any]], step: float, ladder: Sequence[float]) -> bool:
    """Whether a point of a peer with these runs is worth another one.

    Not where this step or a coarser one ran into its limit or failed, and not where it is slow.

    Examples
    --------
    >>> runs = [{"step": 1e-2, "status": "done", "seconds": 0.1}, {"step": 1e-4, "status": "limit"}]
    >>> [wanted(runs, step, (1e-2, 1e-4, 1e-6)) for step in (1e-2, 1e-4, 1e-6)]
    [True, False, False]
    """
    place = ladder.index(step)
    if any(run["status"] != "done" and ladder.index(run["step"]) <= place for run in runs):
        return False
    return not any(run["step"] == step and run["seconds"] > REPEAT_BELOW_SECONDS for run in runs)


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
