"""The displays draw what the classifier holds, on axes given or made, and say what they cannot draw."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classifier.erm_cases import DIVERSE, binary_data, class_data
from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.inspection import ComponentsDisplay, ConvergenceDisplay, PathDisplay, drawing


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def chosen():
    return ERMClassifierCV(Cs=[1.0, 0.1, 10.0], cv=3).fit(*binary_data())


def test_scores_against_c(chosen):
    display = PathDisplay.from_estimator(make_pipeline(StandardScaler(), chosen))
    line = display.ax_.lines[0]
    np.testing.assert_allclose(line.get_xdata(), [0.1, 1.0, 10.0])
    np.testing.assert_allclose(line.get_ydata(), chosen.cv_results_["mean_test_score"][[1, 0, 2]])
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_ylabel() == "accuracy"
    assert display.ax_.lines[1].get_xdata()[0] == chosen.C_
    assert f"C = {chosen.C_:.3g}" in [t.get_text() for t in display.ax_.get_legend().get_texts()]
    band = display.ax_.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx((chosen.scores_.mean(axis=0) + chosen.scores_.std(axis=0)).max())


def test_coefficients_against_c_on_given_axes():
    X, y = class_data(3, n_features=8)
    path = erm_path(X, y, Cs=4)
    _, ax = plt.subplots()
    display = PathDisplay.from_path(path, problem=2, feature_names=list("abcdefgh"), best_C=path.Cs[1], ax=ax)
    assert display.ax_ is ax
    assert ax.get_title(loc="left") == "2 against the rest"
    drawn = {tuple(line.get_ydata()) for line in ax.lines}
    assert {tuple(column) for column in path.coefs[:, 2].T} <= drawn
    largest = "abcdefgh"[np.abs(path.coefs[:, 2]).max(axis=0).argmax()]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == largest
    assert len(labels) == 7


def test_convergence_of_every_problem():
    clf = ERMClassifier(solver="alm").fit(*class_data(3))
    display = ConvergenceDisplay.from_estimator(clf)
    above, below = display.axes_
    for line, history in zip(above.lines, clf.history_, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), history.objective)
    np.testing.assert_array_equal(below.lines[1].get_ydata(), clf.history_[1].gap)
    assert below.get_yscale() == "log"
    assert below.lines[-1].get_ydata()[0] == clf.tol
    assert [t.get_text() for t in above.get_legend().get_texts()][2] == "2 against the rest"


def test_convergence_without_certificates():
    clf = ERMClassifier(2, exclusivity=np.inf, random_state=0).fit(*class_data(3))
    display = ConvergenceDisplay.from_estimator(clf)
    assert len(display.axes_) == len(display.figure_.axes) == 1  # no gap, so no panel for it


def test_components_that_differ():
    clf = ERMClassifier(4, **DIVERSE).fit(*binary_data())
    display = ComponentsDisplay.from_estimator(clf, feature_names=list("abcde"))
    np.testing.assert_array_equal(display.image_.get_array(), clf.components_[0])
    low, high = display.image_.get_clim()
    assert -low == high == np.abs(clf.components_[0]).max()
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == list("abcde")
    assert not display.members_are_equal


def test_equal_components_are_drawn_once_and_said():
    display = ComponentsDisplay.from_estimator(ERMClassifier(30).fit(*class_data(3)), problem=1)
    assert display.image_.get_array().shape == (1, 4)
    assert "1 against the rest · 30 equal members, drawn once" in display.ax_.get_title(loc="left")
    single = ComponentsDisplay.from_estimator(ERMClassifier(1).fit(*binary_data()))
    assert "equal" not in single.ax_.get_title(loc="left")


def test_labels_thin_out_where_there_is_no_room():
    _, ax = plt.subplots(figsize=(3, 2))
    display = ComponentsDisplay(np.eye(60), [f"feature {j}" for j in range(60)]).plot(ax=ax)
    assert 2 <= len(display.ax_.get_xticks()) <= 20
    assert ComponentsDisplay(np.zeros((2, 3)), list("abc")).plot().ax_ is not ax


def test_names_of_problems():
    classes = np.array(["a", "b", "c"])
    assert drawing.problem_names(classes[:2], "ovr") == ["b against a"]
    assert drawing.problem_names(classes, "ovo") == ["a against b", "a against c", "b against c"]


def test_wrong_input(chosen):
    X, y = binary_data()
    clf = ERMClassifier().fit(X, y)
    with pytest.raises(ValueError, match="ERMClassifier has no scores_"):
        PathDisplay.from_estimator(clf)
    with pytest.raises(ValueError, match="no history_"):
        ConvergenceDisplay.from_estimator(StandardScaler())
    with pytest.raises(ValueError, match="either scores or coefs"):
        PathDisplay([1.0])
    with pytest.raises(ValueError, match="problem must be an integer from 0 to 0"):
        ComponentsDisplay.from_estimator(clf, problem=1)
    with pytest.raises(ValueError, match="one name per feature, 5; got 2"):
        ComponentsDisplay.from_estimator(clf, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="members by features"):
        ComponentsDisplay(np.ones((2, 3)), ["a"])
    with pytest.raises(ValueError, match="as many names"):
        ConvergenceDisplay(clf.history_, [])
    with pytest.raises(ValueError, match="ax must be a subplot"):
        ConvergenceDisplay.from_estimator(clf, ax=plt.figure().add_axes((0, 0, 1, 1)))
