"""Every Python snippet of README and docs runs, page by page, in order."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=lambda page: page.name)
def test_snippets_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what they write does not stay
    namespace = {}
    for snippet in snippets(page):
        exec(compile(snippet, str(page), "exec"), namespace)  # noqa: S102 -- our own pages
    assert capsys.readouterr().out, "a snippet that shows nothing teaches nothing"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
