"""The out-of-sample figures of ``erm fit``: by cross-validation of the whole pipeline, bounded in cost."""

import json

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from exclusivity import ERMClassifier
from exclusivity.cli import fit
from readers import read_csv

FIT = ["fit", "train.csv", "--target", "state", "-o", "m.erm"]


def found(result):
    code, out, err = result
    assert code == 0, err
    return json.loads(out).get("out_of_sample")


@pytest.mark.parametrize(
    ("options", "scaler", "parameters"),
    [
        ([], StandardScaler(), {}),
        (["--scale", "minmax", "--p", 1], MinMaxScaler((-1, 1)), {"p": 1}),
        (
            ["--members", 3, "--exclusivity", "inf", "--voting", "hard"],
            StandardScaler(),
            {"n_estimators": 3, "exclusivity": np.inf, "voting": "hard", "class_weight": "balanced"},
        ),
    ],
)
def test_it_is_cross_validation_of_the_whole_pipeline(erm, options, scaler, parameters):
    table = read_csv("train.csv", target="state")
    pipeline = make_pipeline(scaler, ERMClassifier(random_state=0, **parameters))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    right = cross_val_predict(pipeline, table.data, table.target, cv=folds) == table.target
    estimate = found(erm(*FIT, "--json", *options))
    assert estimate["rows"] == 120
    assert set(estimate) - {"one_svm", "accuracy_loss"} == {
        "how", "rows", "accuracy", "balanced_accuracy", "constant"
    }  # fmt: skip
    # Scaling twice rounds twice: a row on the boundary may fall to the other side.
    assert estimate["accuracy"] == pytest.approx(right.mean(), abs=1.5 / 120)
    assert "5-fold" in estimate["how"]


def test_it_is_printed_and_says_how_it_was_got(erm):
    _, out, _ = erm(*FIT)
    line = next(line for line in out.splitlines() if line.startswith("out of sample"))
    assert "% accuracy" in line
    assert "on 120 rows (5-fold cross-validation at the same settings)" in line


def test_a_choice_of_folds(erm):
    assert "7-fold" in found(erm(*FIT, "--json", "--folds", 7))["how"]
    assert found(erm(*FIT, "--json", "--folds", 0)) is None


def test_test_rows_take_its_place_unless_it_is_asked_for(erm):
    assert found(erm(*FIT, "--json", "--test", "test.csv")) is None
    assert found(erm(*FIT, "--json", "--test", "test.csv", "--folds", 3))["rows"] == 120


def test_the_model_is_the_same_with_and_without(erm):
    erm(*FIT)
    with open("m.erm", "rb") as stream:
        before = stream.read()
    erm(*FIT, "--folds", 0)
    with open("m.erm", "rb") as stream:
        assert stream.read() == before


def test_too_few_rows_for_an_estimate(erm, tmp_path):
    (tmp_path / "few.csv").write_text("a,b\n1,x\n2,y\n3,y\n")
    assert found(erm("fit", "few.csv", "--target", "b", "-o", "m.erm", "--json")) is None


def test_a_class_with_one_row_is_an_error_out_of_sample(erm, tmp_path):
    rows = [f"{j},x" for j in range(6)] + [f"{j},y" for j in range(10, 16)] + ["30,z"]
    (tmp_path / "rare.csv").write_text("\n".join(["a,b", *rows]) + "\n")
    code, out, err = erm("fit", "rare.csv", "--target", "b", "-o", "m.erm", "--json")
    assert code == 0
    assert err == ""  # the folds say nothing of their own
    assert json.loads(out)["out_of_sample"]["accuracy"] <= 12 / 13


def test_sparse_rows(erm):
    assert found(erm("fit", "rows.svm", "-o", "m.erm", "--json"))["rows"] == 80


@pytest.mark.parametrize("data", [["train.csv", "--target", "state"], ["rows.svm"]])
def test_large_data_are_left_out_unless_asked_for(erm, monkeypatch, data):
    monkeypatch.setattr(fit, "_MOST_VALUES", 100)
    arguments = ["fit", *data, "-o", "m.erm", "--json"]
    assert found(erm(*arguments)) is None
    assert found(erm(*arguments, "--folds", 5))["accuracy"] > 0.6


def test_workers_do_not_cross_validate(erm):
    code, _, err = erm(*FIT, "--dask", "--folds", 5)
    assert code == 2
    assert "--folds is for rows in memory" in err


def test_folds_that_are_none(erm, capsys):
    code, _, err = erm(*FIT, "--folds", 1)
    assert code == 2
    assert "--folds must be at least 2, or 0 for none" in err
    for value in ("-1", "many"):
        with pytest.raises(SystemExit):
            erm(*FIT, "--folds", value)
        assert "argument --folds: invalid whole number >= 0 value" in capsys.readouterr().err
