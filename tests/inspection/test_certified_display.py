"""CertifiedAccuracyDisplay: data first, drawing when asked."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier
from exclusivity.inspection import CertifiedAccuracyDisplay
from exclusivity.robustness import certified_accuracy_curve
from robustness.robust_cases import split

mpl.use("Agg")

X, Y, ROWS, LABELS = split("heart")
VOTERS = ERMClassifier(5, C=0.1, exclusivity=np.inf, voting="hard", random_state=0)
MODEL = make_pipeline(StandardScaler(), VOTERS).fit(X, Y)


@pytest.fixture(autouse=True)
def _no_open_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.mark.parametrize("balanced", [False, True])
def test_the_curve_of_a_pipeline(balanced):
    display = CertifiedAccuracyDisplay.from_estimator(MODEL, ROWS, LABELS, balanced=balanced)
    radii = MODEL[-1].certify(MODEL[0].transform(ROWS))
    expected = certified_accuracy_curve(radii, LABELS, MODEL.predict(ROWS), balanced=balanced)
    assert np.array_equal(display.certified, expected)
    assert np.array_equal(display.line_.get_ydata(), expected)
    assert display.ax_.get_ylabel() == ("certified balanced accuracy" if balanced else "certified accuracy")
    assert display.ax_.get_legend().get_texts()[0].get_text() == "Pipeline"
    if not balanced:
        assert display.accuracy == pytest.approx(MODEL.score(ROWS, LABELS))
        assert display.ax_.collections[0].get_offsets()[0, 1] == display.accuracy


def test_data_without_a_drawing_and_several_curves_in_one():
    display = CertifiedAccuracyDisplay.from_estimator(
        MODEL, ROWS, LABELS, plot=False, max_radius=7, name="vote"
    )
    assert not hasattr(display, "ax_")
    assert len(display.certified) == 8
    first = display.plot()
    second = CertifiedAccuracyDisplay([0.9, 0.2], name="other").plot(ax=first.ax_)
    assert second.ax_ is first.ax_
    assert second.figure_ is first.ax_.figure
    assert first.line_.get_color() != second.line_.get_color()
    assert [text.get_text() for text in first.ax_.get_legend().get_texts()] == ["vote", "other"]
    assert CertifiedAccuracyDisplay([1.0]).plot().ax_.get_legend() is None


def test_predictions_with_known_radii():
    radii, labels = np.array([2, 0, -1]), np.array(["a", "b", "b"])
    display = CertifiedAccuracyDisplay.from_predictions(radii, labels, labels, plot=False)
    assert display.accuracy == 1
    np.testing.assert_allclose(display.certified, [2 / 3, 1 / 3, 1 / 3, 0])


def test_soft_votes_have_no_curve():
    soft = ERMClassifier(3).fit(X, Y)
    with pytest.raises(ValueError, match="voting='hard'"):
        CertifiedAccuracyDisplay.from_estimator(soft, ROWS, LABELS)
