"""Integers and booleans stay as they are in memory, and give what the same numbers in float64 give."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.objective.objective import ERMProblem, dual_bound
from exclusivity.rows.design import DesignMatrix

TYPES = ["int8", "uint8", "bool", "int16", "int32", "int64", "uint64"]


def rows(dtype, n_rows=120, n_features=6, seed=0):
    """The smallest and the largest number of the type among them, as far as sums of squares have digits."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        X = rng.random((n_rows, n_features)) < 0.4
    else:
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -(2**15)), min(limits.max, 2**15)
        X = rng.integers(low, high, size=(n_rows, n_features), endpoint=True).astype(dtype)
        X[0], X[1] = low, high
    direction = rng.standard_normal(n_features)
    scores = X.astype(float) @ direction
    scores += scores.std() * rng.standard_normal(n_rows)
    return X, scores > np.median(scores)


@pytest.mark.parametrize("wrap", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("dtype", TYPES)
def test_fits_are_those_of_floats(dtype, p, wrap):
    X, y = rows(dtype)
    cost = 1e-2 / max(np.abs(X.astype(float)).max(), 1) ** (p - 1)
    model = ERMClassifier(2, C=cost, p=p, tol=1e-6)
    floats = ERMClassifier(2, C=cost, p=p, tol=1e-6).fit(wrap(X.astype(float)), y)
    model.fit(wrap(X), y)
    assert model.coef_.dtype == np.float64
    assert model.converged_.all()
    np.testing.assert_allclose(model.coef_, floats.coef_, rtol=1e-12, atol=1e-12 * np.abs(floats.coef_).max())
    np.testing.assert_allclose(model.dual_gap_, floats.dual_gap_, atol=1e-12)
    expected = floats.decision_function(X.astype(float))
    np.testing.assert_allclose(model.decision_function(wrap(X)), expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(model.predict(wrap(X)), floats.predict(X.astype(float)))


@pytest.mark.parametrize("dtype", ["int8", "bool"])
@pytest.mark.parametrize("shape", [(40, 90), (90, 40)])
@pytest.mark.parametrize("regime", ["iterative", "interior", "auto"])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_every_method_takes_them(dtype, shape, regime, wrap):
    X, y = rows(dtype, *shape)
    settings = {"C": 1e-4, "p": 1, "tol": 1e-5, "solver_options": {"regime": regime}}
    model = ERMClassifier(1, **settings).fit(wrap(X), y)
    floats = ERMClassifier(1, **settings).fit(wrap(X.astype(float)), y)
    np.testing.assert_allclose(model.coef_, floats.coef_, atol=1e-12 * np.abs(floats.coef_).max())
    assert model.converged_.all()


@pytest.mark.parametrize("solver", ["alm", "paper"])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_other_solvers_take_them(solver, wrap):
    X, y = rows("int8")
    settings = {"C": 1e-4, "solver": solver}
    model, floats = (ERMClassifier(2, **settings).fit(wrap(Z), y) for Z in (X, X.astype(float)))
    np.testing.assert_allclose(model.coef_, floats.coef_, rtol=1e-9)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_partitions_votes_and_certificates(wrap):
    X, y = rows("int8", 200, 12)
    settings = {
        "exclusivity": np.inf,
        "voting": "hard",
        "C": 1e-4,
        "random_state": 0,
        "class_weight": "balanced",
    }
    model, floats = (ERMClassifier(3, **settings).fit(wrap(Z), y) for Z in (X, X.astype(float)))
    assert np.array_equal(model.partition_, floats.partition_)
    assert np.array_equal(model.predict(wrap(X)), floats.predict(X.astype(float)))
    assert np.array_equal(model.certify(wrap(X)), floats.certify(X.astype(float)))


def test_paths_and_cross_validation():
    X, y = rows("uint8")
    chosen, floats = (ERMClassifierCV(2, Cs=4, cv=3, tol=1e-6).fit(Z, y) for Z in (X, X.astype(float)))
    assert chosen.C_ == floats.C_
    np.testing.assert_allclose(chosen.coef_, floats.coef_, rtol=1e-10)
    path, same = (erm_path(Z, y, Cs=3) for Z in (X, X.astype(float)))
    np.testing.assert_allclose(path.coefs, same.coefs, rtol=1e-10)


def test_numbers_of_eight_bits_do_not_overflow():
    X = np.array([[-128, 127], [127, -128], [-128, -128], [3, 4]], dtype=np.int8)
    wide, narrow = DesignMatrix(X.astype(float)), DesignMatrix(X)
    sparse_rows = DesignMatrix(sparse.csr_array(X))
    for design in (narrow, sparse_rows):
        assert design.row_scale.columns.tolist() == wide.row_scale.columns.tolist() == [128.0, 128.0]
        assert design.row_scale.length >= np.hypot(128, 128)
        ones = np.ones((2, 1))
        assert design.absolute_times(ones).ravel().tolist() == [255.0, 255.0, 256.0, 7.0]
        assert design.times(ones).ravel().tolist() == [-1.0, -1.0, -256.0, 7.0]
        assert design.transposed_times(np.ones(4)).tolist() == [-126.0, -125.0]
    y = np.array([1.0, -1.0, 1.0, -1.0])
    alpha = np.array([0.1, 0.2, 0.3, 0.2])
    bounds = [dual_bound(ERMProblem.build(Z, y), alpha) for Z in (X, X.astype(float))]
    assert bounds[0] == bounds[1]


def test_the_rows_are_not_copied_as_a_whole():
    X, y = rows("int8", 40_000, 200)
    model = ERMClassifier(1, C=1e-5)
    peak = peak_of(lambda: (model.fit(X, y), model.predict(X)))
    assert peak < 2 * X.nbytes + 4_000_000, "and float64 would take eight times the rows"


def peak_of(work):
    """The most memory taken at once, beside what was there before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool"])
def test_squares_of_features_do_not_outgrow_the_rows(dtype, p):
    X, y = small_numbers(dtype, 3000, 1500)
    model = ERMClassifier(1, C=1e-3, p=p)
    peak = peak_of(lambda: model.fit(X, y))
    assert peak < X.nbytes + 50_000_000, "four or more matrices of 18 MB were taken"
    floats = ERMClassifier(1, C=1e-3, p=p).fit(X.astype(float), y)
    assert model.converged_.all()
    assert model.objective_ == pytest.approx(floats.objective_, rel=2e-4), "both gaps are at most 1e-4"


@pytest.mark.parametrize("shape", [(5000, 600), (300, 12_000)])
def test_sparse_rows_are_widened_in_chunks(shape):
    X, y = small_numbers("int8", *shape)
    X = sparse.csr_array(X * (np.random.default_rng(1).random(shape) < 0.6))
    settings = {"C": 1e-3, "p": 1, "solver_options": {"regime": "interior"}}
    model = ERMClassifier(1, **settings)
    n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    peak = peak_of(lambda: model.fit(X, y))
    assert peak < 2 * n_bytes + 22_000_000, "a few chunks of floats, however many rows"
    floats = ERMClassifier(1, **settings).fit(X.astype(float), y)
    np.testing.assert_allclose(model.coef_, floats.coef_, atol=1e-10 * np.abs(floats.coef_).max())


def small_numbers(dtype, n_rows, n_features):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if dtype == "bool" else 4, size=(n_rows, n_features), dtype=np.int8).astype(dtype)
    scores = X[:, :20].astype(float) @ rng.standard_normal(20)
    scores += scores.std() * rng.standard_normal(n_rows)
    return X, scores > np.median(scores)


def test_other_types_are_refused_by_name():
    with pytest.raises(TypeError, match="integers or booleans; got 2-d complex128"):
        DesignMatrix(np.ones((2, 2), dtype=complex))
    with pytest.raises(TypeError, match="got 2-d float16"):
        DesignMatrix(np.ones((2, 2), dtype=np.float16))
