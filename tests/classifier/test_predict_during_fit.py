"""One thread fits a classifier anew while others predict: every answer is one of the old or the new model."""

import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import certify

N_FITS, N_ANSWERS = 6, 10
"""At least so many fits, and so many rounds of questions by every reader while they go on."""
EXCLUSIVE = {"exclusivity": np.inf, "random_state": 0, "solver_options": {"restarts": 0}}
MODELS = {
    "soft": lambda: ERMClassifier(2),
    "hard": lambda: ERMClassifier(4, voting="hard", **EXCLUSIVE),
    "runoff": lambda: ERMClassifier(4, voting="runoff", **EXCLUSIVE),
    "cross-validated": lambda: ERMClassifierCV(4, voting="hard", Cs=[1.0], cv=2, **EXCLUSIVE),
    "parts": lambda: FeaturePartitionClassifier(GaussianNB(), 3, random_state=0),
    "parts, runoff": lambda: FeaturePartitionClassifier(GaussianNB(), 3, voting="runoff", random_state=0),
}


def table(n_classes, n_features, columns, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(80) % n_classes
    X = rng.normal(size=(80, n_features)) + 3.0 * rng.normal(size=(n_classes, n_features))[y]
    labels = np.array([f"{columns}{c}" for c in range(n_classes)])[y]
    names = [f"{columns}{j}" for j in range(n_features)]
    return pd.DataFrame(X, columns=names), labels


def answers(model, table):
    """What the model says about rows of a table, "refused" if it was fitted to other columns."""
    rows = table[0]

    def ask(method):
        try:
            return method(rows).tolist()
        except ValueError as error:  # other columns
            return "refused" if "feature names" in str(error) else str(error)

    methods = [model.predict]
    if hasattr(model, "decision_function"):
        methods.append(model.decision_function)
    if getattr(model, "voting", "soft") != "soft":
        methods += [model.certify, lambda X: certify(model, X)]
    return [ask(method) for method in methods]


@pytest.mark.filterwarnings("ignore:.*members")
@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_one_model(name):
    # Other classes, other features, other names.
    tables = [table(2, 6, "a", 0), table(4, 9, "b", 1), table(3, 6, "c", 2)]
    expected = [[answers(MODELS[name]().fit(*fitted), asked) for fitted in tables] for asked in tables]
    model, stop, wrong, n_answers = MODELS[name]().fit(*tables[0]), threading.Event(), [], [0, 0, 0]

    def read(number):
        try:
            while not stop.is_set():
                for method, answer in enumerate(answers(model, tables[number])):
                    if answer not in [found[method] for found in expected[number]]:
                        wrong.append((number, method, answer))
                        stop.set()
                n_answers[number] += 1
        finally:  # an error, which pytest reports, ends the fits, too
            stop.set()

    readers = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for reader in readers:
            reader.start()
        n_fits = 0
        while not stop.is_set() and (n_fits < N_FITS or min(n_answers) < N_ANSWERS):
            n_fits += 1
            model.fit(*tables[n_fits % 3])
    finally:
        stop.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(before)
    assert not wrong


def run_with(task, model, interrupt):
    """Run a task; interrupt it at every line of a function that holds the model."""

    def trace(frame, event, _):
        if any(value is model for value in frame.f_locals.values()):
            interrupt()
        return trace

    before = sys.gettrace()  # of coverage
    sys.settrace(trace)
    try:
        return task()
    finally:
        sys.settrace(before)


@pytest.mark.filterwarnings("ignore:.*members")
@pytest.mark.parametrize("name", MODELS)
def test_any_line_of_a_fit_may_be_followed_by_a_prediction(name):
    tables = [table(2, 6, "a", 0), table(4, 9, "b", 1)]
    model, asked = MODELS[name](), tables[0]
    after, before = (answers(model.fit(*fitted), asked) for fitted in reversed(tables))
    found = []
    run_with(lambda: model.fit(*tables[1]), model, lambda: found.append(answers(model, asked)))
    n_former = found.index(after)
    assert found == [before] * n_former + [after] * (len(found) - n_former)
    assert n_former > 10


@pytest.mark.filterwarnings("ignore:.*members")
@pytest.mark.parametrize("name", MODELS)
def test_any_line_of_a_prediction_may_be_followed_by_a_fit(name):
    tables = [table(2, 6, "a", 0), table(4, 9, "b", 1), table(3, 6, "c", 2)]
    model, asked, n_fits = MODELS[name](), tables[0], 0
    expected = [answers(model.fit(*fitted), asked) for fitted in tables]
    states = [vars(MODELS[name]().fit(*fitted)) for fitted in tables]

    def fit():
        nonlocal n_fits
        n_fits += 1
        model.__dict__ = dict(states[n_fits % 3])

    for method, found in enumerate(zip(*expected, strict=True)):
        assert run_with(lambda: answers(model, asked)[method], model, fit) in found  # noqa: B023
    assert n_fits > 10


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_fails_leaves_the_former_model(name):
    first, second = table(2, 6, "a", 0), table(3, 8, "b", 1)
    model = MODELS[name]().fit(*first)
    before = model.predict(first[0])
    second[0].iloc[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(*second)
    assert model.n_features_in_ == 6
    assert np.array_equal(model.predict(first[0]), before)


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_leaves_nothing_of_the_former_one(name):
    X, y = table(2, 6, "a", 0)
    model = MODELS[name]().fit(X, y)
    assert hasattr(model, "feature_names_in_")
    assert not hasattr(model.fit(X.to_numpy(), y), "feature_names_in_")
