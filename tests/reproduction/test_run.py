"""One small run of everything, what it writes, and what is kept for the next one."""

import json

import numpy as np
import pandas as pd
import pytest

from reproduction import claims, data, figure1, report, run, tables, theory
from reproduction.claims import FAILS, HOLDS, PART, UNCHECKED
from reproduction.published import FIGURE_MEMBERS, PAPER_SYSTEMS
from reproduction.systems import SYSTEMS
from reproduction_cases import published_trials, toy_set, trials_frame

SETS = {"sonar": toy_set("sonar"), "heart": toy_set("heart", seed=1)}


def experiments(folder, **changes):
    settings = {"trials": 2, "seed": 0, "quick": True, "jobs": 1} | changes
    return run.Experiments(SETS, **settings, cache=folder / "cache")


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """(results, verdicts, folder) of all parts on made-up data without ijcnn1."""
    folder = tmp_path_factory.mktemp("run")
    results = experiments(folder).results(run.PARTS)
    return results, run.write(results, run.PARTS, {"seed": 0}, folder), folder


def test_table1_has_every_system_and_trial(small_run):
    results, _, folder = small_run
    assert results.trials.groupby(["dataset", "system"]).size().to_dict() == {
        (dataset, system): 2 for dataset in SETS for system in SYSTEMS
    }
    assert results.trials["error"].between(0, 100).all()
    assert (results.trials["seconds"] > 0).all()
    written = pd.read_csv(folder / "table1.csv").set_index(["dataset", "system"])
    pd.testing.assert_series_equal(written["mean"], tables.table1(results.trials)["mean"])


def test_the_optimum_is_the_matched_svm_in_every_trial(small_run):
    erm = small_run[0].trials.dropna(subset="agreement")
    assert set(erm["system"]) == {name for name in PAPER_SYSTEMS if "ERM" in name}
    assert (erm["agreement"] == 1.0).all()
    assert (erm["excess"] >= -1e-7).all()
    assert (erm["spread"] < 1e-9).all()


def test_figure1_has_all_panels(small_run):
    results, _, folder = small_run
    sweep = results.sweep
    assert sorted(sweep["lambda"].unique()) == figure1.lambda_grid(6)
    assert figure1.lambda_grid(6)[::5] == [0.05, 4.0]
    for p, apart in ((1, 1.2), (2, 0.0)):  # p = 1: the intercept may be an interval, which can move a row
        for k in FIGURE_MEMBERS:
            best, one = (figure1.curve(sweep, p, system, k)["test"] for system in ("optimum", "SVM"))
            np.testing.assert_allclose(best, one, atol=apart + 1e-9)
    with pytest.raises(KeyError, match="no curve for p = 3"):
        figure1.curve(sweep, 3, "ERM", 5)
    lengths = results.convergence.groupby(["p", "members"]).size()
    assert lengths.to_dict() == {(p, k): figure1.MAX_ITER for p in (1, 2) for k in FIGURE_MEMBERS}
    assert results.large == "sonar"
    assert sorted(results.scaling["rows"].unique()) == [42, 85, 170]
    assert (results.scaling["iterations"] >= 1).all()
    written = pd.read_csv(folder / "figure1_scaling.csv")
    assert list(written.columns) == list(results.scaling.columns)
    for name in ("figure1.png", "members_or_cost.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_the_checks_find_what_the_mathematics_says(small_run):
    verdicts = small_run[1]["verdict"]
    expected = {"proposition1": HOLDS, "theorem1": PART, "lemma2": HOLDS, "regularisers": PART, "eps": PART}
    expected |= {"equivalence": HOLDS, "gains": FAILS}
    assert verdicts[list(expected)].to_dict() == expected
    assert verdicts["theorem2"] != HOLDS
    unchecked = {"ijcnn1_close", "iterations", "quasi_linear", "p_and_time"}
    assert set(verdicts[verdicts == UNCHECKED].index) == unchecked
    assert set(json.loads((small_run[2] / "theory.json").read_text())) == set(theory.CHECKS)


def test_the_report_has_every_claim_and_system(small_run):
    page = (small_run[2] / "report.md").read_text(encoding="utf-8")
    for statement in small_run[1]["claim"]:
        assert statement.replace("|", "&#124;") in page
    for name in SYSTEMS:
        assert f"| **{name}** |" in page
    assert "- seed: 0" in page
    blocks = [block.splitlines() for block in page.split("\n\n") if block.startswith("| ")]
    assert len(blocks) == 7
    for block in blocks:
        assert len({line.count("|") for line in block}) == 1


def test_ijcnn1_and_warnings_are_reported():
    trials = pd.concat(
        [published_trials(), trials_frame({"ijcnn1": [dict.fromkeys(PAPER_SYSTEMS, 9.0)] * 2})]
    )
    trials.loc[trials["system"] == "DRM10", "warnings"] = "slow"
    results = claims.Results(trials=trials)
    page = report.render(results, claims.judge_all(results, ("table1",)), ("table1",), {})
    assert "accuracy in %: L1-ERM10 91.0" in page
    assert "- 26 x DRM10: slow" in page
    assert "## Table 2" not in page


def test_nothing_but_ijcnn1_still_makes_a_report():
    results = claims.Results(trials=trials_frame({"ijcnn1": [dict.fromkeys(SYSTEMS, 9.0)] * 2}))
    verdicts = claims.judge_all(results, ("table1",))
    assert "accuracy in %" in report.render(results, verdicts, ("table1",), {})


def test_stopping_rule_and_exponents():
    assert figure1.stopping_iteration(np.array([4.0, 3.0, 2.0])) == np.inf
    assert figure1.normalised(np.array([3.0, 3.0])).tolist() == [0.0, 0.0]
    silent = pd.DataFrame({"clock": [0.0, 0.0]}, index=[10, 100])
    assert figure1.exponents(silent)["clock"] == pytest.approx(0.0)


def test_a_linear_programme_that_fails_is_an_error(monkeypatch):
    class Failed:
        x, message = None, "out of luck"

    monkeypatch.setattr(theory, "linprog", lambda *a, **k: Failed)
    with pytest.raises(ValueError, match="out of luck"):
        theory.regularisers(toy_set("heart", n_rows=40), 0)


def record(folder, number):
    """A call that leaves a trace, and is interrupted where a file says so."""
    if (folder / f"stop at {number}").exists():
        raise KeyboardInterrupt
    with (folder / "trace").open("a") as file:
        file.write(f"{number}\n")
    return number


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    stop = tmp_path / "stop at 2"
    stop.touch()
    calls = [(tmp_path, number) for number in range(4)]
    with pytest.raises(KeyboardInterrupt):
        experiments(tmp_path).run(record, calls)
    stop.unlink()
    assert experiments(tmp_path).run(record, calls) == [0, 1, 2, 3]
    assert experiments(tmp_path).run(record, [*calls, (tmp_path, 4)])[-1] == 4
    assert (tmp_path / "trace").read_text().split() == ["0", "1", "2", "3", "4"]


def test_jobs_change_no_number_and_share_what_is_finished(tmp_path, monkeypatch):
    calls = [(one, "proposition1", 0) for one in SETS.values()]
    alone = experiments(tmp_path / "a").run(theory.run_check, calls)
    both = experiments(tmp_path / "b", jobs=2).run(theory.run_check, calls)
    assert alone == both
    monkeypatch.setitem(theory.CHECKS, "proposition1", None)  # nothing is left to be done
    assert experiments(tmp_path / "b").run(theory.run_check, calls) == alone
    other = (toy_set("sonar", n_rows=171), "proposition1", 0)
    with pytest.raises(TypeError):  # other rows are other calls
        experiments(tmp_path / "b").run(theory.run_check, [other])


def test_sizes_and_sets_of_quick_and_full_runs(tmp_path, monkeypatch):
    asked = []
    sets = {name: toy_set(name) for name in ("heart", "liver")} | {"ijcnn1": toy_set("ijcnn1", n_rows=1600)}
    monkeypatch.setattr(
        run.Experiments, "run", lambda self, function, calls: [asked.append(c) or [] for c in calls]
    )

    def calls(method, **changes):
        asked.clear()
        getattr(run.Experiments(sets, trials=10, seed=0, jobs=1, cache=tmp_path, **changes), method)()
        return list(asked)

    assert [call[3] for call in calls("scaling", quick=True)] == [1600, 800, 400]
    assert [call[3] for call in calls("scaling", quick=False)][::10] == [1600, 800, 400, 200, 100]
    assert calls("sweep", quick=True) == []  # without sonar
    assert len(calls("table_trials", quick=True)) == 30
    checks = [(call[1], call[0].name) for call in calls("theory", quick=False)]
    assert checks[-1] == ("splitting", "ijcnn1")
    assert {name for _, name in checks[:-1]} == {"liver"}
    sets |= {name: toy_set(name) for name in ("sonar", "german")}
    checks = [(call[1], call[0].name) for call in calls("theory", quick=False)]
    assert len(checks) == len(set(checks)) == 2 * len(theory.CHECKS) + 1
    assert {call[0].name for call in calls("theory", quick=True)} == {"sonar", "ijcnn1"}


@pytest.fixture
def toy_data(monkeypatch):
    monkeypatch.delenv("EXCLUSIVITY_DATA", raising=False)
    asked = []

    def load(**how):
        asked.append(how)
        return {"heart": toy_set("heart")}, {"ijcnn1": "it is nowhere"}

    monkeypatch.setattr(data, "load", load)
    return asked


def test_the_command_writes_and_reports(toy_data, tmp_path, capsys, monkeypatch):
    argv = ["--only", "table2", "--quick", "--trials", "1", "--jobs", "1", "--out", str(tmp_path / "new")]
    assert run.main(argv) == 0
    out, err = capsys.readouterr()
    assert "running without ijcnn1: it is nowhere" in err
    assert "DRM takes about 2000 times as long as ERM" in out
    assert "Too few trials for firm verdicts" in out
    assert out.strip().endswith("report.md")
    assert toy_data == [{"download": False}]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "cache",
        "claims.csv",
        "report.md",
        "table1.csv",
        "table2.csv",
        "trials.csv",
    }
    page = (tmp_path / "new" / "report.md").read_text(encoding="utf-8")
    assert "Table 1:" not in page
    assert "- missing: ijcnn1" in page
    monkeypatch.setattr(tables, "build", None)  # the same command again trains nothing
    assert run.main(argv) == 0


def test_the_data_folder_can_be_given(toy_data, tmp_path, monkeypatch):
    monkeypatch.setenv("EXCLUSIVITY_DATA", "elsewhere")
    monkeypatch.setattr(run.Experiments, "results", lambda self, parts: claims.Results())
    assert run.main(["--data", str(tmp_path), "--only", "theory", "--out", str(tmp_path)]) == 0
    assert run.os.environ["EXCLUSIVITY_DATA"] == str(tmp_path)
    assert toy_data == [{"download": True}]


def test_ctrl_c_says_that_nothing_is_lost(toy_data, tmp_path, monkeypatch, capsys):
    def interrupted(self, parts):
        raise KeyboardInterrupt

    monkeypatch.setattr(run.Experiments, "results", interrupted)
    assert run.main(["--out", str(tmp_path)]) == 130
    assert f"finished trials are in {tmp_path}" in capsys.readouterr().err


def test_no_data_is_an_error(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(data, "load", lambda **how: ({}, {"heart": "it is nowhere"}))
    assert run.main(["--out", str(tmp_path / "out")]) == 1
    assert "none of the data sets was found" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "argv", [["--trials", "0"], ["--seed", "-1"], ["--jobs", "0"], ["--only", "table3"], ["--trials", "x"]]
)
def test_a_wrong_command_line_exits_with_2(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        run.main(argv)
    assert stop.value.code == 2
    assert argv[1] in capsys.readouterr().err
