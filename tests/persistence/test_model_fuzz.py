"""Damage of every kind: a model or a ModelFormatError. The long run is scripts/fuzz_models.py."""

import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from exclusivity import ERMClassifier
from exclusivity.io import ModelFormatError, load_model, save_model
from exclusivity.io.models import (
    MAGIC,
    PREFIX,
    dump_json,
    packed_file,
    parse_json,
    read_model,
    write_container,
)
from persistence.model_cases import X2, Y2, joined, split

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.erm"))
SCRIPTS = Path(__file__).parent.parent.parent / "scripts"

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 2**64, 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


MODEL = ERMClassifier(2).fit(X2, Y2)


def load(data):
    """The model, or None where it was refused."""
    try:
        return read_model(io.BytesIO(data), len(data))
    except ModelFormatError:
        return None


@given(st.binary(max_size=300), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_bytes(data, with_magic):
    assert load((MAGIC if with_magic else b"") + data) is None


parameters = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(
            st.text(max_size=3) | st.integers(-5, 5) | st.floats(allow_nan=False), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(parameters)
@settings(max_examples=100, deadline=None)
def test_any_parameter(value):
    """What can be saved comes back, equal and of the same type; what cannot says so."""
    try:
        data = saved(MODEL.set_params(class_weight=value))
    except (ValueError, TypeError):
        return
    found = load(data).class_weight
    assert found == value
    assert repr(found) == repr(value)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_value_anywhere(data):
    """Some value of the header is replaced by another; lengths and checksum fit."""
    header, arrays = split(data.draw(st.sampled_from(GOLDEN)).read_bytes())
    node = header
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], (dict, list)) or not node[key] or data.draw(st.integers(0, 5)) == 0:
            break
        node = node[key]
    node[key] = data.draw(json_values)
    model = load(joined(header, arrays))
    if model is not None:
        X = np.full((2, model.n_features_in_), None if "TableEncoder" in repr(model) else 0.0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            assert len(model.predict(X)) == 2


@given(json_values)
@settings(max_examples=200, deadline=None)
def test_json_comes_back(value):
    assert parse_json(dump_json(value)) == value


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=2, max_size=5, unique=True
    )
)
@settings(max_examples=100, deadline=None)
def test_any_text_as_label(labels):
    """What can be saved comes back; what cannot says so."""
    rows = np.eye(len(labels))
    model = ERMClassifier(2).fit(rows, np.array(labels, dtype=object))
    try:
        data = saved(model)
    except ValueError:
        assert any(label.endswith("\0") for label in labels)
    else:
        assert load(data).predict(rows).tolist() == model.predict(rows).tolist()


def saved(model):
    stream = io.BytesIO()
    write_container(*packed_file(model), stream.write)
    return stream.getvalue()


def test_mutation_fuzzer(tmp_path):
    command = [sys.executable, str(SCRIPTS / "fuzz_models.py"), "--count", "1000", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1000 files" in done.stdout
    assert "0 broke a rule" in done.stdout


@pytest.mark.skipif("EXCLUSIVITY_LONG" not in os.environ, reason="make fuzz runs it")
def test_every_check_of_the_loader_is_missed():
    """Each condition that ends in a refusal, switched off: files that it had refused break a rule."""
    command = [sys.executable, str(SCRIPTS / "fuzz_checks.py"), "--count", "40000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    n_conditions = int(re.search(r"(\d+) conditions, 0 of them are not missed", done.stdout).group(1))
    assert n_conditions > 100


@pytest.mark.parametrize("action", ["default", "error", "ignore"])
def test_warnings_break_no_rule(tmp_path, monkeypatch, action):
    """Nor do they hide one: a loader that forgets its rules is noticed, whatever is said."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import fuzz_models  # a script
    from exclusivity.io import _model_values

    with warnings.catch_warnings():
        warnings.simplefilter(action)
        assert fuzz_models.run(300, 0, tmp_path) == 0
        monkeypatch.setattr(_model_values, "_demand", lambda is_so, path: None)
        assert fuzz_models.run(300, 0, tmp_path) > 0
    assert list(tmp_path.glob("fuzz-0-*.erm"))


def test_prefix_is_what_the_page_says(tmp_path):
    save_model(ERMClassifier(2).fit(X2, Y2), tmp_path / "some.erm")
    data = (tmp_path / "some.erm").read_bytes()
    assert PREFIX.size == 24
    assert data[:8] == b"\x89ERM\r\n\x1a\n"
    assert int.from_bytes(data[8:12], "little") == 1
    assert int.from_bytes(data[16:24], "little") == len(data)
    assert load_model(tmp_path / "some.erm").n_estimators == 2
