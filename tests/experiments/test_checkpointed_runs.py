"""Same numbers whatever the jobs; what is finished survives an interruption."""

import json

import pytest

from exclusivity.experiments import runner
from exclusivity.experiments.checkpoint import Checkpoint
from exclusivity.experiments.progress import Progress
from exclusivity.experiments.runner import run_all
from exclusivity.experiments.study import CHECKPOINT, Plan, Settings, reproduce
from exclusivity.experiments.tasks import Task
from experiments.experiment_cases import toy_collection

COLLECTION = toy_collection("heart")
SETTINGS = {"parts": ("table1",), "trials": 3}
SOME = ["L1-ERM10", "Bagging10", "nu-SVM"]


def without_times(results):
    return {key: {**result, "seconds": None} for key, result in results.items()}


def tasks(**changes):
    return Plan(Settings(**{**SETTINGS, **changes}), COLLECTION).tasks()


@pytest.fixture
def fake_work(monkeypatch):
    """Tasks that count themselves and take no time."""
    done = []

    def work(task, sets):
        done.append(task)
        return {"trial": task.params["trial"]}

    monkeypatch.setattr(runner, "run_task", work)
    return done


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path):
    some = [Task("trial", {**task.params, "methods": SOME}) for task in tasks()]
    runs = [
        run_all(some, COLLECTION.sets, Checkpoint(tmp_path / f"{jobs}.jsonl"), jobs=jobs, progress=Progress())
        for jobs in (1, 2)
    ]
    assert without_times(runs[0]) == without_times(runs[1])
    assert len(runs[0]) == 3


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, fake_work, monkeypatch):
    path = tmp_path / "new" / "checkpoint.jsonl"
    work = runner.run_task

    def interrupted(task, sets):
        if len(fake_work) == 2:
            raise KeyboardInterrupt
        return work(task, sets)

    monkeypatch.setattr(runner, "run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_all(tasks(), {}, Checkpoint(path), jobs=1, progress=Progress())
    assert len(path.read_text().splitlines()) == 2
    monkeypatch.setattr(runner, "run_task", work)
    results = run_all(tasks(), {}, Checkpoint(path), jobs=1, progress=Progress())
    assert [task.params["trial"] for task in fake_work] == [0, 1, 2]
    assert results == {task.key: {"trial": number} for number, task in enumerate(tasks())}


def test_more_trials_reuse_the_finished_ones_and_another_seed_does_not(tmp_path, fake_work):
    path = tmp_path / "checkpoint.jsonl"
    for changes, fresh in (({}, 3), ({}, 0), ({"trials": 5}, 2), ({"seed": 1}, 3)):
        fake_work.clear()
        run_all(tasks(**changes), {}, Checkpoint(path), jobs=1, progress=Progress())
        assert len(fake_work) == fresh


def test_other_data_are_run_anew(tmp_path, fake_work):
    path = tmp_path / "checkpoint.jsonl"
    run_all(tasks(), {}, Checkpoint(path), jobs=1, progress=Progress())
    other = Plan(Settings(**SETTINGS), toy_collection("heart", n_rows=171)).tasks()
    fake_work.clear()
    run_all(other, {}, Checkpoint(path), jobs=1, progress=Progress())
    assert len(fake_work) == 3


def test_a_torn_line_and_foreign_lines_are_skipped(tmp_path, fake_work):
    path = tmp_path / "checkpoint.jsonl"
    run_all(tasks(), {}, Checkpoint(path), jobs=1, progress=Progress())
    lines = path.read_text().splitlines()
    old = json.dumps({**json.loads(lines[0]), "stamp": {"format": 0}})
    path.write_text("\n".join([lines[0], "[1]", '{"key": 1}', old, lines[1], lines[2][:50]]))
    fake_work.clear()
    run_all(tasks(), {}, Checkpoint(path), jobs=1, progress=Progress())
    assert [task.params["trial"] for task in fake_work] == [2]
    assert len(Checkpoint(path).load()) == 3  # the new line did not end up behind the torn one


def test_an_error_in_a_worker_reaches_the_caller_and_finished_tasks_stay(tmp_path):
    good, *_ = tasks()
    bad = [Task("trial", {**good.params, "fingerprint": "other", "trial": number}) for number in range(2)]
    checkpoint = Checkpoint(tmp_path / "checkpoint.jsonl")
    run_all([good], COLLECTION.sets, checkpoint, jobs=1, progress=Progress())
    with pytest.raises(ValueError, match="not the data that the task was made for"):
        run_all([good, *bad], COLLECTION.sets, checkpoint, jobs=2, progress=Progress())
    assert list(checkpoint.load()) == [good.key]


def test_a_worker_ignores_ctrl_c_and_knows_the_data(monkeypatch):
    calls = []
    monkeypatch.setattr(runner.signal, "signal", lambda *what: calls.append(what))
    monkeypatch.setattr(runner, "_worker_sets", {})
    runner._start_worker(dict(COLLECTION.sets))
    assert calls == [(runner.signal.SIGINT, runner.signal.SIG_IGN)]
    result = runner._run_in_worker(tasks(trials=1)[0])
    assert set(result["errors"]) == set(tasks()[0].params["methods"])


def test_reproduce_writes_its_checkpoint_into_the_folder(tmp_path, fake_work, monkeypatch):
    monkeypatch.setattr(Plan, "documents", lambda self, results: {})
    study = reproduce(Settings(**SETTINGS), COLLECTION, tmp_path / "out")
    assert (tmp_path / "out" / CHECKPOINT).is_file()
    assert study.verdicts == []
    assert study.provenance["seed"] == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts": ()}, "parts must be"),
        ({"parts": ("table3",)}, "parts must be some of figure1"),
        ({"trials": 0}, "trials must be"),
        ({"seed": -1}, "seed must be"),
        ({"jobs": 0}, "jobs must be"),
    ],
)
def test_settings_are_checked(changes, words):
    with pytest.raises(ValueError, match=words):
        Settings(**changes)
