"""One cluster of two worker processes for the whole folder, and rows to fit."""

import logging
import multiprocessing

import numpy as np
import pytest


@pytest.fixture(scope="session")
def cluster():
    from distributed import LocalCluster
    from distributed.utils import get_mp_context

    import dask

    # Workers, and those that replace the killed ones, are copies of one process that has imported everything.
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver" if forks else "spawn"}):
        get_mp_context().set_forkserver_preload(["distributed", "exclusivity.dask"])
        with LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            memory_limit="1GB",
        ) as started:
            yield started


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster) as connected:
        cluster.scale(2)  # a worker that was killed, and whose nanny gave up on a busy machine, comes back
        connected.wait_for_workers(2, timeout=600)
        yield connected


@pytest.fixture
def local():
    """Dask's scheduler in this process and this thread, for tests that need no cluster."""
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="session")
def rows():
    """X, y and integer weights, some of them zero: 600 rows, 6 columns of different sizes."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, 6)) * [1, 2, 0.5, 1, 3, 1] + [0, 0, 1, 0, 0, 0]
    y = np.where(X @ [1.0, -1.0, 2.0, 0.0, 0.3, 0.0] + rng.normal(size=600) > 0, "yes", "no")
    return X, y, rng.integers(0, 4, size=600).astype(float)
