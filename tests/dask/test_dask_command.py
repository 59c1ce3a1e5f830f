"""``erm fit --dask``: the model of ``erm fit`` on all rows at once, from files that stay on disk."""

import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from exclusivity.cli import distributed
from exclusivity.cli.main import main
from exclusivity.io import load_model

NAMES = ["a", "b", "c", "d"]


def make_rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, 4)) * [1, 20, 0.3, 1] + [0, 100, 0, 5], 6)
    side = X @ [1.0, 0.05, -3.0, 0.0] - 5 + rng.normal(size=n_rows)
    return X, np.where(side > 0.7, "high", np.where(side > -0.7, "mid", "low"))


def csv_text(X, y, names=NAMES):
    rows = "".join(",".join(map(str, row)) + f",{label}\n" for row, label in zip(X.tolist(), y, strict=True))
    return ",".join([*names, "state"]) + "\n" + rows


def svm_text(X, y):
    codes = {"low": 1, "mid": 2, "high": 3}
    return "".join(
        f"{codes[label]} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v) + "\n"
        for row, label in zip(X.tolist(), y, strict=True)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All rows in one file, and the same rows in parts of uneven sizes, in every format."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    where = tmp_path_factory.mktemp("parts")
    X, y = make_rows(300)
    y_binary = (y == "high").astype(float)
    wide = np.where(
        np.arange(4) == 3, np.where(np.arange(300)[:, None] < 130, X, 0), X
    )  # the last part: 3 wide
    (where / "all.csv").write_text(csv_text(X, y))
    (where / "all.svm").write_text(svm_text(wide, y))
    np.save(where / "all.npy", np.column_stack([y_binary, X]))
    for number, (a, b) in enumerate([(0, 1), (1, 130), (130, 300)]):
        order = [3, 1, 0, 2] if number == 2 else [0, 1, 2, 3]
        names = [NAMES[place] for place in order]
        (where / f"part-{number}.csv").write_text(csv_text(X[a:b, order], y[a:b], names))
        (where / f"part-{number}.svm").write_text(svm_text(wide[a:b], y[a:b]))
        np.save(where / f"part-{number}.npy", np.column_stack([y_binary, X])[a:b])
        columns = {name: X[a:b, NAMES.index(name)] for name in names}
        pq.write_table(
            pa.table({**columns, "state": y[a:b]}), where / f"part-{number}.parquet", row_group_size=50
        )
    return where


@pytest.fixture
def run(cluster, folder, monkeypatch, capsys):
    """``erm`` in that folder; ``--dask`` becomes the cluster of all tests."""
    monkeypatch.chdir(folder)

    def command(*argv):
        words = [str(word) for word in argv]
        if "--dask" in words and "--scheduler" not in words:
            words += ["--scheduler", cluster.scheduler_address]
        capsys.readouterr()
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


CASES = {
    "parquet": (["part-*.parquet"], ["all.csv"], ["--target", "state"]),
    "csv, minmax, weights": (
        ["part-*.csv"],
        ["all.csv"],
        ["--target", "-1", "--scale", "minmax", "--class-weight", "balanced", "--p", "1.5"],
    ),
    "several files, ignore": (
        ["part-2.csv", "part-0.csv", "part-1.csv"],
        ["all.csv"],
        ["--target", "state", "--ignore", "c", "--multi-class", "ovo", "--no-intercept"],
    ),
    "parquet, no scaling": (["part-*.parquet"], ["all.csv"], ["--target", "state", "--scale", "none"]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_objective_of_all_rows_in_memory(run, tmp_path, case):
    files, whole, options = case
    settings = [*options, "--tol", "1e-10", "--members", "4", "--cost", "0.7", "--json"]
    code, out, err = run("fit", *whole, "-o", tmp_path / "one.erm", *settings)
    assert code == 0, err
    one = json.loads(out)
    code, out, err = run("fit", *files, "-o", tmp_path / "many.erm", *settings, "--dask")
    assert code == 0, err
    many = json.loads(out)
    np.testing.assert_allclose(many["objective"], one["objective"], rtol=1e-9)
    for fact in ("rows", "features", "classes", "members", "scaling", "converged"):
        assert many[fact] == one[fact], fact
    assert many["blocks"] >= 3
    models = [load_model(tmp_path / name) for name in ("one.erm", "many.erm")]
    remembered = {getattr(model, "target_column_", None) for model in models}
    assert remembered == {"state"}
    assert [type(step).__name__ for _, step in models[0].steps] == [
        type(step).__name__ for _, step in models[1].steps
    ]
    assert models[0][-1].get_params() == models[1][-1].get_params()
    assert models[0].n_features_in_ == models[1].n_features_in_


def test_every_command_takes_the_model(run, tmp_path):
    model = tmp_path / "m.erm"
    (tmp_path / "groups.csv").write_text("a,left\nb,right\nc,left\nd,right\n")
    votes = [
        "--exclusivity",
        "inf",
        "--voting",
        "hard",
        "--members",
        "2",
        "--groups",
        tmp_path / "groups.csv",
    ]
    code, out, err = run(
        "fit", "part-*.parquet", "-o", model, "--target", "state", "--test", "all.csv", *votes, "--dask"
    )
    assert code == 0, err
    assert re.search("^rows +300$", out, re.MULTILINE)
    assert re.search("^blocks +[3-9]$", out, re.MULTILINE)
    assert "accuracy" in out
    code, out, _ = run("predict", model, "part-2.csv")
    assert code == 0
    assert len(out.splitlines()) == 171
    assert run("evaluate", model, "all.csv")[0] == 0
    assert run("certify", model, "all.csv")[0] == 0
    code, out, _ = run("inspect", model)
    assert code == 0
    supports = (load_model(model)[-1].components_ != 0).any(axis=0)  # of members, over all classes
    assert all(members[0] == members[2] and members[1] == members[3] for members in supports)


def test_npy_works_in_memory_too(run, tmp_path):
    model = tmp_path / "m.erm"
    assert run("fit", "all.npy", "--target", "0", "-o", model)[0] == 0
    code, out, _ = run("evaluate", model, "part-1.npy", "--target", "0", "--json")
    assert code == 0
    assert json.loads(out)["accuracy"] > 0.7


WRONG = {
    "workers alone": (["all.csv", "--workers", "2"], 2, "--workers is for workers; add --dask"),
    "memory alone": (["all.csv", "--memory", "1GB"], 2, "--memory is for workers; add --dask"),
    "scheduler alone": (["all.csv", "--scheduler", "tcp://h:1"], 2, "add --dask"),
    "both": (
        ["all.csv", "--dask", "--workers", "2", "--scheduler", "tcp://h:1"],
        2,
        "--workers starts workers; leave it or --scheduler out",
    ),
    "jobs": (
        ["all.csv", "--dask", "--jobs", "2"],
        2,
        "--jobs: n_jobs=2 needs rows in memory",
    ),
    "solver": (["all.csv", "--dask", "--solver", "alm"], 2, "--solver: solver='alm' needs rows in memory"),
    "exclusivity": (
        ["all.csv", "--dask", "--exclusivity", "3"],
        2,
        "--exclusivity: exclusivity=3.0 needs rows in memory",
    ),
    "several without": (
        ["all.csv", "part-0.csv"],
        2,
        "one file at a time, or several with --dask",
    ),
    "pattern without": (["part-*.csv"], 2, "one file at a time, or several with --dask"),
    "no match": (["prat-*.csv", "--dask"], 3, "there is no file prat-*.csv"),
    "missing": (["part-9.csv", "--dask"], 3, "there is no file part-9.csv; did you mean part-"),
    "two formats": (["all.csv", "all.npy", "--dask"], 2, "all.npy is read as npy"),
    "folder": (
        [".", "--dask"],
        3,
        ". is a folder; give one of its files, or with 'erm fit --dask' a pattern in quotes",
    ),
    "no test": (
        ["all.csv", "--dask", "--test", "al.csv"],
        3,
        "there is no file al.csv; did you mean all.csv?",
    ),
    "no target": (["part-*.parquet", "--dask", "--target", "none"], 3, "has no column 'none'"),
    "features": (["part-*.csv", "--dask", "--features", "9"], 2, "--features is for rows in memory"),
    "libsvm": (["part-*.svm", "--dask"], 2, "--dask reads CSV and Parquet files; part-0.svm is read as"),
    "npy": (["part-*.npy", "--dask"], 2, "--dask reads CSV and Parquet files; part-0.npy is read as npy"),
    "memory": (["all.csv", "--dask", "--memory", "1XB"], 2, "must be an amount such as 1GB or 800MB"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_mistakes_on_the_command_line(folder, tmp_path, monkeypatch, capsys, case):
    argv, code, message = case
    monkeypatch.chdir(folder)
    target = [] if "--target" in argv else ["--target", "state"]
    assert main(["fit", *argv, *target, "-o", str(tmp_path / "m.erm")]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert not (tmp_path / "m.erm").exists()


def test_a_part_that_is_wrong_is_named(run, folder, tmp_path):
    parts = [folder / "part-0.csv", folder / "part-1.csv"]
    for text, message in (
        ("a,b,c,d,state\n1,2,3,4,high\n1,2,x,4,low\n", "--numeric COL takes the texts for missing"),
        ("a,b,c,d,state\n1,2,3,4,7\n", "column 'state' holds numbers in some files, and texts"),
        ("a,b,c,state\n1,2,3,low\n", "bad.csv has no column 'd'"),
        ("", "bad.csv is empty"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        code, _, err = run(
            "fit", *parts, tmp_path / "bad.csv", "--target", "state", "-o", tmp_path / "m.erm", "--dask"
        )
        assert code == 3
        assert message in err
        assert "Traceback" not in err


def test_one_class(run, folder, tmp_path):
    code, _, err = run("fit", "part-0.csv", "--target", "state", "-o", tmp_path / "m.erm", "--dask")
    assert code == 3
    assert "all rows of part-0.csv have the label" in err


def test_no_scheduler_there(run, tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "_SECONDS_TO_CONNECT", 1)
    argv = ["fit", "all.csv", "--target", "state", "-o", tmp_path / "m.erm", "--dask"]
    code, _, err = run(*argv, "--scheduler", "tcp://127.0.0.1:9")
    assert code == 1
    assert "no Dask scheduler with workers answers at tcp://127.0.0.1:9" in err


def test_without_dask(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run("fit", "all.csv", "--target", "state", "-o", tmp_path / "m.erm", "--dask")
    assert code == 1
    assert "pip install 'exclusivity[cli,dask]'" in err


def children_of(pid):
    import psutil  # Dask's workers need it, too

    return [child.pid for child in psutil.Process(pid).children()]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif("EXCLUSIVITY_LONG" not in os.environ, reason="make test-dask runs it")
def test_ctrl_c_leaves_nobody_behind(folder, tmp_path):
    """A terminal sends the signal to the whole group: the command and its workers."""
    code = (
        "import signal, sys; from exclusivity.cli.main import main; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # jobs in the background ignore it
        "sys.exit(main())"
    )
    argv = ["fit", str(folder / "part-*.csv"), "--target", "state", "-o", "m.erm", "--dask"]
    process = subprocess.Popen(  # noqa: S603 -- our own program
        [sys.executable, "-c", code, *argv, "--workers", "1", "--tol", "1e-10"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while len(workers := children_of(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert workers
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.strip().endswith("erm: interrupted")
    assert "Traceback" not in err
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, workers))
    assert list(tmp_path.iterdir()) == []


def test_nobody_else_is_served():
    """Scheduler, workers and the pages about them listen on this machine's own address alone."""
    import psutil

    from exclusivity.cli.output import Progress

    args = SimpleNamespace(scheduler=None, workers=1, memory=None)
    before = set(psutil.Process().net_connections())
    with distributed.cluster(args, Progress("fit", quiet=True)):
        here = psutil.Process()
        found = [set(here.net_connections()) - before]
        found += [set(child.net_connections()) for child in here.children(recursive=True)]
        listening = [each.laddr for group in found for each in group if each.status == psutil.CONN_LISTEN]
    assert len(listening) >= 3  # scheduler, its pages, a worker
    assert all(ipaddress.ip_address(address.ip).is_loopback for address in listening)
