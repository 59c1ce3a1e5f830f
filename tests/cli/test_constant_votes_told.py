"""``erm`` says what the most frequent class alone would get, and what a vote costs."""

import json
import re

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cli.conftest import VOTES, write_csv
from exclusivity import ERMClassifier
from exclusivity.inspection.summary import caution, scores_of
from exclusivity.io import load_model
from robustness.test_constant_votes import rare_class

FIT = ["fit", "rare.csv", "--target", "state", "-o", "m.erm", "--members", 3, "--cost", 0.1, *VOTES]
UNWEIGHTED = ["--class-weight", "none"]
TOLD = "the classes are hardly distinguished: 50.0% balanced accuracy, where always saying common gets 50.0%"


@pytest.fixture
def rare(erm, tmp_path):
    X, y = rare_class()
    write_csv(tmp_path / "rare.csv", X, y)
    return X, y


def one_svm(X, y):
    """Its balanced accuracy over the folds of ``erm fit``."""
    model = make_pipeline(StandardScaler(), ERMClassifier(1, C=0.1, class_weight="balanced"))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return scores_of(y, cross_val_predict(model, X, y, cv=folds))["balanced_accuracy"]


def test_a_constant_vote_is_told_by_every_command(erm, rare):
    code, out, err = erm(*FIT, *UNWEIGHTED)
    assert code == 0
    assert "members vote common for every training row" in err
    assert "Set class_weight='balanced', a larger C, or fewer members." in err
    assert TOLD in err
    assert "Fit with --class-weight balanced," in err
    assert "most frequent class alone 90.0% accuracy, 50.0% balanced (always common)" in out
    for command in ("evaluate", "certify"):
        _, out, err = erm(command, "m.erm", "rare.csv")
        assert TOLD in err
        assert "most frequent class alone 90.0% accuracy, 50.0% balanced (always common)" in out
    told = json.loads(erm("certify", "m.erm", "rare.csv", "--radius", 1, "--json")[1])
    assert told["by_radius"][0]["certified_accuracy"] == 0.9
    assert told["by_radius"][0]["certified_balanced_accuracy"] == 0.5
    assert told["constant"] == {"class": "common", "accuracy": 0.9, "balanced_accuracy": 0.5}
    erm("inspect", "m.erm", "--html", "page.html", "--data", "rare.csv")
    with open("page.html") as page:
        assert TOLD in page.read()


def test_a_vote_is_balanced_unless_told_otherwise_and_says_so(erm, rare):
    _, out, err = erm(*FIT)
    assert re.search("^class weight +balanced .default of a vote; --class-weight none", out, re.MULTILINE)
    assert "hardly" not in err
    assert "members vote" not in err
    assert load_model("m.erm")[-1].class_weight == "balanced"
    asked = erm(*FIT, "--class-weight", "balanced")[1]
    assert "default of a vote" not in asked
    for options in (UNWEIGHTED, ["--voting", "soft"], ["--exclusivity", "1"], ["--exclusivity", "20"]):
        assert json.loads(erm(*FIT, *options, "--json")[1])["class_weight"] == "none"
        assert load_model("m.erm")[-1].class_weight is None


def test_the_accuracy_loss_of_a_vote_is_an_out_of_sample_estimate(erm, rare):
    _, out, _ = erm(*FIT)
    found = json.loads(erm(*FIT, "--json")[1])["out_of_sample"]
    # Scaling twice rounds twice: a row on the boundary may fall to the other side.
    assert found["one_svm"]["balanced_accuracy"] == pytest.approx(one_svm(*rare), abs=1.5 / 20 / 2)
    price = found["one_svm"]["balanced_accuracy"] - found["balanced_accuracy"]
    assert found["accuracy_loss"] == pytest.approx(price)
    word = "costs" if price >= 0 else "gains"
    assert f"robustness {word} {abs(100 * price):.1f} points of balanced accuracy: one SVM on all" in out
    for options in (["--voting", "soft"], ["--exclusivity", "1"]):
        plain = json.loads(erm(*FIT, *options, "--json")[1])["out_of_sample"]
        assert "one_svm" not in plain


def test_a_test_file_is_judged_too(erm, rare):
    _, out, err = erm(*FIT, *UNWEIGHTED, "--test", "rare.csv")
    assert TOLD in err
    assert "most frequent class alone 90.0% accuracy" in out


@pytest.mark.parametrize(
    ("true", "predicted", "hardly"),
    [
        (["a"] * 9 + ["b"], ["a"] * 10, True),
        (["a", "a", "b", "b"], ["a", "a", "b", "a"], False),
        (["a", "a"], ["a", "b"], False),  # one class: there is nothing to tell apart
        ([1, 2, 3], [1, 1, 1], True),
        (["a"] * 50 + ["b"] * 50, ["a"] * 50 + ["b"] * 6 + ["a"] * 44, False),  # more than a tenth of the way
        (["a"] * 50 + ["b"] * 50, ["a"] * 50 + ["b"] * 4 + ["a"] * 46, True),
    ],
)
def test_what_hardly_beats_a_constant(true, predicted, hardly):
    scores = scores_of(true, predicted)
    values, counts = np.unique(true, return_counts=True)
    constant = scores["constant"]
    assert constant["class"] == values[counts.argmax()]
    assert constant["accuracy"] == np.mean(np.asarray(true) == constant["class"])
    assert constant["balanced_accuracy"] == 1 / len(values)
    assert hardly == bool(caution(scores))
