"""Every Python snippet of README and docs runs, page by page, in order, and prints what the page shows."""

import json
import math
import re
import runpy
from pathlib import Path

import pytest

from exclusivity.solvers import SOLVERS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/research/*.md"))]
POLICIES = sorted(set(ROOT.glob("*.md")) - set(PAGES))


SHOWN = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
GREEK = "alpha|beta|gamma|delta|eps|epsilon|lambda|mu|nu|rho|tau|xi|phi|pi"


def snippets(page):
    """Pairs of a snippet and the output that the page shows below it, if any."""
    return SHOWN.findall(page.read_text(encoding="utf-8"))


def assert_shown(printed, shown):
    """The same words, and the same numbers as far as versions of numpy and scikit-learn may move them."""
    words, expected = (NUMBER.sub("#", text).split() for text in (printed, shown))
    assert words == expected, printed
    for found, stated in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert math.isclose(float(found), float(stated), rel_tol=0.05, abs_tol=0.02), printed
        if "e-" in stated:  # gaps and rounding errors, which depend on the machine: the order of magnitude
            assert 1e-3 <= max(float(found), 1e-16) / float(stated) <= 1e3, printed


@pytest.fixture
def known_solvers():
    """A page may register a solver; other tests do not know it."""
    before = dict(SOLVERS)
    yield
    SOLVERS.clear()
    SOLVERS.update(before)


RUN_HERE = [page for page in PAGES if snippets(page) and page.name != "tools.md"]
"""tests/test_tools.py runs that page, section by section, where the tools are installed."""


@pytest.mark.usefixtures("known_solvers")
@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.name)
def test_snippets_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what they write does not stay
    namespace, anything = {}, ""
    for snippet, shown in snippets(page):
        exec(compile(snippet, str(page), "exec"), namespace)  # noqa: S102 -- our own pages
        printed = capsys.readouterr().out
        anything += printed
        if shown:
            assert_shown(printed, shown)
    assert anything, "a snippet that shows nothing teaches nothing"


@pytest.mark.parametrize("name", ["quickstart", "robustness", "choosing-c"])
def test_guides_show_output_and_a_picture(name):
    page = ROOT / "docs" / f"{name}.md"
    assert all(shown for snippet, shown in snippets(page) if "print(" in snippet)
    assert re.search(r"!\[[^]]+\]\(images/", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_is_as_narrow_as_the_pages(page):
    for block in re.findall(r"```(?:python|sh|bash)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        assert max(map(len, block.splitlines())) <= 110, block


def prose(page):
    """Text without code and output, and the formulas that were in it."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"`[^`\n]+(?:\n[^`\n]+)?`|\]\([^)]*\)", "", text)
    formulas = re.findall(r"\$\$.*?\$\$|\$[^$]+\$", text, re.DOTALL)
    return re.sub(r"\$\$.*?\$\$|\$[^$]+\$", "", text, flags=re.DOTALL), formulas


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_formulas_are_mathematics(page):
    """Markdown takes ``|W_j|*2^2`` apart; between dollars it stays a formula."""
    text, formulas = prose(page)
    assert "$" not in text, "a dollar without its partner"
    for formula in formulas:
        assert formula.count("{") == formula.count("}"), formula
        assert formula.count(r"\lVert") == formula.count(r"\rVert"), formula
        assert formula.count(r"\begin") == formula.count(r"\end"), formula
    for broken in (
        r"\^",
        r"_\{",
        r"\bsum_",
        r"\|\w+\\?\|_",  # |W|_F, also with escaped bars
        rf"(?<![-\w])(?:{GREEK})(?![-\w])",
        r"(?m)^    \S.*[=|]",  # formulas as blocks of code
    ):
        found = re.search(broken, text)
        assert found is None, f"not between dollars: {text[found.start() - 40 : found.end() + 40]!r}"
    rows = re.findall(r"(?m)^\|.*", page.read_text(encoding="utf-8"))
    for formula in re.findall(r"\$[^$]+\$", "\n".join(rows)):
        assert "|" not in formula, f"a bar ends the cell: {formula}"


@pytest.mark.parametrize("page", [*PAGES, *POLICIES], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_speak_to_readers(page):
    """Bars and goals are words of those who build; readers are told what is claimed and what was measured."""
    assert not re.search(
        r"(?i)\bbars? (?:holds?|fails?|is)\b|\(bar[: ]|\bthe goal\b|\bbar \|", prose(page)[0]
    )


FIGURES = json.loads((ROOT / "docs" / "figures.json").read_text(encoding="utf-8"))
MARK = re.compile(r"([-+]?[\d.,]*\d)<!--([\w-]+)-->")


def test_figures_have_a_source():
    for figure in FIGURES.values():
        assert set(figure) == {"value", "command", "commit", "date"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", figure["date"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_agree(page):
    """A marked number, ``0.82<!--broken-3-robust-->``, is the one of docs/figures.json."""
    for value, name in MARK.findall(page.read_text(encoding="utf-8")):
        assert value == FIGURES[name]["value"], name


def test_headline_figures_are_marked():
    """All figures are on the page of results; all rows of it and of the README's table have a mark."""
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert {figure["command"] for figure in FIGURES.values()} <= set(re.findall(r"`([^`]+)`", results))
    readme = (
        (ROOT / "README.md").read_text(encoding="utf-8").partition("## Measured")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"(?m)^\| \*\*.*", readme) + re.findall(r"(?m)^\| \*\*.*", results)
    assert len(rows) >= 20
    assert all(MARK.search(row) for row in rows)


def test_dead_links_are_found(tmp_path, capsys):
    """``make docs`` runs this on the site."""
    check = runpy.run_path(str(ROOT / "scripts" / "check_links.py"))["main"]
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#here">b</a><img src="p.png" alt="a dot">'
    )
    (tmp_path / "b.html").write_text(
        '<p id="here"><a href="a.html#top">a</a><a href="https://x.org/no">x</a>'
    )
    (tmp_path / "p.png").touch()
    assert check([str(tmp_path)]) == 0
    (tmp_path / "b.html").write_text('<a href="a.html#bottom">a</a><a href="c.html">c</a><img src="p.png">')
    assert check([str(tmp_path)]) == 1
    assert sorted(line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()) == [
        "a.html#bottom has no such anchor",
        "b.html#here has no such anchor",
        "c.html leads nowhere",
        "p.png has no alternative text",
    ]
