"""The ONNX graph says what the model says, in onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from exclusivity import ERMClassifier
from exclusivity.persistence import to_onnx
from exclusivity.persistence.onnx_graph import import_onnx
from persistence.model_cases import LABELS, MODELS, SCALERS, X2, X3, Y2, Y3, last, rows_for


def run(graph, X):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["label", "scores"], {"X": X})


def assert_agrees(model, X, **options):
    label, scores = run(to_onnx(model, **options), X)
    expected = model.decision_function(X)
    assert scores.dtype == expected.dtype
    assert scores.shape == expected.shape
    # Sums in another order: float64 rounding, and one unit of float32 where scores are rounded to that.
    tolerance = 1e-12 if expected.dtype == np.float64 else 2e-7
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)
    assert label.tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_models(name, dtype):
    model = MODELS[name]()
    X = rows_for(model, 500).astype(dtype)
    assert_agrees(model, X, input_type=np.dtype(dtype).name)


@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scalers(name, dtype):
    X = (X3 * [1, 10, 1e-3, 0] + [5, 0, 1, 2]).astype(dtype)
    model = make_pipeline(clone(SCALERS[name]), ERMClassifier(2)).fit(X, Y3)
    rng = np.random.default_rng(0)
    assert_agrees(model, (X[rng.integers(len(X), size=500)] * 1.7).astype(dtype))


@pytest.mark.parametrize("kind", LABELS)
def test_labels(kind):
    model = ERMClassifier(2).fit(X3, LABELS[kind][Y3])
    if kind == "str":
        model.classes_ = np.array(["a", "b", "größer"])
    assert_agrees(model, X3)


def test_ties_go_the_same_way():
    """All members see nothing but zeros: every comparison is a tie."""
    for name in ("ovr, hard", "ovo, hard", "ovo", "binary, hard", "ovr, runoff", "ovo, runoff"):
        model = MODELS[name]()
        last(model)._ensemble.intercepts[:] = 0
        assert_agrees(model, np.zeros((1, 4)))


@pytest.mark.parametrize("name", ["ovo, hard", "ovo, runoff", "ovr, runoff"])
def test_huge_margins(name):
    model = MODELS[name]()
    label, scores = run(to_onnx(model), np.full((2, 4), 1e300))
    assert np.isfinite(scores).all()
    assert label.tolist() == model.predict(np.full((2, 4), 1e300)).tolist()


def test_default_type_is_that_of_the_training_data():
    for dtype, number in ((np.float32, 1), (np.float64, 11)):
        graph = to_onnx(ERMClassifier(2).fit(X2.astype(dtype), Y2))
        assert graph.graph.input[0].type.tensor_type.elem_type == number


def test_what_cannot_be_exported(monkeypatch):
    model = ERMClassifier(2).fit(X2, Y2)
    with pytest.raises(ValueError, match="input_type must be one of"):
        to_onnx(model, input_type="int8")
    with pytest.raises(TypeError, match="cannot be stored as a classifier"):
        to_onnx("a text")
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'exclusivity\[onnx\]'"):
        import_onnx()
