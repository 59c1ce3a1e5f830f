"""Outputs that exist need ``--force``, except that a model replaces a model; inputs are always safe."""

import argparse
import os
import shutil
import subprocess
import sys

import pytest

from exclusivity.cli.main import COMMANDS, build_parser

READ_AND_WRITTEN = {
    "fit data": (["fit", "IN", "--target", "state", "-o", "OUT"], "train.csv"),
    "fit test": (["fit", "train.csv", "--target", "state", "--test", "IN", "-o", "OUT"], "test.csv"),
    "fit groups": (["fit", "train.csv", "--target", "state", "--groups", "IN", "-o", "OUT"], "groups.csv"),
    "fit dask": (["fit", "IN", "--target", "state", "--dask", "-o", "OUT"], "train.csv"),
    "path data": (["path", "IN", "--target", "state", "-o", "OUT"], "train.csv"),
    "path groups": (["path", "train.csv", "--target", "state", "--groups", "IN", "-o", "OUT"], "groups.csv"),
    "predict data": (["predict", "soft.erm", "IN", "-o", "OUT"], "new.csv"),
    "predict model": (["predict", "IN", "new.csv", "-o", "OUT"], "soft.erm"),
    "certify data": (["certify", "hard.erm", "IN", "-o", "OUT"], "new.csv"),
    "certify model": (["certify", "IN", "new.csv", "-o", "OUT"], "hard.erm"),
    "inspect model": (["inspect", "IN", "--html", "OUT"], "soft.erm"),
    "inspect data": (["inspect", "soft.erm", "--data", "IN", "--html", "OUT"], "test.csv"),
    "export model": (["export", "IN", "-o", "OUT"], "soft.erm"),
}
WRITES = {
    "fit": ["fit", "train.csv", "--target", "state", "--folds", "0", "-o", "OUT"],
    "path": ["path", "train.csv", "--target", "state", "--costs", "1", "-o", "OUT"],
    "predict": ["predict", "soft.erm", "new.csv", "-o", "OUT"],
    "predict json": ["predict", "soft.erm", "new.csv", "--json", "-o", "OUT"],
    "predict scores": ["predict", "iris.erm", "iris.csv", "--scores", "-o", "OUT"],
    "certify": ["certify", "hard.erm", "new.csv", "-o", "OUT"],
    "inspect": ["inspect", "soft.erm", "--html", "OUT"],
    "export": ["export", "soft.erm", "-o", "OUT"],
}


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch):
    """As where matplotlib is not installed: what is drawn is not the matter here."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)


def put(command, **names):
    return [names.get(word, word) for word in command]


@pytest.fixture
def own(erm, tmp_path):
    """``erm`` with files of its own instead of links, whose content can be compared."""
    for path in tmp_path.iterdir():
        target = path.resolve()
        path.unlink()
        shutil.copy(target, path)
    (tmp_path / "groups.csv").write_text("a\na\nb\nb\nc\nc\n")
    return erm


def refused(result, *words):
    code, out, err = result
    assert (code, out) == (3, "")
    for word in words:
        assert word in err, err


@pytest.mark.parametrize("case", READ_AND_WRITTEN.values(), ids=READ_AND_WRITTEN)
def test_an_output_that_is_an_input_is_refused_by_any_name(own, tmp_path, case):
    command, name = case
    before = (tmp_path / name).read_bytes()
    (tmp_path / "soft link").symlink_to(name)
    os.link(tmp_path / name, tmp_path / "hard link")
    (tmp_path / "folder").mkdir()
    for other in (name, f"./folder/../{name}", str(tmp_path / name), "soft link", "hard link"):
        refused(own(*put(command, IN=name, OUT=other)), f"{other} is also an input", "choose another name")
        refused(own(*put(command, IN=name, OUT=other), "--force"), f"{other} is also an input")
    refused(own(*put(command, IN="hard link", OUT=name), *(["--format", "csv"] * (command[1] != "IN"))), name)
    assert (tmp_path / name).read_bytes() == before
    assert (tmp_path / "soft link").is_symlink()


def test_a_pattern_is_the_files_that_it_matches(own, tmp_path):
    before = (tmp_path / "train.csv").read_bytes()
    command = ["fit", "tr*.csv", "--target", "state", "--dask", "-o", "train.csv"]
    refused(own(*command), "train.csv is also an input (data)")
    assert (tmp_path / "train.csv").read_bytes() == before
    assert own(*command[:-1], "test.csv")[0] == 3  # no model file either


def run_erm(*argv, **streams):
    command = [sys.executable, "-c", "import sys; from exclusivity.cli.main import main; sys.exit(main())"]
    return subprocess.run([*command, *argv], stderr=subprocess.PIPE, text=True, check=False, **streams)  # noqa: S603


def test_standard_input_is_a_file_too(own, tmp_path):
    before = (tmp_path / "new.csv").read_bytes()
    with open("new.csv") as stream:
        run = run_erm("predict", "soft.erm", "-", "--format", "csv", "-o", "new.csv", stdin=stream)
    assert run.returncode == 3
    assert "new.csv is also an input (data)" in run.stderr
    assert (tmp_path / "new.csv").read_bytes() == before


@pytest.mark.parametrize("command", WRITES.values(), ids=WRITES)
def test_an_output_that_exists_needs_force(erm, tmp_path, command):
    (tmp_path / "mine").write_bytes(b"something else")
    refused(erm(*put(command, OUT="mine")), "mine exists; choose another name, or replace it with --force.")
    assert (tmp_path / "mine").read_bytes() == b"something else"
    assert erm(*put(command, OUT="mine"), "--force")[0] == 0
    assert (tmp_path / "mine").read_bytes() != b"something else"
    again = erm(*put(command, OUT="mine"))
    if command[0] in ("fit", "path"):
        assert again[0] == 0  # a model replaces a model
    else:
        refused(again, "mine exists")
    (tmp_path / "nothing").touch()
    assert erm(*put(command, OUT="nothing"))[0] == 0  # an empty file has nothing to lose


def test_only_a_model_replaces_a_model(erm, tmp_path):
    assert erm(*put(WRITES["fit"], OUT="mine"))[0] == 0
    before = (tmp_path / "mine").read_bytes()
    for name in set(WRITES) - {"fit", "path"}:
        refused(erm(*put(WRITES[name], OUT="mine")), "mine exists")
    assert (tmp_path / "mine").read_bytes() == before


@pytest.mark.parametrize("command", WRITES.values(), ids=WRITES)
def test_a_dash_is_standard_output_or_refused(erm, tmp_path, command):
    code, out, err = erm(*put(command, OUT="-"))
    if command[0] in ("predict", "certify"):
        assert code == 0
        assert "label" in out
    else:
        assert code == 2
        assert "cannot go to standard output" in err
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_reads_and_writes(name):
    """A new argument that names a file is either read or written, or this fails."""
    subparsers = next(a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    actions = subparsers.choices[name]._actions
    named = {action.dest for action in actions if action.metavar in ("FILE", "DATA", "MODEL", "DIR")}
    module = COMMANDS[name]
    inputs, outputs = set(getattr(module, "INPUTS", ())), set(getattr(module, "OUTPUTS", {}))
    assert named == inputs | outputs
    assert not inputs & outputs
    assert any("--force" in action.option_strings for action in actions) == bool(outputs)
