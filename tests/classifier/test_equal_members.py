"""Equal members are stored once and asked once, and count as many times as there are."""

import dataclasses
import tracemalloc

import numpy as np
import pytest

from classifier.erm_cases import binary_data, class_data
from exclusivity import ERMClassifier
from exclusivity.classifier._ensemble import Ensemble, FittedState
from exclusivity.inspection import ComponentsDisplay, model_report
from exclusivity.inspection.summary import summarise
from exclusivity.robustness import attack, certify, certify_set

MILLION = 10**6
DATA = {2: binary_data(60, 4), 4: class_data(4, 60, 4)}


def peak_of(call):
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fitted(n_members, n_classes, voting, multi_class="ovr", **parameters):
    X, y = DATA[n_classes]
    return ERMClassifier(n_members, voting=voting, multi_class=multi_class, **parameters).fit(X, y)


def one_by_one(model):
    """The same classifier with every member stored, as if they differed."""
    ensemble = model._ensemble
    weights, intercepts = (
        np.repeat(part, ensemble.n_members, axis=1) for part in (ensemble.weights, ensemble.intercepts)
    )
    state = dataclasses.replace(
        FittedState.of(model), ensemble=Ensemble(weights, intercepts, ensemble.n_members)
    )
    return state.restore(ERMClassifier(**model.get_params()))


def doubtful_rows(model, X):
    """Rows on the boundary of two classes, as exactly as they can be."""
    rows, weights, intercepts = X[:20].copy(), model.components_[:, 0], model.component_intercepts_[:, 0]
    for place, row in enumerate(rows):
        first, second = np.argsort(-(weights @ row + intercepts))[[0, -1 if len(weights) == 1 else 1]]
        w, b = weights[first], intercepts[first]
        if len(weights) == len(model.classes_):
            w, b = w - weights[second], b - intercepts[second]
        rows[place] -= (row @ w + b) / (w @ w) * w
    return np.vstack([rows, X])


@pytest.mark.parametrize("voting", ["soft", "hard", "runoff"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("n_classes", DATA)
@pytest.mark.parametrize("n_members", [1, 2, 7])
def test_as_if_each_were_stored(n_members, n_classes, multi_class, voting):
    model = fitted(n_members, n_classes, voting, multi_class)
    twin, X = one_by_one(model), DATA[n_classes][0]
    assert (model._ensemble.intercepts.shape[1], twin._ensemble.intercepts.shape[1]) == (1, n_members)
    np.testing.assert_allclose(model.decision_function(X), twin.decision_function(X), rtol=1e-12, atol=1e-12)
    for method in ("component_predict", "component_decision_function"):
        found, expected = getattr(model, method)(X), getattr(twin, method)(X)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    for name in ("components_", "component_intercepts_", "supports_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(twin, name))
    if voting == "soft":
        return
    X = doubtful_rows(model, X)
    np.testing.assert_array_equal(model.certify(X), twin.certify(X))
    assert set(model.certify(X)) == {-1, 0}
    for r in range(3):
        np.testing.assert_array_equal(model.certify_set(X, r), twin.certify_set(X, r))
        np.testing.assert_array_equal(certify_set(model, X, r), twin.certify_set(X, r))
    found, expected = attack(model, X[20:30], 1), attack(twin, X[20:30], 1)
    np.testing.assert_array_equal(found.changed, expected.changed)


@pytest.mark.parametrize("voting", ["hard", "runoff"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("n_classes", DATA)
def test_a_million_cost_what_one_costs(n_classes, multi_class, voting):
    model, X = fitted(MILLION, n_classes, voting, multi_class), DATA[n_classes][0]

    def use():
        assert model.component_predict(X).shape == (len(X), MILLION)
        assert model.component_decision_function(X).shape[2] == MILLION
        assert model.supports_.shape == (MILLION, X.shape[1])
        assert model.components_.shape[1] == MILLION
        assert np.abs(model.decision_function(X)).max() > MILLION - 1
        assert set(model.certify(X)) <= {-1, 0}
        assert model.certify_set(X, 1).all()
        assert set(certify(model, X)) <= {-1, 0}
        attack(model, X[:5], 1)
        assert summarise(model)["members"] == MILLION
        return model.predict(X)

    labels, peak = peak_of(use)
    assert peak < 4 << 20
    np.testing.assert_array_equal(labels, model.set_params(voting="soft").predict(X))


def test_a_million_are_drawn_once():
    pytest.importorskip("matplotlib")
    X, y = DATA[2]
    model = ERMClassifier(MILLION, voting="hard").fit(X.astype(np.float32), y)
    model_report(fitted(2, 2, "hard"))  # what matplotlib loads is not counted
    page, peak = peak_of(lambda: model_report(model))
    assert "1000000 equal members, drawn once" in page
    assert peak < 16 << 20
    display, peak = peak_of(lambda: ComponentsDisplay(model.components_[0], list("abcd")))
    assert peak < 1 << 20
    assert display.members_are_equal


@pytest.mark.parametrize("voting", ["soft", "hard", "runoff"])
@pytest.mark.parametrize("n_classes", DATA)
def test_members_that_differ_are_asked_about_some_rows_at_a_time(n_classes, voting):
    """Scores of all members and rows would take 160 MB a problem."""
    n_members, rng = 20_000, np.random.default_rng(0)
    small = fitted(2, n_classes, voting)
    n_problems, _, n_features = small.components_.shape
    weights = rng.standard_normal((n_problems, n_members, n_features))
    state = dataclasses.replace(
        FittedState.of(small), ensemble=Ensemble(weights, np.zeros(weights.shape[:2]), n_members)
    )
    model = state.restore(ERMClassifier(**small.get_params()))
    X = rng.standard_normal((1000, n_features))
    labels, peak = peak_of(lambda: model.predict(X))
    assert peak < 48 << 20
    np.testing.assert_array_equal(labels[:20], model.predict(X[:20]))
