"""``erm reproduce`` as a person at a terminal meets it."""

import json

import pytest

from exclusivity import experiments
from exclusivity.cli.main import main
from exclusivity.experiments import runner
from experiments.experiment_cases import toy_collection, trial_result

QUICK = ["reproduce", "--only", "table1", "--trials", "2", "--jobs", "1"]


@pytest.fixture
def fake(monkeypatch):
    """A set and results at once; counts what is run."""
    done = []

    def work(task, sets):
        done.append(task)
        errors = {name: 20.0 + number for number, name in enumerate(task.params["methods"])}
        return trial_result(errors)

    monkeypatch.setattr(experiments, "collect", lambda **how: toy_collection("heart", missing=("ijcnn1",)))
    monkeypatch.setattr(runner, "run_task", work)
    return done


def test_table1_is_written_and_told(fake, tmp_path, capsys):
    assert main([*QUICK, "--out", str(tmp_path / "new")]) == 0
    out, err = capsys.readouterr()
    assert "average rank on Table 1" in out
    assert "L1-ERM10" in out
    assert "(4.8)" in out
    assert "missing data sets: ijcnn1" in out
    assert out.strip().endswith("report.html")
    assert "running without ijcnn1" in err
    assert "2/2 after" in err
    document = json.loads((tmp_path / "new" / "table1.json").read_text())
    assert len(document["cells"]) == 21
    assert not (tmp_path / "new" / "table2.json").exists()


def test_a_quick_run_is_told_briefly(fake, tmp_path, capsys):
    assert main([*QUICK, "--quick", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "running without ijcnn1: not bundled" in err
    assert "A first look, " in out
    assert "not checked  " not in out
    assert main([*QUICK, "--out", str(tmp_path / "whole")]) == 0
    assert "A first look" not in capsys.readouterr().out


def test_the_same_command_again_runs_nothing(fake, tmp_path, capsys):
    for _ in range(2):
        assert main([*QUICK, "--out", str(tmp_path)]) == 0
    assert len(fake) == 2
    assert "2 of them known from an earlier run" in capsys.readouterr().err


def test_table2_from_the_trials_of_table1(fake, tmp_path, capsys):
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    argv = [*QUICK, "--out", str(tmp_path)]
    argv[argv.index("table1")] = "table2"
    assert main(argv) == 0
    assert len(fake) == 2
    assert "average rank" not in capsys.readouterr().out.split("report.html")[1]


def test_ctrl_c_keeps_what_is_finished(fake, tmp_path, capsys, monkeypatch):
    work = runner.run_task

    def interrupted(task, sets):
        if fake:
            raise KeyboardInterrupt
        return work(task, sets)

    monkeypatch.setattr(runner, "run_task", interrupted)
    assert main([*QUICK, "--out", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert len((tmp_path / "checkpoint.jsonl").read_text().splitlines()) == 1
    assert not (tmp_path / "report.html").exists()
    monkeypatch.setattr(runner, "run_task", work)
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    assert len(fake) == 2


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--trials", "0"], "--trials must be at least 1; got 0"),
        (["--seed", "-1"], "--seed must be at least 0; got -1"),
        (["--jobs", "0"], "--jobs must be at least 1; got 0"),
    ],
)
def test_wrong_numbers_exit_with_2(argv, words, capsys, tmp_path):
    assert main(["reproduce", "--out", str(tmp_path / "x"), *argv]) == 2
    assert capsys.readouterr().err.strip() == f"erm reproduce: error: {words}."
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("argv", [["--only", "table3"], ["--trials", "many"], ["--fast"]])
def test_a_wrong_command_line_exits_with_2(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *argv])
    assert stop.value.code == 2
    assert "usage: erm" in capsys.readouterr().err


def test_out_must_not_be_a_file(tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("mine")
    assert main(["reproduce", "--out", str(path)]) == 1
    assert "--out must be a folder" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_a_wrong_data_folder_is_an_error(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(tmp_path / "nowhere"))
    assert main(["reproduce", "--out", str(tmp_path / "out")]) == 1
    assert "EXCLUSIVITY_DATA" in capsys.readouterr().err


def test_no_data_at_all_is_an_error_that_says_how_to_get_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(experiments, "collect", lambda **how: toy_collection(missing=("heart",)))
    assert main(["reproduce", "--out", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert "none of the data sets was found" in err
    assert "'heart' was not found" in err


def test_quick_never_downloads_and_defaults_fit(monkeypatch, tmp_path):
    asked = {}

    def collect(**how):
        asked.update(how)
        return toy_collection("heart")

    def reproduce(settings, collection, out, progress):
        asked["settings"] = settings
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "collect", collect)
    monkeypatch.setattr(experiments, "reproduce", reproduce)
    assert main(["reproduce", "--quick", "--out", str(tmp_path)]) == 130
    assert asked["download"] is False
    assert asked["settings"].trials == 3
    assert asked["settings"].parts == experiments.PARTS
    assert asked["settings"].jobs >= 1
    assert main(["reproduce", "--out", str(tmp_path)]) == 130
    assert asked["download"] is True
    assert asked["settings"].trials == 10
