"""Every example runs alone, prints and draws. They take 1 to 4 seconds each; keep all of them below 20."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_example_runs(example, capsys, monkeypatch, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.setattr(sys, "argv", [str(example), "-f", "kernel.json"])  # as in a notebook
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(example), run_name="__main__")
        drawn = [plt.figure(number) for number in plt.get_fignums()]
        assert drawn
        assert all(axes.has_data() for figure in drawn for axes in figure.axes)
    finally:
        plt.close("all")
    printed = capsys.readouterr().out
    assert printed
    if example.stem in CHECKS:
        CHECKS[example.stem](printed)
    assert not list(tmp_path.iterdir()), "an example leaves no files behind unless asked to"


def check_broken_sensors(printed):
    """It says what it promises to practitioners."""
    assert printed.startswith("10 instruments; chosen: {'ermclassifier__C':")
    rows = {tuple(line.split()[:3]): line.split() for line in printed.splitlines() if line.startswith("  ")}
    svm = [float(value) for value in rows["outliers", "one", "SVM"][3:]]
    vote = [float(value) for value in rows["outliers", "exclusive", "vote"][3:]]
    proven = [float(value) for value in rows["anything", "vote,", "proven"][3:]]
    assert 1 - vote[2] < (1 - svm[2]) / 2  # two broken: less than half of the error
    assert all(p <= v for p, v in zip(proven, vote, strict=True))


def numbers(printed, start):
    """Figures of the first line that starts so."""
    [line, *_] = [line for line in printed.splitlines() if line.strip().startswith(start)]
    return [float(text.rstrip("%,")) for text in re.findall(r"(?<![\w=])\d+\.?\d*%?,?", line[len(start) :])]


def check_vendors(printed):
    [_, one_ordinary, *_], [clean, one, *_] = numbers(printed, "ordinary"), numbers(printed, "robust")
    assert clean > 0.75
    assert one > 0.7 > 0.4 > one_ordinary
    [stand] = numbers(printed, "of the decisions that stand")
    assert stand == 100


def check_good_words(printed):
    lines = [line for line in printed.splitlines() if line.count("%") > 1]
    svm, robust, monotone = ([float(text) for text in re.findall(r"([\d.]+)%", line)] for line in lines)
    assert svm[0] > 50 > 5 > svm[1]
    assert robust == sorted(robust, reverse=True)
    assert len(set(monotone)) == 1
    assert monotone[0] > 50


def check_credit_rules(printed):
    assert "rises with every step: True" in printed
    assert numbers(printed, "history")[-1] == 0


def check_gene_expression(printed):
    assert printed.startswith("73 rows, 325 columns, 7 classes")
    assert numbers(printed, "linear")[0] > 0.85
    assert numbers(printed, "25 members")[-1] > 0.65
    assert "training and test" in printed


def check_text_classes(printed):
    ours, theirs = numbers(printed, "ERMClassifier"), numbers(printed, "LinearSVC")
    assert abs(ours[0] - theirs[0]) < 0.02


CHECKS = {
    "broken_sensors": check_broken_sensors,
    "vendors": check_vendors,
    "good_words": check_good_words,
    "credit_rules": check_credit_rules,
    "gene_expression": check_gene_expression,
    "text_classes": check_text_classes,
}
"""What an example promises to its reader."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_gallery_finds_a_title(example):
    assert re.match(r'"""\n(.+)\n=+\n\n\S', example.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 9
