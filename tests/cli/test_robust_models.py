"""``erm fit --max-broken`` and what the commands make of such a model; weights, targets and metrics."""

import csv
import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from exclusivity import RobustAdditiveClassifier
from exclusivity.cli import models
from exclusivity.cli.evaluate import wilson
from exclusivity.cli.main import main
from exclusivity.io import load_model, read_table

N = 240


def mixed(seed, n=N):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.normal(size=n).round(2) for name in ("a", "b", "c", "d")})
    table["colour"] = rng.choice(["red", "blue", "green"], n)
    side = table[["a", "b", "c", "d"]].sum(axis=1) + (table["colour"] == "red") + rng.normal(0, 0.5, n)
    table["state"] = np.where(side > 0.3, "ill", "well")
    return table


class Files:
    """Models by the names of their files."""

    def __getitem__(self, path):
        return load_model(path)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run commands in a folder with tables; without model files for robust models these stay in memory."""
    monkeypatch.chdir(tmp_path)
    mixed(0).to_csv("train.csv", index=False)
    mixed(1).to_csv("test.csv", index=False)
    kept = Files()
    if find_spec("exclusivity.io._model_tables") is None:
        kept = {}

        def save(model, names, target, path):
            model.target_column_ = target
            kept[path] = model

        monkeypatch.setattr(models, "save", save)
        monkeypatch.setattr(models, "load", lambda path: models.Loaded(kept[path], path))

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    call.models = kept
    return call


FIT = ["fit", "train.csv", "--target", "state", "-o", "r.erm", "--max-broken", "1", "--folds", "0", "-q"]


def test_the_model_is_that_of_the_options(run, tmp_path):
    (tmp_path / "groups.csv").write_text("a,left\nb,left\nc,right\nd,right\ncolour,colour\n")
    code, out, err = run(
        *FIT, "--cost", 0.2, "--trusted", "d", "--threats", "a=increase,c=0:1", "--groups", "groups.csv",
        "--monotonic", "b=-1", "--class-weight", "balanced", "--tol", 1e-3,
    )  # fmt: skip
    assert code == 0, err
    table = mixed(0)
    expected = RobustAdditiveClassifier(
        1,
        C=0.2,
        threats={"d": "trusted", "a": "increase", "c": (0, 1)},
        feature_groups=["left", "left", "right", "right", "colour"],
        monotonic_cst=[0, -1, 0, 0, 0],
        class_weight="balanced",
        tol=1e-3,
    ).fit(table.drop(columns="state"), table["state"])
    np.testing.assert_allclose(run.models["r.erm"].points_, expected.points_, atol=1e-12)
    assert run.models["r.erm"].verbose == 0
    assert re.search("^max broken +1$", out, re.MULTILINE)
    assert re.search("^converged +yes, within", out, re.MULTILINE)


def test_predict_certify_evaluate_and_inspect(run):
    assert run(*FIT)[0] == 0
    model, table = run.models["r.erm"], mixed(1)
    X = table.drop(columns="state")
    labels, radii = model.predict(X), model.certify(X)
    assert run("predict", "r.erm", "test.csv", "--radius", "--keep", "state", "-o", "p.csv")[0] == 0
    with open("p.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["label"] for row in rows] == labels.tolist()
    assert [int(row["radius"]) for row in rows] == radii.tolist()
    assert [row["state"] for row in rows] == table["state"].tolist()
    found = json.loads(run("certify", "r.erm", "test.csv", "--json")[1])
    right = labels == table["state"]
    for row in found["by_radius"]:
        assert row["certified_accuracy"] == pytest.approx((right & (radii >= row["radius"])).mean())
    threats = "a=trusted,b=trusted,c=trusted"
    found = json.loads(run("certify", "r.erm", "test.csv", "--json", "--threats", threats)[1])
    safer = model.certify(X, dict.fromkeys("abc", "trusted"))
    assert found["by_radius"][1]["rows"] == (safer >= 1).sum() > (radii >= 1).sum()
    found = json.loads(run("evaluate", "r.erm", "test.csv", "--json")[1])
    assert found["accuracy"] == pytest.approx(right.mean())
    assert run("inspect", "r.erm", "--html", "r.html", "--data", "test.csv")[0] == 0
    assert "RobustAdditiveClassifier" in Path("r.html").read_text(encoding="utf-8")
    code, out, _ = run("inspect", "r.erm")
    assert code == 0
    assert "--max-broken 1" in out
    assert "from_dtype" not in out
    ranges = {row["column"]: row["largest_effect_on_score"] for row in _inspect(run)["by_column"]}
    assert list(ranges) == sorted(ranges, key=ranges.get, reverse=True)
    assert set(ranges) == {"a", "b", "c", "d", "colour"}
    wide = model.decision_function(X.assign(a=9)) - model.decision_function(X.assign(a=-9))
    assert ranges["a"] >= np.abs(wide).max() - 1e-9


def _inspect(run):
    return json.loads(run("inspect", "r.erm", "--json")[1])


def test_numbers_with_a_decimal_comma_and_broken_cells(run):
    table = mixed(0)
    table.to_csv("train.csv", index=False, sep=";", decimal=",")
    code, _, err = run(*FIT)
    assert code == 0, err
    assert [column.notation for column in run.models["r.erm"].columns_] == [",", ",", ",", ",", None]
    new = mixed(1)
    new.to_csv("new.csv", index=False, sep=";", decimal=",")
    expected = run("predict", "r.erm", "new.csv", "--scores", "-q")[1]
    scores = run.models["r.erm"].decision_function(new.drop(columns="state"))
    assert [float(line.split(",")[1]) for line in expected.splitlines()[1:]] == pytest.approx(scores)
    broken = new.drop(columns="d")
    broken["a"] = broken["a"].astype(str).str.replace(".", ",")
    broken.loc[::5, "a"] = "none at all"
    broken.loc[3, "colour"] = "mauve"
    broken.to_csv("broken.csv", index=False, sep=";", decimal=",")
    code, out, err = run("predict", "r.erm", "broken.csv", "--scores")
    assert code == 0
    assert "broken.csv lacks 'd'; all its cells count as missing values" in err
    assert "column 'a' of broken.csv: 48 texts taken for missing values" in err
    assert "column 'colour' of broken.csv: 1 row with 1 level that training did not have" in err
    blank = broken.assign(a=new["a"].where(np.arange(N) % 5 > 0), d=np.nan)
    scores = run.models["r.erm"].decision_function(blank[["a", "b", "c", "d", "colour"]])
    assert [float(line.split(",")[1]) for line in out.splitlines()[1:]] == pytest.approx(scores)
    assert run("predict", "r.erm", "broken.csv", "--strict")[0] == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--members", 3], "--members is not for --max-broken; leave one of them out"),
        (["--voting", "hard"], "--voting is not for --max-broken"),
        (["--scale", "none"], "--scale is not for --max-broken"),
        (["--additive"], "--additive is not for --max-broken"),
        (["--linear"], "--linear is not for --max-broken"),
        (
            ["--trusted", "colr"],
            "--threats: threats names 'colr', which is no column of X; did you mean 'colour'?",
        ),
        (["--threats", "e=any"], "--threats: threats names 'e', which is no column of X"),
        (["--dask"], "--max-broken is for rows in memory"),
    ],
)
def test_what_does_not_go_together(run, options, words):
    code, _, err = run(*FIT[:-3], *options)
    assert code == 2
    assert words in err
    code, _, err = run("fit", "train.csv", "--target", "state", "-o", "m.erm", "--trusted", "a")
    assert (code, "--trusted needs --max-broken" in err) == (2, True)


@pytest.mark.parametrize("threat", ["sometimes", "a=sometimes", "a=any,a=missing"])
def test_threats_that_are_none(run, threat, capsys):
    with pytest.raises(SystemExit):
        run(*FIT, "--threats", threat)
    assert "--threats" in capsys.readouterr().err


def test_libsvm_is_no_table(run, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\n0 1:3\n")
    code, _, err = run("fit", "rows.svm", "-o", "r.erm", "--max-broken", "1")
    assert code == 2
    assert "--max-broken is for tables" in err


@pytest.mark.skipif(not hasattr(RobustAdditiveClassifier, "suspects"), reason="suspects() is not there yet")
def test_check(run):
    assert run(*FIT)[0] == 0
    new = mixed(2)
    new["b"] *= 1000
    new.to_csv("new.csv", index=False)
    new = new.drop(columns="state")
    code, out, _ = run("check", "r.erm", "new.csv", "--json")
    found = json.loads(out)
    stands = run.models["r.erm"].stands(new, ["b"])
    assert code == 0
    assert found["not_relied_on"] == ["b"]
    assert found["predictions_that_stand"] == pytest.approx(stands.mean())
    assert found["columns"][0]["column"] == "b"
    code, out, _ = run("check", "r.erm", "new.csv", "--columns", "a,colour", "-o", "stands.csv")
    assert code == 0
    assert re.search("^not relied on +a, colour$", out, re.MULTILINE)
    code, _, err = run("check", "r.erm", "new.csv", "--columns", "Colour")
    assert (code, "which is no column of X; did you mean 'colour'?" in err) == (2, True)
    assert run("check", "r.erm", "test.csv", "-o", "-")[1].startswith("label,stands\n")
    with open("stands.csv", newline="") as stream:
        written = [row["stands"] == "True" for row in csv.DictReader(stream)]
    assert written == run.models["r.erm"].stands(new, ["a", "colour"]).tolist()


def test_a_table_of_too_few_columns_is_warned_of(erm, tmp_path):
    rng = np.random.default_rng(0)
    sides = np.where(rng.random(200) < 0.8, "well", "ill")
    table = pd.DataFrame({"a": rng.normal(size=200) + (sides == "ill"), "b": rng.normal(size=200)})
    table.assign(State=sides).to_csv(tmp_path / "few.csv", index=False)
    fit = ["fit", "few.csv", "-o", "m.erm", "--max-broken", 2, "--target"]
    code, _, err = erm(*fit, "state")
    assert code == 3
    assert "no column 'state'; did you mean 'State'?" in err
    _, _, err = erm(*fit, "State")
    assert "name those that cannot break (--trusted), let fewer break (--max-broken)" in err


def test_check_needs_a_robust_model(erm):
    code, _, err = erm("check", "soft.erm", "new.csv")
    assert code == 1
    assert "fit with --max-broken" in err


def test_rows_of_weight_2_are_two_rows(run):
    table = mixed(0, 60).assign(weight=np.arange(60) % 3)
    table.to_csv("weighted.csv", index=False)
    twice = table.loc[np.repeat(np.arange(60), table["weight"])].drop(columns="weight")
    twice.to_csv("train.csv", index=False)
    tight = ["--tol", "1e-8", "--folds", "0", "--target", "state", "--drop", "colour", "--scale", "none"]
    assert run("fit", "weighted.csv", "-o", "w.erm", "--sample-weight", "weight", *tight)[0] == 0
    assert run("fit", "train.csv", "-o", "t.erm", *tight)[0] == 0
    weighted, repeated = run.models["w.erm"][-1].coef_, run.models["t.erm"][-1].coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)
    table.assign(weight="x").to_csv("weighted.csv", index=False)
    code, _, err = run("fit", "weighted.csv", "-o", "w.erm", "--sample-weight", "weight", *tight)
    assert (code, "sample weights must be numbers" in err) == (3, True)


@pytest.mark.parametrize("codes", [{"ill": "ill", "well": "well"}, {"ill": "1", "well": "2"}])
@pytest.mark.parametrize("gap", ["", "NA", "null"])
def test_rows_without_a_class_may_be_left_out(run, codes, gap):
    table = mixed(0).replace({"state": codes})
    table.to_csv("whole.csv", index=False)
    rows = pd.concat([table, table.head(7).assign(state=gap)])
    rows.to_csv("holed.csv", index=False)
    fit = ["--target", "state", "--folds", "0"]
    assert run("fit", "whole.csv", "-o", "a.erm", *fit)[0] == 0
    assert run("fit", "holed.csv", "-o", "b.erm", *fit)[0] == 3
    code, _, err = run("fit", "holed.csv", "-o", "b.erm", *fit, "--drop-missing-target")
    assert code == 0, err
    assert "7 rows of holed.csv without a class left out" in err
    ours, theirs = run.models["a.erm"], run.models["b.erm"]
    assert ours[-1].classes_.tolist() == theirs[-1].classes_.tolist()
    np.testing.assert_allclose(ours[-1].coef_, theirs[-1].coef_)


class TestMetrics:
    @pytest.mark.parametrize("loss", ["hinge", "logistic"])
    def test_against_scikit_learn(self, erm, loss):
        assert erm("fit", "train.csv", "--target", "state", "-o", "m.erm", "--loss", loss)[0] == 0
        found = json.loads(erm("evaluate", "m.erm", "test.csv", "--json", "--false-positives", 0.1)[1])
        model, table = load_model("m.erm"), read_table("test.csv", target="state")
        scores, is_well = model.decision_function(table.data), table.target == "well"
        assert found["roc_auc"] == pytest.approx(roc_auc_score(is_well, scores))
        assert found["average_precision"] == pytest.approx(average_precision_score(is_well, scores))
        best = max(
            (scores[is_well] >= at).mean()
            for at in [*scores, np.inf]
            if (scores[~is_well] >= at).mean() <= 0.1
        )
        assert found["detection"]["detected"] == pytest.approx(best)
        assert ("log_loss" in found) == (loss == "logistic")
        if loss == "logistic":
            probabilities = model.predict_proba(table.data)
            assert found["log_loss"] == pytest.approx(log_loss(is_well, probabilities))
            assert found["brier_score"] == pytest.approx(brier_score_loss(is_well, probabilities[:, 1]))
            bins = found["reliability"]
            misses = [abs(each["probability"] - each["right"]) * each["rows"] for each in bins]
            assert found["calibration_error"] == pytest.approx(sum(misses) / len(scores))
            assert sum(each["right"] * each["rows"] for each in bins) / len(scores) == pytest.approx(
                found["accuracy"]
            )
            text = erm("evaluate", "m.erm", "test.csv")[1]
            assert re.search(r"^calibration error +0\.\d+$", text, re.MULTILINE)
        low, high = found["accuracy_interval"]
        assert low < found["accuracy"] < high

    def test_intervals_cover(self):
        rng = np.random.default_rng(0)
        for share in (0.02, 0.5, 0.9):
            ends = np.array([wilson(count / 80, 80) for count in rng.binomial(80, share, 2000)])
            covered = ((ends[:, 0] <= share) & (share <= ends[:, 1])).mean()
            assert 0.91 < covered < 0.99

    def test_a_share_that_is_none(self, erm):
        code, _, err = erm("evaluate", "soft.erm", "test.csv", "--false-positives", 1.5)
        assert (code, "must be a share" in err) == (2, True)


class TestPredictions:
    def test_columns_to_keep(self, erm):
        code, out, err = erm("predict", "soft.erm", "shuffled.csv", "--keep", "row,c", "--scores")
        assert code == 0, err
        rows = list(csv.DictReader(out.splitlines()))
        assert list(rows[0]) == ["row", "c", "label", "score"]
        plain = list(csv.DictReader(erm("predict", "soft.erm", "shuffled.csv")[1].splitlines()))
        assert [row["label"] for row in rows] == [row["label"] for row in plain]
        with open("shuffled.csv", newline="") as stream:
            assert [row["row"] for row in rows] == [row["row"] for row in csv.DictReader(stream)]
        code, _, err = erm("predict", "svm.erm", "rows.svm", "--keep", "row")
        assert (code, "--keep is for columns" in err) == (2, True)

    def test_another_threshold(self, erm):
        lines = erm("predict", "soft.erm", "new.csv", "--scores", "--threshold", "0.5")[1].splitlines()[1:]
        for label, score in (line.split(",") for line in lines):
            assert label == ("well" if float(score) >= 0.5 else "ill")
        erm("fit", "train.csv", "--target", "state", "-o", "m.erm", "--loss", "logistic")
        out = erm("predict", "m.erm", "new.csv", "--probabilities", "--threshold", "0.9")[1]
        rows = list(csv.DictReader(out.splitlines()))
        assert {row["label"] for row in rows} == {"ill", "well"}
        for row in rows:
            assert row["label"] == ("well" if float(row["probability_well"]) >= 0.9 else "ill")
        code, _, err = erm("predict", "iris.erm", "iris.csv", "--threshold", "0.5")
        assert (code, "--threshold is for two classes" in err) == (2, True)


@pytest.mark.parametrize("option", [["--additive"], ["--max-broken", "1"]])
def test_files_that_are_no_tables(option, erm):
    code, _, err = erm("fit", "rows.svm", "-o", "it.erm", *option)
    assert code == 2
    assert "is for tables (CSV, TSV, Parquet), and rows.svm is read as libsvm; leave --" in err


def test_rows_that_are_no_table(erm):
    erm("fit", "train.csv", "--target", "state", "-o", "it.erm", "--folds", 0, "--additive")
    code, _, err = erm("predict", "it.erm", "rows.svm")
    assert code == 3
    assert "it.erm was fitted to a table; use CSV, TSV or Parquet" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scale", "minmax"], "with --additive numbers are standardised; leave --scale out"),
        (["--bounds", "c=0:1"], "with --additive a column becomes several features"),
    ],
)
def test_what_curves_have_no_use_for(options, words, erm):
    code, _, err = erm("fit", "train.csv", "--target", "state", "-o", "it.erm", "--additive", *options)
    assert code == 2
    assert words in err
