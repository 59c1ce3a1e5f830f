"""Splits are the same for all methods, methods are what the tables say."""

import numpy as np
import pytest
from sklearn.svm import NuSVC

from exclusivity.experiments.methods import METHODS, feasible_nu
from exclusivity.experiments.published import PAPER_METHODS
from exclusivity.experiments.sets import from_bunch
from exclusivity.experiments.splits import generator, random_split
from experiments.experiment_cases import toy_set


def test_a_split_is_a_partition_and_comes_back():
    data = toy_set("heart")
    first, second = (random_split(data.X, data.y, 150, generator(3, "heart", 1)) for _ in range(2))
    assert len(first.y_train) == 150
    assert len(first.y_test) == 20
    np.testing.assert_array_equal(first.X_train, second.X_train)
    assert first.seed == second.seed
    rows = np.vstack([first.X_train, first.X_test])
    assert {tuple(row) for row in rows} == {tuple(row) for row in data.X}


@pytest.mark.parametrize("other", [(4, "heart", 1), (3, "sonar", 1), (3, "heart", 2)])
def test_seed_set_and_trial_change_the_split(other):
    data = toy_set("heart")
    split = random_split(data.X, data.y, 150, generator(3, "heart", 1))
    assert not np.array_equal(split.X_train, random_split(data.X, data.y, 150, generator(*other)).X_train)


def test_training_rows_have_both_classes():
    y = np.array([1.0] + [-1.0] * 9)
    for trial in range(20):
        split = random_split(np.arange(10.0)[:, None], y, 2, generator(0, "rare", trial))
        assert set(split.y_train) == {-1.0, 1.0}


@pytest.mark.parametrize("n_train", [1, 10, 11])
def test_a_split_that_cannot_be_is_refused(n_train):
    y = np.array([1.0, -1.0] * 5)
    with pytest.raises(ValueError, match="Cannot draw"):
        random_split(y[:, None], y, n_train, generator(0, "x"))


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="same label"):
        random_split(np.ones((5, 1)), np.ones(5), 3, generator(0, "x"))


def test_the_registry_has_every_row_once_and_the_papers_ten_first():
    assert tuple(METHODS)[:10] == PAPER_METHODS
    assert [name for name in METHODS if METHODS[name].group == "single"] == ["L1-PSVM", "L2-PSVM", "nu-SVM"]
    assert len([name for name in METHODS if METHODS[name].group == "ours"]) == 8


def test_methods_are_what_they_are_called():
    y = np.array([1.0, -1.0])
    erm = METHODS["L2-ERM30"].build(y, 0)
    assert (erm.n_estimators, erm.C, erm.p, erm.solver) == (30, 2.0, 2, "paper")
    assert pytest.approx(0.2) == METHODS["L1-SVM-C/10"].build(y, 0).C
    assert METHODS["AdaBoost10"].build(y, 0).estimator.max_depth == 1
    assert METHODS["Bagging30"].build(y, 0).estimator.max_depth is None
    assert METHODS["L1-ERM10-certified"].build(y, 0).solver == "newton"


@pytest.mark.parametrize("n_positive", [1, 3, 10, 19])
def test_nu_is_feasible(n_positive):
    y = np.where(np.arange(20) < n_positive, 1.0, -1.0)
    NuSVC(kernel="linear", nu=feasible_nu(y)).fit(np.arange(20.0)[:, None], y)


def test_sets_need_two_classes():
    class Bunch:
        data, target, source = np.ones((3, 1)), np.array([0, 1, 2]), "x"

    with pytest.raises(ValueError, match="two classes; got 3"):
        from_bunch("iris", Bunch)
