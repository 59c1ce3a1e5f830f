"""Data through named pipes and /dev/fd give what the same bytes give as a file."""

import bz2
import gzip
import io
import os
import signal
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from exclusivity.cli.main import main
from exclusivity.io import DataFileError, read_table
from readers import read_csv, read_npy

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
N = 3000


@pytest.fixture(autouse=True)
def no_endless_wait():
    """End a test that waits for a pipe which nobody will write to."""

    def stop(*_):
        raise TimeoutError("it waits for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def numbers(n=N):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, 4))
    return X, (X.sum(axis=1) + generator.normal(size=n) > 0).astype(int)


def csv(header=True, words=False, labels=True):
    """Lines of 64 bytes, so that a buffer which is lost ends with a line."""
    X, y = numbers()
    colours = np.where(X[:, 3] > 0, "red", "blue")
    lines = ["a,b,c,d,y" if labels else "a,b,c,d"] if header else []
    for row, label, colour in zip(X.tolist(), y.tolist(), colours.tolist(), strict=True):
        cells = [
            *(f"{v:.6f}" for v in row[:3]),
            colour if words else f"{row[3]:.6f}",
            *([str(label)] if labels else []),
        ]
        line = ",".join(cells)
        lines.append(line.replace(",", "," + " " * (63 - len(line)), 1))
    return ("\n".join(lines) + "\n").encode()


def libsvm():
    X, y = numbers()
    lines = [
        f"{y} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(row))
        for row, y in zip(X.tolist(), y, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def npy():
    X, y = numbers()
    stream = io.BytesIO()
    np.save(stream, np.column_stack([X, y]))
    return stream.getvalue()


def parquet():
    arrow = pytest.importorskip("pyarrow")
    X, y = numbers()
    stream = io.BytesIO()
    table = arrow.table({**{name: X[:, j] for j, name in enumerate("abcd")}, "y": y})
    pytest.importorskip("pyarrow.parquet").write_table(table, stream)
    return stream.getvalue()


FILES = {
    "table.csv": (csv, ["--target", "y"]),
    "headless.csv": (lambda: csv(header=False), ["--no-header", "--target", "-1"]),
    "words.csv": (lambda: csv(words=True), ["--target", "y"]),
    "table.tsv": (lambda: csv().replace(b",", b"\t"), ["--target", "y"]),
    "table.csv.gz": (lambda: gzip.compress(csv()), ["--target", "y"]),
    "words.csv.bz2": (lambda: bz2.compress(csv(words=True)), ["--target", "y"]),
    "rows.svm": (libsvm, []),
    "rows.npy": (npy, ["--target", "-1"]),
    "table.parquet": (parquet, ["--target", "y"]),
}
KINDS = {"gz": "csv", "bz2": "csv", "svm": "libsvm"}
FIT = ["--folds", "0", "--quiet", "--members", "3", "--exclusivity", "inf", "--voting", "hard"]


def feed(write, content):
    """Write from another thread, as another process would."""

    def run():
        try:
            with write() as stream:
                stream.write(content)
        except BrokenPipeError:  # the reader had enough
            pass

    threading.Thread(target=run, daemon=True).start()


@pytest.fixture
def pipe(tmp_path):
    """Give the name of a pipe with some bytes in it: a FIFO of that name, or one of /dev/fd."""
    opened = []

    def make(kind, name, content):
        if kind == "fifo":
            path = tmp_path / "pipes" / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            os.mkfifo(path)
            feed(lambda: path.open("wb"), content)
            return str(path)
        reader, writer = os.pipe()
        opened.append(reader)
        feed(lambda: os.fdopen(writer, "wb"), content)
        return f"/dev/fd/{reader}"

    yield make
    for descriptor in opened:
        os.close(descriptor)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, "fifo") for name in FILES]
    + [(name, "fd") for name in FILES if not name.endswith(("gz", "bz2"))],  # a number has no ending
)
def test_every_format_and_command(name, kind, run, pipe):
    make, target = FILES[name]
    content = make()
    Path(name).write_bytes(content)
    ending = name.rpartition(".")[2]
    reading = [*target, "--format", KINDS.get(ending, ending)] if kind == "fd" else target
    code, expected, err = run("fit", name, *target, "-o", "file.erm", *FIT, "--json")
    assert code == 0, err
    assert f'"rows": {N},' in expected
    code, _, err = run("fit", pipe(kind, name, content), *reading, "-o", "pipe.erm", *FIT)
    assert code == 0, err
    assert Path("pipe.erm").read_bytes() == Path("file.erm").read_bytes()
    for command in (
        ["predict", "file.erm"],
        ["evaluate", "file.erm", "--json"],
        ["certify", "file.erm", "-o", "-"],
    ):
        expected = run(*command, name, *target)
        assert expected[0] == 0, expected
        found = run(*command, pipe(kind, name, content), *reading)
        assert found[:2] == expected[:2]


def test_rows_of_numbers_are_not_lost_in_path_inspect_and_test(run, pipe):
    Path("t.csv").write_bytes(csv())
    at = ["--target", "y"]
    expected = run("path", "t.csv", *at, "--costs", "1", "--folds", "2", "--json", "-q")
    assert (
        run("path", pipe("fifo", "t.csv", csv()), *at, "--costs", "1", "--folds", "2", "--json", "-q")
        == expected
    )
    assert run("fit", "t.csv", *at, "-o", "m.erm", *FIT, "--test", "t.csv")[0] == 0
    code, out, err = run("fit", "t.csv", *at, "-o", "m.erm", *FIT, "--test", pipe("fifo", "t.csv", csv()))
    assert code == 0, err
    assert f"on {N} rows" in out
    pytest.importorskip("matplotlib")
    code, _, err = run("inspect", "m.erm", "--html", "r.html", "--data", pipe("fifo", "t.csv", csv()))
    assert code == 0, err
    assert f"{N} rows" in Path("r.html").read_text()


def test_a_pipe_that_is_empty(run, pipe):
    for name, options in (("t.csv", ["--target", "y"]), ("rows.npy", ["--target", "0"])):
        path = pipe("fifo", name, b"")
        code, _, err = run("fit", path, *options, "-o", "m.erm")
        assert code == 3
        assert path in err


def test_what_is_wrong_names_the_pipe(run, pipe):
    for name in ("rows.npy", "t.csv.gz", "t.parquet"):
        path = pipe("fifo", name, b"no such thing")
        code, _, err = run("fit", path, "--target", "0", "-o", "m.erm")
        assert code == 3
        assert path in err
        assert str(Path(tempfile.gettempdir(), "tmp")) not in err


def test_readers_in_python(pipe):
    """Text is read in one go; what needs a second look is refused, and neither waits nor loses rows."""
    assert len(read_csv(pipe("fifo", "t.csv", csv()), target="y").data) == N
    assert len(read_table(pipe("fifo", "t.csv", csv()), target="y").data) == N
    with pytest.raises(DataFileError, match="can be read only once; copy it to a file first"):
        read_npy(pipe("fd", "rows.npy", npy()))
    for name in ("t.csv.gz", "t.parquet"):
        with pytest.raises(DataFileError, match="can be read only once; copy it to a file first"):
            read_table(pipe("fifo", name, b""))
