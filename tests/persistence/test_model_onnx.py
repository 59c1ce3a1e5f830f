"""The ONNX graph says what the model says, in onnxruntime."""

import warnings
from itertools import combinations, product

import numpy as np
import onnxruntime
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier
from exclusivity.io import to_onnx
from exclusivity.robustness import certify
from exclusivity.tables import TableEncoder
from persistence.model_cases import LABELS, MODELS, SCALERS, X2, X3, Y2, Y3, last, rows_for


def session_of(graph):
    return onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def run(graph, X):
    return session_of(graph).run(["label", "scores"], {"X": X})


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
        to_onnx(model)


def vote_data(n_classes, n_rows=160, n_features=9):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_rows)
    # So small that a scaler makes a large finite number infinite.
    return (
        rng.normal(size=(n_rows, n_features)) + 3.0 * rng.normal(size=(n_classes, n_features))[y]
    ) * 1e-3, y


VOTES = {
    "two classes": (2, {"voting": "hard"}),
    "ovr, hard": (4, {"voting": "hard"}),
    "ovo, hard": (4, {"voting": "hard", "multi_class": "ovo"}),
    "ovr, runoff": (4, {"voting": "runoff"}),
    "ovo, runoff": (4, {"voting": "runoff", "multi_class": "ovo"}),
    "groups": (2, {"voting": "hard", "feature_groups": [0, 0, 1, 1, 2, 3, 4, 5, 6]}),
}


def assert_label_stands(session, rows, label, radius, groups, dtype):
    """Every group, and every pair of groups, at every value that breaks arithmetic."""
    largest = np.finfo(dtype).max
    values = np.array([np.nan, np.inf, -np.inf, largest, -largest, largest / 2], dtype=dtype)
    for r in (1, 2):
        safe = radius >= r
        assert safe.any()
        for chosen in combinations(range(int(groups.max()) + 1), r):
            for first, second in product(values, repeat=2):
                broken = rows[safe].copy()
                columns = np.flatnonzero(np.isin(groups, chosen))
                broken[:, columns] = np.where(np.arange(len(columns)) % 2, first, second)  # inf - inf, too
                assert np.array_equal(session.run(["label"], {"X": broken})[0], label[safe])


@pytest.mark.parametrize("name", ["standard", "minmax", "maxabs", "robust", None])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_broken_column_reaches_only_the_members_that_use_it(name, dtype):
    X, y = vote_data(2)
    X = (X if name else 1e3 * X).astype(dtype)
    vote = ERMClassifier(9, exclusivity=np.inf, voting="hard", random_state=0)
    model = make_pipeline("passthrough" if name is None else clone(SCALERS[name]), vote).fit(X, y)
    session = session_of(to_onnx(model))
    assert_label_stands(session, X[:25], model.predict(X[:25]), certify(model, X[:25]), vote.groups_, dtype)


@pytest.mark.parametrize("name", VOTES)
def test_certificates_hold_for_the_graph_of_every_vote(name):
    n_classes, parameters = VOTES[name]
    X, y = vote_data(n_classes)
    vote = ERMClassifier(7, exclusivity=np.inf, random_state=0, **parameters)
    model = make_pipeline(StandardScaler(), vote).fit(X, y)
    session = session_of(to_onnx(model))
    rows = X[:25]
    assert_label_stands(session, rows, model.predict(rows), certify(model, rows), vote.groups_, np.float64)


def test_a_member_without_a_score_has_one_vote():
    """Its own columns cancel to NaN: all other members vote as before."""
    X, y = vote_data(2)
    rows = 1e3 * X[:20]
    model = ERMClassifier(7, exclusivity=np.inf, voting="hard", random_state=0).fit(1e3 * X, y)
    others = model.component_predict(rows)
    owner = int(np.flatnonzero(model.supports_.sum(axis=1) > 1)[0])
    weights = model._ensemble.weights[0, owner]
    own = np.flatnonzero(weights)[:2]
    weights *= 1e10
    rows[:, own] = np.sign(weights[own]) * [1e308, -1e308]  # inf - inf
    scores = run(to_onnx(model), rows)[1]
    counted = (2 * np.delete(others, owner, axis=1) - 1).sum(axis=1)
    assert np.all(np.abs(np.abs(scores - counted) - 1) < 0.5)


def test_a_broken_column_stays_with_its_member_behind_tables():
    X, y = vote_data(2)
    encoder, vote = TableEncoder(), ERMClassifier(9, exclusivity=np.inf, voting="hard", random_state=0)
    for steps in ((encoder,), (StandardScaler(), encoder)):
        model = make_pipeline(*(clone(step) for step in steps), clone(vote))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*members")
            model.fit(X, y)
        rows = X[:25]
        session, label, radius = session_of(to_onnx(model)), model.predict(rows), certify(model, rows)
        assert np.any(radius >= 1)
        for column, value in product(range(9), [np.nan, np.inf, -np.inf, 1e308, -1e308]):
            broken = rows.copy()
            broken[:, column] = value
            after = session.run(["label"], {"X": broken})[0]
            assert np.array_equal(after[radius >= 1], label[radius >= 1])
