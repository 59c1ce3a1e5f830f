"""What the columns of a table add to the score, in numbers and in pictures."""

import tracemalloc
from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier
from exclusivity.inspection import AdditiveDisplay, model_report
from exclusivity.inspection.additive import Panel
from exclusivity.tables import TableEncoder
from tables.table_cases import mixed_table
from tables.votes import table_vote

mpl.use("Agg")
TABLE, CLASSES = mixed_table(300)
TABLE["constant"] = 1
TABLE["seen"] = np.where(np.arange(300) % 2, "once", None)
QUICK = {"random_state": 0, "solver_options": {"restarts": 0}}
VOTE = table_vote(5, **QUICK).fit(TABLE, CLASSES)
SOFT = make_pipeline(TableEncoder(), StandardScaler(), ERMClassifier(3)).fit(TABLE, CLASSES)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def effect_at(panel, values):
    """What a panel says about some values of its column."""
    if not isinstance(panel.places, list):
        numbers = np.asarray(values, dtype=float)
        found = np.interp(numbers, panel.places, panel.effect)
        return np.where(np.isnan(numbers), np.nan if panel.missing is None else panel.missing, found)
    by_level = dict(zip(panel.places, panel.effect, strict=True))
    return np.array([by_level["no value" if value is None else str(value)] for value in values])


@pytest.mark.parametrize("model", [VOTE, SOFT], ids=["vote", "scaled"])
@pytest.mark.parametrize("rows", [TABLE, None], ids=["with data", "without"])
def test_panels_add_up_to_the_score(model, rows):
    """Dates and the sign of their gaps left out, the sum of all panels is the score up to a constant."""
    panels = AdditiveDisplay.from_estimator(model, rows, plot=False, max_panels=99).panels
    changed = TABLE.assign(day=TABLE["day"].dropna().iloc[0])  # the same for all: a constant
    total = np.zeros(len(TABLE))
    for panel in panels:
        if not panel.title.startswith("day"):
            values = changed[panel.title].astype(object).where(changed[panel.title].notna(), None)
            places = ["a value" if value == "once" else value for value in values]
            total += effect_at(panel, places)
    classifier = model[-1]
    weights = classifier.components_[0].mean(axis=0)
    scores = np.asarray(model[:-1].transform(changed)) @ weights
    np.testing.assert_allclose(total - total.mean(), scores - scores.mean(), atol=1e-9)


def test_sorted_and_centred():
    panels = AdditiveDisplay.from_estimator(VOTE, TABLE, plot=False).panels
    importances = [panel.importance for panel in panels]
    assert importances == sorted(importances, reverse=True)
    assert min(importances) > 0
    titles = [panel.title for panel in panels]
    assert "constant" not in titles
    assert {"day: year", "day: month", "day: weekday"} <= set(titles)
    colour = panels[titles.index("colour")]
    assert abs(colour.effect @ colour.data) < 1e-9
    assert colour.data.sum() == len(TABLE)
    age = panels[titles.index("age")]
    assert age.data.sum() == TABLE["age"].notna().sum()
    assert age.missing is not None


def test_members():
    panels = AdditiveDisplay.from_estimator(VOTE, TABLE, plot=False).panels
    for panel in panels:
        column = TABLE.columns.get_loc(panel.title.split(":")[0])
        uses = VOTE[-1].supports_[:, VOTE[0].sources_ == column].any(axis=1)
        assert np.flatnonzero(uses).tolist() == [panel.member]
    assert {panel.member for panel in AdditiveDisplay.from_estimator(SOFT, plot=False).panels} == {None}


@pytest.mark.parametrize("inches", [3, 7, 16])
def test_drawn_in_any_size(inches):
    figure = plt.figure(figsize=(inches, 8), layout="constrained")
    display = AdditiveDisplay.from_estimator(VOTE, TABLE, ax=figure.subplots(), max_panels=6)
    assert display.figure_ is figure
    shown = [ax for ax in display.axes_.flat if ax.axison]
    assert len(shown) == 6
    assert display.axes_.shape[1] == min(4, max(1, inches // 2))
    figure.canvas.draw()
    for ax in shown:
        ticks = [tick for tick in ax.get_xticklabels() if tick.get_text()]
        boxes = [tick.get_window_extent() for tick in ticks]
        if all(tick.get_rotation() == 0 for tick in ticks):
            assert all(a.x1 <= b.x0 + 3 for a, b in pairwise(boxes)), ax.get_title("left")


def test_its_own_figure():
    display = AdditiveDisplay.from_estimator(VOTE)
    assert tuple(display.figure_.get_size_inches()) == display.size
    assert display.axes_[0, 0].get_ylabel() == "adds to the score"


@pytest.mark.parametrize("n_levels", [20, 5])
def test_many_levels_are_said_to_be_many(n_levels):
    levels = [*sorted(str(number) for number in range(1, n_levels)), "(rare)"]
    effect = np.array([0.0 if level == "3" else float(len(level)) for level in levels])
    display = AdditiveDisplay([Panel("code", levels, effect, None, 1.0)]).plot()
    (ax,) = display.axes_.flat
    shown = [label.get_text() for label in ax.get_xticklabels()]
    if n_levels == 5:
        assert shown == ["1", "2", "3", "4", "(rare)"]
        assert ax.get_xlabel() == ""
    else:  # numbers in their order, of those that add most
        assert shown == ["1", *(str(number) for number in range(10, 20)), "(rare)"]
        assert ax.get_xlabel() == "12 of 20 categories, those that add most"


@pytest.mark.parametrize(
    "categories",
    [
        [f"measurement_of_sensor_{number:02d}" for number in range(10)],
        [f"level number {number} of the list" for number in range(10)],
        ["strongly agree with it", "strongly disagree with it"],
    ],
)
def test_long_names_are_cut_and_stay_different(categories):
    panel = Panel(
        "a name of a column that is longer than its panel", categories, np.ones(len(categories)), None, 1.0
    )
    (ax,) = AdditiveDisplay([panel]).plot().axes_.flat
    shown = [label.get_text() for label in ax.get_xticklabels()]
    assert len(set(shown)) == len(categories)
    assert max(map(len, shown)) <= 20
    assert ax.get_title("left").replace("\n", " ") == panel.title


def test_in_the_place_of_a_subplot():
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    display = AdditiveDisplay.from_estimator(VOTE, TABLE, ax=right, max_panels=3)
    figure.canvas.draw()
    assert display.figure_ is figure
    assert display.axes_.shape == (1, 3)
    assert all(ax.get_position().x0 > 0 for ax in display.axes_.flat)
    assert min(ax.get_window_extent().x0 for ax in display.axes_.flat) > left.get_window_extent().x1


def test_what_it_needs():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    plain = make_pipeline(StandardScaler(), ERMClassifier(2)).fit(rows, rows[:, 0] > 0)
    for model in (plain, plain[-1]):
        with pytest.raises(ValueError, match="begins with a TableEncoder"):
            AdditiveDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="problem must be"):
        AdditiveDisplay.from_estimator(VOTE, problem=1)


def test_in_the_report():
    page = model_report(VOTE, TABLE, CLASSES)
    assert "The columns" in page
    assert "What each column adds to the score, yes against no" in page
    assert "Grey: the rows of this report" in page
    rows = np.random.default_rng(0).normal(size=(30, 2))
    assert "The columns" not in model_report(ERMClassifier(2).fit(rows, rows[:, 0] > 0))


def test_several_classes():
    y = np.where(np.arange(len(TABLE)) % 3 == 0, "maybe", CLASSES)
    model = table_vote(3, **QUICK).fit(TABLE, y)
    titles = [AdditiveDisplay.from_estimator(model, problem=k, plot=False).title for k in range(3)]
    assert titles == ["maybe against the rest", "no against the rest", "yes against the rest"]
    assert model_report(model).count("<figcaption>What each column adds") == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:column 'code'")
def test_thousands_of_categories_take_little_memory():
    table = pd.DataFrame({"code": [f"level {k}" for k in range(3000)]})
    encoder = TableEncoder(max_levels=3000, min_frequency=1)
    model = make_pipeline(encoder, ERMClassifier(1, max_iter=1)).fit(table, np.arange(3000) % 2)
    tracemalloc.start()
    panels = AdditiveDisplay.from_estimator(model, table, plot=False).panels
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 << 20  # a matrix of all categories by all columns has 72 MB
    assert len(panels[0].places) == 3000
    assert (panels[0].data == 1).all()
