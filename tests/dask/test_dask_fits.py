"""Fits on Dask collections against the classifier in memory: the same optimum, however rows are cut."""

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import exclusivity
from exclusivity.dask import ERMClassifier

TOL = 1e-10
SETTINGS = [
    {"p": 2},
    {"p": 1},
    {"p": 1.5},
    {"p": 3, "fit_intercept": False},
    {"p": 2, "sparsity": 20.0},
    {"p": 1, "sparsity": 20.0},
    {"p": 1.5, "sparsity": 5.0},
    {"p": 1, "fit_intercept": False, "exclusivity": 0.5},
    {"loss": "logistic", "sparsity": 20.0},
    *(
        {**loss, "coef_bounds": (-0.05, 0.1), "sparsity": sparsity}
        for loss in ({"p": 1}, {"p": 1.5}, {"p": 2}, {"loss": "logistic"})
        for sparsity in (0.0, 20.0)
    ),
]
CHUNKS = [600, 300, 128, (1, 599), (599, 1), (1, 1, 598), (37, 500, 63), (0, 600), (250, 0, 350), (100,) * 6]


def as_dask(X, y, weights=None, chunks=128):
    chunks = tuple(chunks) if isinstance(chunks, tuple) else chunks
    dX = da.from_array(X, chunks=(chunks, -1), asarray=False)
    dy = da.from_array(y, chunks=(chunks,))
    return (dX, dy) if weights is None else (dX, dy, da.from_array(weights, chunks=(chunks,)))


def assert_same_optimum(fitted, reference, tol=1e-9):
    assert np.all(fitted.dual_gap_ <= fitted.tol)
    assert fitted.converged_.all()
    np.testing.assert_allclose(fitted.objective_, reference.objective_, rtol=tol, atol=0)
    assert np.array_equal(fitted.classes_, reference.classes_)
    assert fitted.classes_.dtype == reference.classes_.dtype


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_every_loss_and_penalty(local, rows, params):
    X, y, weights = rows
    reference = exclusivity.ERMClassifier(5, tol=TOL, **params).fit(X, y, weights)
    fitted = ERMClassifier(5, tol=TOL, **params).fit(*as_dask(X, y, weights))
    assert_same_optimum(fitted, reference)
    np.testing.assert_allclose(fitted.coef_, reference.coef_, atol=2e-5)
    if params.get("sparsity"):
        assert np.array_equal(fitted.coef_ == 0, reference.coef_ == 0)
    if "coef_bounds" in params:
        lower, upper = params["coef_bounds"]
        assert np.all((fitted.coef_ >= lower) & (fitted.coef_ <= upper))
        assert np.any((fitted.coef_ == lower) | (fitted.coef_ == upper))
        assert np.array_equal(fitted.coef_ == upper, reference.coef_ == upper)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "csr"])
def test_every_chunking(local, rows, chunks, is_sparse):
    X, y, weights = rows
    reference = exclusivity.ERMClassifier(3, tol=TOL).fit(X, y, weights)
    dX, dy, dw = as_dask(X, y, weights, chunks)
    if is_sparse:
        dX = dX.map_blocks(sparse.csr_matrix)
    assert_same_optimum(ERMClassifier(3, tol=TOL).fit(dX, dy, dw), reference)


SMALL_CHUNKS = [13, (1, 59), (1, 1, 58), (7, 50, 3), (25, 0, 35)]


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("p", [1, 1.5])
def test_chunkings_of_the_hinge_and_between(local, rows, p, number):
    """Few rows, weights (some of them zero), every second chunking sparse."""
    X, y, weights = (part[:60] for part in rows)
    reference = exclusivity.ERMClassifier(3, p=p, tol=TOL).fit(X, y, weights)
    dX, dy, dw = as_dask(X, y, weights, SMALL_CHUNKS[number])
    if number % 2 == (p == 1):
        dX = dX.map_blocks(sparse.csr_matrix)
    assert_same_optimum(ERMClassifier(3, p=p, tol=TOL).fit(dX, dy, dw), reference)


@pytest.mark.parametrize(("p", "is_sparse"), [(1, True), (1.5, False)])
def test_ten_classes_in_uneven_blocks(local, rows, p, is_sparse):
    X, _, _ = (part[:100] for part in rows)
    y, weights = np.arange(100) // 10, np.arange(100) % 3  # a class is in one or two blocks only
    reference = exclusivity.ERMClassifier(2, p=p, tol=1e-9).fit(X, y, weights)
    dX, dy, dw = as_dask(X, y, weights, (1, 0, 44, 55))
    if is_sparse:
        dX = dX.map_blocks(sparse.csr_matrix)
    assert_same_optimum(ERMClassifier(2, p=p, tol=1e-9).fit(dX, dy, dw), reference, tol=1e-8)


def test_rows_and_labels_from_one_block_are_read_once(local, rows):
    """Columns of one array, and parts of one value: a pass makes them once, not once for each."""
    from dask import delayed

    X, y, weights = rows
    reads = []

    def read(part):
        reads.append(part)
        half = slice(300 * part, 300 * part + 300)
        return np.column_stack([X[half], y[half] == "yes", weights[half]])

    table = da.concatenate([da.from_delayed(delayed(read)(part), (300, 8), float) for part in range(2)])
    model = ERMClassifier(3, persist=True).fit(table[:, :6], table[:, 6].astype(int), table[:, 7])
    assert sorted(reads) == [0, 1]
    reads.clear()
    model.score(table[:, :6], table[:, 6].astype(int))
    assert sorted(reads) == [0, 1]


@pytest.mark.parametrize("params", [{"p": 2}, {"p": 1}, {"p": 1, "multi_class": "ovo"}], ids=str)
def test_ten_classes_share_their_passes(local, rows, params):
    X, _, _ = rows
    y = (np.arange(600) * 7) % 10
    y[X[:, 0] > 0.8] = 3
    if params.get("multi_class") == "ovo":
        y %= 4
    settings = {"tol": 1e-8, "class_weight": "balanced", **params}
    reference = exclusivity.ERMClassifier(3, **settings).fit(X, y)
    fitted = ERMClassifier(3, **settings).fit(*as_dask(X, y, chunks=(1, 299, 300)))
    assert_same_optimum(fitted, reference, tol=1e-7)
    assert fitted.multi_class_ == params.get("multi_class", "ovr")


def test_all_classes_are_asked_in_the_same_rounds(local, rows, monkeypatch):
    from exclusivity.dask._rows import Rows

    counts = []
    ask = Rows.ask
    monkeypatch.setattr(
        Rows, "ask", lambda self, questions: counts.append(len(questions)) or ask(self, questions)
    )
    X, _, _ = rows
    y = np.arange(600) % 5
    fitted = ERMClassifier(3, tol=1e-8).fit(*as_dask(X, y))
    assert counts[:2] == [1, 5]  # the first round describes the blocks
    assert len(counts) <= max(history.passes[-1] for history in fitted.history_) + 2


def test_more_features_than_rows(local):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 50)), np.arange(20) % 2
    for p in (1, 2):
        reference = exclusivity.ERMClassifier(2, p=p, tol=TOL).fit(X, y)
        assert_same_optimum(ERMClassifier(2, p=p, tol=TOL).fit(*as_dask(X, y, chunks=7)), reference)


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_many_rows_start_from_a_sample(local, monkeypatch, p):
    from exclusivity.solvers import newton as sampling

    monkeypatch.setattr(sampling, "MANY_ROWS", 1000)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 5))
    y = (X.sum(axis=1) + rng.normal(size=4000) > 0).astype(int)
    reference = exclusivity.ERMClassifier(3, p=p, tol=TOL).fit(X, y)
    sampled = ERMClassifier(3, p=p, tol=TOL).fit(*as_dask(X, y, chunks=1500))
    assert_same_optimum(sampled, reference)


def test_the_cluster_gives_the_same_bits_twice_and_the_optimum(client, rows):
    X, y, weights = rows
    reference = exclusivity.ERMClassifier(3, tol=TOL).fit(X, y, weights)
    parts = as_dask(X, y, weights, (1, 99, 250, 250))
    first, second = (ERMClassifier(3, tol=TOL).fit(*parts) for _ in range(2))
    assert_same_optimum(first, reference)
    assert np.array_equal(first.coef_, second.coef_)
    assert first.history_[0].objective.tolist() == second.history_[0].objective.tolist()


def test_the_hinge_on_the_cluster(client, rows):
    X, y, weights = rows
    reference = exclusivity.ERMClassifier(3, p=1, tol=1e-8).fit(X, y, weights)
    fitted = ERMClassifier(3, p=1, tol=1e-8).fit(*as_dask(X, y, weights, (200, 400)))
    assert_same_optimum(fitted, reference, tol=1e-8)


def test_rows_that_are_not_kept_are_read_again(local, rows):
    X, y, _ = rows
    reads = []

    def read(block):
        reads.append(len(block))
        return block

    dX, dy = as_dask(X, y, chunks=300)
    watched = dX.map_blocks(read, meta=np.empty((0, 0)))
    kept = ERMClassifier(3, persist=True).fit(watched, dy)
    assert len(reads) == 2
    reads.clear()
    again = ERMClassifier(3, persist=False).fit(watched, dy)
    assert len(reads) > 4
    assert np.array_equal(kept.coef_, again.coef_)


def test_float32_rows_give_float32_weights(local, rows):
    X, y, _ = rows
    fitted = ERMClassifier(3).fit(*as_dask(X.astype(np.float32), y))
    assert fitted.coef_.dtype == np.float32


def test_a_warm_start_goes_on(local, rows):
    X, y, _ = rows
    parts = as_dask(X, y)
    model = ERMClassifier(3, tol=1e-3, warm_start=True).fit(*parts)
    cold = ERMClassifier(3, tol=TOL).fit(*parts)
    warm = model.set_params(tol=TOL).fit(*parts)
    assert_same_optimum(warm, cold)
    assert warm.n_iter_[0] < cold.n_iter_[0]


def test_the_iteration_limit_warns(local, rows):
    X, y, _ = rows
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        fitted = ERMClassifier(3, tol=TOL, max_iter=2).fit(*as_dask(X, y))
    assert not fitted.converged_[0]


def test_verbose_tells(local, rows, capsys):
    X, y, _ = rows
    ERMClassifier(3, verbose=2).fit(*as_dask(X, y))
    assert "[ERM] yes against no: iteration 1" in capsys.readouterr().out
