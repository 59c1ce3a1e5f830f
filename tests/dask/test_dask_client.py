"""A client stays usable after every failure: the next fit on it is right, and nothing is left behind."""

import asyncio
import gc
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dask.array as da
import numpy as np
import pytest

import dask
from dask import delayed
from exclusivity import ERMClassifier as LocalERMClassifier
from exclusivity.dask import ERMClassifier, _rows as engine
from exclusivity.dask._rows import Engine, Rows
from exclusivity.rows.source import SharedPasses


@pytest.fixture(scope="module")
def three(rows):
    """Rows of three classes: three solvers, each in its thread, share the passes."""
    X, _, _ = rows
    return X, np.digitize(X[:, 0] - X[:, 1], [-1, 1])


@pytest.fixture(scope="module")
def right(three):
    return LocalERMClassifier(3, tol=1e-10).fit(*three).objective_


@pytest.fixture(scope="module")
def cluster_here():
    """Workers that are threads of this process: as good for all that happens on the side of the client."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as started:
        yield started


@pytest.fixture
def client_here(cluster_here):
    from distributed import Client

    with Client(cluster_here) as connected:
        yield connected


def collections(three):
    X, y = three
    return da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)


def mapped(X, function):
    return X.map_blocks(function, meta=np.empty((0, 0)))


@contextmanager
def in_round(number, deed):
    """Do something in the middle of a fit, when it asks its question of that number."""
    ask, count = Rows.ask, iter(range(10**6))

    def asked(rows, questions):
        if next(count) == number:
            deed()
        return ask(rows, questions)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Rows, "ask", asked)
        yield


@contextmanager
def interrupted(seconds, error):
    """That error in the main thread, after so many seconds."""

    def handler(*_):
        raise error

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def slow(block):
    time.sleep(0.5)
    return block


def broken(block):
    raise OSError("part-0001.parquet cannot be read")


def changing(block):
    return block + np.random.default_rng().normal(size=block.shape)


def a_block_that_raises(X, y):
    with pytest.raises(OSError, match="part-0001"):
        ERMClassifier(3).fit(mapped(X, broken), y)


def rows_that_change(X, y):
    with pytest.raises(RuntimeError, match=r"block \d of the rows changed .* other values"):
        ERMClassifier(3, persist=False).fit(mapped(X, changing), y)


def wrong_data(X, y):
    with pytest.raises(ValueError, match="Input X contains NaN"):
        ERMClassifier(3).fit(mapped(X, lambda block: block * np.nan), y)


def one_class(X, y):
    with pytest.raises(ValueError, match="one class only"):
        ERMClassifier(3).fit(X, y * 0)


def a_time_limit(X, y):
    with interrupted(1.0, TimeoutError("too long")), pytest.raises(TimeoutError, match="too long"):
        ERMClassifier(3, persist=False).fit(mapped(X, slow), y)


def ctrl_c(X, y):
    with interrupted(1.0, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        ERMClassifier(3, persist=False).fit(mapped(X, slow), y)


def an_error_of_the_client(X, y):
    with in_round(2, lambda: 1 / 0), pytest.raises(ZeroDivisionError):
        ERMClassifier(3).fit(X, y)


@pytest.mark.parametrize(
    "failure",
    [
        a_block_that_raises,
        rows_that_change,
        wrong_data,
        one_class,
        a_time_limit,
        ctrl_c,
        an_error_of_the_client,
    ],
)
def test_the_next_fit_is_right_and_nothing_is_left(client_here, three, right, failure):
    failure(*collections(three))
    check_usable(client_here, three, right)


def test_the_next_fit_after_the_loss_of_a_worker(client, cluster, three, right):
    victim = next(iter(cluster.workers.values())).pid
    with in_round(2, lambda: os.kill(victim, signal.SIGKILL)):
        ERMClassifier(3).fit(*collections(three))
    check_usable(client, three, right)


def check_usable(client, three, right):
    X, y = collections(three)
    model = ERMClassifier(3, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.objective_, right, rtol=1e-9)
    end = time.monotonic() + 60
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        gc.collect()
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def delayed_answers(cluster, seconds, *names):
    """The scheduler takes so long for these answers."""
    handlers = cluster.scheduler.handlers

    def late(handler):
        async def answer(*args, **kwargs):
            await asyncio.sleep(seconds)
            found = handler(*args, **kwargs)
            return await found if asyncio.iscoroutine(found) else found

        return answer

    with pytest.MonkeyPatch.context() as patched:
        for name in names:
            patched.setitem(handlers, name, late(handlers[name]))
        yield


def test_slow_transfers_to_several_threads(client_here, cluster_here, monkeypatch):
    """Transfers that outlast a look at the cluster are waited for; five are under way at a time."""
    monkeypatch.setattr(engine, "_LOOK_EVERY", 0.1)
    running = Engine(client_here)
    values = [delayed(abs, pure=False)(-number) for number in range(12)]
    with delayed_answers(cluster_here, 0.4, "gather"), ThreadPoolExecutor(12) as pool:
        assert list(pool.map(running.compute, values)) == list(range(12))
    assert running.compute(delayed(abs)(-5)) == 5


def test_giving_up_while_transfers_wait_for_each_other(client_here, cluster_here):
    """Whoever gives up at that moment must not take the client's queue of transfers with him."""
    given_up = Engine(client_here)
    values = [delayed(abs, pure=False)(-number) for number in range(12)]
    with delayed_answers(cluster_here, 0.5, "gather"), ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(given_up.compute, value) for value in values]
        time.sleep(0.2)
        given_up.abandon(KeyboardInterrupt())
        errors = [type(future.exception()) for future in waiting]
    assert errors == [KeyboardInterrupt] * 12
    assert Engine(client_here).compute(delayed(abs)(-5)) == 5


@pytest.mark.parametrize("at_round", [None, 0, 3])
def test_a_scheduler_that_does_not_answer(client_here, cluster_here, three, right, monkeypatch, at_round):
    monkeypatch.setattr(engine, "_LOOK_EVERY", 0.1)
    X, y = collections(three)
    with dask.config.set({"exclusivity.scheduler-patience": "1 s"}):
        waiting = ERMClassifier(3, tol=1e-10)
        frozen = delayed_answers(cluster_here, 4.0, "identity", "gather", "who_has", "ncores")
        message = "scheduler has not answered for 1 seconds: it is frozen"
        if at_round is None:
            with frozen, pytest.raises(RuntimeError, match=message):
                waiting.fit(X, y)
        else:
            with in_round(at_round, frozen.__enter__), pytest.raises(RuntimeError, match=message):
                waiting.fit(X, y)
            frozen.__exit__(None, None, None)
    np.testing.assert_allclose(ERMClassifier(3, tol=1e-10).fit(X, y).objective_, right, rtol=1e-9)


@pytest.mark.parametrize("given", ["soon", 0, -1, "0 s", float("inf"), float("nan"), None, [3]])
@pytest.mark.parametrize("key", ["exclusivity.scheduler-patience", "exclusivity.worker-patience"])
def test_a_patience_that_is_no_time(local, three, key, given):
    with (
        dask.config.set({key: given}),
        pytest.raises(ValueError, match=rf"{key} must be a positive time .* got"),
    ):
        ERMClassifier(3).fit(*collections(three))


class Nobody:
    """Rows that are never asked."""

    def __init__(self):
        self.engine, self.errors = self, []

    def abandon(self, error):
        self.errors.append(error)


def test_stopping_a_meeting_wakes_those_who_wait_for_others():
    """Ctrl-C while threads are being started: some come, and wait for some who never will."""
    meeting, error = SharedPasses(Nobody(), 3), KeyboardInterrupt()
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(meeting.ask, party, None) for party in range(2)]
        while len(meeting._questions) < 2:
            time.sleep(0.01)
        meeting.stop(error)
        assert [future.exception(timeout=60) for future in waiting] == [error, error]
    assert meeting.rows.errors == [error]


def test_ctrl_c_does_not_wait_for_the_pass(client_here, cluster_here, three):
    """Three solvers in threads, one of them in a pass of many seconds: the error comes at once."""
    X, y = collections(three)
    pass_takes, moments = 60.0, []
    late = delayed_answers(cluster_here, pass_takes, "gather")

    def press():
        late.__enter__()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        moments.append(time.monotonic())

    with interrupted(3600, KeyboardInterrupt()), in_round(2, press), pytest.raises(KeyboardInterrupt):
        ERMClassifier(3).fit(X, y)
    late.__exit__(None, None, None)
    assert time.monotonic() - moments[0] < pass_takes / 2
