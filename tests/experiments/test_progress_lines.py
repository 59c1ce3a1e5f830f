"""Progress on a terminal and elsewhere."""

import io

import pytest

from exclusivity.experiments import progress as module
from exclusivity.experiments.progress import PlainProgress, Progress, RichProgress, terminal_progress
from exclusivity.experiments.tasks import Task


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(progress, total=3, done=0):
    progress.start(total, done=done)
    for number in range(total - done):
        progress.advance(f"task {number}")
    progress.stop()


def test_plain_lines_begin_and_end():
    stream = io.StringIO()
    run(PlainProgress(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "erm reproduce: 3 tasks"
    assert lines[-1].startswith("erm reproduce: 3/3 after")
    assert len(lines) == 2


def test_plain_lines_tell_of_an_earlier_run_and_of_time():
    stream = io.StringIO()
    run(PlainProgress(stream, interval=0.0), done=1)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "erm reproduce: 3 tasks, 1 of them known from an earlier run"
    assert len(lines) == 3


def test_a_bar_where_rich_and_a_terminal_are_there(monkeypatch, capsys):
    pytest.importorskip("rich")
    bar = terminal_progress(Terminal())
    assert isinstance(bar, RichProgress)
    run(bar)
    assert "3/3" in capsys.readouterr().err
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert isinstance(terminal_progress(Terminal()), PlainProgress)
    assert isinstance(terminal_progress(), PlainProgress)


def test_silence(capsys):
    run(Progress())
    assert capsys.readouterr() == ("", "")


def test_labels():
    assert Task("trial", {"dataset": "heart", "trial": 0}).label == "trial heart trial 1"
    assert Task("theory", {"dataset": "heart", "check": "eps"}).label == "theory heart eps"
