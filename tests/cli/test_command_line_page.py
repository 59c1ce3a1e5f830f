"""The sessions of the pages with commands run, from their first command to their last."""

import re
import shlex
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

from exclusivity.cli.files import EXIT_STATUS
from exclusivity.cli.main import COMMANDS, main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "command-line.md").read_text(encoding="utf-8")


def session(page):
    """Python and shell blocks in the order of the page."""
    return re.findall(r"```(python|sh)\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize(
    ("name", "n_commands", "files"),
    [
        (
            "command-line.md",
            13,
            ["chosen.erm", "model.erm", "predictions.csv", "report.html", "robust.erm", "voters.onnx"],
        ),
        ("tables.md", 4, ["mine.erm", "predictions.csv", "mine.html"]),
        ("production.md", 5, ["heart.erm", "predictions.csv", "standing.csv"]),
    ],
)
def test_the_session_runs(name, n_commands, files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / name).read_text(encoding="utf-8")
    n_run, namespace = 0, {}
    for language, block in session(page):
        if language == "python":
            exec(compile(block, name, "exec"), namespace)  # noqa: S102 -- our own page
            continue
        for line in block.strip().splitlines():
            program, *argv = shlex.split(line, comments=True)
            assert program == "erm"
            assert main(argv) == 0, line
            n_run += 1
    assert n_run == n_commands
    out = capsys.readouterr().out
    shown = re.search(r"```\n((?:model|test|rows) .*?)```", page, re.DOTALL).group(1)
    for line in shown.splitlines():
        # Seconds and the last digits of a gap differ between machines.
        assert re.split(", within| in 0", line)[0] in out
    assert set(files) <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("name", "train", "test", "target"),
    [
        ("../README.md", "mine.csv", "new.csv", "COLUMN"),
        ("quickstart.md", "train.csv", "test.csv", "diagnosis"),
    ],
)
def test_commands_about_a_table_of_yours_run(name, train, test, target, tmp_path, monkeypatch):
    """Commands of pages whose snippets write no files."""
    monkeypatch.chdir(tmp_path)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    table = X.assign(**{target: y.map({0: "malignant", 1: "benign"})})
    table[::2].to_csv(train, index=False)
    table[1::2].to_csv(test, index=False)
    blocks = [
        block for language, block in session((DOCS / name).read_text(encoding="utf-8")) if language == "sh"
    ]
    lines = [line for line in "".join(blocks).splitlines() if line.startswith("erm ")]
    assert len(lines) == 3
    for line in lines:
        assert main(shlex.split(line, comments=True)[1:]) == 0, line


def test_rules_about_signs_run(tmp_path, monkeypatch):
    """Of a guide whose snippets build on each other."""
    monkeypatch.chdir(tmp_path)
    namespace, commands = {}, []
    for language, block in session((DOCS / "constraints.md").read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(block, "constraints.md", "exec"), namespace)  # noqa: S102 -- our own page
        else:
            commands += block.strip().splitlines()
            assert main(shlex.split(commands[-1], comments=True)[1:]) == 0
    assert len(commands) == 1
    assert (tmp_path / "credit.erm").is_file()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_on_the_page(command):
    assert f"erm {command}" in PAGE


def test_exit_codes_are_on_the_page():
    for code, meaning in re.findall(r"^  (\d+) +(.*)$", EXIT_STATUS, re.MULTILINE):
        assert f"| {code} | {meaning.split('(')[0].strip()}" in PAGE
