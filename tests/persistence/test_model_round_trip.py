"""What was saved comes back, bit by bit, and is as usable as before."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from classifier.erm_cases import DIVERSE
from exclusivity import ERMClassifier, ERMClassifierCV, RobustAdditiveClassifier
from exclusivity.classifier._ensemble import Ensemble
from exclusivity.io import ModelFormatError, load_model, save_model
from exclusivity.io._model_values import LONGEST_LIST
from exclusivity.robustness import certify
from exclusivity.tables import TableEncoder
from persistence.model_cases import (
    LABELS,
    MODELS,
    SCALERS,
    X2,
    X3,
    Y2,
    Y3,
    assert_same_model,
    exclusive,
    joined,
    last,
    rows_for,
    same,
    split,
)


def reloaded(model, tmp_path):
    path = tmp_path / "model.erm"
    save_model(model, path)
    return load_model(path)


@pytest.mark.parametrize("name", MODELS)
def test_everything_comes_back(tmp_path, name):
    model = MODELS[name]()
    twin = reloaded(model, tmp_path)
    X = rows_for(model)
    assert_same_model(model, twin, X)
    assert_same_model(model, twin, X.astype(np.float32))
    if model is last(model):
        same(model.component_predict(X), twin.component_predict(X))
        if model.voting == "hard":
            same(model.certify(X), twin.certify(X))
        same(model.component_decision_function(X), twin.component_decision_function(X))
        same(model.predict(sparse.csr_matrix(X)), twin.predict(sparse.csr_matrix(X)))
    save_model(twin, tmp_path / "twin.erm")
    assert (tmp_path / "twin.erm").read_bytes() == (tmp_path / "model.erm").read_bytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_mean_of_members_does_not_depend_on_the_order_of_memory(dtype):
    """A file stores rows; a fit may leave columns. Sums in another order would be other bits."""
    weights = np.random.default_rng(0).standard_normal((3, 9, 50)).astype(dtype)
    intercepts = weights[:, :, 0]
    plain = Ensemble(weights, np.ascontiguousarray(intercepts), 9).mean()
    for order in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)]:
        other = np.ascontiguousarray(weights.transpose(order)).transpose(np.argsort(order))
        twin = Ensemble(other, intercepts, 9).mean()
        same(twin.weights, plain.weights)
        same(twin.intercepts, plain.intercepts)


@pytest.mark.parametrize("name", ["binary", "ovo, hard", "float32", "pipeline", "exclusive", "groups"])
def test_it_is_as_usable_as_before(tmp_path, name):
    model = MODELS[name]()
    twin = reloaded(model, tmp_path)
    X, y = (X2, Y2) if len(last(model).classes_) == 2 else (X3, Y3)
    assert_same_model(clone(model).fit(X, y), clone(twin).fit(X, y), X)
    assert_same_model(model, pickle.loads(pickle.dumps(twin)), X)  # noqa: S301 -- our own
    assert_same_model(model.fit(X[::2], y[::2]), twin.fit(X[::2], y[::2]), X)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels(tmp_path, kind, n_classes):
    X, y = (X2, Y2) if n_classes == 2 else (X3, Y3)
    model = ERMClassifier(2).fit(X, LABELS[kind][y])
    assert_same_model(model, reloaded(model, tmp_path), X)
    assert model.classes_.dtype == LABELS[kind].dtype


@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scalers(tmp_path, name, dtype):
    X = (X3 * [1, 10, 1e-3, 0] + [5, 0, 1, 2]).astype(dtype)
    model = make_pipeline(clone(SCALERS[name]), ERMClassifier(2)).fit(X, Y3)
    twin = reloaded(model, tmp_path)
    assert_same_model(model, twin, X)
    same(model[0].transform(X), twin[0].transform(X))
    first, second = vars(model[0]), vars(twin[0])
    assert first.keys() == second.keys()
    for attribute, value in first.items():
        assert np.array_equal(value, second[attribute]), attribute


def test_scaler_of_data_with_gaps(tmp_path):
    X = X2.copy()
    X[3, 1] = np.nan
    scaler = StandardScaler().fit(X)
    assert scaler.n_samples_seen_.tolist() == [40, 39, 40, 40]
    model = make_pipeline(StandardScaler(), ERMClassifier(2)).fit(X2, Y2)
    model.steps[0] = ("standardscaler", scaler)
    same(reloaded(model, tmp_path)[0].n_samples_seen_, scaler.n_samples_seen_)


def test_data_frames(tmp_path):
    frame = pd.DataFrame(X2, columns=["a", "größer", "c" * 100, ""])
    model = make_pipeline(MinMaxScaler().set_output(transform="pandas"), ERMClassifier(2)).fit(frame, Y2)
    twin = reloaded(model, tmp_path)
    assert_same_model(model, twin, frame)  # without warnings about names
    same(model[0].get_feature_names_out(), twin[0].get_feature_names_out())
    same(model[-1].feature_names_in_, twin[-1].feature_names_in_)
    with pytest.raises(ValueError, match="feature names should match"):
        twin.predict(frame.rename(columns={"a": "b"}))


PARAMETERS = {
    "C": [2, 0.1, np.float32(0.1), np.int64(3), 5e-324, 1.7e308],
    "class_weight": [None, "balanced", {0: 1, 1: 2.5}, {np.int64(1): np.float64(1 / 3)}],
    "solver_options": [None, {}, {"regime": "auto"}],
    "n_jobs": [None, 1],
    "random_state": [None, 0, 2**31],
    "verbose": [0, False],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, v) for name, values in PARAMETERS.items() for v in values]
)
def test_parameters(tmp_path, name, value):
    model = ERMClassifier(2).fit(X2, Y2).set_params(**{name: value})
    found = reloaded(model, tmp_path).get_params()
    assert found == model.get_params()
    if not isinstance(value, np.generic):
        assert type(found[name]) is type(value)


def test_parameters_set_after_the_fit(tmp_path):
    """The fitted members stay what they are; the parameters are for the next fit."""
    model = ERMClassifier(4, multi_class="ovo", **DIVERSE).fit(X3, Y3)
    model.set_params(n_estimators=7, multi_class="ovr", exclusivity=0.1, voting="hard")
    twin = reloaded(model, tmp_path)
    assert_same_model(model, twin, X3)
    assert twin.components_.shape == (3, 4, 4)


def test_feature_groups(tmp_path):
    frame = pd.DataFrame(X2, columns=["a1", "a2", "b1", "b2"])
    groups = [name[0] for name in frame]
    model = exclusive(n_estimators=2, voting="hard", feature_groups=lambda names: [name[0] for name in names])
    model.fit(frame, Y2)
    with pytest.raises(TypeError, match=r"feature_groups=.* cannot be stored.* no code"):
        save_model(model, tmp_path / "model.erm")
    for given in (
        groups,
        tuple(groups),
        np.array(groups),
        pd.Series(groups),
        pd.Series(groups, dtype="category"),
    ):
        twin = reloaded(model.set_params(feature_groups=given), tmp_path)
        assert list(twin.feature_groups) == groups
        same(twin.certify(frame), model.certify(frame))
        same(twin.fit(frame, Y2).groups_, model.groups_)


@pytest.mark.filterwarnings("ignore:The search for a partition")  # three members of four features
def test_certificates_of_a_pipeline(tmp_path):
    model = make_pipeline(StandardScaler(), exclusive(n_estimators=3, voting="hard")).fit(X2, Y2)
    same(certify(reloaded(model, tmp_path), X2), certify(model, X2))


@pytest.mark.filterwarnings("ignore:The best C:UserWarning")
def test_search_for_the_cost(tmp_path):
    model = ERMClassifierCV(3, Cs=np.array([0.1, 1.0, 10.0]), cv=3, exclusivity=0.5).fit(X3, Y3)
    twin = reloaded(model, tmp_path)
    assert (model.C_, model.best_index_, model.best_score_) == (twin.C_, twin.best_index_, twin.best_score_)
    assert model.n_splits_ == twin.n_splits_ == 3
    same(model.Cs_, twin.Cs_)
    same(model.scores_, twin.scores_)
    assert model.cv_results_.keys() == twin.cv_results_.keys()
    for name, values in model.cv_results_.items():
        assert np.array_equal(values, twin.cv_results_[name]), name
    assert model.score(X3, Y3) == twin.score(X3, Y3)
    assert twin.scorer_(twin, X3, Y3) == model.scorer_(model, X3, Y3)
    assert vars(model).keys() - vars(twin).keys() == {"history_"}
    same(clone(twin).fit(X3, Y3).scores_, model.scores_)
    with pytest.raises(TypeError, match=r"ERMClassifierCV.cv=.* set_params\(cv=\.\.\.\)"):
        save_model(model.set_params(cv=StratifiedKFold(3)), tmp_path / "no.erm")
    with pytest.raises(TypeError, match=r"scoring=.* cannot be stored"):
        save_model(model.set_params(cv=3, scoring=lambda *_: 1.0), tmp_path / "no.erm")
    with pytest.raises(NotFittedError, match="refit=False"):
        save_model(ERMClassifierCV(2, Cs=[1.0], refit=False).fit(X3, Y3), tmp_path / "no.erm")


def test_warm_start_goes_on(tmp_path):
    model = ERMClassifier(2, warm_start=True, tol=1e-8).fit(X3, Y3)
    twin = reloaded(model, tmp_path).fit(X3, Y3)
    cold = ERMClassifier(2, tol=1e-8).fit(X3, Y3)
    assert twin.n_iter_.sum() < cold.n_iter_.sum()
    assert twin.converged_.all()


def test_histories_are_not_stored(tmp_path):
    """They are about the fit; what it reached is stored."""
    model = ERMClassifier(2).fit(X3, Y3)
    twin = reloaded(model, tmp_path)
    assert len(model.history_) == 3
    assert not hasattr(twin, "history_")
    assert twin.fit(X3, Y3).history_[0].objective.tolist() == model.history_[0].objective.tolist()


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (ERMClassifier(), NotFittedError, "not fitted"),
        (RobustAdditiveClassifier(), NotFittedError, "RobustAdditiveClassifier instance is not fitted"),
        (
            make_pipeline(TableEncoder(), ERMClassifier()),
            NotFittedError,
            "TableEncoder instance is not fitted",
        ),
        (LogisticRegression().fit(X2, Y2), TypeError, "LogisticRegression cannot be stored as a classifier"),
        (
            GridSearchCV(ERMClassifier(2), {"C": [1.0]}, cv=2).fit(X2, Y2),
            TypeError,
            "store what it chose: its best_estimator_",
        ),
        (StandardScaler().fit(X2), TypeError, "StandardScaler cannot be stored as a classifier"),
        (
            make_pipeline(FunctionTransformer(), ERMClassifier(2)).fit(X2, Y2),
            TypeError,
            "FunctionTransformer cannot be stored as a step before the classifier; .* StandardScaler",
        ),
        (
            make_pipeline(StandardScaler(), ERMClassifier(2), memory="cache_folder"),
            ValueError,
            r"memory set cannot be stored; use set_params\(memory=None\)",
        ),
        (type("Mine", (ERMClassifier,), {})(2).fit(X2, Y2), TypeError, "Mine cannot be stored"),
        (
            ERMClassifier(2).fit(X2, Y2).set_params(random_state=np.random.RandomState(0)),
            TypeError,
            r"random_state=.* cannot be stored: .* set_params\(random_state=\.\.\.\)",
        ),
        (
            ERMClassifier(2).fit(X2, Y2).set_params(class_weight={0: float("nan")}),
            ValueError,
            "class_weight is 'nan'; expected 'inf' or '-inf'",
        ),
        (
            ERMClassifier(2).fit(X2, Y2).set_params(class_weight={(0, 1): 1.0}),
            ValueError,
            r"class_weight has the key \(0, 1\)",
        ),
        (ERMClassifier(2).fit(X2, Y2).set_params(voting="loud"), ValueError, "voting must be one of"),
        (
            ERMClassifier(2).fit(X2, Y2).set_params(random_state=2**70),
            ValueError,
            "which is too large",
        ),
        (
            ERMClassifier(2).fit(X2, np.array(["a", "b\0"], dtype=object)[Y2]),
            ValueError,
            "classes holds 'b.x00'; a model file stores text, without a NUL at its end",
        ),
        (
            ERMClassifier(2).fit(X2, np.array(["a", "b\ud800"], dtype=object)[Y2]),
            ValueError,
            "lone surrogates",
        ),
        ("a text", TypeError, "str cannot be stored as a classifier"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_saved(tmp_path, model, error, words):
    with pytest.raises(error, match=words):
        save_model(model, tmp_path / "model.erm")
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_not_finite(tmp_path):
    model = ERMClassifier(2).fit(X2, Y2)
    model._ensemble.weights[0, 0, 0] = np.inf
    with pytest.raises(ValueError, match="weights: expected finite numbers"):
        save_model(model, tmp_path / "model.erm")


def test_scaler_that_is_not_finite(tmp_path):
    model = make_pipeline(StandardScaler(), ERMClassifier(2)).fit(X2, Y2)
    model[0].mean_[1] = np.nan
    with pytest.raises(ValueError, match="mean_: expected finite numbers"):
        save_model(model, tmp_path / "model.erm")


def test_steps_of_different_widths(tmp_path):
    model = make_pipeline(StandardScaler(), ERMClassifier(2)).fit(X2, Y2)
    model[0].fit(X2[:, :2])
    with pytest.raises(ValueError, match="the steps of the pipeline have"):
        save_model(model, tmp_path / "model.erm")


def test_long_lists_become_arrays(tmp_path):
    """Through class_weight, the one parameter of any form that a classifier keeps untouched."""
    short, long = list(range(LONGEST_LIST)), [*range(LONGEST_LIST), 5]
    model = ERMClassifier(2).fit(X2, Y2)
    for value, kind in (
        (short, list),
        (tuple(short), tuple),
        (long, np.ndarray),
        (np.array(long), np.ndarray),
    ):
        twin = reloaded(model.set_params(class_weight={"nested": value}), tmp_path)
        assert type(twin.class_weight["nested"]) is kind
        assert np.array_equal(twin.class_weight["nested"], value)
    with pytest.raises(ValueError, match="holds 1; a model file stores text"):
        save_model(model.set_params(class_weight=["a", 1] * LONGEST_LIST), tmp_path / "no.erm")


def test_header_has_a_limit(tmp_path):
    model = (
        ERMClassifier(2).fit(X2, Y2).set_params(class_weight={"x" * 1000: {str(i): 1 for i in range(40_000)}})
    )
    with pytest.raises(ValueError, match="give long lists as numpy arrays"):
        save_model(model, tmp_path / "model.erm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["diagnosis", "größe", "", 0, 3])
def test_the_column_of_the_classes(tmp_path, target):
    for model in (ERMClassifier(2), make_pipeline(StandardScaler(), ERMClassifier(2))):
        fitted = model.fit([[0.0], [1.0]], [0, 1])
        assert not hasattr(reloaded(fitted, tmp_path), "target_column_")
        fitted.target_column_ = target
        assert reloaded(fitted, tmp_path).target_column_ == target


@pytest.mark.parametrize("target", [-1, 1.5, True, "\ud800", ["diagnosis"]])
def test_what_is_no_column(tmp_path, target):
    model = ERMClassifier(2).fit([[0.0], [1.0]], [0, 1])
    model.target_column_ = target
    with pytest.raises(ValueError, match="the name of a column or its number from 0"):
        save_model(model, tmp_path / "m.erm")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", [-1, 1.5, True, "\ud800", ["diagnosis"], {}])
def test_a_file_with_what_is_no_column(tmp_path, target):
    save_model(ERMClassifier(2).fit([[0.0], [1.0]], [0, 1]), tmp_path / "m.erm")
    header, arrays = split((tmp_path / "m.erm").read_bytes())
    header["model"]["target"] = target
    (tmp_path / "m.erm").write_bytes(joined(header, arrays))
    with pytest.raises(ModelFormatError, match="the name of a column or its number"):
        load_model(tmp_path / "m.erm")
