"""README, documentation, docstrings and messages use the terms of a textbook."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "check_words.py"))


def test_no_old_words(capsys):
    assert SCRIPT["main"]() == 0, capsys.readouterr().out


def test_a_word_is_found_in_prose_only(tmp_path, monkeypatch):
    monkeypatch.setitem(SCRIPT["complaints"].__globals__, "ROOT", tmp_path)
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text("A `walk` and\n```python\nwalk\n```\na random walk.\nRows left out stay.\n")
    assert [line.split(":")[1] for line in SCRIPT["complaints"](page)] == ["6"]
    module.write_text('"""Continue for ever."""\nwalk = f"the walk of {1}"\n')
    assert [line.split(":")[1] for line in SCRIPT["complaints"](module)] == ["1", "2"]
