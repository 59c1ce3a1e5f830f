"""``erm bench`` as a person at a terminal meets it, and the files it leaves."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmark.bench_fakes import tiny
from exclusivity.benchmark import Workload, child, markdown, plan
from exclusivity.benchmark.processes import Children, StepOutcome, collect
from exclusivity.benchmark.report import command
from exclusivity.cli.main import main

FAKES = "benchmark.bench_fakes"


@pytest.fixture
def no_processes(monkeypatch):
    """Children run here; the one that would hang is reported as ended."""

    def run_here(self, request, limit):
        if request.peer.endswith("HANGS"):
            return [StepOutcome(step, "limit", {}) for step in request.steps[:1]]
        Path(request.out).mkdir(parents=True)
        child.run(request)
        return collect(request, Path(request.out), in_time=True, failure="")

    monkeypatch.setattr(child, "pin", lambda threads: None)
    monkeypatch.setattr(Children, "run", run_here)
    monkeypatch.setattr(
        plan, "find_workloads", lambda wanted, quick: (Workload("tiny", "two rows", "dense", tiny),)
    )


def test_the_command_writes_and_tells(no_processes, tmp_path, capsys):
    out = tmp_path / "new"
    peers = f"newton,{FAKES}:EXACT,{FAKES}:HANGS,{FAKES}:ABSENT"
    assert main(["bench", "--quick", "--peers", peers, "--p", "1", "--cost", "1,1/2", "--out", str(out)]) == 0
    text, err = capsys.readouterr()
    assert "without benchmark.bench_fakes:ABSENT" in err
    assert "erm bench: 6 tasks" in err
    assert "tiny p=1 C=0.5: newton" in text
    assert "no verdict on 18 of 18 claims" in text
    assert "dense, p = 2" not in text
    assert text.strip().endswith("bench.md")
    document = json.loads((out / "bench.json").read_text())
    assert [case["cost"] for case in document["cases"]] == [1.0, 0.5]
    assert len(document["bars"]) == 18
    page = (out / "bench.md").read_text()
    for expected in (
        "| claim | bar |",
        "### two rows: p = 1, C = 0.5",
        "by newton" if document["cases"][0]["reference"]["peer"] == "newton" else "EXACT, proven",
        f"{FAKES}:HANGS was ended at its time limit at step 1.",
        f"Without {FAKES}:ABSENT: surely_not_installed is not installed",
        "| newton | ERMClassifier(1, solver='newton') | free, not penalised | tol 0.01, 0.0001, 1e-06,",
        "(wall clock)",
        "| solver | to 1e-2 | to 1e-4 | to 1e-6 | passes |",
    ):
        assert expected in page
    pictures = sorted(path.name for path in out.glob("*.svg"))
    if find_spec("matplotlib"):
        assert pictures == ["tiny-p1-C0.5.svg", "tiny-p1-C1.svg"]
        assert "tiny-p1-C1.svg)" in page
        assert (
            "true relative excess" in (out / pictures[0]).read_text()
            or "<svg" in (out / pictures[0]).read_text()
        )


def test_the_page_names_the_command_that_repeats_it():
    settings = {
        "quick": True,
        "workloads": ["tiny"],
        "powers": [1, 2],
        "costs": [0.2, 2.0],
        "peers": ["newton", "sgd"],
        "repeats": 2,
        "limit": 3.0,
        "threads": 1,
        "clock": "cpu",
    }
    assert command(settings) == (
        "erm bench --quick --only tiny --p 1,2 --cost 0.2,2.0 --peers newton,sgd "
        "--repeats 2 --limit 3 --threads 1 --clock cpu"
    )
    assert "--cost" not in command(settings | {"costs": None}), "every workload has its own"


def test_a_case_that_nobody_finished_has_no_table(no_processes, tmp_path, capsys):
    assert main(["bench", "--quick", "--peers", f"{FAKES}:HANGS", "--p", "1", "--out", str(tmp_path)]) == 0
    document = json.loads((tmp_path / "bench.json").read_text())
    assert document["cases"][0]["reference"]["objective"] is None
    page = markdown(document)
    assert "Best objective" not in page
    assert "was ended at its time limit" in page
    assert "![" not in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cost", "two"], "--cost must be numbers"),
        (["--cost", "1/0"], "--cost must be numbers"),
        (["--p", "1.5"], "--p must be numbers"),
        (["--p", "3"], "p must be 1 or 2"),
        (["--only", "moon"], "there is no workload 'moon'"),
        (["--threads", "0"], "threads must lie between"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(words, message, tmp_path, capsys):
    assert main(["bench", "--quick", *words, "--out", str(tmp_path / "never")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "never").exists()


def test_out_must_be_a_folder(tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    assert main(["bench", "--out", str(file)]) == 1
    assert "--out must be a folder" in capsys.readouterr().err
