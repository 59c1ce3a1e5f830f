"""An engine that is not ours, ``concurrent.futures`` in one file: the models that rows in memory give."""

from __future__ import annotations

import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from exclusivity import ERMClassifier, RobustAdditiveClassifier
from exclusivity.rows.source import LocalBlocks, RowBlock
from extending.pool_engine import PoolRows, fit_chunks

TOL = 1e-8


def data(n_classes=2, n_rows=300, n_features=5):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, n_features))
    scores = X[:, :n_classes] + rng.normal(size=(n_rows, n_classes))
    return X, np.array(["ant", "bee", "cat", "dog"])[scores.argmax(axis=1)]


def chunks(X, y, *weights, size=70):
    return [tuple(part[at : at + size] for part in (X, y, *weights)) for at in range(0, len(y), size)]


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def assert_same_model(found, expected, X, tol=TOL):
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=2 * tol)
    assert np.all(found.dual_gap_ <= tol)
    assert found.converged_.all()
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"p": 1},
        {"p": 1.5, "multi_class": "ovo"},
        {"loss": "logistic", "exclusivity": 0.3},
        {"loss": "smooth_hinge", "fit_intercept": False},
        {"sparsity": 3.0},
        {"class_weight": "balanced"},
        {"class_weight": {"ant": 5.0}, "p": 1},
        {"coef_bounds": (-0.1, 0.2)},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_models_are_those_of_rows_in_memory(pool, params, n_classes):
    X, y = data(n_classes)
    if "coef_bounds" in params and n_classes == 4:
        params = params | {"multi_class": "ovr"}
    model = ERMClassifier(3, tol=TOL, **params)
    assert_same_model(fit_chunks(clone(model), chunks(X, y), pool), clone(model).fit(X, y), X)


def test_sparse_rows_and_sample_weights(pool):
    X, y = data()
    X = sparse.csr_matrix(X * (np.abs(X) > 0.5))
    weights = np.random.default_rng(0).integers(1, 4, size=len(y)).astype(float)
    model = ERMClassifier(3, tol=TOL, class_weight="balanced")
    found = fit_chunks(clone(model), chunks(X, y, weights), pool)
    assert_same_model(found, clone(model).fit(X, y, weights), X)


def test_processes():
    X, y = data()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        found = fit_chunks(ERMClassifier(3, p=1, tol=TOL), chunks(X, y), processes)
    assert_same_model(found, ERMClassifier(3, p=1, tol=TOL).fit(X, y), X)


def test_float32_rows_give_a_float32_model(pool):
    X, y = data()
    X = X.astype(np.float32)
    found = fit_chunks(ERMClassifier(3), chunks(X, y), pool)
    assert found.coef_.dtype == np.float32
    assert_same_model(found, ERMClassifier(3).fit(X, y), X, tol=1e-4)


@pytest.mark.parametrize("voting", ["hard", "runoff"])
def test_members_on_different_features(pool, voting):
    X, y = data(4, n_features=8)
    model = ERMClassifier(3, exclusivity=np.inf, voting=voting, random_state=0, tol=1e-6)
    found, expected = fit_chunks(clone(model), chunks(X, y), pool), clone(model).fit(X, y)
    np.testing.assert_array_equal(found.partition_, expected.partition_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    np.testing.assert_array_equal(found.certify(X), expected.certify(X))


def test_members_whose_vote_never_changes_are_reported(pool):
    X, _ = data()
    y = np.where(X[:, 1] > 1, "bee", "ant")  # which says nothing about the column of the first member
    model = ERMClassifier(2, exclusivity=np.inf, voting="hard", partition=[0, 1, 1, 1, 1], random_state=0)
    with pytest.warns(UserWarning, match="1 of 2 members vote"):
        fit_chunks(model, chunks(X, y), pool)


def test_warm_start_goes_on_where_it_was(pool):
    X, y = data(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit_chunks(ERMClassifier(3, tol=TOL, max_iter=2, warm_start=True), chunks(X, y), pool)
    again = fit_chunks(model.set_params(max_iter=None), chunks(X, y), pool)
    cold = fit_chunks(ERMClassifier(3, tol=TOL), chunks(X, y), pool)
    assert again.converged_.all()
    assert again.n_iter_.sum() < cold.n_iter_.sum()


def test_names_and_progress(pool, capsys):
    X, y = data()
    rows = PoolRows([RowBlock(X, (y == "bee").astype(np.int32), np.ones(len(y)))], pool)
    names = ["a", "b", "c", "d", "e"]
    model = ERMClassifier(3, monotonic_cst={"a": 1}, verbose=1).fit_rows(
        rows, ["ant", "bee"], feature_names=names
    )
    assert model.feature_names_in_.tolist() == names
    assert model.coef_[0, 0] >= 0
    assert "[ERM] bee against ant: ended after" in capsys.readouterr().out
    model.set_params(monotonic_cst=None).fit_rows(rows, ["ant", "bee"])
    assert not hasattr(model, "feature_names_in_")


def test_a_source_may_read_anew_in_every_pass():
    X, y = data()

    class Reader(LocalBlocks):
        n_rows, n_features = len(y), X.shape[1]

        def blocks(self):
            for part, labels in chunks(X, y):
                yield RowBlock(part, (labels == "bee").astype(np.int32), np.ones(len(labels)))

    assert_same_model(
        ERMClassifier(3, tol=TOL).fit_rows(Reader(), ["ant", "bee"]), ERMClassifier(3, tol=TOL).fit(X, y), X
    )


@pytest.mark.parametrize(
    ("params", "classes", "message"),
    [
        ({"solver": "alm"}, ["ant", "bee"], "solver='alm' needs rows in memory"),
        ({"exclusivity": 3.0}, ["ant", "bee"], "exclusivity=3.0 needs rows in memory"),
        ({"n_jobs": 2}, ["ant", "bee"], "n_jobs=2 needs rows in memory"),
        ({"C": 0}, ["ant", "bee"], "C must be a number above 0"),
        ({}, ["bee", "ant"], "increasing order"),
        ({}, ["ant", "ant"], "different labels"),
        ({}, ["ant"], "codes of a block must be integers from 0 to 0"),
    ],
)
def test_what_cannot_be_honoured_is_refused(pool, params, classes, message):
    X, y = data()
    rows = PoolRows([RowBlock(X, (y == "bee").astype(np.int32), np.ones(len(y)))], pool)
    with pytest.raises(ValueError, match=message):
        ERMClassifier(3, **params).fit_rows(rows, classes)


@pytest.mark.parametrize(
    ("weights", "codes", "names", "message"),
    [
        (0.0, 1, None, "weights of a block must be positive"),
        (np.nan, 1, None, "weights of a block must be positive"),
        (1.0, 2, None, "codes of a block must be integers from 0 to 1"),
        (1.0, 1, ["a"], "feature_names must have one name for each of the 5 columns"),
    ],
)
def test_blocks_that_break_the_contract_are_refused(pool, weights, codes, names, message):
    X, y = data()
    rows = PoolRows([RowBlock(X, codes * (y == "bee").astype(np.int32), np.full(len(y), weights))], pool)
    with pytest.raises(ValueError, match=message):
        ERMClassifier(3).fit_rows(rows, ["ant", "bee"], feature_names=names)


def test_tables_for_the_robust_additive_model(pool):
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(X[:, :3]).assign(word=np.where(X[:, 3] > 0, "high", "low"))
    frame.columns = ["a", "b", "c", "word"]
    model = RobustAdditiveClassifier(max_broken=1)
    found, expected = fit_chunks(clone(model), chunks(frame, y), pool), clone(model).fit(frame, y)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-6)
    np.testing.assert_array_equal(found.certify(frame.to_numpy()), expected.certify(frame))
