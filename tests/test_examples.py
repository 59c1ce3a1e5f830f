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
    monkeypatch.setattr(sys, "argv", [str(example)])
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(example), run_name="__main__")
        drawn = [plt.figure(number) for number in plt.get_fignums()]
        assert drawn
        assert all(axes.has_data() for figure in drawn for axes in figure.axes)
    finally:
        plt.close("all")
    assert capsys.readouterr().out
    assert not list(tmp_path.iterdir()), "an example leaves no files behind unless asked to"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_gallery_finds_a_title(example):
    assert re.match(r'"""\n(.+)\n=+\n\n\S', example.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
