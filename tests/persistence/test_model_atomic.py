"""A file is whole or not there: whatever ends a save, the old one stays."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from exclusivity import ERMClassifier
from exclusivity.io import load_model, models, save_model
from persistence.model_cases import X2, Y2

SAVER = """
import os, sys, time
from exclusivity import ERMClassifier
from exclusivity.io import models, save_model

path, moment = sys.argv[1:]
write_container = models.write_container

def wait():
    print("waiting", flush=True)
    time.sleep(600)

def write(header, arrays, write):
    if moment == "half":
        half = lambda part: (write(part[: len(part) // 2]), wait())
        write_container(header, arrays, half)
    write_container(header, arrays, write)

models.write_container = write
if moment == "whole":
    os.fsync = lambda descriptor: wait()
if moment == "synced":
    os.replace = lambda old, new: wait()
save_model(ERMClassifier(9).fit([[0.0], [1.0]], [0, 1]), path)
"""


@pytest.fixture(scope="module")
def model():
    return ERMClassifier(2).fit(X2, Y2)


@pytest.mark.parametrize("moment", ["half", "whole", "synced"])
def test_kill_during_save(tmp_path, model, moment):
    """Killed outright while the new file is half written, written, and on disk but not yet in its place."""
    path = tmp_path / "model.erm"
    save_model(model, path)
    command = [sys.executable, "-c", SAVER, str(path), moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 -- our own
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGKILL)
    assert len(list(tmp_path.glob(".model.erm.*.tmp"))) == 1
    assert load_model(path).n_estimators == 2


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_during_save(tmp_path, model, monkeypatch, error):
    path = tmp_path / "model.erm"
    save_model(model, path)
    before = path.read_bytes()

    def failing(header, arrays, write):
        write(b"half of it")
        raise error

    monkeypatch.setattr(models, "write_container", failing)
    with pytest.raises(type(error)):
        save_model(model, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_reader_sees_old_or_new(tmp_path, model):
    """A file that was opened before the save stays what it was."""
    path = tmp_path / "model.erm"
    save_model(model, path)
    with path.open("rb") as stream:
        save_model(ERMClassifier(9).fit(X2, Y2), path)
        assert models.read_model(stream, os.fstat(stream.fileno()).st_size).n_estimators == 2
    assert load_model(path).n_estimators == 9


def test_permissions(tmp_path, model):
    path = tmp_path / "model.erm"
    old = os.umask(0o027)
    try:
        save_model(model, path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    save_model(model, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_link_stays_a_link(tmp_path, model):
    (tmp_path / "real").mkdir()
    link = tmp_path / "model.erm"
    link.symlink_to(tmp_path / "real" / "target.erm")
    save_model(model, link)
    assert link.is_symlink()
    assert load_model(tmp_path / "real" / "target.erm").n_estimators == 2
    assert len(list((tmp_path / "real").iterdir())) == 1


def test_places_that_cannot_be(tmp_path, model):
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        save_model(model, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent'$"):  # the folder, not a temporary file in it
        save_model(model, tmp_path / "absent" / "model.erm")
    with pytest.raises(ValueError, match="no ordinary file"):
        save_model(model, os.devnull)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no ordinary file"):
        save_model(model, tmp_path / "pipe")


def test_write_protected_file_is_kept(tmp_path, model, monkeypatch):
    path = tmp_path / "model.erm"
    save_model(model, path)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(PermissionError, match="write-protected; give another name"):
        save_model(model, path)


def test_long_names(tmp_path, model):
    path = tmp_path / ("x" * 250 + ".erm")
    save_model(model, path)
    assert load_model(path).n_estimators == 2
