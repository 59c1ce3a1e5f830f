"""RobustAdditiveClassifier in a model file and as an ONNX graph."""

import io
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import clone

from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.io import ModelFormatError, load_model, save_model, to_onnx
from exclusivity.io._model_kinds import pack_model, unpack_model
from exclusivity.io._model_values import Refusal
from exclusivity.io.models import read_model


def table(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    kinds = pd.Series(rng.choice(["x", "y", "z", "w"], n_rows, p=[0.4, 0.3, 0.28, 0.02]))
    return pd.DataFrame(
        {
            "a": rng.normal(size=n_rows),
            "b": np.where(rng.random(n_rows) < 0.2, np.nan, rng.integers(0, 5, n_rows)),
            "c": kinds.where(rng.random(n_rows) > 0.1, None),
            "d": pd.date_range("2020-01-01", periods=n_rows),
            "e": rng.choice([True, False], n_rows),
            "f": rng.normal(size=n_rows),
        }
    )


def odd_rows():
    """Rows with infinity, unseen categories and missing cells in all columns."""
    rows = table(400, 1)
    rows.loc[3, "a"], rows.loc[4, "a"], rows.loc[5, "c"] = np.inf, -np.inf, "unseen"
    rows.loc[6, ["a", "b", "c", "d", "f"]] = None
    return rows


def labels_of(rows, kind="int"):
    codes = np.digitize(rows.a + rows.f + rows.b.fillna(2) / 3 + (rows.c == "x"), [0.5, 1.8])
    return {"int": codes, "bool": codes > 0, "text": np.array(list("pqr"), dtype=object)[codes]}[kind]


CASES = {
    "two classes": ("bool", {"max_broken": 1}),
    "numbers": ("bool", {}),
    "three classes": ("int", {"max_broken": 1}),
    "texts, logistic": ("text", {"max_broken": 0, "loss": "logistic"}),
    "two classes, logistic": ("bool", {"max_broken": 1, "loss": "logistic"}),
    "groups": ("text", {"max_broken": 1, "feature_groups": {"a": "g", "b": "g"}}),
    "threats": ("int", {"threats": {"a": (-1.0, 0.5), "b": "increase", "c": "missing", "e": "trusted"}}),
    "decrease": ("bool", {"threats": {"a": "decrease", "f": "increase"}, "monotonic_cst": {"f": 1}}),
}


@cache
def fitted(name, columns="abcdef"):
    kind, parameters = CASES[name]
    rows = table(120)
    model = RobustAdditiveClassifier(**{"C": 2.0, "tol": 0.3, **parameters})
    return model.fit(rows[list(columns)], labels_of(rows, kind))


@pytest.mark.parametrize("name", CASES)
def test_loaded_models_say_the_same_to_the_bit(name, tmp_path):
    model, rows = fitted(name), odd_rows()
    save_model(model, tmp_path / "model.erm")
    loaded = load_model(tmp_path / "model.erm")
    assert repr(loaded) == repr(model)
    assert loaded.threats_ == model.threats_
    assert loaded.predict(rows).tolist() == model.predict(rows).tolist()
    calls = ["decision_function", "explain", "certify"]
    for call in calls + ["predict_proba"] * (model.loss == "logistic"):
        assert getattr(loaded, call)(rows).tobytes() == getattr(model, call)(rows).tobytes()
    assert loaded.certify(rows, threats="any").tolist() == model.certify(rows, threats="any").tolist()
    assert loaded.stands(rows, ["a", "c"]).tolist() == model.stands(rows, ["a", "c"]).tolist()
    for attribute in ("objective_", "dual_gap_", "converged_", "n_iter_", "classes_", "feature_names_in_"):
        assert np.array_equal(getattr(loaded, attribute), getattr(model, attribute))
    save_model(loaded, tmp_path / "again.erm")
    assert (tmp_path / "again.erm").read_bytes() == (tmp_path / "model.erm").read_bytes()


def test_a_loaded_model_starts_warm():
    rows = table(120)
    model = clone(fitted("two classes")).set_params(warm_start=True, tol=0.03)
    model.fit(rows, labels_of(rows, "bool"))
    loaded = unpack_model(pack_model(model)).fit(rows, labels_of(rows, "bool"))
    assert loaded.n_iter_ < model.n_iter_


def test_how_numbers_are_written_is_kept():
    """Rows that come from a file are read as the training rows were."""
    model = copy(fitted("two classes"))
    model.columns_ = [replace(column, notation=",'") for column in model.columns_]
    packed = pack_model(model)
    assert [column.notation for column in unpack_model(packed).columns_] == [",'"] * 6
    packed["notations"][2] = "*"
    with pytest.raises(Refusal, match="written in no known way"):
        unpack_model(packed)


def test_arrays_without_names():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = RobustAdditiveClassifier(tol=0.1).fit(X, X[:, 0] > 0)
    loaded = unpack_model(pack_model(model))
    assert loaded.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def _set(*path, to):
    def change(packed):
        for key in path[:-1]:
            packed = packed[key]
        packed[path[-1]] = to(packed[path[-1]]) if callable(to) else to

    return change


def _entry(*path, at, to):
    def change(values):
        values = values.copy()
        values[at] = to
        return values

    return _set(*path, to=change)


def _interval(low, high):
    def change(packed):
        _entry("threats", at=0, to=5)(packed)
        _entry("intervals", at=0, to=(low, high))(packed)

    return change


def _no_level(packed):
    columns = packed["columns"]
    columns["knots"] = columns["knots"][columns["n_knots"][0] :]
    columns["n_knots"] = np.r_[0, columns["n_knots"][1:]]


REFUSED = {
    "a column has no level": _no_level,
    "knots are not in increasing order": _entry("columns", "knots", at=1, to=-1e300),
    "categories are not different": _entry("columns", "texts", at=1, to="x"),
    "a category is a missing value": _entry("columns", "texts", at=-1, to=""),
    "expected as many texts": _entry("columns", "sizes", at=(2, 0), to=1),
    "a category has knots": _entry("columns", "kinds", at=0, to=2),
    "a number has categories": _entry("columns", "kinds", at=2, to=0),
    "a date is out of range": _set(
        "columns", "knots", to=lambda knots: np.where(knots > 1e9, knots * 1e9, knots)
    ),
    "expected a value for each point": _set("points", to=lambda points: points[:, :-1]),
    "expected points for each pair": _set(
        "classes", to=lambda classes: np.array(["p", "q", "r", "s"], object)
    ),
    "classes are not in increasing": _set("classes", to=lambda classes: classes[::-1]),
    "groups are not in the order": _entry("groups", at=0, to=3),
    "a parameter is not allowed": _set("params", "loss", to="cubic"),
    "belongs to no threat": _entry("intervals", at=(0, 1), to=0.5),
    "ends between knots": _interval(-0.12345, 0.5),
    "interval is not in order": _interval(0.5, -0.5),
    "is for numbers": _entry("threats", at=2, to=2),
}


@pytest.mark.parametrize("words", REFUSED)
def test_hostile_files(words):
    packed = pack_model(fitted("texts, logistic"))
    unpack_model(packed)
    REFUSED[words](packed)
    with pytest.raises(Refusal, match=words):
        unpack_model(packed)


def test_a_missing_cell_beyond_the_levels():
    """A certificate trusts that no cell is worse than the levels of its column."""
    model = fitted("two classes")
    packed = pack_model(model)
    assert not packed["columns"]["has_missing"][0]
    place = model.columns_[0].n_points - 1
    for change in (1.001 * packed["points"][:, :place].max() + 1e-9, -1e9):
        _entry("points", at=(0, place), to=change)(broken := packed | {"points": packed["points"].copy()})
        with pytest.raises(Refusal, match="beyond the levels"):
            unpack_model(broken)


def test_a_table_of_reachable_points_that_fills_memory():
    """Every knot reaches the larger ones: the table of certificates grows with the square of their number."""
    packed = pack_model(fitted("numbers", "af"))
    columns, n_knots = packed["columns"], 2000
    packed["threats"][:] = 2  # only larger numbers
    columns["n_knots"][:] = n_knots
    columns["knots"] = np.tile(np.arange(float(n_knots)), 2)
    columns["shares"] = np.tile(np.full(n_knots, 1 / n_knots), 2)
    packed["points"] = np.zeros((1, 2 * (n_knots + 1)))
    with pytest.raises(Refusal, match="too many levels to be certified"):
        unpack_model(packed)


def test_a_callable_cannot_be_stored(tmp_path):
    rows = table(60)
    model = RobustAdditiveClassifier(feature_groups=list, tol=0.5).fit(rows, labels_of(rows, "bool"))
    with pytest.raises(TypeError, match="feature_groups"):
        save_model(model, tmp_path / "model.erm")
    with pytest.raises(ModelFormatError):
        read_model(io.BytesIO(b"\x80"), 1)


def run_graph(model, rows):
    session = onnxruntime.InferenceSession(
        to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = {}
    for each in session.get_inputs():
        if each.name == "X":
            feed["X"] = np.asarray(rows, dtype=float)
        elif each.type == "tensor(string)":
            texts = ["" if pd.isna(cell) else str(cell) for cell in rows[each.name]]
            feed[each.name] = np.array(texts, dtype=object)[:, None]
        elif each.type == "tensor(int64)":
            feed[each.name] = rows[each.name].to_numpy("datetime64[us]").view(np.int64)[:, None]
        else:
            feed[each.name] = rows[each.name].to_numpy(dtype=float)[:, None]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_graphs_agree(name):
    model, rows = fitted(name), odd_rows()
    found = run_graph(model, rows)
    assert found["label"].tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(found["scores"], model.decision_function(rows), rtol=1e-12, atol=1e-12)
    radii = model.certify(rows)
    assert len(np.unique(radii)) > 1
    assert found["radius"].tolist() == radii.tolist()
    if model.loss == "logistic":
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), rtol=1e-9)


def test_a_graph_of_numbers_takes_one_array():
    rows = table(120)[["a", "b", "f"]]
    model = RobustAdditiveClassifier(C=2.0, tol=0.3).fit(rows, labels_of(table(120)))
    others = odd_rows()[["a", "b", "f"]]
    found = run_graph(model, others)
    assert found["label"].tolist() == model.predict(others).tolist()
    assert found["radius"].tolist() == model.certify(others).tolist()


def test_graphs_of_columns_without_values():
    rows = table(120).assign(f=np.nan, c=None)
    model = RobustAdditiveClassifier(C=2.0, tol=0.3, threats={"a": "trusted"}).fit(
        rows, labels_of(table(120))
    )
    found = run_graph(model, odd_rows())
    assert found["label"].tolist() == model.predict(odd_rows()).tolist()
    assert found["radius"].tolist() == model.certify(odd_rows()).tolist()
