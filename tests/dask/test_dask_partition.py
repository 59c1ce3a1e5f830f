"""exclusivity = inf on Dask collections: the partition of the search in memory, and the same members."""

import dataclasses

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import exclusivity
from exclusivity.dask import ERMClassifier
from exclusivity.objective.losses import LOSSES
from exclusivity.rows.design import RowList
from exclusivity.rows.source import RowBlock
from exclusivity.solvers import IterationRecord, partition_search


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 12)) + np.arange(12)
    y = ((X - X.mean(axis=0)) @ rng.normal(size=12) + rng.normal(size=900) > 0).astype(int)
    return X, y, np.digitize(X[:, 0] + X[:, 1] / 2, [0, 1]), rng.integers(0, 3, size=900).astype(float)


CASES = [
    {},
    {"n_classes": 3},
    {"n_classes": 3, "multi_class": "ovo"},
    {"p": 1, "sparsity": 3.0},
    {"feature_groups": list("aabbccddeeff")},
    {"solver_options": {"restarts": 0}},
    {"solver_options": {"restarts": 0, "partition": [0, 1, 2, 3] * 3}},
]


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_partition_and_members_are_those_of_the_fit_in_memory(local, table, case, is_sparse):
    X, two, three, weights = table
    y = three if case.get("n_classes") else two
    params = {name: value for name, value in case.items() if name != "n_classes"}
    settings = {"exclusivity": np.inf, "voting": "hard", "random_state": 0, "tol": 1e-9, **params}
    reference = exclusivity.ERMClassifier(4, **settings).fit(
        sparse.csr_matrix(X) if is_sparse else X, y, weights
    )
    dX = da.from_array(X, chunks=(400, -1))
    if is_sparse:
        dX = dX.map_blocks(sparse.csr_matrix)
    model = ERMClassifier(4, **settings).fit(dX, *(da.from_array(v, chunks=400) for v in (y, weights)))
    assert np.array_equal(model.partition_, reference.partition_)
    np.testing.assert_allclose(model.objective_, reference.objective_, rtol=1e-8)
    assert np.all(model.converged_)
    assert np.all(np.isnan(model.dual_gap_))
    assert model.n_iter_.tolist() == reference.n_iter_.tolist()
    np.testing.assert_allclose(
        [h.objective[-1] for h in model.history_], [h.objective[-1] for h in reference.history_], rtol=1e-8
    )
    assert np.array_equal(model.certify(dX).compute(), reference.certify(X))
    for either in (model, reference):
        either.set_params(voting="runoff")
    assert np.array_equal(model.predict(dX).compute(), reference.predict(X))
    assert np.array_equal(model.certify(dX).compute(), reference.certify(X))
    assert np.array_equal(model.certify_set(dX, 1).compute(), reference.certify_set(X, 1))


def history_table(model):
    """All fields of all records of all problems, one row for each record."""
    names = [field.name for field in dataclasses.fields(IterationRecord)]
    return np.array([[history.column(name) for name in [*names, "gap"]] for history in model.history_])


@pytest.mark.filterwarnings("ignore:5 members compete for 3 features:UserWarning")
@pytest.mark.parametrize("n_columns", [6, 5, 3], ids=["fewer", "equal", "more members than groups"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "loss", [{"p": 1}, {"p": 1.5}, {"p": 2}, {"p": 3}, *({"loss": name} for name in LOSSES)], ids=str
)
def test_objective_and_history_are_those_of_the_fit_in_memory(local, table, loss, n_classes, n_columns):
    X, two, three, weights = table
    X, y = X[:, :n_columns], two if n_classes == 2 else three
    settings = {"exclusivity": np.inf, "class_weight": "balanced", "random_state": 0, "tol": 1e-8, **loss}
    reference = exclusivity.ERMClassifier(5, **settings).fit(X, y, weights)
    parts = [da.from_array(values, chunks=400) for values in (X, y, weights)]
    model = ERMClassifier(5, **settings).fit(parts[0].rechunk((400, -1)), *parts[1:])
    np.testing.assert_allclose(model.objective_, reference.objective_, rtol=2e-8)
    np.testing.assert_allclose(history_table(model), history_table(reference), rtol=2e-8)
    assert history_table(model)[0, 1, -1] == pytest.approx(sum(model.objective_))


def test_a_warm_start_keeps_the_partition(local, table):
    X, y, _, _ = table
    parts = da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400)
    model = ERMClassifier(4, exclusivity=np.inf, warm_start=True, random_state=0).fit(*parts)
    before = model.partition_
    again = model.set_params(solver_options={"restarts": 0}).fit(*parts)
    assert np.array_equal(again.partition_, before)


def test_more_members_than_features(local, table):
    X, y, _, _ = table
    parts = da.from_array(X[:, :2], chunks=(400, -1)), da.from_array(y, chunks=400)
    with pytest.warns(UserWarning, match="3 members compete for 2 features"):
        model = ERMClassifier(3, exclusivity=np.inf, random_state=0).fit(*parts)
    assert model.components_[0, 2].tolist() == [0, 0]
    assert model.component_intercepts_[0, 2] == 0


def test_a_pool_keeps_the_lowest_numbers_of_every_class(monkeypatch):
    monkeypatch.setattr(partition_search, "MAX_ROWS", 3)
    labels = np.array([0, 0, 0, 0, 1, 0, 1])
    numbers = np.array([0.9, 0.1, 0.5, 0.2, 0.8, 0.3, 0.7])
    pool = partition_search.RowPool(RowList(np.arange(7.0)[:, None], labels, np.ones(7)), numbers).cut()
    assert pool.rows.X.ravel().tolist() == [1, 3, 4, 5, 6]
    more = partition_search.RowPool(RowList(np.array([[7.0]]), np.array([0]), np.ones(1)), np.array([0.0]))
    assert (pool + more).rows.X.ravel().tolist() == [1, 3, 4, 6, 7]


def test_a_pool_of_many_rows_is_bounded_and_repeats(rows):
    X, _, _ = rows
    big = RowBlock(np.repeat(X, 5, axis=0), np.zeros(3000, dtype=np.int32), np.ones(3000))
    pools = [partition_search.DrawPool().answer(big, None)[0] for _ in range(2)]
    assert len(pools[0].numbers) == partition_search.MAX_ROWS
    assert np.array_equal(pools[0].rows.X, pools[1].rows.X)
