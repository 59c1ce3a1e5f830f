"""The report: well-formed, self-contained, and honest about what is not there."""

import re
from html.parser import HTMLParser

import pytest

from exclusivity.experiments.plots import draw_all
from exclusivity.experiments.report import render_page
from exclusivity.experiments.report.tables import table1_section
from exclusivity.experiments.tables import table1
from exclusivity.pages import inline_svg
from experiments.experiment_cases import published_trials, trial_result

VOID = {"meta", "link", "br"}


class Strict(HTMLParser):
    """Every element is closed in order, every id is there once."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.loads = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        for name in ("src", "href", "data", "action"):
            if name in attributes:
                (self.links if tag in ("a", "use") else self.loads).append(attributes[name])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse(page):
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def page(small_study):
    return (small_study[1] / "report.html").read_text(encoding="utf-8")


def test_well_formed_with_unique_ids_and_working_anchors(page):
    parser = parse(page)
    assert len(parser.ids) == len(set(parser.ids))
    for link in parser.links:
        assert link.startswith("#")
        assert link[1:] in parser.ids
    assert parser.tags[:2] == ["html", "head"]


def test_self_contained(page):
    parser = parse(page)
    assert parser.loads == ["data:,"]
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\((?!#)", page)
    assert "script" not in parser.tags


def test_every_verdict_and_the_theorem_are_shown(page, small_study):
    for verdict in small_study[0].verdicts:
        assert f'id="{verdict.key}"' in page
    for words in (
        "Step 3, averaging",
        "FOCUSS",
        "subgradients",
        "Iteratively reweighted",
        "Members or cost?",
    ):
        assert words in page


def test_plots_are_inline_svg(page):
    pytest.importorskip("matplotlib")
    assert page.count("<svg") == 8
    assert "no plot" not in page


def test_a_sentence_and_a_picture_come_first(page):
    pytest.importorskip("matplotlib")
    assert page.index('class="lead"') < page.index("<svg") < page.index("<h2") < page.index('class="verdict')


def test_the_picture_on_top_is_that_of_what_was_run(small_study):
    pytest.importorskip("matplotlib")
    study = small_study[0]
    documents = {"table1": table1(published_trials())}
    page = render_page(type(study)(study.settings, documents, study.verdicts, study.provenance))
    assert page.count("<svg") == 2
    assert page.index("Average ranks, here") < page.index("<svg") < page.index('class="verdict')
    assert "matplotlib is not installed" not in page


def test_times_are_in_units_of_people(page):
    assert "2 min 49 s" in page
    assert "168565" not in page


def test_plots_take_the_ink_of_the_page(page):
    pytest.importorskip("matplotlib")
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"(fill|stroke): #(000000|ffffff)", page)


def test_plots_are_the_same_twice(small_study):
    pytest.importorskip("matplotlib")
    documents = {"figure1": {"convergence": small_study[0].documents["figure1"]["convergence"]}}
    assert draw_all(documents) == draw_all(documents)
    assert list(draw_all(documents)) == ["convergence"]


def test_without_matplotlib_the_report_says_so(small_study, monkeypatch):
    monkeypatch.setattr("exclusivity.pages.svg.find_spec", lambda name: None)
    page = render_page(small_study[0])
    parse(page)
    assert "<svg" not in page
    assert "matplotlib is not installed" in page


def test_text_is_escaped(small_study, monkeypatch):
    monkeypatch.setattr("exclusivity.pages.svg.find_spec", lambda name: None)
    study = small_study[0]
    missing = {"<b>evil</b>": '"quoted" & more'}
    page = render_page(
        type(study)(study.settings, study.documents, study.verdicts, {**study.provenance, "missing": missing})
    )
    parse(page)
    assert "<b>evil</b>" not in page
    assert "&lt;b&gt;evil&lt;/b&gt;" in page


def test_ijcnn1_and_warnings_are_shown():
    trials = published_trials()
    trials["heart"][0]["warnings"] = ["nu-SVM: <slow>", "nu-SVM: <slow>"]
    large = [trial_result({"L1-ERM10": 9.0, "DRM10": 9.5})]
    section = table1_section(table1(trials, large), {})
    assert "91.00" in section
    assert "nu-SVM: &lt;slow&gt; (2 times)" in section


def test_table_1_without_sets():
    assert "None of its data sets was there" in table1_section(table1({}), {})


def test_inline_svg_strips_what_a_page_does_not_need():
    text = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg xmlns:xlink="http://x" width="3pt" height="4pt" '
        'viewBox="0 0 3 4" xmlns="http://y"><metadata>http://z</metadata>'
        '<use xlink:href="#a" width="1" height="2" clip-path="url(#b)" id="c"/></svg>'
    )
    expected = (
        '<svg viewBox="0 0 3 4"><use href="#p-a" width="1" height="2" clip-path="url(#p-b)" id="p-c"/></svg>'
    )
    assert inline_svg(text, "p") == expected
