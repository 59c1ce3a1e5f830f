"""What goes wrong on a cluster: the right answer or a clear error, never a hang."""

import os
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest

from exclusivity.dask import ERMClassifier, _rows as engine
from exclusivity.solvers import newton as sampling


def collections(rows, chunks=200):
    X, y, _ = rows
    return da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=chunks)


def kill_one(cluster, victim=0):
    pids = sorted(worker.pid for worker in cluster.workers.values())
    os.kill(pids[victim], signal.SIGKILL)


def kill_during_fit(cluster, model, parts, delay, victim=0):
    timer = threading.Timer(delay, kill_one, (cluster, victim))
    timer.start()
    try:
        return model.fit(*parts)
    finally:
        timer.join()


class KillOnce:
    """Kills a worker from inside a round: certainly in the middle of a fit."""

    def __init__(self, monkeypatch, cluster, at_round):
        from exclusivity.dask._rows import Rows

        ask, count = Rows.ask, iter(range(10**6))
        self.has_killed = False

        def asked(rows, questions):
            if next(count) == at_round:
                kill_one(cluster)
                self.has_killed = True
            return ask(rows, questions)

        monkeypatch.setattr(Rows, "ask", asked)


@pytest.mark.parametrize(
    ("p", "at_round", "many_rows"),
    [(2, 2, 20_000), (1, 5, 20_000), (1, 3, 300)],
    ids=["newton", "interior point", "band"],
)
def test_a_killed_worker_changes_nothing(client, cluster, rows, monkeypatch, p, at_round, many_rows):
    monkeypatch.setattr(sampling, "MANY_ROWS", many_rows)
    parts = collections(rows)
    calm = ERMClassifier(3, p=p, tol=0.1).fit(*parts)
    with monkeypatch.context() as patched:
        killer = KillOnce(patched, cluster, at_round)
        shaken = ERMClassifier(3, p=p, tol=0.1).fit(*parts)
    assert killer.has_killed
    # Sums of numpy 1 depend on where in memory an array begins, in their last bits.
    tolerance = 0.0 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 1e-12
    np.testing.assert_allclose(shaken.coef_, calm.coef_, rtol=tolerance)
    np.testing.assert_allclose(shaken.dual_gap_, calm.dual_gap_, rtol=tolerance and 1e-6)


@pytest.mark.skipif("EXCLUSIVITY_LONG" not in os.environ, reason="make test-dask runs it")
@pytest.mark.parametrize("number", range(20))
def test_twenty_random_kills(client, cluster, rows, number):
    parts, p = collections(rows), 1 + number % 2
    start = time.monotonic()
    calm = ERMClassifier(3, p=p).fit(*parts)
    seconds = time.monotonic() - start
    delay = np.random.default_rng(number).uniform(0, seconds)
    shaken = kill_during_fit(cluster, ERMClassifier(3, p=p), parts, delay, victim=number % 2)
    assert np.array_equal(calm.coef_, shaken.coef_)


def test_no_workers_at_all_is_an_error_that_names_the_cause(rows, monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(engine, "PATIENCE", 3.0)
    parts = collections(rows)
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as lonely,
        Client(lonely) as client,
    ):
        ERMClassifier(3).fit(*parts)
        lonely.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.05)
        start = time.monotonic()
        with pytest.raises(RuntimeError, match="no workers"):
            ERMClassifier(3).fit(*parts)
        assert time.monotonic() - start < 120


def test_a_scheduler_that_is_gone_is_an_error(rows, monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(engine, "PATIENCE", 3.0)
    X, y = collections(rows)
    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0")
    client = Client(cluster)
    try:
        slow = X.map_blocks(lambda block: (time.sleep(1), block)[1], meta=np.empty((0, 0)))
        threading.Timer(0.5, client.close).start()
        with pytest.raises(RuntimeError, match=r"scheduler is gone|no workers"):
            ERMClassifier(3).fit(slow, y)
    finally:
        cluster.close()


def test_a_block_that_raises(client, rows):
    X, y = collections(rows)

    def broken(block, block_id=None):
        if block_id[0] == 1:
            raise OSError("part-0001.parquet cannot be read")
        return block

    with pytest.raises(OSError, match="part-0001"):
        ERMClassifier(3).fit(X.map_blocks(broken, meta=np.empty((0, 0))), y)


def test_a_block_with_nan(client, rows):
    X, y, _ = rows
    holed = X.copy()
    holed[431, 2] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN") as caught:
        ERMClassifier(3).fit(da.from_array(holed, chunks=(200, -1)), da.from_array(y, chunks=200))
    assert "TableEncoder" in str(caught.value)
    assert "RobustAdditiveClassifier" in str(caught.value)
    assert "sklearn" not in str(caught.value)


def test_missing_labels(local, rows):
    X, _ = collections(rows)
    codes = da.from_array(np.where(np.arange(600) == 5, np.nan, np.arange(600) % 2), chunks=200)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        ERMClassifier(3).fit(X, codes)


def test_blocks_of_one_class_each(local, rows):
    X, y, _ = rows
    order = np.argsort(y, kind="stable")
    n_no = int((y == "no").sum())
    chunks = (n_no, 600 - n_no)
    apart = ERMClassifier(3, tol=1e-10).fit(
        da.from_array(X[order], chunks=(chunks, -1)), da.from_array(y[order], chunks=(chunks,))
    )
    mixed = ERMClassifier(3, tol=1e-10).fit(*collections(rows))
    np.testing.assert_allclose(apart.objective_, mixed.objective_, rtol=1e-9)


def labels_by_block(X, *parts):
    blocks = [da.from_array(np.asarray(part), chunks=-1) for part in parts]
    from dask import delayed

    delays = [block.to_delayed().ravel()[0] for block in blocks]
    sizes = X.chunks[0]
    return da.concatenate(
        [
            da.from_delayed(delayed(lambda value: value)(part), shape=(size,), dtype=object)
            for part, size in zip(delays, sizes, strict=True)
        ]
    )


def test_labels_of_different_kinds_are_refused(local, rows):
    X, _ = collections(rows, 300)
    y = labels_by_block(X, np.arange(300) % 2, np.array(["0", "1"])[np.arange(300) % 2])
    with pytest.raises(ValueError, match="labels differ between partitions"):
        ERMClassifier(3).fit(X, y)


def test_classes_that_not_every_block_knows(local, rows):
    X, _ = collections(rows, 300)
    y = labels_by_block(X, np.arange(300) % 2, np.arange(300) % 3)
    assert ERMClassifier(3).fit(X, y).classes_.tolist() == [0, 1, 2]


def test_labels_that_are_no_classes(local, rows):
    X, _ = collections(rows)
    with pytest.raises(ValueError, match="Unknown label type"):
        ERMClassifier(3).fit(X, da.from_array(np.linspace(0, 1, 600), chunks=200))


def test_one_class_only(local, rows):
    X, _ = collections(rows)
    with pytest.raises(ValueError, match="at least 2 classes in y; these rows have one class only: 1"):
        ERMClassifier(3).fit(X, da.ones(600, chunks=200, dtype=int))


def test_weights_are_checked_over_all_blocks(local, rows):
    X, y = collections(rows)
    with pytest.raises(ValueError, match="zero for every row"):
        ERMClassifier(3).fit(X, y, da.zeros(600, chunks=200))
    with pytest.raises(ValueError, match="must not be negative"):
        ERMClassifier(3).fit(X, y, da.from_array(np.where(np.arange(600) == 400, -1.0, 1.0), chunks=200))
    only_first = da.from_array((np.arange(600) < 200).astype(float), chunks=200)
    few = ERMClassifier(3, tol=1e-10).fit(X[:200], y[:200])
    weighted = ERMClassifier(3, tol=1e-10).fit(X, y, only_first)
    np.testing.assert_allclose(few.objective_, weighted.objective_, rtol=1e-9)


def test_no_rows_at_all(local):
    with pytest.raises(ValueError, match="X has no rows"):
        ERMClassifier(3).fit(da.zeros((0, 3), chunks=(1, -1)), da.zeros(0, chunks=1, dtype=int))


def test_a_failed_fit_leaves_the_old_model(local, rows):
    model = ERMClassifier(3).fit(*collections(rows))
    with pytest.raises(ValueError, match="one class"):
        model.fit(da.zeros((10, 2), chunks=5), da.ones(10, chunks=5, dtype=int))
    assert model.n_features_in_ == 6


def test_an_error_in_one_class_ends_all(local, rows, monkeypatch):
    from exclusivity.dask._rows import Rows

    X, _ = collections(rows)
    y = da.from_array(np.arange(600) % 4, chunks=200)
    monkeypatch.setattr(Rows, "ask", lambda self, questions: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ERMClassifier(3).fit(X, y)
