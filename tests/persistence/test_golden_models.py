"""Files of this and of earlier versions keep loading, and say what they said when they were new."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from exclusivity.io import load_model

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.erm"))


def test_there_are_golden_files():
    assert len(FILES) >= 6
    assert {path.with_suffix(".json") for path in FILES} == set(GOLDEN.glob("*.json"))
    assert sum(path.stat().st_size for path in GOLDEN.iterdir()) < 100_000


def test_every_release_left_some():
    """docs/versions.md promises that files of every version are kept here and keep loading."""
    changelog = (GOLDEN.parent.parent.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[(\d[\w.]*)\]", changelog, re.MULTILINE)
    writers = [re.search(rb'"written_by":"([^"]+)"', path.read_bytes()).group(1).decode() for path in FILES]
    assert {"0.1.0", *releases} <= set(writers)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden(path):
    model = load_model(path)
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    X = expected["rows"]
    if hasattr(model, "feature_names_in_"):
        X = pd.DataFrame(X, columns=model.feature_names_in_)
    if path.stem == "v1-table":  # votes of then, when no member abstained where its columns are missing
        X, model = np.asarray(model[:-1].transform(X)), model[-1]
    assert model.predict(X).tolist() == expected["labels"]
    tolerance = 1e-6 if model.decision_function(X).dtype == np.float32 else 1e-12
    np.testing.assert_allclose(model.decision_function(X), expected["scores"], rtol=tolerance, atol=tolerance)


def test_the_column_of_the_classes():
    known = {path.stem: getattr(load_model(path), "target_column_", None) for path in FILES}
    assert known.pop("v1-target-column") == "größe"
    assert set(known.values()) == {None}


def test_script_leaves_them_alone(monkeypatch, capsys):
    """It only adds what is missing: nothing, in a whole working copy."""
    monkeypatch.syspath_prepend(str(GOLDEN.parent.parent.parent / "scripts"))
    import golden_models  # a script

    before = {path: path.read_bytes() for path in GOLDEN.iterdir()}
    golden_models.main()
    assert capsys.readouterr().out == ""
    assert {path: path.read_bytes() for path in GOLDEN.iterdir()} == before
    assert {path.stem for path in FILES} == set(golden_models.MODELS)
