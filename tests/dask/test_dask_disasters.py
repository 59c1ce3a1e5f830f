"""The worst in the middle of a fit: everybody killed, the scheduler gone, files taken away."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import dask.array as da
import numpy as np
import pytest

import dask
from exclusivity.cli.main import main
from exclusivity.dask import ERMClassifier, _rows as engine
from exclusivity.dask._rows import Rows

LONG = pytest.mark.skipif("EXCLUSIVITY_LONG" not in os.environ, reason="make test-dask runs it")
SECONDS = 60


def collections(rows):
    X, y, _ = rows
    return da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)


@contextmanager
def in_round(number, deed):
    """Do something in the middle of a fit, when it asks its question of that number; all ends soon after."""
    ask, count, moments = Rows.ask, iter(range(10**6)), []

    def asked(rows, questions):
        if next(count) == number:
            deed()
            moments.append(time.monotonic())
        return ask(rows, questions)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Rows, "ask", asked)
        yield
    assert len(moments) == 1
    assert time.monotonic() - moments[0] < SECONDS or engine.PATIENCE > SECONDS


def kill_all(cluster):
    for worker in cluster.workers.values():
        os.kill(worker.pid, signal.SIGKILL)


@LONG
@pytest.mark.parametrize("p", [1, 2])
def test_all_workers_killed_and_brought_back(client, cluster, rows, monkeypatch, p):
    """Nannies start new workers, and the fit goes on from the lineage of the blocks: the same bits."""
    monkeypatch.setattr(engine, "PATIENCE", 300.0)  # starting them takes long on a busy machine
    parts = collections(rows)
    calm = ERMClassifier(3, p=p, tol=0.1).fit(*parts)
    with in_round(1, lambda: kill_all(cluster)):
        shaken = ERMClassifier(3, p=p, tol=0.1).fit(*parts)
    assert np.array_equal(calm.coef_, shaken.coef_)


@LONG
def test_workers_that_are_killed_whenever_they_come_back(rows):
    """A task that kills its worker ends the fit with an error that names the cause."""
    from distributed import Client, LocalCluster

    X, y = collections(rows)
    deadly = X.map_blocks(lambda block: os.kill(os.getpid(), signal.SIGKILL), meta=np.empty((0, 0)))
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as doomed,
        Client(doomed),
    ):
        start = time.monotonic()
        with pytest.raises(RuntimeError, match=r"died again and again in the same task|no workers"):
            ERMClassifier(3).fit(deadly, y)
        assert time.monotonic() - start < SECONDS


def hoard(block):
    if not hasattr(sys, "hoard"):
        sys.hoard = np.ones(20_000_000)  # 160 MB beside the libraries
    return block


@LONG
def test_workers_that_are_paused_for_want_of_memory(rows, monkeypatch):
    """They are there, and take no tasks: without a look at that a fit would wait for ever."""
    from distributed import Client, LocalCluster

    monkeypatch.setattr(engine, "PATIENCE", 5.0)
    X, y = collections(rows)
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
            memory_limit="400MB",
        ) as narrow,
        Client(narrow),
    ):
        start = time.monotonic()
        with pytest.raises(RuntimeError, match=r"no workers|died again and again"):
            ERMClassifier(3).fit(X.map_blocks(hoard, meta=np.empty((0, 0))), y)
        assert time.monotonic() - start < SECONDS


class Machines:
    """A scheduler and one worker without a nanny, each a process of its own."""

    def __init__(self, folder):
        file = folder / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--scheduler-file", str(file))
        while not file.exists() or not file.read_text():
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        self.worker = self._start("dask_worker", self.address, "--no-nanny", "--nthreads", "1")

    @staticmethod
    def _start(program, *argv):
        where = ["--host", "127.0.0.1", "--no-dashboard"]
        return subprocess.Popen(  # noqa: S603 -- Dask's own
            [sys.executable, "-m", f"distributed.cli.{program}", *argv, *where], stderr=subprocess.DEVNULL
        )

    def stop(self):
        for process in (self.worker, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def machines(tmp_path):
    started = Machines(tmp_path)
    yield started
    started.stop()


@LONG
def test_all_workers_killed_for_good(machines, rows, monkeypatch):
    from distributed import Client

    monkeypatch.setattr(engine, "PATIENCE", 3.0)
    parts = collections(rows)
    with Client(machines.address) as client:
        client.wait_for_workers(1)
        with (
            in_round(1, machines.worker.kill),
            pytest.raises(RuntimeError, match="no workers for 3 seconds: they were killed"),
        ):
            ERMClassifier(3).fit(*parts)


@LONG
@pytest.mark.parametrize("at_round", [0, 2])
def test_the_scheduler_killed(machines, rows, at_round):
    from distributed import Client

    parts = collections(rows)
    with Client(machines.address) as client:
        client.wait_for_workers(1)
        with (
            in_round(at_round, machines.scheduler.kill),
            pytest.raises(RuntimeError, match="scheduler is gone"),
        ):
            ERMClassifier(3).fit(*parts)


@LONG
@pytest.mark.parametrize("at_round", [0, 2])
def test_the_scheduler_frozen_and_thawed(machines, rows, at_round):
    """An error in bounded time; when the scheduler is there again, so is the client."""
    from distributed import Client

    parts = collections(rows)
    with Client(machines.address) as client:
        client.wait_for_workers(1)
        calm = ERMClassifier(3).fit(*parts)
        with (
            dask.config.set({"exclusivity.scheduler-patience": "3 s"}),
            in_round(at_round, lambda: machines.scheduler.send_signal(signal.SIGSTOP)),
            pytest.raises(RuntimeError, match="scheduler has not answered for 3 seconds"),
        ):
            ERMClassifier(3).fit(*parts)
        machines.scheduler.send_signal(signal.SIGCONT)
        assert np.array_equal(ERMClassifier(3).fit(*parts).coef_, calm.coef_)


def write_parts(folder, rows):
    X, y, _ = rows
    for number in range(3):
        part = slice(200 * number, 200 * number + 200)
        lines = [
            ",".join(map(str, [*row, label])) for row, label in zip(X[part].tolist(), y[part], strict=True)
        ]
        (folder / f"part-{number}.csv").write_text("\n".join(["a,b,c,d,e,f,y", *lines]))
    return ["fit", str(folder / "part-*.csv"), "--target", "y", "-o", str(folder / "m.erm"), "--dask"]


@LONG
def test_the_command_without_its_scheduler(machines, rows, tmp_path, capsys):
    from distributed import Client

    argv = write_parts(tmp_path, rows)
    with Client(machines.address) as client:
        client.wait_for_workers(1)
    with in_round(1, machines.scheduler.kill):
        assert main([*argv, "--scheduler", machines.address]) == 1
    assert "scheduler is gone" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_file_that_changes_while_it_is_needed(cluster, rows, tmp_path, monkeypatch, capsys, damage):
    from exclusivity.dask import _rows as rounds

    monkeypatch.setattr(rounds, "_MEMORY_SHARE", 0.0)
    argv = write_parts(tmp_path, rows)
    victim = tmp_path / "part-1.csv"

    def spoil():
        if damage == "gone":
            victim.unlink()
        else:
            victim.write_text(victim.read_text()[:5000].rpartition(",")[0])

    with in_round(1, spoil):
        assert main([*argv, "--scheduler", cluster.scheduler_address]) == 3
    err = capsys.readouterr().err
    if damage == "gone":
        assert "part-1.csv" in err
    assert ("a worker cannot read the file" if damage == "gone" else "NaN") in err
    assert "Traceback" not in err
    assert not (tmp_path / "m.erm").exists()


@LONG
def test_the_command_reads_again_what_a_killed_worker_had(cluster, client, rows, tmp_path, capsys):
    argv = [
        *write_parts(tmp_path, rows),
        "--scheduler",
        cluster.scheduler_address,
        "--json",
        "--tol",
        "1e-10",
    ]
    assert main(argv) == 0
    calm = json.loads(capsys.readouterr().out)
    with in_round(2, lambda: kill_all(cluster)):
        assert main(argv) == 0
    assert json.loads(capsys.readouterr().out)["objective"] == calm["objective"]
