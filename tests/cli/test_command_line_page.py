"""The session of docs/command-line.md runs, from its first command to its last."""

import re
import shlex
from pathlib import Path

import pytest

from exclusivity.cli.errors import EXIT_STATUS
from exclusivity.cli.main import COMMANDS, main

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")


def session():
    """Python and shell blocks in the order of the page."""
    return re.findall(r"```(python|sh)\n(.*?)```", PAGE, re.DOTALL)


def test_the_session_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    n_commands = 0
    for language, block in session():
        if language == "python":
            exec(compile(block, "command-line.md", "exec"), {})  # noqa: S102 -- our own page
            continue
        for line in block.strip().splitlines():
            program, *argv = shlex.split(line)
            assert program == "erm"
            assert main(argv) == 0, line
            n_commands += 1
    assert n_commands == 10
    out = capsys.readouterr().out
    shown = re.search(r"```\n(data .*?)```", PAGE, re.DOTALL).group(1)
    for line in shown.splitlines():
        # Seconds and the last digits of a gap differ between machines.
        assert re.split(", within| in 0", line)[0] in out
    assert {"chosen.erm", "model.erm", "predictions.csv", "report.html", "voters.onnx"} <= {
        path.name for path in tmp_path.iterdir()
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_on_the_page(command):
    assert f"erm {command}" in PAGE


def test_exit_codes_are_on_the_page():
    for code, meaning in re.findall(r"^  (\d+) +(.*)$", EXIT_STATUS, re.MULTILINE):
        assert f"| {code} | {meaning.split('(')[0].strip()}" in PAGE
