"""fit, predict, evaluate, certify, inspect, export and path do what the library does."""

import csv
import io
import json
import re

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, precision_recall_fscore_support
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.io import load_model
from exclusivity.robustness import certified_accuracy, certify
from readers import read_csv, read_libsvm


@pytest.fixture
def train():
    return read_csv("train.csv", target="state")


@pytest.fixture
def test():
    return read_csv("test.csv", target="state")


def predictions(out):
    return [row["label"] for row in csv.DictReader(io.StringIO(out))]


class TestFit:
    def test_the_model_is_the_pipeline_of_the_options(self, erm, train, test):
        code, out, err = erm(
            "fit", "train.csv", "--target", "state", "-o", "m.erm", "--members", 3, "--cost", 0.5, "--p", 1,
            "--sparsity", 0.1, "--class-weight", "balanced", "--tol", 1e-6, "--solver", "alm",
            "--no-intercept",
        )  # fmt: skip
        assert (code, err) == (0, "")
        classifier = ERMClassifier(
            3, C=0.5, p=1, sparsity=0.1, class_weight="balanced", tol=1e-6, solver="alm", fit_intercept=False
        )
        expected = make_pipeline(StandardScaler(), classifier).fit(train.data, train.target)
        found = load_model("m.erm")
        np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-9)
        assert found[-1].verbose == 0
        assert found[0].copy is True
        assert list(found.feature_names_in_) == list(train.names)
        assert "3 equal members = one SVM at cost C/3" in out

    def test_rules_about_weights_by_name(self, erm, train):
        first, second, third = train.names[:3]
        rules = f"{first}=-1,{second}=1"
        for loss in ("hinge", "logistic"):
            code, _, err = erm(
                "fit", "train.csv", "--target", "state", "-o", "m.erm", "--force", "--loss", loss,
                "--monotonic", rules, "--bounds", f"{third}=:-0.25",
            )  # fmt: skip
            assert (code, err) == (0, "")
            weights = load_model("m.erm")[-1].coef_[0]
            assert weights[0] <= 0 <= weights[1]
            assert weights[2] <= -0.25
        code, _, err = erm("path", "train.csv", "--target", "state", "--monotonic", rules, "--costs", "1,10")
        assert (code, err) == (0, "")

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            (("--monotonic", "a=up"), "invalid COLUMN=SIGN,... value: 'a=up'"),
            (("--monotonic", "a=1,a=-1"), "invalid COLUMN=SIGN,... value"),
            (("--bounds", "a=0:1, a=-5:-4"), "invalid COLUMN=LOWER:UPPER,... value"),
            (("--bounds", "a=x"), "invalid COLUMN=LOWER:UPPER,... value"),
        ],
    )
    def test_rules_that_are_none(self, erm, rule, message, capsys):
        with pytest.raises(SystemExit):
            erm("fit", "train.csv", "--target", "state", "-o", "m.erm", *rule)
        assert message in capsys.readouterr().err
        code, _, err = erm("fit", "train.csv", "--target", "state", "-o", "m.erm", "--monotonic", "nobody=1")
        assert code == 2
        assert "--monotonic: there is no feature 'nobody'" in err

    def test_scaling_is_learned_and_stored(self, erm):
        iris = read_csv("iris.csv", target="species")
        model = load_model("iris.erm")
        expected = MinMaxScaler((-1, 1)).fit(iris.data)
        np.testing.assert_allclose(model[0].scale_, expected.scale_)
        np.testing.assert_allclose(model[0].min_, expected.min_)
        assert model[-1].classes_.dtype == np.int64

    def test_blocks_of_rows_scale_as_all_rows(self, erm, train, monkeypatch):
        monkeypatch.setattr("exclusivity.cli.training._BLOCK_ROWS", 7)
        assert erm("fit", "train.csv", "--target", "state", "-o", "m.erm")[0] == 0
        expected = StandardScaler().fit(train.data)
        np.testing.assert_allclose(load_model("m.erm")[0].mean_, expected.mean_)
        np.testing.assert_allclose(load_model("m.erm")[0].scale_, expected.scale_)

    def test_no_scaling(self, erm, train):
        assert erm("fit", "train.csv", "--target", "state", "-o", "m.erm", "--scale", "none")[0] == 0
        model = load_model("m.erm")
        assert len(model) == 1
        np.testing.assert_allclose(model[0].coef_, ERMClassifier().fit(train.data, train.target).coef_)

    @pytest.mark.parametrize(("scale", "kind"), [("standard", "StandardScaler"), ("minmax", "MaxAbsScaler")])
    def test_sparse_data_stay_sparse(self, erm, scale, kind):
        assert erm("fit", "rows.svm", "-o", "m.erm", "--scale", scale)[0] == 0
        assert type(load_model("m.erm")[0]).__name__ == kind
        assert erm("evaluate", "m.erm", "rows.svm", "--json")[0] == 0

    def test_json_and_test_file(self, erm, test):
        code, out, _ = erm(
            "fit", "train.csv", "--target", "state", "-o", "m.erm", "--test", "test.csv", "--json"
        )
        told = json.loads(out)
        predicted = load_model("m.erm").predict(_frame(test))
        assert code == 0
        assert told["rows"] == 120
        assert told["classes"] == ["ill", "well"]
        assert told["converged"] is True
        assert told["dual_gap"][0] <= 1e-4
        assert told["test"]["accuracy"] == pytest.approx(np.mean(predicted == test.target))

    def test_a_fit_that_does_not_converge_is_kept_and_told(self, erm):
        code, out, err = erm("fit", "train.csv", "--target", "state", "-o", "m.erm", "--max-iter", 1)
        assert code == 4
        assert re.search("^converged +NO, within", out, re.MULTILINE)
        assert "erm fit: warning:" in err
        assert load_model("m.erm")[-1].n_iter_.tolist() == [1]

    def test_groups_by_name_and_by_order(self, erm):
        lines = ["feature,group", "a b,x", "c,x", "d,y", "e,y", "f,z", "g,z"]
        with open("named.csv", "w") as stream:
            stream.write("\n".join(lines))
        with open("plain.txt", "w") as stream:
            stream.write("x\nx\ny\ny\nz\nz\n")
        common = ["--target", "state", "--exclusivity", "inf", "--members", 3, "--voting", "hard"]
        assert erm("fit", "train.csv", *common, "--groups", "named.csv", "-o", "n.erm")[0] == 0
        assert erm("fit", "train.csv", *common, "--groups", "plain.txt", "-o", "p.erm")[0] == 0
        named, plain = load_model("n.erm")[-1], load_model("p.erm")[-1]
        assert named.groups_.tolist() == [0, 0, 1, 1, 2, 2]
        np.testing.assert_array_equal(named.components_, plain.components_)

    @pytest.mark.parametrize(
        "text", ["a b,x\nc,x\n", "x\ny\n", "a,b,c\n", "", "a b,x\nc,x\nd,y\ne,y\nf,z\ng,z\nq,z\n"]
    )
    def test_groups_that_do_not_fit(self, erm, text):
        with open("groups.csv", "w") as stream:
            stream.write(text)
        code, _, err = erm(
            "fit",
            "train.csv",
            "--target",
            "state",
            "-o",
            "m.erm",
            "--exclusivity",
            "inf",
            "--groups",
            "groups.csv",
        )
        assert code == 3
        assert "groups.csv" in err
        assert "expected" in err


def _frame(table):
    import pandas as pd

    return pd.DataFrame(table.data, columns=list(table.names))


def _plain(model):
    for _, step in model.steps:
        step.__dict__.pop("feature_names_in_", None)
    return model


def _target():
    return read_libsvm("rows.svm").target.astype(int)


def _labels(model):
    return load_model(model).predict(read_libsvm("rows.svm").data)


class TestPredict:
    def test_labels_and_scores(self, erm, test):
        code, out, err = erm("predict", "soft.erm", "new.csv", "--scores")
        model = load_model("soft.erm")
        assert (code, err) == (0, "")
        assert predictions(out) == model.predict(_frame(test)).tolist()
        scores = [float(row["score"]) for row in csv.DictReader(io.StringIO(out))]
        np.testing.assert_allclose(scores, model.decision_function(_frame(test)), rtol=1e-12)

    def test_a_file_and_json(self, erm):
        expected = predictions(erm("predict", "iris.erm", "iris.csv")[1])
        assert erm("predict", "iris.erm", "iris.csv", "-o", "out.csv", "--scores")[1] == ""
        with open("out.csv", newline="") as stream:
            written = list(csv.DictReader(stream))
        assert list(written[0]) == ["label", "score_0", "score_1", "score_2"]
        assert [row["label"] for row in written] == expected
        told = json.loads(erm("predict", "iris.erm", "iris.csv", "--json", "--scores")[1])
        assert [str(label) for label in told["labels"]] == expected
        assert np.shape(told["scores"]) == (150, 3)
        assert erm("predict", "iris.erm", "iris.csv", "--json", "-o", "out.json")[1] == ""
        with open("out.json") as stream:
            assert json.load(stream)["labels"] == told["labels"]

    def test_columns_are_found_by_name(self, erm):
        expected = erm("predict", "soft.erm", "test.csv")
        shuffled = erm("predict", "soft.erm", "shuffled.csv")
        assert shuffled[1] == expected[1]
        assert "ignoring 'row', 'state'" in shuffled[2]
        assert erm("predict", "soft.erm", "test.csv", "--target", "state")[1:] == (expected[1], "")

    def test_sparse_rows_for_a_model_of_dense_ones(self, erm):
        assert predictions(erm("predict", "soft.erm", "rows.svm")[1]) == predictions(
            erm("predict", "soft.erm", "test.csv")[1]
        )

    def test_devices_are_written_to(self, erm):
        assert erm("predict", "soft.erm", "new.csv", "-o", "/dev/null")[0] == 0


class TestEvaluate:
    @pytest.mark.parametrize(
        ("model", "data", "target"), [("soft.erm", "test.csv", "state"), ("iris.erm", "iris.csv", "species")]
    )
    def test_against_scikit_learn(self, erm, model, data, target):
        told = json.loads(erm("evaluate", model, data, "--json")[1])
        table = read_csv(data, target=target)
        true = table.target if data == "test.csv" else table.target.astype(int)
        predicted = _plain(load_model(model)).predict(table.data)
        precision, recall, f1, support = precision_recall_fscore_support(true, predicted)
        assert told["accuracy"] == pytest.approx(np.mean(true == predicted))
        assert told["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(true, predicted))
        assert told["confusion_matrix"] == confusion_matrix(true, predicted).tolist()
        for column, values in (("precision", precision), ("recall", recall), ("f1", f1), ("rows", support)):
            assert [row[column] for row in told["classes"]] == pytest.approx(values.tolist())

    def test_text(self, erm):
        code, out, _ = erm("evaluate", "soft.erm", "shuffled.csv", "--ignore", "row")
        assert code == 0
        for word in (
            "accuracy",
            "balanced accuracy",
            "precision",
            "recall",
            "confusion matrix",
            "ill",
            "well",
        ):
            assert word in out
        assert out == erm("evaluate", "soft.erm", "test.csv", "--target", -1)[1]

    def test_libsvm(self, erm):
        told = json.loads(erm("evaluate", "svm.erm", "rows.svm", "--json")[1])
        assert told["accuracy"] == pytest.approx(np.mean(_labels("svm.erm") == _target()))
        assert [row["class"] for row in told["classes"]] == [-1, 1]

    def test_shifting_is_what_the_intercept_does(self, erm):
        dense = ERMClassifier().fit(
            StandardScaler().fit_transform(read_libsvm("rows.svm").data.toarray()), _target()
        )
        np.testing.assert_allclose(load_model("svm.erm")[-1].coef_, dense.coef_, rtol=1e-2)


class TestCertify:
    def test_radii_and_certified_accuracy(self, erm, test):
        code, out, _ = erm("certify", "hard.erm", "test.csv", "-o", "radii.csv", "--json")
        told = json.loads(out)
        model = _plain(load_model("hard.erm"))
        radii, predicted = certify(model, test.data), model.predict(test.data)
        assert code == 0
        for row in told["by_radius"]:
            assert row["rows"] == (radii >= row["radius"]).sum()
            expected = certified_accuracy(radii, test.target, predicted, row["radius"])
            assert row["certified_accuracy"] == pytest.approx(expected)
        assert told["by_radius"][-1]["rows"] == 0
        with open("radii.csv", newline="") as stream:
            assert [int(row["radius"]) for row in csv.DictReader(stream)] == radii.tolist()

    def test_one_radius_and_no_labels(self, erm):
        told = json.loads(erm("certify", "hard.erm", "new.csv", "--radius", 1, "--json")[1])
        assert [row["radius"] for row in told["by_radius"]] == [1]
        assert "certified_accuracy" not in told["by_radius"][0]
        assert re.search("^radius  rows +share$", erm("certify", "hard.erm", "new.csv")[1], re.MULTILINE)

    def test_soft_voting_is_refused_with_advice(self, erm):
        code, _, err = erm("certify", "soft.erm", "test.csv")
        assert code == 1
        assert "--voting hard" in err


class TestInspect:
    def test_equal_members_are_told_once(self, erm):
        code, out, _ = erm("inspect", "soft.erm")
        assert code == 0
        assert "10 equal members = one SVM at cost C/10" in out
        assert len(re.findall("^all +6  a b", out, re.MULTILINE)) == 1
        assert "StandardScaler()" in out

    def test_different_members_with_their_features(self, erm):
        told = json.loads(erm("inspect", "hard.erm", "--json", "--features", 9)[1])
        model = load_model("hard.erm")[-1]
        names = list(load_model("hard.erm").feature_names_in_)
        for row, weights in zip(told["by_member"], model.components_[0], strict=True):
            used = {names[j]: weights[j] for j in np.flatnonzero(weights)}
            assert row["largest_weights"] == pytest.approx(used)
        assert told["parameters"]["exclusivity"] == "inf"
        assert told["problems"][0]["dual_gap"] is None

    def test_report(self, erm):
        code, _, _ = erm("inspect", "hard.erm", "--html", "report.html", "--data", "test.csv")
        with open("report.html", encoding="utf-8") as stream:
            page = stream.read()
        assert code == 0
        assert page.count("<svg") == 2
        assert "Confusion matrix" in page
        assert "Report on hard.erm" in page

    def test_data_need_a_report(self, erm):
        assert "--html" in erm("inspect", "soft.erm", "--data", "test.csv")[2]


class TestExport:
    @pytest.mark.parametrize("model", ["hard.erm", "soft.erm"])
    def test_onnx_predicts_the_same(self, erm, model, test):
        onnxruntime = pytest.importorskip("onnxruntime")
        code, out, _ = erm("export", model, "-o", "m.onnx")
        assert code == 0
        assert re.fullmatch(r"m\.onnx: input X \(rows by \d features\); outputs label, scores\n", out)
        session = onnxruntime.InferenceSession("m.onnx")
        label, scores = session.run(None, {"X": test.data})
        assert label.tolist() == predictions(erm("predict", model, "test.csv")[1])
        assert scores.shape == (80,)


class TestPath:
    def test_the_best_c_is_that_of_the_library(self, erm, train):
        code, out, err = erm(
            "path",
            "train.csv",
            "--target",
            "state",
            "--costs",
            "0.01,0.1,1",
            "--folds",
            3,
            "-o",
            "m.erm",
            "--json",
        )
        told = json.loads(out)
        scaled = StandardScaler().fit_transform(train.data)
        with pytest.warns(UserWarning, match="The best C") as caught:
            expected = ERMClassifierCV(Cs=[0.01, 0.1, 1], cv=3, random_state=0).fit(scaled, train.target)
        assert f"erm path: warning: {caught[0].message}" in err
        assert code == 0
        assert told["best_C"] == expected.C_ == load_model("m.erm")[-1].C_
        assert f"chose C = {expected.C_:.6g}" in erm("inspect", "m.erm")[1]
        assert json.loads(erm("inspect", "m.erm", "--json")[1])["chosen_C"] == expected.C_
        assert [row["mean_score"] for row in told["path"]] == pytest.approx(
            expected.cv_results_["mean_test_score"].tolist()
        )

    def test_scoring(self, erm, capsys):
        arguments = ["path", "train.csv", "--target", "state", "--costs", "0.1,1"]
        code, out, _ = erm(*arguments, "--scoring", "balanced_accuracy", "--json")
        assert (code, json.loads(out)["scoring"]) == (0, "balanced_accuracy")
        with pytest.raises(SystemExit):
            erm(*arguments, "--scoring", "zebra")
        assert (
            "invalid choice: 'zebra' (choose from 'accuracy', 'balanced_accuracy'" in capsys.readouterr().err
        )

    def test_text(self, erm):
        code, out, _ = erm("path", "iris.csv", "--target", "species", "--costs", "0.1,1", "--folds", 2)
        assert code == 0
        assert re.search("^best C +1$", out, re.MULTILINE)
        assert "-o FILE" in out
