"""The paper on the software: what it cites exists, a command draws its figures, its numbers were measured."""

import re
import runpy
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
HEADER, _, TEXT = PAPER.removeprefix("---\n").partition("\n---\n")


def test_the_header_is_what_the_journal_reads():
    header = yaml.safe_load(HEADER)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(header)
    known = {affiliation["index"] for affiliation in header["affiliations"]}
    assert all(author["affiliation"] in known for author in header["authors"])
    assert (ROOT / "paper" / header["bibliography"]).exists()


def test_it_says_what_the_journal_asks_for_and_stays_short():
    sections = re.findall(r"^# (.+)$", TEXT, re.MULTILINE)
    assert sections[:2] == ["Summary", "Statement of need"]
    assert sections[-1] == "References"
    assert 250 <= len(TEXT.split()) <= 1500


def test_every_citation_has_an_entry_and_every_entry_a_citation():
    bibliography = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE)
    assert len(set(entries)) == len(entries)
    assert set(re.findall(r"@([a-z]+\d{4})", TEXT)) == set(entries)
    for entry in bibliography.split("\n@"):
        assert all(f"{field} = {{" in entry for field in ("author", "title", "year")), entry


def test_figures_are_those_that_the_command_draws():
    pytest.importorskip("matplotlib")
    drawn = runpy.run_path(str(ROOT / "paper" / "figures.py"))["FIGURES"]
    shown = re.findall(r"!\[.*?\\label\{(fig:\w+)\}\]\((\S+?)\)", TEXT, re.DOTALL)
    assert {name for _, name in shown} == set(drawn)
    for label, name in shown:
        assert f"\\autoref{{{label}}}" in TEXT
        assert (ROOT / "paper" / name).read_bytes().startswith(b"\x89PNG")


def test_numbers_are_those_of_the_documentation():
    """Every number in the results of the comparison stands on the page with the commands."""
    measured = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (.+?) \| (.+) \|$", TEXT, re.MULTILINE)[1:]
    assert len(table) >= 8
    for _, result in table:
        numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", re.sub(r"\(p = \d\)", "", result))
        assert numbers
        for number in numbers:
            assert re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.]?\d)", measured), number
