"""Small fits run on one BLAS thread, large ones on all of them, and nobody keeps the limit."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.classifier import _erm as threads
from exclusivity.classifier._erm import LARGE_SIDE, fitting_threads


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture
def two_threads():
    """Whatever the environment says, BLAS starts with two, and ends as it began."""
    before = blas_threads()
    with threadpool_limits(2, user_api="blas"):
        if max(blas_threads()) < 2:
            pytest.skip("this BLAS has one thread only")
        yield
    assert blas_threads() == before


@pytest.mark.usefixtures("two_threads")
def test_small_problems_get_one_thread_and_large_ones_keep_theirs():
    with fitting_threads(10**6, LARGE_SIDE - 1):
        assert set(blas_threads()) == {1}
    with fitting_threads(10, 10**6):
        assert set(blas_threads()) == {1}
    with fitting_threads(LARGE_SIDE, LARGE_SIDE):
        assert max(blas_threads()) == 2
    with fitting_threads(LARGE_SIDE, LARGE_SIDE, is_sparse=True):
        assert set(blas_threads()) == {1}
    assert max(blas_threads()) == 2


@pytest.mark.usefixtures("two_threads")
def test_fits_side_by_side_leave_no_limit_behind():
    started, ended = Event(), Event()

    def other():
        with fitting_threads(10, 10):
            started.set()
            ended.wait(60)

    with ThreadPoolExecutor(1) as pool:
        with fitting_threads(10, 10):  # the first one holds the limit ...
            future = pool.submit(other)
            assert started.wait(60)
            with fitting_threads(10, 10):  # ... also around one inside it
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert max(blas_threads()) == 2  # ... and lifts it while the other one goes on
        ended.set()
        future.result(60)
    assert max(blas_threads()) == 2


@pytest.mark.usefixtures("two_threads")
def test_an_error_lifts_the_limit():
    with pytest.raises(KeyboardInterrupt), fitting_threads(10, 10):
        raise KeyboardInterrupt
    assert max(blas_threads()) == 2


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: ERMClassifier(2).fit(X, y),
        lambda X, y: ERMClassifier(2, exclusivity=np.inf).fit(X, y),
        lambda X, y: erm_path(X, y, Cs=[1.0]),
        lambda X, y: ERMClassifierCV(2, Cs=[1.0], cv=2).fit(X, y),
    ],
    ids=["fit", "exclusive", "path", "cv"],
)
def test_every_way_to_fit_takes_the_limit(fit, monkeypatch):
    taken = []
    original = threads._controller()

    class Spy:
        def limit(self, **settings):
            taken.append(settings)
            return original.limit(**settings)

    monkeypatch.setattr(threads, "_controller", Spy)
    X = np.random.default_rng(0).normal(size=(40, 3))
    fit(X, (X[:, 0] > 0).astype(int))
    assert {"limits": 1, "user_api": "blas"} in taken
    assert max(blas_threads()) == 2
