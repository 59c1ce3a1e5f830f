"""Plans, processes and whole runs, with peers that hang, break, or are not there."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.bench_fakes import tiny
from exclusivity.benchmark import Plan, Workload, child, markdown, plan, processes, run_benchmark
from exclusivity.benchmark.child import Request
from exclusivity.benchmark.processes import Children, collect
from exclusivity.benchmark.workloads import save_rows
from exclusivity.datasets import DatasetNotFoundError

FAKES = "benchmark.bench_fakes"
TESTS = Path(__file__).parent.parent
WITH_FAKES = os.pathsep.join([str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")])
TINY = Workload("tiny", "two rows", "dense", tiny)


@pytest.fixture
def rows(tmp_path):
    save_rows(tmp_path / "rows", *tiny())
    return tmp_path / "rows"


def request(rows, peer, steps, certify=False):
    out = str(rows.parent / f"out-{peer}")
    return Request(str(rows), out, f"{FAKES}:{peer}", steps, cost=1.0, p=1, threads=1, certify=certify)


@pytest.fixture
def children_can_import_fakes(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", WITH_FAKES)


@pytest.fixture(scope="module")
def children():
    """Shared: every request has a process of its own, and the imports are what takes time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", WITH_FAKES)
        with Children(threads=1) as shared:
            yield shared


def test_a_hanging_fit_is_ended_and_its_coarse_steps_are_kept(rows, children):
    # Long enough for a fit that takes no time on the busiest machine, and far less than the fit that hangs.
    started = time.monotonic()
    outcomes = children.run(request(rows, "HANGS", (1.0, 2.0, 3.0)), limit=4.0)
    assert time.monotonic() - started < 300
    assert [outcome.status for outcome in outcomes] == ["done", "limit", "not reached"]
    assert outcomes[0].numbers["seconds"] < 4.0
    assert outcomes[0].solution.weights.tolist() == [[0.0]]
    assert outcomes[1].solution is None


def test_a_broken_peer_says_why(rows, children):
    outcomes = children.run(request(rows, "BREAKS", (1.0, 2.0)), limit=60)
    assert [outcome.status for outcome in outcomes] == ["failed", "not reached"]
    assert outcomes[0].message == "RuntimeError: no such luck"


def test_every_request_has_a_process_of_its_own_and_imports_are_shared(rows, children_can_import_fakes):
    """A fit that was ended at its limit or broke takes nothing along."""
    with Children(threads=1) as children:
        answers = []
        for number, before in enumerate(["HANGS", "BREAKS"]):
            first = children.run(request(rows, before, (2.0,)), limit=1.0)
            assert first[0].status in ("limit", "failed")
            asked = replace(request(rows, "PROCESS", (1.0,)), out=str(rows.parent / f"process-{number}"))
            (answer,) = children.run(asked, limit=60)
            assert answer.status == "done"
            answers.append((answer.solution.weights.item(), answer.solution.intercepts.item()))
    (one, parent), (other, same_parent) = answers
    assert one != other
    assert parent == same_parent
    assert not running(int(parent))


def test_no_process_outlives_an_interrupt(rows, children_can_import_fakes, monkeypatch):
    told = rows.parent / "out-HANGS" / "progress"
    really_sleep = time.sleep

    def interrupted(seconds):
        if told.exists() and "fit 0" in told.read_text():
            raise KeyboardInterrupt
        really_sleep(seconds)

    monkeypatch.setattr(processes, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt), Children(threads=1) as children:
        children.run(request(rows, "HANGS", (2.0,)), limit=300)
    pid = int(told.read_text().split()[1])
    deadline = time.monotonic() + 60
    while running(pid) and time.monotonic() < deadline:
        really_sleep(0.01)
    assert not running(pid)


def running(pid):
    """Whether there is such a process that has not ended; one that nobody waited for has."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout  # noqa: S603, S607, PLW1510
    return bool(state.strip()) and not state.startswith("Z")


@pytest.fixture
def in_process(monkeypatch):
    """Children without processes; the requests that were made."""
    made = []

    def run_here(self, request, limit):
        made.append(request)
        out = Path(request.out)
        out.mkdir(parents=True)
        child.run(request)
        return collect(request, out, in_time=True, failure="")

    monkeypatch.setattr(child, "pin", lambda threads: None)
    monkeypatch.setattr(Children, "run", run_here)
    monkeypatch.setattr(plan, "find_workloads", lambda wanted, quick: (TINY,))
    return made


def test_a_run_from_plan_to_curves(in_process):
    told, kept = [], []
    peers = (f"{FAKES}:EXACT", "newton", f"{FAKES}:ABSENT")
    document = run_benchmark(
        Plan(quick=True, peers=peers, powers=(1,), costs=(1.0,)),
        tell=told.append,
        keep=lambda found: kept.append(len(found["cases"])),
    )
    assert told == [
        f"without {FAKES}:ABSENT: surely_not_installed is not installed (pip install 'exclusivity[bench]')"
    ]
    assert document["skipped"][0]["what"] == f"{FAKES}:ABSENT"
    assert kept == [1]
    (case,) = document["cases"]
    assert case["reference"]["objective"] == pytest.approx(0.5)
    assert case["reference"]["error"] == pytest.approx(0.0, abs=1e-12)
    exact = case["curves"][f"{FAKES}:EXACT"]
    # w = 1 - step: excess of the objective (1 - step)^2 / 2 + 2 step over 1/2, and the bound 1/2 is exact.
    objectives = [(1 - step) ** 2 / 2 + 2 * step for step in (0.5, 0.1, 0.0)]
    assert [point["excess"] for point in exact] == pytest.approx([2 * each - 1 for each in objectives])
    assert [point["gap"] for point in exact] == pytest.approx([1 - 0.5 / each for each in objectives])
    assert [
        point["gap"] <= tol
        for point, tol in zip(case["curves"]["newton"], (1e-2, 1e-4, 1e-6, 1e-8), strict=True)
    ]
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_yardsticks_are_kept_apart(in_process):
    peers = ("newton", f"{FAKES}:YARDSTICK")
    document = run_benchmark(Plan(quick=True, peers=peers, powers=(1,), costs=(1.0,), repeats=2))
    (case,) = document["cases"]
    assert list(case["curves"]) == ["newton"]
    assert {run["peer"] for run in case["runs"]} == {"newton"}
    assert [(run["peer"], run["status"]) for run in case["yardsticks"]] == [
        (f"{FAKES}:YARDSTICK", "done")
    ] * 2
    assert all("objective" not in run and run["cpu_seconds"] >= 0 for run in case["yardsticks"])
    assert f"in no claim: {FAKES}:YARDSTICK" in markdown(document)


def test_a_yardstick_that_ends_badly_is_told(in_process):
    document = run_benchmark(Plan(quick=True, peers=("newton", f"{FAKES}:YARDSTICK"), powers=(1,)))
    document["cases"][0]["yardsticks"] = [{"peer": "other", "step": 1e-4, "status": "limit"}]
    assert "in no claim: other -.\n\nother was ended at its time limit" in markdown(document)


def test_repeats_are_interleaved_and_rotated(in_process):
    peers = (f"{FAKES}:EXACT", f"{FAKES}:FAR")
    settings = Plan(peers=peers, powers=(1,), costs=(1.0,), repeats=2)
    in_process_order = run_benchmark(settings)["cases"][0]["runs"]
    names = {peers[0]: "E", peers[1]: "F"}
    assert "".join(names[run["peer"]] for run in in_process_order) == "EFEFEF" + "FEFEFE"
    assert [len(each.steps) for each in in_process] == [1] * 12
    assert [each.certify for each in in_process] == [True] * 6 + [False] * 6
    bounds = [run["bound"] for run in in_process_order if run["peer"] == peers[0]]
    assert bounds == pytest.approx([0.5] * 6), "a bound of the first repeat holds for the second"


def test_missing_data_are_skipped_with_a_message(monkeypatch, in_process):
    def missing():
        raise DatasetNotFoundError("put it there")

    monkeypatch.setattr(
        plan, "find_workloads", lambda wanted, quick: (Workload("gone", "", "paper", missing),)
    )
    told = []
    document = run_benchmark(Plan(quick=True, peers=("newton",)), tell=told.append)
    assert document["cases"] == []
    assert told == ["without gone: put it there"]


def test_short_fits_are_repeated_and_long_ones_are_not(monkeypatch):
    """By a clock of our own: how busy the machine is would decide how often a fit is repeated."""
    clock = {"wall": 0.0, "cpu": 0.0}
    monkeypatch.setattr(child, "perf_counter", lambda: clock["wall"])
    monkeypatch.setattr(child, "process_time", lambda: clock["cpu"])
    calls = []

    def fit(wall, cpu):
        calls.append(1)
        clock["wall"] += wall
        clock["cpu"] += cpu
        return "solution"

    solution, numbers = child.measure(lambda: fit(0.001, 0.001))
    assert (solution, numbers["fits"], len(calls)) == ("solution", 50, 50)
    _, numbers = child.measure(lambda: fit(0.25, 0.125))
    assert (numbers["fits"], numbers["seconds"], numbers["cpu_seconds"]) == (1, 0.25, 0.125)


def test_peak_memory_is_that_of_the_fit():
    # In a process of its own, as in a benchmark: not every system can forget an earlier peak.
    script = (
        "import numpy as np\n"
        "from exclusivity.benchmark import child\n"
        "_, numbers = child.measure(lambda: float(np.ones(40_000_000 // 8).sum()))\n"
        "print(numbers['extra_bytes'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert 30e6 < float(done.stdout) < 80e6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"powers": (3,)}, "p must be 1 or 2"),
        ({"costs": (0.0,)}, "costs must be positive"),
        ({"limit": float("inf")}, "limit must be positive and finite"),
        ({"repeats": 0}, "repeats must be positive"),
        ({"threads": 0}, "threads must lie between 1"),
        ({"clock": "sun"}, "clock must be"),
        ({"workloads": ("nowhere",)}, "there is no workload 'nowhere'"),
        ({"peers": ("nobody",)}, "there is no peer 'nobody'"),
        ({"peers": ("no_module_of_ours:PEER",)}, "could not be imported"),
        ({"peers": (f"{FAKES}:NOT_A_PEER",)}, "not a Peer"),
    ],
)
def test_wrong_plans_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Plan(quick=True, **wrong)
