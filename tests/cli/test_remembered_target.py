"""A model knows which column held its classes, and nobody has to say so again."""

import json
import re

import numpy as np
import pytest

from exclusivity.io import load_model, save_model
from readers import read_csv


def accuracy(result):
    code, out, err = result
    assert code == 0, err
    return json.loads(out)["accuracy"]


def test_a_file_with_one_more_column(erm):
    """shuffled.csv has the rows of test.csv, its columns in another order, and a column of row numbers."""
    expected = accuracy(erm("evaluate", "soft.erm", "test.csv", "--json"))
    assert accuracy(erm("evaluate", "soft.erm", "shuffled.csv", "--json")) == expected
    code, out, err = erm("certify", "hard.erm", "shuffled.csv", "--json")
    assert code == 0
    assert "certified_accuracy" in json.loads(out)["by_radius"][0]
    assert "ignoring 'row'" in err


def test_the_user_has_the_last_word(erm, tmp_path):
    table = read_csv("test.csv", target="state")
    other = np.where(table.target == "ill", "well", "ill")
    lines = [f"{line},{label}" for line, label in zip(_lines("test.csv")[1:], other, strict=True)]
    (tmp_path / "two.csv").write_text("\n".join([_lines("test.csv")[0] + ",other", *lines]) + "\n")
    right = accuracy(erm("evaluate", "soft.erm", "two.csv", "--json"))
    assert accuracy(erm("evaluate", "soft.erm", "two.csv", "--target", "other", "--json")) == pytest.approx(
        1 - right
    )


def _lines(path):
    with open(path) as stream:
        return stream.read().splitlines()


def test_a_target_chosen_by_its_number_is_remembered_by_its_name(erm):
    erm("fit", "train.csv", "--target", -1, "-o", "m.erm")
    assert load_model("m.erm").target_column_ == "state"
    assert erm("evaluate", "m.erm", "shuffled.csv")[0] == 0


def test_columns_without_names(erm, tmp_path):
    """The number is remembered: rows with one column more have their classes there."""
    text = "\n".join(_lines("train.csv")[1:])
    (tmp_path / "bare.csv").write_text(text)
    erm("fit", "bare.csv", "--no-header", "--target", -1, "-o", "m.erm")
    assert load_model("m.erm").target_column_ == 6
    assert erm("evaluate", "m.erm", "bare.csv", "--no-header")[0] == 0
    _, predicted, _ = erm("predict", "m.erm", "bare.csv", "--no-header")
    (tmp_path / "features.csv").write_text("\n".join(line.rpartition(",")[0] for line in text.splitlines()))
    assert erm("predict", "m.erm", "features.csv", "--no-header")[1] == predicted


def test_older_files_know_nothing_of_it(erm):
    model = load_model("soft.erm")
    del model.target_column_
    save_model(model, "old.erm")
    code, _, err = erm("evaluate", "old.erm", "shuffled.csv")
    assert code == 3
    assert "'row', 'state'" in err
    assert erm("evaluate", "old.erm", "test.csv")[0] == 0
    assert "target" not in erm("inspect", "old.erm")[1]


def test_path_remembers_too_and_inspect_tells(erm):
    erm("path", "train.csv", "--target", "state", "--costs", "1", "-o", "m.erm")
    assert load_model("m.erm").target_column_ == "state"
    assert re.search("^target +state$", erm("inspect", "m.erm")[1], re.MULTILINE)
    assert json.loads(erm("inspect", "m.erm", "--json")[1])["target"] == "state"
    erm("fit", "rows.svm", "-o", "s.erm")
    assert json.loads(erm("inspect", "s.erm", "--json")[1])["target"] is None


def test_inspect_says_what_it_wrote(erm):
    assert erm("inspect", "soft.erm")[1].count("report") == 0
    shown = erm("inspect", "soft.erm", "--html", "r.html")[1]
    assert re.search("^report +r.html$", shown, re.MULTILINE)
    assert json.loads(erm("inspect", "soft.erm", "--html", "s.html", "--json")[1])["report"] == "s.html"
