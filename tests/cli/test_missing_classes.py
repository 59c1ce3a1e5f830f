"""Rows without a class: one rule for empty cells and for whatever else stands for a missing value."""

import numpy as np
import pytest

from exclusivity.cli.main import main
from exclusivity.io._cells import MISSING

N = 60
FIT = ["--folds", "0", "--quiet"]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def write(name, labels, words=False):
    """A table of numbers, or one with words, whose target is in its middle."""
    size = np.random.default_rng(0).normal(size=N).round(3).tolist()
    others = [("red" if v > 0 else "blue") if words else str(-v) for v in size]
    lines = [f"{v},{y},{o}" for v, y, o in zip(size, labels, others, strict=True)]
    with open(name, "w") as stream:
        stream.write("\n".join(["size,vote,other", *lines]) + "\n")


def votes(gap=None):
    """Of two kinds, with a gap in every fifth row from the third on."""
    size = np.random.default_rng(0).normal(size=N)
    found = np.where(size > 0, "yes", "no").tolist()
    return [gap if gap is not None and i % 5 == 2 else vote for i, vote in enumerate(found)]


@pytest.mark.parametrize("gap", MISSING)
@pytest.mark.parametrize("words", [False, True])
def test_fit_path_and_evaluate_count_them(run, gap, words):
    write("whole.csv", votes(), words)
    assert run("fit", "whole.csv", "--target", "vote", "-o", "m.erm", *FIT)[0] == 0
    write("holed.csv", votes(gap), words)
    told = "holed.csv, line 4, column 'vote': 12 of 60 rows have no class (lines 4, 9, 14, 19, 24, ...)"
    for command in (
        ["fit", "holed.csv", "--target", "vote", "-o", "n.erm", *FIT],
        ["path", "holed.csv", "--target", "1", "-q"],
        ["evaluate", "m.erm", "holed.csv"],
        ["fit", "whole.csv", "--target", "vote", "-o", "m.erm", *FIT, "--test", "holed.csv"],
    ):
        code, _, err = run(*command)
        assert code == 3
        assert told in err
        assert "Leave such rows out, or give them a class." in err
        assert ("--drop-missing-target" in err) == (command[0] != "evaluate")


@pytest.mark.parametrize("words", [False, True])
def test_prediction_needs_no_classes(run, words):
    write("whole.csv", votes(), words)
    run("fit", "whole.csv", "--target", "vote", "-o", "m.erm", *FIT)
    expected = run("predict", "m.erm", "whole.csv")[:2]
    write("holed.csv", votes("NA"), words)
    assert run("predict", "m.erm", "holed.csv")[:2] == expected
    assert run("predict", "m.erm", "holed.csv", "--target", "vote")[:2] == expected


def test_parquet(run):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    size = np.random.default_rng(0).normal(size=N)
    for other in (-size, np.where(size > 0, "red", "blue")):
        for gap in (None, "NA", ""):
            labels = [gap if vote == "NA" else vote for vote in votes("NA")]
            parquet.write_table(arrow.table({"size": size, "vote": labels, "other": other}), "t.parquet")
            code, _, err = run("fit", "t.parquet", "--target", "vote", "-o", "m.erm", *FIT)
            assert code == 3
            assert "t.parquet, column 'vote': 12 of 60 rows have no class (rows 3, 8, 13, 18, 23, ...)" in err
