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
    if example.stem == "broken_sensors":
        check_broken_sensors(printed)
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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_gallery_finds_a_title(example):
    assert re.match(r'"""\n(.+)\n=+\n\n\S', example.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
