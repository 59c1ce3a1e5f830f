"""Names from a model or a file are shown as they are written: they steer no terminal and are no formulas."""

import csv
import io
import json
import re
import sys
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.cli.main import main
from exclusivity.inspection import AdditiveDisplay, ComponentsDisplay, ConvergenceDisplay, PathDisplay
from exclusivity.io import save_model
from exclusivity.tables import TableEncoder
from exclusivity.tables._columns import ColumnTable

TERMINAL = ["\x1b]0;owned\x07\x1b[2J", "two\nlines", "\x9b31m \u202etxt.exe"]
FORMULAS = ["$10_$", "_$x_{"]
COLUMNS = ["\x1b[31mred", "a\r\nb", "$x_{", "$$", "_plain"]
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
X = np.random.default_rng(0).normal(size=(90, 5))


def labels(names):
    """Three classes on a line, or two."""
    side = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5] if len(names) == 3 else [0.0])
    return np.array(names, dtype=object)[side]


def table_model(names):
    """A pipeline on two number columns and three of hostile levels."""
    columns = [
        X[:, 0],
        X[:, 1],
        *(np.array(TERMINAL + FORMULAS, dtype=object)[np.arange(90) % 5] for _ in range(3)),
    ]
    model = make_pipeline(TableEncoder(), ERMClassifier(3))
    model.fit(ColumnTable(columns), labels(names))
    model[0].feature_names_in_ = np.array(COLUMNS, dtype=object)
    return model


def plain_model(names):
    model = ERMClassifierCV(3, Cs=[0.1, 1.0], cv=2).fit(X, labels(names))
    model.feature_names_in_ = np.array(COLUMNS, dtype=object)
    return model


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.mark.parametrize("make", [plain_model, table_model])
@pytest.mark.parametrize("names", [TERMINAL, FORMULAS])
def test_what_is_printed_of_a_model(run, make, names):
    pytest.importorskip("matplotlib")
    save_model(make(names), "m.erm")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("default", DeprecationWarning)  # of what matplotlib is made of
        code, out, err = run("inspect", "m.erm", "--html", "page.html")
    assert code == 0, err
    assert not CONTROL.search(out + err)
    for name in names:
        assert name.encode("unicode_escape").decode().replace("\\\\", "\\") in out
    with open("page.html", newline="") as stream:
        page = stream.read()
    assert not CONTROL.search(page)
    assert len(re.findall("<svg", page)) >= 2
    for name in names:
        shown = name.encode("unicode_escape").decode()
        assert f">{shown} against " in page or f" against {shown}" in page  # as text of a picture
    code, out, _ = run("inspect", "m.erm", "--json")
    assert code == 0
    assert not CONTROL.search(out)
    assert json.loads(out)["classes"] == sorted(names)
    assert json.loads(out)["feature_names"] == COLUMNS


def test_predictions_are_faithful_except_to_a_terminal(run, monkeypatch):
    save_model(ERMClassifier(1).fit(X, labels(TERMINAL)), "m.erm")
    np.save("rows.npy", X)
    code, out, _ = run("predict", "m.erm", "rows.npy", "--scores")
    assert code == 0
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert {row[0] for row in rows[1:]} == set(TERMINAL)
    assert rows[0][1:] == [f"score_{name}" for name in sorted(TERMINAL)]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    code, out, _ = run("predict", "m.erm", "rows.npy", "--scores")
    assert code == 0
    assert not CONTROL.search(out)
    assert len(out.splitlines()) == 91


def test_what_is_printed_of_labels_and_files(run):
    save_model(ERMClassifier(1).fit(X, labels(TERMINAL)), "m.erm")
    np.save("rows.npy", np.column_stack([X, np.zeros(90)]))
    code, _, err = run("evaluate", "m.erm", "rows.npy", "--target", "-1")
    assert code == 3
    assert not CONTROL.search(err)
    assert len(err.splitlines()) == 1
    code, _, err = run("predict", "m.erm", "\x1b[2J.csv")
    assert code == 3
    assert not CONTROL.search(err)


@pytest.mark.parametrize("names", [TERMINAL, FORMULAS])
def test_every_display_draws_names_and_no_formulas(names):
    plt = pytest.importorskip("matplotlib.pyplot")
    cv, table = plain_model(names), table_model(names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("default", DeprecationWarning)  # of what matplotlib is made of
        figures = [
            ConvergenceDisplay.from_estimator(cv).figure_,
            ComponentsDisplay.from_estimator(cv).figure_,
            PathDisplay.from_estimator(cv).figure_,
            AdditiveDisplay.from_estimator(table).figure_,
        ]
        if len(names) == 2:
            from exclusivity import erm_path

            found = erm_path(X, labels(names), n_estimators=2, Cs=[0.1, 1.0])
            figures.append(PathDisplay.from_path(found, feature_names=COLUMNS).figure_)
        for figure in figures:
            figure.canvas.draw()
            texts = [text for text in figure.findobj(plt.Text) if "against" in text.get_text()]
            assert not any(text._preprocess_math(text.get_text())[1] for text in texts)
    legend = figures[0].axes[0].get_legend()
    if legend is not None:
        drawn = {text._preprocess_math(text.get_text())[0].lstrip("\u200b") for text in legend.get_texts()}
        assert drawn == {f"{name.encode('unicode_escape').decode()} against the rest" for name in names}
    plt.close("all")
