"""model_report, summarise and scores_of: the page stands alone and says what the model holds."""

from __future__ import annotations

import re
import tracemalloc
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classifier.erm_cases import binary_data, class_data
from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.inspection import model_report
from exclusivity.inspection.report import inline_svg
from exclusivity.inspection.summary import scores_of, summarise
from exclusivity.robustness import certified_accuracy_curve, certify


class Page(HTMLParser):
    """Checks that tags are closed in order; collects ids, references and text."""

    VOID = frozenset({"meta", "link", "br", "path", "use", "rect", "image"})

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.links, self.words, self.tags = [], [], [], [], []
        self.feed(html)
        self.close()
        assert not self.open
        self.text = " ".join(self.words)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def voters():
    X, y = class_data(3)
    return ERMClassifier(4, exclusivity=np.inf, voting="hard", random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module")
def equal():
    X, y = binary_data()
    return ERMClassifier(7).fit(X, y), X, y


@pytest.fixture(scope="module")
def voters_page(voters):
    return model_report(*voters)


def test_the_page_stands_alone(voters_page):
    html = voters_page
    page = Page(html)
    inside = {link[1:] for link in page.links if link.startswith("#")}
    others = [link for link in page.links if not link.startswith("#")]
    assert all(link == "data:," or link.startswith("data:image/png;base64,") for link in others)
    assert len(set(page.ids)) == len(page.ids)
    assert inside <= set(page.ids)
    assert "http" not in re.sub(r"<!DOCTYPE[^>]*>", "", html)
    assert "script" not in page.tags
    assert 'name="viewport"' in html


def test_equal_members_are_said_to_be_equal(equal):
    page = Page(model_report(*equal))
    assert "7 equal members = one SVM at cost C/7." in page.text
    assert "fit with exclusivity above 1" in page.text
    assert "7 equal members, drawn once" in page.text
    assert "proven to be within" in page.text


def test_members_that_differ(voters):
    page = Page(model_report(voters[0]))
    assert "no two of them on the same one" in page.text
    assert "equal members" not in page.text
    assert "no bound" in page.text


def test_numbers_on_the_page(voters, voters_page):
    model, X, y = voters
    page = Page(voters_page)
    predicted = model.predict(X)
    assert f"{np.mean(predicted == y):.1%}" in page.text
    assert f"{balanced_accuracy_score(y, predicted):.1%}" in page.text
    for share in certified_accuracy_curve(certify(model, X), y, predicted):
        assert f"{share:.1%}" in page.text
    assert page.tags.count("svg") == 3 + 2


def test_the_choice_of_c_is_drawn():
    model = make_pipeline(StandardScaler(), ERMClassifierCV(Cs=[0.1, 1.0], cv=3)).fit(*binary_data())
    page = Page(model_report(model))
    assert "The choice of C" in page.text
    assert "StandardScaler()" in page.text
    assert f"ERMClassifierCV that chose C = {model[-1].C_:.4g} after" in page.text


def test_names_of_a_data_frame_reach_the_page():
    X, y = binary_data()
    frame = pd.DataFrame(X, columns=[f"<col {j}>" for j in range(X.shape[1])])
    model = make_pipeline(StandardScaler(), ERMClassifier(2)).fit(frame, y)
    html = model_report(model, frame, y)
    assert "<col 0>" in Page(html).text
    assert "<col 0>" not in html
    assert next(iter(summarise(model)["by_member"][0]["largest_weights"])).startswith("<col ")


def test_a_fit_that_failed_is_told():
    X, y = binary_data()
    with pytest.warns(UserWarning, match="duality gap"):
        model = ERMClassifier(max_iter=1, tol=1e-12).fit(X, y)
    assert "Not converged" in Page(model_report(model)).text


def test_without_matplotlib_the_numbers_stay(voters, monkeypatch):
    monkeypatch.setattr("exclusivity.inspection.report.find_spec", lambda name: None)
    page = Page(model_report(*voters))
    assert "svg" not in page.tags
    assert page.text.count("no plot: matplotlib is not installed") == 5
    assert "Confusion matrix" in page.text


def test_many_features_members_and_classes_are_cut(monkeypatch):
    for name, most in (("_MOST_FEATURES_DRAWN", 3), ("_MOST_MEMBERS", 2), ("_MOST_PROBLEMS_DRAWN", 2)):
        monkeypatch.setattr(f"exclusivity.inspection.report.{name}", most)
    X, y = class_data(3)
    page = Page(model_report(ERMClassifier(3, exclusivity=np.inf, random_state=0).fit(X, y)))
    assert f"the 3 of {X.shape[1]} features with the largest weights" in page.text
    assert "the first 2 of 3 members" in page.text
    assert "1 problems are not drawn" in page.text


def test_rows_may_be_lists(voters, voters_page):
    model, X, y = voters
    assert model_report(model, X.tolist(), y.tolist()) == voters_page


def test_rows_need_labels(equal):
    with pytest.raises(ValueError, match="only one of them"):
        model_report(equal[0], equal[1])


class TestSummary:
    def test_strongest_features(self, equal):
        model = equal[0]
        summary = summarise(model, n_strongest=2)
        weights = model.coef_[0]
        order = np.argsort(-np.abs(weights))[:2]
        (member,) = summary["by_member"]
        assert list(member["largest_weights"].items()) == [(f"feature {j}", weights[j]) for j in order]
        assert member["member"] == "all"
        assert (summary["members"], summary["features"]) == (7, len(weights))
        assert summary["problems"][0]["dual_gap"] == model.dual_gap_[0]

    def test_one_member_is_no_ensemble(self):
        summary = summarise(ERMClassifier(1).fit(*binary_data()))
        assert summary["note"] == ""
        assert summary["by_member"][0]["member"] == 0

    def test_several_classes(self, voters):
        model = voters[0]
        summary = summarise(model)
        for member in summary["by_member"]:
            assert member["features_used"] == model.supports_[member["member"]].sum()
            sizes = list(member["largest_weights"].values())
            assert sizes == sorted(sizes, reverse=True)
            assert min(sizes) > 0

    def test_given_names_must_fit(self, equal):
        with pytest.raises(ValueError, match="one name per feature"):
            summarise(equal[0], feature_names=["a"])


class TestScores:
    def test_against_scikit_learn(self):
        generator = np.random.default_rng(0)
        true, predicted = generator.integers(0, 4, (2, 200))
        scores = scores_of(true, predicted)
        np.testing.assert_array_equal(scores["confusion_matrix"].toarray(), confusion_matrix(true, predicted))
        assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(true, predicted))

    def test_classes_without_rows_or_predictions(self):
        scores = scores_of(["a", "a", "b"], ["a", "c", "a"])
        by_class = pd.DataFrame(scores["classes"])
        assert by_class["class"].tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(by_class["recall"], [0.5, 0.0, np.nan])
        np.testing.assert_array_equal(by_class["precision"], [0.5, np.nan, 0.0])
        np.testing.assert_array_equal(by_class["f1"], [0.5, 0.0, 0.0])
        assert scores["balanced_accuracy"] == 0.25

    def test_a_class_for_every_row(self):
        n_rows = 20_000
        tracemalloc.start()
        scores = scores_of(np.arange(n_rows), np.arange(n_rows))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert scores["accuracy"] == scores["balanced_accuracy"] == 1.0
        assert scores["confusion_matrix"].nnz == n_rows
        assert peak < 50 << 20  # 3.2 GB for all pairs of classes

    def test_refusals(self):
        with pytest.raises(ValueError, match="labels are numbers"):
            scores_of([1, 2], ["a", "b"])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            scores_of([1, 2], [1])


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
