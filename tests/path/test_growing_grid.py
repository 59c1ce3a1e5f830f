"""The grid of C goes on past an end that wins, and says so where it may not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exclusivity import ERMClassifierCV
from exclusivity.classifier._path import search_costs as search


class Peak:
    """Scores of two folds that are best at one C; remembers what was asked."""

    def __init__(self, best: float) -> None:
        self.best, self.asked = best, []

    def __call__(self, Cs):
        self.asked += Cs.tolist()
        scores = -np.abs(np.log10(Cs / self.best))
        return [(scores + fold, np.log10(Cs), Cs) for fold in range(2)]


def grid(n_values: int):
    return np.logspace(-0.5, 4, n_values)


@given(st.integers(3, 30), st.floats(-8, 12))
def test_the_best_is_inside_the_grid_or_there_is_a_warning(n_values, exponent):
    first, peak = grid(n_values), Peak(10.0**exponent)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Cs, outcomes = search(first, peak, may_grow=True)
    assert np.all(np.diff(Cs) > 0)
    assert set(first) <= set(Cs)
    assert sorted(peak.asked) == Cs.tolist(), "every value once"
    for fold, (scores, n_iter, gaps) in enumerate(outcomes):
        np.testing.assert_allclose(scores, peak(Cs)[fold][0])
        np.testing.assert_array_equal(gaps, Cs)
        np.testing.assert_array_equal(n_iter, np.log10(Cs))
    np.testing.assert_allclose(np.diff(np.log10(Cs)), 4.5 / (n_values - 1))
    assert np.log10(Cs[0]) >= -3.5 - 1e-9
    assert np.log10(Cs[-1]) <= 7 + 1e-9
    best = int(np.argmax(outcomes[0][0]))
    at_an_end = best in (0, len(Cs) - 1)
    assert [str(w.message).startswith("The best C") for w in caught] == [True] * at_an_end
    if at_an_end:  # as far out as the bound allows
        reach = (-0.5 - np.log10(Cs[0])) if best == 0 else np.log10(Cs[-1]) - 4
        assert reach + 4.5 / (n_values - 1) > 3


@pytest.mark.parametrize(("best", "word"), [(1e3, "largest of the 3 values"), (1e-3, "smallest of the 3")])
def test_values_that_somebody_chose_are_kept(best, word):
    chosen, peak = np.array([10.0, 0.1, 1.0]), Peak(best)
    with pytest.warns(UserWarning, match=word):
        Cs, _ = search(chosen, peak, may_grow=False)
    np.testing.assert_array_equal(Cs, chosen)
    assert peak.asked == chosen.tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_values", [1, 2])
def test_one_or_two_values_have_no_inside(n_values):
    Cs, _ = search(grid(n_values), Peak(1e9), may_grow=True)
    assert len(Cs) == n_values


@pytest.mark.filterwarnings("error")
def test_a_plateau_is_no_reason_to_go_on():
    Cs, _ = search(grid(5), lambda Cs: [(np.ones(len(Cs)), Cs, Cs)], may_grow=True)
    assert len(Cs) == 5


def small_signal(n_rows: int = 80):
    """The feature that decides is tiny, so that only a large C sees it."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    signal = 3e-3 * (2 * y - 1 + 0.5 * rng.standard_normal(n_rows))
    return np.column_stack([rng.standard_normal(n_rows) + 0.3 * y, signal]), y


@pytest.mark.filterwarnings("error")
def test_the_classifier_finds_a_cost_beyond_its_first_grid():
    X, y = small_signal()
    clf = ERMClassifierCV(2, Cs=4, cv=2).fit(X, y)
    assert len(clf.Cs_) > 4
    assert clf.C_ not in clf.Cs_[[0, -1]]
    assert clf.scores_.shape == (2, len(clf.Cs_)) == (2, len(clf.cv_results_["param_C"]))
    assert clf.best_score_ == clf.cv_results_["mean_test_score"].max() == 1
    with pytest.warns(UserWarning, match=r"The best C, 1e\+04, is the largest of the 3 values given"):
        assert ERMClassifierCV(2, Cs=[1.0, 100.0, 1e4], cv=2).fit(X, y).Cs_.tolist() == [1, 100, 1e4]
