"""The example for practitioners runs, says what it promises, and draws."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "broken_sensors.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside the tests")
def test_the_example_runs(tmp_path, capsys):
    picture = tmp_path / "sensors.png"
    runpy.run_path(str(EXAMPLE))["main"](str(picture))
    printed = capsys.readouterr().out
    assert printed.startswith("10 instruments; chosen: {'n_estimators':")
    rows = {tuple(line.split()[:3]): line.split() for line in printed.splitlines() if line.startswith("  ")}
    svm = [float(value) for value in rows["outliers", "one", "SVM"][3:]]
    vote = [float(value) for value in rows["outliers", "exclusive", "vote"][3:]]
    proven = [float(value) for value in rows["anything", "vote,", "proven"][3:]]
    assert 1 - vote[2] < (1 - svm[2]) / 2  # two broken: less than half of the error
    assert all(p <= v for p, v in zip(proven, vote, strict=True))
    assert picture.read_bytes().startswith(b"\x89PNG")
