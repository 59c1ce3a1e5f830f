"""The documents on disk: schema, ranks, missing sets."""

import csv
import json

import numpy as np
import pytest
from scipy import stats

from exclusivity.experiments import Settings, collect, write_study
from exclusivity.experiments.curves import log_slope, normalised, pick_curve
from exclusivity.experiments.figure1 import lambda_grid, stopping_iteration
from exclusivity.experiments.methods import METHODS
from exclusivity.experiments.published import PAPER_METHODS
from exclusivity.experiments.sets import ALL_DATASETS
from exclusivity.experiments.study import Plan, Study, default_trials
from exclusivity.experiments.tables import table1
from experiments.experiment_cases import published_trials, toy_collection, toy_set

CELL = {"dataset", "method", "mean", "std", "paper_mean", "paper_std", "rank", "trials"}


def read(folder, name):
    return json.loads((folder / name).read_text())


def test_table1_has_the_promised_schema(small_study):
    document = read(small_study[1], "table1.json")
    assert {(cell["dataset"], cell["method"]) for cell in document["cells"]} == {
        (dataset, method) for dataset in ("heart", "sonar") for method in METHODS
    }
    for cell in document["cells"]:
        assert set(cell) >= CELL
        assert len(cell["trials"]) == 2
        assert cell["mean"] == pytest.approx(np.mean(cell["trials"]))
        assert cell["std"] == pytest.approx(np.std(cell["trials"], ddof=1))
        assert 0 <= cell["mean"] <= 100
    assert document["seed"] == 0
    assert {"numpy", "scikit-learn", "exclusivity", "python"} <= set(document["versions"])
    assert document["machine"]["cpus"] >= 1


def test_ranks_are_among_the_papers_ten(small_study):
    document = read(small_study[1], "table1.json")
    for dataset in ("heart", "sonar"):
        cells = {cell["method"]: cell for cell in document["cells"] if cell["dataset"] == dataset}
        means = [cells[method]["mean"] for method in PAPER_METHODS]
        assert [cells[method]["rank"] for method in PAPER_METHODS] == stats.rankdata(means).tolist()
        extra = cells["nu-SVM"]
        assert extra["rank"] == stats.rankdata([extra["mean"], *means])[0]
        everybody = stats.rankdata([cell["mean"] for cell in cells.values()])
        assert [cell["rank_all"] for cell in cells.values()] == everybody.tolist()


def test_average_ranks_and_the_papers(small_study):
    document = table1(published_trials())
    average = {row["method"]: row for row in document["average_ranks"]}
    for row in average.values():  # the paper breaks ties of two decimals, and gives both DRMs a 2
        assert row["rank"] == pytest.approx(row["paper_rank"], abs=0.16)
    assert document["critical_difference"] == pytest.approx(4.79, abs=0.01)
    assert document["friedman"]["p_value"] < 0.01
    assert document["groups"][0][0] == "L2-ERM30"


def test_the_optimum_is_the_matched_svm_in_every_trial(small_study):
    diagnostics = read(small_study[1], "table1.json")["diagnostics"]
    assert min(entry["extreme"] for entry in diagnostics["agreement"].values()) == 1.0
    assert all(entry["extreme"] >= -1e-7 for entry in diagnostics["excess"].values())
    assert max(diagnostics["spread"][name]["extreme"] for name in ("L1-ERM10", "L2-ERM30")) < 1e-9


def test_table2_means_and_ratios(small_study):
    document = read(small_study[1], "table2.json")
    means = {row["method"]: row["seconds"] for row in document["rows"]}
    assert min(means.values()) > 0
    assert len(document["ratios"]) == 24
    for row in document["ratios"]:
        assert row["ratio"] == pytest.approx(means[row["competitor"]] / means[row["erm"]])
    drm = next(row for row in document["ratios"] if row["paper_ratio"] and row["competitor"] == "DRM10")
    assert drm["paper_ratio"] == pytest.approx(168.5657 / 0.0568)


def test_figure1_has_all_panels(small_study):
    document = read(small_study[1], "figure1.json")
    sweep = document["sweep"]
    assert sweep["costs"] == lambda_grid(6)
    assert (sweep["costs"][0], sweep["costs"][-1]) == (0.05, 4.0)
    for p, apart in ((1, 1.2), (2, 0.0)):  # p = 1: the intercept may be an interval, which can move a row
        for k in (5, 10, 30):
            np.testing.assert_allclose(
                pick_curve(sweep, p, "optimum", k)["test"]["mean"],
                pick_curve(sweep, p, "SVM", k)["test"]["mean"],
                atol=apart + 1e-9,
            )
    with pytest.raises(KeyError, match="no curve for p = 3"):
        pick_curve(sweep, 3, "ERM", 5)
    runs = document["convergence"]["runs"]
    assert {(run["p"], run["members"]) for run in runs} == {(p, k) for p in (1, 2) for k in (5, 10, 30)}
    assert all(min(run["normalised"]) == 0 and max(run["normalised"]) == 1 for run in runs)
    scaling = document["scaling"]
    assert scaling["dataset"] != "ijcnn1"
    assert scaling["rows"] == [42, 85, 170]
    assert {curve["method"] for curve in scaling["curves"]} >= {"L1-ERM5", "L2-PSVM"}
    assert all(min(curve["iterations"]) >= 1 for curve in scaling["curves"])


def test_missing_sets_are_named_everywhere(small_study):
    study, folder = small_study
    for name in ("table1.json", "figure1.json", "verdicts.json"):
        assert set(read(folder, name)["missing"]) == {"australian", "ijcnn1"}
    assert "ijcnn1" in (folder / "report.html").read_text()
    unchecked = [v.key for v in study.verdicts if v.outcome.value == "not checked"]
    assert set(unchecked) == {"ijcnn1", "iterations", "quasi-linear", "p-and-time"}


def test_csv_files_hold_the_same_numbers(small_study):
    folder = small_study[1]
    with (folder / "table1.csv").open() as file:
        rows = list(csv.DictReader(file))
    cells = read(folder, "table1.json")["cells"]
    assert [float(row["mean"]) for row in rows] == [cell["mean"] for cell in cells]
    for name in (
        "ranks",
        "table2",
        "table2_ratios",
        "figure1_errors",
        "figure1_convergence",
        "figure1_times",
    ):
        assert len((folder / f"{name}.csv").read_text().splitlines()) > 2


def test_no_half_written_files_are_left(small_study):
    assert not list(small_study[1].glob(".*"))


def test_nothing_but_ijcnn1_still_makes_a_report(tmp_path):
    collection = toy_collection("ijcnn1", missing=("sonar",))
    settings = Settings(parts=("table1", "table2", "figure1"), trials=1, quick=True)
    plan = Plan(settings, collection)
    results = {task.key: fake_result(task) for task in plan.tasks()}
    documents = plan.documents(results)
    assert documents["table1"]["cells"] == []
    assert len(documents["table1"]["ijcnn1"]) == 2
    assert "table2" not in documents
    assert documents["figure1"]["sweep"] is None
    assert documents["figure1"]["scaling"]["dataset"] == "ijcnn1"
    provenance = {name: {} for name in ("versions", "machine", "datasets", "missing")}
    study = Study(
        settings,
        documents,
        [],
        {**provenance, **dict.fromkeys(("date", "trials", "seed", "splits"), 0), "quick": True},
    )
    assert write_study(study, tmp_path)[-1].name == "report.html"


def fake_result(task):
    if task.kind == "trial":
        names = ("L1-ERM10", "DRM10")
        return {
            **{what: dict.fromkeys(names, 1.0) for what in ("errors", "seconds")},
            **{what: {} for what in ("spread", "agreement", "excess")},
            "warnings": [],
        }
    if task.kind == "convergence":
        return {"objective": [2.0, 1.0, 1.0], "rule": 3, "gap": 0.1}
    return {"seconds": {"L1-ERM5": 0.1, "L1-PSVM": 0.2}, "iterations": {"L1-ERM5": 10, "L1-PSVM": 20}}


def test_no_data_at_all_plan_nothing():
    plan = Plan(Settings(trials=1), toy_collection())
    assert plan.tasks() == []
    documents = plan.documents({})
    assert documents["figure1"] == {"sweep": None, "convergence": None, "scaling": None}
    assert documents["theory"]["checks"]["eps"] == {}


def test_sizes_trials_and_costs_of_quick_and_full_runs():
    full, quick = Settings(), Settings(quick=True)
    assert full.sizes(49990) == [3124, 6248, 12497, 24995, 49990]
    assert quick.sizes(1000) == [250, 500, 1000]
    assert len(full.costs) > len(quick.costs)
    assert (default_trials(True), default_trials(False)) == (3, 10)


def test_collect_names_what_is_missing_and_hides_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(tmp_path))
    monkeypatch.setenv("EXCLUSIVITY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "heart_scale").write_bytes(b"")
    (tmp_path / "heart_scale").unlink()
    found = collect(["heart", "ijcnn1"], download=False)
    assert list(found.sets) == ["heart"]
    assert set(found.sets["heart"].y) == {-1.0, 1.0}
    assert "EXCLUSIVITY_DATA" in found.missing["ijcnn1"]
    assert str(tmp_path) not in found.missing["ijcnn1"] + found.sets["heart"].source
    assert found.large().name == "heart"


def test_collect_takes_a_wrong_data_folder_for_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="EXCLUSIVITY_DATA"):
        collect(["heart"])


def test_names_are_those_of_the_registry():
    from exclusivity.datasets import REGISTRY

    assert set(ALL_DATASETS) == set(REGISTRY)


def test_theory_takes_another_set_where_its_own_are_missing_and_splits_the_largest_too():
    collection = toy_collection("heart", "liver")
    collection.sets["ijcnn1"] = toy_set("ijcnn1", n_rows=300)
    found = {}
    for task in Plan(Settings(parts=("theory",)), collection).tasks():
        found.setdefault(task.params["check"], []).append(task.params["dataset"])
    assert found.pop("splitting") == ["liver", "ijcnn1"]
    assert all(names == ["liver"] for names in found.values())


def test_small_helpers():
    assert normalised([3.0, 3.0]) == [0.0, 0.0]
    assert log_slope([10], [1.0]) is None
    assert log_slope([10, 100], [0.0, 0.0]) == pytest.approx(0.0)
    assert stopping_iteration([4.0, 3.0, 2.0]) is None
