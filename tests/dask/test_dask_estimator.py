"""The estimator around the fits: collections, lazy predictions, parameters, and the way back to memory."""

import subprocess
import sys

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import exclusivity
from dask import is_dask_collection
from exclusivity.dask import ERMClassifier
from exclusivity.io import load_model, save_model


@pytest.fixture
def arrays(local, rows):
    X, y, _ = rows
    return da.from_array(X, chunks=(250, -1)), da.from_array(y, chunks=250)


@pytest.fixture
def frame(rows):
    X, y, _ = rows
    return pd.DataFrame(X, columns=list("abcdef")).assign(label=y)


def test_importing_the_package_leaves_dask_alone():
    code = "import sys, exclusivity; exclusivity.ERMClassifier; print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "False"


def test_data_frames_with_unknown_sizes(local, frame):
    table = dd.from_pandas(frame, npartitions=4)
    table = table[table["a"] > -10]
    features = table.drop(columns="label")
    model = ERMClassifier(3, tol=1e-10).fit(features, table["label"])
    reference = exclusivity.ERMClassifier(3, tol=1e-10).fit(frame.drop(columns="label"), frame["label"])
    np.testing.assert_allclose(model.objective_, reference.objective_, rtol=1e-9)
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert model.classes_.tolist() == ["no", "yes"]
    labels = model.predict(features)
    assert is_dask_collection(labels)
    assert np.isnan(labels.shape[0])
    assert np.array_equal(labels.compute(), reference.predict(frame.drop(columns="label")))
    assert model.score(features, table["label"]) == reference.score(
        frame.drop(columns="label"), frame["label"]
    )


def test_partitions_that_lost_all_their_rows(local, frame):
    table = dd.from_pandas(frame.sort_values("a").reset_index(drop=True), npartitions=4)
    table = table[table["a"] > 0]  # leaves the first partitions empty
    model = ERMClassifier(3, tol=1e-10).fit(table.drop(columns="label"), table["label"])
    kept = frame[frame["a"] > 0]
    reference = exclusivity.ERMClassifier(3, tol=1e-10).fit(kept.drop(columns="label"), kept["label"])
    np.testing.assert_allclose(model.objective_, reference.objective_, rtol=1e-9)
    assert len(model.predict(table.drop(columns="label")).compute()) == len(kept)


def test_arrays_of_unknown_sizes(local, frame, rows):
    table = dd.from_pandas(frame.assign(label=frame["label"] == "yes"), npartitions=3)
    X, y = table.drop(columns="label").to_dask_array(), table["label"].to_dask_array()
    model = ERMClassifier(3, tol=1e-10).fit(X, y)
    reference = exclusivity.ERMClassifier(3, tol=1e-10).fit(rows[0], rows[1] == "yes")
    assert model.classes_.tolist() == [False, True]
    np.testing.assert_allclose(model.objective_, reference.objective_, rtol=1e-9)


def test_blocks_of_unknown_sizes_must_match(local, frame):
    numbered = frame.assign(label=frame["label"] == "yes")
    table, other = dd.from_pandas(numbered, npartitions=3), dd.from_pandas(numbered, npartitions=2)
    X = table.drop(columns="label").to_dask_array()
    with pytest.raises(ValueError, match="X has 3 blocks of rows and y has 2"):
        ERMClassifier(3).fit(X, other["label"].to_dask_array())
    moved = dd.concat([other.partitions[:1], other.partitions[:1], other.partitions[:1]])["label"]
    with pytest.raises(ValueError, match="chunk them alike"):
        ERMClassifier(3).fit(X, moved.to_dask_array())


def test_columns_in_several_chunks(arrays):
    X, y = arrays
    whole = ERMClassifier(3).fit(X, y)
    assert np.array_equal(ERMClassifier(3).fit(X.rechunk((250, 2)), y).coef_, whole.coef_)


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_are_lazy_and_those_of_the_local_model(local, rows, voting, n_classes):
    X = rows[0]
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1))
    dX = da.from_array(X, chunks=(250, -1))
    model = ERMClassifier(3, voting=voting).fit(dX, da.from_array(y, chunks=250))
    plain = model.to_local()
    assert type(plain) is exclusivity.ERMClassifier
    names = ["predict", "decision_function", "component_decision_function", "component_predict"]
    for name in [*names, *(["certify"] if voting == "hard" else [])]:
        lazy, expected = getattr(model, name)(dX), getattr(plain, name)(X)
        assert is_dask_collection(lazy)
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        assert np.array_equal(lazy.compute(), expected)
    assert model.score(dX, da.from_array(y, chunks=250)) == plain.score(X, y)


def test_weighted_score(arrays, rows):
    X, y = arrays
    weights = da.from_array(rows[2], chunks=250)
    model = ERMClassifier(3).fit(X, y)
    assert model.score(X, y, weights) == pytest.approx(model.to_local().score(*rows), abs=1e-12)


def test_sparse_blocks_are_predicted(arrays):
    X, y = arrays
    model = ERMClassifier(3).fit(X, y)
    lazy = model.predict(X.map_blocks(sparse.csr_matrix))
    assert np.array_equal(lazy.compute(), model.predict(X).compute())


def test_a_local_model_can_be_saved(arrays, tmp_path):
    X, y = arrays
    model = ERMClassifier(3, C=0.5, p=1.5).fit(X, y)
    plain = model.to_local()
    assert plain.get_params()["C"] == 0.5
    save_model(plain, tmp_path / "model.erm")
    assert np.array_equal(load_model(tmp_path / "model.erm").coef_, model.coef_)


def test_clone_and_repr(arrays):
    model = ERMClassifier(3, C=0.5, persist=False)
    assert clone(model).get_params() == model.get_params()
    assert "equal members" in repr(model.fit(*arrays))


def test_not_fitted(arrays):
    with pytest.raises(NotFittedError):
        ERMClassifier().predict(arrays[0])
    with pytest.raises(NotFittedError):
        ERMClassifier().to_local()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver": "paper"}, "solver='paper' needs rows in memory"),
        ({"solver": "alm"}, "solver='alm' needs rows in memory"),
        ({"exclusivity": 10.0}, "exclusivity=10.0 needs rows in memory"),
        ({"exclusivity": np.inf, "max_iter": 9}, "max_iter=9 needs rows in memory"),
        ({"n_jobs": 2}, "n_jobs=2 needs rows in memory"),
        ({"persist": "maybe"}, "persist must be True, False or 'auto'"),
        ({"solver_options": {"regime": "iterative"}}, "regime='iterative' keeps vectors"),
        ({"solver_options": {"regime": "semismooth"}, "p": 1}, "regime='semismooth' needs p > 1"),
        ({"solver_options": {"mu": 1}}, "Unknown solver option 'mu'"),
        ({"C": -1.0}, "C must be a number above 0"),
    ],
)
def test_what_cannot_be_honoured_is_refused(arrays, params, message):
    with pytest.raises(ValueError, match=message):
        ERMClassifier(**params).fit(*arrays)


def test_rows_in_memory_are_sent_to_the_other_class(arrays, rows):
    X, y = arrays
    with pytest.raises(TypeError, match="X must be a Dask array or DataFrame; got ndarray"):
        ERMClassifier().fit(rows[0], y)
    with pytest.raises(TypeError, match="y must be a Dask array or Series"):
        ERMClassifier().fit(X, rows[1])
    with pytest.raises(ValueError, match="X has 600 rows and y 599"):
        ERMClassifier().fit(X, y[:599])
    with pytest.raises(ValueError, match="X must be two-dimensional"):
        ERMClassifier().fit(X[:, 0], y)
    model = ERMClassifier().fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but ERMClassifier is expecting 6"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="certify needs voting='hard'"):
        model.certify(X)


def test_mixed_column_names_are_refused(local, frame):
    odd = frame.drop(columns="label").set_axis(["a", "b", "c", "d", "e", 5], axis=1)
    with pytest.raises(TypeError, match="Feature names are only supported"):
        ERMClassifier().fit(dd.from_pandas(odd, npartitions=2), dd.from_pandas(frame["label"], npartitions=2))


@pytest.mark.parametrize("method", ["fit", "predict", "score"])
def test_missing_values_are_a_case_for_other_classes_of_the_package(arrays, method):
    """As in memory, and not scikit-learn's advice to take one of its trees."""
    X, y = arrays
    model, broken = ERMClassifier(3).fit(X, y), X.map_blocks(lambda block: block * np.nan, dtype=float)
    with pytest.raises(ValueError, match="Input X contains NaN") as error:
        np.asarray(getattr(model, method)(*((broken,) if method == "predict" else (broken, y))))
    text = str(error.value)
    assert "TableEncoder" in text
    assert "RobustAdditiveClassifier" in text
    assert "HistGradientBoosting" not in text
