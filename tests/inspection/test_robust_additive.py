"""Displays and report of a RobustAdditiveClassifier."""

import numpy as np
import pytest

from exclusivity import RobustAdditiveClassifier
from exclusivity.inspection import AdditiveDisplay, CertifiedAccuracyDisplay, model_report
from exclusivity.inspection.summary import summarise
from tables.table_cases import mixed_table

TABLE, CLASSES = mixed_table(300)
MODEL = RobustAdditiveClassifier(max_broken=1, n_knots=5).fit(TABLE, CLASSES)
THREE = RobustAdditiveClassifier(max_broken=1, n_knots=5).fit(TABLE, np.arange(300) % 3)


@pytest.mark.parametrize("rows", [None, TABLE])
def test_panels_are_the_score(rows):
    """Contributions, with the constant that centring takes out, add up to the score of every row."""
    panels = {p.title: p for p in AdditiveDisplay.from_estimator(MODEL, rows, plot=False).panels}
    assert set(panels) <= {"age", "income", "colour", "member", "visits", "day: year"}
    numbers = [name for name in ("age", "income", "visits") if name in panels]
    assert numbers
    for name in numbers:
        panel = panels[name]
        ends = np.array([panel.places[0], panel.places[-1]])
        row = TABLE.iloc[[0, 0]].assign(**{name: ends})
        difference = np.diff(MODEL.decision_function(row))[0]
        assert panel.effect[-1] - panel.effect[0] == pytest.approx(difference, abs=1e-9)
        low, high = panel.reach
        assert low <= panel.effect.min() <= panel.effect.max() <= high
        if rows is not None:
            assert panel.data.sum() == TABLE[name].notna().sum()
    colour = panels["colour"]
    assert colour.places[-1] == "no value"
    if rows is not None:
        counts = dict(zip(colour.places, colour.data.tolist(), strict=True))
        assert counts["red"] == (TABLE["colour"] == "red").sum()
        assert colour.data @ colour.effect == pytest.approx(0, abs=1e-9)
    order = [panel.importance for panel in AdditiveDisplay.from_estimator(MODEL, rows, plot=False).panels]
    assert order == sorted(order, reverse=True)


def test_plots():
    pytest.importorskip("matplotlib")
    display = AdditiveDisplay.from_estimator(THREE, TABLE, problem=2)
    assert display.title == "2 against 1"
    assert len(display.axes_.ravel()) >= len(display.panels)
    with pytest.raises(ValueError, match="problem must be an integer from 0 to 2"):
        AdditiveDisplay.from_estimator(THREE, problem=3)


def test_certified_accuracy():
    display = CertifiedAccuracyDisplay.from_estimator(MODEL, TABLE, CLASSES, plot=False)
    right = MODEL.predict(TABLE) == CLASSES
    expected = [np.mean(right & (MODEL.certify(TABLE) >= r)) for r in range(len(display.certified))]
    np.testing.assert_allclose(display.certified, expected)


@pytest.mark.parametrize(("model", "y"), [(MODEL, CLASSES), (THREE, np.arange(300) % 3)])
def test_report(model, y):
    page = model_report(model, TABLE, y)
    for words in ("RobustAdditiveClassifier", "What each column adds", "When features break", "max_broken"):
        assert words in page
    assert "The members" not in page
    assert page.count("against") >= len(model.points_)
    assert "The fit" in model_report(model)
    assert [problem["dual_gap"] for problem in summarise(model)["problems"]] == model.dual_gap_.tolist()
